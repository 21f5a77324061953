"""Does the response follow something that was noted beside it, such as the clock frequency or other load?

Analysis of covariance by two fits (Frisch and Waugh 1933): the slope on what the terms and blocks leave of
response and covariate, and the effects without what the covariate explains.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from desktop.core.effect_limits import t_limit
from desktop.core.effects import Effects, Trials, analyse

Array = NDArray[np.float64]


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


def covariate(name: str, data: Trials, values: Array, *, blocks: bool = True) -> tuple[Covariate, Effects]:
    """Of trials (N,) with their `values` (N,), NaN where it was not noted; and the effects as they are, of
    the trials that have both.

    Raises
    ------
    ValueError : the covariate is the same in all trials or given by the terms, or nothing is left to judge
    by.
    """
    from scipy.special import stdtr

    known = np.isfinite(data.y) & np.isfinite(values)
    both = data.only(known)
    beside = replace(both, y=np.asarray(values, np.float64)[known])
    found = analyse(both, blocks=blocks)
    other = analyse(beside, blocks=blocks)
    left_y, left_c = both.y - found.fitted, beside.y - other.fitted
    spread = float(left_c @ left_c)
    # `trials` are those that were analysed: an unperturbed run of its own is none of a fraction.
    if len(found.trials.y) != len(both.y):
        raise ValueError("the unperturbed run that was added belongs to no treatment; leave it out first")
    if not spread > 1e-12 * max(float(beside.y @ beside.y), 1e-300):
        raise ValueError(f"{name} is the same in all trials, or follows from the factors")
    df = found.df - 1
    if found.error != "replicates" or df < 1:
        raise ValueError("without replicates nothing is left that a covariate could explain")
    slope = float(left_c @ left_y) / spread
    rest = float(left_y @ left_y) - slope**2 * spread
    s2 = max(rest, 0.0) / df
    se = float(np.sqrt(s2 / spread))
    t = slope / se if se > 0 else float("inf")
    effects = []
    for one in found.effects:
        of_other = other.effect(one.term).value
        unit = one.se**2 / found.variance if found.variance > 0 else 0.0
        effects.append(
            Adjusted(
                one.term, one.value, one.se, one.value - slope * of_other,
                float(np.sqrt(s2 * (unit + of_other**2 / spread))),
            )
        )  # fmt: skip
    margin = t_limit(df) * se
    total = float(left_y @ left_y)
    share = slope**2 * spread / total if total > 0 else float("nan")
    p = float(2 * stdtr(df, -abs(t)))
    made = Covariate(name, slope, se, df, t, p, slope - margin, slope + margin, share, tuple(effects))
    return made, found
