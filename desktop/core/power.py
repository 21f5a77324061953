"""Power of an experiment: the number of replicates that find an effect of a given size, and how probably.

A standard deviation from a few runs is uncertain itself: with three runs, the true one is more than three
times the estimate in one of ten cases. Replicates are therefore proposed from its upper bound.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from desktop.core.arrays import Floats
from desktop.core.effect_limits import t_limit

#: Defaults of the probability that an effect is found, and that the proposed replicates are enough.
POWER, CONFIDENCE = 0.9, 0.9
#: Largest proposed number of replicates.
MOST = 10_000


def sigma_bound(sigma: float, df: float) -> float:
    """Upper bound with `CONFIDENCE` of a trial's standard deviation, estimated as `sigma` with `df` degrees
    of freedom; `sigma` itself where df is infinite."""
    from scipy.special import chdtri

    if not np.isfinite(df):
        return sigma
    return float(sigma * np.sqrt(df / chdtri(df, CONFIDENCE))) if df > 0 else float("nan")


def power_of(effect: float, sigma: float, treatments: int, replicates: int, lost: int = 0) -> float:
    """Probability that a full effect of that size is found at the 5 % level, with replicates as blocks and a
    few trials of different treatments `lost`; NaN without degrees of freedom."""
    from scipy.special import nctdtr

    df = (treatments - 1) * (replicates - 1) - lost
    if df <= 0 or not sigma > 0:
        return float("nan")
    away = abs(effect) * np.sqrt(treatments * replicates) / (2 * sigma)
    # A trial has the weight 2 / N in an effect; its prediction by the others has a variance of N / df.
    away /= np.sqrt(1 + lost / (df + 1))
    limit = t_limit(df)
    # Further out, the library cannot compute the distribution of t; the power is 1 there.
    if away > limit + 10:
        return 1.0
    return float(1 - nctdtr(df, away, limit) + nctdtr(df, away, -limit))


def after_loss(treatments: int, replicates: int, lost: int = 1) -> float:
    """Probability, after `lost` trials, to find an effect that all trials find with `POWER`; NaN without
    degrees of freedom."""
    return power_of(detectable(1.0, treatments, replicates), 1.0, treatments, replicates, lost=lost)


def chance_in_words(treatments: int, replicates: int) -> str:
    """The probability to find the effect `detectable`, with all trials and after a loss, in words."""
    after = after_loss(treatments, replicates)
    less = f", {100 * after:.0f} % after one trial was lost for good" if after == after else ""
    return f"{100 * POWER:.0f} %{less}"


def power_curve(
    effect: float, sigma: float, treatments: int, replicates: Sequence[int], df: float = np.inf
) -> tuple[Floats, Floats]:
    """`power_of` for every number of replicates: with sigma as estimated, and with its upper bound."""
    bound = sigma_bound(sigma, df)
    powers = [[power_of(effect, s, treatments, r) for r in replicates] for s in (sigma, bound)]
    return np.array(powers[0]), np.array(powers[1])


def detectable(sigma: float, treatments: int, replicates: int, power: float = POWER) -> float:
    """Full effect that is found with probability `power` at the 5 % level; NaN without degrees of freedom."""
    if (treatments - 1) * (replicates - 1) <= 0 or not sigma > 0:
        return float("nan")
    low, high = 0.0, 2 * sigma
    while power_of(high, sigma, treatments, replicates) < power:
        high *= 2
    for _ in range(50):
        middle = (low + high) / 2
        reached = power_of(middle, sigma, treatments, replicates)
        low, high = (middle, high) if reached < power else (low, middle)
    return high


def replicates_for(sigma: float, effect: float, treatments: int, df: float = np.inf) -> int:
    """Replicates for which three standard errors are below the effect: ceil((6 s / effect)^2 / n), with s the
    upper bound of sigma (estimated with `df` degrees of freedom); `MOST` if it has no bound.

    Raises
    ------
    ValueError : the effect is not positive.
    """
    if not effect > 0:
        raise ValueError("the effect to be found must be positive")
    if not df > 0:
        return MOST
    replicates = (6 * sigma_bound(sigma, df) / effect) ** 2 / treatments
    return max(1, int(np.ceil(min(replicates, MOST) - 1e-9)))


def replicates_to_find(sigma: float, effect: float, treatments: int, df: float = np.inf) -> int:
    """Replicates that find the effect with probability `POWER` at the 5 % level, with the upper bound of
    sigma; `MOST` if these are not enough.

    Raises
    ------
    ValueError : the effect is not positive.
    """
    if not effect > 0:
        raise ValueError("the effect to be found must be positive")
    bound, low, high = sigma_bound(sigma, df), 1, 2
    while high < MOST and bound > 0 and power_of(effect, bound, treatments, high) < POWER:
        low, high = high, min(2 * high, MOST)
    while high - low > 1:
        middle = (low + high) // 2
        enough = not bound > 0 or power_of(effect, bound, treatments, middle) >= POWER
        low, high = (low, middle) if enough else (middle, high)
    return high
