"""What tables of all windows share: the forms of copying."""

from __future__ import annotations

import csv
import re
import subprocess
import sys

from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from desktop.data.columns import Column, TableRow
from desktop.ui.tables import FrameView, comma_separated, markdown, tab_separated

ODD = ["a\tb", "a|b", "a\nb", 'a,"b"', ""]


def test_whatever_cells_hold_rows_and_columns_stay(qtbot: QtBot) -> None:
    table = FrameView("Odd names")
    qtbot.addWidget(table)
    table.show_rows([Column("Name"), Column("t", unit="s")], [TableRow((odd, 0.1)) for odd in ODD])
    table.copy(tab_separated, everything=True)
    lines = [line.split("\t") for line in QGuiApplication.clipboard().text().splitlines()]
    assert lines == [["Name", "t [s]"], *([" ".join(odd.split()), "0.1"] for odd in ODD)]
    table.copy(comma_separated, everything=True)
    parsed = list(csv.reader(QGuiApplication.clipboard().text().splitlines(keepends=True)))
    assert [row[0] for row in parsed] == ["Name", *(" ".join(odd.split()) for odd in ODD)]
    table.copy(markdown, everything=True)
    lines = [re.split(r"(?<!\\)\|", line)[1:-1] for line in QGuiApplication.clipboard().text().splitlines()]
    assert {len(line) for line in lines} == {2} and len(lines) == 2 + len(ODD)
    assert lines[3] == [r" a\|b ", " 0.1 "]


def test_a_process_that_has_copied_html_ends_in_peace() -> None:
    """What Python made lies on the clipboard, and Qt frees it at the very end."""
    code = (
        "from PySide6.QtWidgets import QApplication\n"
        "app = QApplication(['x', '-platform', 'offscreen'])\n"
        "from desktop.ui.tables import Column, FrameView, TableRow, html\n"
        "table = FrameView('Rows')\n"
        "table.show_rows([Column('Name')], [TableRow(('a',))])\n"
        "table.copy(html, everything=True)\n"
        "assert '<td>a</td>' in app.clipboard().mimeData().html()\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
