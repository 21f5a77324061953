"""Analyses of several tables of effects: scaling over processors, barriers, sizes of the delay.

Sources: NISTIR 5131 (delay sizes), NISTIR 5139 (tables 5 to 8 and 11), NISTIR 5417 (scaling).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from desktop.core.arrays import Floats
from desktop.core.effect_limits import LEVEL, pooled_df, ratio_interval, t_limit


@dataclass(frozen=True)
class Scaling:
    """An effect A at p and B at p' > p (NISTIR 5417, table 3): `interaction` (B - A)/2 (as the table's
    numbers; its header says (A - B)/2), `ratio` (B - A)/(A + B), `exponent` ln(B/A)/ln(p'/p): -1 for
    perfectly shared work, 0 for serial work; `exponent_low`, `exponent_high`: 95 % interval (infinite where
    an effect is not distinguishable from zero)."""

    term: str
    small: float
    large: float
    middle: float
    interaction: float
    se: float
    ratio: float
    exponent: float
    exponent_low: float = float("nan")
    exponent_high: float = float("nan")


def scaling(
    small: Mapping[str, tuple[float, float]],
    small_p: float,
    large: Mapping[str, tuple[float, float]],
    large_p: float,
    df: tuple[float, float] = (float("inf"), float("inf")),
) -> tuple[Scaling, ...]:
    """`Scaling` of the effects (value, se) by name at two numbers of processors, in the order of `small`;
    ``df``: of the standard errors of each.

    Raises
    ------
    ValueError : large_p is not above small_p, or the tables have no name in common.
    """
    if not large_p > small_p >= 1:
        raise ValueError(
            f"the scaling test needs a larger number of processors than {small_p:g}, got {large_p:g}"
        )
    names = [name for name in small if name in large]
    if not names:
        raise ValueError("the two tables have no effect of the same name")
    scalings = []
    for name in names:
        (a, se_a), (b, se_b) = small[name], large[name]
        exponent = np.log(b / a) / np.log(large_p / small_p) if a > 0 and b > 0 else float("nan")
        ratio = (b - a) / (a + b) if a + b else float("nan")
        low = high = float("nan")
        if exponent == exponent and se_a > 0 and se_b > 0:
            # ln(B/A) has the relative errors of both, with pooled degrees of freedom.
            free = pooled_df(np.array([(se_a / a) ** 2, (se_b / b) ** 2]), np.array(df))
            ends = ratio_interval(b, a, se_b**2, se_a**2, 0.0, t_limit(free))
            with np.errstate(divide="ignore", invalid="ignore"):
                low, high = np.log(np.maximum(ends, 0.0)) / np.log(large_p / small_p)
        half_se = np.hypot(se_a, se_b) / 2
        numbers = a, b, (a + b) / 2, (b - a) / 2, half_se, ratio, exponent, low, high
        scalings.append(Scaling(name, *map(float, numbers)))
    return tuple(scalings)


Verdict = Literal[
    "scales", "does not scale", "undecided", "no effect", "system does not speed up", "no verdict"
]


@dataclass(frozen=True)
class ScaleTest:
    """One factor and the scale (NISTIR 5417, table 4); half effects. `excess` is D = b_cds - b_cd b_s / mu:
    below zero the factor's share of the run time does not grow. `limit`: number of standard errors that |D|
    has to exceed, the t quantile of the 5 % level."""

    mu: float
    factor: float
    scale: float
    interaction: float
    se: float
    threshold: float
    excess: float
    excess_se: float
    verdict: Verdict
    reason: str
    limit: float


def scale_test(
    mu: float, factor: float, scale: float, interaction: float, se: float, df: float = float("inf")
) -> ScaleTest:
    """Verdict from the half effects of a 2^2 experiment, their standard error and its degrees of freedom;
    every test at the 5 % level.

    Raises
    ------
    ValueError : the standard error is negative.
    """
    if se < 0:
        raise ValueError(f"a standard error cannot be negative, got {se:g}")
    if not mu > 0:
        nan, reason = float("nan"), "the mean is not positive"
        return ScaleTest(mu, factor, scale, interaction, se, nan, nan, nan, "no verdict", reason, nan)
    share, speed = factor / mu, scale / mu
    threshold = share * scale
    excess = interaction - threshold
    excess_se = se * float(np.sqrt(1 + speed**2 + share**2 + (factor * scale / mu**2) ** 2))
    k = t_limit(df)
    verdict: Verdict
    if not np.isfinite(se) or not k > 0:
        verdict, reason = "no verdict", "there is no standard error; run replicates, or give one"
    elif abs(factor) < k * se:
        verdict, reason = "no effect", f"its half effect is below {k:.3g} standard errors"
    elif factor <= 0:
        verdict, reason = "no verdict", "the delay does not make the program slower"
    elif scale >= -k * se:
        verdict, reason = "system does not speed up", "more processors do not shorten the run"
    elif excess < -k * excess_se:
        verdict, reason = "scales", "its share of the run time falls"
    elif excess > k * excess_se:
        verdict, reason = "does not scale", "its share of the run time grows"
    else:
        verdict, reason = "undecided", "the change of its share is within the error, run more replicates"
    return ScaleTest(mu, factor, scale, interaction, se, threshold, excess, excess_se, verdict, reason, k)


@dataclass(frozen=True)
class Barrier:
    """Artificial critical sections before (FB1) and after (FB2) a barrier: their difference is the waiting
    at the barrier (NISTIR 5139, table 11). `low`, `high`: its 95 % interval; `share`: of FB2 (NaN where FB2
    is not positive), with the 95 % interval `share_low` to `share_high` (infinite where FB2 is not
    distinguishable from zero)."""

    before: float
    after: float
    difference: float
    se: float
    t: float
    share: float
    low: float = float("nan")
    high: float = float("nan")
    share_low: float = float("nan")
    share_high: float = float("nan")


def barrier(
    before: float,
    after: float,
    se_difference: float,
    cost: float = 0.0,
    cost_se: float = 0.0,
    df: float = float("inf"),
) -> Barrier:
    """`Barrier` of two effects. `cost`: effect of the artificial barrier itself (FB2 with delay 0), which is
    subtracted, with its standard error. `se_difference`: standard error of after - before, with df; each of
    the two has half of its variance."""
    net = after - cost
    difference = net - before
    se = float(np.hypot(se_difference, cost_se))
    t = difference / se if se > 0 else float("nan")
    half = t_limit(df)
    variance, extra = se_difference**2 / 2, cost_se**2
    shares = ratio_interval(difference, net, se**2, variance + extra, variance + extra, half)
    # There is no share of an effect that is zero or negative.
    share = difference / net if net > 0 else float("nan")
    return Barrier(
        before, net, difference, se, t, share, difference - half * se, difference + half * se, *shares
    )


@dataclass(frozen=True, eq=False)
class Dose:
    """Effect per unit of delay at several sizes (NISTIR 5131, figure 3). `p`: probability of a deviation this
    large from effects proportional to the delay, if they are proportional; `linear` False: below 5 %."""

    delay: Floats
    effect: Floats
    se: Floats
    per_unit: Floats
    per_unit_se: Floats
    linear: bool
    warning: str
    p: float


def dose(
    delay: Floats, effect: Floats, se: Floats, df: Floats | float = float("inf"), shared: float = 0.0
) -> Dose:
    """Test whether effects are proportional to the delay. delay, effect, se : (K,), K >= 2, delays positive;
    if any se is 0 or NaN, effects per unit count as equal only within rounding.

    df : degrees of freedom of every standard error. shared : variance that all effects have in common, as
    they are differences to the same runs; it is part of se^2.

    One test of all sizes together; with few degrees of freedom by simulation (Krishnamoorthy, Lu and Mathew,
    Computational Statistics and Data Analysis 51, 2007).

    Raises
    ------
    ValueError : fewer than two sizes, or one that is not positive.
    """
    order = np.argsort(delay)
    delay, effect, se = (np.asarray(v, np.float64)[order] for v in (delay, effect, se))
    free = np.broadcast_to(np.asarray(df, np.float64), delay.shape)[order]
    if delay.size < 2 or not (delay > 0).all():
        raise ValueError("two or more positive sizes of the delay are needed")
    unit, unit_se = effect / delay, se / delay
    if not (np.nan_to_num(se) > 0).all():
        close = np.ptp(unit) <= max(1e-9 * float(np.abs(unit).max()), 1e-150)
        p = 1.0 if close else 0.0
    else:
        variance = np.maximum(se**2 - shared, 1e-6 * se**2)
        p = _chance_of_bend(delay, _out_of_line(delay, effect, variance, shared), variance, shared, free)
    linear = p >= LEVEL
    limit = np.array([t_limit(v) for v in free])
    sure = np.abs(effect) > limit * np.nan_to_num(se)
    turned = bool((effect[sure] > 0).any() and (effect[sure] < 0).any())
    warning = ""
    if not linear and turned:
        warning = "the sign of the effect changes with the size of the delay, so no linear model holds"
    elif not linear:
        warning = "the effect does not grow in proportion to the delay, so effects hold for this size only"
    if warning:
        warning += "; search with an orthogonal array of several sizes"
    return Dose(delay, effect, se, unit, unit_se, linear, warning, p)


def _out_of_line(delay: Floats, effect: Floats, variance: Floats, shared: float | Floats) -> Floats:
    """(...,) weighted residual sum of squares of effects (..., K) from a line through the origin. Variances:
    `variance` (..., K) of each, and `shared`, common to all."""
    ones = (1 / variance).sum(-1)

    def product(a: Floats, b: Floats) -> Floats:
        # The inverse of diag(variance) + shared (Sherman and Morrison 1950).
        sums = (a / variance).sum(-1) * (b / variance).sum(-1)
        return np.asarray((a * b / variance).sum(-1) - shared * sums / (1 + shared * ones))

    bend = product(effect, effect) - product(delay, effect) ** 2 / product(delay, delay)
    return np.maximum(bend, 0.0)


#: Draws of the simulations that replace formulas where errors have few degrees of freedom.
_DRAWS = 20_000


def _chance_of_bend(delay: Floats, bend: Floats, variance: Floats, shared: float, df: Floats) -> float:
    """Probability that `_out_of_line` is at least `bend` for effects proportional to the delay, whose
    estimated variances have df (K,)."""
    from scipy.special import chdtrc

    if not np.isfinite(df).any():
        return float(chdtrc(delay.size - 1, bend))
    generator = np.random.default_rng(2007)
    effects = np.sqrt(variance) * generator.standard_normal((_DRAWS, delay.size))
    effects += np.sqrt(shared) * generator.standard_normal((_DRAWS, 1))
    seen = variance * _estimated(generator, df)
    return float((1 + np.sum(_out_of_line(delay, effects, seen, shared) >= bend)) / (_DRAWS + 1))


def _estimated(generator: np.random.Generator, df: Floats) -> Floats:
    """(_DRAWS, K) random estimates of variances that are 1, with df (K,)."""
    finite_df = np.where(np.isfinite(df), df, 1.0)
    drawn = generator.chisquare(finite_df, (_DRAWS, df.size)) / finite_df
    return np.where(np.isfinite(df), drawn, 1.0)


@dataclass(frozen=True)
class OverProcessors:
    """An effect over processors: `shared` / p + `serial` by weighted least squares, and the slope of ln
    effect on ln p. `shared_margin`, `serial_margin`: half widths of 95 % intervals, with ``df`` degrees of
    freedom; `slope_margin`: of the slope, NaN where an effect is not distinguishable from zero."""

    shared: float
    shared_se: float
    serial: float
    serial_se: float
    slope: float
    df: float = float("nan")
    shared_margin: float = float("nan")
    serial_margin: float = float("nan")
    slope_margin: float = float("nan")


def over_processors(
    p: Floats, effect: Floats, se: Floats | None = None, df: Floats | float = float("inf")
) -> OverProcessors:
    """Fit an effect over processors (NISTIR 5139, tables 5 to 8). p, effect : (K,), K >= 3. Unless all
    standard errors are known and positive, points have equal weights and the error comes from the residuals,
    with K - 2 degrees of freedom. ``df``: of the standard errors.

    Raises
    ------
    ValueError : fewer than three different p.
    """
    p, effect = np.asarray(p, np.float64), np.asarray(effect, np.float64)
    if np.unique(p).size < 3:
        raise ValueError("three or more numbers of processors are needed")
    if se is not None and not (np.asarray(se) > 0).all():
        se = None
    x = np.stack([1 / p, np.ones(p.size)], axis=1)
    variance = np.ones(p.size) if se is None else np.asarray(se, np.float64) ** 2
    value, errors = _line(x, effect, variance)
    free, limits = float("inf"), np.full(2, t_limit(float("inf")))
    if se is None:
        free = float(p.size - 2)
        errors = errors * float(np.sqrt(((effect - x @ value) ** 2).sum() / free))
        limits = np.full(2, t_limit(free))
    else:
        each = np.broadcast_to(np.asarray(df, np.float64), p.shape)
        if np.isfinite(each).any():
            # With uncertain weights the ratio is not t distributed: simulate it.
            free = float(each.min())
            generator = np.random.default_rng(5139)
            drawn = np.sqrt(variance) * generator.standard_normal((_DRAWS, p.size))
            values, their = _line(x, drawn, variance * _estimated(generator, each))
            limits = np.quantile(np.abs(values / their), 1 - LEVEL, axis=0)
    margins = [float(limit * error) for limit, error in zip(limits, errors, strict=True)]
    positive = effect > 0
    slope = reach = float("nan")
    if np.unique(p[positive]).size >= 2:
        slope = float(np.polyfit(np.log(p[positive]), np.log(effect[positive]), 1)[0])
    if positive.all():
        reach = _slope_margin(np.log(p), effect, se, df, slope)
    return OverProcessors(
        float(value[0]), float(errors[0]), float(value[1]), float(errors[1]), slope, free,
        shared_margin=margins[0], serial_margin=margins[1], slope_margin=reach,
    )  # fmt: skip


def _slope_margin(x: Floats, effect: Floats, se: Floats | None, df: Floats | float, slope: float) -> float:
    """95 % margin of the slope of ln effect on x = ln p, from the relative errors of effects or, without
    these, from the residuals."""
    away = x - x.mean()
    if se is None:
        left = np.log(effect) - np.log(effect).mean() - slope * away
        free = x.size - 2.0
        return float(t_limit(free) * np.sqrt((left**2).sum() / free / (away**2).sum()))
    each = np.broadcast_to(np.asarray(df, np.float64), x.shape)
    if not (effect > np.array([t_limit(v) for v in each]) * se).all():
        return float("nan")
    variances = (away / (away**2).sum() * se / effect) ** 2
    return float(t_limit(pooled_df(variances, each)) * np.sqrt(variances.sum()))


def _line(x: Floats, y: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Least squares of y (..., K) on two columns x (K, 2), weighted by 1 / `variance` (..., K):
    coefficients (..., 2) and their standard errors."""
    a, b = x.T
    aa, ab, bb = (a * a / variance).sum(-1), (a * b / variance).sum(-1), (b * b / variance).sum(-1)
    ay, by = (a * y / variance).sum(-1), (b * y / variance).sum(-1)
    size = aa * bb - ab**2
    value = np.stack([bb * ay - ab * by, aa * by - ab * ay], axis=-1) / size[..., None]
    return value, np.sqrt(np.stack([bb, aa], axis=-1) / size[..., None])
