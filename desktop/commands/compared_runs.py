"""The runs that the options of ``phasewright compare`` name."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from desktop.workbench.model import KeptRun, Matched, PhaseSettings


class Member(NamedTuple):
    """A run that the options name. `phases` None: those suggested; `project`: the file that it is kept in;
    `key`: its name there, see `run_keys` of `desktop.workbench.model`."""

    run: KeptRun
    phases: PhaseSettings | None
    project: Path | None
    key: str


def select(options: argparse.Namespace) -> tuple[list[Member], tuple[Matched, ...], str, int, bool]:
    """The runs to compare with their phases, and what projects among the files say about the comparison."""
    from desktop.data.project_file import is_project
    from desktop.errors import FileError
    from desktop.workbench.keeping import read_workspace
    from desktop.workbench.model import PhaseSettings, run_keys
    from desktop.workbench.run_comparison import plain_run

    explicit = options.n is not None or options.model is not None
    members: list[Member] = []
    matched: tuple[Matched, ...] = ()
    axis, reference, share = "start", 0, False
    for file in options.files:
        if not file.exists():
            raise FileError("does not exist", file=file)
        if not is_project(file):
            settings = PhaseSettings(options.model or "mixed", options.n) if options.n is not None else None
            if settings is None and options.model is not None:
                raise ValueError("--model needs -n N: say how many phases")
            one = plain_run(file, settings or PhaseSettings(), options.curve or "computing")
            members.append(Member(one, settings, None, ""))  # pairs by hand are of projects only
            continue
        workspace = read_workspace(file)
        comparison = workspace.comparison
        matched += comparison.matched
        for key, one in zip(run_keys(workspace.runs), workspace.runs, strict=True):
            if key in comparison.hidden:
                continue
            if key == comparison.reference:
                reference = len(members)
            if options.curve and options.curve != one.project.curve:
                # Breakpoints of another curve do not fit this one.
                project = replace(one.project, curve=options.curve, phases=one.project.phases.free())
                one = replace(one, project=project)
            phases = one.project.phases
            if explicit:
                phases = PhaseSettings(options.model or phases.model, options.n or phases.n)
            members.append(Member(one, phases, file, key))
        axis, share = comparison.axis, comparison.share
    if options.reference is not None:
        reference = options.reference - 1
    return members, matched, options.axis or axis, reference, options.share or share
