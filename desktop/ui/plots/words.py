"""How the plots of the window and the figures say what their descriptions state."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QCoreApplication

from desktop.ui.units import asked_unit, quantity
from desktop.workbench.time_plots import Words


def words(replaced: Mapping[str, str] | None = None) -> Words:
    """In the reader's language and in the unit of time that was asked for."""
    return Words(replaced, _translate, asked_unit(), quantity)


def _translate(text: str) -> str:
    return QCoreApplication.translate("Plots", text)
