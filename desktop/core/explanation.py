"""The explanation of lost time in a run and in its phases, as sentences about its causes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from desktop.core.charges import Charges
from desktop.core.root_causes import BALANCED, LITTLE, WORTH, Cause, Naming, causes
from desktop.core.units import brief, capital, grouped, mean_number, percent

#: A phase in which less than this part of the processors compute has no efficiencies in its sentence.
COMPUTES = 0.01


def describe(cause: Cause, words: Naming) -> str:
    """The sentence of a cause, with its numbers."""
    sentence = capital(cause.kind.says(cause, words))
    return (
        f"{sentence} ({_total(cause.lost_s)}, {percent(cause.part)} of what is lost"
        f"{_times(cause)}; {cause.strength} evidence)."
    )


def _total(lost_s: float) -> str:
    """``1.72 proc·s``"""
    value, _, unit = brief(lost_s, 3).rpartition(" ")
    return f"{value} proc·{unit}"


def _times(cause: Cause) -> str:
    if not cause.seen or cause.group.direct_s + cause.group.chained_s < 0.5 * cause.group.total_s:
        return ""
    return f"; seen {'once' if cause.seen == 1 else f'{grouped(cause.seen)} times'}"


def worth_telling(causes: Sequence[Cause], most: int = 4) -> list[Cause]:
    """The causes that a paragraph names: the first, and others of at least `WORTH`."""
    return [cause for i, cause in enumerate(causes[:most]) if i == 0 or cause.part >= WORTH]


def _computing(of: Charges, digits: int) -> str:
    number = mean_number(of.computing, of.processors, digits)
    return f"on average {number} of {of.processors:.0f} processors compute"


def level(of: Charges, causes: Sequence[Cause]) -> str:
    """A sentence on how much is computed and lost."""
    text = _computing(of, 3)
    if not causes:
        return f"{capital(text)}; nothing is lost."
    text = f"{text}; {percent(of.lost_s / of.whole_s)} of their time ({_total(of.lost_s)}) is lost."
    return f"Little is lost: {text}" if _little(of) else capital(text)


def _little(of: Charges) -> bool:
    return of.lost_s < LITTLE * of.whole_s


def rest(causes: Sequence[Cause]) -> str:
    """A sentence on the other causes if they are at least `WORTH` of the lost time, else ""."""
    left = 1.0 - sum(cause.part for cause in worth_telling(causes))
    return f"Other causes: {percent(left)} of what is lost." if causes and left >= WORTH else ""


def phase_sentence(
    of: Charges, ranked: Sequence[Cause], words: Naming, number: int, name: str, run_s: float
) -> str:
    """The sentence on phase `number` (from 1): its causes first, then its numbers."""
    # Automatic names end with the part of the time in a call, which is not repeated here.
    name = re.sub(r"(: |, )\S[^:]* \d+ %$", "", name)
    called = f", {name}" if name and not name.endswith("%") else ""
    head = f"Phase {number}{called}, {percent(of.duration_s / run_s)} of the run"
    parts = [_computing(of, 2)]
    some = of.computing >= COMPUTES * of.processors
    if some and of.serialisation is not None and of.serialisation < BALANCED:
        parts.append(f"{percent(of.serialisation)} serialisation efficiency")
    kinds = {cause.kind.key for cause in worth_telling(ranked, 2)}
    if some and of.balance is not None and of.balance >= BALANCED and "imbalance" not in kinds:
        parts.append("computing is balanced")
    if not ranked or _little(of):
        return f"{head}: little is lost; {'; '.join(parts)}."
    causes = [
        f"{cause.kind.says(cause, words)} ({percent(cause.part)} of what is lost, {cause.strength} evidence)"
        for cause in worth_telling(ranked, 2)
    ]
    return f"{head}: {'. '.join(map(capital, causes))}; {'; '.join(parts)}."


@dataclass(frozen=True)
class CauseText:
    """A cause in words, with its location and phase.

    about : the location that the sentence is about, -1: none. locations : those charged, most first. phase :
    the one in which it costs most (from 0), -1: none. start_s, end_s : of that phase. region : its name, or
    "". short : the sentence without its numbers.
    """

    key: str
    title: str
    short: str
    sentence: str
    lost_s: float
    part: float
    strength: str
    seen: int
    region: str
    about: int
    locations: tuple[int, ...]
    names: str
    phase: int
    start_s: float
    end_s: float


@dataclass(frozen=True)
class PhaseText:
    """A phase in words; causes as of `Explanation`."""

    sentence: str
    start_s: float
    end_s: float
    lost_s: float
    causes: tuple[CauseText, ...]


@dataclass(frozen=True)
class Explanation:
    """Why time is lost. causes : of the run, most first; its paragraph has sentences on the first `named`, on
    how much is lost (`level`; `little`: not much) and on the `rest`. phases : a sentence and the causes of
    each. lost_s : processor-seconds. All is empty for a curve, whose processors are not known."""

    level: str = ""
    little: bool = False
    rest: str = ""
    named: int = 0
    lost_s: float = 0.0
    causes: tuple[CauseText, ...] = ()
    phases: tuple[PhaseText, ...] = ()

    @property
    def texts(self) -> list[tuple[str, int]]:
        """The sentences of the paragraph, each with the number of its cause, -1: none. The first cause, then
        how much is lost, then the other causes; where little is lost, that comes first."""
        parts = [(cause.sentence, k) for k, cause in enumerate(self.causes[: self.named])]
        parts.insert(0 if self.little else 1, (self.level, -1))
        return [part for part in (*parts, (self.rest, -1)) if part[0]]

    @property
    def paragraph(self) -> str:
        return " ".join(text for text, _ in self.texts)

    @property
    def headline(self) -> str:
        """The first sentence, without the numbers of a cause."""
        return self.level if self.little or not self.causes else self.causes[0].short


def explanation(of: Sequence[Charges], names: Sequence[str], words: Naming) -> Explanation:
    """The explanation from the charges of a run and of its phases (empty for a curve)."""
    if not of:
        return Explanation()
    run, *phases = of
    by_part = [causes(one) for one in of]
    single = len(phases) == 1
    sentences = []
    for cause in by_part[0]:
        costs = [
            sum(
                one.lost_s
                for one in charged
                if (one.kind, one.group.region) == (cause.kind, cause.group.region)
            )
            for charged in by_part[1:]
        ]
        phase = int(np.argmax(costs)) if costs and not single else -1
        place = phases[phase] if phase >= 0 else run
        sentences.append(_cause_text(cause, words, phase, place))
    by_phase = tuple(
        PhaseText(
            phase_sentence(one, charged, words, k + 1, names[k] if k < len(names) else "", run.duration_s),
            one.start_s,
            one.end_s,
            one.lost_s,
            tuple(_cause_text(cause, words, k, one) for cause in charged),
        )
        for k, (one, charged) in enumerate(zip(phases, by_part[1:], strict=True))
    )
    named = len(worth_telling(by_part[0]))
    words_of_all = level(run, by_part[0]), _little(run), rest(by_part[0])
    return Explanation(*words_of_all, named, run.lost_s, tuple(sentences), by_phase)


def _cause_text(cause: Cause, words: Naming, phase: int, place: Charges) -> CauseText:
    region = cause.group.region
    return CauseText(
        key=cause.kind.key,
        title=cause.kind.title,
        short=f"{capital(cause.kind.says(cause, words))}.",
        sentence=describe(cause, words),
        lost_s=cause.lost_s,
        part=cause.part,
        strength=cause.strength,
        seen=cause.seen,
        region=words.region(region) if region >= 0 else "",
        about=cause.about,
        locations=cause.locations,
        names=words.several(sorted(cause.locations)),
        phase=phase,
        start_s=place.start_s,
        end_s=place.end_s,
    )
