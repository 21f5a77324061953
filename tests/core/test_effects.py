"""Effects against the tables of NISTIR 5131, 5139 and 5417, real responses, and least squares by hand."""

from __future__ import annotations

import csv
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from scipy import stats

from desktop.core import suspects as suspecting
from desktop.core.design import foldover, names_for, plackett_burman, regular
from desktop.core.effect_limits import lenth_ratios
from desktop.core.effect_tables import barrier, dose, over_processors, scale_test, scaling
from desktop.core.effects import Trials, _covariate_note, analyse, lenth_of, ranked, standard_order, trials
from desktop.core.power import MOST, detectable, replicates_for
from desktop.core.response_power import powers

DATA = Path(__file__).parent.parent / "data" / "spt"


def rows(name):
    with (DATA / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def load(name, response, factors, keep=lambda row: True):
    table = [row for row in rows(name) if keep(row)]
    x = np.array([[1.0 if row[f] in ("+", "1") else -1.0 for f in factors] for row in table])
    block = np.array([int(row.get("replicate") or 0) for row in table])
    return trials(factors, x, np.array([float(row[response]) for row in table]), block)


def values(found):
    return [e.value for e in found.effects]


# --- NISTIR 5131 ---


@pytest.fixture(scope="module")
def table_2():
    return analyse(load("nistir5131_table2_runs.csv", "response_mean_s", [f"f{i}" for i in range(1, 7)]))


def test_5131_table_2(table_2):
    assert table_2.mean == pytest.approx(48.0269, abs=5e-5)
    assert values(table_2) == pytest.approx(
        [1.96875, 1.11125, 0.65625, 1.29375, 0.66375, -1.23875, -0.09875, 50.10875, -1.84625, -1.11875,
         -0.46375, -0.98125, -0.32125, 1.10125, 0.73125]
    )  # fmt: skip
    assert [e.half for e in table_2.effects] == pytest.approx([v / 2 for v in values(table_2)])
    printed = [float(row["effect_printed"]) for row in rows("nistir5131_table2_effects.csv")[1:]]
    assert values(table_2) == pytest.approx(printed, abs=0.0115)


def test_5131_table_2_aliases(table_2):
    sets = {e.term: set(e.aliases) for e in table_2.effects}
    # The printed row 13 (C:D): not bubble_sort, which is f5 = f1 f2 f3 and stands in row 8.
    assert sets["f3:f4"] == {"f2:f6"}
    assert table_2.effect("f5").value == pytest.approx(-0.09875)
    assert sets["f2:f3"] == {"f1:f5", "f4:f6"}
    assert table_2.effect("f2:f6") is table_2.effect("f3:f4")
    with pytest.raises(KeyError):
        table_2.effect("f9")


def test_5131_table_2_lenth_and_percent(table_2):
    lenth = table_2.lenth
    assert (lenth.pse, lenth.me, lenth.sme) == pytest.approx((1.561875, 4.0149, 8.1509), abs=5e-5)
    assert [e.term for e in table_2.effects if e.significant] == ["f4"]
    assert table_2.error == "lenth"
    assert table_2.unperturbed == 19.11 and table_2.unperturbed_measured
    # The report's percentages use its rounded effects (1.98 of 19.11: 10.36); these are of the runs.
    expected = {"f1": 10.30, "f2": 5.82, "f3": 6.77, "f4": 262.21, "f5": -0.52, "f6": 5.76}
    for name, percent in expected.items():
        assert table_2.percent(table_2.effect(name)) == pytest.approx(percent, abs=0.006)


def test_5131_table_2_as_printed(table_2):
    """Percent of the printed, rounded effects, and the largest in units of the printed standard error."""
    assert table_2.effect("f4").value / 0.10 == pytest.approx(501, abs=0.5)
    told = {row["effect_printed"] for row in rows("nistir5131_table2_effects.csv")[1:]}
    for effect, percent in ((1.98, 10.36), (1.12, 5.86), (1.30, 6.80), (50.10, 262.17), (-0.10, -0.52),
                            (1.10, 5.76)):  # fmt: skip
        assert any(float(v) == effect for v in told)
        assert 100 * effect / table_2.unperturbed == pytest.approx(percent, abs=0.006)


def test_5131_table_2b():
    names = ["s_lock", "push", "pop", "bubblesort", "code1"]
    found = analyse(load("nistir5131_table2b_runs_implied.csv", "response_implied_s", names))
    assert values(found) == pytest.approx(
        [float(row["effect_printed"]) for row in rows("nistir5131_table2b_effects.csv")[1:]]
    )
    assert (found.lenth.pse, found.lenth.me, found.lenth.sme) == pytest.approx((0.87, 2.236, 4.540), abs=6e-4)
    assert sorted(v for v in values(found) if abs(v) > found.lenth.me) == pytest.approx(
        [4.26, 4.46, 4.46, 6.50]
    )
    assert (found.trials.y.min(), found.trials.y.max()) == pytest.approx((21.61, 39.17), abs=0.005)
    assert sum(abs(v) > found.lenth.sme for v in values(found)) == 1
    # The half with I = +ABCDE does not hold the unperturbed program.
    assert not found.unperturbed_measured
    assert found.unperturbed == pytest.approx(17.41, abs=0.005)
    mains = analyse(found.trials, terms=[(j,) for j in range(5)])
    assert mains.unperturbed == pytest.approx(17.72, abs=0.005)


def test_5131_table_3_names_its_bad_run():
    data = load("nistir5131_table3_runs_implied.csv", "response_implied_s", list("abcdefgh"))
    found = analyse(data, threshold="lenth")
    assert data.y.tolist() == [14, 15, 14, 16, 36, 36, 36, 35, 36, 15, 15, 15, 36, 36, 36, 37]
    for row in rows("nistir5131_table3_effects.csv")[1:]:
        # The set of all two-factor interactions and main effects that the print says cannot be told apart.
        members = {tuple(sorted(word)) for word in row["source_printed"].split("+") if len(word) <= 2}
        ours = found.effect(":".join(min(members, key=lambda word: (len(word), word))))
        assert {
            tuple(sorted(t.split(":"))) for t in (ours.term, *ours.aliases) if t.count(":") < 2
        } == members
    before = [abs(e.value) for e in found.effects if e.term != "c"]
    assert (min(before), max(before)) == pytest.approx((2.25, 3.25))
    printed = {row["source_printed"].split("+")[0]: float(row["effect_printed"])
               for row in rows("nistir5131_table3_effects.csv")[1:]}  # fmt: skip
    for name, value in printed.items():
        assert found.effect(":".join(name)).value == pytest.approx(value)
    assert (found.lenth.pse, found.lenth.me) == pytest.approx((3.9375, 10.12), abs=0.002)
    assert [e.term for e in found.effects if e.significant] == ["c"]
    assert [s.label for s in found.suspects] == ["9"]
    assert found.suspects[0].t == pytest.approx(32.4, abs=0.05)
    mended = data.y.copy()
    mended[8] = 15
    after = analyse(trials(data.factors, data.x, mended), threshold="lenth")
    others = [abs(e.value) for e in after.effects if e.term != "c"]
    assert (min(others), max(others)) == pytest.approx((0.125, 0.625))
    assert after.effect("c").value == pytest.approx(21.125)
    assert (after.lenth.pse, after.lenth.me) == pytest.approx((0.1875, 0.482), abs=5e-4)
    assert not after.suspects


# --- NISTIR 5139 ---


def test_5139_tables_2_and_3():
    data = load("nistir5139_table2_xprog_runs.csv", "response_s", ["F1", "F2", "F3"])
    found = analyse(data, error="interactions")
    assert {e.term: round(e.value, 4) for e in found.effects} == {
        "F1": 0.0925, "F2": 6.0975, "F1:F2": 0.0325, "F3": 2.4975, "F1:F3": 0.0025, "F2:F3": -0.1025,
        "F1:F2:F3": -0.0275,
    }  # fmt: skip
    assert (found.effects[0].se, found.effects[0].df) == pytest.approx((0.0555, 4), abs=5e-5)
    assert found.mean_se == pytest.approx(0.0555 / 2, abs=5e-5)
    assert [e.term for e in found.effects if e.significant] == ["F2", "F3"]
    assert found.effect("F1").t == pytest.approx(1.7, abs=0.05)
    assert found.lenth.pse == pytest.approx(0.04875)
    lines = ranked(found)
    # The report ranks F1 third; with 1.7 standard errors it is not distinguishable from zero.
    assert [(line.rank, line.effect.term, line.verdict) for line in lines] == [
        (1, "F2", "slows"), (2, "F3", "slows"), (0, "F1", "not distinguishable from zero"),
    ]  # fmt: skip
    # The same error when the interactions are left out of the model.
    reduced = analyse(data, terms=[(0,), (1,), (2,)])
    assert reduced.error == "interactions"
    assert reduced.effects[0].se == pytest.approx(0.0555, abs=5e-5)


def test_5139_effects_over_processors():
    table = [row for row in rows("nistir5139_tables4to10_image_benchmark.csv") if row["table"] in "5678"]
    expected = {
        "F17": (-0.974, 47.86, 0.10), "F26": (-0.964, 44.15, 0.07), "F25": (-0.967, 16.49, 0.00),
        "F2": (0.012, -0.26, 5.37), "F1": (-0.057, None, None), "F4": (-0.049, None, None),
    }  # fmt: skip
    # Table 8 does not list F25; its effect at 24 processors stands in NISTIR 5417, table 2.
    table.append(
        next(row for row in rows("nistir5417_tables1_2_iub.csv")
             if (row["processors"], row["factor"]) == ("24", "F25")) | {"main_effect_s": "0.75"}
    )  # fmt: skip
    for name, (slope, shared, serial) in expected.items():
        mine = [row for row in table if row["factor"] == name]
        found = over_processors(
            [float(r["processors"]) for r in mine], [float(r["main_effect_s"]) for r in mine]
        )
        assert found.slope == pytest.approx(slope, abs=6e-4), name
        if shared is not None:
            assert (found.shared, found.serial) == pytest.approx((shared, serial), abs=0.006), name
    with pytest.raises(ValueError, match="three or more"):
        over_processors([1, 2, 2], [1.0, 2.0, 2.0])


@pytest.mark.parametrize("known", [True, False])
def test_the_slope_over_processors_lies_in_its_interval(known):
    """Of work that is shared, with effects of known errors or by what the line leaves."""
    generator = np.random.default_rng(7)
    p = np.array([2.0, 4.0, 8.0, 16.0])
    inside = []
    for _ in range(400):
        effect = 20 / p * np.exp(0.03 * generator.standard_normal(4))
        se = 20 / p * 0.03 * np.sqrt(generator.chisquare(8, 4) / 8)
        found = over_processors(p, effect, se if known else None, 8.0)
        inside.append(abs(found.slope + 1) <= found.slope_margin)
    assert 0.95 - 3 * 0.011 <= np.mean(inside) <= 0.95 + 3 * 0.011
    assert np.isnan(over_processors(p, effect, effect).slope_margin)


def test_5139_table_11():
    for row in rows("nistir5139_table11_barrier_pairs.csv"):
        found = barrier(float(row["FB1_effect_s"]), float(row["FB2_effect_s"]), 0.21)
        assert found.difference == pytest.approx(float(row["difference_printed_s"]))
        assert found.t == pytest.approx(float(row["t_ratio"]), abs=0.006)
    shares = [
        round(100 * barrier(float(r["FB1_effect_s"]), float(r["FB2_effect_s"]), 0.21).share)
        for r in rows("nistir5139_table11_barrier_pairs.csv")
    ]
    assert shares == [27, 7, 56]
    # What the artificial barrier itself costs is no waiting.
    assert barrier(1.0, 3.0, 0.1, cost=1.5).difference == pytest.approx(0.5)


# --- NISTIR 5417 ---


def test_5417_table_3():
    table = rows("nistir5417_tables1_2_iub.csv")
    at = {p: {r["factor"]: (float(r["main_effect"]), float(r["se"])) for r in table if r["processors"] == p}
          for p in ("8", "24")}  # fmt: skip
    found = {s.term: s for s in scaling(at["8"], 8, at["24"], 24)}
    expected = {
        "F17": (4.085, -1.945, -0.476, -0.943), "F26": (3.745, -1.715, -0.458, -0.901),
        "F25": (1.38, -0.63, -0.457, -0.897), "F29": (1.155, -0.205, -0.177, -0.327),
        "F20": (1.61, -0.06, -0.037, -0.068), "F4": (3.885, 0.045, 0.012, 0.021),
        "F1": (3.945, 0.005, 0.001, 0.002), "F2": (5.345, 0.085, 0.016, 0.029),
    }  # fmt: skip
    for name, numbers in expected.items():
        s = found[name]
        assert (s.middle, s.interaction, s.ratio, s.exponent) == pytest.approx(numbers, abs=6e-4), name
        assert s.se == pytest.approx(0.0632, abs=5e-5)
    with pytest.raises(ValueError, match="larger number of processors"):
        scaling(at["8"], 8, at["24"], 8)


def test_intervals_over_processors_are_those_of_least_squares():
    """Of exponents Fieller's, which knows nothing of p but the logarithm of its ratio; of parts those of a
    line through equal weights."""
    (twice,), (often,) = (scaling({"A": (10.0, 1.0)}, 2, {"A": (5.0, 0.5)}, p) for p in (4, 16))
    assert twice.exponent_low < twice.exponent < twice.exponent_high and twice.exponent == pytest.approx(-1)
    three = np.array([[of.exponent_low, of.exponent, of.exponent_high] for of in (twice, often)])
    assert three[0] == pytest.approx(3 * three[1])
    p, effect = np.array([2.0, 4.0, 8.0, 16.0]), np.array([21.0, 11.5, 4.9, 3.6])
    found = over_processors(p, effect)
    line, spread = np.polyfit(1 / p, effect, 1, cov=True)
    assert (found.shared, found.serial) == pytest.approx(tuple(line))
    assert (found.shared_se, found.serial_se) == pytest.approx(tuple(np.sqrt(np.diag(spread))))
    assert np.isnan(over_processors(p, [3.0, 2.0, 0.0, 1.0]).slope_margin)


def test_5417_table_4():
    table = rows("nistir5417_table4_isolated_factor.csv")
    data = trials(["cd", "s"], np.array([[float(r["X_cd"]), float(r["X_s"])] for r in table]),
                  np.array([float(r["response_s"]) for r in table]))  # fmt: skip
    found = analyse(data)
    halves = {e.term: e.half for e in found.effects}
    assert [found.mean, *halves.values()] == pytest.approx([34.25, 2.25, -7.75, 0.25])
    test = scale_test(found.mean, halves["cd"], halves["s"], halves["cd:s"], 0.10)
    assert (test.threshold, test.excess, test.excess_se) == pytest.approx((-0.509, 0.759, 0.103), abs=6e-4)
    assert test.verdict == "does not scale"


@pytest.mark.parametrize(
    ("name", "numbers", "verdict"),
    [
        ("F4", (0.8753, 0.4471, -0.2153, -0.1350, -0.0250, 0.0049), "scales"),
        ("F2", (0.5267, 0.0998, -0.0859, -0.0002, 0.0160, 0.0039), "does not scale"),
        ("CS1", (0.5245, 0.0950, -0.0847, -0.0061, 0.0092, 0.0036), "does not scale"),
    ],
)
def test_measured_scaling(name, numbers, verdict):
    def of(file):
        data = load(file, "wall_s", ["x_factor", "x_s"], lambda row: row["factor"] == name)
        found = analyse(data, blocks=False)
        b = {e.term: e for e in found.effects}
        half = [b["x_factor"].half, b["x_s"].half, b["x_factor:x_s"].half]
        return scale_test(found.mean, *half, b["x_factor"].se / 2)

    test = of("measured_2026-11-21_scaling_2p2.csv")
    assert (test.mu, test.factor, test.scale, test.interaction, test.excess, test.excess_se) == pytest.approx(
        numbers, abs=1.1e-4
    )
    assert test.verdict == verdict
    six = of("measured_2026-11-21_scaling_2p2_six.csv")
    assert six.verdict == "undecided"
    excess, error, bare = {
        "F4": (-0.001, 0.007, True),
        "F2": (0.005, 0.006, False),
        "CS1": (-0.001, 0.008, True),
    }[name]
    assert (six.excess, six.excess_se) == pytest.approx((excess, error), abs=6e-4)
    # The report's inequality alone, without an error, answers like a coin.
    assert (six.interaction <= six.threshold < 0) == bare


def test_cpu_time_counts_spinning_as_work():
    """With two threads the program spends more of it, so no verdict can come from it."""
    for name in ("F2", "F4", "CS1"):
        data = load("measured_2026-11-21_scaling_2p2.csv", "cpu_s", ["x_factor", "x_s"],
                    lambda row, name=name: row["factor"] == name)  # fmt: skip
        found = analyse(data, blocks=False)
        half = [found.effect(term).half for term in ("x_factor", "x_s", "x_factor:x_s")]
        assert half[1] > 0, name
        assert scale_test(found.mean, *half, found.effects[0].se / 2).verdict == "system does not speed up"


@pytest.mark.parametrize(
    ("numbers", "verdict"),
    [
        ((10, 0.1, -2, 0.0, 0.1), "no effect"),
        ((10, 1, 0.0, 0.0, 0.1), "system does not speed up"),
        ((-1, 1, -2, 0.0, 0.1), "no verdict"),
        ((10, -1, -2, 0.0, 0.1), "no verdict"),
        ((10, 1, -2, 0.0, np.nan), "no verdict"),
    ],
)
def test_verdicts(numbers, verdict):
    test = scale_test(*numbers)
    assert test.verdict == verdict and test.reason


# --- real responses ---


def test_screening_of_the_quicksort():
    data = load("measured_2026-11-21_screen_2p6m2.csv", "wall_s", [f"F{i}" for i in range(1, 7)])
    plain = analyse(data, blocks=False)
    assert plain.effect("F4").value == pytest.approx(1.6940, abs=5e-5)
    assert (plain.effect("F4").se, np.sqrt(plain.variance), plain.df) == pytest.approx(
        (0.0122, 0.0489, 48), abs=6e-5
    )
    found = analyse(data)
    assert found.error == "replicates" and found.df == 45
    block = next(row for row in found.anova if row.source == "replicate")
    assert (block.df, block.f, block.p) == pytest.approx((3, 4.04, 0.013), abs=0.006)
    assert sum(row.ss for row in found.anova[:-1]) == pytest.approx(found.anova[-1].ss)
    assert ranked(found)[0].effect.term == "F4"


def test_second_iteration_of_the_quicksort():
    names = ["F1", "F2", "F3", "F5", "F6"]
    data = load("measured_2026-11-21_second_2p5m1.csv", "wall_s", names, lambda row: row["treatment"] != "17")
    found = analyse(data, blocks=False)
    mains = {e.term: e for e in found.effects if len(e.members) == 1}
    assert [mains[n].value for n in names] == pytest.approx(
        [0.1665, 0.1679, 0.1473, 0.0291, 0.1741], abs=6e-5
    )
    assert mains["F1"].se == pytest.approx(0.0136, abs=5e-5)


# --- by hand ---


@settings(deadline=None, max_examples=40)
@given(seed=some.integers(0, 2**31), replicates=some.integers(1, 3))
def test_effects_are_differences_of_means(seed, replicates):
    generator = np.random.default_rng(seed)
    design = regular(names_for(5), 8)
    x = np.tile(design.levels, (replicates, 1)).astype(float)
    y = generator.normal(10, 2, len(x))
    found = analyse(trials(design.factors, x, y, np.repeat(np.arange(replicates), 8)))
    assert len(found.effects) == 7
    for effect in found.effects:
        column = x[:, list(effect.members)].prod(axis=1)
        assert effect.value == pytest.approx(y[column > 0].mean() - y[column < 0].mean(), abs=1e-9)
    if replicates > 1:
        table = y.reshape(replicates, 8)
        s2 = ((table - table.mean(0)) ** 2).sum() - 8 * ((table.mean(1) - y.mean()) ** 2).sum()
        s2 /= 7 * (replicates - 1)
        assert found.effects[0].se == pytest.approx(2 * np.sqrt(s2 / (8 * replicates)))
        assert found.mean_se == pytest.approx(found.effects[0].se / 2)
    assert found.predict(x[3]).value == pytest.approx(y.reshape(replicates, 8)[:, 3].mean())


@settings(deadline=None, max_examples=40)
@given(seed=some.integers(0, 2**31))
def test_missing_trials_become_least_squares(seed):
    generator = np.random.default_rng(seed)
    design = regular(names_for(3), 8)
    x = np.tile(design.levels, (2, 1)).astype(float)
    y = 5 + x @ [1.0, -2.0, 0.5] + generator.normal(0, 0.1, 16)
    gone = generator.choice(16, generator.integers(1, 5), replace=False)
    y[gone] = np.nan
    found = analyse(trials(design.factors, x, y), blocks=False)
    assert any("no response" in note for note in found.notes)
    keep = np.isfinite(y)
    terms = [e.members for e in found.effects]
    assert {(0,), (1,), (2,)} <= set(terms)
    model = np.stack([np.ones(keep.sum())] + [x[keep][:, list(m)].prod(axis=1) / 2 for m in terms], axis=1)
    value = np.linalg.lstsq(model, y[keep], rcond=None)[0]
    assert values(found) == pytest.approx(value[1:], abs=1e-8)


def test_one_missing_run_costs_one_term():
    """Of 15 effects 14 can still be told, the highest interaction is the one that is lost."""
    design = regular(names_for(4), 16)
    y = 5.0 + design.levels @ np.array([1.0, 2.0, 0.5, 0.0]) + design.column((1, 2))
    y[3] = np.nan
    found = analyse(trials(design.factors, design.levels, y))
    assert len(found.effects) == 14
    assert values(found)[:5] == pytest.approx([2.0, 4.0, 0.0, 1.0, 0.0], abs=1e-9)
    assert found.effect("B:C").value == pytest.approx(2.0)
    assert any("cannot estimate" in note and "A:B:C:D" in note for note in found.notes)


def test_terms_that_are_left_out_are_the_error():
    """Whether or not an interaction is among the terms that were asked for."""
    design = regular(names_for(4), 16)
    x = design.levels.astype(float)
    y = 5.0 + x @ np.array([1.0, 2.0, 0.5, 0.0]) + np.random.default_rng(5).normal(0, 0.1, 16)
    every = {e.members: e.value for e in analyse(trials(design.factors, x, y)).effects}
    asked = [(0,), (1,), (2,), (0, 1)]
    found = analyse(trials(design.factors, x, y), terms=asked)
    rest = [value for members, value in every.items() if members not in asked]
    assert (found.error, found.df) == ("interactions", 11)
    assert found.effects[0].se == pytest.approx(np.sqrt(np.mean(np.square(rest))))
    with pytest.raises(ValueError, match="none of the terms"):
        analyse(trials(design.factors, x, y), terms=[()])


def test_a_factor_that_never_moves_is_said():
    x = np.array([[-1, 1], [1, 1], [-1, 1], [1, 1]], float)
    found = analyse(trials(["a", "still"], x, np.array([1.0, 2.0, 1.1, 2.1])))
    assert [e.term for e in found.effects] == ["a"]
    assert any("cannot estimate" in note and "still" in note for note in found.notes)


@settings(deadline=None, max_examples=20)
@given(seed=some.integers(0, 2**31))
def test_the_f_of_a_term_is_its_t_squared(seed):
    """Balanced or not: a term's sum of squares is what leaving it out costs."""
    generator = np.random.default_rng(seed)
    x = np.repeat(regular(names_for(3), 8).levels, generator.integers(1, 4, 8), axis=0).astype(float)
    x = np.concatenate([x, x[:1]])
    y = x @ [1.0, 0.2, 0.0] + generator.normal(0, 0.3, len(x))
    found = analyse(trials("ABC", x, y))
    rows = {row.source: row for row in found.anova}
    for effect in found.effects:
        assert rows[effect.term].f == pytest.approx(effect.t**2)
    assert [row.ss for row in found.anova[:7]] == sorted(
        (rows[e.term].ss for e in found.effects), reverse=True
    )


def test_an_inestimable_term_is_said():
    x = np.array([[-1, -1], [1, -1], [-1, 1]], float)
    found = analyse(trials(["a", "b"], x, np.array([1.0, 2.0, 4.0])), terms=[(0,), (1,), (0, 1)])
    assert [e.term for e in found.effects] == ["a", "b"]
    assert any("cannot estimate" in note and "a:b" in note for note in found.notes)
    assert any("not orthogonal" in note for note in found.notes)


def test_plackett_burman_gives_main_effects():
    design = plackett_burman([f"f{i}" for i in range(11)], 12)
    y = 3.0 + design.levels @ np.arange(11.0)
    found = analyse(trials(design.factors, design.levels, y))
    assert [e.value for e in found.effects] == pytest.approx([2.0 * i for i in range(11)])
    assert found.correlation == pytest.approx(0, abs=1e-12)


def test_nothing_moves():
    design = regular(names_for(3), 8)
    found = analyse(trials(design.factors, design.levels, np.full(8, 2.5)))
    assert values(found) == pytest.approx([0.0] * 7)
    assert found.lenth is None
    assert not any(e.significant for e in found.effects)
    assert any("the same in every treatment" in note for note in found.notes)


@pytest.mark.parametrize("value", [0.1, 1e-9, 7e5 / 3])
def test_equal_numbers_have_no_error_and_no_share_explained(value):
    """Means of equal numbers differ from them by rounding, which is neither an effect nor an error."""
    design = regular(names_for(3), 8)
    x = np.tile(design.levels, (3, 1)).astype(float)
    found = analyse(trials(design.factors, x, np.full(24, value), np.repeat([0, 1, 2], 8)))
    assert values(found) == pytest.approx([0.0] * 7, abs=0)
    assert np.isnan([e.se for e in found.effects]).all() and np.isnan(found.r2)
    assert np.isnan([row.f for row in found.anova]).all()
    equal = analyse(trials(design.factors, x, value * (x[:, 0] + 3), np.repeat([0, 1, 2], 8)))
    assert equal.effects[0].value == pytest.approx(2 * value)
    assert np.isnan([e.t for e in equal.effects]).all()
    assert any("equal to the last digit" in note for note in equal.notes)


def test_refusals():
    x = np.array([[-1.0], [1.0]])
    with pytest.raises(ValueError, match="fewer than two treatments"):
        analyse(trials(["a"], x, np.array([1.0, np.nan])))
    with pytest.raises(ValueError, match=r"level 0.5 of a in trial 2"):
        trials(["a"], np.array([[-1.0], [0.5]]), np.array([1.0, 2.0]))
    with pytest.raises(ValueError, match="no treatment ran twice"):
        analyse(trials(["a"], x, np.array([1.0, 2.0])), error="replicates")
    with pytest.raises(ValueError, match="three or more effects"):
        analyse(trials(["a"], x, np.array([1.0, 2.0])), error="lenth")


def test_lenth_against_its_definition():
    size = np.array([3.0, -1, 0.5, 0.2, -0.4, 0.1, 9.0])
    found = lenth_of(size)
    a = np.sort(np.abs(size))
    s0 = 1.5 * np.median(a)
    assert found.pse == pytest.approx(1.5 * np.median(a[a < 2.5 * s0]))
    assert found.me == pytest.approx(stats.t.ppf(0.975, 7 / 3) * found.pse)
    assert lenth_of(np.array([1.0, 2.0])) is None
    assert lenth_of(np.zeros(5)) is None


def test_half_normal_quantiles(table_2):
    ordered = sorted(table_2.effects, key=lambda e: abs(e.value))
    m = len(ordered)
    expected = [stats.norm.ppf(0.5 + 0.5 * (i - 0.5) / m) for i in range(1, m + 1)]
    assert [e.half_normal for e in ordered] == pytest.approx(expected)


def test_standard_order():
    assert standard_order(3) == [(0,), (1,), (0, 1), (2,), (0, 2), (1, 2), (0, 1, 2)]


def test_ties_and_negative_effects_in_the_rank_table():
    design = regular(names_for(3), 8)
    y = 10 + design.levels @ np.array([1.0, 1.0, -0.5])
    noise = 0.01 * design.column((0, 1, 2))
    replicated = np.concatenate([y + noise, y - noise])
    data = trials(design.factors, np.tile(design.levels, (2, 1)), replicated, np.repeat([0, 1], 8))
    lines = ranked(analyse(data), tie=1e-9)
    assert {(line.rank, line.effect.term) for line in lines} == {(1, "A"), (1, "B"), (0, "C")}
    assert (lines[-1].rank, lines[-1].verdict) == (0, "helps")
    # Without an error estimate nothing is told from zero.
    bare = ranked(analyse(trials(design.factors, design.levels, y)))
    assert {(line.rank, line.verdict) for line in bare} == {(0, "no error estimate")}


# --- planning and doses ---


def test_planning():
    assert replicates_for(0.5, 1.0, 8) == 2  # (6 * 0.5)^2 / 8 = 1.125
    assert replicates_for(0.05, 1.0, 16) == 1
    assert replicates_for(0.0, 1.0, 8, df=0) == MOST  # one run bounds nothing
    with pytest.raises(ValueError):
        replicates_for(1, 0, 8)
    assert np.isnan(detectable(1.0, 8, 1))


def test_an_effect_of_the_detectable_size_is_found_as_often_as_said():
    generator = np.random.default_rng(7)
    design = regular(names_for(3), 8)
    size = detectable(1.0, 8, 3, power=0.9)
    x = np.tile(design.levels, (3, 1)).astype(float)
    found = 0
    for _ in range(300):
        y = size / 2 * x[:, 0] + generator.normal(0, 1, 24)
        effects = analyse(trials(design.factors, x, y, np.repeat([0, 1, 2], 8)))
        found += effects.effect("A").significant
    assert 0.84 < found / 300 < 0.96


def test_dose():
    flat = dose([1, 10, 100], [0.5, 5.1, 49.0], [0.1, 0.1, 1.0])
    assert flat.linear and flat.per_unit == pytest.approx([0.5, 0.51, 0.49])
    bent = dose([100, 1, 10], [90.0, 0.5, 5.0], [1.0, 0.1, 0.1])
    assert not bent.linear and "proportion" in bent.warning
    turned = dose([1, 10], [-2.0, 5.0], [0.1, 0.1])
    assert "sign" in turned.warning
    with pytest.raises(ValueError):
        dose([0, 1], [1, 2], [0.1, 0.1])


@pytest.mark.parametrize("se", [0.0, np.nan])
def test_doses_and_processors_without_standard_errors(se):
    """No error is known: what is in proportion is linear, what is not is not; every p counts the same."""
    assert dose([1, 2, 4], [0.1, 0.2, 0.4], [se] * 3).linear
    assert not dose([1, 2, 4], [0.1, 0.2, 0.9], [se] * 3).linear
    p, effect = np.array([2.0, 4.0, 8.0]), np.array([5.1, 2.4, 1.3])
    assert over_processors(p, effect, np.full(3, se)) == over_processors(p, effect)


def test_no_verdict_on_what_costs_nothing():
    assert scale_test(1.0, 0.0, -0.2, 0.1, 0.0).verdict == "no verdict"
    with pytest.raises(ValueError, match="cannot be negative"):
        scale_test(1.0, 0.1, -0.2, 0.1, -0.5)


# --- the halves of a foldover ---


def folded_trials(replicates: int, shift: float, factor: str | None = None) -> Trials:
    """A 2^(5-2) and its mirror image, replicated; A and B:D act, the halves differ."""
    design = foldover(regular(("A", "B", "C", "D", "E"), 8), factor)
    levels = np.tile(design.levels, (replicates, 1)).astype(float)
    half = np.tile(design.blocks, replicates)
    block = np.repeat(np.arange(replicates), design.runs)
    noise = np.random.default_rng(8).normal(0, 0.1, len(levels))
    drift = np.random.default_rng(9).normal(0, 2, (2, replicates))[half, block]
    y = 10 + levels[:, 0] + 2 * levels[:, 1] * levels[:, 3] + shift * half + drift + noise
    return trials(design.factors, levels, y, block, half=half)


@pytest.mark.parametrize("factor", [None, "B"])
def test_what_changes_between_the_halves_moves_no_effect(factor):
    still, moved = (analyse(folded_trials(3, shift, factor)) for shift in (0.0, 50.0))
    for a, b in zip(still.effects, moved.effects, strict=True):
        assert (a.term, a.aliases) == (b.term, b.aliases)
        assert a.value == pytest.approx(b.value, abs=1e-9) and a.se == pytest.approx(b.se)
    assert {e.term for e in moved.effects if abs(e.value) > 1} >= {"A", "B:D"}
    assert len(moved.effects) == 14  # the fifteenth is the change between the halves
    change = next(row for row in moved.anova if row.source == "halves")
    assert change.df == 1 and change.p < 1e-6
    assert moved.suspects == ()
    with_words = analyse(folded_trials(3, 50.0, factor), blocks=False)
    assert len(with_words.effects) == 15 and max(abs(e.value) for e in with_words.effects) > 40


def test_halves_and_replicates_are_least_squares_with_a_column_for_each():
    """Dummies for every block and treatment, solved at large, give the same error."""
    data = folded_trials(3, 5.0)
    found = analyse(data)
    blocks = 2 * data.block + data.half
    treatment = np.unique(data.x, axis=0, return_inverse=True)[1].ravel()
    dummies = np.concatenate([np.eye(6)[blocks], np.eye(16)[treatment]], axis=1)
    rest = data.y - dummies @ np.linalg.lstsq(dummies, data.y, rcond=None)[0]
    df = len(data.y) - np.linalg.matrix_rank(dummies)
    assert found.df == df == 28 and found.variance == pytest.approx(float(rest @ rest) / df)
    for row in found.anova:
        if row.source not in ("total", "halves", "replicate", "residual"):
            members = tuple("ABCDE".index(letter) for letter in row.source.split(":"))
            column = data.x[:, list(members)].prod(axis=1)
            assert found.effect(row.source).value == pytest.approx(
                data.y[column > 0].mean() - data.y[column < 0].mean()
            )
    parts = {row.source: row for row in found.anova}
    assert sum(row.ss for name, row in parts.items() if name != "total") == pytest.approx(parts["total"].ss)
    assert sum(row.df for name, row in parts.items() if name != "total") == parts["total"].df


def test_what_the_second_half_tells_apart_is_said():
    """A 2^(5-2) has D = AB, E = AC: mirrored, every main effect is told from its pairs."""
    first = regular(("A", "B", "C", "D", "E"), 8)
    found = analyse(folded_trials(2, 0.0))
    said = next(note for note in found.notes if "separates" in note)
    for members in first.aliases():
        mains = [first.term(m) for m in members if len(m) == 1]
        pairs = [first.term(m) for m in members if len(m) == 2]
        if mains:
            assert f"{mains[0]} from {' = '.join(pairs)}" in said
    assert any("halves are blocks" in note and "confounded" in note for note in found.notes)


def test_half_a_second_half_is_read_as_far_as_it_goes():
    data = folded_trials(1, 5.0)
    for trials_so_far in range(8, 16):
        part = data.only(np.arange(16) < trials_so_far)
        found = analyse(part)
        for e in found.effects:
            assert np.isfinite(e.value)
        assert ("halves" in {row.source for row in found.anova}) == (trials_so_far > 8)


def test_lack_of_fit_is_what_a_left_out_interaction_leaves_between_treatments():
    """By hand: two factors, two replicates; main effects only, so the one degree left is that of A:B."""
    x = np.array([[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]] * 2)
    y = np.array([10.0, 12.0, 14.0, 24.0, 11.0, 13.0, 13.0, 25.0])
    found = analyse(trials(["A", "B"], x, y, np.repeat([1, 2], 4)), terms=[(0,), (1,)], blocks=False)
    lack = next(row for row in found.anova if row.source == "lack of fit")
    means = (y[:4] + y[4:]) / 2
    interaction = (means[0] - means[1] - means[2] + means[3]) / 2
    pure = ((y[:4] - y[4:]) ** 2).sum() / 2
    assert (lack.ss, lack.df) == (pytest.approx(8 * interaction**2 / 4), 1)
    assert lack.f == pytest.approx(lack.ss / (pure / 4))
    assert lack.p == pytest.approx(stats.f.sf(lack.f, 1, 4))
    whole = analyse(trials(["A", "B"], x, y, np.repeat([1, 2], 4)), blocks=False)
    assert "lack of fit" not in {row.source for row in whole.anova}


# --- trials that do not fit ---


def with_a_bad_trial(size: float = 8.0, replicates: int = 3) -> Trials:
    """A 2^3 three times, with drift; A acts, and the sixth trial is off."""
    levels = np.tile(regular(("A", "B", "C"), 8).levels.astype(float), (replicates, 1))
    block = np.repeat(np.arange(replicates), 8)
    y = 10 + 2 * levels[:, 0] + 3.0 * block + np.random.default_rng(4).standard_normal(len(block))
    y[5] += size
    return trials("ABC", levels, y, block)


@pytest.mark.parametrize("size", [8.0, 20.0])
def test_a_suspect_is_judged_by_all_other_trials(size):
    """Externally studentized, beside the blocks and what stands out without it, by Bonferroni's quantile."""
    data = with_a_bad_trial(size)
    (found,) = analyse(data).suspects
    assert found.label == "6" and found.value == data.y[5]
    rest = np.arange(24) != 5
    columns = np.column_stack([data.x[:, 0], *(data.block == b for b in range(3))])
    coefficients, squares = np.linalg.lstsq(columns[rest], data.y[rest], rcond=None)[:2]
    df = 23 - 4
    inverse = np.linalg.inv(columns[rest].T @ columns[rest])
    spread = np.sqrt(squares[0] / df * (1 + columns[5] @ inverse @ columns[5]))
    assert found.expected == pytest.approx(columns[5] @ coefficients)
    assert found.t == pytest.approx((data.y[5] - found.expected) / spread)
    assert found.limit == pytest.approx(stats.t.ppf(1 - 0.025 / 24, df)) and abs(found.t) > 1.4 * found.limit


@pytest.mark.parametrize(("size", "named"), [(4.9, False), (5.6, True)])
def test_where_it_is_close_the_limit_is_simulated(monkeypatch, size, named):
    asked = []

    def simulated(*_):
        asked.append(1)
        return 1.2

    monkeypatch.setattr(suspecting, "_simulated", simulated)
    data = with_a_bad_trial(size)
    found = suspecting.suspects(data.label, data.y, *_columns(data))
    alone = suspecting._judged(data.y, *_columns(data))
    assert asked and 1 < alone.size.max() < 1.35 and (alone.size.max() > 1.2) == named
    assert [s.limit for s in found] == ([pytest.approx(1.2 * alone.limit[5])] if named else [])


@pytest.mark.parametrize(("size", "active"), [(14.0, True), (4.0, False)])
def test_without_replicates_a_trial_is_judged_beside_what_passes_lenths_margin(size, active):
    """At the level of 1 % for each effect; B is beyond that or not, A is."""
    levels = regular(names_for(4), 16).levels.astype(float)
    noise = np.random.default_rng(9).standard_normal(16)
    y = 10 + 8 * levels[:, 0] + size / 2 * levels[:, 1] + 0.5 * noise
    y[5] += 12.0
    every = np.column_stack([levels[:, list(w)].prod(1) for w in standard_order(4)])
    margin = lenth_ratios(15)[0].quantile(0.01) * lenth_of(every.T @ y / 8).pse
    assert abs(levels[:, 0] @ y / 8) > margin and (abs(levels[:, 1] @ y / 8) > margin) == active
    terms = np.column_stack([np.ones(16), every / 2])
    found = suspecting.suspects(tuple(map(str, range(16))), y, terms, np.zeros((16, 0)))
    assert [s.label for s in found] == ["5"]
    rest = np.arange(16) != 5
    beside = terms[:, [0, 1, 2] if active else [0, 1]]
    values = np.linalg.lstsq(beside[rest], y[rest], rcond=None)[0]
    assert found[0].expected == pytest.approx(beside[5] @ values)


def _columns(data: Trials):
    """Mean and main effects, and the blocks."""
    return (
        np.column_stack([np.ones(len(data.y)), data.x]),
        np.column_stack([(data.block == b) * 1.0 for b in range(1, int(data.block.max()) + 1)]),
    )


def test_suspects_come_worst_first():
    data = with_a_bad_trial(30.0, 8)
    data.y[12] -= 25.0
    named = analyse(data).suspects
    assert [s.label for s in named] == ["6", "13"] and named[0].t > 0 > named[1].t


def test_a_trial_that_nothing_else_tells_of_is_no_suspect():
    """All of what it says is taken up by a column of its own; what it is worth is not known."""
    data = with_a_bad_trial(50.0)
    own = np.zeros((24, 1))
    own[5] = 1.0
    terms, shifts = _columns(data)
    assert suspecting.suspects(data.label, data.y, terms, np.column_stack([own, shifts])) == ()
    assert [s.label for s in suspecting.suspects(data.label, data.y, terms, shifts)] == ["6"]


def test_nothing_is_suspected_with_two_degrees_of_freedom():
    """Beside mean and A, six trials leave three after one is taken out, five leave two."""
    x = np.array([-1.0, 1.0, -1.0, 1.0, -1.0, 1.0])
    y = np.array([10.0, 20.1, 10.2, 19.9, 9.9, 25.0])
    for count, named in ((6, ["5"]), (5, [])):
        terms = np.column_stack([np.ones(count), x[-count:]])
        labels = tuple("012345"[-count:])
        found = suspecting.suspects(labels, y[-count:], terms, np.zeros((count, 0)))
        assert [s.label for s in found] == named


@pytest.mark.parametrize(("relative", "bad", "named"), [(0.1, 1.0, []), (0.1, 2.5, ["1"]), (0.0, 2.5, ["1"])])
def test_long_runs_are_no_suspects_for_being_long(relative, bad, named):
    """Noise in proportion: off by as much, a short run is a suspect and a long one is not."""
    levels = np.tile(regular(("A", "B"), 4).levels.astype(float), (8, 1))
    mean = np.where(levels[:, 0] > 0, 100.0, 5.0)
    noise = np.random.default_rng(2).standard_normal(32)
    y = mean * (1 + relative * noise) if relative else mean + 0.3 * noise
    first = int(np.argmin(levels[:, 0]))
    y[first] = 5.0 * bad
    found = analyse(trials("AB", levels, y)).suspects
    assert [s.label for s in found] == [str(first + 1)] * len(named)
    assert all(s.expected == pytest.approx(5.0, rel=0.15) for s in found)
    if relative and not named:
        y[first] = 5.0
        assert analyse(trials("AB", levels, y)).suspects == ()


@pytest.mark.parametrize(("larger", "bound"), [(0, 0.5), (9, 0.5), (10, np.inf)])
def test_where_it_is_close_the_limit_is_a_rank(monkeypatch, larger, bound):
    """Of 200 simulated experiments and this one, the ten largest are 5 %."""
    data = with_a_bad_trial()
    terms, none = np.column_stack([np.ones(24), data.x]), np.zeros((24, 0))
    found = suspecting._judged(data.y, terms, none)
    top = found.size.max()
    drawn = iter([1.2 * top] * larger + list(np.linspace(0.5, 0.1, 200 - larger) * top))
    monkeypatch.setattr(suspecting, "_judged", lambda *_: SimpleNamespace(size=np.array([0.0, next(drawn)])))
    limit = suspecting._simulated(found, data.y, np.ones(24), terms, none)
    # The tenth from above, of which as many may be larger than this one as there are before it.
    step = 0.4 / (199 - larger)
    assert limit == pytest.approx((bound - (9 - larger) * step) * top)


def test_numbers_below_zero_in_notes_have_a_minus_sign() -> None:
    """Responses whose reciprocals are linear, and a note on a covariate that they fall with."""
    generator = np.random.default_rng(5)
    x = np.tile([[1.0 if k >> j & 1 else -1.0 for j in range(3)] for k in range(8)], (3, 1))
    y = 1 / (10 + 4 * x[:, 0] + 3 * x[:, 1] + 0.3 * generator.standard_normal(24))
    told = powers(trials(["A", "B", "C"], x, y, np.repeat(np.arange(3), 8)), True).text
    assert told.startswith("power −") and "its power −0.5 fits" in told
    note = _covariate_note("clock", -0.512, 0.1, 20)
    assert "−0.512 for each unit" in note and "-" not in told + note
