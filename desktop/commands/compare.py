"""``phasewright compare``: the phases of two or more runs beside each other, and how they differ.

Repeated runs before and after a change are in `desktop.commands.compare_gate`.
"""

from __future__ import annotations

import argparse
import itertools
import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from desktop.commands.compared_runs import select
from desktop.commands.run_options import add_curve, add_formats, add_model, adder, check_budget
from desktop.commands.terminal import outcome, picked, show, terminal_progress
from desktop.core.plain import JSON
from desktop.core.units import NO_BREAK, si, unbroken
from desktop.printing import printable
from desktop.progress import Progress, Share
from desktop.remote import named

if TYPE_CHECKING:
    from collections.abc import Callable

    from desktop.core.contrast import Alignment, Placement
    from desktop.data.store import TraceStore

AXES = ("absolute", "start", "normalised", "phases")
#: Columns of a cell in JSON and CSV; attributes of `desktop.core.contrast.Cell`.
COLUMNS = (
    *("label", "run", "phase", "start_s", "duration_s", "mean", "efficiency", "work_s"),
    *("duration_difference_s", "duration_ratio", "mean_difference", "mean_ratio"),
    *("efficiency_difference", "work_difference_s", "work_ratio", "alike"),
)
_AREAS = {
    "absolute": "over absolute time",
    "start": "over the time from each start",
    "normalised": "over parts of each run",
    "phases": "with matched phases over each other",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    add = adder(parser)
    add("files FILE", "traces; of a project all its runs, as it says", nargs="+", type=named)
    add("--axis", "what the curves are subtracted on (default: start)", choices=AXES)
    add("--reference K", "the run that the others are compared with (default: 1)", type=int)
    pair = "phase P of run K is phase Q of the reference; - in place of P or Q: has no partner"
    add("--match K:P=Q", pair, action="append", default=[], type=_pair)
    add("--share", "subtract parts of each run's processors, not processors")
    gate = adder(parser.add_argument_group("two sides", "repeated runs before and after a change"))
    new = "the runs after the change; FILE are those before it (of two files alone the second is the new one)"
    gate("--against NEW", new, nargs="+", type=named, default=[])
    over = "exit code 4 where something takes longer by more than P %%, and not by the runs' scatter"
    gate("--fail-over P", over, type=_percent)
    gate("--in-order", "the runs were made one after the other as listed: a steady drift is no difference")
    gate("--markdown FILE", "also as Markdown, for the summary of a CI job", type=Path)
    gate("--junit FILE", "also as JUnit XML, a test case for each phase", type=Path)
    add_model(
        parser, "phases of every run (default: as suggested; of two sides as for the first run, at most 8)"
    )
    add_curve(parser)
    add_formats(parser, csv=True)


def _percent(text: str) -> float:
    try:
        part = float(text.removesuffix("%")) / 100
    except ValueError:
        part = -1.0
    if not 0 <= part < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} should read like 5%")
    return part


def _pair(text: str) -> tuple[int, int, int]:
    """Run (from 1), and the phases of the reference and of the run (from 0, -1 for none)."""
    match = re.fullmatch(r"(\d+):(\d+|-)=(\d+|-)", text)
    numbers = [0 if word == "-" else int(word) for word in match.groups()] if match else []
    if not match or numbers[0] == 0 or match[2] == match[3] == "-" or "0" in (match[2], match[3]):
        raise argparse.ArgumentTypeError(f"{text!r} should read like 2:3=4 or 2:3=-, counting from 1")
    return numbers[0], numbers[2] - 1, numbers[1] - 1


def run(options: argparse.Namespace, progress: Progress, seen: Callable[[TraceStore], object]) -> JSON:
    """The comparison as one plain object. `seen` is given each store while it is open.

    Raises
    ------
    ValueError, DesktopError, OSError : the options do not go together, or a source cannot be read.
    """
    from desktop.core.contrast import align, place, table
    from desktop.core.firmness import over_runs
    from desktop.core.run_difference import explain_differences
    from desktop.workbench.run_comparison import labels_of, load_phased, pairs_by_run

    members, matched, axis, reference, share = select(options)
    if len(members) < 2:
        raise ValueError(f"a comparison needs two runs or more, {options.files[0]} alone is {len(members)}")
    if not 0 <= reference < len(members):
        raise ValueError(f"--reference {reference + 1}: there are {len(members)} runs")
    names = labels_of([one.run for one in members])
    runs = []
    for k, (one, phases, project, _) in enumerate(members):
        part = Share(progress, k / len(members), (k + 1) / len(members))
        runs.append(load_phased(names[k], one, phases, project, part, seen, charged=True)[0])
    counted = runs[reference].curve.quantity
    if len({one.curve.quantity for one in runs}) > 1:
        raise ValueError("the runs are compared by different curves, say which: --curve KIND[:NAME]")
    keys = [one.key for one in members]
    fixed = pairs_by_run(matched, keys, reference, [one.fit.n for one in runs])
    for k, of, phase in options.match:
        if not 1 <= k <= len(runs) or k - 1 == reference:
            raise ValueError(f"--match {k}: is no run beside the reference, there are {len(runs)} runs")
        fixed[k - 1] = (*fixed.get(k - 1, ()), (of, phase))
    alignment = align(runs, reference, fixed)
    placement = place(alignment, axis, share=share)
    cells = [{name: getattr(cell, name) for name in COLUMNS} for cell in table(alignment)]
    return {
        "reference": names[reference],
        "axis": axis,
        "share": share,
        "curve": members[reference].run.project.curve,
        "curve_name": counted.name,
        "unit": counted.unit,
        "runs": [
            {
                "run": one.name, "processors": one.curve.capacity, "model": one.fit.model, "n": one.fit.n,
                "epsilon": one.fit.epsilon, "breaks_s": one.fit.breaks.tolist(),
                "break_intervals": [firm and firm._asdict() for firm in over_runs(alignment, k)],
                "match_cost": None if m is None else m.cost,
                "match": None if m is None else [None if j < 0 else j + 1 for j in m.of_a.tolist()],
            }
            for k, (one, m) in enumerate(zip(runs, alignment.matchings, strict=True))
        ],
        "sentences": explain_differences(alignment),
        "differences": _differences(alignment, placement),
        "cells": cells,
    }  # fmt: skip


def _differences(alignment: Alignment, placement: Placement) -> list[JSON]:
    return [
        {"run": run.name, **picked(area, "area=signed more less reference_area=reference"),
         "relative": area.signed / (area.reference or float("nan"))}
        for run, area in zip(alignment.runs, placement.areas, strict=True)
        if area is not None
    ]  # fmt: skip


def result_lines(result: JSON) -> list[str]:
    """The comparison as lines for a person, within 100 columns."""
    lines = [*(unbroken(printable(text, 4000)) for text in result["sentences"]), ""]
    plain = result["curve"] == "computing"
    for k, one in enumerate(result["runs"], 1):
        mark = ", the reference" if one["run"] == result["reference"] else ""
        of = f"on {one['processors']:g} processors" if plain else f"of {result['curve_name']}"
        lines.append(f"{k}  {one['run']}: {one['n']} {one['model']} phases {printable(of)}{mark}")
    work = "work proc*s" if plain else "integral"
    heads = ("", "run", "phase", "start", "length", "mean", "efficiency", work, "length x", "work x")
    lines.append("{:<20}{:>4}{:>6}{:>10}{:>10}{:>10}{:>11}{:>12}{:>9}{:>8}".format(*heads))
    for label, group in itertools.groupby(result["cells"], lambda cell: cell["label"]):
        for k, cell in enumerate(group, 1):
            name = label if k == 1 else ""
            name = name if len(name) <= 19 else name[:18] + "…"
            if cell["phase"] is None:
                lines.append(f"{name:<20}{k:>4}{'-':>6}")
                continue
            phase = "all" if cell["phase"] == 0 else cell["phase"]
            ratios = ["-" if r != r else f"{r:.3g}" for r in (cell["duration_ratio"], cell["work_ratio"])]
            lines.append(
                f"{name:<20}{k:>4}{phase:>6}{si(cell['start_s']):>9}s{si(cell['duration_s']):>9}s"
                f"{cell['mean']:>10.4g}{_share(cell['efficiency']):>11}{cell['work_s']:>12.4g}"
                f"{ratios[0]:>9}{ratios[1]:>8}"
            )
    unit = "parts of all" if result["share"] else result["unit"] if not plain else "processors"
    unit = "parts of all processors" if result["share"] and plain else unit or "values"
    unit += "" if result["axis"] == "normalised" else "*s"
    for one in result["differences"]:
        relative = one["relative"]
        part = "" if relative != relative else f" ({100 * relative:+.1f} %)"
        lines.append(
            f"{one['run']} less {result['reference']}, {_AREAS[result['axis']]}: {one['area']:+.4g} "
            f"{unit}{part}, of it {one['more']:.4g} more and {one['less']:.4g} less"
        )
    wrapped = ([line] if len(line) <= 100 else textwrap.wrap(line, 98, subsequent_indent="  ")
               for line in lines)  # fmt: skip
    return [one.replace(NO_BREAK, " ") for some in wrapped for one in some]


def _share(share: float) -> str:
    return "-" if share != share else f"{100 * share:.1f}%"


def main(options: argparse.Namespace) -> int:
    check_budget(options.model, options.n)
    gate = options.against or options.in_order or options.markdown or options.junit
    if gate or options.fail_over is not None:
        from desktop.commands import compare_gate

        return compare_gate.main(options)
    codes: list[int] = []
    with terminal_progress() as progress:
        result = run(options, progress, lambda store: codes.append(outcome(store)))
    show(options, result, lambda: result["cells"], lambda: result_lines(result))
    return max(codes)
