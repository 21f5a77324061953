"""A report with its figures as a file: HTML with SVG inside, a PDF document, slides.

Everything here may run in a thread of its own, beside the window, once there is a QGuiApplication.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import cast

from PySide6.QtCore import QBuffer, QEventLoop, QMarginsF, QRect, QRectF, QSizeF
from PySide6.QtGui import (
    QAbstractTextDocumentLayout,
    QFont,
    QImage,
    QPageLayout,
    QPageSize,
    QPaintDevice,
    QPainter,
    QPyTextObject,
    QTextBlock,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
    QTextTable,
)

from desktop.data import slides
from desktop.data.atomic import write_bytes
from desktop.data.material import Material, Subject
from desktop.data.report import Looks, Picture, Report, to_html, today
from desktop.data.slide_template import read_template
from desktop.data.style_sheet import read_style_sheet
from desktop.errors import DesktopError
from desktop.printing import printable
from desktop.progress import Progress
from desktop.ui import figures
from desktop.ui.drawing import FAMILY, QtSheet
from desktop.ui.figures import Look, Style
from desktop.ui.guard import saved
from desktop.ui.pages import set_up
from desktop.ui.theme import DARK, LIGHT, coloured

#: Suffixes of the files that a report can be.
KINDS = ("html", "pdf", "pptx")
#: Files of the user for a report, by its kind: the command's option (and the setting), and their suffixes.
USER_FILES = {"pptx": ("template", "Templates (*.potx *.pptx)"), "html": ("css", "Style sheets (*.css)")}
# A page of A4 with these margins, mm; what a line of text measures; the foot with the page's number.
_MARGIN, _TEXT, _FOOT = 18.0, 174.0, 9.0
_FIGURE_HEIGHT = {"epsilon": 70.0, "timeline": 95.0, "comparison": 110.0}
_HOLE = "￼"


def kind_of(path: Path) -> str:
    """The kind of report that a file's suffix means.

    Raises
    ------
    DesktopError : the suffix is none of `KINDS`.
    """
    kind = path.suffix.lower().lstrip(".")
    if kind not in KINDS:
        raise DesktopError(
            f"a report cannot end in {path.suffix or 'nothing'}", file=path, hint="use .html, .pdf or .pptx"
        )
    return kind


def write(report: Report, path: Path, looks: Looks, progress: Progress) -> None:
    """Write `report` to `path`, whose suffix tells its kind; whole or not at all. Paper stays white.

    Raises
    ------
    DesktopError : the ending is none of `KINDS`, the user's file cannot be used.
    OSError : it cannot be written.
    """
    style, kind = cast("Style", looks.style), kind_of(path)
    look = Look(style=style, colours=looks.colours, dark=looks.theme == "dark")
    if kind == "pdf":
        content = pdf(report, look, progress)
    else:
        content = {"html": html, "pptx": pptx}[kind](report, look, progress, looks.user_file)
    progress.step(1, 1, "writing")
    write_bytes(path, content)


def write_live(subject: Subject, path: Path, looks: Looks, command: str, progress: Progress) -> Material:
    """Write the page in which its reader chooses n (`desktop.data.live`); returns what it was drawn from.

    Raises
    ------
    ValueError, StoreError, Cancelled : as `desktop.data.live.live_page`.
    OSError : it cannot be written.
    """
    from desktop.data.live import live_page

    palettes = {look.name: asdict(coloured(look, looks.colours)) for look in (LIGHT, DARK)}
    style = "" if looks.user_file is None else read_style_sheet(looks.user_file)
    content, material = live_page(subject, palettes, command, today(), progress, style)
    write_bytes(path, content)
    return material


def look_of(picture: Picture, looks: Look, width: float = 170.0) -> Look:
    """The look of a figure in a report: as wide as the text; the phase table as high as its rows."""
    height = _FIGURE_HEIGHT.get(picture.figure, 80.0)
    if picture.figure == "phases" and isinstance(picture.material, Material):
        height = min(18.0 + 5.7 * len(picture.material.rows), 200.0)
    height = max(height, figures.SMALLEST[1])
    return replace(looks, width=width, height=height, points=8.5, dark=False)


def html(report: Report, looks: Look, progress: Progress, user_file: Path | None = None) -> bytes:
    """One HTML file."""
    style = "" if user_file is None else read_style_sheet(user_file)
    advance = _counting(report, progress)

    def draw(picture: Picture) -> str:
        advance()
        prefix = f"f{picture.number}-"
        look = look_of(picture, looks)
        return figures.svg(picture.figure, picture.material, look, inline=True, prefix=prefix)

    return to_html(report, draw, own_style=style).encode()


def pptx(report: Report, looks: Look, progress: Progress, user_file: Path | None = None) -> bytes:
    """Slides, whose text can be read from the last row."""
    template = None if user_file is None else read_template(user_file)
    looks = looks if template is None else replace(looks, dark=template.dark)
    size = slides.picture_size(slides.OWN if template is None else template.room)
    advance = _counting(report, progress)

    def draw(picture: Picture) -> bytes:
        advance()
        # Drawn at half the slide's size, so that 8 points become 16.
        width, height = (v / 2 for v in size)
        look = replace(
            looks, width=width, height=height, points=8.0, lines=1.2, words={"title": ""}
        )  # the slide has a title
        return figures.file(picture.figure, picture.material, look, "png", 360)

    return slides.to_pptx(report, draw, theme="dark" if looks.dark else "light", template=template)


def _counting(report: Report, progress: Progress) -> Callable[[], None]:
    done, total = 0, len(report.pictures)

    def advance() -> None:
        nonlocal done
        progress.step(done, total, f"figure {done + 1} of {total}")
        done += 1

    return advance


# ------------------------------------------------------------------ PDF


class _Figure(QPyTextObject):
    """Figures that flow with the text of a document; drawn as lines and text, not as pixels."""

    KIND = QTextFormat.ObjectTypes.UserObject + 1
    NUMBER = QTextFormat.Property.UserProperty + 1

    def __init__(
        self, pictures: dict[int, Picture], looks: Look, unit: float, advance: Callable[[], None]
    ) -> None:
        super().__init__()
        self._pictures, self._looks, self._unit, self._advance = pictures, looks, unit, advance

    def intrinsicSize(self, _document: QTextDocument, _at: int, form: QTextFormat) -> QSizeF:
        look = self._look(form)
        return QSizeF(look.width, look.height) * self._unit

    def drawObject(
        self, painter: QPainter, rect: QRectF | QRect, _document: QTextDocument, _at: int, form: QTextFormat
    ) -> None:
        picture, look = self._pictures[form.property(self.NUMBER)], self._look(form)
        self._advance()
        with saved(painter):
            painter.translate(QRectF(rect).topLeft())
            sheet = QtSheet(painter, look.width, look.height, self._unit)
            figures.draw(sheet, picture.figure, picture.material, look)

    def _look(self, form: QTextFormat) -> Look:
        return look_of(self._pictures[form.property(self.NUMBER)], self._looks, _TEXT - 1)


def pdf(report: Report, looks: Look, progress: Progress) -> bytes:
    """An A4 document with numbered pages; headings of tables are repeated on every page of them."""
    QEventLoop()  # gives a thread of Python's what the document's timers ask for
    buffer = QBuffer()
    writer = figures.pdf_writer(buffer, printable(report.title), 600)
    page = QPageLayout(QPageSize(QPageSize.PageSizeId.A4), QPageLayout.Orientation.Portrait, QMarginsF())
    writer.setPageLayout(page)
    pages = _laid_out_pages(report, looks, writer, progress)
    with QPainter(writer) as painter:
        for number in range(len(pages.slices)):
            if number:
                writer.newPage()
            _paint_page(painter, pages, number, report)
            progress.step(number, len(pages.slices), "pages")
    return figures.dated_pdf(bytes(buffer.data().data()), report.date)


def first_page(report: Report) -> QImage:
    """The first page of the PDF document as a picture."""
    dpi = 110
    width, height = (round(side * dpi / 25.4) for side in (210, 297))
    image = QImage(width, height, QImage.Format.Format_RGB32)
    for set_dots in (image.setDotsPerMeterX, image.setDotsPerMeterY):
        set_dots(round(dpi * 1000 / 25.4))
    image.fill("white")
    pages = _laid_out_pages(report, Look(), image, Progress())
    with QPainter(image) as painter:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        _paint_page(painter, pages, 0, report)
    return image


@dataclass(frozen=True)
class _Pages:
    """A document in one piece, and which slices of it (top and bottom, in its dots) stand below each other on
    each page; `unit`: dots to a millimetre."""

    document: QTextDocument
    unit: float
    slices: list[list[tuple[float, float]]]


def _laid_out_pages(report: Report, looks: Look, device: QPaintDevice, progress: Progress) -> _Pages:
    """The report as pages of A4 for `device`."""
    unit = device.logicalDpiX() / 25.4
    document = set_up(QTextDocument(), undoRedoEnabled=False)
    font = QFont(FAMILY)
    font.setPointSizeF(9)
    document.setDefaultFont(font)
    document.documentLayout().setPaintDevice(device)
    document.setDocumentMargin(0)
    pictures = {picture.number: picture for picture in report.pictures}
    holes = _Figure(pictures, looks, unit, _counting(report, progress))
    holes.setParent(document)
    document.documentLayout().registerHandler(_Figure.KIND, holes)
    document.setHtml(to_html(report, lambda picture: f"<p>{_HOLE}{picture.number}{_HOLE}</p>", "print.css"))
    _fill(document)
    document.setTextWidth(_TEXT * unit)  # without pages: where they end is said here
    height = (device.height() / unit - 2 * _MARGIN - _FOOT) * unit
    return _Pages(document, unit, _page_slices(_cuts(document), document.size().height(), height))


@dataclass(frozen=True)
class _Cut:
    """A height at which a page may end; `head`: top and bottom of the headings of the table it divides."""

    at: float
    head: tuple[float, float] | None = None


def _cuts(document: QTextDocument) -> list[_Cut]:
    """Where pages may end: not behind a heading, nor between a figure and its caption or a table and its
    note, nor so that a single row of a table is left on a page."""
    parts = _parts(document)
    cuts: list[_Cut] = []
    for (part, _, bottom), (behind, top, _) in pairwise(parts):
        if isinstance(part, QTextTable):
            cuts += _cuts_within(document, part)
            if isinstance(behind, QTextBlock) and not behind.blockFormat().headingLevel():
                continue
        elif part.blockFormat().headingLevel() or part.text() == _HOLE or part.text().endswith(":"):
            continue
        cuts.append(_Cut((bottom + top) / 2))
    if parts and isinstance(parts[-1][0], QTextTable):
        cuts += _cuts_within(document, parts[-1][0])
    return cuts


def _parts(document: QTextDocument) -> list[tuple[QTextBlock | QTextTable, float, float]]:
    """Paragraphs and tables with their tops and bottoms."""
    layout = document.documentLayout()
    placed: list[tuple[QTextBlock | QTextTable, QRectF]] = []
    iterator = document.rootFrame().begin()
    while not iterator.atEnd():
        frame, block = iterator.currentFrame(), iterator.currentBlock()
        if isinstance(frame, QTextTable):
            placed.append((frame, layout.frameBoundingRect(frame)))
        elif block.isValid() and block.text():
            placed.append((block, layout.blockBoundingRect(block)))
        iterator += 1
    return [(part, place.top(), place.bottom()) for part, place in placed]


def _cuts_within(document: QTextDocument, table: QTextTable) -> list[_Cut]:
    """Cuts behind rows of a table, which leave two rows or more on either side."""
    layout, heads = document.documentLayout(), table.format().headerRowCount()
    if table.rows() - heads < 4:
        return []
    tops, bottoms = [], []
    for row in range(table.rows()):
        places = []
        for column in range(table.columns()):
            at = table.cellAt(row, column).begin()
            while not at.atEnd():
                places.append(layout.blockBoundingRect(at.currentBlock()))
                at += 1
        tops.append(min(place.top() for place in places))
        bottoms.append(max(place.bottom() for place in places))
    between = [(bottoms[k - 1] + tops[k]) / 2 for k in range(1, table.rows())]
    head = (layout.frameBoundingRect(table).top(), between[heads - 1]) if heads else None
    return [_Cut(between[row - 1], head) for row in range(heads + 2, table.rows() - 1)]


def _page_slices(cuts: list[_Cut], end: float, height: float) -> list[list[tuple[float, float]]]:
    """Pages as full as the cuts allow; a part that is longer than a page is cut at the page's end."""
    pages: list[list[tuple[float, float]]] = []
    last_cut = _Cut(0.0)
    while last_cut.at < end:
        top, head = last_cut.at, [] if last_cut.head is None else [last_cut.head]
        room = height - sum(b - a for a, b in head)
        if end - top <= room:
            last_cut = _Cut(end)
        else:
            reached = (cut for cut in cuts if top < cut.at <= top + room)
            last_cut = max(reached, key=lambda cut: cut.at, default=_Cut(top + room))
        pages.append([*head, (top, last_cut.at)])
    return pages


def _fill(document: QTextDocument) -> None:
    """Put figures in place of their numbers between two marks, which no text of a report can hold."""
    hole = document.find(_HOLE)
    while not hole.isNull():
        end = document.find(_HOLE, hole)
        mark = set_up(QTextCursor(document), position=hole.selectionStart())
        mark.setPosition(end.selectionEnd(), QTextCursor.MoveMode.KeepAnchor)
        number = int(mark.selectedText().strip(_HOLE))
        form = set_up(QTextCharFormat(), objectType=_Figure.KIND, property=(_Figure.NUMBER, number))
        mark.insertText(_HOLE, form)
        hole = document.find(_HOLE, mark)


def _paint_page(painter: QPainter, pages: _Pages, number: int, report: Report) -> None:
    unit, document = pages.unit, pages.document
    down = _MARGIN * unit
    for top, bottom in pages.slices[number]:
        painter.save()
        painter.translate(_MARGIN * unit, down - top)
        context = QAbstractTextDocumentLayout.PaintContext()
        context.clip = QRectF(0, top, document.textWidth(), bottom - top)
        painter.setClipRect(context.clip)
        document.documentLayout().draw(painter, context)
        painter.restore()
        down += bottom - top
    sheet = QtSheet(painter, 210, 297, unit)
    foot = 297 - _MARGIN + 1
    sheet.text(_MARGIN, foot, f"{printable(report.title, 80)}", 2.6, "#55606d")
    sheet.text(_MARGIN + _TEXT, foot, f"{number + 1} / {len(pages.slices)}", 2.6, "#55606d", "end")
