"""Search for the period, or the time constant, that the phases of a curve share.

Done once for a curve, on its exact means over up to 2048 equal stretches: the rate at which the product of
the epsilons of 1, 2, 4 and 8 phases is least. Candidates are those of the space's scale (for saturation, 16
rates in equal ratios), else the highest peaks in the spectrum of the residuals of 1 and 8 quadratic phases.
They are refined by Brent's method. Periods shorter than 4 of the stretches are not searched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import minimize_scalar

from desktop.core.arrays import Floats
from desktop.core.curve import StepCurve
from desktop.core.envelope import envelope
from desktop.core.spaces import Basis

#: Epsilon of (curve, number of phases, basis).
Epsilon = Callable[[StepCurve, int, Basis], float]

_STRETCHES = 2048
_COUNTS = (1, 2, 4, 8)
_PEAKS = 4
_FINEST = 4
_RATES = 16


def means(curve: StepCurve) -> StepCurve:
    """The curve's exact means over equal stretches, 4 for each step but at least 64 and at most `_STRETCHES`;
    in seconds from its start."""
    count = min(max(64, 4 * curve.segments), _STRETCHES)
    part = np.linspace(0.0, 1.0, count + 1)
    level = envelope(curve).columns(curve.start + curve.duration * part).mean
    return StepCurve(curve.duration * part, level)


def search_rate(coarse: StepCurve, model: str, left: Sequence[Floats], epsilon: Epsilon) -> Basis:
    """The basis of `coarse`, a curve from `means`. `left`, (steps,) each: residuals of phases without a
    period. The space must have a scale."""
    duration, scale = coarse.duration, Basis(model, 1.0).space.scale
    assert scale is not None

    def error(rate: float) -> float:
        basis = Basis(model, rate)
        errors = np.array([epsilon(coarse, n, basis) for n in _COUNTS])
        return float(np.log(np.maximum(errors, 1e-300)).sum())

    def refined(low: float, high: float) -> tuple[float, float]:
        best = minimize_scalar(error, bounds=(low, high), method="bounded", options={"xatol": 1e-7 * high})
        return float(best.fun), float(best.x)

    if scale.limits:
        rates = np.geomspace(*scale.limits, _RATES) / duration
        k = int(np.argmin([error(rate) for rate in rates]))
        return Basis(model, refined(rates[max(k - 1, 0)], rates[min(k + 1, rates.size - 1)])[1])
    once = scale.turns / duration
    peaks = sorted({k for one in left for k in _peaks(one)})
    return Basis(model, min(refined((k - 1) * once, (k + 1) * once) for k in peaks)[1])


def at_limit(basis: Basis, duration: float) -> str:
    """A sentence if the search for the basis of a curve of `duration` seconds ended at one of its limits,
    which means that the curve supports no value inside; else ""."""
    scale = basis.space.scale
    if scale is None:
        return ""
    longest, shortest = duration, _FINEST * duration / _STRETCHES
    if scale.limits:
        longest, shortest = (scale.turns * duration / rate for rate in scale.limits)
    name = scale.name
    if basis.seconds >= 0.95 * longest:
        return f"the search for a {name} ended at its limit, the length of the run: none shorter fits better"
    if basis.seconds <= 1.05 * shortest:
        return f"the search for a {name} ended at its limit, 1/{duration / shortest:.0f} of the run"
    return ""


def _peaks(left: Floats) -> Sequence[float]:
    """Numbers of periods in the run at the highest peaks of the spectrum, at least 1.5."""
    power = np.abs(np.fft.rfft(left * np.hanning(left.size)))[: left.size // _FINEST]
    inner = power[1:-1]
    peaks = np.flatnonzero((inner >= power[:-2]) & (inner >= power[2:])) + 1
    peaks = peaks[peaks >= 2]
    highest = peaks[np.argsort(-power[peaks], kind="stable")[:_PEAKS]]
    return [float(k) for k in highest] or [2.0]
