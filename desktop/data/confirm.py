"""Runs that confirm a prediction: one setting and the unperturbed program alternately, and a verdict.

They are not trials: they are kept in ``confirmation.csv`` beside the journal, which stays unchanged.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np

from desktop.core.arrays import Flags, Floats
from desktop.core.effect_limits import LEVEL, pooled_df, t_limit
from desktop.core.effects import Effects, analyse
from desktop.data.experiment import Experiment, Journal
from desktop.data.runner import Runner, commands_of
from desktop.progress import Progress

CONFIRMATION = "confirmation.csv"
#: Default number of runs of each setting.
RUNS = 5
#: Level of a bound for everything that might have been chosen.
_ANY = 0.005
#: Largest factor by which a variance is corrected above its estimate.
_LARGEST = 4.0
#: Grid of sizes of a difference, of either sign, for integrating its distribution.
_POINTS = 2001

Verdict = Literal["confirmed", "not confirmed", "undecided"]


@dataclass(frozen=True)
class Confirmed:
    """`predicted`: the change by the setting according to the effects; `measured`: according to these runs;
    each with standard error and degrees of freedom. `low`, `high`: 95 % interval of what was measured.
    `difference`: measured minus predicted; in 95 % of cases within `limit` if the prediction is right."""

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
    raised = list(names)
    unknown = next((name for name in raised if name not in experiment.names), None)
    if unknown is not None:
        raise ValueError(f"there is no factor {unknown!r}; there are {', '.join(experiment.names)}")
    return experiment.raised(*map(experiment.names.index, raised))


def confirm_commands(experiment: Experiment, levels: Sequence[int]) -> tuple[str, ...]:
    """The commands to be run, for the user to agree to."""
    return commands_of([(experiment, experiment.lowest), (experiment, levels)])


@dataclass(frozen=True)
class ChosenEffect:
    """An effect chosen for its `size`: its share of the variance of the prediction (negative if a larger
    effect predicts less), the largest effect that was not chosen, and the `limit` it had to exceed to be
    named (0: it did not)."""

    size: float
    part: float
    least: float
    limit: float


@dataclass(frozen=True)
class Prediction:
    """The change by a setting, its standard error and df; `chosen` among `count` sets of as many effects.
    `noise`: variance of one trial, NaN if unknown."""

    value: float
    se: float
    df: float
    chosen: tuple[ChosenEffect, ...] = ()
    count: int = 1
    noise: float = math.nan


def predicted(effects: Effects, levels: Sequence[float]) -> Prediction:
    """The change by a setting (of -1 and +1) from the unperturbed program, in the response as measured.

    All main effects and two-factor interactions are included, as even those too small to stand out change a
    single setting; of higher interactions only those that stand out. Among aliased interactions each is
    equally likely to be the active one.

    Raises
    ------
    ValueError : there is no standard error.
    """
    effects = analyse(effects.trials, threshold="familywise")
    factors = effects.trials.factors
    pairs = {":".join(factors[j] for j in pair): pair for pair in combinations(range(len(factors)), 2)}
    value = variance = 0.0
    bar, picked = effects.limit.value, list[ChosenEffect]()
    for e in effects.effects:
        words: list[tuple[int, ...]] = [pairs[name] for name in (e.term, *e.aliases) if name in pairs]
        if len(e.members) == 1 or (not words and e.significant):
            words = [e.members]
        larger = len(words) == 1 and len(words[0]) > 2
        at = [[levels[j] for j in word] for word in words]
        changes = np.array([(np.prod(one) - (-1.0) ** len(one)) / 2 for one in at])
        if changes.any():
            value += float(changes.mean()) * e.value
            of_word = max(e.value**2 - e.se**2, 0.0)
            variance += float((changes.mean() * e.se) ** 2 + changes.var() * of_word)
            if larger:  # it would not be here if it had not stood out
                part = math.copysign(e.se**2, e.value * changes.mean())
                picked.append(ChosenEffect(abs(e.value), part, 0.0, bar * float(e.se)))
    df = min((float(e.df) for e in effects.effects), default=math.nan)
    if not math.isfinite(variance):
        raise ValueError("the effects have no standard error, so nothing can be confirmed; run replicates")
    mains = sorted((e for e in effects.effects if len(e.members) == 1), key=lambda e: -abs(e.value))
    count = sum(level > 0 for level in levels)
    first, sets = mains[:count], 1
    if all(levels[e.members[0]] > 0 for e in first):
        least, sets = max((abs(e.value) for e in mains[count:]), default=0.0), math.comb(len(mains), count)
        named = bar if all(e.significant for e in first) else 0.0
        picked += [
            ChosenEffect(abs(e.value), math.copysign(e.se**2, e.value), least, named * float(e.se))
            for e in first
        ]
    return Prediction(value, math.sqrt(variance), df, tuple(picked), sets, effects.variance)


def judged(
    setting: Sequence[str], prediction: Prediction, base: Sequence[float], on: Sequence[float]
) -> Confirmed:
    """The verdict from runs without and with the setting; two or more of each.

    Raises
    ------
    ValueError : fewer than two runs of either.
    """
    if min(len(base), len(on)) < 2:
        raise ValueError("a verdict needs two runs of either setting")
    expected = prediction.value
    a, b = np.asarray(base, np.float64), np.asarray(on, np.float64)
    variances = np.array([a.var(ddof=1) / a.size, b.var(ddof=1) / b.size])
    dfs = np.array([a.size - 1.0, b.size - 1.0])
    measured, se = float(b.mean() - a.mean()), float(np.sqrt(variances.sum()))
    df = pooled_df(variances, dfs) if variances.any() else float(dfs.sum())
    margin = t_limit(df) * se
    more = _understated(prediction, (a, b))
    both = np.array([*variances, more * prediction.se**2])
    all_df = pooled_df(both, np.array([*dfs, prediction.df or 1.0])) if both.any() else float(dfs.sum())
    difference = measured - expected
    effects = tuple(replace(one, part=more * one.part) for one in prediction.chosen)
    limit = _limit(difference, float(np.sqrt(both.sum())), all_df, effects, prediction.count)
    low, high = measured - margin, measured + margin
    verdict: Verdict
    if abs(difference) > limit:
        verdict, reason = "not confirmed", "it differs from the prediction by more than both errors explain"
    elif low <= 0 <= high and expected != 0:
        verdict, reason = "undecided", "no change is as likely as the predicted one, make more runs"
    else:
        verdict, reason = "confirmed", "the prediction lies within the error of these runs"
    return Confirmed(
        tuple(setting), len(on), expected, prediction.se, measured, se, low, high, difference, limit,
        verdict, reason,
    )  # fmt: skip


def _understated(prediction: Prediction, runs: Sequence[Floats]) -> float:
    """The factor by which the variance of the prediction exceeds its estimate. Effects are more likely to be
    named when the noise looks small, so the variance of its trials is taken to be at least that of all trials
    and confirmation runs together."""
    if not (prediction.noise > 0 and any(one.limit > 0 for one in prediction.chosen)):
        return 1.0
    squares = prediction.df * prediction.noise + sum(float(((y - y.mean()) ** 2).sum()) for y in runs)
    df = prediction.df + sum(y.size - 1 for y in runs)
    return min(max(squares / df / prediction.noise, 1.0), _LARGEST)


def _limit(difference: float, se: float, df: float, effects: Sequence[ChosenEffect], count: int) -> float:
    """The |difference| that is exceeded in at most 5 % of cases if the prediction is right.

    An effect chosen as the largest is, on average, predicted too large, and one was more likely to be named
    when the noise looked small. With everything else that is known of both fixed (the mean of prediction and
    measurement, and the sum of squares of all noise), another difference means another effect and another
    noise: it is compared with those for which the same effects would have been chosen and named (Fithian, Sun
    and Taylor, Optimal inference after model selection, 2014; Lee, Sun, Sun and Taylor, Annals of Statistics
    44, 2016).
    """
    from scipy.special import stdtr

    if not se > 0:
        return 0.0
    if not effects:
        return t_limit(df) * se
    edge = np.sinh(np.linspace(0.0, math.asinh(t_limit(df, 1e-12)), _POINTS))
    chance, df = -np.diff(stdtr(df, -edge)), min(df, 1e9)
    size = np.append((edge[1:] + edge[:-1]) / 2, (edge[1:] + edge[:-1]) / -2)
    noise = np.sqrt((df + (difference / se) ** 2) / (df + size**2))
    named, first = np.ones((2, size.size), bool)
    for one in effects:
        adjusted = one.size - one.part / se**2 * (size * noise * se - difference)
        named &= adjusted > one.limit * noise
        first &= adjusted > one.least

    def passed(level: float, used: Flags) -> float:
        within = np.cumsum(chance * used.reshape(2, -1).sum(0))
        return float(np.interp((1 - level) * within[-1], within, edge[1:])) if within[-1] > 0 else math.inf

    # Or by everything that might have been chosen at once, which is narrower if two were nearly equal.
    bound = passed(_ANY / count, named)
    if abs(difference) > bound * se:
        return bound * se
    alike = named & first & (np.abs(size) <= bound)
    return min(passed((LEVEL - _ANY) / (1 - _ANY), alike), bound) * se


def run_confirmation(
    runner: Runner,
    effects: Effects,
    names: Sequence[str],
    runs: int = RUNS,
    response: str | None = None,
    progress: Progress | None = None,
) -> Confirmed:
    """Run both settings alternately, each pair in random order; every run is on disk before the next.

    Raises
    ------
    RunError : something cannot be built or run. ExperimentError : trials are being run. ValueError : there is
    no such factor or no error to judge by. Cancelled : by `progress`, or stopped.
    """
    progress = progress or Progress()
    experiment = runner.experiment
    levels, lowest = setting_of(experiment, names), experiment.lowest
    if levels == lowest:
        raise ValueError("the setting is the unperturbed program itself; name a factor")
    at = experiment.index_of(response)
    prediction = predicted(effects, [float(v) if v > 0 else -1.0 for v in levels])
    measured: Mapping[str, list[float]] = {"unperturbed": [], "setting": []}
    path = experiment.folder / CONFIRMATION
    generator = np.random.default_rng((experiment.plan.seed, 1))
    with Journal(experiment), path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if not file.tell():
            writer.writerow(["setting", *(one.name for one in experiment.responses)])
        runner.measure_base(progress)
        for _ in range(experiment.program.warm_up):
            runner.one(experiment, lowest, progress)
        for done in range(runs):
            for kind in generator.permutation(["unperturbed", "setting"]).tolist():
                progress.step(done, runs, f"confirming: run {done + 1} of {runs}, {kind}")
                values = runner.one(experiment, lowest if kind == "unperturbed" else levels, progress)
                writer.writerow(["" if kind == "unperturbed" else " ".join(names), *map(repr, values)])
                file.flush()
                os.fsync(file.fileno())
                measured[kind].append(values[at])
    return judged(names, prediction, measured["unperturbed"], measured["setting"])


def describe(one: Confirmed, unit: str) -> str:
    """The result as a sentence."""
    from desktop.core.units import common, margin, scaled

    of = common((one.measured,), unit)

    def number(value: float) -> str:
        return scaled(value, of, 3)

    return (
        f"{one.verdict}: {' and '.join(one.setting)} should change the response by "
        f"{margin(one.predicted, one.predicted_se, unit, 3)}, {one.runs} runs of either give "
        f"{number(one.measured)} (95 %: {number(one.low)} to {number(one.high)}); {one.reason}"
    )
