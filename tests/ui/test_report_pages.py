"""Where the pages of a report end: no figure loses its caption, no row or heading stands alone."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PySide6.QtGui import QImage, QTextBlock, QTextTable
from PySide6.QtWidgets import QApplication

from desktop.data.report import Paragraph, Picture, Points, Report, ReportTable, Section
from desktop.progress import Progress
from desktop.ui import reporting
from desktop.ui.app import load_font
from desktop.ui.figures import Look
from tests.ui.test_figures import WAVE, material

DPI = 72


@pytest.fixture(autouse=True, scope="module")
def font(qapp: QApplication) -> None:
    load_font(qapp)


def page() -> QImage:
    """Paper of A4."""
    made = QImage(round(210 / 25.4 * DPI), round(297 / 25.4 * DPI), QImage.Format.Format_RGB32)
    made.setDotsPerMeterX(round(DPI * 1000 / 25.4))
    made.setDotsPerMeterY(round(DPI * 1000 / 25.4))
    return made


def report(tables: list[int], lines: list[int], gaps: list[int]) -> Report:
    made = material(WAVE)
    sections = []
    for k, (rows, longer, items) in enumerate(zip(tables, lines, gaps, strict=True)):
        cells = tuple((f"row {i}", "word " * longer, "1") for i in range(rows))
        note = "A note that belongs to the table." if k % 2 else ""
        blocks: tuple[Any, ...] = (
            Points(tuple(f"point {i} " * 9 for i in range(items))),
            Picture("phases", k + 1, "What it shows. " * 5, made),
            Paragraph("What follows:"),
            ReportTable(f"Table {k}", ("A", "B", "C"), cells, note=note),
        )
        sections.append(Section(f"Section {k}", blocks))
    return Report("Title", "subtitle", datetime(2026, 1, 1, tzinfo=UTC), tuple(sections), ())


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_pages_end_where_nothing_stands_alone(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 5))
    tables, lines, gaps = (
        [data.draw(st.integers(low, high)) for _ in range(count)] for low, high in ((1, 90), (0, 30), (0, 20))
    )
    check(report(tables, lines, gaps))


def test_a_table_at_the_end_of_a_page() -> None:
    """Wherever on a page it begins."""
    rows = tuple((f"row {i}", "word", "1") for i in range(9))
    table = ReportTable("Table", ("A", "B", "C"), rows)
    pages = set()
    for items in range(24, 48):
        blocks = (Points(tuple(f"point {i}" for i in range(items))), table)
        made = Report("T", "s", datetime(2026, 1, 1, tzinfo=UTC), (Section("Section", blocks),), ())
        pages.add(check(made))
    assert pages == {1, 2}


def check(made: Report) -> int:
    """That nothing of a report stands alone on its pages; how many they are."""
    image = page()
    pages = reporting._laid_out_pages(made, Look(), image, Progress())
    own = [slices[-1] for slices in pages.slices]  # before it, headings that are repeated
    assert own[0][0] == 0 and own[-1][1] == pages.document.size().height()
    assert all(a[1] == b[0] for a, b in pairwise(own)), "all of it is on some page, once"
    room = image.height() - (2 * reporting._MARGIN + reporting._FOOT) * pages.unit
    assert all(sum(b - a for a, b in slices) <= room + 1 for slices in pages.slices)

    def number(top: float, bottom: float) -> int:
        """The page that something is on, as a whole."""
        (found,) = [k for k, (a, b) in enumerate(own) if a - 0.5 <= top and bottom <= b + 0.5]
        return found

    parts = reporting._parts(pages.document)
    for (part, top, bottom), (behind, below, end) in pairwise(parts):
        if isinstance(part, QTextBlock):
            first = number(top, bottom)
            if part.text() == reporting._HOLE:
                assert number(below, end) == first, "a caption is with its figure"
            elif part.blockFormat().headingLevel() and isinstance(behind, QTextBlock):
                assert number(below, end) == first, "a heading is with what it is over"
    for part, _, _ in parts:
        if not isinstance(part, QTextTable):
            continue
        layout = pages.document.documentLayout()
        held: dict[int, int] = {}
        for row in range(1, part.rows()):
            place = [
                layout.blockBoundingRect(part.cellAt(row, c).firstCursorPosition().block()) for c in range(3)
            ]
            where = number(min(p.top() for p in place), max(p.bottom() for p in place))
            held[where] = held.get(where, 0) + 1
        assert len(held) == 1 or min(held.values()) >= 2, held
        for where in list(held)[1:]:
            head = layout.blockBoundingRect(part.cellAt(0, 0).firstCursorPosition().block())
            (repeated, _) = pages.slices[where]
            assert repeated[0] <= head.top() and head.bottom() <= repeated[1], "its headings are repeated"
    return len(pages.slices)


def test_a_pdf_depends_on_what_the_report_holds_alone() -> None:
    """Not on the second in which it is written; its identity is that of its content."""
    made = report([3], [2], [1])
    one = reporting.pdf(made, Look(), Progress())
    time.sleep(1.1)
    assert reporting.pdf(made, Look(), Progress()) == one
    assert re.findall(rb"D:(\d{14})", one)[0] == made.date.strftime("%Y%m%d%H%M%S").encode()
    other = reporting.pdf(replace(made, title="another"), Look(), Progress())
    identity = [re.findall(rb"/ID \[ <(\w+)> <(\w+)> \]", pdf)[0] for pdf in (one, other)]
    assert identity[0] != identity[1] and all(len(set(pair)) == 1 for pair in identity)
