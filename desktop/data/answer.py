"""The findings of an experiment in words: what the run time depends on, what not, and what to do next.

Effects are named beyond a limit that one or more of all effects exceed in 5 % of the experiments without any
real effect; the others get an upper bound that holds for all of them together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from desktop.core.effect_limits import familywise_limit
from desktop.core.effects import Effect, Effects
from desktop.core.units import digits, margin, quantity
from desktop.data.experiment import JOURNAL, Experiment, Factor, read_journal, state_of
from desktop.data.reading import head
from desktop.errors import ExperimentError

if TYPE_CHECKING:
    from desktop.data.runs import RunTable

#: Delay lengths for which costs are given: the longest whose cost is at most so many runs.
_MANY = 100
_LENGTHS = ((1.0, "1 s"), (1e-3, "1 ms"), (1e-6, "1 µs"), (1e-9, "1 ns"))
#: Names of responses that imply seconds without a unit.
_SECONDS = ("wall", "cpu", "seconds")
#: Largest factor by which longer delays are proposed at once.
_LONGER = 100


@dataclass(frozen=True)
class SptAnswer:
    """`sentences`: the first is what the response depends on. `named`: terms beyond the limit, the largest
    first. `bound`: all other main effects are between -bound and bound, with 95 % for all together (NaN if
    unknown). `next`: what to do, "" if there is nothing left."""

    sentences: tuple[str, ...]
    named: tuple[str, ...]
    bound: float
    next: str

    @property
    def text(self) -> str:
        """All sentences as a paragraph."""
        last = (f"Next: {self.next}.",) if self.next else ()
        return " ".join((*self.sentences, *last))


def answer(
    effects: Effects,
    unit: str = "",
    factors: Mapping[str, Factor] | None = None,
    delays_s: Mapping[str, float] | None = None,
    response: str = "the response",
    waiting: int = 0,
) -> SptAnswer:
    """The answer from effects on a response in `unit`. `factors`: by name. `delays_s`: seconds of their
    delays. `waiting`: number of trials planned but not run."""
    factors, delays_s = factors or {}, delays_s or {}
    mains = [e for e in effects.effects if len(e.members) == 1 and e.estimable]
    limits = {e.term: _limit(effects, e) for e in effects.effects}
    if not mains or not any(math.isfinite(limits[e.term]) for e in mains):
        nothing_yet = (
            f"Nothing can be said of {response} yet: there is no standard error to judge the effects by."
        )
        step = (
            f"run the {waiting} trials that are left" if waiting else "run replicates, two of each treatment"
        )
        return SptAnswer((nothing_yet,), (), math.nan, step)
    beyond = [e for e in effects.effects if abs(e.value) > limits[e.term]]
    named = sorted((e for e in mains if e in beyond), key=lambda e: -abs(e.value))
    others = [e for e in mains if e not in named]
    # All intervals of the family contain the true values at once with 95 %.
    bound = max((abs(e.value) + limits[e.term] for e in others), default=math.nan)
    subject = _subject(response)
    sentences = []
    for place, e in enumerate(named):
        place_words, cost = _place(e, factors), _cost(effects, e, unit, factors, delays_s)
        if e.value < 0 and _is_delay(e.term, factors):
            sentences.append(f"{place_words} makes it faster when it is delayed: {cost}.")
        elif place == 0:
            most = " most" if len(named) > 1 else ""
            sentences.append(f"{place_words} is what {subject} depends on{most}: {cost}.")
        else:
            sentences.append(f"Then {place_words}: {cost}.")
    pairs = sorted((e for e in beyond if len(e.members) > 1), key=lambda e: -abs(e.value))
    if pairs:
        names = " and ".join(effects.trials.factors[j] for j in pairs[0].members)
        more = f" ({len(pairs)} interactions stand out)" if len(pairs) > 1 else ""
        sentences.append(f"{names} depend on each other: {_amount(effects, pairs[0], unit)}{more}.")
    if others:
        start = "Nothing else" if named else f"Nothing that was tried changes {subject}"
        above = f"above {_number(effects, bound, unit)} (95 %)"
        sentences.append(f"{start} {above}." if named else f"{start} by more than {above[6:]}.")
    return SptAnswer(
        tuple(sentences),
        tuple(e.term for e in named),
        bound,
        _next(effects, named, others, bound, factors, waiting),
    )


@dataclass(frozen=True, eq=False)
class MeasuredResponse:
    """What effects are of: a response of an experiment or of a table of runs, its unit ("" if unknown), and
    the factors that are described, by name. `experiment`: None for runs that were made elsewhere."""

    response: str = "response"
    unit: str = ""
    factors: Mapping[str, Factor] = field(default_factory=dict)
    experiment: Experiment | None = None

    @classmethod
    def of(cls, source: Experiment | RunTable, response: str | None = None) -> MeasuredResponse:
        """A response of an experiment (None: its first), or the response of a table."""
        if not isinstance(source, Experiment):
            # Replicates in columns of their own are named together.
            name = source.response.split(" ")[0]
            return cls(name, unit_of(name), source.settings)
        name = response or source.responses[0].name
        unit = next((r.unit or "" for r in source.responses if r.name == name), unit_of(name))
        return cls(name, unit, {one.name: one for one in source.factors}, source)

    def effect_unit(self, effects: Effects) -> str:
        """Unit of effects, which are of the response as it was analysed."""
        return "ln" if effects.transform == 0 else self.unit

    def answer(self, effects: Effects) -> SptAnswer:
        """The answer from its effects; for an experiment with the delays measured here, and the trials that
        are left."""
        delays_s, waiting, experiment = dict[str, float](), 0, self.experiment
        if experiment is not None:
            delays_s = delays(experiment, delay_unit_of(experiment) if experiment.program.build else math.nan)
            with suppress(ExperimentError):  # a journal of another description says nothing of trials left
                waiting = state_of(experiment, read_journal(experiment)).waiting
        return answer(effects, self.unit, self.factors, delays_s, self.response, waiting)


def delay_unit_of(experiment: Experiment) -> float:
    """Seconds of one unit of delay: stored beside the journal once measured, so that all statements about one
    experiment use the same value."""
    from desktop.core.delay import delay_unit_s

    file = experiment.folder / "delay_unit.txt"
    try:
        unit = float(head(file, 40).split()[0])
    except (OSError, ValueError, IndexError):
        unit = math.nan
    if not 0 < unit < 1:
        unit = delay_unit_s()
        with suppress(OSError):  # the folder may belong to somebody else
            if (experiment.folder / JOURNAL).exists():
                file.write_text(f"{unit!r} s take one unit of delay here", encoding="utf-8")
    return unit


def unit_of(response: str) -> str:
    """Unit of a column, as far as its name shows it."""
    return "s" if response.endswith("_s") or "_s_" in response or response in _SECONDS else ""


def delays(experiment: Experiment, unit_s: float) -> dict[str, float]:
    """Seconds of the delay of each factor, if known."""
    common = experiment.program.delay or 0
    seconds_of = {}
    for one in experiment.factors:
        if "SPT_FACTORS" in dict(one.high.environment):
            seconds_of[one.name] = 1e-6 * one.delay
        elif one.delay or (common and one.routine and one.high.flags):
            seconds_of[one.name] = (one.delay or common) * unit_s
    return {name: seconds for name, seconds in seconds_of.items() if seconds > 0 and math.isfinite(seconds)}


_beyond = lru_cache(maxsize=256)(familywise_limit)


def _subject(response: str) -> str:
    """A response as the subject of a sentence."""
    usual = {"wall": "the run time", "cpu": "the processor time", "memory": "the memory"}
    plain = response.casefold().removesuffix("_s")
    if plain in ("time", "seconds", "elapsed", "wall_time"):
        return "the run time"
    return usual.get(plain, "the response" if plain.startswith("response") else response)


def _limit(effects: Effects, effect: Effect) -> float:
    """The |effect| that one or more of all exceed in 5 % where none is real; NaN without an error."""
    if effects.error == "lenth":
        return effects.lenth.simultaneous if effects.lenth is not None else math.nan
    if effects.error == "none" or not effect.se > 0 or not effect.df > 0:
        return math.nan
    # Terms chosen after looking at them have a limit of their own.
    selected = effects.limit.value if effects.limit.kind == "selected" else 0.0
    return max(_beyond(len(effects.effects), effect.df), selected) * effect.se


def _is_delay(name: str, factors: Mapping[str, Factor]) -> bool:
    one = factors.get(name)
    return one is None or one.is_delay


def _place(effect: Effect, factors: Mapping[str, Factor]) -> str:
    one = factors.get(effect.term)
    if one is None or not one.place:
        return effect.term
    # Tables and plots use the name of the factor.
    name = one.routine.rpartition("::")[2]
    return one.place if effect.term == name else f"{one.place} ({effect.term})"


def _cost(
    effects: Effects, effect: Effect, unit: str, factors: Mapping[str, Factor], delays_s: Mapping[str, float]
) -> str:
    """What a delay there costs, for a length that is easy to imagine; for a setting, what changes."""
    one = factors.get(effect.term)
    share = effects.percent(effect)
    # Amounts of other effects are in percent of the run.
    of_run = f", {digits(abs(share), 3)} % of the run" if math.isfinite(share) and _plain(effects) else ""
    delay = delays_s.get(effect.term, 0.0)
    if delay > 0 and unit == "s" and effects.unperturbed > 0 and _plain(effects):
        rate = effect.value / delay
        length, word = next(
            ((n, w) for n, w in _LENGTHS if abs(rate) * n <= _MANY * effects.unperturbed), _LENGTHS[-1]
        )
        verb = "costs" if effect.value > 0 else "saves"
        return (
            f"{word} there {verb} {quantity(abs(rate) * length, 's', 2)} (the delay of "
            f"{quantity(delay, 's', 2)} {'cost' if effect.value > 0 else 'saved'} "
            f"{_amount(effects, effect, unit)}{of_run})"
        )
    amount = _amount(effects, effect, unit)
    if one is not None and not _is_delay(effect.term, factors):
        low, high = one.levels
        return f"{high} in place of {low} takes {amount} {'more' if effect.value > 0 else 'less'}{of_run}"
    of_run = of_run if _plain(effects) else " of the run"
    return f"the delay there {'costs' if effect.value > 0 else 'saves'} {amount}{of_run}"


def _plain(effects: Effects) -> bool:
    """Whether effects are in the unit of the response."""
    return effects.transform == 1.0


def _amount(effects: Effects, effect: Effect, unit: str) -> str:
    if not _plain(effects):
        return f"{digits(abs(effects.percent(effect)), 3)} %"
    if not math.isfinite(effect.se) or effects.error == "lenth":
        return _number(effects, abs(effect.value), unit)
    return margin(abs(effect.value), effect.se, unit)


def _number(effects: Effects, value: float, unit: str) -> str:
    if not _plain(effects):
        return f"{digits(100 * math.expm1(value), 2)} %" if effects.transform == 0 else digits(value, 2)
    return quantity(value, unit, 2) if unit else digits(value, 2)


def _next(
    effects: Effects,
    named: Sequence[Effect],
    others: Sequence[Effect],
    bound: float,
    factors: Mapping[str, Factor],
    waiting: int,
) -> str:
    """The most informative next step."""
    if waiting:
        return f"run the {waiting} trials that are left"
    if effects.suspects:
        return f"look at trial {effects.suspects[0].label}, which does not fit the others"
    places = [e for e in named if _is_delay(e.term, factors) and e.value > 0]
    names = [e.term for e in named]
    for e in named:
        # The interaction of two real effects may be real itself.
        doubt = [a for a in e.aliases if ":" in a and set(a.split(":")) <= set(names)]
        if doubt:
            return f"fold the design over, which tells {e.term} from {doubt[0]}"
    if not named and not any(_is_delay(e.term, factors) for e in others):
        return "try settings that are further apart, or more replicates"
    if not named:
        return "try longer delays (a pilot finds the size), other places, or more replicates"
    if places and others:
        factor = places[0].value / bound if bound > 0 else math.nan
        if math.isfinite(factor) and factor >= 3:
            times = min(_LONGER, max(2, int(np.floor(factor))))
            times = times if times < 10 else times // 10 * 10
            return (
                f"improve {places[0].term}, and confirm what it is worth; to see smaller effects, leave it "
                f"out and make the delays {times} times longer"
            )
    return f"confirm it with a few runs of {names[0]} alone, then improve it" if places else (
        "confirm it with a few runs of the best setting"
    )  # fmt: skip
