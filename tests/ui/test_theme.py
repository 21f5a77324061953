"""Contrast as the WCAG defines it: 4.5 for text, 3 for lines and other graphics."""

from __future__ import annotations

import dataclasses
from functools import cache

import pytest
from PySide6.QtGui import QColor, QPalette

from desktop.core.gantt import COLOURS
from desktop.data.chart import SERIES
from desktop.ui import style, theme
from desktop.ui.settings import COLOUR_SETS

TEXT = ("text", "muted", "accent", "warning", "error")
LINES = ("curve", "fit", "breakpoint", "residual", "selection", "focus", "border")
FILLS = ("computing", "overhead", "idle", "io", "unmeasured")


@cache
@cache
def luminance(colour: str) -> float:
    c = QColor(colour)
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in c.getRgbF()[:3]]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_the_scale_ends_where_it_should():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


SCHEMES: list[theme.Theme] = [
    theme.coloured(base, colours) for base in (theme.LIGHT, theme.DARK) for colours in COLOUR_SETS
]


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda s: f"{s.name}-{s.colours}")
def test_contrast(scheme):
    for token in TEXT:
        for ground in ("background", "surface", "raised"):
            assert contrast(getattr(scheme, token), getattr(scheme, ground)) >= 4.5, (token, ground)
    for token in LINES:
        assert contrast(getattr(scheme, token), scheme.background) >= 3, token
    # The curve and its fit are also drawn over the area they bound.
    for token in ("curve", "fit", "breakpoint"):
        assert contrast(getattr(scheme, token), scheme.computing) >= 3, token


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda s: f"{s.name}-{s.colours}")
def test_state_colours_are_told_apart(scheme):
    colours = {getattr(scheme, token) for token in FILLS}
    assert len(colours) == len(FILLS)
    assert len(set(scheme.regions)) == COLOURS and len(set(scheme.series)) == SERIES
    for colour in scheme.series:
        assert contrast(colour, scheme.background) >= 3, colour
    for f in dataclasses.fields(scheme):
        value = getattr(scheme, f.name)
        assert f.name in ("name", "dark", "colours") or QColor(value).isValid(), f.name


def test_apply_sets_the_window_colour(qapp):
    try:
        style.apply(qapp, theme.DARK)
        assert qapp.palette().color(QPalette.ColorRole.Window) == QColor(theme.DARK.surface)
    finally:
        style.apply(qapp, theme.LIGHT)
    assert qapp.palette().color(QPalette.ColorRole.Window) == QColor(theme.LIGHT.surface)
