"""Structure events of a run: times at which most processors begin or end something.

They are derived from stretches (`desktop.core.presence`): times in which a processor is inside a region, or
sends in one direction or messages of one size (a *thing*). Where most processors have equally many stretches
of a thing, the k-th begins of all of them are one event, and so are the k-th ends. Its time is the median;
where processors follow one another, the first and the last one are events too. A thing with more than `OFTEN`
stretches, after gaps below `GAP` of the run are closed, is an iteration of which only the first begin and the
last end count. A thing that all do together and rarely is an event each time. Where the curve is constant far
longer than usual while iterations go on, as in a long call, both ends are events too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from desktop.core.arrays import Flags, Floats, Ints
from desktop.core.curve import StepCurve
from desktop.core.quantity import PROCESSORS
from desktop.core.units import quantity, trimmed

#: Largest gaps that are closed, as a part of the run; a thing with more stretches than this is an iteration.
GAP, OFTEN = 0.01, 6
#: Events closer together than this part of the run are one; if one spreads over more, its ends are too.
NEAR, WIDE = 0.004, 0.008
#: The shortest phase, and the longest stretch that gives events, as parts of the run.
SHORTEST, MOST = 0.02, 0.9
#: Events this close to the ends of the run are ignored (a part of it).
MARGIN = 0.004
#: A curve stands still if it does not change for this part of the run, although so many changes are expected.
STILL, CHANGES = 0.05, 100.0

_NONE = np.zeros(0, np.int64)
_FIRST = "the first "
_COLUMNS = ("begin", "end", "what", "where", "calls", "inside")


@dataclass(frozen=True, eq=False)
class Stretches:
    """Rows (n,): begin and end in seconds; what, the thing (a region's number, or below 0 for messages);
    where, the processor; the calls in it, and the seconds inside. `processors`: number of all."""

    begin: Floats
    end: Floats
    what: Ints
    where: Ints
    calls: Ints
    inside: Floats
    processors: int

    def take(self, rows: Ints | Flags | slice) -> Stretches:
        return replace(self, **{name: getattr(self, name)[rows] for name in _COLUMNS})

    def beside(self, other: Stretches) -> Stretches:
        """The rows of both, concatenated."""
        pairs = {name: (getattr(self, name), getattr(other, name)) for name in _COLUMNS}
        # `Any`, as the type of `replace` also checks the other fields against these values.
        columns: dict[str, Any] = {name: np.concatenate(pair) for name, pair in pairs.items()}
        return replace(self, **columns)

    def ordered(self) -> Stretches:
        """Sorted by what, processor and begin."""
        return self.take(np.lexsort((self.begin, self.where, self.what)))

    def joined(self, gap: float) -> Stretches:
        """Rows of one thing and processor merged over gaps up to `gap` (s); rows must be `ordered`."""
        if not self.begin.size:
            return self
        same = (self.what[1:] == self.what[:-1]) & (self.where[1:] == self.where[:-1])
        first = np.concatenate([[True], ~(same & (self.begin[1:] - self.end[:-1] <= gap))])
        starts = np.flatnonzero(first)
        end = np.maximum.reduceat(self.end, starts)
        calls, inside = (np.add.reduceat(x, starts) for x in (self.calls, self.inside))
        return replace(self.take(starts), end=end, calls=calls, inside=inside)


@dataclass(frozen=True)
class Landmark:
    """A structure event.

    time_s, low_s, high_s : median over the processors, and the range of four fifths of them.
    what : region's number, or below 0 for messages; None for a mark of the user.
    happens : "begins" or "ends"; "first" or "last" (processor that enters or leaves) of a spread event.
    share : part of all processors that take part.
    text : the event in words.
    waiting : processors may wait from here on.
    apart : the first and the last processor are further apart than two of the shortest phases.
    drifting : a neighbouring thing (messages of the next size) takes over, as also happens when sizes change
        gradually.
    name : of the region, as the trace has it.
    """

    time_s: float
    low_s: float
    high_s: float
    what: int | None
    happens: str
    share: float
    processors: int
    text: str = ""
    waiting: bool = False
    drifting: bool = False
    apart: bool = False
    name: str = ""

    def called(self, names: Mapping[str, str]) -> str:
        """The text with another name of the region."""
        head = _FIRST if self.text.startswith(f"{_FIRST}{self.name} ") else ""
        rest = self.text[len(head) + len(self.name) :]
        return f"{head}{names.get(self.name, self.name)}{rest}"


@dataclass(frozen=True, eq=False)
class Landmarks:
    """The known structure of a run.

    events : sorted by time. state : (things, bins) share of the processors in each thing, over the run from
        `start_s` to `end_s` in equal bins. beating : begin, end (s) and number of repetitions of iterations.
    """

    events: tuple[Landmark, ...]
    state: Floats
    things: Ints
    beating: tuple[tuple[float, float, int], ...]
    start_s: float
    end_s: float


NOTHING = Landmarks((), np.zeros((0, 1)), np.zeros(0, np.int64), (), 0.0, 0.0)


def landmarks(
    stretches: Stretches,
    start_s: float,
    end_s: float,
    name: Callable[[int], str],
    waits: Callable[[int, str], bool] = lambda what, happens: False,
    bins: int = 1024,
    marks: tuple[tuple[float, str], ...] = (),
    next_to: Callable[[int, int], bool] = lambda what, other: False,
) -> Landmarks:
    """The structure events between two times (s). `name`: gives the name of a thing; `waits`: whether
    processors may wait when it "begins" or after it "ends"; `marks`: times (s) and texts of the user's marks;
    `next_to`: whether two things are neighbours on one scale."""
    span = end_s - start_s
    whole = stretches.ordered()
    rare = np.array([thing for thing in np.unique(whole.what).tolist() if waits(thing, "begins")], np.int64)
    closed, beating = smoothed(whole, span, rare)
    closed = _from_the_start(closed, span)
    lasting = closed.take(closed.end - closed.begin < MOST * span)
    events = _events(lasting, span, name, waits) + _firsts(whole, closed, span, name, waits)
    inside = [e for e in events if start_s + MARGIN * span < e.time_s < end_s - MARGIN * span]
    inside = _drifting(inside, span, next_to)
    inside += [
        Landmark(t, t, t, None, "marked", 1.0, stretches.processors, f"marked {text!r}")
        for t, text in marks
        if start_s < t < end_s
    ]
    inside.sort(key=lambda e: e.time_s)
    return Landmarks(
        tuple(inside),
        *_state(_throughout(closed, whole, start_s, end_s), start_s, end_s, bins),
        beating,
        start_s,
        end_s,
    )


def smoothed(
    rows: Stretches, span: float, together: Ints = _NONE
) -> tuple[Stretches, tuple[tuple[float, float, int], ...]]:
    """Ordered rows with small gaps closed, and frequent things (iterations) as one stretch of each processor;
    and for each such thing of most processors begin, end (s) and number. `together`: things that all do at
    once; of these, rare ones keep their gaps, even if a processor has nothing to do in between."""
    alone = np.isin(rows.what, together)
    for thing in together.tolist():
        same = rows.what == thing
        if rows.calls[same].sum() > OFTEN * np.unique(rows.where[same]).size:
            alone &= ~same
    rows = rows.take(~alone).joined(GAP * span).beside(rows.take(alone)).ordered()
    if not rows.what.size:
        return rows, ()
    keys, count = np.unique(np.stack([rows.what, rows.where], axis=1), axis=0, return_counts=True)
    things, of = np.unique(keys[:, 0], return_inverse=True)
    typical = np.array([np.median(count[of == k]) for k in range(things.size)])
    # Things that recur within the length of two shortest phases are frequent too.
    again = (rows.what[1:] == rows.what[:-1]) & (rows.where[1:] == rows.where[:-1])
    period = np.where(again, rows.begin[1:] - rows.begin[:-1], np.nan)
    quick = np.array(
        [_median(period[again & (rows.what[1:] == thing)]) < 2 * SHORTEST * span for thing in things]
    )
    often = np.isin(rows.what, things[(typical > OFTEN) | quick])
    if not often.any():
        return rows, ()
    one = rows.take(often).joined(np.inf)
    every = rows.take(~often).beside(one)
    beating = tuple(
        (float(np.median(one.begin[same])), float(np.median(one.end[same])), round(float(times)))
        for thing, times in zip(things.tolist(), typical.tolist(), strict=True)
        if 2 * np.count_nonzero(same := one.what == thing) >= rows.processors
    )
    return every.ordered(), beating


def _from_the_start(rows: Stretches, span: float) -> Stretches:
    """Stretches of iterations extended to their first begin and last end: to where another stretch of the
    processor begins or ends within one period."""
    period = (rows.end - rows.begin) / (rows.calls - 1).clip(min=1)
    fast = (rows.calls > OFTEN) & (period < 2 * SHORTEST * span)
    if fast.all() or not fast.any():
        return rows
    begin, end = rows.begin.copy(), rows.end.copy()
    for place in np.unique(rows.where[fast]).tolist():
        slow = ~fast & (rows.where == place) & (rows.end - rows.begin < MOST * span)
        edges = np.sort(np.concatenate([rows.begin[slow], rows.end[slow]]))
        same = np.flatnonzero(fast & (rows.where == place))
        if not edges.size:
            continue
        before = np.searchsorted(edges, begin[same], side="right") - 1
        after = np.searchsorted(edges, end[same], side="left")
        u, v = edges[before.clip(min=0)], edges[after.clip(max=edges.size - 1)]
        begin[same] = np.where((before >= 0) & (begin[same] - u <= 1.5 * period[same]), u, begin[same])
        end[same] = np.where((after < edges.size) & (v - end[same] <= 1.5 * period[same]), v, end[same])
    return replace(rows, begin=begin, end=end)


def with_standstills(landmarks: Landmarks, curve: StepCurve) -> Landmarks:
    """`landmarks` with events at both ends of the times in which a curve (processors that compute, bytes in
    flight) is constant for far longer than usual: a long call among many that are one stretch."""
    # Few arrays of its size, as a curve may have as many steps as its trace has events.
    edges = curve.edges[np.concatenate([[True], curve.level[1:] != curve.level[:-1], [True]])]
    ticks, whole = np.diff(edges), edges[-1] - edges[0]
    longest = np.flatnonzero(ticks >= STILL * whole)
    longest = longest[ticks[longest] * ticks.size >= CHANGES * (whole - ticks[longest])]
    levels = curve.level[np.searchsorted(curve.edges, edges[longest])]
    nothing = curve.capacity if curve.quantity == PROCESSORS else 0.0  # all compute: no call is waited for
    start, finish = curve.span
    still = [
        (begin, end, level)
        for begin, end, level in np.stack(
            [edges[longest] * curve.unit, edges[longest + 1] * curve.unit, levels], axis=1
        ).tolist()
        if level != nothing and any(a <= begin and end <= b for a, b, _ in landmarks.beating)
    ]
    if not still:
        return landmarks
    kind, processors, of = np.iinfo(np.int64).min, round(curve.capacity), curve.quantity
    standstills: list[Landmark] = []
    at = np.linspace(landmarks.start_s, landmarks.end_s, landmarks.state.shape[1] + 1)
    state = np.zeros(at.size - 1)
    for begin, end, level in still:
        state += np.clip((end - at[:-1]) / np.diff(at), 0, 1)
        state -= np.clip((begin - at[:-1]) / np.diff(at), 0, 1)
        for t, happens in ((begin, "begins"), (end, "ends")):
            amount = quantity(level, of.unit) if of.physical else f"{trimmed(level, 3)} {of.unit}".rstrip()
            text = f"{trimmed(level, 3)} of {processors} processors compute"
            text = text if of == PROCESSORS else f"the curve stays at {amount}"
            text += f" {'from here on' if happens == 'begins' else 'up to here'}, without a change"
            if MARGIN < (t - start) / (finish - start) < 1 - MARGIN:
                standstills.append(Landmark(t, t, t, kind, happens, 1.0, processors, text))
    return replace(
        landmarks,
        events=tuple(sorted((*landmarks.events, *standstills), key=lambda e: e.time_s)),
        state=np.vstack([landmarks.state, state]),
        things=np.append(landmarks.things, kind),
    )


def _throughout(rows: Stretches, whole: Stretches, start_s: float, end_s: float) -> Stretches:
    """Stretches of even iterations that reach from the run's start to its end, up to 1.5 periods, extended to
    both, so that their margins are not other states."""
    again = (whole.what[1:] == whole.what[:-1]) & (whole.where[1:] == whole.where[:-1])
    period = np.diff(whole.begin)
    reach = np.zeros(rows.begin.size)
    for thing in np.unique(rows.what[rows.calls > OFTEN]).tolist():
        same = period[again & (whole.what[1:] == thing)]
        if same.size and same.max() <= 2 * (usual := float(np.median(same))):
            reach[(rows.what == thing) & (rows.calls > OFTEN)] = 1.5 * usual
    even = (rows.begin - start_s <= reach) & (end_s - rows.end <= reach)
    return replace(rows, begin=np.where(even, start_s, rows.begin), end=np.where(even, end_s, rows.end))


def _median(values: Floats) -> float:
    return float(np.median(values)) if values.size else np.inf


def _events(
    rows: Stretches, span: float, name: Callable[[int], str], waits: Callable[[int, str], bool]
) -> list[Landmark]:
    events: list[Landmark] = []
    for thing in np.unique(rows.what).tolist():
        stretches = rows.take(rows.what == thing)
        places, count = np.unique(stretches.where, return_counts=True)
        typical = int(np.bincount(count).argmax())
        same = places[count == typical]
        if 2 * same.size >= rows.processors:
            regular = stretches.take(np.isin(stretches.where, same))
            begins, ends = (x.reshape(same.size, typical) for x in (regular.begin, regular.end))
        elif 2 * places.size >= rows.processors:
            first = np.flatnonzero(np.concatenate([[True], stretches.where[1:] != stretches.where[:-1]]))
            begins = stretches.begin[first][:, None]
            ends = np.maximum.reduceat(stretches.end, first)[:, None]
        else:
            continue
        for times, happens in ((begins, "begins"), (ends, "ends")):
            for column in np.sort(times, axis=0).T:
                events += _at(
                    column, thing, happens, name(thing), rows.processors, span, waits(thing, happens)
                )
    return events


def _firsts(
    rows: Stretches,
    closed: Stretches,
    span: float,
    name: Callable[[int], str],
    waits: Callable[[int, str], bool],
) -> list[Landmark]:
    """Events at the end of the first of several calls that are one stretch, as processors may have waited in
    it to begin."""
    firsts: list[Landmark] = []
    several = np.unique(closed.what[closed.calls > 1])
    for thing in several[[waits(w, "begins") for w in several.tolist()]].tolist() if several.size else ():
        stretches = rows.take(rows.what == thing)
        first = np.flatnonzero(np.concatenate([[True], stretches.where[1:] != stretches.where[:-1]]))
        single = first[stretches.calls[first] == 1]
        if 2 * single.size >= rows.processors:
            times = np.sort(stretches.end[single])
            firsts += _at(times, thing, "ends", name(thing), rows.processors, span, False, _FIRST)[:1]
    return firsts


def _at(
    times: Floats, thing: int, happens: str, name: str, processors: int, span: float, waiting: bool,
    which: str = "",
) -> list[Landmark]:  # fmt: skip
    """The event at these times (sorted), one a processor; with those of first and last if they are spread.
    `which` of several is meant, before the name."""
    low, middle, high = np.quantile(times, (0.1, 0.5, 0.9)).tolist()
    share, spread = times.size / processors, float(times[-1] - times[0])
    text = f"{which}{name} {happens} on {times.size} of {processors} processors"
    apart = spread > 2 * SHORTEST * span
    event = Landmark(
        middle, low, high, thing, happens, share, processors, text, waiting, apart=apart, name=name
    )
    if spread <= WIDE * span:
        return [event]
    ends = []
    for t, place in ((float(times[0]), "first"), (float(times[-1]), "last")):
        text = f"{which}{name} {happens} on the {place} of {times.size} processors"
        ends.append(replace(event, time_s=t, low_s=t, high_s=t, happens=place, text=text))
    return [event, *ends]


def _drifting(events: list[Landmark], span: float, next_to: Callable[[int, int], bool]) -> list[Landmark]:
    """The events, `drifting` where one of two neighbouring things ends and the other begins."""
    of: dict[tuple[int, str], list[float]] = {}
    for e in events:
        if e.what is not None and e.happens in ("begins", "ends"):
            of.setdefault((e.what, e.happens), []).append(e.time_s)

    def hands_over(e: Landmark) -> bool:
        return any(
            happens != e.happens
            and e.what is not None
            and next_to(e.what, thing)
            and any(abs(t - e.time_s) <= NEAR * span for t in times)
            for (thing, happens), times in of.items()
        )

    return [replace(e, drifting=True) if hands_over(e) else e for e in events]


def _state(rows: Stretches, start_s: float, end_s: float, bins: int) -> tuple[Floats, Ints]:
    """Share of the processors in each thing over time (things, bins), and the things' numbers (things,)."""
    things, which = np.unique(rows.what, return_inverse=True)
    inside = open_weight(rows, which, start_s, (end_s - start_s) / bins, bins)
    return inside.clip(0) / rows.processors, things


def open_weight(
    rows: Stretches, which: Ints, start_s: float, width: float, bins: int, weight: Floats | float = 1.0
) -> Floats:
    """(things, bins) mean `weight` of the open stretches of each thing in each bin; which (n,): the thing of
    each row."""
    # A begin adds and an end subtracts: in its bin, the part that follows it; in the next, the rest.
    change = np.zeros((int(which.max(initial=-1)) + 1, bins + 2))
    for times, sign in ((rows.begin, 1.0), (rows.end, -1.0)):
        at = ((times - start_s) / width).clip(0, bins)
        i = at.astype(np.int64)
        np.add.at(change, (which, i), sign * weight * (1 - (at - i)))
        np.add.at(change, (which, i + 1), sign * weight * (at - i))
    return np.cumsum(change, axis=1)[:, :bins]
