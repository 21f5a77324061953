"""The joint fit of the factor model beside general least squares, and single cells beside Extra-P.

    python -m tests.benchmarks.factor_model [--table RUNS.csv [--systems PEAKS.csv]] [--extrap PYTHON]

Prints Markdown. `--table`: measurements of your own, beside the bundled class A (constructed values).
`--extrap`: an interpreter of an environment that has Extra-P (``pip install extrap``); without it that table
is left out, and this is said. Times are the least of several runs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from desktop.core.characteristic import characteristic
from desktop.core.factor_answers import rank_pairs
from desktop.core.factor_model import Measurements, ModelFit, fit_individual, fit_joint, respond
from desktop.data.tables import measurements, read_table, with_values
from desktop.resources import example_table
from tests.benchmarks.phases import least, span

Floats = NDArray[np.float64]
PAIR = ("1/p", "1/sqrt(p)")
STARTS = 10
#: A minimum counts as reached within this part of SST.
SAME = 1e-7


def synthetic(codes: int = 50, systems: int = 50, counts: int = 10, seed: int = 11) -> Measurements:
    """t' of a product model with 5 % noise."""
    rng = np.random.default_rng(seed)
    p = 2.0 ** np.arange(counts)
    work, speed = rng.lognormal(sigma=0.4, size=(2, codes)), rng.lognormal(sigma=0.4, size=(2, systems))
    work[1] *= 0.2
    c, s, k = (a.ravel() for a in np.meshgrid(range(codes), range(systems), range(counts), indexing="ij"))
    t = sum(work[i, c] / speed[i, s] * p[k] * characteristic(PAIR[i]).u(p[k]) for i in range(2))
    t = t * rng.lognormal(sigma=0.05, size=t.size)
    names = tuple(f"code {i}" for i in range(codes)), tuple(f"system {i}" for i in range(systems))
    return Measurements(*names, c.astype(np.int64), s.astype(np.int64), p[k], t, transformed=True)


@dataclass(frozen=True)
class Raw:
    """The problem as it is written down: all works and all but the first system's speeds, residuals of t'."""

    columns: Floats
    y: Floats
    code: NDArray[np.int64]
    system: NDArray[np.int64]
    codes: int
    systems: int

    @classmethod
    def of(cls, data: Measurements) -> Raw:
        answer = respond(data)
        columns = answer.columns([characteristic(f) for f in PAIR], data.p)
        return cls(columns, answer.y, data.code, data.system, len(data.codes), len(data.systems))

    @property
    def size(self) -> int:
        return 2 * (self.codes + self.systems - 1)

    def parts(self, theta: Floats) -> tuple[Floats, Floats]:
        work = theta[: 2 * self.codes].reshape(self.codes, 2)
        speed = np.vstack([np.ones((1, 2)), theta[2 * self.codes :].reshape(self.systems - 1, 2)])
        return work, speed

    def residual(self, theta: Floats) -> Floats:
        work, speed = self.parts(theta)
        with np.errstate(all="ignore"):
            fitted = (self.columns * work[self.code] / speed[self.system]).sum(1)
        return np.nan_to_num(self.y - fitted, nan=1e100, posinf=1e100, neginf=-1e100)

    def jacobian(self, theta: Floats) -> Floats:
        work, speed = self.parts(theta)
        rows = np.arange(self.y.size)
        slopes = np.zeros((self.y.size, self.size))
        for i in range(2):
            g, w, r = self.columns[:, i], work[self.code, i], speed[self.system, i]
            slopes[rows, 2 * self.code + i] = -g / r
            free = self.system > 0
            at = 2 * self.codes + 2 * (self.system - 1) + i
            slopes[rows[free], at[free]] = (g * w / (r * r))[free]
        return slopes


def scipy_fit(raw: Raw, start: Floats, method: str, exact: bool) -> float:
    from scipy.optimize import least_squares

    slopes = raw.jacobian if exact else "2-point"
    most = 200 if exact else 40 * raw.size
    found = least_squares(raw.residual, start, slopes, method=method, max_nfev=most, ftol=1e-12, xtol=1e-12)
    return float(2 * found.cost)


def lmfit_fit(raw: Raw, start: Floats) -> float:
    import lmfit

    parameters = lmfit.Parameters()
    for k, value in enumerate(start):
        parameters.add(f"q{k}", value=float(value))

    def residual(given: Any) -> Floats:
        return raw.residual(np.array([p.value for p in given.values()]))

    found = lmfit.minimize(residual, parameters, max_nfev=40 * raw.size, ftol=1e-12, xtol=1e-12)
    return float(found.chisqr)


def attempt(fit: Callable[[Floats], float], start: Floats) -> float:
    try:
        return fit(start)
    except (ValueError, np.linalg.LinAlgError):
        return float("nan")


def race(name: str, data: Measurements, patience: float = 60.0) -> None:
    raw = Raw.of(data)
    seconds, ours = least(lambda: fit_joint(data, PAIR), repeats=3)
    sst = float(raw.y @ raw.y)
    print(f"\n### {name}: {len(data)} measurements, {raw.size} parameters, {' + '.join(PAIR)}\n")
    print(f"| fit | time | SSE | minimum reached from {STARTS} random starts |")
    print("|---|---|---|---|")
    print(
        f"| phasewright, {ours.starts} starts and standard errors | {span(seconds)} | {ours.sse:.6g} "
        f"| {ours.starts_agreeing} of its own {ours.starts} |"
    )
    rng = np.random.default_rng(5)
    ones = np.ones(raw.size)
    others = [rng.lognormal(sigma=1.0, size=raw.size) for _ in range(STARTS)]
    peers: list[tuple[str, Callable[[Floats], float]]] = [
        ("scipy least_squares, trf, numerical Jacobian", lambda x: scipy_fit(raw, x, "trf", False)),
        ("scipy least_squares, lm, numerical Jacobian", lambda x: scipy_fit(raw, x, "lm", False)),
        ("scipy least_squares, trf, exact Jacobian", lambda x: scipy_fit(raw, x, "trf", True)),
        ("lmfit minimize (leastsq)", lambda x: lmfit_fit(raw, x)),
    ]
    for title, fit in peers:
        once, sse = least(lambda fit=fit: attempt(fit, ones), repeats=3)
        reached = "not tried, one start takes too long"
        if once * STARTS < patience:
            found = np.array([attempt(fit, x) for x in others])
            reached = f"{int((found - ours.sse <= SAME * sst).sum())} of {STARTS}"
        print(f"| {title}, from ones | {span(once)} | {sse:.6g} | {reached} |", flush=True)


def pairs(name: str, data: Measurements) -> None:
    for kind in ("joint", "individual"):
        seconds, ranking = least(lambda kind=kind: rank_pairs(data, kind), repeats=1)
        count = len(ranking.fits) + len(ranking.dropped)
        print(f"| {name} | {kind} | {count} | {span(seconds)} |", flush=True)


# --- Extra-P ---


def cells_of(data: Measurements, fewest: int) -> list[NDArray[np.int64]]:
    """Measurements of every cell with so many different p."""
    found = []
    for c in range(len(data.codes)):
        for s in range(len(data.systems)):
            mine = np.flatnonzero((data.code == c) & (data.system == s))
            if np.unique(data.p[mine]).size >= fewest:
                found.append(mine)
    return found


def ask_extrap(python: str, jobs: list[dict[str, Any]]) -> list[Floats]:
    script = Path(__file__).with_name("extrap_peer.py")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(
        [python, str(script)], input=json.dumps(jobs), capture_output=True, text=True, check=True,
        env=environment,
    )  # fmt: skip
    return [np.array(answer["value"]) for answer in json.loads(done.stdout)]


def beside_extrap(name: str, data: Measurements, python: str) -> None:
    """Relative errors over the cells that Extra-P takes (5 different p), with the largest p left out."""
    y = respond(data).y
    cells = cells_of(data, 6)
    last = [mine[data.p[mine] == data.p[mine].max()] for mine in cells]
    rest = [mine[data.p[mine] < data.p[mine].max()] for mine in cells]
    keep = np.ones(len(data), bool)
    for held in last:
        keep[held] = False
    part = data.only(keep)
    within: dict[str, list[float]] = {}
    beyond: dict[str, list[float]] = {}

    def note(method: str, k: int, inside: Floats, outside: Floats) -> None:
        within.setdefault(method, []).append(float(np.abs(inside / y[rest[k]] - 1).mean()))
        beyond.setdefault(method, []).append(float(np.abs(outside / y[last[k]] - 1).mean()))

    # t' of the part is scaled by the whole table's medians, so that the same numbers are compared.
    part = Measurements(
        part.codes, part.systems, part.code, part.system, part.p, y[keep], transformed=True
    )  # fmt: skip
    ranked = rank_pairs(part, "individual").fits
    best = next(fit for fit in ranked if len(fit.functions) == 2)
    fits: dict[str, ModelFit] = {
        f"every cell by itself, {' + '.join(PAIR)}": fit_individual(part, PAIR),
        f"every cell by itself, best pair ({' + '.join(best.functions)})": best,
        f"all cells together, {' + '.join(PAIR)}": fit_joint(part, PAIR),
    }
    together = next(fit for fit in rank_pairs(part, "joint").fits if len(fit.functions) == 2)
    fits[f"all cells together, best pair ({' + '.join(together.functions)})"] = together
    for method, fit in fits.items():
        for k, mine in enumerate(cells):
            c, s = int(data.code[mine[0]]), int(data.system[mine[0]])
            note(method, k, fit.predict(c, s, data.p[rest[k]])[0], fit.predict(c, s, data.p[last[k]])[0])
    for falling in (True, False):
        # The time falls with p, t' = t p grows: both are asked of Extra-P, as its users would.
        scale = data.p if falling else np.ones(len(data))
        jobs = [
            {
                "falling": falling,
                "p": data.p[rest[k]].tolist(),
                "value": (y / scale)[rest[k]].tolist(),
                "at": data.p[mine].tolist(),
            }
            for k, mine in enumerate(cells)
        ]
        for k, (mine, values) in enumerate(zip(cells, ask_extrap(python, jobs), strict=True)):
            whole = values * scale[mine]
            held = np.isin(mine, last[k])
            note(f"Extra-P, {'time, negative exponents' if falling else 't p, default'}", k,
                 whole[~held], whole[held])  # fmt: skip
    table = np.array([beyond[method] for method in beyond])
    wins = np.bincount(np.argmin(table, 0), minlength=len(table))
    print(f"\n### {name}: {len(cells)} cells with 6 or more p\n")
    print("| model | mean error within | at the largest p, left out: mean | median | best of cells |")
    print("|---|---|---|---|---|")
    for row, method in enumerate(beyond):
        print(
            f"| {method} | {np.mean(within[method]):.1%} | {np.mean(beyond[method]):.1%} "
            f"| {np.median(beyond[method]):.1%} | {wins[row]} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--table", type=Path, help="measurements of your own")
    parser.add_argument("--systems", type=Path, help="their peak rates")
    parser.add_argument("--extrap", metavar="PYTHON", help="an interpreter that has Extra-P")
    options = parser.parse_args()
    tables = {"class A (constructed)": measurements(read_table(example_table())).data}
    if options.table:
        own = read_table(options.table)
        if options.systems:
            own = with_values(own, options.systems, "peak")
        tables[options.table.stem] = measurements(own).data
    large = {"synthetic 50 x 50 x 10": synthetic()}
    print(
        f"## Factor model\n\nPython {platform.python_version()}, numpy {np.__version__}, "
        f"{os.cpu_count()} cores"
    )
    for name, data in (tables | large).items():
        race(name, data)
    print("\n### All 28 choices of one or two functions\n")
    print("| data | fit | choices | time |\n|---|---|---|---|")
    for name, data in (tables | large).items():
        pairs(name, data)
    if options.extrap:
        for name, data in tables.items():
            beside_extrap(name, data, options.extrap)
    else:
        print("\nExtra-P was not asked: name an interpreter that has it with --extrap.")


if __name__ == "__main__":
    main()
