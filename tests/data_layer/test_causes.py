"""Delay costs, critical path and slack, on programs in whole ticks whose truth is known by definition."""

from __future__ import annotations

import itertools
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.core.critical_path import PathLine
from desktop.data import causality
from desktop.data.causality import Causality
from desktop.data.causes import Causes
from desktop.data.statistics import Statistics
from desktop.data.store import open_store
from desktop.data.utilization import Rules
from desktop.progress import Cancelled, Progress
from tests.programs import exact
from tests.programs.exact import Made, Steps


@contextmanager
def found(made: Made) -> Iterator[Causes]:
    with (
        tempfile.TemporaryDirectory() as folder,
        open_store(exact.write(made, Path(folder) / "made.h5")) as store,
    ):
        yield Causes(store, Causality(store, Rules(), Progress()), Progress())


@pytest.mark.parametrize("part", ["corrected", "in_places"])
def test_who_waits_for_whom_is_given_up_between_its_parts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, part: str
) -> None:
    """A window that closes does not wait until all messages of a large trace are matched."""
    progress, whole = Progress(), getattr(causality, part)

    def last(*given: object) -> object:
        progress.cancel()
        return whole(*given)

    monkeypatch.setattr(causality, part, last)
    monkeypatch.setattr(causality, "Operations", lambda *_: pytest.fail("it went on"))
    made = exact.run([[("work", "a", 3), ("send", 1, 0)], [("recv", 0, 0)]], [0, 0])
    with open_store(exact.write(made, tmp_path / "made.h5")) as store, pytest.raises(Cancelled):
        Causality(store, Rules(), progress)


@st.composite
def programs(draw: st.DrawFn, costs: bool = True, ssend: bool = True) -> Made:
    """A program that comes to its end: what ranks do together is drawn in one order."""
    ranks = draw(st.integers(2, 5))
    steps: list[Steps] = [[] for _ in range(ranks)]
    several = st.sets(st.integers(0, ranks - 1), min_size=2).map(lambda s: tuple(sorted(s)))
    numbers: dict[tuple[int, ...], int] = {}
    two = st.permutations(range(ranks)).map(lambda p: p[:2])
    for tag in range(draw(st.integers(1, 14))):
        for rank in range(ranks):
            for _ in range(draw(st.integers(0 if costs else 1, 2))):
                steps[rank].append(("work", draw(st.sampled_from("abc")), draw(st.integers(1, 30))))
        kinds = (
            "message",
            "message",
            "ring",
            "all",
            "all",
            "ssend",
        )  # a late receiver is known by what it costs
        what = draw(st.sampled_from(kinds if costs and ssend else kinds[:5]))
        if what in ("message", "ssend"):
            a, b = draw(two)
            steps[a].append(("send" if what == "message" else "ssend", b, tag))
            steps[b].append(("recv", a, tag))
        elif what == "ring":
            for rank in range(ranks):
                steps[rank].append(("exchange", (rank + 1) % ranks, (rank - 1) % ranks, tag))
        else:
            members = draw(several)
            operation = draw(st.sampled_from(("Barrier", "Allreduce", "Bcast", "Reduce", "Scan")))
            rooted = operation in ("Bcast", "Reduce")
            root = draw(st.sampled_from(members)) if rooted else -1
            number = numbers.setdefault(members, len(numbers) + 1)
            for rank in members:
                steps[rank].append(("all", operation, root, members, number))
    for rank in range(ranks):
        steps[rank].append(("work", "a", draw(st.integers(1, 30))))
    starts = [draw(st.integers(0, 20)) for _ in range(ranks)]
    if costs:
        return exact.run(steps, starts, overhead=draw(st.integers(2, 4)), cost=draw(st.integers(1, 4)))
    return exact.run(steps, [0] * ranks, overhead=0, cost=0)


# ---------------------------------------------------------------- delay costs


def by_definition(made: Made, causes: Causes) -> tuple[dict[tuple[int, str], list[float]], list[float]]:
    """Costs (rank, region) -> short, long, and the direct part of each wait, tick by tick."""
    waits = [tuple(int(x) for x in row) for row in zip(*causes.waits, strict=True)]
    start, end = min(rows[0][0] for rows in made.events), max(made.ends)
    doing: list[list[str | int]] = []  # of each rank in each tick: a region, or the wait that it is in
    for r, rows in enumerate(made.events):
        line: list[str | int] = ["(not begun)"] * (end - start)
        open_: list[str] = []
        for (time, leaves, region), (until, _, _) in zip(
            rows, [*rows[1:], (made.ends[r], 0, "")], strict=True
        ):
            if leaves:
                open_.remove(region)
            else:
                open_.append(region)
            for tick in range(time - start, until - start):
                line[tick] = open_[-1]
        for j, (who, _, a, b, _, _) in enumerate(waits):
            if who == r:
                line[a - start : b - start] = [j] * (b - a)
        doing.append(line)

    def spent(rank: int, a: int, b: int) -> dict[str | int, int]:
        found: dict[str | int, int] = defaultdict(int)
        for tick in range(a - start, b - start):
            found[doing[rank][tick]] += 1
        return found

    calls: list[list[tuple[int, int]]] = [
        [(a, b) for (a, k, name), (b, _, _) in itertools.pairwise(rows) if name[:4] == "MPI_" and not k]
        for rows in made.events
    ]
    together: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
    for r, table in enumerate(made.collectives):
        often: dict[int, int] = defaultdict(int)
        for begin, _, operation, number, _ in table:
            if operation in exact.N_TO_N:
                together[number, often[number]][r] = begin
            often[number] += 1

    def left(rank: int, time: int) -> int:
        """When a rank leaves the call that it is in."""
        return max((b for a, b in calls[rank] if a <= time), default=time)

    def since(who: int, whom: int, before: int) -> int:
        best = (start, start)
        for a, b, _, until, leave, other in waits:
            if {a, b} == {who, whom} and until <= before and until > best[0]:
                best = until, min(leave, other)
        for members in together.values():
            met = max(members.values())
            if who in members and whom in members and met < before and met > best[0]:
                best = met, min(left(who, members[who]), left(whom, members[whom]))
        return min(best[1], before)

    costs: dict[tuple[int, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
    behind = [0.0] * len(waits)
    direct = [0.0] * len(waits)
    for j in sorted(range(len(waits)), key=lambda j: (-waits[j][3], _depth(j, waits))):
        who, whom, begin, until, _, _ = waits[j]
        lasting = until - begin
        a = since(who, whom, begin)
        his, own = spent(whom, a, until), spent(who, a, begin)
        over = {k: n for k, n in his.items() if isinstance(k, int) and waits[k][3] <= until}
        passed = sum(over.values())
        excess = max(0, passed - sum(n for k, n in own.items() if isinstance(k, int)))
        at_work: dict[str, int] = defaultdict(int)
        for k, n in his.items():
            if k not in over:
                at_work[k if isinstance(k, str) else _region_of(made, whom, waits[k][2])] += n
        delays = {region: max(0, n - own.get(region, 0)) for region, n in at_work.items()}
        total = sum(delays.values()) + excess
        assert total > 0
        for region, n in delays.items():
            costs[whom, region][0] += lasting * n / total
            costs[whom, region][1] += behind[j] * n / total
        for k, n in over.items():
            behind[k] += (lasting + behind[j]) * excess / total * n / passed
        direct[j] = lasting * sum(delays.values()) / total
    return costs, direct


def _depth(j: int, waits: list[tuple[int, ...]]) -> int:
    """How many waits that end in the same tick come behind this one, one behind the other."""
    depth = 0
    now = [j]
    while now := [
        k for k, one in enumerate(waits) if any(one[3] == waits[i][3] and one[1] == waits[i][0] for i in now)
    ]:
        depth += 1
    return depth


def _region_of(made: Made, rank: int, time: int) -> str:
    return [name for when, leaves, name in made.events[rank] if when <= time and not leaves][-1]


@settings(max_examples=12, deadline=None)
@given(programs())
def test_costs_are_those_of_the_definition_and_add_up_to_all_waiting(made: Made) -> None:
    with found(made) as causes:
        waits = sorted((r, a, b) for r, _, a, b, _, _ in np.transpose(causes.waits).tolist())
        assert waits == sorted(wait[:3] for wait in made.waits)
        costs, direct = by_definition(made, causes)
        whole = causes.between(causes.start, max(made.ends))
        waited = sum(b - a for _, a, b in waits)
        assert causes.costs.unexplained == 0
        assert whole.costs_s.sum() * 1e9 == pytest.approx(waited, rel=1e-12)
        assert whole.waits_s.sum() * 1e9 == pytest.approx(waited, rel=1e-12)
        assert whole.region_costs_s.sum() * 1e9 == pytest.approx(waited, rel=1e-12)
        assert causes.costs.direct == pytest.approx(direct, rel=1e-9, abs=1e-9)
        told = {(d.location, d.name): (d.short_s * 1e9, d.long_s * 1e9) for d in whole.delays}
        for key, one in costs.items():
            assert told.get(key, (0, 0)) == pytest.approx(one, rel=1e-9, abs=1e-6)
        # What parts of the run cost adds up to what the run costs.
        middle = max(made.ends) // 2
        parts = [causes.between(*ends) for ends in ((causes.start, middle), (middle, max(made.ends)))]
        assert sum(part.costs_s for part in parts) == pytest.approx(whole.costs_s, rel=1e-9, abs=1e-15)
        assert sum(part.path_s for part in parts) == pytest.approx(whole.path_s, rel=1e-9, abs=1e-15)


# ---------------------------------------------------------------- the critical path


@settings(max_examples=12, deadline=None)
@given(programs())
def test_the_critical_path_is_a_longest_one(made: Made) -> None:
    longest, head, tail = made.longest()
    assert longest == max(made.ends)
    with found(made) as causes:
        path = list(zip(*(column.tolist() for column in causes.path), strict=True))
    assert path[-1][2] == longest and path[-1][0] in [r for r, end in enumerate(made.ends) if end == longest]
    for (_, _, before), (_, begin, _) in itertools.pairwise(path):
        assert before == begin
    assert all(a <= b for _, a, b in path)
    waits = {(r, b): p for r, _, b, p in made.waits}
    on_path = 0
    for rank, begin, end in path:
        assert not any(r == rank and a < end and b > begin and a >= begin for r, a, b, _ in made.waits)
        for r, _, a, b, before, after in made.pieces:
            if r == rank and a >= begin and b <= end:
                assert head[before] + (b - a) + tail[after] == longest
                on_path += b - a
    assert path[0][1] == min(rows[0][0] for rows in made.events)
    for (rank, _, end), (other, begin, _) in itertools.pairwise(path):
        assert (other, begin) in waits and rank != other and end == begin


@settings(max_examples=8, deadline=None)
@given(programs(costs=False))
def test_without_network_it_is_as_long_as_the_critical_path_of_computing(made: Made) -> None:
    """OTF-CPT (Protze and others, Euro-Par 2022): each rank counts what it has computed; a message and a
    collective operation carry the count, and the largest one goes on."""
    with found(made) as causes:
        computing = computed_on_the_longest_way(made)
        (run,) = Statistics(causes.store).ranges([(0.0, max(made.ends) * 1e-9)], replay=True)
        assert run.replayed is not None and run.replayed.ideal_s == pytest.approx(computing * 1e-9)
        whole = causes.between(0, max(made.ends))
        assert computing == max(made.ends)
        assert whole.path_s.sum() * 1e9 == pytest.approx(computing)
        mine = [causes.name(r) in "abc" for r in range(whole.region_path_s.size)]
        assert whole.region_path_s[mine].sum() * 1e9 == pytest.approx(computing)


def computed_on_the_longest_way(made: Made) -> int:
    """The definition of OTF-CPT on the graph of the program: only computing lasts."""
    work = {(before, after): b - a for _, _, a, b, before, after in made.pieces}
    only = Made(made.ranks, [], [], [], edges=[(a, b, work.get((a, b), 0)) for a, b, _ in made.edges])
    only.times = made.times
    return only.longest()[0]


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_a_line_from_afar_covers_the_rows_of_the_path(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 60))
    steps = data.draw(st.lists(st.integers(0, 9), min_size=n, max_size=n))
    edges = np.concatenate([[0], np.cumsum(steps)]).astype(float)
    location = np.array(data.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)))
    line = PathLine(location, edges[:-1], edges[1:])
    a = data.draw(st.floats(0, max(1.0, edges[-1] / 2)))
    b = a + data.draw(st.floats(1, 100))
    row, columns = np.arange(5) + 0.5, data.draw(st.integers(1, 40))
    lines, afar = line.lines(row, a, b, columns)
    seen = [k for k in range(n) if edges[k + 1] > a and edges[k] < b]
    assert afar == (len(seen) > 2 * columns)
    assert (lines[:, [0, 2]] >= a).all() and (lines[:, [0, 2]] <= b).all()
    if seen:
        assert {*lines[:, 1], *lines[:, 3]} <= set(row[location[seen]])
        assert lines[:, [1, 3]].min() == row[location[seen]].min()
        assert lines[:, [1, 3]].max() == row[location[seen]].max()
    if not afar:  # all of it, exactly
        lasting = sum(min(edges[k + 1], b) - max(edges[k], a) for k in seen)
        assert (lines[:, 2] - lines[:, 0]).sum() == pytest.approx(lasting)


def test_a_delay_costs_as_often_as_it_is_waited_for() -> None:
    """Three hops: rank 0 is 5000 ticks late once; each of the others waits for that."""
    steps: list[Steps] = [[] for _ in range(4)]
    for r in range(4):
        for k in range(4):
            steps[r].append(("all", "Barrier", -1, (0, 1, 2, 3), 1))
            if r:
                steps[r].append(("recv", r - 1, k))
            steps[r].append(
                ("work", "late" if r == 0 and k == 2 else "usual", 5000 if r == 0 and k == 2 else 10)
            )
            if r < 3:
                steps[r].append(("send", r + 1, k))
    with found(exact.run(steps, [0] * 4)) as causes:
        whole = causes.between(0, 10**6)
    first = whole.delays[0]
    assert (first.location, first.name) == (0, "late")
    assert first.short_s * 1e9 == pytest.approx(5000, rel=0.01)
    assert first.long_s * 1e9 == pytest.approx(10000, rel=0.01)
    assert np.argmax(whole.path_s) == 0


# ---------------------------------------------------------------- slack


@settings(max_examples=12, deadline=None)
@given(programs(ssend=False))  # a send that did not wait is taken to need no receive
def test_slack_is_the_float_of_the_graph(made: Made) -> None:
    longest, head, tail = made.longest()
    with found(made) as causes:
        slack = causes.slack
    assert slack.stuck == 0
    for rank, _, begin, end, before, after in made.pieces:
        a, b = slack.first[rank : rank + 2]
        stretch = a + np.searchsorted(slack.end[a:b], end)  # the one that this piece is in
        assert slack.ticks[stretch] == longest - (head[before] + (end - begin) + tail[after])


def test_slack_of_who_was_waited_for_in_a_send() -> None:
    """Rank 1 receives late: what it does before has no slack, and rank 0 may come later by its waiting."""
    steps: list[Steps] = [
        [("work", "a", 10), ("ssend", 1, 0), ("work", "b", 50)],
        [("work", "c", 40), ("recv", 0, 0), ("work", "d", 20)],
    ]
    made = exact.run(steps, [0, 0])
    with found(made) as causes:
        slack = causes.slack
    told = [slack.ticks[a:b].tolist() for a, b in itertools.pairwise(slack.first)]
    assert (told[0][0], told[0][-1]) == (30, 0) and (told[1][0], told[1][-1]) == (0, 30)
