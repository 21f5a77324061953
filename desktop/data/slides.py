"""A report as slides (PPTX, 16:9): its story, one sentence per slide, and everything else as an appendix.

Every slide has a layout of the master with its title in the title placeholder, so that outlines and screen
readers find it; pictures and tables have alternative texts; slides are numbered. Written with python-pptx,
which is loaded when the first slides are made.
"""

from __future__ import annotations

import copy
import io
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from desktop.core.labels import FIGURES
from desktop.core.units import unbroken
from desktop.data.report import Block, Paragraph, Picture, Points, Report, ReportCommand, ReportTable, Section
from desktop.data.slide_template import AnySlide, Room, SlideTemplate, box, places, title_size
from desktop.printing import printable

if TYPE_CHECKING:
    from pptx.dml.color import ColorFormat
    from pptx.dml.fill import FillFormat
    from pptx.oxml.table import CT_TableCell
    from pptx.presentation import Presentation
    from pptx.shapes.autoshape import Shape
    from pptx.shapes.base import BaseShape
    from pptx.shapes.graphfrm import GraphicFrame
    from pptx.slide import Slide, SlideLayout
    from pptx.table import _Cell
    from pptx.text.text import _Paragraph
    from pptx.util import Length

Theme = Literal["light", "dark"]
#: mm of a slide, and of a picture on it
WIDTH, HEIGHT = 338.67, 190.5
PICTURE = (308.0, 136.0)
_LEFT, _TOP, _FOOT = 15.3, 38.0, 178.0
OWN = Room(_LEFT, _TOP, PICTURE[0], _FOOT - _TOP)
#: Slides do not contain their fonts; this one, or a similar one, is on every system.
_FONT = "Arial"
_MOST_TEXT, _MOST_NOTES = 900, 10_000
_MM_PER_POINT = 25.4 / 72
# Point sizes of the text of tables, as large as possible with all rows on one slide; average width of a
# letter and height of a line relative to that.
_SIZES, _LETTER, _LINE = (16.0, 14.0, 12.0, 11.0, 10.0), 0.53, 1.2
_CELL_EDGE, _CELL_PAD, _LONGEST_CELL = 1.8, 0.8, 120
# Layouts of python-pptx's own template that are kept, by their index.
_TITLE, _TEXT, _HEADING, _ONLY_TITLE = 0, 1, 2, 5


@dataclass(frozen=True)
class _Ink:
    """Colours of a theme: background, text, quiet text, titles, and rows of tables."""

    ground: str
    text: str
    muted: str
    accent: str
    head: str
    stripe: str


_INKS: dict[Theme, _Ink] = {
    "light": _Ink("FFFFFF", "1A1F26", "55606D", "0B5FA5", "E3EAF1", "F5F7F9"),
    "dark": _Ink("14171B", "E8EBEF", "A3ADB8", "6CB6EC", "2A3037", "1D2126"),
}
# The same for a user's template, by their names in its theme; no fills, on which text might not be readable.
_THEMED = _Ink("BACKGROUND_1", "TEXT_1", "TEXT_1", "ACCENT_1", "", "")


def picture_size(room: Room) -> tuple[float, float]:
    """Size in mm of a figure in this space."""
    return PICTURE if room is OWN else (room.width, min(room.height, room.width / 1.6))


def to_pptx(
    report: Report,
    draw: Callable[[Picture], bytes],
    theme: Theme = "light",
    template: SlideTemplate | None = None,
) -> bytes:
    """The slides as a file. `draw` gives a figure as PNG with the aspect ratio of `picture_size`.

    Texts are made `printable`. The bytes depend only on the report, including its date, and the theme or
    template (which can be used for one deck only).
    """
    deck = _own_deck(_INKS[theme]) if template is None else template.deck
    about = deck.core_properties
    about.title, about.author, about.last_modified_by = printable(report.title), "Phasewright", "Phasewright"
    about.created = about.modified = report.date.replace(tzinfo=None, microsecond=0)
    about.revision = 1
    slides = _Slides(deck, report, _INKS[theme], template)
    slides.title(report)
    for slide in report.story:
        slides.block(slide.title, slide.block, draw)
        slides.say(slide.notes)
    story_slides = len(deck.slides)
    if report.appendix:
        appendix = list(_appendix(report))
        if appendix:
            slides.heading("Appendix", [section.title for section in appendix])
        for section in appendix:
            slides.section(section, draw)
    _divide(deck, story_slides)
    file = io.BytesIO()
    deck.save(file)
    return _dated(file.getvalue(), report)


def _appendix(report: Report) -> Iterator[Section]:
    """The sections not shown in the story, without the figure of the phase table: the table is there."""
    in_story = {id(slide.block) for slide in report.story}
    for section in report.sections:
        blocks = tuple(
            block
            for block in section.blocks
            if id(block) not in in_story and not (isinstance(block, Picture) and block.figure == "phases")
        )
        if blocks or (section.level == 1 and not section.blocks):
            yield Section(section.title, blocks, section.level)


def _divide(deck: Presentation, story_slides: int) -> None:
    """Name the sections of the deck, as listed by programs beside the slides."""
    from pptx.oxml import parse_xml

    ids = [slide.slide_id for slide in deck.slides]
    parts = [
        (name, held)
        for name, held in (("Story", ids[:story_slides]), ("Appendix", ids[story_slides:]))
        if held
    ]
    listed = "".join(
        f'<p14:section name="{name}" id="{{00000000-0000-0000-0000-{k:012d}}}"><p14:sldIdLst>'
        + "".join(f'<p14:sldId id="{number}"/>' for number in held)
        + "</p14:sldIdLst></p14:section>"
        for k, (name, held) in enumerate(parts, 1)
    )
    main = "http://schemas.openxmlformats.org/presentationml/2006/main"
    more = "http://schemas.microsoft.com/office/powerpoint/2010/main"
    root = deck.part._element  # python-pptx has no method for sections
    for former in root.findall(_q("p:extLst")):
        root.remove(former)
    root.append(
        parse_xml(
            f'<p:extLst xmlns:p="{main}"><p:ext uri="{{521415D9-36F7-43E2-AB2F-B90AF26B5E84}}">'
            f'<p14:sectionLst xmlns:p14="{more}">{listed}</p14:sectionLst></p:ext></p:extLst>'
        )
    )


class _Slides:
    """Slides of one deck, each with a layout that has a place for its title."""

    def __init__(self, deck: Presentation, report: Report, ink: _Ink, template: SlideTemplate | None) -> None:
        self._deck, self._ink, self._report = deck, ink if template is None else _THEMED, report
        self._own, self._room = template is None, OWN if template is None else template.room
        names = ("title", "text", "heading", "only")
        layouts = dict(zip(names, deck.slide_layouts, strict=False))
        self._layouts = layouts if template is None else template.layouts

    # ---- slides

    def title(self, report: Report) -> None:
        slide = self._slide("title", report.title, most=160)
        names = [str(run["source"]["name"]) for run in report.facts]
        lines = [report.finding, report.subtitle]
        lines.append(", ".join(names if len(names) <= 4 else [*names[:3], f"and {len(names) - 3} more"]))
        body = self._body(slide).text_frame
        for k, (line, size) in enumerate(zip(lines, (22.0, 14.0, 14.0), strict=True)):
            paragraph = body.paragraphs[0] if k == 0 else body.add_paragraph()
            self._run(paragraph, line, size, self._ink.muted if k else self._ink.text, most=_MOST_TEXT)
            paragraph.space_after = _points(12 if k == 0 else 3)
        self.say(report.notes)

    def say(self, notes: str) -> None:
        """Add speaker's notes to the last slide."""
        if notes:
            slide = self._deck.slides[len(self._deck.slides) - 1]
            lines = (printable(line, _MOST_NOTES) for line in notes[:_MOST_NOTES].splitlines())
            slide.notes_slide.notes_text_frame.text = "\n".join(lines)

    def heading(self, title: str, below: Sequence[str] = ()) -> None:
        slide = self._slide("heading", title)
        if not below:
            for shape in places(slide):
                shape._element.getparent().remove(shape._element)
            return
        body = self._body(slide)
        self._run(body.text_frame.paragraphs[0], " · ".join(below), 16.0, self._ink.muted, most=_MOST_TEXT)

    def block(self, title: str, block: Block, draw: Callable[[Picture], bytes]) -> None:
        if isinstance(block, Picture):
            self._picture(title, block, draw(block))
        elif isinstance(block, ReportTable):
            self._table(title, block)
        else:
            self._text(title, [block])

    def section(self, section: Section, draw: Callable[[Picture], bytes]) -> None:
        """The section's figures, then its tables, each with its remarks below; lists separately."""
        if section.level == 1:
            self.heading(section.title)
        for picture in section.blocks:
            if isinstance(picture, Picture):
                self._picture(picture.finding, picture, draw(picture))
        tables: list[tuple[ReportTable, list[str]]]
        tables = [(block, []) for block in section.blocks if isinstance(block, ReportTable)]
        texts_of_section = [block for block in section.blocks if not isinstance(block, Picture | ReportTable)]
        remarks = [block for block in texts_of_section if not isinstance(block, Points)]
        if texts_of_section and not (tables and len(remarks) == len(texts_of_section)):
            self._text(section.title, texts_of_section)
            remarks = []
        for remark in remarks:
            below = [texts for table, texts in tables if table.part == remark.part]
            (below or [tables[-1][1]])[-1].append(remark.text)
        for table, texts in tables:
            title = table.title if section.title == table.title else f"{section.title}: {table.title}"
            self._table(title, table, texts)

    # ---- contents

    def _picture(self, title: str, picture: Picture, png: bytes) -> None:
        slide = self._slide("only", title)
        size = picture_size(self._room)
        shape = slide.shapes.add_picture(io.BytesIO(png), *_place(self._room.left, self._room.top, *size))
        self._describe(
            shape,
            f"Figure {picture.number}",
            f"{FIGURES.get(picture.figure, picture.figure)}. {picture.finding}",
        )

    def _text(self, title: str, blocks: Iterable[Block]) -> None:
        """Sentences, as many per slide as certainly fit; those that announce others stay with them."""
        lines = [line for block in blocks for line in _lines(block)]
        for size in (18.0, 14.0):  # smaller if one slide does not hold them
            line = size * _MM_PER_POINT
            high = [(_rows(text, size, self._room.width - 12) * _LINE + 0.4) * line for text, _ in lines]
            if sum(high) <= self._room.height:
                break
        begins = [k for k, (text, _) in enumerate(lines) if k == 0 or text.endswith(":")]
        ends = [*begins[1:], len(lines)]
        groups = list(zip(begins, ends, strict=True))
        if any(sum(high[a:b]) > self._room.height for a, b in groups):
            groups = [(k, k + 1) for k in range(len(lines))]
        for first, last in _shared_out([0.0, *(sum(high[a:b]) for a, b in groups)], self._room.height):
            self._text_slide(title, lines[groups[first][0] : groups[last - 1][1]], size)

    def _text_slide(self, title: str, lines: Sequence[tuple[str, bool]], size: float) -> None:
        body = self._body(self._slide("text", title)).text_frame
        for k, (line, listed) in enumerate(lines):
            paragraph = body.paragraphs[0] if k == 0 else body.add_paragraph()
            self._run(paragraph, line, size, self._ink.text, most=_MOST_TEXT)
            paragraph.space_after = _points(size / 3)
            if not listed:
                _without_bullet(paragraph)

    def _table(self, title: str, table: ReportTable, remarks: Sequence[str] = ()) -> None:
        """A table on as few slides as possible, with its rows evenly divided."""
        notes = [printable(text, _MOST_TEXT) for text in (table.note, *remarks) if text]
        wide_all, high_all = self._room.width, self._room.height
        below = sum(_rows(text, 12.0, wide_all) for text in notes) * 12.0 * _MM_PER_POINT * _LINE
        below += 3.0 if notes else 0.0
        size, wide, high = _measured(table, high_all - below, wide_all)
        pages = _shared_out(high, high_all - below)
        for k, (first, last) in enumerate(pages):
            more = f" ({k + 1} of {len(pages)})" if len(pages) > 1 else ""
            slide = self._slide("only", f"{title}{more}")
            bottom = self._cells(slide, table, (first, last), size, wide, high)
            if notes and k == len(pages) - 1:
                frame = slide.shapes.add_textbox(
                    *_place(self._room.left, bottom + 3.0, wide_all, below)
                ).text_frame
                frame.word_wrap = True
                frame.margin_left = frame.margin_right = frame.margin_top = 0
                for n, text in enumerate(notes):
                    paragraph = frame.paragraphs[0] if n == 0 else frame.add_paragraph()
                    self._run(paragraph, text, 12.0, self._ink.muted, most=_MOST_TEXT)

    def _cells(
        self,
        slide: Slide,
        table: ReportTable,
        span: tuple[int, int],
        size: float,
        wide: Sequence[float],
        high: Sequence[float],
    ) -> float:
        """Rows of a table under its headings; returns where they end, in mm."""
        from pptx.util import Mm

        lines = [table.heads, *table.rows[slice(*span)]]
        heights = [high[0], *high[1 + span[0] : 1 + span[1]]]
        frame = slide.shapes.add_table(
            len(lines), len(table.heads), *_place(self._room.left, self._room.top, sum(wide), sum(heights))
        )
        rows = f"{len(table.rows)} row{'s' if len(table.rows) != 1 else ''}"
        self._describe(frame, table.title, f"{table.title}: {rows}, {', '.join(table.heads)}")
        drawn = frame.table
        _plain_style(frame)
        for c, width in enumerate(wide):
            drawn.columns[c].width = Mm(width)
        looks: dict[tuple[bool, bool, bool], CT_TableCell] = {}
        run = _q("a:r")
        for r, (row, line) in enumerate(zip(drawn.rows, lines, strict=True)):
            row.height = Mm(heights[r])
            for c, (place, text) in enumerate(zip(row._tr.tc_lst, line, strict=True)):
                look = (r == 0, r % 2 == 0, c < table.left)
                if look not in looks:
                    looks[look] = self._look(drawn.cell(r, c), size, *look)
                # python-pptx needs twenty searches for what is the same in most cells.
                cell = copy.deepcopy(looks[look])
                # An empty cell would have the template's text size, and a row higher than measured.
                next(cell.iter(run)).text = _cell(text) or "\u00a0"
                row._tr.replace(place, cell)
        return self._room.top + sum(heights)

    def _look(self, cell: _Cell, size: float, head: bool, stripe: bool, left: bool) -> CT_TableCell:
        """A cell's element: its background, edges and text."""
        from pptx.enum.text import MSO_ANCHOR, PP_ALIGN
        from pptx.util import Mm

        cell.vertical_anchor = MSO_ANCHOR.MIDDLE
        cell.margin_left = cell.margin_right = Mm(_CELL_EDGE)
        cell.margin_top = cell.margin_bottom = Mm(_CELL_PAD)
        _fill(cell.fill, self._ink.head if head else self._ink.stripe if stripe else "")
        paragraph = cell.text_frame.paragraphs[0]
        paragraph.alignment = PP_ALIGN.LEFT if left else PP_ALIGN.RIGHT
        self._run(paragraph, "\u00a0", size, self._ink.text, bold=head)
        return cell._tc

    # ---- parts of all slides

    def _slide(self, layout: str, title: str, most: int = 320) -> Slide:
        slide: Slide = self._deck.slides.add_slide(self._layouts[layout])
        text = unbroken(printable(title, most))
        head = places(slide, "title", "ctrTitle")[0]
        head.text_frame.text = text
        size = 0.0  # as in the layout
        if not self._own:
            size = _shrunk(slide.slide_layout, text)
            keep = places(slide)[:1] if layout != "only" else []
            for shape in [one for one in slide.placeholders if one.shape_id != head.shape_id]:
                if all(shape.shape_id != one.shape_id for one in keep):
                    shape._element.getparent().remove(shape._element)
        elif layout == "title":
            size = 38 if len(text) <= 60 else 28
        elif layout in ("text", "only"):
            size = next((s for s, letters in ((26, 70), (22, 125), (18, 200)) if len(text) <= letters), 15)
        for run in head.text_frame.paragraphs[0].runs if size else ():  # an empty title has no runs
            run.font.size = _points(size)
        if layout != "title":
            self._number(slide)
        return slide

    def _body(self, slide: Slide) -> Shape:
        """The placeholder of a slide for its text; a new box if its layout has none."""
        bodies = places(slide)
        if bodies:
            return bodies[0]
        room = self._room
        box = slide.shapes.add_textbox(*_place(room.left, room.top, room.width, room.height))
        box.text_frame.word_wrap = True
        return box

    def _number(self, slide: Slide) -> None:
        """Add number and the report's title at the foot: python-pptx does not copy these from layouts."""
        for place in places(slide.slide_layout, "sldNum", "ftr"):
            kind = next(place._element.iter(_q("p:ph"))).get("type")
            element = copy.deepcopy(place._element)
            element.nvSpPr.cNvPr.set("id", str(max(shape.shape_id for shape in slide.shapes) + 1))
            slide.shapes._spTree.append(element)
            if kind == "ftr":
                slide.placeholders[place.placeholder_format.idx].text_frame.text = printable(
                    self._report.title, 100
                )

    def _describe(self, shape: BaseShape, name: str, text: str) -> None:
        about = next(shape._element.iter(_q("p:cNvPr")))  # python-pptx has no other access to a description
        about.set("descr", printable(text, _MOST_TEXT))
        about.set("name", printable(name))

    def _run(
        self, into: _Paragraph, text: str, size: float, colour: str, *, bold: bool = False, most: int = 200
    ) -> None:
        run = into.add_run()
        run.text = text if "\u00a0" in text else printable(text, most)
        run.font.size, run.font.bold = _points(size), bold
        if self._own or not into._p.getparent().getparent().xpath(".//p:ph"):
            _colour(run.font.color, colour)  # templates set it in their placeholders


def _lines(block: Block) -> Iterator[tuple[str, bool]]:
    """Lines of text, and whether each is a list item."""
    if isinstance(block, Paragraph | ReportCommand):
        yield printable(block.text, _MOST_TEXT), False
    elif isinstance(block, Points):
        yield from ((printable(item, _MOST_TEXT), True) for item in block.items)


def _rows(text: str, size: float, room: float) -> int:
    """Upper estimate of the lines that a text takes in so many mm."""
    wide = size * _MM_PER_POINT * _LETTER
    letters = max(1, int(room / wide))
    lines, left = 1, letters
    for word in text.split(" "):
        long = len(word)
        if long > left and left < letters:
            lines, left = lines + 1, letters
        lines += (long - 1) // letters
        left -= (long - 1) % letters + 2 if long > letters else long + 1
    return lines


def _measured(table: ReportTable, room: float, across: float) -> tuple[float, list[float], list[float]]:
    """The size of the text, the widths of columns and the heights of rows, headings first, in mm.

    As large as possible with all rows on one slide; for tables that need several, a middle size.
    """
    lines = [tuple(map(_cell, line)) for line in (table.heads, *table.rows)]
    for size in _SIZES:
        wide, high, broken = _laid_out(lines, size, across)
        if not broken and sum(high) <= room:
            roomy = min(1.35, room / sum(high))
            return size, wide, [h * roomy for h in high]
    candidates = [(size, *_laid_out(lines, size, across)) for size in _SIZES if size <= 12.0]
    size, wide, high, _ = next((one for one in candidates if not one[3]), candidates[-1])
    slides = len(_shared_out(high, room))
    for larger in _SIZES:  # larger, if that does not take more slides
        widths, heights, broken = _laid_out(lines, larger, across)
        if not broken and len(_shared_out(heights, room)) == slides:
            return larger, widths, heights
    return size, wide, high


def _cell(text: str) -> str:
    """A cell's text: short ones are never broken."""
    text = printable(text, _LONGEST_CELL)
    return text.replace(" ", "\u00a0") if len(text) <= 14 else text


def _laid_out(
    lines: Sequence[Sequence[str]], size: float, across: float
) -> tuple[list[float], list[float], bool]:
    """Widths of columns and heights of rows at a text size, and whether a word had to be broken."""
    letter, edge = size * _MM_PER_POINT * _LETTER, 2 * _CELL_EDGE + 0.5
    columns = range(len(lines[0]))
    word = [max(len(part) for line in lines for part in line[c].split(" ")) for c in columns]
    want = [min(max(len(line[c]) for line in lines), 48) for c in columns]
    # The headings are bold, thus wider.
    least = [1.15 * n * letter + edge for n in word]
    wide = [max(1.1 * n * letter + edge, low) for n, low in zip(want, least, strict=True)]
    broken = sum(least) > across
    if broken:
        wide = [across * low / sum(least) for low in least]
    elif sum(wide) > across:
        give = [w - low for w, low in zip(wide, least, strict=True)]
        part = (sum(wide) - across) / sum(give)
        wide = [w - part * g for w, g in zip(wide, give, strict=True)]
    else:
        wide = [w * min(across / sum(wide), 1.6) for w in wide]
    high = []
    for r, line in enumerate(lines):
        letters = size * (1.1 if r == 0 else 1.0)
        rows = max(_rows(cell, letters, w - edge) for cell, w in zip(line, wide, strict=True))
        high.append(rows * size * _MM_PER_POINT * _LINE + 2 * _CELL_PAD + 0.3)
    return wide, high, broken


def _shared_out(high: Sequence[float], room: float) -> list[tuple[int, int]]:
    """Rows `first` to below `last` of each slide, with headings (``high[0]``) on all.

    As even as possible, so that no row is alone unless it takes half of a slide.
    """
    rows = len(high) - 1
    room += 1e-6  # rows stretched to fill it must fit, whatever their rounding
    for pages in range(1, max(rows, 1) + 1):
        cuts = [round(k * rows / pages) for k in range(pages + 1)]
        spans = list(pairwise(cuts))
        if all(high[0] + sum(high[1 + a : 1 + b]) <= room for a, b in spans):
            return spans
    return [(k, k + 1) for k in range(rows)]


# ------------------------------------------------------------------ what python-pptx does not support


def _q(name: str) -> str:
    from pptx.oxml.ns import qn

    return str(qn(name))


def _points(size: float) -> Length:
    from pptx.util import Pt

    return Pt(size)


def _place(x: float, y: float, w: float, h: float) -> tuple[Length, ...]:
    from pptx.util import Mm

    return tuple(Mm(v) for v in (x, y, w, h))


def _colour(of: ColorFormat, colour: str) -> None:
    """Set a colour: six hexadecimal digits, or a name of the theme."""
    from pptx.dml.color import RGBColor
    from pptx.enum import dml

    if "_" in colour:
        of.theme_color = dml.MSO_THEME_COLOR_INDEX[colour]
    else:
        of.rgb = RGBColor.from_string(colour)


def _shrunk(layout: SlideLayout, text: str) -> float:
    """Point size at which a title fits into its placeholder; 0: as in the layout."""
    place = places(layout, "title", "ctrTitle")[0]
    room, size = box(place), title_size(layout, place)
    for factor in (1.0, 0.85, 0.7, 0.6, 0.5, 0.4):
        high = _rows(text, size * factor, room.width - 5) * size * factor * _MM_PER_POINT * _LINE
        if high <= room.height:
            break
    return 0.0 if factor == 1 else max(size * factor, 12.0)


def _fill(fill: FillFormat, colour: str) -> None:
    if colour:
        fill.solid()
        _colour(fill.fore_color, colour)
    else:
        fill.background()


def _plain_style(frame: GraphicFrame) -> None:
    """Remove the default style: rows are distinguished by the fills set here."""
    style = next(frame._element.iter(_q("a:tableStyleId")))
    style.text = "{2D5ABB26-0587-4C30-8999-92F81FD0307C}"  # without style, without grid


def _without_bullet(paragraph: _Paragraph) -> None:
    about = paragraph._p.get_or_add_pPr()
    about.set("marL", "0")
    about.set("indent", "0")
    about.append(about.makeelement(_q("a:buNone"), {}))


def _own_deck(ink: _Ink) -> Presentation:
    """A master with this program's proportions, fonts and colours, and only the layouts that are used."""
    from pptx import Presentation
    from pptx.opc.constants import RELATIONSHIP_TYPE
    from pptx.util import Mm

    deck = Presentation()
    deck.slide_width, deck.slide_height = Mm(WIDTH), Mm(HEIGHT)
    master = deck.slide_master
    used = [deck.slide_layouts[k] for k in (_TITLE, _TEXT, _HEADING, _ONLY_TITLE)]
    for layout in list(deck.slide_layouts):
        if layout not in used:
            deck.slide_layouts.remove(layout)
    theme = master.part.part_related_by(RELATIONSHIP_TYPE.THEME)
    text = theme.blob.decode()
    text = re.sub(r'<a:latin typeface="[^"]*"', f'<a:latin typeface="{_FONT}"', text)
    colours = {"dk1": ink.text, "lt1": ink.ground, "dk2": ink.muted, "lt2": ink.head}
    for name, colour in (colours | {"accent1": ink.accent, "hlink": ink.accent}).items():
        text = re.sub(rf"<a:{name}>.*?</a:{name}>", f'<a:{name}><a:srgbClr val="{colour}"/></a:{name}>', text)
    theme._blob = text.encode()
    styles = master._element.find(_q("p:txStyles"))
    head = styles.find(_q("p:titleStyle")).find(_q("a:lvl1pPr"))
    head.set("algn", "l")
    head.find(_q("a:defRPr")).set("sz", "2600")
    head.find(_q("a:defRPr")).set("b", "1")
    head.find(_q("a:defRPr")).find(_q("a:solidFill")).find(_q("a:schemeClr")).set("val", "accent1")
    for level, size in ((1, 1800), (2, 1600)):
        line = styles.find(_q("p:bodyStyle")).find(_q(f"a:lvl{level}pPr"))
        line.find(_q("a:defRPr")).set("sz", str(size))
    wide = PICTURE[0]
    spots = {
        "title": (_LEFT, 9.0, wide, 26.0),
        "body": (_LEFT, _TOP, wide, _FOOT - _TOP),
        "ftr": (_LEFT, 180.0, wide * 0.7, 7.0),
        "sldNum": (_LEFT + wide * 0.8, 180.0, wide * 0.2, 7.0),
    }
    _arrange(master, spots)
    _arrange(used[0], spots | {"ctrTitle": (_LEFT, 40.0, wide, 36.0), "subTitle": (_LEFT, 82.0, wide, 80.0)})
    _arrange(used[1], spots)
    _arrange(used[2], spots | {"title": (_LEFT, 55.0, wide, 30.0), "body": (_LEFT, 88.0, wide, 60.0)})
    _arrange(used[3], spots)
    return deck


def _arrange(slide: AnySlide, places: dict[str, tuple[float, float, float, float]]) -> None:
    """Place the placeholders of a master or layout; remove the date, which the title slide shows."""
    for shape in list(slide.placeholders):
        kind = shape._element.nvSpPr.nvPr.find(_q("p:ph")).get("type", "body")
        if kind == "dt":
            shape._element.getparent().remove(shape._element)
            continue
        shape.left, shape.top, shape.width, shape.height = _place(*places[kind])
        body = shape._element.txBody
        about = body.find(_q("a:bodyPr"))
        for child in list(about):
            about.remove(child)
        about.set("lIns", "0")
        about.set("rIns", "0")
        about.set("anchor", {"title": "ctr", "ctrTitle": "b", "sldNum": "ctr", "ftr": "ctr"}.get(kind, "t"))
        levels = body.find(_q("a:lstStyle"))
        for level in list(levels) if levels is not None else []:
            level.set("algn", "r" if kind == "sldNum" else "l")
            run = level.find(_q("a:defRPr"))
            if run is not None and kind in ("ctrTitle", "title"):
                run.set("sz", "4000")
                run.attrib.pop("cap", None)
            if run is not None and kind in ("sldNum", "ftr"):
                run.set("sz", "1100")


def _dated(content: bytes, report: Report) -> bytes:
    """The same archive with the report's date on all its members, so that equal reports are equal files."""
    dated = io.BytesIO()
    when = max(report.date.timetuple()[:6], (1980, 1, 1, 0, 0, 0))
    with zipfile.ZipFile(io.BytesIO(content)) as source, zipfile.ZipFile(dated, "w") as target:
        for name in source.namelist():
            member = zipfile.ZipInfo(name, when)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.external_attr = 0o600 << 16
            target.writestr(member, source.read(name))
    return dated.getvalue()
