"""Designs against published tables and brute force over the runs."""

from __future__ import annotations

import csv
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from desktop.core.design import (
    ARRAYS,
    MOST_FACTORS,
    foldover,
    members_of,
    names_for,
    offers,
    orthogonal_array,
    plackett_burman,
    regular,
    resolution_of,
    roman,
    run_sheet,
    smallest_runs,
)
from desktop.core.effects import analyse, trials


def words_by_brute_force(design):
    """Products of columns that are constant, with their sign."""
    found = {}
    for size in range(1, len(design.factors) + 1):
        for members in combinations(range(len(design.factors)), size):
            column = design.levels[:, members].prod(axis=1)
            if (column == column[0]).all():
                found[members] = int(column[0])
    return found


@settings(deadline=None, max_examples=40)
@given(count=some.integers(2, 9), data=some.data())
def test_masks_say_what_the_runs_say(count, data):
    base = data.draw(some.integers(count.bit_length(), count))
    design = regular(names_for(count), 1 << base)
    assert len(np.unique(design.levels, axis=0)) == design.runs == 1 << base
    assert (design.levels.sum(0) == 0).all()
    words = words_by_brute_force(design)
    assert {members: sign for sign, members in design.defining_relation()} == words
    lengths = [len(members) for members in words]
    assert design.resolution == min(lengths, default=0)
    assert list(design.word_lengths) == [lengths.count(i + 1) for i in range(max(lengths, default=0))]
    assert design.unperturbed >= 0
    for same in design.aliases():
        columns = [design.column(members) for members in same]
        assert all(abs(int(c @ columns[0])) == design.runs for c in columns)
    mains, pairs = design.clear
    terms = [(j,) for j in range(count)] + list(combinations(range(count), 2))
    for term in terms:
        column = design.column(term)
        alone = all(abs(int(column @ design.column(other))) < design.runs for other in terms if other != term)
        assert alone == (term in pairs if len(term) == 2 else term[0] in mains)


@pytest.mark.parametrize(
    ("count", "runs", "resolution", "pattern"),
    [
        (4, 8, "IV", (0, 1)), (5, 8, "III", (2, 1)), (5, 16, "V", (0, 0, 1)), (6, 16, "IV", (0, 3)),
        (6, 32, "VI", (0, 0, 0, 1)), (7, 8, "III", (7, 7, 0, 0, 1)), (7, 16, "IV", (0, 7)),
        (7, 32, "IV", (0, 1, 2)), (8, 16, "IV", (0, 14, 0, 0, 0, 1)), (8, 32, "IV", (0, 3, 4)),
        (8, 64, "V", (0, 0, 2, 1)), (9, 16, "III", (4, 14, 8, 0, 4, 1)), (9, 32, "IV", (0, 6, 8, 0, 0, 1)),
        (10, 32, "IV", (0, 10, 16, 0, 0, 5)),
    ],
)  # fmt: skip
def test_minimum_aberration_tables(count, runs, resolution, pattern):
    """Box, Hunter and Hunter, table 12.15; Fries and Hunter 1980."""
    design = regular(names_for(count), runs)
    assert roman(design.resolution) == resolution
    assert design.word_lengths[2:] == pattern


def test_word_lengths_are_those_of_the_published_catalogues():
    """All 93 with 8 to 128 runs, from the runs themselves; what is called the least is the least."""
    with (Path(__file__).parent.parent / "data" / "designs" / "published_word_lengths.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 93
    for row in rows:
        design = regular(names_for(int(row["factors"])), int(row["runs"]))
        lengths = (*design.word_lengths, 0, 0, 0, 0, 0)
        printed = {a: int(row[f"A{a}"]) for a in (3, 4, 5) if row[f"A{a}"]}
        assert {a: lengths[a - 1] for a in printed} == printed, row
        assert design.minimum_aberration and design.unperturbed >= 0, row
        shortest = next((a for a in (3, 4, 5) if printed.get(a)), 6)
        assert design.resolution >= 6 if shortest == 6 else design.resolution == shortest, row


def test_words_of_length_four():
    """The published least numbers: 32 runs, 10 to 15 factors, and 64 runs."""
    assert [regular(names_for(k), 32).word_lengths[3] for k in range(10, 16)] == [10, 25, 38, 55, 77, 105]
    assert [regular(names_for(k), 64).word_lengths[3] for k in (9, 10, 11, 12, 13, 14, 16)] == [
        1, 2, 4, 6, 14, 22, 43,
    ]  # fmt: skip


@pytest.mark.parametrize("count", [16, 31, 32, 64, 100, MOST_FACTORS])
def test_many_factors_keep_main_effects_clear(count):
    """NISTIR 5139: resolution IV costs about 2k runs; 31 factors need 64."""
    runs = smallest_runs(count, 4)
    assert runs == 1 << (2 * count - 1).bit_length()
    design = regular(names_for(count), runs)
    assert design.resolution == 4
    assert len(design.clear[0]) == count
    assert design.unperturbed >= 0


def test_the_fractions_of_the_reports():
    """NISTIR 5131, table 2: I = ABCE = BCDF = ADEF, and table 3."""
    table_2 = regular(names_for(6), generators="E=ABC F=BCD")
    assert {table_2.word(members) for _, members in table_2.defining_relation()} == {"ABCE", "BCDF", "ADEF"}
    sets = [{table_2.term(m) for m in same} for same in table_2.aliases()]
    assert {"A:E", "B:C", "D:F"} in sets and {"C:D", "B:F"} in sets
    table_3 = regular(list("abcdefgh"), generators="g=abc,h=abd,f=acd,e=bcd")
    assert (table_3.runs, table_3.resolution) == (16, 4)
    assert table_3.word_lengths[3] == 14
    # 2-B: the product of the other four; the unperturbed program is not among its runs.
    table_2b = regular(["s_lock", "push", "pop", "bubblesort", "code1"],
                       generators=["code1=s_lock:push:pop:bubblesort"])  # fmt: skip
    assert table_2b.unperturbed < 0 and "without any delay" in table_2b.note
    assert table_2b.generators == ("code1=s_lock:push:pop:bubblesort",)
    other = regular(table_2b.factors, generators="code1=-ABCD")
    assert other.unperturbed == 0 and not other.note
    assert orthogonal_array("L9", list("abcd")).resolution == 0
    with pytest.raises(ValueError, match="Plackett-Burman designs have"):
        plackett_burman(names_for(110))


@pytest.mark.parametrize(
    ("generators", "sentence"),
    [
        ("E=A", "equal to another"),
        ("E=ABC F=ABC", r"E and F would be equal \(word E:F\)"),
        ("E=ABC E=BCD", "'E=BCD' contradicts 'E=ABC'"),
        ("E=ABZ", "'Z' in 'ABZ' is no factor"),
        ("E=AAB", "names a factor twice"),
        ("E", "no generator"),
        ("EF=AB", "not one factor"),
        ("E=ABC F=ABE", "uses E, which is itself generated"),
    ],
)
def test_contradictory_generators_are_refused(generators, sentence):
    with pytest.raises(ValueError, match=sentence):
        regular(names_for(6), generators=generators)


@pytest.mark.parametrize(
    ("count", "runs", "sentence"),
    [
        (8, 8, "8 factors cannot be estimated in 8 runs, the smallest number is 16"),
        (3, 12, "not a power of two"),
        (3, 16, "more than the 8 treatments"),
        (13, 8192, "more than the 4096"),
    ],
)
def test_numbers_that_do_not_fit(count, runs, sentence):
    with pytest.raises(ValueError, match=sentence):
        regular(names_for(count), runs)


def test_names():
    assert names_for(26)[:2] == ("F1", "F2") and "I" not in names_for(25)
    for names in (["a", "a"], [""], ["a b"], ["x:y"], []):
        with pytest.raises(ValueError):
            regular(names, 4)
    assert members_of("push*pop", ["pop", "push"]) == (1, 0)
    assert members_of("BA", ["pop", "push"]) == (1, 0)
    assert members_of("A.B", ["pop", "push"]) == (0, 1)
    assert members_of("a.c:b.c", ["b.c", "a.c"]) == (1, 0)
    assert regular(["sort.c", "push", "pop"], None, "sort.c=push:pop").generators == ("sort.c=push:pop",)


# --- foldover ---


def test_full_foldover_raises_the_resolution():
    design = regular(names_for(7), 8)
    folded = foldover(design)
    assert (design.resolution, folded.resolution, folded.runs) == (3, 4, 16)
    assert (folded.levels[8:] == -folded.levels[:8]).all()
    assert {m: s for s, m in words_of(folded)} == words_by_brute_force(folded)
    assert folded.blocks.tolist() == [0] * 8 + [1] * 8


@pytest.mark.parametrize(("count", "runs"), [(6, 32), (6, 16), (9, 16), (9, 32), (11, 32)])
@pytest.mark.parametrize("factor", [None, "A"])
def test_every_word_of_a_foldover_is_told(count, runs, factor):
    """As many of each length as the runs say, with signs that hold in every run; also where the base factor
    of a half is no factor."""
    design = regular(names_for(count), runs)
    if factor is None and not any(design.word_lengths[::2]):
        mirrored = {tuple(row) for row in -design.levels}
        assert mirrored == {tuple(row) for row in design.levels}
        with pytest.raises(ValueError, match="repeats the same runs"):
            foldover(design)
        return
    folded = foldover(design, factor)
    words = folded.defining_relation()
    for length, number in enumerate(folded.word_lengths, 1):
        assert sum(len(members) == length for _, members in words) == number
    for sign, members in words:
        assert (folded.column(members) == sign).all()


@pytest.mark.parametrize("factor", [None, "B"])
def test_what_changes_between_the_halves_is_named(factor):
    """A step between the halves moves that one effect, by the step, and no other."""
    folded = foldover(regular(names_for(5), 8), factor)
    steady = np.random.default_rng(5).normal(10, 1, 16)
    x = folded.levels.astype(float)
    before = analyse(trials(folded.factors, x, steady))
    after = analyse(trials(folded.factors, x, steady + 3 * folded.blocks))
    pairs = zip(after.effects, before.effects, strict=True)
    moved = [(a.term, a.aliases, a.value - b.value) for a, b in pairs if abs(a.value - b.value) > 1e-9]
    ((term, aliases, size),) = moved
    assert folded.note.rpartition(" ")[2] in (term, *aliases) and abs(size) == pytest.approx(3)


def test_foldover_of_one_factor_frees_it():
    folded = foldover(regular(names_for(7), 8), "C")
    mains, pairs = folded.clear
    assert 2 in mains
    assert {pair for pair in combinations(range(7), 2) if 2 in pair} <= set(pairs)
    assert (folded.levels[8:, 2] == -folded.levels[:8, 2]).all()
    assert (folded.levels[8:, :2] == folded.levels[:8, :2]).all()
    for bad in (regular(names_for(3), 8), plackett_burman(names_for(5))):
        with pytest.raises(ValueError, match="regular fraction"):
            foldover(bad)
    with pytest.raises(ValueError, match="no factor"):
        foldover(regular(names_for(7), 8), "Z")


def words_of(design):
    """Words of a design whose base columns are no factors."""
    return [
        (int(design.column(members)[0]), members)
        for size in range(1, len(design.factors) + 1)
        for members in combinations(range(len(design.factors)), size)
        if design.key(members)[0] == 0
    ]


# --- other designs ---


@pytest.mark.parametrize("runs", [12, 20, 24])
def test_plackett_burman_columns_are_orthogonal(runs):
    design = plackett_burman(names_for(runs - 1), runs)
    assert (design.levels.T @ design.levels == runs * np.eye(runs - 1)).all()
    assert design.unperturbed == runs - 1
    with pytest.raises(ValueError, match="do not fit"):
        plackett_burman(names_for(runs), runs)


def test_plackett_burman_spreads_interactions():
    """Each two-factor interaction is on 9 main effects with 1/3, at 12 runs."""
    levels = plackett_burman(names_for(11), 12).levels
    for a, b in combinations(range(11), 2):
        shares = np.abs((levels[:, a] * levels[:, b]) @ levels) / 12
        assert sorted(np.round(shares, 6)) == [0, 0] + [round(1 / 3, 6)] * 9


@pytest.mark.parametrize("name", ARRAYS)
def test_orthogonal_arrays(name):
    """Every pair of levels stands equally often in every two columns."""
    runs, sizes = ARRAYS[name]
    levels = orthogonal_array(name, names_for(len(sizes))).levels
    assert levels.shape == (runs, len(sizes))
    for j, size in enumerate(sizes):
        assert sorted(np.unique(levels[:, j])) == list(range(size))
    for a, b in combinations(range(len(sizes)), 2):
        _, counts = np.unique(levels[:, [a, b]], axis=0, return_counts=True)
        assert len(counts) == sizes[a] * sizes[b] and len(set(counts)) == 1


def test_5131_table_4():
    """The four printed rows, delay = 7 * level."""
    levels = 7 * orthogonal_array("L25", names_for(6)).levels
    printed = {1: (0, 0, 0, 0, 0, 0), 7: (7, 7, 14, 21, 28, 0), 16: (21, 0, 21, 7, 28, 14),
               25: (28, 28, 21, 14, 7, 0)}  # fmt: skip
    for run, row in printed.items():
        assert tuple(levels[run - 1]) == row


def test_array_refusals():
    with pytest.raises(ValueError, match="no array"):
        orthogonal_array("L99", ["a"])
    with pytest.raises(ValueError, match="too few"):
        orthogonal_array("L9", names_for(5))


# --- choosing and running ---


def test_offers_fit_the_budget():
    found = offers(names_for(6), budget=32, resolution=4)
    assert [(o.runs, roman(o.resolution)) for o in found] == [(16, "IV"), (32, "VI")]
    assert found[0].generators == ("E=ABC", "F=ABD") and len(found[0].clear[0]) == 6
    assert any(o.kind == "plackett-burman" for o in offers(names_for(11), budget=12))
    assert offers(names_for(3))[-1].kind == "full"


def test_resolutions_as_written():
    assert [resolution_of(t) for t in ("III", "iv", "5", "full")] == [3, 4, 5, 0]
    with pytest.raises(ValueError):
        resolution_of("high")


def test_run_sheet_is_random_whole_and_repeatable():
    design = regular(names_for(5), 8)
    sheet = run_sheet(design, 3, seed=11)
    assert sheet.replicate.tolist() == [0] * 8 + [1] * 8 + [2] * 8
    for r in range(3):
        assert sorted(sheet.treatment[sheet.replicate == r]) == list(range(8))
    assert (sheet.treatment == run_sheet(design, 3, seed=11).treatment).all()
    assert not (sheet.treatment == run_sheet(design, 3, seed=12).treatment).all()
    assert not (sheet.treatment[:8] == sheet.treatment[8:16]).all()
    folded = run_sheet(foldover(design), 1, seed=1)
    assert sorted(folded.treatment[:8]) == list(range(8))


@settings(max_examples=40, deadline=None)
@given(
    fold_after=some.integers(1, 4),
    more=some.integers(0, 3),
    seed=some.integers(0, 2**40),
    factor=some.sampled_from([None, "B"]),
)
def test_a_fold_or_replicates_added_later_change_no_trial_before_them(fold_after, more, seed, factor):
    design = regular(names_for(5), 8)
    folded = foldover(design, factor)
    replicates = fold_after + more
    before = run_sheet(design, fold_after, seed)
    sheet = run_sheet(folded, replicates, seed, fold_after)
    keys = list(zip(sheet.replicate.tolist(), sheet.treatment.tolist(), strict=True))
    n = 8 * fold_after
    assert keys[:n] == list(zip(before.replicate.tolist(), before.treatment.tolist(), strict=True))
    assert sorted(keys[n : 2 * n]) == [(r, t) for r in range(fold_after) for t in range(8, 16)]
    assert sorted(keys) == [(r, t) for r in range(replicates) for t in range(16)]
    for k in range(2 * n, len(keys), 8):  # halves stay together
        assert {t // 8 for _, t in keys[k : k + 8]} == {(k // 8) % 2}
    longer = run_sheet(folded, replicates + 1, seed, fold_after)
    assert list(zip(longer.replicate.tolist(), longer.treatment.tolist(), strict=True))[: len(keys)] == keys
    assert sheet.seeds[0] == seed and len(set(sheet.seeds)) == 2


def test_the_mirror_image_is_in_an_order_of_its_own():
    """Not that of the first half, or a trend within the halves would look like an effect."""
    folded = foldover(regular(names_for(5), 8))
    orders = [run_sheet(folded, 1, seed, 1).treatment for seed in range(20)]
    assert sum((o[:8] == o[8:] - 8).all() for o in orders) == 0


@pytest.mark.parametrize(("fold_after", "folded"), [(3, True), (-1, True), (1, False)])
def test_folds_that_cannot_be(fold_after, folded):
    design = regular(names_for(5), 8)
    with pytest.raises(ValueError, match="does not fit a plan of 2 replicates"):
        run_sheet(foldover(design) if folded else design, 2, 1, fold_after)


@pytest.mark.parametrize(("replicates", "seed"), [(0, 1), (10**9, 1), (1, -1)])
def test_run_sheets_that_cannot_be(replicates, seed):
    with pytest.raises(ValueError, match=r"trials are possible|0 or more"):
        run_sheet(regular(names_for(3)), replicates, seed)
