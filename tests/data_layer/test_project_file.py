"""Project files: what is written is read, and what is not as declared is refused by the path of its key."""

from __future__ import annotations

import json
import math
import os
import re
import sys
import zipfile
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.core.labels import ACTIVITIES, MODELS
from desktop.data import project_file, structure
from desktop.data.events import Activity
from desktop.data.project_file import (
    SCHEMA,
    backup_of,
    is_bundle,
    is_project,
    pack,
    read,
    unpack_bundle,
    write,
)
from desktop.data.tables import Row, TableEdits
from desktop.data.utilization import Rules
from desktop.errors import ProjectError, TraceFormatError
from desktop.progress import Progress
from desktop.workbench.keeping import read_workspace
from desktop.workbench.model import (
    AXES,
    COLOURS,
    AnalysisSettings,
    Annotation,
    Comparison,
    KeptComparison,
    KeptExperiment,
    KeptRun,
    KeptTable,
    Matched,
    ModelSettings,
    NamedView,
    PhaseSettings,
    Project,
    SetAside,
    TraceId,
    View,
    Workspace,
    contradict,
)

KEPT = Path(__file__).parent.parent / "data" / "projects" / f"schema{SCHEMA}.phasewright"
FIRST = KEPT.with_name("schema1.phasewright")

text = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(
    ["<b>", "\x00\n", "\udcff", "Größe"]
)
time = st.floats(-1e9, 1e9)
times = st.lists(time, max_size=4, unique=True).map(sorted).map(tuple)
spans = st.tuples(time, time).map(sorted).map(tuple) | st.none()


@st.composite
def asked_phases(draw: st.DrawFn) -> PhaseSettings:
    breaks = draw(times.filter(lambda t: len(t) > 1) | st.none())
    degrees = None
    if breaks is not None and draw(st.booleans()):
        degrees = tuple(draw(st.integers(-1, 2)) for _ in breaks[1:])
    return PhaseSettings(
        draw(st.sampled_from(list(MODELS))), draw(st.integers(1, 999)), draw(times), breaks, degrees
    )


phases = asked_phases()
views = st.builds(
    View, spans, st.integers(0, 99) | st.none(), st.frozensets(st.sampled_from(list(ACTIVITIES))), spans, text
)
activities = st.sampled_from(list(Activity))
rules = st.builds(
    Rules,
    st.dictionaries(text, activities, max_size=3),
    st.frozensets(activities, min_size=1),
    st.booleans() | st.none(),
)


@st.composite
def annotations(draw: st.DrawFn) -> Annotation:
    start = draw(time)
    end = draw(st.none() | st.floats(0, 1e6).map(lambda length: start + length))
    return Annotation(
        start, draw(text), end, draw(st.integers(0, COLOURS - 1)), draw(st.integers(0, 9) | st.none())
    )


named = st.builds(NamedView, st.integers(1, 9), text, views)
limits = spans.filter(lambda span: span is None or span[0] < span[1])
aside = st.none() | phases.map(lambda p: SetAside(p.locked, p.breaks, p.degrees))
limited = limits.flatmap(lambda span: st.tuples(st.just(span), st.none() if span is None else aside))
projects = st.builds(
    lambda held, views, limit: replace(held, views=views, limit=limit[0], aside=limit[1]),
    st.builds(
        Project,
        phases,
        rules | st.none(),
        views,
        st.lists(annotations(), max_size=3).map(tuple),
        names=st.dictionaries(text, text, max_size=2),
    ),
    st.lists(named, max_size=3, unique_by=lambda kept: kept.number).map(tuple),
    limited,
)
named_text = st.dictionaries(text, text, max_size=2)
pairs = st.lists(st.tuples(text, text), max_size=2).map(tuple)
terms = st.sets(st.integers(0, 9), min_size=1, max_size=3).map(sorted).map(tuple)
analyses = st.builds(
    AnalysisSettings,
    st.none() | text,
    st.sampled_from([None, "lenth"]),
    st.sampled_from(["t", "2"]),
    st.booleans(),
    st.booleans(),
    st.none() | st.lists(terms, min_size=1, max_size=3).map(tuple),
)
models = st.builds(
    ModelSettings,
    st.lists(st.sampled_from(["1/p", "log(p)/p", "p^0.5"]), min_size=1, max_size=2).map(tuple),
    st.booleans(),
    text,
    st.none() | text,
    st.sampled_from(["points", "median"]),
)
values = st.none() | st.dictionaries(text, time, max_size=2)
edits = st.builds(
    TableEdits,
    named_text,
    values,
    values,
    named_text,
    st.lists(st.tuples(st.integers(0, 99), text), max_size=2).map(tuple),
    st.lists(st.builds(Row, st.integers(1, 9), text, text, time), max_size=2).map(tuple),
)
some = st.integers(-1, 4)
matches = st.builds(
    Matched,
    text,
    text,
    st.just(5),
    st.just(5),
    st.lists(st.tuples(some, some), max_size=3).filter(lambda pairs: not contradict(pairs)).map(tuple),
)
comparisons = st.builds(
    Comparison, text, st.frozensets(text, max_size=3), st.sampled_from(AXES), st.booleans(), st.booleans(),
    st.booleans(), st.lists(matches, max_size=2).map(tuple),
)  # fmt: skip
names = st.text("abc -é", min_size=1, max_size=9).map(str.strip).filter(bool)
places = st.lists(names, min_size=1, max_size=3)


@st.composite
def workspaces(draw: st.DrawFn, folder: Path) -> Workspace:
    """Traces beside, below and above the project."""

    def path() -> Path:
        up = draw(st.integers(0, 2))
        return Path(os.path.normpath(folder.joinpath(*[".."] * up, *draw(places))))

    runs = tuple(
        KeptRun(TraceId(path(), draw(text), draw(st.integers(0, 2**60)), draw(text), "otf2", "1"), kept)
        for kept in draw(st.lists(projects, max_size=3))
    )
    shown = draw(st.integers(0, max(len(runs) - 1, 0)))
    compared = st.builds(KeptComparison, st.builds(path), st.floats(0, 1e9), st.floats(0, 1e9))
    experiments = st.builds(
        KeptExperiment,
        st.builds(path),
        text,
        analyses,
        pairs,
        pairs,
        st.lists(compared, max_size=2).map(tuple),
        st.none() | st.builds(path),
    )
    tables = st.builds(
        KeptTable, st.none() | st.builds(path), text, text, named_text, named_text, st.none() | edits,
        st.none() | models,
    )  # fmt: skip
    return Workspace(
        runs,
        tuple(draw(st.lists(experiments, max_size=2))),
        tuple(draw(st.lists(tables, max_size=2))),
        shown,
        draw(comparisons),
    )


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_what_is_written_is_read(data: st.DataObject) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name) / "one" / "two"
        folder.mkdir(parents=True)
        workspace = data.draw(workspaces(folder))
        file = folder / "p.phasewright"
        write(file, workspace)
        assert is_project(file)
        assert read_workspace(file) == workspace
        content = json.loads(file.read_text())
        assert content["schema"] == project_file.SCHEMA and list(content) == sorted(content)
        for run in content["tree"]["runs"]:
            assert not os.path.isabs(run["trace"]["path"])


any_number = st.floats() | st.sampled_from([1e300, -1e300, 9.99e299, 1e308, 5e-324, -0.0])
of_an_annotation = st.builds(
    Annotation, any_number, text, st.none() | any_number.filter(lambda end: end >= 0)
).filter(lambda note: note.problem() == "")  # fmt: skip


def floats_in(tree: Any) -> Iterator[float]:
    """Numbers of a tree, but for those that are none where a field has none at first."""
    if is_dataclass(tree):
        for f in fields(tree):
            value = getattr(tree, f.name)
            if not (isinstance(value, float) and math.isnan(value) and repr(f.default) == "nan"):
                yield from floats_in(value)
    elif isinstance(tree, tuple | dict):
        for item in tree.values() if isinstance(tree, dict) else tree:
            yield from floats_in(item)
    elif isinstance(tree, float):
        yield tree


def _told(workspace: Workspace) -> str:
    """Its text; sets have no order."""
    return re.sub(r"frozenset\(\{([^}]*)\}\)", lambda m: str(sorted(m[1].split(", "))), repr(workspace))


@settings(deadline=None, max_examples=150)
@given(
    st.lists(of_an_annotation, max_size=2).map(tuple),
    st.builds(KeptComparison, st.just(Path("/a/b.csv")), any_number, any_number),
    st.dictionaries(text, any_number, max_size=2).map(lambda work: dict(sorted(work.items()))),
    st.builds(Row, st.just(1), text, text, any_number, any_number, any_number, any_number),
)
def test_what_is_saved_opens_equal_and_what_would_not_is_refused(
    notes: tuple[Annotation, ...], compared: KeptComparison, work: dict[str, float], row: Row
) -> None:
    run = KeptRun(TraceId(Path("/a/t"), "t", 5, "ab", "otf2", "1"), Project(annotations=notes))
    tables = (KeptTable(edits=TableEdits(work=work, added=(row,))),)
    workspace = Workspace((run,), (KeptExperiment(Path("/a/e"), compared=(compared,)),), tables)
    with TemporaryDirectory() as name:
        file = Path(name) / "p.phasewright"
        write(file, Workspace())
        before = file.read_bytes()
        try:
            write(file, workspace)
        except ProjectError as error:
            assert not all(abs(x) < structure.LARGEST for x in floats_in(workspace))
            assert ": tree." in str(error) and "change it there" in str(error)
            assert file.read_bytes() == before and list(Path(name).iterdir()) == [file]
        else:
            # Texts, as NaN is not equal to itself and -0.0 is to 0.0.
            assert _told(read_workspace(file)) == _told(workspace)


def test_a_folder_may_move_as_a_whole(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    kept = KeptRun(TraceId(here / "traces" / "run.otf2", "run.otf2", 5, "ab", "otf2", "1"))
    write(here / "p.phasewright", Workspace((kept,)))
    here.rename(there)
    (run,) = read_workspace(there / "p.phasewright").runs
    assert run.trace.path == there / "traces" / "run.otf2"


def test_the_version_before_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "p.phasewright"
    for n in (1, 2, 3):
        write(file, Workspace(tables=(KeptTable(tmp_path / str(n)),)))
    assert read_workspace(file).tables == (KeptTable(tmp_path / "3"),)
    assert read_workspace(backup_of(file)).tables == (KeptTable(tmp_path / "2"),)
    assert sorted(tmp_path.iterdir()) == [file, backup_of(file)]


def changed(content: dict[str, Any], place: str, value: Any) -> dict[str, Any]:
    at: Any = content
    *way, last = [int(key) if key.isdigit() else key for key in place.split(".")]
    for key in way:
        at = at[key]
    at[last] = value
    return content


RUN = "tree.runs.0.project"
WRONG: list[tuple[str, Any, str]] = [
    (f"{RUN}.colour", 1, "tree.runs[0].project.colour is not known"),
    ("tree.macros", [], "tree.macros is not known"),
    ("extra", 1, "extra is not known"),
    (f"{RUN}.phases.n", "many", 'tree.runs[0].project.phases.n is "many", it must be a whole number'),
    (f"{RUN}.phases.n", True, "tree.runs[0].project.phases.n is true"),
    (f"{RUN}.phases.n", 0, "tree.runs[0].project.phases: n is 0"),
    (f"{RUN}.phases.model", "cubic", "model is cubic, allowed are constant"),
    (f"{RUN}.phases.locked", [2, 1], "locked are not in order"),
    (f"{RUN}.view.selection", [1], "tree.runs[0].project.view.selection is [1], it must be a list of 2"),
    (f"{RUN}.view.selection", [3, 1], "a range ends before it begins"),
    (f"{RUN}.rules.overrides.MPI_Send", "sleeping", "allowed are computing, overhead"),
    ("tree.comparison", {"axis": "log"}, "tree.comparison: axis is log, allowed are absolute"),
    (
        "tree.comparison",
        {"matched": [{"reference": "a", "run": "b", "of": 2, "phases": 2, "pairs": [[0, 2]]}]},
        "tree.comparison.matched[0]: a pair names a phase that is not there",
    ),
    (
        "tree.comparison",
        {"matched": [{"reference": "a", "run": "b", "of": 2, "phases": 2, "pairs": [[0, 1], [1, 0]]}]},
        "tree.comparison.matched[0]: two pairs contradict each other",
    ),
    # A stranger's address, to which the reading of the trace would be given.
    ("tree.runs.0.trace.options", {"scheduler": "tcp://example.org:8786"}, "are the user's to say"),
    ("tree.runs.0.trace.options", {"workers": 10_000}, "are the user's to say"),
    (f"{RUN}.annotations.0.colour", 99, "tree.runs[0].project.annotations[0]: colour is 99"),
    (f"{RUN}.annotations.0.start_s", 1e301, "start_s is 1e+301, it must be a number"),
    (f"{RUN}.views.0.number", 10, "tree.runs[0].project.views[0]: number is 10"),
    ("tree.runs.0.trace.path", "", 'tree.runs[0].trace.path is "", it must be a path'),
    ("tree.runs.0.trace", None, "tree.runs[0].trace is null, it must be an object"),
    ("tree.runs", {}, "tree.runs is {}, it must be a list"),
    ("tree.shown", 7, "tree: shown is 7"),
    ("tree", 3, "tree is 3, it must be an object"),
    ("schema", 99, f"newer version (schema 99, this version reads up to {SCHEMA}), update Phasewright"),
    ("tree.tables.0.settings.functions", ["__import__('os')"], "tree.tables[0].settings: "),
    ("tree.experiments.0.settings.terms", [[2, 1]], "terms are not sets of factors"),
    ("tree.experiments.0.settings.error", "guess", "allowed are replicates"),
    ("schema", "1", "no valid schema number"),
    ("format", "something", "is no phasewright project"),
]


@pytest.mark.parametrize(("place", "value", "sentence"), WRONG)
def test_what_is_not_as_declared_is_named(tmp_path: Path, place: str, value: Any, sentence: str) -> None:
    file = tmp_path / "p.phasewright"
    file.write_text(json.dumps(changed(json.loads(KEPT.read_text()), place, value)))
    with pytest.raises(ProjectError) as caught:
        read_workspace(file)
    assert sentence in str(caught.value) and str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


ODD: list[Any] = [
    *(None, True, 0, -1, 2**70, 1e308, -0.5, 10**400, "", "\0", "x", "../..", "\udcff"),
    *([], {}, [[]], [1, 2], ["computing"], {"a": 1}, [-1, None]),
]


def every_place(tree: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if way:
        yield way
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
        if isinstance(value, dict | list):
            yield from every_place(value, (*way, key))
        else:
            yield (*way, key)


@settings(deadline=None, max_examples=120)
@given(st.data())
def test_whatever_a_value_becomes_a_project_is_read_or_refused(data: st.DataObject) -> None:
    content = json.loads(data.draw(st.sampled_from([KEPT, FIRST])).read_text())
    for _ in range(data.draw(st.integers(1, 2))):
        *way, last = data.draw(st.sampled_from(list(every_place(content))))
        at = content
        for key in way:
            at = at[key]
        at[last] = deepcopy(data.draw(st.sampled_from(ODD)))  # it may be changed in turn
    with TemporaryDirectory() as folder:
        file = Path(folder) / "p.phasewright"
        file.write_text(json.dumps(content))
        try:
            found = read_workspace(file)
        except ProjectError:
            return
        write(file, found)
        assert read_workspace(file) == found


def test_no_depth_is_too_deep_to_be_refused(tmp_path: Path) -> None:
    file = tmp_path / "p.phasewright"
    head = json.dumps({"format": project_file.PROJECT, "schema": SCHEMA})[:-1]
    for depth in range(sys.getrecursionlimit() - 200, sys.getrecursionlimit() + 1):
        file.write_text(f'{head}, "tree": {{"shown": {"[" * depth}{"]" * depth}}}}}')
        with pytest.raises(ProjectError):
            read_workspace(file)


def test_all_problems_are_listed(tmp_path: Path) -> None:
    content = json.loads(KEPT.read_text())
    for place, value, _ in WRONG[:4] + WRONG[15:17]:
        changed(content, place, value)
    file = tmp_path / "p.phasewright"
    file.write_text(json.dumps(content))
    with pytest.raises(ProjectError, match=r"; and 3 more$") as caught:
        read_workspace(file)
    assert len(caught.value.problems) == 6


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"{", b"[" * 100_000, b"null", b'{"format": NaN}'])
def test_what_is_no_json_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "p.phasewright"
    file.write_bytes(content)
    with pytest.raises(ProjectError):
        read_workspace(file)
    with pytest.raises(ProjectError, match="No such file"):
        read_workspace(tmp_path / "missing.phasewright")


def test_the_kept_file_of_schema_1_is_read() -> None:
    (run, other) = read_workspace(FIRST).runs
    assert run.trace.path == KEPT.parent / "traces" / "run a.otf2" and other.trace.importer == "picl"
    assert run.project.phases == PhaseSettings("linear", 3, (0.5,), (0.0, 0.5, 1.25, 2.0))
    assert run.project.rules == Rules({"MPI_Send": Activity.OVERHEAD}, frozenset({Activity.COMPUTING}), False)
    first, second = run.project.annotations
    assert (first.text, first.end_s, second.location) == ("the farm starts", None, 3)
    assert run.project.views[0].view.span == (0.25, 1.5)
    assert run.project.names == {"f_1": "factorise"}


def test_the_kept_file_of_schema_3_is_read() -> None:
    run = read_workspace(KEPT.with_name("schema3.phasewright")).runs[0]
    assert run.project.phases == PhaseSettings("mixed", 3, (0.5,), (0.25, 0.5, 1.25, 1.5), (0, 2, -1))
    assert run.project.limit == (0.25, 1.5)
    assert run.project.aside == SetAside((0.125,), (0.0, 0.125, 0.5, 1.25, 2.0), (0, 0, 2, -1))


def test_older_files_go_through_every_migration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True)
    class Tree:
        counts: tuple[int, ...]

    def two(content: dict[str, Any]) -> dict[str, Any]:
        return content | {"schema": 2, "tree": {"count": content["tree"]["number"]}}

    def three(content: dict[str, Any]) -> dict[str, Any]:
        return content | {"schema": 3, "tree": {"counts": [content["tree"]["count"]]}}

    file = tmp_path / "p.phasewright"
    file.write_text(json.dumps({"format": project_file.PROJECT, "schema": 1, "tree": {"number": 4}}))
    monkeypatch.setattr(project_file, "SCHEMA", 3)
    monkeypatch.setattr(project_file, "MIGRATIONS", {1: two, 2: three})
    assert read(file, Tree, {"Tree": Tree}) == Tree((4,))


def test_every_older_schema_has_a_migration_and_a_kept_file() -> None:
    assert sorted(project_file.MIGRATIONS) == list(range(1, project_file.SCHEMA))
    for schema in range(1, project_file.SCHEMA + 1):
        read_workspace(KEPT.with_name(f"schema{schema}.phasewright"))


def test_a_bundle_is_unpacked_as_it_was_packed(tmp_path: Path) -> None:
    work, out = tmp_path / "work", tmp_path / "out"
    for folder in (work, out):
        folder.mkdir()
    data = work / "some.h5"
    data.write_bytes(os.urandom(3 << 20))
    write(work / project_file.BUNDLED, Workspace(tables=(KeptTable(work / "stores" / "1.h5"),)))
    bundle = tmp_path / "b.zip"
    pack(bundle, work, {"stores/1.h5": data}, Progress())
    assert is_bundle(bundle) and not is_project(bundle)
    found = unpack_bundle(bundle, out, Progress())
    (table,) = read_workspace(found).tables
    assert table.path == out / "stores" / "1.h5" and table.path.read_bytes() == data.read_bytes()


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "stores/../../evil", "C:\\evil"])
def test_a_bundle_never_leads_out_of_its_folder(tmp_path: Path, name: str) -> None:
    bundle, out = tmp_path / "b.zip", tmp_path / "out" / "deep"
    out.mkdir(parents=True)
    with zipfile.ZipFile(bundle, "w") as packed:
        packed.writestr(project_file.BUNDLED, KEPT.read_bytes())
        packed.writestr(name, "x")
    with pytest.raises(TraceFormatError, match="leads out of its folder"):
        unpack_bundle(bundle, out, Progress())
    assert not list(tmp_path.rglob("evil"))


def test_other_zips_are_no_bundles(tmp_path: Path) -> None:
    other = tmp_path / "o.zip"
    with zipfile.ZipFile(other, "w") as packed:
        packed.writestr("traces.otf2", "x")
    (tmp_path / "t").write_text("PK")
    assert not any(is_bundle(path) for path in (other, tmp_path / "t", tmp_path / "missing", tmp_path))
    assert not is_project(tmp_path)


def test_what_is_looked_at_is_no_change() -> None:
    kept = Project(view=View(selection=(0.0, 1.0)))
    assert kept.without_view == Project() != replace(kept, names={"a": "b"}).without_view
