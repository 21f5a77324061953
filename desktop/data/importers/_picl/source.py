"""Whether a file is a PICL trace, and of which format.

Source: ORNL/TM-12125 and the PICL 1.x node library say nothing of a header: the first lines decide.
"""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path

from desktop.data.importers._picl import tables as tb
from desktop.data.lines import detected

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
    whole = [int(token) if _INTEGER.match(token) else None for token in tokens[:6]]
    match whole:
        case [int(key), int(), int(micros), int(node), *_] if key >= 1 and abs(micros) < 1_000_000:
            want = tb.FIELDS[key] if key <= tb.TRACE_FILES else len(tokens)
            fields = want in (-1, len(tokens) - 4) or (key == tb.COMPSTATS and len(tokens) == 8)
            return _A if not strict or (fields and (node >= -1 or node == tb.HOST)) else None
        case [int(record), int(), _, int(), int(), int(data)] if -record in tb.RECORDS_B and data >= 0:
            return _B if _NUMBER.match(tokens[2]) else None
    return None


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


def detect(path: Path, head: bytes) -> bool:
    suffixes = (".trf", ".ttf", ".raw", ".picl")
    return detected(path, head, lambda text, whole: form_of(text, whole) is not None, suffixes)
