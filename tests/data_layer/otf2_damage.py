"""Damage archives in many ways and import them: what must hold whatever happens to their bytes.

``python -m tests.data_layer.otf2_damage [ROUNDS [SEED]]`` damages every sample so many times for each kind of
file, and prints what came of it. Faults are ``AssertionError`` with the case that shows them.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from desktop.data.events import TABLES
from desktop.data.importers.otf2 import IMPORTER
from desktop.errors import TraceFormatError
from desktop.progress import Progress
from tests.data_layer.archives import DAMAGED, NAMES, unpack
from tests.data_layer.memory import Memory

WAYS = ("cut", "flip", "flips", "garbage", "zeros", "swap", "missing")
SECONDS = 20.0  # nothing may take longer, however slow the machine


def read(archive: Path) -> Memory:
    memory = Memory()
    IMPORTER.read(archive, memory, Progress())
    return memory


def damage(data: bytes, how: str, at: int, chance: random.Random) -> bytes:
    changed = bytearray(data)
    length = min(chance.randrange(1, 64), len(data) - at)
    match how:
        case "cut":
            del changed[at:]
        case "flip":
            changed[at] ^= 1 << chance.randrange(8)
        case "flips":
            for _ in range(8):
                changed[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        case "garbage":
            changed[at : at + length] = chance.randbytes(length)
        case "zeros":
            changed[at : at + length] = bytes(length)
        case "swap":  # two pieces of one length
            other = chance.randrange(len(data) - length + 1)
            piece = changed[at : at + length]
            changed[at : at + length] = data[other : other + length]
            changed[other : other + length] = piece
    return bytes(changed)


def cases(archive: Path, rounds: int, chance: random.Random) -> Iterator[tuple[Path, str, int]]:
    """File, kind of damage and byte: every way for the anchor, the global and some local files."""
    groups = [
        sorted(archive.glob("*.otf2")),
        sorted(archive.glob("*.def")),
        sorted(archive.glob("*/*.def")),
        sorted(archive.glob("*/*.evt")),
    ]
    for files in groups:
        for i in range(rounds if files else 0):
            file = chance.choice(files)
            yield file, WAYS[i % len(WAYS)], chance.randrange(max(file.stat().st_size, 1))


def place_of(memory: Memory, file: Path) -> int | None:
    """The byte of the damage that is reported for an event file."""
    for name in ("damaged events", "event file"):
        found = memory.report.findings.get(name)
        if found and f"{file.stem}.evt, byte " in found.where:
            return int(found.where.split("byte ")[1].split(":")[0])
    return None


def rows_of(memory: Memory, table: str, location: int) -> dict[str, np.ndarray]:
    """The rows of a table, with names for the numbers that depend on what else is in the trace."""
    rows = memory.table(table, location)
    for column, names in (
        ("region", [region.name for region in memory.regions]),
        ("operation", memory.texts),
        ("metric", memory.texts),
    ):
        if column in rows:
            rows[column] = np.array([*names, ""], object)[rows[column]]
    return rows


def ahead(short: Memory, long: Memory, location: int, *, settled: bool) -> bool:
    """Whether the rows of `short` are the first ones of `long`; `settled`: but for those of its last time."""
    pairs = [(rows_of(short, t, location), rows_of(long, t, location)) for t in TABLES if t != "curve"]
    times = [rows.get("end", rows.get("time")) for rows, _ in pairs]
    last = max((int(time.max()) for time in times if time.size), default=0)
    for (rows, more), time_of in zip(pairs, times, strict=True):
        n = int((time_of < last).sum()) if settled else time_of.size
        for name, column in rows.items():
            if more[name].size < n or not np.array_equal(
                column[:n], more[name][:n], equal_nan=name == "value"
            ):
                return False
    return True


def check(archive: Path, sound: Memory, file: Path, how: str, at: int, chance: random.Random) -> str:
    """Damage one file, import, and hold the outcome against what must be; how it ended."""
    data = file.read_bytes()
    start = time.monotonic()
    try:
        if how == "missing":
            file.unlink()
        else:
            file.write_bytes(damage(data, how, at, chance))
        try:
            memory = read(archive)
        except TraceFormatError as error:
            assert str(error).startswith(str(archive)), error
            assert "\n" not in str(error)
            return "refused"
        for i, location in enumerate(memory.locations):
            assert location.first is None or 0 <= location.first <= location.last
            times = memory.table("events", i)["time"]
            assert (np.diff(times) >= 0).all()
        if file.suffix == ".evt":
            check_events(archive, sound, memory, file, how, at, data)
        return "with losses" if memory.report.lossy else "whole"
    finally:
        assert time.monotonic() - start < SECONDS
        file.write_bytes(data)


def check_events(
    archive: Path, sound: Memory, memory: Memory, file: Path, how: str, at: int, data: bytes
) -> None:
    here = next(i for i, location in enumerate(memory.locations) if location.id == int(file.stem))
    for i in range(len(memory.locations)):  # no other location is touched
        assert i == here or (
            ahead(sound, memory, i, settled=False) and ahead(memory, sound, i, settled=False)
        )
    fewer = memory.locations[here].records < sound.locations[here].records
    assert memory.report.lossy or not fewer, "lost without a word"
    if how in ("missing", "flips", "swap"):
        return
    # Whatever ends ahead of the damage is kept, and the place that is named is not ahead of it. A time that
    # has become earlier may lay the blame on the one before it, whose records are then dropped.
    file.write_bytes(data[:at])
    try:
        cut = read(archive)
    except TraceFormatError:
        return
    assert ahead(cut, memory, here, settled=how != "cut")
    assert ahead(cut, sound, here, settled=False)
    begins, named = place_of(cut, file), place_of(memory, file)
    assert named is None or begins is None or named >= begins


def fuzz(archive: Path, rounds: int, seed: int) -> Counter[tuple[str, str, str]]:
    """Damage an archive `rounds` times for each kind of file: (kind, how, outcome) -> how often."""
    chance, sound = random.Random(seed), read(archive)
    outcomes: Counter[tuple[str, str, str]] = Counter()
    for file, how, at in list(cases(archive, rounds, chance)):
        kind = "local .def" if file.parent != archive and file.suffix == ".def" else file.suffix
        try:
            outcomes[kind, how, check(archive, sound, file, how, at, chance)] += 1
        except Exception as error:
            raise AssertionError(f"{file}, {how} at {at}: {error!r}") from error
    return outcomes


def main(rounds: int, seed: int) -> None:
    outcomes: Counter[tuple[str, str, str]] = Counter()
    names = [*NAMES, *(name for name in DAMAGED if "anchor" not in name)]
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            outcomes += fuzz(unpack(name, Path(folder)), rounds, seed)
    print(f"{outcomes.total()} damaged archives from {len(names)} samples\n")
    results = ("refused", "with losses", "whole")
    print(f"| file | {' | '.join(results)} |\n| --- | ---: | ---: | ---: |")
    for kind in sorted({kind for kind, _, _ in outcomes}):
        counts = [
            sum(n for (k, _, r), n in outcomes.items() if (k, r) == (kind, result)) for result in results
        ]
        print(f"| {kind} | {' | '.join(map(str, counts))} |")


if __name__ == "__main__":
    main(*map(int, [*sys.argv[1:], *("70", "1")[len(sys.argv) - 1 :]]))
