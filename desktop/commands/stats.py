"""``phasewright stats``: POP efficiencies, region profile and messages per phase."""

from __future__ import annotations

import argparse
import itertools
import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from desktop.commands.run_options import add_run, adder, check_budget, open_run, settle
from desktop.commands.terminal import column, outcome, print_csv, print_doubt, print_json, terminal_progress
from desktop.core.labels import ACCOUNTS
from desktop.core.plain import JSON
from desktop.core.units import common, quantity, scaled
from desktop.printing import printable

if TYPE_CHECKING:
    from desktop.data.statistics import RangeStats, Statistics
    from desktop.data.utilization import Utilization


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser, "also of each phase (with budget: parameters)", curve=True, also=True)
    more = "also of each range: the mean of a metric, and of a counter what was counted (repeat it; all: ALL)"
    adder(parser)("--metric NAME", more, action="append", default=[])


def main(options: argparse.Namespace) -> int:
    """JSON: ``source``, ``model``, ``n``, ``breaks_s``, ``in_doubt_s``, and ``ranges``, the whole (``name``
    "run" or "window") before its phases (``name`` "phase 1", ...), each with ``level`` (mean of the fitted
    polynomial) and the keys of `desktop.data.explain.explained`."""
    from desktop.data.curves import metrics_in
    from desktop.data.explain import explained, single
    from desktop.data.info import in_doubt
    from desktop.data.statistics import Statistics

    settle(options)
    by_phase = options.project or options.n is not None
    check_budget(options.phases.model, options.phases.n if by_phase else None)
    with open_run(options) as run:
        store, use, curve = run.store, run.use, run.curve
        names, ranges = ["run" if run.limit is None else "window"], [run.curve.span]
        levels, breakpoints = [curve.mean], [*run.curve.span]
        if by_phase:
            model = run.fit()
            breakpoints = model.breaks.tolist()
            ranges += itertools.pairwise(breakpoints)
            names += [f"phase {i}" for i in range(1, model.n + 1)]
            levels += model.coefficients[:, 0].tolist()
        statistics = Statistics(store)
        with terminal_progress() as progress:
            stats_of_ranges = statistics.ranges(ranges, use, progress, replay=True)
            metrics = metrics_in(store, use, options.metric, ranges, progress)
        called = options.settings.names
        if options.json:
            whole, previous = stats_of_ranges[0], [None, None, *stats_of_ranges[1:-1]]
            each = zip(names, levels, stats_of_ranges, previous, metrics, strict=False)
            plain_ranges = [
                {"name": name, "level": level, **explained(statistics, use, whole, stats, former, called)}
                | ({"metrics": of} if of else {})
                for name, level, stats, former, of in each
            ]
            print_json({
                "source": store.source.name, "model": options.phases.model if by_phase else None,
                "n": len(stats_of_ranges) - 1, "breaks_s": breakpoints, "in_doubt_s": in_doubt(store),
                "ranges": plain_ranges, "curve": options.curve, "unit": curve.quantity.unit,
            })  # fmt: skip
        elif options.csv:
            rows = [
                {"name": name, "level": level, **single(stats)}
                | {f"metric {one['name']} {key}": one[key] for one in of for key in ("mean", "total")}
                for name, level, stats, of in zip(names, levels, stats_of_ranges, metrics, strict=True)
            ]
            print_csv(tuple(rows[0]), (row.values() for row in rows))
        else:
            _print_stats(statistics, use, names, stats_of_ranges, metrics, called)
            print_doubt(store)
        return outcome(store)


def _print_stats(
    statistics: Statistics,
    use: Utilization,
    names: Sequence[str],
    ranges: Sequence[RangeStats],
    metrics: Sequence[Sequence[JSON]],
    called: Mapping[str, str],
) -> None:
    """The ranges as a person reads them, within 100 columns; `called`: other names of regions."""
    # Worked out first: nothing is printed of what is stopped.
    changed = [
        statistics.changes(ranges[0], left, right, 5) for left, right in itertools.pairwise(ranges[1:])
    ]
    heads = ("start", "length", "computing", "par.eff", "balance", "comm", "serial", "transfer", "messages")
    print("{:<10}{:>11}{:>11}{:>10}{:>9}{:>9}{:>9}{:>9}{:>10}{:>10}".format("", *heads))
    begins, lengths = column([one.start_s for one in ranges]), column([one.duration_s for one in ranges])
    for name, stats, begin, long in zip(names, ranges, begins, lengths, strict=True):
        parts = (
            stats.parallel_efficiency, stats.load_balance, stats.communication_efficiency,
            stats.serialisation_efficiency, stats.transfer_efficiency,
        )  # fmt: skip
        percents = ["-" if part is None or math.isnan(part) else f"{100 * part:.1f}%" for part in parts]
        count = "-" if stats.messages is None else f"{stats.messages.sent.sum()}"
        efficiencies = "{:>9}{:>9}{:>9}{:>9}{:>10}".format(*percents)
        print(f"{name:<10}{begin:>10}s{long:>10}s{stats.computing:>10.4g}{efficiencies}{count:>10}")
    for name, stats, measured in zip(names, ranges, metrics, strict=True):
        print(f"\n{name}")
        for one in measured:
            counted = "" if one["total"] is None else f", in all {one['total']:.6g}"
            print(f"  {printable(one['name'], 60)}: mean {one['mean']:.6g} {printable(one['unit'])}{counted}")
        if stats.is_processor.any():
            ends = [
                f"{printable(statistics.name(i))} ({100 * stats.utilization[i]:.1f}%)"
                for i in (int(stats.most_loaded(1)[0]), int(stats.idlest(1)[0]))
            ]
            print(f"  computing most of the time {ends[0]}, least {ends[1]}")
        rows = statistics.flat(stats, use)[:5]
        times = column([row.exclusive_s for row in rows]), column([row.inclusive_s for row in rows])
        for row, exclusive, inclusive in zip(rows, *times, strict=True):
            name = printable(called.get(row.name, row.name), 32)
            print(
                f"  {name:<32}{100 * row.share:>7.1f}%{exclusive:>11}s exclusive"
                f"{inclusive:>11}s inclusive{row.calls:>8} {'call' if row.calls == 1 else 'calls'}"
            )
        replayed = stats.replayed
        total = stats.duration_s * stats.processors
        of = common((total,), "proc·s")
        for account, part in stats.account_parts(0.0005):
            title, _ = ACCOUNTS[account.name.lower()]
            seconds = f"{scaled(part * total, of):>18} of {scaled(total, of)}"
            print(f"  {title:<32}{100 * part:>7.1f}%{seconds}")
        for delay in stats.caused.delays[:3] if stats.caused else ():
            name = called.get(delay.name, delay.name)
            who = printable(f"{statistics.name(delay.location)} in {name}", 44)
            print(
                f"  {who} made others wait {quantity(delay.seconds, 'proc·s')}, "
                f"{quantity(delay.long_s, 'proc·s')} of it through others"
            )
        notes = [stats.note, *((replayed.ideal_note, replayed.waiting_note) if replayed else ())]
        for note in filter(None, notes):
            print(textwrap.fill(note, 98, initial_indent="  ", subsequent_indent="  "))
    for number, changes in enumerate(changed, 1):
        print(f"\nwhat changed from phase {number} to phase {number + 1}")
        if not changes:
            print("  nothing beyond what varies within the phases")
        for change in changes:
            print(textwrap.fill(change.called(called), 98, initial_indent="  ", subsequent_indent="    "))
