"""The situation of an experiment without a window: consent, edits, entries, comparisons."""

from __future__ import annotations

import csv
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from desktop import resources
from desktop.core.array_search import array_search
from desktop.data.experiment import (
    JOURNAL,
    Experiment,
    Factor,
    Plan,
    Program,
    Switch,
    read_experiment,
    read_journal,
)
from desktop.data.opening import open_trace
from desktop.data.runs import holds_experiment, read_array
from desktop.data.statistics import Statistics
from desktop.workbench import effect_comparison
from desktop.workbench.effect_comparison import ComparedTable, read_compared
from desktop.workbench.experimenting import ExperimentBench
from tests.experiments import SCRIPT, needs_shell, small
from tests.inline import Inline

DATA = Path(__file__).parent.parent / "data" / "spt"
LANES = ("files", "plan", "run", "analyse", "trace")


@pytest.fixture
def bench():
    made = ExperimentBench(executors={name: Inline() for name in LANES})
    yield made
    made.close()


def values(bench: ExperimentBench) -> dict[str, float]:
    found = bench.snapshot.effects
    assert found is not None
    return {e.term: e.value for e in found.effects}


# --- safety ---


@needs_shell
def test_nothing_runs_before_consent(bench, tmp_path):
    small(tmp_path)
    bench.open(tmp_path)
    assert len(bench.snapshot.commands) == 4 and not bench.snapshot.consented
    for act in (bench.run, bench.check):
        act()
        assert "read the commands" in bench.snapshot.problem
    assert not (tmp_path / "ran.txt").exists() and not (tmp_path / JOURNAL).exists()
    bench.consent()
    bench.run()
    assert len((tmp_path / "ran.txt").read_text().split()) == 8
    assert bench.snapshot.state is not None and bench.snapshot.state.finished
    assert values(bench) == pytest.approx({"A": 4, "B": 7, "A:B": 0})


@needs_shell
def test_consent_is_for_exactly_these_commands(bench, tmp_path):
    small(tmp_path)
    bench.open(tmp_path)
    bench.consent()
    before = bench.snapshot.project.experiment
    changed = replace(before, program=replace(before.program, run=("./program.sh", "--more", "{args}")))
    assert bench.edit("change the run command", changed)
    assert not bench.snapshot.consented
    bench.run()
    assert "read the commands" in bench.snapshot.problem and not (tmp_path / "ran.txt").exists()
    bench.undo()
    assert bench.snapshot.consented, "these commands were agreed to since the program was started"
    # The same words in another folder are another program.
    small(tmp_path / "other")
    bench.open(tmp_path / "other")
    assert not bench.snapshot.consented


@needs_shell
def test_a_source_that_changed_after_the_yes_is_asked_for_again(bench, tmp_path):
    program = Program(
        run=("{out}", "{args}"), build=("cp", "program.sh", "{out}"), sources=("program.sh",), warm_up=0
    )
    small(tmp_path, program=program)
    bench.open(tmp_path)
    bench.consent()
    (tmp_path / "program.sh").write_text(SCRIPT.replace("done", "Done"))
    bench.run()
    assert not bench.snapshot.consented and "read the commands" in bench.snapshot.problem
    assert not (tmp_path / "builds").exists() and not (tmp_path / "ran.txt").exists()


# --- the description ---


@needs_shell
def test_edits_are_named_undone_and_refused(bench, tmp_path):
    small(tmp_path)
    bench.open(tmp_path)
    experiment = bench.snapshot.project.experiment
    more = replace(experiment, plan=replace(experiment.plan, replicates=5))
    assert bench.edit("change the replicates", more) and not bench.snapshot.saved
    assert bench.history.undo_label == "change the replicates" and bench.snapshot.state.planned == 20
    bad = replace(experiment, factors=(experiment.factors[0], replace(experiment.factors[1], name="A")))
    assert not bench.edit("rename", bad)
    assert "'A' cannot be the name" in bench.snapshot.problem
    assert bench.snapshot.project.experiment == more
    bench.undo()
    assert (
        bench.snapshot.project.experiment == experiment
        and bench.history.redo_label == "change the replicates"
    )
    bench.redo()
    assert bench.save() and read_experiment(tmp_path) == more
    seed = bench.snapshot.project.experiment.plan.seed
    bench.new_seed()
    assert bench.snapshot.project.experiment.plan.seed != seed
    assert {o.runs for o in bench.snapshot.offers} == {4}


def test_a_new_experiment_finds_the_places_of_its_sources(bench, tmp_path):
    shutil.copy(resources.folder() / "examples" / "quicksort" / "qsort_spt.c", tmp_path)
    bench.create_in(tmp_path)
    experiment = bench.snapshot.project.experiment
    assert experiment is not None and not bench.snapshot.saved and not (tmp_path / "experiment.toml").exists()
    assert {"F1", "F4", "CS1"} <= set(experiment.names)
    swap = next(f for f in experiment.factors if f.name == "F4")
    assert (swap.file, swap.routine, swap.high.flags) == ("qsort_spt.c", "swap", ("-DF4",))
    assert experiment.program.build[0] == "cc" and "{flags}" in experiment.program.build
    assert set(bench.add_headers()) == {"spt_delay.h", "spt_delay_c.c", "spt_delay.f90", "spt_delay.py"}
    (tmp_path / "spt_delay.h").write_text("mine")
    assert bench.add_headers() == () and (tmp_path / "spt_delay.h").read_text() == "mine"
    assert bench.save() and read_experiment(tmp_path).names == experiment.names
    bench.create_in(tmp_path)
    assert "holds an experiment already" in bench.snapshot.problem


def test_the_example_is_copied_and_never_written_into_the_package(bench, tmp_path):
    home = resources.folder() / "examples" / "quicksort"
    before = {p.name: p.read_bytes() for p in home.iterdir()}
    bench.open_example(tmp_path / "here")
    assert bench.snapshot.project.experiment.folder == tmp_path / "here"
    assert bench.snapshot.project.experiment.names == ("F1", "F2", "F3", "F4", "F5", "F6")
    bench.save()
    assert {p.name: p.read_bytes() for p in home.iterdir()} == before
    bench.open_example(tmp_path / "here")
    assert "choose another folder" in bench.snapshot.problem


# --- reading ---


def test_the_bad_run_of_5131_table_3_is_found_and_left_out_with_a_reason(bench):
    bench.open(DATA / "nistir5131_table3_runs_implied.csv")
    suspects = bench.snapshot.effects.suspects
    assert [s.label for s in suspects] == ["9"]
    assert suspects[0].t == pytest.approx(32.4, abs=0.1)
    assert not bench.leave_out("9", " ") and "reason" in bench.snapshot.problem
    assert bench.leave_out("9", "the machine was busy")
    rest = [abs(v) for term, v in values(bench).items() if term != "c"]
    assert max(rest) < 1.5, "without it the small effects vanish"
    assert bench.snapshot.effects.suspects == () or "9" not in [
        s.label for s in bench.snapshot.effects.suspects
    ]
    assert bench.history.undo_label == "leave trial 9 out"
    bench.undo()
    assert [s.label for s in bench.snapshot.effects.suspects] == ["9"]


def test_terms_are_dropped_and_put_back(bench):
    bench.open(DATA / "measured_2026-11-21_screen_2p6m2.csv")
    every = bench.snapshot.every
    assert every is bench.snapshot.effects and len(every.effects) == 15
    before = bench.snapshot.effects.effect("F4").value
    pair = every.effect("F1:F4")
    bench.toggle_term(every.effect("F1").term)
    assert bench.history.undo_label == "drop a term" and len(bench.snapshot.effects.effects) == 14
    assert len(bench.snapshot.every.effects) == 15, "a dropped term can be seen and put back"
    assert "without F1" in bench.snapshot.hierarchy
    assert bench.snapshot.effects.effect("F4").value == pytest.approx(before), "columns are orthogonal"
    bench.toggle_term(pair.term)
    bench.toggle_term(every.effect("F1").term)
    assert bench.history.undo_label == "put a term back"
    bench.undo()
    bench.undo()
    bench.undo()
    assert bench.snapshot.project.analysis.terms is None and bench.history.undo_label is None
    bench.set_analysis("one term", terms=(every.effect("F4").members,))
    bench.toggle_term(every.effect("F4").term)
    assert "one term at least" in bench.snapshot.problem


def test_another_response_and_other_rows(bench):
    bench.open(DATA / "measured_2026-11-21_scaling_2p2.csv")
    table = bench.snapshot.project.imported.table
    assert ("factor", ("CS1", "F2", "F4")) in table.choices and "cpu_s" in table.others
    bench.choose_rows(None, (("factor", "F2"),))
    assert len(bench.snapshot.effects.trials.y) * 3 == len(table.data.y)
    bench.set_analysis("no blocks", blocks=False)
    factor, scale = effect_comparison.guess_scale(bench.snapshot.effects)
    assert (factor, scale) == ("x_factor", "x_s")
    test = effect_comparison.scale_test_of(bench.snapshot.effects, factor, scale)
    assert (test.mu, test.excess, test.excess_se) == pytest.approx((0.5267, 0.0160, 0.0039), abs=1.1e-4)
    assert test.verdict == "does not scale"
    wall = bench.snapshot.effects.mean
    bench.choose_rows("cpu_s", (("factor", "F2"),))
    assert bench.snapshot.effects.mean != pytest.approx(wall, rel=0.05)
    bench.undo()
    assert bench.snapshot.effects.mean == pytest.approx(wall)


def test_replicates_in_columns_of_their_own_are_read_again(bench, tmp_path):
    rows = ["A,threads,response1,response2", "-,8,10,10.1", "+,8,12,12.1", "-,24,5,5.1", "+,24,7,7.3"]
    (tmp_path / "runs.csv").write_text("\n".join(rows + rows[1:]))
    bench.open(tmp_path / "runs.csv")
    before = values(bench)
    bench.open_record(bench.record())
    assert not bench.snapshot.problem and values(bench) == before
    bench.choose_rows(where=(("threads", "8"),))
    assert not bench.snapshot.problem and bench.project.measured.response == "response1"
    assert len(bench.snapshot.effects.trials.y) == 8


def test_5417_table_4_needs_a_standard_error_to_have_a_verdict(bench):
    """One run of each treatment has none of its own; with the 0.10 of the report it does not scale."""
    bench.open(DATA / "nistir5417_table4_isolated_factor.csv")
    words = effect_comparison.guess_scale(bench.snapshot.effects)
    assert effect_comparison.scale_test_of(bench.snapshot.effects, *words).verdict == "no verdict"
    test = effect_comparison.scale_test_of(bench.snapshot.effects, *words, se=0.1)
    numbers = (
        test.mu,
        test.factor,
        test.scale,
        test.interaction,
        test.threshold,
        test.excess,
        test.excess_se,
    )
    assert numbers == pytest.approx((34.25, 2.25, -7.75, 0.25, -0.509, 0.759, 0.103), abs=5e-4)
    assert test.verdict == "does not scale"


def test_what_cannot_be_read_is_a_sentence(bench, tmp_path):
    (tmp_path / "empty.csv").write_text("A,B\n")
    bench.open(tmp_path / "empty.csv")
    assert "empty.csv: holds no trial" in bench.snapshot.problem and bench.snapshot.task is None
    bench.open(tmp_path / "gone")
    assert "gone" in bench.snapshot.problem
    for name in ("measured_2026-11-21_screen_2p6m2.csv", "nistir5131_table2_runs.csv"):
        assert holds_experiment(DATA / name)
    (tmp_path / "curve.csv").write_text("time,busy\n" + "".join(f"{k},{k % 2}\n" for k in range(50)))
    assert not holds_experiment(tmp_path / "curve.csv") and not holds_experiment(tmp_path)
    # Records of a PICL trace, in which columns are -1 or 1 too, are no table: it has no heading.
    for first in ("-202 -812 0.000000 -1 -1 4 2", "-3 -901 0.000000 0 5 6 7"):
        rows = "".join(f"{k % 2 * 2 - 1} 1 0.{k} {k} {k} {k} {k}\n" for k in range(9))
        (tmp_path / "run.trf").write_text(first + "\n" + rows)
        assert not holds_experiment(tmp_path / "run.trf")


# --- responses from elsewhere ---


def answers(experiment: Experiment) -> dict[int, float]:
    """What program.sh would say, by order."""
    levels, sheet = experiment.design().levels, experiment.sheet()
    rows = [levels[t] for t in sheet.treatment]
    return {k: 10.0 + 4 * (a > 0) + 7 * (b > 0) for k, (a, b) in enumerate(rows, 1)}


@needs_shell
@pytest.mark.parametrize("form", ["numbers", "order", "treatment", "levels"])
def test_pasted_responses(bench, tmp_path, form):
    experiment = small(tmp_path)
    bench.open(tmp_path)
    known, sheet = answers(experiment), experiment.sheet()
    levels = experiment.design().levels
    if form == "numbers":
        text = "\n".join(f"{known[k]}\t0.5" for k in known)
    elif form == "order":
        text = "wall;value;order\n" + "\n".join(f"0.5;{known[k]};{k}" for k in reversed(known))
    elif form == "treatment":
        text = "value,treatment,replicate\n" + "\n".join(
            f"{known[k]},{sheet.treatment[k - 1] + 1},{sheet.replicate[k - 1] + 1}" for k in known
        )
    else:
        signs = {-1: "-", 1: "+"}
        text = "note,B,value,A\n" + "\n".join(
            f"x,{signs[b]},{known[k]},{signs[a]}" for k in known for a, b in [levels[sheet.treatment[k - 1]]]
        )
    assert bench.paste(text) == 8
    assert bench.snapshot.problem == "" and bench.snapshot.state.finished
    assert values(bench) == pytest.approx({"A": 4, "B": 7, "A:B": 0})
    assert not (tmp_path / "ran.txt").exists()
    assert all(t.note == "measured elsewhere" for t in read_journal(experiment))


@needs_shell
def test_a_value_that_is_typed_anew_keeps_both(bench, tmp_path):
    experiment = small(tmp_path)
    bench.open(tmp_path)
    bench.paste("\n".join(map(str, answers(experiment).values())))
    assert bench.enter({3: (99.0, 1.0)})
    lines = [t for t in read_journal(experiment) if t.order == 3]
    assert [t.status for t in lines] == ["ok", "excluded", "ok"] and lines[-1].responses[0] == 99.0
    assert sum(t.responses[0] == 99.0 for t in bench.snapshot.state.good.values()) == 1


@needs_shell
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "nothing to paste"),
        ("1\n" * 9, "9 lines were pasted, 8 trials are left"),
        ("order,value\n1,2\n9,3", "line 3: there is no trial 9"),
        ("order,value\n1,fast", "line 2: 'fast' is no number"),
        ("value,A\n1,+", "no column for B"),
        ("A,B\n+,-", "has no column 'value' or 'wall'"),
        ("A,B,value\n+,2,1", "line 2: '2' is no level"),
        ("treatment,value\n1,2\n1,2\n1,2", "line 4: there is no treatment 1 in replicate 3"),
    ],
)
def test_pastes_that_make_no_sense(bench, tmp_path, text, sentence):
    small(tmp_path)
    bench.open(tmp_path)
    assert bench.paste(text) == 0
    assert sentence in bench.snapshot.problem and not (tmp_path / JOURNAL).exists()


@needs_shell
def test_an_excluded_trial_runs_again(bench, tmp_path):
    small(tmp_path)
    bench.open(tmp_path)
    bench.consent()
    bench.run()
    assert not bench.exclude(2, "") and "reason" in bench.snapshot.problem
    assert bench.exclude(2, "the disk was full") and len(bench.snapshot.state.good) == 7
    bench.run()
    assert bench.snapshot.state.finished and len((tmp_path / "ran.txt").read_text().split()) == 9


# --- arrays ---


@needs_shell
def test_an_array_is_ranked_as_5131_table_4(bench, tmp_path):
    factors = tuple(Factor(f"F{k}", Switch(arguments=(f"-{k}={{delay}}",)), delay=7) for k in range(1, 7))
    small(tmp_path, factors=factors, plan=Plan(kind="orthogonal-array", array="L25", replicates=1))
    bench.open(tmp_path)
    assert bench.snapshot.design.runs == 25 and bench.snapshot.effects is None
    assert "no trial has a response yet" in bench.snapshot.unread
    with (DATA / "nistir5131_table4_oa25_reconstructed.csv").open() as file:
        printed = {int(r["trial"]): r for r in csv.DictReader(file)}
    known = {t: float(r["response_s_printed"]) for t, r in printed.items() if r["response_s_printed"]}
    assert bench.paste("treatment,value\n" + "\n".join(f"{t},{v}" for t, v in known.items())) == 4
    search = bench.snapshot.search
    assert [t + 1 for t in search.order] == sorted(known, key=known.__getitem__)
    assert (search.order[0] + 1, search.mean[0]) == (16, 33.0)
    for t, row in printed.items():
        levels = [int(row[f"F{k}_level"]) for k in range(1, 7)]
        assert bench.snapshot.design.levels[t - 1].tolist() == levels
    # Its journal, read as a table, has the same first response, which no name tells.
    assert read_array(tmp_path / JOURNAL).response == "value"


def test_5131_table_4_is_ranked_from_the_table_alone(bench):
    bench.open(DATA / "nistir5131_table4_oa25_reconstructed.csv")
    search = bench.snapshot.search
    assert bench.snapshot.effects is None and bench.snapshot.problem == "" and search is not None
    assert search.names == ("16", "7", "25", "1") and search.mean == (33, 47, 50, 66)
    assert search.percent(0) == 50 and search.names[search.base] == "1" and search.unseen == 21
    assert bench.leave_out("16", "clock stood still") and bench.snapshot.search.names[0] == "7"
    bench.undo()
    assert bench.snapshot.search.names[0] == "16"


def test_one_place_at_a_time_gives_effects_against_the_delay(bench, tmp_path):
    """An effect is the mean with the delay less the mean without; a trial that is left out is in neither."""
    lines = [
        "run,place,delay,wall",
        "1,,0,10",
        "2,,0,12",
        "3,f,100,21",
        "4,f,200,30",
        "5,f,200,34",
        "6,g,100,11",
    ]
    path = tmp_path / "sizes.csv"
    path.write_text("\n".join(lines) + "\n")
    bench.open(path)
    small_, large = bench.snapshot.parts
    assert (small_.delay, large.delay, small_.unperturbed) == (100, 200, 11)
    assert small_.effects["f"][0] == 10 and small_.effects["g"][0] == 0 and large.effects["f"][0] == 21
    # So few share their noise, in proportion to the mean: 10, 12 and 30, 34 have two degrees of freedom.
    relative = (2 * (1 / 11) ** 2 + 2 * (2 / 32) ** 2) / 2
    for table, mean, trials in ((small_, 21, 1), (large, 32, 2)):
        se = np.sqrt(relative * (mean**2 / trials + 11**2 / 2))
        assert table.effects["f"][1] == pytest.approx(se)
    ((name, dose),) = effect_comparison.doses(bench.snapshot.parts)
    assert name == "f" and dose.per_unit.tolist() == [0.1, 0.105]
    assert bench.leave_out("5", "restless") and bench.snapshot.parts[1].effects["f"][0] == 19
    assert bench.record().path == path and bench.record().left_out == (("5", "restless"),)


def test_a_size_that_ran_often_has_its_own_noise(bench, tmp_path):
    path = tmp_path / "sizes.csv"
    rows = [("", 0, y) for y in (9, 10, 11, 10)] + [("f", 5, y) for y in (19, 21)]
    rows += [("f", 10, y) for y in (20, 30, 40, 30)]
    path.write_text("place,delay,wall\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows))
    bench.open(path)
    assert bench.snapshot.parts[1].effects["f"] == (20, pytest.approx(np.sqrt(200 / 3 / 4 + 2 / 3 / 4)))


def test_runs_at_several_sizes_of_the_delay(bench, tmp_path):
    """NISTIR 5131, figure 3: the same design at one size after another; a is linear, b is not."""
    rng = np.random.default_rng(1)
    lines = ["delay,a,b,replicate,wall"]
    for delay in (100, 300, 1000):
        for a, b, r in ((a, b, r) for a in (0, 1) for b in (0, 1) for r in (1, 2, 3)):
            y = 10 + a * 0.01 * delay + b * np.sqrt(delay) + rng.normal(0, 0.01)
            lines.append(f"{delay},{'-+'[a]},{'-+'[b]},{r},{y}")
    path = tmp_path / "sizes.csv"
    path.write_text("\n".join(lines) + "\n")
    bench.open(path)
    assert [part.delay for part in bench.snapshot.parts] == [100, 300, 1000]
    found = dict(effect_comparison.doses(bench.snapshot.parts))
    assert found["a"].linear and not found["b"].linear
    assert found["a"].per_unit == pytest.approx(0.01, abs=2e-4)
    other = tmp_path / "other.csv"
    other.write_text("factor,delay,effect,se\na,3000,30,0.1\na,5000,50,0.1\n")
    bench.add_table(other)
    assert [t.delay for t in bench.snapshot.project.tables] == [3000, 5000]
    kept = bench.record()
    bench.open_record(kept)
    assert [(t.name, t.effects["a"][0]) for t in bench.snapshot.project.tables] == [
        ("other, delay 3000", 30), ("other, delay 5000", 50)
    ]  # fmt: skip
    bench.set_table(1, processors=8.0)
    bench.open_record(bench.record())
    assert not bench.snapshot.problem
    assert [(t.processors, t.effects["a"][0]) for t in bench.snapshot.project.tables] == [(0, 30), (8, 50)]


def test_effects_alone_are_compared(bench):
    """NISTIR 5417, tables 1 and 2 in one file become its table 3."""
    bench.open(DATA / "nistir5417_tables1_2_iub.csv")
    assert bench.snapshot.effects is None and bench.snapshot.problem == ""
    with (DATA / "nistir5417_table3_scaling.csv").open() as file:
        printed = list(csv.DictReader(file))
    _, _, scaled = effect_comparison.two_scales(bench.snapshot.parts)
    assert {s.term for s in scaled} == {r["factor"] for r in printed}
    # Beside another table they come back from a project each with its own effects.
    bench.open(DATA / "measured_2026-11-21_screen_2p6m2.csv")
    bench.add_table(DATA / "nistir5417_tables1_2_iub.csv")
    bench.open_record(bench.record())
    tables = bench.snapshot.project.tables
    assert [(t.processors, t.effects["F17"][0]) for t in tables] == [(8, 6.03), (24, 2.14)]
    bench.set_table(0, processors=4.0)
    bench.open_record(bench.record())
    assert "none of them with delay 0 on 4 processors" in bench.snapshot.problem
    assert [t.processors for t in bench.snapshot.project.tables] == [24]


def test_level_means_are_means():
    rng = np.random.default_rng(3)
    levels = rng.integers(0, 3, (9, 2))
    treatment = np.repeat(np.arange(9), 2)
    y = rng.normal(size=18)
    y[5] = np.nan
    found = array_search(("a", "b"), levels, treatment, y)
    for one in found.levels:
        j = ("a", "b").index(one.factor)
        assert one.mean == pytest.approx(np.nanmean(y[levels[treatment, j] == one.level]))
    assert sum(found.count) == 17 and list(found.mean) == sorted(found.mean)
    with pytest.raises(ValueError, match="no trial has a response"):
        array_search(("a", "b"), levels, treatment, np.full(18, np.nan))


# --- comparing ---


def image_tables(tmp_path: Path) -> list[ComparedTable]:
    """5139, tables 5 to 8 for the original program, written as tables of effects."""
    with (DATA / "nistir5139_tables4to10_image_benchmark.csv").open() as file:
        rows = [r for r in csv.DictReader(file) if r["version"] == "original" and 5 <= int(r["table"]) <= 8]
    tables = []
    for p in sorted({int(r["processors"]) for r in rows}):
        file_of = tmp_path / f"image_{p}.csv"
        own = [r for r in rows if int(r["processors"]) == p]
        lines = [f"{r['factor']},{r['main_effect_s']},{r['se_main_effect_s']}" for r in own]
        file_of.write_text("factor,effect,se\n" + "\n".join(lines) + "\n")
        tables.append(replace(read_compared(file_of), processors=float(p)))
    return tables


def test_effects_over_processors_as_5139(tmp_path):
    found = {s.term: s for s in effect_comparison.over_processors(image_tables(tmp_path))}
    slopes = {"F17": -0.974, "F26": -0.964, "F2": 0.012, "F1": -0.057, "F4": -0.049}
    assert {k: found[k].fit.slope for k in slopes} == pytest.approx(slopes, abs=1e-3)
    assert found["F17"].fit.shared == pytest.approx(47.86, abs=0.3)
    assert abs(found["F2"].fit.shared) < 0.5 and found["F2"].fit.serial == pytest.approx(5.37, abs=0.1)


def test_two_scales_as_5417(tmp_path):
    tables = [t for t in image_tables(tmp_path) if t.processors in (8, 24)]
    found = {s.term: s for s in effect_comparison.two_scales(tables)[2]}
    f17 = found["F17"]
    assert (f17.middle, f17.interaction, f17.ratio, f17.exponent) == pytest.approx(
        (4.085, -1.945, -0.476, -0.943), abs=1e-3
    )
    with pytest.raises(ValueError, match="two tables with different numbers"):
        effect_comparison.two_scales(tables[:1])
    with pytest.raises(ValueError, match="needs 3 or more numbers of processors, has 2"):
        effect_comparison.over_processors(tables)


def test_versions_are_normalised_as_5131_table_2c():
    first = read_compared(DATA / "nistir5131_table2_runs.csv")
    second = read_compared(DATA / "nistir5131_table2b_runs_implied.csv")
    found = effect_comparison.normalised(first, second)
    percent = {n.term: n.first for n in found}
    # f1 to f6 are s_lock, push, pop, swap, bubble_sort and code1.
    expected = {"f1": 10.36, "f2": 5.86, "f3": 6.80, "f4": 262.17, "f5": -0.52, "f6": 5.76}
    assert {k: percent[k] for k in expected} == pytest.approx(expected, abs=0.07)
    effects_only = ComparedTable("x", Path(), {"f1": (1.0, 0.1)})
    with pytest.raises(ValueError, match="unperturbed"):
        effect_comparison.normalised(first, effects_only)


def test_barrier_pairs_as_5139_table_11():
    se = 0.21 / 2**0.5
    table: dict[str, tuple[float, float]] = {"FB1": (1.0, se), "other": (9.0, se), "FB1_1:FB2_1": (5.0, se)}
    with (DATA / "nistir5139_table11_barrier_pairs.csv").open() as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        table[f"FB1_{row['barrier']}"] = (float(row["FB1_effect_s"]), se)
        table[f"FB2_{row['barrier']}"] = (float(row["FB2_effect_s"]), se)
    waits = ComparedTable("5139", Path(), table)
    found = effect_comparison.barriers(waits)
    assert [p.before for p in found] == ["FB1_1", "FB1_2", "FB1_3"]
    for pair, row in zip(found, rows, strict=True):
        assert pair.barrier.t == pytest.approx(float(row["t_ratio"]), abs=0.01)
    assert [round(100 * p.barrier.share) for p in found] == [27, 7, 56]
    assert effect_comparison.barriers(waits, cost=1.0)[1].barrier.difference == pytest.approx(0.0)


def test_effects_that_do_not_grow_with_the_delay_are_told():
    def table(delay: float, bent: float) -> ComparedTable:
        effects = {"A": (0.02 * delay, 0.01), "B": (bent, 0.01), "A:B": (0.0, 0.01)}
        return ComparedTable(str(delay), Path(), effects, 10.0, 0, delay)

    found = dict(effect_comparison.doses([table(100, 1.0), table(300, 1.1), table(1000, 1.2)]))
    assert (
        list(found) == ["A", "B"]
        and found["A"].linear
        and not found["B"].linear
        and "proportion" in found["B"].warning
    )
    with pytest.raises(ValueError, match="has 0"):
        effect_comparison.doses([replace(table(1, 1), delay=0.0)])


def test_tables_come_and_go_with_undo(bench, tmp_path):
    bench.open(DATA / "measured_2026-11-21_screen_2p6m2.csv")
    before = bench.snapshot.effects
    bench.add_table(DATA / "measured_2026-11-21_second_2p5m1.csv")
    bench.set_table(0, processors=4.0)
    assert [(t.name, t.processors) for t in bench.snapshot.project.tables] == [
        ("measured_2026-11-21_second_2p5m1", 4.0)
    ]
    assert bench.snapshot.effects is before, "a table beside it changes nothing here"
    bench.remove_table(0)
    bench.undo()
    assert bench.snapshot.project.tables[0].processors == 4.0
    bench.add_table(tmp_path)
    assert str(tmp_path) in bench.snapshot.problem and len(bench.snapshot.project.tables) == 1


# --- a region in a trace ---


def test_a_region_is_found_in_the_phases_of_a_trace(bench, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    sample = next(s for s in resources.samples() if "wave1d" in str(s.path))
    bench.pin(sample.path)
    pinned = bench.snapshot.pinned
    assert pinned is not None and bench.snapshot.problem == ""
    with open_trace(sample.path) as store:
        whole = Statistics(store).ranges([(float(pinned.start_s[0]), float(pinned.end_s[-1]))])[0]
        names = [region.name for region in store.regions]
    assert len(pinned.start_s) > 1 and np.array_equal(pinned.start_s[1:], pinned.end_s[:-1])
    for k, name in enumerate(pinned.names):
        assert pinned.inclusive_s[:, k].sum() == pytest.approx(whole.inclusive_s[names.index(name)])
        assert pinned.calls[:, k].sum() == whole.calls[names.index(name)]
    assert pinned.likely("mpi_finalize") == "" or "finalize" in pinned.likely("mpi_finalize").casefold()
    assert pinned.likely("no such routine") == "" and pinned.likely("") == ""
    bench.pin(tmp_path / "gone.otf2")
    assert "gone.otf2" in bench.snapshot.problem and bench.snapshot.pinned is pinned
