"""``phasewright whatif``: how long a run would last on another network, or if it computed otherwise."""

from __future__ import annotations

import argparse
import math
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from desktop.commands.run_options import add_run, adder, check_budget, open_run, pairs, settle
from desktop.commands.terminal import column, outcome, print_doubt, show, terminal_progress
from desktop.core.plain import JSON
from desktop.core.units import percent, quantity, signed
from desktop.printing import printable

if TYPE_CHECKING:
    from desktop.core.changes import Changes
    from desktop.core.phases import PhaseFit
    from desktop.data.helping import Help
    from desktop.data.whatif import RunPrediction


def add_arguments(parser: argparse.ArgumentParser) -> None:
    network = adder(parser.add_argument_group("network", "in place of the network as recorded"))
    network("--ideal", "no latency, infinite bandwidth")
    network("--latency S", "seconds to send or receive a message", type=float)
    network("--bandwidth B/S", "bytes per second (else infinite)", type=float)
    network("--eager BYTES", "larger messages are sent when they are expected (else none are)", type=float)
    network("--buses N", "messages under way at a time (else any number)", type=int)
    computing = adder(parser.add_argument_group("computing"))
    several = {"action": "append", "default": []}
    computing(
        "--region --speed REGION=X", "a region is X times faster, without those inside of it", **several
    )
    computing("--longer REGION=S", "each call of a region computes S seconds longer", **several)
    computing("--phase K=X", "phase K (from 1) is X times faster", **several)
    computing("--balance K", "all processors compute equally long in phase K", type=int, **several)
    computing("--slower --slow RANKS=X", "ranks, such as 3 or 0-7, are X times slower", **several)
    computing("--no-wait WHAT", "nobody waits: messages, collectives, or an operation by name", **several)
    add_run(parser, "phases (else: as suggested)")


def main(options: argparse.Namespace) -> int:
    """JSON: ``source``, ``changes`` (in words), ``recorded_s``, ``predicted_s`` (null with a ``note``),
    ``predicted_low_s`` and ``crowded`` (where cores were shared: how short it may be as well, and that in
    words), ``ideal_s``, ``estimated`` (``latency_s``, ``bandwidth``, ``messages``, or null), ``phases``
    (``phase``, ``name``, ``start_s``, ``end_s``, ``predicted_start_s``, ``predicted_end_s``,
    ``predicted_s``), and ``would_help``, ranked, bounds last: ``change``, ``saved_s``, ``share``,
    ``predicted_s``, ``assumption``, ``bound``."""
    from desktop.core import machine
    from desktop.core.changes import Changes
    from desktop.data.whatif_there import rerun, would_help_most

    settle(options)
    check_budget(options.phases.model, options.n)
    names = options.settings.names
    changes = _changes(options, names)
    with open_run(options) as run:
        store, use, fit = run.store, run.use, run.fit(suggested=True)
        with terminal_progress() as progress:
            program = rerun(store, use, progress, limit=run.limit, breakpoints=fit.breaks[1:-1].tolist())
            prediction = program.predict(changes, progress)
            ideal = program.predict(Changes(network=machine.IDEAL), progress, times=False)
            ranked = tuple(one.called(names) for one in would_help_most(program, progress))
            prediction = replace(prediction, changes=changes.called(names))
        rows = _phases(fit, run.names(fit), prediction, program.start_s)
        network = program.estimate
        result = {
            "source": store.source.name,
            "changes": changes.called(names).sentence,
            "recorded_s": prediction.recorded_s,
            "predicted_s": prediction.duration_s,
            "predicted_low_s": prediction.low_s,
            "crowded": prediction.crowded,
            "ideal_s": ideal.duration_s,
            "note": prediction.note,
            "estimated": None if network is None else network._asdict(),
            "phases": rows,
            "would_help": [one.plain() for one in ranked],
        }
        show(options, result, lambda: rows, lambda: _lines(prediction, rows, ranked))
        if not (options.json or options.csv):
            print_doubt(store)
        return outcome(store)


def _changes(options: argparse.Namespace, names: Mapping[str, str]) -> Changes:
    """`names`: what a project calls regions; those of the trace are taken, too."""
    from desktop.core.changes import ALL, Changes
    from desktop.core.machine import Machine

    def of_trace(name: str) -> list[str]:
        return [own for own, new in names.items() if new == name] or [name]

    network, unlimited = None, math.inf
    values = options.latency, options.bandwidth, options.eager, options.buses
    if options.ideal or values != (None, None, None, None):
        bandwidth, eager = (unlimited if value is None else value for value in values[1:3])
        network = Machine(options.latency or 0.0, bandwidth, eager, options.buses or 0)
    return Changes(
        network=network,
        regions=tuple((own, x) for name, x in _named(options.region, "REGION=X") for own in of_trace(name)),
        longer=tuple((own, s) for name, s in _named(options.longer, "REGION=S") for own in of_trace(name)),
        phases=tuple((_phase(name), factor) for name, factor in _named(options.phase, "K=X")),
        balanced=tuple(k - 1 for k in options.balance),
        slower=tuple((*_ranks(name), factor) for name, factor in _named(options.slower, "RANKS=X")),
        no_wait=tuple(own for name in options.no_wait for own in ([name] if name in ALL else of_trace(name))),
    )


def _named(words: list[str], form: str) -> Iterator[tuple[str, float]]:
    for word in words:
        name, _, value = word.rpartition("=")  # names of regions may hold a =
        try:
            yield name or next(iter(pairs([word], form))), float(value)
        except ValueError:
            raise ValueError(f"{word!r} should read {form}") from None


def _phase(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise ValueError(f"{text!r} is no number of a phase, they are counted from 1")
    return int(text) - 1


def _ranks(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    if not first.isdecimal() or not (last or first).isdecimal():
        raise ValueError(f"{text!r} should be a rank or a range of ranks, such as 3 or 0-7")
    return int(first), int(last or first)


def _phases(fit: PhaseFit, names: tuple[str, ...], prediction: RunPrediction, start_s: float) -> list[JSON]:
    moved = [start_s, *prediction.breaks_s.tolist(), start_s + prediction.duration_s]
    ends = fit.breaks.tolist()
    if prediction.note:
        moved = [math.nan] * len(ends)
    return [
        {
            "phase": k + 1,
            "name": names[k],
            "start_s": ends[k],
            "end_s": ends[k + 1],
            "predicted_start_s": moved[k],
            "predicted_end_s": moved[k + 1],
            "predicted_s": moved[k + 1] - moved[k],
        }
        for k in range(fit.n)
    ]


def _lines(prediction: RunPrediction, rows: list[JSON], ranked: tuple[Help, ...]) -> Iterator[str]:
    changes = printable(prediction.changes.sentence) or "as recorded"
    if prediction.note:
        yield f"{changes}: no prediction. {prediction.note}"
        return
    saved = f"{signed(100 * -prediction.saved_s / prediction.recorded_s, 3)} %"
    lasts, lasted = prediction.duration_words, quantity(prediction.recorded_s, "s")
    yield f"{changes}: {lasts}" + (f" instead of {lasted} ({saved})" if prediction.changes.sentence else "")
    yield from textwrap.wrap(prediction.crowded, 98)
    yield ""
    yield f"{'phase':<8}{'start':>12}{'length':>12}{'predicted':>12}"
    columns = [
        column([row["start_s"] for row in rows]),
        column([row["end_s"] - row["start_s"] for row in rows]),
        column([row["predicted_s"] for row in rows]),
    ]
    for k, (start, length, predicted) in enumerate(zip(*columns, strict=True), 1):
        yield f"{k:<8}{start:>11}s{length:>11}s{predicted:>11}s"
    yield ""
    yield "what would help most"
    if not ranked or ranked[0].bound:
        yield "  none of the changes that are tried saves anything worth naming"
    for k, (one, saved) in enumerate(zip(ranked, column([one.saved_s for one in ranked]), strict=True)):
        if one.bound and (not k or not ranked[k - 1].bound):
            yield ""
            yield "bounds, which no change can reach"
        yield f"  {saved:>10}s {percent(one.share, 1):>8}  {printable(one.title)}"
        yield from textwrap.wrap(one.assumption, 92, initial_indent=" " * 24, subsequent_indent=" " * 24)
