"""Colours: one table of tokens per scheme, from which palette, style sheet and plots are made.

State colours follow the Okabe-Ito set, which the colour-blind can tell apart. On the white ground only
tokens of contrast 3 or more draw lines; every text token has at least 4.5 (checked by a test).
"""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication


@dataclass(frozen=True)
class Theme:
    """Colour tokens as ``#rrggbb``.

    `background` lies under plots and tables, `surface` is the window, `raised` a button or a card.
    `computing` .. `unmeasured` fill areas and are always told apart by an outline or a label as well;
    `curve`, `fit`, `break_line`, `residual` and `selection` draw lines; `band` tints a break's range.
    """

    name: str
    dark: bool
    background: str
    surface: str
    raised: str
    text: str
    muted: str
    grid: str
    border: str
    accent: str
    focus: str
    computing: str
    overhead: str
    idle: str
    io: str
    unmeasured: str
    curve: str
    fit: str
    break_line: str
    band: str
    residual: str
    selection: str
    warning: str
    error: str


LIGHT = Theme(
    name="light",
    dark=False,
    background="#ffffff",
    surface="#f3f5f7",
    raised="#ffffff",
    text="#1a1f26",
    muted="#55606d",
    grid="#dde2e8",
    border="#838d99",
    accent="#0b5fa5",
    focus="#0b5fa5",
    computing="#9fcbe8",
    overhead="#f0b64d",
    idle="#d9dde2",
    io="#dba6c4",
    unmeasured="#aab2bb",
    curve="#00649f",
    fit="#bf3d00",
    break_line="#39424e",
    band="#bf3d00",
    residual="#0f7a5a",
    selection="#6a3fb5",
    warning="#8a5800",
    error="#b3261e",
)

DARK = Theme(
    name="dark",
    dark=True,
    background="#14171b",
    surface="#1d2126",
    raised="#2a3037",
    text="#e8ebef",
    muted="#a3adb8",
    grid="#2c333b",
    border="#717c89",
    accent="#6cb6ec",
    focus="#6cb6ec",
    computing="#1f567c",
    overhead="#96660c",
    idle="#363d46",
    io="#7f4a68",
    unmeasured="#59636e",
    curve="#6cc0f2",
    fit="#ff9d4d",
    break_line="#c6cdd6",
    band="#ff9d4d",
    residual="#3fc497",
    selection="#b79cf0",
    warning="#f0b64d",
    error="#ff8a80",
)


def palette(theme: Theme) -> QPalette:
    """The Qt palette of `theme`, disabled texts muted."""
    role = QPalette.ColorRole
    p = QPalette()
    for roles, colour in (
        ((role.Window,), theme.surface),
        ((role.Base,), theme.background),
        ((role.AlternateBase, role.ToolTipBase, role.Button), theme.raised if theme.dark else theme.surface),
        ((role.WindowText, role.Text, role.ButtonText, role.ToolTipText, role.BrightText), theme.text),
        ((role.PlaceholderText,), theme.muted),
        ((role.Highlight, role.Link, role.Accent), theme.accent),
        ((role.LinkVisited,), theme.selection),
        ((role.HighlightedText,), theme.background),
        ((role.Light, role.Midlight), theme.raised),
        ((role.Mid, role.Dark), theme.border),
        ((role.Shadow,), "#000000"),
    ):
        for r in roles:
            p.setColor(r, QColor(colour))
    for r in (role.WindowText, role.Text, role.ButtonText):
        p.setColor(QPalette.ColorGroup.Disabled, r, QColor(theme.border))
    return p


def stylesheet(theme: Theme) -> str:
    """What the palette cannot say: thin borders and a focus frame that can be seen."""
    return f"""
        QToolTip {{ color: {theme.text}; background: {theme.raised}; border: 1px solid {theme.border}; }}
        QMainWindow::separator {{ background: {theme.grid}; width: 4px; height: 4px; }}
        QMainWindow::separator:hover {{ background: {theme.accent}; }}
        QHeaderView::section {{ color: {theme.muted}; background: {theme.surface}; border: none;
            border-bottom: 1px solid {theme.border}; padding: 3px 6px; }}
        QTableView {{ gridline-color: {theme.grid}; border: 1px solid {theme.grid}; }}
        QTableView:focus, QListView:focus, QTreeView:focus {{ border: 1px solid {theme.focus}; }}
        QToolBar {{ border: none; border-bottom: 1px solid {theme.grid}; spacing: 4px; padding: 2px; }}
        QStatusBar {{ border-top: 1px solid {theme.grid}; }}
        QStatusBar::item {{ border: none; }}
    """


def apply(app: QApplication, theme: Theme) -> None:
    """Fusion style, palette and style sheet of `theme` for the whole program."""
    app.setStyle("Fusion")
    app.setPalette(palette(theme))
    app.setStyleSheet(stylesheet(theme))
