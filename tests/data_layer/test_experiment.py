"""Experiments on disk and their runner: nothing is lost, nothing runs twice, nothing runs unasked."""

from __future__ import annotations

import csv
import functools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from desktop import cli, resources
from desktop.core.delay import delay_unit_s
from desktop.core.effects import analyse, ranked
from desktop.data import jobs
from desktop.data.experiment import (
    BUILDS,
    JOURNAL,
    Experiment,
    Factor,
    Journal,
    Plan,
    Program,
    Response,
    Switch,
    Trial,
    described,
    exclude,
    read_experiment,
    read_journal,
    state_of,
    to_trials,
    write_experiment,
)
from desktop.data.pilot import PILOT, pilot_commands, run_pilot, tuned
from desktop.data.places import find_places
from desktop.data.runner import Runner, shown_commands
from desktop.data.runs import read_table
from desktop.errors import ExperimentError, RunError
from desktop.progress import Cancelled, Progress
from desktop.workbench.effect_comparison import tables_in
from tests.experiments import SCRIPT, needs_shell, small

DATA = Path(__file__).parent.parent / "data" / "spt"
QUICKSORT = resources.folder() / "examples" / "quicksort"
pytestmark = needs_shell


@pytest.mark.parametrize("users", [None, "2"])
def test_a_measured_program_does_not_see_what_we_set_for_ourselves(tmp_path, users):
    """We run linear algebra in one thread; a program that uses the same library must not be slowed by it."""
    script = SCRIPT.replace("value=10", "value=$((10 + ${OPENBLAS_NUM_THREADS:-100}))", 1)
    folder = small(tmp_path / "experiment", script, plan=Plan(replicates=1)).folder
    given = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    if users:
        given["OPENBLAS_NUM_THREADS"] = users
    subprocess.run(
        [sys.executable, "-m", "desktop", "spt", "run", str(folder), "--yes"],
        env=given, check=True, capture_output=True,
    )  # fmt: skip
    values = [trial.responses[0] for trial in read_journal(read_experiment(folder))]
    assert min(values) == 10 + int(users or 100)


# --- the description ---


def test_the_description_comes_back_as_it_was(tmp_path):
    experiment = small(tmp_path)
    assert read_experiment(tmp_path) == experiment
    assert read_experiment(tmp_path / "experiment.toml") == experiment
    text = described(experiment)
    assert "[[factors]]" in text and "seed = 3" in text
    fraction = replace(experiment, plan=Plan(kind="plackett-burman", runs=12))
    write_experiment(fraction)
    assert read_experiment(tmp_path) == fraction


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("format = 1", "format = 2", "use a newer Phasewright"),
        ("format = 1", "format = 'x'", "has format 'x'"),
        ('name = "A"', 'name = "B"', "'B' cannot be the name"),
        ('name = "A"', 'name = "order"', "'order' cannot be the name"),
        ('name = "A"', 'name = "a b"', "'a b' cannot be the name"),
        ("seed = 3", "seed = 3\ncolour = 1", r"colour is not known, known are array, .*, \[design\]"),
        ("seed = 3", 'seed = 3\ngenerators = ["B=A"]', "equal to another"),
        ('kind = "regular"', 'kind = "best"', "design kind 'best' is not known"),
        (
            'kind = "output"',
            'kind = "beauty"',
            r"kind is .beauty., allowed are wall, cpu, .*, \[\[responses\]\] 1.*The file of an exp",
        ),
        (r"(\\d+)", "", "needs one group"),
        ('check = "done"', 'check = "("', "no regular expression"),
        ("program.sh", "../program.sh", "lies outside the experiment"),
        ("format = 1", "format = [", "no description of an experiment"),
        ('DELAY_A = "1"', "", "does nothing: both levels are the same"),
        ('DELAY_A = "1"', '"A=B" = "1"', "'A=B' is no name of an environment variable"),
        ("shell = false", 'shell = "false"', "shell is .false., it must be true or false"),
        ("seed = 3", "seed = 3.5", r"seed is 3.5, it must be a whole number, \[design\]"),
        ("seed = 3", "seed = 3\nfold = [1]", r"fold is \[1\], it must be text"),
        ("replicates = 2", "replicates = 1000000", "asks for 4000000 trials"),
        (
            'arguments = [\n    "--slow"',
            'flags = [\n    "--slow"',
            "flags of factor B are used in no command",
        ),
        ("shell = false", 'shell = false\nbuild = ["cc"]', "run does not name {out}"),
        ('kind = "regular"', 'kind = "orthogonal-array"\narray = "L9"', "the same at every level but the"),
    ],
)
def test_descriptions_that_cannot_be(tmp_path, old, new, sentence):
    text = described(small(tmp_path))
    assert old in text
    (tmp_path / "experiment.toml").write_text(text.replace(old, new))
    with pytest.raises(ExperimentError, match=sentence) as error:
        read_experiment(tmp_path)
    assert str(tmp_path) in str(error.value) and "\n" not in str(error.value)


def test_empty_texts_that_mean_something_come_back(tmp_path):
    """A full foldover is fold = ""; a response without unit is not in seconds."""
    names = ("A", "B", "C")
    experiment = small(
        tmp_path,
        factors=tuple(Factor(name, Switch(arguments=(name,))) for name in names),
        responses=(Response("count", "cpu", unit=""),),
        plan=Plan(runs=4, fold=""),
    )
    assert read_experiment(tmp_path) == experiment
    assert read_experiment(tmp_path).design().runs == 8


@pytest.mark.parametrize(
    "run", [("./program.sh 'a  b' {args}",), ("./program.sh", "'a  b'"), ("./program.sh 'a  b'",)]
)
def test_a_shell_gets_every_word(tmp_path, run):
    """Those of the factors are quoted, wherever they stand; those of the command are the user's."""
    script = "#!/bin/sh\nfor word; do printf '<%s>' \"$word\"; done; echo done in 1 s\n"
    experiment = small(tmp_path, script)
    odd = replace(experiment.factors[1], high=Switch(arguments=("x; touch hacked", "$HOME")))
    shelled = replace(
        experiment,
        factors=(experiment.factors[0], odd),
        program=replace(experiment.program, shell=True, run=run),
    )
    outcome = Runner(shelled)._run((-1, 1))
    assert outcome.output.startswith("<a  b><x; touch hacked><$HOME>done")
    assert not (tmp_path / "hacked").exists()
    assert "'x; touch hacked'" in " ".join(shown_commands(shelled))


def test_reading_runs_nothing(tmp_path):
    small(tmp_path, "#!/bin/sh\ntouch ran\n")
    read_experiment(tmp_path)
    shown_commands(read_experiment(tmp_path))
    cli.run(["spt", "run", str(tmp_path)])  # nobody said yes
    assert not (tmp_path / "ran").exists()


def test_commands_are_shown_as_they_are_run(tmp_path, capsys):
    small(tmp_path)
    assert cli.run(["spt", "run", str(tmp_path)]) == 1
    err = capsys.readouterr().err
    for command in ("./program.sh --fast", "./program.sh --slow", "DELAY_A=1 ./program.sh --slow"):
        assert command in err
    assert "say --yes" in err


# --- running ---


def test_a_whole_experiment(tmp_path):
    experiment = small(tmp_path)
    seen = []
    state = Runner(experiment, seen.append).run()
    assert state.finished and len(state.good) == 8
    rows = list(csv.DictReader((tmp_path / JOURNAL).read_text().splitlines()[1:]))
    assert [int(r["order"]) for r in rows] == list(range(1, 9)) == [t.order for t in seen]
    assert {(r["replicate"], r["treatment"]) for r in rows} == {
        (str(a), str(b)) for a in (1, 2) for b in range(1, 5)
    }
    assert all(r["status"] == "ok" and float(r["wall"]) > 0 and r["start"] for r in rows)
    found = analyse(to_trials(experiment))
    assert {e.term: e.value for e in found.effects} == pytest.approx({"A": 4, "B": 7, "A:B": 0})
    # Everything is there: running again does nothing.
    Runner(experiment).run()
    assert len(read_journal(experiment)) == 8


def test_more_replicates_may_be_added(tmp_path):
    experiment = small(tmp_path)
    Runner(experiment).run()
    longer = replace(experiment, plan=replace(experiment.plan, replicates=4))
    write_experiment(longer)
    state = Runner(read_experiment(tmp_path)).run()
    assert state.finished and len(state.good) == 16


@pytest.mark.parametrize("what", ["source", "seed", "factor"])
def test_trials_of_different_experiments_do_not_mix(tmp_path, what):
    experiment = small(tmp_path)
    Runner(experiment).run()
    if what == "source":
        (tmp_path / "program.sh").write_text(SCRIPT + "# changed\n")
        expected = "sources: program.sh"
    elif what == "seed":
        experiment, expected = replace(experiment, plan=replace(experiment.plan, seed=4)), "design: seed"
    else:
        experiment = replace(
            experiment, factors=(replace(experiment.factors[0], delay=5), experiment.factors[1])
        )
        expected = "factors"
    with pytest.raises(ExperimentError, match=expected):
        Runner(experiment).run()
    if what != "source":
        with pytest.raises(ExperimentError, match="start a new experiment"):
            write_experiment(experiment)
    assert len((tmp_path / JOURNAL).read_text().splitlines()) == 10


def test_failed_trials_run_again_and_are_given_up(tmp_path):
    # Fails the first time for A alone, always for both.
    script = """#!/bin/sh
case "$DELAY_A$*" in
  1--fast) [ -e tried ] || { touch tried; echo broken; exit 3; };;
  1--slow) echo never; exit 4;;
esac
echo "done in 1 s"
"""
    experiment = small(tmp_path, script, plan=Plan(replicates=1, seed=3))
    state = Runner(experiment).run()
    done = read_journal(experiment)
    assert [t.status for t in done].count("failed") == 4
    assert state.finished and len(state.good) == 3 and len(state.given_up) == 1
    assert {t.note for t in done if t.status == "failed"} == {"ended with status 3", "ended with status 4"}
    # Repeats come at the end of the replicate.
    assert [t.attempt for t in done] == sorted(t.attempt for t in done)
    assert len(to_trials(experiment).y) == 3


@pytest.mark.parametrize(
    ("script", "note"),
    [
        ("#!/bin/sh\nsleep 30\n", "ran longer than 0.3 s"),
        ("#!/bin/sh\necho done in many s\n", "printed no number"),
        ("#!/bin/sh\necho wrong\n", "did not print what matches 'done'"),
        ("#!/bin/sh\nkill -9 $$\n", "ended by signal 9"),
    ],
)
def test_what_fails_is_said(tmp_path, script, note):
    experiment = small(tmp_path, script)
    limited = replace(
        experiment, program=replace(experiment.program, time_limit_s=0.3), plan=Plan(replicates=1)
    )
    trial = Runner(limited).single((0, 0), 1)
    assert trial.status == "failed" and note in trial.note and trial.responses == ()
    with pytest.raises(RunError, match=r"the unperturbed program"):
        Runner(limited).check()


def alive(folder: Path) -> bool:
    """Whether the process whose number a program left in ``left`` still runs."""
    try:
        os.kill(int((folder / "left").read_text()), 0)
    except ProcessLookupError:
        return False
    return True


def test_nothing_that_a_program_started_outlives_its_trial(tmp_path):
    experiment = small(tmp_path, SCRIPT + "sleep 60 & echo $! > left\n")
    begun = time.monotonic()
    assert Runner(experiment).single((0, 0), 1).status == "ok"
    while alive(tmp_path) and time.monotonic() - begun < 5:
        time.sleep(0.01)  # the system takes it away in its own time
    assert not alive(tmp_path) and time.monotonic() - begun < 5


def test_output_without_end_fills_no_disk(tmp_path, monkeypatch):
    monkeypatch.setattr("desktop.data.runner.MOST_OUTPUT", 1 << 20)
    experiment = small(tmp_path, "#!/bin/sh\nexec yes done in 1 s\n")
    begun = time.monotonic()
    trial = Runner(experiment).single((0, 0), 1)
    assert trial.status == "failed" and trial.note == "printed more than 1 MB"
    assert time.monotonic() - begun < 10


def test_of_much_output_beginning_and_end_are_read(tmp_path):
    """Programs print their results last."""
    script = f"#!/bin/sh\necho first\nhead -c {3 << 20} /dev/zero | tr '\\0' x\necho; echo done in 4 s\n"
    experiment = small(tmp_path, script)
    checked = replace(experiment, program=replace(experiment.program, check="first"))
    assert Runner(checked).single((0, 0), 1).responses[0] == 4


def test_the_check_stops_where_results_differ(tmp_path):
    """Times may differ, and what differs anyway; without a check of its own, other lines may not."""
    prints = "#!/bin/sh\necho process $$; echo time 0.$#$#; echo sum {}; echo done in 3 s\n"
    same = small(tmp_path / "same", prints.format(42))
    differs = small(tmp_path / "differs", prints.format("$DELAY_A").replace("process $$", "begin"))
    for experiment in (same, differs):
        unchecked = replace(experiment, program=replace(experiment.program, check=""))
        if experiment is same:
            Runner(unchecked).check()
        else:
            with pytest.raises(RunError, match=r"prints 'sum 1' where the unperturbed prints 'sum'"):
                Runner(unchecked).check()
            Runner(experiment).check()  # its own check is met


def test_nothing_runs_beside_another_run(tmp_path):
    """Nor after the sources have changed: refused before the first program is started."""
    experiment = small(tmp_path, SCRIPT + "touch ran\n")
    for part in (Runner(experiment).check, Runner(experiment).estimate):
        with Journal(experiment), pytest.raises(ExperimentError, match="another run"):
            part()
    assert not (tmp_path / "ran").exists()


def test_a_description_may_change_until_there_are_trials(tmp_path):
    experiment = small(tmp_path)
    Runner(experiment).check()
    Runner(experiment).estimate()
    (tmp_path / "program.sh").write_text(SCRIPT + "# mended\n")
    changed = replace(experiment, plan=Plan(replicates=1, seed=9))
    write_experiment(changed)
    assert len(Runner(changed).run().good) == 4
    with pytest.raises(ExperimentError, match="design: seed"):
        Runner(experiment).run()
    (tmp_path / JOURNAL).write_text("my notes")
    with pytest.raises(ExperimentError, match="does not begin like a journal"):
        Runner(changed).run()
    assert (tmp_path / JOURNAL).read_text() == "my notes"


@pytest.mark.parametrize("step", ["check", "estimate", "run"])
def test_every_step_can_be_cancelled_at_once(tmp_path, step):
    """While a build or a program runs that does not end by itself."""
    slow = Program(run=("./{out}",), build=("sleep", "60"))
    experiment = small(tmp_path, SCRIPT.replace("echo", "sleep 60; echo"))
    for program in (replace(experiment.program, warm_up=1), slow):
        progress = Progress()
        threading.Timer(0.3, progress.cancel).start()
        begun = time.monotonic()
        with pytest.raises(Cancelled):
            getattr(Runner(replace(experiment, program=program)), step)(progress=progress)
        assert time.monotonic() - begun < 10


def test_disturbed_trials_are_repeated_and_the_quietest_counts(tmp_path):
    experiment = small(tmp_path)
    disturbed = replace(
        experiment, program=replace(experiment.program, busy_limit=-1.0), plan=Plan(replicates=1)
    )
    (tmp_path / "experiment.toml").unlink()
    runner = Runner(disturbed)
    runner._base = 0.0  # a quiet machine
    state = runner.run()
    done = read_journal(disturbed)
    assert len(done) == 12 and {t.status for t in done} == {"disturbed"}
    assert state.finished and len(state.good) == 4
    for (_, treatment), trial in state.good.items():
        mine = [t.other_busy_cores for t in done if t.treatment == treatment]
        assert trial.other_busy_cores == min(mine)


def test_an_outlier_is_marked_with_a_reason_and_run_again(tmp_path):
    experiment = small(tmp_path)
    Runner(experiment).run()
    with pytest.raises(ExperimentError, match="for a reason"):
        exclude(experiment, 3, " ")
    with pytest.raises(ExperimentError, match="no trial 99"):
        exclude(experiment, 99, "why not")
    exclude(experiment, 3, "backup was running")
    state = state_of(experiment, read_journal(experiment))
    assert len(state.good) == 7
    Runner(experiment).run()
    done = read_journal(experiment)
    assert [t.order for t in done].count(3) == 3  # both measurements and the mark are kept
    assert len(state_of(experiment, done).good) == 8


def test_pause_stop_and_cancel(tmp_path):
    experiment = small(tmp_path, SCRIPT.replace("echo", "sleep 0.05; echo"))
    runner = Runner(experiment, lambda trial: runner.stop() if trial.order == 2 else None)
    assert len(runner.run().good) == 2
    progress = Progress()
    canceller = Runner(experiment, lambda trial: progress.cancel() if trial.order == 4 else None)
    with pytest.raises(Cancelled):
        canceller.run(progress)
    assert [t.order for t in read_journal(experiment)] == [1, 2, 3, 4]
    pausing = Runner(experiment)
    pausing.pause()
    thread = threading.Thread(target=pausing.run)
    thread.start()
    time.sleep(0.3)
    assert len(read_journal(experiment)) == 4
    pausing.resume()
    thread.join(20)
    assert len(read_journal(experiment)) == 8


def test_stop_at_once_drops_the_trial(tmp_path):
    experiment = small(tmp_path, SCRIPT.replace("echo", "sleep 20; echo"))
    runner = Runner(experiment)
    thread = threading.Thread(target=runner.run)
    begun = time.monotonic()
    thread.start()
    while runner._child is None and time.monotonic() - begun < 10:
        time.sleep(0.01)
    runner.stop(at_once=True)
    thread.join(10)
    assert not thread.is_alive() and read_journal(experiment) == ()


def test_two_runs_at_once_are_refused(tmp_path):
    experiment = small(tmp_path)
    with Journal(experiment), pytest.raises(ExperimentError, match="another run"):
        Runner(experiment).run()


def test_an_unfinished_line_is_cut(tmp_path):
    experiment = small(tmp_path)
    Runner(experiment).run()
    path = tmp_path / JOURNAL
    whole = path.read_text()
    lines = whole.splitlines(keepends=True)
    path.write_text("".join(lines[:-1]) + lines[-1][:17])
    assert len(read_journal(experiment)) == 7
    assert len(Runner(experiment).run().good) == 8
    path.write_text(whole.replace(",ok,", ",ok", 1))
    with pytest.raises(ExperimentError, match="is damaged"):
        read_journal(experiment)
    path.write_text(whole.replace("\n1,1,", "\n1,1,9", 1))
    with pytest.raises(ExperimentError, match="no such treatment"):
        to_trials(experiment)
    path.write_text(whole + '8,"' + "x" * 200_000 + '"\n')
    with pytest.raises(ExperimentError, match="is damaged"):
        read_journal(experiment)
    path.write_text("what is this\n")
    with pytest.raises(ExperimentError, match="does not begin like a journal"):
        Runner(experiment).run()


def test_killed_at_random_moments_no_trial_is_lost_or_run_twice(tmp_path):
    """The program counts its own runs, so a trial that ran twice or was forgotten would show. In the middle
    of it the plan grows by its mirror image."""
    script = SCRIPT.replace("echo", 'sleep 0.02; echo "$DELAY_A $*" >> counted; echo')
    experiment = fraction(tmp_path, script)
    experiment = replace(experiment, plan=replace(experiment.plan, replicates=4))
    write_experiment(experiment)
    generator = random.Random(11)
    words = [sys.executable, "-m", "desktop", "spt", "run", str(tmp_path), "--yes"]
    kills = 0
    for k in range(8):
        if k == 4:
            experiment = experiment.folded("", begun=True)
            write_experiment(experiment)
        # Only the program itself is killed, as by a system that is out of memory.
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        before = len(read_journal(experiment))
        while len(read_journal(experiment)) == before and process.poll() is None:
            time.sleep(0.005)
        time.sleep(generator.uniform(0, 0.12))
        if process.poll() is None:
            kills += 1
        process.kill()
        process.wait()
        # Whatever was on the disk stays.
        assert len(read_journal(experiment)) > before
    state = Runner(experiment).run()
    assert kills >= 6 and state.finished
    done = read_journal(experiment)
    keys = [(t.replicate, t.treatment) for t in done]
    assert len(keys) == len(set(keys)) == 32
    assert [t.order for t in done] == list(range(1, 33))
    # Each kill costs at most the trial that was running. Each process checks, estimates and warms up first,
    # which takes six runs.
    counted = len((tmp_path / "counted").read_text().splitlines())
    assert 32 <= counted <= 32 + kills + 6 * 9


# --- a fold after the first trials ---


def fraction(folder: Path, script: str = SCRIPT, **changes) -> Experiment:
    """Half of a 2^3, C = AB, of which two replicates are planned; without A, B and C counts AB for C."""
    factors = tuple(Factor(name, Switch(arguments=(f"-{name}",))) for name in "ABC")
    script = script.replace("--slow", "-A")
    return small(folder, script, factors=factors, plan=Plan(runs=4, replicates=2, seed=5), **changes)


@pytest.mark.parametrize("fold", ["", "C"])
def test_a_fold_may_be_added(tmp_path, fold):
    """What was run keeps its numbers, levels and lines; only the mirror image is run, as a block."""
    experiment = fraction(tmp_path, SCRIPT + 'echo "$*" >> counted\n')
    Runner(experiment).run()
    before = (tmp_path / JOURNAL).read_text()
    folded = experiment.folded(fold, begun=True)
    assert [folded.levels(t) for t in range(4)] == [experiment.levels(t) for t in range(4)]
    write_experiment(folded)
    again = read_experiment(tmp_path)
    assert again == folded and again.plan.fold_after == 2
    assert state_of(again, read_journal(again)).planned == 16
    state = Runner(again).run()
    assert state.finished and (tmp_path / JOURNAL).read_text().startswith(before)
    done = read_journal(again)
    assert [t.order for t in done] == list(range(1, 17))
    assert {t.treatment for t in done[8:]} == {4, 5, 6, 7}
    assert len((tmp_path / "counted").read_text().splitlines()) == 16
    found = analyse(to_trials(again))
    assert {e.term: e.value for e in found.effects if len(e.members) == 1} == pytest.approx(
        {"A": 7, "B": 0, "C": 0}
    )
    assert any("separates" in note for note in found.notes)
    # Replicates are of both halves from now on.
    longer = replace(again, plan=replace(again.plan, replicates=3))
    write_experiment(longer)
    assert Runner(longer).run().finished and len(read_journal(longer)) == 24


@pytest.mark.parametrize("begun", [True, False])
def test_the_journal_of_a_fold_is_read_as_the_experiment_is(tmp_path, capsys, begun):
    """The second half, in which odd numbers of factors are high, is slower by 50: no noise and no effect."""
    script = SCRIPT.replace("value=10", "value=$((10 + 50 * ($# % 2)))")
    experiment = fraction(tmp_path, script)
    if begun:
        Runner(experiment).run()
    experiment = experiment.folded("", begun=begun)
    write_experiment(experiment)
    assert Runner(experiment).run().finished
    told = analyse(to_trials(experiment))
    read = analyse(read_table(tmp_path / JOURNAL, response="value").data)
    assert [(e.term, e.aliases) for e in read.effects] == [(e.term, e.aliases) for e in told.effects]
    assert [e.value for e in read.effects] == pytest.approx([e.value for e in told.effects])
    assert (read.df, read.variance, read.notes) == (told.df, pytest.approx(told.variance), told.notes)
    assert all(any(words in note for note in read.notes) for words in ("separates", "changed by 50"))
    assert cli.run(["spt", "effects", str(tmp_path / JOURNAL), "--response", "value", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == list(told.notes)


def test_a_journal_that_is_none_of_the_fold_beside_it_is_refused(tmp_path):
    experiment = fraction(tmp_path)
    Runner(experiment).run()
    folded = replace(experiment, plan=replace(experiment.plan, fold="", fold_after=1))
    (tmp_path / "experiment.toml").write_text(described(folded))
    with pytest.raises(ExperimentError, match="trial 5 is none of this plan"):
        read_table(tmp_path / JOURNAL, response="value")


def test_folds_that_would_change_what_was_run_are_refused(tmp_path):
    experiment = fraction(tmp_path)
    Runner(experiment).run()

    def refused(plan: Plan, sentence: str) -> None:
        before = (tmp_path / JOURNAL).read_text(), (tmp_path / "experiment.toml").read_text()
        other = replace(experiment, plan=plan)
        for attempt in (lambda: write_experiment(other), lambda: Runner(other).run()):
            with pytest.raises(ExperimentError, match=sentence):
                attempt()
        assert before == ((tmp_path / JOURNAL).read_text(), (tmp_path / "experiment.toml").read_text())

    plan = experiment.plan
    refused(replace(plan, fold=""), r"design: fold.*write fold_after = 2")
    refused(replace(plan, fold="", fold_after=1), "trial 5 is none of this plan")
    refused(replace(plan, fold="", fold_after=2, seed=6), "design: seed")
    # It may be taken back, or be another, until the first trial of the mirror image.
    write_experiment(experiment.folded("C", begun=True))
    write_experiment(experiment)
    folded = experiment.folded("", begun=True)
    write_experiment(folded)
    runner = Runner(folded, lambda trial: runner.stop())
    runner.run()
    assert len(read_journal(folded)) == 9
    refused(plan, "no such treatment|none of this plan")
    refused(replace(folded.plan, fold="C"), "trial 9 is none of this plan")
    refused(replace(folded.plan, fold_after=3, replicates=3), "trial 9 is none of this plan")
    assert Runner(folded).run().finished


def run_some(experiment: Experiment, count: int) -> None:
    """So many trials at most."""
    ran = []
    runner = Runner(experiment, lambda trial: ran.append(trial) or (len(ran) == count and runner.stop()))
    runner.run()


@pytest.mark.parametrize("seed", range(4))
def test_a_plan_that_grows_at_any_moment_runs_every_trial_once(tmp_path, seed):
    """Stopped after any number of trials; then replicates, or a fold, or more of the same."""
    generator = random.Random(seed)
    experiment = fraction(tmp_path)
    lines: list[str] = []
    for growth in generator.sample(["fold", "replicate", "replicate", "nothing"], 4):
        run_some(experiment, generator.randrange(1, 6))
        now = (tmp_path / JOURNAL).read_text().splitlines()
        assert now[: len(lines)] == lines
        lines = now
        if growth == "fold":
            experiment = experiment.folded(generator.choice(["", "B"]), begun=True)
        elif growth == "replicate":
            plan = replace(experiment.plan, replicates=experiment.plan.replicates + 1)
            experiment = replace(experiment, plan=plan)
        write_experiment(experiment)
    assert Runner(read_experiment(tmp_path)).run().finished
    done = read_journal(experiment)
    assert [t.order for t in done] == list(range(1, 33))  # 8 treatments, 4 replicates
    assert len({(t.replicate, t.treatment) for t in done}) == 32
    assert experiment.planned() == {t.order: (t.replicate, t.treatment) for t in done}


def test_a_fold_in_the_description_says_after_how_many(tmp_path):
    text = described(fraction(tmp_path).folded("", begun=True))
    (tmp_path / "experiment.toml").write_text(text.replace("fold_after = 2", "fold_after = 3"))
    with pytest.raises(
        ExperimentError, match="a fold after 3 replicates does not fit a plan of 2 replicates"
    ):
        read_experiment(tmp_path)


def test_results_of_a_job_array_from_before_the_fold_still_count(tmp_path):
    experiment = fraction(tmp_path)
    jobs.run_one(experiment, 3)
    folded = experiment.folded("", begun=True)
    jobs.run_one(folded, 12)
    assert jobs.collect(folded) == 2
    assert [t.order for t in read_journal(folded)] == [3, 12]


# --- the pilot ---

#: 100 s and a little noise; A takes 3 s a unit of delay, B a tenth of that, C nothing.
SIZED = """#!/bin/sh
noise=$(( $(wc -l < counted) * 7 % 5 ))
echo "$A $B $C" >> counted
echo "done in $(( 1000 + noise + 30 * ${A:-0} + 3 * ${B:-0} )) s"
"""


def with_sizes(folder: Path, script: str = SIZED) -> Experiment:
    folder.mkdir(exist_ok=True)
    (folder / "counted").touch()
    factors = tuple(Factor(n, Switch(environment=((n, "{delay}"),)), delay=9) for n in "ABC")
    return small(folder, script, factors=factors, plan=Plan(replicates=1, seed=2))


def test_a_pilot_goes_on_until_every_place_shows(tmp_path):
    experiment = with_sizes(tmp_path)
    found = run_pilot(Runner(experiment))
    a, b, c = found.places
    # The noise is 0 to 4, so an effect shows from about 5 on: A at once, B with 3 units, C never.
    assert (a.delay, b.delay, c.delay) == (1, 3, 0) and found.size == 3
    assert a.effect == pytest.approx(30, abs=4) and b.effect == pytest.approx(9, abs=4)
    assert "at 3 units B shows as the last" in found.reason
    assert "C did not show up to 2187 units" in found.reason
    ran = [line.split(" ") for line in (tmp_path / "counted").read_text().splitlines()]
    assert all(sum(map(bool, line)) <= 1 for line in ran), "one place at a time"
    assert {line[0] for line in ran} == {"", "1"}, "what shows is delayed no further"
    assert {line[2] for line in ran} == {"", *(str(3**k) for k in range(8))}
    assert read_journal(experiment) == ()
    tables = tables_in(tmp_path / PILOT)
    assert [table.delay for table in tables] == [3**k for k in range(8)]
    assert tables[0].effects["A"][0] == pytest.approx(a.effect, abs=3)
    # Each place has a size of its own: what never showed gets the largest that was tried.
    assert found.sizes == {"A": 1, "B": 3, "C": 2187}
    given = tuned(experiment, found)
    assert [f.delay for f in given.factors] == [1, 3, 2187] and given.plan == experiment.plan


def test_a_pilot_runs_what_was_shown_and_nothing_else(tmp_path, capsys):
    experiment = with_sizes(tmp_path)
    assert cli.run(["spt", "run", str(tmp_path), "--pilot"]) == 1
    assert "say --yes" in capsys.readouterr().err and not (tmp_path / PILOT).exists()
    shown = pilot_commands(experiment)
    assert len(shown) == len(set(shown)) == 1 + 3 * 8 and "C=2187 ./program.sh" in shown
    assert cli.run(["spt", "run", str(tmp_path), "--pilot", "--yes", "--json", "--take"]) == 0
    said = json.loads(capsys.readouterr().out)
    # What the trials run with is what the pilot found.
    assert said["taken"] and [f.delay for f in read_experiment(tmp_path).factors] == [1, 3, 2187]
    assert said["size"] == 3 and [place["delay"] for place in said["places"]] == [1, 3, None]
    assert [place["take"] for place in said["places"]] == [1, 3, 2187]
    rows = pilot_rows(tmp_path)
    assert [int(row["run"]) for row in rows] == list(range(1, len(rows) + 1))
    assert len((tmp_path / "counted").read_text().splitlines()) == len(rows)


#: A builds a program that takes 100 s and a little noise, and 200 s a unit of the delay at A, one at B.
BUILD = """#!/bin/sh
out=$1; shift; size=0; each=0
for word; do case $word in -DSPT_DELAY=*) size=${word#*=};; -DA) each=CALLS;; -DB) each=1;; esac; done
echo '#!/bin/sh' > "$out"
echo 'noise=$(( $(wc -l < counted) * 7 % 5 )); echo ran >> counted' >> "$out"
echo "echo done in \\$(( 1000 + noise + $each * $size )) s" >> "$out"
chmod +x "$out"
"""


@pytest.mark.parametrize(("calls", "size"), [(100, 9), (2000, 1), (90_000, None)])
def test_a_size_that_places_share_is_not_too_long_for_one_of_them(tmp_path, capsys, calls, size):
    """One place is called often, another once: no run is to take hours for the second to show."""
    (tmp_path / "counted").touch()
    (tmp_path / "build.sh").write_text(BUILD.replace("CALLS", str(calls)))
    (tmp_path / "build.sh").chmod(0o755)
    factors = tuple(Factor(n, Switch((f"-D{n}",)), routine=n.lower()) for n in "AB")
    experiment = small(tmp_path, "", factors=factors, plan=Plan(replicates=1, seed=2))
    said = {"build": ("./build.sh", "{out}", "{flags}"), "run": ("{out}",), "flags": ("-DSPT_DELAY=9",)}
    program = replace(experiment.program, **said, sources=("build.sh",))
    write_experiment(replace(experiment, program=program))
    assert cli.run(["spt", "run", str(tmp_path), "--pilot", "--yes", "--take"]) == 0
    said = capsys.readouterr().out
    left = read_experiment(tmp_path).program.flags
    assert "B shows as the last" in said and left == (f"-DSPT_DELAY={size or 9}",)
    assert ("A would add about" in said) == (calls > 1000)
    if calls > 1000:
        assert "to see B, leave A out or give it a smaller delay of its own" in said
        assert ("no size is to be taken" in said) == ("nothing is taken" in said) == (size is None)


def pilot_rows(folder: Path) -> list[dict[str, str]]:
    lines = (folder / PILOT).read_text().splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


class After(Progress):
    """Cancelled after so many runs of a pilot, before the next begins."""

    def __init__(self, runs: int) -> None:
        super().__init__()
        self.left = runs

    def show(self, done: float, total: float, text: str) -> None:
        if text.startswith("pilot"):
            self.left -= 1
            if self.left < 0:
                raise Cancelled


def test_a_pilot_that_was_stopped_goes_on(tmp_path):
    """Wherever that was, and whatever the last line was cut to: as one that was not, no run made twice."""
    whole = run_pilot(Runner(with_sizes(tmp_path / "whole")))
    expected = pilot_rows(tmp_path / "whole")
    generator, stops = random.Random(3), 0
    experiment = with_sizes(tmp_path / "stopped")
    file, counted = experiment.folder / PILOT, experiment.folder / "counted"
    for _ in range(50):
        try:
            found = run_pilot(Runner(experiment), After(generator.randrange(12)))
            break
        except Cancelled:
            stops += 1
            assert pilot_rows(experiment.folder) == expected[: len(pilot_rows(experiment.folder))]
            last = file.read_text().splitlines(keepends=True)[-1]
            if (
                last[0].isdigit() and generator.random() < 0.3
            ):  # killed while it was written, and not counted yet
                file.write_text(file.read_text().removesuffix(last) + last[: generator.randrange(len(last))])
                counted.write_text(counted.read_text().rpartition("\n")[0].rpartition("\n")[0] + "\n")
    else:
        pytest.fail("it begins anew each time")
    assert stops > 3 and repr(found) == repr(whole)
    assert pilot_rows(experiment.folder) == expected
    assert counted.read_text().count("\n") == len(expected)
    assert run_pilot(Runner(experiment)) and counted.read_text().count("\n") > len(expected), "it had ended"


def test_a_pilot_that_was_killed_goes_on_in_a_terminal(tmp_path):
    folder = with_sizes(tmp_path, SIZED.replace("noise=", "sleep 0.02\nnoise=", 1)).folder
    words = [sys.executable, "-m", "desktop", "spt", "run", str(folder), "--pilot", "--yes", "--json"]
    for number, said in ((signal.SIGKILL, ""), (signal.SIGTERM, "the same command goes on from here")):
        before = (folder / PILOT).read_text() if (folder / PILOT).exists() else ""
        child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        until = time.monotonic() + 60
        while (
            not (folder / PILOT).exists() or (folder / PILOT).read_text().count("\n") < before.count("\n") + 9
        ):
            assert child.poll() is None and time.monotonic() < until
            time.sleep(0.01)
        child.send_signal(number)
        _, error = child.communicate()
        assert child.returncode == (-number if number == signal.SIGKILL else 128 + number)
        assert said in error and "Traceback" not in error
        assert (folder / PILOT).read_text().startswith(before)
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    a, b, c = (place["delay"] for place in json.loads(ran.stdout)["places"])
    assert a == 1 and b in (1, 3) and c is None, "a run that was killed changes the noise of the others"
    assert [int(row["run"]) for row in pilot_rows(folder)] == list(range(1, len(pilot_rows(folder)) + 1))
    # Of each kill, at most the run that it met was made again.
    assert (folder / "counted").read_text().count("\n") <= len(pilot_rows(folder)) + 2


def test_a_pilot_goes_on_with_nothing_else(tmp_path):
    experiment = with_sizes(tmp_path)
    with pytest.raises(Cancelled):
        run_pilot(Runner(experiment), After(30))
    kept = (tmp_path / PILOT).read_text()
    (tmp_path / PILOT).write_text(kept.replace("\n2,,0,", "\n2,A,1,"))
    with pytest.raises(ExperimentError, match=r"pilot\.csv: is not as the pilot has written it, run 2"):
        run_pilot(Runner(experiment))
    (tmp_path / PILOT).write_text(kept)
    (tmp_path / "program.sh").write_text(SIZED.replace("1000", "2000"))
    assert run_pilot(Runner(experiment)).base == pytest.approx(2000, abs=5)


def test_pilots_that_cannot_be(tmp_path):
    with pytest.raises(ExperimentError, match="no delay size"):
        run_pilot(Runner(small(tmp_path / "a")))
    failing = with_sizes(tmp_path / "b", SIZED.replace("1000", "$(( ${C:-0} > 5 ? 1/0 : 1000 ))"))
    with pytest.raises(RunError, match="the program ended with status"):
        run_pilot(Runner(failing))
    assert len((tmp_path / "b" / PILOT).read_text().splitlines()) > 10, "what was measured is there"
    experiment = with_sizes(tmp_path / "c")
    with Journal(experiment), pytest.raises(ExperimentError, match="another run"):
        run_pilot(Runner(experiment))
    runner = Runner(experiment)
    runner.stop()
    with pytest.raises(Cancelled):
        run_pilot(runner)


# --- builds ---

needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler on this machine")


#: Factors of which the quicksort counts the calls.
CALLS = {"F1": "calls_lock", "F2": "calls_push", "F3": "calls_pop", "F4": "calls_swap", "F5": "calls_bubble"}


def quicksort(folder: Path, **changes) -> Experiment:
    shutil.copy(QUICKSORT / "qsort_spt.c", folder)
    places = {place.macro: place for place in find_places(folder, ["qsort_spt.c"])}
    experiment = Experiment(
        folder,
        "quicksort",
        Program(
            run=("{out}", "-n", "50000", "-t", "1", "-r", "1"),
            build=("cc", "-O2", "-pthread", "{flags}", "-o", "{out}", "qsort_spt.c"),
            sources=("qsort_spt.c",),
            check="SPT ",
            flags=("-DSPT_DELAY=300",),
            busy_limit=1e9,
        ),
        tuple(places[f"F{i}"].factor() for i in range(1, 7)),
        (
            Response("cpu", "cpu"),
            *(Response(name, "output", rf"{name}=(\d+)") for name in CALLS.values()),
        ),
        Plan(generators=("E=ABC", "F=BCD"), replicates=3, seed=7),
    )
    experiment = replace(experiment, **changes)
    write_experiment(experiment)
    return experiment


def unit_s(program: Path) -> float:
    """Processor seconds of one unit of delay: the program's own calibration spends 5 times 20 million."""
    import resource  # is not there on Windows

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([program, "--calibrate"], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / 100e6


@needs_cc
def test_the_quicksort_is_built_run_and_analysed(tmp_path):
    """NISTIR 5131, table 2, for real, by processor time, which hardly depends on what else the machine does:
    the effect of swap() is the number of its calls times the delay, and none of the others comes near."""
    experiment = quicksort(tmp_path)
    runner = Runner(experiment)
    runner.check()
    assert runner.estimate().left == 48
    # Before and after the trials, as a shared machine's speed changes from one minute to the next.
    units = [unit_s(next((tmp_path / BUILDS).iterdir()))]
    state = runner.run()
    assert state.finished and len(state.good) == 48
    builds = list((tmp_path / BUILDS).iterdir())
    assert len(builds) == 16 + 6  # and every factor alone, whose flags have to change something
    found = analyse(to_trials(experiment))
    assert found.error == "replicates"
    ranking = ranked(found)
    assert ranking[0].effect.term == "F4" and ranking[0].rank == 1
    swap = found.effect("F4")
    assert swap.value > 5 * max(abs(e.value) for e in found.effects if e is not swap)
    units.append(unit_s(builds[0]))
    for place, factor in enumerate(CALLS, 1):
        (calls,) = {trial.responses[place] for trial in state.good.values()}
        effect = found.effect(factor)
        low, high = (calls * 300 * unit for unit in (min(units), max(units)))
        assert 0.9 * low - 4 * effect.se < effect.value < 1.1 * high + 4 * effect.se, factor
        assert effect.se < 0.02 * swap.value
    assert swap.significant


@needs_cc
def test_builds_are_made_once(tmp_path):
    experiment = quicksort(tmp_path)
    Runner(experiment).build((-1,) * 6)
    (built,) = (tmp_path / BUILDS).iterdir()
    stamp = built.stat().st_mtime_ns
    Runner(experiment).build((-1,) * 6)
    assert built.stat().st_mtime_ns == stamp


@needs_cc
def test_a_build_that_fails_says_why(tmp_path):
    experiment = quicksort(tmp_path)
    source = tmp_path / "qsort_spt.c"
    source.write_text(source.read_text() + "\nthis is no C\n")
    with pytest.raises(RunError, match="the build command ended with 1") as error:
        Runner(experiment).check()
    assert "error" in str(error.value) and not list((tmp_path / BUILDS).iterdir())


@needs_cc
def test_a_macro_that_is_in_no_source(tmp_path):
    experiment = quicksort(tmp_path)
    factors = (*experiment.factors[:5], replace(experiment.factors[5], high=Switch(("-DF99",))))
    with pytest.raises(RunError, match="macro F99 of factor F6 is in none of the sources"):
        Runner(replace(experiment, factors=factors)).check()


def test_a_program_that_is_not_there(tmp_path):
    experiment = small(tmp_path)
    missing = replace(experiment, program=replace(experiment.program, run=("./nothing",)))
    with pytest.raises(RunError, match="cannot be started"):
        Runner(missing).single((0, 0), 1)


# --- batch systems ---


def test_a_job_array_gives_the_same_trials(tmp_path, capsys):
    experiment = small(tmp_path)
    script = tmp_path / "job.sh"
    assert cli.run(["spt", "run", str(tmp_path), "--job-script", str(script)]) == 0
    assert "--array=1-8%1" in script.read_text()
    for order in (2, 1, 5):
        assert cli.run(["spt", "run", str(tmp_path), "--yes", "--trial", str(order)]) == 0
    assert jobs.collect(experiment) == 3 and jobs.collect(experiment) == 0
    for order in range(1, 9):
        jobs.run_one(experiment, order)
    capsys.readouterr()
    assert cli.run(["spt", "run", str(tmp_path), "--collect", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["complete"] and found["finished"] == 8
    assert {e["term"]: e["value"] for e in found["effects"]["effects"]} == pytest.approx(
        {"A": 4, "B": 7, "A:B": 0}
    )
    with pytest.raises(ExperimentError, match="no number 9"):
        jobs.run_one(experiment, 9)
    (tmp_path / "results" / "3.json").write_text("{}")
    with pytest.raises(ExperimentError, match="no result of a trial"):
        jobs.collect(experiment)


def test_a_job_script_runs_nothing_but_its_trial(tmp_path):
    """Whatever the folder and the title are called."""
    folder = tmp_path / "x\ntouch hacked; $(touch hacked) 'y"
    experiment = small(folder)
    titled = replace(experiment, title="a title\ntouch hacked")
    script = tmp_path / "job\ntouch hacked.sh"
    jobs.write_script(titled, script)
    fake = tmp_path / "bin" / "phasewright"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\nprintf '%s|' \"$@\"\n")
    fake.chmod(0o755)
    said = subprocess.run(
        ["sh", str(script)],
        cwd=tmp_path,
        env={"PATH": f"{fake.parent}:{os.environ['PATH']}", "SLURM_ARRAY_TASK_ID": "3"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == f"spt|run|{folder}|--yes|--trial|3|" and said.stderr == ""
    assert not list(tmp_path.rglob("hacked"))
    # A warm-up may take as long as the trial.
    assert "#SBATCH --time=00:25:00" in jobs_text(replace(titled, program=replace(titled.program, warm_up=1)))


def jobs_text(experiment: Experiment) -> str:
    jobs.write_script(experiment, experiment.folder / "job.sh")
    return (experiment.folder / "job.sh").read_text()


def test_a_task_that_is_run_again_repeats_only_what_failed(tmp_path):
    experiment = small(tmp_path, SCRIPT + "[ -e broken ] && exit 3\nexit 0\n")
    first = jobs.run_one(experiment, 1)
    assert jobs.run_one(experiment, 1) == first
    (tmp_path / "broken").touch()
    assert jobs.run_one(experiment, 2).status == "failed" and jobs.collect(experiment) == 2
    (tmp_path / "broken").unlink()
    again = jobs.run_one(experiment, 2)
    assert (again.status, again.attempt) == ("ok", 2) and jobs.collect(experiment) == 1
    said = json.loads((tmp_path / "results" / "2.json").read_text())
    for change in ({"responses": [1.0]}, {"status": "fine"}, {"note": 3}):
        (tmp_path / "results" / "2.json").write_text(json.dumps(said | change))
        with pytest.raises(ExperimentError, match="no result of a trial"):
            jobs.collect(experiment)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_the_program_ends_with_the_command(tmp_path, how):
    """And what it started itself."""
    small(tmp_path, "#!/bin/sh\nsleep 60 &\necho $! > left\nwait\n")
    command = [sys.executable, "-m", "desktop", "spt", "run", str(tmp_path), "--yes"]
    # Where the tests run under nohup, it would be ignored, as it should.
    heard = functools.partial(signal.signal, signal.SIGHUP, signal.SIG_DFL)
    with subprocess.Popen(
        command, cwd=Path(__file__).parents[2], stderr=subprocess.PIPE, text=True, preexec_fn=heard
    ) as running:
        begun = time.monotonic()
        while not (tmp_path / "left").exists() or not (tmp_path / "left").read_text():
            assert time.monotonic() - begun < 60 and running.poll() is None
            time.sleep(0.05)
        running.send_signal(how)
        said = running.communicate(timeout=60)[1]
    assert ("goes on from here" in said) == (how != signal.SIGKILL)
    assert running.returncode == (-how if how == signal.SIGKILL else 128 + how)
    begun = time.monotonic()
    while alive(tmp_path) and time.monotonic() - begun < 5:
        time.sleep(0.01)  # nobody waits for it any more
    assert not alive(tmp_path)


def test_the_command_runs_and_goes_on(tmp_path, capsys):
    experiment = small(tmp_path)
    runner = Runner(experiment, lambda trial: runner.stop() if trial.order == 3 else None)
    runner.run()
    assert cli.run(["spt", "run", str(tmp_path), "--resume", "--yes", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["planned"], found["finished"], found["complete"]) == (8, 8, True)
    assert found["effects"]["response"] == "value"
    assert cli.run(["spt", "run", str(tmp_path), "--exclude", "2", "--reason", "odd"]) == 0
    assert "7 of 8 trials" in capsys.readouterr().out
    assert cli.run(["spt", "run", str(tmp_path), "--check", "--yes"]) == 0
    assert "unperturbed run takes" in capsys.readouterr().out


# --- places ---


def test_places_of_the_quicksort():
    found = {p.macro: p for p in find_places(QUICKSORT, ["qsort_spt.c"])}
    assert set(found) == {
        *(f"F{i}" for i in range(1, 9)), "CS1", "CS2", "CS3",
        *(f"FB{a}_{b}" for a in (1, 2) for b in (1, 2, 3)),
    }  # fmt: skip
    named = [
        "F1",
        "s_lock",
        "F2",
        "push",
        "F3",
        "pop",
        "F4",
        "swap",
        "F5",
        "bubble_sort",
        "F6",
        "in_order",
        "F7",
        "select_pivot",
        "CS1",
        "work",
    ]
    routines = dict(zip(named[::2], named[1::2], strict=True)) | {"F8": "partition_list"}
    assert {name: found[name].routine for name in routines} == routines
    assert (found["F8"].construct, found["F4"].construct) == ("for loop", "function")
    lines = (QUICKSORT / "qsort_spt.c").read_text().splitlines()
    assert all(lines[p.line - 1].split() == ["#ifdef", p.macro] for p in found.values())


def test_places_in_fortran(tmp_path):
    (tmp_path / "solve.F90").write_text(
        "subroutine solve(n)\n  do i = 1, n\n#ifdef LOOP\n    call spt_delay(100_c_long)\n#endif\n  end do\n"
        "#if defined(TAIL)\n  call spt_delay(5_c_long)\n#endif\nend subroutine solve\n"
    )
    found = find_places(tmp_path, ["solve.F90"])
    assert [(p.macro, p.line, p.routine, p.construct) for p in found] == [
        ("LOOP", 3, "solve", "do loop"), ("TAIL", 7, "solve", "routine"),
    ]  # fmt: skip


def test_places_between_large_tables_are_found_soon(tmp_path):
    """Time grows with the size of a source, not with its square."""
    table = "static int table[] = {\n" + "1, 2, 3,\n" * 200_000 + "};\n"
    line = 'static char *text = "' + "__attribute__ ((" * 20_000 + '";\n'
    place = "void work(void) {\n#ifdef F1\n  spt_delay();\n#endif\n}\n"
    (tmp_path / "x.c").write_text(table + line + place)
    begun = time.process_time()
    assert [(p.macro, p.routine) for p in find_places(tmp_path, ["x.c"])] == [("F1", "work")]
    assert time.process_time() - begun < 20


def test_places_that_are_none(tmp_path):
    (tmp_path / "a.c").write_text(
        'void f(void)\n{\n#ifdef DEBUG\n  puts("spt_delay(1)"); /* spt_delay(2) */\n#endif\n'
        "#ifndef ON\n  spt_delay(1);\n#endif\n}\n"
    )
    assert find_places(tmp_path, ["a.c"]) == ()
    with pytest.raises(ExperimentError, match="cannot be read"):
        find_places(tmp_path, ["b.c"])


def test_a_trial_is_one_line(tmp_path):
    experiment = small(tmp_path)
    with Journal(experiment) as journal:
        journal.add(Trial(1, 0, 0, 1, "failed", note='two\nlines, "quoted"'))
    assert read_journal(experiment)[0].note == 'two lines, "quoted"'


# --- the headers ---

HEADERS = Path(__file__).parents[2] / "resources" / "spt"


@needs_cc
def test_the_delay_header_delays_in_proportion(tmp_path):
    """Compiled as the optimiser likes it, twice the units take about twice the time."""
    source = tmp_path / "c.c"
    source.write_text(
        '#include <stdio.h>\n#include <stdlib.h>\n#include <time.h>\n#include "spt_delay.h"\n'
        "int main(int n, char **v) { clock_t t = clock();\n"
        "for (int i = 0; i < 2000; i++) spt_delay(atol(v[1]));"
        ' printf("%f\\n", (double)(clock() - t) / CLOCKS_PER_SEC); return n > 9; }\n'
    )
    program = tmp_path / "c"
    subprocess.run(["cc", "-O3", f"-I{HEADERS}", "-o", program, source], check=True)

    def seconds(units):
        runs = [
            subprocess.run([program, str(units)], capture_output=True, text=True, check=True)
            for _ in range(5)
        ]
        return min(float(run.stdout) for run in runs)

    assert 2.5 < seconds(40000) / seconds(10000) < 6
    calibrated = tmp_path / "calibrate"
    subprocess.run(
        ["cc", "-O2", "-DSPT_CALIBRATE", "-x", "c", HEADERS / "spt_delay.h", "-o", calibrated], check=True
    )
    said = subprocess.run([calibrated], capture_output=True, text=True, check=True).stdout
    # What it says, and the unit that Phasewright tells, are that of the header.
    unit = (seconds(40000) - seconds(10000)) / (2000 * 30000)
    for told in (float(said.split("=")[1]) * 1e-9, delay_unit_s()):
        assert unit / 1.5 < told < 1.5 * unit


@pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler on this machine")
def test_the_delay_header_is_cplusplus_too(tmp_path):
    source = tmp_path / "c.cpp"
    source.write_text('#include "spt_delay.h"\nint main() { spt_delay(10); return 0; }\n')
    subprocess.run(["c++", "-Wall", "-Werror", f"-I{HEADERS}", "-o", tmp_path / "c", source], check=True)


@pytest.mark.skipif(shutil.which("gfortran") is None, reason="there is no Fortran compiler on this machine")
def test_the_delay_module_of_fortran(tmp_path):
    source = tmp_path / "p.f90"
    source.write_text(
        "program p\n use spt_delay_module\n call spt_delay(10_c_long)\n print *, 'ok'\nend program\n"
    )
    subprocess.run(["cc", "-c", HEADERS / "spt_delay_c.c", "-o", "d.o"], check=True, cwd=tmp_path)
    subprocess.run(
        ["gfortran", HEADERS / "spt_delay.f90", source, "d.o", "-o", "p"], check=True, cwd=tmp_path
    )
    assert "ok" in subprocess.run([tmp_path / "p"], capture_output=True, text=True, check=True).stdout


def test_the_delay_module_of_python():
    code = (
        "import time, spt_delay as s\n"
        "def t(f):\n    a = time.perf_counter()\n    [s.spt_delay(f) for _ in range(50)]\n"
        "    return time.perf_counter() - a\n"
        "print(t('F1'), t('F2'), s.calibrate(20))"
    )
    environment = {**os.environ, "PYTHONPATH": str(HEADERS), "SPT_FACTORS": "F1", "SPT_DELAY_US": "200"}
    out = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    on, off, unit = map(float, out.stdout.split())
    assert on >= 50 * 200e-6 > 5 * off and unit >= 200e-6
