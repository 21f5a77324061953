"""Results as DataFrames say what the results say, with the dtypes and units that are declared."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from desktop.core.contrast import Cell, cells_frame
from desktop.core.curve import StepCurve
from desktop.core.effects import analyse, trials
from desktop.core.frames import TABLES
from desktop.core.phase_stats import phase_frame, phase_table
from desktop.core.phases import fit, sweep
from desktop.data.opening import open_trace
from desktop.data.statistics import Statistics, calls_frame, profile_frame, statistics_frame
from desktop.data.tables import measurements, read_table
from desktop.resources import example_table, samples

KINDS = {"int64": "i", "float64": "f", "bool": "b"}


def declared(table: pd.DataFrame, *names: str) -> None:
    """Columns, dtypes and units as in `TABLES`."""
    fields = [field for name in names for field in TABLES[name]]
    assert list(table.columns)[: len(fields)] == [field.name for field in fields]
    for field in fields:
        assert table[field.name].dtype.kind == KINDS.get(field.dtype, "O"), field
        assert field.name in table.attrs["units"]


@pytest.fixture(scope="module")
def curve() -> StepCurve:
    rng = np.random.default_rng(3)
    level = np.repeat([2.0, 7.0, 4.0], 40) + rng.integers(0, 2, 120)
    return StepCurve(np.arange(121) * 1000, level, 1e-6, 8.0)


@pytest.mark.parametrize("model", ["constant", "mixed"])
def test_phases_and_sweeps(curve: StepCurve, model: str) -> None:
    found = fit(curve, 3, model)
    rows = phase_table(curve, found)
    table = phase_frame(rows, found)
    declared(table, "phases", "phase statistics")
    declared(found.to_frame(), "phases")
    for k, row in enumerate(rows):
        line = table.iloc[k]
        assert (line["start_s"], line["end_s"], line["mean"], line["work"]) == (
            row.start_s, row.end_s, row.mean, row.work_s
        )  # fmt: skip
        powers = [line[name] for name in ("level", "slope", "curvature")]
        assert powers == [*row.coefficients, 0.0, 0.0][:3] and line["degree"] == row.degree
        middle = (row.start_s + row.end_s) / 2 - row.start_s
        value = powers[0] + powers[1] * middle + powers[2] * middle**2
        assert value == pytest.approx(float(found.value(row.start_s + middle)))
    assert table.attrs["units"]["curvature"] == "proc/s²"
    several = sweep(curve, model, 4)
    table = several.to_frame()
    declared(table, "sweep")
    assert table["epsilon"].tolist() == several.epsilon.tolist() and table["n"].tolist() == [1, 2, 3, 4]


def test_effects_and_trials() -> None:
    x = np.array([[a, b] for a in (-1, 1) for b in (-1, 1)] * 2, float)
    y = 5 + 2 * x[:, 0] - x[:, 1] + np.array([0.1, -0.1] * 4)
    data = trials(["A", "trial"], x, y, np.repeat([0, 1], 4))
    table = data.to_frame()
    declared(table, "trials")
    assert table["level of trial"].tolist() == x[:, 1].tolist() and table["response"].tolist() == y.tolist()
    found = analyse(data)
    table = found.to_frame()
    declared(table, "effects")
    assert table.loc["A", "effect"] == found.effect("A").value == pytest.approx(4.0)
    assert table.loc["A", "half_effect"] == pytest.approx(2.0)
    declared(found.anova_frame(), "anova")
    assert found.anova_frame()["ss"].tolist() == [row.ss for row in found.anova]


@pytest.mark.parametrize("kind", ["joint", "individual"])
def test_the_factor_model_and_its_measurements(kind: str) -> None:
    from desktop.core.factor_model import fit_individual, fit_joint, parameters

    table = read_table(example_table())
    lines = table.to_frame()
    declared(lines, "measurements")
    assert lines.attrs["units"]["time"] == "", "the example holds t'"
    assert lines.index.tolist() == [row.line for row in table.rows]
    data = measurements(table).data
    found = (fit_joint if kind == "joint" else fit_individual)(data, ["1/p", "1/sqrt(p)"])
    made = found.to_frame()
    declared(made, "factor model")
    wanted = [(p.kind, p.function, p.code or "", p.system or "") for p in parameters(found)]
    assert list(zip(made["kind"], made["function"], made["code"], made["system"], strict=True)) == wanted
    assert set(made["kind"]) == ({"work", "speed"} if kind == "joint" else {"delta"})
    assert made["value"].tolist() == [p.value for p in parameters(found)]
    cells = found.cells_frame()
    declared(cells, "factor model cells")
    used = cells[cells["used"]]
    assert (used["response"] - used["fitted"]).to_numpy() == pytest.approx(used["residual"].to_numpy())
    assert cells["code"].tolist() == [row.code for row in table.rows if not row.reason]


def test_statistics_profile_calls_and_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with open_trace(samples()[0].path) as store:
        kept = Statistics(store)
        ranges = kept.ranges([(0.0, 0.1), (0.1, 0.3)])
        flat, calls = kept.flat(ranges[0]), kept.calls((0.0, 0.1))
    table = statistics_frame(["one", "two"], ranges)
    declared(table, "statistics")
    assert table["range"].tolist() == ["one", "two"]
    assert ranges[0].to_frame("one").equals(table.iloc[:1])
    for k, stats in enumerate(ranges):
        assert table["load_balance"][k] == stats.load_balance and np.isnan(table["transfer"][k])
        parts = table.filter(like="_part").iloc[k]
        assert parts.sum() == pytest.approx(1.0)
    talk = ranges[0].messages
    assert talk is not None
    pairs = talk.to_frame([f"rank {k}" for k in range(99)])
    declared(pairs, "messages")
    assert pairs["bytes"].sum() == talk.bytes.sum() and set(pairs["sender"]) <= {
        f"rank {k}" for k in range(99)
    }
    made = profile_frame(flat)
    declared(made, "profile")
    assert made["exclusive"].tolist() == [row.exclusive_s for row in flat]
    made = calls_frame(calls)
    declared(made, "calls")
    assert (
        set(made["parent"]) <= {-1, *made.index}
        and (made["depth"] == 0).tolist() == (made["parent"] == -1).tolist()
    )


def test_a_comparison_with_a_gap() -> None:
    numbers = dict.fromkeys(Cell._fields[3:], 0.5)
    table = cells_frame([Cell("run", "a", 0, **numbers), Cell("phase 1", "b", None, **numbers)])
    declared(table, "comparison")
    assert table["phase"].tolist() == [0, None]
    declared(cells_frame([]), "comparison")
