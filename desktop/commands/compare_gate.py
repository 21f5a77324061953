"""``phasewright compare BASE... --against NEW... --fail-over P%``: what became slower, a gate for CI."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from desktop.commands.compared_runs import select
from desktop.commands.terminal import GATE, outcome, show, terminal_progress
from desktop.core.plain import JSON
from desktop.core.units import quantity
from desktop.printing import printable
from desktop.progress import Progress, Share

if TYPE_CHECKING:
    from desktop.core.contrast import Phased
    from desktop.core.phase_names import Doings
    from desktop.data.store import TraceStore
    from desktop.workbench.model import PhaseSettings


#: Phases at most where their number is not said: the shorter they are, the more they scatter.
MOST = 8


def main(options: argparse.Namespace) -> int:
    """JSON: ``base``, ``new`` (names of runs), ``stated_level``, ``fail_over``, ``in_order``, ``failed``,
    ``verdict``, ``judged`` (sentences), ``unmatched`` (phases that are none of the first run's),
    and ``differences``, the whole run before its phases: ``phase`` ("run" or "phase K"), ``name``,
    ``base_runs``, ``new_runs`` (how many have it), ``over`` (it fails the gate), ``level`` and the fields of
    `desktop.core.gate.Difference`."""
    codes: list[int] = []
    with terminal_progress() as progress:
        result = run(options, progress, lambda store: codes.append(outcome(store)))
    for path, text in ((options.markdown, markdown), (options.junit, junit)):
        if path is not None:
            from desktop.data.atomic import write_text

            write_text(path, text(result))
    show(options, result, lambda: result["differences"], lambda: result_lines(result))
    return GATE if result["failed"] else max(codes)


def _sides(options: argparse.Namespace) -> tuple[list[Path], list[Path]]:
    if options.axis or options.reference is not None or options.match or options.share:
        raise ValueError("--axis, --reference, --match and --share do not go with two sides")
    if options.against:
        return options.files, options.against
    if len(options.files) != 2:
        raise ValueError(
            f"say which of the {len(options.files)} files are the new runs: BASE... --against NEW..."
        )
    return options.files[:1], options.files[1:]


def run(options: argparse.Namespace, progress: Progress, seen: Callable[[TraceStore], object]) -> JSON:
    """The verdict as one plain object. `seen` is given each store while it is open.

    Raises
    ------
    ValueError, DesktopError, OSError : as the words or a source deserve.
    """
    import numpy as np

    from desktop.core.contrast import align
    from desktop.core.gate import LEVEL, differences
    from desktop.core.matching import NONE
    from desktop.core.phase_names import phase_names
    from desktop.data.presence import structure
    from desktop.data.utilization import Rules, build
    from desktop.workbench.run_comparison import labels_of, load_curve, phased

    sides = [select(argparse.Namespace(**{**vars(options), "files": files}))[0] for files in _sides(options)]
    members = [one for side in sides for one in side]
    labels = labels_of([one.run for one in members])
    doings: list[Doings | None] = []

    def first(store: TraceStore) -> None:
        seen(store)
        use = build(store, members[0].run.project.rules or Rules(), progress)
        doings.append(structure(store, use, progress).doings(use.curve()))

    runs: list[Phased] = []
    for k, (one, phases, project, _) in enumerate(members):
        part = Share(progress, k / len(members), (k + 1) / len(members))
        curve, landmarks = load_curve(one, project, part, seen if k else first)
        one_run = phased(labels[k], curve, phases if phases or not runs else _as(runs[0], MOST), landmarks)
        if phases is None and one_run.fit.n > MOST:
            one_run = phased(labels[k], curve, _as(one_run, MOST), landmarks)
        runs.append(one_run)
    alignment = align(runs)
    rows = [row for row in alignment.rows.tolist() if row[0] != NONE]
    lengths = np.array(
        [[run.curve.duration for run in runs]]
        + [
            [r.fit.duration[k] if k != NONE else np.nan for r, k in zip(runs, row, strict=True)]
            for row in rows
        ]
    )
    count = len(sides[0])
    base, new = lengths[:, :count], lengths[:, count:]
    names = ["", *phase_names(doings[0], runs[0].fit.breaks, called=members[0].run.project.names)]
    limit = options.fail_over
    tests = differences(base, new, in_order=options.in_order)
    alone = tests[0].significant is None
    differing: list[JSON] = []
    for k, (times, name) in enumerate(zip(tests, names, strict=True)):
        held = times.significant or (alone and k == 0)
        over = bool(held and limit is not None and times.change > limit)
        had = {f"{side}_runs": int((of[k] > 0).sum()) for side, of in (("base", base), ("new", new))}
        phase = f"phase {k}" if k else "run"
        differing.append(
            {"phase": phase, "name": name, **times._asdict(), "level": LEVEL, "over": over, **had}
        )
    gone = [
        {"run": runs[k].name, "phase": phase + 1, "duration_s": float(runs[k].fit.duration[phase])}
        for row in alignment.rows.tolist() if row[0] == NONE
        for k, phase in enumerate(row) if phase != NONE
    ]  # fmt: skip
    result = {
        "base": labels[:count], "new": labels[count:], "stated_level": LEVEL, "fail_over": limit,
        "in_order": options.in_order, "failed": any(one["over"] for one in differing),
    }  # fmt: skip
    sentences = {
        "verdict": _verdict(result, differing) + _not_ruled_out(result, differing),
        "judged": _judged(result, alone),
    }
    return {**result, **sentences, "differences": differing, "unmatched": gone}


def _as(run: Phased, most: int) -> PhaseSettings:
    """Settings for as many phases as a run has, so that repeats of a program have equally many."""
    from desktop.workbench.model import PhaseSettings

    return PhaseSettings(run.fit.model, min(run.fit.n, most))


def _verdict(result: JSON, tests: list[JSON]) -> str:
    if result["failed"]:
        slower = [f"{_called(one)} {_change(one)}" for one in tests if one["over"]]
        return f"Failed, slower by more than {_limit(result)}: {', '.join(slower)}."
    differ = [f"{_called(one)} {_change(one)}" for one in tests if one["significant"]]
    passed = ""
    if result["fail_over"] is not None:
        passed = f"Passed, nothing is seen to be slower by more than {_limit(result)}. "
    if tests[0]["significant"] is None:
        return f"{passed}The new runs differ by {_change(tests[0])}."
    return f"{passed}{'Differences: ' + ', '.join(differ) if differ else 'No difference beyond the scatter'}."


def _not_ruled_out(result: JSON, tests: list[JSON]) -> str:
    """What may be slower by more than the limit: its interval does, and the gate does not fail."""
    if result["fail_over"] is None or result["failed"]:
        return ""
    wide = [f"{_called(one)} {_change(one, 'high')}" for one in tests if one["high"] > result["fail_over"]]
    several = f" and {len(wide) - 3} more" if len(wide) > 3 else ""
    return f" The scatter does not rule out: {', '.join(wide[:3])}{several}. More runs would." if wide else ""


def _judged(result: JSON, alone: bool) -> str:
    counts = [len(result["base"]), len(result["new"])]
    runs = f"{counts[0]} base and {counts[1]} new run{'s' if counts[1] > 1 else ''}"
    if alone:
        so = (
            "no change is called significant" if result["fail_over"] is None
            else "the limit is held against the measured length of the whole run alone, not of its phases"
        )  # fmt: skip
        return f"{runs}: too few to know how much runs scatter, so {so}. Make three runs a side or more."
    few = "" if min(counts) > 2 else (
        " With fewer than three runs on a side, one that something else disturbed can pass for a difference."
    )  # fmt: skip
    drift = " A steady drift over them, in the order given, is taken out." if result["in_order"] else ""
    return (
        f"{runs}. A difference is one that their scatter does not explain: of comparisons of equal "
        f"sides, at most {100 * result['stated_level']:g} % show any.{drift}{few}"
    )


def _limit(result: JSON) -> str:
    return f"{100 * result['fail_over']:g} %"


def _called(one: JSON) -> str:
    if one["phase"] == "run":
        return "the whole run"
    return f"{one['phase']} ({printable(one['name'], 40)})" if one["name"] else one["phase"]


def _change(one: JSON, key: str = "change") -> str:
    if not math.isfinite(one[key]):
        return "–"
    return f"{round(100 * one[key], 4) + 0.0:+.3g} %" if one[key] < 9.995 else ">1000 %"


def _cells(result: JSON) -> Iterator[tuple[str, ...]]:
    """The table of the differences as text, for people and in Markdown."""
    yield "", "base", "new", "change", "95 % interval", "p", "difference"
    for one in result["differences"]:
        times = [quantity(one[key], "s") if math.isfinite(one[key]) else "–" for key in ("base_s", "new_s")]
        judged = one["significant"] is not None
        interval = f"{_change(one, 'low')} to {_change(one, 'high')}" if judged else "–"
        p = f"{one['p']:.2g}" if judged else "–"
        answer = {None: "not known", True: "yes", False: "no"}[one["significant"]]
        yield _called(one), *times, _change(one), interval, p, "over the limit" if one["over"] else answer


def result_lines(result: JSON) -> Iterator[str]:
    """The verdict as lines for a person, within 100 columns."""
    import textwrap

    for name, base, new, change, interval, p, answer in _cells(result):
        name = name if len(name) <= 23 else f"{name[:22]}…"
        yield f"{name:<24}{base:>10}{new:>10}{change:>9}{interval:>20}{p:>8}  {answer}"
    if result["unmatched"]:
        yield f"{len(result['unmatched'])} phases of single runs are none of the first run's, see --json"
    for text in (result["judged"], result["verdict"]):
        yield from textwrap.wrap(text, 98)


def _md(text: str) -> str:
    """Text of strangers' files, escaped: no mark-up, no link, no new cell."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", printable(text, 4000))


def markdown(result: JSON) -> str:
    """The verdict as a section of GitHub's Markdown."""
    head, *rows = _cells(result)
    lines = [f"### Phasewright: {'failed' if result['failed'] else 'passed'}", "", _md(result["verdict"]), ""]
    lines += [f"| {' | '.join(head)} |", f"|{' :-- |' + ' --: |' * 5 + ' :-- |'}"]
    lines += [f"| {' | '.join(map(_md, row))} |" for row in rows]
    runs = (f"{side}: {', '.join(map(_md, result[side]))}" for side in ("base", "new"))
    return "\n".join([*lines, "", _md(result["judged"]), "", *(f"- {line}" for line in runs), ""])


def junit(result: JSON) -> str:
    """The verdict as JUnit XML: a test case for the whole run and each phase, failed where it is over the
    limit, skipped where its scatter is not known."""
    from xml.etree import ElementTree

    rows = result["differences"]
    skipped = [one for one in rows if one["significant"] is None and one["phase"] != "run"]
    failed = sum(one["over"] for one in rows)
    counts = {"tests": len(rows), "failures": failed, "errors": 0, "skipped": len(skipped)}
    suite = ElementTree.Element(
        "testsuite", {"name": "phasewright compare", **{key: str(value) for key, value in counts.items()}}
    )
    for one in rows:
        time = f"{one['new_s']:.9g}" if math.isfinite(one["new_s"]) else "0"
        of = {"classname": "phasewright.compare", "name": _called(one), "time": time}
        case = ElementTree.SubElement(suite, "testcase", of)
        if one["over"]:
            message = f"{_called(one)}: {_change(one)}, the limit is {_limit(result)}"
            ElementTree.SubElement(case, "failure", {"message": message}).text = result["judged"]
        elif one in skipped:
            ElementTree.SubElement(case, "skipped", {"message": "too few runs to know the scatter"})
    ElementTree.SubElement(suite, "system-out").text = printable(result["verdict"], 4000)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"
