"""The quantity of a curve, with its names and units for axes, sentences and tables."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CurveQuantity:
    """The quantity of a curve's levels.

    `name`: of the curve; `axis`: title of an axis of its levels; `unit`: after a number in a sentence;
    `short`: its abbreviation, also for products with seconds. `counted`: levels are numbers of things, of
    which the curve's capacity is the total, so that a level is a part of it. `physical`: `unit` takes SI
    prefixes, as bytes do and processors do not.
    """

    name: str = "Computing"
    axis: str = "Processors"
    unit: str = "processors"
    short: str = "proc"
    counted: bool = True
    physical: bool = False

    def per(self, unit: str) -> str:
        """A unit of processors, such as ``"proc·√s"`` or ``"proc/s"``, converted to this quantity.

        >>> CurveQuantity(short="J/s").per("proc·s"), CurveQuantity(short="B").per("proc·√s")
        ('J', 'B·√s')
        """
        of, suffix = self.short, unit.removeprefix("proc")
        if suffix == unit:
            return unit
        if of.endswith("/s") and suffix:
            return {"·s": of[:-2], "·√s": f"{of[:-2]}/√s", "/s": f"{of}²", "/s²": f"{of}³"}[suffix]
        return (of + suffix).lstrip("·")

    @property
    def of_error(self) -> str:
        """Unit of an L2 norm."""
        return f"{self.unit}·√s" if self.unit != self.short else self.per("proc·√s")

    @property
    def of_squares(self) -> str:
        """Unit of an integral of squares."""
        unit = f"({self.short})" if "/" in self.short else self.short
        return f"{unit}²·s".lstrip("²·") if self.short else "s"


#: The quantity of the utilization curve.
PROCESSORS = CurveQuantity()
