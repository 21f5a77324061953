"""Which processors a plot shows upright: the rules of its vertical axis, as plain values and functions.

Levels are processors. On a logarithmic axis distances are those of logarithms; 0 lies below its lower end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from desktop.core.arrays import Floats
from desktop.core.envelope import envelope
from desktop.core.units import trimmed

if TYPE_CHECKING:
    from desktop.core.curve import StepCurve

V = TypeVar("V", float, Floats)
#: The first view fits a curve that stays below this part of all processors.
LOW = 0.1
#: Columns of the whole run whose means are the drawn line, as far as its height goes.
COLUMNS = 1000
#: Room above the highest level, as a part of the range.
ROOM = 0.05
#: Decades of a logarithmic axis, if the levels do not ask for fewer.
DECADES = 4
#: The least range, as a part of all processors, and on a logarithmic axis the least ratio of its ends.
LEAST, RATIO = 1e-6, 1.1

MODES = ("start", "all", "fit", "hand")


@dataclass(frozen=True)
class Levels:
    """What the user wants of the vertical axis.

    `mode`: "start", all processors, or what the whole curve needs where that is little (`LOW`); "all", all of
    them; "fit", what the visible part needs; "hand", from `low` to `high`. `log`: a logarithmic axis.
    """

    mode: str = "start"
    low: float = 0.0
    high: float = 0.0
    log: bool = False

    def problem(self) -> str:
        if self.mode not in MODES:
            return f"mode is {self.mode}, allowed are {', '.join(MODES)}"
        if self.mode == "hand" and not (math.isfinite(self.high - self.low) and self.low < self.high):
            return "the vertical range is empty"
        return (
            "the logarithmic range begins at 0" if self.mode == "hand" and self.log and self.low <= 0 else ""
        )


AT_FIRST = Levels()


@dataclass(frozen=True)
class Heights:
    """What a curve needs: all its `processors`; its `least` and `most` level in the whole run; of its drawn
    line there (the means of columns) the `peak` and the least that is not 0, `tiny` (NaN: none); the `low`
    and `high` level in what is visible; what levels count, `unit`."""

    processors: float
    least: float
    most: float
    peak: float
    tiny: float
    low: float
    high: float
    unit: str = "processors"


def line_heights(curve: StepCurve) -> tuple[float, float]:
    """`Heights.peak` and `Heights.tiny` of a curve, of the means of `COLUMNS` columns; cached with it."""
    known = curve.summaries.get("line heights")
    if isinstance(known, tuple):
        return known
    edges = np.linspace(*curve.span, COLUMNS + 1)
    mean = envelope(curve).columns(edges).mean
    above = mean[mean > 0]
    heights = float(np.nanmax(mean)), float(above.min()) if above.size else math.nan
    curve.summaries["line heights"] = heights
    return heights


def heights_of(curve: StepCurve, a: float, b: float) -> Heights:
    """What a curve needs of an upright axis where the times from `a` to `b` (s) are seen."""
    env = envelope(curve)
    least, most, _ = env.range(-math.inf, math.inf)
    low, high, _ = env.range(a, b)
    return Heights(curve.capacity, least, most, *line_heights(curve), low, high, curve.quantity.unit)


def little(heights: Heights) -> bool:
    """Whether a curve stays so low that an axis of all processors shows nothing of it."""
    return 0 < heights.peak < LOW * heights.processors


def limits(levels: Levels, heights: Heights) -> tuple[float, float]:
    """The ends of the axis."""
    if levels.mode == "hand" and not levels.problem():
        return levels.low, levels.high
    low, high = whole(heights)
    if levels.mode == "start" and little(heights):
        high = round_up(heights.peak * (1 + ROOM))
    elif levels.mode == "fit" and heights.high > -math.inf:
        bottom, top, least = low, high, LEAST * (high - low)
        low, high = heights.low, heights.high
        if high - low < least or not high > low:
            middle, half = (low + high) / 2, max(0.5, least)
            low, high = middle - half, middle + half
        room = (high - low) * ROOM
        low, high = max(low - room, bottom), min(high + room, top)
    if not levels.log:
        return low, high
    high = high if high > 0 else 1.0
    tiny = heights.tiny if 0 < heights.tiny < high else high / 10
    least = max(tiny / 1.5, high / 10**DECADES)
    # From a whole decade on, so far below that the least level is not on the rim.
    return min(10.0 ** math.floor(math.log10(least) + 1e-9), high / 10), high


def whole(heights: Heights) -> tuple[float, float]:
    """From 0 to all processors, with some room; further where the curve goes further."""
    low, high = min(0.0, heights.least), max(heights.processors, heights.most)
    if not high > low:
        low, high = low - 0.5, high + 0.5
    room = (high - low) * ROOM
    return (low - room if low != 0 else 0.0), high + room


def zoomed(levels: Levels, heights: Heights, factor: float, about: float | None = None) -> Levels:
    """`factor` times as close; the level `about` stays where it is, without one the lower end."""
    low, high = limits(levels, heights)
    if levels.log:
        a, b = math.log(low), math.log(high)
        at = a if about is None or about <= 0 else min(max(math.log(about), a), b)
        a, b = at - (at - a) / factor, at + (b - at) / factor
        return _by_hand(levels, heights, math.exp(a), math.exp(b))
    at = low if about is None else min(max(about, low), high)
    return _by_hand(levels, heights, at - (at - low) / factor, at + (high - at) / factor)


def moved(levels: Levels, heights: Heights, share: float) -> Levels:
    """Up by a share of what is seen; down if negative."""
    low, high = limits(levels, heights)
    if levels.log:
        by = (high / low) ** share
        return _by_hand(levels, heights, low * by, high * by)
    by = share * (high - low)
    return _by_hand(levels, heights, low + by, high + by)


def stretched(levels: Levels, heights: Heights, level: float, share: float) -> Levels:
    """The lower end stays, and `level` comes to lie at a share (0 to 1) of the height."""
    low, _ = limits(levels, heights)
    share = max(share, 1e-3)
    if not level > low:
        return levels
    if levels.log:
        # So far up that it is cut off anyway, before it is no number.
        return _by_hand(levels, heights, low, low * math.exp(min(math.log(level / low) / share, 300.0)))
    return _by_hand(levels, heights, low, low + (level - low) / share)


def _by_hand(levels: Levels, heights: Heights, low: float, high: float) -> Levels:
    """A range within that of all processors, moved back and then cut off where it reaches beyond, and no
    narrower than can be told apart; all of it is "all"."""
    bottom, top = limits(replace(levels, mode="all"), heights)
    if levels.log:
        bottom = min(bottom, limits(levels, heights)[0], limits(replace(levels, mode="fit"), heights)[0])
        by = max(bottom / low, 1.0) * min(top / high, 1.0)
        low, high = max(low * by, bottom), min(high * by, top)
        if high < RATIO * low:
            middle = math.sqrt(low * high)
            low, high = middle / math.sqrt(RATIO), middle * math.sqrt(RATIO)
    else:
        by = max(bottom - low, 0.0) + min(top - high, 0.0)
        low, high = max(low + by, bottom), min(high + by, top)
        least = LEAST * (top - bottom)
        if high - low < least:
            low = min(max((low + high - least) / 2, bottom), top - least)
            high = low + least
    near = 1e-9 * (top - bottom)
    if abs(low - bottom) <= near and abs(high - top) <= near:
        return replace(levels, mode="all", low=0.0, high=0.0)
    return replace(levels, mode="hand", low=low, high=high)


def note(levels: Levels, heights: Heights) -> str:
    """What is said beside an axis that does not show all processors; "" where it does."""
    low, high = limits(levels, heights)
    if high >= max(heights.processors, heights.most) and (levels.log or low <= min(0.0, heights.least)):
        return ""
    beyond = f", peaks to {_number(heights.most)}" if heights.most > high and levels.mode == "start" else ""
    return f"{_number(low)}–{_number(high)} of {_number(heights.processors)} {heights.unit}{beyond}".rstrip()


def residual_reach(reach: float, levels: Levels, heights: Heights) -> float:
    """The largest deviation on the residual's axis: what it needs, but no more than is seen of levels."""
    low, high = limits(levels, heights)
    return min(reach, high - low)


def share(values: V, low: float, high: float, log: bool) -> V:
    """Where levels lie between the ends, from 0 to 1 (and beyond); on a logarithmic axis what is not above 0
    lies far below."""
    if not log:
        return (values - low) / (high - low)
    above = np.maximum(values, low * 1e-3)
    share: V = np.log(above / low) / math.log(high / low)
    return share


def at_share(share: float, low: float, high: float, log: bool) -> float:
    """The level at a share of the height; the inverse of `share`."""
    return low * (high / low) ** share if log else low + share * (high - low)


def round_up(value: float) -> float:
    """The next of 1, 1.2, 1.5, 2, 3, 4, 5, 6, 8, 10 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(
        (m * power for m in (1.0, 1.2, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0) if m * power >= value * (1 - 1e-9)),
        10 * power,
    )


def _number(value: float) -> str:
    return trimmed(value, 3) if abs(value) < 1e6 else f"{value:g}"
