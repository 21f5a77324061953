"""From the rows of a stream to those of the sink: trace numbers become indices."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import numpy as np

from desktop.core.arrays import AnyArray, Bytes, Ints
from desktop.core.jit import arithmetic
from desktop.data.events import UNDEFINED, Region, Severity, Sink
from desktop.data.importers._otf1 import lines as ln
from desktop.data.importers._otf1.definitions import DOUBLE, FLOAT, SIGNED, Otf1Definitions
from desktop.data.importers._otf1.stream import Stream
from desktop.data.spill import Numbers, by_time

PART = 1 << 16
#: Deepest nesting considered when a leave names no region; no program nests deeper.
_DEEPEST = 1 << 12
#: Undefined functions that get a region of their own; for comments see `Stream`.
_NAMELESS = 1 << 12

#: Possible findings, their severity, and what was done.
FINDINGS: dict[str, tuple[Severity, str]] = {
    "leaves": (
        "loss",
        f"leaves name no region where none is open, or more than {_DEEPEST} are; they were left out",
    ),
    "regions": (
        "loss",
        "enters and leaves are of regions that are not defined; they are called by their number and count as "
        "computing, unless messages or collective operations lie inside",
    ),
    "operations": (
        "loss",
        "collective operations are of kinds or process groups that are not defined; it is not known which "
        "process waits for which in them",
    ),
    "peers": ("notice", "messages name a process that is not defined; their partner is unknown"),
}

_TABLES = ("events", "messages", "collectives", "metrics", "marks")


@arithmetic
def _name_leaves(region: Ints, kind: Bytes, stack: Ints, depth: int) -> int:
    """Give leaves without a region (0) that of the innermost open one; `depth`: number of open regions."""
    for i in range(len(region)):
        if kind[i] == 0:
            if depth < len(stack):
                stack[depth] = region[i]
            depth += 1
        elif depth > len(stack):
            depth -= 1
        elif region[i] == 0 and depth > 0:
            depth -= 1
            region[i] = stack[depth]
        elif region[i] != 0:
            at = depth - 1
            while at >= 0 and stack[at] != region[i]:
                at -= 1
            if at >= 0:
                depth -= 1
                for k in range(at, depth):
                    stack[k] = stack[k + 1]
    return depth


class Otf1Rows:
    """Appends the rows of locations to the sink, and defines what it meets for the first time."""

    def __init__(self, sink: Sink, definitions: Otf1Definitions, index: dict[int, int]) -> None:
        """`index`: process -> location."""
        self._sink, self._definitions = sink, definitions
        self._nameless: dict[int, int] = {}
        self.functions = Numbers(self._function)
        self.operations = Numbers(self._operation)
        self.counters = Numbers(
            lambda number: sink.metric(definitions.counter(number)[0], definitions.metric(number))
        )
        self.value_types = Numbers(lambda number: definitions.counter(number)[1])
        self.peers = Numbers(lambda number: index.get(number, -1))

    def _function(self, number: int) -> int:
        region = self._definitions.region(number)
        if region is not None:
            return self._sink.region(region)
        if len(self._nameless) == _NAMELESS:
            return self._sink.region(Region("regions without a definition", UNDEFINED, "unknown"))
        self._nameless[number] = self._sink.region(Region(f"region {number}", UNDEFINED, "unknown"))
        return self._nameless[number]

    def _operation(self, number: int) -> int:
        """Number of a collective's operation, and in the low bits that of the function around it."""
        operation, within = number >> 32 & 0xFFFFFFFF, number & 0xFFFFFFFF
        return self._sink.text(self._definitions.operation(operation, within))

    def _tell(self, finding: str, count: int, stream: Stream) -> None:
        self._sink.report.tell(FINDINGS, finding, count, stream.text.path.name)

    def deliver(self, stream: Stream, group: int, location: int) -> Iterator[None]:
        """Append the rows of a group to a location, part by part."""
        for table, name in enumerate(_TABLES):
            parts = self._parts(stream, table, group)
            if table == ln.EVENTS and stream.facts[group, ln.BARE]:
                parts = self._leaving(parts, stream)
            for rows in parts:
                self._sink.append(name, location, **getattr(self, "_" + name)(rows, stream))
                yield

    def _parts(self, stream: Stream, table: int, group: int) -> Iterator[AnyArray]:
        spill = stream.spills[table]
        if spill is None:
            return
        if stream.in_order(table, group):
            yield from spill.parts(group, PART)
            return
        with closing(by_time(spill, group, PART)) as rows:
            yield from rows.chunks()

    def _leaving(self, parts: Iterator[AnyArray], stream: Stream) -> Iterator[AnyArray]:
        stack, depth, lost = np.zeros(_DEEPEST, np.int64), 0, 0
        for rows in parts:
            region = rows["region"].astype(np.int64)
            depth = _name_leaves(region, np.ascontiguousarray(rows["kind"]), stack, depth)
            rows["region"] = region
            named = (region != 0) | (rows["kind"] == 0)
            lost += int((~named).sum())
            yield rows[named]
        self._tell("leaves", lost, stream)

    def _events(self, rows: AnyArray, stream: Stream) -> dict[str, AnyArray]:
        region = self.functions(rows["region"])
        if self._nameless:
            self._tell("regions", int(np.isin(rows["region"], list(self._nameless)).sum()), stream)
        return {"time": rows["time"], "kind": rows["kind"], "region": region.astype(np.uint32)}

    def _messages(self, rows: AnyArray, stream: Stream) -> dict[str, AnyArray]:
        peer = self.peers(rows["peer"])
        self._tell("peers", int((peer < 0).sum()), stream)
        same = {name: rows[name] for name in ("time", "kind", "communicator", "tag", "bytes")}
        return {**same, "peer": peer.astype(np.int32), "request": np.zeros(len(rows), np.uint64)}

    def _collectives(self, rows: AnyArray, stream: Stream) -> dict[str, AnyArray]:
        same = {name: rows[name] for name in ("end", "communicator", "sent", "received")}
        for kind in ("operation", "communicator"):
            numbers, counts = np.unique(rows[kind], return_counts=True)
            self._tell(
                "operations",
                sum(
                    count
                    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True)
                    if number != ln.NOT_GIVEN and not self._defined(kind, number)
                ),
                stream,
            )
        return {
            **same,
            "begin": rows["time"],
            "operation": self.operations(
                rows["operation"].astype(np.int64) << 32 | rows["within"].astype(np.int64)
            ).astype(np.uint32),
            "root": self.peers(rows["root"]).astype(np.int32),
        }

    def _defined(self, kind: str, number: int) -> bool:
        if kind == "operation":
            return self._definitions.knows("operation", number)
        # Not every writer defines process groups.
        return self._definitions.knows("processes", number) or not self._definitions.knows("processes")

    def _metrics(self, rows: AnyArray, stream: Stream) -> dict[str, AnyArray]:
        bits = np.ascontiguousarray(rows["value"])
        kind = self.value_types(rows["metric"])
        # As float32 the low half is used, whatever the byte order here.
        single = bits.astype(np.uint32).view(np.float32).astype(np.float64)
        value = np.select(
            [kind == FLOAT, kind == DOUBLE, np.isin(kind, SIGNED)],
            [single, bits.view(np.float64), bits.astype(np.float64)],
            bits.view(np.uint64).astype(np.float64),
        )
        metric = self.counters(rows["metric"]).astype(np.uint32)
        return {"time": rows["time"], "metric": metric, "value": value}

    def _marks(self, rows: AnyArray, stream: Stream) -> dict[str, AnyArray]:
        texts = np.array([self._sink.text(text) for text in stream.texts], np.uint32)
        return {"time": rows["time"], "text": texts[rows["text"]]}
