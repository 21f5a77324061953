"""A fitted factor model asked about a cell: its time, who overtakes it, where it stops scaling; in words.

No window is needed for any of it. Source: Strohmaier, UTK-CS-97-354, sections 3 and 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from desktop.core.arrays import Flags
from desktop.core.characteristic import characteristic
from desktop.core.factor_answers import (
    crossover_places,
    fastest_place,
    half_share_places,
    ratio_of_times,
    shares,
)
from desktop.core.factor_intervals import FARTHEST, PInterval, interval, widths
from desktop.core.units import capital, digits
from desktop.workbench.model_results import convert, range_note, unit_of_time

if TYPE_CHECKING:
    from desktop.core.factor_model import ModelFit

#: Places of p at which systems and codes are compared for their order.
_COMPARED = 16


@dataclass(frozen=True)
class ModelAnswer:
    """A question and what the model says."""

    question: str
    text: str


def answers(fit: ModelFit, code: int, system: int, p: float) -> tuple[ModelAnswer, ...]:
    """What is asked of a cell at p: its time, where others overtake, where it stops scaling."""
    data = fit.data
    name = f"{data.codes[code]} on {data.systems[system]}"
    if not np.isfinite(fit.delta[:, code, system]).all():
        return (ModelAnswer(f"How long does {name} take?", "The model has no value for this cell."),)
    return (
        ModelAnswer(f"How long does {name} take on {p:.0f} processors?", _time_answer(fit, code, system, p)),
        ModelAnswer(f"Which system overtakes {data.systems[system]} for {data.codes[code]}, and where?",
               _overtaking_answer(fit, code, system)),
        ModelAnswer(f"Up to which p does the time of {name} fall?", _falling_answer(fit, code, system)),
        ModelAnswer(f"What makes the codes stop scaling on {data.systems[system]}?",
               _stopping_answer(fit, system)),
    )  # fmt: skip


def headline(fit: ModelFit) -> tuple[str, ...]:
    """What a table says, in one to three sentences with 95 % intervals: how much faster which system is,
    which code takes longest, and which stops scaling first on the fastest system."""
    data = fit.data
    measured = np.isfinite(fit.delta).all(0) & (fit.points > 0)
    if not measured.any():
        return ("The measurements say nothing of any code on any system.",)
    sentences, first = [], []
    for axis, names in enumerate((data.systems, data.codes)):
        order = _ordered(fit, measured, axis)
        first.append(order[0])
        against = (_against(fit, measured, axis, order[0], k) for k in order[:0:-1])
        if text := next(filter(None, against), ""):
            sentences.append(f"{names[order[0]]} {text}.")
    slow, stopping, _, _ = _stopping(fit, first[0])
    on = data.systems[first[0]]
    if stopping and len(fit.functions) > 1:
        _, stops, when = stopping[0]
        sentences.append(
            f"On {on}, {stops} stops scaling first: {when} {slow} is more than half of its time."
        )
    if not sentences:
        code = int(np.flatnonzero(measured[:, first[0]])[0])
        falling = _falling_answer(fit, code, first[0])
        sentences.append(f"{data.codes[code]} on {on}, its time: {falling[:1].lower()}{falling[1:]}")
    return tuple(sentences)


def _pair(
    fit: ModelFit, measured: Flags, axis: int, a: int, b: int
) -> tuple[list[list[tuple[int, int]]], float, float]:
    """Measured cells (code, system) of a and of b (systems: axis 0, codes: 1) with the same partners, and
    from which to which p all of them were run; none where there is no such p."""
    grid = measured if axis else measured.T
    both = np.flatnonzero(grid[a] & grid[b]).tolist()
    cells = [[(k, at) if axis else (at, k) for at in both] for k in (a, b)]
    low, high = (widths(fit).reach[:, [c for c, _ in one], [s for _, s in one]] for one in cells)
    least, most = (float(f(x)) for f, x in ((np.max, [low[0], high[0]]), (np.min, [low[1], high[1]])))
    return (cells, least, most) if both and least <= most else ([], 0.0, 0.0)


def _ordered(fit: ModelFit, measured: Flags, axis: int) -> list[int]:
    """The fastest system (axis 0) or the slowest code (axis 1) first, by comparisons of any two where both
    were run."""
    p = np.geomspace(fit.data.p.min(), fit.data.p.max(), _COMPARED)
    times = np.full((*measured.shape, p.size), np.nan)
    low, high = widths(fit).reach
    with np.errstate(all="ignore"):
        for c, s in np.argwhere(measured).tolist():
            inside = (low[c, s] <= p) & (p <= high[c, s])
            times[c, s, inside] = np.log(fit.seconds(c, s, p[inside]))
    grid = (times if axis else -times.transpose(1, 0, 2)).reshape(measured.shape[0 if axis else 1], -1)
    won = np.array([np.sign(np.nansum(row - grid, axis=1)).sum() for row in grid])
    names = np.flatnonzero(measured.any(1 if axis else 0))
    order: list[int] = names[np.argsort(-won[names], kind="stable")].tolist()
    return order


def _against(fit: ModelFit, measured: Flags, axis: int, best: int, other: int) -> str:
    """``1.8 times as fast as T3D on 4 to 64 processors (95 %: 1.6 to 2.0)``; "" where nothing is known."""
    cells, *ends = _pair(fit, measured, axis, best, other)
    if not cells:
        return ""
    first, last = (ratio_of_times(fit, cells[axis == 0], cells[axis], p) for p in ends)
    if not (np.isfinite(first.low) and np.isfinite(last.low)):
        return ""
    name = (fit.data.codes if axis else fit.data.systems)[other]
    verb, how = ("takes", "long") if axis else ("is", "fast" if fit.in_seconds else "efficient")
    at, low, high, more = _whole(ends[1]), last.low, last.high, []
    if ends[0] < ends[1] and max(first.value, last.value) < 1.1 * min(first.value, last.value):
        at, low, high = f"{_whole(ends[0])} to {at}", min(low, first.low), max(high, first.high)
    elif ends[0] < ends[1]:
        more = [f"on {_whole(ends[0])} {digits(first.value, 2)} times"]
    # What is said to two digits needs no interval that is the same to two digits.
    parts = [f"95 %: {digits(low, 2)} to {digits(high, 2)}"] if high - low > 0.01 * high else []
    times, interval = f"{digits(last.value, 2)} times as {how}", "; ".join([*parts, *more])
    if low <= 1.0 <= high:
        return f"is not told apart from {name} ({times} on {at} processors; {interval})"
    return f"{verb} {times} as {name} on {at} processors" + (f" ({interval})" if interval else "")


def _time_answer(fit: ModelFit, c: int, s: int, p: float) -> str:
    at = np.array([float(p)])
    value, low, high = (float(convert(fit, c, s, at, part, "time")[0]) for part in interval(fit, c, s, at))
    unit = unit_of_time(fit)
    if value <= 0:
        text = f"The model gives {digits(value)} {unit}, which is no time: its functions do not fit here."
    elif np.isfinite(low):
        text = (
            f"{digits(value)} {unit}; one new measurement lies between {digits(max(low, 0.0))} and "
            f"{digits(high)} {unit} with 95 % probability."
        )
    else:
        text = f"{digits(value)} {unit}, without an interval: the cell has no points to spare."
    note = range_note(fit, c, s, p)
    size = fit.data.size_at(c, s, at)
    if size is not None:
        text += f" The problem size is taken as N = {digits(float(size[0]))}."
    return f"{text} {note[:1].upper()}{note[1:]}." if note else text


def _overtaking_answer(fit: ModelFit, c: int, s: int) -> str:
    data = fit.data
    overtaking: list[str] = []
    never: list[str] = []
    unknown: list[str] = []
    least = np.array([float(data.p.min())])
    equal = "as fast as" if fit.in_seconds else "as efficient as"
    for other in range(len(data.systems)):
        if other == s or not np.isfinite(fit.delta[:, c, other]).all():
            continue
        time, other_time = (float(fit.seconds(c, which, least)[0]) for which in (s, other))
        ahead, behind = (other, s) if other_time < time else (s, other)
        places = crossover_places(fit, c, s, other)
        texts = [text for text in map(_place_words, places) if text]
        if texts:
            marks = [f"{data.systems[ahead]} is ahead before"]
            marks += ["beyond all measured p"] if places[0].p > data.p.max() else []
            overtaking.append(
                f"{data.systems[other]} is {equal} {data.systems[s]} at {' and '.join(texts[:3])} "
                f"({'; '.join(marks)})"
            )
        elif places:
            unknown.append(data.systems[other])
        else:
            never.append(f"{data.systems[ahead]} stays ahead of {data.systems[behind]}")
    if unknown:
        never.append(f"the measurements do not say whether, or where, {', '.join(unknown)} overtakes")
    parts = [*overtaking, *never]
    if not parts:
        return "There is no other system that the model can compare."
    tail = "" if fit.in_seconds else " t' is compared, not time: the table holds no times."
    return f"{'; '.join(parts)} (p from {least[0]:.0f} to {_farthest(fit)}).{tail}"


def _farthest(fit: ModelFit) -> str:
    return f"{_whole(FARTHEST * float(fit.data.p.max()))}, {FARTHEST:.0f} times the largest that was measured"


def _place_words(place: PInterval) -> str:
    """A p with its interval; "" where nothing limits it."""
    low, high = _whole(place.low), _whole(place.high) if np.isfinite(place.high) else ""
    if place.low <= 0 and not high:
        return ""
    if not high:
        return f"some p above {low} (95 %), if at all"
    if place.low <= 0:
        return f"some p below {high} (95 %)"
    # What is said to three digits needs no interval that is the same to three digits.
    tight = place.high - place.low < 0.01 * place.p
    return f"p = {_whole(place.p)}" + ("" if tight else f" (95 %: {low} to {high})")


def _falling_answer(fit: ModelFit, c: int, s: int) -> str:
    most = FARTHEST * float(fit.data.p.max())
    place = fastest_place(fit, c, s)
    best = place.p
    mine = fit.used & (fit.data.code == c) & (fit.data.system == s)
    beyond = mine.any() and best > fit.data.p[mine].max()
    if not np.isfinite(best):
        return (
            f"Nothing useful can be said: the fitted time falls below zero before p = {_whole(most)}, so "
            "these functions do not describe the cell there."
        )
    if best >= most * 0.999:
        text = f"It falls as far as the model goes (up to p = {_farthest(fit)})."
        if place.low >= most * 0.999:
            return text
        return f"{text} That it still falls is certain (95 %) up to p = {_whole(place.low)} only."
    if best <= fit.data.p.min():
        return "It never falls: the least p is fastest."
    at = np.array([best])
    value = float(convert(fit, c, s, at, fit.predict(c, s, at)[0], "time")[0])
    high = _whole(place.high) if np.isfinite(place.high) else "more than can be said"
    wide = place.high - place.low >= 0.05 * best
    between = f" (95 %: between {_whole(place.low)} and {high})" if wide else ""
    return (
        f"Up to p = {_whole(best)}, where it is {digits(value)} {unit_of_time(fit)}{between}; beyond, more "
        f"processors cost time.{' That is beyond what was measured.' if beyond else ''}"
    )


def _stopping(fit: ModelFit, s: int) -> tuple[str, list[tuple[float, str, str]], list[str], list[str]]:
    """The part of the slowest function in words; p, code and words from where it takes more than half of the
    code's time, the first first; codes of which it never does; codes of which that is not known."""
    data = fit.data
    grows = np.array([_at_large(fit, text) for text in fit.functions])
    slow = int(np.argmax(grows))
    name = "the constant part" if fit.functions[slow] == "1" else f"the part in {fit.functions[slow]}"
    stopping: list[tuple[float, str, str]] = []
    never: list[str] = []
    unknown: list[str] = []
    least = np.array([float(data.p.min())])
    for c, code in enumerate(data.codes):
        if not np.isfinite(fit.delta[:, c, s]).all():
            continue
        if shares(fit, c, s, least)[slow, 0] > 0.5:
            stopping.append((0.0, code, "at every measured p"))
            continue
        places = [place for place in half_share_places(fit, c, s, slow) if place.rising]
        text = _place_words(places[0]) if places else ""
        if text:
            # As it is said: what rounding adds puts none before another.
            stopping.append((round(places[0].p, 0 if places[0].p >= 10 else 1), code, f"from {text}"))
        else:
            (unknown if places else never).append(code)
    return name, sorted(stopping), never, unknown


def _stopping_answer(fit: ModelFit, s: int) -> str:
    data = fit.data
    if len(fit.functions) < 2:
        return "The model has one function only; choose two to see which takes over."
    name, stopping, never, unknown = _stopping(fit, s)
    name = capital(name)
    parts = []
    if stopping:
        listed = ", ".join(f"{code} {when}" for _, code, when in stopping)
        parts.append(f"{name} takes more than half of the time: {listed}.")
        if len(stopping) == 1 or stopping[0][0] < stopping[1][0]:
            parts.append(f"{stopping[0][1]} stops first.")
    if unknown:
        parts.append(f"The measurements do not say from which p it does for {', '.join(unknown)}.")
    if never and len(never) == len(data.codes):
        parts.append(f"{name} never takes more than half of the time of any code up to p = {_farthest(fit)}.")
    elif never:
        parts.append(f"Never up to p = {_farthest(fit)}: {', '.join(never)}.")
    return " ".join(parts)


def _at_large(fit: ModelFit, text: str) -> float:
    """How a function has grown from p = 1000 to 10^6, of a problem as large as the largest."""
    p = np.array([1e3, 1e6])
    size = None if fit.data.size is None else np.full(2, fit.data.size.max())
    a, b = characteristic(text).u(p, size)
    return float(b / a) if a else np.inf


def _whole(p: float) -> str:
    return f"{p:,.0f}".replace(",", " ") if p >= 10 or p == round(p) else f"{p:.1f}"
