"""Where time goes: the tree of calls, or regions one by one, of the run, the selection or a phase."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex
from PySide6.QtWidgets import QLabel, QLineEdit

from desktop.core.units import quantity
from desktop.data.columns import Column
from desktop.ui.pages import choices, lay_out, row, set_up
from desktop.ui.panels import Panel, PanelSpec, why_empty
from desktop.ui.tables import DESCENDING, FrameTree
from desktop.workbench.phase_statistics import PhaseStatistics
from desktop.workbench.workbench import Snapshot, Workbench

#: Of `desktop.data.statistics.calls_frame`.
TREE: tuple[Column, ...] = (
    Column("Region", "Path of calls", name="region", label="shown"),
    Column("Inclusive", "Processor-seconds including the regions it calls", name="inclusive"),
    Column("Exclusive", "Processor-seconds without the regions it calls", name="exclusive"),
    Column("Calls", "Enters in the range", name="calls"),
    Column("Locations", "Locations that were here in the range", name="locations"),
    Column("Min", "Least inclusive time of these locations", name="low_s"),
    Column("Mean", "Mean inclusive time of these locations", name="mean_s"),
    Column("Max", "Largest inclusive time of these locations", name="high_s"),
    Column("Activity", "Class of the region", name="activity"),
)
#: Of `desktop.data.statistics.profile_frame`.
FLAT: tuple[Column, ...] = (
    Column("Region", "Its name in the trace", name="region"),
    Column("Share", "Exclusive time of all the processors' time", "%", 3, name="share"),
    Column("Exclusive", "Processor-seconds without the regions it calls", name="exclusive"),
    Column("Inclusive", "Processor-seconds including the regions it calls", name="inclusive"),
    Column("Calls", "Enters in the range", name="calls"),
    Column("Waits", "Waiting for others in it, all processors together", name="waits"),
    Column("Makes others wait", "Waiting, at any time, that delays in it caused", name="costs"),
    Column("Critical path", "Part of the critical path of the run in it", name="path"),
    Column("Slack", "The least by which it could have lasted longer without a longer run", name="slack"),
    Column("Role", "What the trace says about it", name="role"),
    Column("Activity", "Class of the region", name="activity"),
)
#: Of `desktop.data.statistics.locations_frame`.
LOCATIONS: tuple[Column, ...] = (
    Column("Processor", "Its name in the trace", name="location"),
    Column("Makes others wait", "Waiting, at any time, that its delays caused", name="costs"),
    Column("Through others", "Of that, indirect waiting, through other locations",
           name="costs_through_others"),
    Column("Waits", "Waiting for others", name="waits"),
    Column("Passed on", "Of that, waiting passed on by the location it waited for", name="waits_passed_on"),
    Column("Critical path", "Part of the critical path of the run on it", name="path"),
    Column("Slack", "The least by which what it does could have lasted longer without a longer run",
           name="slack"),
    Column("Computing", "In activities that the curve counts", name="computing"),
)  # fmt: skip


#: Call paths of marked regions that are selected at most.
_MARKED = 1000


class ProfilePanel(Panel):
    """Search, sort, copy; the range is that of the statistics."""

    ROOM = 17  # ten rows are seen

    def __init__(self, workbench: Workbench) -> None:
        super().__init__(workbench)
        self._statistics = PhaseStatistics()
        self._names: dict[str, str] = {}
        self._marked: tuple[str, ...] = ()
        self.view = FrameTree("Profile")
        self.model = self.view.frames
        self.view.show_frame(None, TREE)
        self.view.sortByColumn(1, DESCENDING)
        self.view.doubleClicked.connect(self._find)
        kinds = {"tree": "Tree of calls", "flat": "Regions", "locations": "Processors"}
        self.kind = choices(kinds, accessibleName="Kind of profile", activated=lambda _: self._fill())
        self.search = set_up(QLineEdit(), placeholderText="Region name", clearButtonEnabled=True)
        self.search.setAccessibleName("Search regions")
        self.search.textChanged.connect(self.view.filter)
        self.about = QLabel()
        lay_out(self, row(self.kind, (self.search, 1), self.about), (self.view, 1), margins=6)

    def show_snapshot(self, old: Snapshot, new: Snapshot) -> None:
        if new.marked != self._marked:
            self._marked = new.marked
            self._mark()
        unchanged = new.statistics is old.statistics and why_empty(new) == why_empty(old)
        if unchanged and new.project.names is self._names:
            return
        previous, self._statistics = self._statistics, new.statistics
        renamed = new.project.names != self._names
        self._names = new.project.names
        stats, names = new.statistics, ("calls", "flat", "stats")
        if renamed or any(getattr(previous, name) is not getattr(stats, name) for name in names):
            self._fill()
        self._tell()

    def _fill(self) -> None:
        statistics, kind = self._statistics, self.kind.currentData()
        columns = {"tree": TREE, "flat": FLAT, "locations": LOCATIONS}[kind]
        rows = {"tree": statistics.calls, "flat": statistics.flat, "locations": statistics.stats}[kind]
        if rows:
            from desktop.data.statistics import calls_frame, locations_frame, profile_frame

            parents = None
            if kind == "locations":
                frame = locations_frame(statistics.names, statistics.stats[statistics.focus])
            else:
                tree = kind == "tree"
                frame = calls_frame(statistics.calls) if tree else profile_frame(statistics.flat)
                if self._names:
                    frame["region"] = [self._names.get(name, name) for name in frame["region"]]
            if kind == "tree":
                labels = frame["region"].where(~frame["folded"], frame["region"] + " (paths folded)")
                frame["shown"] = labels
                parents = frame.index.get_indexer(frame["parent"])
                parents[frame["parent"] == frame["path"]] = -1
            self.view.show_frame(frame, columns, parents=parents)
        else:
            self.view.show_frame(None, columns)
        self.view.setRootIsDecorated(kind == "tree")
        self.view.expandToDepth(2)
        self._mark()

    def _mark(self) -> None:
        """Select the rows of the marked regions, the first of them in sight."""
        frame = self.view.frames.frame
        if frame is None or not self._marked or "region" not in frame:
            return
        names = {self._names.get(name, name) for name in self._marked}
        rows = [k for k, name in enumerate(frame["region"]) if name in names]
        self.view.select_rows(rows[:_MARKED])

    def _tell(self) -> None:
        statistics = self._statistics
        if statistics.problem:
            self.about.setText(statistics.problem)
        elif statistics.scopes:
            scope = statistics.scopes[statistics.focus]
            self.about.setText("{}, {}".format(scope.label, quantity(scope.end_s - scope.start_s, "s")))
        else:
            self.about.setText(why_empty(self._workbench.snapshot))

    def _find(self, index: QModelIndex) -> None:
        """A double click fills the search with the region."""
        self.search.setText(str(index.siblingAtColumn(0).data()))


PANEL = PanelSpec(
    "profile", "Profile", "bottom", ProfilePanel, "statistics.md#regions-and-calls",
    frozenset({"ranges", "calls", "accounts"}),
)  # fmt: skip
