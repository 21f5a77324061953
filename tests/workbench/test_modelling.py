"""The factor model's bench and its results, without a window."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from desktop.core.factor_answers import PInterval, crossover_places, fastest_p, ratio_of_times
from desktop.core.factor_intervals import widths
from desktop.core.factor_model import Measurements, ModelFit, fit_joint
from desktop.data.tables import headings, holds_measurements, missing_roles
from desktop.data.trace_rows import Quantity, trace_rows
from desktop.progress import Progress
from desktop.resources import example_table, samples
from desktop.workbench import model_answers
from desktop.workbench import model_results as results
from desktop.workbench.model import DEFAULT_FUNCTIONS, KeptTable, ModelSettings
from desktop.workbench.modelling import ModelBench, ModelSnapshot
from tests.inline import Inline, Later

DATA = Path(__file__).parent.parent / "data" / "npb"
P = (1, 2, 4, 8, 16, 32, 64, 128)


@pytest.fixture
def bench() -> ModelBench:
    return ModelBench(executors={"fit": Inline(), "more": Inline()})


@pytest.fixture
def class_a(bench: ModelBench) -> ModelBench:
    """As the paper has it: t', 1/p + 1/sqrt(p)."""
    bench.open_record(KeptTable(example_table(), settings=ModelSettings()))
    return bench


def fit_of(bench: ModelBench) -> ModelFit:
    fit = bench.snapshot.fit
    assert fit is not None, bench.snapshot.problem
    return fit


def times(extra: str = "", rising: bool = False) -> str:
    """Two codes on two systems: 100/p on "one", the other twice as slow in 1/p and five times as fast in the
    second kind of work, which stays (or rises with p)."""
    lines = ["code,system,p,time"]
    for code, work in (("small", 1.0), ("large", 7.0)):
        for system, speed, second in (("one", 1.0, 1.0), ("two", 0.5, 5.0)):
            for p in P:
                time = work * (100.0 / p / speed + (0.01 * p if rising else 1.0) / second)
                lines.append(f"{code},{system},{p},{time!r}")
    return "\n".join(lines) + f"\n{extra}"


# --- opening ---


def test_the_bundled_example_is_the_constructed_table_and_says_so() -> None:
    with (DATA / "npb21_classA_surrogate.csv").open(newline="", encoding="utf-8") as file:
        constructed = list(csv.reader(file))
    text = example_table().read_text(encoding="utf-8")
    assert "CONSTRUCTED" in text.splitlines()[0]
    assert list(csv.reader(line for line in text.splitlines() if line[0] != "#")) == constructed


def test_opening_fits_at_once_to_the_digits_of_the_paper(class_a: ModelBench) -> None:
    shown = class_a.snapshot
    fit = fit_of(class_a)
    assert fit.sse == pytest.approx(130.2755, abs=1e-4)
    assert shown.project.settings.functions == DEFAULT_FUNCTIONS and shown.problem == ""
    test = widths(fit).form
    assert test is not None and test.f == pytest.approx(6.94, abs=0.005)
    assert shown.sheet is not None and len(shown.sheet) == 116
    assert shown.view.p == 256 and shown.cell == (0, 0)


def test_headings_that_say_nothing_are_asked_for(bench: ModelBench) -> None:
    text = times().replace("code,system,p,time", "what,where,how many,how long")
    bench.open(text)
    asked = bench.snapshot.unassigned
    assert asked is not None and set(asked.missing) == {"code", "system", "p", "time"}
    assert asked.headings == ("what", "where", "how many", "how long") and bench.snapshot.fit is None
    columns = dict(zip(("code", "system", "p", "time"), asked.headings, strict=True))
    bench.open(text, columns, {"time": "ms"})
    assert bench.snapshot.unassigned is None
    table = bench.snapshot.project.table
    assert table is not None and table.rows[0].time == pytest.approx(0.101)


def test_columns_can_be_assigned_anew(class_a: ModelBench) -> None:
    class_a.assign()
    asked = class_a.snapshot.unassigned
    assert asked is not None and asked.missing == () and asked.roles["t_prime"] == "t_prime"
    columns = {**asked.roles, "time": "time_s_by_eq11"}
    del columns["t_prime"]
    class_a.open(example_table(), columns)
    assert not fit_of(class_a).data.transformed


def test_what_cannot_be_read_leaves_what_is_open(class_a: ModelBench, tmp_path: Path) -> None:
    before = fit_of(class_a)
    class_a.open(tmp_path / "missing.csv")
    assert "missing.csv" in class_a.snapshot.problem and class_a.snapshot.fit is before
    class_a.open("code,system,p,time\na,b,1,no number\n")
    assert "no number" in class_a.snapshot.problem and class_a.snapshot.fit is before


@pytest.mark.parametrize(
    ("name", "text", "is_table"),
    [
        ("runs.csv", "Code;System;Cores;Elapsed [ms]\na;b;4;1,5\n", True),
        ("primes.tsv", "code\tmachine\tp\tt_prime\n", True),
        ("curve.csv", "time,busy\n0,1\n1,2\n", False),
        ("numbers.csv", "0 1\n1 2\n", False),
        ("trial.csv", "run,delay A,delay B,wall_s\n1,-,+,2.5\n", False),
        ("empty.csv", "", False),
        ("bytes.bin", "\0\1\2", False),
    ],
)
def test_tables_are_told_from_other_files_by_their_headings(
    tmp_path: Path, name: str, text: str, is_table: bool
) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert holds_measurements(path) is is_table


def test_a_spreadsheet_is_told_from_an_archive(tmp_path: Path) -> None:
    import zipfile

    from openpyxl import Workbook

    book = Workbook()
    book.active.append(["Code", "System", "p", "Time (s)"])
    book.active.append(["a", "b", 4, 1.5])
    book.save(tmp_path / "runs.xlsx")
    assert headings(tmp_path / "runs.xlsx") == ("Code", "System", "p", "Time (s)")
    assert holds_measurements(tmp_path / "runs.xlsx")
    with zipfile.ZipFile(tmp_path / "trace.zip", "w") as archive:
        archive.writestr("trace.otf2", "code,system,p,time")
    assert not holds_measurements(tmp_path / "trace.zip") and not holds_measurements(tmp_path)
    assert missing_roles(["code", "p", "t'"]) == ("system",)


# --- rows ---


def test_an_exclusion_refits_keeps_the_former_fit_and_is_undone(class_a: ModelBench) -> None:
    before = fit_of(class_a)
    line = class_a.snapshot.selection.lines[5] if class_a.snapshot.selection else 0
    class_a.exclude([line], "  ")
    assert class_a.history.undo_label is None, "without a reason nothing happens"
    class_a.exclude([line], "swapped")
    shown = class_a.snapshot
    assert (
        fit_of(class_a).n == 115
        and shown.previous is before
        and class_a.history.undo_label == f"exclude row {line}"
    )
    assert shown.sheet is not None and shown.sheet.muted == {5}
    assert "swapped" in list(shown.sheet.frame["reason"])
    class_a.undo()
    assert fit_of(class_a).sse == pytest.approx(before.sse, rel=1e-12)
    assert class_a.history.redo_label == f"exclude row {line}"
    class_a.redo()
    class_a.include([line])
    assert fit_of(class_a).n == 116 and class_a.history.undo_label == f"include row {line} again"


def test_without_any_row_nothing_of_the_former_fit_is_shown(class_a: ModelBench) -> None:
    table = class_a.snapshot.project.table
    assert table is not None
    class_a.exclude([row.line for row in table.rows], "all wrong")
    shown = class_a.snapshot
    assert shown.fit is None and "every row is excluded" in shown.problem
    assert shown.sheet is not None and len(shown.sheet) == 116, "the rows stay in sight, to be included again"
    class_a.undo()
    assert fit_of(class_a).n == 116 and class_a.snapshot.problem == ""


def test_picking_one_row_looks_at_its_cell(class_a: ModelBench) -> None:
    selection = class_a.snapshot.selection
    assert selection is not None
    k = int(np.flatnonzero((selection.data.code == 2) & (selection.data.system == 1))[0])
    class_a.pick([selection.lines[k]])
    assert class_a.snapshot.cell == (2, 1) and class_a.snapshot.view.lines == {selection.lines[k]}
    class_a.pick(selection.lines[:3])
    assert class_a.snapshot.cell == (2, 1) and len(class_a.snapshot.view.lines) == 3


def test_names_are_merged_only_when_asked(bench: ModelBench) -> None:
    bench.open(times("small,ONE,256,1.4\n"))
    table = bench.snapshot.project.table
    assert table is not None and table.similar == (("ONE", "one"),)
    assert fit_of(bench).data.systems == ("one", "two", "ONE")
    bench.merge_names(("ONE", "one"), "one")
    assert fit_of(bench).data.systems == ("one", "two") and bench.history.undo_label == "rename to one"


def test_peak_rates_are_added_and_what_cannot_is_said(bench: ModelBench, tmp_path: Path) -> None:
    bench.open(times())
    peaks = tmp_path / "peaks.csv"
    peaks.write_text("system,r_peak (Gflop/s)\none,2\ntwo,4\n", encoding="utf-8")
    bench.add_values(peaks, "peak")
    assert fit_of(bench).data.peak == pytest.approx([2e9, 4e9]) and bench.history.undo_label == "add peak"
    assert bench.snapshot.previous is None, "the fit before counted in other units"
    bench.add_values(tmp_path / "none.csv", "peak")
    assert "none.csv" in bench.snapshot.problem and fit_of(bench).data.peak is not None


# --- settings ---


def test_settings_are_steps_of_undo(class_a: ModelBench) -> None:
    reference = fit_of(class_a)
    class_a.set_functions(["1/p", "log2(p)/p"])
    assert fit_of(class_a).functions == ("1/p", "log2(p)/p")
    class_a.set_functions(["1/p", "import os"])
    assert "import os" in class_a.snapshot.problem and fit_of(class_a).functions == ("1/p", "log2(p)/p")
    class_a.undo()
    class_a.set_reference("SP")
    assert fit_of(class_a).sse == pytest.approx(reference.sse, rel=1e-9)
    assert fit_of(class_a).work[:, 2] == pytest.approx([1.0, 1.0])
    class_a.set_joint(False)
    assert fit_of(class_a).sse == pytest.approx(52.39, abs=0.005) and widths(fit_of(class_a)).form is None
    class_a.set_positive(True)
    class_a.set_response("log")
    class_a.set_repeats("median")
    assert class_a.history.undo_label == "join repeats"
    for _ in range(5):
        class_a.undo()
    assert class_a.history.undo_label is None and fit_of(class_a).sse == pytest.approx(
        reference.sse, rel=1e-12
    )


def test_own_functions_are_judged_in_a_sentence(bench: ModelBench) -> None:
    assert bench.check_function("p^0.75 + log2(p)") == ""
    for text in ("open('x')", "p +", "1/(p-2)"):
        assert bench.check_function(text)


def test_one_system_only_is_fitted_cell_by_cell(bench: ModelBench) -> None:
    bench.open("\n".join(line for line in times().splitlines() if ",two," not in line))
    assert fit_of(bench).kind == "individual"
    bench.set_joint(True)
    assert "only one system" in bench.snapshot.problem and bench.snapshot.fit is None


# --- more work ---


def test_all_pairs_in_the_order_of_table_4(class_a: ModelBench) -> None:
    class_a.rank()
    ranking = class_a.snapshot.ranking
    assert ranking is not None
    sheet = results.ranking_sheet(ranking)
    named = dict(zip(sheet.frame.iloc[:, 0], sheet.frame.iloc[:, 1], strict=True))
    assert list(sheet.frame.iloc[:, 0])[:3] == ["1/p + 1/sqrt(p)", "1/p + 1", "1/p + log(p)/p"]
    assert named["1/p + 1"] == pytest.approx(141.9980, abs=1e-4)
    class_a.set_functions(ranking.fits[1].functions)
    assert class_a.snapshot.ranking is ranking, "it does not depend on the pair that is chosen"
    class_a.set_response("log")
    assert class_a.snapshot.ranking is None


def test_the_best_of_every_cell_has_a_row_of_its_own(class_a: ModelBench) -> None:
    class_a.set_joint(False)
    class_a.rank()
    ranking = class_a.snapshot.ranking
    assert ranking is not None
    sheet = results.ranking_sheet(ranking)
    assert sheet.frame.iloc[-1, 0] == "best pair of every cell" and sheet.keys[-1] == -1
    assert sheet.frame.iloc[-1, 1] == pytest.approx(38.4, abs=0.05)
    assert sheet.frame.iloc[-1, 1] < min(fit.sse for fit in ranking.fits)


def test_leaving_cells_out_fills_the_map(class_a: ModelBench) -> None:
    class_a.leave_cells_out()
    assert len(class_a.snapshot.checks) == 16
    fit = fit_of(class_a)
    left = results.cell_values(fit, class_a.snapshot.checks, "left out")
    inside = results.cell_values(fit, (), "error")
    assert (left > 0).all() and np.median(left) > np.median(inside), "a prediction is worse than a fit"
    assert results.cell_values(fit, (), "points").sum() == 116
    assert results.cell_values(fit, (), "share").sum() == pytest.approx(100)


class _Slow(Inline):
    """Cancels the bench when the work begins, as a click on Cancel would."""

    def __init__(self) -> None:
        self.bench: ModelBench | None = None

    def submit(self, function):  # type: ignore[no-untyped-def]  # the protocol's own
        assert self.bench is not None
        self.bench.cancel()
        return super().submit(function)


def test_all_pairs_can_be_cancelled() -> None:
    slow = _Slow()
    bench = ModelBench(executors={"fit": Inline(), "more": slow})
    slow.bench = bench
    bench.open(example_table())
    bench.rank()
    shown: ModelSnapshot = bench.snapshot
    assert shown.ranking is None and shown.task is None and shown.fit is not None and shown.problem == ""


def test_results_of_a_former_fit_are_dropped() -> None:
    later = Later()
    bench = ModelBench(executors={"fit": Inline(), "more": later})
    bench.open(example_table())
    bench.leave_cells_out()
    assert bench.snapshot.task is not None
    bench.set_functions(["1/p", "1"])
    assert bench.snapshot.task is None, "what is not wanted any more is not shown as running"
    later.run()
    assert bench.snapshot.checks == ()
    bench.leave_cells_out()
    later.run()
    assert len(bench.snapshot.checks) == 16 and bench.snapshot.task is None


def test_traces_are_read_on_while_something_else_is_fitted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, curves: list[Path]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    later = Later()
    bench = ModelBench(executors={"fit": Inline(), "more": later})
    bench.open(times())
    bench.add_runs(curves, "small", "one", Quantity())
    bench.set_functions(["1/p", "1"])
    later.run()
    assert fit_of(bench).n == 34 and fit_of(bench).functions == ("1/p", "1")


def test_opening_can_be_cancelled(tmp_path: Path) -> None:
    later = Later()
    bench = ModelBench(executors={"fit": later, "more": Inline()})
    bench.open(example_table())
    later.run()
    before = fit_of(bench)
    bench.open(times())
    assert bench.snapshot.task is not None
    bench.cancel()
    later.run()
    assert bench.snapshot.fit is before and bench.snapshot.task is None
    bench.set_functions(["1/p"])
    bench.cancel()
    later.run()
    assert fit_of(bench).functions == ("1/p",), "a fit goes on"


# --- traces ---


@pytest.fixture
def curves(tmp_path: Path) -> list[Path]:
    """Two runs of two phases each, on 2 and 4 processors."""
    paths = []
    for p, first in ((2, 3.0), (4, 1.5)):
        path = tmp_path / f"run {p}.csv"
        path.write_text(f"0 {p}\n{first} 1\n{first + 1.0} 0\n", encoding="utf-8")
        paths.append(path)
    return paths


def test_traces_become_rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, curves: list[Path]) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    whole = trace_rows(curves, "mine", "here", Quantity(), Progress())
    assert [(row.p, row.time) for row in whole] == [(2, 4.0), (4, 2.5)]
    first = trace_rows(curves, "mine", "here", Quantity(1, 2))
    assert [row.time for row in first] == pytest.approx([3.0, 1.5])
    assert first[0].note == "phase 1 of 2 (constant)" and first[0].source == "run 2.csv"
    with pytest.raises(ValueError, match="no phase 3"):
        trace_rows(curves, "mine", "here", Quantity(3, 2))
    with pytest.raises(ValueError, match="name the code"):
        trace_rows(curves, " ", "here", Quantity())


def test_traces_are_added_to_the_table_or_make_one(
    bench: ModelBench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, curves: list[Path]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    bench.add_runs(curves, "mine", "here", Quantity())
    assert fit_of(bench).n == 2 and fit_of(bench).kind == "individual"
    bench.open(times())
    bench.add_runs(curves, "small", "one", Quantity())
    table = bench.snapshot.project.table
    assert table is not None and [row.line for row in table.rows[-2:]] == [34, 35]
    assert fit_of(bench).n == 34 and bench.history.undo_label == "add 2 rows"
    bench.open(example_table())
    bench.add_runs(curves, "BT", "IBM SP2", Quantity())
    assert "holds t'" in bench.snapshot.problem and fit_of(bench).n == 116


def test_a_real_trace_gives_its_processors_and_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (path,) = [sample.path for sample in samples() if "lu_8" in str(sample.path)]
    (row,) = trace_rows([path], "LU", "PICL", Quantity())
    assert row.p == 8 and row.time > 0 and row.reason == ""


# --- what is drawn ---


def test_speed_up_and_efficiency_refer_to_the_least_p(bench: ModelBench) -> None:
    bench.open(times())
    fit = fit_of(bench)
    time = results.cell_scaling(fit, 0, 1, "time", 512)
    for quantity, expected in (("speed-up", time.value[0] / time.value),
                               ("efficiency", time.value[0] / time.value / time.p)):  # fmt: skip
        found = results.cell_scaling(fit, 0, 1, quantity, 512)  # type: ignore[arg-type]  # names of the loop
        assert found.value == pytest.approx(expected)
        assert found.grid[-1] == 512 and found.measured == (1, 128)
        assert (found.low <= found.high).all()
    assert time.value == pytest.approx([100 / 0.5 / p + 1 / 5 for p in P], rel=1e-12)


@pytest.mark.parametrize("response", ["t'", "t", "log"])
def test_every_response_shows_the_same_times(bench: ModelBench, response: str) -> None:
    bench.open(times())
    bench.set_functions(["1/p", "1"])
    bench.set_response(response)
    fit = fit_of(bench)
    found = results.cell_scaling(fit, 1, 0, "time", 128)
    assert found.value == pytest.approx([700 / p + 7 for p in P], rel=1e-9)
    assert np.interp(P, found.grid, found.fitted) == pytest.approx(found.value, rel=1e-6)
    primes = results.cell_scaling(fit, 1, 0, "t'", 128)
    assert primes.value / primes.p == pytest.approx(found.value * (primes.value[0] / found.value[0]))


def test_rows_that_were_left_out_can_still_be_drawn(class_a: ModelBench) -> None:
    selection = class_a.snapshot.selection
    assert selection is not None
    whole = results.cell_scaling(fit_of(class_a), 0, 0, "time", 256)
    class_a.exclude([selection.lines[3]], "odd")
    shown = class_a.snapshot
    assert shown.selection is not None
    p, value, lines = results.left_out(fit_of(class_a), shown.selection, 0, 0, "time")
    assert (p[0], lines[0]) == (whole.p[3], selection.lines[3]) and value == pytest.approx([whole.value[3]])


def test_normal_scores_are_those_of_the_definition(class_a: ModelBench) -> None:
    from statistics import NormalDist

    fit = fit_of(class_a)
    x, y, at = results.normal_scores(fit)
    assert y == pytest.approx(np.sort(fit.studentized)) and fit.studentized[at] == pytest.approx(y)
    for i in (1, 40, 116):
        assert x[i - 1] == pytest.approx(NormalDist().inv_cdf((i - 0.375) / 116.25), abs=1e-9)


def test_shares_add_up(class_a: ModelBench) -> None:
    grid, percent, here = results.share_curves(fit_of(class_a), 1, 1, 1024.0)
    assert percent.sum(0) == pytest.approx(np.full(grid.size, 100.0)) and here.sum() == pytest.approx(100)
    assert grid[-1] == pytest.approx(1024) and here == pytest.approx(percent[:, -1])


# --- sheets and words ---


def test_the_sheet_says_what_the_fit_makes_of_a_row(bench: ModelBench) -> None:
    bench.open(times("small,one,256,9.9\n"))
    bench.set_functions(["1/p", "1"])
    bench.set_response("t'")
    shown = bench.snapshot
    assert shown.sheet is not None
    assert shown.sheet.frame is not None
    columns = {name: values.to_numpy() for name, values in shown.sheet.frame.items()}
    measured, fitted = columns["response"], columns["fitted"]
    assert shown.sheet.frame.attrs["units"]["fitted"] == "t'"
    assert columns["error"] == pytest.approx(100 * (measured - fitted) / measured)
    student = np.abs(columns["studentized"])
    assert int(np.nanargmax(student)) == 32 and 32 in shown.sheet.alarming, "the one wrong row stands out"
    assert columns["line"][32] == 34


def test_parameters_say_whether_they_are_zero(class_a: ModelBench) -> None:
    sheet = results.parameter_sheet(fit_of(class_a))
    rows = {
        (kind, of, function): (value, se, low, said)
        for kind, of, function, value, se, low, _, said in zip(
            *(sheet.frame[name] for name in sheet.frame.columns), strict=True
        )
    }
    assert rows["speed", "IBM SP2", "1/p"][3] == "fixed"
    value, se, low, said = rows["speed", "SGI PC-Array", "1/sqrt(p)"]
    assert (value, se) == pytest.approx((3.8788, 4.9151), abs=1e-3) and low < 0
    assert said == "not different from zero"
    assert rows["work", "SP", "1/sqrt(p)"][3] == "different from zero"
    class_a.set_joint(False)
    alone = results.parameter_sheet(fit_of(class_a))
    assert len(alone) == 32 and alone.frame.iloc[0, 1] == "BT on IBM SP2"


def test_correlations_are_symmetric_and_of_one_cell_where_there_are_many(class_a: ModelBench) -> None:
    sheet = results.correlation_sheet(fit_of(class_a), 0, 0)
    matrix = sheet.frame.iloc[:, 1:].to_numpy().T
    assert matrix.shape == (14, 14) and matrix == pytest.approx(matrix.T)
    assert np.diag(matrix) == pytest.approx(np.ones(14))
    lines = ["code,system,p,time"]
    rng = np.random.default_rng(3)
    for c in range(20):
        for s in range(15):
            lines += [f"c{c},s{s},{p},{100 / p + 1 + rng.random()}" for p in (1, 4, 16)]
    class_a.open("\n".join(lines))
    class_a.set_functions(DEFAULT_FUNCTIONS)
    few = results.correlation_sheet(fit_of(class_a), 3, 4)
    assert list(few.frame.iloc[:, 0]) == [
        "work c3, 1/p", "work c3, 1/sqrt(p)", "speed s4, 1/p", "speed s4, 1/sqrt(p)",
    ]  # fmt: skip
    class_a.set_joint(False)
    fit = fit_of(class_a)
    alone = results.correlation_sheet(fit, 3, 4)
    assert list(alone.frame.iloc[:, 0]) == ["delta c3 on s4, 1/p", "delta c3 on s4, 1/sqrt(p)"]
    at = [fit.parameters.index(("delta", i, 3 * 15 + 4)) for i in range(2)]
    sd = np.sqrt(np.diag(fit.covariance))
    whole = fit.covariance / np.outer(sd, sd)
    assert alone.frame.iloc[1, 1] == pytest.approx(whole[at[0], at[1]])
    assert np.count_nonzero(np.nan_to_num(whole)) == 4 * 300, "cells do not depend on each other"


def test_predictions_name_what_was_never_measured(bench: ModelBench) -> None:
    bench.open("\n".join(line for line in times().splitlines() if not line.startswith("large,two")))
    bench.set_functions(["1/p", "1"])
    sheet = results.prediction_sheet(fit_of(bench), 256.0)
    columns = sheet.frame
    assert columns["predicted"][3] == pytest.approx(7 * (200 / 256 + 0.2), rel=1e-6)
    assert columns["note"][3].startswith("never measured, and p is outside 1 to 128")
    assert columns["note"][0] == "outside the measured p, 1 to 128"
    at = results.prediction_sheet(fit_of(bench), 64.0)
    assert at.frame.iloc[0, 6] == pytest.approx(100 / 64 + 1) and at.frame.iloc[0, 7] == ""


def test_answers_name_the_right_p(bench: ModelBench) -> None:
    bench.open(times())
    bench.set_functions(["1/p", "1"])
    fit = fit_of(bench)
    # 100/p + 1 = 200/p + 1/5 at p = 125; half of 100/p + 1 is the second from p = 100 on
    assert [place.p for place in crossover_places(fit, 0, 0, 1)] == pytest.approx([125.0])
    told = [answer.text for answer in model_answers.answers(fit, 0, 0, 50.0)]
    assert told[0].startswith("3.000 s")
    assert told[1].startswith("two is as fast as one at p = 125 (one is ahead before)")
    assert "falls as far as the model goes" in told[2]
    assert "small from p = 100" in told[3] and "large from p = 100" in told[3]


def test_the_first_sentences_say_who_is_faster_and_who_stops_scaling(bench: ModelBench) -> None:
    bench.open(times())
    bench.set_functions(["1/p", "1"])
    # up to p = 64, before the systems are as fast as each other: 101 s and 200.2 s on one processor
    bench.exclude([row.line for row in bench.snapshot.project.table.rows if row.p > 64], "far")
    said = bench.snapshot.headline
    assert said[0] == "one is 1.3 times as fast as two on 64 processors (on 1 2.0 times)."
    assert said[1] == "large takes 7.0 times as long as small on 1 to 64 processors."
    assert said[2].startswith("On one, ") and "stops scaling first: from p = 100 the constant part" in said[2]


def test_two_that_are_alike_are_not_told_apart_and_the_ratio_bears_its_interval() -> None:
    """Over simulated tables the true ratio of two systems is as often in its interval as is stated."""
    rng, p = np.random.default_rng(4), np.array(P[:6], float)
    held, said = [], []
    for _ in range(40):
        code, system, at = (one.ravel() for one in np.meshgrid([0, 1], [0, 1], p, indexing="ij"))
        code, system = code.astype(int), system.astype(int)
        time = (
            (1 + code) * (50 / at + 1) * np.where(system, 1.1, 1.0) * np.exp(0.05 * rng.normal(size=at.size))
        )
        data = Measurements(("a", "b"), ("x", "y"), code, system, at, time)
        fit = fit_joint(data, ("1/p", "1"), "log")
        over = ratio_of_times(fit, [(0, 1), (1, 1)], [(0, 0), (1, 0)], 8.0)
        held.append(over.low <= 1.1 <= over.high)
        said.append(model_answers.headline(fit)[0])
    assert 0.85 <= np.mean(held) <= 1.0
    assert any("is not told apart from" in one for one in said) and any(
        "x is 1.1 times" in one for one in said
    )


def test_an_interval_without_an_end_is_no_place() -> None:
    """ "from a p of 71 or more" was read as 71, beside a share of 44 % at p = 256."""
    say = model_answers._place_words
    assert say(PInterval(401.0, 71.0, np.inf, True)) == "some p above 71 (95 %), if at all"
    assert say(PInterval(40.0, 0.0, 71.0, True)) == "some p below 71 (95 %)"
    assert say(PInterval(100.0, 71.0, 130.0, True)) == "p = 100 (95 %: 71 to 130)"


def test_answers_where_more_processors_cost_time(bench: ModelBench) -> None:
    bench.open(times(rising=True))
    bench.set_functions(["1/p", "p"])
    told = [answer.text for answer in model_answers.answers(fit_of(bench), 1, 0, 50.0)]
    assert told[2].startswith("Up to p = 100, where it is 14.00 s"), "7 (100/p + p/100) is least at 100"
    bench.set_functions(["1/p"])
    assert "one function only" in model_answers.answers(fit_of(bench), 1, 0, 50.0)[3].text


def test_the_least_time_of_a_table_of_t_prime(bench: ModelBench) -> None:
    lines = ["code,system,p,t_prime"]
    for code, work in (("a", 1.0), ("b", 3.0)):
        for system, speed in (("x", 1.0), ("y", 2.0)):
            lines += [f"{code},{system},{p},{p * work / speed * (100 / p + 0.01 * p)!r}" for p in P]
    bench.open("\n".join(lines))
    bench.set_functions(["1/p", "p"])
    assert fastest_p(fit_of(bench), 0, 0) == pytest.approx(100, rel=1e-4)
    assert "t' is compared" in model_answers.answers(fit_of(bench), 0, 0, 8.0)[1].text


def test_the_summary_tells_both_r2_apart_and_the_test_in_words(class_a: ModelBench) -> None:
    lines = results.fit_summary(fit_of(class_a), 2)
    text = " ".join(lines)
    for part in ("N = 116, 2 excluded, 14 parameters, converged, 8 of 8 starts", "SSE 130.276 of SST 13937.2",
                 "R² 0.99065 against zero", "0.93283 against the mean", "F(18, 84) = 6.94",
                 "does not hold in the strict sense"):  # fmt: skip
        assert part in text, part
    class_a.open(times())
    class_a.set_functions(["1/p", "1"])
    untested = results.fit_summary(fit_of(class_a), 0)
    assert any("cannot be tested" in line for line in untested)


def test_what_is_best_is_chosen_and_what_comes_next_is_said(bench: ModelBench) -> None:
    bench.open(example_table())
    shown = bench.snapshot
    assert shown.choice is not None and shown.choice.fit is shown.fit and fit_of(bench).response.kind == "log"
    told = " ".join(results.fit_summary(fit_of(bench), 0, shown.choice))
    assert "by AICc: 1/p + 1/sqrt(p), fitted to log t'. Next: 1/p + 1, log t': 6.4" in told
    assert "works and speeds are" in told and "cells never measured" in told
    bench.set_response("t'")
    assert bench.snapshot.choice is not None and fit_of(bench).sse == pytest.approx(130.2755, abs=1e-4)
    bench.set_functions(DEFAULT_FUNCTIONS)
    assert bench.snapshot.choice is None, "nothing was left to choose"
    bench.undo()
    bench.undo()
    assert fit_of(bench).response.kind == "log"


def test_normal_forms_stand_beside_the_fit(class_a: ModelBench) -> None:
    class_a.search_forms()
    shown = class_a.snapshot
    assert shown.forms is not None and shown.fit is not None
    frame = results.forms_sheet(shown.fit, shown.forms, 512.0).frame
    assert frame is not None and len(frame) == 15 and frame.attrs["units"]["predicted"] == "t'/p"
    assert (frame["low"] < frame["predicted"]).all() and (frame["predicted"] < frame["high"]).all()
    assert np.nanmedian(frame["form_error"]) < np.nanmedian(frame["fit_error"])
    class_a.set_functions(["1/p", "1"])
    assert class_a.snapshot.forms is shown.forms, "they do not depend on the functions"
    class_a.set_repeats("median")
    assert class_a.snapshot.forms is None


def test_no_answer_beyond_ten_times_the_measurements(bench: ModelBench) -> None:
    bench.open(times())
    bench.set_functions(["1/p", "1"])
    told = model_answers.answers(fit_of(bench), 0, 1, 50.0)
    assert "(p from 1 to 1 280, 10 times the largest that was measured)" in told[1].text
    assert told[3].text.endswith("large from p = 1 000, small from p = 1 000."), "none of them stops first"
    few = "\n".join(line for line in times().splitlines() if line.split(",")[2] in ("p", "1", "2", "4", "8"))
    bench.open(few)
    bench.set_functions(["1/p", "1"])
    told = model_answers.answers(fit_of(bench), 0, 1, 50.0)
    assert told[3].text.startswith(
        "The constant part never takes more than half of the time of any code up to"
    )
    assert "is as fast as" not in told[1].text, "they cross at p = 125, the measurements end at 8"
