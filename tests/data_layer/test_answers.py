"""What is said of an experiment: its words, and that they are right as often as they say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from desktop import cli, resources
from desktop.core.covariates import covariate
from desktop.core.design import names_for, regular
from desktop.core.effect_limits import pooled_df
from desktop.core.effects import analyse, trials
from desktop.core.power import detectable
from desktop.core.recommend import recommend
from desktop.core.units import trimmed
from desktop.data.answer import MeasuredResponse, answer
from desktop.data.confirm import CONFIRMATION, ChosenEffect, Prediction, judged, predicted, run_confirmation
from desktop.data.experiment import JOURNAL, Factor, Plan, Switch, read_journal, to_trials, write_experiment
from desktop.data.runner import Runner
from desktop.data.runs import read_runs
from desktop.workbench.pinning import region_seconds
from tests.experiments import SCRIPT, needs_shell, small

DATA = Path(__file__).parent.parent / "data" / "spt"
SIGNS = np.array([[1.0 if k >> j & 1 else -1.0 for j in range(3)] for k in range(8)])


def made(effects: dict[str, float], sigma: float, replicates: int, generator: np.random.Generator):
    """A 2^3 with these effects, a mean of 10, and replicates as blocks."""
    names = ("A", "B", "C")
    x = np.tile(SIGNS, (replicates, 1))
    y = 10 + sigma * generator.standard_normal(len(x))
    for term, value in effects.items():
        y += value / 2 * np.prod([x[:, names.index(one)] for one in term.split(":")], axis=0)
    return analyse(trials(names, x, y, np.repeat(np.arange(replicates), 8)))


def test_named_and_bounded_as_often_as_said():
    """120 experiments: 5 % name something where nothing is real, and 95 % bound all that is not named."""
    generator = np.random.default_rng(18)
    wrong = unbounded = 0
    real = {"A": 3.0, "B": 0.4}
    for _ in range(120):
        wrong += bool(answer(made({}, 1.0, 2, generator)).named)
        said = answer(made(real, 1.0, 2, generator))
        left = [abs(real.get(name, 0.0)) for name in "ABC" if name not in said.named]
        unbounded += bool(left) and max(left) > said.bound
    assert wrong <= 6 + 3 * 2.4
    assert unbounded <= 6 + 3 * 2.4


def test_the_words_of_an_answer():
    generator = np.random.default_rng(3)
    place = Factor("A", Switch(("-DF4",)), Switch(), "q.c", 175, "swap", "function", 100)
    setting = Factor("C", Switch(environment=(("T", "24"),)), Switch(environment=(("T", "8"),)))
    found = made({"A": 3.0, "C": -1.0}, 0.01, 2, generator)
    said = answer(found, "s", {"A": place, "C": setting}, {"A": 1e-6}, "wall")
    assert said.named == ("A", "C")
    first, then, rest = said.sentences
    assert first.startswith(
        "swap(), line 175 (A) is what the run time depends on most: 1 µs there costs 3.0 s"
    )
    assert "the delay of 1000 ns cost 3" in first and "% of the run" in first
    assert then.startswith("Then C: T=24 in place of T=8 takes ") and " less" in then
    assert rest.startswith("Nothing else above ") and rest.endswith(" ms (95 %).")
    assert said.text.endswith(f"Next: {said.next}.") and "80 times longer" in said.next
    nothing = answer(made({}, 1.0, 2, np.random.default_rng(7)), "s", response="wall_s")
    assert nothing.sentences[0].startswith("Nothing that was tried changes the run time by more than ")
    assert nothing.next.startswith("try longer delays")
    settings = {name: replace(setting, name=name) for name in "ABC"}
    other = answer(made({}, 1.0, 2, np.random.default_rng(7)), "s", settings)
    assert other.next.startswith("try settings that are further apart"), "there is no delay"
    single = answer(made({"A": 1.0}, 1.0, 1, generator))
    assert single.next  # by Lenth's margins, or replicates
    waiting = answer(found, "s", waiting=5)
    assert waiting.next == "run the 5 trials that are left"


def test_the_answer_stands_first(tmp_path, capsys):
    """NISTIR 5131, table 2: swap, and nothing else."""
    assert cli.run(["spt", "effects", str(DATA / "nistir5131_table2_runs.csv")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("f4 is what the response") and "262 % of the run" in lines[0]
    rows = lines[3:18]
    sizes = [abs(float(row.split()[1])) for row in rows]
    assert sizes == sorted(sizes, reverse=True)
    assert cli.run(["spt", "effects", str(DATA / "nistir5131_table2_runs.csv"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["answer"]["depends_on"] == ["f4"] and said["answer"]["text"] == lines[0]
    assert [e["term"] for e in said["effects"]][:3] == ["f1", "f2", "f1:f2"]  # of the contract: Yates order
    assert cli.run(["spt", "effects", str(DATA / "nistir5131_table2_runs.csv"), "--transform", "log"]) == 0
    assert "mean 3.70904 (of the logarithm), error by" in capsys.readouterr().out


@needs_shell
def test_an_experiment_answers_and_is_confirmed(tmp_path, capsys):
    script = SCRIPT.replace("value=10", "n=$(wc -l < ran.txt); value=$((10 + (n * n * 5 + n) % 7 % 3))")
    experiment = small(tmp_path, script, plan=Plan(replicates=4, seed=5))
    Runner(experiment).run()
    found = analyse(to_trials(experiment))
    said = MeasuredResponse.of(experiment, "value").answer(found)
    assert set(said.named) == {"A", "B"}
    ratio = MeasuredResponse.of(experiment, "value").answer(analyse(to_trials(experiment), transform=0))
    assert [text.count("%") for text in ratio.sentences[:2]] == [1, 1], "the percentage stands once"
    longer = replace(experiment, plan=replace(experiment.plan, replicates=5))
    write_experiment(longer)
    for named in (tmp_path, tmp_path / "experiment.toml", tmp_path / JOURNAL):
        assert cli.run(["spt", "effects", str(named), "--json"]) == 0
        result = json.loads(capsys.readouterr().out)
        assert result["response"] == "value", "the first one of the description, as in the window"
        assert result["answer"]["next"] == "run the 4 trials that are left"
    write_experiment(experiment)
    assert cli.run(["spt", "versions", str(tmp_path), str(tmp_path), "--response", "wall", "--json"]) == 0
    wall = analyse(to_trials(experiment, "wall"))
    shares = {row["term"]: row["first"] for row in json.loads(capsys.readouterr().out)["effects"]}
    assert shares == pytest.approx({name: wall.percent(wall.effect(name)) for name in ("A", "B")})
    before = len(read_journal(experiment))
    one = run_confirmation(Runner(experiment), found, ["A", "B"], 4)
    assert one.verdict == "confirmed" and one.predicted == pytest.approx(11, abs=2)
    assert len(read_journal(experiment)) == before
    assert len((tmp_path / CONFIRMATION).read_text().splitlines()) == 1 + 8
    assert cli.run(["spt", "confirm", str(tmp_path), "--factors", "A"]) == 1
    assert "read the commands above and say --yes" in capsys.readouterr().err
    assert cli.run(["spt", "confirm", str(tmp_path), "--factors", "A", "--runs", "3", "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "confirmed"
    assert cli.run(["spt", "confirm", str(tmp_path), "--factors", "Z", "--yes"]) == 1
    # Of two factors the pair is in it as well, which makes it the difference of two treatments.
    x, y = found.trials.x.tolist(), found.trials.y
    cells = [y[[row == at for row in x]].mean() for at in ([1.0, -1.0], [-1.0, -1.0])]
    expected = predicted(found, (1.0, -1.0))
    assert expected.value == pytest.approx(cells[0] - cells[1])
    assert expected.se == pytest.approx(np.sqrt(found.variance * 2 / 4), rel=1e-3)
    # What is another program now has another effect.
    write_experiment(replace(experiment, title="other"))
    wrong = judged(["A"], Prediction(40.0, 0.5, 9.0), [10.0, 10.5, 10.2], [14.0, 14.6, 14.1])
    assert wrong.verdict == "not confirmed"
    unsure = judged(["A"], Prediction(4.0, 0.5, 9.0), [10.0, 30.0, 14.0], [14.0, 34.0, 18.0])
    assert unsure.verdict == "undecided"


def test_the_verdict_holds_its_level():
    """Where the prediction is right, 5 % of confirmations say it is not."""
    generator = np.random.default_rng(4)
    wrong = 0
    for _ in range(1500):
        # A prediction from 12 degrees of freedom with the same noise.
        se = 0.3 * np.sqrt(generator.chisquare(12) / 12)
        guess = 2.0 + 0.3 * generator.standard_normal()
        base, on = generator.standard_normal((2, 5)) + np.array([[10.0], [12.0]])
        wrong += judged(["A"], Prediction(guess, float(se), 12.0), base, on).verdict == "not confirmed"
    assert wrong / 1500 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 1500)


def test_a_prediction_has_what_is_too_small_to_stand_out():
    """A pair changes a single setting whether it is marked or not; of two that are not told apart, each may
    be what acts."""
    design = regular(names_for(4), 8)  # A:B = C:D and so on
    x = np.tile(design.levels.astype(float), (3, 1))
    block = np.repeat(np.arange(3), 8)
    y = 10 + 0.02 * np.random.default_rng(1).standard_normal(len(x)) + 1.5 * x[:, 0] + 0.3 * x[:, 0] * x[:, 1]
    found = analyse(trials(design.factors, x, y, block))
    one = predicted(found, (1.0, -1.0, -1.0, -1.0))
    assert one.value == pytest.approx(3.0 - 0.6 / 2, abs=0.05), "A:B changes by 0.6, C:D does not"
    assert one.se == pytest.approx(0.3, abs=0.02)
    both = predicted(found, (1.0, 1.0, -1.0, -1.0))
    assert both.value == pytest.approx(3.0, abs=0.05) and both.se < 0.05, "neither of them changes"
    assert one.chosen and not predicted(found, (-1.0, 1.0, -1.0, -1.0)).chosen, "only the largest was chosen"


def found_limit(found) -> float:
    return analyse(found.trials, threshold="familywise").limit.value


@pytest.mark.parametrize("size", [0.0, 1.0])
def test_a_prediction_has_three_at_once_where_they_stand_out(size):
    found = made({"A": 3.0, "A:B:C": size}, 0.01, 3, np.random.default_rng(6))
    e = {one.term: one.value for one in found.effects}
    expected = e["A"] - e["A:B"] - e["A:C"] + (e["A:B:C"] if size else 0.0)
    one = predicted(found, (1.0, -1.0, -1.0))
    assert one.value == pytest.approx(expected)
    # What is there only since it stood out was chosen for its size as well.
    se = found.effects[0].se
    looked = [(c.size, c.part, c.least, c.limit) for c in one.chosen]
    three = [(e["A:B:C"], se**2, 0.0, found_limit(found) * se)] if size else []
    least = max(abs(e["B"]), abs(e["C"]))
    assert looked == [pytest.approx(v) for v in [*three, (e["A"], se**2, least, found_limit(found) * se)]]


def test_a_prediction_knows_what_was_chosen_and_how_far_it_was_ahead():
    design = regular(names_for(4), 8)
    x = np.tile(design.levels.astype(float), (3, 1))
    noise = np.random.default_rng(2).standard_normal(len(x))

    def of(a: float, *levels: float):
        y = 10 + noise + a / 2 * x[:, 0] - 2.0 * x[:, 1]
        found = analyse(trials(design.factors, x, y, np.repeat(np.arange(3), 8)), threshold="familywise")
        return {e.term: e for e in found.effects}, found.limit.value, predicted(found, levels)

    effects, limit, two = of(5.0, 1.0, 1.0, -1.0, -1.0)
    a, b = effects["A"], effects["B"]
    pairs = [e for e in effects.values() if len(e.members) == 2]
    assert a.value > -b.value > 0 and a.significant and b.significant and two.count == 6
    for one, e in zip(two.chosen, (a, b), strict=True):
        assert (one.size, one.limit) == pytest.approx((abs(e.value), limit * e.se))
        assert one.part == pytest.approx(np.sign(e.value) * e.se**2, rel=0.01)
        assert one.least == pytest.approx(max(abs(effects["C"].value), abs(effects["D"].value)))
    # A alone: every pair is one of two, of which only one changes.
    _, _, one = of(5.0, 1.0, -1.0, -1.0, -1.0)
    unsure = sum(e.se**2 / 4 + max(e.value**2 - e.se**2, 0) / 4 for e in pairs)
    assert len(pairs) == 3 and one.se == pytest.approx(np.sqrt(a.se**2 + unsure), rel=0.01)
    assert one.chosen[0].least == pytest.approx(-b.value) and one.count == 4
    assert of(5.0, 1.0, -1.0, 1.0, -1.0)[2].chosen == (), "these two are not the two largest"
    small = next(one for v in np.arange(2.0, 0, -0.2) if not (one := of(v, 1, 1, -1, -1))[0]["A"].significant)
    assert {c.limit for c in small[2].chosen} == {0.0}, "only one of them passed it"


def test_the_largest_of_several_is_expected_to_have_been_overestimated():
    """How far that goes follows from how far it was ahead."""
    measured = [10.0, 10.5, 9.5], [11.6, 12.1, 11.1]

    def limit(*ahead: float, passed: float = 0.0) -> float:
        chosen = tuple(ChosenEffect(3.0, 0.16, 3.0 - gap, passed) for gap in ahead)
        return judged(["A"], Prediction(3.0, 0.4, 20.0, chosen, 6), *measured).limit

    alone = judged(["A"], Prediction(3.0, 0.4, 20.0), *measured)
    assert limit() == alone.limit and limit(3.0) == pytest.approx(alone.limit, rel=0.03)
    assert 0.8 * alone.limit < limit(1.0) < alone.limit, "not as far above the prediction"
    assert alone.limit < limit(0.3) < limit(0.1) < limit(0.001)
    # So does how far it was beyond its limit, and a little more, as that would be larger with more noise.
    assert limit(3.0) < limit(0.01) < limit(3.0, passed=2.99) < 1.1 * limit(0.01)
    # Never more than what holds for each of the six at once, and then with what is left of the 5 %.
    close = (ChosenEffect(9.0, 0.16, 8.9, 0.0),)
    far = judged(["A"], Prediction(9.0, 0.4, 20.0, close, 6), *measured)
    assert far.verdict == "not confirmed" and limit(1e-9) < far.limit < 2 * alone.limit
    assert limit(3.0) > 1.01 * alone.limit
    down = Prediction(-3.0, 0.4, 20.0, (ChosenEffect(3.0, -0.16, 2.9, 0.0),), 6)
    other = judged(["A"], down, measured[1], measured[0])
    assert other.limit == pytest.approx(limit(0.1)) and other.difference == pytest.approx(-alone.difference)


def test_what_just_passed_its_limit_is_confirmed_as_often():
    """An effect, measured with a standard error of 0.5 by 6 degrees of freedom, that had to pass 3 of these:
    its size and the noise were chosen together."""
    generator = np.random.default_rng(12)
    effect = 1.0 + 0.5 * generator.standard_normal(10_000)
    se = 0.5 * np.sqrt(generator.chisquare(6, effect.size) / 6)
    wrong = []
    for e, s in [(e, s) for e, s in zip(effect, se, strict=True) if e > 3 * s][:500]:
        runs = 0.5 * generator.standard_normal((2, 5)) + np.array([[10.0], [11.0]])
        chosen = (ChosenEffect(e, s**2, 0.0, 3 * s),)
        told = [judged(["A"], Prediction(e, s, 6.0, c, 1, s**2), *runs).verdict for c in (chosen, ())]
        wrong.append([one == "not confirmed" for one in told])
    kept, unaware = np.mean(wrong, axis=0)
    assert kept < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 500) and unaware > 0.095


@pytest.mark.parametrize(("noise", "times"), [(1.0, None), (0.01, 4.0), (1e3, 1.0)])
def test_what_was_named_has_no_less_noise_than_these_runs_say(noise, times):
    """The variance of the prediction is raised to that of all runs together, fourfold at the most."""
    base, on = np.array([10.0, 13.0, 9.0]), np.array([16.0, 12.0, 13.5])
    if times is None:
        times = (6 * noise + ((base - base.mean()) ** 2).sum() + ((on - on.mean()) ** 2).sum()) / 10 / noise
        assert 1 < times < 4

    def of(passed: float, more: float, noise: float):
        chosen = (ChosenEffect(4.0, 0.25 * more, 1.0, passed),)
        return judged(["A"], Prediction(4.0, 0.5 * np.sqrt(more), 6.0, chosen, 3, noise), base, on)

    assert of(1.5, 1.0, noise).limit == pytest.approx(of(1.5, times, np.nan).limit)
    assert of(0.0, 1.0, noise).limit == of(0.0, 1.0, np.nan).limit, "it had to pass no limit"
    one = of(1.5, 1.0, noise)
    assert one.predicted_se == 0.5 and one.low < one.measured < one.high
    margin = stats.t.ppf(0.975, pooled_df(np.array([base.var(ddof=1), on.var(ddof=1)]) / 3, np.full(2, 2.0)))
    assert one.high - one.measured == pytest.approx(margin * one.measured_se)


def test_two_runs_of_either_setting_are_enough():
    assert judged(["A"], Prediction(4.0, 0.5, 9.0), [10.0, 10.1], [14.0, 14.2]).verdict == "confirmed"
    with pytest.raises(ValueError, match="two runs"):
        judged(["A"], Prediction(4.0, 0.5, 9.0), [10.0, 10.1], [14.0])


@pytest.mark.parametrize("count", [2, 3, 6, 11])
def test_what_is_recommended_sees_the_effect(count, capsys):
    one = recommend(count)
    assert one.enough and one.sees <= 0.02
    assert detectable(0.02, one.runs, one.replicates) == pytest.approx(one.sees)
    fewer = detectable(0.02, one.runs, one.replicates - 1)
    assert not fewer <= 0.02
    assert cli.run(["spt", "design", "--factors", str(count), "--recommend", "--run-s", "60"]) == 0
    said = capsys.readouterr().out
    assert (
        said.startswith(f"{one.runs} treatments × {one.replicates} replicates: finds effects of ")
        and " min" in said
    )
    poor = recommend(3, 1.0, 0.001)
    assert not poor.enough and "would take more than" in poor.text()


def test_comparisons_have_commands(tmp_path, capsys):
    table = tmp_path / "barriers.csv"
    table.write_text("term,value,se\nFB1_a,1.0,0.1\nFB2_a,2.5,0.1\nF1,3,0.1\n")

    def said(*words: str) -> dict:
        assert cli.run(["spt", *words, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    (row,) = said("barriers", str(table), "--cost", "0.5", "--cost-se", "0.1")["barriers"]
    assert (row["before"], row["difference"]) == (1.0, 1.0)
    # The standard error of the cost is one more; the share is of FB2, which has noise itself (Fieller).
    half = 1.959964 * np.sqrt(0.03)
    assert row["interval"] == pytest.approx([1 - half, 1 + half], abs=1e-6)
    assert row["share_interval"][0] < 0.5 < row["share_interval"][1]
    assert cli.run(["spt", "barriers", str(table), "--cost-se", "-1"]) == 1
    assert "not below zero" in capsys.readouterr().err
    assert cli.run(["spt", "barriers", str(DATA / "nistir5131_table2_runs.csv")]) == 1
    assert "no pair of factors" in capsys.readouterr().err
    files = []
    for p in (2, 4, 8, 24):
        files.append(f"{p}={tmp_path / f'at{p}.csv'}")
        (tmp_path / f"at{p}.csv").write_text(f"term,value,se\nF17,{48 / p + 0.1},0.01\nF2,5.3,0.01\n")
    rows = {row["term"]: row for row in said("processors", *files)["effects"]}
    assert rows["F17"]["shared"] == pytest.approx(48) and rows["F2"]["serial"] == pytest.approx(5.3)
    assert rows["F17"]["slope"] == pytest.approx(-1, abs=0.05) and rows["F17"]["p"] == [2, 4, 8, 24]
    assert rows["F17"]["serial_margin"] == pytest.approx(1.959964 * rows["F17"]["serial_se"])
    assert cli.run(["spt", "processors", "x=a.csv"]) == 1
    assert "no number of processors" in capsys.readouterr().err
    runs = str(DATA / "nistir5131_table2_runs.csv")
    rows = said("versions", runs, runs)["effects"]
    assert rows[0]["term"] == "f4" and rows[0]["change"] == 0
    low, high = rows[0]["change_interval"]
    own = analyse(read_runs(Path(runs)).data).effect("f4")
    assert [-low, high] == pytest.approx(
        [np.hypot(own.share_high - own.share, own.share - own.share_low)] * 2
    )
    offers = said("design", "--factors", "6", "--offers", "--run-s", "12", "--replicates", "3")["designs"]
    assert offers[0]["seconds"] == 8 * 3 * 12 and "aliased" in offers[0]["meaning"]


def test_factors_are_pinned_by_a_command(tmp_path, capsys):
    copy = resources.samples()[0].path
    table = tmp_path / "runs.csv"
    table.write_text("A,B,wall\n-,-,1\n+,-,2\n-,+,3\n+,+,4\n")
    assert cli.run(["spt", "pin", str(table), str(copy), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["factor"] for one in found["factors"]] == ["A", "B"]
    assert cli.run(["spt", "pin", str(table), str(copy), "--region", "A=nowhere"]) == 1
    assert "has no region 'nowhere'" in capsys.readouterr().err


def test_covariates_are_found_and_taken_off(tmp_path, capsys):
    """Against the whole least squares problem, solved at once; and the level where nothing follows it."""
    generator = np.random.default_rng(12)
    x, block = np.tile(SIGNS, (3, 1)), np.repeat(np.arange(3), 8)
    clock = 2000 + 100 * generator.standard_normal(24) + 40 * x[:, 0]
    y = 10 + x[:, 0] - 0.01 * clock + 0.2 * generator.standard_normal(24) + block
    one = covariate("clock", trials(("A", "B", "C"), x, y, block, beside={"clock": clock}))
    words = [x[:, list(m)].prod(axis=1) / 2 for m in [(0,), (1,), (0, 1), (2,), (0, 2), (1, 2), (0, 1, 2)]]
    columns = np.stack([*(block == k for k in range(3)), *words, clock], axis=1).astype(float)
    found, rest, _, _ = np.linalg.lstsq(columns, y, rcond=None)
    assert one.slope == pytest.approx(found[-1]) and one.df == 24 - 11
    errors = np.sqrt(np.diag(np.linalg.inv(columns.T @ columns)) * rest[0] / one.df)
    assert one.se == pytest.approx(errors[-1])
    assert [e.adjusted for e in one.effects] == pytest.approx(found[3:10])
    assert [e.adjusted_se for e in one.effects] == pytest.approx(errors[3:10])
    wrong = 0
    for _ in range(60):
        noise, other = generator.standard_normal((2, 24))
        data = trials(("A", "B", "C"), x, noise, block, beside={"load": other})
        wrong += covariate("load", data).p < 0.05
    assert wrong <= 3 + 3 * 1.7
    table = tmp_path / "runs.csv"
    rows = [
        ",".join(map(repr, (*map(int, r), b, v, c)))
        for r, b, v, c in zip(x.tolist(), block.tolist(), y.tolist(), clock.tolist(), strict=True)
    ]
    table.write_text("A,B,C,replicate,wall,clock_mhz\n" + "\n".join(rows) + "\n")
    assert cli.run(["spt", "covariates", str(table), "--json"]) == 0
    (said,) = json.loads(capsys.readouterr().out)["covariates"]
    assert said["slope"] == pytest.approx(one.slope) and said["name"] == "clock_mhz"
    words = ["spt", "effects", str(table), "--response", "wall", "--covariate", "clock_mhz", "--json"]
    assert cli.run(words) == 0
    read = json.loads(capsys.readouterr().out)
    assert [e["value"] for e in read["effects"]] == pytest.approx(found[3:10])
    assert [e["se"] for e in read["effects"]] == pytest.approx(errors[3:10])
    assert any(
        f"the effects are adjusted for clock_mhz: {trimmed(found[-1], 3)} for each" in note
        for note in read["notes"]
    )
    assert [row["source"] for row in read["anova"]][-4:] == ["replicate", "clock_mhz", "residual", "total"]
    # Another response is none: what the delays do to it would be taken off as well.
    table.write_text("A,B,wall,cpu_s,rss,room_c\n-,-,1,1,5,20\n+,-,2,2,6,21\n-,+,3,2,7,21\n+,+,4,5,8,20\n")
    assert list(read_runs(table, response="wall").data.beside) == ["room_c"]
    journal = "order,attempt,status,other_busy_cores,A,B,wall,calls,clock_mhz\n"
    table.write_text(
        journal + "".join(f"{k},1,ok,0.{k},{k % 2},{k // 2},{k + 1},{k},20{k}\n" for k in range(4))
    )
    assert list(read_runs(table, response="wall").data.beside) == ["other_busy_cores", "clock_mhz"]
    assert cli.run(["spt", "effects", str(table), "--covariate", "load"]) == 1
    assert "load was not noted with the trials" in capsys.readouterr().err
    assert cli.run(["spt", "covariates", str(table), "--columns", "A"]) == 1


def test_places_are_offered_by_the_time_of_a_trace(tmp_path, capsys):
    """Routines called like regions of the trace, the hottest first."""
    sample = resources.samples()[0].path
    seconds = region_seconds(sample)
    names = [n for n in sorted(seconds, key=lambda n: -seconds[n]) if n.isidentifier()][:2]
    source = tmp_path / "own.c"
    source.write_text(f"void quiet(void) {{ }}\nvoid {names[1]}(void) {{ }}\nvoid {names[0]}(void) {{ }}\n")
    words = ["spt", "places", str(source), "--offers", "--trace", str(sample), "--json"]
    assert cli.run(words) == 0
    found = json.loads(capsys.readouterr().out)["places"]
    assert [one["routine"] for one in found] == [names[0], names[1], "quiet"]
    assert found[0]["share"] == pytest.approx(seconds[names[0]] / sum(seconds.values()))
    assert found[2]["share"] == 0


def test_two_numbers_in_a_table_are_a_setting_and_no_delay(capsys):
    """More threads once read "threads makes it faster when it is delayed"."""
    table = str(DATA / "measured_2026-11-21_scaling_2p2.csv")
    assert cli.run(["spt", "effects", table, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    rows = {row["term"]: row for row in said["ranks"]}
    assert rows["threads"]["plus"] == "threads=2" and "plus" not in rows["x_factor"]
    assert cli.run(["spt", "effects", table]) == 0
    text = capsys.readouterr().out
    assert "threads=2 in place of threads=1 takes 257 ± 44 ms less" in text
    assert "threads: threads=2 is faster than threads=1" in text and "the delay makes" not in text


def test_a_column_that_is_no_factor_is_named(tmp_path, capsys):
    """Threads of three numbers were left out without a word."""
    rows = [f"{n},{s},{8 + 8 * (n % 3)},{10 + n % 2 + (s == '+')}" for n in range(6) for s in "-+"]
    (tmp_path / "runs.csv").write_text("order,swap,threads,seconds\n" + "\n".join(rows) + "\n")
    words = ["spt", "effects", str(tmp_path / "runs.csv"), "--factors", "swap"]
    for asked, named in ((words[:3], True), (words, False)):
        assert cli.run(asked) == 0
        assert ("note: threads: no factor" in capsys.readouterr().out) == named


def test_names_are_told_whole(tmp_path, capsys):
    """Two pairs of long names were one and the same in the table."""
    names = [f"a_place_with_a_long_name_{k}" for k in "abc"]
    rows = [",".join("-+"[int(s > 0)] for s in row) + f",{10 + 3 * row[0] + row[1]}" for row in SIGNS]
    (tmp_path / "runs.csv").write_text(",".join([*names, "seconds"]) + "\n" + "\n".join(rows) + "\n")
    assert cli.run(["spt", "effects", str(tmp_path / "runs.csv")]) == 0
    said = capsys.readouterr().out
    assert all(f"\n{a}:{b} " in said for a, b in (names[:2], names[1:], names[::2]))


def test_a_command_of_ones_own_has_no_pilot(tmp_path, capsys):
    folder = str(tmp_path / "e")
    words = ["spt", "new", folder, "--from", "command", "--run", "sh -c 'sleep $S'", "--variable", "S=0,0.1"]
    assert cli.run(words) == 0
    said = capsys.readouterr().out
    assert (
        "--pilot" not in said
        and "its copy" not in said
        and f"spt run {folder} --check, then without it" in said
    )
    assert not (tmp_path / "e" / "program").exists()
    assert cli.run(["spt", "run", folder, "--pilot", "--yes"]) == 1
    assert "where no factor is a delay, run it without a pilot" in capsys.readouterr().err


def test_what_is_refused_says_what_to_do(tmp_path, capsys):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "own.c").write_text("int main(void)\n{\n    return 0;\n}\n")
    new, table = (
        ["spt", "new", str(tmp_path / "e"), "--from"],
        str(DATA / "measured_2026-11-21_scaling_2p2.csv"),
    )
    for words, told in (
        # The variables of the example were once given to any command.
        ([*new, "command", "--run", "ls"], "give --variable NAME=LOW,HIGH"),
        (
            [*new, "python", "--program", str(tmp_path / "own")],
            "holds no Python, choose the template of its language",
        ),
        (["spt", "design", "--factors", "6", "--recommend", "--runs", "8"], "leave --runs out"),
        (["spt", "processors", table], "name each as P=TABLE, such as 8=runs.csv"),
    ):
        assert cli.run(words) == 1
        assert told in capsys.readouterr().err
    assert not (tmp_path / "e").exists()


def test_tables_of_two_versions_are_told_apart_and_nothing_has_no_share(capsys):
    pair = [str(DATA / f"measured_2026-11-21_screen_2p6m2{one}.csv") for one in ("", "_unfenced")]
    assert cli.run(["spt", "versions", *pair]) == 0
    said = capsys.readouterr().out
    assert (
        "first: measured_2026-11-21_screen_2p6m2" in said
        and "second: measured_2026-11-21_screen_2p6m2_unf" in said
    )
    # FB2_1 is -0.1 of its standard error; the difference was once 923.1 % of it.
    barriers = ["spt", "barriers", str(DATA / "measured_2026-11-21_barriers_spin_2p6m2.csv")]
    assert cli.run(barriers) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[-3:] == ["–", "–", "–"] and "cannot be told from zero" in lines[-1]
    assert lines[2].split()[-3:] == ["-37.9", "-121", "8.55"] and lines[0].endswith("Share to [%]")
    assert cli.run([*barriers, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["barriers"][0]["share"] is None
