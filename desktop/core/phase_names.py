"""What phases are called: the region that is typical of each, and in what its processors spend their time.

``factor: MPI_Recv 39 %`` is a phase most of which lies inside ``factor``, more than of the rest of the run;
39 % of its processor time are spent in ``MPI_Recv``, more than in any other call in which none computes.
``advance ×48``: the region is entered 48 times by each processor. Where a trace has no regions of the
program that tell phases apart, ``computing 60 %, MPI_Recv 39 %``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from desktop.core.arrays import Floats
from desktop.core.curve import StepCurve
from desktop.core.landmarks import MOST, Stretches, begun, settled

#: Kinds of regions: parts of the program, and calls in which nothing is computed.
PROGRAM, WAITING = "program", "waiting"
#: Messages that are sent in a direction or of a size tell phases apart that would be called the same.
MESSAGES = "messages"
#: A region names a phase if so much of it lies inside, and so much more than of the rest of the run.
_COVERS, _TELLS = 0.5, 0.15
#: A call is worth mentioning from this part of the time on, and is all there is from this one on.
_SPENT, _NOTHING_ELSE = 0.1, 0.9
#: So many calls of each processor are worth mentioning.
_AGAIN = 6
_BINS = 2048


@dataclass(frozen=True, eq=False)
class Doings:
    """Of regions (things,): name, kind; (things, bins + 1) processor time inside and calls of a processor
    from `start` (s) up to each of equally spaced times to `end`, in shares of the processors and bins;
    `computing` (bins + 1,): likewise what all of them compute."""

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    inside: Floats
    calls: Floats
    computing: Floats
    start: float
    end: float


def doings(stretches: Stretches, curve: StepCurve, about: Callable[[int], tuple[str, str]]) -> Doings:
    """What the processors do in the part of a run that `curve` is of. `about`: name and kind of a region."""
    start, end = curve.start, curve.start + curve.duration
    computing = curve.means(_BINS) / max(curve.capacity, 1e-300)
    # Messages are moments: from the first to the last of those that come often.
    sent = settled(stretches.taken(stretches.what < 0).ordered(), end - start)[0]
    rows = stretches.taken(stretches.what >= 0).beside(sent)
    rows = rows.taken(rows.end > rows.begin)
    things, which = np.unique(rows.what, return_inverse=True)
    width = (end - start) / _BINS
    length = rows.end - rows.begin
    cumulated = []
    inside = np.where(rows.what >= 0, rows.inside, length)  # messages have no duration of their own
    for amount in (inside / width, rows.calls.astype(float)):
        # Spread evenly over a stretch: the sum up to an edge is a ramp.
        slope = amount / (length / width) / max(stretches.processors, 1)
        upto = np.cumsum(begun(rows, which, start, width, _BINS, slope), axis=1)
        cumulated.append(np.concatenate([np.zeros((things.size, 1)), upto], axis=1))
    described = [about(what) for what in things.tolist()]
    names, kinds = (tuple(x) for x in zip(*described, strict=True)) if described else ((), ())
    return Doings(
        names, kinds, cumulated[0], cumulated[1], np.concatenate([[0.0], np.cumsum(computing)]), start, end
    )


def phase_names(
    known: Doings | None,
    breaks: Sequence[float] | Floats,
    given: Sequence[tuple[float, str]] = (),
    called: Mapping[str, str] | None = None,
) -> tuple[str, ...]:
    """Names of the phases between breaks (n + 1) in seconds; what the user has `given`, by a time inside (s),
    comes first. `called`:
    what regions are called instead."""
    ends = np.asarray(breaks, float)
    names = [""] * (ends.size - 1) if known is None else _doing_names(known, ends, called or {})
    for time, text in given:
        k = int(np.searchsorted(ends, time, side="right")) - 1
        if 0 <= k < len(names):
            names[k] = text
    return tuple(names)


def _doing_names(known: Doings, ends: Floats, called: Mapping[str, str]) -> list[str]:
    if not known.names:
        return [""] * (ends.size - 1)
    at = np.clip((ends - known.start) / (known.end - known.start), 0, 1) * _BINS
    inside, calls = (np.diff(_upto(x, at), axis=1) for x in (known.inside, known.calls))
    width = np.diff(at).clip(min=1e-9)
    computing = np.diff(_upto(known.computing[None], at), axis=1)[0] / width
    shares = inside / width
    outside = (known.inside[:, -1:] - inside) / (_BINS - width).clip(min=1e-9)
    whole = known.inside[:, -1] / _BINS
    program, sent = (np.array([kind == what for kind in known.kinds]) for what in (PROGRAM, MESSAGES))
    names = []
    for k in range(ends.size - 1):
        share = shares[:, k]
        tells = share - outside[:, k]
        fits = program & (share >= _COVERS) & (whole < MOST) & ((tells >= _TELLS) | (ends.size == 2))
        region = ""
        if fits.any():
            # Of regions inside one another, which cover as much, the one that is least elsewhere.
            best = int(np.argmax(np.where(fits, tells - 1e-3 * whole, -np.inf)))
            region = called.get(known.names[best], known.names[best])
            times = round(float(calls[best, k]))
            region += f" ×{times}" if times >= _AGAIN else ""
        spent = np.where(program | sent, 0.0, share)
        most = int(np.argmax(spent))
        call = called.get(known.names[most], known.names[most])
        part = f"{call} {100 * spent[most]:.0f} %" if spent[most] >= _SPENT else ""
        if region:
            names.append(f"{region}: {part}" if part else region)
        elif spent[most] >= _NOTHING_ELSE:
            names.append(call)
        else:
            # Of the curve, not what calls leave: before a processor begins and after its end it does nothing.
            busy = f"computing {100 * computing[k]:.0f} %"
            parts = [busy] if computing[k] >= 0.005 or not part else []
            names.append(", ".join([*parts, part] if part else parts))
    alike = [k for k in range(len(names)) if names[k] in (names[max(k - 1, 0) : k] + names[k + 1 : k + 2])]
    for k in alike if sent.any() else ():
        tells = np.where(sent, shares[:, k] - outside[:, k], -np.inf)
        if shares[int(tells.argmax()), k] >= _COVERS and tells.max() >= _TELLS:
            names[k] += f", {known.names[int(tells.argmax())]}"
    return names


def _upto(sums: Floats, at: Floats) -> Floats:
    """Sums (things, bins + 1) between edges."""
    i = np.minimum(at.astype(np.int64), sums.shape[1] - 2)
    return np.asarray(sums[:, i] + (sums[:, i + 1] - sums[:, i]) * (at - i))
