"""The factor model against the paper's tables, regenerated data, scipy, and the rules of its brief."""

from __future__ import annotations

import csv
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as some
from scipy.optimize import least_squares

from desktop.core.characteristic import CHARACTERISTICS, characteristic
from desktop.core.factor_answers import (
    crossover_places,
    fastest_p,
    half_share_places,
    leave_cells_out,
    rank_pairs,
    shares,
)
from desktop.core.factor_intervals import f_test, quantile, suspects
from desktop.core.factor_model import Measurements, fit_individual, fit_joint
from desktop.core.factor_response import respond
from desktop.progress import Cancelled, Progress

DATA = Path(__file__).parent.parent / "data" / "npb"
SHARED = Path(__file__).parents[3] / "shared" / "data" / "npb"
PAIR = ("1/p", "1/sqrt(p)")


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def measurements(table, p="p", time="t_prime", peak=None, transformed=True) -> Measurements:
    codes = tuple(dict.fromkeys(row["code"] for row in table))
    systems = tuple(dict.fromkeys(row["system"] for row in table))
    return Measurements(
        codes,
        systems,
        np.array([codes.index(row["code"]) for row in table]),
        np.array([systems.index(row["system"]) for row in table]),
        np.array([float(row[p]) for row in table]),
        np.array([float(row[time]) for row in table]),
        peak=None if peak is None else np.array([peak[name] for name in systems]),
        transformed=transformed,
    )


@pytest.fixture(scope="module")
def class_a() -> Measurements:
    """Constructed values that reproduce the paper's class A (its measurements are not to be had)."""
    return measurements(rows(DATA / "npb21_classA_surrogate.csv"))


def named(fit, i):
    """Speeds and works of one function with their standard errors."""
    speeds = zip(fit.data.systems, fit.speed[i], fit.speed_se[i], strict=True)
    works = zip(fit.data.codes, fit.work[i], fit.work_se[i], strict=True)
    return {name: (value, se) for name, value, se in (*speeds, *works)}


# --- the paper's tables ---


@pytest.mark.parametrize(
    ("functions", "sse", "delta"),
    [
        (("1/p", "1/sqrt(p)"), 26.40, (11.595, 0.558)),
        (("1/p", "1"), 28.05, (14.066, 0.027)),
        (("log(p)/p", "1/p^2"), 26.13, (3.6165, 64.056)),
        (("1/p", "p"), 35.41, (15.434, 0.0001)),
    ],
)
def test_table_2(class_a, functions, sse, delta):
    sp, t3d = class_a.codes.index("SP"), class_a.systems.index("Cray T3D")
    cell = class_a.only((class_a.code == sp) & (class_a.system == t3d))
    fit = fit_individual(cell, functions)
    assert len(cell) == 12
    assert fit.sst == pytest.approx(3677.85, abs=0.005)
    assert fit.sse == pytest.approx(sse, abs=0.006)
    assert fit.delta[:, sp, t3d] == pytest.approx(delta, abs=6e-4)


@pytest.mark.parametrize(
    ("functions", "sse"),
    [
        (("1/p", "1"), 47.04),
        (("1/p", "log(p)"), 48.59),
        (("1/p", "1/sqrt(p)"), 52.39),
        (("1/p", "log(p)/p"), 80.87),
        (("log(p)/p", "1/p^2"), 103.91),
    ],
)
def test_table_3(class_a, functions, sse):
    fit = fit_individual(class_a, functions)
    assert (fit.n, fit.npar) == (116, 32)
    assert fit.sst == pytest.approx(13937.17, abs=0.005)
    assert fit.sse == pytest.approx(sse, abs=0.005)


@pytest.mark.parametrize(
    ("functions", "sse"),
    [(PAIR, 130.2755), (("1/p", "1"), 141.9980), (("1/p", "log(p)/p"), 146.2300)],
)
def test_table_4(class_a, functions, sse):
    fit = fit_joint(class_a, functions)
    assert fit.npar == 14
    assert fit.sse == pytest.approx(sse, abs=6e-5)
    assert fit.status == "converged"
    assert fit.starts_agreeing == fit.starts


def test_table_5(class_a):
    fit = fit_joint(class_a, PAIR)
    expected = (
        {
            "IBM SP2": (1.0, np.nan),
            "Intel Paragon": (0.3706, 0.0317),
            "Cray T3D": (0.4100, 0.0312),
            "SGI PC-Array": (0.4082, 0.0373),
            "BT": (4.0088, 0.3651),
            "LU": (3.5058, 0.2978),
            "SP": (4.1206, 0.3373),
            "MG": (3.9707, 0.3474),
        },
        {
            "IBM SP2": (1.0, np.nan),
            "Intel Paragon": (1.2206, 0.2336),
            "Cray T3D": (1.1063, 0.1255),
            "SGI PC-Array": (3.8788, 4.9151),
            "BT": (0.1712, 0.0562),
            "LU": (0.3195, 0.0637),
            "SP": (0.7528, 0.0705),
            "MG": (0.2347, 0.0667),
        },
    )
    for i in range(2):
        for name, (value, se) in named(fit, i).items():
            # The undetermined one is given to fewer digits than the others.
            near = {"abs": 5e-4 if name == "SGI PC-Array" and i else 6e-5}
            assert value == pytest.approx(expected[i][name][0], **near), name
            assert se == pytest.approx(expected[i][name][1], nan_ok=True, **near), name
    t3d, paragon = class_a.systems.index("Cray T3D"), class_a.systems.index("Intel Paragon")
    assert fit.ratio("speed", 0, t3d, paragon) == pytest.approx((1.1064, 0.0612), abs=6e-5)
    # 2.35 (3.63) is printed where the surrogate gives 2.43 (3.88): neither is determined.
    other = named(fit_joint(class_a, ("1/p", "1")), 1)["SGI PC-Array"]
    assert other == pytest.approx((2.43, 3.88), abs=0.006)


def test_product_form_does_not_hold_in_the_strict_sense(class_a):
    test = f_test(fit_joint(class_a, PAIR), fit_individual(class_a, PAIR))
    assert (test.df1, test.df2) == (18, 84)
    assert test.f == pytest.approx(6.94, abs=0.005)
    assert 0 < test.p < 1e-8


def test_rankings(class_a):
    alone = rank_pairs(class_a, "individual")
    assert alone.fits[0].functions == ("1/p", "1")
    assert [fit.sse for fit in alone.fits] == sorted(fit.sse for fit in alone.fits)
    assert alone.best_sse == pytest.approx(38.4, abs=0.05)
    assert alone.best_sse <= alone.fits[0].sse
    # The paper's table drops a pair that is no better than one of its functions alone.
    by_functions = {fit.functions: fit for fit in alone.fits}
    assert all(
        fit.sse < by_functions[f,].sse
        for fit in alone.fits
        if len(fit.functions) == 2
        for f in fit.functions
        if (f,) in by_functions
    )
    together = rank_pairs(class_a, "joint")
    assert together.fits[0].functions == PAIR
    assert np.isnan(together.best_sse)


@pytest.mark.skipif(not SHARED.exists(), reason="the measured times are not part of the project (GPL-3.0)")
@pytest.mark.parametrize(
    ("four", "functions", "joint", "individual"),
    [
        (True, ("1/p", "1"), 4.7239, 1.3040),
        (True, PAIR, 4.8162, 2.5953),
        (False, ("1/p", "1"), 5.0028, 1.6135),
        (False, ("1/p", "log(p)"), 5.7530, 1.7338),
        (False, PAIR, 7.5615, 3.6123),
    ],
)
def test_real_measurements(four, functions, joint, individual):
    """A start from logarithms of the individual deltas ends at 7.228 on the 8 x 3 set."""
    table = rows(SHARED / "ukhpc_scaling.csv")
    if four:
        table = [r for r in table if r["system"] in ("ARCHER", "Cirrus", "CSD3-Skylake", "Isambard")]
    peaks = {r["system"]: float(r["r_peak_gflops_per_core"]) for r in rows(SHARED / "ukhpc_systems.csv")}
    data = measurements(table, "p_cores", "time_s_median", peaks, transformed=False)
    assert fit_joint(data, functions).sse == pytest.approx(joint, abs=6e-5)
    assert fit_individual(data, functions).sse == pytest.approx(individual, abs=6e-5)
    if four and functions == PAIR:
        bounded = fit_joint(data, functions, positive=True)
        assert bounded.sse == pytest.approx(5.426, abs=6e-4)
        assert bounded.work.min() >= 0
        assert any("constrained to at least zero" in w for w in bounded.warnings)


# --- regenerated data ---


def from_table_5() -> tuple[Measurements, dict[tuple[str, str, str], float]]:
    """t' from the printed parameters of class A, 1/p + 1/sqrt(p), at the counts of class A."""
    printed = {
        (row["function"], row["kind"], row["name"]): float(row["value"])
        for row in rows(DATA / "utk97354_table5_joint_parameters.csv")
        if (row["class"], row["model_u1"], row["model_u2"]) == ("A", *PAIR)
    }
    data = measurements(rows(DATA / "npb21_classA_surrogate.csv"))
    y = np.zeros(len(data))
    for text in PAIR:
        g = data.p * characteristic(text).u(data.p)
        w = np.array([printed[text, "code", name] for name in data.codes])
        r = np.array([printed[text, "system", name] for name in data.systems])
        y += g * w[data.code] / r[data.system]
    return Measurements(
        data.codes, data.systems, data.code, data.system, data.p, y, transformed=True
    ), printed


def parameters(fit) -> dict[tuple[str, str, str], tuple[float, float]]:
    found = {}
    for i, text in enumerate(fit.functions):
        for name, value, se in zip(fit.data.systems, fit.speed[i], fit.speed_se[i], strict=True):
            found[text, "system", name] = value, se
        for name, value, se in zip(fit.data.codes, fit.work[i], fit.work_se[i], strict=True):
            found[text, "code", name] = value, se
    return found


def test_exact_data_give_their_parameters_back():
    data, printed = from_table_5()
    fit = fit_joint(data, PAIR)
    assert fit.sse < 1e-12 * fit.sst
    for key, (value, _) in parameters(fit).items():
        assert value == pytest.approx(printed[key], rel=1e-6), key


def test_exact_data_leave_no_error_to_test_with():
    """What is left is rounding: it rejects no product form and makes no row suspect."""
    p = np.tile([1.0, 2.0, 4.0, 8.0, 16.0], 9)
    code, system = np.repeat(np.arange(9) // 3, 5), np.repeat(np.arange(9) % 3, 5)
    time = (1 + code) / (1 + system) / p + 0.1 * (2 + code) / (1 + 0.5 * system) / np.sqrt(p)
    data = Measurements(("a", "b", "c"), ("x", "y", "z"), code, system, p, time)
    joint, individual = fit_joint(data, PAIR), fit_individual(data, PAIR)
    assert f_test(joint, individual) is None
    assert suspects(joint).size == suspects(individual).size == 0


@pytest.mark.parametrize("fit", [fit_joint, fit_individual])
def test_equal_responses_have_no_share_that_is_explained(fit):
    code, system = np.repeat([0, 0, 1, 1], 3), np.repeat([0, 1, 0, 1], 3)
    ones = Measurements(
        ("a", "b"), ("x", "y"), code, system, np.tile([1.0, 2.0, 4.0], 4), np.ones(12), transformed=True
    )
    assert np.isnan(fit(ones, ("1/p",), "log").r2)
    assert fit(ones, ("1/p",), "t'").r2 == 1.0


@pytest.mark.parametrize("fit", [fit_joint, fit_individual])
def test_a_function_without_a_value_is_named(class_a, fit):
    with pytest.raises(ValueError, match=r"1/\(p-16\) has no finite value at p = 16"):
        fit(class_a, ("1/p", "1/(p-16)"))


def test_a_reference_may_be_as_small_as_its_times():
    """In seconds, short runs on many processors have tiny work; that is no vanishing reference."""
    data = random_table(np.random.default_rng(5), 3, 3)
    short = Measurements(data.codes, data.systems, data.code, data.system, data.p, 1e-14 * data.time / data.p)
    fits = [fit_joint(short, ("1/p", "1"), "t", reference=name) for name in (None, "code 1")]
    assert fits[1].sse == pytest.approx(fits[0].sse, rel=1e-9)


def test_noise_stays_within_two_standard_errors_as_often_as_it_should():
    """95.5 % of 2100 estimates in 150 draws; a draw of our own, so within the spread of that share."""
    data, printed = from_table_5()
    generator = np.random.default_rng(5)
    inside = total = 0
    for _ in range(60):
        noisy = Measurements(
            data.codes, data.systems, data.code, data.system, data.p,
            data.time + generator.normal(0, 0.3, len(data)), transformed=True,
        )  # fmt: skip
        for key, (value, se) in parameters(fit_joint(noisy, PAIR, starts=1)).items():
            if np.isfinite(se):
                total += 1
                inside += abs(value - printed[key]) < 2 * se
    assert total == 60 * 14
    assert 0.92 < inside / total < 0.985


# --- an independent oracle ---


def random_table(generator, codes, systems, holes=0.0):
    cells = [(c, s) for c, s in product(range(codes), range(systems)) if generator.random() >= holes]
    code, system, p = [], [], []
    for c, s in cells:
        for value in generator.choice([1, 2, 4, 8, 16, 32, 64, 128], generator.integers(3, 8), replace=False):
            code.append(c)
            system.append(s)
            p.append(float(value))
    code, system, p = np.array(code), np.array(system), np.array(p)
    w, v = generator.uniform(0.5, 3, (2, codes)), generator.uniform(0.5, 2, (2, systems))
    y = w[0, code] * v[0, system] + 0.3 * w[1, code] * v[1, system] * np.sqrt(p)
    y *= 1 + 0.05 * generator.normal(size=p.size)
    names = tuple(f"code {i}" for i in range(codes)), tuple(f"system {i}" for i in range(systems))
    return Measurements(*names, code, system, p, y, transformed=True)


@pytest.mark.parametrize("response", ["t'", "log"])
@settings(deadline=None, max_examples=6)
@example(seed=1891059)  # what relative squares put at zero, squares of logarithms do not
@example(seed=37216)  # steps for the logarithms go too far each time, by nearly as much as they should go
@given(seed=some.integers(0, 2**31))
def test_no_bounded_start_of_scipy_ends_lower(response, seed):
    """With the parameters kept from falling below zero, where the free fit may have some there."""
    generator = np.random.default_rng(seed)
    data = random_table(generator, 3, 3)
    # Steeper than 1/p for one code: what 1/sqrt(p) takes part in has to be negative, or 0.
    steep = np.where(data.code == 0, data.time / data.p**0.2, data.time)
    data = Measurements(data.codes, data.systems, data.code, data.system, data.p, steep, transformed=True)
    fit = fit_joint(data, PAIR, response, positive=True)
    assert (fit.work >= 0).all() and (fit.speed > 0).all() and fit.status == "converged"
    columns = np.stack([np.ones(len(data)), np.sqrt(data.p)], axis=1)

    def residual(theta):
        w, v = theta[:6].reshape(3, 2), np.vstack([np.ones(2), theta[6:].reshape(2, 2)])
        value = (columns * w[data.code] * v[data.system]).sum(1)
        return np.log(value / data.time) if response == "log" else value - data.time

    for _ in range(4):
        start = np.exp(generator.normal(0, 0.5, 10))
        other = least_squares(residual, start, bounds=(1e-12, np.inf))
        assert fit.sse <= 2 * other.cost * (1 + 1e-6)
    free = fit_joint(data, PAIR, response)
    if (free.work > 0).all() and (free.speed > 0).all():
        assert fit.sse == pytest.approx(free.sse, rel=1e-9)


@pytest.mark.parametrize("response", ["t'", "log"])
@settings(deadline=None, max_examples=12)
@given(seed=some.integers(0, 2**31))
def test_no_start_of_scipy_ends_lower(response, seed):
    generator = np.random.default_rng(seed)
    data = random_table(generator, 3, 3)
    fit = fit_joint(data, PAIR, response)
    g = np.stack([np.ones(len(data)), np.sqrt(data.p)], axis=1)

    def residual(theta):
        w, v = theta[:6].reshape(3, 2), np.concatenate([np.ones((1, 2)), theta[6:].reshape(2, 2)])
        value = (g * w[data.code] * v[data.system]).sum(1)
        if response == "log":
            return np.log(data.time) - np.log(np.maximum(value, 1e-12))
        return data.time - value

    for _ in range(4):
        found = least_squares(residual, generator.uniform(0.3, 3, 10), method="lm", xtol=1e-14, ftol=1e-14)
        assert fit.sse <= 2 * found.cost * (1 + 1e-9)
    # The oracle from our minimum has nowhere to go, and gives the same standard errors.
    own = np.concatenate([fit.work.T.ravel(), (1 / fit.speed.T[1:]).ravel()])
    found = least_squares(residual, own, method="lm", xtol=1e-15, ftol=1e-15, gtol=1e-15)
    assert 2 * found.cost == pytest.approx(fit.sse, rel=1e-9)
    variance = np.linalg.inv(found.jac.T @ found.jac) * fit.sse / fit.df
    by_oracle = np.sqrt(np.diag(variance))
    assert fit.work_se.T.ravel() == pytest.approx(by_oracle[:6], rel=1e-3)
    scale = 1 / own[6:] ** 2
    assert fit.speed_se.T[1:].ravel() == pytest.approx(by_oracle[6:] * scale, rel=1e-3)
    if response == "t'":
        hat = found.jac @ np.linalg.inv(found.jac.T @ found.jac) @ found.jac.T
        assert fit.leverage == pytest.approx(np.diag(hat), rel=1e-3, abs=1e-6)


@settings(deadline=None, max_examples=15)
@given(seed=some.integers(0, 2**31))
def test_nothing_depends_on_the_reference(seed):
    generator = np.random.default_rng(seed)
    data = random_table(generator, 3, 4, holes=0.2)
    try:
        fit = fit_joint(data, PAIR)
    except ValueError:
        return  # too few cells were left
    for reference in (*(data.systems[i] for i in np.unique(data.system)), data.codes[int(data.code[0])]):
        other = fit_joint(data, PAIR, reference=reference)
        assert other.sse == pytest.approx(fit.sse, rel=1e-8)
        assert other.fitted == pytest.approx(fit.fitted, rel=1e-5, abs=1e-7)
        if fit.condition < 1e4 and not fit.warnings:
            assert other.delta == pytest.approx(fit.delta, rel=1e-4, abs=1e-6, nan_ok=True)
            assert other.delta_se == pytest.approx(fit.delta_se, rel=1e-3, abs=1e-6, nan_ok=True)


@settings(deadline=None, max_examples=25)
@given(seed=some.integers(0, 2**31))
def test_individual_fits_are_least_squares_of_each_cell(seed):
    data = random_table(np.random.default_rng(seed), 2, 3)
    fit = fit_individual(data, PAIR)
    for c, s in product(range(2), range(3)):
        mine = (data.code == c) & (data.system == s)
        g = np.stack([np.ones(int(mine.sum())), np.sqrt(data.p[mine])], axis=1)
        value, _, _, _ = np.linalg.lstsq(g, data.time[mine], rcond=None)
        assert fit.delta[:, c, s] == pytest.approx(value, rel=1e-9)
        rest = data.time[mine] - g @ value
        cov = np.linalg.inv(g.T @ g) * (rest @ rest) / (mine.sum() - 2)
        assert fit.delta_se[:, c, s] == pytest.approx(np.sqrt(np.diag(cov)), rel=1e-6)
        at = np.array([3.0, 300.0])
        value_at, se, _ = fit.predict(c, s, at)
        j = np.stack([np.ones(2), np.sqrt(at)], axis=1)
        assert value_at == pytest.approx(j @ value)
        assert se == pytest.approx(np.sqrt(np.einsum("ki,ij,kj->k", j, cov, j)), rel=1e-6)
    assert fit.sse <= fit_joint(data, PAIR).sse * (1 + 1e-12)


def test_leverage_adds_up_to_the_parameters(class_a):
    assert fit_joint(class_a, PAIR).leverage.sum() == pytest.approx(14)
    assert fit_individual(class_a, PAIR).leverage.sum() == pytest.approx(32)


# --- the transformation ---


def test_equation_11(class_a):
    """time_s_by_eq11 = t' W / (p r_peak) brings t' back, with work and peak as given."""
    table = rows(DATA / "npb21_classA_surrogate.csv")
    counts = [row for row in rows(DATA / "npb_operation_counts.csv") if row["class"] == "A"]
    work = {row["code"]: float(row["operations_gflop"]) * 1e9 for row in counts}
    peak = {r["system"]: float(r["r_peak_mflops"]) * 1e6 for r in rows(DATA / "npb21_processor_peaks.csv")}
    timed = measurements(table, time="time_s_by_eq11", transformed=False)
    data = Measurements(
        timed.codes, timed.systems, timed.code, timed.system, timed.p, timed.time,
        np.array([work[name] for name in timed.codes]), np.array([peak[name] for name in timed.systems]),
    )  # fmt: skip
    assert respond(data).y == pytest.approx(class_a.time, rel=2e-4)  # MG: 3.892 Gflop has four digits
    assert fit_joint(data, PAIR).sse == pytest.approx(130.2755, abs=0.05)
    fit = fit_joint(data, PAIR)
    c, s = data.codes.index("SP"), data.systems.index("Cray T3D")
    assert fit.seconds(c, s, np.array([64.0])) == pytest.approx(
        fit.predict(c, s, np.array([64.0]))[0] * work["SP"] / (64 * peak["Cray T3D"])
    )


def test_missing_work_and_peak_change_no_ratio(class_a):
    timed = measurements(rows(DATA / "npb21_classA_surrogate.csv"), time="time_s_by_eq11", transformed=False)
    fit = fit_joint(timed, ("1/p", "1"))
    assert "not known" in fit.response.note
    medians = [np.median(fit.response.y[timed.code == c]) for c in range(4)]
    assert medians == pytest.approx([1.0] * 4)
    # In seconds, the model of a code does not know by what its t' was divided.
    c, s = 0, 1
    mine = (timed.code == c) & (timed.system == s)
    assert fit.seconds(c, s, timed.p[mine]) == pytest.approx(
        fit.fitted[mine] / fit.response.y[mine] * timed.time[mine]
    )


def test_responses_weight_differently():
    """t follows the longest runs; the logarithm gives every relative error the same weight."""
    data = random_table(np.random.default_rng(3), 3, 3)
    timed = Measurements(data.codes, data.systems, data.code, data.system, data.p, data.time / data.p)
    longest = timed.time > np.quantile(timed.time, 0.8)
    errors = {}
    for response in ("t'", "t", "log"):
        fit = fit_joint(timed, PAIR, response)
        seconds = np.array(
            [
                fit.seconds(c, s, np.array([p]))[0]
                for c, s, p in zip(timed.code, timed.system, timed.p, strict=True)
            ]
        )
        errors[response] = (
            ((seconds - timed.time)[longest] ** 2).sum(),
            (np.log(seconds / timed.time) ** 2).sum(),
        )
    assert errors["t"][0] == min(e[0] for e in errors.values())
    assert errors["log"][1] == min(e[1] for e in errors.values())


# --- what cannot be determined ---


def test_parts_without_anything_in_common_are_told():
    data = random_table(np.random.default_rng(1), 2, 2)
    apart = Measurements(
        ("a", "b", "c", "d"), ("w", "x", "y", "z"),
        np.concatenate([data.code, data.code + 2]), np.concatenate([data.system, data.system + 2]),
        np.tile(data.p, 2), np.tile(data.time, 2), transformed=True,
    )  # fmt: skip
    fit = fit_joint(apart, PAIR)
    assert fit.sse == pytest.approx(2 * fit_joint(data, PAIR).sse, rel=1e-9)
    assert fit.speed[:, 2] == pytest.approx([1.0, 1.0])
    assert any("2 parts" in warning for warning in fit.warnings)
    # Nothing is said across the parts: neither ratios nor times.
    assert np.isnan(fit.ratio("speed", 0, 0, 2)).all() and np.isnan(fit.ratio("work", 1, 3, 0)).all()
    assert np.isfinite(fit.ratio("speed", 0, 0, 1)).all()
    assert np.isnan(fit.delta[:, :2, 2:]).all() and np.isnan(fit.delta_se[:, 2:, :2]).all()
    assert np.isnan(fit.predict(0, 2, np.array([4.0]))).all()
    assert np.isfinite(fit.predict(0, 1, np.array([4.0]))).all()


def test_a_cell_that_holds_two_parts_together_is_not_predicted_from_the_others():
    data = random_table(np.random.default_rng(1), 2, 2)
    bridge = data.system == 0
    bridged = Measurements(
        ("a", "b", "c", "d"), ("w", "x", "y", "z"),
        np.concatenate([data.code, data.code + 2, data.code[bridge]]),
        np.concatenate([data.system, data.system + 2, data.system[bridge] + 2]),
        np.concatenate([data.p, data.p, data.p[bridge]]),
        np.concatenate([data.time, data.time, data.time[bridge]]), transformed=True,
    )  # fmt: skip
    one = bridged.only((bridged.code != 1) | (bridged.system != 2))
    checks = {(check.code, check.system): check for check in leave_cells_out(fit_joint(one, PAIR))}
    assert np.isnan(checks[0, 2].error) and "nothing in common" in checks[0, 2].reason
    assert np.isfinite(checks[0, 0].error)


def test_functions_that_look_alike_are_named():
    data = random_table(np.random.default_rng(2), 3, 3)
    far = Measurements(
        data.codes, data.systems, data.code, data.system, 1e6 + data.p, data.time, transformed=True
    )
    fit = fit_joint(far, ("1/p", "log(p)/p"))
    assert fit.status == "not determined" or fit.condition > 1e4
    if fit.status == "not determined":
        assert np.isnan(fit.covariance).all()
        assert any("strongly correlated" in warning for warning in fit.warnings)


def test_logarithm_of_one_processor_says_nothing():
    """log(p) is 0 at p = 1: a system measured there only has no speed in it."""
    data = random_table(np.random.default_rng(4), 3, 3)
    p = np.where(data.system == 2, 1.0, data.p)
    single = Measurements(data.codes, data.systems, data.code, data.system, p, data.time, transformed=True)
    fit = fit_joint(single, ("1/p", "log(p)"))
    assert np.isnan(fit.speed[1, 2])
    assert np.isfinite(fit.speed[0]).all()
    assert np.isfinite(fit.fitted).all()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda d: d.only(d.system == 0), "only one system"),
        (lambda d: d.only(d.code == 0), "only one code"),
        (lambda d: d.only(np.arange(len(d)) < 0), "no measurements"),
    ],
)
def test_refusals(class_a, change, sentence):
    with pytest.raises(ValueError, match=sentence):
        fit_joint(change(class_a), PAIR)


def test_more_refusals(class_a):
    with pytest.raises(ValueError, match="cannot determine 14 parameters"):
        kept = np.zeros(len(class_a), bool)
        for c, s in product(range(4), range(4)):
            kept[
                np.flatnonzero((class_a.code == c) & (class_a.system == s))[: 1 if c < 3 or s < 2 else 0]
            ] = True
        fit_joint(class_a.only(kept), PAIR)
    with pytest.raises(ValueError, match="no response"):
        fit_joint(class_a, PAIR, "speed")
    with pytest.raises(ValueError, match="holds t'"):
        fit_joint(class_a, PAIR, "t")
    with pytest.raises(ValueError, match="no system or code 'nobody'"):
        fit_joint(class_a, PAIR, reference="nobody")
    with pytest.raises(ValueError, match="different functions"):
        fit_individual(class_a, ("1/p", " 1/p"))


def test_cells_with_few_points_are_left_out_and_exact_ones_marked(class_a):
    kept = np.ones(len(class_a), bool)
    for cell, points in (((0, 0), 1), ((1, 1), 2)):
        mine = np.flatnonzero((class_a.code == cell[0]) & (class_a.system == cell[1]))
        kept[mine[points:]] = False
    data = class_a.only(kept)
    fit = fit_individual(data, PAIR)
    assert np.isnan(fit.delta[:, 0, 0]).all()
    assert np.isfinite(fit.delta[:, 1, 1]).all()
    assert np.isnan(fit.delta_se[:, 1, 1]).all()
    assert fit.n == len(data) - 1
    assert "BT on IBM SP2" in fit.warnings[0]
    assert "fitted exactly" in fit.warnings[1]


# --- answers ---


def test_a_missing_cell_is_predicted_from_the_others():
    data, _ = from_table_5()
    checks = leave_cells_out(fit_joint(data, PAIR))
    assert len(checks) == 16
    assert max(check.error for check in checks) < 1e-6


def test_leave_cells_out_can_be_cancelled_and_wants_a_joint_fit(class_a):
    progress = Progress()
    progress.cancel()
    with pytest.raises(Cancelled):
        leave_cells_out(fit_joint(class_a, PAIR), progress)
    with pytest.raises(ValueError, match="joint"):
        leave_cells_out(fit_individual(class_a, PAIR))


def two_systems() -> Measurements:
    """T = 100/p + 1 on the first, 400/p + 0.1 on the second, and twice that for a second code."""
    p = np.tile(2.0 ** np.arange(10), 4)
    code, system = np.repeat([0, 0, 1, 1], 10), np.repeat([0, 1, 0, 1], 10)
    first = np.where(system == 0, 100 / p + 1.0, 400 / p + 0.1)
    return Measurements(("one", "two"), ("slow start", "fast start"), code, system, p, first * (1 + code))


def test_where_one_system_overtakes_another():
    fit = fit_joint(two_systems(), ("1/p", "1"))
    places = [*(crossover_places(fit, code, 0, 1) for code in (0, 1))]
    places += [half_share_places(fit, 0, system, 1) for system in (0, 1)]
    found = [place.p for (place,) in places]  # one each
    assert found == pytest.approx([300 / 0.9, 300 / 0.9, 100, 4000], rel=1e-6)
    assert fastest_p(fit, 0, 0) == pytest.approx(1e7)
    assert shares(fit, 0, 0, np.array([100.0]))[:, 0] == pytest.approx([0.5, 0.5], rel=1e-6)


def test_where_the_time_no_longer_falls():
    data = two_systems()
    rising = Measurements(
        data.codes, data.systems, data.code, data.system, data.p, 100 / data.p + 0.01 * data.p
    )
    assert fastest_p(fit_individual(rising, ("1/p", "p")), 0, 0) == pytest.approx(100, rel=1e-5)


def test_no_answer_where_fitted_times_are_not_positive():
    """The second falls below zero at p = 300: its distance from zero crosses the first there, it does not."""
    p = np.tile([1.0, 2.0, 4.0, 8.0, 16.0, 32.0], 2)
    system = np.repeat([0, 1], 6)
    data = Measurements(
        ("a",), ("x", "y"), np.zeros(12, int), system, p, np.where(system == 0, 1 / p + 0.005, 3 / p - 0.01)
    )
    fit = fit_individual(data, ("1/p", "1"), "t")
    assert [place.p for place in crossover_places(fit, 0, 0, 1)] == pytest.approx([2 / 0.015], rel=1e-6)
    assert np.isnan(fastest_p(fit, 0, 1)) and fastest_p(fit, 0, 0) == 1e7
    apart = fit_individual(data.only((data.system == 0) | (data.p == 1)), ("1/p", "1"), "t")
    assert np.isnan(fastest_p(apart, 0, 1)) and crossover_places(apart, 0, 0, 1) == ()


def test_quantile_of_student():
    assert quantile(10) == pytest.approx(2.2281, abs=1e-4)
    assert np.isnan(quantile(0))


# --- functions of p ---


def test_the_seven_functions():
    p = np.array([1.0, 4.0, 16.0])
    values = {c.text: c.u(p) for c in CHARACTERISTICS}
    assert values["1/p^2"] == pytest.approx([1, 1 / 16, 1 / 256])
    assert values["log(p)/p"] == pytest.approx([0, np.log(4) / 4, np.log(16) / 16])
    assert all(value[0] in (0.0, 1.0) for value in values.values())
    assert [c.text for c in CHARACTERISTICS] == [
        "1/p^2", "1/p", "log(p)/p", "1/sqrt(p)", "1", "log(p)", "p",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "at_4"),
    [("p^0.75", 4**0.75), ("log2(p) / p", 0.5), ("-(p - 1)^2 + 3", -6.0), ("1 / ( p + 2.5e1 )", 1 / 29)],
)
def test_own_functions_of_p(text, at_4):
    assert characteristic(text).u(np.array([4.0])) == pytest.approx([at_4])


@pytest.mark.parametrize(
    "text",
    [
        "", "q", "p.real", "__import__('os')", "log(p, 2)", "p if p else 1", "lambda: 1", "p[0]", "1e400*p",
        "log(p-1)", "p**p**p", "(" * 150 + "p" + ")" * 150, "p+" * 99 + "p", "9" * 150, "1/0", "print(p)",
        "p;p",
    ],
)  # fmt: skip
def test_what_is_no_function_of_p_is_refused(text):
    with pytest.raises(ValueError):
        characteristic(text)


def test_two_functions_that_are_one_are_said_to_be_inseparable():
    """At one number of processors any two functions are multiples of each other."""
    data = random_table(np.random.default_rng(6), 3, 3)
    one = Measurements(
        data.codes,
        data.systems,
        data.code,
        data.system,
        np.full(len(data.p), 8.0),
        data.time,
        transformed=True,
    )
    fit = fit_joint(one, PAIR)
    assert fit.status == "not determined"
    assert np.isnan(fit.covariance).all()
    (said,) = [warning for warning in fit.warnings if "strongly correlated" in warning]
    assert said.startswith("the measurements do not determine ") and "separately" in said
    assert any(function in said for function in PAIR)


def test_a_cell_of_one_point_leaves_the_others_as_they_are_and_says_nothing_of_numpy(class_a):
    """Its fit is 0 and has no logarithm; numpy warned when the sums of all cells were compared."""
    cell = (class_a.code == 0) & (class_a.system == 0)
    others = class_a.only((class_a.p > 1) & ~cell)
    few = class_a.only(np.where(cell, class_a.p == 1, class_a.p > 1))
    fit, alone = (fit_individual(data, ("log(p)/p", "1/sqrt(p)"), "log") for data in (few, others))
    assert any("left out" in warning for warning in fit.warnings)
    assert fit.fitted[1:] == pytest.approx(alone.fitted) and np.isnan(fit.fitted[0])
