"""The page of traces: one of the project at a time, its plots, its panels, and the commands of
`desktop.ui.actions`."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QChildEvent, QEvent, QSize, Qt, QTimer
from PySide6.QtGui import QAction, QActionGroup, QColor, QGuiApplication, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QAbstractSlider,
    QDockWidget,
    QFrame,
    QLabel,
    QMainWindow,
    QMenu,
    QScrollArea,
    QSplitter,
    QStackedWidget,
    QTabBar,
    QTabWidget,
    QToolBar,
    QToolButton,
    QWidget,
)

from desktop import resources
from desktop.core.quantity import PROCESSORS
from desktop.core.units import capital, digits, format_number, instant, quantity, scaled, signed, time_scale
from desktop.data.naming import run_name
from desktop.data.tables import holds_measurements
from desktop.remote import listeners
from desktop.ui import theme as themes
from desktop.ui.actions import COMMANDS, MENUS, MOUSE
from desktop.ui.chips import ChipBar
from desktop.ui.commands import AnyCommand
from desktop.ui.exporting import FigureDialog, ReportDialog
from desktop.ui.guard import guarded, in_ems
from desktop.ui.icons import icon
from desktop.ui.opening import ChoiceDialog, OpenDialog, RemoteDialog
from desktop.ui.page import Page
from desktop.ui.pages import asked_paths, column, set_up
from desktop.ui.panels import AnyPanel, Panel, PanelSpec, panels
from desktop.ui.panels.trace import summary
from desktop.ui.plots.chart import Chart
from desktop.ui.plots.curve_view import CurveView
from desktop.ui.plots.sweep_plots import SweepPlot
from desktop.ui.plots.time_plot import stacked
from desktop.ui.plots.timeline_pane import TimelinePane
from desktop.ui.project_desk import ProjectDesk, is_project_file
from desktop.ui.settings import STATE_VERSION
from desktop.ui.start_page import StartPage
from desktop.workbench import presenting
from desktop.workbench.jobs import Task
from desktop.workbench.model import OpenOptions
from desktop.workbench.run_comparison import RunComparison
from desktop.workbench.workbench import Snapshot, TraceRun, Workbench

if TYPE_CHECKING:
    from desktop.core.curve import StepCurve
    from desktop.ui.compare_page import ComparePage
    from desktop.ui.console import PythonConsole
    from desktop.ui.frame import Frame
    from desktop.ui.panels.table import TablePanel
    from desktop.ui.panels.views import ViewsPanel
    from desktop.ui.presentation import Presentation

_AREAS = {"right": Qt.DockWidgetArea.RightDockWidgetArea, "bottom": Qt.DockWidgetArea.BottomDockWidgetArea}
#: Parts of the window's height that curve and timeline have at least, unless the user takes them away.
_CURVE, _TIMELINE = 1 / 3, 1 / 4
#: Rows of the phase table that are in view at first.
_ROWS = 8
#: Width in characters at which the side panels show figures beside their names, if the window has room.
_SIDE = 56
#: At the curve, until the exact one has come from another machine.
_COARSE = "coarse: means of short parts, the exact curve is not here yet"
#: Milliseconds between panels that are made in advance.
_PAUSE = 50


class _Scrolled(QScrollArea):
    """A panel that scrolls where it has less room than it needs, so that it never makes the window larger."""

    def __init__(self) -> None:
        super().__init__()
        no_focus = Qt.FocusPolicy.NoFocus
        set_up(self, widgetResizable=True, frameShape=QFrame.Shape.NoFrame, focusPolicy=no_focus)

    @guarded(otherwise=QSize)
    def sizeHint(self) -> QSize:
        panel = self.widget()
        return self.minimumSizeHint() if panel is None else panel.sizeHint()

    minimumSizeHint = in_ems(12, 6)


class _Plots(QSplitter):
    """The curve above the timeline; `divide` gives the latter's height, pixels, for that of both."""

    def __init__(self, divide: Callable[[int], int]) -> None:
        super().__init__(Qt.Orientation.Vertical)
        self._divide = divide
        set_up(self, objectName="plots", childrenCollapsible=False)

    def share(self) -> None:
        height = self.height() - self.handleWidth()
        low = self._divide(height)
        self.setSizes([height - low, low])

    @guarded
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.share()


class TracePage(Page):
    """Shows the snapshots of its workbench, and passes on the user's actions."""

    KIND = "trace"
    NAME = "main"
    COMMANDS = COMMANDS
    MENUS = MENUS
    MOUSE = MOUSE

    workbench: Workbench
    run_tabs: QTabBar
    curve_view: CurveView
    timeline: TimelinePane
    percent: bool
    desk: ProjectDesk
    _docks_sized: bool
    _closed_docks: set[str]  # by the user

    def __init__(self, frame: Frame) -> None:
        super().__init__(frame)
        self.mode = "select"
        self.percent = False
        self.presentation: Presentation | None = None
        self.console: PythonConsole | None = None
        self.comparing: ComparePage | None = None
        self.workbench = Workbench(self._results.deliver, history=frame.main.history)
        listeners.append(self._hear_of_line)
        self._cursor = math.nan
        self.setWindowTitle("Phasewright")
        options = QMainWindow.DockOption
        self.setDockOptions(options.AnimatedDocks | options.AllowTabbedDocks | options.AllowNestedDocks)
        self._make_centre()
        self._make_panels()
        self._make_actions()
        # As narrow as can be: a long text would make the window wider.
        self._cursor_text, self._selection_text = self.status = (
            set_up(QLabel(), contentsMargins=(10, 0, 10, 0), minimumWidth=1),
            set_up(QLabel(), contentsMargins=(10, 0, 10, 0), minimumWidth=1),
        )
        self._first_layout = self.saveState(STATE_VERSION)
        self._restore_layout()
        self.desk = ProjectDesk(self, self._results.deliver)
        self.run_comparison = RunComparison(self.workbench, self.desk.projects, self._results.deliver)
        self._connect_plots()
        self.workbench.subscribe(self._show_snapshot)
        self._fits_timer = set_up(QTimer(self, interval=300), timeout=self._show_fits)
        self._begin()
        self._show_snapshot(Snapshot(), self.workbench.snapshot)
        QTimer.singleShot(0, self, self._hide_stale_tabs)

    # ---- building

    def _make_centre(self) -> None:
        self.run_tabs = set_up(
            QTabBar(), objectName="runs", accessibleName="Opened traces", expanding=False, drawBase=False,
            tabsClosable=True, currentChanged=self._choose_run,
            tabCloseRequested=lambda k: self.desk.projects.put_aside(self.run_tabs.tabData(k)), visible=False,
        )  # fmt: skip
        self._pages = QStackedWidget()
        self.setCentralWidget(column(self.run_tabs, self._pages))
        self.chips = ChipBar(self.workbench)
        ways: dict[str, Callable[[], object]] = {
            "Open a trace…": self.choose_file,
            "Tour in five minutes": partial(self.show_help, "tour.md"),
            "List of keys": self.show_keys,
        }
        self.start_page = StartPage(resources.samples(), self.open_path, self.clear_recent, ways)
        self._pages.addWidget(self.start_page)
        self.start_page.show_recent(self.settings.recent)
        self._plots = _Plots(self._timeline_height)
        self._pages.addWidget(self._plots)
        self.curve_view = CurveView()
        self._plots.addWidget(self.curve_view)
        self.timeline = TimelinePane(self.curve_view.navigation, self._results.deliver, self.workbench.report)
        self._plots.addWidget(self.timeline)
        self.timeline.opened.connect(lambda _: self._place_timeline())
        self.timeline.filtered.connect(self._refresh_actions)
        self.timeline.view.pathWanted.connect(self.show_critical_path)
        self._plots.splitterMoved.connect(self._keep_timeline_share)
        self.timeline.hide()

    def _make_panels(self) -> None:
        self._docks: dict[str, QDockWidget] = {}
        self._panels: dict[str, AnyPanel] = {}  # those that are made
        self._specs = {spec.id: spec for spec in panels()}
        self._made_calls: dict[str, list[Callable[[AnyPanel], object]]] = {name: [] for name in self._specs}
        last: dict[str, QDockWidget] = {}
        self._roomy: set[str] = set()  # panels below that have had the height that they need
        self._behind = set(self._specs)  # panels that nobody sees
        self._seen = dict.fromkeys(self._specs, Snapshot())  # what each of them shows
        for spec in self._specs.values():
            dock = set_up(QDockWidget(spec.title, self), objectName=f"dock_{spec.id}")
            self.addDockWidget(_AREAS[spec.area], dock)
            dock.setWidget(_Scrolled())
            if spec.area in last:
                self.tabifyDockWidget(last[spec.area], dock)
            last[spec.area] = dock
            self._docks[spec.id] = dock
            # Not the panel's own showing: a dock behind another tab counts as shown.
            dock.visibilityChanged.connect(partial(self._turned, spec))
        self.when_made("iterations", lambda panel: panel.placeAsked.connect(self.show_range))
        self.when_made("table", self._connect_table)
        self.when_made("phases", lambda panel: panel.why.placeAsked.connect(self.show_place))
        self.when_made("views", self._connect_views)
        self._raise_first()
        self.setCorner(Qt.Corner.BottomRightCorner, Qt.DockWidgetArea.RightDockWidgetArea)
        self.setTabPosition(Qt.DockWidgetArea.RightDockWidgetArea, QTabWidget.TabPosition.North)

    def when_made(self, panel_id: str, act: Callable[[AnyPanel], object]) -> None:
        """Call `act` with a panel once it is made: when it first comes to the front, as making all of them
        takes as long as the rest of the page."""
        if panel_id in self._panels:
            act(self._panels[panel_id])
        else:
            self._made_calls[panel_id].append(act)

    def _make_panel(self, panel_id: str) -> None:
        dock = self._docks[panel_id]
        panel = self._panels[panel_id] = self._specs[panel_id].make(self.workbench)
        area = dock.widget()
        assert isinstance(area, _Scrolled)
        area.setWidget(panel)
        self._join(area)
        for act in self._made_calls.pop(panel_id):
            act(panel)

    def _connect_table(self, panel: TablePanel) -> None:
        panel.view.set_hidden(self.settings.hidden_columns)
        panel.view.hiddenChanged.connect(lambda titles: setattr(self.settings, "hidden_columns", titles))

    def _give_room(self, spec: PanelSpec) -> None:
        """Give a panel below the plots, when it first comes to the front, the height that it needs, if the
        plots can spare it; after that the user sets it."""
        panel = self._panels.get(spec.id)
        dock = self._docks[spec.id]
        if spec.id in self._roomy or not isinstance(panel, Panel) or dock.isFloating():
            return
        if self.workbench.snapshot.document is None or not self._docks_sized:
            return
        self._roomy.add(spec.id)

        def give() -> None:
            around = dock.height() - dock.widget().height()
            spare = self._plots.height() - self._plots_need()
            height = min(panel.room() + around, dock.height() + spare)
            if dock.isVisible() and dock.height() < height:
                self.resizeDocks([dock], [height + self._tabs_below(dock)], Qt.Orientation.Vertical)

        QTimer.singleShot(0, self, give)  # when it has been laid out

    def _tabs_below(self, dock: QDockWidget) -> int:
        """Height of the tab bar of a dock, which `resizeDocks` counts too."""
        bars = self.findChildren(QTabBar, options=Qt.FindChildOption.FindDirectChildrenOnly)
        titled = [bar for bar in bars if dock.windowTitle() in map(bar.tabText, range(bar.count()))]
        return max((bar.sizeHint().height() for bar in titled), default=0)

    def _plots_need(self) -> int:
        """The height (pixels) of the plots that panels below do not take by themselves."""
        high = self.frame.height() * (_CURVE + (_TIMELINE if self.settings.timeline_shown else 0))
        return math.ceil(high) + self._plots.handleWidth()

    def _timeline_height(self, height: int) -> int:
        """The height of the timeline, for that of both plots: as the user left it, at first a part of the
        window, if the curve keeps its minimum."""
        share, high = self.settings.timeline_share, self.frame.height()
        if share is not None:
            return round(height * share)
        return min(max(round(0.38 * height), math.ceil(_TIMELINE * high)), height - math.ceil(_CURVE * high))

    def panel(self, panel_id: str) -> AnyPanel:
        """The widget of a panel."""
        self._bring_up(panel_id)
        return self._panels[panel_id]

    def _turned(self, spec: PanelSpec, on_top: bool) -> None:
        """A panel has come to the front or left it; it is updated only in front."""
        if on_top:
            self._behind.discard(spec.id)
            self._bring_up(spec.id)
            if spec.area == "bottom":
                self._give_room(spec)
        else:
            self._behind.add(spec.id)
        if spec.parts:
            self.workbench.watch(spec.id, spec.parts if on_top else frozenset())
        panel = self._panels.get(spec.id)
        if isinstance(panel, Panel):
            panel.watch(on_top)

    def _bring_up(self, panel_id: str) -> None:
        if panel_id not in self._panels:
            self._make_panel(panel_id)
        old, new = self._seen[panel_id], self.workbench.snapshot
        if new is not old:
            self._seen[panel_id] = new
            self._panels[panel_id].show_snapshot(old, new)

    def show_panel(self, panel_id: str) -> None:
        """Open a panel, and bring it to the front."""
        self._docks[panel_id].show()
        self._docks[panel_id].raise_()

    def go_to_panel(self, panel_id: str) -> None:
        """Show a panel and give it the focus."""
        self.show_panel(panel_id)
        panel = self.panel(panel_id)
        parts = (part for part in panel.findChildren(QWidget) if part.isVisibleTo(panel))
        first = next((part for part in parts if part.focusPolicy() & Qt.FocusPolicy.TabFocus), panel)
        first.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _turn_panel(self, panel_id: str) -> None:
        """Show a panel and give it the focus, or hide it if it is in front. Qt's own action would also hide
        one that is behind another tab."""
        dock = self._docks[panel_id]
        if dock.isVisible() and not dock.visibleRegion().isEmpty():
            dock.close()
        else:
            self.go_to_panel(panel_id)
        self._turns[panel_id].setChecked(not dock.isHidden())

    def _make_actions(self) -> None:
        self._toolbar = set_up(QToolBar("Toolbar", self), objectName="toolbar", movable=False)
        side = int(1.4 * self.fontMetrics().height())
        self._toolbar.setIconSize(QSize(side, side))
        self.addToolBar(self._toolbar)
        self._toolbar_menu = ""
        self._turns: dict[str, QAction] = {}
        super()._make_actions()
        self._toolbar.addSeparator()
        self._toolbar.addWidget(self.chips)  # there is room, so that none of the plots moves for them
        submenu = self.menus["View"].addMenu("Panels")
        pages = self.menus["Help"].addMenu("Panels explained")
        for spec in self._specs.values():
            turn = submenu.addAction(spec.title, partial(self._turn_panel, spec.id))
            tip = f"Bring the panel {spec.title.lower()} to the front, or hide it"
            self._turns[spec.id] = set_up(turn, checkable=True, statusTip=tip)
            dock = self._docks[spec.id]
            dock.toggleViewAction().toggled.connect(turn.setChecked)
            about = pages.addAction(spec.title, partial(self.show_help, spec.page))
            about.setStatusTip(f"What the panel {spec.title.lower()} shows, in the handbook")
            dock.addAction(about)
            dock.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        modes = QActionGroup(self)
        for mode in ("select", "pan", "zoom"):
            modes.addAction(self.actions_by_id[f"mode_{mode}"])

    def _placed(self, command: AnyCommand, menu: QMenu, action: QAction) -> None:
        if command.icon:
            if self._toolbar_menu and (command.rule or command.menu != self._toolbar_menu):
                self._toolbar.addSeparator()
            self._toolbar_menu = command.menu
            if command.id in ("undo", "redo"):
                self._add_steady(action)
            else:
                self._toolbar.addAction(action)
        if command.id == "save_as":
            self._contents_menu = menu.addMenu("Contents of the project")
            self._contents_menu.aboutToShow.connect(lambda: self.desk.fill_contents(self._contents_menu))
        if command.id == "open_folder":
            self._recent_menu = menu.addMenu("Open recent")
            self._recent_menu.setObjectName("recent")
            self._recent_menu.setToolTipsVisible(True)
            self._recent_menu.aboutToShow.connect(self._fill_recent_menu)
            samples = menu.addMenu("Bundled traces")
            for sample in resources.samples():
                opener = samples.addAction(sample.title, partial(self.open_path, sample.path))
                opener.setStatusTip(sample.text)

    def _add_steady(self, action: QAction) -> None:
        """A button of the toolbar for an action whose text often changes: Qt's own would lay out the window
        with each change."""
        button = set_up(
            QToolButton(), autoRaise=True, focusPolicy=Qt.FocusPolicy.NoFocus, statusTip=action.statusTip(),
            iconSize=self._toolbar.iconSize(), accessibleName=action.text(), clicked=action.trigger,
        )  # fmt: skip

        def follow() -> None:
            button.setEnabled(action.isEnabled())
            button.setToolTip(action.toolTip())
            if button.icon().cacheKey() != action.icon().cacheKey():
                button.setIcon(action.icon())

        action.changed.connect(follow)
        self._toolbar.addWidget(button)

    def _connect_plots(self) -> None:
        view, bench = self.curve_view, self.workbench
        view.phaseSelected.connect(bench.select_phase)
        view.breakpointDragged.connect(bench.drag_breakpoint)
        view.breakpointDropped.connect(bench.move_breakpoint)
        view.breakpointAddRequested.connect(bench.add_breakpoint)
        view.breakpointRemoveRequested.connect(bench.remove_breakpoint)
        view.breakpointLockToggled.connect(bench.toggle_lock)
        view.classToggled.connect(bench.toggle_class)
        view.levelsChanged.connect(lambda _: self.levels_changed())
        view.noteAsked.connect(self.desk.annotate)
        view.curvesAsked.connect(self.choose_curves)
        rows = self.timeline.view
        rows.noteAsked.connect(lambda location, time_s: self.desk.annotate(time_s, location))
        for plot, other in ((view, rows), (rows, view)):
            plot.selectionChanged.connect(bench.select)
            plot.noteActivated.connect(self._edit_note)
            plot.pictureRequested.connect(self.copy_picture)
            plot.cursorMoved.connect(other.set_cursor)
            plot.cursorMoved.connect(self._show_cursor)
            plot.limitAsked.connect(self.limit_analysis)
            plot.rangeChanged.connect(lambda *_, other=other: other.follow())
            plot.rangeChanged.connect(lambda *_: self._show_selection())

    def _connect_views(self, panel: ViewsPanel) -> None:
        panel.viewAsked.connect(self.desk.show_view)
        panel.keepAsked.connect(self.desk.keep_view)
        panel.rangeAsked.connect(self.desk.go_to)
        panel.noteAsked.connect(self.annotate)

    def show_place(self, phase: int, start_s: float, end_s: float, location: int) -> None:
        """Show the range, phase and location that a link refers to; -1: none."""
        self.workbench.select_phase(phase if phase >= 0 else None)
        self.desk.go_to(start_s, end_s)
        if location >= 0:
            self.timeline.view.bring_row(location)

    @guarded(otherwise=bool)
    def event(self, event: QEvent) -> bool:
        """Leave Left and Right to a table, slider or picture with the focus, else to the plot."""
        if (
            event.type() == QEvent.Type.ShortcutOverride
            and isinstance(event, QKeyEvent)
            and event.key() in (Qt.Key.Key_Left, Qt.Key.Key_Right)
            and not event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
            and isinstance(self.focusWidget(), (QAbstractItemView, QAbstractSlider, QTabBar, SweepPlot))
        ):
            event.accept()
            return True
        return super().event(event)

    # ---- showing

    def _show_snapshot(self, old: Snapshot, new: Snapshot) -> None:
        """Draw what differs."""
        if new.document is not old.document or new.run is not old.run:
            self._show_document(old, new)
        view, last = new.project.view, old.project.view
        afresh, both = new.run is not old.run, (self.curve_view, self.timeline.view)
        for plot in both:
            plot.show_over(fit=new.fit, limit=new.project.limit, phase=view.phase, boundaries=new.boundaries)
            if afresh or view.selection != last.selection:
                plot.set_selection(view.selection)
            if afresh or new.project.annotations is not old.project.annotations:
                locations = () if new.document is None else new.document.locations
                plot.set_annotations(new.project.annotations, locations)
        self.curve_view.show_over(locked=new.project.phases.locked, firm=new.firm)
        if afresh or view.shown != last.shown:
            self.curve_view.set_shown(view.shown)
        if new.statistics is not old.statistics:
            statistics = new.statistics
            self.timeline.view.set_path(statistics.path if statistics.run is new.run else None)
        if new.project.names != old.project.names:
            self.timeline.set_names(new.project.names)
        if afresh or new.tracks != old.tracks:
            self.curve_view.set_tracks([curve for _, curve in new.tracks])
        if new.what_if.drawn is not old.what_if.drawn or new.project.names != old.project.names:
            self.curve_view.show_over(predicted=presenting.prediction_of(new.what_if, new.project.names))
        if (new.marked, new.project.names) != (old.marked, old.project.names):
            self.timeline.seek([new.project.names.get(name, name) for name in new.marked])
        self.chips.show_snapshot(new)
        changed = new.document is not old.document or new.run is not old.run  # all let go of the old one
        for panel_id in list(self._panels):
            if changed or panel_id not in self._behind:
                self._bring_up(panel_id)
        if self.presentation is not None:
            self.presentation.show_snapshot(old, new)
        if self.console is not None and self.console.document is not new.document:
            self.console.close()
        self.run_comparison.refresh()
        if new.preparing is not old.preparing:
            self.show_task("preparing", new.preparing)  # before what waits for it
        if new.opening is not old.opening:
            self.show_task("opening", new.opening, self.workbench.cancel_opening)
        if not self._fits_timer.isActive():
            # Work for another number of phases is requested after this.
            if self.workbench.running_fits or new.refining or new.project.phases != old.project.phases:
                self._fits_timer.start()
        elif not new.refining:
            self._show_fits()
        if new.problem is not old.problem:
            self._show_problem(new)
        self._show_selection()
        self._show_cursor(self._cursor)
        self._refresh_actions()

    def _show_fits(self) -> None:
        """Show fits that take longer than a moment among the tasks."""
        running = self.workbench.running_fits
        for key in ("exact", "fit", "sweep", "waiting", "helps"):
            self.show_task(key, *running.get(key, (None,)))
        if not running:
            self._fits_timer.stop()

    def _show_document(self, old: Snapshot, new: Snapshot) -> None:
        run, document = new.run, new.document
        doubt = document.doubt.short if document and document.doubt else ""
        self.curve_view.show_over(doubt=_COARSE if run is not None and run.coarse else doubt)
        if run is None or document is None:
            self.curve_view.set_curve(None)
            self.timeline.show_trace(None)
        elif old.run is None or old.run.whole is not run.whole:  # a limit of the analysis leaves the plots
            self.curve_view.set_curve(run.whole.curve, run.whole.stack)
            self.timeline.show_trace(document, run.rules, run.utilization.seconds)
        if document is old.document:
            return
        if old.document is not None:
            gc.unfreeze()  # see `desktop.ui.app.Garbage`
        layout = self.layout()
        assert layout is not None
        layout.setEnabled(False)  # or each dock would lay out the whole page
        self._pages.setCurrentWidget(self.start_page if document is None else self._plots)
        for dock in self._docks.values():
            dock.setVisible(document is not None and dock.objectName() not in self._closed_docks)
        layout.setEnabled(True)
        layout.activate()
        QTimer.singleShot(0, self, self._hide_stale_tabs)
        if document is not None and not self._docks_sized:
            self._docks_sized = True
            self._size_docks()
        elif document is not None:
            QTimer.singleShot(0, self, self._grow_docks)
        if old.document is None:
            self._raise_first()
        if document is None:
            self.setWindowFilePath("")
            self.tell("report", "notice", "")
            self.tell("notice", "notice", "")
            self.start_page.show_recent(self.settings.recent)
            return
        self.setWindowFilePath(str(document.source))
        self.settings.add_recent(document.source)
        self.curve_view.show_all()
        self.desk.look_at(new.project.view)
        self.curve_view.setFocus()
        findings = summary(document.report)
        if findings:
            first = next(iter(document.report))
            sentence = f"Import report: {findings}. {capital(first.text.removesuffix('.'))}"
            sentence += f". {document.doubt.sentence}" if document.doubt else ""
            show = partial(self.show_panel, "trace")
            self.tell("report", "notice", sentence, action="Show report", act=show, settled=True)
        else:
            self.tell("report", "notice", "")

    def _show_problem(self, new: Snapshot) -> None:
        if new.problem is None:
            self.tell("problem", "problem", "")
            return
        sentence, dismissed = new.problem.sentence, self.workbench.dismiss_problem
        # On the start page nothing is done that it could disturb.
        settled, details = new.document is None, new.problem.details
        self.tell("problem", "problem", sentence, details, dismissed=dismissed, settled=settled)
        if new.problem.choices:
            ChoiceDialog(new.problem.choices, self.workbench.open_member, self).open()

    def _show_cursor(self, time_s: float) -> None:
        self._cursor = time_s
        run, text = self.workbench.snapshot.run, ""
        if run is not None:
            pointing = not math.isnan(time_s)
            text = self._reading_text(run.curve, time_s) if pointing else self._run_text(run)
        self._cursor_text.setText(text)

    def _run_text(self, run: TraceRun) -> str:
        """The mean of what is analysed, in words."""
        curve, kind, seen = run.curve, run.curve.quantity, self.curve_view.levels_note
        long, mean = quantity(curve.duration, "s"), digits(curve.mean)
        text = f"{kind.name}: {long}, on average {mean} {kind.unit}".rstrip()
        if kind.counted:
            plain = kind == PROCESSORS
            about, unit = (long, "processors computing") if plain else (f"{kind.name}: {long}", kind.unit)
            part = 100 * curve.mean / (curve.capacity or 1)
            text = f"{about}, on average {mean} of {curve.capacity:g} {unit} ({part:.0f} %)"
        return f"{'' if run.limit is None else 'analysed: '}{text}{f'; shown: {seen}' if seen else ''}"

    def _reading_text(self, curve: StepCurve, time_s: float) -> str:
        """The values at an instant, in the words and digits beside the cursor."""
        a, b = self.curve_view.visible_range()
        text, reading, kind = instant(time_s, b - a), self.curve_view.reading(time_s), curve.quantity
        if reading is None:
            return text
        level, all_ = format_number(reading.level), f" of {curve.capacity:g}" if kind.counted else ""
        if kind == PROCESSORS:
            text += f"   {level}{all_} processors at this instant"
        else:
            text = f"{text}   {kind.name} {level}{all_} {kind.unit}".rstrip()
        if reading.phase is not None:
            residual = signed(reading.level - reading.fit)
            text += f"   phase {reading.phase + 1}: fit {format_number(reading.fit)}, residual {residual}"
        return text

    def _show_selection(self) -> None:
        selection = self.selected_range()
        if selection is None:
            self._selection_text.setText("")
            return
        a, b = selection
        start, end = self.curve_view.visible_range()
        ends = (instant(t, b - a, axis_s=end - start) for t in (a, b))
        long = scaled(b - a, time_scale(end - start))  # all in the unit of the axis
        self._selection_text.setText("selected {} to {} ({})".format(*ends, long))

    @property
    def snapshot(self) -> Snapshot:
        return self.workbench.snapshot

    # ---- runs of the project

    def show_runs(self, titles: dict[int, str], current: int | None) -> None:
        """A tab for each open run, by its place in the project; none for a single one."""
        tabs = self.run_tabs
        tabs.blockSignals(True)
        while tabs.count() > len(titles):
            tabs.removeTab(tabs.count() - 1)
        for k, (run, title) in enumerate(titles.items()):
            if k == tabs.count():
                tabs.addTab("")
            if (tabs.tabText(k), tabs.tabData(k)) != (plain_title := title.replace("&", "&&"), run):
                tabs.setTabText(k, plain_title)
                tabs.setTabData(k, run)
        if current in titles:
            tabs.setCurrentIndex(list(titles).index(current))
        tabs.blockSignals(False)
        tabs.setVisible(len(titles) > 1 and current is not None)

    def _choose_run(self, tab: int) -> None:
        run = self.run_tabs.tabData(tab)
        if run is not None and run != self.desk.projects.current:
            self.desk.projects.show_run(run)

    def step_run(self, by: int) -> None:
        """Go to the run `by` tabs further."""
        tabs = self.run_tabs
        if tabs.count() > 1:
            tabs.setCurrentIndex((tabs.currentIndex() + by) % tabs.count())

    def show_beside(self) -> None:
        """Open this trace in another window too."""
        document = self.snapshot.document
        assert document is not None
        self.frame.main.openRequested.emit(document.source, document.options)

    # ---- files

    def add_run_to_model(self) -> None:
        """Add this run to the project's table of run times, and show the table."""
        self.show_panel("model")
        self.panel("model").add_this_run()

    def open_path(self, path: Path) -> None:
        """Open a trace here if nothing is open, else in another window; other files on their pages."""
        from desktop.data.runs import holds_experiment  # here, as it loads what an experiment needs

        if holds_measurements(path):
            self.frame.open_model(path)
        elif holds_experiment(path):
            self.frame.open_experiment(path)
        elif self.workbench.snapshot.document is not None or self.workbench.snapshot.opening is not None:
            self.frame.new_window([path])
        elif is_project_file(path):
            self.desk.open(path)
        else:
            self.workbench.open(path)

    def choose_file(self) -> None:
        """Ask for traces, and open them."""
        self.open_paths(asked_paths(self, "Open traces", self.settings.folder))

    def choose_with_options(self) -> None:
        """Ask for a trace and how to open it."""
        OpenDialog(self.open_with, self.settings.folder, self).open()

    def choose_remote(self) -> None:
        """Ask for a trace on another machine."""
        RemoteDialog(self.open_with, self.settings, self).open()

    def open_with(self, path: Path, options: OpenOptions) -> None:
        """Open a trace as `options` say: here if nothing is open, else in another window."""
        if self.workbench.snapshot.document is None and self.workbench.snapshot.opening is None:
            self.workbench.open(path, options)
        else:
            self.frame.main.openRequested.emit(path, options)

    def choose_folder(self) -> None:
        """Ask for a trace that is a folder, and open it."""
        self.ask_path("Open a trace that is a folder", self.open_path, mode="folder")

    def close_shown(self) -> None:
        """Put the trace aside if others are open, else close it and its project, or the window if nothing is
        open."""
        current = self.desk.projects.current
        if current is not None and len(self.desk.projects.open_runs) > 1:
            self.desk.projects.put_aside(current)  # it stays in the project
        elif self.workbench.snapshot.document is None:
            self.frame.main.close()
        elif not self.frame.ask_before([self], self.workbench.close_document):
            self.workbench.close_document()

    def clear_recent(self) -> None:
        """Clear the list of opened files."""
        self.settings.clear_recent()
        self.start_page.show_recent(())

    def _fill_recent_menu(self) -> None:
        self._recent_menu.clear()
        for path in self.settings.recent:
            text = f"{run_name(path)} – {path.parent}".replace("&", "&&")
            action = self._recent_menu.addAction(text, partial(self.open_path, path))
            action.setToolTip(str(path))
            action.setEnabled(path.exists())
            action.setStatusTip(f"Open {path}" if path.exists() else f"{path} is not there any more")
        self._recent_menu.addSeparator()
        clear = self._recent_menu.addAction("Clear", self.clear_recent)
        clear.setStatusTip("Clear the list of opened files")
        clear.setEnabled(bool(self.settings.recent))

    def open_paths(self, paths: list[Path]) -> None:
        """Open all; of several traces, ask whether they belong together."""
        from desktop.data.runs import holds_experiment

        kinds = (holds_measurements, holds_experiment, is_project_file)
        traces = [path for path in paths if not any(holds(path) for holds in kinds)]
        if len(traces) < 2:
            self._open_each(paths)
        else:
            self._open_each([path for path in paths if path not in traces])
            self.desk.ask_of_several(traces, lambda: self._open_each(traces))

    def _open_each(self, paths: list[Path]) -> None:
        for path in paths:
            self.open_path(path)

    # ---- commands

    def set_mode(self, mode: str) -> None:
        """What a left drag does: select, pan or zoom."""
        self.mode = mode
        self.curve_view.set_mode(mode)
        self.timeline.view.set_mode(mode)

    @property
    def vertical_locked(self) -> bool:
        """Whether all processors stay shown when the view is moved."""
        mode = self.curve_view.levels.mode
        return mode == "all" or (mode == "start" and not self.curve_view.levels_note)

    def set_vertical_locked(self, locked: bool) -> None:
        """Fix the vertical axis to all levels, or fit it to the visible range."""
        (self.curve_view.show_all_levels if locked else self.curve_view.fit_levels)()

    def levels_changed(self) -> None:
        """Update the texts and commands that depend on the vertical range."""
        self._show_cursor(self._cursor)
        self._refresh_actions()

    def set_percent(self, shown: bool) -> None:
        """Show levels as percent of the locations, or as numbers of them."""
        self.percent = shown
        self.curve_view.set_percent(shown)
        self.timeline.view.set_percent(shown)

    def show_critical_path(self, shown: bool) -> None:
        """Show the critical path of the run in the timeline; if necessary, compute it in the background."""
        if shown != self.timeline.view.path_shown:
            self.timeline.view.show_path(shown)
            self.workbench.watch("timeline", frozenset({"ranges", "accounts"}) if shown else frozenset())
            self._refresh_actions()

    def set_timeline_shown(self, shown: bool) -> None:
        """Show the timeline under the curve, if the trace has one."""
        self.settings.timeline_shown = shown
        self._place_timeline()

    def choose_curves(self) -> None:
        """Ask which curve is fitted, and which are drawn below it."""
        from desktop.ui.curves import CurvesDialog

        CurvesDialog(self.workbench, self).open()

    def find_region(self) -> None:
        """Ask for the name of a region."""
        self.set_timeline_shown(True)
        self.timeline.start_search()

    def find_next(self, forward: bool = True) -> None:
        """Go to the next (previous) enter of the region searched for; ask for a name if there is none."""
        self.set_timeline_shown(True)
        self.timeline.find_next(forward)

    @property
    def busy(self) -> bool:
        """Whether a result is still awaited."""
        return self.workbench.busy or self.timeline.busy or self.desk.busy

    def selected_range(self) -> tuple[float, float] | None:
        """The selection, or the selected phase."""
        snapshot = self.workbench.snapshot
        view = snapshot.project.view
        if view.selection is not None:
            return view.selection
        if view.phase is not None and view.phase < len(snapshot.rows):
            row = snapshot.rows[view.phase]
            return row.start_s, row.end_s
        return None

    def limit_analysis(self, span: tuple[float, float] | None) -> None:
        """Analyse a range of time only, and clear the selection; None: the whole run again."""
        self.workbench.limit_to(span)
        if span is not None and self.snapshot.project.limit is not None:
            self.workbench.select(None)
            self.workbench.select_phase(None)

    def show_range(self, start_s: float, end_s: float) -> None:
        """Select a range and show it."""
        self.workbench.select((start_s, end_s))
        self.desk.go_to(start_s, end_s)

    def zoom_to_selection(self) -> None:
        """Show the selected range or phase."""
        selection = self.selected_range()
        if selection is not None:
            self.curve_view.zoom_to(*selection)

    def escape(self) -> None:
        """End a drag, else the call stack shown, else the selection."""
        if self.curve_view.cancel_drag():
            self.workbench.cancel_drag()
        elif not (self.timeline.view.cancel_drag() or self.timeline.view.dismiss()):
            self.workbench.select(None)
            self.workbench.select_phase(None)
            self.workbench.mark_regions(())

    def annotate(self) -> None:
        """Ask for a remark over the selection, or at the pointer."""
        self.desk.annotate(self._cursor)

    def annotate_location(self) -> None:
        """Ask for a remark on the location under the pointer, or of the state that was clicked or found."""
        place = self.timeline.view.chosen_place if self.timeline.isVisible() else None
        if place is None:
            self.say("Point at a row of the timeline, or click a state in it")
        else:
            self.timeline.view.hide_stack()  # it would stick out from under the dialog
            self.desk.annotate(place[1], place[0])

    def _edit_note(self, index: int) -> None:
        self.show_panel("views")
        self.panel("views").note_table.select_key(index)
        self.panel("views").edit_note()

    def add_breakpoint(self) -> None:
        """Add a breakpoint at the cursor."""
        if not math.isnan(self._cursor):
            self.workbench.add_breakpoint(self._cursor)

    def on_selected_breakpoint(self, act: Callable[[int], None]) -> None:
        """Act on the breakpoint at which the selected phase ends."""
        phase = self.workbench.snapshot.project.view.phase
        if phase is not None:
            act(phase + 1)

    def copy_picture(self) -> None:
        """Copy the chart that has the focus, else the curve with the timeline if that is shown, at twice its
        size, on white."""
        plot = self.focusWidget()
        if isinstance(plot, Chart):
            image, name = plot.picture(), plot.accessibleName() or "Plot"
        else:
            below = [self.timeline.view] if self.timeline.isVisible() else []
            image = stacked([p.picture() for p in (self.curve_view, *below)])
            name = "Curve and timeline" if below else "Curve"
        QGuiApplication.clipboard().setImage(image)
        self.say(f"{name}: the picture is on the clipboard")

    def export_figure(self, figure: str = "") -> None:
        """Ask for a file and size in mm for a figure; `figure`: the one chosen first."""
        dialog = FigureDialog(
            self.workbench.snapshot, self._results.deliver, self.curve_view.visible_range(), self,
            colours=self._theme.colours, by_region=self.timeline.view.by_region,
            levels=self.curve_view.levels, messages=self.timeline.message_filter,
            path=self.workbench.snapshot.statistics.path if self.timeline.view.path_shown else None,
            activities=self.curve_view.activities,
        )  # fmt: skip
        if figure:
            dialog.choose(figure)
        dialog.open()

    def make_report(self) -> None:
        """Ask for a file, and report the run and its phases as HTML, PDF or slides."""
        ReportDialog(
            self.workbench.snapshot, self._results.deliver, self, remember=self.workbench.choose_report,
            colours=self._theme.colours, by_region=self.timeline.view.by_region, settings=self.settings,
        ).open()  # fmt: skip

    def present(self) -> None:
        """Present the visible range on a whole screen, or end that."""
        if self.presentation is not None:
            self.presentation.close()
            return
        from desktop.ui.presentation import present

        def ended() -> None:
            self.presentation = None
            self._refresh_actions()

        nav, span = self.curve_view.navigation, self.curve_view.visible_range()
        part = None if span == (nav.start, nav.end) else span
        self.presentation = present(self.workbench, self, self._theme, self._results.deliver, part, ended)

    def turn_console(self) -> None:
        """Turn the Python console on, if the user agrees, or off."""
        if self.console is not None:
            self.console.close()
            return
        from desktop.ui.console import PythonConsole

        def off() -> None:
            self.console = None
            self._refresh_actions()

        deliver, beside = self._results.deliver, self._docks["table"]
        self.console = PythonConsole(self, self.workbench, deliver, self.say, off, beside)
        self._refresh_actions()

    def copy_table(self) -> None:
        """Copy all rows of the phase table, separated by tabs."""
        self.panel("table").copy()
        self.say("The phase table is on the clipboard")

    def _show_theme(self, theme: themes.Theme) -> None:
        super()._show_theme(theme)
        ink, faint = QColor(theme.text), QColor(theme.disabled)
        for command in COMMANDS:
            if command.icon:
                self.actions_by_id[command.id].setIcon(icon(command.icon, ink, faint))

    def show_anew(self) -> None:
        for panel_id in list(self._panels):
            self._seen[panel_id] = Snapshot()
            self._bring_up(panel_id)
        self._show_selection()
        self._show_cursor(self._cursor)

    def place_about(self, widget: QWidget | None) -> str:
        if widget is not None:
            for spec in self._specs.values():
                if self._docks[spec.id].isAncestorOf(widget):
                    return spec.page
            if self.timeline.isAncestorOf(widget):
                return "guide.md#the-timeline"
        return "guide.md#the-curve" if self.workbench.snapshot.run is not None else self.PAGE

    # ---- layout

    def reset_layout(self) -> None:
        """Put all panels back to their first places."""
        self.settings.forget_page(self.NAME)
        self.restoreState(self._first_layout, STATE_VERSION)
        for dock in self._docks.values():
            dock.setFloating(False)
            dock.setVisible(self.workbench.snapshot.document is not None)
        self._raise_first()
        self._size_docks()
        QTimer.singleShot(0, self, self._hide_stale_tabs)

    def _raise_first(self) -> None:
        """Raise the tabs that are on top at first; Qt raises the last of docks shown together."""
        for panel in ("phases", "table"):
            self._docks[panel].raise_()

    def _hide_stale_tabs(self) -> None:
        """Hide tab bars that Qt leaves in view without panels: of docks that were tabbed before the window
        was shown, of hidden ones, and those in use before a layout was restored."""
        visible = [dock for dock in self._docks.values() if not dock.isHidden()]
        together = [
            {other.windowTitle() for other in (dock, *self.tabifiedDockWidgets(dock)) if other in visible}
            for dock in visible
        ]
        bars = self.findChildren(QTabBar, options=Qt.FindChildOption.FindDirectChildrenOnly)
        titles = [{bar.tabText(i) for i in range(bar.count())} for bar in bars]
        for k, (bar, texts) in enumerate(zip(bars, titles, strict=True), 1):
            if texts and (texts not in together or texts in titles[k:]):
                bar.hide()

    def _restore_layout(self) -> None:
        state = self.settings.page_state(self.NAME)
        self._sized_for = self.frame.size()  # the docks got their sizes in this one; it has none of its own
        # Their sizes are proportions of the window, which is not on screen yet.
        self._docks_sized = state is not None and self.restoreState(state, STATE_VERSION)
        if self._docks_sized:  # as the user left them
            self._roomy.update(self._specs)
        self._closed_docks = {dock.objectName() for dock in self._docks.values() if dock.isHidden()}
        for dock in self._docks.values():
            dock.hide()

    def _dock_sizes(self, window: QSize) -> tuple[int, int]:
        """The first width of docks at the side, and height of those below, in a window of a size."""
        font, view, dock = self.fontMetrics(), self.panel("table").view, self._docks["table"]
        head, row = view.horizontalHeader().sizeHint().height(), view.verticalHeader().defaultSectionSize()
        around = 2 * view.frameWidth() + int(1.3 * font.height()) + self._tabs_below(dock)
        # As many rows as leave the plots what they need; with them come the toolbar and two separators.
        spare = window.height() - self._plots_need() - self._toolbar.sizeHint().height() - 6
        high = max(int(0.2 * window.height()), min(head + (_ROWS + 1) * row + around, spare))
        char = font.averageCharWidth()
        wide = max(int(0.25 * window.width()), min(_SIDE * char, int(0.3 * window.width())))
        return min(62 * char, wide), high

    def _size_docks(self) -> None:
        self._roomy.clear()
        self._sized_for = self.size()
        wide, high = self._dock_sizes(self.size())
        self.resizeDocks([self._docks["phases"]], [wide], Qt.Orientation.Horizontal)
        self.resizeDocks([self._docks["table"]], [high], Qt.Orientation.Vertical)

    @guarded
    def childEvent(self, event: QChildEvent) -> None:
        """Let the tabs of docks scroll where they have no room; of names that Qt cuts, two letters stay."""
        super().childEvent(event)
        if event.type() == QEvent.Type.ChildPolished and isinstance(bar := event.child(), QTabBar):
            bar.setElideMode(Qt.TextElideMode.ElideNone)

    @guarded
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        # Without a document there are no docks, and those of a window that is not on screen are of no size.
        if self.workbench.snapshot.document is not None and event.oldSize().isValid():
            self._grow_docks()

    def _grow_docks(self) -> None:
        """Give docks that had at most their first size that of the new window; Qt would not."""
        before, now = self._dock_sizes(self._sized_for), self._dock_sizes(self.size())
        self._sized_for = self.size()
        for k, (panel, orientation) in enumerate(
            (("phases", Qt.Orientation.Horizontal), ("table", Qt.Orientation.Vertical))
        ):
            # Of docks behind each other only the one on top has its size.
            for dock in (self._docks[panel], *self.tabifiedDockWidgets(self._docks[panel])):
                size = (dock.width(), dock.height())[k]
                seen = not dock.visibleRegion().isEmpty() and not dock.isFloating()
                if seen and size <= before[k] < now[k]:
                    self.resizeDocks([dock], [now[k]], orientation)

    def _place_timeline(self) -> None:
        """Show the timeline if there is one and it is switched on, at its last height."""
        shown = self.timeline.view.timeline is not None and self.settings.timeline_shown
        if shown and self.timeline.isHidden():
            self.timeline.show()
            self._plots.share()
        self.timeline.setVisible(shown)

    def _keep_timeline_share(self) -> None:
        high, low = self._plots.sizes()
        if high + low:
            self.settings.timeline_share = low / (high + low)

    @property
    def unsaved(self) -> str:
        return f"the changes to {self.desk.name}" if self.desk.worth_saving else ""

    def save_work(self) -> bool:
        return self.desk.save()

    def _hear_of_line(self, words: str) -> None:
        """Show the state of the line to another machine; called in any thread."""
        task = Task(words) if words else None
        self._results.deliver(lambda: self.frame.show_task("line", task))

    def _end(self) -> None:
        listeners.remove(self._hear_of_line)
        self.run_comparison.close()
        self.desk.close()
        if self.workbench.snapshot.document is not None:
            # Without a document all panels are hidden, which says nothing about the user's layout.
            self.settings.keep_page_state(self.NAME, self.saveState(STATE_VERSION))
        for window in (self.presentation, self.console):
            if window is not None:
                window.close()
        self.timeline.close_trace()
        self.workbench.close()

    def warm_up(self) -> None:
        """Load what the first trace needs, once the window is on screen."""
        QTimer.singleShot(0, self.workbench.warm_up)
        # The panels that come with it, one in each turn of the event loop.
        for turn, panel_id in enumerate(("phases", "table"), 1):
            QTimer.singleShot(_PAUSE * turn, self, partial(self._bring_up, panel_id))
