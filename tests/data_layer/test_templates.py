"""From a program as it is to a table of effects: every template, with a real build."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest

from desktop import cli, resources
from desktop.core.effects import analyse
from desktop.data.description import KEYS, statements
from desktop.data.experiment import (
    BUILDS,
    JOURNAL,
    Factor,
    Plan,
    Program,
    Response,
    Switch,
    described,
    read_experiment,
    read_journal,
    to_trials,
    write_experiment,
)
from desktop.data.runner import Runner
from desktop.data.templates import TEMPLATES, Request, in_order, new_experiment
from desktop.errors import ExperimentError, RunError
from tests.experiments import needs_shell, small

pytestmark = needs_shell
#: Of every template: what is asked for, how long its runs are, and the factor that has to come out on top.
WAYS = {
    "make": (("smooth", "heat_end"), "{out} 300", "heat_end"),
    "cmake": (("total", "heat_end"), "{out} 300", "heat_end"),
    "compiler": (("total", "heat_end", "heat.c:34"), "{out} 300", "heat_end"),
    "mpi": (("smooth",), "mpirun -n 1 {out} 300", "smooth"),
    "openmp": (("heat_end",), "{out} 300", "heat_end"),
    "fortran": (("smooth", "heat"), "", "smooth"),
    "python": (("smooth", "main"), "python3 program/heat.py 100", "smooth"),
    "command": ((), "", ""),
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_every_template_leads_to_a_table(tmp_path, monkeypatch, name):
    """By processor time, which other work on the machine hardly changes."""
    for tool in TEMPLATES[name].needs:
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed on this machine")
    # Open MPI refuses to run for root, who runs the tests in containers.
    for variable in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
        monkeypatch.setenv(variable, "1")
    # A thread of OpenMP that waits for another one, which waits for a core, is no work.
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")
    places, run, largest = WAYS[name]
    source = resources.folder() / "templates"
    before = {path.name: path.read_bytes() for path in source.iterdir()}
    made = new_experiment(
        tmp_path / name, Request(name, places=places, run=run, delay=300 if name == "python" else 10000)
    )
    assert made == read_experiment(tmp_path / name)
    assert {path.name: path.read_bytes() for path in source.iterdir()} == before
    quick = replace(
        made, program=replace(made.program, busy_limit=1e9, warm_up=0), plan=replace(made.plan, replicates=2)
    )
    write_experiment(quick)
    runner = Runner(quick)
    runner.check()
    assert runner.run().finished
    found = analyse(to_trials(quick, "cpu"))
    mains = [e for e in found.effects if len(e.members) == 1 and e.term not in ("threads", "main.34")]
    assert len(found.trials.y) == 2 * quick.design().runs
    if largest:
        assert max(mains, key=lambda e: e.value).term == largest
        return
    # The example of a command: twice the steps, three times with checks, so 2/3 and all of the mean run.
    share = {e.term: e.value / found.mean for e in found.effects}
    assert share == pytest.approx({"STEPS": 2 / 3, "CHECKS": 1, "STEPS:CHECKS": 1 / 3}, abs=0.2)


def test_a_program_of_ones_own_stays_as_it_is(tmp_path, capsys):
    own = tmp_path / "own"
    (own / "sub").mkdir(parents=True)
    (own / "sub" / "work.c").write_text("int work(int n)\n{\n    return n + 1;\n}\n")
    (own / "main.c").write_text("int work(int);\nint main(void) { return work(-1); }\n")
    kept = {path: path.read_bytes() for path in own.rglob("*.c")}
    words = ["spt", "new", str(tmp_path / "e"), "--from", "compiler", "--program", str(own)]
    assert cli.run([*words, "--places", "work", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (
        said["factors"][0] | {"file": "program/sub/work.c", "line": 1, "minus": "as it is"}
        == said["factors"][0]
    )
    assert {path: path.read_bytes() for path in own.rglob("*.c")} == kept
    copy = (tmp_path / "e" / "program" / "sub" / "work.c").read_text()
    assert '#include "../spt_delay.h"\n#line 1\n' in copy and "#line 2\n" in copy
    assert cli.run(words) == 1 and "holds an experiment already" in capsys.readouterr().err
    # What cannot be leaves nothing behind.
    words[2] = str(tmp_path / "other")
    assert cli.run([*words, "--places", "nowhere"]) == 1
    assert "no routine or loop 'nowhere'" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()
    words[2] = str(own / "inside")
    assert cli.run(words) == 1 and "lies inside the program" in capsys.readouterr().err
    assert cli.run(["spt", "new", "--list"]) == 0
    listed = capsys.readouterr().out
    assert all(f"\n{name} " in f"\n{listed}" for name in TEMPLATES)


@pytest.mark.skipif(
    shutil.which("make") is None or shutil.which("cc") is None, reason="there is no make or cc"
)
def test_builds_that_are_the_same_are_found_before_anything_runs(tmp_path, capsys):
    """A Makefile that ignores the flags once gave four equal programs, and "-0.005 s" in place of +200 %."""
    made = new_experiment(tmp_path / "e", Request("make", places=("smooth", "heat_end")))
    deaf = tuple(word.replace(" {flags}", "") for word in made.program.build)
    deaf = (*deaf, "UNUSED={flags}")
    experiment = replace(
        made, program=replace(made.program, build=deaf, run=("sh", "-c", "touch ran; {out}"))
    )
    write_experiment(experiment)
    assert cli.run(["spt", "run", str(tmp_path / "e"), "--yes"]) == 1
    said = capsys.readouterr().err
    assert "the builds of smooth alone and of nothing are the same, byte for byte, though -DF1 is not" in said
    with pytest.raises(RunError, match=r"of treatment 2 and of treatment 1 are the same"):
        Runner(experiment).run()
    assert not (tmp_path / "e" / "ran").exists() and not read_journal(experiment)
    assert len(list((tmp_path / "e" / BUILDS).iterdir())) == 4
    # One macro that nothing asks for is found as well.
    source = tmp_path / "e" / "program" / "heat.c"
    source.write_text(source.read_text().replace("#ifdef F2", "#if defined(F2) && 0"))
    with pytest.raises(RunError, match="of heat_end alone and of nothing"):
        Runner(made).check()


def test_several_factors_of_one_variable_are_joined_or_refused(tmp_path):
    """Each factor's value once overwrote that of the one before."""
    experiment = small(tmp_path)
    both = tuple(Factor(n, Switch(environment=(("LIST", n),))) for n in ("A", "B"))
    with pytest.raises(ExperimentError, match="factors A and B both set LIST") as error:
        write_experiment(replace(experiment, factors=both))
        read_experiment(tmp_path)
    assert "line " in str(error.value) and "[[factors]]" in str(error.value)
    joined = replace(experiment, factors=both, program=replace(experiment.program, join={"LIST": " "}))
    write_experiment(joined)
    assert read_experiment(tmp_path) == joined
    assert dict(joined.switches((1, 1)).environment) == {"LIST": "A B"}


def test_the_module_of_python_drives_an_experiment(tmp_path):
    """Each place has its own delay and effect, whatever else is on."""
    (tmp_path / "own.py").write_text(
        "import sys\n\ndef rare():\n    return 1\n\ndef often():\n    return 2\n\n"
        "for _ in range(2):\n    rare()\nfor _ in range(8):\n    often()\n"
        "on = sys.modules['spt_delay']._ON\n"
        "print('asked', 2 * on.get('F' '1', 0) + 8 * on.get('F' '2', 0))\n"
    )
    run = f"{sys.executable} own.py"  # as it is typed in the program's own folder
    asked = Request("python", tmp_path / "own.py", ("rare", "often"), run=run, delay=1000)
    made = new_experiment(tmp_path / "e", asked)
    assert made.program.run == (sys.executable, "./program/own.py")
    assert made.switches((1, 1)).environment == (("SPT_FACTORS", "F1:1000,F2:1000"),)
    quick = replace(
        made,
        program=replace(made.program, busy_limit=1e9),
        plan=replace(made.plan, replicates=1),
        responses=(Response("asked", "output", r"asked ([0-9.]+)", "s"), Response("wall")),
    )
    write_experiment(quick)
    Runner(quick).run()
    found = {e.term: e.value for e in analyse(to_trials(quick)).effects}
    assert found == pytest.approx({"rare": 0.002, "often": 0.008, "rare:often": 0}, abs=1e-12)
    # The delays are not only asked for.
    assert all(trial.responses[1] > trial.responses[0] for trial in read_journal(quick))


def test_helpers_of_fortran_belong_to_the_experiment(tmp_path):
    made = new_experiment(tmp_path / "e", Request("fortran"))
    helpers = {f"program/{name}" for name in ("spt_delay.h", "spt_delay_c.c", "spt_delay.f90")}
    assert helpers < set(made.program.sources)
    build = made.program.build
    assert build.index("program/spt_delay.f90") < build.index("program/heat.f90")
    assert "program/spt_delay_c.c" in build
    before = made.build_key(made.program.flags)
    helper = tmp_path / "e" / "program" / "spt_delay.f90"
    helper.write_text(helper.read_text() + "! changed\n")
    assert read_experiment(tmp_path / "e").build_key(made.program.flags) != before


def test_modules_come_before_what_uses_them():
    texts = {
        "a.f90": "program p\n use b\nend",
        "b.f90": "module b\n use, intrinsic :: iso_c_binding\n use c\nend",
        "c.f90": "MODULE C\nend",
    }
    assert in_order(list(texts), texts) == ("c.f90", "b.f90", "a.f90")


# --- the description ---


def test_every_key_is_described_where_it_stands(tmp_path):
    """Comments in the file and the page of the handbook say the same of every key that there is."""
    page = (resources.folder() / "docs" / "experiment-file.md").read_text()
    for (table, key), text in KEYS.items():
        assert f"`{key}` | {text} |" in page, f"{table}: {key}"
    experiment = small(tmp_path)
    text = described(experiment)
    lines = text.split("\n")
    told = [one for one in statements(text) if (one.table, one.key) in KEYS and one.number == 1]
    assert len(told) > 15
    assert all(lines[one.line - 2] == f"# {KEYS[one.table, one.key]}" for one in told)
    assert read_experiment(tmp_path) == experiment
    known = {"format", "title", "responses"}
    from desktop.data.experiment import _FactorTable

    for table, kind in (
        ("program", Program),
        ("design", Plan),
        ("factors", _FactorTable),
        ("responses", Response),
    ):
        known |= {f"{table}.{name}" for name in kind.__dataclass_fields__}
    assert known == {f"{table}.{key}".lstrip(".") for table, key in KEYS}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("seed = 3", "seed = 3.5", r"seed is 3.5, it must be a whole number, \[design\], line {}"),
        ("warm_up = 0", "warm_up = -1", r"warm_up is -1, .*, \[program\], line {}"),
        ("seed = 3", "colour = 1", r"colour is not known, .*, \[design\], line {}"),
        ('"--slow"', "7", r"arguments\[0\] is 7, it must be text, \[\[factors\]\] 2, line {}"),
    ],
)
def test_errors_name_key_file_and_line(tmp_path, old, new, said):
    text = described(small(tmp_path))
    path = tmp_path / "experiment.toml"
    path.write_text(text.replace(old, new))
    key = new.split(" ")[0] if "=" in new else "arguments"
    line = next(
        k for k, content in enumerate(path.read_text().split("\n"), 1) if content.startswith(f"{key} =")
    )
    with pytest.raises(ExperimentError, match=said.format(line)) as error:
        read_experiment(tmp_path)
    assert str(path) in str(error.value)


# --- other load ---


def test_what_the_machine_does_by_itself_is_no_disturbance(tmp_path, monkeypatch):
    """0.05 of a core once called every trial disturbed on a machine that others keep busy a little."""
    experiment = small(tmp_path)
    experiment = replace(experiment, program=replace(experiment.program, busy_limit=0.05))
    loads = iter([0.2, 0.24] * 4 + [0.25, 0.9, *[0.25] * 20])
    monkeypatch.setattr("desktop.data.runner._busy_cores", lambda *_: next(loads))
    monkeypatch.setattr("desktop.data.runner._BASE_S", 0.001)
    write_experiment(experiment)
    Runner(experiment).run()
    done = read_journal(experiment)
    assert [t.status for t in done].count("disturbed") == 1 and len(done) == 9
    assert {round(t.other_busy_limit, 3) for t in done} == {0.313}  # 0.22, twice their deviation, and 0.05


def test_a_journal_of_an_older_version_goes_on(tmp_path):
    """It has no columns for what is noted now, and must stay one table."""
    experiment = small(tmp_path)
    runner = Runner(experiment, lambda trial: runner.stop() if trial.order == 3 else None)
    runner.run()
    path = tmp_path / JOURNAL
    lines = path.read_text().splitlines()
    old = [lines[0], *(re.sub(r",[^,]*,[^,]*$", "", line) for line in lines[1:])]
    path.write_text("\n".join(old) + "\n")
    Runner(experiment).run()
    widths = {line.count(",") for line in path.read_text().splitlines()[1:]}
    assert len(widths) == 1 and len(read_journal(experiment)) == 8


def test_the_pilot_and_the_delay_of_each_factor_in_python():
    code = "import spt_delay as s; print(sorted((k, round(1e6 * v)) for k, v in s._ON.items()))"
    folder = resources.folder() / "spt"
    environment = {**os.environ, "PYTHONPATH": str(folder), "SPT_FACTORS": "F1:30,F2", "SPT_DELAY_US": "200"}
    said = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert said.stdout.strip() == "[('F1', 30), ('F2', 200)]"


def test_levels_have_meanings():
    place = Factor("F4", Switch(("-DF4",)), Switch(), "q.c", 175, "swap", "function", 30)
    assert place.place == "swap(), line 175"
    assert place.levels == ("as it is", "a delay of 30 units in swap(), line 175")
    loop = replace(place, construct="for loop", delay=0)
    assert loop.levels[1] == "a delay in the for loop of swap(), line 175"
    said = Factor("threads", Switch(environment=(("T", "24"),)), Switch(environment=(("T", "8"),)))
    assert said.levels == ("T=8", "T=24")
    assert replace(said, means="24 threads", low_means="8 threads").levels == ("8 threads", "24 threads")
