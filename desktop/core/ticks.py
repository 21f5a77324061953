"""Ticks of axes: 1-2-5 steps, powers, doublings, SI units of time with offsets in deep zoom."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from desktop.core.units import TIME_UNITS, format_number

_UNITS = tuple((seconds, name) for name, seconds in TIME_UNITS.items())


@dataclass(frozen=True)
class Ticks:
    """Positions in the axis' own unit (seconds, processors; log10 on a logarithmic axis) with their labels.

    `unit` is the unit of the labels; `offset` must be added to them ("" if none).
    """

    positions: list[float]
    labels: list[str]
    unit: str = ""
    offset: str = ""


def nice_step(span: float, count: float) -> tuple[int, int]:
    """The smallest 1-2-5 step m·10^e that cuts `span` into at most `count` parts, as (m, e)."""
    rough = span / max(count, 1.0)
    e = math.floor(math.log10(rough))
    for m in (1, 2, 5):
        if m * 10.0**e >= rough * (1 - 1e-9):
            return m, e
    return 1, e + 1


def time_unit(span: float, preferred: tuple[float, str] | None = None) -> tuple[float, str]:
    """The requested unit (seconds, name), else the most readable one for a visible span."""
    return preferred or next((u for u in _UNITS if span >= 2 * u[0]), _UNITS[-1])


def time_ticks(a: float, b: float, count: float, preferred: tuple[float, str] | None = None) -> Ticks:
    """At most about `count` ticks from `a` to `b` seconds, with an offset when labels would grow long."""
    scale, unit = time_unit(b - a, preferred)
    m, e = nice_step(b - a, count)
    step = m * 10.0**e
    first, last = math.ceil(a / step - 1e-9), math.floor(b / step + 1e-9)
    zero, offset = 0, ""
    if max(abs(first), abs(last)) * m >= 100_000:
        power = math.ceil(math.log10(b - a))
        whole = math.floor(a / 10.0**power)
        zero = round(whole * (10 ** (power - e) / m))
        offset = f"+{whole * 10.0**power:.{max(-power, 0)}f} s"
    decimals = max(0, round(math.log10(scale)) - e)
    numbers = range(first, last + 1)
    # A requested unit may give long numbers, which are grouped by three digits.
    form = f",.{decimals}f" if preferred is not None else f".{decimals}f"
    labels = [f"{(k - zero) * step / scale:{form}}".replace(",", "\u2009") for k in numbers]
    return Ticks([k * step for k in numbers], labels, unit, offset)


def level_ticks(low: float, high: float, count: float, *, whole: bool = False) -> Ticks:
    """1-2-5 ticks between `low` and `high`; `whole`: only whole numbers, if the span allows."""
    m, e = nice_step(high - low, count)
    if whole and e < 0 and high - low >= 1:
        m, e = 1, 0
    step = m * 10.0**e
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    numbers = range(first, last + 1)
    text = [f"{k * step:.{max(-e, 0)}f}" for k in numbers]
    return Ticks([k * step for k in numbers], [s.replace("-", "−") for s in text])


def power_ticks(low: float, high: float, count: float) -> Ticks:
    """Ticks between 10^low and 10^high, positions as log10: 1 to 9, 1-2-5 or 1 times powers of ten,
    linear where all are within a factor of two."""
    every = range(math.floor(low), math.ceil(high) + 1)
    marks: list[tuple[int, int]] = []
    for steps in (tuple(range(1, 10)), (1, 2, 5), (1,)):
        marks = [(e, m) for e in every for m in steps if low - 1e-9 <= e + math.log10(m) <= high + 1e-9]
        # Ticks below a power of ten are closest; labels need two thirds of their even share.
        if len(marks) <= count and math.log10(10 / steps[-1]) * count > 0.65 * (high - low):
            break
    if len(marks) < 2:
        linear = level_ticks(10.0**low, 10.0**high, count)
        inside = [(v, text) for v, text in zip(linear.positions, linear.labels, strict=True) if v > 0]
        return Ticks([math.log10(v) for v, _ in inside], [text for _, text in inside])
    marks = marks[:: max(1, math.ceil(len(marks) / max(count, 1.0)))]
    # 1-2-5 times a power of ten need no more digits than that.
    labels = [f"{m * 10.0**e:g}" if -5 < e < 6 else f"{m}e{e}".replace("-", "−") for e, m in marks]
    return Ticks([e + math.log10(m) for e, m in marks], labels)


def doubling_ticks(low: float, high: float, count: float) -> Ticks:
    """Powers of two between 10^low and 10^high, positions as log10, at most about `count`."""
    first, last = math.ceil(low / math.log10(2) - 1e-9), math.floor(high / math.log10(2) + 1e-9)
    if last - first < 1:
        return power_ticks(low, high, count)
    step = max(1, math.ceil((last - first + 1) / max(count, 1.0)))
    powers = range(first, last + 1, step)
    return Ticks([k * math.log10(2) for k in powers], [format_number(2.0**k) for k in powers])


def name_ticks(names: Sequence[str], count: float) -> Ticks:
    """Names at 0, 1, 2, ..., every k-th of them, so that at most about `count` have labels."""
    step = max(1, math.ceil(len(names) / max(count, 1.0)))
    return Ticks([float(k) for k in range(0, len(names), step)], list(names[::step]))
