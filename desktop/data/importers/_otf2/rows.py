"""From the rows of the engine to those of the sink: trace numbers become indices."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from desktop.core.arrays import AnyArray, Ints
from desktop.data import events
from desktop.data.events import Region, Sink
from desktop.data.importers._otf2.definitions import Communicators, Definitions, LocationPlace
from desktop.data.importers._otf2.records import CONTEXTS, TABLE_NAMES, UNDEFINED
from desktop.data.importers._otf2.tables import OPERATIONS

ROOT_SELF = 0xFFFFFFFE


class Rows:
    """Appends the rows of each location to the sink, and defines what it meets for the first time."""

    def __init__(self, sink: Sink, folder: Path, definitions: Definitions, dense: dict[int, int]) -> None:
        """`dense`: location number -> index."""
        self.sink, self.folder, self.definitions = sink, folder, definitions
        self.regions = definitions.regions(sink)
        self.communicators = Communicators(definitions, dense)
        self.operations: dict[int, int] = {}
        self.metric_names: dict[int, int] = {}

    def deliver(self, place: LocationPlace, block: list[Ints]) -> None:
        tables = [
            (TABLE_NAMES[table], rows(place, columns))
            for table, (columns, rows) in enumerate(
                zip(block, (self.events, self.messages, self.collectives, self.metrics), strict=True)
            )
            if columns.shape[1]
        ]
        # Events last, so that what compares them with the messages need not wait.
        for name, columns in sorted(tables, key=lambda one: one[0] == "events"):
            self.sink.append(name, place.index, **columns)

    def events(self, place: LocationPlace, columns: Ints) -> dict[str, AnyArray]:
        time, packed = columns
        keys = packed & 0xFFFFFFFFFFFFFF
        region = self.regions(keys)
        unknown = np.unique(keys[region == -1]).tolist()
        if unknown:
            names = {
                key: f"calling context {key - CONTEXTS}" if key >= CONTEXTS else f"region {key}"
                for key in unknown
            }
            self.sink.report.add(
                "regions",
                "loss",
                "regions are not defined; they are called by their number and count as computing, unless "
                "messages or collective operations lie inside",
                count=len(unknown),
                where=f"{names[unknown[0]]} in {self.folder.name}/{place.location.id}.evt",
            )
            new = {
                key: self.sink.region(Region(name, events.UNDEFINED, "unknown"))
                for key, name in names.items()
            }
            self.regions.add(new)
            region = self.regions(keys)
        return {"time": time, "kind": (packed >> 56).astype("u1"), "region": region.astype("u4")}

    def messages(self, place: LocationPlace, columns: Ints) -> dict[str, AnyArray]:
        time, packed, comm, tag, size, request = columns
        kind, rank = packed >> 56, packed & UNDEFINED
        # On its own communicator the process is the only member, whichever of its threads calls.
        peer, _ = self.communicators.peers(comm, rank, place.first)
        unresolved = int(((peer < 0) & (comm != UNDEFINED)).sum())
        if unresolved:
            self.sink.report.add(
                "peers",
                "notice",
                "messages name a communicator or rank that is not defined; their partner is unknown",
                count=unresolved,
                where=f"{self.folder.name}/{place.location.id}.evt",
            )
        return {
            "time": time,
            "kind": kind.astype("u1"),
            "peer": peer,
            "communicator": comm.astype("u4"),
            "tag": tag,
            "bytes": size,
            "request": request.view("u8"),
        }

    def collectives(self, place: LocationPlace, columns: Ints) -> dict[str, AnyArray]:
        begin, end, operation, comm, root, sent, received = columns
        root_index, is_self = self.communicators.peers(comm, root, place.index)
        root_index[root == ROOT_SELF] = place.index
        for code in np.unique(operation).tolist():
            if code not in self.operations:
                named = code < len(OPERATIONS)
                self.operations[code] = self.sink.text(OPERATIONS[code] if named else f"operation {code}")
        return {
            "begin": begin,
            "end": end,
            "operation": np.array([self.operations[code] for code in operation.tolist()], "u4"),
            # MPI_COMM_SELF is one number for a different communicator in every process.
            "communicator": np.where(is_self, UNDEFINED, comm).astype("u4"),
            "root": root_index,
            "sent": sent,
            "received": received,
        }

    def metrics(self, _place: LocationPlace, columns: Ints) -> dict[str, AnyArray]:
        time, key, value = columns
        numbers, which = np.unique(key, return_inverse=True)
        for number in numbers.tolist():
            if number not in self.metric_names:
                name, about = self.definitions.metric(number >> 8, number & 0xFF)
                self.metric_names[number] = self.sink.metric(name, about)
        names = np.array([self.metric_names[number] for number in numbers.tolist()], "u4")
        return {"time": time, "metric": names[which], "value": np.ascontiguousarray(value).view("f8")}
