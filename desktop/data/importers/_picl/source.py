"""Whether a file is a PICL trace, and of which format.

Source: ORNL/TM-12125 and the PICL 1.x node library say nothing of a header: the first lines decide.
"""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path

from desktop.data.importers._picl import tables as tb
from desktop.data.lines import REFUSED, opener, unpacked_head

#: Share of unreadable lines above which a file is refused.
REFUSED_SHARE = 0.2

_A, _B = tb.FORMAT_A, tb.FORMAT_B

_VERBOSE = re.compile(r"\s*([A-Za-z_]+)\s+clock\s+-?\d+\s+-?\d+\s+node\s+-?\d+(\s|$)")
_NUMBER = re.compile(r"[+-]?(\d+[.,]?\d*|[.,]\d+)([eEdD][+-]?\d+)?$")
_INTEGER = re.compile(r"[+-]?\d{1,18}$")
_LINE = re.compile(r"[^\r\n]+")


def line_form(line: str, strict: bool) -> int | None:
    """Which format a line is of, if any; strict: its type is known and its fields are complete."""
    tokens = line.split()
    verbose = _VERBOSE.match(line)
    if verbose:
        return _A if not strict or verbose[1] in tb.NAMES else None
    if len(tokens) < 4 or not _INTEGER.match(tokens[0]):
        return None
    first = int(tokens[0])
    if first >= 1:
        if not all(_INTEGER.match(t) for t in tokens[:4]) or abs(int(tokens[2])) >= 1_000_000:
            return None
        if not strict:
            return _A
        if first > 24 or not (int(tokens[3]) >= -1 or int(tokens[3]) == tb.HOST):
            return None
        want = tb.FIELDS[first]
        exact = want < 0 or len(tokens) - 4 == want or (first == 11 and len(tokens) == 8)
        return _A if exact else None
    if len(tokens) < 6 or not _NUMBER.match(tokens[2]):
        return None
    if -first not in tb.RECORDS_B or not all(_INTEGER.match(tokens[i]) for i in (1, 3, 4, 5)):
        return None
    return _B if int(tokens[5]) >= 0 else None


def form_of(head: bytes, whole: bool) -> int | None:
    """The format of a file from its beginning; whole: the last line is not cut by us."""
    text = head.replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe").replace(b"\x1a", b"").decode("latin-1")
    whole = whole or not re.search("[\r\n]", text)
    found = (line[0].strip() for line in _LINE.finditer(text) if whole or line.end() < len(text))
    written = list(islice((line for line in found if line and not line.startswith("#")), 250))
    if written and written[0].split()[0] == "-1":
        return None  # an ALOG file: creator and date; no record of B is of that type
    for skipped, line in enumerate(written[:51]):
        form = line_form(line, strict=True)
        if form is not None:
            sample = written[skipped : skipped + 200]
            if len(sample) > 1 and whole:
                # The last line of a file may be cut.
                sample = sample[:-1] if line_form(sample[-1], strict=False) is None else sample
            wrong = sum(line_form(other, strict=False) != form for other in sample)
            return form if wrong <= REFUSED_SHARE * len(sample) else None
    return None


_SUFFIXES = (".trf", ".ttf", ".raw", ".picl")


def detect(path: Path, head: bytes) -> bool:
    if path.is_dir():
        return False
    if any(head.startswith(magic) for magic in REFUSED):
        # Only the name can tell what such a file holds; claiming it gives the user a sentence.
        return path.with_suffix("").suffix.lower() in _SUFFIXES
    whole = len(head) < 1 << 16
    if opener(head) is not None:
        head, whole = unpacked_head(path)
    return form_of(head, whole) is not None
