"""What a curve counts, in the words of axes, sentences and tables."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CurveQuantity:
    """What the levels of a curve are.

    `name`: of the curve; `axis`: title of an axis of its levels; `unit`: after a number in a sentence;
    `short`: the same where there is little room, and in a product with seconds. `counted`: levels count
    things of which there are as many as the curve's capacity, so that a level is a part of all of them.
    `physical`: `unit` takes SI prefixes, as bytes do and processors do not.
    """

    name: str = "Computing"
    axis: str = "Processors"
    unit: str = "processors"
    short: str = "proc"
    counted: bool = True
    physical: bool = False

    def per(self, unit: str) -> str:
        """A unit that is said of processors, as ``"proc·√s"`` or ``"proc/s"``, of these levels.

        >>> CurveQuantity(short="J/s").per("proc·s"), CurveQuantity(short="B").per("proc·√s")
        ('J', 'B·√s')
        """
        of, rest = self.short, unit.removeprefix("proc")
        if rest == unit:
            return unit
        if of.endswith("/s") and rest:
            return {"·s": of[:-2], "·√s": f"{of[:-2]}/√s", "/s": f"{of}²", "/s²": f"{of}³"}[rest]
        return (of + rest).lstrip("·")

    @property
    def of_error(self) -> str:
        """Unit of an L2 norm, in words."""
        return f"{self.unit}·√s" if self.unit != self.short else self.per("proc·√s")

    @property
    def of_squares(self) -> str:
        """Unit of an integral of squares."""
        unit = f"({self.short})" if "/" in self.short else self.short
        return f"{unit}²·s".lstrip("²·") if self.short else "s"


#: Of the utilization curve.
PROCESSORS = CurveQuantity()
