"""Runs an SPT experiment: builds every treatment once, then one trial at a time in random order.

Every trial is on the disk before the next begins, so a kill at any moment costs the trial that was running
and nothing else. Whoever calls this has shown the commands to the user and got a yes.
"""

from __future__ import annotations

import math
import os
import re
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread, Timer

import psutil

from desktop.core.effects import replicates_for
from desktop.data.experiment import (
    ATTEMPTS,
    BUILDS,
    Experiment,
    Journal,
    Response,
    State,
    Trial,
    state_of,
)
from desktop.errors import RunError
from desktop.progress import Cancelled, Progress

#: Bytes of a program's output that are looked at.
OUTPUT = 1 << 20
_TAIL = 1200


@dataclass(frozen=True)
class Outcome:
    """What one run of a command gave. `cpu_s`, `memory`: of it and its children; NaN where unknown."""

    exit: int
    wall_s: float
    cpu_s: float
    memory: float
    output: str
    timed_out: bool
    other_busy_cores: float
    load: float


@dataclass(frozen=True)
class Estimate:
    """From a few runs of the unperturbed program: seconds of one trial, their standard deviation, trials left
    and seconds they take, and replicates that make three standard errors smaller than a tenth of the run."""

    run_s: float
    sigma_s: float
    left: int
    left_s: float
    replicates: int


def shown_commands(experiment: Experiment) -> tuple[str, ...]:
    """Every command that a run of the experiment executes, as one would type it, for the user to agree to."""
    found: dict[str, None] = {}
    for treatment in range(experiment.design().runs):
        build, run, environment = experiment.commands(experiment.levels(treatment))
        variables = "".join(f"{name}={shlex.quote(value)} " for name, value in environment.items())
        for words in (build, run):
            if words:
                text = words[0] if experiment.program.shell else shlex.join(words)
                found[(variables if words is run else "") + text] = None
    return tuple(found)


class Runner:
    """One run of an experiment. `pause`, `resume` and `stop` may be called from any thread.

    on_trial : is called with every trial after it is on the disk.
    """

    def __init__(self, experiment: Experiment, on_trial: Callable[[Trial], None] | None = None) -> None:
        self.experiment = experiment
        self._on_trial = on_trial or (lambda _: None)
        self._go = Event()
        self._go.set()
        self._stop = Event()
        self._child: subprocess.Popen[bytes] | None = None

    def pause(self) -> None:
        """Wait after the current trial."""
        self._go.clear()

    def resume(self) -> None:
        self._go.set()

    def stop(self, *, at_once: bool = False) -> None:
        """End after the current trial, or now: that trial is dropped."""
        self._stop.set()
        self._go.set()
        if at_once and self._child is not None:
            _kill(self._child)

    # --- before the trials ---

    def check(self, progress: Progress | None = None) -> None:
        """The base builds, runs and passes its check; so does everything on; macros are in the sources.

        Raises
        ------
        RunError : the first thing that is wrong, with the end of the output.
        Cancelled : by `progress`.
        """
        progress = progress or Progress()
        self._check_macros()
        levels = self.experiment.design().levels
        lowest = tuple(levels.min(axis=0).tolist())
        highest = tuple(levels.max(axis=0).tolist())
        for done, (name, setting) in enumerate((("unperturbed", lowest), ("fully perturbed", highest))):
            progress.step(done, 2, f"checking the {name} program")
            self.build(setting)
            outcome = self._run(setting)
            fault = self._fault(outcome) or _responses(self.experiment.responses, outcome)[1]
            if fault:
                raise RunError(
                    f"the {name} program {fault}",
                    file=self.experiment.folder,
                    where=shlex.join(self.experiment.commands(setting)[1]),
                    hint=_tail(outcome.output),
                )

    def _check_macros(self) -> None:
        """A macro that no source mentions would be a factor without any effect."""
        if not self.experiment.program.sources:
            return
        text = "\n".join(
            (self.experiment.folder / name).read_text(encoding="utf-8", errors="replace")
            for name in self.experiment.program.sources
        )
        for factor in self.experiment.factors:
            for flag in factor.high.flags:
                macro = re.match(r"-D(\w+)", flag)
                if macro and not re.search(rf"\b{macro[1]}\b", text):
                    raise RunError(
                        f"the macro {macro[1]} of factor {factor.name} is in none of the sources",
                        file=self.experiment.folder,
                        hint="correct its flags, or the list of sources",
                    )

    def build_all(self, progress: Progress | None = None) -> None:
        """Build what is not built yet, each in a file of its own.

        Raises
        ------
        RunError : a build fails. Cancelled : by `progress`.
        """
        progress = progress or Progress()
        runs = self.experiment.design().runs
        for treatment in range(runs):
            progress.step(treatment, runs, f"building treatment {treatment + 1} of {runs}")
            self.build(self.experiment.levels(treatment))

    def build(self, levels: Sequence[int]) -> None:
        """Build one treatment unless it is there.

        Raises
        ------
        RunError : the command fails or makes nothing.
        """
        program, folder = self.experiment.program, self.experiment.folder
        if not program.build:
            return
        switch = self.experiment.switches(levels)
        key = self.experiment.build_key((*program.flags, *switch.flags))
        target = folder / BUILDS / key
        if target.exists():
            return
        target.parent.mkdir(exist_ok=True)
        words, _, environment = self.experiment.commands(levels)
        # Built beside and renamed, so that a killed compiler leaves nothing that looks finished.
        part = target.with_name(f"{key}.part{os.getpid()}")
        words = tuple(word.replace(str(Path(BUILDS) / key), str(Path(BUILDS) / part.name)) for word in words)
        try:
            outcome = self._execute(words, environment)
            if outcome.exit or not part.exists():
                what = f"ended with {outcome.exit}" if outcome.exit else f"made no {Path(BUILDS) / key}"
                raise RunError(
                    f"the build command {what}",
                    file=folder,
                    where=shlex.join(words),
                    hint=_tail(outcome.output) or "does it write to {out}?",
                )
            os.replace(part, target)
        finally:
            part.unlink(missing_ok=True)

    def estimate(self, effect: float = 0.1, runs: int = 3) -> Estimate:
        """Run the unperturbed program a few times. `effect`: share of its time that the user cares for.

        Raises
        ------
        RunError : it cannot be built or run.
        """
        lowest = tuple(self.experiment.design().levels.min(axis=0).tolist())
        self.build(lowest)
        times = []
        for _ in range(runs):
            outcome = self._run(lowest)
            fault = self._fault(outcome)
            if fault:
                raise RunError(f"the unperturbed program {fault}", file=self.experiment.folder)
            times.append(outcome.wall_s)
        mean = sum(times) / runs
        sigma = math.sqrt(sum((t - mean) ** 2 for t in times) / max(runs - 1, 1))
        with Journal(self.experiment) as journal:
            state = state_of(self.experiment, journal.trials)
        left = state.planned - len(state.good)
        treatments = self.experiment.design().runs
        wanted = replicates_for(sigma, effect * mean, treatments) if mean > 0 else 1
        return Estimate(mean, sigma, left, left * mean, wanted)

    # --- the trials ---

    def run(self, progress: Progress | None = None) -> State:
        """All trials that are not done yet; where the experiment stands at the end.

        Raises
        ------
        RunError : a build fails. ExperimentError : the journal belongs to something else or is in use.
        Cancelled : by `progress`; the trial that was running is dropped.
        """
        progress = progress or Progress()
        self._stop.clear()
        with Journal(self.experiment) as journal:
            self.build_all(progress)
            sheet = self.experiment.sheet()
            places = {
                (int(r), int(t)): k + 1
                for k, (r, t) in enumerate(zip(sheet.replicate, sheet.treatment, strict=True))
            }
            self._warm_up(int(sheet.treatment[0]), state_of(self.experiment, journal.trials))
            for replicate in range(self.experiment.plan.replicates):
                self._replicate(
                    journal, replicate, [k for k in places if k[0] == replicate], places, progress
                )
                if self._stop.is_set():
                    break
            return state_of(self.experiment, journal.trials)

    def single(self, key: tuple[int, int], order: int) -> Trial:
        """One trial by itself: (replicate, treatment), and its place in the order.

        Raises
        ------
        RunError : it cannot be built or started.
        """
        self.build(self.experiment.levels(key[1]))
        for _ in range(self.experiment.program.warm_up):
            self._run(self.experiment.levels(key[1]))
        trial = self._trial(key, order, 1, Progress())
        assert trial is not None  # nobody stops it
        return trial

    def _warm_up(self, treatment: int, state: State) -> None:
        if len(state.good) < state.planned:
            for _ in range(self.experiment.program.warm_up):
                if not self._stop.is_set():
                    self._run(self.experiment.levels(treatment))

    def _replicate(
        self,
        journal: Journal,
        replicate: int,
        keys: list[tuple[int, int]],
        places: Mapping[tuple[int, int], int],
        progress: Progress,
    ) -> None:
        """The trials of a replicate in their order; failed and disturbed ones again at its end."""
        for attempt in range(1, ATTEMPTS + 1):
            for key in keys:
                state = state_of(self.experiment, journal.trials)
                good = state.good.get(key)
                spent = state.attempts.get(key, 0)
                if (good is not None and good.status == "ok") or key in state.given_up or spent >= attempt:
                    continue
                self._pause(progress)
                if self._stop.is_set():
                    return
                progress.step(len(state.good), state.planned, _left(state, journal.trials))
                trial = self._trial(key, places[key], spent + 1, progress)
                if trial is None:
                    return
                journal.add(trial)
                self._on_trial(trial)

    def _pause(self, progress: Progress) -> None:
        while not self._go.wait(0.1):
            progress.step(0, 0, "paused")

    def _trial(self, key: tuple[int, int], order: int, attempt: int, progress: Progress) -> Trial | None:
        """One trial, or None if it was stopped in the middle."""
        replicate, treatment = key
        levels = self.experiment.levels(treatment)
        start = datetime.now(UTC).isoformat(timespec="milliseconds")
        begun = time.perf_counter()
        outcome = self._run(levels, progress)
        took = time.perf_counter() - begun
        if outcome.exit < 0 and self._stop.is_set():
            return None
        fault = self._fault(outcome)
        values, missing = _responses(self.experiment.responses, outcome)
        fault = fault or missing
        busy = outcome.other_busy_cores > self.experiment.program.busy_limit
        switch = self.experiment.switches(levels)
        return Trial(
            order,
            replicate,
            treatment,
            attempt,
            "failed" if fault else "disturbed" if busy else "ok",
            () if fault else values,
            outcome.exit,
            start,
            took,
            outcome.other_busy_cores,
            outcome.load,
            self.experiment.build_key((*self.experiment.program.flags, *switch.flags)),
            fault,
        )

    def _fault(self, outcome: Outcome) -> str:
        """What is wrong with a run, in words; "" if nothing is."""
        program = self.experiment.program
        if outcome.timed_out:
            return f"ran longer than {program.time_limit_s:g} s"
        if outcome.exit < 0:
            return f"was ended by signal {-outcome.exit}"
        if outcome.exit:
            return f"ended with status {outcome.exit}"
        if program.check and not re.search(program.check, outcome.output):
            return f"did not print what matches {program.check!r}"
        return ""

    def _run(self, levels: Sequence[int], progress: Progress | None = None) -> Outcome:
        _, words, environment = self.experiment.commands(levels)
        return self._execute(words, environment, progress, self.experiment.program.time_limit_s)

    def _execute(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        progress: Progress | None = None,
        limit: float | None = None,
    ) -> Outcome:
        shell = self.experiment.program.shell
        with tempfile.TemporaryFile() as output:
            busy, cpu_before = psutil.cpu_times(), os.times()
            begun = time.perf_counter()
            try:
                child = subprocess.Popen(
                    words[0] if shell else list(words),
                    shell=shell,
                    cwd=self.experiment.folder,
                    env={**os.environ, **environment},
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except OSError as error:
                raise RunError(
                    f"{words[0]} cannot be started ({error.strerror})",
                    file=self.experiment.folder,
                    hint="is it installed and built?",
                ) from None
            self._child = child
            late = Event()

            def too_long() -> None:
                late.set()
                _kill(child)

            timer = Timer(limit, too_long) if limit else None
            if timer is not None:
                timer.daemon = True
                timer.start()
            try:
                status, cpu, memory = _wait(child, progress)
            except BaseException:
                _kill(child)
                child.wait()
                raise
            finally:
                self._child = None
                if timer is not None:
                    timer.cancel()
            wall = time.perf_counter() - begun
            own = os.times()
            others = _busy_cores(busy, psutil.cpu_times(), wall, cpu, cpu_before, own)
            output.seek(0)
            text = output.read(OUTPUT).decode("utf-8", "replace")
        return Outcome(status, wall, cpu, memory, text, late.is_set(), others, psutil.getloadavg()[0])


def _wait(child: subprocess.Popen[bytes], progress: Progress | None) -> tuple[int, float, float]:
    """Exit status, CPU seconds and peak memory. The end is seen at once: waiting is no polling, but for
    the look at `progress` ten times a second, which costs the machine nothing to speak of."""
    if not hasattr(os, "wait4"):
        while True:
            try:
                return child.wait(0.1), math.nan, math.nan
            except subprocess.TimeoutExpired:
                if progress is not None and progress.cancelled:
                    raise Cancelled from None
    watch = None
    if progress is not None:
        over = Event()

        def look() -> None:
            while not over.wait(0.1):
                if progress.cancelled:
                    _kill(child)
                    return

        watch = Thread(target=look, daemon=True)
        watch.start()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if watch is not None:
        over.set()
        watch.join()
    if progress is not None and progress.cancelled:
        raise Cancelled
    memory = float(usage.ru_maxrss) * (1 if os.uname().sysname == "Darwin" else 1024)
    return child.returncode, usage.ru_utime + usage.ru_stime, memory


def _kill(child: subprocess.Popen[bytes]) -> None:
    """The program and whatever it started."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(child.pid, signal.SIGKILL)
        else:
            child.kill()
    except (ProcessLookupError, PermissionError):
        pass


def _busy_cores(
    before: object, after: object, wall: float, own: float, t0: os.times_result, t1: os.times_result
) -> float:
    """Cores that others kept busy meanwhile: all busy time, less the program's and ours."""
    if not wall > 0 or not math.isfinite(own):
        return math.nan
    idle = {"idle", "iowait", "guest", "guest_nice"}
    names = [name for name in getattr(before, "_fields", ()) if name not in idle]
    busy = sum(getattr(after, name) - getattr(before, name) for name in names)
    ours = t1.user + t1.system - t0.user - t0.system
    # The counters move in hundredths of a second.
    return max(0.0, busy - own - ours) / wall


def _responses(wanted: Sequence[Response], outcome: Outcome) -> tuple[tuple[float, ...], str]:
    found = []
    for response in wanted:
        if response.kind == "wall":
            found.append(outcome.wall_s)
        elif response.kind == "cpu":
            found.append(outcome.cpu_s)
        elif response.kind == "memory":
            found.append(outcome.memory)
        else:
            match = re.search(response.pattern, outcome.output)
            try:
                value = float(match[1]) if match else math.nan
            except ValueError:
                value = math.nan
            if not math.isfinite(value):
                return (), f"printed no number that matches {response.pattern!r}"
            found.append(value)
    return tuple(found), ""


def _tail(output: str) -> str:
    lines = [line for line in output[-_TAIL:].splitlines() if line.strip()]
    return " | ".join(lines[-6:])


def _left(state: State, done: Sequence[Trial]) -> str:
    """``trial 12 of 64, about 3 min left``."""
    times = [trial.duration_s for trial in done if math.isfinite(trial.duration_s)]
    text = f"trial {len(state.good) + 1} of {state.planned}"
    if not times:
        return text
    left = (state.planned - len(state.good)) * sum(times) / len(times)
    return f"{text}, about {left:.0f} s left" if left < 120 else f"{text}, about {left / 60:.0f} min left"
