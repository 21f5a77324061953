"""An analysis that is limited to a range of time: what happens to breakpoints locked or set by hand.

Those inside of the range are used as they are. Those outside stay in the project and are not applied; they
come back when the limit goes.
"""

from __future__ import annotations

import math
from dataclasses import replace

from desktop.core.phases import least_n
from desktop.workbench.model import PhaseSettings, Project, SetAside

Span = tuple[float, float]


def limited(project: Project, limit: Span | None, whole: Span) -> Project:
    """The project with its analysis limited to a range of time (seconds); None: to the `whole` run's.

    An earlier limit is removed first, so that nothing is lost by going from one to another. Breakpoints by
    hand come back as they were, with what was changed by hand inside of the limit; where another fit was
    asked for inside, as they were before.
    """
    phases = _whole(project, whole)
    if limit is None:
        return replace(project, phases=phases, limit=None, aside=None)
    start, end = limit
    # A limit that ends at a breakpoint, as one made from a phase does, leaves that one outside.
    near = 1e-9 * (end - start) if math.isfinite(end - start) else 0.0

    def inside(time_s: float) -> bool:
        return start + near < time_s < end - near

    locked = tuple(t for t in phases.locked if inside(t))
    aside = SetAside(tuple(t for t in phases.locked if not inside(t)), phases.breaks, phases.degrees)
    phases = replace(phases, locked=locked)
    if phases.breaks is not None:
        breakpoints = (start, *(t for t in phases.breaks[1:-1] if inside(t)), end)
        phases = phases.by_hand(breakpoints, phases.by_ends)
    return replace(project, phases=phases, limit=limit, aside=None if aside == SetAside() else aside)


def count_outside(project: Project) -> int:
    """How many breakpoints, locked or by hand, a limit keeps from being applied."""
    if project.limit is None or project.aside is None:
        return 0
    start, end = project.limit
    by_hand = {t for t in (project.aside.breaks or ())[1:-1] if not start < t < end}
    return len(by_hand | set(project.aside.locked))


def _whole(project: Project, whole: Span) -> PhaseSettings:
    """The settings without the limit."""
    phases, aside = project.phases, project.aside or SetAside()
    if project.limit is None:
        return phases
    locked = tuple(sorted({*phases.locked, *aside.locked}))
    unlimited = replace(phases, locked=locked, n=max(phases.n, least_n(phases.model, locked)))
    settings = unlimited.free() if aside.breaks is None else replace(unlimited, breaks=aside.breaks)
    if aside.breaks is not None:
        settings = replace(settings, degrees=aside.degrees)
    if phases.breaks is None:
        return settings if settings.breaks is None else settings.by_hand(settings.breaks, settings.by_ends)
    start, end = project.limit
    outside = [t for t in (settings.breaks or ())[1:-1] if not start < t < end]
    breakpoints = (whole[0], *sorted({*outside, *phases.breaks[1:-1]}), whole[1])
    return unlimited.by_hand(breakpoints, [*settings.by_ends, *phases.by_ends])
