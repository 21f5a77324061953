"""Kernels that were compiled before: loaded by a process, and compiled into others that call them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = """
from desktop.core.jit import inlined, kernel

@inlined
def twice(x):
    return 2 * x

@kernel
def total(values):
    found = 0
    for value in values:
        found += twice(value)
    return found
"""

CALL = """
import numpy as np
import pairs
from desktop.core import compiler

begun = []
compiler.watch(lambda n, more: begun.append(n))
print({call}, max(begun, default=0))
print(sum(pairs.{name}.stats.cache_hits.values()))
"""


def say(folder: Path, name: str, call: str) -> list[int]:
    """What a process of its own finds, how many kernels it compiles, and how many of `name` it loads."""
    code = CALL.format(name=name, call=call)
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=_environment(folder), capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    return [int(word) for word in run.stdout.split()]


def _environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{Path(__file__).parents[1]}"}


def test_a_kept_kernel_becomes_part_of_one_that_is_compiled_later(tmp_path: Path) -> None:
    (tmp_path / "pairs.py").write_text(SOURCE)
    assert say(tmp_path, "twice", "pairs.twice(4)") == [8, 1, 0]
    assert say(tmp_path, "twice", "pairs.twice(4)") == [8, 0, 1]
    # It is loaded, and compiled into the other one; then nothing is compiled any more.
    assert say(tmp_path, "twice", "pairs.total(np.arange(5))") == [20, 1, 1]
    assert say(tmp_path, "total", "pairs.total(np.arange(5))") == [20, 0, 1]


def test_code_for_other_types_is_compiled_anew(tmp_path: Path) -> None:
    """Two processes that compile for different types at the same time may write the same file."""
    (tmp_path / "pairs.py").write_text(SOURCE)
    whole, real = "pairs.total(np.arange(5))", "pairs.total(np.arange(5) / 4)"
    assert say(tmp_path, "total", f"int({whole} + {real})")[0] == 25
    files = sorted((tmp_path / "__pycache__").glob("pairs.total-*.nbc"))
    second = files[1].read_bytes()
    files[0].write_bytes(second)
    assert say(tmp_path, "total", f"int(2 * {whole})") == [40, 1, 0]
    assert say(tmp_path, "total", f"int(2 * {real})") == [10, 0, 1]
    assert files[0].read_bytes() != second, "it is there again"


@pytest.mark.parametrize("kind", ["nbc", "nbi"])
def test_a_damaged_file_is_written_anew(tmp_path: Path, kind: str) -> None:
    (tmp_path / "pairs.py").write_text(SOURCE)
    assert say(tmp_path, "twice", "pairs.twice(4)") == [8, 1, 0]
    (file,) = (tmp_path / "__pycache__").glob(f"pairs.twice-*.{kind}")
    whole = file.read_bytes()
    for damaged in (b"", whole[:-40]):
        file.write_bytes(damaged)
        assert say(tmp_path, "twice", "pairs.twice(4)") == [8, 1, 0]
    assert say(tmp_path, "twice", "pairs.twice(4)") == [8, 0, 1]
    file.unlink()
    file.mkdir()  # so that it can be neither read nor written
    assert say(tmp_path, "twice", "pairs.twice(4)") == [8, 1, 0]


def test_kernels_of_others_are_kept_as_numba_does_it(tmp_path: Path) -> None:
    """A notebook that imports this program: what it keeps is loaded without it, and extensions are found."""
    (tmp_path / "pairs.py").write_text(
        "from numba import njit\n\n@njit(cache=True)\ndef twice(x):\n    return 2 * x\n"
    )
    assert say(tmp_path, "twice", "pairs.twice(4)") == [8, 1, 0]
    code = (
        "import pairs, sys; print(pairs.twice(4), sum(pairs.twice.stats.cache_hits.values()), "
        "any(name.split('.')[0] == 'desktop' for name in sys.modules))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=_environment(tmp_path), capture_output=True, text=True
    )
    assert run.stdout.split() == ["8", "1", "False"], run.stderr
    found = (
        "import desktop.core.compiler; from numba.core import entrypoints; print(entrypoints.__file__ != '')"
    )
    run = subprocess.run(
        [sys.executable, "-c", found], cwd=tmp_path, env=_environment(tmp_path), capture_output=True
    )
    assert run.returncode == 0, run.stderr


CANCEL = """
import numba
import numpy as np
from desktop.core import compiler
from desktop.progress import Cancelled, Progress, working

{pairs}
begun, progress = [], Progress()
compiler.watch(lambda n, more: (begun.append(n), n == {at} and progress.cancel()))
try:
    with working(progress):
        total(np.arange(5))
except Cancelled:
    print(max(begun))
print(total(np.arange(5)), max(begun))
with working(progress):
    print(numba.njit(lambda x: x + 1)(1))
"""


@pytest.mark.parametrize(
    ("at", "pairs"),
    [(1, "from pairs import total"), (2, "from pairs import total"), (2, "exec(open('pairs.py').read())")],
)
def test_cancelled_work_compiles_no_more(tmp_path: Path, at: int, pairs: str) -> None:
    """Before a kernel and inside of another, also of those that cannot be cached; the next work compiles what
    is missing. Kernels of other packages go on."""
    (tmp_path / "pairs.py").write_text(SOURCE)
    run = subprocess.run(
        [sys.executable, "-c", CANCEL.format(at=at, pairs=pairs)],
        cwd=tmp_path, env=_environment(tmp_path), capture_output=True, text=True,
    )  # fmt: skip
    assert run.stdout.split() == [str(at), "20", str(at + 2), "2"], run.stderr
