"""Programs of plain steps, one after the other, whose ends are known: for what is said of a run that goes on.

Each step iterates. How its average comes about says its kind:

    steady      a part of the ranks computes, the others wait for them in a collective
    in step     all compute, then all but one wait for that one, at every iteration
    apart       each rank computes and reads by itself; nobody waits for anybody
    amplitude   steady and in step by turns, with the same average
    period      in step with the same average, in iterations of other lengths
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.programs.catalogue import Chance
from tests.programs.simulated import Program, Steps

KINDS = ("steady", "in step", "apart", "amplitude", "period")
#: Parts of the time that ranks compute, one step after the other; neighbours differ by 0.15 to 0.6.
SHARES = (0.85, 0.35, 0.6, 0.9, 0.5, 0.75, 0.25, 0.7, 0.4, 0.95, 0.65, 0.3, 0.8, 0.45, 0.6)
#: Lengths of the steps, as parts of the mean.
LENGTHS = (1.0, 0.8, 1.25, 0.9, 1.05)


def stepped(kind: str, steps: int, seconds: float, period: float = 0.08, first: int = 0) -> Program:
    """A program of so many steps that takes about so many seconds, in iterations of about `period` s;
    `first`: of `SHARES` and `LENGTHS`."""
    parts = [LENGTHS[(first + k) % len(LENGTHS)] for k in range(steps)]
    shares = [SHARES[(first + k) % len(SHARES)] for k in range(steps)]
    if kind in ("amplitude", "period"):
        shares = [0.5] * steps

    def program(rank: int, ranks: int, rng: Chance) -> Steps:
        if kind == "apart":
            yield ("work", float(rng.permutation(ranks)[rank]) / ranks * period)
        for k, share in enumerate(shares):
            own = {"amplitude": ("steady", "in step")[k % 2], "period": "in step"}.get(kind, kind)
            length = period * (3.0 if kind == "period" and k % 2 else 1.0)
            if k:
                yield ("mark", f"step {k}", "median")
            yield ("in", f"step {k}")
            for _ in range(max(round(seconds * parts[k] / sum(parts) / length), 2)):
                yield from iteration(own, share, length, rank, ranks)
            yield ("out", f"step {k}")

    return program


def iteration(kind: str, share: float, length: float, rank: int, ranks: int) -> Steps:
    if kind == "steady":
        yield ("work", length if rank < round(share * ranks) else length / 100)
        yield ("all", "Allreduce", 8)
    elif kind == "in step":
        alone = (1 - share) / (1 - 1 / ranks)
        yield ("work", (1 - alone) * length)
        yield ("all", "Barrier", 0)
        if rank == 0:
            yield ("work", alone * length)
        yield ("all", "Bcast", 8)
    else:
        yield ("work", share * length)
        yield ("io", "read", (1 - share) * length)


def truth(marks: Sequence[tuple[str, float]], until: float, least: float) -> list[float]:
    """The boundaries that can be known at an instant: after the first of the steps has lasted for `least`
    (s) more."""
    return [t for _, t in marks if t < until - least]
