"""The power of the response that makes its noise equal for all treatments (Box and Cox, JRSS B 26, 1964).

The noise of run times grows with them, and delays multiply: where the logarithm fits, a place that costs ten
percent can be found beside one that costs five times the run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from desktop.core.arrays import Floats
from desktop.core.effect_limits import LEVEL
from desktop.core.effects import Effects, Trials, transformed
from desktop.core.units import trimmed

#: Powers that are tried.
_POWERS = np.round(np.arange(-2.0, 2.01, 0.1), 1)


@dataclass(frozen=True, eq=False)
class Powers:
    """Profile likelihood of powers of the response: `likelihood` (K,) is its logarithm minus that of the best
    `power`; `low`, `high`: 95 % interval. `suggested`: 0 (the logarithm) or another simple power that fits if
    the untransformed response does not; else None."""

    powers: Floats
    likelihood: Floats
    power: float
    low: float
    high: float
    suggested: float | None

    @property
    def text(self) -> str:
        """The result in one sentence."""
        power, low, high = (trimmed(value, 2) for value in (self.power, self.low, self.high))
        best = f"power {power} of the response fits best (95 %: {low} to {high})"
        if self.suggested is None:
            as_it_is = (
                "the response as it is fits as well" if self.low <= 1 <= self.high else "no simple one fits"
            )
            return f"{best}; {as_it_is}"
        outcome = (
            "its logarithm fits" if self.suggested == 0 else f"its power {trimmed(self.suggested, 2)} fits"
        )
        return f"{best}: {outcome}, the response as it is does not"


def powers(data: Trials, replicated: bool) -> Powers:
    """`Powers` of the trials' responses; the model is all treatments (`replicated`) or main effects, and
    blocks.

    Raises
    ------
    ValueError : responses are not all positive, are all equal, or leave fewer than three degrees of freedom.
    """
    from scipy.special import chdtri

    data = data.measured()
    if not (data.y > 0).all() or np.ptp(data.y) <= 1e-9 * np.abs(data.y).max(initial=0):
        raise ValueError("a power of the response needs positive responses that differ")
    if replicated:
        number = np.unique(data.x, axis=0, return_inverse=True)[1].ravel()
        columns = [np.eye(number.max() + 1)[number]]
    else:
        columns = [np.ones((len(data.y), 1)), data.x]
    half = np.zeros(len(data.y), np.int64) if data.half is None else data.half
    places = np.unique(np.stack([half, data.block]), axis=1, return_inverse=True)[1].ravel()
    if places.max() and np.bincount(places).max() > 1:
        columns.append(np.eye(places.max() + 1)[places])
    u, size, _ = np.linalg.svd(np.concatenate(columns, axis=1), full_matrices=False)
    q = u[:, size > 1e-9 * size[0]]
    df = len(data.y) - q.shape[1]
    if df < 3:
        raise ValueError("too few trials to determine which power of the response fits")
    gm = float(np.exp(np.log(data.y).mean()))
    transforms = [gm * np.log(data.y) if v == 0 else transformed(data.y, v, gm) for v in _POWERS]
    scaled = np.stack(transforms, axis=1)
    residual = scaled - q @ (q.T @ scaled)
    squares = np.maximum((residual**2).sum(0), 1e-18 * (scaled**2).sum(0))
    # With the residual degrees of freedom, so that many treatments do not narrow the interval.
    likelihood = -df / 2 * np.log(squares)
    likelihood -= likelihood.max()
    inside = _POWERS[likelihood >= -float(chdtri(1, LEVEL)) / 2]
    low, high = float(inside[0]), float(inside[-1])
    suggested = None
    if not low <= 1 <= high:
        plain = [v for v in (0.0, 0.5, -0.5, -1.0, 2.0) if low <= v <= high]
        suggested = plain[0] if plain else None
    return Powers(_POWERS, likelihood, float(_POWERS[int(np.argmax(likelihood))]), low, high, suggested)


def powers_of(effects: Effects) -> Powers | None:
    """`Powers` of the trials of an analysis; None where they cannot be determined."""
    try:
        return powers(effects.trials, effects.error == "replicates")
    except ValueError:
        return None
