"""Rows of the tables in ``resources/docs/causes.md``: accounts and causes of traces, as they are found.

python -m tests.explained                           both tables, of bundled and shared traces
"""

from __future__ import annotations

import re
import tempfile
from contextlib import suppress
from pathlib import Path

from desktop.core.accounts import WAITING, Account
from desktop.core.explanation import CauseText, Explanation
from desktop.data.opening import open_trace
from desktop.data.root_causes import explain
from desktop.data.statistics import RangeStats, Statistics
from desktop.data.utilization import build
from desktop.errors import TraceFormatError
from tests.programs.causes.known import DATA, DOUBLE, SINGLE, Known

DOCS = Path(__file__).parents[1] / "resources" / "docs" / "causes.md"

_MESSAGES = (Account.LATE_SENDER, Account.LATE_RECEIVER)
_THREADS = (Account.SERIAL, Account.LOCK, Account.THREADS)
#: Columns of the table of accounts; what is in none of them is "other".
COLUMNS: dict[str, tuple[Account, ...]] = {
    "computing": (Account.COMPUTING,),
    "messages": _MESSAGES,
    "collectives": tuple(sorted(WAITING - set(_MESSAGES))),
    "threads": _THREADS,
    "moving data": (Account.MOVING,),
    "unclassified": (Account.UNKNOWN,),
    "start-up": (Account.STARTUP,),
    "absent": (Account.ABSENT,),
}


def shares(stats: RangeStats) -> list[float]:
    """Percent of each column and of the others, rounded so that they make 100."""
    assert stats.accounts is not None
    ticks = [int(stats.accounts[:, list(accounts)].sum()) for accounts in COLUMNS.values()]
    whole = int(stats.accounts.sum())
    parts = [1000 * one / whole for one in (*ticks, whole - sum(ticks))]
    told = [int(part) for part in parts]
    by_rest = sorted(range(len(parts)), key=lambda k: told[k] - parts[k])
    for k in by_rest[: 1000 - sum(told)]:
        told[k] += 1
    return [one / 10 for one in told]


def short(cause: CauseText) -> str:
    """``one slow rank, relax, rank 2, 99 %``."""
    # A master that waits is charged to those that compute meanwhile.
    named = re.fullmatch(r"rank \d+", cause.names) and cause.key != "idle master"
    who = f", {cause.names}" if named else ""
    where = f", {cause.region}" if cause.region else ""
    return f"{cause.title.lower().replace('i/o', 'I/O')}{where}{who}, {100 * cause.part:.0f} %"


def account_row(name: str, stats: RangeStats, words: Explanation) -> str:
    """A line of the table of accounts."""
    first = short(words.causes[0]) + f" ({words.causes[0].strength})" if words.causes else ""
    cells = [name, f"{stats.processors:g} × {stats.duration_s:.3g}", *(f"{one:g}" for one in shares(stats))]
    return f"| {' | '.join([*cells, first])} |"


def cause_row(name: str, truth: str, found: Explanation, held_back: Explanation) -> str:
    """A line of the table of programs with known causes."""
    told = [
        [short(cause) for cause in one.causes[: 1 + truth.count(", then ")]] for one in (found, held_back)
    ]
    return f"| {name} | {truth} | {'; '.join(told[0])} | {'; '.join(told[1])} |"


def of_program(known: Known) -> tuple[str, str]:
    """Name and truth of a program, as they stand in its row."""
    causes = [", ".join(filter(None, (kind, region))) for kind, region, _ in known.causes]
    return known.name.replace("_", " "), ", then ".join(causes)


def whole(path: Path, folder: Path) -> tuple[RangeStats, Explanation]:
    """Of the whole run, as one phase.

    Raises
    ------
    TraceFormatError : there is nothing in it that could be read.
    """
    with open_trace(path, output=Path(folder) / "trace.h5") as store:
        use, kept = build(store), Statistics(store)
        span = use.curve().start, use.curve().start + use.curve().duration
        (stats,) = kept.ranges([span], use, replay=True)
        return stats, explain(kept, use, list(span), causality=kept.causality(use))


def main() -> None:
    from tests.data_layer.test_accounts import traces, unpacked

    print(f"| trace | P × s | {' | '.join(COLUMNS)} | other | first cause |")
    print(f"|{' --- |' * (len(COLUMNS) + 4)}")
    for path in traces():
        with tempfile.TemporaryDirectory() as folder, suppress(TraceFormatError):
            found = whole(unpacked(path, Path(folder)), Path(folder))
            print(account_row(trace_name(path), *found), flush=True)
    print("\n| program | truth | found | held back |\n| --- | --- | --- | --- |")
    for known in SINGLE + DOUBLE:
        both = []
        for name in (known.name, f"held_back_{known.name}"):
            with tempfile.TemporaryDirectory() as folder:
                both.append(whole(DATA / f"{name}.tar.xz", Path(folder))[1])
        print(cause_row(*of_program(known), *both), flush=True)


def trace_name(path: Path) -> str:
    """``otf2 ezt_farm_8``."""
    name = path.name
    for ending in (".xz", ".gz", ".tar", ".prv", ".trf", "_dilated"):
        name = name.removesuffix(ending)
    return f"{path.parent.name} {name}"


if __name__ == "__main__":
    main()
