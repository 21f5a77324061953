"""Runs an SPT experiment: builds every treatment once, then one trial at a time in random order.

Every trial is on disk before the next begins, so a kill at any moment loses only the trial that was running.
The caller has shown the commands to the user, who agreed.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import groupby, zip_longest
from pathlib import Path
from threading import Event, Thread
from typing import IO

import psutil

from desktop import stopping
from desktop.core.power import replicates_for
from desktop.data.atomic import into_place
from desktop.data.experiment import ATTEMPTS, BUILDS, Experiment, Journal, Response, State, Trial, state_of
from desktop.data.guard import guard
from desktop.environment import user_environment
from desktop.errors import RunError, reason
from desktop.progress import Cancelled, Progress

#: Bytes of a program's output that are kept, and limit after which the program is ended.
OUTPUT, MOST_OUTPUT = 1 << 20, 64 << 20
_TAIL = 1200
_TICK = 0.01
#: Runs of an estimate.
ESTIMATES = 3
#: Number of measurements of what the machine does by itself, and seconds of each.
_BASES, _BASE_S = 8, 0.25


@dataclass(frozen=True)
class Outcome:
    """The result of one run of a command. `cpu_s`, `memory`: of it and its children; NaN if unknown. `ended`:
    why it was stopped early; "" if it was not."""

    exit: int
    wall_s: float
    cpu_s: float
    memory: float
    output: str
    ended: str
    other_busy_cores: float
    load: float


@dataclass(frozen=True)
class Estimate:
    """From a few runs of the unperturbed program: seconds of one trial, their standard deviation, trials left
    and their seconds, and replicates that make three standard errors smaller than a tenth of the run with
    90 % confidence: the standard deviation of `ESTIMATES` runs is uncertain, so its upper bound is used."""

    run_s: float
    sigma_s: float
    left: int
    left_s: float
    replicates: int


def shown_commands(experiment: Experiment) -> tuple[str, ...]:
    """Every command that a run of the experiment executes, as typed in a shell, for the user to agree to."""
    return commands_of((experiment, experiment.levels(t)) for t in range(experiment.design().runs))


def commands_of(settings: Iterable[tuple[Experiment, Sequence[int]]]) -> tuple[str, ...]:
    """Commands of some levels of experiments, each once, as typed in a shell."""
    commands: dict[str, None] = {}
    for experiment, levels in settings:
        build, run, environment = experiment.commands(levels)
        variables = "".join(f"{name}={shlex.quote(value)} " for name, value in environment.items())
        for words in (build, run):
            if words:
                text = words[0] if experiment.program.shell else shlex.join(words)
                commands[(variables if words is run else "") + text] = None
    return tuple(commands)


class Runner:
    """One run of an experiment. `pause`, `resume` and `stop` may be called from any thread.

    on_trial : is called with every trial after it is on disk.
    """

    def __init__(self, experiment: Experiment, on_trial: Callable[[Trial], None] | None = None) -> None:
        self.experiment = experiment
        self._on_trial = on_trial or (lambda _: None)
        self._go = Event()
        self._go.set()
        self._stop = Event()
        self._now = Event()
        self._child: subprocess.Popen[bytes] | None = None
        self._base = math.nan  # cores that others use by themselves, once measured

    def pause(self) -> None:
        """Wait after the current trial."""
        self._go.clear()

    def resume(self) -> None:
        self._go.set()

    def stop(self, *, at_once: bool = False) -> None:
        """Stop after the current trial, or at once: then that trial is dropped."""
        child = self._child
        if at_once:
            self._now.set()
        self._stop.set()
        self._go.set()
        if at_once and child is not None:
            _kill(child)

    # --- before the trials ---

    def check(self, progress: Progress | None = None) -> None:
        """Check that the base builds, runs and passes its check; that the program with all factors does too,
        and prints the same if there is no check of the output; and that macros are in the sources.

        Raises
        ------
        RunError : the first fault found, with the end of the output.
        ExperimentError : the journal belongs to something else or is in use.
        Cancelled : by `progress`, or stopped at once.
        """
        progress = progress or Progress()
        # Nothing may run at the same time as the trials of another process.
        with Journal(self.experiment):
            self._check_macros()
            self._check_builds(progress)
            lowest = self.experiment.lowest
            highest = tuple(self.experiment.design().levels.max(axis=0).tolist())
            outputs = []
            for done, (name, setting) in enumerate(
                (("unperturbed", lowest), ("unperturbed", lowest), ("fully perturbed", highest))
            ):
                progress.step(done, 3, f"checking the {name} program")
                self.build(setting, progress)
                outcome = self._run(setting, progress)
                _, fault = self._read(outcome)
                if fault:
                    raise RunError(
                        f"the {name} program {fault}",
                        file=self.experiment.folder,
                        where=shlex.join(self.experiment.commands(setting)[1]),
                        hint=_tail(outcome.output),
                    )
                outputs.append(self._lasting(outcome.output))
            # What differs between two runs of the same program is no evidence.
            if not self.experiment.program.check and outputs[0] == outputs[1] != outputs[2]:
                self._differs(outputs[0], outputs[2], highest)

    def _lasting(self, output: str) -> list[str]:
        """Lines that should not depend on the delays: without the responses, and without decimal numbers,
        which are times more often than results."""
        for response in self.experiment.responses:
            if response.kind == "output":
                output = re.sub(response.pattern, "", output)
        return re.sub(r"\d+\.\d*(?:[eE][+-]?\d+)?", "", output).splitlines()

    def _differs(self, base: list[str], other: list[str], setting: tuple[int, ...]) -> None:
        was, now = next((a, b) for a, b in zip_longest(base, other, fillvalue="nothing") if a != b)
        raise RunError(
            f"the fully perturbed program prints {now.strip()[:80]!r} where the unperturbed prints "
            f"{was.strip()[:80]!r}",
            file=self.experiment.folder,
            where=shlex.join(self.experiment.commands(setting)[1]),
            hint="a delay must not change results; if these are none, describe a correct run in `check`",
        )

    def _check_macros(self) -> None:
        """Check that a source mentions every macro; otherwise the factor would have no effect."""
        if not self.experiment.program.sources:
            return
        text = "\n".join(
            (self.experiment.folder / name).read_text(encoding="utf-8", errors="replace")  # hashed before
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

    def _check_builds(self, progress: Progress) -> None:
        """Check that the flags of every factor change the build; otherwise it could have no effect."""
        experiment = self.experiment
        lowest = experiment.lowest
        base = self._digest(lowest)
        places = [j for j, one in enumerate(experiment.factors) if one.high.flags != one.low.flags]
        for done, j in enumerate(places if experiment.program.build else ()):
            name = experiment.names[j]
            progress.step(done, len(places), f"building with {name} alone")
            alone = experiment.raised(j)
            for levels in (lowest, alone):
                self.build(levels, progress)
            base = base or self._digest(lowest)
            if self._digest(alone) == base:
                raise self._same(f"{name} alone", alone, "nothing", lowest)

    def _digest(self, levels: Sequence[int]) -> bytes:
        """Digest of the build of a treatment; empty if it is missing."""
        target = self._target(levels)
        return hashlib.sha256(target.read_bytes()).digest() if target.is_file() else b""

    def _target(self, levels: Sequence[int]) -> Path:
        flags = (*self.experiment.program.flags, *self.experiment.switches(levels).flags)
        return self.experiment.folder / BUILDS / self.experiment.build_key(flags)

    def _same(self, name: str, levels: Sequence[int], other: str, others: Sequence[int]) -> RunError:
        """The error that two builds with different flags are the same file."""
        flags, less = (set(self.experiment.switches(one).flags) for one in (levels, others))
        differ = shlex.join(sorted(flags ^ less))
        return RunError(
            f"the builds of {name} and of {other} are the same, byte for byte, though {differ} is not",
            file=self.experiment.folder,
            where=shlex.join(self.experiment.commands(levels)[0]),
            hint="do the flags reach the compiler, and does it compile everything again?",
        )

    def build_all(self, progress: Progress | None = None) -> None:
        """Build all treatments that are not built yet, each into its own file.

        Raises
        ------
        RunError : a build fails, or two with different flags are the same.
        """
        progress = progress or Progress()
        runs = self.experiment.design().runs
        for treatment in range(runs):
            progress.step(treatment, runs, f"building treatment {treatment + 1} of {runs}")
            if self._stop.is_set():
                return
            self.build(self.experiment.levels(treatment), progress)
        if not self.experiment.program.build:
            return
        first_of: dict[bytes, int] = {}
        for treatment in range(runs):
            levels = self.experiment.levels(treatment)
            before = first_of.setdefault(self._digest(levels), treatment)
            others = self.experiment.levels(before)
            if self._target(others) != self._target(levels):
                raise self._same(f"treatment {treatment + 1}", levels, f"treatment {before + 1}", others)

    def build(self, levels: Sequence[int], progress: Progress | None = None) -> None:
        """Build one treatment unless it exists.

        Raises
        ------
        RunError : the command fails or makes no file. Cancelled : by `progress`, or stopped at once.
        """
        program, folder = self.experiment.program, self.experiment.folder
        if not program.build:
            return
        target = self._target(levels)
        key = target.name
        if target.exists():
            return
        target.parent.mkdir(exist_ok=True)
        words = self.experiment.commands(levels)[0]
        # Built under another name and renamed, so that a killed compiler leaves nothing that looks finished.
        part = target.with_name(f"{key}.part{os.getpid()}")
        words = tuple(word.replace(str(Path(BUILDS) / key), str(Path(BUILDS) / part.name)) for word in words)
        product = folder / program.product if program.product else part
        remove = partial(part.unlink, missing_ok=True)
        stopping.leave_no(part, remove)
        try:
            if product != part:
                product.unlink(missing_ok=True)  # left by another build
            outcome = self._execute(words, {}, progress)
            if outcome.exit or not product.exists():
                expected = program.product or Path(BUILDS) / key
                failure = outcome.ended or (
                    f"ended with {outcome.exit}" if outcome.exit else f"made no {expected}"
                )
                raise RunError(
                    f"the build command {failure}",
                    file=folder,
                    where=shlex.join(words),
                    hint=_tail(outcome.output) or "does it write to {out}, or is that its product?",
                )
            if product != part:
                shutil.copy2(product, part)
            into_place(part, target)
        finally:
            remove()
            stopping.left(part)

    def estimate(self, progress: Progress | None = None) -> Estimate:
        """Run the unperturbed program a few times.

        Raises
        ------
        RunError : it cannot be built or run. ExperimentError : the journal belongs to something else or is
        in use. Cancelled : by `progress`, or stopped at once.
        """
        lowest = self.experiment.lowest
        times = []
        with Journal(self.experiment) as journal:
            state = state_of(self.experiment, journal.trials)
            self.build(lowest, progress)
            for _ in range(ESTIMATES):
                outcome = self._run(lowest, progress)
                if fault := self._fault(outcome):
                    raise RunError(f"the unperturbed program {fault}", file=self.experiment.folder)
                times.append(outcome.wall_s)
        mean, sigma = statistics.mean(times), statistics.stdev(times)
        left = state.planned - len(state.good)
        needed = replicates_for(sigma, 0.1 * mean, self.experiment.design().runs, ESTIMATES - 1)
        return Estimate(mean, sigma, left, left * mean, needed)

    # --- the trials ---

    def run(self, progress: Progress | None = None) -> State:
        """Run all trials that are not done yet; returns where the experiment stands at the end.

        Raises
        ------
        RunError : a build fails. ExperimentError : the journal belongs to something else or is in use.
        Cancelled : by `progress`; the trial that was running is dropped.
        """
        progress = progress or Progress()
        with Journal(self.experiment) as journal:
            self.build_all(progress)
            planned = self.experiment.planned()
            self.measure_base(progress)
            try:
                state = state_of(self.experiment, journal.trials)
                if len(state.good) < state.planned:
                    self._warm_up(planned[1][1], progress)
                for _, trials in groupby(planned.items(), key=lambda one: one[1][0]):
                    if not self._stop.is_set():
                        self._replicate(journal, list(trials), progress)
            except Cancelled:
                if progress.cancelled:
                    raise
            return state_of(self.experiment, journal.trials)

    @property
    def busy_limit(self) -> float:
        """Cores that others may use during a trial: what they used before the first one, plus what the user
        allows. On a machine that is never quiet a fixed limit would be meaningless."""
        return self.experiment.program.busy_limit + (self._base if self._base > 0 else 0.0)

    def measure_base(self, progress: Progress) -> None:
        """Measure what the machine does by itself, in short intervals while no trial runs: the mean, and the
        spread of the intervals."""
        if self.experiment.program.busy_limit >= (os.cpu_count() or 1) or math.isfinite(self._base):
            return
        busy_cores = []
        for done in range(_BASES):
            progress.step(done, _BASES, "measuring what else the machine does")
            busy, before, start = psutil.cpu_times(), os.times(), time.perf_counter()
            if self._stop.wait(_BASE_S):
                return
            wall = time.perf_counter() - start
            busy_cores.append(_busy_cores(busy, psutil.cpu_times(), wall, 0.0, before, os.times()))
        self._base = statistics.mean(busy_cores) + 2 * statistics.stdev(busy_cores)

    def single(self, key: tuple[int, int], order: int) -> Trial:
        """One trial by itself: (replicate, treatment), and its place in the order.

        Raises
        ------
        RunError : it cannot be built or started.
        """
        self.build(self.experiment.levels(key[1]))
        self.measure_base(Progress())
        self._warm_up(key[1])
        return self._trial(key, order, 1, Progress())

    def one(self, experiment: Experiment, levels: Sequence[int], progress: Progress) -> tuple[float, ...]:
        """Responses of a run that is no trial, of an experiment that differs in its delays. A disturbed run
        is repeated like that of a trial, and the quietest counts.

        Raises
        ------
        RunError : it cannot be built, or its run fails.
        Cancelled : by `progress`, or stopped.
        """
        original, self.experiment = self.experiment, experiment
        best: tuple[float, tuple[float, ...]] = math.inf, ()
        try:
            for _ in range(ATTEMPTS):
                self._pause(progress)
                if self._stop.is_set():
                    raise Cancelled
                self.build(levels, progress)
                outcome = self._run(levels, progress)
                values, fault = self._read(outcome)
                if fault:
                    words = shlex.join(experiment.commands(levels)[1])
                    raise RunError(f"the program {fault}", file=experiment.folder, where=words)
                if not best[1] or outcome.other_busy_cores < best[0]:
                    best = outcome.other_busy_cores, values
                if not outcome.other_busy_cores > self.busy_limit:
                    break
            return best[1]
        finally:
            self.experiment = original

    def _warm_up(self, treatment: int, progress: Progress | None = None) -> None:
        for _ in range(self.experiment.program.warm_up):
            if not self._stop.is_set():
                self._run(self.experiment.levels(treatment), progress)

    def _replicate(
        self, journal: Journal, trials: list[tuple[int, tuple[int, int]]], progress: Progress
    ) -> None:
        """Run the trials of a replicate in order, and failed and disturbed ones again at its end."""
        for attempt in range(1, ATTEMPTS + 1):
            for order, key in trials:
                state = state_of(self.experiment, journal.trials)
                good = state.good.get(key)
                spent = state.attempts.get(key, 0)
                if (good is not None and good.status == "ok") or key in state.given_up or spent >= attempt:
                    continue
                self._pause(progress)
                if self._stop.is_set():
                    return
                progress.step(len(state.good), state.planned, _left(state, journal.trials))
                trial = self._trial(key, order, spent + 1, progress)
                journal.add(trial)
                self._on_trial(trial)

    def _pause(self, progress: Progress) -> None:
        while not self._go.wait(0.1):
            progress.step(0, 0, "paused")

    def _trial(self, key: tuple[int, int], order: int, attempt: int, progress: Progress) -> Trial:
        replicate, treatment = key
        levels = self.experiment.levels(treatment)
        start = datetime.now(UTC).isoformat(timespec="milliseconds")
        since = time.perf_counter()
        outcome = self._run(levels, progress)
        took = time.perf_counter() - since
        values, fault = self._read(outcome)
        limit = self.busy_limit
        busy = outcome.other_busy_cores > limit
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
            self._target(levels).name,
            fault,
            limit,
            clock_mhz(),
        )

    def _read(self, outcome: Outcome) -> tuple[tuple[float, ...], str]:
        """The responses of a run, and a description of its fault; "" if there is none."""
        values, missing = _responses(self.experiment.responses, outcome)
        return values, self._fault(outcome) or missing

    def _fault(self, outcome: Outcome) -> str:
        """A description of the fault of a run; "" if there is none."""
        program = self.experiment.program
        if outcome.ended:
            return outcome.ended
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
        progress = progress or Progress()
        guarded = guard()
        with tempfile.TemporaryFile() as output:
            busy, cpu_before = psutil.cpu_times(), os.times()
            start = time.perf_counter()
            try:
                with stopping.making:
                    child = subprocess.Popen(
                        words[0] if self.experiment.program.shell else list(words),
                        shell=self.experiment.program.shell,
                        cwd=self.experiment.folder,
                        env={**user_environment(), **environment},
                        stdin=subprocess.DEVNULL,
                        stdout=output,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,
                    )
                    stopping.leave_no(child, partial(_kill, child))
            except (OSError, ValueError) as error:
                raise RunError(
                    f"{words[0]} cannot be started ({reason(error, 'its words are invalid for a program')})",
                    file=self.experiment.folder,
                    hint="is it installed and built?",
                ) from None
            if guarded is not None:
                guarded.keep(child.pid)
            self._child = child
            if self._now.is_set():  # requested before there was anything to stop
                _kill(child)
            watch = _Watch(child, output.fileno(), limit, progress)
            ended = start

            def over() -> None:
                nonlocal ended
                ended = time.perf_counter()
                self._child = None
                watch.end()
                _kill(child)  # leftover processes would disturb the next trial
                stopping.left(child)
                if guarded is not None:
                    guarded.drop(child.pid)

            try:
                watch.start()
                status, cpu, memory = _wait(child, over)
            except BaseException:
                over()
                child.wait()
                raise
            if progress.cancelled or (status < 0 and self._now.is_set()):
                raise Cancelled
            wall = ended - start
            others = _busy_cores(busy, psutil.cpu_times(), wall, cpu, cpu_before, os.times())
            text = _text(output)
        return Outcome(status, wall, cpu, memory, text, watch.why, others, psutil.getloadavg()[0])


class _Watch(Thread):
    """Checks a program ten times a second, at negligible cost, and ends it when requested, when it runs too
    long, or when it prints too much. `why`: the reason; "" if it was not ended."""

    def __init__(
        self, child: subprocess.Popen[bytes], output: int, limit: float | None, progress: Progress
    ) -> None:
        super().__init__(daemon=True)
        self.why = ""
        self._child, self._output, self._limit, self._progress = child, output, limit, progress
        self._over = Event()

    def run(self) -> None:
        last = time.monotonic() + (self._limit or math.inf)
        while not self._over.wait(max(min(0.1, last - time.monotonic()), 0.001)):
            if time.monotonic() >= last:
                self.why = f"ran longer than {self._limit:g} s"
            elif os.fstat(self._output).st_size > MOST_OUTPUT:
                self.why = f"printed more than {MOST_OUTPUT >> 20} MB"
            elif not self._progress.cancelled:
                continue
            _kill(self._child)
            return

    def end(self) -> None:
        self._over.set()
        if self.is_alive():
            self.join()


def _wait(child: subprocess.Popen[bytes], over: Callable[[], None]) -> tuple[int, float, float]:
    """Exit status, CPU seconds and peak memory, as soon as the process ends, without polling.

    `over` is called as soon as it has ended; if the system allows, before its process number can be reused.
    """
    if hasattr(os, "waitid"):
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        over()
    if not hasattr(os, "wait4"):
        while child.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):  # other threads may kill it meanwhile
                child.wait(0.1)
        over()
        return child.returncode, math.nan, math.nan
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if not hasattr(os, "waitid"):
        over()
    memory = float(usage.ru_maxrss) * (1 if os.uname().sysname == "Darwin" else 1024)
    return child.returncode, usage.ru_utime + usage.ru_stime, memory


def _text(output: IO[bytes]) -> str:
    """The output; if it is long, its beginning and end."""
    size = os.fstat(output.fileno()).st_size
    output.seek(0)
    if size <= OUTPUT:
        return output.read().decode("utf-8", "replace")
    head = output.read(OUTPUT // 2)
    output.seek(size - OUTPUT // 2)
    return (head + b"\n...\n" + output.read(OUTPUT // 2)).decode("utf-8", "replace")


def _kill(child: subprocess.Popen[bytes]) -> None:
    """Kill the program and everything it started."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(child.pid, signal.SIGKILL)
        else:
            child.kill()
    except (ProcessLookupError, PermissionError):
        pass


def _busy_cores(
    before: object, after: object, wall: float, used: float, t0: os.times_result, t1: os.times_result
) -> float:
    """Cores that others used meanwhile: all busy time, less that of the program and of this process."""
    if not wall > 0 or not math.isfinite(used):
        return math.nan
    idle = {"idle", "iowait", "guest", "guest_nice"}
    names = [name for name in getattr(before, "_fields", ()) if name not in idle]
    busy = sum(getattr(after, name) - getattr(before, name) for name in names)
    ours = t1.user + t1.system - t0.user - t0.system
    # The counters advance in hundredths of a second, which is the uncertainty at either end.
    return max(0.0, float(busy) - used - ours - 2 * _TICK) / wall


def clock_mhz() -> float:
    """Current mean frequency of the processors; NaN if the system does not tell."""
    try:
        frequency = psutil.cpu_freq()
    except (OSError, NotImplementedError, AttributeError):
        return math.nan
    return float(frequency.current) if frequency is not None and frequency.current else math.nan


def _responses(responses: Sequence[Response], outcome: Outcome) -> tuple[tuple[float, ...], str]:
    values = []
    measured = {"wall": outcome.wall_s, "cpu": outcome.cpu_s, "memory": outcome.memory}
    for response in responses:
        value = measured.get(response.kind, math.nan)
        if response.kind == "output":
            if match := re.search(response.pattern, outcome.output):
                with contextlib.suppress(ValueError):
                    value = float(match[1])
            if not math.isfinite(value):
                return (), f"printed no number that matches {response.pattern!r}"
        values.append(value)
    return tuple(values), ""


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
