"""What counts as computing: the classes of all regions, to be changed by the user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QSignalBlocker
from PySide6.QtWidgets import QAbstractItemView, QCheckBox, QLabel, QPushButton, QVBoxLayout

from desktop.core.labels import ACTIVITIES
from desktop.data.columns import Column, RowMarks, columnar
from desktop.data.events import Activity, Region
from desktop.ui.pages import lay_out, row, search_field, set_up
from desktop.ui.panels import Panel, PanelSpec, why_empty
from desktop.ui.tables import ASCENDING, FrameView
from desktop.workbench.workbench import Snapshot, Workbench

NAMES = {activity: ACTIVITIES[activity.name.lower()] for activity in Activity}
_REGION = 0
#: Width in heights of the text from which on names of regions and their roles have room beside each other.
_NARROW = 20


class ClassesPanel(Panel):
    """Which classes count as computing, and the class of every region."""

    def __init__(self, workbench: Workbench) -> None:
        super().__init__(workbench)
        intro = set_up(QLabel("A processor counts as computing while it is:"), wordWrap=True)
        self.boxes: dict[Activity, QCheckBox] = {}
        boxes = set_up(QVBoxLayout(), spacing=1)
        for activity, name in NAMES.items():
            box = QCheckBox({Activity.IO: "doing I/O"}.get(activity, name.lower()))
            box.clicked.connect(self._changed)
            self.boxes[activity] = box
            boxes.addWidget(box)
        choices = (("As by default", None), *((name, key) for key, name in NAMES.items()))
        self.columns = (
            Column("Region", name="region", editable=True, stretch=True),
            Column("Role", name="role"),
            Column("Activity", name="activity", label="class", choices=lambda _: choices),
        )
        self.table = FrameView("Regions and their classes")
        self.table.show_frame(None, self.columns)
        self.table.sortByColumn(_REGION, ASCENDING)
        self.table.frames.edited.connect(self._edited)
        edit = QAbstractItemView.EditTrigger  # letters are the window's
        self.table.setEditTriggers(edit.DoubleClicked | edit.SelectedClicked | edit.EditKeyPressed)
        self.search = search_field("Find a region or role", self.table.filter)
        self.note = set_up(QLabel(), wordWrap=True)
        self._reset = set_up(QPushButton("Reset classification"), clicked=workbench.reset_rules)
        lay_out(
            self, intro, boxes, self.search, self.note, (self.table, 1), row(self._reset, None),
            margins=(10, 8, 10, 8),
        )  # fmt: skip
        self._narrow = False
        self._show_rules(Snapshot())

    def _arrange(self) -> None:
        """Where there is little room, names get that of roles, by which regions are found all the same."""
        narrow = self.width() < _NARROW * self.fontMetrics().height()
        if narrow != self._narrow:
            self._narrow = narrow
            self.table.set_hidden(("Role",) if narrow else None)

    def show_snapshot(self, old: Snapshot, new: Snapshot) -> None:
        project, before = new.project, old.project
        unchanged = new.document is old.document and why_empty(new) == why_empty(old)
        if not unchanged or (project.rules, project.names) != (before.rules, before.names):
            self._show_rules(new)

    def _show_rules(self, new: Snapshot) -> None:
        rules = new.project.rules
        regions = new.document.regions if new.document is not None else ()
        nameless = new.document is not None and new.document.locations
        self.note.setText("The trace has no regions." if nameless else why_empty(new))
        self.note.setVisible(not regions)
        self._show_regions(regions, dict(rules.overrides) if rules is not None else {}, new.project.names)
        computing = rules.computing if rules is not None else frozenset({Activity.COMPUTING})
        for activity, box in self.boxes.items():
            with QSignalBlocker(box):
                box.setChecked(activity in computing)
            box.setEnabled(new.document is not None)
        self._reset.setEnabled(rules is not None)

    def _show_regions(
        self, regions: Sequence[Region], overrides: Mapping[str, Activity], names: Mapping[str, str]
    ) -> None:
        """Regions, which can be called otherwise, and their classes; changed ones in bold."""
        if not regions:
            self.table.show_frame(None)
            return
        from desktop.data.classify import region_activity

        chosen = [overrides.get(r.name, overrides.get(f"role:{r.role}")) for r in regions]
        pairs = zip(regions, chosen, strict=True)
        activities = [region_activity(r) if activity is None else activity for r, activity in pairs]
        frame = columnar(
            {
                "region": [names.get(region.name, region.name) for region in regions],
                "role": [region.role for region in regions],
                "activity": chosen,
                "class": [NAMES[activity] for activity in activities],
            },
            [region.name for region in regions],
        )
        tips = {k: f"{r.name} ({r.paradigm})" if r.paradigm else r.name for k, r in enumerate(regions)}
        changed = {k: "strong" for k, activity in enumerate(chosen) if activity is not None}
        self.table.show_frame(frame, self.columns, RowMarks(changed, tips))

    def _edited(self, region: str, _column: int, value: str | Activity | None) -> None:
        if isinstance(value, str):
            self._workbench.name_region(region, value)
        else:
            self._workbench.set_activity(region, value)

    def _changed(self) -> None:
        computing = frozenset(activity for activity, box in self.boxes.items() if box.isChecked())
        self._workbench.set_computing(computing)
        self._show_rules(self._workbench.snapshot)


PANEL = PanelSpec("classes", "Computing", "right", ClassesPanel, "guide.md#computing")
