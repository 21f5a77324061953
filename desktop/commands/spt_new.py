"""``phasewright spt new`` and ``spt places``: an experiment made from a program and its sources."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from desktop.commands.terminal import Answer, Part, picked, row_lines, terminal_progress
from desktop.core.units import percent
from desktop.data.columns import Column
from desktop.remote import named

if TYPE_CHECKING:
    from desktop.data.places import Spot


def add_parts(part: Part) -> None:
    """Their arguments. `part` makes one of a name, a function and a text."""
    add = part("new", new, "an experiment on a program of your own: copied, delays written into the copy")
    add("folder FOLDER", "of the experiment; it is made", nargs="?", type=Path)
    add("--list", "name the templates")
    add("--from TEMPLATE", "kind of the program (see --list)", dest="template")
    add("--program PATH", "folder or source of your program (default: the template's example)", type=Path)
    add("--places A,B,FILE:LINE", "routines, or lines of loops, to be delayed", default="")
    add("--most N", "places, where none is named", type=int, default=0)
    add("--trace TRACE", "of the program: places are taken by the time they have there", type=named)
    add("--offers", "list the places instead of making an experiment")
    add("--build COMMAND", "builds it; {flags} for the compiler, {out} or --product", default="")
    add("--product FILE", "what the build makes, where it cannot write to {out}", default="")
    add("--run COMMAND", "runs it; {out} is the built program", default="")
    add("--delay N", "units (Python: microseconds)", type=int, default=0)
    add("--variable NAME=LOW,HIGH", "of the environment, a factor", action="append", default=[])

    add = part("places", places, "find places in sources: prepared for a delay, or all that can be")
    add("sources SOURCE", nargs="+", type=Path)
    add("--call NAME", "what a place calls", default="spt_delay")
    add("--offers", "routines and loops that a delay can be written to")
    add("--trace TRACE", "of the program: with --offers, the hottest first", type=named)


def new(options: argparse.Namespace) -> Answer:
    """Make an experiment, or say what could be in it."""
    from desktop.data.templates import MOST, TEMPLATES, Request, new_experiment, offers_of, variables_in

    if options.list:
        rows = [picked(one, "name text needs") for one in TEMPLATES.values()]
        return {"templates": rows}, [
            f"{one.name:<10}{one.text} (needs {', '.join(one.needs)})" for one in TEMPLATES.values()
        ]
    if options.template not in TEMPLATES:
        raise ValueError(f"say --from with one of {', '.join(TEMPLATES)}")
    request = Request(
        options.template,
        options.program,
        tuple(word.strip() for word in options.places.split(",") if word.strip()),
        options.most or MOST,
        options.build,
        options.product,
        options.run,
        options.delay,
        _seconds(options.trace),
        variables_in(options.variable) or None,
    )
    if options.offers:
        return _place_lines(offers_of(request))
    if options.folder is None:
        raise ValueError("name the folder of the new experiment")
    experiment = new_experiment(options.folder, request)
    rows = [
        {"name": f.name, "minus": f.levels[0], "plus": f.levels[1]} | picked(f, "file line routine construct")
        for f in experiment.factors
    ]
    result = {
        "folder": str(experiment.folder), "description": str(experiment.folder / "experiment.toml"),
        "factors": rows, "build": list(experiment.program.build), "run": list(experiment.program.run),
        "runs": experiment.plan.runs, "replicates": experiment.plan.replicates,
    }  # fmt: skip
    delays = any(f.is_delay for f in experiment.factors)
    untouched = "; your program is as it was, its copy has the delays" if delays else ""
    lines = [f"{experiment.folder} holds the experiment{untouched}"]
    table = [row | {"at": row["file"] and "{file}:{line}  {construct}".format(**row)} for row in rows]
    lines += row_lines(table, Column("factor", name="name"), Column("-", name="minus"),
                       Column("+", name="plus"), Column("place", name="at"))  # fmt: skip
    lines += [f"{experiment.plan.runs} treatments, {experiment.plan.replicates} times each; the commands "
              f"are in {result['description']}",
              f"next: phasewright spt run {options.folder} --check" + (
                  ", then --pilot --take for the size of the delay, then without either" if delays else
                  ", then without it")]  # fmt: skip
    return result, lines


def places(options: argparse.Namespace) -> Answer:
    """The places in sources that can be factors."""
    from desktop.data.places import find_places, hottest, offered

    names = [str(path) for path in options.sources]
    if options.offers:
        spots = offered(Path(), names)
        seconds = _seconds(options.trace)
        return _place_lines(hottest(spots, seconds) if seconds else spots)
    prepared = find_places(Path(), names, options.call)
    rows = [picked(p, "name=macro file line routine construct") for p in prepared]
    lines = row_lines(rows, *map(Column, ("name", "file", "line", "routine", "construct")))
    return {"factors": rows}, lines if rows else [f"no conditional block calls {options.call}"]


def _place_lines(offers: tuple[Spot, ...]) -> Answer:
    """Places that are not prepared yet."""
    rows = [picked(one.place, "file line routine construct") | {"share": one.share} for one in offers]
    times = [{"place": one.key, "time": percent(one.share, 1)} for one in offers]
    table = [row | time for row, time in zip(rows, times, strict=True)]
    lines = row_lines(table, *map(Column, ("place", "routine", "construct", "time")))
    return {"places": rows}, lines if rows else ["the sources hold no routine that we can read"]


def _seconds(trace: Path | None) -> dict[str, float] | None:
    """Exclusive seconds of the regions of a trace."""
    if trace is None:
        return None
    from desktop.workbench.pinning import region_seconds

    with terminal_progress() as progress:
        return region_seconds(trace, progress)
