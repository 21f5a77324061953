"""Intervals and verdicts of the factor model at their stated level, and what is left out against refits."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from desktop.core.factor_answers import (
    choose,
    crossover_places,
    fastest_place,
    half_share_places,
    shares,
)
from desktop.core.factor_intervals import (
    _leave_out,
    _without_all,
    accused,
    f_test,
    interval,
    suspects,
    tail_limit,
    widths,
)
from desktop.core.factor_model import Measurements, fit_individual, fit_joint
from desktop.core.normal_form import search_forms
from tests.benchmarks.factor_coverage import (
    HEAVY,
    LACKING,
    LATE,
    NOISES,
    Truth,
    beyond,
    left_out,
    simulate,
    standing_out,
)

DATA = Path(__file__).parent.parent / "data" / "npb"
PAIR = ("1/p", "1/sqrt(p)")


@pytest.fixture(scope="module")
def class_a() -> Measurements:
    """Constructed values that reproduce the paper's class A."""
    with (DATA / "npb21_classA_surrogate.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    codes = tuple(dict.fromkeys(row["code"] for row in rows))
    systems = tuple(dict.fromkeys(row["system"] for row in rows))
    return Measurements(
        codes,
        systems,
        np.array([codes.index(row["code"]) for row in rows]),
        np.array([systems.index(row["system"]) for row in rows]),
        np.array([float(row["p"]) for row in rows]),
        np.array([float(row["t_prime"]) for row in rows]),
        transformed=True,
    )


# --- levels ---


@pytest.mark.parametrize("kind", ["relative, 15 %", "constant in t", LACKING])
def test_new_measurements_lie_in_their_intervals(kind):
    """The whole table is in the handbook; here few tables, so within the spread of their number."""
    found = simulate(kind, 5, now=True)
    for name in ("new measurement, joint", "new measurement, individual", "a cell left out"):
        assert 0.90 <= found.share(name) <= 1.0, name
    assert found.share("speeds") > 0.75
    assert found.share("tables accused, individual") < 0.5


def test_before_the_same_verdicts_did_not_hold():
    """The tally can tell: asymptotic errors miss speeds of cells off the form, and accused every table."""
    found = simulate(LACKING, 8, now=False)
    assert found.share("speeds") < 0.75 and found.share("tables accused, individual") == 1.0


def test_cells_left_out_of_class_a_lie_in_their_intervals(class_a):
    found = left_out(class_a, now=True, functions=PAIR)
    assert 0.90 <= found.share("a cell left out") <= 0.98
    assert found.share("largest p, joint") >= 0.9 and found.share("largest p, individual") >= 0.9


def test_nothing_widens_where_the_model_holds():
    rng = np.random.default_rng(3)
    truth = Truth.drawn(rng, "relative, 5 %")
    y = NOISES["relative, 5 %"](rng, truth.y, truth.p)
    found = widths(fit_joint(truth.measured(y), ("1/p", "1"), "log"))
    assert (found.lack, found.cell, found.cell_times) == (1.0, 1.0, 1.0)
    assert found.form is not None and found.form.p > 0.05


# --- left out in closed form ---


@pytest.mark.parametrize("response", ["t'", "log"])
def test_a_cell_left_out_is_predicted_as_by_a_fit_without_it(class_a, response):
    fit = fit_joint(class_a, PAIR, response)
    cell = class_a.code * 4 + class_a.system
    left = _leave_out(fit, cell)
    error = np.full(len(class_a), np.nan)
    for k in np.unique(cell).tolist():
        mine = cell == k
        other = fit_joint(class_a.only(~mine), PAIR, response, starts=0)
        value, y = other.predict(k // 4, k % 4, class_a.p[mine])[0], class_a.time[mine]
        error[mine] = np.log(y / value) if response == "log" else y - value
    # One step from the whole fit; what remains is of second order, and most for t'.
    assert left.row.size == len(class_a)
    close, size = (0.98, 0.1) if response == "log" else (0.85, 0.25)
    assert np.corrcoef(error[left.row], left.error)[0, 1] > close
    assert np.sqrt((left.error**2).mean()) == pytest.approx(np.sqrt((error**2).mean()), rel=size)


def test_a_cell_fitted_alone_loses_its_largest_p_exactly(class_a):
    fit = fit_individual(class_a, PAIR)
    mine = np.flatnonzero((class_a.code == 2) & (class_a.system == 2))
    out = mine[-2:]
    group = np.full(len(class_a), -1)
    group[out] = 0
    left = _leave_out(fit, group)
    keep = np.ones(len(class_a), bool)
    keep[out] = False
    other = fit_individual(class_a.only(keep), PAIR)
    value, se, _ = other.predict(2, 2, class_a.p[out])
    assert left.error == pytest.approx(class_a.time[out] - value, rel=1e-9)
    own = other._cell_s2(2, 2)
    assert np.sqrt(left.spread * own) == pytest.approx(se, rel=1e-9)
    rest = np.isin(np.arange(len(class_a)), mine) & keep
    kept = (other.residual[other.data.code * 4 + other.data.system == 10] ** 2).sum()
    assert (fit.residual[mine] ** 2).sum() - left.gone[0] == pytest.approx(kept, rel=1e-9)
    assert rest.sum() == mine.size - 2


def test_intervals_widen_beyond_what_was_measured(class_a):
    fit = fit_joint(class_a, PAIR, "log")
    p = np.array([64.0, 144.0, 288.0, 576.0, 1440.0])
    value, low, high = interval(fit, 0, 0, p)
    wide = np.log(high / low)
    assert (np.diff(wide[1:]) > 0).all() and wide[2] > 1.02 * wide[1] and (low > 0).all()
    assert value == pytest.approx(fit.predict(0, 0, p)[0])


def test_growth_that_all_cells_share_widens_what_is_said_beyond():
    """Fitted is 1/p + 1, and all cells have a part in p as well: the largest p of one cell is predicted well
    by those of the others, a further p is not, and only without all of them that shows."""
    found = beyond(LATE, 8)
    assert found.share("2 p, joint") > 0.8


def test_the_largest_p_of_all_cells_are_predicted_by_a_fit_without_them(class_a):
    fit = fit_joint(class_a, PAIR, "log")
    end = np.zeros(len(class_a), bool)
    for cell in np.unique(class_a.code * 4 + class_a.system):
        mine = class_a.code * 4 + class_a.system == cell
        end |= mine & (class_a.p == class_a.p[mine].max())
    row, z2, df = _without_all(fit, end)
    rest = fit_joint(class_a.only(~end), PAIR, "log")
    k = int(np.flatnonzero((class_a.code[row] == 1) & (class_a.system[row] == 3))[0])
    value, _, se = rest.predict(1, 3, class_a.p[row[k : k + 1]])
    assert z2[k] == pytest.approx((np.log(class_a.time[row[k]] / value[0]) / se[0]) ** 2, rel=1e-5)
    assert df[k] == rest.df and row.size == end.sum()


def test_the_scale_of_what_is_left_out_is_that_of_the_rest():
    """Without operations t' is over the median of the rows of a code, which differs without some of them."""
    rng = np.random.default_rng(6)
    truth = Truth.drawn(rng, "relative, 5 %")
    data = truth.measured(NOISES["relative, 5 %"](rng, truth.y, truth.p))
    bare = Measurements(data.codes, data.systems, data.code, data.system, data.p, data.time)
    for kind in ("t'", "log"):
        known, unknown = (widths(fit_joint(one, ("1/p", "1"), kind)) for one in (data, bare))
        assert unknown.ends == known.ends == 16
        if kind == "log":  # what a factor of a code does not change
            assert unknown.rise == pytest.approx(known.rise, rel=1e-3, abs=1e-6)


# --- the choice ---


def test_the_choice_compares_responses_on_one_scale(class_a):
    """-2 log L of t': of its logarithm the density is divided by t'."""
    choice = choose(class_a, "joint")
    assert choice.fit.functions == PAIR and choice.fit.response.kind == "log"
    plain = next(r for r in choice.rivals if r.functions == PAIR and r.response == "t'")
    log, t = fit_joint(class_a, PAIR, "log"), fit_joint(class_a, PAIR)
    by_hand = 116 * np.log(t.sse / log.sse) - 2 * np.log(class_a.time).sum()
    assert plain.more == pytest.approx(by_hand, rel=1e-6)
    assert [r.more for r in choice.rivals] == sorted(r.more for r in choice.rivals)


def test_the_pair_that_made_the_table_is_chosen():
    rng = np.random.default_rng(8)
    truth = Truth.drawn(rng, "constant in t")
    y = NOISES["constant in t"](rng, truth.y, truth.p)
    chosen = choose(truth.measured(y), "joint").fit
    assert chosen.functions == ("1/p", "1") and chosen.response.kind == "t"


# --- verdicts ---


def test_the_form_is_tested_though_some_cells_have_few_points(class_a):
    """'106 of 109': a cell with one point is met by any delta and says nothing against the form."""
    keep = np.ones(len(class_a), bool)
    first = np.flatnonzero((class_a.code == 0) & (class_a.system == 0))
    keep[first[1:]] = False
    data = class_a.only(keep)
    joint, individual = fit_joint(data, PAIR), fit_individual(data, PAIR)
    assert individual.n == joint.n - 1
    test = f_test(joint, individual)
    assert test is not None and (test.df1, test.df2) == (31 - 14, joint.n - 31)
    by_hand = (joint.sse - individual.sse) / 17 / (individual.sse / test.df2)
    assert test.f == pytest.approx(by_hand)


def test_one_wrong_row_is_accused_and_only_it(class_a):
    rng = np.random.default_rng(2)
    truth = Truth.drawn(rng, "relative, 5 %")
    y = truth.y * np.exp(0.03 * rng.normal(size=truth.y.size))
    y[10] *= 1.4
    data = truth.measured(y)
    for fit in (fit_joint(data, ("1/p", "1"), "log"), fit_individual(data, ("1/p", "1"), "log")):
        assert accused(fit).tolist() == suspects(fit).tolist() == [10], fit.kind


@pytest.mark.parametrize("joint", [True, False])
def test_the_level_of_accusations_holds_for_heavy_tails(class_a, joint):
    """Rows that only look odd by normal errors are worth a look, and no more is said of them."""
    for kind in (HEAVY, "delays (exponential)"):
        found = standing_out(class_a, joint, kind, 30)
        assert found.share("accused") <= 0.1 and found.share("worth a look") > 0.15, kind
    wrong = standing_out(class_a, joint, "relative, 5 %", 20, 2.0)
    assert wrong.share("accused") >= (0.9 if joint else 0.7) and wrong.share("worth a look") >= 0.9


def test_what_is_accused_is_beyond_tails_like_those_of_the_other_rows():
    """The level of the largest of normal and of heavy-tailed errors; one that is far off is still seen."""
    rng = np.random.default_rng(4)
    passed = {"normal": 0, "t": 0}
    for _ in range(25):
        for name, errors in (("normal", rng.normal(size=100)), ("t", rng.standard_t(5, size=100))):
            size = np.abs(errors)
            passed[name] += bool(size.max() > tail_limit(size, 1))
    # the normal quantile, 3.5 standard deviations, is passed by every third of the heavy-tailed
    assert passed["normal"] <= 3 and passed["t"] <= 4
    size = np.abs(rng.normal(size=100))
    size[:2] = 8.0
    assert 2.9 < tail_limit(size, 2) < 8.0
    assert tail_limit(3 * size, 2) == pytest.approx(3 * tail_limit(size, 2), rel=1e-6)


# --- places with intervals ---


def two_systems(noise: float) -> Measurements:
    """T = 100/p + 1 and 400/p + 0.1: they cross at p = 333, half of the first is its constant at 100."""
    rng = np.random.default_rng(4)
    p = np.tile(2.0 ** np.arange(10), 4)
    code, system = np.repeat([0, 0, 1, 1], 10), np.repeat([0, 1, 0, 1], 10)
    time = np.where(system == 0, 100 / p + 1.0, 400 / p + 0.1) * (1 + code)
    return Measurements(
        ("one", "two"), ("x", "y"), code, system, p, time * np.exp(noise * rng.normal(size=p.size))
    )


def test_places_bear_intervals_that_hold_the_truth():
    fit = fit_joint(two_systems(0.03), ("1/p", "1"), "log")
    (crossing,) = crossover_places(fit, 0, 0, 1)
    assert crossing.low < 1000 / 3 < crossing.high < 1000 and crossing.low > 200
    (half,) = half_share_places(fit, 0, 0, 1)
    assert half.low < 100 < half.high and half.high / half.low < 1.5 and half.rising
    exact = fit_joint(two_systems(0.0), ("1/p", "1"))
    (sharp,) = crossover_places(exact, 0, 0, 1)
    assert (sharp.low, sharp.high) == pytest.approx((1000 / 3, 1000 / 3), rel=1e-3)


def test_nothing_is_said_beyond_ten_times_the_data():
    """400/p + 0.1 is halved by its constant at p = 4000; the data end at 64."""
    data = two_systems(0.01)
    fit = fit_joint(data.only(data.p <= 64), ("1/p", "1"), "log")
    assert half_share_places(fit, 0, 1, 1) == ()
    assert crossover_places(fit_joint(data.only(data.p <= 16), ("1/p", "1"), "log"), 0, 0, 1) == ()


def test_the_least_time_has_an_interval_at_its_level():
    p, held = np.tile(2.0 ** np.arange(9), 2), 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        time = (100 / p + 0.01 * p) * np.exp(0.02 * rng.normal(size=p.size))
        data = Measurements(("a",), ("x",), np.zeros(18, int), np.zeros(18, int), p, time)
        place = fastest_place(fit_individual(data, ("1/p", "p"), "log"), 0, 0)
        assert place.p == pytest.approx(100, rel=0.1) and place.high < 1.1 * place.low
        held += place.low <= 100 <= place.high
    assert 34 <= held <= 40


def test_shares_stay_shares_where_a_part_is_below_zero():
    p = np.tile(2.0 ** np.arange(6), 2)
    data = Measurements(
        ("a",), ("x", "y"), np.zeros(12, int), np.repeat([0, 1], 6), p, 10 / p**1.3, transformed=False
    )
    fit = fit_individual(data, PAIR)
    assert (fit.delta[1] < 0).all()
    found = shares(fit, 0, 0, p[:6])
    assert (found >= 0).all() and (found <= 1).all() and found.sum(0) == pytest.approx(np.ones(6))


# --- the problem size ---


def test_weak_scaling_is_followed_with_the_problem_size():
    """T = 0.002 N/p + 0.05 log p: strong scaling of two sizes, and weak scaling on a second system, whose
    curve keeps N/p."""
    rng = np.random.default_rng(5)
    p = np.concatenate([np.tile(2.0 ** np.arange(7), 2), 2.0 ** np.arange(7)])
    size = np.concatenate([np.full(7, 1e4), np.full(7, 4e4), 1e3 * p[:7]])
    system = np.concatenate([np.zeros(14, int), np.ones(7, int)])
    time = (2e-3 * size / p + 0.05 * np.log(p)) * (1 + system) * np.exp(0.01 * rng.normal(size=p.size))
    data = Measurements(("a",), ("x", "y"), np.zeros(21, int), system, p, time, size=size)
    fit = choose(data, "individual", ("N/p", "log(p)"), "log").fit
    assert fit.delta[:, 0, 0] * 1 == pytest.approx(fit.delta[:, 0, 1] / 2, rel=0.05)
    at = np.array([128.0, 256.0])
    assert fit.seconds(0, 1, at) == pytest.approx(2 * (2e-3 * 1e3 + 0.05 * np.log(at)), rel=0.03)
    assert fit.seconds(0, 0, at) == pytest.approx(2e-3 * 4e4 / at + 0.05 * np.log(at), rel=0.05)
    assert "N/p" in choose(data, "individual").fit.functions
    with pytest.raises(ValueError, match="needs the problem size N"):
        fit_individual(Measurements(("a",), ("x", "y"), data.code, system, p, time), ("N/p", "1"))


# --- normal forms ---


def test_the_form_that_made_the_times_is_found():
    p = 2.0 ** np.arange(8)
    laws = [lambda p: 3 + 200 / p, lambda p: 50 * p**-0.5, lambda p: 0.4 * np.log2(p) + 90 / p]
    code = np.repeat(np.arange(3), 8)
    time = np.concatenate([law(p) for law in laws]) * np.exp(1e-4 * np.random.default_rng(1).normal(size=24))
    data = Measurements(("a", "b", "c"), ("x",), code, np.zeros(24, int), np.tile(p, 3), time)
    found = search_forms(data)
    for form, law in zip(found.forms, laws, strict=True):
        assert form.value(np.array([512.0, 1000.0])) == pytest.approx(
            law(np.array([512.0, 1000.0])), rel=0.02
        )
    assert "p^(-1)" in found.forms[0].text and len(found.forms[0].terms) == 1
    _, low, high = found.interval(found.forms[0], np.array([100.0, 1000.0]))
    assert high[0] / low[0] < high[1] / low[1]


def test_forms_that_fall_below_zero_are_no_times(class_a):
    found = search_forms(class_a)
    assert len(found.forms) == 15, "one cell has three p"
    for form in found.forms:
        assert (form.value(np.geomspace(form.least, 10 * form.largest, 24)) > 0).all()
    with pytest.raises(ValueError, match="4 or more different p"):
        search_forms(class_a.only(class_a.p <= 4))
