"""Sentences, tables and charts of a model of the phases over p, for window, report and command."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from desktop.core.arrays import Flags, Floats
from desktop.core.factor_intervals import FARTHEST
from desktop.core.phase_model import EFFICIENCIES, Band, PhaseModel, Turn, band
from desktop.core.plain import JSON
from desktop.core.units import capital, digits, quantity
from desktop.data.chart import SERIES, Axis, Content, Series

if TYPE_CHECKING:
    from pandas import DataFrame

    from desktop.core.phase_systems import SystemsModel

Quantity = Literal["time", "share", "cost", "efficiency"]
#: Charts, with their titles.
QUANTITIES: dict[Quantity, str] = {
    "time": "Time (s)",
    "share": "Part of the run (%)",
    "cost": "Processors × time (proc·s)",
    "efficiency": "Efficiency (%)",
}
#: Columns of efficiencies in a table: of what, and which end of the interval.
_EFFICIENCY_COLUMNS = {
    name.replace(" ", "_") + ("" if which == "value" else f"_{which}"): (name, which)
    for name in EFFICIENCIES
    for which in ("value", "low", "high")
}
#: Points of a drawn curve.
_DRAWN = 65
#: Least probability of the likeliest functions before a sentence states a consequence of them.
_SURE = 0.5
_HALF = "it is more than half of the run"


def name_of(model: PhaseModel, phase: int) -> str:
    """``phase 3, solve``."""
    name = model.data.phases[phase]
    return f"phase {phase + 1}, {name}" if name else f"phase {phase + 1}"


def whole(p: float) -> str:
    """A number of processors."""
    return f"{p:,.0f}".replace(",", " ") if p >= 10 else f"{p:.2g}"


def turn_words(turn: Turn) -> str:
    """``p = 190 (95 %: 150 to 260)``."""
    if turn.high - turn.low < 0.02 * turn.p:
        return f"p = {whole(turn.p)}"
    high = f"to {whole(turn.high)}" if np.isfinite(turn.high) else "or later"
    return f"p = {whole(turn.p)} (95 %: {whole(turn.low)} {high})"


class _Statement(NamedTuple):
    """A statement about a phase or the run: stem, `value` (in which systems differ), `after`."""

    stem: str
    value: str = ""
    after: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.stem, self.value, self.after)))


class _Facts:
    """Facts from a model: the first phase to stop scaling, from which p phases are more than half of the run,
    the largest p considered, and where the run stops scaling."""

    def __init__(self, model: PhaseModel) -> None:
        self.model, self.first = model, model.first_to_stop
        turns = ((k, model.dominates(k)) for k in range(len(model.phases)))
        self.heads = {k: turn for k, turn in turns if turn is not None and np.isfinite(turn.p)}
        self.most = f"p = {whole(model.farthest)}, {FARTHEST:.0f} times the largest that was run"
        stop = model.run_stops
        self.stop = stop if stop is not None and np.isfinite(stop.p) else None

    @property
    def phases(self) -> list[int]:
        """Phases to be mentioned: the one that becomes most of the run limits it, and comes first."""
        of = {*self.heads} if self.first is None else {self.first, *self.heads}
        return sorted(
            of,
            key=lambda k: (
                k not in self.heads, k != self.first, self.heads[k].p if k in self.heads else 0.0,
            ),
        )  # fmt: skip

    def where(self, turn: Turn, everywhere: str) -> str:
        return everywhere if turn.p <= self.model.least else f"from {turn_words(turn)} on"

    def head(self, phase: int) -> str:
        if phase not in self.heads:
            return ""
        return self.where(self.heads[phase], "at every p that was run and beyond")


def sentences(fitted: PhaseModel | SystemsModel) -> tuple[str, ...]:
    """Which phase stops scaling first and what it keeps, which one dominates from which p on, and how far the
    run gets faster; with several systems first how much faster the others are than the first; where they
    differ, statements are made for each."""
    texts: list[str] = []
    if not isinstance(fitted, PhaseModel):
        texts += filter(None, (_against(fitted, s) for s in range(1, len(fitted.systems))))
    facts = [(name, _Facts(model)) for name, model in by_system(fitted)]
    still = {name: _Statement("goes on scaling as far as the runs say anything", f"({one.most})")
             for name, one in facts if one.first is None}  # fmt: skip
    if still:
        texts.append(f"Every phase {_each(still, facts)}.")
    for k in dict.fromkeys(k for _, one in facts for k in one.phases):
        model = facts[0][1].model
        comma = "," if model.data.phases[k] else ""
        sentence = (
            f"{capital(name_of(model, k))}{comma} {_each({n: _behaves(f, k) for n, f in facts}, facts)}"
        )
        head_of = {name: one.head(k) for name, one in facts if one.head(k)}
        heads = {name: _Statement(_HALF, value) for name, value in head_of.items()}
        if len({*head_of.values()}) == 1 and not next(iter(head_of.values())).startswith("at"):
            heads = {name: _Statement(value, _HALF) for name, value in head_of.items()}
        if heads:
            sentence += f"; {_each(heads, facts)}"
        first = {name: _Statement("It is the first to stop scaling") for name, one in facts if one.first == k}
        texts.append(f"{sentence}. {_each(first, facts)}." if first else f"{sentence}.")
    none = {name: _Statement("becomes more than half of the run", f"up to {one.most}")
            for name, one in facts if not one.heads}  # fmt: skip
    if none:
        texts.append(f"No phase {_each(none, facts)}.")
    stops = {name: _Statement("scales no more", one.where(one.stop, "at every p that was run"))
             for name, one in facts if one.stop is not None}  # fmt: skip
    if stops:
        texts.append(f"The run itself {_each(stops, facts)}: twice the processors save less than 29 % there.")
    return tuple(texts)


def _named(names: Sequence[str]) -> str:
    """``A, B and C``."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _each(by_system: dict[str, _Statement], every: Sequence[tuple[str, _Facts]]) -> str:
    """Statements about some of all systems, only once if they are equal."""
    first, *others = by_system.values()
    if all(one == first for one in others):
        on = "" if len(by_system) == len(every) else f" on {_named(list(by_system))}"
        return f"{first}{on}"
    if all(one.stem == first.stem and one.after == first.after for one in others):
        listed = ", ".join(f"on {name} {one.value}" for name, one in by_system.items())
        return " ".join(filter(None, (first.stem, listed, first.after)))
    return ", ".join(f"on {name} {one}" for name, one in by_system.items())


def _behaves(facts: _Facts, phase: int) -> _Statement:
    """The effect of more processors on a phase."""
    model = facts.model
    grows = model.grows(phase)
    if grows is not None and grows.chance > _SURE and np.isfinite(grows.p):
        return _Statement("takes longer with more processors", facts.where(grows, "at every p"))
    efficiency = model.lasting_part(phase)
    value, low, high = (float(x[0]) for x in (efficiency.value, efficiency.low, efficiency.high))
    if low > 0.005:
        between = "" if high - low < 0.02 else f" (95 %: {100 * low:.0f} to {min(100 * high, 100):.0f} %)"
        return _Statement("keeps", f"{100 * min(value, 1.0):.0f} %{between}", "of its time at any p")
    turn = model.stops(phase)
    if turn is None or not np.isfinite(turn.p):
        return _Statement("goes on scaling")
    return _Statement("scales no more", facts.where(turn, "at every p"))


def by_system(model: PhaseModel | SystemsModel) -> tuple[tuple[str, PhaseModel], ...]:
    """Models with the names of their systems, "" if all runs were on one."""
    return (("", model),) if isinstance(model, PhaseModel) else model.fitted


def _against(systems: SystemsModel, system: int) -> str:
    """How many times as fast a system is as the first, at the least and the largest p of both."""
    first, second = systems.models[0], systems.models[system]
    if first is None or second is None:
        return ""
    ends = sorted({max(first.least, second.least), min(first.largest, second.largest)})
    over = systems.ratio(0, system, np.array(ends))
    assert over is not None
    names = systems.systems[system], systems.systems[0]
    parts: list[str] = []
    pair: tuple[str, str] | None = None
    for p, value, low, high in zip(ends, over.value, over.low, over.high, strict=True):
        if low <= 1 <= high:
            parts.append(f"{names[0]} and {names[1]} are not told apart on {whole(p)} processors")
            pair = None
            continue
        if value < 1:
            value, low, high = 1 / value, 1 / high, 1 / low
            fast, slow = names[1], names[0]
        else:
            fast, slow = names
        between = f"(95 %: {digits(low, 3)} to {digits(high, 3)})"
        if pair == (fast, slow):
            parts[-1] += f" and {digits(value, 3)} times on {whole(p)} {between}"
            continue
        pair = fast, slow
        parts.append(
            f"{fast} is {digits(value, 3)} times as fast as {slow} on {whole(p)} processors {between}"
        )
    return "; ".join(parts) + "."


def warnings(fitted: PhaseModel | SystemsModel, at: Sequence[float] = ()) -> tuple[str, ...]:
    """Limits of the statements: few runs, p beyond `FARTHEST` times the largest; and what prevents systems
    from sharing a model."""
    lines: list[str] = []
    different = None
    if not isinstance(fitted, PhaseModel):
        lines += [] if fitted.joint else [f"{capital(fitted.problem)}."]
        lines += [
            f"{name} has runs on too few numbers of processors for a model by itself."
            for name, model in zip(fitted.systems, fitted.models, strict=True)
            if model is None
        ]
        different = fitted.different if fitted.joint else None
    every, of = by_system(fitted), dict[str, list[str]]()
    for name, model in every:
        count = int(np.unique(model.data.p).size) if different is None else different
        for one in _limits(model, at, count):
            of.setdefault(one, []).append(name)
    lines += [one if len(names) == len(every) else f"On {_named(names)}: {one}" for one, names in of.items()]
    return tuple(lines)


def speed_lines(model: PhaseModel | SystemsModel) -> list[str]:
    """A line for each system except the first: its speeds by functions of p."""
    if isinstance(model, PhaseModel) or not model.joint:
        return []
    rows = model.speeds()
    return [
        f"Speeds of {name} over those of {model.systems[0]} (95 %): "
        + "; ".join(
            f"{one['function']} {digits(one['value'], 3)} ({digits(one['low'], 3)} to "
            f"{digits(one['high'], 3)})"
            for one in rows if one["system"] == name
        )
        for name in model.systems[1:]
    ]  # fmt: skip


def _limits(model: PhaseModel, at: Sequence[float], different: int) -> Iterator[str]:
    """Limits for one system, whose runs have `different` numbers of processors."""
    if different < 5:
        yield f"{different} different p say little of a law: intervals are wide, five or more are better."
    far = [p for p in at if p > model.farthest]
    if far:
        yield (
            f"p = {', '.join(map(whole, far))} is more than {FARTHEST:.0f} times the largest p that was run "
            f"({whole(model.largest)}): no run says what happens there."
        )


def further(fitted: PhaseModel | SystemsModel) -> tuple[float, ...]:
    """Numbers of processors to predict at: those of the runs, and up to `FARTHEST` times the largest."""
    models = [model for _, model in by_system(fitted)]
    beyond = {model.largest * times for model in models for times in (2, 4, 8)}
    return tuple(sorted(beyond.union(*(model.data.p.tolist() for model in models))))


def predictions(model: PhaseModel, at: Sequence[float]) -> list[JSON]:
    """For every p: the run and each phase, with measurements (mean of runs; None) and efficiencies."""
    p = np.array(at, np.float64)
    phases, run = model.durations(p)
    alone, _ = model.durations(p, joint=False)
    rows = []
    bands = [band(run), *(band(phases[:, k]) for k in range(phases.shape[1]))]
    single = [band(alone[:, k]) for k in range(phases.shape[1])]
    parts = [model.efficiencies(p, None if k < 0 else k) for k in range(-1, phases.shape[1])]
    seen = [model.measured_efficiencies(None if k < 0 else k) for k in range(-1, phases.shape[1])]
    for i, one in enumerate(at):
        at_p = model.data.p == one

        def prediction(k: int, i: int = i, own: Flags = at_p) -> JSON:
            duration = model.data.duration.sum(axis=1) if k == 0 else model.data.duration[:, k - 1]
            return {
                **_plain(bands[k], i, "duration_s", "low_s", "high_s"),
                "measured_s": float(duration[own].mean()) if own.any() else None,
                "efficiency": {
                    name: _plain(band(values), i, "value", "low", "high")
                    | {"measured": float(seen[k][name][own].mean()) if own.any() else None}
                    for name, values in parts[k].items()
                },
            }

        rows.append({
            "p": float(one),
            **prediction(0),
            "phases": [
                {"phase": k, "name": model.data.phases[k - 1], **prediction(k)}
                | {"alone": _plain(single[k - 1], i, "duration_s", "low_s", "high_s")}
                | {"accounts": _accounts(model, k - 1, one)}
                for k in range(1, len(bands))
            ],
        })  # fmt: skip
    return rows


def _accounts(model: PhaseModel, phase: int, p: float) -> dict[str, float]:
    """Seconds of a processor in each account at p."""
    if not model.accounts:
        return {}
    parts = model.account_parts(phase, np.array([p]))[:, 0]
    return dict(zip(model.data.account_names, parts.tolist(), strict=True))


def _plain(of: Band, i: int, *names: str) -> dict[str, float]:
    return {name: float(values[i]) for name, values in zip(names, (of.value, of.low, of.high), strict=True)}


def laws(model: PhaseModel) -> list[JSON]:
    """For every phase: its likeliest functions with their weights (s), alternatives, where it stops scaling,
    and from which p on it is more than half of the run."""
    rows = []
    p = np.array([2.0 * model.largest])
    ahead, _ = model.durations(p)
    for k, law in enumerate(model.phases):
        turns = {"stops": model.stops(k), "dominates": model.dominates(k)}
        rows.append({
            "phase": k + 1,
            "name": model.data.phases[k],
            "functions": list(law.functions),
            "chance": law.chances[0][1],
            "rivals": [{"functions": list(f), "chance": c} for f, c in law.chances[1:]],
            "parameters": law.parameters(),
            "interval": {"p": float(p[0]), **_plain(band(ahead[:, k]), 0, "duration_s", "low_s", "high_s")},
            **{name: None if t is None else asdict(t) for name, t in turns.items()},
        })  # fmt: skip
    return rows


def table(fitted: PhaseModel | SystemsModel, at: Sequence[float]) -> DataFrame:
    """One row for the run and each phase at each p. Columns: with several systems first system (text); phase
    (text), p, predicted, low, high, measured (s), part (of the run's prediction), and for each of
    `EFFICIENCIES` (shares of 1) its name with _ for blanks, the same with _low and _high.
    """
    import pandas as pd

    rows = []
    for name, one in ((name, one) for name, model in by_system(fitted) for one in predictions(model, at)):
        for k, line in enumerate([one, *one["phases"]]):
            rows.append(({"system": name} if name else {}) | {
                "phase": "whole run" if k == 0 else f"{k} {line['name']}".rstrip(),
                "p": one["p"],
                "predicted": line["duration_s"],
                "low": line["low_s"],
                "high": line["high_s"],
                "measured": np.nan if line["measured_s"] is None else line["measured_s"],
                "part": line["duration_s"] / one["duration_s"],
                **{
                    key: line["efficiency"].get(of, {}).get(which, np.nan)
                    for key, (of, which) in _EFFICIENCY_COLUMNS.items()
                },
            })  # fmt: skip
    frame = pd.DataFrame(rows)
    frame.attrs["units"] = dict.fromkeys(("predicted", "low", "high", "measured"), "s") | dict.fromkeys(
        ("part", *_EFFICIENCY_COLUMNS), "1"
    )
    return frame


def law_lines(model: PhaseModel) -> list[str]:
    """A line for each phase: its law, and its probability."""
    return [
        f"{capital(name_of(model, k))}: {' + '.join(law.functions)} ({100 * law.chances[0][1]:.0f} %"
        + "".join(f"; {' + '.join(f)} {100 * c:.0f} %" for f, c in law.chances[1:3])
        + ")"
        for k, law in enumerate(model.phases)
    ]


# --- charts ---


def chart(model: PhaseModel, quantity: Quantity = "time", largest: float = 0.0) -> Content:
    """Phases stacked over p, predicted as areas and measured as marks on their upper edges; or efficiencies.
    `largest`: largest p drawn, by default four times that of the runs."""
    most = max(largest, model.largest * (1.0 if largest else 4.0))
    grid = np.unique(np.concatenate([np.geomspace(model.least, most, _DRAWN), model.data.p]))
    x = Axis("Processors p", log=True, doubling=True)
    title = QUANTITIES[quantity]
    beyond = ((model.largest, "largest p that was run"),) if most > model.largest else ()
    if quantity == "efficiency":
        return Content(
            x, Axis(title, zero=True), _efficiency_series(model, grid), verticals=beyond,
            title="Efficiency over p", empty="" if model.parts else "The traces do not tell processors apart",
        )  # fmt: skip
    return Content(
        x, Axis(title, zero=True, high=100.0 if quantity == "share" else None), _stack(model, grid, quantity),
        verticals=beyond, title="Phases over p", legend_rows=2,
    )  # fmt: skip


def _stack(model: PhaseModel, grid: Floats, of: Quantity) -> tuple[Series, ...]:
    phases, run = model.durations(grid)
    middle = np.median(phases, axis=0)
    whole_run = band(run)
    measured = model.data.duration
    order = np.argsort(model.data.p, kind="stable")
    p = model.data.p[order]
    measured = measured[order]
    scale = {"time": np.ones_like(grid), "cost": grid, "share": 100.0 / middle.sum(axis=0)}[of]
    factor = {"time": np.ones_like(p), "cost": p, "share": 100.0 / measured.sum(axis=1)}[of]
    upper, seen = np.cumsum(middle, axis=0) * scale, np.cumsum(measured, axis=1) * factor[:, None]
    series = []
    for k in range(middle.shape[0]):
        below = np.zeros_like(grid) if k == 0 else upper[k - 1]
        label = capital(name_of(model, k))
        series.append(
            Series("band", grid, upper[k], label, k % SERIES, low=below, high=upper[k], opacity=0.5)
        )
    for k in range(middle.shape[0]):
        names = tuple(
            f"{capital(name_of(model, k))} on {whole(one)}: {quantity(float(v), 's')} measured"
            for one, v in zip(p, measured[:, k], strict=True)
        )
        series.append(Series("line", grid, upper[k], "", k % SERIES, width=1.2))
        series.append(Series("points", p, seen[:, k], "", k % SERIES, names=names))
    if of != "share":
        for edge, label in ((whole_run.low, "95 % of new runs"), (whole_run.high, "")):
            series.append(Series("line", grid, edge * scale, label, "muted", dashed=True, width=1.2))
    return tuple(series)


def _efficiency_series(model: PhaseModel, grid: Floats) -> tuple[Series, ...]:
    draws, seen = model.efficiencies(grid), model.measured_efficiencies()
    series = []
    for k, name in enumerate(EFFICIENCIES):
        if name not in draws:
            continue
        at = band(100.0 * draws[name])
        label = (
            f"{capital(name)} efficiency"
            if name not in ("load balance", "computation scaling")
            else capital(name)
        )
        opacity = 1.0 if name == "global" else 0.07  # relative to the usual opacity
        series.append(Series("band", grid, at.value, "", k, low=at.low, high=at.high, opacity=opacity))
        series.append(Series("line", grid, at.value, label, k, dashed=k % 2 == 1))
        names = tuple(
            f"{label} on {whole(one)}: {100 * v:.1f} % measured"
            for one, v in zip(model.data.p, seen[name], strict=True)
        )
        series.append(Series("points", model.data.p, 100.0 * seen[name], "", k, names=names))
    return tuple(series)


def words(fitted: PhaseModel | SystemsModel, at: Sequence[float]) -> list[str]:
    """The model as text."""
    lines = [*sentences(fitted), *(f"Note: {one}" for one in warnings(fitted, at))]
    lines += speed_lines(fitted)
    for name, model in by_system(fitted):
        lines += ["", f"On {name}", *_words(model, at)] if name else ["", *_words(model, at)]
    return lines


def _words(model: PhaseModel, at: Sequence[float]) -> list[str]:
    """Laws and predictions."""
    lines = law_lines(model)
    for one in predictions(model, at):
        seen = "" if one["measured_s"] is None else f", measured {quantity(one['measured_s'], 's')}"
        lines += ["", (
            f"p = {whole(one['p'])}: {quantity(one['duration_s'], 's')} ({quantity(one['low_s'], 's')} to "
            f"{quantity(one['high_s'], 's')}){seen}"
        )]  # fmt: skip
        if one["efficiency"]:
            texts = (
                f"{name} {100 * at['value']:.1f} % ({100 * at['low']:.1f} to {100 * at['high']:.1f})"
                for name, at in one["efficiency"].items()
            )
            lines.append(f"  efficiency: {', '.join(texts)}")
        for part in one["phases"]:
            seen = "" if part["measured_s"] is None else f", measured {quantity(part['measured_s'], 's')}"
            lines.append(
                f"  {part['phase']} {part['name']:<24} {quantity(part['duration_s'], 's'):>10} "
                f"({quantity(part['low_s'], 's')} to {quantity(part['high_s'], 's')}){seen}"
            )
    return lines
