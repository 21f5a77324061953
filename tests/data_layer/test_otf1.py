"""The OTF importer against the reference tool's account of its samples, a slow reading of the same grammar,
and damage."""

from __future__ import annotations

import json
import random
import re
import shutil
import tarfile
import threading
import time
import tracemalloc
import zlib
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as some

from desktop.data import importers, spill
from desktop.data.events import Activity, MetricAbout
from desktop.data.importers import otf1
from desktop.data.importers._otf1 import rows, stream, text
from desktop.data.info import info
from desktop.data.naming import location_name
from desktop.data.opening import open_trace
from desktop.data.utilization import Rules, build
from desktop.errors import TraceFormatError
from desktop.progress import Cancelled, Progress
from tests.data_layer import otf1_oracle as oracle
from tests.data_layer.memory import Memory

DATA = Path(__file__).parents[1] / "data" / "otf1"
FACTS = json.loads((DATA / "facts.json").read_text())
SAMPLES = sorted(FACTS)
CHOLESKY, FARM, JACOBI, PSORT, WAVE = SAMPLES
DAMAGED = sorted(file.name.removesuffix(".tar.xz") for file in DATA.glob("damaged_*"))
COLUMNS = {
    "events": ("time", "kind", "region"),
    "messages": ("time", "kind", "peer", "communicator", "tag", "bytes"),
    "collectives": ("begin", "end", "operation", "communicator", "root", "sent", "received"),
    "metrics": ("time", "metric", "value"),
    "marks": ("time", "text"),
}


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("otf1")
    for packed in DATA.glob("*.tar.xz"):
        with tarfile.open(packed) as tar:
            # Debian 12's Python 3.11.2 has no filters yet; what is unpacked here is our own.
            tar.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return folder


def read(path: Path, only: set[int] | None = None) -> Memory:
    memory = Memory(only)
    otf1.IMPORTER.read(path, memory, Progress())
    return memory


def rows_of(memory: Memory, process: int) -> dict[str, list[tuple]]:
    """Rows of a process, with names in place of indices and process numbers in place of locations."""
    at = next(i for i, location in enumerate(memory.locations) if location.id == process)

    def named(column: str, values: np.ndarray) -> list:
        if column == "region":
            return [memory.regions[i].name for i in values]
        if column in ("operation", "metric", "text"):
            return [memory.texts[i] for i in values]
        if column in ("peer", "root"):
            return [memory.locations[i].id if i >= 0 else None for i in values]
        return values.tolist()

    found = {}
    for table, columns in COLUMNS.items():
        whole = memory.table(table, at)
        found[table] = list(zip(*(named(column, whole[column]) for column in columns), strict=True))
    return found


def everything(memory: Memory) -> dict[int, tuple]:
    return {
        at.id: (at.records, at.first, at.last, at.damage, rows_of(memory, at.id)) for at in memory.locations
    }


class Names:
    """The definitions of a trace read by regular expressions: what the numbers of the oracle are called."""

    def __init__(self, master: Path) -> None:
        files = [*master.parent.glob("*.0.def"), *master.parent.glob("*.0.def.z")]
        lines = oracle.content(files[0]).decode() if files else ""
        self.functions = self.find(r"D(?:F|EFFUNCTION )([0-9a-f]+).*?\"(.*)\"", lines)
        self.operations = self.find(r"D(?:CO|EFCOLLOP )([0-9a-f]+).*?\"(.*)\"", lines)
        self.types = self.find(r"D(?:CO|EFCOLLOP )([0-9a-f]+).*\".*\" ?(?:Y|TYPE )([0-9a-f]+)", lines)
        self.counters = self.find(r"D(?:CNT|EFCOUNTER )([0-9a-f]+).*?\"(.*?)\"", lines)
        resolution = re.findall(r"^D(?:TR|EFTIMERRESOLUTION )([0-9a-f]+)", lines, re.M)
        self.resolution = int(resolution[0], 16) if resolution else 0
        self.streams = {
            int(number, 16): [int(process, 16) for process in processes.split(",")]
            for number, processes in re.findall(
                r"^([0-9a-f]+):([0-9a-f,]+)$", master.read_text("latin-1"), re.M
            )
        }
        self.processes = {process for listed in self.streams.values() for process in listed}

    @staticmethod
    def find(pattern: str, lines: str) -> dict[int, str]:
        return {int(number, 16): name for number, name in re.findall("^" + pattern, lines, re.M)}

    def rows(self, found: oracle.Process) -> dict[str, list[tuple]]:
        def peer(process: int) -> int | None:
            return process if process in self.processes else None

        def operation(number: int, function: int) -> str:
            name = self.operations.get(number, f"operation {number}")
            kind = int(self.types.get(number, "0"), 16)
            return oracle.called(name, kind, self.functions.get(function, ""))

        return {
            "events": [(t, k, self.functions.get(f, f"region {f}")) for t, k, f in found.events],
            "messages": [(t, k, peer(p), *rest) for t, k, p, *rest in found.messages],
            "collectives": [
                (b, e, operation(*o), c, peer(r), *rest) for b, e, o, c, r, *rest in found.collectives
            ],
            "metrics": [(t, self.counters.get(c, f"counter {c}"), float(v)) for t, c, v in found.metrics],
            "marks": found.marks,
        }


def agree(memory: Memory, master: Path) -> None:
    """What was imported is what the oracle reads, row by row, and what it finds odd is in the report."""
    names = Names(master)
    odd = oracle.Counter()
    for number, listed in names.streams.items():
        files = [f for end in ("", ".z") if (f := master.with_suffix(f".{number:x}.events{end}")).exists()]
        if not files:
            for process in listed:
                at = next(at for at in memory.locations if at.id == process)
                assert (at.records, at.damage) == (0, "no data")
            continue
        span = 400 * oracle.DAY * names.resolution or 1 << 61
        found = oracle.read(oracle.content(files[0]), listed, span)
        odd += found.odd
        for process, want in found.processes.items():
            at = next(at for at in memory.locations if at.id == process)
            assert rows_of(memory, process) == names.rows(want)
            assert at.records == want.records
            if want.records:
                assert (at.first, at.last) == (min(want.times), max(want.times))
                assert at.damage == ("" if found.complete or want.ended else "ends early")
            else:
                assert at.damage == "no data"
    reported = {name: finding.count for name, finding in memory.report.findings.items()}
    assert {name: reported.get(name, 0) for name in odd} == odd
    known = {"bad lines", "times", "unknown records", "other records", "other processes", "nobody's records"}
    assert not {name for name in known & reported.keys() if name not in odd}


# ---------------------------------------------------------------- sound traces


@pytest.mark.parametrize("name", SAMPLES)
def test_the_reference_tool_says_the_same(name: str, samples: Path, tmp_path: Path) -> None:
    want = FACTS[name]
    per_process = {key: want[f"{key}_per_process"] for key in ("enter", "leave", "mpi_ticks", "busy_ticks")}
    records = want["records"]
    with open_trace(samples / name, output=tmp_path / "trace.h5") as store:
        said = info(store)
        assert said["format"] == "otf1"
        assert said["ticks_per_second"] == want["ticks_per_second"]
        collectives = records.get("Collective", 0) + records.get("EndCollective", 0)
        assert said["totals"] == {
            "events": sum(records.values()),
            "enter": records["Enter"],
            "leave": records["Leave"],
            "messages_sent": records.get("SendMessage", 0),
            "messages_received": records.get("ReceiveMessage", 0),
            "collectives": collectives,
            "mpi_calls": want["mpi_calls_total"],
        }
        assert said["mpi_calls"] == want["mpi_calls"]
        assert len(said["locations"]) == want["processes"]
        for key in ("enter", "leave"):
            assert {str(at["id"]): at[key] for at in said["locations"]} == per_process[key]
        assert min(at.first for at in store.locations) == want["first_tick"]
        assert max(at.last for at in store.locations) == want["last_tick"]
        # The facts call busy whatever is in no MPI function, and take the times as they were recorded.
        classes = {
            region.name: Activity.IDLE if region.paradigm == "mpi" else Activity.COMPUTING
            for region in store.regions
        }
        found = build(store, Rules(overrides=classes, repaired=False))
        ids = [str(at.id) for at in store.locations]
        assert (
            dict(zip(ids, found.totals[:, Activity.COMPUTING].tolist(), strict=True))
            == per_process["busy_ticks"]
        )
        assert (
            dict(zip(ids, found.totals[:, Activity.IDLE].tolist(), strict=True)) == per_process["mpi_ticks"]
        )
        assert found.edges[-1] - found.edges[0] == want["last_tick"] - want["first_tick"]
        assert int(found.count(Activity.COMPUTING) @ np.diff(found.edges)) == want["integral_busy_ticks"]
        # One source alone has processes with clocks of their own.
        wrong = said["clock"]["violations_before"] > 0
        assert wrong == (name == PSORT)
        assert said["clock"]["repair"] == ("shift" if wrong else "none")
        assert said["clock"]["violations_after"] == 0
        assert [finding["name"] for finding in said["report"]] == ["clocks contradict"] * wrong


@pytest.mark.parametrize("name", [*SAMPLES, *DAMAGED])
def test_slow_reading_gives_the_same(name: str, samples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name in (PSORT, FARM):  # every border of blocks, tables and parts is met
        for module, limit, value in ((text, "BLOCK", 700), (text, "_PIECE", 97), (stream, "LINES", 11)):
            monkeypatch.setattr(module, limit, value)
        monkeypatch.setattr(rows, "PART", 5)
    memory = read(samples / name / "trace.otf")
    agree(memory, samples / name / "trace.otf")


@pytest.mark.parametrize("name", [FARM, JACOBI])
def test_packed_and_unpacked_are_the_same(name: str, samples: Path, tmp_path: Path) -> None:
    folder = tmp_path / "unpacked"
    shutil.copytree(samples / name, folder)
    for file in folder.glob("*.z"):
        file.with_suffix("").write_bytes(zlib.decompressobj().decompress(file.read_bytes()))
        file.unlink()
    assert everything(read(folder)) == everything(read(samples / name))


@pytest.mark.parametrize(("name", "long"), [(PSORT, True), (WAVE, False), (CHOLESKY, True)])
def test_short_and_long_keywords_are_the_same(name: str, long: bool, samples: Path, tmp_path: Path) -> None:
    folder = tmp_path / "respelled"
    shutil.copytree(samples / name, folder)
    for file in folder.iterdir():
        if file.suffix != ".otf":
            before = file.read_text()
            assert oracle.respelled(oracle.respelled(before, not long), long) != before
            file.write_text(oracle.respelled(before, long))
    assert everything(read(folder)) == everything(read(samples / name))


# ---------------------------------------------------------------- made-up traces

TOKENS = some.integers(1, 40) | some.integers(1, 2**32 - 1)
SIZES = some.integers(0, 5000) | some.integers(0, 2**61 - 1)


def optional(*fields: str) -> some.SearchStrategy[str]:
    """Fields that may be left out."""
    values = {
        "S": SIZES,
        "R": SIZES,
        "RT": some.integers(0, 40),
        "C": some.integers(0, 2**32 - 1),
        "X": TOKENS,
    }
    chosen = [some.just("") | values[name].map(lambda v, name=name: f"{name}{v:x}") for name in fields]
    return some.tuples(*chosen).map("".join)


def joined(pattern: str, *parts: some.SearchStrategy) -> some.SearchStrategy[str]:
    return some.tuples(*parts).map(lambda values: pattern.format(*values))


FUNCTIONS = some.integers(1, 6)
RECORDS = some.one_of(
    joined("E{:x}{}", FUNCTIONS, optional("X")),
    joined("L{:x}{}", FUNCTIONS, optional("X")),
    joined("L{}", optional("X")),
    joined("S{:x}L{:x}T{:x}{}", TOKENS, SIZES, TOKENS, optional("C", "X")),
    joined("R{:x}L{:x}T{:x}{}", TOKENS, SIZES, TOKENS, optional("C", "X")),
    joined("COP{:x}{}D{:x}", FUNCTIONS, optional("C", "RT", "S", "R"), some.integers(0, 10**6)),
    joined("COP{:x}{}", FUNCTIONS, optional("C", "RT", "S", "R")),
    joined("COPB{:x}H{:x}{}", FUNCTIONS, some.integers(1, 3), optional("C", "RT", "S", "R")),
    joined("COPE{:x}", some.integers(1, 3)),
    joined("CNT{:x}V{:x}", FUNCTIONS, some.integers(0, 2**63)),
    joined('#"{}"', some.text(some.characters(codec="ascii", categories=("L", "N")), max_size=5)),
    some.sampled_from(
        ["PB", "PE", "K5Y1V7", "FOP1", "T1", "UNKNOWN4", "J", "", "Q7", "E", "S1L4", "LL", "é"]
    ),
)


@some.composite
def traces(draw: some.DrawFn) -> dict[str, str]:
    """Files of a trace: what is in the streams is in order of time, as a writer leaves it."""
    streams = draw(some.lists(some.integers(1, 3), min_size=1, max_size=3))
    numbers = draw(some.lists(TOKENS, min_size=sum(streams), max_size=sum(streams), unique=True))
    long = draw(some.booleans())
    files = {
        "": "",
        "0.def": 'DTR3e8\nDFG1NM"MPI"\nDF1G1NM"inner"\nDF2NM"MPI_Send"\nDF3NM"own"\n'
        'DF4NM"MPI_Allreduce"\nDF5NM"pmpi_bcast_"\nDF6NM"MPI_Exscan"\n'
        'DCO1NM"all-to-all"Y4\nDCO2NM"MPI_Scan"Y4\nDCO3NM"one-to-all"Y2\nDCO4NM"mpi_barrier_"Y1\n'
        'DCO5NM"synchronize"Y1\nDCO6NM"mine"\n',
    }
    for number, size in enumerate(streams, start=9):
        mine, numbers = numbers[:size], numbers[size:]
        files[""] += f"{number:x}:{','.join(f'{process:x}' for process in mine)}\n"
        files["0.def"] += "".join(f'DP{process:x}NM"p{process}"\n' for process in mine)
        at, who = draw(some.integers(0, 2**40)), mine[0]
        text = f"{at:x}\n*{who:x}\nPB\n"
        for step, process, record in draw(
            some.lists(some.tuples(some.integers(0, 1000), some.sampled_from(mine), RECORDS), max_size=40)
        ):
            at, who = at + step, process
            text += f"{at:x}\n" * (step > 0) + f"*{who:x}\n" + record + "\n"
        files[f"{number:x}.events"] = text + f"{at:x}\n*{who:x}\n"
    return {name: oracle.respelled(text, long) if name else text for name, text in files.items()}


#: Of two collectives with one matching id the first has lost its end; one that began before them ends first.
LOST_END = {
    "": "9:1\n",
    "0.def": "DTR3e8\n",
    "9.events": "0\n*1\nCOPB1H2\n1\nCOPB2H1\n2\nCOPB3H1\n3\nCOPE2\n4\nCOPE1\n4\n*1\n",
}
#: The digits at the end of its last time would make a complete file.
DAMAGED_END = {"": "9:1\n", "0.def": "DTR3e8\n", "9.events": "0\n*1\nE1\n7Q0\n*1\n"}


@settings(max_examples=50, deadline=None)
@given(traces(), some.booleans())
@example(LOST_END, False)
@example(DAMAGED_END, False)
def test_made_up_traces(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, str], zipped: bool
) -> None:
    master = oracle.write(tmp_path_factory.mktemp("made"), files, zipped)
    memory = read(master)
    agree(memory, master)
    # And, said without a grammar: what was written in short is what there is.
    names = Names(master)
    for number, listed in names.streams.items():
        lines = oracle.respelled(files[f"{number:x}.events"], long=False).split("\n")
        for process in listed:
            mine = [line for who, line in pairwise(lines) if who == f"*{process:x}"]
            enters = [int(re.split("[EX]", line)[1], 16) for line in mine if re.match("E[1-6]", line)]
            sizes = [int(re.split("[LT]", line)[1], 16) for line in mine if re.match("[SR].*L.*T", line)]
            found = rows_of(memory, process)
            called = [names.functions.get(function, f"region {function}") for function in enters]
            assert [name for _, kind, name in found["events"] if kind == 0] == called
            assert [row[-1] for row in found["messages"]] == sizes


def made(folder: Path, events: str, definitions: str = "DTR3e8\n", master: str = "1:1,2\n") -> Memory:
    """A trace of one stream, which gets its proper end, imported."""
    lines = events.split("\n")
    time = [line for line in lines if re.match("[0-9a-f]", line)][-1]
    process = [line for line in lines if line.startswith("*")][-1]
    files = {"": master, "0.def": definitions, "1.events": f"{events}\n{time}\n{process}\n"}
    return read(oracle.write(folder, files))


def findings(memory: Memory) -> dict[str, int]:
    return {finding.name: finding.count for finding in memory.report}


def test_regions_are_of_mpi_by_name_or_group(tmp_path: Path) -> None:
    functions = (
        'DFG1NM"MPI"\nDFG2NM"Application"\nDF1G1NM"sync"\nDF2G2NM"MPI_Wait"\nDF3G2NM"main"\nDF4NM"bare"\n'
    )
    memory = made(tmp_path, "1\n*1\nE1\nE2\nE3\nE4\nL4\nL3\nL2\nL1", "DTR3e8\n" + functions)
    assert {r.name: r.paradigm for r in memory.regions} == {
        "sync": "mpi",
        "MPI_Wait": "mpi",
        "main": "user",
        "bare": "user",
    }


def test_threads_belong_to_their_process(tmp_path: Path) -> None:
    processes = (
        'DP1NM"a"\nDP2NM"b"\nDP10002NM"b, thread 1"PT2\nDP10001NM"a, thread"PT1\nDP20002NM"b2"PT10002\n'
    )
    memory = made(tmp_path, "1\n*1\nPB", "DTR1\n" + processes, "1:1,2,10001,10002,20002\n")
    assert [(at.id, at.rank, at.thread, at.name, at.process) for at in memory.locations] == [
        (0x1, 0, 0, "a", "a"),
        (0x10001, 0, 1, "a, thread", "a"),
        (0x2, 1, 0, "b", "b"),
        (0x10002, 1, 1, "b, thread 1", "b"),
        (0x20002, 1, 2, "b2", "b"),
    ]
    assert "parents" not in findings(memory)
    orphans = made(
        tmp_path / "more", "1\n*1\nPB", 'DTR1\nDP1NM"a"PT7\nDP2NM"b"PT3\nDP3NM"c"PT2\n', "1:1,2,3\n"
    )
    assert findings(orphans)["parents"] == 3
    assert [at.rank for at in orphans.locations] == [0, 1, 2]


def test_without_resolution_times_are_ticks(tmp_path: Path) -> None:
    memory = made(tmp_path, "ff\n*1\nPB", 'DP1NM"a"\n')
    assert memory.ticks_per_second == 1
    assert findings(memory)["timer resolution"] == 1
    assert memory.locations[0].first == 255


def test_the_unit_of_time_counts_where_the_trace_says_none(tmp_path: Path) -> None:
    """Also in the parts of a divided import, and from the cache; a trace that says its own keeps it."""
    events = {f"{stream}.events": f"1\n*{stream}\nE1\n{n}\nL1\n" for stream, n in ((1, "f4241"), (2, "3e9"))}
    files = {"": "1:1\n2:2\n", "0.def": 'DF1NM"f"\nDP1NM"a"\nDP2NM"b"\n'} | events
    master = oracle.write(tmp_path, files)
    found = []
    for unit, second, workers in (("s", 1, 1), ("ms", 10**3, 1), ("ns", 10**9, 1), ("ns", 10**9, 2)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("desktop.data.opening.DIVIDED", 0)
            target = tmp_path / f"{unit}{workers}.h5"
            with open_trace(master, output=target, time_unit=unit, workers=workers) as store:
                assert store.ticks_per_second == second
                severity = store.report.findings["timer resolution"].severity
                assert severity == ("loss" if unit == "s" else "notice")
                assert store.notes["unit of time"] == f"ticks, taken as {unit}"
                found.append([store.column("events", "time", i).tolist() for i in range(2)])
            with open_trace(master, output=target, time_unit=unit) as again:
                assert again.ticks_per_second == second
    assert all(times == found[0] for times in found)
    said = oracle.write(tmp_path, files | {"0.def": "DTR3e8\n" + files["0.def"]})
    with open_trace(said, output=tmp_path / "said.h5") as store:
        assert store.ticks_per_second == 1000
    with pytest.raises(TraceFormatError, match="says its own unit of time"):
        open_trace(said, output=tmp_path / "other.h5", time_unit="ns")


def test_local_definitions_hold_in_their_stream(tmp_path: Path) -> None:
    events = "1\n*{}\nE1\nE2\nL2\nL1\n1\n*{}\n"
    files = {
        "": "1:1\n2:2\n",
        "0.def": 'DFG1NM"MPI"\nDF1NM"global"\nDF2G1NM"both"\n',
        "1.def": 'DTR64\nDF1NM"local"\nDP1NM"named here"\n',
        "1.events": events.format(1, 1),
        "2.events": events.format(2, 2),
    }
    memory = read(oracle.write(tmp_path, files))
    assert [name for *_, name in rows_of(memory, 1)["events"]] == ["local", "both", "both", "local"]
    assert [name for *_, name in rows_of(memory, 2)["events"]] == ["global", "both", "both", "global"]
    assert {region.name: region.paradigm for region in memory.regions}["both"] == "mpi"
    assert memory.ticks_per_second == 100
    assert [at.name for at in memory.locations] == ["named here", "rank 1"]


def test_processes_without_a_name_are_called_as_everywhere(tmp_path: Path) -> None:
    """By the rank and thread that statistics, sentences and rows count, not by numbers from 1 on."""
    events = "1\n*{}\nE1\n2\n*{}\nL1\n"
    files = {"": "1:1\n2:2\n3:3\n", "0.def": 'DTR64\nDP3NM""PT2\n'}
    files |= {f"{k}.events": events.format(k, k) for k in (1, 2, 3)}
    memory = read(oracle.write(tmp_path, files))
    assert [at.name for at in memory.locations] == [location_name(at) for at in memory.locations]
    assert {at.name for at in memory.locations} == {"rank 0", "rank 1", "rank 1 thread 1"}
    assert [at.process for at in memory.locations] == ["rank 0", "rank 1", "rank 1"]


def test_counters_have_the_type_of_their_properties(tmp_path: Path) -> None:
    types = {"u": 0, "i": 32, "f": 256, "d": 288}
    definitions = "".join(
        f'DCNT{n:x}G1NM"{name}"P{kind | 5:x}U"#"\n' for n, (name, kind) in enumerate(types.items(), 1)
    )
    numbers = {
        1: np.array([2**63 + 2**62], np.uint64),
        2: np.array([-5], np.int64),
        3: np.array([2.5], np.float32),
        4: np.array([-1e300]),
    }
    events = "1\n*1\n" + "\n".join(
        f"CNT{n:x}V{int(value.view(f'u{value.itemsize}')[0]):x}" for n, value in numbers.items()
    )
    memory = made(tmp_path, events, "DTR1\n" + definitions)
    assert rows_of(memory, 1)["metrics"] == [
        (1, name, float(numbers[n][0])) for n, name in enumerate(types, 1)
    ]


def test_counters_have_unit_and_meaning_of_their_properties(tmp_path: Path) -> None:
    """Accumulated or absolute by the lowest bits; of the time since the sample before by the next two."""
    about = {
        "cycles": (0, "#", MetricAbout("", "accumulated", "next")),
        "memory": (1 | 12, "B", MetricAbout("B", "absolute", "next")),
        "load": (1 | 8, "#/s", MetricAbout("/s", "absolute", "last")),
        "spike": (1 | 4, "", MetricAbout("", "absolute", "next")),
    }
    definitions = "".join(
        f'DCNT{n:x}G1NM"{name}"P{kind:x}U"{unit}"\n'
        for n, (name, (kind, unit, _)) in enumerate(about.items(), 1)
    )
    events = "1\n*1\n" + "\n".join(f"CNT{n:x}V7" for n in range(1, 5))
    memory = made(tmp_path, events, "DTR1\n" + definitions)
    assert memory.metrics == {name: meaning for name, (_, _, meaning) in about.items()}


def test_comments_become_marks_and_their_number_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "TEXTS", 2)
    memory = made(tmp_path, '1\n*1\n#"a"\n#EVTCOMMENT "b"\n2\n#"c"\n#"a"')
    assert rows_of(memory, 1)["marks"] == [(1, "a"), (1, "b"), (2, "a")]
    assert findings(memory)["comments"] == 1
    assert memory.locations[0].records == 4


@pytest.mark.parametrize(
    ("defined", "call", "found"),
    [
        ('"all-to-all"Y4', "MPI_Allreduce", "Allreduce"),
        ('"all-to-all"Y4', "pmpi_scan_", "Scan"),
        ('"all-to-all"Y4', "MPI_Bcast", "all-to-all"),
        ('"all-to-all"Y4', "Allreduce", "all-to-all"),
        ('"one-to-all"Y2', "MPI_Scatterv", "Scatterv"),
        ('"mine"Y3', "MPI_Reduce", "Reduce"),
        ('"mine"Y3', "main", "all-to-one"),
        ('"mine"', "MPI_Reduce", "mine"),
        ('"MPI_Gather"Y3', "MPI_Reduce", "Gather"),
        ('"mpi_gather_"', "main", "gather"),
        ('"MPI_Barrier"Y1', "MPI_Allreduce", "Barrier"),
        ('"Barrier"Y4', "MPI_Allreduce", "Barrier"),
        ('"synchronize"Y1', "MPI_Allreduce", "Barrier"),
    ],
)
def test_collectives_are_called_by_name_call_or_type(
    defined: str, call: str, found: str, tmp_path: Path
) -> None:
    files = {"": "9:1\n", "0.def": f'DTR3e8\nDCO1NM{defined}\nDF1NM"{call}"\n'}
    files["9.events"] = "0\n*1\nE1\n2\n*1\nCOP1D1\n5\nL1\n5\n*1\n"
    ((_, _, name, *_),) = rows_of(read(oracle.write(tmp_path / "made", files)), 1)["collectives"]
    assert name == found


def test_a_collective_without_duration_lasts_as_long_as_its_call(tmp_path: Path) -> None:
    memory = made(tmp_path, "1\n*1\nE1\n5\nE2\n7\nCOP1C2RT1S3R4\n9\nL2\nb\nL1")
    assert rows_of(memory, 1)["collectives"] == [(5, 9, "operation 1", 2, 1, 3, 4)]


def test_the_writer_that_gave_up_is_named(tmp_path: Path) -> None:
    memory = made(tmp_path, '1\n*1\nE1\n3\nL1\n#"error due to unsorted time stamp, aborted"')
    assert findings(memory)["writer gave up"] == 1
    assert memory.locations[0].damage == "ends early"
    assert memory.report.lossy


def test_times_that_go_back_are_sorted(tmp_path: Path) -> None:
    memory = made(tmp_path, "5\n*1\nE1\n9\nL1\n3\nE2\n4\nL2")
    assert [t for t, *_ in rows_of(memory, 1)["events"]] == [3, 4, 5, 9]
    assert findings(memory)["times"] == 1
    assert memory.report.lossy  # single ones are damaged; of a writer that never sorts it is a notice
    assert memory.report.findings["times"].where == "trace.1.events, line 6"


# ---------------------------------------------------------------- parts, progress, files


def test_parts_are_together_the_whole(samples: Path) -> None:
    """A divided import: each location in one part, each finding said by one."""
    for name in (WAVE, PSORT, *DAMAGED):
        whole = read(samples / name)
        parts = [read(samples / name, only=only) for only in ({0, 3}, {1, 4, 5}, set(range(6, 16)) | {2})]
        told: dict[str, int] = {}
        for part in parts:
            assert [at.id for at in part.locations] == [at.id for at in whole.locations]
            for i in part.only & set(range(len(whole.locations))):
                process = whole.locations[i].id
                assert everything(part)[process] == everything(whole)[process]
            for finding in part.report:
                told[finding.name] = told.get(finding.name, 0) + finding.count
        alone = {name for name in told if name not in ("definitions", "timer resolution")}
        assert {name: told[name] for name in alone} == {
            name: count for name, count in findings(whole).items() if name in alone
        }


def test_streams_of_unwanted_processes_are_not_read(samples: Path, tmp_path: Path) -> None:
    folder = tmp_path / "trace"
    shutil.copytree(samples / CHOLESKY, folder)
    whole = everything(read(folder))
    kept = {2, 11}  # locations of the processes 3 and c, in streams 10 and 2
    for file in folder.glob("*.events"):
        if file.name not in ("trace.10.events", "trace.2.events"):
            file.write_text("this is not a trace\n")
    part = read(folder, only=kept)
    assert not list(part.report)
    assert [everything(part)[process] for process in (3, 12)] == [whole[process] for process in (3, 12)]


class Stopping(Progress):
    """Cancels at the `at`-th step."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.left, self.last = at, 0.0

    def show(self, done: float, total: float, text: str) -> None:
        assert 0 <= done <= total or total == 0
        self.left -= 1
        if not self.left:
            self.cancel()


@pytest.mark.parametrize("at", [1, 2, 5, 30])
def test_cancelling_ends_everything(
    at: int, samples: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(rows, "PART", 100)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    threads = threading.active_count()
    with pytest.raises(Cancelled):
        otf1.IMPORTER.read(samples / WAVE / "trace.otf", Memory(), Stopping(at))
    assert threading.active_count() == threads
    assert not list(tmp_path.iterdir())


def test_the_master_file_or_its_folder_opens(samples: Path, tmp_path: Path) -> None:
    for path in (samples / FARM, samples / FARM / "trace.otf"):
        assert importers.detect(path).id == "otf1"
        assert len(otf1.files(path)) == 5
    font = tmp_path / "font.otf"
    font.write_bytes(b"OTTO\0\x0b\0\x80")
    assert not otf1.detect(font, font.read_bytes())
    assert not otf1.detect(tmp_path, b"")
    shutil.copytree(samples / FARM, tmp_path, dirs_exist_ok=True)
    assert not otf1.detect(tmp_path, b"")  # which of the two?
    with pytest.raises(TraceFormatError, match="not exactly one"):
        read(tmp_path)


# ---------------------------------------------------------------- damage


def test_damaged_samples(samples: Path) -> None:
    whole = read(samples / FARM)
    cut, missing, nameless = (read(samples / name) for name in DAMAGED)
    # a: stream 1 (processes 1 and 5) is cut.
    assert findings(cut) == {"cut events": 1}
    for at in cut.locations:
        assert at.damage == ("ends early" if at.id in (1, 5) else "")
        for table, kept in rows_of(cut, at.id).items():
            before = rows_of(whole, at.id)[table]
            assert kept == before[: len(kept)]
            assert at.id in (1, 5) or kept == before
    assert 0.6 < cut.locations[0].records / whole.locations[0].records < 0.8
    # b: stream 2 (processes 2 and 4) is missing.
    assert findings(missing) == {"event file": 1}
    assert [at.damage for at in missing.locations] == ["", "no data", "", "no data", "", ""]
    assert all(everything(missing)[id] == everything(whole)[id] for id in (1, 3, 5, 6))
    # c: there are no definitions.
    assert findings(nameless) == {"definitions": 1, "timer resolution": 1, "regions": 1620}
    assert nameless.report.lossy
    assert [region.name for region in nameless.regions] == ["region 1", "region 2"]
    assert [at.records for at in nameless.locations] == [at.records for at in whole.locations]


def test_no_usable_master_or_events_are_refused(samples: Path, tmp_path: Path) -> None:
    for content in ("", "\0\0", "1 2 3\n", "x:y\n", "ii3 4\n", ":1\n"):
        shutil.copytree(samples / FARM, tmp_path, dirs_exist_ok=True)
        (tmp_path / "trace.otf").write_text(content)
        with pytest.raises(TraceFormatError, match="names no stream"):
            read(tmp_path / "trace.otf")
    for content in ("9:1\n", "1:\n2:9\n"):
        (tmp_path / "trace.otf").write_text(content)
        (tmp_path / "trace.2.events.z").unlink(missing_ok=True)
        with pytest.raises(TraceFormatError, match=r"no event files|names no stream"):
            read(tmp_path / "trace.otf")
    (tmp_path / "trace.otf").write_text("1:1\n")
    (tmp_path / "trace.1.events.z").write_bytes(b"")
    with pytest.raises(TraceFormatError, match="no readable events"):
        read(tmp_path / "trace.otf")


def test_odd_files_are_named(samples: Path, tmp_path: Path) -> None:
    shutil.copytree(samples / FARM, tmp_path, dirs_exist_ok=True)
    (tmp_path / "trace.otf").write_text("3:3,6\n1:1,5,3\nq:\ni 1\n")
    (tmp_path / "trace.3.events").write_text("1\n*3\nPB\n*6\nPB\n1\n*6\n")
    (tmp_path / "trace.0.marker").write_text("M\n")
    memory = read(tmp_path)
    assert findings(memory) == {
        "master file": 1,
        "repeated processes": 1,
        "other files": 1,
        "other event files": 1,
        "markers": 1,
        "packed twice": 1,
        "no stream": 2,
    }
    assert rows_of(memory, 3)["events"] == []  # of the unpacked file


def changed(data: bytes, chance: random.Random) -> bytes:
    """Cut, flipped, overwritten, or lines swapped, repeated or lost."""
    new = bytearray(data)
    at = chance.randrange(len(new))
    how = chance.choice(["cut", "flip", "flip", "garbage", "swap", "twice", "lost"])
    if how == "cut":
        del new[at:]
    elif how == "flip":
        for _ in range(chance.choice([1, 1, 4, 30])):
            new[chance.randrange(len(new))] ^= 1 << chance.randrange(8)
    elif how == "garbage":
        new[at : at + 40] = chance.randbytes(len(new[at : at + 40]))
    else:
        lines = data.splitlines(keepends=True)
        k, other = chance.randrange(len(lines)), chance.randrange(len(lines))
        if how == "swap":
            lines[k], lines[other] = lines[other], lines[k]
        elif how == "twice":
            lines.insert(other, lines[k])
        else:
            del lines[k : k + chance.choice([1, 2, 50])]
        return b"".join(lines)
    return bytes(new)


@pytest.mark.parametrize("name", [PSORT, FARM, WAVE])
def test_damaged_events_are_read_as_the_oracle_reads_them(name: str, samples: Path, tmp_path: Path) -> None:
    """Every record before, between and behind the damage, and every odd line counted."""
    chance = random.Random(name)
    for _ in range(25 if name != WAVE else 3):
        folder = tmp_path / "damaged"
        shutil.copytree(samples / name, folder)
        file = chance.choice(sorted(folder.glob("*.events*")))
        before = file.read_bytes()
        if file.suffix == ".z" and chance.random() < 0.5:
            after = oracle.packed(changed(zlib.decompressobj().decompress(before), chance))
        else:
            after = changed(before, chance)
        file.write_bytes(after)
        agree(read(folder), folder / "trace.otf")
        shutil.rmtree(folder)


def test_whatever_is_damaged_nothing_else_is_lost(samples: Path, tmp_path: Path) -> None:
    """Any file of the set: no error but a refusal, no hang, and streams that are sound stay whole."""
    chance = random.Random(2)
    end = time.monotonic() + 3
    rounds = refused = 0
    whole = {name: read(samples / name) for name in (PSORT, FARM, JACOBI)}
    while time.monotonic() < end and rounds < 300:
        rounds += 1
        name = chance.choice([PSORT, FARM, JACOBI])
        folder = tmp_path / "damaged"
        shutil.copytree(samples / name, folder)
        file = chance.choice(sorted(folder.iterdir()))
        if chance.random() < 0.1:
            file.unlink()
        else:
            file.write_bytes(changed(file.read_bytes(), chance))
        try:
            memory = read(folder)
        except TraceFormatError as error:
            assert str(error).startswith(str(folder))
            refused += 1
        else:
            if ".events" in file.name:
                hit = int(file.name.split(".")[1], 16)
                streams = Names(folder / "trace.otf").streams
                sound = {process for number, listed in streams.items() if number != hit for process in listed}
                after, before = everything(memory), everything(whole[name])
                assert all(after[process] == before[process] for process in sound)
        shutil.rmtree(folder)
    assert rounds > 10
    assert refused < rounds / 2


def test_a_compressed_stream_is_read_up_to_its_error(samples: Path, tmp_path: Path) -> None:
    shutil.copytree(samples / FARM, tmp_path, dirs_exist_ok=True)
    file = tmp_path / "trace.1.events.z"
    sound = file.read_bytes()
    wrong = 0
    for at in range(1, len(sound), 601):
        file.write_bytes(sound[:at])
        agree(read(tmp_path), tmp_path / "trace.otf")
        file.write_bytes(sound[:at] + b"\xff" * 50 + sound[at:])
        memory = read(tmp_path)
        agree(memory, tmp_path / "trace.otf")
        wrong += "damaged events" in findings(memory)
    assert wrong > 3


def test_memory_is_bounded_by_no_line_and_no_packing(tmp_path: Path) -> None:
    """64 MB without a line's end, which pack into nothing, stand between two sound records."""
    line = b"1\n*1\nPB\n" + b"f" * (1 << 26) + b"\nPE\n1\n*1\n"
    master = oracle.write(tmp_path, {"": "1:1\n", "0.def": "DTR1\n"})
    (tmp_path / "trace.1.events.z").write_bytes(oracle.packed(line))
    del line
    read(master)  # compiles
    tracemalloc.start()
    try:
        memory = read(master)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert findings(memory) == {"bad lines": 1}
    assert memory.locations[0].records == 2
    assert peak < 32 << 20


def test_large_processes_go_through_files(
    samples: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Out of order and too large to be sorted in memory, far or a little: the same rows."""
    shutil.copytree(samples / PSORT, tmp_path, dirs_exist_ok=True)
    file = tmp_path / "trace.1.events"
    records = file.read_text().splitlines(keepends=True)[:-2]
    middle = next(i for i in range(len(records) // 2, len(records)) if re.match("[0-9a-f]", records[i]))
    file.write_text("".join(records[middle:] + records[:middle]))
    memory = read(tmp_path)
    agree(memory, tmp_path / "trace.otf")
    assert findings(memory)["times"] == 1
    for part, overlap in ((7, 4), (1 << 9, 1 << 9)):
        monkeypatch.setattr(rows, "PART", part)
        monkeypatch.setattr(spill, "OVERLAP", overlap)
        assert everything(read(tmp_path)) == everything(memory)
