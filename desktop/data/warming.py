"""Whether the kernels needed to open a trace are compiled, and a process that compiles them in advance.

A kernel is compiled when first called, and cached beside its module or in the user's cache. After
installation this would delay the first trace of each format. So a process with low priority opens a small
trace of each format (``phasewright warm-up``); a stamp beside the cached kernels shows that they are
complete, and a lock that a process is at work. If nothing can be cached, nothing is compiled in advance.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import desktop
from desktop import resources
from desktop.data.atomic import lock_file, scratch_folder, write_text
from desktop.progress import Progress

# Seconds that the process may take to end when asked to.
_GRACE_S = 5.0
_STAMP, _LOCK = "phasewright-kernels.stamp", "phasewright-kernels.lock"

_CURVE = "0,2\n1,3\n2,1\n4,2\n6,0\n"
_PICL_B = """-3 -901 0.0 0 0 0
-3 -901 0.0 1 0 0
-3 -21 0.1 0 0 4 2 8 5 1 0
-4 -21 0.2 0 0 0
-3 -52 0.1 1 0 2 2 5 0
-4 -52 0.4 1 0 4 2 8 5 0 0
-3 7 0.5 0 0 0
-4 7 0.8 0 0 0
-4 -901 0.9 0 0 0
-4 -901 0.9 1 0 0
"""


def traces(folder: Path) -> list[Path]:
    """A small trace of each format, and of each variant with its own kernels; some are made in `folder`."""
    texts = {"curve.csv": _CURVE, "picl-b.trf": _PICL_B}
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    home = resources.folder() / "warm-up"
    samples = {sample.path.parent.name: sample.path for sample in resources.samples()}
    return [
        samples["lu_8_picl"],
        home / "paraver.tar.xz",
        home / "otf1.tar.xz",
        samples["wave1d_8_eztrace"],
        *(folder / name for name in texts),
    ]


def stamp_place() -> Path | None:
    """Path of the stamp: beside the cached kernels of the replay; None if none can be cached."""
    from desktop.core.open_regions import replay

    place = replay._cache.cache_path
    return None if place is None else Path(place) / _STAMP


def needed() -> bool:
    """Whether there are kernels to be compiled that can be cached, as far as known without trying."""
    place = stamp_place()
    if place is None:
        return False
    try:
        return place.read_text(encoding="utf-8") != _state()
    except OSError:
        return True


def _state() -> str:
    """What the kernels depend on: this program, its sources, numba, Python, the processor."""
    import numba
    from llvmlite import binding

    digest = hashlib.sha256()
    host = binding.get_host_cpu_name()
    about_program = (desktop.__version__, numba.__version__, sys.implementation.cache_tag, host)
    digest.update(repr(about_program).encode())
    package = Path(desktop.__file__).parent
    # A frozen program has no sources beside it.
    for file in [*sorted(package.rglob("*.py")), Path(sys.executable)]:
        with suppress(OSError):
            about = file.stat()
            digest.update(f"{file}\0{about.st_size}\0{about.st_mtime_ns}\n".encode())
    return digest.hexdigest()


@contextmanager
def alone() -> Iterator[bool]:
    """True for one process at a time; at its end the kernels count as complete, unless it was stopped."""
    place = stamp_place()
    if place is None:
        yield False
        return
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(place.with_name(_LOCK), os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:  # the stamp could not be written
        yield False
        return
    try:
        mine = lock_file(fd)
        yield mine
        if mine:
            with suppress(OSError):
                write_text(place, _state())
    finally:
        os.close(fd)


def in_background(progress: Progress) -> bool:
    """Compile in a separate process, which ends with this one; returns whether everything is compiled now.

    Raises
    ------
    Cancelled : by `progress`; what was compiled until then stays cached.
    """
    # Its temporary files are in a folder of this process, so that none remain if it has to be killed.
    with scratch_folder() as folder:
        return _attached(progress, folder)


def _attached(progress: Progress, folder: Path) -> bool:
    words = [sys.executable] if getattr(sys, "frozen", False) else [sys.executable, "-m", "desktop"]
    places = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder))
    output = folder / "progress"
    with output.open("wb") as stdout:
        process = subprocess.Popen(
            [*words, "warm-up", "--attached"],
            stdin=subprocess.PIPE,  # it sees the end of this pipe if this process is killed
            stdout=stdout,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **places, "QT_QPA_PLATFORM": "offscreen"},
        )
    done, text = 0.0, ""
    try:
        while process.poll() is None:
            with suppress(IndexError, ValueError):  # it has said nothing yet, or something else
                share, _, title = output.read_text(encoding="utf-8").splitlines()[-1].partition(" ")
                done, text = float(share), title
            progress.step(done, 1.0, text)
            time.sleep(0.1)
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(_GRACE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        assert process.stdin is not None
        process.stdin.close()
    return process.returncode == 0
