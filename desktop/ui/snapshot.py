"""A picture of the real window, without a display."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QEventLoop

from desktop import stopping
from desktop.data.atomic import place_of, write_bytes
from desktop.errors import DesktopError

if TYPE_CHECKING:
    from desktop.core.curve import StepCurve
    from desktop.core.phases import PhaseFit
    from desktop.data.store import TraceStore
    from desktop.ui.trace_page import TracePage


# Many: the options of the window, which callers pass by name.
def snapshot(
    source: str | Path | TraceStore,
    output: str | Path,
    n: int | None = None,
    model: str | None = None,
    size: tuple[int, int] = (1600, 1000),
    theme: str = "light",
    span: tuple[float, float] | None = None,
    curve: str | None = None,
    tracks: Sequence[str] = (),
    period: float | None = None,
    also: str | None = None,
) -> tuple[StepCurve, PhaseFit]:
    """Open `source` (a path, also of a project, or an open store) in the window and save its picture as PNG.

    Parameters
    ----------
    n : phases (parameters for the model "budget"); None takes the suggested number, or that of the project.
    model : None: mixed, or that of the project.
    size : of the picture in pixels, (width, height).
    span : the only range of time (seconds) that is analysed; None: the whole run, or the project's limit.
    period : of the model "periodic", the time constant of "saturation" (seconds); None: as searched.
    also : the model of a space that the models that mix may choose too; None: as the project has it.
    curve, tracks : the one that is fitted, and more to be drawn below it; None: computing, or the project's.

    Returns
    -------
    The curve and the fit that the picture shows.

    Raises
    ------
    DesktopError : the source cannot be opened.
    OSError : the picture cannot be written.
    """
    from desktop.data.project_file import is_project
    from desktop.ui.app import application
    from desktop.ui.figures import png
    from desktop.ui.frame import Frame
    from desktop.ui.settings import Settings
    from desktop.ui.theme import DARK, LIGHT

    place_of(Path(output))  # before all the work
    application()
    # The user's own layout, theme and list of files are neither used nor touched.
    frame = Frame(Settings.passing())
    window = frame.trace
    try:
        frame.use_theme(DARK if theme == "dark" else LIGHT)
        frame.resize(*size)
        frame.show()
        window.open_path(Path(source) if isinstance(source, (str, Path)) else Path(source.path))
        _settle(window)
        bench = window.workbench
        steps: list[tuple[Callable[..., None], object]] = [(bench.set_curve, curve)]
        steps += [*((bench.toggle_track, track) for track in tracks), (bench.limit_to, span)]
        for act, value in steps:
            if value is not None:
                act(value)
                _settle(window)
        project = isinstance(source, (str, Path)) and is_project(Path(source))
        if span is not None and n is None and not project:
            bench.use_suggestion()
        before = bench.snapshot.project.phases
        steps = [(bench.set_model, model), (bench.set_also, also), (bench.set_seconds, period)]
        for (act, value), old in zip(steps, (before.model, before.also, before.seconds), strict=True):
            if value is not None and value != old:
                act(value)
                _settle(window)
        after = bench.snapshot.project.phases
        if n is not None:
            bench.set_n(n)
        elif (after.model, after.seconds, after.also) != (before.model, before.seconds, before.also):
            bench.use_suggestion()
        _settle(window)
        result = bench.snapshot
        problem, run, fit = result.problem, result.run, result.fit
        if problem is not None or run is None or fit is None:
            raise DesktopError(problem.sentence if problem else "there is nothing to show", file=None)
        write_bytes(Path(output), png(frame.grab().toImage()))
        return run.curve, fit
    finally:
        frame.close_unasked()
        frame.deleteLater()


def _settle(window: TracePage) -> None:
    """Let all jobs end and all that they changed be painted."""
    loop = QEventLoop()
    while window.busy:
        loop.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)
    stopping.check()
    for _ in range(5):
        loop.processEvents()
