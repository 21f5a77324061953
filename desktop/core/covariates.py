"""Analysis of covariance: the influence of quantities noted beside a trial, such as clock frequency or load.

The covariate is one more column of the least squares, so effects are those at one value of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from desktop.core.effect_limits import t_limit
from desktop.core.effects import Trials, analyse


@dataclass(frozen=True)
class Adjusted:
    """An effect, and the same adjusted to one value of the covariate, with their standard errors."""

    term: str
    value: float
    se: float
    adjusted: float
    adjusted_se: float


@dataclass(frozen=True)
class Covariate:
    """`slope` of the response on the covariate (95 % interval `low` to `high`) with `df`; `share`: part of
    the residual sum of squares of the effects that it explains."""

    name: str
    slope: float
    se: float
    df: int
    t: float
    p: float
    low: float
    high: float
    share: float
    effects: tuple[Adjusted, ...]


def covariate(name: str, data: Trials, *, blocks: bool = True) -> Covariate:
    """`Covariate` of the values noted beside trials by that name.

    Raises
    ------
    ValueError : the covariate is equal in all trials or follows from the terms, or there are no replicates.
    """
    from scipy.special import stdtr

    without = analyse(data, blocks=blocks, covariate=name)
    if without.error != "replicates" or without.slope is None:
        raise ValueError("without replicates there are no residuals that a covariate could explain")
    adjusted = analyse(data.only(np.isfinite(data.beside[name])), blocks=blocks)
    effects = tuple(
        Adjusted(one.term, one.value, one.se, other.value, other.se)
        for one in adjusted.effects
        for other in [without.effect(one.term)]
    )
    (slope, se), df = without.slope, without.df
    t = slope / se if se > 0 else float("inf")
    margin = t_limit(df) * se
    left, total = without.variance * df, adjusted.variance * adjusted.df
    share = 1 - left / total if total > 0 else float("nan")
    p = float(2 * stdtr(df, -abs(t)))
    return Covariate(name, slope, se, df, t, p, slope - margin, slope + margin, share, effects)
