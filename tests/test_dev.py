"""What dev.py remembers between two runs: what is installed, and what the kernels were compiled from."""

from __future__ import annotations

import importlib.util
import os
import sys
import sysconfig
import venv
from collections import namedtuple
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = {
    "core/jit.py": "def kernel(function): ...\n",
    "core/tables.py": "WIDTH = 3\n",
    "core/callee.py": "from desktop.core.jit import kernel\n",
    "data/caller.py": (
        "from desktop.core import callee\nfrom desktop.core.jit import kernel\n"
        "from desktop.core.tables import (\n    WIDTH,\n)\n"
    ),
    "ui/window.py": '"""Draws what desktop.core.jit made fast."""\n',
}


@pytest.fixture(scope="module")
def dev():
    spec = importlib.util.spec_from_file_location("dev", ROOT / "dev.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def package(tmp_path):
    folder = tmp_path / "desktop"
    for name, text in FILES.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


def compiled(package: Path) -> list[Path]:
    """Put compiled kernels beside the sources, as numba does."""
    files = []
    for name in ("core/__pycache__/callee.f-1.py311.nbi", "data/__pycache__/caller.g-1.py311.1.nbc"):
        file = package / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"machine code")
        files.append(file)
    return files


@pytest.mark.parametrize("changed", ["core/jit.py", "core/callee.py", "core/tables.py", "data/caller.py"])
def test_a_change_in_any_source_of_kernels_drops_all_of_them(dev, package, tmp_path, changed):
    stamp = tmp_path / "kernels"
    dev.drop_stale_kernels(package, stamp)
    files = compiled(package)
    bytecode = package / "core" / "__pycache__" / "callee.cpython-311.pyc"
    bytecode.write_bytes(b"bytecode")
    dev.drop_stale_kernels(package, stamp)
    assert all(file.exists() for file in files)
    source = package / changed
    source.write_text(source.read_text() + "# changed\n")
    dev.drop_stale_kernels(package, stamp)
    assert not any(file.exists() for file in files)
    assert bytecode.exists()
    files = compiled(package)
    dev.drop_stale_kernels(package, stamp)
    assert all(file.exists() for file in files)


def test_a_change_elsewhere_keeps_what_is_compiled(dev, package, tmp_path):
    stamp = tmp_path / "kernels"
    dev.drop_stale_kernels(package, stamp)
    files = compiled(package)
    (package / "ui" / "window.py").write_text('"""Draws."""\n')
    dev.drop_stale_kernels(package, stamp)
    assert all(file.exists() for file in files)


def test_kernels_of_unknown_age_are_dropped(dev, package, tmp_path):
    files = compiled(package)
    dev.drop_stale_kernels(package, tmp_path / "kernels")
    assert not any(file.exists() for file in files)


def test_the_sources_of_the_real_kernels_are_found(dev):
    found = {file.relative_to(ROOT / "desktop").as_posix() for file in dev.kernel_sources(ROOT / "desktop")}
    assert {
        "core/jit.py",
        "core/tree.py",
        "core/partition.py",
        "core/clock_kernels.py",
        "data/matching.py",
    } <= found
    # The plots' kernels are in a file that takes a function from there.
    beside = {"workbench/levels.py"}
    assert not any(name.startswith(("workbench/", "ui/panels/")) for name in found - beside)


def test_extras_that_are_there_count_for_less_and_not_for_more(dev, tmp_path):
    assert dev.installed(tmp_path, "a") is None
    dev.note_installed(tmp_path, "a", {"test", "cluster"})
    assert dev.installed(tmp_path, "a") == {"test", "cluster"}
    assert dev.installed(tmp_path, "b") is None
    dev.note_installed(tmp_path, "b", set())
    assert dev.installed(tmp_path, "b") == set()


def test_what_is_installed_is_not_installed_again(dev, tmp_path, monkeypatch):
    called = []
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.touch()
    monkeypatch.setattr(dev, "VENV", tmp_path)
    monkeypatch.setattr(dev, "PYTHON", python)
    monkeypatch.setattr(dev, "install_system_packages", lambda wanted: None)
    monkeypatch.setattr(dev, "drop_stale_kernels", lambda *_: None)
    monkeypatch.setattr(dev, "fits", lambda folder: True)
    monkeypatch.setattr(dev, "step", lambda what, *words: called.append(words[-1]))
    for extras in [("test", "cluster"), (), ("cluster",), ("test", "bench"), ("test", "cluster")]:
        dev.set_up(*extras)
    assert called == [".[test,cluster]", ".[test,bench]"]


Version = namedtuple("Version", "major minor micro releaselevel serial")


@pytest.fixture
def set_up(dev, tmp_path, monkeypatch):
    """`dev.set_up` in an empty folder: returns what it has made, instead of making it."""
    made = []
    python = tmp_path / "bin" / "python"
    monkeypatch.setattr(dev, "VENV", tmp_path)
    monkeypatch.setattr(dev, "PYTHON", python)
    monkeypatch.setattr(dev, "install_system_packages", lambda wanted: None)
    monkeypatch.setattr(dev, "drop_stale_kernels", lambda *_: None)
    monkeypatch.setattr(dev, "step", lambda what, *words: made.append("packages"))

    def create(folder, **_):
        made.append("environment")
        python.parent.mkdir(exist_ok=True)
        python.touch()
        version = ".".join(map(str, sys.version_info[:3]))
        (folder / "pyvenv.cfg").write_text(f"home = /usr/bin\nversion = {version}\n")

    monkeypatch.setattr(venv, "create", create)

    def again():
        made.clear()
        dev.set_up()
        return list(made)

    return again


def test_a_patch_of_python_needs_no_new_set_up(set_up, monkeypatch):
    assert set_up() == ["environment", "packages"]
    assert set_up() == []
    monkeypatch.setattr(sys, "version", "3.11.99 (main, Jan  1 2030, 00:00:00) [GCC 99.1.0]")
    monkeypatch.setattr(sys, "version_info", Version(*sys.version_info[:2], 99, "final", 0))
    assert set_up() == []


def test_another_python_makes_the_environment_anew(set_up, monkeypatch):
    set_up()
    monkeypatch.setattr(sys, "version_info", Version(3, sys.version_info[1] + 1, 0, "final", 0))
    assert set_up() == ["environment", "packages"]
    assert set_up() == []


def test_the_same_version_with_another_abi_gets_its_own_packages(set_up, monkeypatch):
    set_up()
    known = sysconfig.get_config_var
    monkeypatch.setattr(
        sysconfig, "get_config_var", lambda name: "cpython-311d-other" if name == "SOABI" else known(name)
    )
    assert set_up() == ["packages"]


@pytest.fixture
def logged(dev, tmp_path, monkeypatch):
    monkeypatch.setattr(dev, "ROOT", tmp_path)
    monkeypatch.setattr(dev, "LOG", tmp_path / "out" / "set-up.log")
    return dev.LOG


def test_a_step_says_one_line_and_the_rest_goes_into_the_log(dev, logged, capfd):
    talk = "import sys\nfor i in range(150): print('Setting up', i, file=(sys.stdout, sys.stderr)[i % 2])"
    dev.step("Installing", sys.executable, "-c", talk)
    told, wrong = capfd.readouterr()
    assert told.splitlines() == ["Installing (details: out/set-up.log)"] and not wrong
    text = logged.read_text()
    assert all(f"Setting up {i}\n" in text for i in range(150))
    dev.step("Next", sys.executable, "-c", "print('more')")
    assert logged.read_text().startswith(text) and logged.read_text().endswith("more\n")


def test_a_step_that_fails_shows_its_last_lines_and_where_all_are(dev, logged, capfd):
    talk = "for i in range(150): print('Setting up', i)\nraise SystemExit(7)"
    with pytest.raises(SystemExit) as stopped:
        dev.step("Installing", sys.executable, "-c", talk)
    assert stopped.value.code == 7
    told, wrong = capfd.readouterr()
    assert "Setting up" not in told
    lines = wrong.splitlines()
    assert lines[-2] == "  Setting up 149" and "Setting up 100" not in wrong
    assert lines[-1] == "Installing failed with exit code 7; all it said is in out/set-up.log"


@pytest.mark.skipif(os.name == "nt", reason="no such system has apt")
def test_missing_libraries_are_installed_in_two_lines(dev, logged, tmp_path, monkeypatch, capfd):
    """dpkg and apt are stand-ins that talk as much as the real ones."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, text in {
        "dpkg-query": "echo libgl1 installed",
        "apt-get": 'echo "apt-get $DEBIAN_FRONTEND $@"; seq 200',
        "sudo": 'exec "$@"',
    }.items():
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    dev.install_system_packages(["libgl1", "libegl1", "libxkbcommon0"])
    assert capfd.readouterr().out.splitlines() == [
        "Reading the lists of system packages (details: out/set-up.log)",
        "Installing 2 system packages, such as libegl1 (details: out/set-up.log)",
    ]
    text = logged.read_text()
    assert "apt-get noninteractive update\n" in text
    assert "apt-get noninteractive install --yes --no-install-recommends libegl1 libxkbcommon0\n" in text


def test_tests_have_their_files_in_memory_where_there_is_room(dev, tmp_path, monkeypatch):
    monkeypatch.setattr(dev, "SCRATCH_BYTES", 1)
    with dev.scratch(tmp_path) as folder:
        (Path(folder) / "left").write_text("")
        assert Path(folder).parent == tmp_path
    assert not [*tmp_path.iterdir()], "nothing stays in memory"
    monkeypatch.setattr(dev, "SCRATCH_BYTES", 1 << 62)
    for place in (tmp_path, tmp_path / "missing"):
        with dev.scratch(place) as folder:
            assert folder == ""
