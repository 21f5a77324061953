"""How the recorder is compiled: while a wheel or a frozen program is made, else when it is first used.

A build, where nothing of the program is installed, loads this file by its path: it imports nothing of it.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

SOURCE = Path(__file__).parent
#: Of the format that it writes.
VERSION = 1
COMPILERS = ("cc", "gcc", "clang", "mpicc")
#: C of 2011, as in that of 2023 a function that is declared without parameters has none.
OPTIONS = ("-std=gnu11", "-O2", "-fvisibility=hidden", "-ftls-model=initial-exec", "-shared", "-fPIC")
#: Machines whose calls pass integers, pointers and handles alike.
MACHINES = ("x86_64", "aarch64", "ppc64le", "riscv64")


def obstacle() -> str:
    """Why no program is recorded on this kind of machine; "": it can be."""
    system, machine = sys.platform, platform.machine()
    if system.startswith("linux") and machine in MACHINES:
        return ""
    return f"programs are recorded on Linux ({', '.join(MACHINES)}), not on {system} {machine}"


def name() -> str:
    """Of the shared object of these very sources for this kind of machine."""
    files = sorted([*SOURCE.glob("*.c"), *SOURCE.glob("*.h")])
    digest = hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:16]
    return f"recorder-{VERSION}-{platform.machine()}-{digest}.so"


def compiler() -> str | None:
    """The first one that is there."""
    return next((program for name in COMPILERS if (program := shutil.which(name))), None)


def compile_to(
    target: Path, program: str, environment: Mapping[str, str] = os.environ
) -> subprocess.CompletedProcess[str]:
    """Run the compiler `program`; how it ended, and what it said.

    Raises
    ------
    OSError : it cannot be started.
    """
    words = [program, *OPTIONS, "-o", str(target), str(SOURCE / "recorder.c"), "-ldl", "-lpthread"]
    return subprocess.run(words, capture_output=True, text=True, errors="replace", env=environment)


def compile_into(folder: Path) -> tuple[Path | None, str]:
    """The shared object in a folder, for a package of this machine; else None, and why in a few words."""
    if why := obstacle():
        return None, why
    program = compiler()
    if program is None:
        return None, f"there is no C compiler ({', '.join(COMPILERS)})"
    target = folder / name()
    try:
        done = compile_to(target, program)
    except OSError as error:
        return None, f"{program} cannot be started ({error.strerror})"
    if done.returncode or not target.exists():
        return None, f"{program} cannot compile it"
    return target, ""
