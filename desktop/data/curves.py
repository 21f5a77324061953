"""Curves over time besides the utilization: a table of kinds, `KINDS`.

A curve is requested by a text, ``KIND`` or ``KIND:WHAT``, such as ``io`` or ``region:solve``. All cover the
time of the utilization curve (first to last event of the processors); times are exact, whole ticks of the
common clock, so phases of one curve apply to all. Memory grows with the steps of the result, for messages in
flight with the messages, for a metric with its samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from desktop.core.arrays import Flags, Floats, Ints
from desktop.core.clock_kernels import corrected
from desktop.core.clock_line import columns
from desktop.core.curve import StepCurve
from desktop.core.envelope import Envelope, envelope
from desktop.core.plain import JSON
from desktop.core.quantity import PROCESSORS, CurveQuantity
from desktop.core.stepping import over_locations, stretches
from desktop.data.call_tables import entered
from desktop.data.classify import is_communication, region_activity
from desktop.data.events import NO_COMMUNICATOR, Activity, MetricAbout, Region, occurring
from desktop.data.matching import matched
from desktop.data.naming import communicator_names, location_name
from desktop.data.store import TraceStore
from desktop.data.utilization import Utilization, inside
from desktop.errors import CurveError
from desktop.progress import Progress

#: The curve that is fitted by default.
DEFAULT = "computing"
#: Most names of one kind that are listed in a sentence.
LISTED = 8
#: Units that take SI prefixes; with others, such as percent or a named power, a prefix would make no sense.
PHYSICAL = {"Bytes": "B", "bytes": "B", "byte": "B", "Byte": "B"} | {u: u for u in ("B", "J", "W", "Hz", "s")}


class CurveRequest(NamedTuple):
    """The source of a curve. Its `rules` are those of the utilization."""

    store: TraceStore
    use: Utilization
    progress: Progress

    @property
    def end(self) -> int:
        """The last tick since the start."""
        return int(self.use.edges[-1])

    def common(self, location: int, time: Ints) -> Ints:
        """Ticks as recorded to ticks since the start, on the common clock."""
        return self.use.rules.clock(self.store, location).common(time) - self.use.start

    def locations(self, *kinds: str) -> list[int]:
        """Locations of these kinds that have events."""
        numbered = enumerate(self.store.locations)
        return [i for i, at in numbered if at.kind in kinds and at.first is not None]


@dataclass(frozen=True)
class CurveKind:
    """A kind of curve. `title`: of a curve, "{}" stands for its WHAT. `names`: the possible WHATs in a trace,
    in order; [""] if none is needed, [] if the trace has no such curve. `needs`: what it would require."""

    title: str
    names: Callable[[TraceStore], list[str]]
    make: Callable[[CurveRequest, str, CurveQuantity], StepCurve]
    quantity: Callable[[TraceStore, str, str], CurveQuantity]
    needs: str


class Available(NamedTuple):
    """A curve that a trace has: its text, its title, the unit of its levels."""

    curve: str
    title: str
    unit: str


def parse(curve: str) -> tuple[str, str]:
    """Kind and WHAT of a curve.

    Raises
    ------
    CurveError : there is no such kind, or its WHAT is missing or superfluous.
    """
    kind, _, name = curve.partition(":")
    if kind not in KINDS:
        raise CurveError(f"there are no curves of {kind!r}", hint=f"kinds are {', '.join(KINDS)}")
    if ("{}" in KINDS[kind].title) != bool(name):
        form = f"{kind}:NAME" if "{}" in KINDS[kind].title else kind
        raise CurveError(f"a curve is asked for as {curve!r}, this kind is written {form}")
    return kind, name


def available(store: TraceStore) -> list[Available]:
    """The curves of a trace, in the order of `KINDS`."""
    return [
        Available(
            f"{kind}:{name}" if name else kind, of.title.format(name), of.quantity(store, kind, name).unit
        )
        for kind, of in KINDS.items()
        for name in of.names(store)
    ]


def build_curve(
    store: TraceStore, use: Utilization, curve: str, progress: Progress | None = None
) -> StepCurve:
    """A curve over the time of the utilization `use` of the trace, with its rules and clocks.

    Raises
    ------
    CurveError : there is no such kind of curve, or none in this trace.
    """
    if curve == DEFAULT:
        return use.curve()
    kind, member = parse(curve)
    of, names = KINDS[kind], KINDS[kind].names(store)
    if kind == "communicator":  # one with a name can also be requested by its number
        member = {str(k): name for k, name in communicator_names(store.notes).items()}.get(member, member)
    if member not in names:
        if any(names):
            listed = f"it has {', '.join(names[:LISTED])}{' ...' if len(names) > LISTED else ''}"
            hint = "say one of them; phasewright info lists all curves"
        else:
            listed = of.needs
            kinds = dict.fromkeys(one.curve.partition(":")[0] for one in available(store))
            hint = f"this trace has curves of {', '.join(kinds)}"
        raise CurveError(f"has no curve {curve}: {listed}", file=store.source.name, hint=hint)
    return of.make(CurveRequest(store, use, progress or Progress()), member, of.quantity(store, kind, member))


# ------------------------------------------------------------------ the time axis of a curve


def _stepped(
    request: CurveRequest, times: Ints, level: Floats, quantity: CurveQuantity, capacity: float | None
) -> StepCurve:
    """The curve whose `level` holds from each of the `times` on (ticks since the start, not decreasing; of
    equal ones the last counts); 0 before the first."""
    end = request.end
    before = int(np.searchsorted(times, 0, "right"))
    stop = max(int(np.searchsorted(times, end, "left")), before)
    at = np.concatenate([[0], times[before:stop], [end]])
    levels = np.concatenate([[level[before - 1] if before else 0.0], level[before:stop]])
    # A change counts if time passes before the next one, and the level differs.
    changes = np.flatnonzero(at[1:] > at[:-1])
    at, levels = at[changes], levels[changes]
    new = np.flatnonzero(np.concatenate([[True], levels[1:] != levels[:-1]]))
    edges = np.append(at[new], end).astype(np.float64)
    top = float(np.max(levels, initial=0.0)) if capacity is None else capacity
    return StepCurve(edges, levels[new], top, request.use.unit, quantity)


def _summed(times: Ints, change: Ints) -> tuple[Ints, Floats]:
    """Times in order, and the sum of all changes up to each."""
    order = np.argsort(times, kind="stable")
    return times[order], np.cumsum(change[order]).astype(np.float64)


# ------------------------------------------------------------------ processors and streams


def _activity(activity: Activity) -> Callable[[CurveRequest, str, CurveQuantity], StepCurve]:
    def make(request: CurveRequest, _: str, quantity: CurveQuantity) -> StepCurve:
        rules = replace(request.use.rules, computing=frozenset({activity}))
        curve = replace(request.use, rules=rules).curve()
        return StepCurve(curve.edges, curve.level, curve.capacity, curve.unit, quantity)

    return make


def _has(activity: Activity) -> Callable[[TraceStore], list[str]]:
    def names(store: TraceStore) -> list[str]:
        return [""] if any(row[activity] for row in store.totals) else []

    return names


def _region_flags(store: TraceStore, test: Callable[[Region], bool]) -> Flags:
    return np.array([test(region) for region in store.regions], bool)


def _within(
    request: CurveRequest, regions: Flags, locations: Sequence[int], quantity: CurveQuantity
) -> StepCurve:
    times, n = inside(request.store, request.use.rules, regions, locations, request.progress)
    return _stepped(request, times - request.use.start, n.astype(np.float64), quantity, float(len(locations)))


def _communicating(store: TraceStore) -> Flags:
    return _region_flags(store, is_communication)


STREAMS = CurveQuantity("Streams busy", "Streams", "streams", "str")


def _each_stream(store: TraceStore) -> list[str]:
    streams = (at for at in store.locations if at.kind == "accelerator" and at.first is not None)
    return list(dict.fromkeys(map(location_name, streams)))


def _streams(request: CurveRequest, name: str, quantity: CurveQuantity) -> StepCurve:
    """Streams that are busy: in a region in which they do not wait. All streams, or those with a name."""
    store, quiet = request.store, (Activity.IDLE, Activity.UNMEASURED)
    busy = _region_flags(store, lambda region: region_activity(region) not in quiet)
    streams = request.locations("accelerator")
    selected = [i for i in streams if not name or location_name(store.locations[i]) == name]
    return _within(request, busy, selected, quantity)


def _region(store: TraceStore, name: str) -> tuple[Flags, list[int]]:
    """A region, and the locations of the kind that enters it; processors if both kinds do."""
    regions = _region_flags(store, lambda region: region.name == name)
    by = {at.kind for at, calls in zip(store.locations, entered(store, regions), strict=True) if calls}
    kind = "accelerator" if by == {"accelerator"} else "cpu"
    return regions, [i for i, at in enumerate(store.locations) if at.kind == kind and at.first is not None]


# ------------------------------------------------------------------ communicators


def _communicators(store: TraceStore) -> list[str]:
    called, numbers = communicator_names(store.notes), occurring(store, "collectives", "communicator")
    return [called.get(number, str(number)) for number in numbers if number != NO_COMMUNICATOR]


def _communicator(request: CurveRequest, name: str, quantity: CurveQuantity) -> StepCurve:
    """Processors in a communication call during which they begin or end an operation on the communicator."""
    store, speaks = request.store, _communicating(request.store)
    numbers = {called: number for number, called in communicator_names(store.notes).items()}
    number = numbers[name] if name in numbers else int(name)
    begins, ends = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    processors = request.locations("cpu")
    for done, i in enumerate(processors):
        request.progress.step(done, len(processors), "communicator")
        marks = [np.zeros(0, np.int64)]
        for begin, end, comm in store.blocks("collectives", i, "begin", "end", "communicator"):
            marks += [begin[comm == number], end[comm == number]]
        for time, comm in store.blocks("messages", i, "time", "communicator"):
            marks.append(time[comm == number])
        at = np.sort(np.concatenate(marks))
        if not at.size:
            continue
        for begin, end in _calls(store, i, speaks):
            first = np.searchsorted(at, begin, "left")
            used = (first < at.size) & (at[np.minimum(first, at.size - 1)] <= end)
            begins.append(request.common(i, begin[used]))
            ends.append(request.common(i, end[used]))
    times = np.concatenate(begins + ends)
    change = np.ones(times.size, np.int64)
    change[times.size // 2 :] = -1
    return _stepped(request, *_summed(times, change), quantity, float(len(processors)))


def _calls(store: TraceStore, location: int, regions: Flags) -> Iterator[tuple[Ints, Ints]]:
    """Intervals in which a location is inside of any of the regions: begin and end, ticks as recorded."""
    open_ = np.zeros(regions.size, np.int64)
    state = np.zeros(2, np.int64)  # number of open regions, and begin of the interval
    for time, kind, region in store.blocks("events", location, "time", "kind", "region"):
        begin, end = np.empty(time.size, np.int64), np.empty(time.size, np.int64)
        n = stretches(time, kind, region, regions, open_, state, begin, end)
        yield begin[:n], end[:n]
    last = store.locations[location].last
    if state[0] and last is not None:
        yield state[1:].copy(), np.array([last], np.int64)


# ------------------------------------------------------------------ messages


def _message_names(store: TraceStore) -> list[str]:
    return [""] if any(tally.sent for tally in store.tallies) else []


def _in_flight(weighed: bool) -> Callable[[CurveRequest, str, CurveQuantity], StepCurve]:
    """Matched messages, from the send to the end of the receive; a message that arrives before it is sent
    (because clocks contradict) is never in flight."""

    def make(request: CurveRequest, _: str, quantity: CurveQuantity) -> StepCurve:
        times, change = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        clocks = columns(request.use.rules.clocks(request.store))
        done, total = 0, sum(tally.sent for tally in request.store.tallies)
        for matches in matched(request.store):
            request.progress.step(done, total, "messages")
            done += matches.sent.size
            sent, arrived = (
                corrected(ticks, location, *clocks) - request.use.start
                for ticks, location in ((matches.sent, matches.sender), (matches.received, matches.receiver))
            )
            good = arrived > sent
            weight = matches.bytes[good] if weighed else np.ones(int(good.sum()), np.int64)
            times += [sent[good], arrived[good]]
            change += [weight, -weight]
        return _stepped(request, *_summed(np.concatenate(times), np.concatenate(change)), quantity, None)

    return make


# ------------------------------------------------------------------ metrics


def _metric_names(store: TraceStore) -> list[str]:
    if store.metrics or not store.has("metrics"):
        return [name for name in store.metrics if name in store.texts]
    return [store.texts[number] for number in occurring(store, "metrics", "metric")]


def about_metric(store: TraceStore, name: str) -> MetricAbout:
    return store.metrics.get(name, MetricAbout())


def _is_rate(kind: str, about: MetricAbout) -> bool:
    return kind == "metric-rate" or (kind == "metric" and about.mode != "absolute")


def _metric_quantity(store: TraceStore, kind: str, name: str) -> CurveQuantity:
    about = about_metric(store, name)
    unit = PHYSICAL.get(about.unit, about.unit)
    rate = _is_rate(kind, about)
    per = f"{unit}/s" if rate else unit
    title = f"{name}, mean" if kind == "metric-mean" else f"{name} per second" if rate else name
    return CurveQuantity(
        title, title, per, per, counted=False, physical=unit in ("", *PHYSICAL) and bool(per)
    )


def _metric(kind: str) -> Callable[[CurveRequest, str, CurveQuantity], StepCurve]:
    def make(request: CurveRequest, name: str, quantity: CurveQuantity) -> StepCurve:
        times, level = metric_steps(request, name, kind)
        return _stepped(request, times, level, quantity, None)

    return make


def metric_steps(request: CurveRequest, name: str, kind: str) -> tuple[Ints, Floats]:
    """Times (ticks since the start, rising) and the level from each on: the sum over the locations, or with
    ``metric-mean`` the mean over those that have a value then.

    A value holds from its sample to the next one (timing "next"; the last one to the end) or from the
    previous sample to its own ("last"). A rate, per second, is that between two samples of a location.
    """
    store, about = request.store, about_metric(request.store, name)
    number, rate = store.texts.index(name), _is_rate(kind, about)
    every, places, levels = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]
    count = 0
    for i, location in enumerate(store.locations):
        request.progress.step(i, len(store.locations), "metric")
        parts = [(np.zeros(0, np.int64), np.zeros(0))]
        for time, which, value in store.blocks("metrics", i, "time", "metric", "value"):
            good = (which == number) & np.isfinite(value)
            parts.append((time[good], value[good]))
        time, value = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
        if not time.size:
            continue
        first = None if location.first is None else np.array([location.first])
        begin = request.common(i, time[:1] if first is None else first)[0]
        held = _held(request.common(i, time), value, int(begin), about, rate, request.use.unit)
        every.append(held[0])
        levels.append(held[1])
        places.append(np.full(held[0].size, count, np.int64))
        count += 1
    times, place, value = np.concatenate(every), np.concatenate(places), np.concatenate(levels)
    order = np.argsort(times, kind="stable")
    level = np.empty(times.size)
    over_locations(place[order], value[order], max(count, 1), kind == "metric-mean", level)
    return times[order], level


def _held(
    time: Ints, value: Floats, begin: int, about: MetricAbout, rate: bool, unit: float
) -> tuple[Ints, Floats]:
    """The level of one location from each time on, NaN if it has none. `begin`: its first event."""
    last_of = np.append(time[1:] > time[:-1], True)
    if about.mode == "relative" and rate:  # several samples at one time add up
        value = np.add.reduceat(value, np.append(0, np.flatnonzero(last_of)[:-1] + 1))
    else:
        value = value[last_of]
    time = time[last_of]
    nothing = np.full(1, np.nan)
    if rate and about.mode != "relative":
        return time, np.append(np.diff(value) / (np.diff(time) * unit), nothing)
    if about.timing == "last":
        starts: Ints = np.concatenate([np.array([min(begin, int(time[0]))], np.int64), time])
        if rate:
            with np.errstate(divide="ignore"):
                value = value / (np.diff(starts) * unit)
        levels = np.append(value, nothing)
        lasting = np.append(starts[1:] > starts[:-1], True)
        return starts[lasting], levels[lasting]
    if rate:
        value = np.append(value[:-1] / (np.diff(time) * unit), nothing)
    return time, value


class Measured(NamedTuple):
    """A metric over the time of a run: the curve ``metric:NAME`` as drawn. `rate`: whether its integral is
    what was counted."""

    name: str
    quantity: CurveQuantity
    rate: bool
    drawn: Envelope

    def mean(self, a: float, b: float) -> float:
        """Mean over a range (seconds), in the unit of the curve."""
        return self.drawn.range(a, b)[2] / (b - a)

    def total(self, a: float, b: float) -> float | None:
        """What was counted in a range (seconds); None if the metric is no rate."""
        return self.drawn.range(a, b)[2] if self.rate else None


def measured(
    store: TraceStore,
    use: Utilization,
    requested: Sequence[str],
    progress: Progress | None = None,
    most: int | None = None,
) -> tuple[Measured, ...]:
    """The `requested` metrics ("ALL": all of the trace), at most `most`.

    Raises
    ------
    CurveError : the trace has no metric with a name.
    """
    names = dict.fromkeys(n for one in requested for n in (_metric_names(store) if one == "ALL" else [one]))
    metrics = []
    for name in [*names][:most]:
        curve = build_curve(store, use, f"metric:{name}", progress)
        rate = _is_rate("metric", about_metric(store, name))
        metrics.append(Measured(name, curve.quantity, rate, envelope(curve)))
    return tuple(metrics)


def metrics_in(
    store: TraceStore,
    use: Utilization,
    requested: Sequence[str],
    ranges: Sequence[tuple[float, float]],
    progress: Progress | None = None,
) -> list[list[JSON]]:
    """For each range (seconds) the `requested` metrics: ``name``, ``mean`` over time, its ``unit``,
    and ``total``: for a rate what was counted in the range, else None. Raises as `measured`.
    """
    metrics = measured(store, use, requested, progress)
    return [
        [
            {"name": one.name, "mean": one.mean(a, b), "unit": one.quantity.unit, "total": one.total(a, b)}
            for one in metrics
        ]
        for a, b in ranges
    ]


# ------------------------------------------------------------------ the table


def _named(name: str) -> Callable[[TraceStore, str, str], CurveQuantity]:
    """Processors in something; "{}": its WHAT."""
    return lambda _, __, text: replace(PROCESSORS, name=name.format(text))


def _flying(name: str, unit: str, short: str, physical: bool) -> Callable[..., CurveQuantity]:
    return lambda *_: CurveQuantity(name, name, unit, short, counted=False, physical=physical)


def _of_activity(title: str, activity: Activity, name: str, needs: str) -> CurveKind:
    return CurveKind(title, _has(activity), _activity(activity), _named(name), needs)


def _of_metric(kind: str, more: str) -> CurveKind:
    return CurveKind(f"Metric {{}}{more}", _metric_names, _metric(kind), _metric_quantity, _METRICS)


_METRICS = "metrics are recorded where the tracer is told to, as by Score-P with SCOREP_METRIC_PAPI"
_STREAMS = "no stream of an accelerator is recorded"
KINDS: dict[str, CurveKind] = {
    "computing": CurveKind(
        "Processors computing", lambda _: [""], lambda one, *_: one.use.curve(), lambda *_: PROCESSORS,
        "every trace has it",
    ),
    "overhead": _of_activity(
        "Processors in overhead", Activity.OVERHEAD, "Overhead",
        "no processor moves data or starts operations",
    ),
    "idle": _of_activity("Processors idle", Activity.IDLE, "Idle", "nobody waits"),
    "io": _of_activity("Processors in I/O", Activity.IO, "I/O", "no region reads or writes files"),
    "communication": CurveKind(
        "Processors in communication",
        lambda store: [""] if _communicating(store)[occurring(store, "calls", "region")].any() else [],
        lambda request, _, q: _within(request, _communicating(request.store), request.locations("cpu"), q),
        _named("Communication"), "no call of a message-passing library is recorded",
    ),
    "accelerators": CurveKind(
        "Accelerator streams busy", lambda store: [""] if _each_stream(store) else [], _streams,
        lambda *_: STREAMS, _STREAMS,
    ),
    "stream": CurveKind(
        "Stream {} busy", _each_stream, _streams, lambda _, __, name: replace(STREAMS, name=name), _STREAMS
    ),
    "region": CurveKind(
        "Processors in {}",
        lambda store: sorted({store.regions[i].name for i in occurring(store, "calls", "region")}),
        lambda request, name, q: _within(request, *_region(request.store, name), q),
        _named("In {}"), "no region is entered",
    ),
    "communicator": CurveKind(
        "Processors in calls of communicator {}", _communicators, _communicator, _named("In communicator {}"),
        "no collective operation is recorded",
    ),
    "messages": CurveKind(
        "Messages in flight", _message_names, _in_flight(False),
        _flying("Messages in flight", "messages", "msg", False), "no message is recorded",
    ),
    "bytes": CurveKind(
        "Bytes in flight", _message_names, _in_flight(True), _flying("Bytes in flight", "B", "B", True),
        "no message is recorded",
    ),
    "metric": _of_metric("metric", ""),
    "metric-sum": _of_metric("metric-sum", ", sum over locations"),
    "metric-mean": _of_metric("metric-mean", ", mean over locations"),
    "metric-rate": _of_metric("metric-rate", ", change per second"),
}  # fmt: skip
