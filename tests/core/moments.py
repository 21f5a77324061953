"""The best polynomials of an interval, by a walk over the moment tree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from desktop.core.curve import StepCurve
from desktop.core.tree import moment_tree, reach


class Moments(NamedTuple):
    """Width in ticks, Legendre coefficients in processors, E_0 to E_2 in processors² · ticks."""

    width: float
    c: tuple[float, float, float]
    error: tuple[float, float, float]


def moments(curve: StepCurve, a: tuple[int, float], b: tuple[int, float]) -> Moments:
    """Of the interval between two positions (j, offset in ticks), by a walk that nothing stops."""
    tree = moment_tree(curve)
    _, _, e, w, c0, c1, c2, _ = reach(tree, 2, 1, *a, *b, np.inf)
    e1 = e + w * c2 * c2 / 5
    return Moments(w, (c0 + tree.reference, c1, c2), (e1 + w * c1 * c1 / 3, e1, e))
