"""What the gate (``phasewright compare --against``) states against what it holds in simulation.

    python -m tests.benchmarks.gate [TRIALS]

prints the tables of the handbook's page Comparing runs: per cent of TRIALS (10,000) comparisons with any
difference, with one of the whole run, of phases that differ, and of TRIALS in which ``--fail-over 5%`` would
fail; where nothing changed, under drift, and
where all changed. The comparisons of a cell are made at once; the first of each cell are made by
`differences` as well, and have to say the same. `tests/core/test_gate.py` holds a short version.
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.special import stdtr

from desktop.core import gate

PHASES = np.array([[5.0], [1.0], [3.0], [0.5], [2.0]])
SIDES = ((1, 3), (1, 10), (2, 2), (2, 3), (3, 3), (3, 10), (5, 5), (10, 10))
#: Of ``--fail-over``.
LIMIT = 0.05
#: Comparisons of a cell that are made one by one as well.
CHECKED = 100
rng = np.random.default_rng(2)


def noise(kind: str, shape: tuple[int, int, int]) -> np.ndarray:
    """Factors (trials, phases, runs) of the lengths."""
    normal = rng.standard_normal
    return {
        "normal": lambda: 1 + 0.02 * normal(shape),
        "skewed": lambda: 1 + 0.02 * rng.exponential(size=shape),
        "heavy": lambda: np.exp(0.02 * rng.standard_t(3, shape)),
        "common": lambda: (1 + 0.02 * normal((shape[0], 1, shape[2]))) * (1 + 0.002 * normal(shape)),
        "disturbed": lambda: (1 + 0.005 * normal(shape)) * np.where(rng.random(shape) < 0.1, 1.2, 1),
        "drift": lambda: (1 + 0.02 * normal(shape)) * (1 + 0.01 * np.arange(shape[2])),
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
    """Per cent of the trials with a difference: any, of the whole run; of phases; and of trials that fail."""
    turn = np.arange(base + new)
    if alternate:
        turn = np.concatenate([turn[::2], turn[1::2]])
    times = (PHASES * noise(kind, (trials, len(PHASES), base + new)))[:, :, turn]
    times[:, :, base:] *= by
    times = np.concatenate([times.sum(1, keepdims=True), times], axis=1)
    told, change = significant(times, base, in_order)
    for one, mine in zip(times[:CHECKED], told, strict=False):
        alone = gate.differences(one[:, :base], one[:, base:], in_order=in_order)
        assert [bool(d.significant) for d in alone] == mine.tolist()
    failed = told & (change > LIMIT)
    sums = told.any(1).mean(), told[:, 0].mean(), told[:, 1:].mean(), failed.any(1).mean()
    return " ".join(f"{100 * value:6.1f}" for value in sums)


def significant(times: np.ndarray, base: int, in_order: bool) -> tuple[np.ndarray, np.ndarray]:
    """(trials, times) what `gate.differences` calls significant, and the changes, of times (trials, times,
    runs) that all runs have."""
    runs = times.shape[2]
    side = np.arange(runs) >= base
    x = np.stack([np.ones(runs), side, *([np.arange(runs)] if in_order else [])], axis=1)
    inverse = np.linalg.inv(x.T @ x)
    y = np.log(times)
    of = y @ x @ inverse
    df = runs - x.shape[1]
    spread = np.square(y - of @ x.T).sum(-1) / df
    counts = base, runs - base
    stricter = gate._STRICTER * max(counts) / min(counts)
    p = np.minimum(stricter * 2 * stdtr(df, -np.abs(of[..., 1]) / np.sqrt(spread * inverse[1, 1])), 1.0)
    told = np.empty(p.shape, bool)
    for one in (slice(0, 1), slice(1, None)):
        order = np.argsort(p[:, one], axis=1)
        each = 2 * np.take_along_axis(p[:, one], order, 1) * np.arange(order.shape[1], 0, -1)
        np.put_along_axis(told[:, one], order, np.maximum.accumulate(each, axis=1) <= gate.LEVEL, 1)
    return told, np.expm1(of[..., 1])


def main() -> None:
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
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
