"""The chart of a loop: one iteration that stands for all, with the band of the others and its phases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from desktop.core.pieces import fitted
from desktop.data.chart import Axis, Content, Series

if TYPE_CHECKING:
    from desktop.core.phase_stats import Firm
    from desktop.core.phases import PhaseFit
    from desktop.data.iterations import Level

#: Points per phase at which its polynomial is drawn.
_PLACES = 24


def fold_chart(level: Level, phases: PhaseFit, firm: Sequence[Firm | None]) -> Content:
    """The median of the curve over the iterations, the band between two quantiles, the fitted phases.

    `phases`: of ``level.fold.curve``, seconds from the begin of the iteration; `firm`: of its inner
    breakpoints, drawn as bars at the bottom.
    """
    fold = level.fold
    edges = np.linspace(0.0, fold.period, fold.middle.size + 1)
    x = np.repeat(edges, 2)[1:-1]
    low, middle, high = (np.repeat(v, 2) for v in (fold.low, fold.middle, fold.high))
    numbers = np.arange(phases.n)
    part = np.linspace(0.0, 1.0, _PLACES)
    at = phases.breaks[:-1, None] + phases.duration[:, None] * part
    drawn = np.stack([fitted(phases, np.full(_PLACES, k), at[k])[0] for k in numbers])
    ends = np.stack([at[:, :-1], at[:, 1:]], axis=2).reshape(-1)
    levels = np.stack([drawn[:, :-1], drawn[:, 1:]], axis=2).reshape(-1)
    percent = round(100 * (1 - 2 * fold.quantile))
    series: tuple[Series, ...] = (
        Series("band", x, middle, f"{percent} % of {fold.folded} iterations", "curve", low=low, high=high),
        Series("line", x, middle, "Median", "curve"),
        Series(
            "segments", ends, levels, f"{phases.n} phases" if phases.n > 1 else "1 phase", "fit", width=2.2
        ),
    )
    firms = [one for one in firm if one is not None]
    if firms:
        spans = np.array([(one.low_s, one.high_s) for one in firms]).ravel()
        words = f"breakpoints, {firms[0].text}" if len({one.text for one in firms}) == 1 else "breakpoints"
        series += (Series("segments", spans, np.zeros(spans.size), words, "band", width=6.0),)

    def data() -> Iterator[tuple[object, ...]]:
        yield "start_s", "end_s", "low_processors", "median_processors", "high_processors"
        columns = (edges[:-1], edges[1:], fold.low, fold.middle, fold.high)
        yield from zip(*(column.tolist() for column in columns), strict=True)

    return Content(
        Axis("Time in the iteration", time=True, tight=True),
        Axis(fold.of.axis + (f" ({fold.of.unit})" if fold.of.physical else ""), zero=True),
        series,
        verticals=tuple((float(t), "") for t in phases.breaks[1:-1]),
        title="Typical iteration",
        data=data,
    )
