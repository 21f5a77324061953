"""How often intervals of the phase model hold, and programs on a simulated machine with a p held out.

    python -m tests.benchmarks.phase_scaling [--runs N] [--fresh N] [--extrap PYTHON] [--systems N]
        [--simgrid FOLDER]

Prints Markdown. `--runs`: how often each law is simulated with each noise. `--fresh`: so many programs with
each noise of laws that played no part when priors were chosen, every one drawn anew; `--extrap`: beside the
predictions of Extra-P, by an interpreter that has it. `--systems`: so many programs on two systems with each
noise. `--simgrid`: also runs
tests/programs/scaling.c on a machine that SimGrid simulates (smpicc and smpirun, libsimgrid-dev of Debian),
with its traces in FOLDER; where SimGrid is not there, that is said.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from desktop.core.phase_model import ScalingRuns, model_phases
from desktop.core.phase_systems import model_systems
from desktop.data.phase_scaling import Traced, gather
from tests.benchmarks.factor_model import ask_extrap
from tests.data_layer.otf2_writer import Event, Place, write

Floats = NDArray[np.float64]
Laws = tuple[Callable[[Floats], Floats], ...]
#: Three phases each; seconds on p processors.
LAWS: dict[str, Laws] = {
    "serial parts": (lambda p: 10 / p + 0.3, lambda p: 30 / p + 0.05, lambda p: 5 / p + 1.0),
    "log p": (lambda p: 20 / p + 0.2 * np.log(p), lambda p: 8 / p, lambda p: 3 / p + 0.4 + 0.1 * np.log(p)),
    "1/sqrt(p)": (lambda p: 10 / np.sqrt(p), lambda p: 30 / p + 1 / np.sqrt(p), lambda p: 0.5 + 0 * p),
    "p, hardly seen": (lambda p: 40 / p + 0.01 * p, lambda p: 10 / p + 0.1, lambda p: 6 / p + 0.02 * p + 0.1),
}
#: Relative noise of each phase, and of where the first of them ends, in parts of the run.
NOISES = {"2 %": (0.02, 0.0), "10 %": (0.1, 0.0), "1 %, a breakpoint 3 %": (0.01, 0.03)}
#: Of the largest p: where is predicted.
TIMES = (2.0, 8.0)
#: Of programs of fresh laws: p of the runs, and where is predicted.
FRESH_P, FRESH_AT = 2.0 ** np.arange(1, 6), 2.0 ** np.arange(6, 9)
FRESH_NOISES = (0.01, 0.03, 0.05)
PROGRAMS, SIZES = ("heat", "cg", "fft"), (2, 4, 8, 16, 32, 64)
_PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="node-" suffix="" radical="0-127" speed="1Gf" bw="1GBps" lat="10us" bb_bw="20GBps"
           bb_lat="5us"/>
</platform>
"""


def drawn(laws: Laws, p: Floats, noise: float, shift: float, rng: np.random.Generator) -> Floats:
    """(R, phases) seconds."""
    made = np.stack([law(p) for law in laws], axis=1)
    made = made * np.exp(noise * rng.standard_normal(made.shape))
    moved = shift * made.sum(axis=1) * rng.standard_normal(p.size)
    made[:, 0] += moved
    made[:, 1] -= moved
    return np.maximum(made, 1e-3)


def covered(laws: Laws, p: Floats, noise: tuple[float, float], runs: int) -> list[str]:
    """At each of `TIMES` the largest p: percent of new phases and runs in their intervals, and half of the
    widths of the runs' in percent."""
    rng = np.random.default_rng(1)
    found: list[tuple[list[float], list[float], list[float]]] = [([], [], []) for _ in TIMES]
    at = p[-1] * np.array(TIMES)
    for _ in range(runs):
        data = ScalingRuns(("",) * p.size, ("a", "b", "c"), p, drawn(laws, p, *noise, rng))
        phases, whole = model_phases(data).durations(at)
        new = drawn(laws, at, *noise, rng)
        for k, (of_phases, of_runs, width) in enumerate(found):
            low, high = np.quantile(phases[:, :, k], (0.025, 0.975), axis=0)
            of_phases.append(float(((low <= new[k]) & (new[k] <= high)).mean()))
            low, high = np.quantile(whole[:, k], (0.025, 0.975))
            of_runs.append(float(low <= new[k].sum() <= high))
            width.append(float(np.log(high / low) / 2))
    return ["{:.0f}, {:.0f} | {:.0f} %".format(*(100 * float(np.mean(x)) for x in one)) for one in found]


def coverage(runs: int) -> None:
    print("| law, runs on | noise | at twice the largest p: phases, run | width | at eight times | width |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, laws in LAWS.items():
        for p in ((2.0, 4.0, 8.0), (2.0, 4.0, 8.0, 16.0), (2.0, 4.0, 8.0, 16.0, 32.0, 64.0)):
            for words, noise in NOISES.items():
                cells = covered(laws, np.array(p), noise, runs)
                print(f"| {name}, 2 to {p[-1]:.0f} | {words} | {' | '.join(cells)} |", flush=True)


def _fresh(rng: np.random.Generator, kind: str) -> Callable[[Floats], Floats]:
    """A phase: its falling part takes 2 to 20 s on the least p, the other 1 to 50 % of that on the largest
    (each share as likely by its logarithm)."""
    last, work = FRESH_P[-1], FRESH_P[0] * 10 ** rng.uniform(0.3, 1.3)
    low, high = (work / last * 10 ** rng.uniform(-2.0, -0.3, 2)).tolist()
    seen, unseen = last * 2 ** rng.uniform(-2.0, -1.0), last * 2 ** rng.uniform(0.0, 1.0)
    laws: dict[str, Callable[[Floats], Floats]] = {
        "a + b/p + c log(p)": lambda p: low + work / p + high * np.log(p) / np.log(last),
        "a + b/p + c p": lambda p: low + work / p + high * p / last,
        "b/p + c sqrt(p)": lambda p: work / p + high * np.sqrt(p / last),
        "b/p + c log(p)^2": lambda p: work / p + high * (np.log(p) / np.log(last)) ** 2,
        "a + b/p^(2/3)": lambda p: low + work / p ** (2 / 3),
        "b/p + c, growing from a p that was run": lambda p: work / p + high * np.maximum(1.0, p / seen),
        "b/p + c, growing from a p beyond": lambda p: work / p + high * np.maximum(1.0, p / unseen),
    }
    return laws[kind]


FRESH_LAWS = (
    "a + b/p + c log(p)", "a + b/p + c p", "b/p + c sqrt(p)", "b/p + c log(p)^2", "a + b/p^(2/3)",
    "b/p + c, growing from a p that was run", "b/p + c, growing from a p beyond",
)  # fmt: skip


def fresh(programs: int, python: str | None, seed: int = 11) -> None:
    """Programs of three phases of one kind of law: how many new phases and runs lie in their intervals, and
    errors of the medians beside those of Extra-P (medians over phases and runs)."""
    print("\n| law | noise | at 2, 4, 8 times the largest p: phases within | runs within | error | Extra-P |")
    print("| --- | --- | --- | --- | --- | --- |")
    for number, kind in enumerate(FRESH_LAWS):
        for noise in FRESH_NOISES:
            rng = np.random.default_rng([seed, number, round(1000 * noise)])
            inside, of_runs, errors, jobs, truths = [], [], [], [], []
            for _ in range(programs):
                laws = tuple(_fresh(rng, kind) for _ in range(3))
                data = ScalingRuns(
                    ("",) * FRESH_P.size, ("a", "b", "c"), FRESH_P, drawn(laws, FRESH_P, noise, 0.0, rng)
                )
                draws, whole = model_phases(data).durations(FRESH_AT)
                new = drawn(laws, FRESH_AT, noise, 0.0, rng)
                low, middle, high = np.quantile(draws, (0.025, 0.5, 0.975), axis=0)
                inside.append((low <= new.T) & (high >= new.T))
                low, at, high = np.quantile(whole, (0.025, 0.5, 0.975), axis=0)
                of_runs.append((low <= new.sum(axis=1)) & (new.sum(axis=1) <= high))
                clean = np.stack([law(FRESH_AT) for law in laws])
                truths.append(np.concatenate([clean, clean.sum(axis=0)[None]]))
                errors.append(np.abs(np.concatenate([middle, at[None]]) / truths[-1] - 1))
                jobs += [
                    {"falling": True, "p": FRESH_P.tolist(), "value": one.tolist(), "at": FRESH_AT.tolist()}
                    for one in (*data.duration.T, data.duration.sum(axis=1))
                ]
            peer = "not asked"
            if python is not None:
                said = np.array(ask_extrap(python, jobs)).reshape(programs, 4, FRESH_AT.size)
                peer = _percents(np.median(np.abs(said / np.array(truths) - 1), axis=(0, 1)), " %")
            print(
                f"| {kind} | {100 * noise:.0f} % | {_percents(np.mean(inside, axis=(0, 1)))} "
                f"| {_percents(np.mean(of_runs, axis=0))} "
                f"| {_percents(np.median(errors, axis=(0, 1)), ' %')} | {peer} |",
                flush=True,
            )


#: p on A, p on B, relative noise, and by how much the speed of a phase on B is off that of the others.
SYSTEMS = {
    "both on 2 to 16": ((2.0, 4.0, 8.0, 16.0), (2.0, 4.0, 8.0, 16.0), 0.02, 0.0),
    "both on 2 to 16, noise 5 %": ((2.0, 4.0, 8.0, 16.0), (2.0, 4.0, 8.0, 16.0), 0.05, 0.0),
    "A on 2 to 32, B on 2 and 4": ((2.0, 4.0, 8.0, 16.0, 32.0), (2.0, 4.0), 0.02, 0.0),
    "A on 2 to 32, B on 2 to 8, phases 10 % off": ((2.0, 4.0, 8.0, 16.0, 32.0), (2.0, 4.0, 8.0), 0.02, 0.1),
    "both on 2 to 16, phases 30 % off": ((2.0, 4.0, 8.0, 16.0), (2.0, 4.0, 8.0, 16.0), 0.02, 0.3),
}


def on_systems(programs: int) -> None:
    """Programs of three phases a/p + b, B up to twice as fast or slow in each: new runs on each system
    at twice and four times the largest p of all, speeds, and the ratio of run times at 4 and 16 p."""
    print("\n| runs | noise | one model | phases, runs within | width | speeds within | ratio within |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for number, (name, (on_a, on_b, noise, off)) in enumerate(SYSTEMS.items()):
        rng = np.random.default_rng([5, number])
        held: list[list[float]] = [[] for _ in range(5)]
        joint = 0
        for _ in range(programs):
            speed, apart = np.exp(rng.uniform(-0.7, 0.7, 2)), np.exp(off * rng.standard_normal(3))
            work = np.array([[40, 0.5], [30, 0.05], [5, 1.0]]) * np.exp(0.5 * rng.standard_normal((3, 2)))

            def law(
                p: Floats, s: int, speed: Floats = speed, apart: Floats = apart, work: Floats = work
            ) -> Floats:
                own = work / speed * apart[:, None] if s else work
                return np.asarray(own @ np.stack([1 / p, np.ones_like(p)])).T

            p = [np.array(one) for one in (on_a, on_b)]
            time = np.concatenate([law(p[0], 0), law(p[1], 1)])
            time *= np.exp(noise * rng.standard_normal(time.shape))
            names = ("A",) * len(on_a) + ("B",) * len(on_b)
            data = ScalingRuns(("",) * len(names), ("a", "b", "c"), np.concatenate(p), time, systems=names)
            found = model_systems(data)
            joint += found.joint
            at = max(on_a[-1], on_b[-1]) * np.array([2.0, 4.0])
            for s, model in enumerate(found.models):
                if model is None:
                    continue
                phases, whole = model.durations(at)
                new = law(at, s) * np.exp(noise * rng.standard_normal((2, 3)))
                low, high = np.quantile(phases, (0.025, 0.975), axis=0)
                held[0].append(float(((low <= new.T) & (high >= new.T)).mean()))
                low, high = np.quantile(whole, (0.025, 0.975), axis=0)
                held[1].append(float(((low <= new.sum(axis=1)) & (high >= new.sum(axis=1))).mean()))
                held[2].append(float(np.log(high / low).mean() / 2))
            for one in found.speeds():
                if one["function"] in ("1/p", "1"):
                    true = speed[("1/p", "1").index(one["function"])]
                    held[3].append(float(one["low"] <= true <= one["high"]))
            at = np.array([4.0, 16.0])
            over = found.ratio(0, 1, at)
            if over is not None:
                true = law(at, 0).sum(axis=1) / law(at, 1).sum(axis=1)
                held[4].append(float(((over.low <= true) & (true <= over.high)).mean()))
        told = ["–" if not one else f"{100 * np.mean(one):.0f}" for one in held]
        speeds = "–" if off else told[3]
        print(
            f"| {name} | {100 * noise:.0f} % | {joint} of {programs} | {told[0]}, {told[1]} | {told[2]} % "
            f"| {speeds} | {told[4]} |",
            flush=True,
        )


def _percents(parts: Floats, unit: str = "") -> str:
    return ", ".join(f"{100 * part:.0f}{unit}" for part in parts)


def simulate(folder: Path) -> None:
    """Compile, run, and convert what every rank has written."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "platform.xml").write_text(_PLATFORM, encoding="utf-8")
    (folder / "hosts").write_text("".join(f"node-{k}\n" for k in range(128)), encoding="utf-8")
    source = Path(__file__).parents[1] / "programs" / "scaling.c"
    subprocess.run(["smpicc", "-O2", "-w", str(source), "-o", "scaling", "-lm"], cwd=folder, check=True)
    for program in PROGRAMS:
        for size in SIZES:
            subprocess.run(
                ["smpirun", "-np", str(size), "-platform", "platform.xml", "-hostfile", "hosts",
                 "--cfg=smpi/simulate-computation:no", "--cfg=smpi/privatization:dlopen",
                 "--log=root.thresh:error", "./scaling", program, f"{program}.{size}", "0.02", "1"],
                cwd=folder, check=True,
            )  # fmt: skip
            convert(folder / f"{program}.{size}", size, folder / f"{program}_{size}")


def convert(stem: Path, size: int, folder: Path) -> None:
    """An OTF2 archive of the ranks' lines: E, L (regions), S, R (messages), B, C (collectives)."""
    names: dict[str, int] = {}
    places = []
    for rank in range(size):
        events = []
        for line in stem.with_name(f"{stem.name}.{rank}").read_text(encoding="utf-8").splitlines():
            kind, seconds, *more = line.split()
            time = round(float(seconds) * 1e9)
            if kind in "EL":
                number = names.setdefault(more[0], len(names))
                events.append(Event(time, "Enter" if kind == "E" else "Leave", (number,)))
            elif kind == "B":
                events.append(Event(time, "MpiCollectiveBegin"))
            else:
                one, *rest = map(int, more)
                record = {"S": "MpiSend", "R": "MpiRecv", "C": "MpiCollectiveEnd"}[kind]
                events.append(Event(time, record, (one, 0, *rest)))
        places.append(Place(rank, events))
    write(folder, places, regions={number: name for name, number in names.items()})


def held_out(folder: Path) -> None:
    print("\n| program, from p | to p | part | predicted (95 %) | simulated |")
    print("| --- | --- | --- | --- | --- |")
    for program in PROGRAMS:
        runs = gather([Traced(folder / f"{program}_{size}" / "traces.otf2") for size in SIZES]).runs
        for count in (3, 4, 5):
            model = model_phases(runs.only(range(count)))
            phases, run = model.durations(runs.p[count : count + 1])
            draws = [run[:, 0], *(phases[:, k, 0] for k in range(len(runs.phases)))]
            truth = [runs.duration[count].sum(), *runs.duration[count]]
            for name, own, true in zip(("run", *runs.phases), draws, truth, strict=True):
                low, middle, high = np.quantile(own, (0.025, 0.5, 0.975))
                missed = "" if low <= true <= high else " **outside**"
                print(
                    f"| {program}, 2 to {runs.p[count - 1]:.0f} | {runs.p[count]:.0f} | {name} | "
                    f"{middle:.3g} s ({low:.3g} to {high:.3g}) | {true:.3g} s{missed} |"
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--fresh", type=int, default=0)
    parser.add_argument("--extrap", metavar="PYTHON")
    parser.add_argument("--systems", type=int, default=0)
    parser.add_argument("--simgrid", type=Path)
    options = parser.parse_args()
    if options.runs:
        coverage(options.runs)
    if options.fresh:
        fresh(options.fresh, options.extrap)
    if options.systems:
        on_systems(options.systems)
    if options.simgrid is not None:
        if shutil.which("smpirun") is None:
            print("SimGrid is not there (smpirun), so nothing is simulated")
            return
        simulate(options.simgrid)
        held_out(options.simgrid)


if __name__ == "__main__":
    main()
