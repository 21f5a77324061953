"""The replay of a run on a machine: against a simulator of events, its properties, its definitions."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.core import machine
from desktop.core.machine import (
    ALL_TO_ONE,
    BLOCKING,
    COMPLETE,
    DEFERRED,
    EAGER,
    N_TO_N,
    ONE_TO_ALL,
    POST,
    PREFIX,
    RECEIVE,
    SEND,
    STUCK,
    Machine,
    Network,
    Replay,
    Schedule,
    replay,
)
from desktop.progress import Cancelled, Progress
from tests.oracles.event_queue import Step, run

_KINDS = {
    "send": SEND, "isend": SEND, "receive": RECEIVE, "post": POST, "wait": COMPLETE,
    "all": N_TO_N, "from_root": ONE_TO_ALL, "to_root": ALL_TO_ONE, "scan": PREFIX,
}  # fmt: skip


@dataclass(frozen=True)
class Program:
    """Steps of each location, sizes of messages with their senders and receivers, roots of collectives."""

    steps: tuple[tuple[Step, ...], ...]
    sizes: tuple[int, ...]
    receiver: tuple[int, ...]
    root: tuple[int, ...]

    def on(self, latency: float, per_byte: float, eager: float, buses: int, cost: float = 0.0) -> Replay:
        every = [step for steps in self.steps for step in steps]
        ends = np.cumsum([0, *map(len, self.steps)])
        manner = np.full(len(self.sizes), EAGER, np.uint8)
        for step in every:
            if step.what in ("send", "isend") and self.sizes[step.to] > eager:
                manner[step.to] = BLOCKING if step.what == "send" else DEFERRED
        operations = Schedule(
            ends[:-1].astype(np.int64),
            ends[1:].astype(np.int64),
            np.array([_KINDS[step.what] for step in every], np.uint8),
            np.array([step.to for step in every], np.int32),
            np.array([step.gap for step in every], float),
            np.array([step.extra for step in every], float),
            np.zeros(len(every), np.bool_),
            np.zeros(len(self.steps)),
            np.zeros(len(self.steps)),
        )
        network = Network(
            np.array(self.receiver, np.int32),
            np.array(self.sizes, float) * per_byte,
            manner,
            np.array(self.root, np.int64),
            np.full(len(self.root), float(cost)),
            float(latency),
            buses,
        )
        return replay(operations, network)

    def slowly(self, latency: float, per_byte: float, eager: float, buses: int, cost: float = 0.0) -> Any:
        return run(
            [list(steps) for steps in self.steps],
            list(self.sizes),
            list(self.root),
            latency,
            per_byte,
            eager,
            buses,
            cost=[cost] * len(self.root),
        )


@st.composite
def programs(draw: st.DrawFn, *, most: int = 25) -> Program:
    """Random programs that could have been recorded: an order of events, cut into locations."""
    count = draw(st.integers(1, 5))
    steps: list[list[Step]] = [[] for _ in range(count)]
    sizes: list[int] = []
    receiver: list[int] = []
    root: list[int] = []
    under_way: list[int] = []
    unfinished: list[tuple[int, int]] = []
    # Whole numbers of different sizes, so that sums are exact and times differ.
    gaps = st.integers(0, 1000).map(float)
    for _ in range(draw(st.integers(0, most))):
        what = draw(st.sampled_from(("message", "message", "receive", "wait", "together")))
        if what == "message":
            a, b = draw(st.integers(0, count - 1)), draw(st.integers(0, count - 1))
            sizes.append(draw(st.integers(0, 3000)))
            receiver.append(b)
            number = len(sizes) - 1
            if draw(st.booleans()):
                steps[b].append(Step("post", number, draw(gaps)))
            later = draw(st.booleans()) or a == b
            steps[a].append(Step("isend" if later else "send", number, draw(gaps)))
            if later and draw(st.booleans()):
                unfinished.append((a, number))
            under_way.append(number)
        elif what == "receive" and under_way:
            number = under_way.pop(draw(st.integers(0, len(under_way) - 1)))
            steps[receiver[number]].append(Step("receive", number, draw(gaps), draw(gaps)))
        elif what == "wait" and unfinished:
            a, number = unfinished.pop()
            steps[a].append(Step("wait", number, draw(gaps)))
        elif what == "together":
            kind = draw(st.sampled_from(("all", "from_root", "to_root", "scan")))
            members = draw(st.lists(st.integers(0, count - 1), min_size=1, unique=True))
            root.append(draw(st.sampled_from([*members, -1])) if kind != "all" else -1)
            for p in members:
                steps[p].append(Step(kind, len(root) - 1, draw(gaps), draw(gaps)))
    for number in under_way:
        steps[receiver[number]].append(Step("receive", number, draw(gaps)))
    return Program(tuple(map(tuple, steps)), tuple(sizes), tuple(receiver), tuple(root))


@settings(max_examples=40, deadline=None)
@given(programs(), st.integers(0, 40), st.integers(0, 4), st.sampled_from([math.inf, 0, 100, 1000]),
       st.integers(0, 3), st.integers(0, 30))  # fmt: skip
def test_as_a_simulator_of_events_has_it(
    program: Program, latency: int, per_byte: int, eager: float, buses: int, cost: int
) -> None:
    want = program.slowly(latency, per_byte, eager, buses, cost)
    found = program.on(latency, per_byte, eager, buses, cost)
    if want is None:
        assert found.duration == STUCK
    else:
        np.testing.assert_array_equal(found.ends, want)
        assert found.duration == max(want)
        first = np.cumsum([0, *map(len, program.steps)])[:-1]
        came = np.array([step.gap for steps in program.steps for step in steps])
        before = np.append(0.0, found.went)[:-1]
        before[first[first < before.size]] = 0.0
        assert (found.went >= before + came).all()


@settings(max_examples=40, deadline=None)
@given(programs(), st.floats(0, 50), st.floats(0, 3), st.floats(0, 20), st.floats(0, 2),
       st.sampled_from([math.inf, 500]))  # fmt: skip
def test_more_latency_or_less_bandwidth_never_helps(
    program: Program, latency: float, per_byte: float, more: float, slower: float, eager: float
) -> None:
    fast = program.on(latency, per_byte, eager, 0)
    slow = program.on(latency + more, per_byte + slower, eager, 0)
    assert (fast.duration == STUCK) == (slow.duration == STUCK)
    if fast.duration != STUCK:
        assert (slow.ends >= fast.ends).all() and (slow.went >= fast.went).all()


@settings(max_examples=30, deadline=None)
@given(programs(), st.integers(0, 20), st.integers(0, 3))
def test_without_a_limit_buses_are_many(program: Program, latency: int, per_byte: int) -> None:
    free = program.on(latency, per_byte, math.inf, 0)
    many = program.on(latency, per_byte, math.inf, len(program.sizes) + 1)
    np.testing.assert_array_equal(free.ends, many.ends)
    assert program.on(latency, per_byte, math.inf, 1).duration >= free.duration


def _pair(kind: str = "send", size: int = 1000, late: float = 0.0) -> Program:
    """0 sends to 1 after 10, 1 receives after 5 + late."""
    first = (Step(kind, 0, 10.0), *([Step("wait", 0, 0.0)] if kind == "isend" else []))
    return Program((first, (Step("receive", 0, 5.0 + late),)), (size,), (1,), ())


def test_latency_is_time_of_sender_and_receiver_and_bytes_take_theirs() -> None:
    found = _pair().on(2.0, 0.01, math.inf, 0)
    assert found.ends.tolist() == [12.0, 22.0]  # sent at 12, under way for 10
    late = _pair(late=100.0).on(2.0, 0.01, math.inf, 0)
    assert late.ends.tolist() == [12.0, 107.0]  # it is there; to receive takes a latency


@pytest.mark.parametrize("kind", ["send", "isend"])
def test_above_the_eager_limit_the_receiver_must_have_come(kind: str) -> None:
    found = _pair(kind, late=100.0).on(2.0, 0.01, 999, 0)
    assert found.ends.tolist() == [117.0, 117.0]  # posted at 107, under way for 10
    assert _pair(kind, late=100.0).on(2.0, 0.01, 1000, 0).ends.tolist() == [12.0, 107.0]


def test_messages_take_turns_on_a_bus() -> None:
    steps = (
        (Step("isend", 0, 0.0),),
        (Step("isend", 1, 1.0),),
        (Step("receive", 0, 0.0), Step("receive", 1, 0.0)),
    )
    program = Program(steps, (10, 10), (2, 2), ())
    assert program.on(0.0, 1.0, math.inf, 0).ends[2] == 11.0
    assert program.on(0.0, 1.0, math.inf, 1).ends[2] == 20.0


def test_two_that_both_send_first_come_to_a_halt_only_above_the_limit() -> None:
    steps = tuple((Step("send", k, 1.0), Step("receive", 1 - k, 1.0)) for k in (0, 1))
    program = Program(steps, (100, 100), (1, 0), ())
    assert program.on(0.0, 0.0, 100, 0).duration == 2.0
    assert program.on(0.0, 0.0, 99, 0).duration == STUCK


def test_what_is_free_waits_for_nobody_but_others_for_it() -> None:
    program = Program(((Step("all", 0, 10.0),), (Step("all", 0, 50.0),)), (), (), (-1,))
    assert program.on(0, 0, math.inf, 0).ends.tolist() == [50.0, 50.0]
    operations = Schedule(
        np.array([0, 1]), np.array([1, 2]), np.full(2, N_TO_N, np.uint8), np.zeros(2, np.int32),
        np.array([10.0, 50.0]), np.zeros(2), np.array([True, False]), np.zeros(2), np.zeros(2),
    )  # fmt: skip
    none = np.zeros(0)
    network = Network(none.astype(np.int32), none, none.astype(np.uint8), np.array([-1]), np.zeros(1))
    assert replay(operations, network).ends.tolist() == [10.0, 50.0]


def test_long_replays_tell_how_far_they_are_and_can_be_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "STRIDE", 10)
    told: list[tuple[float, float]] = []

    class Told(Progress):
        def show(self, done: float, total: float, text: str) -> None:
            told.append((done, total))

    ends = np.cumsum([0, 50, 50, 50])
    operations = Schedule(
        ends[:-1], ends[1:], np.full(150, N_TO_N, np.uint8), np.tile(np.arange(50, dtype=np.int32), 3),
        np.ones(150), np.zeros(150),
        np.zeros(150, bool), np.zeros(3), np.zeros(3),
    )  # fmt: skip
    none = np.zeros(0)
    network = Network(none.astype(np.int32), none, none.astype(np.uint8), np.full(50, -1), np.zeros(50))
    for buses in (0, 2):
        told.clear()
        assert replay(operations, network._replace(buses=buses), Told()).duration == 50.0
        assert told[0] == (10, 150) and told == sorted(told) and len(told) >= 14
        stopped = Progress()
        stopped.cancel()
        with pytest.raises(Cancelled):
            replay(operations, network._replace(buses=buses), stopped)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"latency_s": -1.0}, "latency"),
        ({"latency_s": math.inf}, "latency"),
        ({"bandwidth": 0.0}, "bandwidth"),
        ({"bandwidth": math.nan}, "bandwidth"),
        ({"eager": -1.0}, "eager"),
        ({"buses": -1}, "buses"),
    ],
)
def test_impossible_networks_are_refused(changed: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        replace(Machine(), **changed)
