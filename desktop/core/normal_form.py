"""A function of p for every cell, searched in one class: the performance model normal form (PMNF).

    T(p) = c0 + sum over k of ck p^ik log2(p)^jk

with none, one or two terms, whichever predicts left-out points best. Sources: Calotoiu, Hoefler, Poke, Wolf,
SC 2013 (the class, as in Extra-P); Ritter et al., IPDPS 2020 (choice by cross-validation). Unlike there,
errors are relative, exponents may be negative, and forms must be positive up to ten times the measured p.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations

import numpy as np

from desktop.core.arrays import Floats
from desktop.core.factor_fit import Measurements
from desktop.core.factor_intervals import AT_ONCE, CONFIDENCE, FARTHEST, conformal, quantile
from desktop.core.units import digits
from desktop.progress import Progress

_POWERS = "-2 -3/2 -4/3 -1 -3/4 -2/3 -1/2 -1/3 -1/4 0 1/4 1/3 1/2 2/3 3/4 1"
#: (exponent of p, as written and as a number; exponent of log2 p)
_TERMS = tuple(
    (text, float(Fraction(text)), j) for text in _POWERS.split() for j in range(3) if (text, j) != ("0", 0)
)
#: A further term has to reduce the cross-validation error to less than this part of it.
_WORTH = 0.8
#: Smallest number of different p for a search.
FEWEST = 4


@dataclass(frozen=True, eq=False)
class NormalForm:
    """The form of one cell. terms : indices into `_TERMS`; weights : (terms + 1,), the constant first, in
    seconds (or t'/p). error : root mean square of the logarithm of measured over predicted, where each inner
    one of `points` different p from `least` to `largest` is predicted by a search without it (the search's
    own cross-validation error is biased: it is the least of a thousand); NaN with too few points."""

    code: int
    system: int
    terms: tuple[int, ...]
    weights: Floats
    error: float
    points: int
    least: float
    largest: float

    def value(self, p: Floats) -> Floats:
        """Time at p (K,)."""
        return _design(np.asarray(p, np.float64), self.terms) @ self.weights

    @property
    def text(self) -> str:
        """The function as text, with three digits."""
        parts = [digits(self.weights[0], 3)] if self.weights[0] else []
        for weight, k in zip(self.weights[1:], self.terms, strict=True):
            power, number, logs = _TERMS[k]
            factors = [f"p^({power})"] if number not in (0.0, 1.0) else ["p"] * (number == 1.0)
            factors += [f"log2(p)^{logs}" if logs > 1 else "log2(p)"] * bool(logs)
            parts.append(f"{digits(weight, 3)} {' '.join(factors)}")
        return " + ".join(parts).replace("+ −", "− ")


@dataclass(frozen=True, eq=False)
class NormalForms:
    """Forms of all cells with `FEWEST` or more p. spread : of the logarithms of left-out points; rise,
    times : as `rise`, `far_times` of `desktop.core.factor_intervals.Widths`, from the largest p of `ends`
    cells."""

    forms: tuple[NormalForm, ...]
    spread: float
    rise: float
    times: float
    ends: int

    def interval(self, form: NormalForm, p: Floats) -> tuple[Floats, Floats, Floats]:
        """Time at p (K,), and the 95 % interval of one new measurement, low and high; (K,) each."""
        p = np.asarray(p, np.float64)
        value = form.value(p)
        far = np.maximum(np.maximum(np.log(p / form.largest), np.log(form.least / p)), 0.0)
        df = np.where(far > 0, max(self.ends, 1), max(sum(one.points for one in self.forms), 1))
        times = quantile(df) * (1.0 + (self.times - 1.0) * np.minimum(far / AT_ONCE, 1.0))
        half = times * self.spread * np.sqrt(1.0 + self.rise * far)
        with np.errstate(invalid="ignore"):
            time = np.where(value > 0, value, np.nan)
        return value, time * np.exp(-half), time * np.exp(half)


def search_forms(data: Measurements, progress: Progress | None = None) -> NormalForms:
    """Find the form of every cell, and how well such forms predict.

    Raises
    ------
    ValueError : no cell has points at `FEWEST` different p.
    """
    progress = progress or Progress()
    time = data.time / data.p if data.transformed else data.time
    cells = np.unique(np.stack([data.code, data.system], axis=1), axis=0).tolist()
    forms: list[NormalForm] = []
    errors: list[float] = []
    far: list[float] = []
    ends = 0
    for done, (c, s) in enumerate(cells):
        progress.step(done, len(cells), f"{data.codes[c]} on {data.systems[s]}")
        mine = (data.code == c) & (data.system == s)
        p = np.unique(data.p[mine])
        if p.size < FEWEST:
            continue
        y = np.array([np.median(time[mine & (data.p == one)]) for one in p])
        again = []
        for k in range(1, p.size - 1 if p.size > FEWEST else 0):
            value = _form(c, s, np.delete(p, k), np.delete(y, k)).value(p[k : k + 1])[0]
            again.append(np.log(y[k] / value) ** 2)
        forms.append(replace(_form(c, s, p, y), error=float(np.sqrt(np.mean(again))) if again else np.nan))
        for gone in (1, 2):
            if p.size - gone >= FEWEST:
                value = _form(c, s, p[:-gone], y[:-gone]).value(p[-1:])[0]
                if value > 0:
                    errors.append(float(np.log(y[-1] / value)))
                    far.append(float(np.log(p[-1] / p[-1 - gone])))
                    ends += gone == 1
    if not forms:
        raise ValueError(f"no cell has points at {FEWEST} or more different p, which a search needs")
    squares = [form.error**2 for form in forms if np.isfinite(form.error)]
    spread = float(np.sqrt(np.mean(squares))) if squares else float("nan")
    if not errors or not spread > 0:
        return NormalForms(tuple(forms), spread, 0.0, 1.0, 0)
    z2, distance = np.array(errors) ** 2 / spread**2, np.array(far)
    rise = max(0.0, float((z2 - 1.0).sum() / distance.sum()))
    score = np.sqrt(z2 / (1.0 + rise * distance)) / quantile(float(max(ends, 1)), CONFIDENCE)
    return NormalForms(tuple(forms), spread, rise, conformal(score, np.ones(score.size), max(ends, 1)), ends)


def _design(p: Floats, terms: tuple[int, ...]) -> Floats:
    columns = [np.ones_like(p)]
    for k in terms:
        _, power, logs = _TERMS[k]
        columns.append(p**power * np.log2(p) ** logs)
    return np.stack(columns, axis=1)


def _form(code: int, system: int, p: Floats, y: Floats) -> NormalForm:
    """The best form with at most two terms by cross-validation. p, y (K,); at most K - 3 terms."""
    grid = np.geomspace(p[0], FARTHEST * p[-1], 24)
    every = tuple(range(len(_TERMS)))
    at, ahead = _design(p, every), _design(grid, every)
    best: tuple[float, tuple[int, ...], Floats] | None = None
    for count in range(min(3, p.size - 2)):
        # the constant is column 0
        sets = np.array([(0, *one) for one in combinations(range(1, len(_TERMS) + 1), count)], np.int64)
        columns = at[:, sets].transpose(1, 0, 2) / y[:, None]
        size = np.linalg.norm(columns, axis=1, keepdims=True)
        size[size == 0] = 1.0
        q, r = np.linalg.qr(columns / size)
        steep = np.abs(np.diagonal(r, axis1=1, axis2=2)).min(1) > 1e-6
        q, r, sets, size = q[steep], r[steep], sets[steep], size[steep]
        if not len(q):
            continue
        # the relative response is 1 everywhere, so its coefficients in the orthogonal basis are q'1
        basis = q.sum(1)
        residual = 1.0 - np.einsum("kij,kj->ki", q, basis)
        spare = 1.0 - np.einsum("kij,kij->ki", q, q)
        with np.errstate(all="ignore"):
            error = np.sqrt(np.mean((residual / spare) ** 2, axis=1))
        weights = np.linalg.solve(r, basis[:, :, None])[:, :, 0] / size[:, 0, :]
        above = (np.einsum("gkj,kj->kg", ahead[:, sets], weights) > 0).all(1)
        error = np.where(above & np.isfinite(error), error, np.inf)
        k = int(np.argmin(error))
        if np.isfinite(error[k]) and (best is None or error[k] < _WORTH * best[0]):
            best = float(error[k]), tuple(int(one) - 1 for one in sets[k, 1:]), weights[k]
    if best is None:
        best = float("nan"), (), np.array([float(np.median(y))])
    return NormalForm(code, system, best[1], best[2], np.nan, int(p.size), float(p[0]), float(p[-1]))
