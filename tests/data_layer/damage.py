"""Damage traces of every format in many ways and open them: no curve may be wrong without a word.

``python -m tests.data_layer.damage FORMAT [COUNT [SEED [LOG]]]`` opens so many damaged copies of the samples
of a format and prints what came of them, with the cases that are wrong. FORMAT may be ``all``. It all happens
in one process (about 13 damages a second of the processor, with TMPDIR in memory). One that keeps it for
longer than 60 s ends it, with the place where it was. Each result is a line of LOG, with its time and the
most memory so far; a campaign with the LOG of one that was stopped goes on behind its last line.

The oracle is the sound trace. A damaged one may be opened without a loss (exit code 0) only if every
location whose own records were not touched is as it was (its times in each activity, its enters and leaves)
and the mean utilization is within 1 %. Names of regions are not compared: to a reader of the curve a
function called ``lain`` is as good as ``main``.
"""

from __future__ import annotations

import faulthandler
import lzma
import random
import re
import resource
import signal
import string
import sys
import tarfile
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import islice, zip_longest
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from desktop.data.importers._otf2.decoder import CHUNK_HEADER
from desktop.data.importers._otf2.engine import Damage
from desktop.data.importers._otf2.files import chunk_records
from desktop.data.opening import open_trace
from desktop.data.utilization import build
from desktop.errors import DesktopError

DATA = Path(__file__).parents[1] / "data"
SAMPLES = Path(__file__).parents[2] / "resources" / "samples"
FORMATS = ("otf2", "otf1", "paraver", "picl")
TOLERANCE = 0.01  # of the mean utilization
SECONDS = 60.0  # of the processor; nothing may take longer

#: Files of a trace by their path within it.
Files = dict[str, bytes]


def _packed(name: str) -> Files:
    with tarfile.open(DATA / name) as tar:
        return {
            member.name.split("/", 1)[1]: stream.read()
            for member in tar.getmembers()
            if member.isfile() and (stream := tar.extractfile(member)) is not None
        }


def _folder(folder: Path) -> Files:
    skipped = ("NOTICE", "ORIGIN")
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and not any(word in file.name for word in skipped)
    }


def _one(file: Path, *beside: str) -> Files:
    return {name: (file.parent / name).read_bytes() for name in (file.name, *beside)}


def _unpacked(data: bytes) -> bytes:
    return zlib.decompressobj().decompress(data)  # the format ends its streams without a checksum


def _plain(files: Files) -> Files:
    """A trace whose packed files are unpacked."""
    return {
        name.removesuffix(".z"): _unpacked(data) if name.endswith(".z") else data
        for name, data in files.items()
    }


def _threads() -> bytes:
    """A Paraver trace in microseconds, without labels: two tasks of two threads compute, wait for each other,
    exchange a message, and compute on."""
    rows: list[tuple[int, str]] = []

    def during(task: int, thread: int, begin: int, end: int, state: int) -> None:
        place = f"{2 * task + thread - 2}:1:{task}:{thread}"
        rows.append((begin, f"1:{place}:{begin}:{end}:{state}"))
        if state in (4, 5):
            call = "50000001:1" if state == 4 else "50000002:8"
            rows.append((begin, f"2:{place}:{begin}:{call}"))
            rows.append((end, f"2:{place}:{end}:{call[:8]}:0"))

    now = 0
    for turn in range(60):
        met = now + 500
        for task in (1, 2):
            busy = now + 100 + (turn * 37 + task * 131) % 300
            during(task, 1, now, busy, 1)
            during(task, 1, busy, met, 5)
            during(task, 2, now, met - (turn * 53 + task * 71) % 200, 1)
            during(task, 2, met - (turn * 53 + task * 71) % 200, met, 9)
        after = met + 40 + turn % 7
        for task in (1, 2):
            there = 3 - task
            during(task, 1, met, after, 4)
            during(task, 2, met, after, 9)
            sender, receiver = (f"{2 * k - 1}:1:{k}:1" for k in (task, there))
            rows.append((met, f"3:{sender}:{met}:{met + 1}:{receiver}:{after - 2}:{after}:1024:{turn}"))
        now = after
    lines = [f"#Paraver (01/01/2026 at 10:00):{now}:2(2,2):1:2(2:1,2:2),1", "c:1:1:2:1:2"]
    lines += [line for _, line in sorted(rows, key=lambda row: row[0])]
    return "\n".join([*lines, ""]).encode()


#: The samples of each format, whole ones that open without a loss; they are read when they are asked for.
SOURCES: dict[str, dict[str, Callable[[], Files]]] = {
    "otf2": {
        name: lambda name=name: _packed(f"otf2/{name}.tar.gz")
        for name in (
            "ezt_farm_8_dilated",
            "ezt_openmp_4",
            "ezt_psort_8_dilated",
            "ezt_pthread_5",
            "mpt_farm_6_dilated",
            "mpt_jacobi2d_9_dilated",
            "public_scorep_ember_4",
            "public_scorep_pingpong_2",
            "public_scorep_pingpong_papi_2",
            "public_scorep_stencil4d_32",
        )
    }
    | {"wave1d_8_eztrace": lambda: _folder(SAMPLES / "wave1d_8_eztrace")},
    "otf1": {
        "farm_6": lambda: _packed("otf1/farm_6_short_zlib_3streams.tar.xz"),
        "farm_6 unpacked": lambda: _plain(_packed("otf1/farm_6_short_zlib_3streams.tar.xz")),
        "jacobi2d_9": lambda: _packed("otf1/jacobi2d_9_short_zlib9.tar.xz"),
        "psort_8": lambda: _packed("otf1/psort_8_short_ascii_1stream_collbeginend.tar.xz"),
    },
    "paraver": {
        "farm_6": lambda: _one(DATA / "paraver/farm_6.prv", "farm_6.pcf", "farm_6.row"),
        "cholesky_ring_16": lambda: {
            "cholesky_ring_16.prv": lzma.decompress((DATA / "paraver/cholesky_ring_16.prv.xz").read_bytes()),
            **_one(DATA / "paraver/cholesky_ring_16.pcf", "cholesky_ring_16.row"),
        },
        "threads_2x2": lambda: {"threads.prv": _threads()},
    },
    "picl": {
        name: lambda name=name: _one(DATA / f"picl/{name}.trf")
        for name in (
            "v1-farm4-flush",
            "v1-fft16-upshot",
            "v1-heat4-verbose",
            "v1-lu8-compact",
            "v2-ncptl-butterfly8",
            "v2-ncptl-pipeline6",
            "v2-ncptl-reduce6-deadlock",
        )
    },
}


@cache
def sample(kind: str, name: str) -> Files:
    return SOURCES[kind][name]()


# --- ways to damage ---

BINARY_WAYS = (
    "flip", "flips", "run", "zeros", "cut", "hole", "twice", "swap", "missing", "empty", "page", "bytes",
    "put in", "exchanged", "copied", "of another file", "two",
)  # fmt: skip
TEXT_WAYS = (
    *BINARY_WAYS, "cut at a line", "field", "digit", "lines gone", "lines twice", "lines swapped", "letter",
    "number", "sign", "fields swapped", "line copied", "lines shuffled",
)  # fmt: skip
LONGEST = 4096  # bytes of a piece that is taken away or put elsewhere


@dataclass(frozen=True)
class Case:
    """A damage of one file of a sample."""

    sample: str
    file: str
    way: str
    seed: int

    def __str__(self) -> str:
        return f"{self.sample}, {self.file}: {self.way} ({self.seed})"

    def apply(self, files: Files) -> Files:
        chance = random.Random(self.seed)
        changed = dict(files)
        data = files[self.file]
        if self.way == "missing":
            del changed[self.file]
        elif self.way == "of another file" and data:
            at, length = _piece(data, chance)
            other = files[chance.choice(list(files))]
            start = chance.randrange(len(other)) if other else 0
            piece = other[start : start + length]
            changed[self.file] = data[:at] + piece + data[at + len(piece) :]
        else:
            changed[self.file] = damage(data, self.way, chance)
        return changed


def _piece(data: bytes, chance: random.Random) -> tuple[int, int]:
    """Begin and length of a piece of a file; short ones are as frequent as long ones."""
    at = chance.randrange(len(data))
    return at, min(int(2 ** chance.uniform(0, 12)), LONGEST, len(data) - at)


def damage(data: bytes, way: str, chance: random.Random) -> bytes:
    if not data:
        return data
    at, length = _piece(data, chance)
    changed = bytearray(data)
    match way:
        case "flip":
            changed[at] ^= 1 << chance.randrange(8)
        case "flips":
            for _ in range(8):
                changed[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        case "run":
            changed[at : at + length] = chance.randbytes(length)
        case "zeros":
            changed[at : at + length] = bytes(length)
        case "cut":
            del changed[at:]
        case "hole":
            del changed[at : at + length]
        case "twice":
            changed[at:at] = data[at : at + length]
        case "swap":
            other = chance.randrange(len(data) - length + 1)
            changed[at : at + length] = data[other : other + length]
            changed[other : other + length] = data[at : at + length]
        case "page":  # of a disk
            size = 1 << chance.randrange(6, 13)
            begin = at // size * size
            end = min(begin + size, len(data))
            changed[begin:end] = chance.choice((b"\0", b"\xff")) * (end - begin)
        case "bytes":
            for _ in range(chance.randrange(1, 6)):
                changed[chance.randrange(len(data))] = chance.randrange(256)
        case "put in":
            changed[at:at] = chance.randbytes(chance.randrange(1, 64))
        case "exchanged":  # a piece and that behind it
            end = at + length + min(int(2 ** chance.uniform(0, 11)), len(data) - at - length)
            changed[at:end] = data[at + length : end] + data[at : at + length]
        case "copied":
            other = chance.randrange(len(data) - length + 1)
            changed[at : at + length] = data[other : other + length]
        case "two":
            ways = [way for way in BINARY_WAYS if way not in ("missing", "of another file", "two")]
            return damage(damage(data, chance.choice(ways), chance), chance.choice(ways), chance)
        case "letter":
            if found := list(re.finditer(rb"[A-Za-z_]", data)):
                changed[chance.choice(found).start()] = ord(chance.choice(string.ascii_letters + "_"))
        case "empty":
            return b""
        case "definition gone":
            return without_definition(data, chance)
        case _:
            return damaged_lines(data, way, chance)
    return bytes(changed)


def damaged_lines(data: bytes, way: str, chance: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    at = chance.randrange(len(lines))
    n = min(int(2 ** chance.uniform(0, 8)), len(lines) - at)
    match way:
        case "cut at a line":
            del lines[at:]
        case "lines gone":
            del lines[at : at + n]
        case "lines twice":
            lines[at:at] = lines[at : at + n]
        case "lines swapped":
            other = chance.randrange(len(lines) - n + 1)
            lines[at : at + n], lines[other : other + n] = lines[other : other + n], lines[at : at + n]
        case "field":  # a number becomes another one of the file
            found = list(re.finditer(rb"\d+", lines[at]))
            others = re.findall(rb"\d+", chance.choice(lines))
            if found and others:
                a, b = chance.choice(found).span()
                lines[at] = lines[at][:a] + chance.choice(others) + lines[at][b:]
        case "digit":
            found = list(re.finditer(rb"\d", lines[at]))
            if found:
                a = chance.choice(found).start()
                lines[at] = lines[at][:a] + str(chance.randrange(10)).encode() + lines[at][a + 1 :]
        case "number":  # has a digit more or less
            if found := list(re.finditer(rb"\d", lines[at])):
                a = chance.choice(found).start()
                more = chance.random() < 0.5
                lines[at] = (
                    lines[at][:a] + str(chance.randrange(10)).encode() * more + lines[at][a + (not more) :]
                )
        case "sign":
            if found := list(re.finditer(rb"\d+", lines[at])):
                a = chance.choice(found).start()
                lines[at] = lines[at][:a] + b"-" + lines[at][a:]
        case "fields swapped":
            between = b":" if b":" in lines[at] else b" "
            fields = lines[at].rstrip(b"\r\n").split(between)
            a, b = chance.randrange(len(fields)), chance.randrange(len(fields))
            fields[a], fields[b] = fields[b], fields[a]
            lines[at] = between.join(fields) + b"\n"
        case "line copied":  # over another one
            lines[at] = chance.choice(lines)
        case "lines shuffled":
            few = lines[at : at + 8]
            chance.shuffle(few)
            lines[at : at + 8] = few
        case _:
            raise ValueError(way)
    return b"".join(lines)


def without_definition(data: bytes, chance: random.Random) -> bytes:
    """A file of definitions of OTF2 without one of its records; what follows in its chunk moves up."""
    begins: list[int] = []
    try:
        for _, fields in chunk_records(data, 0, True):
            begins.append(fields.at)  # behind its head of two bytes, long records apart
    except Damage:
        pass
    if not begins:
        return data
    at = chance.choice(begins) - 2
    end = at + 2 + data[at + 1]
    return data[:at] + data[end:] + bytes(end - at) if data[at + 1] != 255 and at >= CHUNK_HEADER else data


def kind_of_file(kind: str, file: str) -> str:
    """Files of one kind are damaged as often as those of another, however many there are."""
    if kind == "otf2" and file.endswith(".def"):
        return "local .def" if "/" in file else "global .def"
    return "." + file.removesuffix(".z").rsplit(".", 1)[-1]


def cases(kind: str, count: int, seed: int) -> Iterator[Case]:
    chance = random.Random(f"{kind} {seed}")
    for _ in range(count):
        name = chance.choice(list(SOURCES[kind]))
        groups: dict[str, list[str]] = {}
        for file in sample(kind, name):
            groups.setdefault(kind_of_file(kind, file), []).append(file)
        # Events are most of a trace; its other files are small.
        weights = [3 if group in (".evt", ".events", ".prv", ".trf") else 1 for group in groups]
        file = chance.choice(chance.choices(list(groups.values()), weights)[0])
        binary = kind == "otf2" or file.endswith(".z")
        ways: tuple[str, ...] = BINARY_WAYS if binary else TEXT_WAYS
        if kind == "otf2" and file.endswith(".def"):
            ways = (*BINARY_WAYS, "definition gone", "definition gone", "definition gone")
        yield Case(name, file, chance.choice(ways), chance.randrange(1 << 32))


# --- which locations were touched ---


def touched(kind: str, case: Case, sound: Files, bad: Files) -> set[str]:
    """The locations whose own records have changed, as `label` calls them."""
    before, after = sound[case.file], bad.get(case.file, b"")
    if kind == "otf2":
        return {case.file.rsplit("/", 1)[-1].rsplit(".", 1)[0]} if "/" in case.file else set()
    owners = {"otf1": _owned_otf1, "paraver": _owned_paraver, "picl": _owned_picl}[kind]
    if (kind == "otf1" and ".events" not in case.file) or (kind == "paraver" and ".prv" not in case.file):
        return set()
    if case.file.endswith(".z"):
        return set(owners(_unpacked(before)))  # of a packed file little survives
    old, new = owners(before), owners(after)
    return {owner for owner in old.keys() | new.keys() if old.get(owner) != new.get(owner)}


def _owned_otf1(data: bytes) -> dict[str, list[bytes]]:
    found: dict[str, list[bytes]] = {}
    now, process = b"", ""
    for line in data.split(b"\n"):
        if re.fullmatch(rb"[0-9a-f]+", line):
            now = line
        elif line.startswith(b"*"):
            process = line[1:].decode("latin-1")
        elif line:
            found.setdefault(process, []).append(now + b" " + line)
    return {
        str(int(owner, 16)) if re.fullmatch("[0-9a-f]+", owner) else owner: v for owner, v in found.items()
    }


def _owned_paraver(data: bytes) -> dict[str, list[bytes]]:
    found: dict[str, list[bytes]] = {}
    for line in data.split(b"\n"):
        fields = line.split(b":")
        places = {b"1": (2,), b"2": (2,), b"3": (2, 8)}.get(fields[0], ())
        for at in places:
            owner = b".".join(fields[at : at + 3]).decode("latin-1")
            found.setdefault(owner, []).append(line)
    return found


def _owned_picl(data: bytes) -> dict[str, list[bytes]]:
    found: dict[str, list[bytes]] = {}
    for line in re.split(rb"[\r\n]+", data):
        fields = line.split()
        if line[:1].isalpha() and len(fields) > 5:
            owner = fields[5]
        elif (line.startswith(b"-") and len(fields) > 3) or len(fields) > 3:
            owner = fields[3]
        else:
            continue
        found.setdefault(owner.decode("latin-1"), []).append(line)
    return found


# --- what comes of it ---


@dataclass
class Seen:
    """What opening a trace gave: `mean` and, by `label`, seconds in each activity and enters and leaves."""

    lossy: bool
    mean: float = 0.0
    locations: dict[str, tuple[NDArray[np.float64], ...]] = field(default_factory=dict)
    findings: tuple[str, ...] = ()


def look(kind: str, path: Path, store_at: Path) -> Seen:
    """Open a trace as the command line does.

    Raises
    ------
    DesktopError : it was refused.
    """
    store_at.unlink(missing_ok=True)  # the last one would be read and compared first
    with open_trace(path, output=store_at) as store:
        use = build(store)
        seen = Seen(
            store.report.lossy,
            use.curve().mean,
            findings=tuple(f"{found.severity} {found.name} ({found.count})" for found in store.report),
        )
        for index, location in enumerate(store.locations):
            blocks = list(store.blocks("events", index, "time", "kind"))
            time, of = (np.concatenate([np.empty(0), *(block[c] for block in blocks)]) for c in range(2))
            seen.locations[label(kind, location.id, location.rank, location.thread)] = (
                use.seconds[index],
                time / store.ticks_per_second,  # a damage may change how long a tick is
                of,
            )
        return seen


def label(kind: str, identity: int, rank: int, thread: int) -> str:
    if kind == "paraver":
        return f"1.{rank + 1}.{thread + 1}"
    return str(identity)


def write(folder: Path, files: Files) -> None:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def master(kind: str, folder: Path, files: Files) -> Path:
    ending = {"otf2": ".otf2", "otf1": ".otf", "paraver": ".prv", "picl": ".trf"}[kind]
    return folder / next(name for name in files if name.endswith(ending))


@dataclass
class Outcome:
    case: Case
    result: str  # one of `RESULTS`
    why: str = ""


RESULTS = ("exact", "near", "loss", "refused", "wrong", "failed")


class Trial:
    """Opens damaged copies of the samples of a format, in a folder."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.folder = kind, folder
        self._sound: dict[str, Seen] = {}

    def sound(self, name: str) -> Seen:
        if name not in self._sound:
            files = sample(self.kind, name)
            folder = self.folder / "sound" / name
            write(folder, files)
            self._sound[name] = look(self.kind, master(self.kind, folder, files), self.folder / "store.h5")
            assert not self._sound[name].lossy, (name, self._sound[name].findings)
        return self._sound[name]

    def run(self, case: Case) -> Outcome:
        sound, files = self.sound(case.sample), sample(self.kind, case.sample)
        bad = case.apply(files)
        folder = self.folder / "bad" / case.sample
        if not folder.exists():
            write(folder, files)
        place = folder / case.file
        began = time.process_time()
        try:
            if case.way == "missing":
                place.unlink()
            else:
                place.write_bytes(bad[case.file])
            try:
                seen = look(self.kind, master(self.kind, folder, files), self.folder / "store.h5")
            except DesktopError as error:
                assert "\n" not in str(error)
                return Outcome(case, "refused", str(error))
            took = time.process_time() - began
            assert took < SECONDS, f"{case} took {took:.0f} s"
            if seen.lossy:
                return Outcome(case, "loss", "; ".join(seen.findings))
            return self.judge(case, sound, seen, touched(self.kind, case, files, bad))
        except Exception as error:
            raise AssertionError(f"{case}: {error!r}") from error
        finally:
            place.write_bytes(files[case.file])

    def judge(self, case: Case, sound: Seen, seen: Seen, hit: set[str]) -> Outcome:
        findings = "; ".join(seen.findings)
        same = True
        for name, known in sound.locations.items():
            found = seen.locations.get(name)
            if found is None:
                same = False
                if name not in hit:
                    return Outcome(case, "wrong", f"{name} is gone | {findings}")
                continue
            equal = all(
                a.shape == b.shape and np.allclose(a, b, rtol=1e-9, atol=1e-12)
                for a, b in zip(found, known, strict=True)
            )
            same &= equal
            if not equal and name not in hit:
                return Outcome(case, "wrong", f"{name} differs | {findings}")
        if abs(seen.mean - sound.mean) > TOLERANCE * sound.mean:
            return Outcome(case, "wrong", f"mean {seen.mean:.4g} for {sound.mean:.4g} | {findings}")
        return Outcome(case, "exact" if same and seen.mean == sound.mean else "near", findings)


def campaign(kind: str, count: int, seed: int, trial: Trial) -> Iterator[Outcome]:
    for case in cases(kind, count, seed):
        yield trial.run(case)


def main(kinds: tuple[str, ...], count: int, seed: int, log: Path | None = None) -> None:
    faulthandler.register(signal.SIGPROF, chain=True)  # says where it was; the signal then ends the process
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in kinds}
    wrong: list[str] = []
    if log is not None and log.exists():
        for line in log.read_text().splitlines():
            kind, result, *_, about = line.split("\t")
            counts[kind][result] += 1
            if result in ("wrong", "failed"):
                wrong.append(f"{kind}: {about}")
    with tempfile.TemporaryDirectory() as folder:
        trials = {kind: Trial(kind, Path(folder) / kind) for kind in kinds}
        left = {kind: islice(cases(kind, count, seed), counts[kind].total(), None) for kind in kinds}
        for turn in zip_longest(*left.values()):  # one format after the other, so that all are as far
            for (kind, trial), case in zip(trials.items(), turn, strict=True):
                if case is None:
                    continue
                signal.setitimer(signal.ITIMER_PROF, SECONDS)
                began = time.process_time()
                try:
                    outcome = trial.run(case)
                except AssertionError as error:
                    outcome = Outcome(case, "failed", str(error))
                counts[kind][outcome.result] += 1
                told = f"{outcome.case}: {outcome.why}"
                if outcome.result in ("wrong", "failed"):
                    wrong.append(f"{kind}: {told}")
                if log is not None:
                    took = time.process_time() - began
                    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
                    with log.open("a") as lines:
                        lines.write(f"{kind}\t{outcome.result}\t{took:.2f} s\t{most} MB\t{told!r}\n")
    print(f"| format | damages | {' | '.join(RESULTS)} |\n| --- | ---: |" + " ---: |" * len(RESULTS))
    for kind, of in counts.items():
        print(f"| {kind} | {of.total()} | {' | '.join(str(of[result]) for result in RESULTS)} |")
    print(*wrong, sep="\n")


if __name__ == "__main__":
    arguments = sys.argv[1:]
    chosen = FORMATS if not arguments or arguments[0] == "all" else (arguments[0],)
    number, first = map(int, [*arguments[1:3], *("300", "1")[max(len(arguments[:3]) - 1, 0) :]])
    main(chosen, number, first, *map(Path, arguments[3:]))
