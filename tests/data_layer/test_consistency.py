"""What a trace says twice: damage is told, habits are not, and how much of the curve is in doubt is said."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from desktop.cli import run as main
from desktop.data import importers
from desktop.data.consistency import NestingDigest, begins_round, doubt, follow, misspelt, nearly_round
from desktop.data.events import TABLES, UNDEFINED, Activity, Location, MessageKind, Region
from desktop.data.info import info
from desktop.data.material import Subject
from desktop.data.opening import open_trace
from desktop.data.report import Contents, compose
from desktop.data.store import Source, StoreWriter
from desktop.data.utilization import build
from desktop.progress import Progress
from tests.data_layer import damage
from tests.data_layer.archives import unpack
from tests.data_layer.damage import FORMATS, SOURCES, Trial, campaign, master, sample, write

DATA = Path(__file__).parents[1] / "data"
#: Damages of each format in the suite; a campaign is `tests.data_layer.damage`.
DAMAGES = 12


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trial]:
    """Of each format; what the sound samples give is found once."""
    return {kind: Trial(kind, tmp_path_factory.mktemp(kind)) for kind in FORMATS}


@pytest.mark.parametrize("kind", FORMATS)
def test_no_curve_is_wrong_without_a_word(kind: str, trials: dict[str, Trial]) -> None:
    outcomes = list(campaign(kind, DAMAGES, 20, trials[kind]))
    assert [str(outcome.case) for outcome in outcomes if outcome.result == "wrong"] == []
    assert sum(outcome.result == "loss" for outcome in outcomes) > DAMAGES // 6


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in FORMATS for name in SOURCES[kind]])
def test_what_is_whole_has_no_loss(kind: str, name: str, trials: dict[str, Trial]) -> None:
    """Flushed buffers, deadlocks, tracers' habits: none of it is damage."""
    assert not trials[kind].sound(name).lossy


def findings(path: Path, tmp_path: Path) -> dict[str, str]:
    with open_trace(path, output=tmp_path / "found.h5", force=True) as store:
        return {finding.name: finding.severity for finding in store.report}


# ---------------------------------------------------------------- the cases that were seen


def without(folder: Path, kept: bytes) -> int:
    """Drop the definition of the region that has that name from an archive of EZTrace; bytes dropped."""
    file = folder / "eztrace_log.def"
    data = file.read_bytes()
    strings, regions = {}, []
    for record, fields in damage.chunk_records(data, 0, True):
        begin = fields.at - 2
        if record == 10:
            number, text = fields.read("ns")
            strings[number] = text
        elif record == 15:
            regions.append((begin, begin + 2 + data[begin + 1], fields.read("nn")[1]))
    begin, end, _ = next(region for region in regions if strings[region[2]] == kept)
    file.write_bytes(data[:begin] + data[end:] + bytes(end - begin))
    return end - begin


def test_a_region_in_which_messages_lie_is_communication(tmp_path: Path) -> None:
    """The definition of MPI_Recv is missing: half of the time in MPI counted as computing."""
    folder = unpack("ezt_farm_8_dilated", tmp_path)
    with open_trace(folder, output=tmp_path / "sound.h5") as store:
        mean, received = build(store).curve().mean, 0
        region_of = next(i for i, region in enumerate(store.regions) if region.name == "MPI_Recv")
        # EZTrace defines the region once for each process; the first is that of rank 0.
        for times, kinds, regions in store.blocks("events", 0, "time", "kind", "region"):
            here = regions == region_of
            received += int((times[here] * np.where(kinds[here] == 1, 1, -1)).sum())
    assert without(folder, b"MPI_Recv")
    with open_trace(folder, output=tmp_path / "bad.h5") as store:
        assert store.report.lossy
        assert store.report.findings["regions"].severity == "loss"
        assert build(store).curve().mean == pytest.approx(mean, rel=1e-9)
        lost = doubt(store)
        assert lost is not None and lost.seconds is not None
        # All that was received is in doubt, and nothing else.
        unknown = next(i for i, region in enumerate(store.regions) if region.role == UNDEFINED)
        assert store.regions[unknown].activity is Activity.IDLE
        assert lost.seconds == pytest.approx(received / store.ticks_per_second)
        assert info(store)["utilization"]["in_doubt_s"] == lost.seconds


def test_otf_definitions_that_are_empty(tmp_path: Path) -> None:
    """0.23 s became 224 Ms with exit code 0."""
    files = dict(sample("otf1", "farm_6"))
    write(tmp_path, files)
    (tmp_path / "trace.0.def.z").write_bytes(b"")
    found = findings(master("otf1", tmp_path, files), tmp_path)
    assert (found["timer resolution"], found["regions"]) == ("loss", "loss")


def test_a_timer_resolution_with_a_changed_digit(tmp_path: Path) -> None:
    files = dict(sample("otf1", "psort_8"))
    assert files["trace.0.def"].count(b"DTR3b9aca00\n") == 1
    files["trace.0.def"] = files["trace.0.def"].replace(b"DTR3b9aca00\n", b"DTR3f9aca00\n")
    write(tmp_path, files)
    assert findings(master("otf1", tmp_path, files), tmp_path)["odd timer resolution"] == "loss"


@pytest.mark.parametrize("share", [0.3, 0.5, 0.9])
def test_paraver_that_is_cut_at_the_end_of_a_line(share: float, tmp_path: Path) -> None:
    lines = (DATA / "paraver/farm_6.prv").read_bytes().splitlines(keepends=True)
    path = tmp_path / "cut.prv"
    path.write_bytes(b"".join(lines[: int(share * len(lines))]))
    with open_trace(path, output=tmp_path / "cut.h5") as store:
        assert store.report.findings["duration differs"].severity == "loss"
        lost = doubt(store)
        assert lost is not None and lost.seconds is not None
        # What follows the cut, to the end that the header says: 287 ms of 6 threads.
        there = sum(at.last for at in store.locations if at.last is not None) * 1e-9
        assert lost.whole == pytest.approx(6 * 0.287225607)
        assert lost.seconds == pytest.approx(lost.whole - there, rel=0.01)


def test_picl_that_is_cut_or_has_a_hole(tmp_path: Path) -> None:
    data = (DATA / "picl/v2-ncptl-pipeline6.trf").read_bytes()
    lines = data.splitlines(keepends=True)
    cut = tmp_path / "cut.trf"
    cut.write_bytes(b"".join(lines[:200]))
    assert findings(cut, tmp_path)["tracing without end"] == "loss"
    hole = tmp_path / "hole.trf"
    hole.write_bytes(data.replace(b"-4 -21 0.000190 ", b"-4 -21 280.000190 ", 1))
    assert "loss" in findings(hole, tmp_path).values()


def test_picl_whose_first_lines_are_gone(tmp_path: Path) -> None:
    """Up to 8 % of the computing was gone with the beginning of tracing, on all processors alike."""
    lines = (DATA / "picl/v1-fft16-upshot.trf").read_bytes().splitlines(keepends=True)
    path = tmp_path / "tail.trf"
    path.write_bytes(b"".join(lines[39:]))
    assert not any(line.startswith(b"1 ") for line in lines[39:])
    assert findings(path, tmp_path)["tracing without begin"] == "loss"
    # Who never says when tracing begins or ends has a habit.
    path.write_bytes(b"".join(line for line in lines[39:] if line.split()[0] not in (b"13", b"19")))
    assert "tracing without begin" not in findings(path, tmp_path)


def test_picl_without_a_turn_of_a_loop(tmp_path: Path) -> None:
    """Of each processor a block with all that is inside: its totals of messages tell. Blocks may send and
    receive on their own only where the trace does not look into them."""
    path, name = tmp_path / "turn.trf", "v1-fft16-upshot"
    lines = (DATA / f"picl/{name}.trf").read_text().splitlines(keepends=True)
    found: list[str] = []
    inside = {}
    for line in lines:
        kind, *_, node = line.split()[:4]
        inside[node] = inside.get(node, False) or line.split()[:1] + line.split()[4:5] == ["20", "1"]
        if not inside[node]:
            found.append(line)
        if kind == "21":
            inside[node] = False
    assert len(lines) - len(found) == 16 * 8
    path.write_text("".join(found))
    assert findings(path, tmp_path)["messages missing"] == "loss"
    # At a level at which blocks are closed, nobody knows.
    path.write_text(
        "".join(line.replace(" 4 4 0", " 2 4 0") if line[:3] == "14 " else line for line in found)
    )
    assert "messages missing" not in findings(path, tmp_path)


def test_names_of_calls_with_a_changed_letter() -> None:
    assert misspelt(Region("MPI_Sfnd")) and misspelt(Region("NPI_Recv")) and misspelt(Region("MPI]Bcast"))
    real = ("MPI_Bsend", "MPI_Irecv", "PMPI_Recv", "mpi_recv_", "MPIX_Query", "compute", "mpi", "")
    assert not any(misspelt(Region(name)) for name in real)


@pytest.mark.parametrize(
    ("kind", "case", "found"),
    [
        (kind, damage.Case(name, file, way, seed), found)
        for kind, name, file, way, seed, found in (
            # a leave of another process, whose region is none of MPI
            ("otf1", "psort_8", "trace.1.events", "digit", 4170344761, "open regions"),
            # another root, so other bounds for the clocks
            ("otf1", "psort_8", "trace.1.events", "digit", 2936404990, "roots of collectives"),
            # the time of the end of a collective operation
            ("otf1", "psort_8", "trace.1.events", "hole", 2902027263, "missing lines"),
            # calls with their messages
            ("otf1", "farm_6 unpacked", "trace.2.events", "lines gone", 108343673, "sends without partner"),
            # "MPI_Se.rrecv", "EZTrace fijalize", and 3b9aca00 ticks in a second that are 3b9aca4
            ("otf1", "jacobi2d_9", "trace.0.def.z", "flip", 1015251267, "misspelt calls"),
            ("otf1", "psort_8", "trace.0.def", "flip", 616250765, "misspelt calls"),
            # "MP_COMM_805306366", a function of the group of MPI
            ("otf1", "psort_8", "trace.0.def", "swap", 1330184797, "misspelt calls"),
            ("otf1", "farm_6 unpacked", "trace.0.def", "field", 602479617, "odd timer resolution"),
            # 1,000,000,008 ticks
            ("otf1", "psort_8", "trace.0.def", "digit", 1567164147, "odd timer resolution"),
            # the last two lines
            ("picl", "v1-fft16-upshot", "v1-fft16-upshot.trf", "lines gone", 2731526444, "no close of some"),
            # an enter in the place of a leave
            (
                "picl",
                "v2-ncptl-butterfly8",
                "v2-ncptl-butterfly8.trf",
                "swap",
                421547381,
                "call within itself",
            ),
            # a thread that ends long after its program
            ("otf2", "ezt_pthread_5", "eztrace_log/4.evt", "run", 659949528, "late threads"),
            # a leave, on one thread of four
            ("otf2", "ezt_openmp_4", "eztrace_log/2.evt", "flip", 3057277527, "broken nesting: open"),
            # "EZTrace finalize" with the name of another region; description and canonical name have its own
            ("otf2", "ezt_openmp_4", "eztrace_log.def", "flips", 3084060495, "region names"),
            # "EZTrace finalize" with letters that no name has, with other ones on one process of eight, and
            # a canonical name that is not defined
            ("otf2", "ezt_farm_8_dilated", "eztrace_log.def", "run", 930897601, "region names"),
            ("otf2", "ezt_psort_8_dilated", "eztrace_log.def", "run", 2411145953, "region names"),
            ("otf2", "ezt_farm_8_dilated", "eztrace_log.def", "swap", 2232681814, "region names"),
            # the statistics before and after a receive
            (
                "picl",
                "v1-heat4-verbose",
                "v1-heat4-verbose.trf",
                "lines gone",
                2858165351,
                "statistics missing",
            ),
        )
    ],
    ids=lambda value: str(value),
)
def test_damages_that_no_word_was_said_of(kind: str, case: damage.Case, found: str, tmp_path: Path) -> None:
    outcome = Trial(kind, tmp_path).run(case)
    assert (outcome.result, f"loss {found}" in outcome.why) == ("loss", True), outcome.why


def test_what_a_writer_does_everywhere_is_no_damage(tmp_path: Path) -> None:
    """Each record with its process, whether that is a new one or not; no region is left at the end."""
    files = dict(sample("otf1", "psort_8"))
    lines, process = [], b""
    for line in files["trace.1.events"].splitlines(keepends=True):
        process = line if line.startswith(b"*") else process
        lines += [process, line] if line[:1].isupper() else [line]
    files["trace.1.events"] = b"".join(lines)
    write(tmp_path, files)
    assert "loss" not in findings(master("otf1", tmp_path, files), tmp_path).values()
    last: dict[bytes, int] = {}
    lines = sample("otf1", "psort_8")["trace.1.events"].splitlines(keepends=True)
    for at, line in enumerate(lines):
        process = line if line.startswith(b"*") else process
        if line.startswith(b"L"):
            last[process] = at
    files["trace.1.events"] = b"".join(line for at, line in enumerate(lines) if at not in last.values())
    assert len(last) == 8
    write(tmp_path, files)
    found = findings(master("otf1", tmp_path, files), tmp_path)
    assert (found["enter without leave"], "open regions" in found) == ("notice", False)


def test_ticks_that_begin_like_a_power_of_ten() -> None:
    odd = (0x3B9ACA4, 0x3B9ACA1F, 0x3B9ACA, 0xF42405, 0x3B9ACA000001)
    assert [hex(n) for n in odd if not begins_round(n)] == [hex(0x3B9ACA1F), hex(0x3B9ACA)]
    real = (10**6, 10**9, 10**12, 16 * 10**6, 62_500_000, 24 * 10**6, 2_394_230_000, 999_999_937, 512, 1)
    assert not any(begins_round(n) for n in real)


# ---------------------------------------------------------------- the rules


def made(
    tmp_path: Path,
    events: list[tuple[int, int, int]],
    messages: list[int] = [],  # noqa: B006 - read only
    regions: tuple[str, ...] = ("main", "MPI_Send", "MPI_Recv", "helper"),
    ranks: int = 1,
    barriers: tuple[int, ...] = (),
    activities: list[Activity | None] | None = None,
) -> dict[str, str]:
    """Import one location: (time, kind, region) of events and times of sends; findings and severities. The
    other `ranks` make one call. `barriers`: how many each rank records. `activities`
    gets those of the regions."""
    from desktop.data.consistency import judge
    from desktop.data.importers.otf2 import IMPORTER

    target = tmp_path / "made.h5"
    with StoreWriter(target, Source(str(target), "made"), IMPORTER) as writer:
        writer.describe(ticks_per_second=1e9)
        for rank in range(ranks):
            writer.location(Location(rank, f"rank {rank}", rank=rank))
        for name in regions:
            writer.region(Region(name, "function", "user"))
        table = np.array(events, np.int64)
        writer.append("events", 0, time=table[:, 0], kind=table[:, 1].astype("u1"), region=table[:, 2])
        others = np.array([(0, IN, MAIN), (10, IN, SEND), (20, OUT, SEND), (50, OUT, MAIN)])
        for rank in range(1, ranks):
            time, kind, region = others.T
            writer.append("events", rank, time=time, kind=kind.astype("u1"), region=region)
        if messages:
            n = len(messages)
            writer.append(
                "messages",
                0,
                time=np.array(messages, np.int64),
                kind=np.full(n, MessageKind.SEND, np.uint8),
                peer=np.full(n, -1, np.int32),
                communicator=np.zeros(n, np.uint32),
                tag=np.zeros(n, np.int64),
                bytes=np.zeros(n, np.int64),
                request=np.zeros(n, np.uint64),
            )
        writer.text("Barrier")
        for rank, count in enumerate(barriers):
            columns = {name: np.zeros(count, dtype) for name, dtype in TABLES["collectives"].items()}
            within = dict.fromkeys(("begin", "end"), np.full(count, 15, np.int64))
            writer.append("collectives", rank, **columns | within)
        writer.complete()
        judge(writer, writer.report, Progress())
        if activities is not None:
            activities += [region.activity for region in writer.regions]
        return {finding.name: finding.severity for finding in writer.report}


MAIN, SEND, RECV, HELPER = range(4)
IN, OUT = 0, 1


def test_calls_that_break_the_nesting(tmp_path: Path) -> None:
    sound = [(0, IN, MAIN), (10, IN, SEND), (20, OUT, SEND), (30, IN, RECV), (40, OUT, RECV), (50, OUT, MAIN)]
    assert made(tmp_path, sound) == {}
    crossed = [*sound[:3], (30, IN, RECV), (40, OUT, MAIN), (50, OUT, RECV)]
    assert made(tmp_path, crossed) == {"broken nesting: crossed": "loss"}
    loose = [*sound[:3], (25, OUT, HELPER), *sound[3:]]
    assert made(tmp_path, loose) == {}  # recording may have begun inside of a region
    assert made(tmp_path, loose, ranks=3) == {"broken nesting: loose": "loss"}
    assert "broken nesting: stray" in made(tmp_path, [*sound[:4], (40, OUT, SEND), *sound[4:]])
    assert "broken nesting: unclosed" in made(tmp_path, [*sound[:2], *sound[3:]])
    assert made(tmp_path, sound[:5], ranks=3) == {"broken nesting: open": "loss"}
    assert made(tmp_path, sound[:5], ranks=2) == {}  # as many are whole
    # A program may end inside of its last call, and user regions may overlap.
    assert made(tmp_path, sound[:4], ranks=3) == {}
    assert made(tmp_path, sound[:4]) == {}
    overlapping = [(0, IN, MAIN), (10, IN, HELPER), (20, OUT, MAIN), (30, OUT, HELPER)]
    assert made(tmp_path, overlapping) == {}


def test_functions_around_calls_stay_what_they_are(tmp_path: Path) -> None:
    """Records lie in the innermost call; where they lie in a function, it is a call of MPI."""
    events = [(0, IN, MAIN), (10, IN, SEND), (20, OUT, SEND), (30, OUT, MAIN)]
    assert made(tmp_path, events, [10, 15, 20]) == {}
    odd = [*events[:3], (22, IN, HELPER), (28, OUT, HELPER), events[3]]
    found: list[Activity | None] = []
    assert made(tmp_path, odd, [15, 25], activities=found) == {"regions with messages": "loss"}
    assert found[HELPER] is Activity.OVERHEAD, "nothing is received in it"
    often = [*events[:3], *((t, t % 2, HELPER) for t in range(22, 28)), events[3]]
    assert made(tmp_path, often, [15, 22]) == {}, "most of its calls have none"
    # Where the tracer records no calls at all, functions are what they are.
    bare = [(0, IN, MAIN), (22, IN, HELPER), (28, OUT, HELPER), (30, OUT, MAIN)]
    assert made(tmp_path, bare, [25]) == {}


def test_calls_within_calls_are_a_habit_or_damage(tmp_path: Path) -> None:
    pairs = [((10 * k, IN, SEND), (10 * k + 5, OUT, SEND)) for k in range(60)]
    plain = [event for pair in pairs for event in pair]
    within = [
        (t, kind, r) for a, b in pairs for t, kind, r in (a, (a[0] + 1, IN, RECV), (a[0] + 2, OUT, RECV), b)
    ]
    assert made(tmp_path, within) == made(tmp_path, plain) == {}
    assert made(tmp_path, [*plain, *((600 + t, kind, r) for t, kind, r in within[:4])]) == {
        "broken nesting: inner": "loss"
    }


def test_collectives_that_others_have(tmp_path: Path) -> None:
    sound = [(0, IN, MAIN), (10, IN, SEND), (20, OUT, SEND), (50, OUT, MAIN)]
    assert made(tmp_path, sound, ranks=2, barriers=(3, 3)) == {}
    assert made(tmp_path, sound, ranks=2, barriers=(2, 3)) == {"unequal collectives": "loss"}
    assert made(tmp_path, sound[:2], ranks=2, barriers=(2, 3)) == {}, "it died"


def test_a_last_time_far_behind_all_others(tmp_path: Path) -> None:
    """So far that no run can be that long: ten times what all others say, and what comes before it."""
    sound = [(0, IN, MAIN), (10, IN, HELPER), (20, OUT, HELPER)]
    told = {"far time": "loss"}
    assert made(tmp_path, [*sound, (550, OUT, MAIN)], ranks=2) == {}
    assert made(tmp_path, [*sound, (551, OUT, MAIN)], ranks=2) == told
    # It may be that of several events; a location that was there in between went on.
    assert made(tmp_path, [*sound[:2], (551, OUT, HELPER), (551, OUT, MAIN)], ranks=2) == told
    assert made(tmp_path, [*sound, (100, IN, HELPER), (110, OUT, HELPER), (551, OUT, MAIN)], ranks=2) == {}
    assert made(tmp_path, [*sound, (551, OUT, MAIN)]) == {}, "nobody else says how long the run was"
    lines = (DATA / "picl/v2-ncptl-butterfly8.trf").read_text().splitlines(keepends=True)
    for time, wrong in (("0.0041", False), ("0.0043", True)):  # of a run of 0.00038 s
        picl = tmp_path / f"{time}.trf"
        picl.write_text("".join([*lines[:-1], lines[-1].replace("0.000380", time)]))
        assert ("far time" in findings(picl, tmp_path)) == wrong


def test_after_a_cut_nothing_is_known(tmp_path: Path) -> None:
    """Of a location whose events end early, all up to the end of the run is in doubt."""
    with open_trace(unpack("damaged_a_evt_truncated_half", tmp_path), output=tmp_path / "cut.h5") as store:
        (cut,) = (at for at in store.locations if at.damage)
        assert cut.last is not None
        ends = [at.clock(store.repair).common(at.last) for at in store.locations if at.last is not None]
        lost = doubt(store)
        assert lost is not None and lost.seconds is not None
        missing = max(ends) - cut.clock(store.repair).common(cut.last)
        assert lost.seconds >= missing / store.ticks_per_second > 0.1


def test_ticks_that_are_nearly_a_power_of_ten() -> None:
    """A changed digit, a changed byte, others for the last bytes; a clock of 1 GHz may be off by 0.5 %."""
    odd = (10**9 + 8, 10**9 + 2, 989_855_744, 0x3B010109, 0x3B9AC200, 0x3F9ACA00, 0x559ACA00)
    assert [hex(n) for n in odd if not nearly_round(n)] == []
    named = (1000, 32_768, 19_200_000, 24 * 10**6, 31_250_000, 512 * 10**6, 9_192_000, 1_000_032_000, 1 << 30)
    measured = (2_399_998_123, 997_501_371, 999_999_937, 1_000_000_123, 0x3F9BCA00, 1_193_182, 1024, 60, 1)
    tens = [10**power for power in range(13)]
    assert [n for n in (*named, *measured, *tens) if nearly_round(n)] == []


# ---------------------------------------------------------------- where it is said


def test_the_doubt_stands_at_every_curve(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = unpack("damaged_b_evt_missing", tmp_path)
    store = tmp_path / "store.h5"
    assert main(["import", str(folder), "-o", str(store), "--json"]) == 3
    seconds = json.loads(capsys.readouterr().out)["utilization"]["in_doubt_s"]
    assert seconds == pytest.approx(0.2872, rel=0.01)  # one location, the whole run
    for words in (["info"], ["phases", "-n", "2"], ["phases", "--max-n", "2"], ["stats"]):
        command = [words[0], str(store), *words[1:]]
        assert main([*command, "--json"]) == 3
        facts = json.loads(capsys.readouterr().out)
        assert facts.get("in_doubt_s", facts.get("utilization", {}).get("in_doubt_s")) == seconds
        assert main(command) == 3
        assert "processor-seconds (17 %) are in doubt" in capsys.readouterr().out


def test_nothing_is_in_doubt_of_a_whole_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(DATA / "picl/v1-fft16-upshot.trf", tmp_path)
    assert main(["phases", str(tmp_path / "v1-fft16-upshot.trf"), "-n", "2"]) == 0
    assert "doubt" not in capsys.readouterr().out


def test_the_report_says_it_at_the_figure(tmp_path: Path) -> None:
    folder = unpack("damaged_b_evt_missing", tmp_path)
    with open_trace(folder, output=tmp_path / "store.h5") as store:
        report = compose([Subject(store, "curve", n=2, model="constant")], Contents(statistics=False))
        lost = doubt(store)
    assert lost is not None
    assert lost.sentence in next(block.finding for block in report.pictures if block.figure == "curve")


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("cholesky_ring_16", b"\n9    Blocked", b"\n2    Blocked"),
        ("farm_6", b"\n7    Scheduling", b"\n2    Scheduling"),
        ("farm_6", b"\n10    Immediate Send", b"\n1    Immediate Send"),
        ("farm_6", b"\n3    Waiting a message", b"\n3    Running"),
        ("farm_6", b"\n1    Running\n", b"\n4    Running\n"),
        ("farm_6", b"\n0    Idle\n1    Running", b"\n0    Immediate Receive"),
    ],
)
def test_a_number_or_a_label_of_a_state_that_is_changed(
    name: str, old: bytes, new: bytes, trials: dict[str, Trial], tmp_path: Path
) -> None:
    """Read as the rest of the file and the numbers say."""
    sound, files = trials["paraver"].sound(name), sample("paraver", name)
    assert files[f"{name}.pcf"].count(old) == 1
    write(tmp_path, files | {f"{name}.pcf": files[f"{name}.pcf"].replace(old, new)})
    seen = damage.look("paraver", master("paraver", tmp_path, files), tmp_path / "store.h5")
    assert "notice labels contradict (1)" in seen.findings
    assert seen.mean == sound.mean and not seen.lossy


@pytest.mark.parametrize(
    ("kind", "case", "finding"),
    [
        # Half of the section lies elsewhere, and the idle state has the label of another one.
        ("paraver", damage.Case("cholesky_ring_16", "cholesky_ring_16.pcf", "swap", 12754185), "labels lost"),
        # The end of a collective operation and an enter are exchanged.
        (
            "otf1",
            damage.Case("psort_8", "trace.1.events", "lines swapped", 2788948405),
            "collectives overlap",
        ),
        # A region "EZTrace finalize" becomes "EZTrac", which is a function of the program.
        ("otf2", damage.Case("ezt_psort_8_dilated", "eztrace_log.def", "zeros", 2337844866), "names cut off"),
    ],
    ids=lambda of: of if isinstance(of, str) else "",
)
def test_damages_that_once_changed_a_curve_in_silence(
    kind: str, case: damage.Case, finding: str, trials: dict[str, Trial]
) -> None:
    outcome = trials[kind].run(case)
    assert outcome.result == "loss" and finding in outcome.why


def test_nesting_followed_on_import_is_that_of_the_stored_events(tmp_path: Path) -> None:
    trace = unpack("ezt_cholesky_bcast_8_dilated", tmp_path)
    importer = importers.detect(trace)
    with StoreWriter(tmp_path / "made.h5", Source("made", "made"), importer, (NestingDigest,)) as writer:
        importer.read(trace, writer, Progress())
        writer.complete()
        (digest,) = writer.digests
        assert isinstance(digest, NestingDigest)
        regions = list(writer.regions)
        stored = dict(follow(writer, regions, Progress(), None))
        followed = dict(follow(writer, regions, Progress(), digest))
        assert stored.keys() == digest.walks(digest._speaks).keys()  # none was read again
        for i, walk in stored.items():
            times = np.concatenate([time for (time,) in writer.blocks("events", i, "time")])
            assert times[0] > 0 and walk.longest == times[-1] - times[0]
            assert (walk.last, walk.before) == (times[-1], times[times < times[-1]][-1])
            for name, value in vars(walk).items():
                if not name.startswith("_"):
                    assert np.array_equal(getattr(followed[i], name), value), name
        assert sum(int(walk.spoken.sum()) for walk in stored.values()) > 100
