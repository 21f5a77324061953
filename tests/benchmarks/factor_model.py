"""The joint fit of the factor model beside general least squares, and single cells beside Extra-P.

    python -m tests.benchmarks.factor_model [--table RUNS.csv [--systems PEAKS.csv]] [--extrap PYTHON]
        [--tables N] [--only SECTION]

Prints Markdown. `--table`: measurements of your own, beside the bundled class A (constructed values).
`--tables`: how many are simulated for every kind of noise, to count how often intervals hold.
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
from desktop.core.factor_answers import choose, rank_pairs
from desktop.core.factor_intervals import interval
from desktop.core.factor_model import Kind, Measurements, fit_joint
from desktop.core.factor_response import respond
from desktop.core.normal_form import search_forms
from desktop.data.tables import measurements, read_table, with_values
from desktop.resources import example_table
from tests.benchmarks.factor_coverage import (
    HEAVY,
    NOISES,
    OFF,
    Truth,
    beyond,
    left_out,
    of_code,
    simulate,
    standing_out,
)
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

    def sparse(self, theta: Floats) -> Any:
        """The Jacobian by its entries: four a row."""
        from scipy.sparse import csr_array

        work, speed = self.parts(theta)
        w, r, two = work[self.code], speed[self.system], np.arange(2)
        entries = np.concatenate([-self.columns / r, self.columns * w / r**2], axis=1)
        at = np.concatenate(
            [2 * self.code[:, None] + two, 2 * (self.codes + self.system[:, None] - 1) + two], axis=1
        )
        kept = np.ones_like(at, bool)
        kept[self.system == 0, 2:] = False
        rows = np.broadcast_to(np.arange(self.y.size)[:, None], at.shape)
        return csr_array((entries[kept], (rows[kept], at[kept])), shape=(self.y.size, self.size))


def scipy_fit(raw: Raw, start: Floats, method: str, exact: bool, sparse: bool = False) -> float:
    from scipy.optimize import least_squares

    slopes: Any = raw.sparse if sparse else raw.jacobian if exact else "2-point"
    most = 200 if exact else 40 * raw.size
    # Sparse with the tolerances as they come: with narrower ones it goes on without end.
    narrow = {} if sparse else {"ftol": 1e-12, "xtol": 1e-12}
    found = least_squares(raw.residual, start, slopes, method=method, max_nfev=most, **narrow)
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
        ("scipy least_squares, trf, exact sparse Jacobian", lambda x: scipy_fit(raw, x, "trf", True, True)),
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


def beside_extrap(data: Measurements, python: str | None) -> dict[str, str]:
    """By model: mean error within, and mean and median error and coverage of the largest p, over the cells
    that Extra-P takes (5 different p) without their largest p, which all of them lose at once."""
    whole = of_code(data)
    y, p = whole.time, whole.p
    cells = cells_of(whole, 6)
    last = [mine[p[mine] == p[mine].max()] for mine in cells]
    rest = [mine[p[mine] < p[mine].max()] for mine in cells]
    keep = np.ones(len(whole), bool)
    keep[np.concatenate(last)] = False
    part = whole.only(keep)
    rows: dict[str, list[tuple[float, float, bool | None]]] = {}

    def note(method: str, k: int, inside: Floats, outside: Floats, held: bool | None) -> None:
        within = float(np.abs(inside / y[rest[k]] - 1).mean())
        rows.setdefault(method, []).append((within, float(np.abs(outside / y[last[k]] - 1).mean()), held))

    kinds: dict[Kind, str] = {
        "individual": "every cell by itself, best by AICc",
        "joint": "all cells together, best by AICc",
    }
    for kind, words in kinds.items():
        fit = choose(part, kind).fit
        for k, mine in enumerate(cells):
            c, s = int(whole.code[mine[0]]), int(whole.system[mine[0]])
            scale = (lambda at: p[at]) if fit.response.kind == "t" else (lambda at: 1.0)
            value, low, high = interval(fit, c, s, p[last[k]])
            held = bool(((low <= y[last[k]] / scale(last[k])) & (y[last[k]] / scale(last[k]) <= high)).all())
            note(words, k, fit.predict(c, s, p[rest[k]])[0] * scale(rest[k]), value * scale(last[k]), held)
    forms = search_forms(part)
    by_cell = {(form.code, form.system): form for form in forms.forms}
    for k, mine in enumerate(cells):
        form = by_cell[int(whole.code[mine[0]]), int(whole.system[mine[0]])]
        value, low, high = (part * p[last[k]] for part in forms.interval(form, p[last[k]]))
        held = bool(((low <= y[last[k]]) & (y[last[k]] <= high)).all())
        note("normal forms", k, form.value(p[rest[k]]) * p[rest[k]], value, held)
    for falling in (True, False) if python else ():
        # The time falls with p, t' = t p grows: both are asked of Extra-P, as its users would.
        scale_of = p if falling else np.ones(len(whole))
        jobs = [
            {
                "falling": falling,
                "p": p[rest[k]].tolist(),
                "value": (y / scale_of)[rest[k]].tolist(),
                "at": p[mine].tolist(),
            }
            for k, mine in enumerate(cells)
        ]
        assert python is not None
        for k, (mine, values) in enumerate(zip(cells, ask_extrap(python, jobs), strict=True)):
            said = values * scale_of[mine]
            held_out = np.isin(mine, last[k])
            note(f"Extra-P, {'time, negative exponents' if falling else 't p, default'}", k,
                 said[~held_out], said[held_out], None)  # fmt: skip
    made = {}
    for method, found in rows.items():
        within, beyond, held = zip(*found, strict=True)
        covered = "" if held[0] is None else f"; {sum(map(bool, held))} of {len(held)}"
        told = (f"{100 * x:.1f}" for x in (np.mean(within), np.mean(beyond), np.median(beyond)))
        made[method] = "{}; {} ({}) %".format(*told) + covered
    return made


def coverage(tables: dict[str, Measurements], count: int) -> None:
    """How often intervals and verdicts hold, as they were stated before and are now."""
    print(f"\n### Simulated, {count} tables of 4 x 4 cells each (stated 95 %, accused 5 %)\n")
    titles: list[str] = []
    for kind in NOISES:
        found = simulate(kind, count, now=True)
        if not titles:
            titles = [name for name in found.held if "nothing" not in name]
            print(f"| noise | {' | '.join(titles)} |\n|{'---|' * (len(titles) + 1)}")
        print(f"| {kind} | {' | '.join(f'{100 * found.share(name):.0f}' for name in titles)} |", flush=True)
    print("\n### A further measurement of every cell (stated 95 %)\n")
    for kind in NOISES:
        further = beyond(kind, count // 5)
        told = ", ".join(f"{name} {100 * further.share(name):.0f}" for name in further.held)
        print(f"- {kind}: {told}", flush=True)
    print("\n### Left out of tables: before / now (stated 95 %)\n\n| | " + " | ".join(tables) + " |")
    print(f"|{'---|' * (len(tables) + 1)}")
    found = [[left_out(data, new) for new in (False, True)] for data in tables.values()]
    for name in found[0][0].held:
        if "nothing" not in name:
            told = [
                " / ".join(f"{one.held[name][0]} of {one.held[name][1]}" for one in both) for both in found
            ]
            print(f"| {name} | {' | '.join(told)} |")


def accusations(name: str, data: Measurements, count: int) -> None:
    """Percent of sound tables in which a row is accused / worth a look; and how often one wrong row is."""
    print(f"\n### {name}: {count} tables, a row accused / worth a look\n")
    times = (1.0, *OFF)
    print(f"| noise | fit | none wrong | {' | '.join(f'{by:g} times' for by in OFF)} |\n|{'---|' * 8}")
    for kind in [*list(NOISES)[:-2], HEAVY]:
        for joint in (True, False):
            told = []
            for by in times:
                found = standing_out(data, joint, kind, count if by == 1.0 else max(count // 4, 1), by)
                told.append(" / ".join(f"{100 * found.share(one):.1f}" for one in found.held))
            print(f"| {kind} | {'joint' if joint else 'individual'} | {' | '.join(told)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--table", type=Path, help="measurements of your own")
    parser.add_argument("--systems", type=Path, help="their peak rates")
    parser.add_argument("--extrap", metavar="PYTHON", help="an interpreter that has Extra-P")
    parser.add_argument("--tables", type=int, default=200, help="simulated for every kind of noise")
    parser.add_argument("--only", choices=("", "speed", "coverage", "accused", "extrap"), default="")
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
    if options.only in ("", "speed"):
        for name, data in (tables | large).items():
            race(name, data)
        print("\n### All 28 choices of one or two functions\n")
        print("| data | fit | choices | time |\n|---|---|---|---|")
        for name, data in (tables | large).items():
            pairs(name, data)
    if options.only in ("", "coverage"):
        coverage(tables, options.tables)
    if options.only in ("", "accused"):
        for name, data in tables.items():
            accusations(name, data, options.tables)
    if options.only in ("", "extrap"):
        made = {f"synthetic, {kind}": _synthetic(kind) for kind in list(NOISES)[2:5]}
        found = {name: beside_extrap(data, options.extrap) for name, data in (tables | made).items()}
        print("\n### Mean error within; of the largest p left out (median); in its 95 % interval\n")
        print(f"| | {' | '.join(found)} |\n|{'---|' * (len(found) + 1)}")
        for method in next(iter(found.values())):
            print(f"| {method} | {' | '.join(of[method] for of in found.values())} |")
        if not options.extrap:
            print("\nExtra-P was not asked: name an interpreter that has it with --extrap.")


def _synthetic(kind: str) -> Measurements:
    rng = np.random.default_rng(17)
    truth = Truth.drawn(rng, kind)
    return truth.measured(NOISES[kind](rng, truth.y, truth.p))


if __name__ == "__main__":
    main()
