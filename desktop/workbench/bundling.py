"""Bundles: a project with all that it needs in one file, which is made to be given away.

A stranger's project may name any file of this machine, by its path or through a link. So of what lies outside
of the project's own folder nothing goes into a bundle but what the user was asked about (`outside`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from desktop.data.naming import file_stem
from desktop.errors import DesktopError
from desktop.progress import Progress, Share
from desktop.workbench.model import DETECT, KeptExperiment, OpenOptions, Workspace


@dataclass(frozen=True)
class Outside:
    """A file (a trace with all of its files) that a project names and that is not in its folder.

    `path`: as it is named; `real`: where that leads; `size`: bytes, of all its files.
    """

    kind: Literal["trace", "experiment", "table"]
    path: Path
    real: Path
    size: int


def outside(workspace: Workspace, folder: Path | None, progress: Progress) -> tuple[Outside, ...]:
    """The files that a bundle would hold and that are not in the project's folder, each once, in its order.

    `folder` None: the project has none, so it is all of them. Hidden files (with a name that begins with a
    dot), and all in a folder that holds the user's home, count as outside.
    """
    files_outside: dict[Path, Outside] = {}
    for path, options in _traces(workspace):
        files = _files_of_trace(path, options, progress)
        if not all(_within(file, folder) for file, _ in files):
            real = path.resolve()
            files_outside.setdefault(real, Outside("trace", path, real, sum(size for _, size in files)))
    for kind, path in _other_files(workspace):
        for file in _files(path):
            real = file.resolve()
            if not _within(real, folder):
                files_outside.setdefault(real, Outside(kind, file, real, file.stat().st_size))
    return tuple(files_outside.values())


def pack(
    workspace: Workspace,
    target: Path,
    folder: Path | None,
    allowed: frozenset[Path],
    progress: Progress,
) -> None:
    """Make the bundle `target`; what is outside of `folder` and not `allowed` (`Outside.real`) is named in it
    and not there.

    Raises
    ------
    DesktopError : a trace cannot be read.
    OSError : a file cannot be read, or the bundle not be written.
    Cancelled : by `progress`; nothing is left behind.
    """
    from desktop.data import project_file
    from desktop.data.atomic import scratch_folder

    with scratch_folder() as work:
        bundle = _Bundle(work, folder, allowed)
        runs = []
        for k, run in enumerate(workspace.runs):
            share = Share(progress, 0.5 * k / len(workspace.runs), 0.5 * (k + 1) / len(workspace.runs))
            path = bundle.trace(run.trace.path, run.trace.options, share)
            runs.append(replace(run, trace=replace(run.trace, path=path, options=DETECT)))
        content = replace(
            workspace,
            runs=tuple(runs),
            experiments=tuple(bundle.experiment(one, progress) for one in workspace.experiments),
            tables=tuple(
                one if one.path is None else replace(one, path=bundle.take("tables", one.path))
                for one in workspace.tables
            ),
        )
        project_file.write(bundle.folder / project_file.BUNDLED, content)
        project_file.pack(target, bundle.folder, bundle.files, Share(progress, 0.5, 1.0))


class _Bundle:
    """Files that go into a bundle. `folder`: where its project is while it is packed."""

    def __init__(self, folder: Path, home: Path | None, allowed: frozenset[Path]) -> None:
        self.folder, self._home, self._allowed = folder, home, allowed
        #: by their names in the bundle
        self.files: dict[str, Path] = {}
        self._places: dict[Path, Path] = {}
        self._traces = 0

    def trace(self, path: Path, options: OpenOptions, progress: Progress) -> Path:
        """A trace as its imported file; where that is in the bundle."""
        from desktop.data.opening import open_trace

        self._traces += 1
        place = f"stores/{self._traces}-{file_stem(path, options.member)[:60]}.h5"
        files = _files_of_trace(path, options, progress)
        if path.resolve() in self._allowed or all(_within(file, self._home) for file, _ in files):
            with open_trace(path, progress, **asdict(options)) as store:
                if store.elsewhere is not None:
                    store.elsewhere.bring([(0, store.elsewhere.size)], progress, f"from {path}")
                self.files[place] = store.path
        return self.folder / place

    def take(self, kind: str, path: Path) -> Path:
        """A file or all of an experiment; where it is in the bundle. What is not there stays not there, and
        so do other folders."""
        if path not in self._places:
            place = f"{kind}/{len(self._places) + 1}-{path.name}"
            self._places[path] = self.folder / place
            for file in _files(path):
                real = file.resolve()
                if real in self._allowed or _within(real, self._home):
                    below = file.relative_to(path).as_posix()
                    self.files[place if file == path else f"{place}/{below}"] = file
        return self._places[path]

    def experiment(self, experiment: KeptExperiment, progress: Progress) -> KeptExperiment:
        compared = (replace(one, path=self.take("compared", one.path)) for one in experiment.compared)
        has_trace = experiment.trace is not None and experiment.trace.exists()
        return replace(
            experiment,
            path=self.take("experiments", experiment.path),
            compared=tuple(compared),
            trace=self.trace(experiment.trace, DETECT, progress)
            if has_trace and experiment.trace is not None
            else None,
        )


def _traces(workspace: Workspace) -> Iterator[tuple[Path, OpenOptions]]:
    for run in workspace.runs:
        yield run.trace.path, run.trace.options
    for experiment in workspace.experiments:
        if experiment.trace is not None and experiment.trace.exists():
            yield experiment.trace, DETECT


def _other_files(workspace: Workspace) -> Iterator[tuple[Literal["experiment", "table"], Path]]:
    for experiment in workspace.experiments:
        yield "experiment", experiment.path
        for one in experiment.compared:
            yield "table", one.path
    for table in workspace.tables:
        if table.path is not None:
            yield "table", table.path


def _files(path: Path) -> list[Path]:
    """A file, or all in the folder of an experiment; none of another folder."""
    from desktop.data.naming import DESCRIPTION

    files = sorted(path.rglob("*")) if (path / DESCRIPTION).is_file() else [path]
    return [file for file in files if file.is_file()]


def _files_of_trace(path: Path, options: OpenOptions, progress: Progress) -> list[tuple[Path, int]]:
    """Where the files of a trace really are, and their bytes."""
    from desktop.data.opening import files_of

    try:
        return files_of(path, progress, options.format_id, options.time_unit, options.member)
    except DesktopError:  # reported when it is opened
        return [(path.resolve(), 0)]


def _within(real: Path, folder: Path | None) -> bool:
    """Whether a file is in the project's folder, which is no one's home."""
    if folder is None or not real.is_relative_to(folder):
        return False
    try:
        everything = Path.home().resolve().is_relative_to(folder)
    except RuntimeError:  # the user has none
        everything = False
    return not everything and not any(part.startswith(".") for part in real.relative_to(folder).parts)
