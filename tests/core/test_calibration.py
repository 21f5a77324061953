"""What the analysis of an experiment states holds in simulation, in short; tests/benchmarks/calibration.py at
length. Seeds are fixed, and bounds are four standard errors beside what is stated."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from desktop.core.design import names_for, regular
from desktop.core.effect_limits import (
    false_discovery,
    familywise_limit,
    largest_of,
    lenth_of,
    lenth_ratios,
    pooled_df,
    ratio_interval,
    selected_ratios,
)
from desktop.core.effect_tables import barrier
from desktop.core.effects import analyse, condensed, ranked, trials
from desktop.core.power import (
    after_loss,
    detectable,
    power_curve,
    power_of,
    replicates_for,
    replicates_to_find,
    sigma_bound,
)
from desktop.core.response_power import powers
from tests.benchmarks.calibration import ROWS, experiment, found, piece

#: Rows and draws of each: few where a draw tells of many effects.
SHORT = {
    "Lenth's margin, one effect, 8 runs": 120,
    "Lenth's simultaneous margin, any, 8 runs": 200,
    "one effect, 8 runs x 2": 120,
    "one effect, 16 runs x 2, drift, one trial lost": 60,
    "family-wise, any of 15, 16 runs x 2": 150,
    "terms clicked away, 3 of 7 kept": 200,
    "suspects, 16 runs x 3, noise 5 %": 60,
    "trial 6 sigma off named, 16 runs x 3, drift, 4 active": 25,
    "verdict on factor and scale, r = 2": 250,
    "not linear over 8 sizes": 1000,
    "not linear over 8 sizes, 4 df each": 60,
    "a/p + b, b in its interval, K = 3": 1000,
    "replicates from three runs are enough": 1000,
    "prediction of a mean, r = 3, drift": 120,
    "right, not confirmed, a pair of 0.6 beside one of 3, 16 runs x 2": 150,
    "right, not confirmed, seven that are equal, 8 runs x 2": 100,
    "'helps' for no effect": 120,
    "+10 % beside x5, in its interval, logarithm": 40,
    "share in its interval, 8 runs x 2": 120,
    "scaling exponent in its interval": 500,
    "change between versions in its interval": 200,
    "share of a barrier in its interval": 300,
    "one effect, a covariate taken off": 200,
}


@pytest.mark.parametrize("name", SHORT)
def test_stated_and_found(name: str) -> None:
    row = next(one for one in ROWS if one.name == name)
    share, error = found([piece(row, 0, SHORT[name])])
    spread = 4 * max(error, np.sqrt(row.stated * (1 - row.stated) / SHORT[name] / 4))
    if row.kind != ">":
        assert share < row.stated + spread
    if row.kind != "<":
        assert share > row.stated - spread


@pytest.mark.parametrize(("count", "each", "largest"), [(7, 2.297, 4.867), (15, 2.156, 4.240)])
def test_critical_values_of_lenth_are_the_published_ones(count: int, each: float, largest: float) -> None:
    """Ye and Hamada 2000, table of critical values for 8 and 16 runs."""
    assert lenth_ratios(count)[0].quantile(0.05) == pytest.approx(each, rel=0.01)
    assert lenth_ratios(count)[1].quantile(0.05) == pytest.approx(largest, rel=0.015)


def test_the_largest_of_effects_with_one_error() -> None:
    """Against draws; of one effect it is Student's t."""
    generator = np.random.default_rng(3)
    size = np.abs(generator.standard_normal((40_000, 15))).max(1)
    t = size / np.sqrt(generator.chisquare(16, 40_000) / 16)
    limit = familywise_limit(15, 16.0)
    assert (t > limit).mean() == pytest.approx(0.05, abs=0.005)
    assert largest_of(np.array([2.5]), 1, 9.0)[0] == pytest.approx(2 * stats.t.sf(2.5, 9), rel=1e-4)
    assert familywise_limit(1, 9.0) == pytest.approx(stats.t.ppf(0.975, 9))


def test_the_largest_where_the_error_is_known_and_lenths_simultaneous_margin() -> None:
    size = np.array([1.0, 2.5])
    assert largest_of(size, 15, np.inf) == pytest.approx(1 - (1 - 2 * stats.norm.sf(size)) ** 15)
    one = lenth_of(np.arange(1.0, 16.0))
    assert one is not None
    assert one.simultaneous == pytest.approx(lenth_ratios(15)[1].quantile(0.05) * one.pse)


def test_false_discoveries_as_benjamini_and_hochberg() -> None:
    """The example of their paper: of fifteen, four are found at 5 %."""
    p = np.array([0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
                  0.5719, 0.6528, 0.7590, 1.0])  # fmt: skip
    assert (false_discovery(p) < 0.05).sum() == 4
    assert false_discovery(p) == pytest.approx(stats.false_discovery_control(p))


def test_an_effect_that_was_looked_for_among_many_is_not_marked_by_chance() -> None:
    data = experiment(np.random.default_rng(1), 16, 1)
    every = analyse(data)
    largest = sorted(every.effects, key=lambda e: -abs(e.value))[:3]
    terms = [e.members for e in largest]
    looked, planned = analyse(data, terms=terms), analyse(data, terms=terms, planned=True)
    assert "were left out after a look at them: 5 % for one or more of all 15" in looked.limit.text
    assert looked.limit.kind == "selected" and looked.limit.count == 15 and planned.limit.kind == "t"
    assert min(e.p for e in looked.effects) > 5 * min(e.p for e in planned.effects)
    assert not any(e.significant for e in looked.effects)


def test_a_limit_says_what_it_is() -> None:
    data = experiment(np.random.default_rng(2), 16, 2)
    said = {kind: analyse(data, threshold=kind).limit for kind in ("t", "2", "familywise", "fdr", "lenth")}
    assert "97.5 % quantile" in said["t"].text and "95 % quantile" not in said["t"].text
    assert "one or more of 15 in 46 %" in said["t"].text
    assert said["familywise"].value > said["t"].value and "all 15 effects" in said["familywise"].text
    assert "false discovery rate" in said["fdr"].text
    assert 0.05 < said["2"].level < 0.08 and "2 standard errors" in said["2"].text
    assert "pseudo standard errors" in said["lenth"].text


def test_a_lost_trial_leaves_the_blocks() -> None:
    """The same as least squares with a column for every treatment and block; the error hardly grows."""
    data = experiment(np.random.default_rng(4), 8, 3, drift=30.0, effects={(0,): 4.0})
    whole = analyse(data)
    data.y[5] = np.nan
    part = analyse(data)
    assert part.effect("A").se < 1.5 * whole.effect("A").se and part.effect("A").significant
    known = data.measured()
    number = np.unique(known.x, axis=0, return_inverse=True)[1].ravel()
    dummies = np.concatenate([np.eye(8)[number], np.eye(3)[known.block]], axis=1)
    rest = known.y - dummies @ np.linalg.lstsq(dummies, known.y, rcond=None)[0]
    df = len(known.y) - np.linalg.matrix_rank(dummies)
    assert part.df == df == 13 and part.variance == pytest.approx(float(rest @ rest) / df)
    columns = [known.x[:, list(e.members)].prod(1) / 2 for e in part.effects]
    model = np.column_stack([*columns, np.eye(3)[known.block]])
    value = np.linalg.lstsq(model, known.y, rcond=None)[0]
    assert [e.value for e in part.effects] == pytest.approx(value[:7])
    assert part.anova[-3].source == "replicate" and part.anova[-3].df == 2


def test_an_unperturbed_run_that_is_added_to_a_fraction_costs_no_interaction() -> None:
    design = regular(names_for(5), 16, "E=ABCD")  # does not hold the run without a delay
    assert design.unperturbed < 0
    x = np.concatenate([design.levels, -np.ones((1, 5))])
    y = 10 + x @ np.array([1.0, 2.0, 0.0, 0.0, 0.5]) + x[:, 0] * x[:, 1]
    found_here = analyse(trials(design.factors, x, y))
    assert len(found_here.effects) == 15 and found_here.effect("A:B").value == pytest.approx(2.0)
    assert found_here.unperturbed == y[-1] and found_here.unperturbed_measured
    assert any("not part of the fraction" in note for note in found_here.notes)


def test_shares_count_the_noise_of_the_base() -> None:
    """Fieller: with no noise below, that of the numerator alone; with much, no end."""
    assert ratio_interval(4.0, 2.0, 0.01, 0.0, 0.0, 2.0) == pytest.approx((1.9, 2.1))
    assert ratio_interval(4.0, 2.0, 0.01, 4.0, 0.0, 2.0) == (-np.inf, np.inf)
    assert ratio_interval(3.0, 3.0, 0.5, 0.5, 0.5, 2.0) == pytest.approx((1.0, 1.0)), "of one and the same"
    assert pooled_df(np.ones(2), np.array([4.0, 4.0])) == 8 and np.isinf(
        pooled_df(np.ones(2), np.full(2, np.inf))
    )
    at = barrier(2.0, 6.0, 0.4, cost=1.0, cost_se=0.3)
    assert at.se == pytest.approx(0.5) and (at.low, at.high) == pytest.approx((3 - 0.98, 3 + 0.98), abs=1e-3)
    assert at.share_low < 3 / 5 < at.share_high
    e = analyse(experiment(np.random.default_rng(5), 8, 3, effects={(0,): 4.0})).effect("A")
    assert e.share_low < e.share < e.share_high
    assert (
        e.share_high - e.share_low > 1.2 * 100 * (e.high - e.low) / 10
    )  # more than that of the effect alone


def test_a_response_whose_noise_grows_wants_its_logarithm() -> None:
    """Two places, one makes the run five times as long; a power of the response says so by itself."""
    generator = np.random.default_rng(6)
    data = experiment(generator, 8, 4, relative=0.05, effects={(0,): 4.0, (1,): 0.1}, log=True)
    told = powers(data, True)
    assert told.suggested == 0 and told.low <= 0 <= told.high < 1 and "logarithm" in told.text
    assert told.likelihood.max() == 0 and told.powers[np.argmax(told.likelihood)] == told.power
    plain, log = analyse(data), analyse(data, transform=0)
    assert plain.effect("B").share > 20 and plain.effect("A:B").significant  # ten percent of all runs
    assert log.effect("B").significant and not log.effect("A:B").significant
    assert log.effect("B").share == pytest.approx(10, abs=4) and log.effect("A").share == pytest.approx(
        400, abs=40
    )
    assert log.effect("B").share_low < 10 < log.effect("B").share_high
    at = log.predict([1, 1, -1])
    assert at.low < 10 * 5 * 1.1 < at.high and at.new_low < at.low
    even = powers(experiment(generator, 16, 4, effects={(0,): 4.0}), True)
    assert even.suggested is None and even.low <= 1 <= even.high
    with pytest.raises(ValueError, match="logarithm"):
        analyse(trials("A", np.array([[-1.0], [1.0]]), np.array([0.0, 1.0])), transform=0)


def test_repeats_in_a_replicate_are_taken_together() -> None:
    x = np.repeat(np.array([[-1.0], [1.0], [-1.0], [1.0]]), 3, axis=0)
    y = np.array([1, 2, 9, 4, 5, 30, 1, 1, 8, 6, 5, 5.0])
    data = trials("A", x, y, np.repeat([0, 0, 1, 1], 3))
    assert condensed(data, "median").y.tolist() == [2, 5, 1, 5]
    assert condensed(data, "minimum").y.tolist() == [1, 4, 1, 5]
    assert condensed(data, "median").label == ("1", "4", "7", "10") and condensed(data, "each") is data


def test_power_and_replicates() -> None:
    """Noncentral t; replicates proposed from a deviation of few runs are for its upper bound."""
    df, away = 7 * 2, 1.5 * np.sqrt(24) / 2
    limit = stats.t.ppf(0.975, df)
    expected = stats.nct.sf(limit, df, away) + stats.nct.cdf(-limit, df, away)
    assert power_of(1.5, 1.0, 8, 3) == pytest.approx(expected, abs=1e-9)
    assert power_of(detectable(1.0, 8, 3), 1.0, 8, 3) == pytest.approx(0.9, abs=1e-6)
    assert sigma_bound(1.0, 2) == pytest.approx(np.sqrt(2 / stats.chi2.ppf(0.1, 2)))
    whole = experiment(np.random.default_rng(3), 16, 2, drift=2.0)
    whole.y[5] = np.nan
    seen = analyse(whole)
    away = detectable(1.0, 16, 2) / (seen.effects[0].se / np.sqrt(seen.variance))
    limit = stats.t.ppf(0.975, seen.df)
    expected = stats.nct.sf(limit, seen.df, away) + stats.nct.cdf(-limit, seen.df, away)
    assert after_loss(16, 2) == pytest.approx(expected, abs=1e-9)
    assert "an effect that the full plan finds with 90 % is found with 88 %" in seen.notes
    certain, careful = replicates_to_find(1.0, 1.0, 8), replicates_to_find(1.0, 1.0, 8, df=2)
    assert power_of(1.0, 1.0, 8, certain) >= 0.9 > power_of(1.0, 1.0, 8, certain - 1) and careful > certain
    for effect in (0.4, 0.5, 0.7, 1.0):
        n, bound = replicates_to_find(1.0, effect, 8, df=2), sigma_bound(1.0, 2)
        assert power_of(effect, bound, 8, n) >= 0.9 > power_of(effect, bound, 8, n - 1)
    as_found, at_bound = power_curve(1.0, 1.0, 8, range(2, 9), df=2)
    assert (np.diff(as_found) > 0).all() and (at_bound < as_found).all()


def test_what_is_not_told_from_zero_has_no_rank() -> None:
    data = experiment(np.random.default_rng(8), 16, 3, effects={(0,): 5.0, (1,): -4.0})
    lines = {line.effect.term: line for line in ranked(analyse(data, threshold="familywise"))}
    assert (lines["A"].rank, lines["A"].verdict) == (1, "slows")
    assert (lines["B"].rank, lines["B"].verdict) == (0, "helps")
    for name in "CD":
        assert (lines[name].rank, lines[name].verdict) == (0, "not distinguishable from zero")


@pytest.mark.parametrize(("count", "df"), [(3, 4), (7, 8), (15, 30)])
def test_a_look_at_all_effects_with_an_error_from_replicates_is_their_family(count: int, df: int) -> None:
    """Nothing is left over for the standard error but the replicates: the studentized maximum modulus."""
    looked = selected_ratios(count, count, df)
    for level in (0.2, 0.05, 0.01):
        assert looked.quantile(level) == pytest.approx(familywise_limit(count, df, level), rel=0.03)


def test_a_p_that_is_not_known_takes_no_part_in_the_false_discovery_rate() -> None:
    adjusted = false_discovery(np.array([0.01, np.nan, 0.04]))
    assert adjusted[[0, 2]] == pytest.approx([0.02, 0.04]) and np.isnan(adjusted[1])


def test_replicates_are_not_one_more_for_a_rounding() -> None:
    assert (6 * 0.1 / 0.3) ** 2 / 4 > 1 and replicates_for(0.1, 0.3, 4) == 1
    assert np.isnan(sigma_bound(1.0, 0.0)), "of one run nothing is known of the noise"
