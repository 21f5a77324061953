"""Effects of artificial delays: least squares, their uncertainty, and runs that do not fit.

An *effect* is the mean response with the delay minus the mean without; a *half effect* is the regression
coefficient. Sources: NISTIR 5131 (equation 1), NISTIR 5139 (section 2), NISTIR 5417; Lenth, Technometrics 31
(1989); Daniel, Technometrics 1 (1959) for the half-normal plot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pandas import DataFrame

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Members = tuple[int, ...]
Error = Literal["replicates", "interactions", "lenth", "none"]
Threshold = Literal["t", "2", "3", "lenth", "lenth-simultaneous"]

#: Level of every test.
LEVEL = 0.05
#: Columns whose product with the others explains all but this share are linearly dependent.
_DEPENDENT = 1e-9


@dataclass(frozen=True, eq=False)
class Trials:
    """N trials of k factors: x (N, k) of -1 and +1, y (N,) response (NaN: missing), block (N,) replicate,
    label (N,) what to call a trial (its line or number), half (N,) of a foldover (0 or 1; None: no halves),
    which are run one after the other."""

    factors: tuple[str, ...]
    x: Array
    y: Array
    block: Index
    label: tuple[str, ...]
    half: Index | None = None

    def only(self, keep: NDArray[np.bool_]) -> Trials:
        """Some of them: keep (N,)."""
        labels = tuple(name for name, kept in zip(self.label, keep, strict=True) if kept)
        half = None if self.half is None else self.half[keep]
        return Trials(self.factors, self.x[keep], self.y[keep], self.block[keep], labels, half)

    def known(self) -> Trials:
        """Without the trials that have no response."""
        return self.only(np.isfinite(self.y))

    def to_frame(self) -> DataFrame:
        """One row a trial, index 0 to N - 1. Columns, dtypes, units: ``TABLES["trials"]`` of
        `desktop.core.frames`: trial (text), block (int64), response (float64, in its own unit), then a
        column a factor by its name (float64, levels -1 and +1); where a factor is called like another
        column, ``"level of <name>"``.
        """
        from desktop.core.frames import TABLES, frame

        columns: dict[str, Any] = {"trial": self.label, "block": self.block, "response": self.y}
        for k, name in enumerate(self.factors):
            columns[f"level of {name}" if name in columns else name] = self.x[:, k]
        return frame(TABLES["trials"], columns)


def trials(
    factors: Sequence[str],
    x: Array,
    y: Array,
    block: Index | None = None,
    label: Sequence[str] | None = None,
    half: Index | None = None,
) -> Trials:
    """Check and assemble.

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
    return Trials(tuple(factors), x, y, blocks, names, half)


def missing(data: Trials) -> tuple[str, ...]:
    """Labels of the trials without a response, or with none that is finite."""
    return tuple(name for name, y in zip(data.label, data.y, strict=True) if not np.isfinite(y))


@dataclass(frozen=True)
class Effect:
    """`value` is the full effect; se, t, p NaN where there is no error estimate. `members`: the word that
    stands for the alias set. `estimable` False: the trials cannot tell (value NaN)."""

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

    @property
    def half(self) -> float:
        """Regression coefficient, the beta of NISTIR 5417."""
        return self.value / 2


@dataclass(frozen=True)
class Lenth:
    """Lenth's pseudo standard error of m effects, with margin and simultaneous margin of error."""

    s0: float
    pse: float
    df: float
    me: float
    sme: float


@dataclass(frozen=True)
class Suspect:
    """A trial (or treatment) that does not fit the effects that stand out."""

    label: str
    value: float
    expected: float
    t: float


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
    """Result of `analyse`. Effects are in standard order (1 left out). `variance`: pooled, of one trial.
    `correlation`: largest between two columns, 0 for orthogonal designs."""

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
    threshold: str
    notes: tuple[str, ...] = ()
    fitted: Array = field(default_factory=lambda: np.empty(0))

    def to_frame(self) -> DataFrame:
        """One row an effect in standard order, the index its term. Columns, dtypes, units:
        ``TABLES["effects"]`` of `desktop.core.frames`: term, aliases (text), effect, half_effect, se
        (float64, in the unit of the response), df, t, p, half_normal (float64), significant, estimable
        (bool).
        """
        from desktop.core.frames import TABLES, frame

        columns: dict[str, Any] = {
            name: [getattr(effect, name) for effect in self.effects]
            for name in ("term", "se", "df", "t", "p", "significant", "half_normal", "estimable")
        }
        columns["effect"] = [effect.value for effect in self.effects]
        columns["half_effect"] = [effect.half for effect in self.effects]
        columns["aliases"] = [", ".join(effect.aliases) for effect in self.effects]
        return frame(TABLES["effects"], columns, index=columns["term"])

    def anova_frame(self) -> DataFrame:
        """The analysis of variance, one row a source. Columns, dtypes: ``TABLES["anova"]`` of
        `desktop.core.frames`: source (text), ss, ms, f, p (float64; squares in the squared unit of the
        response), df (int64).
        """
        from desktop.core.frames import TABLES, frame

        names = ("source", "ss", "df", "ms", "f", "p")
        return frame(TABLES["anova"], {name: [getattr(row, name) for row in self.anova] for name in names})

    def effect(self, term: str) -> Effect:
        """By its name, or that of an alias; KeyError if there is none."""
        for found in self.effects:
            if found.term == term or term in found.aliases:
                return found
        raise KeyError(term)

    def percent(self, effect: Effect) -> float:
        """Of the unperturbed run."""
        return 100.0 * effect.value / self.unperturbed if self.unperturbed else float("nan")

    def predict(self, levels: Sequence[float]) -> tuple[float, float]:
        """Response at a setting (k,) of -1..+1 from all estimable terms, and its standard error."""
        x = np.asarray(levels, np.float64)
        terms = [e for e in self.effects if e.estimable]
        row = np.array([1.0] + [float(np.prod(x[list(e.members)])) / 2 for e in terms])
        values = np.array([self.mean] + [e.value for e in terms])
        errors = np.array([self.mean_se] + [e.se for e in terms])
        return float(row @ values), float(np.sqrt(((row * errors) ** 2).sum()))


def standard_order(count: int) -> list[Members]:
    """All words of k factors in Yates order, without the identity: A, B, AB, C, AC, ..."""
    return [tuple(j for j in range(count) if word >> j & 1) for word in range(1, 1 << count)]


def analyse(
    data: Trials,
    *,
    error: Error | None = None,
    terms: Sequence[Members] | None = None,
    threshold: Threshold = "t",
    blocks: bool = True,
    aliases_up_to: int = 2,
) -> Effects:
    """Effects of a two-level experiment.

    Parameters
    ----------
    error : where the standard error comes from; None: replicates, else (terms left out) interactions, else
        Lenth. ``interactions``: terms of two or more factors where all were asked for.
    terms : words to estimate; None: every word that the trials can tell apart, main effects first claimed,
        in standard order of the base factors.
    threshold : what marks an effect: ``t`` the quantile with the true degrees of freedom, ``2`` or ``3``
        standard errors, or Lenth's margins.
    blocks : replicates are blocks if every treatment ran once in each; so are the halves of a foldover, and
        the term that is + in the one and - in the other is taken as the change between them.

    Raises
    ------
    ValueError : fewer than two treatments with a response, or an error method without its data.
    """
    notes: list[str] = []
    lost = missing(data)
    data = data.known()
    if lost:
        notes.append(
            f"{len(lost)} trials have no response (run {', '.join(lost[:8])}{', ...' * (len(lost) > 8)}); "
            "effects are least squares, no plain contrasts"
        )
    treatments, number, counts = np.unique(data.x, axis=0, return_inverse=True, return_counts=True)
    number = number.ravel()
    if len(treatments) < 2:
        raise ValueError("fewer than two treatments have a response, so there is no effect to see")
    if counts.min() < counts.max():
        notes.append("treatments have different numbers of trials; effects are least squares")
    side = _side(data, number, len(treatments)) if blocks else None
    chosen, sets, untold = _terms(treatments, len(data.factors), terms, aliases_up_to, side)
    halves = [] if side is None else [m for m in untold if _mark(treatments, m) == _signature(side)]
    untold = [m for m in untold if m not in halves]
    if untold:
        notes.append("the trials cannot tell these terms: " + ", ".join(_name(data, m) for m in untold[:8]))
    if not chosen:
        raise ValueError("the trials can tell none of the terms")
    correlation = _worst_correlation(np.stack([_column(data.x, m) for m in chosen], axis=1))
    if correlation > 1e-9:
        notes.append(f"the columns are not orthogonal (largest correlation {correlation:.2f})")
    as_blocks = blocks and _are_blocks(data, number)
    shifts = np.zeros((len(data.y), 0)) if side is None else side[number, np.newaxis] / 2
    mean, values, unit = _least_squares(data, chosen, shifts)
    shift, shift_unit = values[len(chosen) :], unit[1 + len(chosen) :]
    values, unit = values[: len(chosen)], unit[: 1 + len(chosen)]
    if side is not None:
        notes += _told_of_halves(data, treatments, side, float(shift[0]), halves)
    values[np.abs(values) <= 1e-13 * np.abs(data.y).max()] = 0.0  # rounding
    pure, pure_df, block_ss, block_df = _pure_error(data, number, len(treatments), as_blocks)
    lenth = lenth_of(values)
    # The sums of what are equal numbers differ by rounding.
    if pure <= len(data.y) * (1e-13 * np.abs(data.y).max()) ** 2:
        pure = 0.0
    fitted = mean + shifts @ shift + sum(
        (v / 2 * _column(data.x, m) for v, m in zip(values, chosen, strict=True)), np.zeros(len(data.y))
    )  # fmt: skip
    method = error or _default_error(pure_df, len(treatments) - 1 - len(chosen) - shift.size, lenth)
    spare = len(data.y) - 1 - len(chosen) - shift.size
    s2, df = _variance(
        method, data.y - fitted, spare, chosen, values, unit, pure, pure_df, lenth, terms is not None
    )
    if s2 == 0.0 and not values.any():
        s2 = float("nan")  # of a response that is the same everywhere
    se = np.sqrt(unit[1:] * s2) if np.isfinite(s2) else np.full(values.size, np.nan)
    mean_se = float(np.sqrt(unit[0] * s2)) if np.isfinite(s2) else float("nan")
    if method == "lenth" and lenth is not None:
        # Lenth's error is that of an effect itself.
        se = np.full(values.size, lenth.pse)
        mean_se, s2 = lenth.pse / 2, float(lenth.pse**2 * len(data.y) / 4)
    found = _effects(data, chosen, sets, values, se, df, method, threshold, lenth, notes)
    zero = np.flatnonzero((data.x == -1).all(axis=1))
    base = (
        float(data.y[zero].mean())
        if zero.size
        else float(mean + sum(v / 2 * (-1) ** len(m) for v, m in zip(values, chosen, strict=True)))
    )
    if not zero.size:
        notes.append("the unperturbed program was not run; percentages refer to its predicted response")
    blocked = [("halves", float(v**2 / u), 1) for v, u in zip(shift, shift_unit, strict=True)]
    blocked += [("replicate", block_ss, block_df)] if as_blocks else []
    anova, r2, adjusted = _anova(
        data, chosen, values, unit, fitted, pure, pure_df, blocked, spare - block_df, s2, df
    )
    return Effects(
        data, found, mean, mean_se, method, float(s2), int(df) if np.isfinite(df) else 0, lenth, base,
        bool(zero.size), _suspects(data, shifts, found, lenth), anova, r2, adjusted,
        correlation, _threshold_text(threshold, df), tuple(notes), fitted,
    )  # fmt: skip


def _column(x: Array, members: Members) -> Array:
    return np.prod(x[:, list(members)], axis=1)


def _name(data: Trials, members: Members) -> str:
    return ":".join(data.factors[j] for j in members)


def _side(data: Trials, number: Index, treatments: int) -> Array | None:
    """(treatments,) -1 in the first half of a foldover, +1 in the second; None while there is one of them."""
    if data.half is None or np.unique(data.half).size != 2:
        return None
    side = np.zeros(treatments)
    side[number] = np.where(data.half == data.half.min(), -1.0, 1.0)
    return side


def _told_of_halves(
    data: Trials, treatments: Array, side: Array, shift: float, halves: list[Members]
) -> list[str]:
    """What happened between the halves, and what the second tells apart that the first could not."""
    word = f"; {_name(data, halves[0])} cannot be told from that" if halves else ""
    notes = [f"the halves are blocks: from the first to the second the response changed by {shift:.4g}{word}"]
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
        notes.append(f"the second half tells apart {'; '.join(apart[:8])}{more}")
    return notes


def _terms(
    treatments: Array, count: int, wanted: Sequence[Members] | None, order: int, side: Array | None = None
) -> tuple[list[Members], list[list[Members]], list[Members]]:
    """Terms that can be told apart, the alias set of each, and those of `wanted` that cannot be estimated.

    Columns that are equal up to sign are aliases. `side`: a column that is taken already.
    """
    candidates: list[Members] = []
    for size in range(1, min(order, count) + 1):
        candidates += combinations(range(count), size)
    basis = _base(treatments)
    # A factorial or regular fraction, of which a few runs may be missing.
    whole = len(treatments) == 1 << len(basis)
    if wanted is None and 4 * len(treatments) > 3 << len(basis):
        words = [tuple(basis[i] for i in word) for word in standard_order(len(basis))]
        candidates = candidates + [w for w in words if len(w) > order]
    elif wanted is None:
        words = [(j,) for j in range(count)]
    else:
        words = [tuple(sorted(w)) for w in wanted]
    groups: dict[bytes, list[Members]] = {}
    for members in candidates:
        groups.setdefault(_signature(_column(treatments, members)), []).append(members)
    taken: set[bytes] = set()
    chosen, sets, lost = [], [], []
    kept: list[Array] = [np.ones(len(treatments))]
    if side is not None:
        taken.add(_signature(side))
        kept.append(side)
    # Small words claim their columns first: with runs missing, main effects stay estimable.
    for members in sorted(words, key=lambda w: (len(groups.get(_mark(treatments, w), [w])[0]), len(w))):
        column = _column(treatments, members)
        mark = _signature(column)
        same = groups.get(mark, [members])
        # Different columns of a whole fraction are orthogonal.
        if mark in taken or not (np.any(column != column[0]) if whole else _independent(kept, column)):
            lost.append(members)
            continue
        taken.add(mark)
        kept.append(column)
        # A main effect is more likely than an interaction; else the word of the base factors stands.
        main = [w for w in same if len(w) == 1]
        name = main[0] if main and wanted is None else members
        chosen.append(name)
        sets.append([w for w in same if w != name])
    still = [(j,) for j in range(count) if (treatments[:, j] == treatments[0, j]).all()]
    lost += [members for members in still if members not in lost]
    rank = {tuple(w): i for i, w in enumerate(words)}
    place = {_mark(treatments, w): rank[w] for w in reversed(words)}
    order_of = sorted(range(len(chosen)), key=lambda i: place[_mark(treatments, chosen[i])])
    return [chosen[i] for i in order_of], [sets[i] for i in order_of], lost


def _mark(treatments: Array, members: Members) -> bytes:
    return _signature(_column(treatments, members))


def _signature(column: Array) -> bytes:
    """The same for a column and its negative."""
    return (column * column[0]).astype(np.int8).tobytes()


def _independent(kept: list[Array], column: Array) -> bool:
    if len(kept) >= column.size:
        return False
    basis = np.stack(kept, axis=1)
    if np.abs(basis.T @ column).max() < 1e-9:
        return True
    rest = column - basis @ np.linalg.lstsq(basis, column, rcond=None)[0]
    return bool(rest @ rest > _DEPENDENT * (column @ column))


def _base(treatments: Array) -> list[int]:
    """Factors whose columns are no products of earlier ones."""
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


def _worst_correlation(columns: Array) -> float:
    if columns.shape[1] < 2:
        return 0.0
    centred = columns - columns.mean(0)
    norms = np.linalg.norm(centred, axis=0)
    usable = norms > 1e-12
    r = (centred[:, usable] / norms[usable]).T @ (centred[:, usable] / norms[usable])
    np.fill_diagonal(r, 0.0)
    return float(np.abs(r).max()) if r.size else 0.0


def _halves(data: Trials) -> Index:
    return np.zeros(len(data.y), np.int64) if data.half is None else data.half


def _are_blocks(data: Trials, number: Index) -> bool:
    """Every treatment (of a half) ran once in each of two or more replicates."""
    half, whole, most = _halves(data), 0, 0
    for h in np.unique(half):
        replicates = np.unique(data.block[half == h]).size
        whole += replicates * np.unique(number[half == h]).size
        most = max(most, replicates)
    if most < 2 or len(data.y) != whole:
        return False
    return np.unique(np.stack([half, data.block, number]), axis=1).shape[1] == len(data.y)


def _least_squares(data: Trials, chosen: list[Members], more: Array) -> tuple[float, Array, Array]:
    """Mean, effects, those of the columns `more`, and their variances for unit variance of a trial (mean
    first)."""
    x = np.stack([np.ones(len(data.y)), *(_column(data.x, m) / 2 for m in chosen), *more.T], axis=1)
    q, r = np.linalg.qr(x)
    values = np.linalg.solve(r, q.T @ data.y)
    inverse = np.linalg.inv(r)
    return float(values[0]), values[1:], (inverse**2).sum(1)


def _pure_error(data: Trials, number: Index, treatments: int, blocks: bool) -> tuple[float, int, float, int]:
    """Sum of squares and degrees of freedom within treatments (blocks taken out), and of the blocks."""
    sums = np.bincount(number, data.y, treatments)
    counts = np.bincount(number, minlength=treatments)
    rest = data.y - (sums / counts)[number]
    ss, df = float(rest @ rest), len(data.y) - treatments
    if not blocks:
        return ss, df, 0.0, 0
    half = _halves(data)
    labels, place = np.unique(np.stack([half, data.block]), axis=1, return_inverse=True)
    means = (np.bincount(place.ravel(), data.y) / np.bincount(place.ravel()))[place.ravel()]
    groups = np.unique(half)
    centre = np.select([half == h for h in groups], [data.y[half == h].mean() for h in groups])
    block_ss = float(((means - centre) ** 2).sum())
    block_df = labels.shape[1] - groups.size
    return max(ss - block_ss, 0.0), df - block_df, block_ss, block_df


def _default_error(pure_df: int, spare: int, lenth: Lenth | None) -> Error:
    if pure_df > 0:
        return "replicates"
    if spare > 0:
        return "interactions"
    return "lenth" if lenth else "none"


def _variance(
    method: Error,
    rest: Array,
    df: int,
    chosen: list[Members],
    values: Array,
    unit: Array,
    pure: float,
    pure_df: int,
    lenth: Lenth | None,
    asked: bool,
) -> tuple[float, float]:
    """Variance of one trial, and its degrees of freedom. `rest`, `df`: what the terms leave. `asked`: the
    terms `chosen` were asked for, so that what was left out is the error."""
    if method == "replicates":
        if pure_df <= 0:
            raise ValueError("no treatment ran twice, so replicates say nothing of the error")
        return pure / pure_df, float(pure_df)
    if method == "interactions":
        high = np.array([len(m) > 1 for m in chosen], bool)
        if high.any() and not (asked and df > 0):
            return float((values[high] ** 2 / unit[1:][high]).mean()), float(high.sum())
        if df <= 0:
            raise ValueError("every effect is estimated, so no interaction is left to give the error")
        return float(rest @ rest) / df, float(df)
    if method == "lenth":
        if lenth is None:
            raise ValueError("Lenth's method needs three or more effects that are not all zero")
        return float("nan"), lenth.df
    return float("nan"), float("nan")


def lenth_of(values: Array) -> Lenth | None:
    """Lenth 1989; None for fewer than three effects, or if all are zero."""
    from scipy.special import stdtrit

    size = np.abs(np.asarray(values, np.float64))
    size = size[np.isfinite(size)]
    if size.size < 3 or not size.any():
        return None
    s0 = 1.5 * float(np.median(size))
    inner = size[size < 2.5 * s0]
    pse = 1.5 * float(np.median(inner)) if inner.size else 0.0
    df = size.size / 3.0
    me = float(stdtrit(df, 1 - LEVEL / 2)) * pse
    sme = float(stdtrit(df, (1 + (1 - LEVEL) ** (1 / size.size)) / 2)) * pse
    return Lenth(s0, pse, df, me, sme)


def _effects(
    data: Trials,
    chosen: list[Members],
    sets: list[list[Members]],
    values: Array,
    se: Array,
    df: float,
    method: Error,
    threshold: Threshold,
    lenth: Lenth | None,
    notes: list[str],
) -> tuple[Effect, ...]:
    from scipy.special import ndtri, stdtr, stdtrit

    size = np.abs(values)
    m = values.size
    rank = np.empty(m, np.int64)
    rank[np.argsort(size, kind="stable")] = np.arange(m)
    quantile = ndtri(0.5 + 0.5 * (rank + 0.5) / m)
    with np.errstate(invalid="ignore", divide="ignore"):
        t = np.where(se > 0, values / se, np.nan)
        p = 2 * stdtr(df, -np.abs(t)) if np.isfinite(df) else np.full(m, np.nan)
    if threshold.startswith("lenth") and lenth is None:
        notes.append("there is no Lenth margin here, so no effect is marked")
    if threshold == "lenth":
        marked = size > lenth.me if lenth else np.zeros(m, bool)
    elif threshold == "lenth-simultaneous":
        marked = size > lenth.sme if lenth else np.zeros(m, bool)
    else:
        limit = float(threshold) if threshold in ("2", "3") else float(stdtrit(df, 1 - LEVEL / 2))
        with np.errstate(invalid="ignore"):
            marked = np.abs(t) > limit
    if not size.any():
        notes.append("the response is the same in every treatment")
    elif method != "lenth" and not np.isfinite(se).any():
        notes.append("there is no error estimate; run replicates, leave terms out, or use Lenth's method")
    elif method == "replicates" and not (se > 0).any():
        notes.append("replicates are equal to the last digit, so there is no error to test with")
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
        )
        for members, same, value, error, ratio, chance, mark, normal in zip(
            chosen, sets, values, se, t, p, marked, quantile, strict=True
        )
    )


def _threshold_text(threshold: Threshold, df: float) -> str:
    if threshold == "t" and not np.isfinite(df):
        return "nothing, as there is no error estimate"
    return {
        "t": f"the 95 % quantile of Student's t with {df:.3g} degrees of freedom",
        "2": "2 standard errors",
        "3": "3 standard errors",
        "lenth": "Lenth's margin of error",
        "lenth-simultaneous": "Lenth's simultaneous margin of error",
    }[threshold]


def _suspects(
    data: Trials, shifts: Array, found: tuple[Effect, ...], lenth: Lenth | None
) -> tuple[Suspect, ...]:
    """Runs far from the model of the effects that stand out: |t| above the quantile for so many runs.

    One wrong run gives all effects that are not active about the same size, so the test is made with the
    active ones only: those above Lenth's margin, or marked ones where there are replicates.
    """
    from scipy.special import stdtrit

    # Of replicated treatments every trial is judged against its fellows, too.
    active = [e.members for e in found if (abs(e.value) > lenth.me if lenth else e.significant)]
    n = len(data.y)
    x = np.stack([np.ones(n), *(_column(data.x, m) for m in active), *shifts.T], axis=1)
    df = n - x.shape[1] - 1
    if df < 3:
        return ()
    q = np.linalg.qr(x)[0]
    hat = (q**2).sum(1)
    rest = data.y - q @ (q.T @ data.y)
    s2 = float(rest @ rest)
    with np.errstate(invalid="ignore", divide="ignore"):
        others = (s2 - rest**2 / (1 - hat)) / df
        t = np.where((others > 1e-12 * max(s2, 1e-300)) & (hat < 1), rest / np.sqrt(others * (1 - hat)), 0.0)
    limit = float(stdtrit(df, 1 - LEVEL / 2 / n))
    return tuple(
        Suspect(data.label[i], float(data.y[i]), float(data.y[i] - rest[i] / (1 - hat[i])), float(t[i]))
        for i in np.argsort(-np.abs(t))
        if abs(t[i]) > limit
    )


def _anova(
    data: Trials,
    chosen: list[Members],
    values: Array,
    unit: Array,
    fitted: Array,
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
    # N E^2 / 4 where columns are orthogonal; else what the sum of squares grows by without the term.
    rows = [
        row(_name(data, m), float(v) ** 2 / float(u), 1)
        for m, v, u in zip(chosen, values, unit[1:], strict=True)
    ]
    total = float(((data.y - data.y.mean()) ** 2).sum())
    if total <= n * (1e-13 * np.abs(data.y).max()) ** 2:
        total = 0.0
    rest = data.y - fitted
    rows += [row(*block) for block in blocked]
    # The change between the halves is in what was fitted; that between replicates is not.
    residual = max(float(rest @ rest) - sum(ss for source, ss, _ in blocked if source == "replicate"), 0.0)
    lack_df = residual_df - pure_df
    if pure_df > 0 and lack_df > 0:
        rows.append(row("lack of fit", max(residual - pure, 0.0), lack_df))
    rows.append(row("residual", residual, residual_df, test=False))
    rows.append(row("total", total, n - 1, test=False))
    r2 = 1 - residual / total if total > 0 else float("nan")
    adjusted = (
        1 - residual / residual_df / (total / (n - 1)) if total > 0 and residual_df > 0 else float("nan")
    )
    return tuple(rows), r2, adjusted


# --- ranks ---


@dataclass(frozen=True)
class Rank:
    """A line of the SPT rank table: ties share a rank; negative effects are a group of their own (rank 0)."""

    rank: int
    effect: Effect
    percent: float


def ranked(found: Effects, tie: float = 0.0) -> tuple[Rank, ...]:
    """Main effects, largest first (NISTIR 5139, table 3); within `tie` of the one before they are equal."""
    mains = sorted((e for e in found.effects if len(e.members) == 1), key=lambda e: -e.value)
    lines: list[Rank] = []
    last = np.inf
    for place, effect in enumerate(mains, 1):
        rank = 0 if effect.value < 0 else place
        if lines and rank and last - effect.value <= tie:
            rank = lines[-1].rank
        last = effect.value
        lines.append(Rank(rank, effect, found.percent(effect)))
    return tuple(lines)


# --- planning ---


def detectable(sigma: float, treatments: int, replicates: int, power: float = 0.9) -> float:
    """Full effect that is found with that chance at the 5 % level; NaN without degrees of freedom."""
    from scipy.special import stdtrit

    df = (treatments - 1) * (replicates - 1)
    if df <= 0:
        return float("nan")
    se = 2 * sigma / np.sqrt(treatments * replicates)
    return float((stdtrit(df, 1 - LEVEL / 2) + stdtrit(df, power)) * se)


def replicates_for(sigma: float, effect: float, treatments: int) -> int:
    """Replicates so that three standard errors stay below the effect: ceil((6 s / effect)^2 / n).

    Raises
    ------
    ValueError : the effect is not positive.
    """
    if not effect > 0:
        raise ValueError("the effect to be seen has to be positive")
    return max(1, int(np.ceil((6 * sigma / effect) ** 2 / treatments - 1e-9)))


# --- scaling, barriers, doses ---


@dataclass(frozen=True)
class Scaling:
    """An effect A at p and B at p' > p (NISTIR 5417, table 3): `interaction` (B - A)/2 (its header says
    (A - B)/2, its numbers do not), `ratio` (B - A)/(A + B), `exponent` ln(B/A)/ln(p'/p): -1 for work that is
    shared perfectly, 0 for serial work."""

    term: str
    small: float
    large: float
    middle: float
    interaction: float
    se: float
    ratio: float
    exponent: float


def scaling(
    small: dict[str, tuple[float, float]],
    small_p: float,
    large: dict[str, tuple[float, float]],
    large_p: float,
) -> tuple[Scaling, ...]:
    """Effects (value, se) by name at two numbers of processors, in the order of the first.

    Raises
    ------
    ValueError : large_p is not above small_p, or the tables have no name in common.
    """
    if not large_p > small_p >= 1:
        raise ValueError(
            f"the scaling test needs a larger number of processors than {small_p:g}, got {large_p:g}"
        )
    names = [name for name in small if name in large]
    if not names:
        raise ValueError("the two tables have no effect of the same name")
    found = []
    for name in names:
        (a, se_a), (b, se_b) = small[name], large[name]
        exponent = np.log(b / a) / np.log(large_p / small_p) if a > 0 and b > 0 else float("nan")
        ratio = (b - a) / (a + b) if a + b else float("nan")
        found.append(
            Scaling(
                name,
                a,
                b,
                (a + b) / 2,
                (b - a) / 2,
                float(np.hypot(se_a, se_b) / 2),
                float(ratio),
                float(exponent),
            )
        )
    return tuple(found)


Verdict = Literal[
    "scales", "does not scale", "undecided", "no effect", "system does not speed up", "no verdict"
]


@dataclass(frozen=True)
class ScaleTest:
    """One factor and the scale (NISTIR 5417, table 4); half effects. `excess` is D = b_cds - b_cd b_s / mu:
    below zero the factor's share of the run time does not grow."""

    mu: float
    factor: float
    scale: float
    interaction: float
    se: float
    threshold: float
    excess: float
    excess_se: float
    verdict: Verdict
    reason: str


def scale_test(
    mu: float, factor: float, scale: float, interaction: float, se: float, k: float = 2.0
) -> ScaleTest:
    """Verdict from the half effects of a 2^2 experiment and the standard error of each.

    Raises
    ------
    ValueError : the standard error is below zero.
    """
    if se < 0:
        raise ValueError(f"a standard error is not below zero, got {se:g}")
    if not mu > 0:
        nan, reason = float("nan"), "the mean is not positive"
        return ScaleTest(mu, factor, scale, interaction, se, nan, nan, nan, "no verdict", reason)
    share, speed = factor / mu, scale / mu
    threshold = share * scale
    excess = interaction - threshold
    excess_se = se * float(np.sqrt(1 + speed**2 + share**2 + (factor * scale / mu**2) ** 2))
    verdict: Verdict
    if not np.isfinite(se):
        verdict, reason = "no verdict", "there is no standard error; run replicates, or say one"
    elif abs(factor) < k * se:
        verdict, reason = "no effect", f"its half effect is below {k:g} standard errors"
    elif factor <= 0:
        verdict, reason = "no verdict", "the delay does not make the program slower"
    elif scale >= -k * se:
        verdict, reason = "system does not speed up", "more processors do not shorten the run"
    elif excess < -k * excess_se:
        verdict, reason = "scales", "its share of the run time falls"
    elif excess > k * excess_se:
        verdict, reason = "does not scale", "its share of the run time grows"
    else:
        verdict, reason = "undecided", "the change of its share is within the error, run more replicates"
    return ScaleTest(mu, factor, scale, interaction, se, threshold, excess, excess_se, verdict, reason)


@dataclass(frozen=True)
class Barrier:
    """Artificial critical sections before (FB1) and after (FB2) a barrier: the difference is what is waited
    there (NISTIR 5139, table 11)."""

    before: float
    after: float
    difference: float
    se: float
    t: float
    share: float


def barrier(before: float, after: float, se_difference: float, cost: float = 0.0) -> Barrier:
    """`cost`: effect of the artificial barrier itself (FB2 with delay 0), which is subtracted."""
    net = after - cost
    difference = net - before
    t = difference / se_difference if se_difference > 0 else float("nan")
    return Barrier(before, net, difference, se_difference, t, difference / net if net else float("nan"))


@dataclass(frozen=True, eq=False)
class Dose:
    """Effect per unit of delay at several sizes (NISTIR 5131, figure 3). `linear` False: it changes by more
    than the error, or its sign does."""

    delay: Array
    effect: Array
    se: Array
    per_unit: Array
    per_unit_se: Array
    linear: bool
    warning: str


def dose(delay: Array, effect: Array, se: Array, k: float = 2.0) -> Dose:
    """delay, effect, se : (K,), K >= 2, delays positive. Where no size has a standard error (0 or NaN),
    effects per unit are the same only if they differ by no more than rounding.

    Raises
    ------
    ValueError : fewer than two sizes, or one that is not positive.
    """
    order = np.argsort(delay)
    delay, effect, se = (np.asarray(v, np.float64)[order] for v in (delay, effect, se))
    if delay.size < 2 or not (delay > 0).all():
        raise ValueError("two or more positive sizes of the delay are needed")
    unit, unit_se = effect / delay, se / delay
    least = np.nan_to_num(unit_se)
    least = np.maximum(least, max(1e-9 * float(np.abs(unit).max()), 1e-150))
    weight = 1 / least**2
    mean = float((unit * weight).sum() / weight.sum())
    away = np.abs(unit - mean) > k * least
    sure = np.abs(effect) > k * np.nan_to_num(se)
    turned = bool((effect[sure] > 0).any() and (effect[sure] < 0).any())
    warning = ""
    if turned:
        warning = "the sign of the effect changes with the size of the delay, so no linear model holds"
    elif away.any():
        warning = "the effect does not grow in proportion to the delay, so effects hold for this size only"
    if warning:
        warning += "; search with an orthogonal array of several sizes"
    return Dose(delay, effect, se, unit, unit_se, not warning, warning)


@dataclass(frozen=True)
class OverProcessors:
    """An effect over processors: a/p + b by weighted least squares, and the slope of ln effect on ln p."""

    shared: float
    shared_se: float
    serial: float
    serial_se: float
    slope: float


def over_processors(p: Array, effect: Array, se: Array | None = None) -> OverProcessors:
    """p, effect : (K,), K >= 3 (NISTIR 5139, tables 5 to 8). All count the same if not all standard errors
    are known and positive.

    Raises
    ------
    ValueError : fewer than three different p.
    """
    p, effect = np.asarray(p, np.float64), np.asarray(effect, np.float64)
    if np.unique(p).size < 3:
        raise ValueError("three or more numbers of processors are needed")
    if se is not None and not (np.asarray(se) > 0).all():
        se = None
    weight = np.ones(p.size) if se is None else 1 / np.asarray(se, np.float64)
    x = np.stack([1 / p, np.ones(p.size)], axis=1) * weight[:, None]
    q, r = np.linalg.qr(x)
    value = np.linalg.solve(r, q.T @ (effect * weight))
    inverse = np.linalg.inv(r)
    rest = effect * weight - x @ value
    s2 = 1.0 if se is not None else float(rest @ rest) / max(p.size - 2, 1)
    errors = np.sqrt((inverse**2).sum(1) * s2)
    positive = effect > 0
    slope = float("nan")
    if np.unique(p[positive]).size >= 2:
        slope = float(np.polyfit(np.log(p[positive]), np.log(effect[positive]), 1)[0])
    return OverProcessors(float(value[0]), float(errors[0]), float(value[1]), float(errors[1]), slope)
