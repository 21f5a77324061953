"""Files of records, made by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from desktop.data.importers.recorded import HEAD, RECORD


def written(
    folder: Path,
    records: list[tuple[int, ...]],
    /,
    names_: bytes = b"MPI_Init\nMPI_Send\nMPI_Recv\n",
    **head: object,
) -> Path:
    """A file of these calls (MPI_Init, MPI_Send, MPI_Recv); one tick is 1 ns. Those that are not `stored` are
    in the tail, which has room for two."""
    folder.mkdir(exist_ok=True)
    first = np.zeros(1, HEAD)
    rank, thread = (int(str(head.get(name, 0))) for name in ("rank", "thread"))
    values = {
        "magic": b"PHASEREC", "version": 1, "header": 4096, "size": 2, "tick1": 10**6, "monotonic1": 10**6,
        "tail": 64, "stored": len(records), "records": len(records), "state": 1, "names": len(names_), **head,
    }  # fmt: skip
    for name, value in values.items():
        first[name] = value
    body = np.array(records, RECORD) if records else np.empty(0, RECORD)
    stored = min(int(first["stored"][0]), len(records))
    tail = body[stored:].tobytes().ljust(64, b"\0")[:64]
    raw = (first.tobytes() + names_).ljust(4096, b"\0") + tail + body[:stored].tobytes()
    (folder / f"{rank}.{thread}.pwr").write_bytes(raw)
    return folder
