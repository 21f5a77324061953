"""Phase fits against the paper's method and other tools: ``python -m tests.benchmarks.phases [M ...]``.

Prints Markdown: the bars that are to be reached, the race on curves of growing length (M = 1e3 .. 1e7 unless
given), the errors for every n, and the paper's cost tables beside ours. Times are the least of several runs.
"""

from __future__ import annotations

import csv
import math
import platform
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np

from desktop.core.curve import StepCurve
from desktop.core.phases import basis_of, fit, sweep, warm_up
from desktop.core.tree import moment_tree
from tests.benchmarks import paper
from tests.benchmarks.peers import Partition, Peer, peers
from tests.curves import AWKWARD, Steps, cholesky, phased, wave
from tests.oracles.worley import Exact

PURE = ("constant", "linear", "quadratic")
PUBLISHED = Path(__file__).parents[1] / "data" / "worley1990_tables.csv"
# A competitor that would need longer than this for one cell is not run.
PATIENCE = 60.0


def least(work: Callable[[], Any], repeats: int = 7, limit: float = 2.0) -> tuple[float, Any]:
    """Least seconds of up to `repeats` runs within about `limit` seconds, and what the last run returned."""
    best, begin = math.inf, time.perf_counter()
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - start)
        if time.perf_counter() - begin > limit:
            break
    return best, result


def span(seconds: float) -> str:
    """Seconds in a unit that can be read."""
    if not math.isfinite(seconds):
        return "-"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def table(head: list[str], rows: Iterator[list[str]] | list[list[str]]) -> None:
    print("| " + " | ".join(head) + " |")
    print("|" + " --- |" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)
    print()


def curve_of(steps: Steps) -> StepCurve:
    return StepCurve(*steps)


def built(steps: Steps) -> StepCurve:
    curve = curve_of(steps)
    moment_tree(curve)
    return curve


def rebuild(curve: StepCurve) -> Any:
    curve.summaries.clear()
    return moment_tree(curve)


def whole_job(curve: StepCurve, model: str, n_max: int) -> Any:
    """Build and all n, as after loading a curve."""
    rebuild(curve)
    return sweep(curve, model, n_max)


def series(curve: StepCurve, n_max: int, model: str) -> Any:
    return sweep(curve, model, n_max)


# --- the bars -----------------------------------------------------------------------------------------


def bars(sizes: list[int]) -> None:
    print("## What is to be reached\n")
    table(["what", "bar", "measured", "met"], _bars(sizes))


def _bars(sizes: list[int]) -> Iterator[list[str]]:
    def row(what: str, bar: str, measured: str, met: bool) -> list[str]:
        return [what, bar, measured, "yes" if met else "NO"]

    gap = inner = 0.0
    for make in [*AWKWARD.values(), lambda _: wave(), lambda _: cholesky(), lambda _: phased(100_000)]:
        steps = make(500)
        curve, x = curve_of(steps), Exact(*(part.tolist() for part in steps))
        for k, n in ((k, n) for k in range(3) for n in (2, 7, 20)):
            found = fit(curve, n, PURE[k])
            proved = (r for r in (1e-13, 1e-12, 1e-11, 1e-10, 1e-9) if x.certifies(found.epsilon, k, n, r))
            gap = max(gap, next(proved, math.inf))
            places = [
                x.z[j] + round(offset / float(x.tick))
                for j, offset in zip(found.index.tolist(), found.offset.tolist(), strict=True)
            ]
            inner = max(inner, max(x.errors(places, found.degree.tolist())) / found.epsilon - 1)
    what = "eps against exact arithmetic, k = 0, 1, 2, all awkward curves, M to 1e5"
    yield row(what, "1e-9 relative", f"{gap:.0e} (proved)", gap <= 1e-9)
    yield row("largest error of the partition above eps, exact", "1e-9", f"{inner:.1e}", inner <= 1e-9)
    flat = [fit(StepCurve(range(8), level), 7, m) for level in ([3] * 7, [1, 1, 2, 2, 5, 5, 5]) for m in PURE]
    zero = all(f.epsilon == 0.0 and f.n in (1, 3) for f in flat)
    yield row("eps = 0 cases", "exactly 0, phases = runs", "exactly 0" if zero else "not 0", zero)
    curves = {m: curve_of(phased(m)) for m in sizes}
    own = max(
        found.upper / found.lower - 1 for c in curves.values() for k in PURE for found in sweep(c, k, 20).fits
    )
    yield row("own certificate upper/lower - 1, n = 1..20, all M", "1e-9", f"{own:.1e}", own <= 1e-9)
    memory = max((c.summaries["moments"].nodes.nbytes + 0.0) / m for m, c in curves.items())
    for m, curve in curves.items():
        seconds, _ = least(partial(rebuild, curve))
        yield row(
            f"build, M = {m:.0e}",
            "20 ns per step",
            f"{seconds / m * 1e9:.1f} ns per step",
            seconds / m <= 2e-8,
        )
    for what, bar, n, models, act in (
        ("fit n = 20, built", 2e-3, 20, PURE, fit),
        ("all n = 1..20 of one degree", 20e-3, 20, PURE, series),
        ("fit n = 200", 25e-3, 200, PURE, fit),
        ("mixed n = 20", 15e-3, 20, ("mixed",), fit),
        ("budget of 60 parameters", math.inf, 60, ("budget",), fit),
    ):
        for m, curve in curves.items():
            moment_tree(curve)
            if n >= m:
                continue
            worst = max(least(partial(act, curve, n, model), 9)[0] for model in models)
            yield row(f"{what}, M = {m:.0e}", f"<= {span(bar)}", span(worst), worst <= bar)
    for own in ("periodic", "saturation"):
        for model, n in ((own, 20), ("mixed", 20), ("budget", 60)):
            for m, curve in curves.items():
                if n >= m:
                    continue
                basis = basis_of(curve, own)
                fit(curve, n, model, basis=basis)  # the tree
                seconds, _ = least(partial(fit, curve, n, model, basis=basis), 9)
                what = f"{model}{'' if model == own else f' with {own}'}, n = {n}, M = {m:.0e}"
                yield row(what, "<= 5 ms", span(seconds), seconds <= 5e-3)
    steps = phased(100_000)
    for k, model in enumerate(PURE):
        ours, _ = least(partial(whole_job, curve_of(steps), model, 20), 9)
        theirs, _ = least(partial(paper.sequence, *steps, k, 20), 3, 5.0)
        what = f"whole job against the paper's (Givens), 1e5 steps, {model}"
        yield row(
            what,
            ">= 500 times faster",
            f"{span(ours)} / {span(theirs)}: {theirs / ours:.0f}",
            theirs >= 500 * ours,
        )
        merged, _ = least(partial(paper.sequence, *steps, k, 20, paper.MOMENTS), 3)
        what = f"the same against the paper's algorithm with our merge, {model}"
        yield row(what, "-", f"{span(ours)} / {span(merged)}: {merged / ours:.0f}", True)
    yield row("extra memory", "8 bytes per step", f"{memory:.2f}", memory <= 8)


# --- the race -----------------------------------------------------------------------------------------


class Runner:
    """Runs a competitor unless its last time, scaled by its order, says that it would take too long."""

    def __init__(self) -> None:
        self._last: dict[Any, tuple[int, float]] = {}

    def run(self, key: Any, order: float, m: int, work: Callable[[], Any]) -> tuple[float, Any, str]:
        if key in self._last:
            size, seconds = self._last[key]
            expected = seconds * (m / size) ** order
            if expected > PATIENCE:
                return math.inf, None, f"skipped: about {expected:.0f} s expected"
        seconds, result = least(work, 5, 0.5)
        self._last[key] = m, seconds
        return seconds, result, ""


def race(sizes: list[int]) -> None:
    print("## The race\n")
    print(
        "Curves: 20 noisy phases of degree 0, 1, 2, whole processors, steps of uneven width. Our times hold "
        "building the tree. `eps`: largest local L2 error, `sse`: total squared error, both on the exact "
        "curve with the best polynomials on the partition found (for the paper the one its root finder "
        "ends at). We and the paper minimise eps, the others sse.\n"
    )
    head = [
        "M",
        "model",
        "tool",
        "given",
        "n = 1..20",
        "eps(20)",
        "sse(20)",
        "n = 200",
        "eps(200)",
        "sse(200)",
    ]
    table(head, _race(sizes))


def _race(sizes: list[int]) -> Iterator[list[str]]:
    runner = Runner()
    for m in sizes:
        steps = phased(m)
        for model, tool, given, order, all20, one200 in _competitors(steps):
            cells = [f"{m:.0e}", model, tool, given]
            for n, work in ((20, all20), (200, one200)):
                if n >= m:
                    cells += ["-"] * 3
                    continue
                seconds, found, why = runner.run((model, tool, n), order, m, work)
                if found is None:
                    cells += [why, "", ""]
                else:
                    eps, sse = paper.score(*steps, *found)
                    cells += [span(seconds), f"{eps:.4g}", f"{sse:.4g}"]
            yield cells


Work = Callable[[], Partition]


def _competitors(steps: Steps) -> Iterator[tuple[str, str, str, float, Work, Work]]:
    """(model, tool, how it is given the curve, order, work for n = 1..20, work for n = 200)."""
    curve = curve_of(steps)
    exact = "exact steps"

    def ours(model: str) -> tuple[Work, Work]:
        def last(n: int, found: Any) -> Partition:
            return found.breaks, found.degree

        def direct() -> Partition:
            curve.summaries.clear()
            return last(200, fit(curve, 200, model))

        return lambda: last(20, whole_job(curve, model, 20).fits[-1]), direct

    def theirs(k: int, way: int) -> tuple[Work, Work]:
        def last(found: paper.Fit) -> Partition:
            return found.breaks, found.degrees

        return (
            lambda: last(paper.sequence(*steps, k, 20, way)[-1]),
            lambda: last(paper.fit(*steps, k, 200, way=way)),
        )

    def others(peer: Peer) -> tuple[Work, Work]:
        first = 20 if peer.at_once else 1
        return (
            lambda: [peer.breaks(*steps, n) for n in range(first, 21)][-1],
            lambda: peer.breaks(*steps, 200),
        )

    for k, model in enumerate(PURE):
        yield model, "Phasewright", exact, 0, *ours(model)
        yield model, "paper, Givens rows", exact, 1, *theirs(k, paper.GIVENS)
        yield model, "paper, merged moments", exact, 1, *theirs(k, paper.MOMENTS)
        if k == 0:
            for peer in peers()[:-1]:
                yield model, peer.name, peer.given, peer.order, *others(peer)
    yield "mixed", "Phasewright", exact, 0, *ours("mixed")
    yield "mixed", "paper, Givens rows", exact, 1, *theirs(paper.MIXED, paper.GIVENS)
    peer = peers()[-1]
    yield "mixed", peer.name, peer.given, peer.order, *others(peer)


def every_n(m: int) -> None:
    print(f"## Both errors for every n, constant phases, M = {m}\n")
    print("Each cell: eps, sse (both on the exact curve).\n")
    steps = phased(m)
    entrants = [p for p in peers() if not p.at_once]
    found = whole_job(curve_of(steps), "constant", 20).fits
    sequence = paper.sequence(*steps, 0, 20)

    def cells(n: int) -> Iterator[str]:
        yield str(n)
        parts = [
            (found[n - 1].breaks, found[n - 1].degree),
            (sequence[n - 1].breaks, sequence[n - 1].degrees),
        ]
        for breaks, degrees in [*parts, *(p.breaks(*steps, n) for p in entrants)]:
            eps, sse = paper.score(*steps, breaks, degrees)
            yield f"{eps:.4g}, {sse:.4g}"

    head = ["n", "Phasewright", "paper", *(p.name for p in entrants)]
    table(head, (list(cells(n)) for n in range(1, 21)))


# --- the paper's cost tables --------------------------------------------------------------------------


def published(figure: str) -> list[dict[str, str]]:
    """Rows of one of the paper's tables (its figures 6, 7, 18)."""
    with PUBLISHED.open(newline="") as file:
        return [row for row in csv.DictReader(file) if row["figure"] == figure]


def costs() -> None:
    print("## The paper's cost tables\n")
    print(
        "Its curves survive only as pictures. Ours are look-alikes from simulated schedules with its numbers "
        "of processors, pairs and microseconds; epsilons can be compared in size only. `paper`: IBM RS/6000, "
        "1990. `its method`: the same algorithm with the same tolerances, compiled, on the look-alike here. "
        "`ours`: one fit bounded by the one before, tree built; updates are merges of moments.\n"
    )
    steps = wave()
    print(f"### Like the differential equation ({steps[1].size} pairs), build {_built_in(steps)}\n")
    for figure, model, k in (("6", "constant", 0), ("18", "mixed", paper.MIXED)):
        print(f"Figure {figure}, {model}, in sequence:\n")
        table(_COST, _costs(steps, model, k, published(figure)))
    print("Figure 7, constant, directly:\n")
    table(_COST, _costs(steps, "constant", 0, published("7"), sequence=False))
    print("### Ranges over n = 2..20 that the text gives\n")
    table(["curve", "model", "paper s", "its method", "ours"], _ranges())


_COST = [
    "n",
    "paper s",
    "eps",
    "f",
    "updates",
    "its method",
    "eps",
    "f",
    "updates",
    "ours",
    "eps",
    "f",
    "updates",
]


def _built_in(steps: Steps) -> str:
    return span(least(lambda: built(steps))[0])


def _costs(
    steps: Steps, model: str, k: int, rows: list[dict[str, str]], sequence: bool = True
) -> Iterator[list[str]]:
    curve = built(steps)
    above, before = np.inf, None
    for row in rows:
        n = int(row["n"])
        bounds = (0.0, before.epsilon) if sequence and before is not None else None
        theirs, its = least(partial(paper.fit, *steps, k, n, above if sequence else np.inf), 3)
        ours, mine = least(partial(fit, curve, n, model, bounds=bounds))
        above, before = its.epsilon, mine
        yield [
            *(row[key] for key in ("n", "seconds", "epsilon", "evaluations", "updates")),
            *(span(theirs), f"{its.epsilon:.1f}", str(its.evaluations), str(its.updates)),
            *(span(ours), f"{mine.epsilon:.1f}", str(mine.evaluations), str(mine.updates)),
        ]


def _ranges() -> Iterator[list[str]]:
    told = {
        ("differential equation", "linear"): "1.576 - 1.966",
        ("differential equation", "quadratic"): "5.881 - 6.792",
        ("matrix", "constant"): "1.490 - 1.823",
        ("matrix", "linear"): "10.116 - 12.516",
        ("matrix", "quadratic"): "35.521 - 41.133",
        ("matrix", "mixed"): "45 - 66",
    }
    made = {"differential equation": wave(), "matrix": cholesky()}
    for (name, model), seconds in told.items():
        steps = made[name]
        curve = built(steps)
        k = (*PURE, "mixed").index(model)
        theirs, ours, above = [], [], np.inf
        for n in range(1, 21):
            taken, its = least(partial(paper.fit, *steps, k, n, above), 2, 0.5)
            above = its.epsilon
            theirs.append(taken)
            ours.append(least(partial(fit, curve, n, model), 3)[0])
        yield [
            f"{name} ({steps[1].size} pairs)",
            model,
            seconds,
            f"{span(min(theirs[1:]))} - {span(max(theirs[1:]))}",
            f"{span(min(ours[1:]))} - {span(max(ours[1:]))}",
        ]


def main(arguments: list[str]) -> None:
    sizes = [int(float(a)) for a in arguments] or [10**p for p in range(3, 8)]
    print("# Phase fits: benchmark\n")
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}, numba {numba.__version__}"
    print(f"{platform.system()} {platform.machine()}, {versions}; one thread each, least of several runs.\n")
    warm_up()
    tiny = phased(60)
    for k in (0, 1, 2, paper.MIXED):
        for way in (paper.GIVENS, paper.MOMENTS):
            paper.fit(*tiny, k, 3, way=way)
    bars(sizes)
    costs()
    every_n(2000)
    race(sizes)


if __name__ == "__main__":
    main(sys.argv[1:])
