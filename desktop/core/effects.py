"""Effects of artificial delays: least squares, their uncertainty, and runs that do not fit.

An *effect* is the mean response with the delay minus the mean without; a *half effect* is the regression
coefficient. Sources: NISTIR 5131 (equation 1), NISTIR 5139 (section 2), NISTIR 5417; Lenth, Technometrics 31
(1989); Daniel, Technometrics 1 (1959) for the half-normal plot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import numpy as np

from desktop.core.arrays import Flags, Floats, Ints
from desktop.core.effect_limits import (
    LEVEL,
    Kind,
    Lenth,
    Limit,
    Simulated,
    Threshold,
    false_discovery,
    familywise_limit,
    largest_of,
    lenth_of,
    lenth_ratios,
    ratio_interval,
    selected_ratios,
    t_limit,
)
from desktop.core.frames import TABLES, attributes, frame
from desktop.core.power import POWER, after_loss
from desktop.core.suspects import Suspect, suspects
from desktop.core.units import trimmed

if TYPE_CHECKING:
    from pandas import DataFrame

Members = tuple[int, ...]
Error = Literal["replicates", "interactions", "lenth", "none"]
#: How trials of one treatment in one replicate are combined.
Inner = Literal["each", "mean", "median", "minimum"]

#: Columns whose product with the others explains all but this share are linearly dependent.
_DEPENDENT = 1e-9


@dataclass(frozen=True, eq=False)
class Trials:
    """N trials of k factors: x (N, k) levels -1 and +1, y (N,) response (NaN: missing), block (N,) replicate,
    label (N,) name of each trial (its line or number), half (N,) of a foldover (0 or 1; None: no halves);
    the halves run one after the other. beside: covariates by name, (N,) each, NaN where not noted."""

    factors: tuple[str, ...]
    x: Floats
    y: Floats
    block: Ints
    label: tuple[str, ...]
    half: Ints | None = None
    beside: Mapping[str, Floats] = field(default_factory=dict)

    def only(self, keep: Flags) -> Trials:
        """The trials where `keep` (N,) is true."""
        labels = tuple(name for name, selected in zip(self.label, keep, strict=True) if selected)
        half = None if self.half is None else self.half[keep]
        beside = {name: values[keep] for name, values in self.beside.items()}
        return Trials(self.factors, self.x[keep], self.y[keep], self.block[keep], labels, half, beside)

    def measured(self) -> Trials:
        """The trials that have a finite response."""
        return self.only(np.isfinite(self.y))

    def to_frame(self) -> DataFrame:
        """``TABLES["trials"]``, one row a trial, index 0 to N - 1, then one column of levels a factor, named
        after it (``"level of <name>"`` where another column has that name)."""
        columns: dict[str, object] = {"trial": self.label, "block": self.block, "response": self.y}
        for k, name in enumerate(self.factors):
            columns[f"level of {name}" if name in columns else name] = self.x[:, k]
        return frame(TABLES["trials"], columns)


def trials(
    factors: Sequence[str],
    x: Floats,
    y: Floats,
    block: Ints | None = None,
    label: Sequence[str] | None = None,
    half: Ints | None = None,
    beside: Mapping[str, Floats] | None = None,
) -> Trials:
    """`Trials` from arrays, checked. `block` is 0 and `label` the number from 1 where they are not given.

    Raises
    ------
    ValueError : shapes differ, or a level is neither -1 nor +1.
    """
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if x.shape != (y.size, len(factors)):
        raise ValueError(f"x has shape {x.shape}, expected ({y.size}, {len(factors)})")
    if not np.isin(x, (-1.0, 1.0)).all():
        row, column = np.argwhere(~np.isin(x, (-1.0, 1.0)))[0]
        raise ValueError(f"level {x[row, column]:g} of {factors[column]} in trial {row + 1} is not -1 or +1")
    blocks = np.zeros(y.size, np.int64) if block is None else np.asarray(block, np.int64)
    names = tuple(label) if label is not None else tuple(str(i + 1) for i in range(y.size))
    return Trials(tuple(factors), x, y, blocks, names, half, beside or {})


def missing(data: Trials) -> tuple[str, ...]:
    """Labels of the trials without a finite response."""
    return tuple(name for name, y in zip(data.label, data.y, strict=True) if not np.isfinite(y))


@dataclass(frozen=True)
class Effect:
    """`value` is the full effect; se, t, p are NaN without an error estimate. `members`: the word that
    represents the alias set. `estimable` False: the trials do not determine the effect (value NaN).

    `p`: probability of an effect this large under the null hypothesis, for this effect alone or for any of
    the family, as `Effects.limit` says. `low`, `high`: 95 % interval, of each effect alone (where terms were
    left out after a look at the effects: simultaneous). `share`: percent of the unperturbed run, with the
    95 % interval `share_low` to `share_high`, which includes the noise of that run.
    """

    term: str
    members: Members
    aliases: tuple[str, ...]
    value: float
    se: float
    df: float
    t: float
    p: float
    significant: bool
    half_normal: float
    estimable: bool = True
    low: float = float("nan")
    high: float = float("nan")
    share: float = float("nan")
    share_low: float = float("nan")
    share_high: float = float("nan")

    @property
    def half(self) -> float:
        """Regression coefficient, the beta of NISTIR 5417."""
        return self.value / 2


@dataclass(frozen=True)
class AnovaRow:
    source: str
    ss: float
    df: int
    ms: float
    f: float
    p: float


@dataclass(frozen=True, eq=False)
class Effects:
    """Result of `analyse`. Effects are in standard order, without the mean. `variance`: pooled, of one trial.
    `correlation`: largest between two columns, 0 for orthogonal designs. `limit`: effects above it are
    significant. `block_variance`: mean square of the blocks (replicates, for example), with `block_df`; NaN
    without blocks. `transform`: power of the response, 0 for its logarithm; mean, effects and their errors
    refer to the transformed response, `unperturbed` is in the unit of the response. `slope`: of the response
    on the covariate, with its standard error."""

    trials: Trials
    effects: tuple[Effect, ...]
    mean: float
    mean_se: float
    error: Error
    variance: float
    df: int
    lenth: Lenth | None
    unperturbed: float
    unperturbed_measured: bool
    suspects: tuple[Suspect, ...]
    anova: tuple[AnovaRow, ...]
    r2: float
    r2_adjusted: float
    correlation: float
    limit: Limit
    notes: tuple[str, ...] = ()
    fitted: Floats = field(default_factory=lambda: np.empty(0))
    block_variance: float = float("nan")
    block_df: int = 0
    transform: float = 1.0
    gm: float = 1.0
    slope: tuple[float, float] | None = None

    @property
    def threshold(self) -> str:
        """The limit in words."""
        return self.limit.text

    @property
    def transformed(self) -> Floats:
        """(N,) responses as analysed."""
        return transformed(self.trials.y, self.transform, self.gm)

    def to_frame(self) -> DataFrame:
        """``TABLES["effects"]``, one row an effect in standard order, indexed by term."""
        columns = attributes("effects", self.effects, {"effect": "value", "half_effect": "half"})
        columns["aliases"] = [", ".join(effect.aliases) for effect in self.effects]
        return frame(TABLES["effects"], columns, index=columns["term"])

    def anova_frame(self) -> DataFrame:
        """``TABLES["anova"]``, one row a source; sums of squares in the squared unit of the response."""
        return frame(TABLES["anova"], attributes("anova", self.anova))

    def effect(self, term: str) -> Effect:
        """The effect of that term or with that alias; KeyError if there is none."""
        for effect in self.effects:
            if effect.term == term or term in effect.aliases:
                return effect
        raise KeyError(term)

    def percent(self, effect: Effect) -> float:
        """The effect in percent of the unperturbed run."""
        if self.transform == 0:
            return 100.0 * float(np.expm1(effect.value))
        if self.transform != 1 and self.unperturbed > 0:
            base = float(transformed(np.array(self.unperturbed), self.transform, self.gm))
            return 100.0 * (back(base + effect.value, self.transform, self.gm) / self.unperturbed - 1)
        return 100.0 * effect.value / self.unperturbed if self.unperturbed else float("nan")

    def predict(self, levels: Sequence[float]) -> PredictedResponse:
        """Response at `levels` (k,) of -1..+1 from all estimable terms, with 95 % intervals.

        Where replicates are blocks, the variance between them is part of the error: another day has another
        level.
        """
        x = np.asarray(levels, np.float64)
        terms = [e for e in self.effects if e.estimable]
        row = np.array([1.0] + [float(np.prod(x[list(e.members)])) / 2 for e in terms])
        values = np.array([self.mean] + [e.value for e in terms])
        errors = np.array([self.mean_se] + [e.se for e in terms])
        value = float(row @ values)
        parts = (row * errors) ** 2
        df = float(self.df if self.error != "lenth" else next((e.df for e in terms), 0))
        level, of_trial, one_trial = float(parts[0]), float(parts[1:].sum()), self.variance
        of_blocks, drift = df, 0.0
        if self.block_df and np.isfinite(self.block_variance):
            # The mean varies with the replicates; a new replicate adds their variance once more.
            of_blocks, level = float(self.block_df), self.block_variance / len(self.trials.y)
            drift = max(self.block_variance - one_trial, 0.0) * (self.block_df + 1) / len(self.trials.y)
        estimable = bool(np.isfinite(level + of_trial)) and df > 0
        se = float(np.sqrt(level + of_trial)) if estimable else float("nan")
        # Half widths of errors with different degrees of freedom add as squares (Zou and Donner 2008).
        of_level, of_terms = (t_limit(of_blocks), t_limit(df)) if estimable else (np.nan, np.nan)
        margin = float(np.hypot(of_level * np.sqrt(level), of_terms * np.sqrt(of_trial)))
        wide = float(np.hypot(of_level * np.sqrt(level + drift), of_terms * np.sqrt(of_trial + one_trial)))
        ends = [back(value + d, self.transform, self.gm) for d in (0.0, -margin, margin, -wide, wide)]
        return PredictedResponse(ends[0], se, *ends[1:])


@dataclass(frozen=True)
class PredictedResponse:
    """The response at a setting, in its own unit. `se`: standard error of its mean, transformed as analysed.
    `low`, `high`: 95 % interval of the mean; `new_low`, `new_high`: of one new trial. NaN without an error
    estimate."""

    value: float
    se: float
    low: float
    high: float
    new_low: float
    new_high: float


def transformed(y: Floats, power: float, gm: float = 1.0) -> Floats:
    """The response by Box and Cox 1964: ln y for power 0, y for 1, else (y^power - 1) / (power
    gm^(power - 1)), in the unit of y. gm: geometric mean of y."""
    if power == 1:
        return y
    if power == 0:
        return np.log(y)
    return (y**power - 1) / float(power * gm ** (power - 1))


def back(value: float, power: float, gm: float = 1.0) -> float:
    """Inverse of `transformed`; NaN outside of its range."""
    if power == 1 or not np.isfinite(value):
        return float(value)
    if power == 0:
        return float(np.exp(value))
    inner = value * power * gm ** (power - 1) + 1
    return float(inner ** (1 / power)) if inner > 0 else float("nan")


def condensed(data: Trials, inner: Inner) -> Trials:
    """One trial for all repeats of a treatment in one replicate: their mean, median or minimum response."""
    if inner == "each":
        return data
    data = data.measured()
    half = _halves(data)
    keys = np.concatenate([half[:, None], data.block[:, None], data.x], axis=1)
    _, first, number = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    ways: dict[str, Callable[[Floats], object]] = {"mean": np.mean, "median": np.median, "minimum": np.min}
    number = number.ravel()
    y = np.array([ways[inner](data.y[number == k]) for k in range(first.size)])
    order = np.argsort(first)
    firsts = data.only(np.isin(np.arange(len(data.y)), first))
    return replace(firsts, y=y[order])


def standard_order(count: int) -> list[Members]:
    """All words of `count` factors in Yates order, without the identity: A, B, AB, C, AC, ..."""
    return [tuple(j for j in range(count) if word >> j & 1) for word in range(1, 1 << count)]


# Many and long: all options of an analysis, and its steps in their order.
def analyse(
    data: Trials,
    *,
    error: Error | None = None,
    terms: Sequence[Members] | None = None,
    threshold: Threshold = "t",
    blocks: bool = True,
    aliases_up_to: int = 2,
    planned: bool = False,
    transform: float = 1.0,
    covariate: str = "",
) -> Effects:
    """Effects of a two-level experiment.

    Parameters
    ----------
    error : source of the standard error; None: replicates, else interactions (where terms are left out), else
        Lenth. ``interactions`` are the terms of two or more factors where `terms` does not leave any out.
    terms : words to estimate; None: every estimable word in standard order of the base factors, where main
        effects are chosen first.
    threshold : which effects are significant: ``t`` the quantile with the true degrees of freedom, ``2`` or
        ``3`` standard errors, Lenth's margins, ``familywise`` or ``fdr`` (see `desktop.core.effect_limits`).
    blocks : treat replicates (`Trials.block`) as blocks, whether or not every treatment ran in each, and also
        the halves of a foldover; the term that is + in one half and - in the other is then read as the change
        between the halves.
    planned : `terms` were chosen before the effects were seen. Otherwise, where the terms left out are the
        error, limits account for that choice.
    transform : power of the response, 0 for its logarithm.
    covariate : name in `Trials.beside` whose linear influence is removed (analysis of covariance).

    Raises
    ------
    ValueError : fewer than two treatments have a response, the error method has no data, the response to be
    transformed is not positive, or the covariate was not noted or follows from the factors.
    """
    notes: list[str] = []
    if covariate:
        data = _noted(data, covariate, notes)
    lost = missing(data)
    data = data.measured()
    if lost:
        have = "trials have" if len(lost) > 1 else "trial has"
        notes.append(
            f"{len(lost)} {have} no response (run {', '.join(lost[:8])}{', ...' * (len(lost) > 8)}); "
            "effects are from least squares, not plain contrasts"
        )
    whole = data
    data, added = _core(data)
    if added:
        notes.append(
            "the unperturbed run is not part of the fraction and would confound its effects: "
            "percentages refer to it, effects are of the other runs"
        )
    gm = 1.0
    if transform != 1:
        if not (whole.y > 0).all():
            raise ValueError("a response that is not positive has no logarithm; analyse it as it is")
        gm = float(np.exp(np.log(whole.y).mean()))
    trials = data
    data = replace(data, y=transformed(data.y, transform, gm))
    treatments, number, counts = np.unique(data.x, axis=0, return_inverse=True, return_counts=True)
    number = number.ravel()
    if len(treatments) < 2:
        raise ValueError("fewer than two treatments have a response, so there is no effect to see")
    if counts.min() < counts.max():
        notes.append("treatments have different numbers of trials; effects are from least squares")
    side = _side(data, number, len(treatments)) if blocks else None
    shifts = np.zeros((len(data.y), 0)) if side is None else side[number, np.newaxis] / 2
    group = _blocks_of(data, notes) if blocks else np.zeros((len(data.y), 0))
    balanced = not covariate and (not group.shape[1] or _are_blocks(data, number))
    if covariate:
        values = data.beside[covariate]
        group = np.concatenate([group, (values - values.mean())[:, None]], axis=1)
    # Where every treatment ran in every block, blocks are orthogonal to all terms.
    taken, rows = (side, treatments) if balanced else (None, data.x)
    more = np.concatenate([shifts, group], axis=1)
    columns = more if not balanced else np.zeros((len(rows), 0)) if taken is None else taken[:, None]
    selected, sets, untold = _terms(rows, len(data.factors), terms, aliases_up_to, columns)
    halves = [] if side is None else [m for m in untold if _mark(treatments, m) == _signature(side)]
    untold = [m for m in untold if m not in halves]
    if untold:
        notes.append("the trials cannot estimate: " + ", ".join(_name(data, m) for m in untold[:8]))
    if not selected:
        raise ValueError("the trials can estimate none of the terms")
    correlation = _worst_correlation(np.stack([_column(data.x, m) for m in selected], axis=1))
    if correlation > 1e-9:
        notes.append(f"the columns are not orthogonal (largest correlation {correlation:.2f})")
    model = _least_squares(data, selected, more)
    values, unit = model.values, model.unit
    shift = model.more[: shifts.shape[1]]
    if side is not None:
        notes += _halves_note(data, treatments, side, float(shift[0]), halves)
    values[np.abs(values) <= 1e-13 * np.abs(data.y).max()] = 0.0  # rounding
    pure, pure_df, block_ss, block_df = _pure_error(data.y, number, len(treatments), group, bool(covariate))
    followed = _followed(covariate, model, group)
    every = model
    if terms is not None:
        words = _terms(rows, len(data.factors), None, aliases_up_to, columns)[0]
        every = _least_squares(data, words, more)
    # Effects with different variances are brought to a common scale.
    lenth = lenth_of(every.values * np.sqrt(np.median(every.unit[1:]) / every.unit[1:]))
    # Sums of equal numbers differ by rounding.
    if pure <= len(data.y) * (1e-13 * np.abs(data.y).max()) ** 2:
        pure = 0.0
    spare = len(data.y) - 1 - len(selected) - shift.size - block_df - bool(covariate)
    method = error or _default_error(pure_df, spare - pure_df, lenth)
    s2, df = _variance(method, model, selected, spare, pure, pure_df, lenth, terms is not None)
    each, remainder = divmod(len(data.y) + len(lost), len(treatments))
    if (
        lost
        and method == "replicates"
        and not remainder
        and (chance := after_loss(len(treatments), each, len(lost))) > 0
    ):
        notes.append(
            f"an effect that the full plan finds with {100 * POWER:.0f} % is found with {100 * chance:.0f} %"
        )
    if s2 == 0.0 and not values.any():
        s2 = float("nan")  # the response is constant
    se = np.sqrt(unit[1:] * s2) if np.isfinite(s2) else np.full(values.size, np.nan)
    mean_se = float(np.sqrt(unit[0] * s2)) if np.isfinite(s2) else float("nan")
    if method == "lenth" and lenth is not None:
        # Lenth's pseudo standard error is that of an effect, not of a trial.
        se = lenth.pse * np.sqrt(unit[1:] / np.median(unit[1:]))
        mean_se, s2 = lenth.pse / 2, float(lenth.pse**2 * len(data.y) / 4)
    tested = np.ones(len(selected), bool)
    if method == "interactions" and (terms is None or spare <= 0):
        tested = np.array([len(m) == 1 for m in selected])  # the error is not tested against itself
        if not tested.all():
            notes.append("terms of two or more factors are the error, so they are not tested themselves")
    looked = None
    if method == "interactions" and terms is not None and not planned and len(selected) < every.values.size:
        looked = selected_ratios(every.values.size, len(selected), max(pure_df, 0))
    zero = (data.x == -1).all(axis=1)
    effects, limit = _effects(
        data, selected, sets, values, se, df, method, threshold, lenth, tested, looked, notes
    )
    measured = bool(zero.any()) or bool(added)
    if added:
        unperturbed = float(whole.y[(whole.x == -1).all(axis=1)].mean())
        variance, shared = 1 / added, np.zeros(len(effects))
    else:
        unperturbed, variance, shared = _unperturbed(model, selected, zero, trials.y, transform, gm)
    effects = tuple(
        _shared(e, unperturbed, s2 * variance, s2 * common, transform, gm)
        for e, common in zip(effects, shared, strict=True)
    )
    if not measured:
        notes.append("the unperturbed program was not run; percentages refer to its predicted response")
    blocked = [("halves", float(v**2 / u), 1) for v, u in zip(shift, model.more_unit, strict=False)]
    blocked += [("replicate", block_ss, block_df)] if block_df else []
    if followed is not None:
        slope, of_one = followed
        blocked.append((covariate, slope**2 / of_one, 1))
        followed = slope, float(np.sqrt(s2 * of_one))
        notes.append(_covariate_note(covariate, *followed, df))
    anova, r2, adjusted = _anova(data, selected, model, pure, pure_df, blocked, spare, s2, df)
    return Effects(
        trials, effects, model.mean, mean_se, method, float(s2), int(df) if np.isfinite(df) else 0, lenth,
        unperturbed, measured, suspects(data.label, data.y, *model.design), anova, r2, adjusted, correlation,
        limit, tuple(notes), model.fitted, block_ss / block_df if block_df else float("nan"), block_df,
        transform, gm, followed,
    )  # fmt: skip


def _core(data: Trials) -> tuple[Trials, int]:
    """The trials of a regular fraction, and the number of unperturbed runs added to it, left out."""
    zero = (data.x == -1).all(axis=1)
    if not zero.any() or zero.all() or data.x.shape[1] < 3:
        return data, 0
    nonzero = np.unique(data.x[~zero], axis=0)
    basis = _base(nonzero)
    size = 1 << len(basis)
    # A whole fraction (a few runs may be missing) that does not contain the run with all factors at -.
    if len(nonzero) > size or 4 * len(nonzero) <= 3 * size or len(basis) == data.x.shape[1]:
        return data, 0
    if len(_base(np.concatenate([nonzero, data.x[zero][:1]]))) == len(basis):
        return data, 0
    return data.only(~zero), int(zero.sum())


def _blocks_of(data: Trials, notes: list[str]) -> Floats:
    """(N, G): sum-to-zero columns of the blocks within each half; none where there is one block, or where
    blocks have one trial each."""
    half = _halves(data)
    columns: list[Floats] = []
    for h in np.unique(half):
        in_half = half == h
        names, counts = np.unique(data.block[in_half], return_counts=True)
        if names.size > 1 and counts.max() == 1:
            notes.append("blocks of one trial each are confounded with the terms, so they are not removed")
            continue
        last = (in_half & (data.block == names[-1])).astype(float)
        columns += [(in_half & (data.block == name)).astype(float) - last for name in names[:-1]]
    return np.stack(columns, axis=1) if columns else np.zeros((len(data.y), 0))


def _unperturbed(
    model: Model, terms: list[Members], zero: Flags, y: Floats, power: float, gm: float
) -> tuple[float, float, Floats]:
    """The unperturbed response (measured or predicted) in its own unit; and, as analysed and for unit
    variance of a trial, its variance and its covariance (m,) with every effect."""
    if zero.any():
        weights = zero / zero.sum()
        value = float(y[zero].mean()) if power == 1 else back(float(model.y @ weights), power, gm)
        return value, 1.0 / float(zero.sum()), model.covariance(weights)[1 : 1 + len(terms)]
    row = np.zeros(model.inverse.shape[0])
    row[: 1 + len(terms)] = [1.0, *((-1.0) ** len(m) / 2 for m in terms)]
    every = np.concatenate([[model.mean], model.values])
    spread = model.inverse.T @ row
    covariance = (model.inverse @ spread)[1 : 1 + len(terms)]
    return back(float(row[: every.size] @ every), power, gm), float(spread @ spread), covariance


def _shared(
    effect: Effect, base: float, variance: float, covariance: float, power: float, gm: float
) -> Effect:
    """The effect with its share of the unperturbed run `base`, in percent. `variance`, `covariance`: of the
    unperturbed response, and of it with the effect."""
    if not base > 0:
        return effect
    nan = float("nan")
    if power == 0:
        ends = [100.0 * float(np.expm1(v)) for v in (effect.value, effect.low, effect.high)]
    elif power == 1:
        t = (effect.high - effect.low) / 2 / effect.se if effect.se > 0 else nan
        low, high = ratio_interval(effect.value, base, effect.se**2, variance, covariance, t)
        ends = [100.0 * v for v in (effect.value / base, low, high)]
    else:
        at = float(transformed(np.array(base), power, gm))
        ends = [100.0 * (back(at + v, power, gm) / base - 1) for v in (effect.value, effect.low, effect.high)]
    return replace(effect, share=ends[0], share_low=ends[1], share_high=ends[2])


def _column(x: Floats, members: Members) -> Floats:
    return reduce(np.multiply, (x[:, j] for j in members), np.ones(len(x)))


def _name(data: Trials, members: Members) -> str:
    return ":".join(data.factors[j] for j in members)


def _side(data: Trials, number: Ints, treatments: int) -> Floats | None:
    """(treatments,) -1 in the first half of a foldover, +1 in the second; None where only one half ran."""
    if data.half is None or np.unique(data.half).size != 2:
        return None
    side = np.zeros(treatments)
    side[number] = np.where(data.half == data.half.min(), -1.0, 1.0)
    return side


def _halves_note(
    data: Trials, treatments: Floats, side: Floats, shift: float, halves: list[Members]
) -> list[str]:
    """Notes: the change between the halves, and the aliases of the first half that the second separates."""
    word = f"; {_name(data, halves[0])} is confounded with that" if halves else ""
    changed = f"the response changed by {trimmed(shift, 4)}{word}"
    notes = [f"the halves are blocks: from the first to the second {changed}"]
    first = treatments[side < 0]
    if 2 * len(first) != len(treatments):
        return notes
    sets: dict[bytes, dict[bytes, list[str]]] = {}
    for size in (1, 2):
        for members in combinations(range(len(data.factors)), size):
            same = sets.setdefault(_mark(first, members), {})
            same.setdefault(_mark(treatments, members), []).append(_name(data, members))
    apart = [
        " from ".join(" = ".join(part) for part in same.values()) for same in sets.values() if len(same) > 1
    ]
    if apart:
        more = f" and {len(apart) - 8} more sets" if len(apart) > 8 else ""
        notes.append(f"the second half separates {'; '.join(apart[:8])}{more}")
    return notes


def _terms(
    treatments: Floats, count: int, requested: Sequence[Members] | None, order: int, taken_up: Floats
) -> tuple[list[Members], list[list[Members]], list[Members]]:
    """Terms that can be estimated, the aliases of each, and those of `requested` that cannot be estimated.

    Columns that are equal up to sign are aliases. treatments (R, k): each once, or one row a trial where
    blocks are not orthogonal to terms; `taken_up` (R, ...): columns that are in the model already.
    """
    candidates: list[Members] = []
    for size in range(1, min(order, count) + 1):
        candidates += combinations(range(count), size)
    basis = _base(treatments)
    # A factorial or regular fraction; a few runs may be missing.
    different = len(np.unique(treatments, axis=0))
    whole = different == len(treatments) == 1 << len(basis)
    if requested is None and 4 * different > 3 << len(basis):
        words = [tuple(basis[i] for i in word) for word in standard_order(len(basis))]
        candidates = candidates + [w for w in words if len(w) > order]
    elif requested is None:
        words = [(j,) for j in range(count)]
    else:
        words = [tuple(sorted(w)) for w in requested]
    groups: dict[bytes, list[Members]] = {}
    for members in candidates:
        groups.setdefault(_signature(_column(treatments, members)), []).append(members)
    seen: set[bytes] = set()
    selected, sets, lost = [], [], []
    independent = _Independent(len(treatments))
    independent.take(np.ones(len(treatments)))
    for column in taken_up.T:
        independent.take(column)
        if np.isin(column, (-1.0, 1.0)).all():
            seen.add(_signature(column))
    # Short words first, so that main effects stay estimable where runs are missing.
    for members in sorted(words, key=lambda w: (len(groups.get(_mark(treatments, w), [w])[0]), len(w))):
        column = _column(treatments, members)
        mark = _signature(column)
        same = groups.get(mark, [members])
        # Different columns of a whole fraction are orthogonal, so independence needs no test.
        if mark in seen or not (np.any(column != column[0]) if whole else independent.take(column)):
            lost.append(members)
            continue
        seen.add(mark)
        # A main effect is more likely than an interaction, so it names the set.
        main = [w for w in same if len(w) == 1]
        name = main[0] if main and requested is None else members
        selected.append(name)
        sets.append([w for w in same if w != name])
    still = [(j,) for j in range(count) if (treatments[:, j] == treatments[0, j]).all()]
    lost += [members for members in still if members not in lost]
    rank = {tuple(w): i for i, w in enumerate(words)}
    place = {_mark(treatments, w): rank[w] for w in reversed(words)}
    order_of = sorted(range(len(selected)), key=lambda i: place[_mark(treatments, selected[i])])
    return [selected[i] for i in order_of], [sets[i] for i in order_of], lost


def _mark(treatments: Floats, members: Members) -> bytes:
    return _signature(_column(treatments, members))


def _signature(column: Floats) -> bytes:
    """A key that is equal for a column (R,) of ±1 and its negative."""
    return bytes((column * column[0]).astype(np.int8))


class _Independent:
    """Linearly independent columns (R,), as an orthonormal basis of their span."""

    def __init__(self, rows: int) -> None:
        self._basis, self._count = np.empty((rows, 16)), 0

    def take(self, column: Floats) -> bool:
        """Whether `column` is independent of those taken before; if so, it is added."""
        basis = self._basis[:, : self._count]
        residual = column - basis @ (basis.T @ column)
        residual -= basis @ (basis.T @ residual)  # again, against rounding
        size = float(residual @ residual)
        if self._count >= column.size or size <= _DEPENDENT * float(column @ column):
            return False
        if self._count == self._basis.shape[1]:
            self._basis = np.concatenate([self._basis, np.empty_like(self._basis)], axis=1)
        self._basis[:, self._count] = residual / np.sqrt(size)
        self._count += 1
        return True


def _base(treatments: Floats) -> list[int]:
    """Base factors: those whose columns are no products of earlier columns."""
    marks = {_signature(np.ones(len(treatments)))}
    basis: list[int] = []
    products = [np.ones(len(treatments))]
    for j in range(treatments.shape[1]):
        if _signature(treatments[:, j]) in marks or len(products) > 4096:
            continue
        basis.append(j)
        products += [p * treatments[:, j] for p in products]
        marks = {_signature(p) for p in products}
    return basis


def _worst_correlation(columns: Floats) -> float:
    if columns.shape[1] < 2:
        return 0.0
    centred = columns - columns.mean(0)
    norms = np.linalg.norm(centred, axis=0)
    usable = norms > 1e-12
    r = (centred[:, usable] / norms[usable]).T @ (centred[:, usable] / norms[usable])
    np.fill_diagonal(r, 0.0)
    return float(np.abs(r).max()) if r.size else 0.0


def _halves(data: Trials) -> Ints:
    return np.zeros(len(data.y), np.int64) if data.half is None else data.half


def _are_blocks(data: Trials, number: Ints) -> bool:
    """Whether every treatment (of a half) ran once in each of two or more replicates."""
    half, whole, most = _halves(data), 0, 0
    for h in np.unique(half):
        replicates = np.unique(data.block[half == h]).size
        whole += replicates * np.unique(number[half == h]).size
        most = max(most, replicates)
    if most < 2 or len(data.y) != whole:
        return False
    return bool(np.unique(np.stack([half, data.block, number]), axis=1).shape[1] == len(data.y))


@dataclass(frozen=True, eq=False)
class Model:
    """A least squares fit. coefficients: mean, effects (`count` of them, `values`) and the coefficients of
    further columns such as blocks (`more`). `unit`, `more_unit`: their variances for unit variance of a
    trial, `unit` with the mean first. design: columns of mean and effects, and further columns. q and the
    inverse of r: QR decomposition of both."""

    y: Floats
    design: tuple[Floats, Floats]
    q: Floats
    inverse: Floats
    coefficients: Floats
    count: int

    @property
    def mean(self) -> float:
        return float(self.coefficients[0])

    @property
    def values(self) -> Floats:
        return self.coefficients[1 : 1 + self.count]

    @property
    def more(self) -> Floats:
        return self.coefficients[1 + self.count :]

    @property
    def unit(self) -> Floats:
        return np.asarray((self.inverse**2).sum(1)[: 1 + self.count])

    @property
    def more_unit(self) -> Floats:
        return np.asarray((self.inverse**2).sum(1)[1 + self.count :])

    @property
    def fitted(self) -> Floats:
        return np.asarray(self.q @ (self.q.T @ self.y))

    @property
    def residual(self) -> Floats:
        return self.y - self.fitted

    def covariance(self, weights: Floats) -> Floats:
        """Covariance of every coefficient with the weighted sum of the trials by `weights` (N,), for unit
        variance of a trial."""
        return np.asarray(self.inverse @ (self.q.T @ weights))


def _least_squares(data: Trials, terms: list[Members], more: Floats) -> Model:
    """Fit of mean, effects and the columns `more` (N, ...), without those that are linearly dependent."""
    basis = _Independent(len(data.y))
    columns = [np.ones(len(data.y)), *(_column(data.x, m) / 2 for m in terms)]
    for column in columns:
        basis.take(column)
    columns += [column for column in more.T if basis.take(column)]
    x = np.stack(columns, axis=1)
    q, r = np.linalg.qr(x)
    inverse = np.linalg.inv(r)
    design = x[:, : 1 + len(terms)], x[:, 1 + len(terms) :]
    return Model(data.y, design, q, inverse, inverse @ (q.T @ data.y), len(terms))


def _noted(data: Trials, name: str, notes: list[str]) -> Trials:
    """The trials for which the covariate `name` was noted."""
    if name not in data.beside:
        names = ", ".join(data.beside) or "nothing"
        raise ValueError(f"{name} was not noted with the trials; noted were: {names}")
    present = np.isfinite(data.beside[name])
    if not present.any():
        raise ValueError(f"{name} was not noted with any trial")
    if not present.all():
        notes.append(f"{name} was not noted with {int((~present).sum())} trials, which are left out")
    return data.only(present)


def _followed(name: str, model: Model, group: Floats) -> tuple[float, float] | None:
    """Slope on the covariate `name` (the last column of `group`), and its variance for unit variance of a
    trial; None without a covariate."""
    if not name:
        return None
    more = model.design[1]
    if not more.shape[1] or (more[:, -1] != group[:, -1]).any():
        raise ValueError(f"{name} is the same in all trials, or follows from the factors or blocks")
    return float(model.more[-1]), float(model.more_unit[-1])


def _covariate_note(name: str, slope: float, se: float, df: float) -> str:
    """The note that states the slope on the covariate, with its 95 % interval."""
    margin = t_limit(df) * se
    words = f"the effects are adjusted for {name}: {trimmed(slope, 3)} for each unit of it"
    if not np.isfinite(margin):
        return words
    sure = "" if abs(slope) > margin else ", not distinguishable from zero"
    return f"{words} (95 %: {trimmed(slope - margin, 3)} to {trimmed(slope + margin, 3)}){sure}"


def _pure_error(
    y: Floats, number: Ints, treatments: int, group: Floats, covariate: bool = False
) -> tuple[float, int, float, int]:
    """Sum of squares and degrees of freedom within treatments (blocks removed), and of the blocks. With
    `covariate`, the last column of `group` is that and counts as neither."""
    counts = np.bincount(number, minlength=treatments)

    def within(column: Floats) -> Floats:
        return np.asarray(column - (np.bincount(number, column, treatments) / counts)[number])

    residual, ss, df = within(y), 0.0, len(y) - treatments
    basis = _Independent(len(y))
    blocks = [column for column in group.T if df and basis.take(within(column))]
    with_covariate = bool(covariate and blocks and (blocks[-1] == group[:, -1]).all())
    if blocks:
        q = np.linalg.qr(np.stack([within(column) for column in blocks], axis=1))[0]
        part = q.T @ residual
        residual = residual - q @ part
        n_blocks = len(blocks) - with_covariate
        ss = float(part[:n_blocks] @ part[:n_blocks])
    left = df - len(blocks)
    return (float(residual @ residual) if left else 0.0), left, ss, len(blocks) - with_covariate


def _default_error(pure_df: int, spare: int, lenth: Lenth | None) -> Error:
    if pure_df > 0:
        return "replicates"
    if spare > 0:
        return "interactions"
    return "lenth" if lenth else "none"


def _variance(
    method: Error,
    model: Model,
    terms: list[Members],
    df: int,
    pure: float,
    pure_df: int,
    lenth: Lenth | None,
    requested: bool,
) -> tuple[float, float]:
    """Variance of one trial, and its degrees of freedom. `df`: degrees of freedom that the terms leave.
    `requested`: the user named the terms `terms`, so those left out are the error."""
    if method == "replicates":
        if pure_df <= 0:
            raise ValueError("no treatment ran twice, so there is no error from replicates")
        return pure / pure_df, float(pure_df)
    if method == "interactions":
        high = np.array([len(m) > 1 for m in terms], bool)
        if high.any() and not (requested and df > 0):
            return float((model.values[high] ** 2 / model.unit[1:][high]).mean()), float(high.sum())
        if df <= 0:
            raise ValueError("every effect is estimated, so no interaction is left to give the error")
        return float(model.residual @ model.residual) / df, float(df)
    if method == "lenth":
        if lenth is None:
            raise ValueError("Lenth's method needs three or more effects that are not all zero")
        return float("nan"), lenth.df
    return float("nan"), float("nan")


# Many and long: the fields of an effect come from different parts of the analysis.
def _effects(
    data: Trials,
    terms: list[Members],
    sets: list[list[Members]],
    values: Floats,
    se: Floats,
    df: float,
    method: Error,
    threshold: Threshold,
    lenth: Lenth | None,
    tested: Flags,
    looked: Simulated | None,
    notes: list[str],
) -> tuple[tuple[Effect, ...], Limit]:
    """Effects with their tests, and the limit above which they are significant."""
    from scipy.special import ndtri, stdtr

    size = np.abs(values)
    m = values.size
    rank = np.empty(m, np.int64)
    rank[np.argsort(size, kind="stable")] = np.arange(m)
    quantile = ndtri(0.5 + 0.5 * (rank + 0.5) / m)
    with np.errstate(invalid="ignore", divide="ignore"):
        t = np.where(tested & (se > 0), values / se, np.nan)
    count, nothing = int(tested.sum()), np.full(m, np.nan)
    testable = method != "none" and bool((se > 0).any())
    # With Lenth's pseudo standard error: distributions of |t| of each effect alone, and of the largest.
    ratios = lenth_ratios(lenth.count) if method == "lenth" and lenth is not None and testable else None
    if testable and lenth is not None and (ratios is not None or looked is not None):
        count = lenth.count

    def alone(size: Floats) -> Floats:
        """Probability that an effect of zero passes `size`."""
        return np.asarray(2 * stdtr(min(df, 1e9), -size) if ratios is None else ratios[0].p(size), np.float64)

    def some(size: Floats) -> Floats:
        """Probability that one or more effects pass `size` if all are zero."""
        return largest_of(size, count, df) if ratios is None else ratios[1].p(size)

    p, margin = nothing, float("nan")
    if testable:
        p = alone(np.abs(t)) if looked is None else looked.p(np.abs(t))
        margin = t_limit(df) if ratios is None else ratios[0].quantile(LEVEL)
        margin = margin if looked is None else looked.quantile(LEVEL)
    if threshold.startswith("lenth"):
        limit = Limit("none", float("nan"), float("nan"), df, count, float("nan"))
        if lenth is None:
            notes.append("there is no Lenth margin here, so no effect is marked")
            marked = np.zeros(m, bool)
        else:
            one, largest = lenth_ratios(lenth.count)
            ratio = largest if threshold == "lenth-simultaneous" else one
            p = ratio.p(size / lenth.pse if lenth.pse > 0 else nothing)
            value = ratio.quantile(LEVEL)
            chance = LEVEL if ratio is largest else float(largest.p(np.array(value)))
            kind: Kind = "lenth" if ratio is one else "lenth-simultaneous"
            limit = Limit(kind, value, LEVEL, lenth.df, lenth.count, chance)
            marked = size > value * lenth.pse
    elif not testable:
        limit = Limit("none", float("nan"), float("nan"), float("nan"), count, float("nan"))
        marked = np.zeros(m, bool)
    elif looked is not None:
        limit = Limit("selected", margin, LEVEL, df, count, LEVEL)
        marked = p < LEVEL
    elif threshold == "familywise":
        p = np.maximum(some(np.abs(t)), p)
        if ratios is None:
            limit = Limit("familywise", familywise_limit(count, df), LEVEL, df, count, LEVEL)
        else:
            value = ratios[1].quantile(LEVEL)
            limit = Limit("lenth-simultaneous", value, LEVEL, df, count, LEVEL)
        marked = p < LEVEL
    elif threshold == "fdr":
        p = false_discovery(p)
        marked = p < LEVEL
        value = float(np.abs(t)[marked].min()) if marked.any() else float("nan")
        limit = Limit("fdr", value, LEVEL, df, count, LEVEL)
    elif threshold in ("2", "3"):
        at = np.array(float(threshold))
        limit = Limit("se", float(at), float(alone(at)), df, count, float(some(at)))
        marked = np.nan_to_num(np.abs(t)) > limit.value
    else:
        kind = "t" if ratios is None else "lenth"
        limit = Limit(kind, margin, LEVEL, df, count, float(some(np.array(margin))))
        marked = np.nan_to_num(np.abs(t)) > margin
    if not size.any():
        notes.append("the response is the same in every treatment")
    elif method != "lenth" and not np.isfinite(se).any():
        notes.append("there is no error estimate; run replicates, leave terms out, or use Lenth's method")
    elif method == "replicates" and not (se > 0).any():
        notes.append("replicates are equal to the last digit, so there is no error to test with")
    wide = np.where(tested & (se > 0), margin * se, np.nan)
    return tuple(
        Effect(
            _name(data, members),
            members,
            tuple(_name(data, other) for other in same),
            float(value),
            float(error),
            float(df),
            float(ratio),
            float(chance),
            bool(mark),
            float(normal),
            low=float(value - half),
            high=float(value + half),
        )
        for members, same, value, error, ratio, chance, mark, normal, half in zip(
            terms, sets, values, se, t, p, marked & tested, quantile, wide, strict=True
        )
    ), limit


# Many: the sums that become its rows.
def _anova(
    data: Trials,
    terms: list[Members],
    model: Model,
    pure: float,
    pure_df: int,
    blocked: list[tuple[str, float, int]],
    residual_df: int,
    s2: float,
    df: float,
) -> tuple[tuple[AnovaRow, ...], float, float]:
    from scipy.special import fdtrc

    def row(source: str, ss: float, free: int, test: bool = True) -> AnovaRow:
        ms = ss / free if free else float("nan")
        f = ms / s2 if test and s2 > 0 and np.isfinite(df) else float("nan")
        p = float(fdtrc(free, df, f)) if np.isfinite(f) and free else float("nan")
        return AnovaRow(source, ss, free, ms, f, p)

    n = len(data.y)
    # N E^2 / 4 where columns are orthogonal; else the growth of the residual sum of squares without the term.
    rows = [
        row(_name(data, m), float(v) ** 2 / float(u), 1)
        for m, v, u in zip(terms, model.values, model.unit[1:], strict=True)
    ]
    rows.sort(key=lambda row: -row.ss)
    total = float(((data.y - data.y.mean()) ** 2).sum())
    if total <= n * (1e-13 * np.abs(data.y).max()) ** 2:
        total = 0.0
    rows += [row(*block) for block in blocked]
    residual = float(model.residual @ model.residual)
    lack_df = residual_df - pure_df
    if pure_df > 0 and lack_df > 0:
        rows.append(row("lack of fit", max(residual - pure, 0.0), lack_df))
    rows.append(row("residual", residual, residual_df, test=False))
    rows.append(row("total", total, n - 1, test=False))
    if not total > 0:
        return tuple(rows), float("nan"), float("nan")
    adjusted = 1 - residual / residual_df / (total / (n - 1)) if residual_df > 0 else float("nan")
    return tuple(rows), 1 - residual / total, adjusted


# --- ranks ---


@dataclass(frozen=True)
class Rank:
    """A line of the SPT rank table; ties share a rank. Effects that do not slow the program or cannot be
    distinguished from zero have rank 0; `verdict` says which."""

    rank: int
    effect: Effect
    percent: float
    verdict: Standing


Standing = Literal["slows", "helps", "not distinguishable from zero", "no error estimate"]


def ranked(effects: Effects, tie: float | None = None) -> tuple[Rank, ...]:
    """Main effects, largest first (NISTIR 5139, table 3). Effects within `tie` (None: one standard error) of
    the one before share its rank. Only effects beyond `Effects.limit` have a rank or a verdict "helps"."""
    if tie is None:
        tie = next((e.se for e in effects.effects if np.isfinite(e.se)), 0.0)
    mains = sorted((e for e in effects.effects if len(e.members) == 1), key=lambda e: -e.value)
    lines: list[Rank] = []
    last, place = np.inf, 0
    for effect in mains:
        verdict: Standing = "slows" if effect.value > 0 else "helps"
        if not effect.significant:
            tested = np.isfinite(effect.t) or np.isfinite(effect.p)
            verdict = "not distinguishable from zero" if tested else "no error estimate"
        rank = 0
        if verdict == "slows":
            place += 1
            tied = last - effect.value <= tie
            rank = next(line.rank for line in reversed(lines) if line.rank) if tied else place
            last = effect.value
        lines.append(Rank(rank, effect, effects.percent(effect), verdict))
    return tuple(lines)
