"""Runs that confirm a prediction: one setting and the unperturbed program in turn, and a verdict.

They are no trials: they are kept in ``confirmation.csv`` beside the journal, which stays as it is.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from desktop.core.effect_limits import pooled_df, t_limit
from desktop.core.effects import Effects
from desktop.data.experiment import Experiment, Journal
from desktop.data.runner import Runner, commands_of
from desktop.errors import ExperimentError
from desktop.progress import Cancelled, Progress

CONFIRMATION = "confirmation.csv"
#: Runs of either setting, where nothing else is said.
RUNS = 5

Verdict = Literal["confirmed", "not confirmed", "undecided"]


@dataclass(frozen=True)
class Confirmed:
    """`predicted`: what the setting changes by the effects; `measured`: by these runs; each with its standard
    error and degrees of freedom. `low`, `high`: 95 % interval of what was measured. `difference`: measured
    less predicted, of which 95 % are within `limit` where the prediction is right."""

    setting: tuple[str, ...]
    runs: int
    predicted: float
    predicted_se: float
    measured: float
    measured_se: float
    low: float
    high: float
    difference: float
    limit: float
    verdict: Verdict
    reason: str


def setting_of(experiment: Experiment, names: Iterable[str]) -> tuple[int, ...]:
    """Levels with these factors at +, all others at their lowest.

    Raises
    ------
    ValueError : there is no such factor.
    """
    wanted = list(names)
    unknown = next((name for name in wanted if name not in experiment.names), None)
    if unknown is not None:
        raise ValueError(f"there is no factor {unknown!r}; there are {', '.join(experiment.names)}")
    lowest = _lowest(experiment)
    return tuple(1 if name in wanted else low for name, low in zip(experiment.names, lowest, strict=True))


def confirm_commands(experiment: Experiment, levels: Sequence[int]) -> tuple[str, ...]:
    """What is executed, for the user to agree to."""
    return commands_of([(experiment, _lowest(experiment)), (experiment, levels)])


def predicted(found: Effects, levels: Sequence[float]) -> tuple[float, float, float]:
    """What a setting changes against the unperturbed program by the main effects of what it delays, the
    effects that stand out and those below them, its standard error and df.

    Raises
    ------
    ValueError : there is no standard error to judge by.
    """
    if found.transform != 1:
        raise ValueError("a confirmation is of the response as it is; take its power off first")
    marked = [e for e in found.effects if e.significant]
    mains = {(j,) for e in marked for j in e.members} | {(j,) for j, at in enumerate(levels) if at > 0}
    kept = [e for e in found.effects if e.significant or e.members in mains]
    value = variance = 0.0
    for e in kept:
        at = [levels[j] for j in e.members]
        change = (float(np.prod(at)) - (-1.0) ** len(at)) / 2
        value += change * e.value
        variance += (change * e.se) ** 2
    df = min((float(e.df) for e in kept), default=math.nan)
    if not math.isfinite(variance):
        raise ValueError("the effects have no standard error, so nothing can be confirmed; run replicates")
    return value, math.sqrt(variance), df


def judged(
    setting: Sequence[str], prediction: tuple[float, float, float], base: Sequence[float], on: Sequence[float]
) -> Confirmed:
    """The verdict on runs without and with the setting; two or more of each.

    Raises
    ------
    ValueError : fewer than two runs of either.
    """
    if min(len(base), len(on)) < 2:
        raise ValueError("a verdict needs two runs of either setting")
    expected, expected_se, expected_df = prediction
    a, b = np.asarray(base, np.float64), np.asarray(on, np.float64)
    variances = np.array([a.var(ddof=1) / a.size, b.var(ddof=1) / b.size])
    dfs = np.array([a.size - 1.0, b.size - 1.0])
    measured, se = float(b.mean() - a.mean()), float(np.sqrt(variances.sum()))
    df = pooled_df(variances, dfs) if variances.any() else float(dfs.sum())
    margin = t_limit(df) * se
    both = np.array([*variances, expected_se**2])
    all_df = pooled_df(both, np.array([*dfs, expected_df or 1.0])) if both.any() else float(dfs.sum())
    limit = t_limit(all_df) * math.hypot(se, expected_se)
    difference = measured - expected
    low, high = measured - margin, measured + margin
    verdict: Verdict
    if abs(difference) > limit:
        verdict, reason = "not confirmed", "it differs from the prediction by more than both errors explain"
    elif low <= 0 <= high and expected != 0:
        verdict, reason = "undecided", "no change is as likely as the predicted one, make more runs"
    else:
        verdict, reason = "confirmed", "the prediction lies within the error of these runs"
    return Confirmed(
        tuple(setting), len(on), expected, expected_se, measured, se, low, high, difference, limit,
        verdict, reason,
    )  # fmt: skip


def run_confirmation(
    runner: Runner,
    found: Effects,
    names: Sequence[str],
    runs: int = RUNS,
    response: str | None = None,
    progress: Progress | None = None,
    each: Callable[[str, float], None] | None = None,
) -> Confirmed:
    """Run both settings in turn, the order of each pair drawn; every run is on the disk before the next.

    Raises
    ------
    RunError : something cannot be built or run. ExperimentError : trials are being run. ValueError : there is
    no such factor or no error to judge by. Cancelled : by `progress`, or stopped.
    """
    progress = progress or Progress()
    experiment = runner.experiment
    levels, lowest = setting_of(experiment, names), _lowest(experiment)
    if levels == lowest:
        raise ValueError("the setting is the unperturbed program itself; name a factor")
    known = [r.name for r in experiment.responses]
    if response is not None and response not in known:
        raise ExperimentError(f"has no response {response!r}", file=experiment.folder)
    at = known.index(response) if response is not None else 0
    prediction = predicted(found, [float(v) if v > 0 else -1.0 for v in levels])
    taken: Mapping[str, list[float]] = {"unperturbed": [], "setting": []}
    path = experiment.folder / CONFIRMATION
    generator = np.random.default_rng((experiment.plan.seed, 1))
    with Journal(experiment), path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if not file.tell():
            writer.writerow(["setting", *known])
        runner.measure_base(progress)
        for _ in range(experiment.program.warm_up):
            runner.one(experiment, lowest, progress)
        for done in range(runs):
            for kind in generator.permutation(["unperturbed", "setting"]).tolist():
                progress.step(done, runs, f"confirming: run {done + 1} of {runs}, {kind}")
                values = runner.one(experiment, lowest if kind == "unperturbed" else levels, progress)
                if values is None:
                    raise Cancelled
                writer.writerow(["" if kind == "unperturbed" else " ".join(names), *map(repr, values)])
                file.flush()
                os.fsync(file.fileno())
                taken[kind].append(values[at])
                if each is not None:
                    each(kind, values[at])
    return judged(names, prediction, taken["unperturbed"], taken["setting"])


def _lowest(experiment: Experiment) -> tuple[int, ...]:
    return tuple(experiment.design().levels.min(axis=0).tolist())


def told(one: Confirmed, unit: str) -> str:
    """As a sentence."""
    from desktop.core.units import common, margin, scaled

    of = common((one.measured,), unit)

    def number(value: float) -> str:
        return scaled(value, of, 3)

    return (
        f"{one.verdict}: {' and '.join(one.setting)} should change the response by "
        f"{margin(one.predicted, one.predicted_se, unit, 3)}, {one.runs} runs of either give "
        f"{number(one.measured)} (95 %: {number(one.low)} to {number(one.high)}); {one.reason}"
    )
