"""Designed experiments with artificial delays: which treatments to run, and what is confounded with what.

Two-level regular fractions are represented by words over base factors: factor j's column is a sign times the
product of the base columns in its mask, so aliases, resolution and word lengths are arithmetic on masks, for
any number of factors. Sources: NISTIR 5131, sections 2 and 5; NISTIR 5139, section 2; Box, Hunter
and Hunter, *Statistics for Experimenters*; Fries and Hunter 1980 (minimum aberration); Plackett and Burman
1946; MacWilliams 1963 (word lengths from the runs); designs known to have minimum aberration: Chen, Sun
and Wu 1993 (to 32 runs), Block and Mee 2005 and Xu 2009 (128 runs).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import combinations, product
from math import comb
from typing import Literal

import numpy as np

from desktop import resources
from desktop.core.arrays import Ints

Kind = Literal["full", "regular", "plackett-burman", "orthogonal-array"]

#: Letters for factors without names; I is reserved for the identity.
LETTERS = "ABCDEFGHJKLMNOPQRSTUVWXYZ"
#: Largest number of factors, and of runs, of a design.
MOST_FACTORS, MOST_RUNS = 128, 4096
#: Largest number of trials of an experiment.
MOST_TRIALS = 1_000_000
#: Longer defining relations are shown by their short words only.
_WORDS = 4096

#: Plackett-Burman: the first row; the others are its rotations, the last is all -.
_CYCLES = {12: "++-+++---+-", 20: "++--++++-+-+----++-", 24: "+++++-+-++--++--+-+----"}

_L18 = (
    "00000000 00111111 00222222 01001122 01112200 01220011 02010212 02121020 02202101 "
    "10022110 10100221 10211002 11012021 11120102 11201210 12021201 12102012 12210120"
)


@dataclass(frozen=True, eq=False)
class Design:
    """R runs of k factors.

    levels : (R, k), -1 and +1, or 0, 1, 2, ... in orthogonal arrays of more levels. Regular designs are in
    standard order (first base factor fastest). masks, signs : of every factor over `base` base columns
    (empty if not regular). blocks : (R,) half of a foldover, else 0. note : a remark for the user.
    """

    kind: Kind
    factors: tuple[str, ...]
    levels: Ints
    base: int = 0
    masks: tuple[int, ...] = ()
    signs: tuple[int, ...] = ()
    blocks: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    note: str = ""
    minimum_aberration: bool = False

    @property
    def runs(self) -> int:
        return len(self.levels)

    @property
    def regular(self) -> bool:
        return bool(self.masks)

    @property
    def generators(self) -> tuple[str, ...]:
        """``E=ABC`` for every factor that is not a base factor, with the factors' names."""
        basis = [(1 << b) for b in range(self.base)]
        names = {mask: self.factors[j] for j, mask in enumerate(self.masks) if mask in basis}
        if len(names) < self.base:
            return ()
        return tuple(
            f"{self.factors[j]}={'-' if self.signs[j] < 0 else ''}"
            + self.word([self.masks.index(b) for b in basis if mask & b])
            for j, mask in enumerate(self.masks)
            if mask not in basis
        )

    def word(self, members: Sequence[int]) -> str:
        """Name of an interaction: ``ABC`` for letters, ``push:pop`` for names."""
        return ("" if self.lettered else ":").join(self.factors[j] for j in members)

    @property
    def lettered(self) -> bool:
        """Whether every name is a single letter."""
        return all(len(name) == 1 for name in self.factors)

    def term(self, members: Sequence[int]) -> str:
        """Name of a term in tables: ``A:B``."""
        return ":".join(self.factors[j] for j in members)

    def column(self, members: Sequence[int]) -> Ints:
        """(R,) product of the factors' columns."""
        return np.asarray(np.prod(self.levels[:, list(members)], axis=1, dtype=np.int64))

    def key(self, members: Sequence[int]) -> tuple[int, int]:
        """Mask and sign of a term: terms of one mask are aliases of each other."""
        mask, sign = 0, 1
        for j in members:
            mask ^= self.masks[j]
            sign *= self.signs[j]
        return mask, sign

    def aliases(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """Alias sets of main effects and two-factor interactions, in the order of the first term of each.

        Sets of one term are left out; `key` gives the signs of the members.
        """
        if not self.regular:
            return ()
        sets: dict[int, list[tuple[int, ...]]] = {}
        for size in (1, 2):
            for members in combinations(range(len(self.factors)), size):
                sets.setdefault(self.key(members)[0], []).append(members)
        return tuple(tuple(members) for mask, members in sets.items() if len(members) > 1 and mask)

    @cached_property
    def clear(self) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]]:
        """Clear main effects and two-factor interactions: those aliased with no other of either kind."""
        count = len(self.factors)
        if not self.regular:
            return (), ()
        used: dict[int, int] = {0: 2}
        for mask in self.masks:
            used[mask] = used.get(mask, 0) + 1
        pairs = list(combinations(range(count), 2))
        for a, b in pairs:
            mask = self.masks[a] ^ self.masks[b]
            used[mask] = used.get(mask, 0) + 1
        mains = tuple(j for j in range(count) if used[self.masks[j]] == 1)
        return mains, tuple((a, b) for a, b in pairs if used[self.masks[a] ^ self.masks[b]] == 1)

    @cached_property
    def word_lengths(self) -> tuple[int, ...]:
        """(A1, A2, A3, ...): number of words of the defining relation by length, computed from the runs by
        MacWilliams' identity, so that the number of factors does not matter."""
        count = len(self.factors)
        if not self.regular:
            return ()
        # Weights of the runs of the fraction that contains the origin (signs do not change lengths).
        weights = np.zeros(count + 1, dtype=object)
        for run in range(1 << self.base):
            weights[sum((mask & run).bit_count() & 1 for mask in self.masks)] += 1
        lengths = []
        for length in range(1, count + 1):
            total = sum(
                int(weights[w]) * _krawtchouk(length, w, count) for w in range(count + 1) if weights[w]
            )
            lengths.append(total // (1 << self.base))
        while lengths and lengths[-1] == 0:
            lengths.pop()
        return tuple(lengths)

    @property
    def resolution(self) -> int:
        """Length of the shortest word; 0 for a full factorial, 3 for Plackett-Burman."""
        if not self.regular:
            return 3 if self.kind == "plackett-burman" else 0
        return next((i + 1 for i, count in enumerate(self.word_lengths) if count), 0)

    def defining_relation(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """Sign and members of every word, shortest first, without the identity; of long relations only the
        words of lengths 3 and 4."""
        if not self.regular:
            return ()
        # A word is a set of masks whose sum vanishes: reduce every mask by those before it.
        pivots: dict[int, tuple[int, int]] = {}
        relations: list[int] = []
        for j, mask in enumerate(self.masks):
            members = 1 << j
            while mask and mask.bit_length() in pivots:
                pivot, used = pivots[mask.bit_length()]
                mask, members = mask ^ pivot, members ^ used
            if mask:
                pivots[mask.bit_length()] = (mask, members)
            else:
                relations.append(members)
        if 1 << len(relations) <= _WORDS:
            sums = [0]
            for relation in relations:
                sums += [word ^ relation for word in sums]
            every = [tuple(j for j in range(len(self.masks)) if word >> j & 1) for word in sums[1:]]
            words = [(self.key(members)[1], members) for members in every]
        else:
            words = self._short_words()
        return tuple(sorted(words, key=lambda word: (len(word[1]), word[1])))

    def _short_words(self) -> list[tuple[int, tuple[int, ...]]]:
        place = {mask: j for j, mask in enumerate(self.masks)}
        short: list[tuple[int, tuple[int, ...]]] = []
        pairs: dict[int, list[tuple[int, int]]] = {}
        for a, b in combinations(range(len(self.masks)), 2):
            mask = self.masks[a] ^ self.masks[b]
            if mask in place and place[mask] > b:
                short.append((self.key((a, b, place[mask]))[1], (a, b, place[mask])))
            pairs.setdefault(mask, []).append((a, b))
        for same in pairs.values():
            for (a, b), (c, d) in combinations(same, 2):
                if a < c and b not in (c, d) and len(short) < _WORDS:
                    members = tuple(sorted((a, b, c, d)))
                    word = (self.key(members)[1], members)
                    if word not in short:
                        short.append(word)
        return short

    @property
    def unperturbed(self) -> int:
        """Index of the run with every factor at its low level; -1 if the design has none."""
        lowest = 0 if self.kind == "orthogonal-array" and self.levels.min() >= 0 else -1
        at = np.flatnonzero((self.levels == lowest).all(axis=1))
        return int(at[0]) if at.size else -1


def _krawtchouk(j: int, w: int, n: int) -> int:
    return sum((-1) ** i * comb(w, i) * comb(n - w, j - i) for i in range(max(0, j - n + w), min(j, w) + 1))


def names_for(count: int) -> tuple[str, ...]:
    """Letters, or F1, F2, ... for more factors than there are letters.

    Raises
    ------
    ValueError : fewer than 1 or more than `MOST_FACTORS` factors.
    """
    if not 1 <= count <= MOST_FACTORS:
        raise ValueError(f"{count} factors were requested, 1 to {MOST_FACTORS} are possible")
    return tuple(LETTERS[:count]) if count <= len(LETTERS) else tuple(f"F{j + 1}" for j in range(count))


def _named(factors: Sequence[str]) -> tuple[str, ...]:
    names = tuple(name.strip() for name in factors)
    if not names or len(set(names)) < len(names) or not all(names):
        raise ValueError("every factor needs a name of its own")
    if len(names) > MOST_FACTORS:
        raise ValueError(f"{len(names)} factors are named, up to {MOST_FACTORS} are possible")
    if bad := next((name for name in names if re.search(r"[:*=\s,]", name)), ""):
        raise ValueError(f"the factor name {bad!r} contains a character that separates names, as ' ' or ':'")
    return names


# --- regular designs ---


def regular(
    factors: Sequence[str], runs: int | None = None, generators: Sequence[str] | str | None = None
) -> Design:
    """A full factorial or regular fraction.

    Parameters
    ----------
    factors : k names. runs : a power of two above k, up to 2^k (None: 2^k, or as the generators imply).
    generators : such as ``E=ABC`` or ``swap=-push:pop``; None: those of minimum aberration where known (to
        128 runs), else the best found, with signs such that the run without any delay is included.

    Raises
    ------
    ValueError : the numbers do not fit, or the generators contradict each other; the message names the word.
    """
    names = _named(factors)
    count = len(names)
    if generators is not None:
        return _generated(names, _split(generators), runs)
    if runs is None:
        runs = 1 << count
    base = runs.bit_length() - 1
    if runs < 2 or runs != 1 << base:
        raise ValueError(f"{runs} runs are not a power of two, which a regular design needs")
    if runs > MOST_RUNS:
        raise ValueError(f"{runs} runs are more than the {MOST_RUNS} that are supported")
    if base > count:
        raise ValueError(f"{runs} runs are more than the {1 << count} treatments of {count} factors")
    if count > runs - 1:
        raise ValueError(
            f"{count} factors cannot be estimated in {runs} runs, the smallest number is "
            f"{1 << count.bit_length()}"
        )
    if base == count:
        return _from_masks("full", names, base, [1 << b for b in range(base)], minimum=True)
    table = _table().get((count, runs))
    if table is not None:
        masks = [1 << b for b in range(base)] + [int(mask, 16) for mask in table.split()]
        return _from_masks("regular", names, base, masks, minimum=True)
    masks, minimum = _search(count, base)
    return _from_masks("regular", names, base, masks, minimum=minimum)


@lru_cache(maxsize=1)
def _table() -> dict[tuple[int, int], str]:
    """Masks of the generated factors by (factors, runs), of designs with the word lengths of the published
    catalogues; the file names these, and how the designs were found."""
    lines = (resources.folder() / "designs.txt").read_text(encoding="utf-8").splitlines()
    rows = (line.split(maxsplit=2) for line in lines if not line.startswith("#"))
    return {(int(count), int(runs)): masks for count, runs, masks in rows}


def _from_masks(
    kind: Kind,
    names: tuple[str, ...],
    base: int,
    masks: Sequence[int],
    signs: Sequence[int] | None = None,
    minimum: bool = False,
) -> Design:
    """The design with these masks. Without `signs`, factors of an even number of base letters get a minus, so
    that the run without any delay belongs to the fraction."""
    if signs is None:
        signs = [1 if mask.bit_count() % 2 else -1 for mask in masks]
    basic = 2 * (np.arange(1 << base)[:, None] >> np.arange(base) & 1) - 1  # (runs, base)
    parts = ([b for b in range(base) if mask >> b & 1] for mask in masks)
    levels = np.stack([basic[:, part].prod(axis=1) for part in parts], axis=1) * np.array(signs)
    blocks = np.zeros(1 << base, np.int64)
    return Design(kind, names, levels, base, tuple(masks), tuple(signs), blocks, minimum_aberration=minimum)


def _split(generators: Sequence[str] | str) -> list[str]:
    parts = re.split(r"[,\s]+", generators) if isinstance(generators, str) else list(generators)
    return [part.strip() for part in parts if part.strip()]


def members_of(word: str, names: Sequence[str]) -> tuple[int, ...]:
    """Indices of the factors in a word: ``ABC``, ``A:B:C``, ``push*pop``; letters that are no names are
    positions.

    Raises
    ------
    ValueError : a part is not a factor, or occurs twice.
    """
    # A dot is a separator only if no name contains one.
    signs = r"[:*]" if any("." in name for name in names) else r"[:*.]"
    parts = [word] if word in names else [part for part in re.split(signs, word) if part]
    if parts == [word] and word not in names:
        parts = list(word)
    members = []
    for part in parts:
        if part in names:
            members.append(list(names).index(part))
        elif part in LETTERS and LETTERS.index(part) < len(names):
            members.append(LETTERS.index(part))
        else:
            raise ValueError(f"{part!r} in {word!r} is no factor")
    if len(set(members)) < len(members):
        raise ValueError(f"{word!r} names a factor twice")
    return tuple(members)


def _generated(names: tuple[str, ...], generators: list[str], runs: int | None) -> Design:
    generated: dict[int, tuple[tuple[int, ...], int, str]] = {}
    for text in generators:
        left, equals, right = text.partition("=")
        sign = -1 if right.startswith("-") else 1
        right = right.lstrip("+-")
        if not equals or not right:
            raise ValueError(f"{text!r} is no generator, write for example E=ABC or F=-BCD")
        target = members_of(left, names)
        if len(target) != 1:
            raise ValueError(f"{left!r} in {text!r} is not one factor")
        if target[0] in generated:
            raise ValueError(f"{text!r} contradicts {generated[target[0]][2]!r}")
        generated[target[0]] = (members_of(right, names), sign, text)
    basis = [j for j in range(len(names)) if j not in generated]
    base = len(basis)
    if not 1 <= base <= MOST_RUNS.bit_length() - 1:
        raise ValueError(f"{len(generated)} generators leave {base} base factors")
    if runs is not None and runs != 1 << base:
        raise ValueError(
            f"{len(generated)} generators for {len(names)} factors give {1 << base} runs, not {runs}"
        )
    masks, signs = [0] * len(names), [1] * len(names)
    for b, j in enumerate(basis):
        masks[j] = 1 << b
    for j, (members, sign, text) in generated.items():
        wrong = [names[m] for m in members if m in generated]
        if wrong:
            raise ValueError(f"{text!r} uses {wrong[0]}, which is itself generated; use base factors")
        masks[j], signs[j] = sum(masks[m] for m in members), sign
        if len(members) == 1:
            raise ValueError(f"{text!r} makes one factor equal to another, so neither could be estimated")
    for a, b in combinations(range(len(names)), 2):
        if masks[a] == masks[b]:
            raise ValueError(
                f"{names[a]} and {names[b]} would be equal (word {names[a]}:{names[b]}), "
                "so neither could be estimated"
            )
    design = _from_masks("regular" if generated else "full", names, base, masks, signs)
    if design.unperturbed < 0:
        design = replace(
            design,
            note="the run without any delay is not among these; reverse the sign of a generator, or add that "
            "run, to have something to compare with",
        )
    return design


def _search(count: int, base: int) -> tuple[list[int], bool]:
    """Masks with few short words, and whether they are known to have minimum aberration: the best of all
    choices where those are few, else found by exchange.

    Designs with at most half as many factors as runs can avoid all words of odd length (each column a product
    of an odd number of base factors), which gives resolution IV.
    """
    size = 1 << base
    fixed = [1 << b for b in range(base)]
    # With more factors than 5/16 of the runs every design of resolution IV is of this kind (Chen and Cheng
    # 2006), so the best of this kind is the best of all.
    odd = [m for m in range(1, size) if m not in fixed and m.bit_count() % 2 == 1]
    every = [m for m in range(1, size) if m not in fixed]
    needed = count - base
    pools = [every] if 2 * count > size else [odd] if 16 * count > 5 * size else [every, odd]
    if len(pools) == 1 and comb(len(pools[0]), needed) <= 3000:
        choices = (fixed + list(extra) for extra in combinations(pools[0], needed))
        return min(choices, key=lambda masks: _short_pattern(masks, size)), True
    generator = np.random.default_rng(count * 8192 + base)
    candidates = [_exchange(fixed, pool, needed, size, generator) for pool in pools for _ in range(3)]
    return min(candidates, key=lambda masks: _short_pattern(masks, size)), False


def _exchange(
    fixed: list[int], pool: list[int], needed: int, size: int, generator: np.random.Generator
) -> list[int]:
    """Masks by a greedy search: add the column that makes fewest short words `needed` times, then exchange
    single columns while that helps."""
    ones, twos, threes = np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size, np.int64)
    every = np.arange(size)

    def add(mask: int, sign: int) -> None:
        nonlocal ones, twos, threes
        if sign < 0:
            ones[mask] -= 1
            twos = twos - ones[every ^ mask]
            threes = threes - twos[every ^ mask]
        else:
            threes = threes + twos[every ^ mask]
            twos = twos + ones[every ^ mask]
            ones[mask] += 1

    for mask in fixed:
        add(mask, 1)
    added: list[int] = []
    candidates = np.array(pool)

    def best_candidate() -> int:
        free = candidates[ones[candidates] == 0]
        order = np.lexsort((generator.random(free.size), threes[free], twos[free]))
        return int(free[order[0]])

    for _ in range(needed):
        added.append(best_candidate())
        add(added[-1], 1)
    for _ in range(2 * needed + 20):
        # Replace the column that is in most short words.
        without = []
        for mask in added:
            add(mask, -1)
            without.append((int(twos[mask]), int(threes[mask])))
            add(mask, 1)
        worst = max(range(needed), key=lambda i: (without[i], generator.random()))
        old = added[worst]
        add(old, -1)
        new = best_candidate()
        if (int(twos[new]), int(threes[new])) >= without[worst]:
            add(old, 1)
            break
        added[worst] = new
        add(new, 1)
    return fixed + added


def _short_pattern(masks: Sequence[int], size: int) -> tuple[int, ...]:
    """Number of words of 3, 4, 5 and 6 factors."""
    counts = [np.zeros(size, dtype=object) for _ in range(7)]
    counts[0][0] = 1
    every = np.arange(size)
    for mask in masks:
        for length in range(6, 0, -1):
            counts[length] = counts[length] + counts[length - 1][every ^ mask]
    return tuple(int(counts[length][0]) for length in range(3, 7))


def foldover(design: Design, factor: str | None = None) -> Design:
    """The design and its mirror image, with the halves as blocks.

    With all signs reversed, words of odd length vanish from the defining relation (resolution III becomes
    IV); with the signs of `factor` reversed, that factor and its two-factor interactions become clear. A word
    that vanished is + in one half and - in the other, so it is confounded with the halves; the note names it.

    Raises
    ------
    ValueError : the design is not regular or is full already, there is no such factor, or no word vanishes
    (the mirror image would repeat the same runs).
    """
    if not design.regular or design.kind == "full":
        raise ValueError("only a regular fraction can be folded over")
    if factor is not None and factor not in design.factors:
        raise ValueError(f"there is no factor {factor!r}")
    turned = [factor is None or name == factor for name in design.factors]
    words = [members for _, members in design.defining_relation()]
    vanishing = [members for members in words if sum(turned[j] for j in members) % 2]
    if not vanishing and len(words) + 1 == 1 << (len(design.factors) - design.base):
        part = "every sign" if factor is None else f"the signs of {factor}"
        raise ValueError(
            f"reversing {part} repeats the same runs, as no word of the defining relation changes its sign; "
            "fold over a factor of such a word, or run replicates"
        )
    bit = 1 << design.base
    masks = [mask | bit if turn else mask for mask, turn in zip(design.masks, turned, strict=True)]
    # The new base column is + in the first half, so a reversed factor is unchanged there.
    first, signs = design.levels, design.signs
    second = np.where(turned, -first, first)
    return Design(
        "regular",
        design.factors,
        np.concatenate([first, second]),
        design.base + 1,
        tuple(masks),
        signs,
        np.repeat([0, 1], design.runs),
        note="the second half mirrors the first and is run after it, so what changes between the halves "
        f"is confounded with {design.term(vanishing[0]) if vanishing else 'an interaction of many factors'}",
    )


# --- other designs ---


def plackett_burman(factors: Sequence[str], runs: int | None = None) -> Design:
    """A design for the main effects of up to R - 1 factors in R = 12, 20 or 24 runs (None: the smallest).

    Raises
    ------
    ValueError : there is no such number of runs, or there are too many factors.
    """
    names = _named(factors)
    runs = runs or next((n for n in _CYCLES if n > len(names)), 0)
    if runs not in _CYCLES:
        raise ValueError(f"Plackett-Burman designs have {', '.join(map(str, _CYCLES))} runs here")
    if len(names) > runs - 1:
        raise ValueError(
            f"{len(names)} factors do not fit into {runs} runs, up to {runs - 1} do; "
            "take a regular fraction or more runs"
        )
    row = np.array([1 if sign == "+" else -1 for sign in _CYCLES[runs]])
    levels = np.array([np.roll(row, shift) for shift in range(runs - 1)] + [[-1] * (runs - 1)])
    spread = " (1/3 of it each)" if runs == 12 else ""
    return Design(
        "plackett-burman",
        names,
        levels[:, : len(names)].astype(np.int64),
        blocks=np.zeros(runs, np.int64),
        note=f"main effects only: every two-factor interaction is spread{spread} over the other main effects",
    )


#: name -> (runs, levels of each column)
ARRAYS: dict[str, tuple[int, tuple[int, ...]]] = {
    "L4": (4, (2,) * 3),
    "L8": (8, (2,) * 7),
    "L9": (9, (3,) * 4),
    "L12": (12, (2,) * 11),
    "L16": (16, (2,) * 15),
    "L16b": (16, (4,) * 5),
    "L18": (18, (2,) + (3,) * 7),
    "L25": (25, (5,) * 6),
    "L27": (27, (3,) * 13),
    "L32": (32, (2,) * 31),
}


def orthogonal_array(name: str, factors: Sequence[str]) -> Design:
    """A standard orthogonal array, for more than two sizes of delay; levels 0, 1, 2, ...

    L25 is that of NISTIR 5131, table 4: run 5 i + j + 1 has i, j and (k i + j) mod 5.

    Raises
    ------
    ValueError : there is no such array, or it has too few columns.
    """
    names = _named(factors)
    if name not in ARRAYS:
        raise ValueError(f"there is no array {name!r}, known are {', '.join(ARRAYS)}")
    runs, sizes = ARRAYS[name]
    if len(names) > len(sizes):
        raise ValueError(f"{name} has {len(sizes)} columns, too few for {len(names)} factors")
    if name in ("L9", "L25", "L27"):
        levels = _linear_array(sizes[0], {"L9": 2, "L25": 2, "L27": 3}[name])
    elif name == "L16b":
        levels = _four_levels()
    elif name == "L18":
        levels = np.array([[int(level) for level in row] for row in _L18.split()])
    elif name == "L12":
        levels = (1 + plackett_burman(names_for(11), 12).levels[::-1]) // 2
    else:
        base = runs.bit_length() - 1
        full = _from_masks("regular", names_for(runs - 1), base, range(1, runs))
        levels = (full.levels + 1) // 2
    return Design(
        "orthogonal-array",
        names,
        np.ascontiguousarray(levels[:, : len(names)]).astype(np.int64),
        blocks=np.zeros(runs, np.int64),
        note="for a search: rank the runs by their response and compare level means",
    )


def _linear_array(q: int, base: int) -> Ints:
    """(q^base, columns): the linear forms mod q (q prime) that are no multiples of each other."""
    runs = np.array(list(product(range(q), repeat=base)))
    if base == 2:
        i, j = runs.T
        return np.stack([i, j] + [(k * i + j) % q for k in range(1, q)], axis=1)
    forms = [form for form in product(range(q), repeat=base) if any(form) and next(c for c in form if c) == 1]
    forms.sort(key=lambda form: sum(c > 0 for c in form))
    return np.asarray((runs @ np.array(forms).T) % q)


def _four_levels() -> Ints:
    """(16, 5): four levels, by arithmetic in the field of four elements."""
    times = [[0, 0, 0, 0], [0, 1, 2, 3], [0, 2, 3, 1], [0, 3, 1, 2]]
    runs = [(i, j) for i in range(4) for j in range(4)]
    return np.array([[i, j, *(times[k][i] ^ j for k in (1, 2, 3))] for i, j in runs])


# --- choosing ---


def offers(factors: Sequence[str], budget: int | None = None, resolution: int = 3) -> tuple[Design, ...]:
    """Two-level designs of at least that resolution within the budget of runs, fewest runs first."""
    names = _named(factors)
    count = len(names)
    offered = [regular(names, runs) for runs in regular_sizes(count) if runs <= (budget or runs)]
    sizes = [runs for runs in _CYCLES if count < runs <= min(budget or runs, 1 << count)]
    offered += [plackett_burman(names, runs) for runs in sizes]
    enough = (design for design in offered if not 0 < design.resolution < resolution)
    return tuple(sorted(enough, key=lambda design: (design.runs, -design.resolution)))


def regular_sizes(count: int) -> tuple[int, ...]:
    """Numbers of runs of the regular designs of k factors, ascending."""
    bases = range(max(1, count.bit_length()), min(count, MOST_RUNS.bit_length() - 1) + 1)
    return tuple(1 << base for base in bases)


def smallest_runs(count: int, resolution: int) -> int:
    """Runs of the smallest regular design of k factors with at least that resolution.

    Raises
    ------
    ValueError : there is none within `MOST_RUNS`.
    """
    for runs in regular_sizes(count):
        reached = regular(names_for(count), runs).resolution
        if reached == 0 or reached >= resolution:
            return runs
    raise ValueError(f"{count} factors need more than {MOST_RUNS} runs for resolution {roman(resolution)}")


_ROMAN = ("full", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X")


def roman(resolution: int) -> str:
    """A resolution in Roman numerals, such as ``IV``; ``full`` for 0, a full factorial."""
    return _ROMAN[resolution] if resolution < len(_ROMAN) else str(resolution)


def resolution_of(text: str) -> int:
    """The resolution as a number: 3 for ``III`` or ``3``; 0 for ``full``.

    Raises
    ------
    ValueError : `text` is no resolution.
    """
    if text.isdigit():
        return int(text)
    if text.upper() in _ROMAN or text == "full":
        return _ROMAN.index("full" if text == "full" else text.upper())
    raise ValueError(f"{text!r} is no resolution, write III, IV or V")


# --- order of the trials ---


@dataclass(frozen=True, eq=False)
class RunSheet:
    """Trials in run order: replicate and treatment (N,), both from 0. `seeds`: of the random order, and of
    that of the trials that a later fold added."""

    seeds: tuple[int, ...]
    replicate: Ints
    treatment: Ints


def run_sheet(design: Design, replicates: int, seed: int, fold_after: int = 0) -> RunSheet:
    """All trials, replicate after replicate, each in a new random order drawn from the seed; the halves of a
    foldover are not mixed.

    Replicates added later do not change earlier trials. Nor does a fold: the first half of the first
    `fold_after` replicates keeps the order that it had without the fold; their mirror images follow as a
    separate block, with a seed derived from the first, then the other replicates of both halves.

    Raises
    ------
    ValueError : no replicate, more than `MOST_TRIALS` trials, a negative seed, or a fold after more
    replicates than there are, or of a design that is not folded.
    """
    if not 1 <= replicates * design.runs <= MOST_TRIALS:
        raise ValueError(
            f"{replicates} replicates of {design.runs} runs were requested, "
            f"1 to {MOST_TRIALS} trials are possible"
        )
    if seed < 0:
        raise ValueError(f"a seed is 0 or more, got {seed}")
    halves = np.unique(design.blocks).tolist()
    if not 0 <= fold_after <= replicates or (fold_after and len(halves) < 2):
        raise ValueError(
            f"a fold after {fold_after} replicates does not fit a plan of {replicates} replicates"
            + ("" if len(halves) > 1 else " that is not folded")
        )
    # Without a fold there is one seed, and `later` is not used.
    seeds = (seed, int(np.random.SeedSequence([seed, fold_after]).generate_state(1)[0]))[
        : 1 + (fold_after > 0)
    ]
    first, later = np.random.default_rng(seed), np.random.default_rng(seeds[-1])
    before, after = range(fold_after), range(fold_after, replicates)
    parts = [(first, r, halves[0]) for r in before] + [(later, r, h) for h in halves[1:] for r in before]
    parts += [(later if fold_after else first, r, half) for r in after for half in halves]
    treatment = [g.permutation(np.flatnonzero(design.blocks == half)) for g, _, half in parts]
    replicate = np.repeat([r for _, r, _ in parts], [len(part) for part in treatment])
    return RunSheet(seeds, replicate, np.concatenate(treatment))
