"""Functions of phases besides polynomials; each space of functions is a module here, and a row of `TABLE`.

Worley's problem (ORNL/TM-11637, 1990, section 2) requires only that the error of an interval can be computed
and does not fall when the interval grows; any linear space of functions qualifies. Intervals of a space that
is invariant under shifts in time merge as polynomials do in `desktop.core.tree`. Kernels, commands, window
and reports use this table; `desktop.core.spaces` compiles the formulas.

No module here loads numpy or numba.
"""

from __future__ import annotations

from desktop.core.bases import periodic, saturation
from desktop.core.bases.space import FunctionSpace, RateScale

__all__ = ["FIRST", "TABLE", "FunctionSpace", "RateScale", "degree_of", "space_of"]

#: Number of the first space, after the degrees 0, 1, 2 of polynomials; the others follow by row. Projects and
#: reports store these numbers, so new rows have to be appended.
FIRST = 3
TABLE: list[FunctionSpace] = [periodic.SPACE, saturation.SPACE]


def space_of(model: str) -> FunctionSpace | None:
    """The space of a model; None for models of polynomials."""
    return next((space for space in TABLE if space.model == model), None)


def degree_of(model: str) -> int:
    """The number of a model's space; StopIteration for models of polynomials."""
    return next(k for k, space in enumerate(TABLE, FIRST) if space.model == model)
