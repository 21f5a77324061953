"""Damage an archive at random, many times, and import it: run as a program, so that a crash is seen.

``python -m tests.data_layer.otf2_damage ARCHIVE ROUNDS SEED`` prints one line at the end; whatever else
appears on the terminal, and any status but 0, is a fault.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

from desktop.data.importers.otf2 import IMPORTER
from desktop.errors import TraceFormatError
from desktop.progress import Progress
from tests.data_layer.memory import Memory


def damage(file: Path, chance: random.Random) -> str:
    data = bytearray(file.read_bytes())
    how = chance.choice(["cut", "flip", "garbage", "zeros"])
    at = chance.randrange(len(data))
    if how == "cut":
        del data[at:]
    elif how == "flip":
        for _ in range(chance.choice([1, 1, 4])):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    else:
        length = min(chance.randrange(1, 64), len(data) - at)
        data[at : at + length] = chance.randbytes(length) if how == "garbage" else bytes(length)
    file.write_bytes(bytes(data))
    return how


def events(archive: Path) -> tuple[Memory, list[np.ndarray]]:
    memory = Memory()
    IMPORTER.read(archive, memory, Progress())
    rows = [memory.table("events", i) for i in range(len(memory.locations))]
    return memory, [np.stack([r["time"], r["kind"], r["region"]]) for r in rows]


def main(archive: Path, rounds: int, seed: int) -> None:
    chance = random.Random(seed)
    sound, whole = events(archive)
    refused = lossy = 0
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            copy = Path(folder) / archive.name
            shutil.copytree(archive, copy)
            file = chance.choice([f for f in sorted(copy.rglob("*")) if f.is_file()])
            how = damage(file, chance)
            try:
                memory, kept = events(copy)
            except TraceFormatError as error:
                assert str(error).startswith(str(copy)), error
                refused += 1
            else:
                lossy += memory.report.lossy
                for location, rows in zip(memory.locations, kept, strict=True):
                    assert (np.diff(rows[0]) >= 0).all()
                    assert location.first is None or location.first >= 0
                if file.suffix == ".evt":
                    here = [location.id for location in memory.locations].index(int(file.stem))
                    for i, (rows, full) in enumerate(zip(kept, whole, strict=True)):
                        if how == "cut" or i != here:  # nothing is lost or invented ahead of a cut
                            assert np.array_equal(rows, full[:, : rows.shape[1]]), (file, how)
                    # A record that has become one of another kind is still a record.
                    fewer = memory.locations[here].records < sound.locations[here].records
                    assert memory.report.lossy or not fewer, (file, how, "lost without a word")
            shutil.rmtree(copy)
    print(f"{rounds} rounds, {refused} refused, {lossy} with losses")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
