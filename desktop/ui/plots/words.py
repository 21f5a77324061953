"""How the plots of the window and the figures say what their descriptions state."""

from __future__ import annotations

from collections.abc import Mapping

from desktop.core.units import asked_unit, quantity
from desktop.workbench.time_plots import Words


def words(replaced: Mapping[str, str] | None = None) -> Words:
    """In the unit of time that was asked for."""
    return Words(replaced, asked_unit(), quantity)
