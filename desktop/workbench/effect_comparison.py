"""Several tables of effects beside each other: barriers, program versions, processors, sizes of delay."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from desktop.core.arrays import Floats
from desktop.core.effect_limits import pooled_df
from desktop.core.effect_tables import (
    Barrier,
    Dose,
    OverProcessors,
    ScaleTest,
    Scaling,
    barrier,
    dose,
    scale_test,
    scaling,
)
from desktop.core.effect_tables import over_processors as fitted
from desktop.core.effects import Effects, Trials, analyse
from desktop.data.experiment import read_experiment, to_trials
from desktop.data.naming import DESCRIPTION

if TYPE_CHECKING:
    from desktop.data.runs import RunTable

#: Effect and standard error by name.
EffectTable = Mapping[str, tuple[float, float]]
#: Trials at a size from which on their own spread is taken as their noise.
_OWN = 4
_PAIR = re.compile(r"(?P<stem>FB)1(?P<rest>(?:[_.-].*)?)", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class ComparedTable:
    """A table to compare with. `processors` and `delay`: what it was measured with, 0 if not said.
    `unperturbed`: NaN where the table holds effects alone. `df`: degrees of freedom of the standard errors,
    by name, infinite where nothing is said; `shares`: percent of the unperturbed run with its 95 % interval;
    `common`: variance that all effects share, as they are differences to the same runs; `refused`: as of a
    `RunTable`."""

    name: str
    path: Path
    effects: EffectTable
    unperturbed: float = math.nan
    processors: float = 0.0
    delay: float = 0.0
    df: Mapping[str, float] = field(default_factory=dict)
    shares: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    common: float = 0.0
    refused: str = ""

    def df_of(self, name: str) -> float:
        """Degrees of freedom of an effect's standard error."""
        return self.df.get(name, math.inf)


def read_compared(path: Path, delay: float = 0.0, processors: float = 0.0) -> ComparedTable:
    """The only table of `tables_in`, or of several the one that was measured with this: with both, or else
    the only one with that delay, or that number of processors (the user may have entered the other).

    Raises
    ------
    TableError, ExperimentError, ValueError : there is none.
    """
    tables = tables_in(path)
    same_delay = [table for table in tables if table.delay == delay]
    same_processors = [table for table in tables if table.processors == processors]
    both = [table for table in same_delay if table.processors == processors]
    for matching in (tables, both, same_delay, same_processors):
        if len(matching) == 1:
            return matching[0]
    raise ValueError(
        f"{Path(path).name} holds {len(tables)} tables of effects, none of them with delay {delay:g} on "
        f"{processors:g} processors; add it anew"
    )


def tables_in(path: Path, response: str | None = None) -> tuple[ComparedTable, ...]:
    """Tables of effects, from effects, from runs, or from the trials of an experiment: one for every size of
    the delay (and number of processors) that a column of the file says.

    Raises
    ------
    TableError, ExperimentError, ValueError : it is none of these.
    """
    from desktop.data import runs

    path = Path(path)
    if path.is_dir() or path.name == DESCRIPTION:
        experiment = read_experiment(path)
        return (_analysed(experiment.name, path, to_trials(experiment, response)),)
    kind = runs.kind_of(path)
    if kind == "effects":
        tables = runs.read_effects(path)
        return tuple(
            ComparedTable(_called(path, delay if len(tables) > 1 else 0), path, effects, math.nan, p, delay)
            for (delay, p), effects in tables.items()
        )
    table = runs.read_table(path, response=response, kind=kind)
    sized = by_delay(path, table)
    if not sized and table.array:
        raise ValueError(f"{path.name} holds several levels of each factor; open it to rank its runs")
    compared = sized or (_analysed(path.stem, path, table.data),)
    return tuple(replace(one, refused=table.refused) for one in compared)


def by_delay(path: Path, table: RunTable) -> tuple[ComparedTable, ...]:
    """The effects of a table's trials for every size of the delay; nothing if it says fewer than two.

    Of one place at a time an effect is the difference to the trials without a delay. Its standard error lets
    either mean have a variance of its own (as the run grows longer, so does its noise); of fewer than `_OWN`
    trials it is that of all sizes together, in proportion to the mean, as so few say next to nothing of it.

    Raises
    ------
    ValueError : of one place at a time, no trial is without a delay.
    """
    if table.delay is None:
        return ()
    sizes = np.unique(table.delay[table.delay > 0])
    if sizes.size < 2:
        return ()
    if not table.array:
        of_size = [(float(s), table.only(table.delay == s)) for s in sizes]
        return tuple(_analysed(_called(path, s), path, part.data, s) for s, part in of_size)
    data = table.only(np.isfinite(table.data.y)).data
    base = data.y[(data.x == 0).all(axis=1)]
    if not base.size:
        raise ValueError(f"{path.name} has no trial without a delay, and an effect is the difference to it")
    sized = [(x, size) for x in data.x.T for size in np.unique(x[x > 0])]
    relative = _relative_variance([base, *(data.y[x == size] for x, size in sized)])
    pooled = sum(y.size - 1 for y in [base, *(data.y[x == size] for x, size in sized)])
    effects: dict[float, dict[str, tuple[float, float]]] = {}
    df: dict[float, dict[str, float]] = {}
    common = _variance_of_mean(base, relative)
    for name, x in zip(data.factors, data.x.T, strict=True):
        for size in np.unique(x[x > 0]):
            y = data.y[x == size]
            variance = _variance_of_mean(y, relative)
            effects.setdefault(float(size), {})[name] = (
                float(y.mean() - base.mean()),
                math.sqrt(variance + common),
            )
            parts = [float(v.size - 1 if v.size >= _OWN else pooled) for v in (y, base)]
            df.setdefault(float(size), {})[name] = pooled_df(np.array([variance, common]), np.array(parts))
    return tuple(
        ComparedTable(
            _called(path, size), path, effects[size], float(base.mean()), 0.0, size, df[size], {}, common
        )
        for size in sorted(effects)
    )


def _relative_variance(groups: Sequence[Floats]) -> float:
    """Of one trial, in squares of its mean, pooled over groups of equal trials; NaN if none ran twice."""
    several = [y for y in groups if y.size > 1 and y.mean()]
    df = sum(y.size - 1 for y in several)
    ss = sum(float(((y / y.mean() - 1) ** 2).sum()) for y in several)
    return ss / df if df else math.nan


def _variance_of_mean(y: Floats, relative: float) -> float:
    variance = float(y.var(ddof=1)) if y.size >= _OWN else relative * float(y.mean()) ** 2
    return variance / y.size


def _called(path: Path, delay: float) -> str:
    return f"{path.stem}, delay {delay:g}" if delay else path.stem


def _analysed(name: str, path: Path, data: Trials, delay: float = 0.0) -> ComparedTable:
    return compared_of(name, path, analyse(data), 0.0, delay)


def compared_of(name: str, path: Path, analysis: Effects, processors: float, delay: float) -> ComparedTable:
    """The effects of an analysis, to compare with."""
    effects = {e.term: (e.value, e.se) for e in analysis.effects if e.estimable}
    shares = {e.term: (analysis.percent(e), e.share_low, e.share_high) for e in analysis.effects}
    df = {e.term: e.df for e in analysis.effects}
    return ComparedTable(name, path, effects, analysis.unperturbed, processors, delay, df, shares)


# --- barriers ---


@dataclass(frozen=True)
class Pair:
    """Factors before and after a barrier, and what is waited there."""

    before: str
    after: str
    barrier: Barrier


def pairs_in(names: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Pairs such as FB1_x and FB2_x."""
    main = [name for name in names if ":" not in name]
    matches = [match for match in map(_PAIR.fullmatch, main) if match]
    pairs = [(match[0], f"{match['stem']}2{match['rest']}") for match in matches]
    return tuple(pair for pair in pairs if pair[1] in main)


def barriers(table: ComparedTable, cost: float = 0.0, cost_se: float = 0.0) -> tuple[Pair, ...]:
    """What is waited at every barrier (NISTIR 5139, table 11). `cost`: of the artificial barrier itself, with
    its standard error."""
    pairs = []
    for before, after in pairs_in(table.effects):
        (a, se_a), (b, se_b) = table.effects[before], table.effects[after]
        df = min(table.df_of(before), table.df_of(after))
        pairs.append(Pair(before, after, barrier(a, b, math.hypot(se_a, se_b), cost, cost_se, df)))
    return tuple(pairs)


# --- versions, processors, delays ---


@dataclass(frozen=True)
class NormalisedEffect:
    """An effect in two versions of a program, as percent of each one's unperturbed run (5131, table 2-C). The
    change lies between `low` and `high` with 95 %; NaN where a table holds effects alone."""

    term: str
    first: float
    second: float
    low: float = math.nan
    high: float = math.nan

    @property
    def change(self) -> float:
        return self.second - self.first


def normalised(first: ComparedTable, second: ComparedTable) -> tuple[NormalisedEffect, ...]:
    """Main effects of either table, NaN where one has none.

    Raises
    ------
    ValueError : an unperturbed run is not known.
    """
    for table in (first, second):
        if not table.unperturbed > 0:
            raise ValueError("the time of the unperturbed run is not known; choose a table of runs")
    terms = dict.fromkeys([*first.effects, *second.effects])
    nan = (math.nan, math.nan)
    return tuple(
        NormalisedEffect(
            term,
            100 * first.effects.get(term, nan)[0] / first.unperturbed,
            100 * second.effects.get(term, nan)[0] / second.unperturbed,
            *_change(first.shares.get(term), second.shares.get(term)),
        )
        for term in terms
        if ":" not in term and "*" not in term
    )


def _change(
    first: tuple[float, float, float] | None, second: tuple[float, float, float] | None
) -> tuple[float, float]:
    """Interval of a difference from those of its parts (Zou and Donner 2008)."""
    if first is None or second is None:
        return math.nan, math.nan
    (a, a_low, a_high), (b, b_low, b_high) = first, second
    return b - a - math.hypot(b - b_low, a_high - a), b - a + math.hypot(b_high - b, a - a_low)


def two_scales(
    tables: Sequence[ComparedTable],
) -> tuple[ComparedTable, ComparedTable, tuple[Scaling, ...]]:
    """The tables at the smallest and at the largest number of processors, combined (5417, table 3).

    Raises
    ------
    ValueError : fewer than two different numbers are said, or the tables share no effect.
    """
    sized = sorted((t for t in tables if t.processors > 0), key=lambda t: t.processors)
    if len(sized) < 2 or sized[0].processors == sized[-1].processors:
        raise ValueError(f"two tables with different numbers of processors are needed, {len(sized)} say one")
    small, large = sized[0], sized[-1]
    df = min(small.df.values(), default=math.inf), min(large.df.values(), default=math.inf)
    return small, large, scaling(small.effects, small.processors, large.effects, large.processors, df)


@dataclass(frozen=True, eq=False)
class ScaledEffect:
    """An effect at several numbers of processors, and what fits them."""

    term: str
    p: tuple[float, ...]
    effect: tuple[float, ...]
    se: tuple[float, ...]
    fit: OverProcessors


def over_processors(tables: Sequence[ComparedTable]) -> tuple[ScaledEffect, ...]:
    """a/p + b for every effect that stands in all tables (5139, tables 5 to 8).

    Raises
    ------
    ValueError : fewer than three different numbers of processors.
    """
    sized = sorted((t for t in tables if t.processors > 0), key=lambda t: t.processors)
    p = np.array([t.processors for t in sized])
    if np.unique(p).size < 3:
        raise ValueError(f"needs 3 or more numbers of processors, has {np.unique(p).size}")
    scaled = []
    for name in _common(sized):
        effect = np.array([t.effects[name][0] for t in sized])
        se = np.array([t.effects[name][1] for t in sized])
        has_errors = bool(np.isfinite(se).all() and (se > 0).all())
        fit = fitted(p, effect, se if has_errors else None, np.array([t.df_of(name) for t in sized]))
        scaled.append(ScaledEffect(name, tuple(p), tuple(effect), tuple(se), fit))
    return tuple(scaled)


def doses(tables: Sequence[ComparedTable]) -> tuple[tuple[str, Dose], ...]:
    """Effects over the size of the delay (5131, figure 3), for main effects that two sizes or more tell.

    Raises
    ------
    ValueError : there is none.
    """
    sized = sorted((t for t in tables if t.delay > 0), key=lambda t: t.delay)
    by_name = []
    for name in dict.fromkeys(n for t in sized for n in t.effects if ":" not in n):
        with_term = [t for t in sized if name in t.effects]
        delay = np.array([t.delay for t in with_term])
        if np.unique(delay).size < 2:
            continue
        effect = np.array([t.effects[name][0] for t in with_term])
        se = np.array([t.effects[name][1] for t in with_term])
        df = np.array([t.df_of(name) for t in with_term])
        common = min(t.common for t in with_term)
        by_name.append((name, dose(delay, effect, np.where(np.isfinite(se), se, 0.0), df, common)))
    if not by_name:
        sizes = len({t.delay for t in sized})
        shared = " that share an effect" if sizes > 1 else ""
        raise ValueError(f"needs 2 or more sizes of the delay{shared}, has {'none' if shared else sizes}")
    return tuple(by_name)


def _common(tables: Sequence[ComparedTable]) -> list[str]:
    return [n for n in tables[0].effects if ":" not in n and all(n in t.effects for t in tables)]


#: How the number of processors is usually called.
_SCALES = ("s", "x_s", "scale", "p", "procs", "processors", "threads", "ranks", "np", "nproc")


def guess_scale(effects: Effects) -> tuple[str, str]:
    """Factor and scale of a 2^2: the scale by its name, the factor the first that can be told from it."""
    names = effects.trials.factors
    plain = {name.casefold(): name for name in names}
    scale = next((plain[name] for name in _SCALES if name in plain), names[-1])
    for name in names:
        try:
            scale_test_of(effects, name, scale)
        except ValueError:
            continue
        return name, scale
    return names[0], scale


def scale_test_of(effects: Effects, factor: str, scale: str, se: float | None = None) -> ScaleTest:
    """One factor and the scale (5417, table 4), from the effects of both and of their interaction.

    `se` of a half effect, as known elsewhere; None: from replicates, with their degrees of freedom. Three
    effects tell nothing of their own error.

    Raises
    ------
    ValueError : one of the three effects cannot be told from these trials.
    """
    names = effects.trials.factors
    for name in (factor, scale):
        if name not in names:
            raise ValueError(f"there is no factor {name!r}")
    if factor == scale:
        raise ValueError("the factor and the scale have to be two different columns")
    try:
        f, s = effects.effect(factor), effects.effect(scale)
        both = effects.effect(":".join(n for n in names if n in (factor, scale)))
    except KeyError as error:
        raise ValueError(f"the trials do not tell {error.args[0]!r}") from None
    if len({id(e) for e in (f, s, both)}) < 3:
        raise ValueError("the factor, the scale and their interaction are aliased in these trials")
    df = math.inf
    if se is None:
        se, df = (f.se / 2, f.df) if effects.error == "replicates" else (math.nan, math.inf)
    return scale_test(effects.mean, f.half, s.half, both.half, se, df)
