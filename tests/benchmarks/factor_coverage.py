"""How often the intervals and verdicts of the factor model hold: simulated tables, real ones in part.

Used by `tests.benchmarks.factor_model`, which prints it, and by a short test. "Before" is t', functions as
given, and the asymptotic errors alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from desktop.core.factor_answers import choose, ratio_of_times
from desktop.core.factor_intervals import accused, interval, parameter_width, quantile, suspects
from desktop.core.factor_model import Kind, Measurements, ModelFit, fit_individual, fit_joint
from desktop.core.factor_response import respond

Floats = NDArray[np.float64]
Index = NDArray[np.int64]
TRUE = ("1/p", "1")
Interval = Callable[[ModelFit, int, int, Floats], tuple[Floats, Floats, Floats]]

#: Measured from the law's t': each a kind of noise, as runs of programs have it.
NOISES: dict[str, Callable[[np.random.Generator, Floats, Floats], Floats]] = {
    "constant in t'": lambda rng, y, p: (
        y + np.maximum(0.05 * np.median(y) * rng.normal(size=y.size), -0.9 * y)
    ),
    "constant in t": lambda rng, y, p: np.maximum(
        y + 0.005 * np.median(y) * p * rng.normal(size=y.size), 0.2 * y
    ),
    "relative, 5 %": lambda rng, y, p: y * (1 + 0.05 * rng.normal(size=y.size)),
    "relative, 15 %": lambda rng, y, p: y * (1 + np.maximum(0.15 * rng.normal(size=y.size), -0.8)),
    "log-normal, 10 %": lambda rng, y, p: y * np.exp(0.1 * rng.normal(size=y.size)),
    "heavy tails (t, 5 df)": lambda rng, y, p: y * np.exp(0.08 * rng.standard_t(5, size=y.size)),
    "delays (exponential)": lambda rng, y, p: y * (1 + 0.08 * rng.exponential(size=y.size)),
    "cells 15 % off the form": lambda rng, y, p: y * np.exp(0.05 * rng.normal(size=y.size)),
    "a part in p, hardly seen": lambda rng, y, p: y * np.exp(0.05 * rng.normal(size=y.size)),
}
#: Of these the form itself does not hold; of these the law has a third part, 3 % of the second at p = 3.
LACKING, LATE = "cells 15 % off the form", "a part in p, hardly seen"
#: Further p, in parts of the cell's largest; the p at which the times of two systems are compared.
FURTHER, TOGETHER = (2.0, 4.0), 16.0


@dataclass
class Tally:
    """Counts of what held, by name."""

    held: dict[str, list[int]] = field(default_factory=dict)

    def add(self, name: str, inside: NDArray[np.bool_] | bool) -> None:
        count = self.held.setdefault(name, [0, 0])
        count[0] += int(np.sum(inside))
        count[1] += int(np.size(inside))

    def share(self, name: str) -> float:
        return self.held[name][0] / self.held[name][1]


def asymptotic(fit: ModelFit, code: int, system: int, p: Floats) -> tuple[Floats, Floats, Floats]:
    """The interval before: of a new measurement if the model holds."""
    value, _, se = fit.predict(code, system, p)
    df = fit.df if fit.kind == "joint" else int(fit.points[code, system]) - len(fit.functions)
    half = quantile(df) * se
    return value, value - half, value + half


def fitted(data: Measurements, kind: Kind, functions: tuple[str, ...], now: bool) -> ModelFit:
    if now:
        return choose(data, kind, functions).fit
    return fit_joint(data, functions) if kind == "joint" else fit_individual(data, functions)


@dataclass(frozen=True, eq=False)
class Truth:
    """A table whose law is known."""

    code: Index
    system: Index
    p: Floats
    y: Floats
    speed: Floats
    law: Callable[[Index, Index, Floats], Floats]

    @classmethod
    def drawn(cls, rng: np.random.Generator, kind: str, codes: int = 4, systems: int = 4) -> Truth:
        cells = [(c, s, int(rng.integers(5, 9))) for c in range(codes) for s in range(systems)]
        code = np.concatenate([np.full(n, c) for c, _, n in cells])
        system = np.concatenate([np.full(n, s) for _, s, n in cells])
        p = np.concatenate([2.0 ** np.arange(n) for _, _, n in cells])
        w = np.array([[1.0], [0.03]]) * rng.lognormal(0, 0.4, (2, codes))
        v = rng.lognormal(0, 0.4, (2, systems))
        off = (
            np.exp(0.15 * rng.normal(size=(codes, systems))) if kind == LACKING else np.ones((codes, systems))
        )
        late = 0.01 if kind == LATE else 0.0

        def law(c: Index, s: Index, p: Floats) -> Floats:
            return off[c, s] * (w[0, c] * v[0, s] + w[1, c] * v[1, s] * p * (1.0 + late * p))

        return cls(code, system, p, law(code, system, p), v[:, :1] / v, law)

    def ratio(self, system: int, other: int, p: float) -> float:
        """Of the geometric means of the times of all codes."""
        codes = np.unique(self.code)
        at = np.full(codes.size, p)
        one, two = (np.log(self.law(codes, np.full(codes.size, s), at)).mean() for s in (system, other))
        return float(np.exp(one - two))

    def measured(self, y: Floats) -> Measurements:
        codes, systems = int(self.code.max()) + 1, int(self.system.max()) + 1
        names = tuple(f"c{k}" for k in range(codes)), tuple(f"s{k}" for k in range(systems))
        return Measurements(
            *names, self.code, self.system, self.p, y / self.p, np.ones(codes), np.ones(systems)
        )


def _held(
    fit: ModelFit, how: Interval, cells: tuple[Index, Index, Floats], y: Floats, tally: Tally, name: str
) -> None:
    """Whether measurements `y` (t') of codes and systems at p lie in the intervals of their cells."""
    for c, s in np.unique(np.stack(cells[:2], axis=1), axis=0).tolist():
        mine = (cells[0] == c) & (cells[1] == s)
        p = cells[2][mine]
        low, high = how(fit, c, s, p)[1:]
        said = np.isfinite(low) & np.isfinite(high)
        at = y[mine] / (p if fit.response.kind == "t" else 1.0)
        tally.add(name, ((low <= at) & (at <= high))[said])
        if not said.all():
            tally.add(f"{name}, nothing said", np.ones(int((~said).sum()), bool))


def simulate(kind: str, tables: int, now: bool, seed: int = 1) -> Tally:
    """Coverage of new measurements, cells, largest p, speeds; shares of tables with a row accused."""
    rng, tally = np.random.default_rng(seed), Tally()
    noise = NOISES[kind]
    how: Interval = interval if now else asymptotic
    for _ in range(tables):
        truth = Truth.drawn(rng, kind)
        y, again = noise(rng, truth.y, truth.p), noise(rng, truth.y, truth.p)
        c, s = int(rng.integers(4)), int(rng.integers(4))
        data = truth.measured(y)
        every = np.arange(y.size)
        cell = np.flatnonzero((truth.code == c) & (truth.system == s))
        end, rows = cell[-1:], (truth.code, truth.system, truth.p)
        fit = fitted(data.only(~np.isin(every, cell)), "joint", TRUE, now)
        _held(fit, how, _of(rows, cell), y[cell], tally, "a cell left out")
        for kind_of in ("joint", "individual"):
            part = data.only(~np.isin(every, end))
            _held(
                fitted(part, kind_of, TRUE, now), how, _of(rows, end), y[end], tally, f"largest p, {kind_of}"
            )  # type: ignore[arg-type]  # the two kinds
            fit = fitted(data, kind_of, TRUE, now)  # type: ignore[arg-type]  # the two kinds
            _held(fit, how, rows, again, tally, f"new measurement, {kind_of}")
            if now:
                over = ratio_of_times(fit, [(k, 0) for k in range(4)], [(k, 1) for k in range(4)], TOGETHER)
                tally.add(f"two systems, {kind_of}", over.low <= truth.ratio(0, 1, TOGETHER) <= over.high)
            tally.add(f"tables accused, {kind_of}", _accused(fit, now))
            if kind_of == "joint":
                width, df = parameter_width(fit) if now else (1.0, float(fit.df))
                half = quantile(df) * width * fit.speed_se
                known = np.isfinite(half)
                tally.add("speeds", (np.abs(fit.speed - truth.speed) <= half)[known])
    return tally


def beyond(kind: str, tables: int, seed: int = 77) -> Tally:
    """Coverage of a further measurement of every cell, at `FURTHER` its largest p."""
    rng, noise, tally = np.random.default_rng(seed), NOISES[kind], Tally()
    for _ in range(tables):
        truth = Truth.drawn(rng, kind)
        data = truth.measured(noise(rng, truth.y, truth.p))
        code, system = np.unique(np.stack([truth.code, truth.system]), axis=1)
        last = np.array([
            truth.p[(truth.code == c) & (truth.system == s)].max()
            for c, s in zip(code, system, strict=True)
        ])  # fmt: skip
        rows = np.tile(code, 2), np.tile(system, 2), np.concatenate([by * last for by in FURTHER])
        # Among the others, as some noise is relative to the median of the table.
        y = noise(rng, np.append(truth.y, truth.law(*rows)), np.append(truth.p, rows[2]))[truth.y.size :]
        for kind_of in ("joint", "individual"):
            fit = fitted(data, kind_of, TRUE, True)  # type: ignore[arg-type]  # the two kinds
            for k, by in enumerate(FURTHER):
                at = np.arange(k * code.size, (k + 1) * code.size)
                _held(fit, interval, _of(rows, at), y[at], tally, f"{by:.0f} p, {kind_of}")
    return tally


def _of(rows: tuple[Index, Index, Floats], chosen: Index) -> tuple[Index, Index, Floats]:
    return rows[0][chosen], rows[1][chosen], rows[2][chosen]


def _accused(fit: ModelFit, now: bool) -> bool:
    if now:
        return bool(accused(fit).size)
    limit = quantile(fit.df - 1, 1.0 - 0.05 / fit.n)
    return bool((np.abs(fit.studentized) > limit).any())


#: Kinds of noise in which rows are accused, beside those of `NOISES`.
HEAVY = "heavy tails (t, 3 df)"
#: By how much longer than its law one row takes.
OFF = (1.1, 1.2, 1.3, 1.5, 2.0)


def standing_out(data: Measurements, joint: bool, kind: str, tables: int, off: float = 1.0) -> Tally:
    """Tables with the codes, systems and p of `data`, and a law like it: in how many a row is accused or
    worth a look, or (`off` is not 1) that row of which the time is taken `off` times."""
    law, rng, tally = fit_joint(data, TRUE, "log"), np.random.default_rng(9), Tally()
    y = np.array([
        float(law.predict(c, s, np.array([p]))[0][0])
        for c, s, p in zip(data.code.tolist(), data.system.tolist(), data.p.tolist(), strict=True)
    ])  # fmt: skip
    noise = NOISES.get(kind, lambda rng, y, p: y * np.exp(0.05 * rng.standard_t(3, size=y.size)))
    response = "t'" if kind == "constant in t'" else "log"
    for _ in range(tables):
        made, row = noise(rng, y, data.p), int(rng.integers(y.size))
        made[row] *= off
        table = replace(data, time=made, transformed=True)
        try:
            fit = (
                fit_joint(table, TRUE, response, starts=0) if joint else fit_individual(table, TRUE, response)
            )
        except ValueError:
            continue
        for name, found in (("accused", accused(fit)), ("worth a look", suspects(fit))):
            tally.add(name, bool(found.size) if off == 1.0 else row in found)
    return tally


def of_code(data: Measurements) -> Measurements:
    """t' of a table, so that what is left out does not change its scale."""
    return Measurements(
        data.codes, data.systems, data.code, data.system, data.p, respond(data).y, transformed=True
    )


def left_out(data: Measurements, now: bool, functions: tuple[str, ...] = ()) -> Tally:
    """Of a real table: every cell, every cell's largest p by itself, and those of all cells at once.

    `functions` () : the best by AICc (before: 1/p and 1/sqrt(p)).
    """
    data, tally = of_code(data), Tally()
    how: Interval = interval if now else asymptotic
    chosen = functions or (() if now else ("1/p", "1/sqrt(p)"))
    every, rows = np.arange(len(data)), (data.code, data.system, data.p)
    cell = data.code * len(data.systems) + data.system
    for k in np.unique(cell):
        mine = np.flatnonzero(cell == k)
        try:
            fit = fitted(data.only(cell != k), "joint", chosen, now)
        except ValueError:
            continue
        _held(fit, how, _of(rows, mine), data.time[mine], tally, "a cell left out")
    for kind in ("joint", "individual"):
        ends = []
        for k in np.unique(cell):
            mine = np.flatnonzero(cell == k)
            if np.unique(data.p[mine]).size > 3:
                ends.append(mine[data.p[mine] == data.p[mine].max()])
        for end in ends:
            fit = fitted(data.only(~np.isin(every, end)), kind, chosen, now)  # type: ignore[arg-type]  # the two kinds
            _held(fit, how, _of(rows, end), data.time[end], tally, f"largest p, {kind}")
        out = np.concatenate(ends)
        fit = fitted(data.only(~np.isin(every, out)), kind, chosen, now)  # type: ignore[arg-type]  # the two kinds
        _held(fit, how, _of(rows, out), data.time[out], tally, f"largest p of all at once, {kind}")
    return tally
