"""What dev.py remembers between two runs: what is installed, and what the kernels were compiled from."""

from __future__ import annotations

import importlib.util
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
    assert {"core/jit.py", "core/tree.py", "core/partition.py", "data/clock.py"} <= found
    assert not any(name.startswith(("workbench/", "ui/panels/")) for name in found)


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
    monkeypatch.setattr(dev, "run", lambda *words: called.append(words[-1]))
    for extras in [("test", "cluster"), (), ("cluster",), ("test", "bench"), ("test", "cluster")]:
        dev.set_up(*extras)
    assert called == [".[test,cluster]", ".[test,bench]"]
