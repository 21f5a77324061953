"""Intervals of breakpoints over repeats against places that are known: stated level against found level.

``python -m tests.benchmarks.firmness [--runs N] [--places]`` prints the tables of
``resources/docs/phase-choice.md``. Iterations are made with three phases whose ends scatter about known
medians; runs likewise, with six phases each, and fitted and matched as in a comparison. ``--places``: only
intervals over places of which each resembles the one before, more or less.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy.signal import lfilter

from desktop.core import firmness
from desktop.core.contrast import Phased, align
from desktop.core.curve import StepCurve
from desktop.core.firmness import Firm
from desktop.core.iterations import Repeat, fold
from desktop.core.phases import fit

REPEATS = (5, 10, 20, 50, 100)
ALIKE = (6, 12, 24, 48, 100)
#: How breakpoints scatter about their median, and what is laid over the curve.
SCATTERS = ("normal", "skewed", "lasting", "drifting", "none")
NOISES = ("little", "much", "waves", "interruptions", "ramps")
_STEPS = 128


def scatter(kind: str, rng: np.random.Generator, count: int) -> np.ndarray:
    """(count,) parts of an iteration by which a breakpoint is off its median."""
    if kind == "normal":
        return rng.normal(0, 0.02, count)
    if kind == "skewed":
        return 0.02 * (rng.exponential(1, count) - np.log(2))
    if kind == "lasting":
        off = np.empty(count)
        now = rng.normal()
        for k in range(count):
            now = 0.6 * now + 0.8 * rng.normal()
            off[k] = 0.02 * now
        return off
    if kind == "drifting":
        return rng.normal(0, 0.01, count) + 0.02 * (np.arange(count) / max(count - 1, 1) - 0.5)
    return np.zeros(count)


def levels(kind: str, rng: np.random.Generator, at: np.ndarray, height: tuple[float, ...], span: float):
    """Edges (parts of the whole) and levels of a stretch whose phases end at `at`."""
    edges = np.unique(np.concatenate([np.linspace(0, 1, _STEPS + 1), at]))
    middle = (edges[1:] + edges[:-1]) / 2
    phase = np.searchsorted(at, middle)
    value = np.asarray(height)[phase]
    if kind == "ramps":
        ends = np.concatenate([[0.0], at, [1.0]])
        part = (middle - ends[phase]) / (ends[phase + 1] - ends[phase])
        value = value + np.where(phase % 2 == 1, 1.5 * (part - 0.5), 0.0)
    if kind == "waves":
        value = value + np.sin(2 * np.pi * (middle * 9 + rng.random())) + rng.normal(0, 0.3, middle.size)
    elif kind == "interruptions":
        value = np.where(rng.random(middle.size) < 0.05, 0.0, value) + rng.normal(0, 0.2, middle.size)
    else:
        value = value + rng.normal(0, 1.5 if kind == "much" else 0.3, middle.size)
    return edges * span, np.clip(value, 0, 8)


def iterations(kind: str, noise: str, repeats: int, seed: int) -> list[tuple[Firm | None, float]]:
    """Of one run of iterations: the intervals of its two breakpoints, and where they truly are (s)."""
    rng = np.random.default_rng([seed, repeats, SCATTERS.index(kind), NOISES.index(noise)])
    true = np.array([0.35, 0.7])
    off = np.stack([scatter(kind, rng, repeats) for _ in true], axis=1)
    edges, level, bounds = [], [], [0.0]
    for k in range(repeats):
        lasts = float(np.exp(rng.normal(0, 0.05)))
        there, value = levels(noise, rng, np.clip(true + off[k], 0.05, 0.95), (7.0, 3.0, 5.0), lasts)
        edges.append(bounds[-1] + there[:-1])
        level.append(value)
        bounds.append(bounds[-1] + lasts)
    curve = StepCurve(np.append(np.concatenate(edges), bounds[-1]), np.concatenate(level), 8.0)
    loop = Repeat(np.array(bounds), np.ones(repeats, bool))
    phases = fit(fold(curve, loop).curve(8.0), 3, "linear" if noise == "ramps" else "constant")
    found = firmness.over_iterations(curve, loop, phases.breaks, phases.degree.tolist())
    return list(zip(found, (true * loop.period).tolist(), strict=True))


def runs(kind: str, noise: str, repeats: int, seed: int) -> list[tuple[Firm | None, float]]:
    """The same of runs of 10 s with six phases of their own."""
    rng = np.random.default_rng([seed, repeats, SCATTERS.index(kind), NOISES.index(noise), 1])
    true = np.array([0.1, 0.3, 0.45, 0.7, 0.9])
    off = np.stack([scatter(kind, rng, repeats) for _ in true], axis=1)
    made = []
    for k in range(repeats):
        there, value = levels(noise, rng, np.clip(true + off[k], 0.02, 0.98), (1, 7, 3, 6, 2, 8), 10.0)
        curve = StepCurve(there, value, 8.0)
        made.append(Phased(f"run {k}", curve, fit(curve, 6, "linear" if noise == "ramps" else "constant")))
    found = firmness.over_runs(align(made), 0)
    return list(zip(found, (true * 10.0).tolist(), strict=True))


def coverage(make, kind: str, noise: str, repeats: int, count: int) -> tuple[float, float, int]:
    """Mean level stated, part of the intervals that hold the truth, and their number."""
    pairs = [pair for seed in range(count) for pair in make(kind, noise, repeats, seed)]
    told = [(one, t) for one, t in pairs if one is not None]
    held = [one.low_s <= t <= one.high_s for one, t in told]
    return float(np.mean([one.level for one, _ in told])), float(np.mean(held)), len(told)


def alike(rho: float, repeats: int, count: int) -> tuple[float, float, float]:
    """Of places with a scatter of 1 whose neighbours have this correlation: mean level stated, part of the
    intervals that hold the median, and their mean length."""
    new = np.random.default_rng([repeats, int(100 * rho)]).normal(size=(count, repeats + 100))
    places = lfilter([np.sqrt(1 - rho**2)], [1.0, -rho], new)[:, 100:]
    found = np.array([firmness.median_interval(row) for row in places])
    held = (found[:, 0] <= 0) & (found[:, 1] >= 0)
    return float(found[:, 2].mean()), float(held.mean()), float((found[:, 1] - found[:, 0]).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="of each kind")
    parser.add_argument("--places", action="store_true", help="only places that resemble the one before")
    options = parser.parse_args()
    print(f"| correlation | {' | '.join(f'{n} places' for n in ALIKE)} |\n| --- |{' --- |' * len(ALIKE)}")
    for rho in (0.0, 0.3, 0.5, 0.8):
        found = [alike(rho, n, 10 * options.runs) for n in ALIKE]
        cells = [f"{100 * level:.0f} / {100 * held:.0f} / {long:.2f}" for level, held, long in found]
        print(f"| {rho:g} | {' | '.join(cells)} |", flush=True)
    if options.places:
        return
    cases = [(kind, "little") for kind in SCATTERS] + [("normal", noise) for noise in NOISES[1:]]
    for title, make in (("iterations", iterations), ("runs", runs)):
        print(f"\n| places, noise | {' | '.join(f'{n} {title}' for n in REPEATS)} |")
        print(f"| --- |{' --- |' * len(REPEATS)}")
        for kind, noise in cases:
            cells = []
            for n in REPEATS:
                count = max(options.runs * 20 // (n + 20), 20)
                level, held, _ = coverage(make, kind, noise, n, count)
                cells.append(f"{100 * level:.0f} / {100 * held:.0f}")
            print(f"| {kind}, {noise} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
