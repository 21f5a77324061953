"""The step curve: a step function of time, such as the number of computing processors."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from desktop.core.arrays import Floats
from desktop.core.quantity import PROCESSORS, CurveQuantity
from desktop.errors import CurveError


@dataclass(frozen=True, eq=False)
class StepCurve:
    """A right-continuous step function: `level[j]` holds on ``[edges[j], edges[j+1])``.

    This is the paper's "histogram" h with its ordered pairs (ORNL/TM-11637, section 3.2), plus its end.

    Parameters
    ----------
    edges : (M+1,) times, strictly increasing, in units of `unit` seconds. Whole ticks below 2**53 are
        held exactly as float64, so the widths of the steps are exact too.
    level : (M,) processors, finite. Neighbours may be equal.
    capacity : number of all processors; the largest level if not given.
    unit : seconds in one unit of `edges`; 1 means that `edges` are seconds.
    quantity : the quantity of `level`, by default computing processors.

    Raises
    ------
    CurveError : shapes, order or values that are not those of a step function; the message says where.
    """

    edges: Floats
    level: Floats
    capacity: float = np.nan
    unit: float = 1.0
    quantity: CurveQuantity = PROCESSORS
    # Data structures that are built once per curve (moment tree, drawing tree), by name.
    summaries: dict[str, object] = field(default_factory=dict, repr=False)

    def __init__(
        self,
        edges: ArrayLike,
        level: ArrayLike,
        capacity: float | None = None,
        unit: float = 1.0,
        quantity: CurveQuantity = PROCESSORS,
    ) -> None:
        e = _frozen(edges)
        h = _frozen(level)
        _check(e, h)
        if not (np.isfinite(unit) and unit > 0):
            raise CurveError(f"the unit of time is {unit}, it must be a positive number of seconds")
        cap = float(h.max()) if capacity is None else float(capacity)
        object.__setattr__(self, "edges", e)
        object.__setattr__(self, "level", h)
        object.__setattr__(self, "capacity", cap)
        object.__setattr__(self, "unit", float(unit))
        object.__setattr__(self, "quantity", quantity)
        object.__setattr__(self, "summaries", {})

    @property
    def segments(self) -> int:
        """M, the number of steps."""
        return self.level.size

    @property
    def start(self) -> float:
        """Time of the first edge in seconds."""
        return float(self.edges[0]) * self.unit

    @property
    def duration(self) -> float:
        """Length in seconds."""
        return float(self.edges[-1] - self.edges[0]) * self.unit

    @property
    def span(self) -> tuple[float, float]:
        """Start and end in seconds."""
        return self.start, self.start + self.duration

    @cached_property
    def integral(self) -> float:
        """Integral in processor-seconds."""
        return float(np.diff(self.edges) @ self.level) * self.unit

    @cached_property
    def mean(self) -> float:
        """Mean level over time, in processors."""
        return float(np.diff(self.edges) @ self.level) / float(self.edges[-1] - self.edges[0])

    def means(self, bins: int) -> Floats:
        """(bins,) mean level in each of so many equal parts of the duration, in processors, exactly."""
        total = np.zeros(self.edges.size)
        part = np.subtract(self.edges[1:], self.edges[:-1], out=total[1:])
        part *= self.level
        part.cumsum(out=part)
        at = np.linspace(self.edges[0], self.edges[-1], bins + 1)
        return np.asarray(
            np.diff(np.interp(at, self.edges, total)) * (bins / (self.edges[-1] - self.edges[0]))
        )

    def at(self, seconds: ArrayLike) -> Floats:
        """Level at each time (seconds); 0 outside ``[start, end)``."""
        t = np.asarray(seconds, float) / self.unit
        j = np.searchsorted(self.edges, t, side="right") - 1
        inside = (j >= 0) & (j < self.segments)
        return np.where(inside, self.level[np.clip(j, 0, self.segments - 1)], 0.0)

    def window(self, start: float, end: float) -> StepCurve:
        """The part within ``[start, end]`` seconds, with unchanged times.

        Raises
        ------
        ValueError : the window is empty or lies outside the curve.
        """
        a = max(start / self.unit, float(self.edges[0]))
        b = min(end / self.unit, float(self.edges[-1]))
        if not a < b:
            raise ValueError(
                f"the window {start} s to {end} s is empty or outside the curve, which runs from "
                f"{self.start} s to {self.start + self.duration} s"
            )
        i = int(np.searchsorted(self.edges, a, side="right")) - 1
        j = int(np.searchsorted(self.edges, b, side="left"))
        edges = self.edges[i : j + 1].copy()
        edges[0], edges[-1] = a, b
        return StepCurve(edges, self.level[i:j], self.capacity, self.unit, self.quantity)


def _frozen(values: ArrayLike) -> Floats:
    """`values` as a read-only float64 array; copied only if it is writeable or of another type."""
    a = np.asarray(values)
    if a.dtype != np.float64 or a.flags.writeable or not a.flags.c_contiguous:
        a = np.array(a, np.float64, order="C")
        a.flags.writeable = False
    return a


def _check(edges: Floats, level: Floats) -> None:
    if edges.ndim != 1 or level.ndim != 1 or level.size < 1 or edges.size != level.size + 1:
        raise CurveError(
            f"a curve needs M levels and M+1 edges with M at least 1, got {level.shape} levels "
            f"and {edges.shape} edges"
        )
    if not np.isfinite(edges).all():
        j = int(np.argmin(np.isfinite(edges)))
        raise CurveError(f"the time {edges[j]} is not a finite number", where=f"edge {j}")
    if not np.isfinite(level).all():
        j = int(np.argmin(np.isfinite(level)))
        raise CurveError(f"the level {level[j]} is not a finite number", where=f"step {j}")
    if not (edges[1:] > edges[:-1]).all():
        j = int(np.argmax(~(edges[1:] > edges[:-1]))) + 1
        raise CurveError(
            f"the time {edges[j]:.17g} does not come after {edges[j - 1]:.17g}, times must increase",
            where=f"edge {j}",
        )
