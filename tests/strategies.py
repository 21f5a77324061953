"""Hypothesis strategies for step functions, pleasant and nasty."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from desktop.core.curve import StepCurve

# Whole ticks, as traces have them, from even ones to widths 2**40 apart, and widths that are not whole.
WIDTHS: tuple[st.SearchStrategy[float], ...] = (
    st.integers(1, 12).map(float),
    st.sampled_from([1.0, 2.0, 1000.0]),
    st.sampled_from([1.0, 2.0**20, 2.0**40]),
    st.integers(1, 10**12).map(float),
    st.floats(0.125, 50.0, width=32),
)

# Processors; few levels give plateaus and repeated neighbours, offsets a tiny variance on a large mean.
LEVELS: tuple[st.SearchStrategy[float], ...] = (
    st.integers(0, 3).map(float),
    st.integers(0, 1024).map(float),
    st.integers(0, 2).map(lambda v: 1e6 + v),
    st.integers(0, 2).map(lambda v: 1e9 + v),
    st.integers(0, 100 * 1024).map(lambda v: v / 1024),
)


@st.composite
def curves(draw: st.DrawFn, min_steps: int = 1, max_steps: int = 40, unit: float = 1.0) -> StepCurve:
    """A step curve of one drawn character; `unit` 1 keeps the edges themselves in seconds."""
    width, level = draw(st.sampled_from(WIDTHS)), draw(st.sampled_from(LEVELS))
    m = draw(st.integers(min_steps, max_steps))
    start = draw(st.sampled_from([0.0, 0.0, 64.0]))
    widths = draw(st.lists(width, min_size=m, max_size=m))
    levels = draw(st.lists(level, min_size=m, max_size=m))
    shape = draw(st.sampled_from(["as drawn", "sorted", "held"]))
    if shape == "sorted":
        levels.sort()
    elif shape == "held":
        levels = levels[: max(1, m // 4)]
        levels = (levels * -(-m // len(levels)))[:m]
        levels = sorted(levels, key=levels.index)
    return StepCurve(np.append(start, start + np.cumsum(widths)), levels, unit=unit)


def small_curves(max_steps: int = 9) -> st.SearchStrategy[StepCurve]:
    """Few steps of small whole numbers, for brute force."""
    pair = st.tuples(st.integers(1, 6), st.integers(0, 6))

    def build(steps: list[tuple[int, int]]) -> StepCurve:
        widths, levels = zip(*steps, strict=True)
        return StepCurve(np.append(0, np.cumsum(widths)), levels)

    return st.lists(pair, min_size=1, max_size=max_steps).map(build)


def partitions(curve: StepCurve, n: int) -> st.SearchStrategy[NDArray[np.float64]]:
    """Breaks (n+1,) of the curve, anywhere, in order, from its start to its end."""
    inner = st.lists(st.floats(0.0, 1.0), min_size=n - 1, max_size=n - 1)
    span = curve.edges[-1] - curve.edges[0]
    return inner.map(
        lambda parts: np.concatenate(
            [[curve.edges[0]], curve.edges[0] + np.sort(np.array(parts, float)) * span, [curve.edges[-1]]]
        )
    )


def runs(curve: StepCurve) -> int:
    """How many runs of equal height the curve has."""
    return 1 + int(np.count_nonzero(np.diff(curve.level)))


def mapped(
    curve: StepCurve,
    edges: Callable[[NDArray[np.float64]], NDArray[np.float64]] = lambda e: e,
    level: Callable[[NDArray[np.float64]], NDArray[np.float64]] = lambda v: v,
) -> StepCurve:
    """The same curve with other times or heights."""
    return StepCurve(edges(curve.edges), level(curve.level), unit=curve.unit)
