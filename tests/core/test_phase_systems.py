"""Phases on several systems: speeds that are known come back, a system with few runs is predicted from the
other's, and phases that share no speeds are told."""

from __future__ import annotations

import numpy as np
import pytest

from desktop.core.phase_model import PhaseModel, ScalingRuns, model_phases
from desktop.core.phase_systems import SystemsModel, model_runs, model_systems
from desktop.data.phase_scaling_words import sentences, speed_lines, table, warnings

P = np.array([2.0, 4.0, 8.0, 16.0])
WORK = np.array([[40.0, 0.5], [30.0, 0.05], [5.0, 1.0]])


def law(p: np.ndarray, speed: np.ndarray) -> np.ndarray:
    """(P, phases) seconds; speed (2,) or (phases, 2) of 1/p and 1."""
    return np.asarray((WORK / speed) @ np.stack([1 / p, np.ones_like(p)])).T


def runs(
    on_a: np.ndarray, on_b: np.ndarray, speed: np.ndarray, noise: float, rng: np.random.Generator
) -> ScalingRuns:
    p = np.concatenate([on_a, on_b])
    duration = np.concatenate([law(on_a, np.ones(2)), law(on_b, speed)])
    duration *= np.exp(noise * rng.standard_normal(duration.shape))
    names = ("A",) * on_a.size + ("B",) * on_b.size
    return ScalingRuns(("",) * p.size, ("read", "solve", "write"), p, duration, systems=names)


def test_speeds_and_times_on_two_systems_lie_in_their_intervals() -> None:
    """B was run on 2 and 4 processors, and is predicted on 16 and 64: the handbook's table in short."""
    rng, at = np.random.default_rng(4), np.array([16.0, 64.0])
    inside: dict[str, list[bool]] = {"phases": [], "run": [], "speed": [], "ratio": []}
    widths, shared = [], 0
    for _ in range(4):
        speed = np.exp(rng.uniform(-0.7, 0.7, 2))
        found = model_systems(runs(np.append(P, 32.0), P[:2], speed, 0.02, rng))
        shared += found.joint
        model = found.models[1]
        assert model is not None
        phases, whole = model.durations(at)
        new = law(at, speed) * np.exp(0.02 * rng.standard_normal((2, 3)))
        low, high = np.quantile(phases, (0.025, 0.975), axis=0)
        inside["phases"] += ((low <= new.T) & (high >= new.T)).ravel().tolist()
        low, high = np.quantile(whole, (0.025, 0.975), axis=0)
        inside["run"] += ((low <= new.sum(axis=1)) & (new.sum(axis=1) <= high)).tolist()
        widths.append(float(np.log(high / low)[0]))
        for one in found.speeds():
            if one["function"] in ("1/p", "1"):
                true = speed[("1/p", "1").index(one["function"])]
                inside["speed"].append(one["low"] <= true <= one["high"])
        over = found.ratio(0, 1, P)
        assert over is not None
        true = law(P, np.ones(2)).sum(axis=1) / law(P, speed).sum(axis=1)
        inside["ratio"] += ((over.low <= true) & (true <= over.high)).tolist()
    assert shared == 4
    assert all(np.mean(held) >= 0.8 for held in inside.values()), inside
    assert np.median(widths) < np.log(1.5)


def test_phases_that_share_no_speeds_are_modelled_on_each_system_by_itself() -> None:
    """B reads twice as fast, and solves as A does: at any p of any function."""
    rng = np.random.default_rng(1)
    data = runs(P, P, np.array([[2.0, 2.0], [1.0, 1.0], [0.7, 0.7]]), 0.02, rng)
    found = model_runs(data)
    assert isinstance(found, SystemsModel) and not found.joint
    assert found.chance < 0.05 and found.speeds() == [] == speed_lines(found)
    assert "do not have the same ratio of speeds (that they do has a" in warnings(found)[0]
    for (name, model), alone in zip(found.fitted, ((0, 1, 2, 3), (4, 5, 6, 7)), strict=True):
        by_itself = model_phases(data.only(alone)).durations(P)[1]
        assert np.array_equal(model.durations(P)[1], by_itself), name
    few = runs(P, P[:2], np.array([[2.0, 2.0], [1.0, 1.0], [0.5, 0.5]]), 0.002, rng)
    made = model_systems(few)
    assert made.models[1] is None and "B has runs on too few numbers" in " ".join(warnings(made))
    assert set(table(made, (8.0,))["system"]) == {"A"}


def test_what_is_said_of_systems_and_what_cannot_be_modelled() -> None:
    rng = np.random.default_rng(2)
    data = runs(P, P, np.array([2.0, 2.0]), 0.005, rng)
    found = model_runs(data)
    assert isinstance(found, SystemsModel) and found.joint
    said = sentences(found)
    assert (
        said[0].startswith(("B is 2.0", "B is 1.9"))
        and "times as fast as A on 2 processors (95 %: " in said[0]
    )
    assert all(said.count(one) == 1 and not one.startswith("On ") for one in said)
    heads = [one.split(" ")[:2] for one in said if one.startswith("Phase ")]
    assert heads and len({*map(tuple, heads)}) == len(heads)
    assert speed_lines(found)[0].startswith("Speeds of B over those of A (95 %): 1/p ")
    # phases add up to the run on each system
    for _, model in found.fitted:
        phases, whole = model.durations(P, noise=False)
        assert np.allclose(np.median(phases, axis=0).sum(axis=0), np.median(whole, axis=0), rtol=1e-9)
    one = data.only((0, 1, 2, 3))
    assert isinstance(model_runs(ScalingRuns(one.runs, one.phases, one.p, one.duration)), PhaseModel)
    with pytest.raises(ValueError, match="two and 3 are needed"):
        model_systems(one)
    with pytest.raises(ValueError, match="on 2 different numbers"):
        model_systems(runs(P[:2], P[:2], np.ones(2), 0.01, rng))
    frame = table(found, (8.0,))
    assert frame["system"].tolist() == ["A"] * 4 + ["B"] * 4 and frame.attrs["units"]["low"] == "s"
    alike = runs(P, P, np.ones(2), 0.02, rng)
    assert "B and A are not told apart on" in sentences(model_runs(alike))[0]
