"""Sends and receives: which records they are, as rows of the sink.

Source: ORNL/TM-12125 and the PICL 1.x node library.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from desktop.core.jit import arithmetic, inlined, place_in
from desktop.data.events import MessageKind
from desktop.data.importers._picl import lines as ln

#: How many rows of messages are made at once.
AT_ONCE = 1 << 16
_SEND, _RECEIVE = int(MessageKind.SEND), int(MessageKind.RECV)


@inlined
def _located(processor: int, known: Any, index: Any) -> int:
    """Index of a location, -1 for wildcards and the like."""
    if 0 <= processor < len(known) and known[processor] == processor:
        return index[processor]
    at = place_in(known, processor)
    return index[at] if at < len(known) and known[at] == processor else -1


@arithmetic
def fill(
    rows: Any, at: int, copy: int, own: int, form: int, sides: Any, kinds: Any, events: Any, known: Any,
    index: Any, others: Any, communicators: bool,
    time: Any, kind: Any, peer: Any, communicator: Any, tag: Any, size: Any, request: Any,
) -> Any:  # fmt: skip
    """Rows of messages from rows[at:], as many as have room.

    A send of format A to -1 is one to each of `others` but oneself (`own`); `copy`: where among them to go
    on. Returns how many there are, and at and copy to go on with.
    """
    used = 0
    while at < len(rows):
        r = rows[at]
        event = events[r["key"]] if form == ln.FORMAT_B else 0
        side = 0
        if r["nd"] >= 3 and r["record"] < 9 and -65 < event <= 0:
            side = sides[r["record"], -event]
        everybody = side == 1 and form == ln.FORMAT_A and r["d2"] == -1
        last = len(others) if everybody else 1
        while side > 0 and copy < last:
            if used == len(time):
                return used, at, copy
            partner = others[copy] if everybody else np.int64(r["d2"])
            copy += 1
            if everybody and partner == own:
                continue
            time[used], tag[used], size[used] = r["time"], r["d1"], r["d0"]
            kind[used] = kinds[-event] if form == ln.FORMAT_B else (_SEND, _RECEIVE)[side - 1]
            peer[used] = _located(partner, known, index)
            communicator[used], request[used] = (r["d3"] if communicators else 0) & 0xFFFFFFFF, 0
            used += 1
        copy = 0
        at += 1
    return used, at, copy
