"""A pilot: one place at a time, with delays growing by factors of three, until the least called place shows.

It chooses the size of the delay before an experiment, by the first response. Its runs are not trials: they
are kept in ``pilot.csv``, which `desktop.data.runs.read_places` reads, and the journal stays unchanged. The
next run follows from the seed and the responses so far, so a stopped pilot is resumed by repeating its course
with the responses in that file instead of the program.
"""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from desktop.data.atomic import write_text
from desktop.data.experiment import Experiment, Factor, Journal
from desktop.data.runner import Runner, commands_of
from desktop.errors import ExperimentError
from desktop.progress import Progress

PILOT = "pilot.csv"
#: Number of sizes of the delay, and factor between them.
SIZES, STEP = 8, 3
#: Runs without a delay at the beginning, and of every place at each size.
_BASE, _EACH = 4, 2
#: Standard errors beyond which a place shows (NISTIR 5131).
_LIMIT = 3.0
#: Most time that the delay of one place may add to a run, in unperturbed runs.
LONGEST = 3
#: Last line of a finished pilot.
_DONE = "# done\n"


@dataclass(frozen=True)
class Sizing:
    """A place at the size at which it showed first; `delay` 0: at none. `effect`, `se` in the unit of the
    response. `own`: whether the description has a size for it alone."""

    factor: str
    delay: int
    effect: float
    se: float
    own: bool = False

    def adds(self, size: int) -> float:
        """Time added to a run, in proportion to the effect seen; 0 for a place that did not show."""
        return self.effect * size / self.delay if self.delay else 0.0


@dataclass(frozen=True)
class Pilot:
    """`base`: mean response without a delay. `first`, `largest`: first and last size tried."""

    base: float
    unit: str
    first: int
    largest: int
    places: tuple[Sizing, ...]

    @property
    def common(self) -> int:
        """The size for places that share one: at which the last of them shows, or the largest below at which
        none adds more than `LONGEST` unperturbed runs; 0 if there is none."""
        shared = [place for place in self.places if not place.own]
        size = max((place.delay for place in shared), default=0)
        while size and any(place.adds(size) > LONGEST * self.base > 0 for place in shared):
            size = size // STEP if size > self.first else 0
        return size

    @property
    def sizes(self) -> dict[str, int]:
        """The size of every place, for the description; empty if it would show nothing."""
        sizes = {p.factor: (p.delay or self.largest) if p.own else self.common for p in self.places}
        visible = any(place.delay and sizes[place.factor] for place in self.places)
        return {name: size for name, size in sizes.items() if size} if visible else {}

    @property
    def size(self) -> int:
        """The largest size of those places that show; 0 if there is none."""
        sizes = self.sizes
        return max((sizes.get(place.factor, 0) for place in self.places if place.delay), default=0)

    @property
    def reason(self) -> str:
        """The reason for these sizes, in words."""
        silent = [place.factor for place in self.places if not place.delay]
        words = f"{', '.join(silent)} did not show up to {self.largest} units" if silent else ""
        if len(silent) == len(self.places):
            return words
        last = max(self.places, key=lambda place: place.delay)
        unit = f" {self.unit}" if self.unit else ""
        text = (
            f"at {last.delay} units {last.factor} shows as the last: {last.effect:.3g} ± {last.se:.2g}{unit}"
            f", {100 * last.effect / self.base:.3g} % of the unperturbed run"
        )
        shared = [place for place in self.places if not place.own]
        needed = max((place.delay for place in shared), default=0)
        if self.common < needed:
            longest = max(shared, key=lambda place: place.adds(needed))
            late = [one.factor for one in shared if one.delay > self.common and one is not longest]
            hidden = ", ".join(late) or longest.factor
            most = f"no more than {self.common} units are" if self.common else "no size is"
            text += (
                f"; {longest.factor} would add about {longest.adds(needed):.3g}{unit} to a run at {needed} "
                f"units, so {most} to be taken: to see {hidden}, leave {longest.factor} out or give it a "
                "smaller delay of its own"
            )
        return "; ".join(filter(None, (text, words)))


def places_of(experiment: Experiment) -> tuple[int, ...]:
    """Factors that are delays with a size in the description.

    Raises
    ------
    ExperimentError : there is none.
    """
    common = experiment.program.delay is not None
    places = tuple(
        j
        for j, factor in enumerate(experiment.factors)
        if factor.has_own_delay or (common and factor.high.flags)
    )
    if not places:
        raise ExperimentError(
            "has no delay size that a pilot could change",
            file=experiment.folder,
            hint="write -DSPT_DELAY=100 into the flags, or {delay} into those of a factor; where no factor "
            "is a delay, run it without a pilot",
        )
    return places


def sized(experiment: Experiment, size: int) -> Experiment:
    """The experiment with this delay at every place."""
    program = experiment.program
    program = program if program.delay is None else program.with_delay(size)
    factors = tuple(replace(f, delay=size) if f.has_own_delay else f for f in experiment.factors)
    return replace(experiment, program=program, factors=factors)


def tuned(experiment: Experiment, pilot: Pilot) -> Experiment:
    """The experiment with the sizes found by the pilot: a place's own if the description has one."""
    sizes, described = pilot.sizes, sized(experiment, pilot.common) if pilot.common else experiment
    factors = tuple(
        replace(f, delay=sizes[f.name]) if f.has_own_delay and f.name in sizes else f
        for f in experiment.factors
    )
    return replace(described, factors=factors)


def sizes_of(experiment: Experiment) -> tuple[int, ...]:
    """From a ninth of the size in the description upwards, each three times the one before."""
    common = experiment.program.delay
    described = [] if common is None else [common]
    factors = [experiment.factors[j] for j in places_of(experiment)]
    described += [factor.delay for factor in factors if factor.has_own_delay]
    first = max(1, min(described) // STEP**2)
    return tuple(first * STEP**k for k in range(SIZES))


def pilot_commands(experiment: Experiment) -> tuple[str, ...]:
    """Every command that a pilot may run, for the user to agree to."""
    sizes = sizes_of(experiment)
    pairs = [(sized(experiment, sizes[0]), experiment.lowest)]
    pairs += [(sized(experiment, s), experiment.raised(j)) for s in sizes for j in places_of(experiment)]
    return commands_of(pairs)


def run_pilot(runner: Runner, progress: Progress | None = None) -> Pilot:
    """Run the pilot; every run is on disk before the next begins. A stopped pilot of the same description is
    resumed, a finished one is replaced.

    Places that showed are not delayed further, so that runs stay short.

    Raises
    ------
    RunError : something cannot be built or run. ExperimentError : no place has a size, trials are being run,
        or the runs so far were changed. Cancelled : by `progress`, or stopped.
    """
    progress = progress or Progress()
    experiment = runner.experiment
    places, sizes = places_of(experiment), sizes_of(experiment)
    generator = np.random.default_rng(experiment.plan.seed)
    base: list[float] = []
    runs: dict[tuple[int, int], list[float]] = {}
    effects: dict[int, Sizing] = {}
    with Journal(experiment), _runs_file(experiment).open("a", newline="", encoding="utf-8") as file:
        recorded = list(csv.reader((experiment.folder / PILOT).read_text(encoding="utf-8").splitlines()[2:]))
        writer = csv.writer(file, lineterminator="\n")

        def measure(size: int, place: int) -> float:
            number = len(base) + sum(map(len, runs.values())) + 1
            named = (experiment.names[place], size) if place >= 0 else ("", 0)
            head = [str(number), *map(str, named)]
            if number <= len(recorded):
                return _recorded(experiment, recorded[number - 1], head)
            title = (
                f"pilot: {experiment.names[place]} at {size} units" if place >= 0 else "pilot: unperturbed"
            )
            progress.step(len(effects), len(places), title)
            levels = experiment.raised(place)  # -1: none
            value = runner.one(sized(experiment, size), levels, progress)[0]
            writer.writerow([*head, repr(value)])
            file.flush()
            os.fsync(file.fileno())
            return value

        runner.measure_base(progress)
        for _ in range(experiment.program.warm_up):
            runner.one(sized(experiment, sizes[0]), experiment.lowest, progress)
        for _ in range(_BASE):
            base.append(measure(sizes[0], -1))
        largest = sizes[0]
        for largest in sizes:
            left = [j for j in places if j not in effects]
            for j in generator.permutation(np.repeat(left, _EACH)).tolist():
                runs.setdefault((j, largest), []).append(measure(largest, j))
            base.append(measure(sizes[0], -1))  # so that drift of the machine is no effect
            sigma = _sigma([base, *runs.values()])
            for j in left:
                effect = _difference(experiment.factors[j], largest, runs[j, largest], base, sigma)
                if effect.effect > _LIMIT * effect.se:
                    effects[j] = effect
            if len(effects) == len(places):
                break
        file.write(_DONE)
    every = tuple(
        effects.get(j, Sizing(factor.name, 0, math.nan, math.nan, factor.has_own_delay))
        for j, factor in enumerate(experiment.factors)
        if j in places
    )
    return Pilot(float(np.mean(base)), experiment.responses[0].unit or "", sizes[0], largest, every)


def _runs_file(experiment: Experiment) -> Path:
    """The file of runs: that of a stopped pilot of this description, without an unfinished line; else a new
    one."""
    path = experiment.folder / PILOT
    head = f"# {json.dumps(experiment.identity(), sort_keys=True)}\nrun,factor,delay,response\n"
    text = path.read_bytes().decode("utf-8", "replace") if path.exists() else ""
    goes_on = text.startswith(head) and not text.endswith(_DONE)
    write_text(path, text[: text.rfind("\n") + 1] if goes_on else head)
    return path


def _recorded(experiment: Experiment, row: Sequence[str], head: Sequence[str]) -> float:
    """The response of a run that was made before."""
    try:
        *setting, value = row
        if setting == list(head) and math.isfinite(float(value)):
            return float(value)
    except ValueError:
        pass
    raise ExperimentError(
        "is not as the pilot has written it",
        file=experiment.folder / PILOT,
        where=f"run {head[0]}",
        hint="move it away to begin anew",
    )


def _sigma(groups: Sequence[Sequence[float]]) -> float:
    """Standard deviation of one run, from all groups of equal runs."""
    ss = sum(float(((np.asarray(g) - np.mean(g)) ** 2).sum()) for g in groups)
    return math.sqrt(ss / sum(len(g) - 1 for g in groups))


def _difference(factor: Factor, size: int, y: Sequence[float], base: Sequence[float], sigma: float) -> Sizing:
    se = sigma * math.sqrt(1 / len(y) + 1 / len(base))
    return Sizing(factor.name, size, float(np.mean(y) - np.mean(base)), se, factor.has_own_delay)


def sizing_rows(pilot: Pilot) -> list[Mapping[str, object]]:
    """A row for every place; `take`: the size it should get."""
    sizes = pilot.sizes
    return [
        {
            "factor": place.factor,
            "take": sizes.get(place.factor),
            "delay": place.delay or None,
            "effect": place.effect,
            "se": place.se,
            "percent_of_unperturbed": 100 * place.effect / pilot.base if pilot.base else math.nan,
        }
        for place in pilot.places
    ]
