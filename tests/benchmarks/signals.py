"""Requests to end at random moments: what commands leave behind, how they end, what they say.

``python -m tests.benchmarks.signals [-n N] [--seed S] [COMMAND...]`` sends a SIGINT or SIGTERM N times to
each command (and to the window, offscreen), at a moment between its start and its usual end; every fourth
reaches all processes of its group, as Ctrl-C in a terminal does. One line a command: how often it ended with
which code; then everything that should not be: files left behind, words of Python or Qt, a store that is not
what was said of it, a journal that does not go on. Signals that the program could not have heard, because
Python was still starting or already ending, are counted by themselves ("deaf"): Python's way of ending is its
own.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from desktop.data.experiment import JOURNAL, Program, read_experiment, read_journal
from desktop.data.opening import open_trace
from desktop.data.recording import recorder
from desktop.data.store import is_store, open_store
from tests.data_layer.archives import unpack
from tests.experiments import small

ROOT = Path(__file__).parents[2]
#: What one that was asked to end may say.
_SAID = re.compile(
    r"(phasewright: stopped(, (nothing was written|complete (is|are) .*|\d+ of \d+ sources are imported))?"
    r"|stopped; the same command goes on from here)\n"
)
#: A build that takes a while and writes the file bit by bit.
BUILD = '#!/bin/sh\nfor i in 1 2 3; do echo \'#!/bin/sh\' >> "$1"; sleep 0.02; done\nchmod +x "$1"\n'
PROGRAM = '#!/bin/sh\nsleep 0.05\nvalue=10\n[ "$DELAY_A" = 1 ] && value=14\necho "done in $value s"\n'


@dataclass
class Case:
    """A command. `words` are made for a folder of its own; `wrong` finds what should not be in it."""

    name: str
    words: Callable[[Path], list[str]]
    wrong: Callable[[Path, int, str], str] = lambda *_: ""
    window: bool = False


def picl(path: Path, events: int) -> Path:
    path.write_text("".join(f"15 {k} 0 {k % 8} 1\n" for k in range(events)))
    return path


def cases(shelf: Path) -> list[Case]:
    """Every command with sources on a shelf that nobody changes."""
    trace = picl(shelf / "long.trf", 400_000)
    large = [picl(shelf / f"large{k}.trf", 600_000) for k in range(3)]
    archive = unpack("mpt_jacobi2d_9_dilated", shelf)
    packed = shelf / "jacobi.tar.gz"
    with tarfile.open(packed, "w:gz") as tar:
        tar.add(archive, archive.name)
        ballast = shelf / "ballast.bin"
        ballast.write_bytes(random.Random(1).randbytes(1 << 25))
        tar.add(ballast, ballast.name)
    curve = next(archive.glob("*.otf2"))

    def experiment(folder: Path) -> list[str]:
        home = folder / "experiment"
        program = Program(
            run=("{out}",), build=("./build.sh", "{out}"), sources=("program.sh",), check="done",
            busy_limit=1e9, warm_up=0,
        )  # fmt: skip
        small(home, PROGRAM, program=program)
        build = home / "build.sh"
        build.write_text(BUILD + 'cat program.sh >> "$1"\n')
        build.chmod(0o755)
        return ["spt", "run", str(home), "--yes", "--json"]

    def journal(folder: Path, code: int, said: str) -> str:
        found = read_experiment(folder / "experiment")
        try:
            before = len(read_journal(found)) if (found.folder / JOURNAL).exists() else 0
        except Exception as error:
            return f"the journal is damaged: {error}"
        if code == 0 and before < 8:
            return f"it ended with 0 after {before} trials of 8"
        if random.random() < 0.1:
            again = subprocess.run(
                [sys.executable, "-m", "desktop", "spt", "run", str(found.folder), "--yes", "--json"],
                cwd=ROOT, capture_output=True, text=True, check=False,
            )  # fmt: skip
            if again.returncode or len(read_journal(found)) < max(before, 8):
                return f"it does not go on: {again.stderr}"
        return "".join(f"left {p.name} " for p in found.folder.rglob("*.part*"))

    def imported(folder: Path, code: int, said: str) -> str:
        store = folder / "made" / "x.h5"
        if store.exists():
            with open_store(store):
                pass
        told = code == 0 or "complete is" in said
        return "" if store.exists() == told else f"exit {code}, said {said!r}, a store: {store.exists()}"

    def several(folder: Path, code: int, said: str) -> str:
        there = sum(is_store(path) for path in (folder / "made").glob("*.h5"))
        known = re.search(r"(\d+) of 3", said)
        told = 3 if code == 0 else int(known[1]) if known else 0
        if code != 0 and said == "phasewright: stopped\n":
            return ""  # it claims nothing
        return "" if there == told else f"exit {code}, said {said!r}, stores: {there}"

    def reported(folder: Path, code: int, said: str) -> str:
        there = (folder / "made" / "x.html").exists()
        told = code == 0 or "x.html" in said
        return "" if there == told else f"exit {code}, said {said!r}, a report: {there}"

    own, alone = shelf / "libmpi.so", shelf / "alone"
    source = str(ROOT / "tests" / "programs" / "alone.c")
    subprocess.run(["cc", "-DLIBRARY", "-shared", "-fPIC", "-o", str(own), source], check=True)
    subprocess.run(["cc", "-o", str(alone), source, str(own), f"-Wl,-rpath,{shelf}"], check=True)

    def program(folder: Path) -> list[str]:
        """In its own folder, so that it is known when it runs on; mostly the recorder is compiled already."""
        cache = folder / "home" / "cache" / "phasewright" / "recorder"
        if random.random() < 0.9:
            cache.mkdir(parents=True)
            shutil.copy(recorder(), cache)
        return [*into(folder, "run"), "--", shutil.copy(alone, folder / "scratch-alone"), "20", "1500"]

    def recorded(folder: Path, code: int, said: str) -> str:
        made = folder / "made" / "run"
        running = subprocess.run(["pgrep", "-f", str(folder / "scratch-alone")], stdout=subprocess.DEVNULL)
        if not running.returncode:
            return "the program runs on"
        if made.exists() != (code == 0 or str(made) in said):
            return f"exit {code}, said {said!r}, a recording: {made.exists()}"
        if made.exists():
            with open_trace(made, output=folder / "made" / "again.h5"):
                pass
        return ""

    def into(folder: Path, name: str) -> list[str]:
        return ["-o", str(folder / "made" / name)]

    return [
        Case("import", lambda f: ["import", str(trace), *into(f, "x.h5")], imported),
        Case("archive", lambda f: ["import", str(packed), *into(f, "x.h5")], imported),
        Case("several", lambda f: ["import", *map(str, large), *into(f, "")], several),
        Case("stats", lambda _: ["stats", str(curve), "-n", "4"]),
        Case("report", lambda f: ["report", str(curve), *into(f, "x.html")], reported),
        Case("record", lambda f: ["record", "--no-open", *program(f)], recorded),
        Case("watch", lambda f: ["watch", "--text", *program(f)], recorded),
        Case("spt run", experiment, journal),
        Case("window", lambda _: [str(curve)], window=True),
    ]


def start(case: Case, folder: Path) -> subprocess.Popen[str]:
    """The command in a folder where it has all its places."""
    for name in ("made", "scratch", "home"):
        (folder / name).mkdir()
    places = {f"XDG_{kind}_HOME": str(folder / "home" / kind.lower())
              for kind in ("STATE", "CONFIG", "DATA", "CACHE")}  # fmt: skip
    environment = os.environ | places | {
        "HOME": str(folder / "home"), "TMPDIR": str(folder / "scratch"), "QT_QPA_PLATFORM": "offscreen",
    }  # fmt: skip
    return subprocess.Popen(
        [sys.executable, "-m", "desktop", *case.words(folder)], cwd=ROOT, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip


def hears(process: int) -> bool:
    """Whether the program itself handles SIGTERM now, which Python does not."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False
    caught = int(re.search(r"SigCgt:\s*(\w+)", status)[1], 16)  # type: ignore[index]  # Linux has it
    return bool(caught >> (signal.SIGTERM - 1) & 1)


def remains(folder: Path) -> list[str]:
    """Files that nobody asked for: all temporary ones, and parts, and what tells of a session."""
    found = list((folder / "scratch").rglob("*"))
    for pattern in ("*.part*", "*.work", "session-*", "recovery-*", "*.lock"):
        found += [path for place in ("made", "home") for path in (folder / place).rglob(pattern)]
    return [str(path.relative_to(folder)) for path in found]


def lengths(case: Case, times: int = 2) -> float:
    """Seconds that it usually takes; of the window, until some time after it is open."""
    if case.window:
        return lengths(Case("", lambda f: ["snapshot", *case.words(f), "-o", str(f / "x.png")]), 1) + 1.0
    took = []
    for _ in range(times):
        with tempfile.TemporaryDirectory() as name:
            begun = time.monotonic()
            with start(case, Path(name)) as running:
                out, err = running.communicate()
            assert running.returncode == 0, (case.name, out, err)
            assert not remains(Path(name)), remains(Path(name))
            took.append(time.monotonic() - begun)
    return max(took)


def once(case: Case, length: float, generator: random.Random, number: int) -> tuple[str, str]:
    """One signal: how it ended, and what was wrong."""
    sent = generator.choice((signal.SIGINT, signal.SIGTERM))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        with start(case, folder) as running:
            time.sleep(generator.random() * length)
            heard = hears(running.pid)
            if running.poll() is None:
                (os.killpg if number % 4 == 0 else os.kill)(running.pid, sent)
            begun = time.monotonic()
            try:
                out, err = running.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                os.killpg(running.pid, signal.SIGKILL)
                return "never", f"{sent.name}: it did not end"
        took = time.monotonic() - begun
        code = running.returncode
        faults = remains(folder)
        if not heard:
            return f"deaf {code}{' with words of Python' * ('Traceback' in err)}", " ".join(faults)
        if code not in (0, 128 + sent) or (case.window and code == 0):
            faults.append(f"exit code {code}")
        if not _SAID.fullmatch(err) and not (err == "" and (code == 0 or case.window)):
            faults.append(f"said {err!r}")
        if code == 0 and not out and not case.window:
            faults.append("exit code 0 and nothing done")
        if not faults and (wrong := case.wrong(folder, code, err)):
            faults.append(wrong)
        if took > 8:
            faults.append(f"took {took:.1f} s")
    return str(code), f"{sent.name}: {', '.join(faults)}" if faults else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-n", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("commands", nargs="*")
    options = parser.parse_args()
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # ignored in the background, and by what starts there
    with tempfile.TemporaryDirectory() as shelf:
        for case in cases(Path(shelf)):
            if options.commands and case.name not in options.commands:
                continue
            generator = random.Random(f"{options.seed} {case.name}")
            length, ended, wrong = lengths(case), Counter[str](), []
            for number in range(options.n):
                how, fault = once(case, length, generator, number)
                ended[how] += 1
                wrong += [f"  {number}: {fault}"] * bool(fault)
            told = ", ".join(f"{count} x {how}" for how, count in sorted(ended.items()))
            print(f"{case.name:<9} {length:5.1f} s  {told}; {len(wrong)} wrong", *wrong, sep="\n", flush=True)


if __name__ == "__main__":
    main()
