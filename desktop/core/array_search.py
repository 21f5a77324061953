"""Analysis of an orthogonal array: runs ranked by their response, and the mean response of every level.

With more than two sizes of delay there is no linear effect to estimate; the array is a search for the setting
with the best response (NISTIR 5131, section 3.2.1 and table 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from desktop.core.arrays import Floats, Ints
from desktop.core.effects import Trials


@dataclass(frozen=True)
class LevelMean:
    """Mean response of the runs with `factor` at `level`, and their number."""

    factor: str
    level: float
    mean: float
    runs: int


@dataclass(frozen=True, eq=False)
class ArraySearch:
    """`order`: treatments (from 0) by ascending mean response; `names`, `settings` (levels by factor), `mean`
    and `count` (trials) are in this order. `spread`: largest minus smallest level mean by factor. `base`:
    index in `order` of the run with every factor at its lowest level; -1 if it has no response. `unseen`:
    number of treatments without a response."""

    factors: tuple[str, ...]
    order: tuple[int, ...]
    names: tuple[str, ...]
    settings: tuple[tuple[float, ...], ...]
    mean: tuple[float, ...]
    count: tuple[int, ...]
    levels: tuple[LevelMean, ...]
    spread: tuple[float, ...]
    base: int
    unseen: int

    @property
    def gaps(self) -> str:
        """A note on treatments without a response; "" if there are none."""
        have = "setting has" if self.unseen == 1 else "settings have"
        return (
            f"{self.unseen} {have} no response, so level means are of different runs" if self.unseen else ""
        )

    def percent(self, place: int) -> float:
        """Mean response at index `place` of `order` in percent of that of the base; NaN without one."""
        base = self.mean[self.base] if self.base >= 0 else np.nan
        return 100 * self.mean[place] / base if base else np.nan


def array_search(
    factors: tuple[str, ...],
    levels: Floats | Ints,
    treatment: Ints,
    y: Floats,
    names: Sequence[str] | None = None,
) -> ArraySearch:
    """Rank the treatments of an array.

    Parameters
    ----------
    levels : (R, k) of the treatments: numbers of levels, or sizes. treatment : (N,) row of each trial.
    y : (N,) response; NaN is left out. names : (R,) of the treatments; None: their numbers from 1.

    Raises
    ------
    ValueError : no trial has a response.
    """
    levels = np.asarray(levels, np.float64)
    finite = np.isfinite(y)
    if not finite.any():
        raise ValueError("no trial has a response yet")
    treatment, y = treatment[finite], y[finite]
    count = np.bincount(treatment, minlength=len(levels))
    mean = np.bincount(treatment, y, len(levels)) / np.maximum(count, 1)
    order = [int(t) for t in np.argsort(mean, kind="stable") if count[t]]
    lowest = np.flatnonzero((levels == levels.min(axis=0)).all(axis=1))
    means: list[LevelMean] = []
    spread: list[float] = []
    for j, factor in enumerate(factors):
        at = levels[treatment, j]
        level_means = [
            LevelMean(factor, float(level), float(y[at == level].mean()), int((at == level).sum()))
            for level in np.unique(at)
        ]
        means += level_means
        spread.append(max(m.mean for m in level_means) - min(m.mean for m in level_means))
    return ArraySearch(
        factors,
        tuple(order),
        tuple(names[t] if names is not None else str(t + 1) for t in order),
        tuple(map(tuple, levels[order].tolist())),
        tuple(mean[order].tolist()),
        tuple(count[order].tolist()),
        tuple(means),
        tuple(spread),
        next((k for k, t in enumerate(order) if t in lowest), -1),
        int((count == 0).sum()),
    )


def array_search_of(data: Trials) -> ArraySearch:
    """`array_search` of trials whose x are sizes: equal rows are one treatment, named after the first trial.

    Raises
    ------
    ValueError : no trial has a response.
    """
    rows, first, treatment = np.unique(data.x, axis=0, return_index=True, return_inverse=True)
    names = [data.label[k] for k in first]
    return array_search(data.factors, rows, treatment.reshape(-1).astype(np.int64), data.y, names)
