"""Designs in words, and the recommended one: the fewest trials that find an effect of a wanted size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from desktop.core.design import Design, names_for, regular, regular_sizes, roman
from desktop.core.power import POWER, detectable
from desktop.core.units import capital, count

#: Defaults of the effect to be found and the noise of a trial, as shares of the run.
EFFECT, NOISE = 0.02, 0.02
#: Largest recommended number of treatments; smallest and largest of replicates; largest of trials.
_MOST_RUNS = 128
_REPLICATES = (2, 32)
_MOST_TRIALS = 4096
#: Largest listed number of words of a defining relation, and of alias sets.
_WORDS, _ALIASES = 64, 400

#: Resolutions in plain words.
MEANINGS = {
    0: "all combinations are run, so that nothing is aliased",
    3: "main effects are aliased with pairs of factors",
    4: "main effects are clear of pairs; pairs are aliased with pairs",
    5: "main effects and pairs are clear of each other",
}


def meaning(resolution: int) -> str:
    """A resolution in plain words."""
    return MEANINGS.get(resolution, "main effects and pairs are clear, and more")


def described(design: Design) -> tuple[list[str], list[str]]:
    """A design in sentences, and its alias sets (up to pairs) as equations."""

    def signed(sign: int, members: tuple[int, ...]) -> str:
        return ("−" if sign < 0 else "") + design.term(members)

    treatments = count(design.runs, "treatment")
    if design.resolution:
        treatments += f", resolution {roman(design.resolution)}: {meaning(design.resolution)}"
    elif design.kind == "full":
        treatments += ", full factorial: every effect can be estimated"
    sentences = [f"{treatments}."]
    if design.note:
        sentences.append(f"{capital(design.note)}.")
    if design.generators:
        sentences.append(f"Generators: {', '.join(design.generators)}")
    words = design.defining_relation()
    if words:
        relation = " = ".join(signed(sign, members) for sign, members in words[:_WORDS])
        more = f" … and {len(words) - _WORDS} more" if len(words) > _WORDS else ""
        sentences.append(f"Defining relation: I = {relation}{more}")
        lengths = [f"{n} of {k}" for k, n in enumerate(design.word_lengths, 1) if n]
        least = ", the fewest short ones possible" if design.minimum_aberration else ""
        sentences.append(f"Words by length: {', '.join(lengths)}{least}.")
    sets = design.aliases()
    if design.regular:
        mains, pairs = design.clear
        sentences.append(f"Clear main effects: {', '.join(design.factors[j] for j in mains) or 'none'}.")
        if design.generators:
            clear = ", ".join(design.term(pair) for pair in pairs[:60]) or "none"
            sentences.append(f"Clear two-factor interactions: {clear}.")
            if not sets:
                sentences.append("No two main effects or two-factor interactions share a column.")
    equal = [
        " = ".join(signed(design.key(m)[1] * design.key(members[0])[1], m) for m in members)
        for members in sets[:_ALIASES]
    ]
    return sentences, equal + [f"… and {len(sets) - _ALIASES} more sets"] * (len(sets) > _ALIASES)


@dataclass(frozen=True)
class Recommended:
    """`runs` treatments, `replicates` times each; `sees`: the effect that is found with probability `POWER`,
    in the unit of the noise; `enough`: whether that is at most the wanted `effect`."""

    runs: int
    replicates: int
    resolution: int
    sees: float
    noise: float
    effect: float
    enough: bool

    @property
    def trials(self) -> int:
        return self.runs * self.replicates

    def text(self, base: float = 1.0, run_s: float = float("nan")) -> str:
        """The recommendation with its reason. `base`: the response that sizes are shares of. `run_s`: seconds
        of a run."""
        word = f"resolution {roman(self.resolution)}" if self.resolution else "all combinations"
        took = self.trials * run_s
        about = f", about {took:.0f} s" if took < 120 else f", about {took / 60:.0f} min"
        time = about if took > 0 else ""
        more = f"; {100 * self.effect / base:.2g} % would take more than {_MOST_TRIALS} trials"
        less = "" if self.enough else more
        return (
            f"{self.runs} treatments × {self.replicates} replicates: finds effects of "
            f"{100 * self.sees / base:.2g} % (power {100 * POWER:.0f} %, noise "
            f"{100 * self.noise / base:.2g} % per trial); {meaning(self.resolution)} ({word}){time}{less}"
        )


def recommend(
    count: int,
    noise: float = NOISE,
    effect: float = EFFECT,
    resolution: int = 4,
    resolutions: Sequence[tuple[int, int]] | None = None,
) -> Recommended:
    """The design for `count` factors that finds `effect`, with a standard deviation `noise` of one trial,
    both in one unit.

    Among designs of at least that resolution the fewest trials; of those, the most treatments, as they
    estimate more. Where no number of trials is enough, the most sensitive one. `resolutions`: runs and
    resolution of the regular designs to choose from, computed if not given.

    Raises
    ------
    ValueError : noise or effect are not positive, or there is no design of so many factors.
    """
    if not (noise > 0 and effect > 0):
        raise ValueError("the noise of a trial and the effect to be found must be positive")
    if resolutions is None:
        sizes = [runs for runs in regular_sizes(count) if runs <= _MOST_RUNS]
        resolutions = [(runs, regular(names_for(count), runs).resolution) for runs in sizes]

    def one(runs: int, reached: int, replicates: int) -> Recommended:
        sees = detectable(noise, runs, replicates)
        return Recommended(runs, replicates, reached, sees, noise, effect, sees <= effect)

    enough: list[Recommended] = []
    most: list[Recommended] = []
    for runs, reached in resolutions:
        if reached and reached < resolution:
            continue
        low, high = _REPLICATES
        high = max(low, min(high, _MOST_TRIALS // runs))
        last = one(runs, reached, high)
        if not last.enough:
            most.append(last)
            continue
        while low < high:  # the more replicates, the smaller the effect that is seen
            middle = (low + high) // 2
            low, high = (low, middle) if one(runs, reached, middle).enough else (middle + 1, high)
        enough.append(one(runs, reached, low))
    if enough:
        return min(enough, key=lambda r: (r.trials, -r.runs))
    if most:
        return min(most, key=lambda r: r.sees)
    raise ValueError(
        f"there is no design of {count} factors with resolution {roman(resolution)} in {_MOST_RUNS} runs"
    )
