"""Responses of a factor model: times transformed as in UTK-CS-97-354 (equation 11), or as measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from desktop.core.arrays import Floats
from desktop.core.characteristic import Characteristic
from desktop.core.factor_fit import Measurements

#: ``t'``: equation 11, about equal weight for every point; ``t``: seconds as measured, where the longest runs
#: dominate; ``log``: relative errors, the residual is the logarithm of measured over fitted.
RESPONSES = ("t'", "t", "log")


@dataclass(frozen=True, eq=False)
class FactorResponse:
    """y (N,) is fitted by sum_i delta_i columns_i with columns_i = scale u_i(p).

    factor : (codes, systems), y = time * p * factor (or time * factor where `scale` is 1).
    """

    kind: str
    y: Floats
    scale: Floats
    factor: Floats
    note: str = ""

    def columns(self, functions: Sequence[Characteristic], p: Floats, size: Floats | None = None) -> Floats:
        """(N, functions) at p (N,) and problem sizes (N,)."""
        return self.scale[:, None] * np.stack([f.u(p, size) for f in functions], axis=1)


def respond(data: Measurements, kind: str = "t'") -> FactorResponse:
    """The response of that kind: for ``t'`` and ``log`` equation 11, as far as work and peak are known.

    A missing peak counts as 1. Missing work is replaced by the median of t p r_peak of the code, which
    makes t' of every code about 1; shares and ratios do not depend on it.

    Raises
    ------
    ValueError : an unknown kind, or ``t`` for data that are already transformed.
    """
    if kind not in RESPONSES:
        raise ValueError(f"there is no response {kind!r}, known are {', '.join(RESPONSES)}")
    shape = len(data.codes), len(data.systems)
    if data.transformed:
        if kind == "t":
            raise ValueError("the table holds t', not times, so it cannot be fitted with the response t")
        factor = np.ones(shape)
        if data.work is not None and data.peak is not None:
            factor = data.peak[None, :] / data.work[:, None]
        return FactorResponse(kind, data.time, data.p, factor, "the table holds t', which is used unchanged")
    if kind == "t":
        return FactorResponse(kind, data.time, np.ones(len(data)), np.ones(shape))
    peak = np.ones(shape[1]) if data.peak is None else data.peak
    raw = data.time * data.p * peak[data.system]
    notes = [] if data.peak is not None else ["peak rates are not known and count as 1"]
    if data.work is None:
        work = np.array([_median(raw[data.code == c]) for c in range(shape[0])])
        notes.append("operation counts are not known: t' of every code is divided by its median")
    else:
        work = data.work
    factor = peak[None, :] / work[:, None]
    return FactorResponse(kind, raw / work[data.code], data.p, factor, "; ".join(notes))


def _median(values: Floats) -> float:
    return float(np.median(values)) if values.size else 1.0
