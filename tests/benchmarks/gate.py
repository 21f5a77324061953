"""What the gate (``phasewright compare --against``) states against what it holds in simulation.

    python -m tests.benchmarks.gate [TRIALS]

prints the tables of the handbook's page Comparing runs: per cent of TRIALS (3000) comparisons with any
difference, with one of the whole run, and of phases that differ; where nothing changed, under drift, and
where all changed.
`tests/core/test_gate.py` holds a short version.
"""

from __future__ import annotations

import sys

import numpy as np

from desktop.core.gate import differences

PHASES = np.array([[5.0], [1.0], [3.0], [0.5], [2.0]])
SIDES = ((1, 3), (1, 10), (2, 2), (2, 3), (3, 3), (3, 10), (5, 5), (10, 10))
rng = np.random.default_rng(2)


def noise(kind: str, shape: tuple[int, int]) -> np.ndarray:
    """Factors (phases, runs) of the lengths."""
    normal = rng.standard_normal
    return {
        "normal": lambda: 1 + 0.02 * normal(shape),
        "skewed": lambda: 1 + 0.02 * rng.exponential(size=shape),
        "heavy": lambda: np.exp(0.02 * rng.standard_t(3, shape)),
        "common": lambda: (1 + 0.02 * normal(shape[1:])) * (1 + 0.002 * normal(shape)),
        "disturbed": lambda: (1 + 0.005 * normal(shape)) * np.where(rng.random(shape) < 0.1, 1.2, 1),
        "drift": lambda: (1 + 0.02 * normal(shape)) * (1 + 0.01 * np.arange(shape[1])),
    }[kind]()


def found(
    kind: str,
    base: int,
    new: int,
    trials: int,
    *,
    in_order: bool = False,
    alternate: bool = False,
    by: float = 1.0,
) -> str:
    """Per cent of the trials with a difference: any, of the whole run; and of phases."""
    sums = np.zeros(3)
    turn = np.arange(base + new)
    if alternate:
        turn = np.concatenate([turn[::2], turn[1::2]])
    for _ in range(trials):
        times = (PHASES * noise(kind, (len(PHASES), base + new)))[:, turn]
        times[:, base:] *= by
        times = np.vstack([times.sum(0), times])
        told = [bool(d.significant) for d in differences(times[:, :base], times[:, base:], in_order=in_order)]
        sums += any(told), told[0], np.mean(told[1:])
    return " ".join(f"{100 * value / trials:6.1f}" for value in sums)


def main() -> None:
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
    for kind in ("normal", "skewed", "heavy", "common", "disturbed"):
        for base, new in SIDES:
            print(f"{kind:<24}{base:>3}{new:>3}  {found(kind, base, new, trials)}", flush=True)
    for k in (2, 3, 5, 10):
        for in_order, alternate in ((False, True), (False, False), (True, False)):
            name = "alternated" if alternate else "in order" if in_order else "blocks"
            told = found("drift", k, k, trials, in_order=in_order, alternate=alternate)
            print(f"drift, {name:<17}{k:>3}{k:>3}  {told}", flush=True)
        for by in (1.03, 1.1):
            for in_order in (False, True):
                told = found("normal", k, k, trials, in_order=in_order, by=by)
                print(
                    f"changed by {by:<5} {'in order' if in_order else '':<8}{k:>3}{k:>3}  {told}", flush=True
                )


if __name__ == "__main__":
    main()
