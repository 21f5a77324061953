"""Tests need no display, whoever starts them, and what they start need not compile the program anew."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.limits import pytest_runtest_call, pytest_runtest_setup  # noqa: F401 - hooks

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
# As in the program (`desktop.__main__`): the threads of linear algebra wait for each other longer than they
# work, the more so beside other processes. Read when numpy is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# A process that may not keep what Python compiles spends a third of a second on that whenever it starts, and
# pytest ten seconds on rewriting 7,000 assertions.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

#: Files of eight seconds and more of processor time, the longest first, lest one runs alone in the end.
LONGEST = (
    "test_recorded.py", "test_parts.py", "test_window.py", "test_agreement.py", "test_accessibility.py",
    "test_project_window.py", "test_model_window.py", "test_frame.py", "test_report.py",
    "test_experiment_window.py", "test_timeline_window.py", "test_compare_window.py",
    "test_experiment.py", "test_closing.py", "test_remote.py", "test_side_panels.py", "test_cluster.py",
    "test_timeline.py", "test_consistency.py", "test_phase_scaling.py", "test_keeping.py",
    "test_modelling.py", "test_otf1.py", "test_factor_intervals.py", "test_live_page.py",
    "test_paraver.py", "test_everyday.py", "test_phase_properties.py", "test_warming.py",
    "test_presenting.py", "test_statistics.py", "test_phase_systems.py", "test_atomic.py",
    "test_simulated_clocks.py", "test_places.py", "test_picl.py", "test_limiting.py",
)  # fmt: skip


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """What is imported stays: the collector need not look through it, now or later."""
    gc.disable()
    result = yield
    gc.enable()
    gc.freeze()
    return result


def pytest_unconfigure() -> None:
    """What stays for good is freed at the end of the process: DuckDB lists all that is not, as a leak."""
    gc.unfreeze()


@pytest.fixture(scope="module", autouse=True)
def collector_runs() -> None:
    """Where tests of windows, which do without, have run before."""
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    place = {name: k for k, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.name, len(place)))


#: Where the program keeps what is the user's.
PLACES = ("CACHE", "STATE", "DATA", "CONFIG")


@pytest.fixture(scope="session")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache for all tests of a process, which then imports a trace once."""
    return tmp_path_factory.mktemp("imported")


@pytest.fixture
def own_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of the user is touched."""
    for name in PLACES:
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))


@pytest.fixture(scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory, imported: Path) -> Iterator[None]:
    """Nor here, where all tests of a file have the same places, and those of all files the same cache."""
    with pytest.MonkeyPatch.context() as patch:
        for name in PLACES:
            patch.setenv(f"XDG_{name}_HOME", str(tmp_path_factory.mktemp(name.lower())))
        patch.setenv("XDG_CACHE_HOME", str(imported))
        yield
