"""Significance limits of effects, and their error rates.

A limit is a value with its kind, level and degrees of freedom, which also states it in words. Critical values
without a formula are simulated for the exact number of effects, always from the same seed, and cached.
Sources: Lenth, Technometrics 31 (1989), whose t quantiles with m/3 degrees of freedom are too large for few
effects; Ye and Hamada, Journal of Quality Technology 32 (2000), who simulate them; Stoline and Ury,
Technometrics 21 (1979) for the studentized maximum modulus; Benjamini and Hochberg, JRSS B 57 (1995).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from desktop.core.arrays import Floats

Threshold = Literal["t", "2", "3", "lenth", "lenth-simultaneous", "familywise", "fdr"]
#: Kind of a limit: a choice of `Threshold`, or what replaces it.
Kind = Literal["t", "se", "lenth", "lenth-simultaneous", "familywise", "fdr", "selected", "none"]

#: Level of every test.
LEVEL = 0.05
#: Random numbers of one simulation, and the smallest and largest number of experiments made of them.
_NUMBERS, _FEWEST, _MOST = 2_000_000, 4_000, 200_000
#: Stored points of a simulated distribution: so many of the largest values, and so many below.
_TAIL, _POINTS = 2_000, 2_000


@dataclass(frozen=True)
class Limit:
    """`value`: |effect| / SE above which an effect is significant, NaN if none can be.

    `level`: probability that an effect is marked although it is zero (for ``fdr``: expected share of such
    among those marked); `df` of the standard error; `count` effects are tested; `some`: probability that one
    or more of them is marked if all are zero. NaN where not known.
    """

    kind: Kind
    value: float
    level: float
    df: float
    count: int
    some: float

    @property
    def text(self) -> str:
        """The limit in words, as the continuation of *above*."""
        level = f"{100 * self.level:.2g} %"
        quantile = f"{100 * (1 - self.level / 2):.3g} %" if self.level == self.level else ""
        if self.kind == "none":
            return "nothing, as there is no error estimate"
        if self.kind == "fdr":
            return (
                f"the limit at which {level} of the marked effects are expected to be zero "
                f"(false discovery rate over {self.count} effects)"
            )
        if self.kind == "selected":
            return (
                f"{self.value:.3g} standard errors, as terms were left out after a look at them: {level} for "
                f"one or more of all {self.count} effects"
            )
        if self.kind == "familywise":
            return f"{self.value:.3g} standard errors: {level} for one or more of all {self.count} effects"
        if self.kind == "lenth-simultaneous":
            return (
                f"Lenth's simultaneous margin, {self.value:.3g} pseudo standard errors: {level} for one or "
                f"more of all {self.count} effects"
            )
        if self.kind == "se":
            margin = f"{self.value:g} standard errors"
        elif self.kind == "lenth":
            margin = f"Lenth's margin, {self.value:.3g} pseudo standard errors"
        else:
            margin = f"the {quantile} quantile of Student's t with {self.df:.3g} degrees of freedom"
        some = ""
        if self.count > 1 and self.some == self.some:
            some = f"; one or more of {self.count} in {100 * self.some:.2g} % if none is real"
        return f"{margin} ({level} for each effect alone{some})" if quantile else margin


# --- simulated distributions ---


@dataclass(frozen=True, eq=False)
class Simulated:
    """Distribution under the null hypothesis: `size` (K,) ascending, `above` (K,) probability of a value at
    least as large."""

    size: Floats
    above: Floats

    def p(self, size: Floats) -> Floats:
        """Probability of a value at least as large; never below the resolution of the draws."""
        chance = np.interp(size, self.size, self.above, left=1.0)
        return np.where(np.isnan(size), np.nan, chance)

    def quantile(self, level: float) -> float:
        """The value that is exceeded with that probability."""
        return float(np.interp(-level, -self.above, self.size))


def _simulated(values: Floats) -> Simulated:
    """The distribution of `values`: the largest ones exactly, the others thinned."""
    values = np.sort(values)
    n = values.size
    tail = min(_TAIL, n)
    at = np.unique(np.concatenate([np.linspace(0, n - tail, _POINTS).astype(int), np.arange(n - tail, n)]))
    return Simulated(values[at], (n - at) / (n + 1.0))


def _draws(count: int) -> int:
    return max(_FEWEST, min(_MOST, _NUMBERS // count))


@lru_cache(maxsize=64)
def lenth_ratios(count: int) -> tuple[Simulated, Simulated]:
    """Distributions of |effect| / PSE of `count` effects that are noise: of each alone, and of the largest
    of an experiment."""
    size = np.abs(np.random.default_rng(1989 + count).standard_normal((_draws(count), count)))
    size.sort(axis=1)
    s0 = 1.5 * np.median(size, axis=1)
    inner = (size < 2.5 * s0[:, None]).sum(axis=1)
    rows = np.arange(len(size))
    # Rows are sorted, so the effects below the bound come first.
    pse = 0.75 * (size[rows, (inner - 1) // 2] + size[rows, inner // 2])
    size /= pse[:, None]
    return _simulated(size.ravel()), _simulated(size[:, -1])


@dataclass(frozen=True)
class Lenth:
    """Lenth's pseudo standard error of `count` effects. `me`, `sme`: margins by the formula of 1989, which
    are too wide (of 7 effects, 1.6 % exceed the first instead of 5 %); `margin`, `simultaneous`: simulated
    for `count` effects, and used for the tests."""

    s0: float
    pse: float
    df: float
    me: float
    sme: float
    count: int = 0

    @property
    def margin(self) -> float:
        """|effect| that 5 % of the effects exceed if all are zero."""
        return lenth_ratios(self.count)[0].quantile(LEVEL) * self.pse

    @property
    def simultaneous(self) -> float:
        """|effect| that the largest exceeds in 5 % of experiments if all are zero."""
        return lenth_ratios(self.count)[1].quantile(LEVEL) * self.pse


def lenth_of(values: Floats) -> Lenth | None:
    """`Lenth` (1989) of effects `values` (m,); None for fewer than three, or if all are zero."""
    from scipy.special import stdtrit

    size = np.abs(np.asarray(values, np.float64))
    size = size[np.isfinite(size)]
    if size.size < 3 or not size.any():
        return None
    s0 = 1.5 * float(np.median(size))
    inner = size[size < 2.5 * s0]
    pse = 1.5 * float(np.median(inner)) if inner.size else 0.0
    df = size.size / 3.0
    me = float(stdtrit(df, 1 - LEVEL / 2)) * pse
    sme = float(stdtrit(df, (1 + (1 - LEVEL) ** (1 / size.size)) / 2)) * pse
    return Lenth(s0, pse, df, me, sme, size.size)


@lru_cache(maxsize=64)
def selected_ratios(count: int, in_model: int, pure_df: int = 0) -> Simulated:
    """Null distribution of the largest of `count` effects over a standard error from all but the largest
    `in_model` and from `pure_df` degrees of freedom of replicates, that is, of terms chosen by a look at
    them.

    The error and the largest effect in it are drawn; the effects in the model are noise truncated below at
    that one, so the probability of the largest is computed exactly for each draw."""
    from scipy.special import ndtr

    draws, inner = max(20_000, _draws(count) // 4), count - in_model
    generator = np.random.default_rng((1995, count, in_model, pure_df))
    size = np.abs(generator.standard_normal((draws, count)))
    largest = size.max(axis=1)
    size = np.partition(size, inner - 1, axis=1)[:, :inner]
    squares, cut = (size**2).sum(axis=1), size.max(axis=1, initial=0.0)
    if pure_df:
        squares += generator.chisquare(pure_df, draws)
    se = np.sqrt(squares / (inner + pure_df))
    values = np.unique(np.quantile(largest / se, 1 - np.geomspace(1, 1 / draws, 200)))
    beyond = ndtr(-cut)
    above = [
        float(-np.expm1(in_model * np.log1p(-np.minimum(ndtr(-value * se) / beyond, 1 - 1e-15))).mean())
        for value in values
    ]
    return Simulated(values, np.minimum.accumulate(above))


# --- families of effects ---


def largest_of(size: Floats, count: int, df: float) -> Floats:
    """Probability that the largest |t| of `count` independent effects with one common error is at least as
    large (studentized maximum modulus)."""
    from scipy.special import ndtr

    size = np.abs(np.asarray(size, np.float64))
    if not np.isfinite(df):
        return np.asarray(-np.expm1(count * np.log1p(-2 * ndtr(-size))), np.float64)
    scale, weight = _errors(df)
    with np.errstate(invalid="ignore", divide="ignore"):
        below = np.exp(count * np.log1p(-2 * ndtr(-np.multiply.outer(size, scale))))
    return np.asarray(np.clip(1 - below @ weight, 0.0, 1.0), np.float64)


@lru_cache(maxsize=64)
def _errors(df: float) -> tuple[Floats, Floats]:
    """Quadrature nodes (200,) of an estimated standard error in units of the true one, and their weights."""
    from scipy.special import chdtri

    node, weight = np.polynomial.legendre.leggauss(200)
    return np.sqrt(chdtri(df, 0.5 * (1 + node)) / df), 0.5 * weight


@lru_cache(maxsize=256)
def familywise_limit(count: int, df: float, level: float = LEVEL) -> float:
    """|t| that the largest of `count` effects exceeds with probability `level` if all are zero."""
    low, high = t_limit(df, level), t_limit(df, level / count)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if largest_of(np.array(middle), count, df) > level else (low, middle)
    return high


def false_discovery(p: Floats) -> Floats:
    """Adjusted p: of the effects with a value below q, an expected share of at most q is zero (Benjamini and
    Hochberg)."""
    finite = np.flatnonzero(np.isfinite(p))
    adjusted = np.full(p.size, np.nan)
    order = finite[np.argsort(p[finite])]
    ratio = p[order] * order.size / np.arange(1, order.size + 1)
    adjusted[order] = np.minimum(np.minimum.accumulate(ratio[::-1])[::-1], 1.0)
    return adjusted


# --- ratios ---


def ratio_interval(
    above: float, below: float, var_above: float, var_below: float, covariance: float, t: float
) -> tuple[float, float]:
    """Interval of the ratio of two means with noise (Fieller 1954); ``t``: quantile for its level. Infinite
    where the denominator is not distinguishable from zero, NaN without variances."""
    if not np.isfinite([above, below, var_above, var_below, covariance, t]).all():
        return np.nan, np.nan
    a = below**2 - t**2 * var_below
    if not a > 0:
        return -np.inf, np.inf
    b = above * below - t**2 * covariance
    root = np.sqrt(max(b**2 - a * (above**2 - t**2 * var_above), 0.0))
    return float((b - root) / a), float((b + root) / a)


def pooled_df(variances: Floats, df: Floats) -> float:
    """Degrees of freedom of a sum of independent variances (Satterthwaite 1946); infinite where all are."""
    variances, df = np.asarray(variances, np.float64), np.asarray(df, np.float64)
    part = float((variances**2 / df).sum())
    return float(variances.sum()) ** 2 / part if part > 0 else np.inf


def t_limit(df: float, level: float = LEVEL) -> float:
    """|t| that is exceeded with that probability; NaN without degrees of freedom."""
    from scipy.special import ndtri, stdtrit

    if not df > 0:
        return float("nan")
    return float(stdtrit(df, 1 - level / 2) if np.isfinite(df) else ndtri(1 - level / 2))
