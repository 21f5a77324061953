"""Colours: one table of tokens per scheme, from which palette, style and plots are made.

State colours follow the Okabe-Ito set, which the colour-blind can tell apart; two other sets can be chosen
(`coloured`), Okabe-Ito at full strength and those of P. Tol, "Colour schemes" (SRON/EPS/TN/09-002, 2021).
On the white ground only tokens of contrast 3 or more draw lines; every text token has at least 4.5
(checked by a test).
"""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPalette, QPen
from PySide6.QtWidgets import QWidget

from desktop.workbench.bench import changed


@dataclass(frozen=True)
class Theme:
    """Colour tokens as ``#rrggbb``.

    `background` lies under plots and tables, `surface` is the window, `raised` a button or a card.
    `computing` .. `unmeasured` fill areas and are always told apart by an outline or a label as well;
    `curve`, `fit`, `breakpoint`, `residual` and `selection` draw lines; `band` tints a breakpoint's range.
    `colours`: which set states, regions and series are of.
    """

    name: str
    dark: bool
    background: str
    surface: str
    raised: str
    text: str
    muted: str
    disabled: str
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
    breakpoint: str
    band: str
    residual: str
    selection: str
    warning: str
    error: str
    colours: str = "soft"

    @property
    def series(self) -> tuple[str, ...]:
        """`SERIES` colours of lines and marks; what is drawn is told apart by mark or dash as well."""
        return tuple(pair[self.dark] for pair in _SERIES[self.colours])

    @property
    def regions(self) -> tuple[str, ...]:
        """Fills of as many regions as have a colour of their own, to be mixed with the ground."""
        return _REGIONS[self.colours]

    @property
    def on_white(self) -> Theme:
        """For what is handed to others, whatever the theme."""
        return coloured(LIGHT, self.colours)


#: Of each token on a light and on a dark ground.
_TOKENS = {
    "background": ("#ffffff", "#14171b"),
    "surface": ("#f3f5f7", "#1d2126"),
    "raised": ("#ffffff", "#2a3037"),
    "text": ("#1a1f26", "#e8ebef"),
    "muted": ("#55606d", "#a3adb8"),
    "disabled": ("#66707b", "#87919d"),
    "grid": ("#dde2e8", "#2c333b"),
    "border": ("#838d99", "#717c89"),
    "accent": ("#0b5fa5", "#6cb6ec"),
    "focus": ("#0b5fa5", "#6cb6ec"),
    "computing": ("#9fcbe8", "#1f567c"),
    "overhead": ("#f0b64d", "#96660c"),
    "idle": ("#d9dde2", "#363d46"),
    "io": ("#dba6c4", "#7f4a68"),
    "unmeasured": ("#aab2bb", "#59636e"),
    "curve": ("#00649f", "#6cc0f2"),
    "fit": ("#bf3d00", "#ff9d4d"),
    "breakpoint": ("#39424e", "#c6cdd6"),
    "band": ("#bf3d00", "#ff9d4d"),
    "residual": ("#0f7a5a", "#3fc497"),
    "selection": ("#6a3fb5", "#b79cf0"),
    "warning": ("#8a5800", "#f0b64d"),
    "error": ("#b3261e", "#ff8a80"),
}
LIGHT, DARK = (
    Theme(name, k == 1, **{token: pair[k] for token, pair in _TOKENS.items()})
    for k, name in enumerate(("light", "dark"))
)


# Of each series on a light and on a dark ground; the yellow of the sets is carried by no light ground.
_OKABE_ITO = (
    ("#0072b2", "#56b4e9"),
    ("#d55e00", "#ff9d4d"),
    ("#007a59", "#3fc497"),
    ("#a8538c", "#e29fc6"),
    ("#8a6500", "#e6c14a"),
    ("#5a5f66", "#b4bcc6"),
)
_SERIES = {
    "soft": _OKABE_ITO,
    "okabe-ito": _OKABE_ITO,
    "tol": (
        ("#4477aa", "#66ccee"),
        ("#bb5566", "#ee6677"),
        ("#228833", "#55bb66"),
        ("#aa3377", "#dd88bb"),
        ("#857600", "#ccbb44"),
        ("#5a5f66", "#bbbbbb"),
    ),
}
# Okabe-Ito and four between; Tol's muted set and two of his light ones.
_OKABE_ITO_FILLS = (
    *("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442", "#0072b2"),
    *("#d55e00", "#8c6bb1", "#8dd3c7", "#a6761d", "#7f7f7f", "#b3de69"),
)
_REGIONS = {
    "soft": _OKABE_ITO_FILLS,
    "okabe-ito": _OKABE_ITO_FILLS,
    "tol": (
        *("#88ccee", "#ddcc77", "#44aa99", "#cc6677", "#332288", "#999933"),
        *("#aa4499", "#117733", "#ee8866", "#882255", "#bbbbbb", "#77aadd"),
    ),
}
# What the sets have instead of the tokens above: (light, dark).
_STATES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "soft": ({}, {}),
    "okabe-ito": (
        {"computing": "#8fcdf1", "overhead": "#e69f00", "io": "#cc79a7", "unmeasured": "#999999",
         "curve": "#00588c", "residual": "#007a59"},
        {"computing": "#00588c", "overhead": "#b27b00", "io": "#9c5580", "unmeasured": "#6b7580",
         "curve": "#8ccdf5", "residual": "#3fc497"},
    ),
    "tol": (
        {"computing": "#a9dff2", "overhead": "#ccbb44", "io": "#ee99aa", "unmeasured": "#aaaaaa",
         "curve": "#225588", "fit": "#b03348", "band": "#b03348", "residual": "#1b7029"},
        {"computing": "#2c5580", "overhead": "#857600", "io": "#8f3a58", "unmeasured": "#6b7580",
         "curve": "#7fd3f2", "fit": "#ff9aa6", "band": "#ff9aa6", "residual": "#55bb66"},
    ),
}  # fmt: skip


def coloured(theme: Theme, colours: str) -> Theme:
    """`theme` with the set of colours of that name, see `desktop.ui.settings.COLOUR_SETS`."""
    if theme.colours == colours:
        return theme
    return changed(theme, {"colours": colours, **_STATES[colours][theme.dark]})


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
        p.setColor(QPalette.ColorGroup.Disabled, r, QColor(theme.disabled))
    return p


def dress(root: QWidget, theme: Theme) -> None:
    """Hand the theme to all within a widget that the palette does not dress: what has a `set_theme`."""
    for child in root.findChildren(QWidget):
        # Of its class, as Qt's classes look long for what they have not.
        set_theme = getattr(type(child), "set_theme", None)
        if set_theme is not None:
            set_theme(child, theme)


def faded(colour: str | QColor, alpha: int) -> QColor:
    """A colour that covers `alpha` parts of 255 of what is below."""
    transparent = QColor(colour)
    transparent.setAlpha(alpha)
    return transparent


def paint_focus(painter: QPainter, widget: QWidget, theme: Theme) -> None:
    """A frame at the edge of what paints itself, if it has the focus."""
    if widget.hasFocus():
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(theme.focus), 1))
        painter.drawRect(QRectF(0.5, 0.5, widget.width() - 1, widget.height() - 1))


def paint_note(painter: QPainter, widget: QWidget, theme: Theme, text: str) -> None:
    """Why there is nothing to be seen, in the middle of what paints itself."""
    painter.setPen(QColor(theme.muted))
    flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
    painter.drawText(QRectF(widget.rect()).adjusted(12, 12, -12, -12), int(flags), text)
