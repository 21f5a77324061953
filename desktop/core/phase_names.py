"""Names of phases: the region that is typical of each, and the call in which it spends most time.

``factor: MPI_Recv 39 %`` is a phase that lies mostly inside ``factor``, more so than the rest of the run, and
39 % of whose processor time is in ``MPI_Recv``, more than in any other call without computing.
``advance ×48``: each processor enters the region 48 times. Where no region of the program distinguishes the
phase, ``computing 60 %, MPI_Recv 39 %``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from desktop.core.arrays import Floats
from desktop.core.curve import StepCurve
from desktop.core.landmarks import MOST, Stretches, open_weight, smoothed

#: Kinds of regions: parts of the program, and calls in which nothing is computed.
PROGRAM, WAITING = "program", "waiting"
#: A kind of messages, by direction or size; distinguishes phases that would have the same name.
MESSAGES = "messages"
#: A region names a phase if it covers this part of it, and so much more of it than of the rest of the run.
_COVERS, _TELLS = 0.5, 0.15
#: A call is named from this part of the time on, and alone from the second on.
_SPENT, _NOTHING_ELSE = 0.1, 0.9
#: The number of calls is named from so many on.
_AGAIN = 6
_BINS = 2048


@dataclass(frozen=True, eq=False)
class Doings:
    """Regions over time: names, kinds (things,); inside, calls (things, bins + 1): cumulated processor time
    inside, in bins times all processors, and calls of a processor, from `start` (s) up to each of equally
    spaced times to `end`. computing (bins + 1,): the same of the time in which processors compute."""

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    inside: Floats
    calls: Floats
    computing: Floats
    start: float
    end: float


def doings(stretches: Stretches, curve: StepCurve, about: Callable[[int], tuple[str, str]]) -> Doings:
    """The regions in the part of a run that `curve` covers. `about`: gives name and kind of a region."""
    start, end = curve.span
    computing = curve.means(_BINS) / max(curve.capacity, 1e-300)
    # Messages have no duration: take them from the first to the last of those that come often.
    sent = smoothed(stretches.take(stretches.what < 0).ordered(), end - start)[0]
    rows = stretches.take(stretches.what >= 0).beside(sent)
    rows = rows.take(rows.end > rows.begin)
    things, which = np.unique(rows.what, return_inverse=True)
    width = (end - start) / _BINS
    length = rows.end - rows.begin
    cumulated = []
    inside = np.where(rows.what >= 0, rows.inside, length)  # messages have no duration
    for amount in (inside / width, rows.calls.astype(float)):
        # Amounts are spread evenly over a stretch, so their sum up to an edge is a ramp.
        slope = amount / (length / width) / max(stretches.processors, 1)
        upto = np.cumsum(open_weight(rows, which, start, width, _BINS, slope), axis=1)
        cumulated.append(np.concatenate([np.zeros((things.size, 1)), upto], axis=1))
    described = [about(thing) for thing in things.tolist()]
    names, kinds = (tuple(x) for x in zip(*described, strict=True)) if described else ((), ())
    return Doings(
        names, kinds, cumulated[0], cumulated[1], np.concatenate([[0.0], np.cumsum(computing)]), start, end
    )


def phase_names(
    doings: Doings | None,
    breakpoints: Sequence[float] | Floats,
    user_names: Sequence[tuple[float, str]] = (),
    called: Mapping[str, str] | None = None,
) -> tuple[str, ...]:
    """(n,) names of the phases between `breakpoints` (n + 1,) in seconds. `user_names`, each with a time
    inside its phase (s), come first. `called`: names to use instead of a region's own."""
    ends = np.asarray(breakpoints, float)
    names = [""] * (ends.size - 1) if doings is None else _doing_names(doings, ends, called or {})
    for time, text in user_names:
        k = int(np.searchsorted(ends, time, side="right")) - 1
        if 0 <= k < len(names):
            names[k] = text
    return tuple(names)


def _doing_names(doings: Doings, ends: Floats, called: Mapping[str, str]) -> list[str]:
    if not doings.names:
        return [""] * (ends.size - 1)
    at = np.clip((ends - doings.start) / (doings.end - doings.start), 0, 1) * _BINS
    inside, calls = (np.diff(_upto(x, at), axis=1) for x in (doings.inside, doings.calls))
    width = np.diff(at).clip(min=1e-9)
    computing = np.diff(_upto(doings.computing[None], at), axis=1)[0] / width
    shares = inside / width
    outside = (doings.inside[:, -1:] - inside) / (_BINS - width).clip(min=1e-9)
    whole = doings.inside[:, -1] / _BINS
    program, sent = (np.array([kind == which for kind in doings.kinds]) for which in (PROGRAM, MESSAGES))
    names = []
    for k in range(ends.size - 1):
        share = shares[:, k]
        tells = share - outside[:, k]
        fits = program & (share >= _COVERS) & (whole < MOST) & ((tells >= _TELLS) | (ends.size == 2))
        region = ""
        if fits.any():
            # Of nested regions that cover equally much, the one with least time elsewhere.
            best = int(np.argmax(np.where(fits, tells - 1e-3 * whole, -np.inf)))
            region = called.get(doings.names[best], doings.names[best])
            times = round(float(calls[best, k]))
            region += f" ×{times}" if times >= _AGAIN else ""
        spent = np.where(program | sent, 0.0, share)
        most = int(np.argmax(spent))
        call = called.get(doings.names[most], doings.names[most])
        part = f"{call} {100 * spent[most]:.0f} %" if spent[most] >= _SPENT else ""
        if region:
            names.append(f"{region}: {part}" if part else region)
        elif spent[most] >= _NOTHING_ELSE:
            names.append(call)
        else:
            # By the curve, not as the rest beside calls: before start and after end a processor is idle.
            busy = f"computing {100 * computing[k]:.0f} %"
            parts = [busy] if computing[k] >= 0.005 or not part else []
            names.append(", ".join([*parts, part] if part else parts))
    alike = [k for k in range(len(names)) if names[k] in (names[max(k - 1, 0) : k] + names[k + 1 : k + 2])]
    for k in alike if sent.any() else ():
        tells = np.where(sent, shares[:, k] - outside[:, k], -np.inf)
        if shares[int(tells.argmax()), k] >= _COVERS and tells.max() >= _TELLS:
            names[k] += f", {doings.names[int(tells.argmax())]}"
    return names


def _upto(sums: Floats, at: Floats) -> Floats:
    """Cumulated `sums` (things, bins + 1), interpolated at edges `at` (K,): (things, K)."""
    i = np.minimum(at.astype(np.int64), sums.shape[1] - 2)
    return np.asarray(sums[:, i] + (sums[:, i + 1] - sums[:, i]) * (at - i))
