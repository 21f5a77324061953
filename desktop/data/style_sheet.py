"""A user's style sheet (CSS) for HTML: read within bounds, and accepted only if it loads nothing."""

from __future__ import annotations

import re
from pathlib import Path

from desktop.errors import FileError

#: Most bytes of a style sheet.
LARGEST = 1 << 20
# A page with a user's style sheet may load only what is in the sheet itself.
POLICY = "; img-src data:; font-src data:"
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|(.))", re.S)
_LOADS = re.compile(
    r"@import|(?:image-set|src|image)\(|url\(\s*(?![\s'\"]|data:|#)|url\(\s*['\"]\s*(?!\s|data:|#)", re.I
)


def read_style_sheet(path: Path) -> str:
    """Read and check a style sheet.

    Raises
    ------
    FileError : it is too large, no text, would end the page's style, or has external references.
    OSError : there is no such file.
    """
    if path.stat().st_size > LARGEST:
        raise FileError(f"is larger than {LARGEST >> 10} KiB, too large for a style sheet", file=path)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        reason = f"is no text in UTF-8 (byte {error.start})"
        raise FileError(reason, file=path, hint="save it as CSS in UTF-8") from None
    for word in ("</", "<!--", "\0"):
        if word in text:
            line = text[: text.index(word)].count("\n") + 1
            reason = f"holds {word!r} in line {line}, which is no style"
            raise FileError(reason, file=path, hint="take that out, or write \\3c for <")
    bare = re.sub(r"/\*.*?(\*/|\Z)", lambda match: "\n" * match[0].count("\n") or " ", text, flags=re.S)
    for number, each in enumerate(_plain(bare).split("\n"), 1):
        if _LOADS.search(each):
            reason = f"loads from elsewhere in line {number}"
            raise FileError(reason, file=path, hint="put fonts and pictures into it as data: addresses")
    return text


def _plain(text: str) -> str:
    """The text without escapes, which could hide a word."""

    def letter(escaped: re.Match[str]) -> str:
        code = int(escaped[1], 16) if escaped[1] else ord(escaped[2])
        return chr(code) if 31 < code < 0xD800 else ""

    return re.sub(r"\(\s+", "(", _ESCAPE.sub(letter, text))
