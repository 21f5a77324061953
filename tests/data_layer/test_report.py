"""Reports: what they say is what was measured, and no text of a trace gets out of its place."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from html import escape
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pptx import Presentation

from desktop import cli, resources
from desktop.core.charges import Charges
from desktop.core.contrast import Contrast, Phased, align, place
from desktop.core.curve import StepCurve
from desktop.core.labels import FIGURES, TABLES
from desktop.core.phase_stats import Firm, phase_table
from desktop.core.phases import fit, fit_breakpoints
from desktop.core.spaces import Basis
from desktop.core.units import percent, seconds
from desktop.data.events import Activity, EventKind, Importer, Location, Region
from desktop.data.material import Mark, Material, Subject, gather, tables
from desktop.data.report import (
    Contents,
    Picture,
    Points,
    Report,
    ReportTable,
    _rate_in_words,
    command_line,
    compose,
    to_html,
)
from desktop.data.root_causes import charges, costs
from desktop.data.slides import to_pptx
from desktop.data.statistics import Statistics
from desktop.data.store import Source, StoreWriter, TraceStore, open_store
from desktop.data.utilization import Rules, build, keep
from desktop.printing import as_csv, printable
from desktop.progress import Cancelled, Progress
from desktop.resources import samples
from tests.data_layer import archives
from tests.digests import PROFILE

MADE = Importer("made", "Made for tests", "1", lambda p, h: True, lambda p, s, g: None, lambda p: [p])
WHEN = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
# A picture of one pixel: what figures look like is for the tests of the window.
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b550000000a4944415478da63f80f00010101"
    "0018dd8db00000000049454e44ae426082"
)
# What may go wrong between a trace and a document: markup, entities, quotes, characters that XML forbids or
# that turn the direction of reading, formulas, and names as long as C++ makes them.
nasty = st.one_of(
    st.sampled_from(
        [
            "<script>alert(1)</script>",
            "</title></style></svg>]]>",
            '" onload="x" \'',
            "a\x00b\x1b[31m\x7f\x85",
            "\u202egnp.exe\u2066",
            "&lt;&#x3c;&amp",
            "\ufffe\uffff\ud800",
            "${version} $body %s {0}",
            '=HYPERLINK("http://x")',
            "std::vector<" * 60,
            "\n\t  \r\x0b_x0041_",
        ]
    ),
    st.text(max_size=30),
)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)


@contextmanager
def stored(regions: list[str], locations: list[str], source: str = "made") -> Iterator[TraceStore]:
    """A trace of 100 ticks in which each location enters every region in turn, rank k later than k-1."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "made.h5"
        with StoreWriter(path, Source("made", source, 4711, "ab" * 32), MADE, PROFILE) as writer:
            writer.describe(ticks_per_second=10.0)
            numbers = [writer.region(Region(name, "function")) for name in regions]
            for k, name in enumerate(locations):
                writer.location(Location(k, name, first=0, last=100))
            for k in range(len(locations)):
                begin = 5 * k + np.arange(len(numbers)) * (60 // len(numbers))
                time = np.stack([begin, begin + 3], axis=1).ravel()
                kind = np.tile([EventKind.ENTER, EventKind.LEAVE], len(numbers))
                writer.append("events", k, time=time, kind=kind, region=np.repeat(numbers, 2))
            writer.report.add("odd", "notice", f"Found {regions[0]}.", where=locations[0])
            writer.complete()
            keep(writer, Progress())
        with open_store(path) as store:
            yield store


class Seen(HTMLParser):
    """What a browser would make of a document."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def draw(picture: Picture) -> str:
    return f"<svg><title>{picture.number}</title></svg>"


@given(st.text())
@settings(deadline=None)
def test_printable_text_fits_into_xml_and_one_line(text: str) -> None:
    shown = printable(text)
    assert printable(shown) == shown and len(shown) <= 200 and "\n" not in shown
    root = ElementTree.fromstring(f"<a>{escape(shown)}</a>".encode())
    assert (root.text or "") == shown
    if text.isalnum() and len(text) <= 200:
        assert shown == text


@cache
def harmless() -> Seen:
    """The same report of a trace without tricks."""
    with stored(["solve"], ["one", "other"]) as store:
        rules = Rules({"solve": Activity.IDLE})
        subject = Subject(store, "run", rules, "constant", n=2, marks=(Mark(1.0, "m"),))
        seen = Seen()
        seen.feed(to_html(compose([subject], command="x", date=WHEN), draw))
    return seen


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(nasty, min_size=1, max_size=3, unique=True), nasty, nasty)
def test_no_text_of_a_trace_gets_out_of_its_place(regions: list[str], location: str, mark: str) -> None:
    stem = [name.encode("utf-8", "replace").decode() or "?" for name in regions]
    stem = list(dict.fromkeys(stem))
    place = location.encode("utf-8", "replace").decode()
    with stored(stem, [place, "other"], place or "?") as store:
        subject = Subject(
            store,
            mark,
            Rules({stem[0]: Activity.IDLE}),
            "constant",
            n=2,
            marks=(Mark(1.0, mark, where=place),),
        )
        command = command_line(place, subject, Contents())
        report = compose([subject], Contents(appendix=True), command=command, date=WHEN)
        on = f" on {place}" if place else ""
        assert (f"Annotation at 1 s{on}", mark) in cells(report, "Options").rows
        page = to_html(report, draw)
        deck = to_pptx(report, lambda picture: PIXEL)
    seen = Seen()
    seen.feed(page)
    plain = harmless()
    assert seen.tags <= plain.tags, "a name has become markup"
    assert seen.attributes <= plain.attributes, "a name has become an attribute"
    assert not set(page) & set(map(chr, range(32))) - {"\n"}
    words = " ".join(" ".join(seen.text).split())
    for name in (stem[0], mark):
        assert " ".join(printable(name)[:150].split()) in words
    texts = []
    for slide in Presentation(io.BytesIO(deck)).slides:
        for shape in slide.shapes:
            if shape.has_text_frame:
                texts.append(shape.text_frame.text)
            if shape.has_table:
                texts += [cell.text for row in shape.table.rows for cell in row.cells]
    assert any(printable(stem[0], 90) in text for text in texts)
    with zipfile.ZipFile(io.BytesIO(deck)) as archive:
        for member in archive.namelist():
            if member.endswith((".xml", ".rels")):
                ElementTree.fromstring(archive.read(member))


def cells(report: Report, title: str) -> ReportTable:
    return next(
        block
        for section in report.sections
        for block in section.blocks
        if isinstance(block, ReportTable) and block.title == title
    )


def points(report: Report, title: str) -> tuple[str, ...]:
    """The sentences of a section."""
    (section,) = [section for section in report.sections if section.title == title]
    return next(block.items for block in section.blocks if isinstance(block, Points))


def test_a_report_says_what_was_measured() -> None:
    with stored(["solve", "write"], [f"worker {k}" for k in range(4)], "run.trace") as store:
        subject = Subject(store, "A run", model="constant", n=3)
        report = compose([subject], date=WHEN)
        material, _ = gather(subject)
        assert [p.figure for p in report.pictures] == list(material.figures())
        assert [p.number for p in report.pictures] == list(range(1, len(report.pictures) + 1))
    found = fit(material.curve, 3, "constant")
    assert report.facts[0]["epsilon"] == pytest.approx(found.epsilon, rel=1e-9)
    assert report.facts[0]["breaks_s"] == pytest.approx(found.breaks, abs=1e-9)
    assert report.facts[0]["lower"] <= report.facts[0]["epsilon"] <= report.facts[0]["upper"]
    phases = cells(report, "Phases")
    assert len(phases.rows) == 3
    for row, told in zip(phase_table(material.curve, found), phases.rows, strict=True):
        assert float(told[1]) == pytest.approx(row.start_s, abs=1e-4)
        assert float(told[5]) == pytest.approx(row.mean, rel=1e-3)
        assert told[8] == f"{100 * row.efficiency:.1f} %"
    # A constant phase's formula is its level.
    assert [float(row[3]) for row in cells(report, "Formulas").rows] == pytest.approx(
        [row.coefficients[0] for row in phase_table(material.curve, found)], rel=1e-6
    )
    assert not cells(report, "Formulas").note
    identity = dict(cells(report, "Identity").rows)
    assert (identity["Name"], identity["Size"], identity["SHA-256"]) == ("run.trace", "4711 bytes", "ab" * 32)
    assert cells(report, "Import report").rows == (("notice", "1", "Found solve.", "worker 0"),)
    regions = cells(report, "Regions that take most time").rows
    assert {row[1] for row in regions} == {"solve", "write", "(no region)"}
    assert len(cells(report, "Efficiencies").rows) == 4


def test_intervals_over_other_runs_stand_in_the_report_of_one() -> None:
    known = Firm(1.5, 2.5, 0.94, 5, 5, "runs")
    with stored(["solve", "write"], [f"worker {k}" for k in range(4)]) as store:
        subject = Subject(store, "A run", model="constant", n=3, firm=(known, None))
        breaks = cells(compose([subject], date=WHEN), "Breakpoints")
        other = cells(compose([replace(subject, n=4)], date=WHEN), "Breakpoints")
    assert breaks.heads[-1] == "over repeats" and "median" in breaks.note
    assert [row[-1] for row in breaks.rows] == [known.words, "–"]
    assert "over repeats" not in other.heads, "they are those of other breakpoints"


def test_a_curve_has_a_report_without_what_only_events_tell(tmp_path: Path) -> None:
    file = tmp_path / "curve.csv"
    file.write_text("0,4\n1,2\n2,8\n3,0\n", encoding="utf-8")
    from desktop.data.opening import open_trace

    with open_trace(file) as store:
        report = compose([Subject(store, "curve", n=9, model="constant")], date=WHEN)
    note = report.pictures[0].material.fit.note
    assert "exactly" in note and points(report, "Summary")[-1] == note
    assert "timeline" not in [p.figure for p in report.pictures]
    assert "nothing else is known" in cells(report, "Efficiencies").note
    assert to_html(report, draw).count("<h2>") == len(report.sections)


def test_several_runs_are_numbered_on_and_wrong_contents_are_refused() -> None:
    with stored(["solve"], ["a", "b"]) as one, stored(["solve"], ["c"]) as other:
        subjects = [Subject(one, "first", n=2), Subject(other, "second", n=1)]
        report = compose(subjects, Contents(("curve", "epsilon"), statistics=False), date=WHEN)
        assert [p.number for p in report.pictures] == [1, 2, 3, 4]
        assert [s.title for s in report.sections if s.level == 1] == ["first", "second"]
        assert "What changed at each breakpoint" not in [s.title for s in report.sections]
        with pytest.raises(ValueError, match="no figure 'pie'"):
            compose(subjects, Contents(("pie",)))
        with pytest.raises(ValueError, match="no run"):
            compose([])
        with pytest.raises(ValueError, match="0 is fewer"):
            compose([Subject(one, "none", n=0)])


def test_breaks_over_the_runs_that_are_compared_have_their_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Firm(1.5, 2.5, 0.94, 5, 5, "runs")
    monkeypatch.setattr("desktop.data.report.over_runs", lambda *_: (known, None))
    with stored(["solve", "write"], [f"worker {k}" for k in range(4)]) as store:
        subjects = [Subject(store, name, model="constant", n=3) for name in ("first", "second")]
        contents = Contents(("comparison",), statistics=False)
        report = compose(
            subjects, contents, date=WHEN, compare=lambda runs: Contrast(found := align(runs), place(found))
        )
        breaks = gather(subjects[0])[0].fit.breaks
    rows = cells(report, "Breakpoints of first").rows
    assert rows == (("1", f"{breaks[1]:.9g}", known.words), ("2", f"{breaks[2]:.9g}", "–"))


def test_why_runs_differ_is_taken_from_why_each_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their time is charged once, and as it would be for a comparison alone."""
    made = []

    def counted(*arguments: Any) -> list[Charges]:
        made.append(charges(*arguments))
        return made[-1]

    compared: list[Phased] = []
    monkeypatch.setattr("desktop.data.root_causes.charges", counted)
    with stored(["solve", "write"], [f"worker {k}" for k in range(4)]) as store:
        subjects = [Subject(store, name, model="constant", n=3) for name in ("first", "second")]
        compose(subjects, compare=lambda runs: compared.extend(runs))
        assert len(made) == len(compared) == 2
        use = build(store, Rules())
        alone = costs(Statistics(store), use, use.curve().span)
    assert alone is not None and alone.times
    for run in compared:
        assert run.costs is not None and run.costs.times.keys() == alone.times.keys()
        for key, time in alone.times.items():
            assert run.costs.times[key] == pytest.approx(time)


def test_breaks_by_hand_and_locked_ones() -> None:
    with stored(["solve"], ["a", "b"]) as store:
        by_hand, _ = gather(Subject(store, "x", model="linear", breaks=(2.0, 7.0)))
        expected = fit_breakpoints(by_hand.curve, [0, 2.0, 7.0, 10.0], "linear")
        assert by_hand.fit.breaks.tolist() == expected.breaks.tolist()
        locked, _ = gather(Subject(store, "x", model="linear", n=4, locked=(3.0,)))
        assert 3.0 in locked.fit.breaks


@pytest.mark.parametrize(("model", "rate"), [("periodic", 2 * np.pi / 2.5), ("saturation", 1 / 2.5)])
def test_formulas_of_other_functions_can_be_evaluated(model: str, rate: float) -> None:
    """By what the report says alone: the letter in them is a number beside them."""
    with stored(["solve", "write"], [f"worker {k}" for k in range(4)]) as store:
        basis = Basis.of(model, 2.5)
        report = compose([Subject(store, "A run", model=model, n=2, basis=basis)], date=WHEN)
        material, _ = gather(Subject(store, "A run", model=model, n=2, basis=basis))
    found = fit(material.curve, 2, model, basis=basis)
    table = cells(report, "Formulas")
    letter, said = table.note.split(" = ")[0], float(table.note.split(" = ")[-1].split()[0])
    assert said == pytest.approx(rate, rel=1e-8) and table.note.endswith(" of 2.5000 s.")
    assert found.n == len(table.rows) == 2 and abs(found.powers).min(axis=0)[:3].all()
    for row in table.rows:
        t = (float(row[1]) + float(row[2])) / 2
        since, text = f"(t - {row[1]})", row[3].replace("−", "-")
        for name, call in (("cos", f"cos {letter}{since}"), ("sin", f"sin {letter}{since}")):
            text = text.replace(call, f"* {name}(rate * dt)")
        text = text.replace(f"exp(-{letter}{since})", "* exp(-rate * dt)").replace(since, "* dt")
        known = {"rate": said, "dt": t - float(row[1]), "cos": np.cos, "sin": np.sin, "exp": np.exp}
        assert eval(text, known) == pytest.approx(float(found.value(t)), rel=1e-5), text


def test_a_searched_time_constant_at_its_limit_is_said() -> None:
    t = np.linspace(0, 10, 801)
    slow = StepCurve(t, ((t[1:] + t[:-1]) / 20) ** 2 * 4, 4)  # a parabola settles nowhere
    found = fit(slow, 1, "saturation")
    assert _rate_in_words(found, True).endswith("the length of the run: none shorter fits better).")
    assert "limit" not in _rate_in_words(found, False), "it was given"


class Stopping(Progress):
    """Cancels itself after so many steps."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.left = steps

    def show(self, done: float, total: float, text: str) -> None:
        self.left -= 1
        if self.left < 0:
            self.cancel()


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_it_can_be_stopped(steps: int) -> None:
    with stored(["solve"], ["a", "b"]) as store, pytest.raises(Cancelled):
        compose([Subject(store, "x")], progress=Stopping(steps))


def test_the_data_behind_a_figure_comes_back_from_csv() -> None:
    with stored(["=1+1"], ["@sum", "b"]) as store:
        material, _ = gather(Subject(store, "x", n=2))
    rows = list(csv.DictReader(io.StringIO("".join(as_csv(tables(material, "curve")["curve"])))))
    assert [float(row["start_s"]) for row in rows] == (material.curve.edges[:-1] * 0.1).tolist()
    assert [float(row["processors"]) for row in rows] == material.curve.level.tolist()
    fits = list(csv.DictReader(io.StringIO("".join(as_csv(tables(material, "curve")["fit"])))))
    assert [float(row["end_s"]) for row in fits] == material.fit.breaks[1:].tolist()
    assert [[float(row[c]) for c in ("c0", "c1_per_s", "c2_per_s2")] for row in fits] == (
        material.fit.powers.tolist()
    )
    with stored(["solve", "write"], [f"worker {k}" for k in range(4)]) as store:
        varied = gather(Subject(store, "x", n=2))[0].curve
    for model, terms in (
        ("periodic", ("c0", "c1_per_s", "cosine", "sine", "period_s")),
        ("saturation", ("c0", "c1_per_s", "exponential", "time_constant_s")),
    ):
        own = replace(material, fit=fit(varied, 2, model, basis=Basis.of(model, 2.5)))
        fits = list(csv.DictReader(io.StringIO("".join(as_csv(tables(own, "curve")["fit"])))))
        assert list(fits[0])[6:-1] == list(terms)
        assert [[float(row[c]) for c in terms[:-1]] for row in fits] == (
            own.fit.powers[:, : len(terms) - 1].tolist()
        )
        assert [float(row[terms[-1]]) for row in fits] == pytest.approx([2.5, 2.5])
    bars = "".join(as_csv(tables(material, "timeline")["timeline"])).splitlines()
    assert bars[1].startswith("'@sum,"), "a spreadsheet would compute it"
    for figure in material.figures():
        assert tables(material, figure)


def test_a_timeline_covers_what_each_location_did() -> None:
    with stored(["solve"], ["a", "b"]) as store:
        material, _ = gather(Subject(store, "x", Rules({"solve": Activity.IO}), n=1))
    bars = material.bars
    assert bars is not None and bars.names == ("a", "b")
    k = bars.classes.index("io")
    assert (bars.ticks[:, :, k].sum(axis=1) * bars.unit).tolist() == pytest.approx([0.3, 0.3], rel=1e-12)


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = cli.run([str(word) for word in words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize("kind", ["html", "pdf", "pptx"])
def test_the_command_that_is_told_makes_the_same_bytes(
    kind: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1600000000")
    monkeypatch.chdir(tmp_path)
    trace = next(archives.unpack("ezt_farm_8_dilated", tmp_path).rglob("*.otf2"))
    words = (
        trace,
        "-o",
        f"one.{kind}",
        "--model",
        "linear",
        "--break",
        0.03,
        "--lock",
        0.03,
        "--title",
        "it's",
    )
    more = (
        "--classify",
        "MPI_Recv=overhead",
        "--computing",
        "computing,overhead",
        "--plots",
        "curve,epsilon",
    )
    code, out, err = run(capsys, "report", *words, *more, "--style", "patterns", "--json")
    assert (code, err) == (0, "")
    told: dict[str, Any] = json.loads(out)
    first = (tmp_path / f"one.{kind}").read_bytes()
    assert len(first) == told["size"] and [f["figure"] for f in told["figures"]] == ["curve", "epsilon"]
    (tmp_path / f"one.{kind}").unlink()
    assert run(capsys, *shlex.split(told["command"])[1:])[0] == 0
    assert (tmp_path / f"one.{kind}").read_bytes() == first
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert run(capsys, *shlex.split(told["command"])[1:])[0] == 0
    assert (tmp_path / f"one.{kind}").read_bytes() != first


def test_a_project_is_reported_run_by_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from desktop.data import project_file
    from desktop.workbench.model import (
        Annotation,
        Comparison,
        KeptRun,
        PhaseSettings,
        Project,
        ReportChoices,
        TraceId,
        Workspace,
        run_keys,
    )

    traces = [tmp_path / "one.csv", tmp_path / "two.csv"]
    traces[0].write_text("0,4\n1,2\n2,8\n3,0\n", encoding="utf-8")
    traces[1].write_text("0,1\n5,3\n6,0\n", encoding="utf-8")
    note = Annotation(0.5, "look <here>", 1.5)
    projects = [
        Project(PhaseSettings("constant", 3), annotations=(note,), names={"f_1": "solve <it>"}),
        Project(PhaseSettings("linear", 2, breaks=(0.0, 2.0, 6.0))),
    ]
    runs = tuple(
        KeptRun(TraceId(path, path.name, 0, "", "curve", "1"), project)
        for path, project in zip(traces, projects, strict=True)
    )
    place = tmp_path / "study.phasewright"
    project_file.write(place, Workspace(runs))
    out = tmp_path / "study.html"
    code, printed, err = run(capsys, "report", place, "-o", out, "--json")
    assert (code, err) == (0, "")
    told = json.loads(printed)
    assert [(r["title"], r["model"], r["n"]) for r in told["runs"]] == [
        ("one.csv", "constant", 3),
        ("two.csv", "linear", 2),
    ]
    assert told["runs"][1]["breaks_s"] == [0, 2, 6]
    page = out.read_text(encoding="utf-8")
    assert told["figures"][-1]["figure"] == "comparison"
    assert told["figures"][-1]["finding"] == (
        "two.csv takes 6 s on 3 processors, 3 s longer than one.csv on 8 (2 times)."
    )
    assert "Phases of the compared runs" in page
    assert "look &lt;here&gt;" in page and "look <here>" not in page
    assert "Region f_1" in page and "called solve &lt;it&gt;" in page
    code, _, err = run(capsys, "report", place, "-o", out, "-n", 3)
    assert code == 1 and "project sets" in err
    apart = Comparison(hidden=frozenset(run_keys(runs)[1:]))
    project_file.write(place, Workspace(runs, comparison=apart))
    code, printed, _ = run(capsys, "report", place, "-o", tmp_path / "apart.html", "--json")
    assert code == 0 and "comparison" not in {f["figure"] for f in json.loads(printed)["figures"]}
    kept = ReportChoices(style="grey", without=frozenset({"residual", "table options"}), statistics=False)
    project_file.write(
        place, Workspace((replace(runs[0], project=replace(projects[0], report=kept)), runs[1]))
    )
    code, printed, _ = run(capsys, "report", place, "-o", tmp_path / "kept.html", "--json")
    told = json.loads(printed)
    assert code == 0 and "residual" not in {f["figure"] for f in told["figures"]}
    assert "called solve" not in (tmp_path / "kept.html").read_text(encoding="utf-8")
    assert told["command"] == f"phasewright report {place} -o kept.html"
    words = ("--plots", "residual", "--tables", "options", "--style", "colour")
    code, printed, _ = run(capsys, "report", place, "-o", tmp_path / "other.html", "--json", *words)
    told = json.loads(printed)
    assert code == 0 and {f["figure"] for f in told["figures"]} == {"residual"}
    assert told["command"].endswith(shlex.join(words))
    (tmp_path / "moved").mkdir()
    traces[1] = traces[1].rename(tmp_path / "moved" / "two.csv")  # where all commands and the window look
    code, _, err = run(capsys, "report", place, "-o", tmp_path / "moved.html")
    assert (code, err) == (0, "")
    traces[1].unlink()
    code, _, err = run(capsys, "report", place, "-o", out)
    assert code == 1 and "two.csv is not at" in err
    assert out.read_text(encoding="utf-8") == page, "a report that cannot be made leaves the former"


def test_wrong_words_are_said_in_a_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    trace = tmp_path / "a.csv"
    trace.write_text("0,1\n1,0\n", encoding="utf-8")
    for words, sentence in (
        (("-o", tmp_path / "x.txt"), "use .html, .pdf or .pptx"),
        (("-o", tmp_path / "no" / "x.html"), "no such folder"),
        (("-o", tmp_path / "x.html", "--plots", "pie"), "choose of curve"),
        (("-o", tmp_path / "x.html", "--tables", "pie"), "choose of why"),
        (("-o", tmp_path / "x.html", "--classify", "solve"), "REGION=ACTIVITY"),
        (("-o", tmp_path / "x.html", "--classify", "a=b"), "no activity"),
        (("-o", tmp_path / "x.html", "--break", "0.5", "-n", "2"), "leave out -n"),
        (("-o", tmp_path / "x.html", "--break", "5"), "the breakpoint at 5 s is not inside"),
    ):
        code, out, err = run(capsys, "report", trace, *words)
        assert (code, out) == (1, "") and sentence in err and err.count("\n") == 1, err
    assert list(tmp_path.glob("x.*")) == []


def test_html_needs_nothing_but_itself(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "r.html"
    assert run(capsys, "report", samples()[0].path, "-o", out, "-n", 4)[0] == 0
    page = out.read_text(encoding="utf-8")
    seen = Seen()
    seen.feed(page)
    assert not seen.tags & {"script", "link", "img", "iframe", "object", "base", "form"}
    assert not seen.attributes & {"src", "href", "onload", "style"}
    assert page.count("http") == page.count('xmlns="http://www.w3.org/2000/svg"') + page.count("http-equiv")
    assert page.count("<svg") == 6
    ids = [
        word.split('"')[1]
        for word in page.split("<")[1:]
        if ' id="' in word
        for word in [word[word.index("id=") :]]
    ]
    assert len(ids) == len(set(ids)), "patterns of two figures share a name"


def test_material_without_sweep_or_timeline_has_fewer_figures() -> None:
    with stored(["solve"], ["a"]) as store:
        whole, _ = gather(Subject(store, "x", n=1))
    bare = Material("x", whole.curve, {"computing": whole.curve}, whole.fit, whole.rows)
    assert bare.figures() == ("curve", "residual", "phases")


def deck(report: Report, theme: Any = "light") -> Any:
    return Presentation(io.BytesIO(to_pptx(report, lambda picture: PIXEL, theme=theme)))


@pytest.fixture(scope="module")
def cholesky(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TraceStore]:
    from desktop.data.opening import open_trace

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        with open_trace(samples()[0].path) as store:
            yield store


@pytest.mark.parametrize("n", [1, 4, 20])
def test_a_story_has_eight_slides_and_each_a_title_in_its_place(cholesky: TraceStore, n: int) -> None:
    own = ((None, "What I\nsay") if n == 4 else (0.1, "<b>\u202e"),)
    subject = Subject(cholesky, "Cholesky", n=n, spoken=own, marks=(Mark(0.2, "halo"),))
    report = compose([subject], Contents(appendix=True), command="phasewright report x", date=WHEN)
    made = deck(report)
    notes = [
        slide.notes_slide.notes_text_frame.text for slide in list(made.slides)[:4] if slide.has_notes_slide
    ]
    assert len(notes) == 4, "what the speaker says of the run, the phases, the causes and what would help"
    assert (notes[0] == "What I\nsay") == (n == 4)
    assert ("<b>\ufffd" in notes[1]) == (n != 4) and ("halo" in notes[1]) == (n != 1)
    assert report.finding.rstrip(".") in notes[2]
    titles = [slide.shapes.title.text_frame.text for slide in made.slides]
    told = titles.index("Appendix")
    assert told == 1 + len(report.story) <= 8
    assert told == 8
    assert titles[1].startswith("7.72 of 16 processors compute on average"), "the curve comes first"
    assert titles[2] == report.finding, "then why time is lost"
    saved = re.search(r"the run would take .* less, [\d.]+\s% of its time\.$", titles[3])
    assert saved and titles[3].replace("\xa0", " ").startswith(report.story[2].block.rows[0][0]), (
        "then what would help most"
    )
    changes = [row[0] for row in report.story[2].block.rows]
    bounds = [text for text in changes if text.startswith("Bound: ")]
    assert 0 < len(bounds) < len(changes) and changes[-len(bounds) :] == bounds, (
        "what can be done comes first"
    )
    assert titles[0] == "Cholesky" and all(titles)
    assert report.finding in {shape.text_frame.text.split("\n")[0] for shape in made.slides[0].placeholders}
    for number, slide in enumerate(made.slides, 1):
        assert slide.slide_layout.name != "Blank"
        kinds = {shape.placeholder_format.type.name for shape in slide.placeholders}
        assert kinds & {"TITLE", "CENTER_TITLE"}
        assert number == 1 or "SLIDE_NUMBER" in kinds
        for shape in slide.shapes:
            described = next(shape._element.iter("{*}cNvPr")).get("descr", "")
            assert described or not (shape.shape_type == 13 or shape.has_table), "it has no alternative text"
            assert shape.top + shape.height <= made.slide_height
            assert shape.left + shape.width <= made.slide_width
            assert not shape.has_table or len(shape.table.rows) > 2 or n == 1
            cells = [cell for row in shape.table.rows for cell in row.cells] if shape.has_table else []
            sized = [run.font.size for cell in cells for p in cell.text_frame.paragraphs for run in p.runs]
            assert len(sized) == len(cells) and all(sized), "an empty cell would have the template's size"
    # Of many phases the longest are told, and what all others take together.
    (phases,) = [
        s.block for s in report.story if isinstance(s.block, ReportTable) and s.block.title == "Phases"
    ]
    assert (phases.rows[-1][0].endswith(" more"), len(phases.rows)) == ((True, 16) if n == 20 else (False, n))
    for column in (3, 7):
        assert sum(float(row[column].split()[0]) for row in phases.rows) == pytest.approx(100, abs=0.5)
    # What is told is not shown once more, and all else is there.
    every = [block for section in report.sections for block in section.blocks]
    pictures = sum(s.shape_type == 13 for slide in made.slides for s in slide.shapes)
    assert pictures == len([b for b in every if isinstance(b, Picture) and b.figure != "phases"])
    shown = {shape.name for slide in list(made.slides)[told:] for shape in slide.shapes if shape.has_table}
    assert shown == {block.title for block in every if isinstance(block, ReportTable)}


@pytest.mark.parametrize("n", [4, 20])
def test_rows_of_a_table_are_on_some_slide_and_none_alone(cholesky: TraceStore, n: int) -> None:
    report = compose([Subject(cholesky, "Cholesky", n=n)], Contents(appendix=True), date=WHEN)
    found: dict[str, list[list[tuple[str, ...]]]] = {}
    slides = list(deck(report, "dark").slides)
    appendix = next(k for k, slide in enumerate(slides) if slide.shapes.title.text_frame.text == "Appendix")
    for slide in slides[appendix:]:
        for shape in slide.shapes:
            if shape.has_table:
                rows = [tuple(" ".join(c.text.split()) for c in row.cells) for row in shape.table.rows]
                found.setdefault(shape.name, []).append(rows)
    for section in report.sections:
        for table in (block for block in section.blocks if isinstance(block, ReportTable)):
            heads = tuple(map(printable, table.heads))
            parts = found[table.title]
            assert all(part[0] == heads for part in parts), "headings are on every slide"
            expected = [tuple(printable(cell, 120) for cell in row) for row in table.rows]
            assert [row for part in parts for row in part[1:]] == expected
            assert len(parts) == 1 or min(map(len, parts)) > 2, f"a row of {table.title} stands alone"


def test_help_and_handbook_name_all_that_a_report_can_hold(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["report", "--help"]) == 0
    page = (resources.folder() / "docs" / "reports.md").read_text(encoding="utf-8")
    told = " ".join(capsys.readouterr().out.split())
    assert f"of {', '.join(FIGURES)}" in told and f"none, or of {', '.join(TABLES)}" in told
    chosen = page.partition("`--plots` and `--tables` choose")[2].partition(";")[0]
    assert re.findall(r"`(\w+)`", chosen) == list(TABLES)


def test_what_is_not_ticked_is_not_in_it(cholesky: TraceStore) -> None:
    subject = Subject(cholesky, "Cholesky", n=3)
    for key in TABLES:
        one = compose([subject], Contents(("curve",), False, (key,)), command="x", date=WHEN)
        blocks = [b for section in one.sections for b in section.blocks if not isinstance(b, Picture)]
        assert {block.part for block in blocks} <= {key}
        needs = {"efficiencies", "activities", "accounts", "delays", "loads", "regions", "changes"}
        needs |= {"comparison", "scaling", "model", "why", "helps"}
        assert blocks or key in needs
        if key in ("formulas", "options"):
            assert f"<h3>{TABLES[key]}" in to_html(one, draw) or f"<h2>{TABLES[key]}" in to_html(one, draw)
    assert len(deck(compose([subject], date=WHEN)).slides) == 8, "the story alone, unless more is asked for"
    with pytest.raises(ValueError, match="no table 'pie'"):
        compose([subject], Contents(tables=("pie",)))


@pytest.mark.parametrize(
    ("words", "appendix"),
    [
        ([], False),
        (["--appendix"], True),
        (["--tables", "phases"], True),
        (["--plots", "curve"], True),
        (["--tables", "phases", "--no-appendix"], False),
    ],
    ids=str,
)
def test_slides_are_the_story_and_more_where_it_is_asked_for(
    words: list[str], appendix: bool, cholesky: TraceStore, tmp_path: Path
) -> None:
    """By the command; the words that the deck gives for itself make it again."""
    out = tmp_path / "deck.pptx"
    command = ["report", str(cholesky.path), "-o", str(out), "-n", "2", "--no-statistics"]
    assert cli.run([*command, *words]) == 0
    titles = [slide.shapes.title.text_frame.text for slide in Presentation(str(out)).slides]
    assert ("Appendix" in titles) == appendix and (len(titles) <= 8) == (not appendix)
    contents = Contents(
        ("curve",) if "--plots" in words else tuple(FIGURES),
        False,
        ("phases",) if "--tables" in words else tuple(TABLES),
        appendix,
    )
    again = command_line(str(cholesky.path), Subject(cholesky, "x", n=2), contents, str(out))
    assert cli.run(shlex.split(again)[1:]) == 0
    assert [slide.shapes.title.text_frame.text for slide in Presentation(str(out)).slides] == titles


def test_no_number_of_a_page_is_broken_and_wide_tables_fit_on_paper(cholesky: TraceStore) -> None:
    """As printed by a browser at 10 pt, tables of twelve columns broke numbers and ran over the edge."""
    page = to_html(compose([Subject(cholesky, "x", n=2)], Contents(statistics=False), date=WHEN), draw)
    paper = page[page.index("@media print") :]
    assert float(re.findall(r"table {[^}]*font-size: ([\d.]+)pt", paper)[0]) <= 7
    numbers = page.index('td[align="right"] { overflow-wrap: break-word; }')
    assert numbers > page.index("overflow-wrap: anywhere"), "the later rule counts"


def test_a_story_of_several_runs_is_as_short(cholesky: TraceStore) -> None:
    subjects = [Subject(cholesky, f"run {k}", n=k) for k in range(1, 6)]
    report = compose(subjects, Contents(statistics=False), date=WHEN)
    assert len(report.story) == 7
    assert [sum(s.title.startswith(f"run {k}: ") for s in report.story) for k in range(1, 6)] == [
        2,
        2,
        1,
        1,
        1,
    ]


def test_the_regions_that_are_listed_and_the_rest_are_all(cholesky: TraceStore) -> None:
    report = compose([Subject(cholesky, "x", n=2)], date=WHEN)
    for name in ("Run", "Phase 1", "Phase 2"):
        rows = [row for row in cells(report, "Regions that take most time").rows if row[0] == name]
        assert sum(float(row[3].split()[0]) for row in rows) == pytest.approx(100, abs=1)
    # The sentences name what the numbers do.
    fit = report.pictures[0].material.fit
    use = build(cholesky)
    run, *phases = Statistics(cholesky).ranges([(0.0, fit.breaks[-1]), *pairwise(fit.breaks.tolist())], use)
    low = min((0, 1), key=lambda k: phases[k].parallel_efficiency)
    (limits,) = [slide.title for slide in report.story if "limits the run" in slide.title]
    assert f"; phase {low + 1} has the least, {percent(phases[low].parallel_efficiency)} (" in limits
    longest = int(np.argmax(np.diff(fit.breaks))) + 1
    assert any(slide.title.startswith(f"Phase {longest} is the longest: ") for slide in report.story)
    extent, curve, epsilon, timeline = points(report, "Summary")
    assert extent == f"The run takes {seconds(use.curve().duration)} on 16 processors."
    low = min((0, 1), key=lambda k: phases[k].computing)
    assert re.search(
        rf"phase {low + 1} is the least busy: [\d.]{{1,5}} processors for \d+ % of the time", curve
    ), curve
    suggested = report.pictures[0].material.suggestion
    assert epsilon == f"2 phases are shown; {suggested.n} would be suggested, as {suggested.reason}."
    most, least = (f"rank {int(f(run.utilization))}" for f in (np.argmax, np.argmin))
    assert re.search(f"{most} computes most, .* {least} least, ", timeline, re.IGNORECASE), timeline
