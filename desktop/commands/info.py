"""``phasewright info``: what a trace holds."""

from __future__ import annotations

import argparse
import textwrap
from collections import Counter
from collections.abc import Sequence

from desktop.commands.run_options import add_formats, adder, open_settled, settle
from desktop.commands.terminal import column, outcome, print_doubt, print_json
from desktop.core.plain import JSON
from desktop.core.units import brief
from desktop.printing import printable
from desktop.remote import named


def add_arguments(parser: argparse.ArgumentParser) -> None:
    adder(parser)("file FILE", type=named)
    add_formats(parser, csv=False)


def main(options: argparse.Namespace) -> int:
    from desktop.data.info import info

    settle(options)
    with open_settled(options) as store:
        facts = info(store)
        if options.json:
            print_json(facts)
        else:
            _print_info(facts)
            print_doubt(store)
        return outcome(store)


def _print_info(facts: JSON) -> None:
    source, use, clock = facts["source"], facts["utilization"], facts["clock"]
    name = printable(source["name"])
    print(f"{name}  {facts['format']}, {source['size']} bytes, sha256 {source['sha256'][:16]}...")
    print(f"duration        {brief(facts['duration_s'])}, {facts['ticks_per_second']:g} ticks per second")
    totals = facts["totals"]
    print("events          " + ", ".join(f"{value} {key.replace('_', ' ')}" for key, value in totals.items()))
    print(
        f"utilization     mean {use['mean']:.4g}, max {use['max']:g} of {use['processors']} processors, "
        f"{use['segments']} segments, {use['integral_s']:.6g} processor-seconds"
    )
    _print_curves([one["curve"] for one in facts["curves"]])
    print(
        f"clocks          {clock['violations_before']} of {clock['checked']} checks contradict, "
        f"{clock['violations_after']} after repair ({clock['repair']})"
        + (f", by {brief(clock['most_before_s'])} at most as recorded" if clock["violations_before"] else "")
    )
    if facts["locations"]:
        print(
            f"{'location':>12} {'kind':<12}{'events':>10}{'computing':>12}{'overhead':>12}{'idle':>12}  name"
        )
    kinds = ("computing_s", "overhead_s", "idle_s")
    columns = [column([place[kind] for place in facts["locations"]]) for kind in kinds]
    for number, place in enumerate(facts["locations"]):
        times = "".join(f"{column[number]:>11}s" for column in columns)
        head = f"{place['id']:>12}{place['rank']:>6} {place['kind']:<12}{place['events']:>10}"
        print(f"{head}{times}  {printable(place['name'])}")
    for finding in facts["report"]:
        line = f"{finding['severity']}: {finding['count']} x {finding['text']} {finding['where']}"
        print(printable(line, 2000))


def _print_curves(curves: Sequence[str]) -> None:
    kinds = Counter(curve.partition(":")[0] for curve in curves)
    many = {curve.partition(":")[0] for curve in curves if ":" in curve}
    listed = (f"{kind}:NAME ({count})" if kind in many else kind for kind, count in kinds.items())
    print(textwrap.fill("curves          " + ", ".join(listed), 110, subsequent_indent=16 * " "))
    metrics = [curve.partition(":")[2] for curve in curves if curve.startswith("metric:")]
    if metrics:
        names = printable(", ".join(metrics), 2000)
        print(textwrap.fill(names, 110, initial_indent="metrics         ", subsequent_indent=16 * " "))
