"""The table of the program: a frame of any kind is sorted, filtered, copied, exported and edited."""

from __future__ import annotations

import csv
import io
import math
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import shiboken6
from hypothesis import given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QComboBox, QMessageBox
from pytestqt.qtbot import QtBot

from desktop.core.frames import TABLES, frame
from desktop.data.columns import Column, RowMarks, TableRow, table
from desktop.ui.tables import (
    FrameModel,
    FrameTree,
    FrameView,
    comma_separated,
    html,
    latex,
    markdown,
    tab_separated,
)

UP, DOWN = Qt.SortOrder.AscendingOrder, Qt.SortOrder.DescendingOrder


def runs() -> pd.DataFrame:
    made = pd.DataFrame(
        {
            "name": ["b", "=1+1", "A|x", "a&b"],
            "time_s": [0.0125, math.nan, 0.002, 0.25],
            "part": [0.5, 0.25, 1.0, 0.125],
            "size": [1, 3, 2, 12345],
        },
        index=["w", "x", "y", "z"],
    )
    made.attrs["units"] = {"time_s": "s", "part": "1"}
    return made


COLUMNS = (
    Column("Name", name="name"),
    Column("Time", "How long", name="time_s"),
    Column("Part", "Of all", "%", 3, name="part"),
    Column("Size", name="size", shown=False),
)


@pytest.fixture
def view(qtbot: QtBot) -> FrameView:
    made = FrameView("Runs", copies_one=True)
    qtbot.addWidget(made)
    made.resize(500, 200)
    made.show()
    made.show_frame(runs(), COLUMNS)
    return made


def shown(view: FrameView, column: int) -> list[str]:
    return [view.model().index(r, column).data() for r in range(view.model().rowCount())]


def test_a_column_has_one_prefix_and_its_unit_in_the_header(view: FrameView) -> None:
    heads = [view.model().headerData(k, Qt.Orientation.Horizontal) for k in range(3)]
    assert heads == ["Name\n", "Time\nms", "Part\n%"]
    assert shown(view, 1) == ["12.50", "–", "2.000", "250.0"] and shown(view, 2)[0] == "50.0"
    assert shown(view, 3)[-1] == "12 345"


def test_sorted_by_values_with_what_is_not_known_last_and_the_same_rows_selected(view: FrameView) -> None:
    view.select_key("y")
    view.sortByColumn(1, DOWN)
    assert shown(view, 0) == ["a&b", "b", "A|x", "=1+1"]
    assert view.keys == ("y",) and view.currentIndex().row() == 2
    view.sortByColumn(1, UP)
    assert shown(view, 0) == ["A|x", "b", "a&b", "=1+1"] and view.keys == ("y",)
    view.sortByColumn(0, UP)
    assert shown(view, 0) == ["=1+1", "a&b", "A|x", "b"]
    view.sortByColumn(-1, UP)
    assert shown(view, 0) == list(runs()["name"])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("A", ["A|x", "a&b"]), ("time > 10", ["b", "a&b"]), ("Part<=25", ["=1+1", "a&b"]),
        ("size=2", ["A|x"]), ("q", []), ("", 4),
    ],
)  # fmt: skip
def test_rows_are_filtered_by_texts_and_by_numbers_as_shown(
    view: FrameView, text: str, names: list[str] | int
) -> None:
    view.select_key("z")
    view.filter(text)
    assert shown(view, 0) == (list(runs()["name"]) if names == 4 else names)
    assert view.keys == (("z",) if "a&b" in shown(view, 0) else ())


def test_the_filter_is_typed_above_the_table(qtbot: QtBot, view: FrameView) -> None:
    view.ask_filter()
    box = view._filter_box
    assert box.isVisible() and view.rect().contains(box.geometry())
    qtbot.keyClicks(box, "a")
    assert view.model().rowCount() == 2
    qtbot.keyClick(box, Qt.Key.Key_Escape)
    assert not box.isVisible() and view.model().rowCount() == 4


def test_it_is_copied_in_all_forms(view: FrameView) -> None:
    view.set_hidden(["Part", "Size"])
    view.sortByColumn(1, UP)
    copied = {}
    for form in (tab_separated, comma_separated, markdown, latex, html):
        view.copy(form, everything=True)
        copied[form] = QGuiApplication.clipboard().text().splitlines()
    # what is only copied at first is so still
    assert copied[tab_separated][:2] == ["Name\tTime [ms]\tSize", "A|x\t2.0\t2"]
    assert copied[tab_separated][4].startswith("'=1+1\t\t")
    assert copied[comma_separated][1] == "A|x,2.0,2"
    assert copied[markdown][2] == "| A\\|x | 2.0 | 2 |"
    assert r"a\&b & 250.0 & 12345 \\" in copied[latex]
    assert "<tr><td>a&amp;b</td><td>250.0</td><td>12345</td></tr>" in copied[html]
    assert QGuiApplication.clipboard().mimeData().hasHtml()
    view.selectRow(1)
    view.copy(tab_separated)
    assert len(QGuiApplication.clipboard().text().splitlines()) == 2


@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
def test_it_is_exported_as_it_is_shown_and_no_cell_is_a_formula(
    view: FrameView, tmp_path: Path, suffix: str
) -> None:
    view.sortByColumn(2, DOWN)
    view.filter("part < 90")
    path = tmp_path / f"runs.{suffix}"
    view.export_to(path)
    read = pd.read_csv(path) if suffix == "csv" else pd.read_excel(path)
    assert list(read.columns) == ["Name", "Time [ms]", "Part [%]", "Size"]
    assert list(read["Name"]) == ["b", "'=1+1", "a&b"]
    assert list(read["Part [%]"]) == [50.0, 25.0, 12.5] and math.isnan(read["Time [ms]"][1])
    view.export_to(tmp_path / "gone" / "runs.csv")
    box = view.findChild(QMessageBox)
    assert box is not None and "cannot be written" in box.text()


def test_many_cells_are_copied_and_written_in_the_background(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = FrameView("Many")
    qtbot.addWidget(view)
    view.show_frame(pd.DataFrame({f"c{k}": np.arange(4000.0) + k for k in range(5)}))
    QGuiApplication.clipboard().setText("before")
    view.copy(tab_separated)
    assert QGuiApplication.clipboard().text() == "before"
    qtbot.waitUntil(lambda: QGuiApplication.clipboard().text() != "before")
    lines = QGuiApplication.clipboard().text().splitlines()
    assert len(lines) == 4001 and lines[-1] == "3999.0\t4000.0\t4001.0\t4002.0\t4003.0"
    path = tmp_path / "many.csv"
    view.export_to(path)
    qtbot.waitUntil(path.exists)
    assert pd.read_csv(path).equals(view.frames.frame)


def test_why_many_cells_cannot_be_written_is_said(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("desktop.data.frames.SHEET_ROWS", 9_999)
    view = FrameView("Long")
    qtbot.addWidget(view)
    view.show_frame(pd.DataFrame({"a": np.arange(10_000), "b": 0}))
    view.export_to(tmp_path / "long.xlsx")
    qtbot.waitUntil(lambda: view.findChild(QMessageBox) is not None)
    said = view.findChild(QMessageBox).text()
    assert said.endswith("holds at most 9 999 rows, not 10 000: write a .csv file.")
    assert not list(tmp_path.iterdir())


def test_a_table_may_go_while_it_is_copied(qtbot: QtBot) -> None:
    view, started, go = FrameView("Many"), threading.Event(), threading.Event()
    view.show_frame(pd.DataFrame({f"c{k}": np.arange(4000.0) for k in range(5)}))
    QGuiApplication.clipboard().setText("before")

    def form(_: object) -> str:
        started.set()
        assert go.wait(10)
        return "late"

    view.copy(form)
    assert started.wait(10)
    shiboken6.delete(view)
    go.set()
    qtbot.wait(200)
    assert QGuiApplication.clipboard().text() == "before"


@settings(deadline=None, max_examples=30)
@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.integers(-9, 9), st.floats(), st.text("aB=", max_size=3)),
            st.floats(),
        ),
        max_size=12,
    ),
    st.booleans(),
)
def test_any_frame_keeps_its_rows_in_any_order(
    qapp: object, rows: list[tuple[object, float]], down: bool
) -> None:
    model = FrameModel()
    columns = [Column("Mixed"), Column("Number")]
    made, marks = table(columns, [TableRow(cells, k) for k, cells in enumerate(rows)])
    model.show(made, columns, marks)
    for column in (0, 1):
        model.sort(column, DOWN if down else UP)
        assert sorted(model.order.tolist()) == list(range(len(rows)))
        values = [rows[k][column] for k in model.order]
        known = [v for v in values if v is not None and not (isinstance(v, float) and math.isnan(v))]
        assert values[: len(known)] == known, "what is not known is last"
        for several in (
            [v for v in known if not isinstance(v, str)],
            [v.casefold() for v in known if isinstance(v, str)],
        ):
            assert several == sorted(several, reverse=down)
        lines = list(csv.reader(io.StringIO(comma_separated(model.texts(range(len(rows)))))))
        assert len(lines) == len(rows) + 1


@pytest.mark.qt_log_ignore("This plugin does not support")  # to raise the list of a combo box
def test_cells_are_edited_checked_and_chosen(qtbot: QtBot) -> None:
    view = FrameView("Places")
    qtbot.addWidget(view)
    columns = [
        Column("Use", check=True),
        Column("Note", editable=True),
        Column("Class", choices=lambda k: (("one", 1), ("two", 2)) if k else ()),
    ]
    rows = [
        TableRow((True, "a", 1), "first", fixed=frozenset({"Note"})),
        TableRow((False, "b", 1), "second", "warning"),
    ]
    view.show_rows(columns, rows)
    view.resize(400, 200)
    view.show()
    model = view.frames
    editable = [
        [bool(model.flags(model.index(r, c)) & Qt.ItemFlag.ItemIsEditable) for c in range(3)]
        for r in range(2)
    ]
    assert editable == [[False, False, False], [False, True, True]]
    seen: list[object] = []
    model.edited.connect(lambda *what: seen.append(what))
    model.toggled.connect(lambda *what: seen.append(what))
    model.setData(model.index(1, 1), " text ")
    box = view.visualRect(model.index(1, 0))
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(box.left() + 8, box.center().y()))
    view.setCurrentIndex(model.index(1, 2))
    view.edit(model.index(1, 2))
    combo = view.findChild(QComboBox)
    assert combo is not None and combo.currentText() == "one"
    combo.setCurrentIndex(1)
    combo.activated.emit(1)
    assert seen == [("second", 1, "text"), ("second", True), ("second", 2, 2)]


def test_rows_below_their_parents_are_sorted_and_filtered_with_them(qtbot: QtBot) -> None:
    tree = FrameTree("Calls")
    qtbot.addWidget(tree)
    made = pd.DataFrame({"name": ["main", "b", "a", "deep", "other"], "t": [9.0, 1.0, 5.0, 4.0, 3.0]})
    tree.show_frame(
        made, [Column("Name", name="name"), Column("T", name="t")], RowMarks(), np.array([-1, 0, 0, 2, -1])
    )

    def walk(parent: object = None) -> list[object]:
        model = tree.frames
        at = [
            model.index(r, 0, parent) if parent else model.index(r, 0)
            for r in range(model.rowCount(parent) if parent else model.rowCount())
        ]
        assert all((model.parent(index).isValid()) == bool(parent) for index in at)
        return [(index.data(), walk(index)) for index in at]

    assert walk() == [("main", [("b", []), ("a", [("deep", [])])]), ("other", [])]
    tree.sortByColumn(1, DOWN)
    assert walk() == [("main", [("a", [("deep", [])]), ("b", [])]), ("other", [])]
    tree.filter("eep")
    assert walk() == [("main", [("a", [("deep", [])])])]
    tree.filter("")
    assert len(walk()) == 2


def test_an_error_while_it_is_drawn_is_told_and_the_table_stays(
    qtbot: QtBot, view: FrameView, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[object] = []
    monkeypatch.setattr("sys.excepthook", lambda kind, *_: told.append(kind))
    monkeypatch.setattr(view.frames, "tone", lambda *_: 1 // 0)
    view.grab()
    assert ZeroDivisionError in told
    monkeypatch.undo()
    view.grab()


def test_declared_tables_are_built_as_declared() -> None:
    for fields in TABLES.values():
        values = {"int64": 1, "float64": 0.5, "bool": True, "text": "x", "any": None}
        made = frame(fields, {f.name: [values[f.dtype]] * 2 for f in fields})
        assert list(made.columns) == [f.name for f in fields]
        assert made.attrs["units"] == {f.name: f.unit for f in fields}
        for f in fields:
            kind = made[f.name].dtype
            assert str(kind) == f.dtype if f.dtype not in ("text", "any") else kind.kind == "O"
        with pytest.raises(KeyError):
            frame(fields, {})
