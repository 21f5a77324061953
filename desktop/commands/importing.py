"""``phasewright import``: traces into HDF5."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

from desktop.commands.run_options import add_formats, adder, open_file
from desktop.commands.terminal import DONE, FAILED, LOSSY, error_words, outcome, print_json, terminal_progress
from desktop.core.plain import JSON
from desktop.progress import Cancelled
from desktop.remote import named


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from desktop.data.events import UNITS
    from desktop.data.importers import FORMATS

    add = adder(parser)
    add("sources SOURCE", "a trace, an archive, or a folder of them", nargs="+", type=named)
    add("-o --output OUT.h5", "where to (default: the cache)", type=Path)
    add("--format", "force this trace format (default: detect)", choices=FORMATS)
    add("--time-unit", "of a curve file, or of a trace that says none", choices=tuple(UNITS), default="s")
    add("--force", "import again and replace what is there")
    add("--scheduler ADDRESS", "read on a dask.distributed cluster, such as tcp://host:8786", type=str)
    add = adder(parser.add_argument_group("a part of one trace, as a trace of its own (needs -o)"))
    add("--start S", "begin of the part, seconds", type=float)
    add("--end S", "end of the part, seconds", type=float)
    add("--ranks LIST", "of these ranks only, such as 0-3,8", type=str)
    add_formats(parser, csv=False)


def main(options: argparse.Namespace) -> int:
    from desktop.data.info import info
    from desktop.data.opening import import_all
    from desktop.data.sources import expand
    from desktop.data.store import open_store

    how = {"format_id": options.format} | {
        key: getattr(options, key) for key in ("force", "time_unit", "scheduler")
    }
    if (options.start, options.end, options.ranks) != (None, None, None):
        return _import_part(options, how)
    with terminal_progress() as progress:
        expanded = expand(options.sources, progress)
        folder = options.output and options.output.is_dir()
        if options.output and len(expanded.paths) > 1 and not folder:
            raise ValueError("several sources need a folder after -o, which exists")
        places = [options.output / f"{name}.h5" if folder else options.output for _, name in expanded.paths]
        sources = [path for path, _ in expanded.paths]
        outcomes = import_all(list(zip(sources, places, strict=True)), progress, **how)
    codes, results = [], []
    left = sum(isinstance(one, Cancelled) for one in outcomes)
    for source, imported in zip(sources, outcomes, strict=True):
        if isinstance(imported, Exception):
            if len(sources) == 1:
                raise imported
            stopped = isinstance(imported, Cancelled)
            error = "stopped" if stopped else error_words(imported)
            results.append({"source": {"name": source.name}, "error": error})
            if not stopped:
                print(f"phasewright: {error}", file=sys.stderr)
                codes.append(FAILED)
            continue
        if left:
            results.append({"source": {"name": source.name}, "store": str(imported)})
            if not options.json:
                print(f"{source}: kept in {imported}")
            continue
        with open_store(imported) as store:
            facts = info(store)
            codes.append(outcome(store))
        results.append(_result(options, str(source), imported, facts))
    if expanded.strange:
        names = [str(path) for path in expanded.strange]
        more = f" and {len(names) - 10} more" if len(names) > 10 else ""
        print(f"phasewright: not recognised as traces: {', '.join(names[:10])}{more}", file=sys.stderr)
    if options.json:
        several = {"imports": results, "not_recognised": [str(path) for path in expanded.strange]}
        print_json(results[0] if len(results) == 1 else several)
    if left:
        raise Cancelled(
            f"{sum(isinstance(one, Path) for one in outcomes)} of {len(outcomes)} sources are imported"
        )
    # Of several sources, those that failed are input that was refused.
    return FAILED if set(codes) == {FAILED} else LOSSY if any(codes) else DONE


def _import_part(options: argparse.Namespace, how: JSON) -> int:
    from desktop.data.info import info
    from desktop.data.store import open_store
    from desktop.data.trim import of_ranks, trim

    if len(options.sources) > 1 or options.output is None or options.output.is_dir():
        raise ValueError("a part is made of one trace, and needs a file after -o")
    source = options.sources[0]
    start = -math.inf if options.start is None else options.start
    end = math.inf if options.end is None else options.end
    with open_file(source, **how) as store:
        named = options.ranks
        locations = None if named is None else of_ranks([at.rank for at in store.locations], named)
        with terminal_progress() as progress:
            trim(store, options.output, start, end, locations, progress)
    with open_store(options.output) as part:
        facts = info(part)
        result = _result(options, facts["source"]["name"], options.output, facts)
        if options.json:
            print_json(result)
        return outcome(part)


def _result(options: argparse.Namespace, name: str, store: Path, facts: JSON) -> JSON:
    """What ``--json`` says of a store that was written; without it, it is printed in words."""
    if not options.json:
        events, locations = facts["totals"]["events"], len(facts["locations"])
        print(f"{name}: {events} events of {locations} locations, kept in {store}")
    return {"store": str(store), **facts}
