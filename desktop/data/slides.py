"""A report as slides (PPTX, 16:9): a title, a slide for each figure with its finding, tables as tables.

Written with python-pptx, which is loaded when the first slides are made. Figures come as PNG pictures.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from desktop.data.report import Command, Paragraph, Picture, Points, Report, Section, Table
from desktop.printing import printable
from desktop.progress import Progress

#: mm of a slide, and of a picture on it
WIDTH, HEIGHT = 338.67, 190.5
PICTURE = (308.0, 132.0)
_LEFT, _TOP = 15.3, 42.0
# A table of more rows goes on on the next slide.
_ROWS = 12
_INK, _MUTED, _ACCENT = "1A1F26", "55606D", "0B5FA5"
_MOST_TEXT = 900


def to_pptx(report: Report, draw: Callable[[Picture], bytes], progress: Progress | None = None) -> bytes:
    """The slides as a file. `draw` gives a figure as PNG in the proportions of `PICTURE`.

    Texts are made `printable`. The bytes depend on the report alone, its date included.
    """
    from pptx import Presentation
    from pptx.util import Mm

    progress = progress or Progress()
    deck = Presentation()
    deck.slide_width, deck.slide_height = Mm(WIDTH), Mm(HEIGHT)
    about = deck.core_properties
    about.title, about.author, about.last_modified_by = printable(report.title), "Phasewright", "Phasewright"
    about.created = about.modified = report.date.replace(tzinfo=None, microsecond=0)
    about.revision = 1
    slides = _Slides(deck)
    slides.title(report)
    for k, section in enumerate(report.sections):
        progress.step(k, len(report.sections), "slides")
        if section.level == 1:
            slides.heading(section.title)
        for picture in (block for block in section.blocks if isinstance(block, Picture)):
            slides.picture(picture, draw(picture))
        texts = [line for block in section.blocks for line in _lines(block)]
        if texts:
            slides.points(section.title, texts)
        for table in (block for block in section.blocks if isinstance(block, Table)):
            slides.table(section, table)
    made = io.BytesIO()
    deck.save(made)
    return _dated(made.getvalue(), report)


def _lines(block: Any) -> Iterator[str]:
    if isinstance(block, Paragraph | Command):
        yield block.text
    elif isinstance(block, Points):
        yield from (f"•  {item}" for item in block.items)


class _Slides:
    """Slides of one deck, all on its blank layout: nothing is left that says "click to add text"."""

    def __init__(self, deck: Any) -> None:
        self._deck = deck
        self._blank = deck.slide_layouts[6]

    def title(self, report: Report) -> None:
        slide = self._slide()
        self._text(slide, (_LEFT, 62, PICTURE[0], 30), [report.title], 40, bold=True)
        names = [str(run["source"]["name"]) for run in report.facts]
        lines = [report.subtitle, *(names if len(names) <= 4 else [*names[:3], f"and {len(names) - 3} more"])]
        self._text(slide, (_LEFT, 98, PICTURE[0], 50), lines, 18, colour=_MUTED)

    def heading(self, title: str) -> None:
        self._text(self._slide(), (_LEFT, 70, PICTURE[0], 40), [title], 36, bold=True)

    def picture(self, picture: Picture, png: bytes) -> None:
        from pptx.util import Mm

        slide = self._slide()
        self._finding(slide, picture.finding)
        place = (Mm(v) for v in (_LEFT, _TOP, *PICTURE))
        shape = slide.shapes.add_picture(io.BytesIO(png), *place)
        described = shape._element.nvPicPr.cNvPr  # python-pptx has no other way to a description
        described.set("descr", printable(picture.finding))
        described.set("name", f"Figure {picture.number}")

    def points(self, title: str, lines: Sequence[str]) -> None:
        """Sentences, as many to a slide as are sure to fit."""
        pages: list[list[str]] = [[]]
        for line in (printable(text, _MOST_TEXT) for text in lines):
            rows = sum(1 + len(text) // 95 for text in pages[-1])
            if pages[-1] and rows + 1 + len(line) // 95 > 13:
                # What announces the next lines goes with them.
                pages.append([pages[-1].pop()] if pages[-1][-1].endswith(":") else [])
            pages[-1].append(line)
        for page in pages:
            slide = self._slide()
            self._finding(slide, title)
            self._text(slide, (_LEFT, _TOP, PICTURE[0], PICTURE[1]), page, 16, most=_MOST_TEXT)

    def table(self, section: Section, table: Table) -> None:
        for at in range(0, max(len(table.rows), 1), _ROWS):
            more = f" ({at // _ROWS + 1})" if len(table.rows) > _ROWS else ""
            title = table.title if section.title == table.title else f"{section.title}: {table.title}"
            self._table_slide(f"{title}{more}", table, table.rows[at : at + _ROWS])

    def _table_slide(self, title: str, table: Table, rows: Sequence[tuple[str, ...]]) -> None:
        from pptx.enum.text import MSO_ANCHOR, PP_ALIGN
        from pptx.util import Mm, Pt

        slide = self._slide()
        self._finding(slide, title)
        lines = [table.heads, *rows]
        size = 14 if len(table.heads) <= 6 else 11 if len(table.heads) <= 9 else 9
        width, high = PICTURE[0], 9.5 * len(lines)
        place = (Mm(v) for v in (_LEFT, _TOP, width, high))
        frame = slide.shapes.add_table(len(lines), len(table.heads), *place)
        drawn = frame.table
        # Columns as wide as their longest cell needs, in parts of the slide; texts wrap beyond 40 signs.
        need = [min(max(len(line[c]) for line in lines), 40) + 3 for c in range(len(table.heads))]
        for c, part in enumerate(need):
            drawn.columns[c].width = Mm(width * part / sum(need))
        for r, line in enumerate(lines):
            drawn.rows[r].height = Mm(9.5)
            for c, text in enumerate(line):
                cell = drawn.cell(r, c)
                cell.vertical_anchor = MSO_ANCHOR.MIDDLE
                cell.margin_left = cell.margin_right = Mm(1.5)
                cell.margin_top = cell.margin_bottom = Mm(0.6)
                paragraph = cell.text_frame.paragraphs[0]
                paragraph.alignment = PP_ALIGN.LEFT if c < table.left else PP_ALIGN.RIGHT
                run = paragraph.add_run()
                run.text = printable(text, 90)
                run.font.size = Pt(size)
                run.font.name = _FONT
                run.font.bold = r == 0

    def _slide(self) -> Any:
        return self._deck.slides.add_slide(self._blank)

    def _finding(self, slide: Any, text: str) -> None:
        """The sentence above, which is what the slide says."""
        size = 24 if len(text) <= 110 else 20
        self._text(slide, (_LEFT, 11, PICTURE[0], 27), [text], size, bold=True, colour=_ACCENT, most=320)

    def _text(
        self,
        slide: Any,
        place: tuple[float, float, float, float],
        lines: Sequence[str],
        size: int,
        *,
        bold: bool = False,
        colour: str = _INK,
        most: int = 200,
    ) -> None:
        from pptx.dml.color import RGBColor
        from pptx.util import Mm, Pt

        frame = slide.shapes.add_textbox(*(Mm(v) for v in place)).text_frame
        frame.word_wrap = True
        for k, line in enumerate(lines):
            paragraph = frame.paragraphs[0] if k == 0 else frame.add_paragraph()
            paragraph.space_after = Pt(size / 3)
            run = paragraph.add_run()
            run.text = printable(line, most)
            run.font.size, run.font.bold, run.font.name = Pt(size), bold, _FONT
            run.font.color.rgb = RGBColor.from_string(colour)


#: Slides travel without their fonts; this one, or its like, is on every system.
_FONT = "Arial"


def _dated(content: bytes, report: Report) -> bytes:
    """The same archive with the report's date on all its members, so that equal reports are equal files."""
    made = io.BytesIO()
    when = max(report.date.timetuple()[:6], (1980, 1, 1, 0, 0, 0))
    with zipfile.ZipFile(io.BytesIO(content)) as source, zipfile.ZipFile(made, "w") as target:
        for name in source.namelist():
            member = zipfile.ZipInfo(name, when)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.external_attr = 0o600 << 16
            target.writestr(member, source.read(name))
    return made.getvalue()
