"""Why time is lost, how many phases of which kind there are, and how good the fit is."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from html import escape

from PySide6.QtCore import QEvent, QObject, QSignalBlocker, QSize, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import QFont, QFontMetrics, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QFrame,
    QGridLayout,
    QLabel,
    QLineEdit,
    QScrollArea,
    QSizePolicy,
    QSlider,
    QSpinBox,
    QTabWidget,
    QTextBrowser,
    QWidget,
)

from desktop.core import bases
from desktop.core.explanation import Explanation
from desktop.core.labels import MIXING, MODELS
from desktop.core.quantity import PROCESSORS
from desktop.core.root_causes import STRENGTH
from desktop.core.units import digits, quantity, read_seconds, unbroken
from desktop.ui.actions import MODEL_TIPS
from desktop.ui.guard import guarded
from desktop.ui.mnemonics import rename
from desktop.ui.pages import button, choices, divided, lay_out, set_up, stacked, titled
from desktop.ui.panels import PanelSpec, why_empty
from desktop.ui.plots.notes import plain
from desktop.ui.plots.sweep_plots import BreakpointPicture, EpsilonPlot
from desktop.ui.theme import Theme
from desktop.workbench.workbench import N_LIMIT, Snapshot, Workbench

#: The slider goes to these, or as far as every n is known: phases, parameters.
_SLIDER = {False: 20, True: 60}
_EDITING = {
    Qt.Key.Key_Backspace, Qt.Key.Key_Delete, Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Home,
    Qt.Key.Key_End, Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_Return, Qt.Key.Key_Enter,
}  # fmt: skip
#: Pixels of margin left and right.
_SIDES = 10
#: Lines of those figures that are sentences: two, or all that they need where the panel has so many lines.
_ROOM, _TALL = {"suggestion": (2, 7), "second": (2, 4)}, 54
#: Figures that need a line as long as this one stand beside their names where that has room.
_FIGURE = "0.0000 to 0.0000 proc·√s"
#: A fit that takes longer (ms) is announced; others would make the figures flicker.
PATIENCE = 200

_BY_HAND = "Breakpoints were set by hand; let the algorithm place all that are not locked (R)"
_AS_SUGGESTED = "Breakpoints are as suggested; let the algorithm find those with the least error (R)"
_EPSILON = "Largest local error (L2 norm) of all phases; the fit makes it smallest"
_WORST = "The phase that has this error, and its r.m.s. deviation"
_RMS = "Root mean square of curve − fit over the run, and the squared error, which other tools minimise"
_EQUAL = "Smallest over largest of these errors; 100 % is a best partition"
_WEIGHTED = (
    "Largest weighted local error of all phases: in the mixed model a level's error counts √2-fold, a line's "
    "√(4/3)-fold, a parabola's once. The table has the errors without weights"
)


class NumberBox(QSpinBox):
    """A spin box for n. Keys that cannot write a number are left to the window, so that ``[`` and ``]``
    and Ctrl+Z act while it has the focus."""

    def __init__(self) -> None:
        super().__init__()
        self.lineEdit().installEventFilter(self)

    @guarded(otherwise=bool)
    def event(self, event: QEvent) -> bool:
        if self._for_window(event):
            event.ignore()
            return False
        return super().event(event)

    @guarded(otherwise=bool)
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if self._for_window(event):
            event.ignore()
            return True
        return super().eventFilter(watched, event)

    @staticmethod
    def _for_window(event: QEvent) -> bool:
        if event.type() != QEvent.Type.ShortcutOverride or not isinstance(event, QKeyEvent):
            return False
        plain = event.modifiers() in (Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.KeypadModifier)
        copying = event.modifiers() == Qt.KeyboardModifier.ControlModifier and event.key() in (
            Qt.Key.Key_A, Qt.Key.Key_C, Qt.Key.Key_V, Qt.Key.Key_X,
        )  # fmt: skip
        writes = plain and (event.text().isdigit() or event.key() in _EDITING)
        return not (writes or copying)


class Why(QTextBrowser):
    """Why time is lost: the causes of the run, and a sentence on each phase. Links emit
    `placeAsked(phase, start_s, end_s, location)`; phase and location may be -1."""

    placeAsked = Signal(int, float, float, int)

    def __init__(self) -> None:
        super().__init__()
        set_up(
            self, openLinks=False, accessibleName="Why time is lost",
            toolTip="\n".join(f"{word} evidence: {meaning}" for word, meaning in STRENGTH.items()),
        )  # fmt: skip
        self.setObjectName("why")
        self._explanation = Explanation()
        self.anchorClicked.connect(self._follow)

    @property
    def shows_causes(self) -> bool:
        """Whether causes are shown."""
        return bool(self._explanation.level)

    def say(self, text: str) -> None:
        """Show why there is no explanation yet."""
        self._explanation = Explanation()
        self.setHtml(f"<p>{escape(text)}</p>")

    def set_theme(self, theme: Theme) -> None:
        """Write the text again, as links keep the colour that they were written in."""
        self.document().setDefaultStyleSheet(f"a {{ color: {theme.accent} }}")
        if self.shows_causes:
            self.show_words(self._explanation)

    def show_words(self, explanation: Explanation) -> None:
        """Write an explanation; its causes and phases are links."""
        self._explanation = explanation
        first, *more = [
            f"{escape(unbroken(text))} <a href='cause:{k}'>Show</a>" if k >= 0 else escape(unbroken(text))
            for text, k in explanation.texts
        ]
        parts = [f"<b>{first}</b>", *more]
        for k, phase in enumerate(explanation.phases if len(explanation.phases) > 1 else ()):
            head = f"Phase {k + 1}"
            sentence = escape(unbroken(phase.sentence.removeprefix(head)))
            parts.append(f"<a href='phase:{k}'>{head}</a>{sentence}")
        self.setHtml("".join(f"<p>{part}</p>" for part in parts))

    def _follow(self, url: QUrl) -> None:
        kind, _, number = url.toString().partition(":")
        if kind == "cause":
            cause = self._explanation.causes[int(number)]
            self.placeAsked.emit(cause.phase, cause.start_s, cause.end_s, cause.about)
        else:
            phase = self._explanation.phases[int(number)]
            self.placeAsked.emit(int(number), phase.start_s, phase.end_s, -1)


class Figure(QLabel):
    """A text in a fixed number of lines, so that what lies below it does not move: as many of its clauses as
    fit. Its tooltip is `meaning`, with the whole text where that does not fit."""

    def __init__(self, meaning: str, lines: int) -> None:
        super().__init__()
        self._meaning, self._lines, self.full_text = meaning, lines, ""
        self.setTextFormat(Qt.TextFormat.PlainText)  # names of regions are strangers'
        self.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def say(self, text: str) -> None:
        """Show a text."""
        if text != self.full_text:
            self.full_text = text
            self._fit()

    def give(self, lines: int) -> None:
        """Set the number of lines."""
        if lines != self._lines:
            self._lines = lines
            self.updateGeometry()
            self._fit()

    def explain(self, meaning: str) -> None:
        """Set the meaning of the figure."""
        self._meaning = meaning
        self._tip()

    def _fit(self) -> None:
        whole = _lines(self.full_text, self.font(), self.width(), self._lines)
        shorter = (_lines(text, self.font(), self.width(), self._lines) for text in _begun(self.full_text))
        lines = next((lines for lines in (whole, *shorter) if "…" not in "".join(lines)), whole)
        if (text := "\n".join(lines)) != self.text():
            self.setText(text)
        self._tip()

    def _tip(self) -> None:
        cut = self.full_text if self.text().replace("\n", " ") != self.full_text else ""
        self.setToolTip(plain("\n".join(part for part in (cut, self._meaning) if part)))
        self.setAccessibleDescription(self.full_text)

    @guarded(otherwise=QSize)
    def sizeHint(self) -> QSize:
        return QSize(0, self._lines * self.fontMetrics().lineSpacing() + 1)

    @guarded(otherwise=QSize)
    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    @guarded
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    @guarded
    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._fit()


def _begun(text: str) -> Iterator[str]:
    """What a text says before each of its marks, the longest first."""
    for mark in reversed([*re.finditer("[,;] | \\(", text)]):
        if text.count("(", 0, mark.start()) == text.count(")", 0, mark.start()):
            yield text[: mark.start()]


def _lines(text: str, font: QFont, width: int, limit: int) -> list[str]:
    """The text in at most `limit` lines of this width; the last ends in an ellipsis if it is cut."""
    metrics = QFontMetrics(font)
    if metrics.horizontalAdvance(text) <= width:  # Qt would elide some that just fit
        return [text]
    if limit == 1:
        return [metrics.elidedText(text, Qt.TextElideMode.ElideRight, width)]
    words, first = text.split(" "), 1
    while first < len(words) and metrics.horizontalAdvance(" ".join(words[: first + 1])) <= width:
        first += 1
    line, rest = " ".join(words[:first]), " ".join(words[first:])
    return [*_lines(line, font, width, 1), *(_lines(rest, font, width, limit - 1) if rest else ())]


class PhasesPanel(QScrollArea):
    """Model, n, the fit's errors and certificate, and the pictures that help to choose n.

    It scrolls, so that a figure that changes lays out this panel and not the whole window with it.
    """

    def __init__(self, workbench: Workbench) -> None:
        super().__init__()
        self._workbench = workbench
        self._patience = set_up(
            QTimer(self),
            singleShot=True,
            interval=PATIENCE,
            timeout=lambda: self._show_fit(workbench.snapshot),
        )
        self._make_controls()
        self._make_facts()
        self._emphasise()
        self._arrange(narrow=False, below=False)
        self._divided = False  # by the user
        self.why = Why()
        self.why.setMinimumHeight(9 * self.fontMetrics().height())
        self.epsilon_plot = EpsilonPlot()
        self.breakpoint_picture = BreakpointPicture()
        self.pictures = set_up(QTabWidget(), documentMode=True, objectName="pictures")
        for plot, title, tip in (
            (self.epsilon_plot, "Error by n", "Error of the best fit of every n"),
            (self.breakpoint_picture, "Breakpoints by n", "Where the breakpoints of every n lie"),
        ):
            set_up(plot, minimumHeight=8 * self.fontMetrics().height(), nClicked=workbench.set_n)
            self.pictures.setTabToolTip(self.pictures.addTab(plot, title), f"{tip}; a click takes that n")
        self._content = QWidget()
        fit = stacked(self._controls, self._facts, (self.pictures, 1), spacing=8)
        self._parts = divided(Qt.Orientation.Vertical, (self.why, 1), (fit, 1))
        self._parts.splitterMoved.connect(lambda *_: setattr(self, "_divided", True))
        lay_out(self._content, self._parts, margins=(_SIDES, 8, _SIDES, 8))
        set_up(self, widget=self._content, widgetResizable=True, frameShape=QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._show_project(Snapshot())
        self._show_words(Snapshot(), Snapshot())

    @guarded(otherwise=QSize)
    def minimumSizeHint(self) -> QSize:
        """As wide as its content with figures below their names."""
        return QSize(12 * self.fontMetrics().height(), super().minimumSizeHint().height())

    # ---- building

    def _make_controls(self) -> None:
        self.model = choices(MODELS, act=self._workbench.set_model, narrow=6, objectName="model")
        for k, model in enumerate(MODELS):
            self.model.setItemData(k, MODEL_TIPS[model], Qt.ItemDataRole.ToolTipRole)
        self.n = set_up(
            NumberBox(), objectName="n", range=(1, N_LIMIT), accelerated=True,
            toolTip="Number of phases: type, wheel, or [ and ]", valueChanged=self._workbench.set_n,
            editingFinished=self._workbench.seal,
        )  # fmt: skip
        self.slider = set_up(
            QSlider(Qt.Orientation.Horizontal), objectName="n_slider", range=(1, _SLIDER[False]),
            tickPosition=QSlider.TickPosition.TicksBelow, accessibleName="Number of phases",
            valueChanged=self._workbench.set_n, sliderReleased=self._workbench.seal,
        )  # fmt: skip
        self._n_label, self._model_label = titled("&Phases", self.n), titled("&Model", self.model)
        self._suggested = button("", self._workbench.use_suggestion, name="suggested")
        self._refit = button("Find again", self._workbench.refit)
        self.events = set_up(
            QCheckBox("With structure &events"), objectName="with_events",
            toolTip="Breakpoints at regions entered or left by most processors and at what you marked, where "
            "the curve allows it; without: by the curve alone, as in the published tables",
            toggled=lambda on: self._workbench.set_pure(not on),
        )  # fmt: skip
        kinds = {"": "polynomials only"} | {space.model: space.kind for space in bases.TABLE}
        prices = ", ".join(f"{space.terms + 1} for a {space.kind} phase" for space in bases.TABLE)
        self.also = choices(
            kinds, act=self._workbench.set_also, narrow=6, objectName="also",
            toolTip="Other functions for phases, used where they justify their parameters: "
            f"{prices}",
        )  # fmt: skip
        self._also_label = titled("&Also", self.also)
        self.seconds = set_up(QLineEdit(), objectName="seconds", editingFinished=self._seconds_typed)
        self._seconds_label = titled("P&eriod", self.seconds)
        self._controls = QGridLayout()
        for widget, *place in (
            (self._n_label, 0, 0), (self.n, 0, 1), (self.slider, 2, 0, 1, 3),
            (self._model_label, 3, 0), (self.model, 3, 1), (self._also_label, 5, 0),
            (self.also, 5, 1, 1, 2), (self._seconds_label, 6, 0), (self.seconds, 6, 1, 1, 2),
            (self.events, 7, 0, 1, 3),
        ):  # fmt: skip
            self._controls.addWidget(widget, *place)

    def _seconds_typed(self) -> None:
        """Set another period or time constant; an empty field: as searched."""
        if not self.seconds.isModified():
            return
        self.seconds.setModified(False)
        text = self.seconds.text().strip()
        seconds = read_seconds(text)
        if seconds is not None or not text:
            self._workbench.set_seconds(seconds)
        self._show_seconds(self._workbench.snapshot)

    def _show_seconds(self, new: Snapshot) -> None:
        phases, fit = new.project.phases, new.fit
        for widget in (self.seconds, self._seconds_label):
            widget.setVisible(phases.scale is not None)
        for choice in (self.also, self._also_label):
            choice.setVisible(phases.model in MIXING)
            choice.setEnabled(new.run is not None)
        self.also.setCurrentIndex(self.also.findData(phases.also))
        title = phases.scale.name.capitalize() if phases.scale else ""
        rename(self._seconds_label, title)
        if self.seconds.isModified() and self.seconds.hasFocus():
            return
        used = phases.seconds
        if used is None and fit is not None and fit.basis is not None and fit.model == phases.model:
            used = fit.basis.seconds
        self.seconds.setText("" if used is None else quantity(used, "s", 5))
        how = "as searched in the whole curve" if phases.seconds is None else "as typed; clear it to search"
        if phases.seconds is None and used is not None and fit is not None and fit.limit:
            how += f"; {fit.limit}"
        self.seconds.setToolTip(f"{title} of all phases, {how}")

    def _make_facts(self) -> None:
        self._facts = grid = set_up(
            QGridLayout(), horizontalSpacing=12, verticalSpacing=3, columnStretch=(1, 1)
        )
        self._values: dict[str, Figure] = {}
        rows = (
            ("epsilon", "Error ε", _EPSILON),
            ("worst", "Largest in", _WORST),
            ("sse", "R.m.s. error", _RMS),
            ("equal", "Equidistribution", _EQUAL),
            ("certificate", "Best possible ε", "Proven by the fit: no n phases of this kind have less"),
            ("suggestion", "Suggested", "How many phases the run itself suggests, and why"),
            ("second", "Next best", "The next best number, and why it is not suggested"),
        )
        self._titles: dict[str, QLabel] = {}
        top_left = Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft
        for i, (name, title, tip) in enumerate(rows):
            self._titles[name] = set_up(QLabel(title), alignment=top_left, toolTip=tip)
            self._values[name] = set_up(
                Figure(tip, _ROOM.get(name, (1,))[0]), objectName=f"fact_{name}",
                textInteractionFlags=Qt.TextInteractionFlag.TextSelectableByMouse,
            )  # fmt: skip
            grid.addWidget(self._titles[name], 2 * i, 0)

    def _emphasise(self) -> None:
        """Make the font of n larger than that of the rest."""
        font = set_up(self.font(), bold=True, pointSizeF=1.35 * self.font().pointSizeF())
        if self.n.font() != font:
            self.n.setFont(font)

    @guarded
    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._emphasise()

    def _arrange(self, narrow: bool, below: bool) -> None:
        """Put buttons beside their fields or, where that is too `narrow`, below them, and figures beside or
        `below` their names."""
        self._arranged = narrow, below
        for act, row in ((self._suggested, 0), (self._refit, 3)):
            self._controls.addWidget(act, *((row + 1, 0, 1, 2) if narrow else (row, 2)))
        for column in (1, 2):
            self._controls.setColumnStretch(column, 0 if narrow and column == 2 else 1)
        for i, value in enumerate(self._values.values()):
            self._facts.addWidget(value, *((2 * i + 1, 0, 1, 2) if below else (2 * i, 1)))

    def _needed(self) -> tuple[int, int]:
        """The widths (pixels) from which on buttons fit beside fields, also for hidden ones, and figures
        beside their names."""
        labels, fields = (self._n_label, self._model_label, self._also_label), (self.n, self.model)
        columns = (labels, fields, (self._suggested, self._refit))
        widths = (max(w.minimumSizeHint().width() for w in column) for column in columns)
        names = max(title.minimumSizeHint().width() for title in self._titles.values())
        figures = names + self._facts.horizontalSpacing() + self.fontMetrics().horizontalAdvance(_FIGURE)
        return sum(widths) + 2 * self._controls.horizontalSpacing() + 2 * _SIDES, figures + 2 * _SIDES

    @guarded
    def resizeEvent(self, event: QResizeEvent) -> None:
        narrow, below = (self.viewport().width() < needed for needed in self._needed())
        if (narrow, below) != self._arranged:
            self._arrange(narrow, below)
        tall = event.size().height() >= _TALL * self.fontMetrics().lineSpacing()
        for name, lines in _ROOM.items():
            self._values[name].give(lines[tall])
        super().resizeEvent(event)
        if not self._divided:  # in parts of the height, not of the minimum heights
            self._parts.setSizes([3800, 6200] if tall else [4500, 5500])

    # ---- showing

    def _show_words(self, old: Snapshot, new: Snapshot) -> None:
        words, problem = new.statistics.words, new.statistics.problem or new.statistics.waits
        if words is not None and words.level:
            self.why.show_words(words)
        elif words is not None or problem or new.run is not old.run or not self.why.shows_causes:
            self.why.say(problem or why_empty(new))
        # else the old text stays until there is a new one

    def show_snapshot(self, old: Snapshot, new: Snapshot) -> None:
        if new.statistics is not old.statistics or why_empty(new) != why_empty(old):
            self._show_words(old, new)
        if new.project.phases != old.project.phases or new.fit is not old.fit or new.sweep is not old.sweep:
            self._show_project(new)
        if new.fit is not old.fit or new.run is not old.run or (old.refining and not new.refining):
            self._patience.stop()
            self._show_fit(new)
        if new.refining and not self._patience.isActive():
            self._patience.start()
        new_sweep = new.sweep is not old.sweep or new.suggestion is not old.suggestion
        new_sweep |= new.project.names != old.project.names
        if new_sweep or new.sweep_cancelled != old.sweep_cancelled:
            self._show_sweep(new)
        self._suggested.setEnabled(new.run is not None and not new.as_suggested)
        by_hand = new.fit is not None and (new.preview or new.project.phases.breaks is not None)
        how = "as suggested" if new.project.phases.suggested and not new.preview else "set by hand"
        self.epsilon_plot.set_by_hand(new.fit.epsilon if new.fit is not None and by_hand else None, how)
        n = new.project.phases.n
        if new.fit is not None and not new.refining:
            self.epsilon_plot.set_beyond(n, new.fit.epsilon)
        for plot in (self.epsilon_plot, self.breakpoint_picture):
            if plot.covers(n) or not new.refining:  # its error is known
                plot.set_n(n)

    def _show_project(self, new: Snapshot) -> None:
        phases = new.project.phases
        budget = phases.model == "budget"
        blockers = [QSignalBlocker(widget) for widget in (self.model, self.n, self.slider, self.events)]
        self.model.setCurrentIndex(self.model.findData(phases.model))
        self.model.setToolTip(MODEL_TIPS[phases.model])
        if self.n.value() != phases.n:
            self.n.setValue(phases.n)
        if not self.slider.isSliderDown():  # it would slip away under the hand
            largest = 0 if new.sweep is None else int(new.sweep.n[-1])
            self.slider.setRange(1, max(_SLIDER[budget], largest))
        self.slider.setValue(phases.n)
        self.events.setChecked(not phases.pure)
        self._show_seconds(new)
        del blockers
        rename(self._n_label, "Parameters" if budget else "Phases")
        weighted = phases.model == "mixed"
        self._titles["epsilon"].setText("Error ε, weighted" if weighted else "Error ε")
        self._titles["epsilon"].setToolTip(_WEIGHTED if weighted else _EPSILON)
        self._values["epsilon"].explain(_WEIGHTED if weighted else _EPSILON)
        self._refit.setVisible(phases.breaks is not None)
        self._refit.setToolTip(_AS_SUGGESTED if phases.suggested else _BY_HAND)
        for widget in (self.model, self.n, self.slider, self.events):
            widget.setEnabled(new.run is not None)

    def _show_fit(self, new: Snapshot) -> None:
        fit, run = new.fit, new.run
        if fit is None or run is None or not new.rows:
            for value in self._values.values():
                value.say("–")
            return
        worst = fit.worst
        rms = math.sqrt(max(0.0, fit.sse) / run.curve.duration)
        kind = run.curve.quantity
        # There is no room for both.
        unit = ", refining" if new.refining else f" {kind.per('proc·√s')}".rstrip()
        self._values["epsilon"].say(digits(fit.epsilon) + unit)
        off = f"{digits(new.rows[worst].rms, 3)} {kind.short}".rstrip()
        self._values["worst"].say(f"phase {worst + 1}, r.m.s. {off}")
        off = f"{digits(rms, 3)} {kind.short}".rstrip()
        self._values["sse"].say(f"{off} ({digits(fit.sse, 3)} {kind.of_squares})")
        note, ratio = f"; {fit.note}" if fit.note else "", float(fit.equidistribution)
        self._values["equal"].say((f"{100 * ratio:.4g} %" if math.isfinite(ratio) else "–") + note)
        bounds = (fit.lower, fit.upper) if new.sweep is None else new.sweep.bounds(fit)
        self._values["certificate"].say(self._certificate_text(*bounds, kind.per("proc·√s")))

    @staticmethod
    def _certificate_text(low: float, high: float, unit: str) -> str:
        if not (math.isfinite(low) and math.isfinite(high)):
            return "–"
        if digits(low) == digits(high):
            gap = (high - low) / high if high else 0.0
            return f"{digits(high)} {unit}" + (f", certified to {gap:.0e}" if gap else "")
        return f"{digits(low)} to {digits(high)} {unit}"

    def _show_sweep(self, new: Snapshot) -> None:
        suggestion, sweep = new.suggestion and new.suggestion.called(new.project.names), new.sweep
        self._suggested.setVisible(suggestion is not None)
        second = suggestion.runner_up if suggestion is not None else None
        self._values["second"].say("–" if second is None else f"n = {second[0]}: {second[1]}")
        if suggestion is not None:
            set_up(self._suggested, text=f"Use n = {suggestion.n}", toolTip=suggestion.reason)
            self._values["suggestion"].say(f"n = {suggestion.n}: {suggestion.reason}")
        else:
            waiting = "none, fitting every n was cancelled" if new.sweep_cancelled else "being computed…"
            self._values["suggestion"].say(waiting if new.run is not None else "–")
        first, errors, fits = (1, (), ()) if sweep is None else (int(sweep.n[0]), sweep.epsilon, sweep.fits)
        kind = PROCESSORS if new.run is None else new.run.curve.quantity
        model = new.project.phases.model
        best = suggestion.n if suggestion else None
        self.epsilon_plot.set_sweep(errors, best, model, first, kind.of_error)
        self.breakpoint_picture.set_sweep(
            [(fit.breaks, fit.breakpoint_low, fit.breakpoint_high) for fit in fits], first
        )


PANEL = PanelSpec("phases", "Phases", "right", PhasesPanel, "phases.md", frozenset({"words"}))
