"""Functions beside polynomials that phases may be made of; each is a module here, and a row of `TABLE`.

Worley's problem (ORNL/TM-11637, 1990, section 2) asks of the functions only that the error of an interval can
be told and does not fall when the interval grows; any linear space of functions does. A space that is the
same wherever its interval lies joins like polynomials do in `desktop.core.tree`. Whatever asks for a space,
kernels, commands, window, reports, asks this table; `desktop.core.spaces` compiles the formulas.

Light: no module here loads numpy or numba.
"""

from __future__ import annotations

from desktop.core.bases import periodic, saturation
from desktop.core.bases.space import FunctionSpace, RateScale

__all__ = ["FIRST", "TABLE", "FunctionSpace", "RateScale", "degree_of", "space_of"]

#: Spaces are told apart by numbers after the degrees 0, 1, 2 of polynomials: this one and up, by row.
#: Projects and reports keep them, so that a new row is the last.
FIRST = 3
TABLE: list[FunctionSpace] = [periodic.SPACE, saturation.SPACE]


def space_of(model: str) -> FunctionSpace | None:
    """The space of a model; None of models of polynomials."""
    return next((space for space in TABLE if space.model == model), None)


def degree_of(model: str) -> int:
    """The number of a model's space. StopIteration of models of polynomials."""
    return next(k for k, space in enumerate(TABLE, FIRST) if space.model == model)
