"""Runs that confirm a prediction: one setting and the unperturbed program in turn, and a verdict.

They are no trials: they are kept in ``confirmation.csv`` beside the journal, which stays as it is.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

from desktop.core.effect_limits import LEVEL, pooled_df, t_limit
from desktop.core.effects import Effects, analyse
from desktop.data.experiment import Experiment, Journal
from desktop.data.runner import Runner, commands_of
from desktop.errors import ExperimentError
from desktop.progress import Cancelled, Progress

CONFIRMATION = "confirmation.csv"
#: Runs of either setting, where nothing else is said.
RUNS = 5
#: Most that a variance is taken for larger than its estimate.
_LARGEST = 4.0
#: Level of what holds for everything that might have been chosen.
_ANY = 0.005

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


@dataclass(frozen=True)
class Prediction:
    """What a setting changes, its standard error and df. `ahead`: of each effect that was chosen for being
    among the largest, its part of the variance (with the effect's sign), and by how much it was that."""

    value: float
    se: float
    df: float
    ahead: tuple[tuple[float, float], ...] = ()
    count: int = 1


def predicted(found: Effects, levels: Sequence[float]) -> Prediction:
    """What a setting (of -1 and +1) changes against the unperturbed program, in the response as it is.

    All main effects and pairs are in it, as what is too small to stand out changes a single setting all the
    same; of larger interactions those that stand out. Of a pair that is not told apart from others, each is
    as likely to be what acts.

    Raises
    ------
    ValueError : there is no standard error to judge by.
    """
    found = analyse(found.trials, threshold="familywise")
    factors = found.trials.factors
    pairs = {":".join(factors[j] for j in pair): pair for pair in combinations(range(len(factors)), 2)}
    value = variance = 0.0
    for e in found.effects:
        words: list[tuple[int, ...]] = [pairs[name] for name in (e.term, *e.aliases) if name in pairs]
        if len(e.members) == 1 or (not words and e.significant):
            words = [e.members]
        at = [[levels[j] for j in word] for word in words]
        changes = np.array([(np.prod(one) - (-1.0) ** len(one)) / 2 for one in at])
        if changes.any():
            value += float(changes.mean()) * e.value
            of_word = max(e.value**2 - e.se**2, 0.0)
            variance += float((changes.mean() * e.se) ** 2 + changes.var() * of_word)
    df = min((float(e.df) for e in found.effects), default=math.nan)
    if not math.isfinite(variance):
        raise ValueError("the effects have no standard error, so nothing can be confirmed; run replicates")
    mains = sorted((e for e in found.effects if len(e.members) == 1), key=lambda e: -abs(e.value))
    count = sum(level > 0 for level in levels)
    chosen = mains[:count]
    if not all(levels[e.members[0]] > 0 for e in chosen):
        return Prediction(value, math.sqrt(variance), df)
    least, bar, more = max((abs(e.value) for e in mains[count:]), default=0.0), 0.0, 1.0
    if all(e.significant for e in chosen):
        bar = found.limit.value
        more = _understated(df, min((e.value / (bar * e.se)) ** 2 for e in chosen))
    ahead = tuple(
        (math.copysign(more * e.se**2, e.value), abs(e.value) - max(least, bar * e.se)) for e in chosen
    )
    return Prediction(value, math.sqrt(more * variance), df, ahead, math.comb(len(mains), count))


def _understated(df: float, most: float) -> float:
    """By how much a variance is larger than its estimate, which would not have been `most` times as large: an
    effect is named rather where the noise looks small. As much of the chance as ever is below it."""
    from scipy.special import chdtr

    usual, least, largest = float(chdtr(df, df)), 1.0, _LARGEST
    for _ in range(30):
        middle = (least + largest) / 2
        below = float(chdtr(df, df / middle) / chdtr(df, df * most / middle))
        least, largest = (middle, largest) if below > usual else (least, middle)
    return largest


def judged(
    setting: Sequence[str], prediction: Prediction, base: Sequence[float], on: Sequence[float]
) -> Confirmed:
    """The verdict on runs without and with the setting; two or more of each.

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
    both = np.array([*variances, prediction.se**2])
    all_df = pooled_df(both, np.array([*dfs, prediction.df or 1.0])) if both.any() else float(dfs.sum())
    difference = measured - expected
    limit = _limit(difference, math.hypot(se, prediction.se), all_df, prediction)
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


def _limit(difference: float, se: float, df: float, prediction: Prediction) -> float:
    """|difference| that is passed in 5 % where the prediction is right.

    An effect that was chosen for being the largest is, on average, predicted too large. With all else that is
    known of both held as it is, the difference could only have been so much larger before another effect had
    been chosen: it is judged among those (Lee, Sun, Sun and Taylor, Annals of Statistics 44, 2016).
    """
    from scipy.special import stdtr

    if not se > 0:
        return 0.0
    # Or by all that might have been chosen at once, which is narrower where two were nearly alike.
    level, bound = LEVEL, math.inf
    if prediction.ahead:
        level, bound = (LEVEL - _ANY) / (1 - _ANY), t_limit(df, _ANY / prediction.count)
        if abs(difference) > bound * se:
            return bound * se
    low, high = -bound, bound
    for part, gap in prediction.ahead:
        at = (difference + gap * se**2 / part) / se if part else math.inf
        low, high = (low, min(high, at)) if part >= 0 else (max(low, at), high)
    inside = float(stdtr(df, high) - stdtr(df, low))
    if not inside > 0:
        return abs(difference)
    least, most = 0.0, min(bound, t_limit(df, level * inside))
    for _ in range(60):
        middle = (least + most) / 2
        within = max(float(stdtr(df, min(middle, high)) - stdtr(df, max(-middle, low))), 0.0)
        least, most = (middle, most) if within < (1 - level) * inside else (least, middle)
    return most * se


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
