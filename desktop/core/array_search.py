"""Reading an orthogonal array: runs ranked by their response, and the mean response of every level.

With more than two sizes of delay there is no linear effect to estimate; the array is a search for the setting
with the best response (NISTIR 5131, section 3.2.1 and table 4).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class LevelMean:
    """Mean response of the runs that had `factor` at `level`, and their number."""

    factor: str
    level: int
    mean: float
    runs: int


@dataclass(frozen=True, eq=False)
class ArraySearch:
    """`order`: treatments (from 0) from the smallest mean response up; `mean` and `count` are theirs.
    `spread`: largest less smallest level mean of each factor, in the order of the factors."""

    order: tuple[int, ...]
    mean: tuple[float, ...]
    count: tuple[int, ...]
    levels: tuple[LevelMean, ...]
    spread: tuple[float, ...]


def array_search(
    factors: tuple[str, ...], levels: NDArray[np.int64], treatment: NDArray[np.int64], y: NDArray[np.float64]
) -> ArraySearch:
    """Rank the treatments of an array.

    Parameters
    ----------
    levels : (R, k) of the design. treatment : (N,) row of each trial. y : (N,) response; NaN is left out.

    Raises
    ------
    ValueError : no trial has a response.
    """
    known = np.isfinite(y)
    if not known.any():
        raise ValueError("no trial has a response yet")
    treatment, y = treatment[known], y[known]
    count = np.bincount(treatment, minlength=len(levels))
    mean = np.bincount(treatment, y, len(levels)) / np.maximum(count, 1)
    order = [int(t) for t in np.argsort(mean, kind="stable") if count[t]]
    means: list[LevelMean] = []
    spread: list[float] = []
    for j, factor in enumerate(factors):
        at = levels[treatment, j]
        own = [
            LevelMean(factor, int(level), float(y[at == level].mean()), int((at == level).sum()))
            for level in np.unique(at)
        ]
        means += own
        spread.append(max(m.mean for m in own) - min(m.mean for m in own))
    return ArraySearch(
        tuple(order),
        tuple(float(mean[t]) for t in order),
        tuple(int(count[t]) for t in order),
        tuple(means),
        tuple(spread),
    )
