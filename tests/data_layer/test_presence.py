"""When processors are inside regions: against a count of every moment; kept on import and made afterwards."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.core.phase_names import phase_names
from desktop.core.presence import STRETCHES, Presence
from desktop.core.selection import search
from desktop.data import presence
from desktop.data.curves import build_curve
from desktop.data.opening import open_trace
from desktop.data.presence import structure
from desktop.data.store import open_store
from desktop.data.utilization import build
from tests.programs.catalogue import bodies, lu
from tests.programs.simulated import simulate, write


@st.composite
def events(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    """Nested and repeated regions of one location: time, enter or leave, region."""
    time, found, open_ = 0, [], []
    for _ in range(draw(st.integers(0, 200))):
        time += draw(st.integers(0, 50))
        if open_ and draw(st.booleans()):
            found.append((time, 1, open_.pop()))
        else:
            region = draw(st.integers(0, 20))
            open_.append(region)
            found.append((time, 0, region))
    return found


@settings(max_examples=25, deadline=None)
@given(events(), st.integers(1, 50))
def test_stretches_hold_all_that_happens(rows: list[tuple[int, int, int]], step: int) -> None:
    time, kind, what = (np.array(x) for x in zip(*rows, strict=True)) if rows else (np.zeros(0, int),) * 3
    last = int(time[-1]) if rows else 0
    made = Presence()
    for _ in range(2):  # the second location finds nothing of the first one
        for a in range(0, len(rows), step):
            part = slice(a, a + step)
            made.feed(
                time[part].astype(np.int64), kind[part].astype(np.uint8), what[part].astype(np.uint32), 21
            )
        begin, end, region, calls, inside = made.take(last)
        for r in range(21):
            depth, since, ticks, entered = 0, 0, 0, 0
            for t, k, w in rows:
                if w == r and k == 0:
                    if depth == 0:
                        since, entered = t, entered + 1
                    depth += 1
                elif w == r:
                    depth -= 1
                    ticks += (t - since) * (depth == 0)
            ticks += (last - since) * (depth > 0)
            own = region == r
            assert own.sum() <= STRETCHES
            assert calls[own].sum() == entered and inside[own].sum() == ticks
            assert (inside[own] <= end[own] - begin[own]).all()
            assert (begin[own][1:] > end[own][:-1]).all() or own.sum() < 2 or (np.diff(begin[own]) >= 0).all()


def test_kept_on_import_as_made_afterwards(tmp_path: Path, monkeypatch) -> None:
    run = simulate(lu, 8, 0.1, 1, "lu")
    with open_store(write(run, tmp_path / "lu.h5")) as store:
        use = build(store)
        kept = structure(store, use)
        monkeypatch.setattr(store, "has", lambda table: table in ("events", "messages"))
        again = structure(store, use)
    order = [np.lexsort((x.begin, x.where, x.what)) for x in (kept.stretches, again.stretches)]
    for name in ("begin", "end", "what", "where", "calls", "inside"):
        a, b = (getattr(x.stretches, name)[o] for x, o in zip((kept, again), order, strict=True))
        assert np.array_equal(a, b), name
    assert kept.stretches.begin.size > 100


def test_of_many_locations_some_are_looked_at(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(presence, "LOOKED_AT", 4)
    run = simulate(lu, 16, 0.1, 1, "lu")
    with open_store(write(run, tmp_path / "lu.h5")) as store:
        found = structure(store, build(store)).stretches
    assert found.processors == 4 and np.unique(found.where).tolist() == [0, 4, 8, 12]


def test_phases_are_named_by_what_is_typical(tmp_path: Path) -> None:
    run = simulate(lu, 16, 0.05, 1, "lu")
    with open_store(write(run, tmp_path / "lu.h5")) as store:
        curve = build(store).curve()
        made = structure(store, build(store)).doings(curve)
    breaks = [curve.start, *(t for _, t in run.truth), curve.start + curve.duration]
    names = phase_names(made, breaks)
    assert [name.partition(":")[0] for name in names] == ["generate", "factor", "forward", "backward"]
    # What is spent in a call, counted from the events.
    t0, t1 = breaks[2] + run.start, breaks[3] + run.start
    spent = 0.0
    for rows in run.events:
        begun = 0.0
        for t, k, name in rows:
            if name == "MPI_Bcast":
                spent += (min(t, t1) - max(begun, t0)) * (k == 1 and t > t0 and begun < t1)
                begun = t
    share = 100 * spent / (t1 - t0) / run.ranks
    assert abs(share - float(names[2].split()[-2])) < 1.5
    assert phase_names(made, breaks, [(breaks[1] + 0.01, "mine")], {"forward": "Lz"})[1:3] == (
        "mine",
        names[2].replace("forward", "Lz"),
    )
    assert phase_names(None, [0.0, 1.0, 2.0]) == ("", "")


def test_iterations_are_counted_in_names(tmp_path: Path) -> None:
    run = simulate(bodies, 4, 0.05, 1, "bodies")
    with open_store(write(run, tmp_path / "bodies.h5")) as store:
        curve = build(store).curve()
        made = structure(store, build(store)).doings(curve)
    breaks = [curve.start, *(t for _, t in run.truth), curve.start + curve.duration]
    assert phase_names(made, breaks)[1].startswith("force ×40")


OTF2 = Path("tests/data/otf2")


def test_the_life_of_a_process_is_no_name_of_a_phase() -> None:
    """EZTrace calls it "Working"; the ten parallel regions inside of it are the program's."""
    with open_trace(OTF2 / "ezt_openmp_4.tar.gz") as store:
        use = build(store)
        curve = use.curve()
        made = structure(store, use)
        begins = 6.7e-3
        ends = [curve.start, curve.start + begins, curve.start + curve.duration]
        assert any(region.name == presence.LIFE for region in store.regions)
        assert phase_names(made.doings(curve), ends) == ("computing 25 %", "OpenMP Parallel ×10")


def test_where_iterations_stand_still_all_curves_of_a_run_have_the_same_phases() -> None:
    """Two calls last, from 39 to 44 and from 58 to 91 % of the run."""
    with open_trace(OTF2 / "mpt_jacobi2d_9_dilated.tar.gz") as store:
        use = build(store)
        made = structure(store, use)
        for kind in ("computing", "idle", "messages", "bytes"):
            curve = build_curve(store, use, kind)
            _, suggested = search(curve, "mixed", landmarks=made.landmarks(curve))
            assert suggested.breakpoints is not None
            parts = [100 * (one.time_s - curve.start) / curve.duration for one in suggested.breakpoints]
            assert np.allclose(parts, [38.7, 44.1, 57.7, 91.3], atol=0.1), kind
