"""The charts of an experiment, as contents of `desktop.data.chart`.

`every` are the effects of all terms, `analysis` those of the model; keys are indices into ``every.effects``,
or trials in their order. Terms left out of the model are drawn faintly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from desktop.core.arrays import Floats
from desktop.core.effect_limits import t_limit
from desktop.core.effect_tables import Dose
from desktop.core.effects import Effect, Effects
from desktop.core.power import power_curve, replicates_to_find
from desktop.core.response_power import Powers
from desktop.core.units import capital, digits, with_unit
from desktop.data.chart import MARKS, Axis, Content, Series
from desktop.workbench.effect_comparison import ScaledEffect
from desktop.workbench.effect_rows import effect_word

Corner = tuple[int, int, int]
CORNERS: tuple[Corner, ...] = tuple((a, b, c) for c in (-1, 1) for b in (-1, 1) for a in (-1, 1))
#: Most names on a half-normal plot.
LABELLED = 6


def effect_words(effect: Effect, in_model: bool, half: bool, unit: str) -> str:
    """One effect in words, for a hover."""
    scale = 0.5 if half else 1.0
    unit = f" {unit}" if unit else ""
    text = f"{effect.term}\n{effect_word(half)} {digits(effect.value * scale)}{unit}"
    if not in_model:
        text += ", left out of the model"
    elif math.isfinite(effect.se):
        text += f" ± {digits(effect.se * scale, 2)}"
    if in_model and math.isfinite(effect.p):
        text += f", p {digits(effect.p, 2)}"
    if effect.aliases:
        text += "\naliased with " + ", ".join(effect.aliases[:6])
    return text


def _selected(effects: Effects, term: str) -> frozenset[int]:
    return frozenset(k for k, e in enumerate(effects.effects) if term and e.term == term)


def _model(analysis: Effects, every: Effects) -> tuple[list[Effect], list[bool]]:
    """Every term, with its effect in the model if it is there, and whether it is."""
    in_model = {e.members: e for e in analysis.effects}
    return [in_model.get(e.members, e) for e in every.effects], [e.members in in_model for e in every.effects]


def half_normal(analysis: Effects | None, every: Effects | None, half: bool, unit: str, term: str) -> Content:
    """|effect| against half-normal quantiles; the line's slope is the standard error."""
    x = Axis(with_unit(f"Size of {effect_word(half)}", unit), zero=True)
    y = Axis("Half-normal quantile", zero=True)
    if analysis is None or every is None or len(every.effects) < 3:
        return Content(x, y, empty="The half-normal plot needs three or more effects.")
    scale = 0.5 if half else 1.0
    effects, in_model = _model(analysis, every)
    size = np.array([abs(e.value) * scale for e in effects])
    quantile = np.array([e.half_normal for e in every.effects])
    negative = np.array([e.value < 0 for e in effects])
    marked = [k for k, e in enumerate(effects) if e.significant and in_model[k]]
    by_size = sorted(marked, key=lambda k: -size[k])
    series: list[Series] = []
    se = _line_error(analysis)
    if math.isfinite(se) and se > 0:
        top = min(float(quantile.max()) * 1.05, float(size.max()) / (se * scale) * 1.05)
        error = "Lenth's PSE" if analysis.error == "lenth" else "the standard error"
        series.append(
            Series("line", np.array([0.0, top * se * scale]), np.array([0.0, top]), f"Slope of {error}",
                   colour="muted", dashed=True)
        )  # fmt: skip
    for sign, label, mark in ((False, "Above zero", 0), (True, "Below zero", 3)):
        group = np.flatnonzero(negative == sign)
        if group.size:
            labels = frozenset(int(i) for i, k in enumerate(group) if k in by_size[:LABELLED])
            series.append(
                Series("points", size[group], quantile[group], label, colour=int(sign), mark=MARKS[mark],
                       names=tuple(effect_words(effects[k], in_model[k], half, unit) for k in group),
                       keys=tuple(int(k) for k in group), labels=labels,
                       faint=frozenset(i for i, k in enumerate(group) if not in_model[k]))
            )  # fmt: skip
    return Content(x, y, tuple(series), selected=_selected(every, term))


def _line_error(analysis: Effects) -> float:
    """Standard error of a typical effect, else Lenth's pseudo standard error."""
    errors = [e.se for e in analysis.effects if math.isfinite(e.se) and e.se > 0]
    if errors:
        return float(np.median(errors))
    return analysis.lenth.pse if analysis.lenth else math.nan


def limit_of(analysis: Effects) -> float:
    """Size above which an effect is marked; NaN if nothing marks any."""
    if analysis.limit.kind.startswith("lenth"):
        return analysis.limit.value * analysis.lenth.pse if analysis.lenth else math.nan
    return analysis.limit.value * _line_error(analysis)


def bars_in(height: int, em: int) -> int:
    """As many bars of a Pareto chart as have room for their names."""
    return max(4, min(30, int((height - 6 * em) / (1.1 * em))))  # below: the axis, above: the legend


def pareto(
    analysis: Effects | None, every: Effects | None, half: bool, unit: str, term: str, bars: int = 24
) -> Content:
    """Effects by size, with the limit above which they are marked."""
    title = with_unit(f"Size of {effect_word(half)}", unit)
    if analysis is None or every is None or not every.effects:
        return Content(Axis(title), Axis(""), empty="There is no effect to show yet.")
    scale = 0.5 if half else 1.0
    effects, in_model = _model(analysis, every)
    order = sorted(range(len(effects)), key=lambda k: abs(effects[k].value))[-bars:]
    place = {k: float(i) for i, k in enumerate(order)}
    series = []
    for sign, label in ((False, "Above zero"), (True, "Below zero")):
        group = [k for k in order if (effects[k].value < 0) == sign]
        if group:
            faint = frozenset(i for i, k in enumerate(group) if not (effects[k].significant and in_model[k]))
            series.append(
                Series("bars", np.array([place[k] for k in group]),
                       np.array([abs(effects[k].value) * scale for k in group]), label, colour=int(sign),
                       names=tuple(effect_words(effects[k], in_model[k], half, unit) for k in group),
                       keys=tuple(group), faint=faint)
            )  # fmt: skip
    limits = []
    limit = limit_of(analysis)
    if math.isfinite(limit):
        limits.append((limit * scale, f"limit, {100 * analysis.limit.level:.2g} %"))
    categories = tuple(effects[k].term for k in order)
    return Content(
        Axis(title, zero=True), Axis("", categories=categories), tuple(series), tuple(limits),
        horizontal_bars=True, selected=_selected(every, term),
    )  # fmt: skip


def cell(analysis: Effects, members: Sequence[int], levels: Sequence[float]) -> tuple[float, float]:
    """Mean response of the trials at these levels, and the half width of its 95 % interval."""
    data = analysis.trials
    rows = np.all([data.x[:, j] == v for j, v in zip(members, levels, strict=True)], axis=0)
    if not rows.any():
        return math.nan, math.nan
    mean = float(data.y[rows].mean())
    # Of a transformed response the error is in another unit.
    if not (math.isfinite(analysis.variance) and analysis.df > 0) or analysis.transform != 1:
        return mean, math.nan
    return mean, t_limit(analysis.df) * math.sqrt(analysis.variance / int(rows.sum()))


def main_effects(analysis: Effects | None, every: Effects | None, response: str, term: str) -> Content:
    """Means without and with each delay, with 95 % intervals."""
    y = Axis(response)
    if analysis is None or every is None:
        return Content(Axis("Factor"), y, empty="There are no trials to average yet.")
    factors = analysis.trials.factors
    terms = {e.term: k for k, e in enumerate(every.effects)}
    marked = {e.term for e in analysis.effects if e.significant}
    series: list[Series] = []
    every_mean = [[cell(analysis, (j,), (v,)) for v in (-1.0, 1.0)] for j in range(len(factors))]
    by_size = sorted(range(len(factors)), key=lambda j: -abs(every_mean[j][1][0] - every_mean[j][0][0]))
    factors = tuple(factors[j] for j in by_size)
    for j, name in enumerate(factors):
        means = every_mean[by_size[j]]
        x, m = np.array([j - 0.22, j + 0.22]), np.array([a for a, _ in means])
        half = np.nan_to_num(np.array([b for _, b in means]))
        key = terms.get(name, -1)
        faint = frozenset() if name in marked else frozenset((0, 1))
        series.append(Series("line", x, m, colour="muted" if faint else 0))
        words = tuple(
            f"{name} {sign}\nmean {digits(a)}" + (f" ± {digits(b, 2)} (95 %)" if b > 0 else "")
            for sign, a, b in zip("−+", m, half, strict=True)
        )
        series.append(
            Series("points", x, m, "Left −, right +" if j == 0 else "", low=m - half, high=m + half,
                   names=words, keys=(key, key) if key >= 0 else (), faint=faint)
        )  # fmt: skip
    grand = float(analysis.trials.y.mean())
    return Content(
        Axis("Factor", categories=factors), y, tuple(series), ((grand, "mean"),),
        selected=_selected(every, term),
    )  # fmt: skip


def powers(likely: Powers | None, power: float) -> Content:
    """Profile likelihood of powers of the response, with the power in use."""
    x, y = Axis("Power of the response (0: logarithm)"), Axis("Log likelihood less the largest")
    if likely is None:
        return Content(
            x, y, empty="To find the power that fits best takes more trials with positive responses."
        )
    near = likely.likelihood >= -20
    line = Series("line", likely.powers[near], likely.likelihood[near])
    drawn = sorted({power, likely.power} & set(likely.powers[near].tolist()))
    index = np.array([int(np.argmin(np.abs(likely.powers - v))) for v in drawn], np.int64)
    names = tuple("as analysed" if v == power else "fits best" for v in drawn)
    every = frozenset(range(len(drawn)))
    points = Series("points", likely.powers[index], likely.likelihood[index], names=names, labels=every)
    return Content(x, y, (line, points), ((-1.9207, "95 %"),))


def power(effect: float, sigma: float, treatments: int, df: float, replicates: int) -> Content:
    """Chance to find an effect over the number of replicates, with the estimated standard deviation and with
    its upper bound."""
    x, y = Axis("Replicates"), Axis("Chance to detect the effect (%)", zero=True)
    if not (effect > 0 and sigma > 0):
        return Content(x, y, empty="Enter the standard deviation of one trial and the effect to be found.")
    last = min(max(8, replicates, replicates_to_find(sigma, effect, treatments, df)) + 2, 200)
    r = np.unique(np.linspace(2, last, 40).astype(int))
    chance, bound = power_curve(effect, sigma, treatments, r.tolist(), df)
    series = [Series("line", r.astype(float), 100 * chance, "Deviation as found")]
    if math.isfinite(df):
        series.append(Series("line", r.astype(float), 100 * bound, "Its upper bound", colour=1, dashed=True))
    return Content(x, y, tuple(series), ((90.0, "90 %"),))


def interaction(analysis: Effects | None, a: str, b: str, response: str) -> Content:
    """Cell means of two factors; parallel lines do not interact."""
    y = Axis(response)
    if analysis is None or a not in analysis.trials.factors or b not in analysis.trials.factors or a == b:
        return Content(Axis(""), y, empty="Choose two different factors.")
    names = analysis.trials.factors
    i, j = names.index(a), names.index(b)
    series: list[Series] = []
    for colour, (level, sign) in enumerate(((-1.0, "−"), (1.0, "+"))):
        means = [cell(analysis, (i, j), (v, level)) for v in (-1.0, 1.0)]
        # Beside each other, so that both intervals can be seen.
        x, m = np.array([0.0, 1.0]) + 0.02 * level, np.array([p for p, _ in means])
        half = np.nan_to_num(np.array([q for _, q in means]))
        words = tuple(f"{a} {s}, {b} {sign}\nmean {digits(v)}" for s, v in zip("−+", m, strict=True))
        series.append(Series("line", x, m, colour=colour, dashed=bool(colour)))
        series.append(
            Series("points", x, m, f"{b} {sign}", colour=colour, mark=MARKS[colour], low=m - half,
                   high=m + half, names=words)
        )  # fmt: skip
    return Content(Axis(a, categories=(f"{a} −", f"{a} +")), y, tuple(series))


RESIDUALS = ("order of the trials", "fitted value", "normal quantile")


def residuals(analysis: Effects | None, against: str, response: str) -> Content:
    """Residuals of the model; suspects bear their names."""
    if analysis is not None and analysis.transform != 1:
        response = f"{'ln' if analysis.transform == 0 else 'transformed'} {response}"
    y = Axis(f"Residual of {response}")
    if analysis is None or analysis.trials.y.size - len(analysis.effects) < 2:
        return Content(
            Axis(_against(against, response)), y,
            empty="Every trial is explained by a term of its own. Run replicates, or leave terms out.",
        )  # fmt: skip
    residual = analysis.transformed - analysis.fitted
    count = residual.size
    if against == RESIDUALS[1]:
        x = analysis.fitted
    elif against == RESIDUALS[2]:
        from scipy.special import ndtri

        x = np.empty(count)
        x[np.argsort(residual, kind="stable")] = ndtri((np.arange(count) + 0.625) / (count + 0.25))
    elif against in analysis.trials.beside:
        x = analysis.trials.beside[against]
    else:
        x = _orders(analysis)
    bad = {s.label for s in analysis.suspects}
    names = tuple(
        f"trial {label}\n{digits(v)}, residual {digits(r)}"
        for label, v, r in zip(analysis.trials.label, analysis.trials.y, residual, strict=True)
    )
    labels = frozenset(k for k, label in enumerate(analysis.trials.label) if label in bad)
    series = [Series("points", x, residual, names=names, keys=tuple(range(count)), labels=labels)]
    if against == RESIDUALS[2]:
        s = float(np.sqrt((residual**2).mean()))
        ends = np.array([x.min(), x.max()])
        series.insert(0, Series("line", ends, ends * s, colour="muted", dashed=True))
    return Content(Axis(_against(against, response)), y, tuple(series), ((0.0, ""),))


def _against(against: str, response: str) -> str:
    """The title of the axis that residuals are drawn against; names of covariates stay as they are."""
    if against == RESIDUALS[1]:
        return f"Fitted {response}"
    return capital(against) if against in RESIDUALS else against


def _orders(analysis: Effects) -> Floats:
    """The order of the trials: their labels if these are different numbers, else as read."""
    labels = analysis.trials.label
    if all(label.isdigit() for label in labels) and len(set(labels)) == len(labels):
        return np.array([float(label) for label in labels])
    return np.arange(1.0, len(labels) + 1)


def over_delay(
    by_name: Sequence[tuple[str, Dose]], terms: Sequence[str], unit: str, why: str, full: bool
) -> Content:
    """Effect for each unit of delay at several sizes; level lines are what a linear model expects. `full`:
    the effect itself."""
    x = Axis("Size of the delay (units)", log=True)
    y = Axis(with_unit("Effect" if full else "Effect per unit of delay", unit))
    series: list[Series] = []
    for k, (name, dose) in enumerate((n, d) for n, d in by_name if n in terms):
        value, se = (dose.effect, dose.se) if full else (dose.per_unit, dose.per_unit_se)
        half = np.where(se > 0, t_limit(math.inf) * se, 0.0)
        series.append(Series("line", dose.delay, value, colour=k, dashed=not dose.linear))
        words = tuple(
            f"{name} at {d:g}\neffect {digits(e)}, per unit {digits(u)}"
            for d, e, u in zip(dose.delay, dose.effect, dose.per_unit, strict=True)
        )
        series.append(
            Series("points", dose.delay, value, name, colour=k, mark=MARKS[k % len(MARKS)],
                   low=value - half, high=value + half, names=words)
        )  # fmt: skip
    return Content(x, y, tuple(series), empty=why)


def over_scale(scaled: Sequence[ScaledEffect], terms: Sequence[str], unit: str, why: str) -> Content:
    """Effects over processors with a/p + b."""
    x, y = Axis("Processors p", log=True, doubling=True), Axis(with_unit("Effect", unit), zero=True)
    series: list[Series] = []
    for k, row in enumerate(s for s in scaled if s.term in terms):
        p, effect = np.array(row.p), np.array(row.effect)
        half = np.nan_to_num(t_limit(math.inf) * np.array(row.se))
        fine = np.geomspace(p.min(), p.max(), 60)
        fitted = row.fit.shared / fine + row.fit.serial
        series.append(Series("line", fine, fitted, colour=k, dashed=k % 2 == 1))
        words = tuple(f"{row.term} on {q:g}\neffect {digits(e)}" for q, e in zip(p, effect, strict=True))
        series.append(
            Series("points", p, effect, row.term, colour=k, mark=MARKS[k % len(MARKS)],
                   low=effect - half, high=effect + half, names=words)
        )  # fmt: skip
    return Content(x, y, tuple(series), empty=why)


def in_phases(start: Floats, end: Floats, share: Floats, name: str) -> Content:
    """Share of each phase's processor time that a region takes."""
    words = tuple(
        f"phase {k + 1}\n{digits(a)} to {digits(b)} s: {digits(100 * v, 3)} % of the processors' time"
        for k, (a, b, v) in enumerate(zip(start, end, share, strict=True))
    )
    bars = Series("bars", np.arange(start.size, dtype=float), 100 * share, name, names=words)
    categories = tuple(str(k + 1) for k in range(start.size))
    return Content(Axis("Phase", categories=categories), Axis("Share of the phase (%)", zero=True), (bars,))


def cube(names: tuple[str, str, str], means: Mapping[Corner, float], unit: str) -> tuple[Content, str]:
    """Mean responses at the corners of a cube of three factors, fuller the larger they are, and the same in
    words; corners that were not run show a dash."""

    def place(corner: Corner) -> tuple[float, float]:
        a, b, c = ((v + 1) / 2 for v in corner)
        return a + 0.4 * c, b + 0.4 * c

    edges: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    for corner in CORNERS:
        for axis in range(3):
            if corner[axis] < 0:
                a, b, c = (1 if k == axis else v for k, v in enumerate(corner))
                hidden = axis == 2 or corner[2] > 0
                edges[hidden] += [place(corner), place((a, b, c))]
    series = []
    for hidden, ends in edges.items():
        x, y = np.array(ends).T
        series.append(Series("segments", x, y, colour="border", dashed=hidden, width=1.2))
    values = np.array([means.get(corner, math.nan) for corner in CORNERS])
    finite = values[np.isfinite(values)]
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 0.0)
    part = np.nan_to_num((values - low) / (high - low)) if high > low else np.zeros(values.size)
    places = np.array([place(corner) for corner in CORNERS])
    texts = tuple(digits(float(v)) for v in values)
    series.append(Series("boxes", places[:, 0], places[:, 1], high=part, names=texts, colour="computing"))
    words = "; ".join(
        " ".join(f"{n} {'+' if v > 0 else '−'}" for n, v in zip(names, corner, strict=True))
        + f": {text} {unit}"
        for corner, text in zip(CORNERS, texts, strict=True)
    )
    notes = ((0.5, -0.2, f"{names[0]} → +"), (-0.3, 0.5, f"{names[1]} ↑ +"), (1.5, 0.1, f"{names[2]} ↗ +"))
    rows = [(*corner, float(v)) for corner, v in zip(CORNERS, values, strict=True)]
    heads = (*names, with_unit("mean", unit))
    drawn = tuple(series)
    content = Content(Axis(""), Axis(""), drawn, notes=notes, axes=False, data=lambda: [heads, *rows])
    return content, words
