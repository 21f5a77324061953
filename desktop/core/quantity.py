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

    @property
    def of_time(self) -> str:
        """Unit of an integral over time, in seconds."""
        return f"{self.short}·s".lstrip("·")

    @property
    def of_error(self) -> str:
        """Unit of an L2 norm."""
        return f"{self.unit}·√s".lstrip("·")


#: Of the utilization curve.
PROCESSORS = CurveQuantity()
