"""The charts of a sweep over the number of phases, n: the error of every n, and its breakpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from desktop.core.arrays import Floats
from desktop.core.quantity import PROCESSORS
from desktop.core.units import format_number
from desktop.data.chart import Axis, Content, Highlight, Series

#: Breakpoints, their low and high ends (n + 1,) each, seconds.
Row = tuple[Floats, Floats, Floats]
#: An n beyond the sweep, with its error.
Beyond = tuple[int, float] | None
#: Share of the run within which a breakpoint of n and one of n + 1 count as the same.
SAME = 0.005


def epsilon_words(epsilon: Floats, first: int, n: int, value: float, *, set_: str = "") -> str:
    """The error of n, and what one more gains; `set_`: how its breakpoints were set, if not by a fit."""
    if set_:
        return f"n = {n}, {set_}: ε = {format_number(value)}"
    text = f"n = {n}: ε = {format_number(value)}"
    k = n - first
    if 0 <= k < epsilon.size - 1 and epsilon[k] > 0:
        gain = 100 * (1 - epsilon[k + 1] / epsilon[k])
        text += ", one more gains {} %".format(f"{round(gain) or 0:d}")
    return text


# Many: what the chart can mark.
def epsilon_chart(
    epsilon: ArrayLike,
    first: int,
    model: str,
    suggested: int | None = None,
    reach: Beyond = None,
    chosen: Highlight | None = None,
    *,
    beyond: Callable[[], Beyond] = lambda: None,
    empty: str = "",
    unit: str = PROCESSORS.of_error,
) -> Content:
    """epsilon(n) on a logarithmic axis, an error of zero on its low end.

    `epsilon` (K,) of n = first .. first+K-1, in `unit`; `reach`: an n beyond, to which the axes extend, and
    its error; `beyond`: for the table, the n in use beyond the sweep.
    """
    errors = np.array(epsilon, float)
    n = np.arange(first, first + errors.size, dtype=float)
    series = []
    if errors.size:
        small = 0.75 if errors.size < 50 else 0.45
        series += [
            Series("line", n, errors, colour="curve", width=1.5),
            Series("points", n, errors, colour="curve", size=small),
        ]
        if suggested and first <= suggested < first + errors.size:
            k = suggested - first
            label = f"Suggested n = {suggested}"
            series.append(
                Series("points", n[k : k + 1], errors[k : k + 1], label, "residual", size=2.0, hollow=True)
            )

    def data() -> Iterator[tuple[object, ...]]:
        heading = "epsilon_processors_sqrt_s" if unit == PROCESSORS.of_error else f"epsilon ({unit})"
        yield "parameters_n" if model == "budget" else "phases_n", heading
        yield from enumerate(errors.tolist(), first)
        if (used := beyond()) is not None:
            yield used

    last, least = (None, None) if reach is None else (reach[0] + 0.5, reach[1])
    return Content(
        Axis("Parameters n" if model == "budget" else "Phases n", whole=True, tight=True, high=last),
        Axis(f"ε ({unit})", log=True, floor=True, low=least),
        tuple(series), chosen=chosen, empty=empty, legend_rows=2, data=data,
    )  # fmt: skip


def links(rows: Sequence[Row]) -> list[tuple[int, float, float]]:
    """Breakpoints that persist: index of the row, time in it, and time in the next."""
    lasting: list[tuple[int, float, float]] = []
    for k, (upper, lower) in enumerate(pairwise(rows)):
        near = SAME * (upper[0][-1] - upper[0][0])
        times, inner = upper[0][1:-1], lower[0][1:-1]
        if times.size and inner.size:
            nearest = inner[np.abs(inner - times[:, None]).argmin(axis=1)]
            same = np.abs(nearest - times) <= near
            lasting += [(k, t, o) for t, o in zip(times[same].tolist(), nearest[same].tolist(), strict=True)]
    return lasting


def breakpoint_chart(
    rows: Sequence[Row], first: int, chosen: Highlight | None = None, *, empty: str = ""
) -> Content:
    """The breakpoints of every n, one row per n from the top: a persistent phase appears as a vertical line.

    `rows` of n = first, first + 1, ...; a bar is the range in which a breakpoint could be at the same error.
    """
    series: list[Series] = []
    start = end = 0.0
    if rows:
        start, end = float(rows[0][0][0]), float(rows[0][0][-1])
        n = np.repeat(np.arange(first, first + len(rows), dtype=float), [r[0].size - 2 for r in rows])
        at, low, high = (np.concatenate([r[k][1:-1] for r in rows]) for k in range(3))
        joined = np.array([(first + k, a, b) for k, a, b in links(rows)]).reshape(-1, 3)
        wide = high > low
        series = [
            Series("bars", n[wide], high[wide], colour="band", low=low[wide], thickness=0.6, opacity=0.27),
            Series("segments", np.stack([joined[:, 0], joined[:, 0] + 1], axis=1).ravel(),
                   joined[:, 1:].ravel(), colour="breakpoint"),
            Series("segments", np.stack([n - 0.4, n + 0.4], axis=1).ravel(), np.repeat(at, 2), colour="fit",
                   width=2.0),
        ]  # fmt: skip
    last = first + len(rows) - 1

    def data() -> Iterator[tuple[object, ...]]:
        yield "n", "break", "break_s", "least_s", "most_s"
        for n, ends in enumerate(rows, first):
            for k, (at, low, high) in enumerate(zip(*(v[1:-1].tolist() for v in ends), strict=True), 1):
                yield n, k, at, low, high

    return Content(
        Axis("Time", time=True, low=start, high=end if end > start else start + 1.0),
        Axis("Phases n", whole=True, tight=True, down=True, low=first - 0.5, high=last + 0.5),
        tuple(series), horizontal_bars=True, chosen=chosen, empty=empty, data=data,
    )  # fmt: skip
