"""Does the response follow something that was noted beside it, such as the clock frequency or other load?

Analysis of covariance: the covariate is one more column of the least squares, so effects are those at one
value of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from desktop.core.effect_limits import t_limit
from desktop.core.effects import Trials, analyse


@dataclass(frozen=True)
class Adjusted:
    """An effect, and what is left of it at one value of the covariate, with its standard error."""

    term: str
    value: float
    se: float
    adjusted: float
    adjusted_se: float


@dataclass(frozen=True)
class Covariate:
    """`slope` of the response on the covariate (95 % between `low` and `high`) with `df`; `share`: of what
    the effects leave of the response, how much it explains."""

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
    """Of what was noted beside trials by that name.

    Raises
    ------
    ValueError : the covariate is the same in all trials or given by the terms, or nothing is left to judge
    by.
    """
    from scipy.special import stdtr

    without = analyse(data, blocks=blocks, covariate=name)
    if without.error != "replicates" or without.slope is None:
        raise ValueError("without replicates nothing is left that a covariate could explain")
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
