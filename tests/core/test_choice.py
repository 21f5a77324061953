"""Breakpoints of programs whose phases are known by construction, and what the choice must not depend on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from desktop.core import choice
from desktop.core.choice import BINS, OBSERVATIONS, SWEEP, choose, not_shared
from desktop.core.curve import StepCurve
from desktop.core.landmarks import NOTHING, Landmark, Landmarks, Stretches, landmarks, with_standstills
from desktop.core.phases import AS_SUGGESTED, Sweep, fit, fit_breakpoints, sweep
from desktop.core.quantity import CurveQuantity
from desktop.core.selection import at_events, events_at, search
from tests.benchmarks.phase_choice import Case, ours, programs, recorded, score, today
from tests.programs.catalogue import HELD_BACK


@pytest.fixture(scope="module")
def held_back(tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    return list(programs(HELD_BACK, tmp_path_factory.mktemp("programs"), noise=(0.1,)))


def test_known_boundaries_are_hit(held_back: list[Case]) -> None:
    """A short version of the table in ``resources/docs/phase-choice.md``."""
    hits, false, before, of = 0, 0, 0, 0
    for one in held_back:
        found = score(ours(one), one.truth, one.curve.duration)
        hits, false, of = hits + found[0], false + found[1], of + len(one.truth)
        before += score(today(one), one.truth, one.curve.duration)[0]
    assert of > 20
    assert hits >= 0.9 * of and false <= 0.1 * (hits + false), (hits, false, of)
    assert hits >= 2 * before


def test_what_real_programs_told_of_themselves_is_hit(tmp_path: Path) -> None:
    """Recorded runs whose ranks wrote down when a phase began; only MPI calls are traced."""
    hits, false, of = 0, 0, 0
    for one in recorded(tmp_path, ("multigrid_16", "farm_8", "pipeline_8", "coupled_4")):
        found = score(ours(one), one.truth, one.curve.duration)
        hits, false, of = hits + found[0], false + found[1], of + len(one.truth)
    assert of == 12
    assert hits >= 0.9 * of and false <= 0.1 * (hits + false), (hits, false, of)


def test_how_far_one_looks_does_not_count(held_back: list[Case]) -> None:
    for one in held_back[:3]:
        known = one.known()
        said = {search(one.curve, "mixed", to=to, landmarks=known)[1] for to in (10, 15, 20, 30)}
        assert len(said) == 1


@pytest.mark.parametrize("model", ["constant", "linear", "quadratic", "mixed", "budget"])
def test_every_model_shows_the_chosen_breaks(held_back: list[Case], model: str) -> None:
    one = held_back[0]
    swept, suggestion = search(one.curve, model, landmarks=one.known())
    shown = suggestion.fit(one.curve, swept)
    assert suggestion.breakpoints is not None and shown.n == len(suggestion.breakpoints) + 1
    assert suggestion.n == shown.requested and shown.note == AS_SUGGESTED
    assert shown.breaks[1:-1].tolist() == [b.time_s for b in suggestion.breakpoints]
    assert suggestion.runner_up is not None and suggestion.runner_up[0] != suggestion.n
    assert "misfit" in suggestion.runner_up[1]


def test_sentences_have_other_names_of_regions(held_back: list[Case]) -> None:
    renamed = 0
    for one in held_back:
        known = one.known()
        _, suggestion = search(one.curve, "mixed", landmarks=known)
        events = [b.event for b in (suggestion.breakpoints or ()) + suggestion.others if b.event is not None]
        named = {event.name: f"<{event.name}>" for event in events if event.name}
        told = suggestion.called(named)
        for old, new in zip((suggestion.reason, *[(suggestion.runner_up or ("", ""))[1]]),
                            (told.reason, *[(told.runner_up or ("", ""))[1]]), strict=True):  # fmt: skip
            for event in events:
                if event.name and event.text in old:
                    renamed += 1
                    assert event.text not in new and event.text.replace(event.name, f"<{event.name}>") in new
        assert suggestion.called({}) == suggestion
    assert renamed > len(held_back)


def test_locked_breaks_are_chosen(held_back: list[Case]) -> None:
    one = held_back[0]
    locked = (0.37 * one.curve.duration,)
    _, suggestion = search(one.curve, "mixed", locked=locked, landmarks=one.known())
    assert suggestion.breakpoints is not None and locked[0] in [b.time_s for b in suggestion.breakpoints]
    close = (0.5 * one.curve.duration, 0.501 * one.curve.duration)
    found = choose(one.curve, one.swept, one.known(), close)
    assert found is None, "phases so short are not looked for"
    assert search(one.curve, "mixed", locked=close, landmarks=one.known())[1].breakpoints is None


def stretches(*rows: tuple[float, float, int, int], processors: int) -> Stretches:
    begin, end, what, where = (np.array(column) for column in zip(*rows, strict=True))
    return Stretches(
        begin.astype(float), end.astype(float), what, where, np.ones(begin.size, np.int64),
        (end - begin).astype(float), processors,
    )  # fmt: skip


def test_events_are_those_of_most_processors() -> None:
    rows = [(0.0, 100.0, 0, p) for p in range(4)]
    rows += [(30.0 + 0.1 * p, 60.0, 1, p) for p in range(4)]  # all processors
    rows += [(45.0, 50.0, 2, 0)]  # one
    known = landmarks(stretches(*rows, processors=4), 0.0, 100.0, "region {}".format)
    assert [(round(e.time_s, 2), e.happens, e.share) for e in known.events] == [
        (30.15, "begins", 1.0),
        (60.0, "ends", 1.0),
    ]
    assert known.events[0].text == "region 1 begins on 4 of 4 processors"


def test_processors_one_after_the_other_make_three_events() -> None:
    rows = [(10.0 + 5 * p, 90.0, 1, p) for p in range(5)]
    known = landmarks(stretches(*rows, processors=5), 0.0, 100.0, str)
    begins = [(e.time_s, e.happens) for e in known.events if e.time_s < 50]
    assert begins == [(10.0, "first"), (20.0, "begins"), (30.0, "last")]


def test_iterations_are_one_stretch() -> None:
    rows = [(20.0 + 3 * k, 21.0 + 3 * k, 7, p) for p in range(3) for k in range(20)]
    known = landmarks(stretches(*rows, processors=3), 0.0, 100.0, str)
    assert [e.time_s for e in known.events] == [20.0, 78.0]
    assert known.beating == ((20.0, 78.0, 20),)


def test_sizes_that_drift_are_noted_and_cost_more() -> None:
    """Where one size of messages takes over from the next, and only there."""
    rows = [(0.0, 30.0, -11, p) for p in range(4)] + [(30.1, 60.0, -10, p) for p in range(4)]
    rows += [(60.1, 80.0, -5, p) for p in range(4)]
    made = stretches(*rows, processors=4)
    known = landmarks(made, 0.0, 100.0, str, next_to=lambda a, b: abs(a - b) == 1)
    found = [(e.time_s, e.drifting) for e in known.events]
    assert found == [(30.0, True), (30.1, True), (60.0, False), (60.1, False), (80.0, False)]
    drifting, plain = known.events[1], known.events[3]
    assert not_shared(drifting) > not_shared(plain)
    assert not any(e.drifting for e in landmarks(made, 0.0, 100.0, str).events)


def test_who_has_nothing_to_do_between_two_barriers_hides_none_of_them() -> None:
    """Three of five processors leave each barrier into the next one."""
    ends = (25.0, 50.0, 75.0)
    rows = [(e - 0.2, e, 5, p) for e in ends for p in (0, 1)]
    rows += [(a, b, 5, p) for a, b in zip((0.0, *ends), (*ends, 100.0), strict=True) for p in (2, 3, 4)]
    rows += [(99.8, 100.0, 5, p) for p in (0, 1)]

    def at(waits: bool) -> set[float]:
        made = landmarks(stretches(*rows, processors=5), 0.0, 100.0, str, lambda what, when: waits)
        return {e.time_s for e in made.events if e.happens == "ends"}

    assert set(ends) <= at(True)
    assert not set(ends) & at(False)


def test_what_comes_evenly_from_end_to_end_is_one_state() -> None:
    rows = [(6.0 + 8 * k, 6.5 + 8 * k, 7, p) for p in range(3) for k in range(12)]
    throughout = landmarks(stretches(*rows, processors=3), 0.0, 100.0, str)
    assert (throughout.state == 1).all() and len(throughout.events) == 2
    later = landmarks(stretches(*rows, processors=3), -60.0, 100.0, str)
    assert later.state[0, 0] == 0 and later.state[0, -40] == 1


def test_a_call_that_lasts_in_an_iteration_is_an_event() -> None:
    """Between 30 and 50 the number of processors stays 2 of 4; else it changes ten times a second."""
    edges = np.concatenate([np.arange(0, 30, 0.1), np.arange(50, 100.05, 0.1)])
    level = np.where(np.arange(edges.size - 1) % 2, 4.0, 2.0)
    level[299] = 2.0
    iterating = Landmarks((), np.zeros((0, 100)), np.zeros(0, np.int64), ((0.0, 100.0, 500),), 0.0, 100.0)
    found = with_standstills(iterating, StepCurve(edges, level, 4.0))
    assert [e.happens for e in found.events] == ["begins", "ends"]
    assert [e.time_s for e in found.events] == pytest.approx([29.9, 50.0], abs=0.11)
    assert found.events[0].text == "2 of 4 processors compute from here on, without a change"
    assert found.state.shape == (1, 100) and found.state.sum() == pytest.approx(20.3)
    none = Landmarks((), np.zeros((0, 100)), np.zeros(0, np.int64), (), 0.0, 100.0)
    assert with_standstills(none, StepCurve(edges, level, 4.0)) is none, "not within iterations"
    level[299] = 4.0
    full = StepCurve(edges, level, 4.0)
    assert with_standstills(iterating, full) is iterating, "all compute: nobody waits in a call"
    weight = CurveQuantity("Bytes in flight", "Bytes in flight", "B", "B", counted=False, physical=True)
    flying = StepCurve(edges, 510 * level, 2040.0, quantity=weight)
    texts = [e.text for e in with_standstills(iterating, flying).events]
    assert texts == [
        f"the curve stays at 2.040 kB {until}, without a change" for until in ("from here on", "up to here")
    ]
    level[299] = 0.0
    flying = StepCurve(edges, 510 * level, 2040.0, quantity=weight)
    assert with_standstills(iterating, flying) is iterating, "nothing is in flight"


def test_a_short_wait_for_the_last_belongs_to_the_phase_that_it_ends(
    held_back: list[Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Computing that ends at 78 % of the run on the first of four processors, at 80 % on the last one."""
    blocks = next(one for one in held_back if one.name.startswith("out of core"))
    assert score(ours(blocks), blocks.truth, blocks.curve.duration) == (2, 0)
    monkeypatch.setattr(choice, "TAIL", 0.0)
    assert score(ours(blocks), blocks.truth, blocks.curve.duration)[1] > 0


def test_where_processors_come_far_apart_the_first_costs_little_more_than_the_median() -> None:
    rows = [(10.0 + 5 * p, 90.0, 1, p) for p in range(5)] + [(91.0 + 0.3 * p, 95.0, 2, p) for p in range(5)]
    made = landmarks(stretches(*rows, processors=5), 0.0, 100.0, str).events
    far = {e.happens: not_shared(e) for e in made if e.time_s < 50}
    near = {e.happens: not_shared(e) for e in made if 90.5 < e.time_s < 94}
    assert far["begins"] < far["first"] == far["last"] < near["first"]
    assert near["begins"] == far["begins"]


def test_what_the_user_marks_is_an_event() -> None:
    known = landmarks(stretches((0.0, 10.0, 0, 0), processors=1), 0.0, 10.0, str, marks=((4.0, "here"),))
    assert [(e.time_s, e.what, e.text) for e in known.events] == [(4.0, None, "marked 'here'")]


def event(t: float, share: float = 1.0) -> Landmark:
    return Landmark(t, t, t, 1, "begins", share, 4, "a begins")


def known(*events: Landmark) -> Landmarks:
    return Landmarks(events, np.zeros((0, 1024)), np.zeros(0, np.int64), (), 0.0, 10.0)


def test_of_equally_good_breaks_the_one_at_an_event_is_taken() -> None:
    """Where the last phases leave slack, a break may lie anywhere in a range; other events change nothing."""
    moved = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        level = np.concatenate([rng.integers(0, 9, 12), rng.integers(4, 6, 12)]).astype(float)
        curve = StepCurve(np.arange(25.0), level, 9.0)
        for n in (7, 8, 9, 10, 11):
            one = fit(curve, n, "constant")
            i = int(np.argmax(one.breakpoint_high - one.breakpoint_low))
            low, high = one.breakpoint_low[i], one.breakpoint_high[i]
            if high - low < 0.05:
                continue
            place = low + 0.3 * (high - low)
            found = at_events(curve, one, known(event(place)))
            if found is one:  # the others would have to move with it
                continue
            moved += 1
            assert found.breaks[i] == place and found.epsilon == one.epsilon
            assert (found.breakpoint_low == one.breakpoint_low).all() and (
                found.breakpoint_high == one.breakpoint_high
            ).all()
            assert fit_breakpoints(curve, found.breaks, "constant").epsilon <= one.epsilon * (1 + 1e-9)
            assert events_at(found, known(event(place)))[i - 1][0].time_s == place
            assert at_events(curve, one, known(event(99.0))) is one
            assert at_events(curve, one, None) is one
            assert at_events(curve, one, known(event(place)), locked=(float(one.breaks[i]),)) is one
    assert moved > 5


def test_events_move_breaks_only_where_it_costs_nothing(held_back: list[Case]) -> None:
    moved = 0
    for one in held_back:
        events = one.known()
        for n in range(2, 13):
            best = one.swept.fit(n)
            found = at_events(one.curve, best, events)
            moved += found is not best
            assert found.epsilon == best.epsilon
            assert found.error.max() <= best.error.max() * np.sqrt(2) * (1 + 1e-9)
            inside = (found.breaks >= best.breakpoint_low - 1e-12) & (
                found.breaks <= best.breakpoint_high + 1e-12
            )
            assert inside.all()
            again = at_events(one.curve, found, events)
            assert again.breaks.tolist() == found.breaks.tolist(), "a report asks twice, a command once"
    assert moved


def test_a_curve_without_events_is_left_to_itself(tmp_path: Path) -> None:
    curve = StepCurve(np.array([0.0, 4.0, 8.0, 10.0]), np.array([4.0, 1.0, 3.0]), 4.0)
    pure = search(curve, "constant")
    helped = search(curve, "constant", landmarks=known())
    assert helped[1] == pure[1] and helped[1].breakpoints is None


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.8, 0.9])
def test_neighbours_that_resemble_each_other_are_fewer_observations(correlation: float) -> None:
    """Of an autoregression of the first order (1 + r) / (1 - r) bins are one observation; no run counts as
    more than `OBSERVATIONS`, so that white noise is 1024 / 300."""
    rng, found = np.random.default_rng(7), []
    for _ in range(60):
        noise = rng.normal(size=BINS + 200)
        for k in range(1, noise.size):
            noise[k] += correlation * noise[k - 1]
        found.append(choice._together(noise[200:]))
    true = (1 + correlation) / (1 - correlation)
    assert np.median(found) == pytest.approx(max(true, BINS / OBSERVATIONS), rel=0.2)
    assert min(found) >= BINS / OBSERVATIONS and max(found) <= BINS / 16


def test_nothing_left_is_no_noise() -> None:
    assert choice._together(np.full(BINS, 0.25)) == 1.0


def test_a_wave_longer_than_a_sixteenth_of_the_run_leaves_sixteen_observations() -> None:
    wave = np.sin(np.linspace(0, 2 * np.pi, BINS))
    assert choice._together(wave) == BINS / 16


def waves(correlation: float, jump: float) -> StepCurve:
    """Two levels of 8 processors, with noise of a standard deviation of 1.6 of them."""
    rng = np.random.default_rng(3)
    noise = rng.normal(size=BINS)
    for k in range(1, BINS):
        noise[k] = correlation * noise[k - 1] + np.sqrt(1 - correlation**2) * noise[k]
    level = 4 + 1.6 * noise + jump * (np.arange(BINS) >= BINS // 2)
    return StepCurve(np.arange(BINS + 1.0), level.clip(0, 8), 8)


def test_the_same_change_is_worth_less_in_noise_that_lasts() -> None:
    """Of equally large noise: what a breakpoint at an event is worth, and whether it is one."""
    worth = []
    for correlation in (0.0, 0.9):
        curve = waves(correlation, 1.6)
        found = choose(curve, sweep(curve, "constant", SWEEP), known(event(BINS / 2)))
        assert found is not None
        there = [one.worth for one in found.breakpoints if one.event is not None]
        worth.append(there[0] if there else 0.0)
        assert found.observations == pytest.approx(OBSERVATIONS if not correlation else BINS / 19, rel=0.6)
    assert worth[0] > 15 and worth[1] == 0.0


def test_a_break_that_survives_over_n_costs_less() -> None:
    """Between the price of a place that one fit has and of one that half of them or more have."""
    curve = StepCurve(np.arange(101.0), np.arange(100) % 3.0, 8)
    fits = [
        replace(fit_breakpoints(curve, at, "constant"), requested=k)
        for k, at in enumerate(
            [[0.0, 30.0, 100.0]] * 12 + [[0.0, 60.0, 100.0]] * 3 + [[0.0, 80.0, 100.0]] * 5, 2
        )
    ]
    found = choice._candidates(NOTHING, fits, 0.0, 100.0, ())
    assert found.time.tolist() == [30.0, 60.0, 80.0] and found.fits.tolist() == [12, 3, 5]
    assert found.price[0] == choice._PRICE_LASTING < found.price[2] < found.price[1] < choice._PRICE_FIT
    # and so of two changes of one size the one that lasts is chosen first, and that is told
    prices = dict(zip(found.time.tolist(), found.price.tolist(), strict=True))
    assert prices[60.0] - prices[80.0] == pytest.approx((choice._PRICE_FIT - choice._PRICE_LASTING) * 0.2)


def test_what_survives_is_chosen_and_told() -> None:
    """The same small change at two places, of which one is in every fit and the other in a single one."""
    level = np.where(np.arange(100) < 30, 6.0, np.where(np.arange(100) < 70, 4.2, 6.0))
    curve = StepCurve(np.arange(101.0), level, 8)
    lasts, once = [0.0, 30.0, 100.0], [0.0, 70.0, 100.0]
    for first, second in ((lasts, once), (once, lasts)):
        fits = tuple(
            replace(fit_breakpoints(curve, first if k < 20 else second, "constant"), requested=k)
            for k in range(2, 21)
        )
        swept = Sweep("constant", fits)
        found = choose(curve, swept, NOTHING)
        assert found is not None
        told = {one.time_s: one.fits for one in found.breakpoints}
        assert told.get(first[1]) == 18 and told.get(second[1], 1) == 1
        assert "18 of 19 fits" in found.reason
