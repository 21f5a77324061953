"""Sends and receives: which records they are, as rows of the sink, and matched with each other.

The k-th send is matched with the k-th receive of the same source, destination and tag (and communicator).
Source: ORNL/TM-12125 and the PICL 1.x node library.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from desktop.core.jit import arithmetic, inlined
from desktop.data.events import MessageKind
from desktop.data.importers._picl import lines as ln
from desktop.data.spill import Interner, Spill

#: One end of a message; channel: a number for source, destination, tag and communicator; side 0: the send.
ENDPOINT = np.dtype([("time", "i8"), ("channel", "i8"), ("bytes", "i8"), ("side", "i8")])

#: How many rows of messages are made at once.
AT_ONCE = 1 << 16
#: Records of the trace for which there is one bucket of ends.
BUCKET = 1 << 18
#: So many channels are shared out over buckets.
FEW = 1 << 16

_SEND, _RECEIVE = int(MessageKind.SEND), int(MessageKind.RECV)

# What `Matching` counts.
MATCHED, SENDS_LEFT, RECEIVES_LEFT, EARLY, EARLIEST, UNEQUAL, COUNTS = range(7)


@inlined
def _located(processor: int, known: Any, index: Any) -> int:
    """Index of a location, -1 for wildcards and the like."""
    if 0 <= processor < len(known) and known[processor] == processor:
        return index[processor]
    at = np.searchsorted(known, processor)
    return index[at] if at < len(known) and known[at] == processor else -1


@arithmetic
def fill(
    rows: Any, at: int, copy: int, own: int, form: int, sides: Any, kinds: Any, events: Any, known: Any,
    index: Any, others: Any, communicators: bool,
    time: Any, kind: Any, peer: Any, communicator: Any, tag: Any, size: Any, request: Any, ends: Any,
) -> Any:  # fmt: skip
    """Rows of messages and their ends from rows[at:], as many as have room.

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
            context = np.int64(r["d3"]) if communicators else 0
            time[used], tag[used], size[used] = r["time"], r["d1"], r["d0"]
            kind[used] = kinds[-event] if form == ln.FORMAT_B else (_SEND, _RECEIVE)[side - 1]
            peer[used] = _located(partner, known, index)
            communicator[used], request[used] = context & 0xFFFFFFFF, 0
            source, target = (own, partner) if side == 1 else (partner, own)
            e = ends[used]
            e["time"], e["bytes"], e["side"] = r["time"], r["d0"], side - 1
            e["channel"] = ln.mix((source << 32) ^ target, r["d1"], context)
            used += 1
        copy = 0
        at += 1
    return used, at, copy


@arithmetic
def _match(ends: Any, channels: Any, starts: Any, order: Any, result: Any) -> None:
    """Count pairs of a bucket; starts (2 channels,): where sends and receives of each begin once ordered."""
    for i in range(len(ends)):
        group = 2 * channels[i] + ends[i]["side"]
        order[starts[group]] = i
        starts[group] += 1
    begin = 0
    for channel in range(len(starts) // 2):
        middle, end = starts[2 * channel], starts[2 * channel + 1]
        sends, receives = middle - begin, end - middle
        pairs = min(sends, receives)
        for k in range(pairs):
            s = ends[order[begin + k]]
            r = ends[order[middle + k]]
            lead = s["time"] - r["time"]
            if lead > 0:
                result[EARLY] += 1
                result[EARLIEST] = max(result[EARLIEST], lead)
            if s["bytes"] != r["bytes"]:
                result[UNEQUAL] += 1
        result[MATCHED] += pairs
        result[SENDS_LEFT] += sends - pairs
        result[RECEIVES_LEFT] += receives - pairs
        begin = end


@arithmetic
def _share(ends: Any, buckets: int, share: Any) -> None:
    """Which of the buckets each channel belongs to."""
    for i in range(len(ends)):
        share[i] = ends[i]["channel"] % buckets


@arithmetic
def _share_out(channels: Any, ends: Any, counts: Any, buckets: int, share: Any) -> None:
    """Let the ends of a channel go on to the next bucket after every so many; not those of channel -1."""
    for i in range(len(ends)):
        if channels[i] >= 0:
            side = ends[i]["side"]
            share[i] = (share[i] + counts[channels[i], side] // (BUCKET // 64)) % buckets
            counts[channels[i], side] += 1


class Matching:
    """Gathers ends of messages and matches them, a share of the channels at a time.

    As the k-th send belongs to the k-th receive, a channel may be shared out too. That is done with the first
    channels, so that two processors that only talk to each other need no more memory the longer they do.
    """

    def __init__(self, folder: Path, records: int, several: bool) -> None:
        """several: a processor may have several locations, so that its ends do not come in order of time."""
        self._buckets = 1 + records // BUCKET
        self._several = several
        self._spill = Spill(folder, ENDPOINT)
        self._channels = Interner()
        self._counts = np.zeros((0, 2), np.int64)

    def add(self, ends: NDArray[Any]) -> None:
        share = np.empty(len(ends), np.int64)
        _share(ends, self._buckets, share)
        if self._buckets > 1 and not self._several:
            channels = self._number(np.ascontiguousarray(ends["channel"]))
            if self._channels.used > len(self._counts):
                more = 2 * self._channels.used - len(self._counts)
                self._counts = np.pad(self._counts, ((0, more), (0, 0)))
            _share_out(channels, ends, self._counts, self._buckets, share)
        self._spill.add(ends, share, self._buckets)

    def _number(self, channels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Dense numbers of the first `FEW` channels (and a few more), -1 of those that come after them."""
        if self._channels.used < FEW:
            return self._channels(channels)
        known = self._channels.values
        order = np.argsort(known)
        found = order[np.minimum(np.searchsorted(known, channels, sorter=order), len(known) - 1)]
        return np.where(known[found] == channels, found, -1)

    def close(self) -> None:
        self._spill.close()

    def count(self) -> NDArray[np.int64]:
        """(COUNTS,): pairs, sends and receives without partner, receives that end before their send begins,
        the largest such lead in ticks, pairs of unequal length."""
        result = np.zeros(COUNTS, np.int64)
        for bucket in range(self._buckets):
            ends = self._spill.read(bucket)
            if self._several:
                ends = ends[np.argsort(ends["time"], kind="stable")]
            number = Interner()
            channels = number(np.ascontiguousarray(ends["channel"]))
            sizes = np.bincount(2 * channels + ends["side"], minlength=2 * number.used)
            starts = np.concatenate(([0], np.cumsum(sizes)[:-1])) if number.used else np.zeros(0, np.int64)
            _match(ends, channels, starts, np.empty(len(ends), np.int64), result)
        return result
