"""What if against reality: a delay, as the replay of the run without it predicts it and as it is measured.

    python -m tests.benchmarks.whatif [--repeat K]

Three programs, recorded by `phasewright record`: the quicksort of the examples with one thread (its delays
are those of SPT; the places are counted as regions, without a change to its source), and two MPI programs of
four ranks that sleep where others would compute, so that two cores are enough. Each is run with and without
the delay; what is printed are medians. Of the quicksort processor time counts, of the others the time that
rank 0 sees.
"""

from __future__ import annotations

import argparse
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

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


def measured(command: list[str], what: str) -> float:
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(rf"{what}=([\d.]+)", told)
    assert found is not None, told
    return float(found[1])


def recorded(command: list[str], folder: Path) -> Path:
    words = [sys.executable, "-m", "desktop", "record", "--no-open", "-o", str(folder), "--", *command]
    subprocess.run(words, check=True, capture_output=True)
    return folder


def predicted(trace: Path, region: str, delay_s: float) -> tuple[float, float]:
    """Seconds that the run becomes longer, and calls of the region."""
    from desktop.data.opening import open_trace
    from desktop.data.utilization import build
    from desktop.data.whatif import Changes, Rerun

    with open_trace(trace) as store:
        run = Rerun(store, build(store))
        found = run.predict(Changes(longer=((region, delay_s),)))
        assert not found.note, found.note
        return -found.saved_s, float(run.regions([region])[1].sum())


def told(name: str, region: str, delay: str, calls: float, naive: float, want: float, plain: list[float],
         delayed: list[float]) -> None:  # fmt: skip
    effect = statistics.median(delayed) - statistics.median(plain)
    spread = (max(plain) - min(plain) + max(delayed) - min(delayed)) / 2
    off = 100 * (want / effect - 1) if effect > spread else float("nan")
    print(
        f"{name:<10}{region:<8}{delay:>16}{calls:>9.0f}{naive:>11.4f}{want:>12.4f}{effect:>11.4f}"
        f"{spread:>9.4f}{off:>8.1f} %",
        flush=True,
    )


def quicksort(folder: Path, repeat: int) -> None:
    source = folder / "main.c"
    source.write_text(WRAPPER)
    shim = folder / "shim.h"
    shim.write_text(SHIM)
    flags = ["-O2", "-pthread", f"-I{HEADER}"]

    def built(name: str, *more: str) -> str:
        out = folder / name
        subprocess.run(["cc", *flags, *more, "-o", str(out), str(QUICKSORT)], check=True)
        return str(out)

    calibrated = folder / "calibrate"
    header = ROOT / "resources" / "spt" / "spt_delay.h"
    subprocess.run(
        ["cc", "-O2", "-DSPT_CALIBRATE", "-x", "c", str(header), "-o", str(calibrated)], check=True
    )
    # Processor time, of 20 times as many units as it does: what else runs here is no matter.
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run([str(calibrated)], stdout=subprocess.DEVNULL, check=True)
    unit_ns = (resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before) / (20 * 20e6) * 1e9
    plain = built("plain")
    for factor, routine, units in (("F2", "push", 1000), ("F3", "pop", 3000)):
        traced = folder / f"traced_{routine}"
        counting = f'-DDELAY_{factor}=(phasewright_begin("{routine}"),phasewright_end("{routine}"),0L)'
        subprocess.run(
            ["mpicc.openmpi", *flags, "-include", str(shim), f"-D{factor}", counting,
             "-Dmain=plain_main", "-c", "-o", str(folder / "body.o"), str(QUICKSORT)], check=True,
        )  # fmt: skip
        subprocess.run(
            ["mpicc.openmpi", *flags, "-o", str(traced), str(source), str(folder / "body.o")], check=True
        )
        words = ["-n", "400000", "-t", "1"]
        trace = recorded([*MPIRUN, "1", str(traced), *words], folder / f"trace_{routine}")
        want, calls = predicted(trace, routine, units * unit_ns * 1e-9)
        delayed = built(f"delayed_{routine}", f"-D{factor}", f"-DSPT_DELAY={units}")
        runs: tuple[list[float], list[float]] = ([], [])
        for _ in range(repeat):
            for k, program in enumerate((plain, delayed)):
                runs[k].append(measured([program, *words], "cpu"))
        naive = calls * units * unit_ns * 1e-9
        told("quicksort", routine, f"{units} x {unit_ns:.2f} ns", calls, naive, want, *runs)


def sleeping(folder: Path, repeat: int) -> None:
    cases = (
        ("pipeline", "stage", ("40", "40000"), (20000, 60000)),
        ("slack", "light", ("40", "20000", "80000"), (40000, 100000, 140000)),
    )
    for name, region, words, delays in cases:
        program = folder / name
        source = ROOT / "tests" / "programs" / f"{name}.c"
        subprocess.run(["mpicc.openmpi", "-O2", f"-I{HEADER}", "-o", str(program), str(source)], check=True)
        trace = recorded([*MPIRUN, "4", str(program), *words, "0"], folder / f"trace_{name}")
        plain = [measured([*MPIRUN, "4", str(program), *words, "0"], "wall") for _ in range(repeat)]
        for us in delays:
            want, calls = predicted(trace, region, us * 1e-6)
            runs = [measured([*MPIRUN, "4", str(program), *words, str(us)], "wall") for _ in range(repeat)]
            told(name, region, f"{us} us", calls, calls * us * 1e-6, want, plain, runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    heads = ("calls", 9), ("calls x d", 11), ("predicted", 12), ("measured", 11), ("spread", 9), ("off", 10)
    print(f"{'program':<10}{'region':<8}{'delay':>16}" + "".join(f"{name:>{wide}}" for name, wide in heads))
    with tempfile.TemporaryDirectory() as folder:
        quicksort(Path(folder), options.repeat)
        sleeping(Path(folder), options.repeat)


if __name__ == "__main__":
    main()
