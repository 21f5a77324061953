"""What if against reality: a delay, as the replay of the run without it predicts it, and the effect that
an SPT experiment measures of it.

    python -m tests.benchmarks.whatif [--repeat K] [--sleeping]

Three programs: the quicksort of the examples with one thread (the places are counted as regions, without a
change to its source), and two MPI programs of four ranks that sleep where others would compute, so that two
cores are enough. Each is recorded by `phasewright record` without delays, and is run by `phasewright spt
run` as an experiment whose factors are the delays, K times each treatment, in an order drawn anew. Of the
quicksort processor time counts, of the others the time that rank 0 sees. The speed of a shared machine
differs by some per cent from trial to trial, so each trial of the quicksort measures how long a unit of delay
takes, before and after it sorts, and its time is that of a machine where a unit takes 1 ns. What is printed
is the effect of `phasewright spt effects` with its interval of 95 %; of the prediction, its median over the
recordings, and its range.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
QUICKSORT = ROOT / "resources" / "examples" / "quicksort" / "qsort_spt.c"
HEADER = ROOT / "desktop" / "recorder"
MPIRUN = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n"]
#: What its only thread does, the recorder is to see in that of MPI.
SHIM = """
#include <pthread.h>
#include "phasewright.h"
#define pthread_create(thread, attributes, work, with) (*(thread) = pthread_self(), (work)(with), 0)
#define pthread_join(thread, result) 0
"""
#: An MPI program of one rank around a program without MPI.
WRAPPER = """
#include <mpi.h>
int plain_main(int count, char **words);
int main(int count, char **words)
{
    MPI_Init(&count, &words);
    int code = plain_main(count, words);
    MPI_Finalize();
    return code;
}
"""
#: The quicksort, its processor time divided by that of a unit of its delay in the same process, measured in
#: calls as long as the delays (one call of 1e8 units takes 8 % longer a unit on a busy machine).
TIMED = """
#define main sorting
#include "qsort_spt.c"
#undef main
static double unit(void)
{
    double begin = now(CLOCK_PROCESS_CPUTIME_ID);
    for (int k = 0; k < 5000; k++)
        spt_delay(20000);
    return (now(CLOCK_PROCESS_CPUTIME_ID) - begin) * 10;
}
int main(int count, char **words)
{
    double before = unit(), begin = now(CLOCK_PROCESS_CPUTIME_ID);
    int code = sorting(count, words);
    double took = now(CLOCK_PROCESS_CPUTIME_ID) - begin;
    printf("steady=%.6f\\n", took / ((before + unit()) / 2));
    return code;
}
"""


def measured(
    folder: Path, build: list[str], run: list[str], sources: list[Path], factors: list[dict[str, Any]],
    response: str, repeat: int,
) -> dict[str, tuple[float, float]]:  # fmt: skip
    """The effect of each factor and half its interval of 95 %, in seconds, of an experiment."""
    folder.mkdir()
    for source in sources:
        shutil.copy(source, folder)
    quoted = json.dumps
    text = [
        "format = 1",
        f'[[responses]]\nname = "{response}"\nkind = "output"\npattern = "{response}=([0-9.]+)"\nunit = "s"',
        "[program]",
        f"run = {quoted(run)}",
        f"build = {quoted(build)}",
        f"sources = {quoted([source.name for source in sources])}",
        "time_limit_s = 120.0",
        "warm_up = 1",
        "busy_limit = 1000.0",
        "[design]",
        'kind = "full"',
        f"replicates = {repeat}",
        "seed = 17",
    ]
    for factor in factors:
        text += ["[[factors]]", *(f"{key} = {quoted(value)}" for key, value in factor.items())]
    about = folder / "experiment.toml"
    about.write_text("\n".join(text) + "\n")
    for words in (["run", str(about), "--yes"], ["effects", str(folder), "--json", "--response", response]):
        done = subprocess.run(
            [sys.executable, "-m", "desktop", "spt", *words], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(done.stderr + done.stdout)
    found = json.loads(done.stdout)
    return {
        row["term"]: (row["value"], (row["interval"][1] - row["interval"][0]) / 2) for row in found["effects"]
    }


def recorded(command: list[str], folder: Path) -> Path:
    words = [sys.executable, "-m", "desktop", "record", "--no-open", "-o", str(folder), "--", *command]
    subprocess.run(words, check=True, capture_output=True)
    return folder


def predicted(trace: Path, region: str, delay_s: float) -> tuple[float, float, float]:
    """Seconds that the run becomes longer, how few as well (the same if no range is predicted), and calls of
    the region."""
    from desktop.core.changes import Changes
    from desktop.data.opening import open_trace
    from desktop.data.utilization import build
    from desktop.data.whatif import Rerun

    with open_trace(trace) as store:
        run = Rerun(store, build(store))
        found = run.predict(Changes(longer=((region, delay_s),)))
        assert not found.note, found.note
        low = -found.saved_s if math.isnan(found.low_s) else found.low_s - found.recorded_s
        return -found.saved_s, low, float(run.calls_of(region))


def told(
    name: str, delay: str, naive: float, wants: list[float], lows: list[float], effect: float, half: float
) -> None:
    want, low, high = statistics.median(wants), min(lows), max(wants)
    around = f"{want:.4f} ({low:.4f} to {high:.4f})" if len(wants) > 1 else f"{want:.4f}"
    off = f"{100 * (want / effect - 1):.1f} %" if abs(effect) > 2 * half else ""
    meet = "yes" if low <= effect + half and high >= effect - half else "no"
    print(
        f"| {name}, {delay} | {naive:.4f} | {around} | {effect:.4f} ± {half:.4f} | {meet} | {off} |",
        flush=True,
    )


def quicksort(folder: Path, repeat: int) -> None:
    source = folder / "main.c"
    source.write_text(WRAPPER)
    shim = folder / "shim.h"
    shim.write_text(SHIM)
    flags = ["-O2", "-pthread", f"-I{HEADER}"]

    words, traces, factors = ["-n", "400000", "-t", "1"], {}, []
    for factor, routine, units in (("F2", "push", 10000), ("F3", "pop", 30000)):
        traced = folder / f"traced_{routine}"
        counting = f'-DDELAY_{factor}=(phasewright_begin("{routine}"),phasewright_end("{routine}"),0L)'
        subprocess.run(
            ["mpicc.openmpi", *flags, "-include", str(shim), f"-D{factor}", counting,
             "-Dmain=plain_main", "-c", "-o", str(folder / "body.o"), str(QUICKSORT)], check=True,
        )  # fmt: skip
        subprocess.run(
            ["mpicc.openmpi", *flags, "-o", str(traced), str(source), str(folder / "body.o")], check=True
        )
        trace = recorded([*MPIRUN, "1", str(traced), *words], folder / f"trace_{routine}")
        traces[routine] = units, trace
        factors.append(
            {"name": routine, "delay": units, "flags": [f"-D{factor}", f"-DDELAY_{factor}={{delay}}"]}
        )
    timed = folder / "timed.c"
    timed.write_text(TIMED)
    effects = measured(
        folder / "spt_quicksort", ["cc", "-O2", "-pthread", "{flags}", "-o", "{out}", timed.name],
        ["{out}", *words], [QUICKSORT, timed], factors, "steady", repeat,
    )  # fmt: skip
    for routine, (units, trace) in traces.items():
        want, low, calls = predicted(trace, routine, units * 1e-9)
        told(f"quicksort {routine}", f"{units} units", calls * units * 1e-9, [want], [low], *effects[routine])


def sleeping(folder: Path, repeat: int) -> None:
    cases = (
        ("pipeline", "stage", ("40", "40000"), (20000, 60000, 120000)),
        ("slack", "light", ("40", "20000", "80000"), (40000, 100000, 140000, 200000)),
    )
    for name, region, words, delays in cases:
        source = ROOT / "tests" / "programs" / f"{name}.c"
        program = folder / name
        build = ["mpicc.openmpi", "-O2", f"-I{HEADER}"]
        subprocess.run([*build, "-o", str(program), str(source)], check=True)
        # What a run waits for is another each time: it is recorded anew beside each experiment.
        traces, effects = [], []
        for us in delays:
            traces.append(recorded([*MPIRUN, "4", str(program), *words, "0"], folder / f"trace_{name}_{us}"))
            factor = {"name": region, "arguments": [str(us)], "low_arguments": ["0"]}
            found = measured(
                folder / f"spt_{name}_{us}", [*build, "{flags}", "-o", "{out}", source.name],
                [*MPIRUN, "4", "{out}", *words, "{args}"], [source], [factor], "wall", repeat,
            )  # fmt: skip
            effects.append(found[region])
        for us, effect in zip(delays, effects, strict=True):
            wants = [predicted(trace, region, us * 1e-6) for trace in traces]
            longer, lows, calls = zip(*wants, strict=True)
            told(name, f"{us / 1000:g} ms", calls[0] * us * 1e-6, [*longer], [*lows], *effect)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--sleeping", action="store_true", help="only the programs that sleep")
    options = parser.parse_args()
    print("| program, delay a call | calls x delay s | predicted s | measured s, 95 % | meet | off by |")
    print("| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        if not options.sleeping:
            quicksort(Path(folder), options.repeat)
        sleeping(Path(folder), options.repeat)


if __name__ == "__main__":
    main()
