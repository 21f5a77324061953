"""The window of the handbook: the pages of resources/docs, their contents, links and a search; no network.

`index.md` is the table of contents: every page that it links to is listed, in its order. A new page is a file
and a line there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote

from PySide6.QtCore import Qt, QTimer, QUrl
from PySide6.QtGui import (
    QCloseEvent,
    QDesktopServices,
    QGuiApplication,
    QImage,
    QKeySequence,
    QShowEvent,
    QTextCursor,
    QTextDocument,
)
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QMainWindow,
    QTextBrowser,
    QTextEdit,
    QToolBar,
    QWidget,
)

from desktop import resources
from desktop.ui.guard import guarded
from desktop.ui.mnemonics import settle
from desktop.ui.pages import button, divided, fill_layout, quiet, set_up, stacked
from desktop.ui.sizes import fitting, keep_on_screen

INDEX = "index.md"
_LINK = re.compile(r"\[([^\]]+)\]\(([\w./-]+\.md)(?:#[\w-]*)?\)")
_HEADING = re.compile(r"(#{1,6})\s+(.+)")
_MARKS = re.compile(r"[*_`\\]|\]\([^)]*\)|\[")


@dataclass(frozen=True)
class HandbookSection:
    """What stands under a heading of a page; `heading` is the page's title before the first one."""

    page: str
    title: str
    heading: str
    text: str

    @property
    def place(self) -> str:
        """Its address, `page#heading`."""
        return f"{self.page}#{slug(self.heading)}"


def docs() -> Path:
    """The folder of the handbook's pages."""
    return resources.folder() / "docs"


def slug(heading: str) -> str:
    """The name of a heading in links, as on the web: small letters, blanks become hyphens."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def contents() -> list[tuple[str, str]]:
    """Title and file of every page, the index first."""
    listed = dict.fromkeys(_LINK.findall((docs() / INDEX).read_text(encoding="utf-8")))
    return [("Contents", INDEX), *((title, page) for title, page in listed if (docs() / page).is_file())]


@cache
def sections() -> tuple[HandbookSection, ...]:
    """All pages of the contents, cut at their headings."""
    parts = []
    for title, page in contents():
        heading, lines, fenced = title, [], False
        for line in [*(docs() / page).read_text(encoding="utf-8").splitlines(), "# "]:
            fenced ^= line.startswith("```")
            head = None if fenced else _HEADING.match(line)
            if head is None and line != "# ":
                lines.append(line)
                continue
            text = _MARKS.sub("", " ".join(lines)).strip()
            if text:
                parts.append(HandbookSection(page, title, heading, " ".join(text.split())))
            heading, lines = _MARKS.sub("", head[2]) if head else "", []
    return tuple(parts)


def search(words: str) -> list[tuple[HandbookSection, str]]:
    """Sections with all words, in any order, each with an excerpt; first those with them in the heading."""
    terms = words.lower().split()
    hits = []
    for section in sections():
        heading, text = section.heading.lower(), section.text.lower()
        if terms and all(word in heading or word in text for word in terms):
            hit = min((i for word in terms if (i := text.find(word)) >= 0), default=0)
            begin = max(0, text.rfind(" ", 0, max(0, hit - 40)) + 1)
            piece = section.text[begin : hit + 80]
            excerpt = f"{'… ' if begin else ''}{piece}{' …' if hit + 80 < len(text) else ''}"
            hits.append((sum(word not in heading for word in terms), section, excerpt))
    return [(section, excerpt) for _, section, excerpt in sorted(hits, key=lambda match: match[0])]


class _Page(QTextBrowser):
    """Shows pages of the handbook and their pictures, and nothing from anywhere else."""

    def loadResource(self, kind: int, url: QUrl | str) -> object:
        file = Path(self.source().resolved(QUrl(url)).toLocalFile()).resolve()
        if not file.is_relative_to(docs().resolve()) or not file.is_file():
            return None
        if kind != QTextDocument.ResourceType.ImageResource.value:
            return super().loadResource(kind, url)
        image, room = QImage(str(file)), self.viewport().width() - 4 * self.fontMetrics().height()
        ratio = self.devicePixelRatioF()
        if image.width() > room * ratio > 0:
            image = image.scaledToWidth(int(room * ratio), Qt.TransformationMode.SmoothTransformation)
            image.setDevicePixelRatio(ratio)
        return image


class Handbook(QMainWindow):
    """Contents or search results on the left, a page on the right."""

    last: ClassVar[Handbook | None] = None

    def __init__(self) -> None:
        super().__init__()
        set_up(self, objectName="handbook", windowTitle="Handbook – Phasewright")
        self._address = ""
        self.words = set_up(
            QLineEdit(), placeholderText="Search in all pages", accessibleName="Words to search for",
            clearButtonEnabled=True, textChanged=self._list,
            returnPressed=lambda: self._choose(self.list.currentItem()),
        )  # fmt: skip
        self.list: QListWidget = set_up(
            QListWidget(), accessibleName="Pages", wordWrap=True, spacing=2,
            textElideMode=Qt.TextElideMode.ElideNone, itemClicked=self._choose, itemActivated=self._choose,
        )  # fmt: skip
        self.page = set_up(
            _Page(), accessibleName="Page", openLinks=False, anchorClicked=self._follow,
            sourceChanged=self._arrived,
        )  # fmt: skip
        self.page.document().setDocumentMargin(1.2 * self.fontMetrics().height())
        left = stacked(self.words, self.list, margins=(6, 6, 0, 6))
        self._outside = QWidget()
        self._outside_text = quiet(textFormat=Qt.TextFormat.PlainText)
        row = fill_layout(QHBoxLayout(self._outside), (self._outside_text, 1))
        for text, act in (
            ("&Copy address", lambda: QGuiApplication.clipboard().setText(self._address)),
            ("&Open in the browser", lambda: QDesktopServices.openUrl(QUrl(self._address))),
            ("&Dismiss", self._outside.hide),
        ):
            row.addWidget(button(text, act), 0, Qt.AlignmentFlag.AlignTop)
        self._outside.hide()
        right = stacked(self._outside, (self.page, 1), margins=(0, 6, 6, 6))
        split = divided(Qt.Orientation.Horizontal, (left, 0), (right, 1))
        left.setMinimumWidth(8 * self.fontMetrics().height())
        self.setCentralWidget(split)
        self._make_actions()
        self._list("")
        settle(self)
        self.resize(fitting(self, 62, 46))
        split.setSizes([self.width() * 28 // 100, self.width() * 72 // 100])

    @guarded
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        QTimer.singleShot(0, self, partial(keep_on_screen, self))

    def _make_actions(self) -> None:
        text_only = Qt.ToolButtonStyle.ToolButtonTextOnly
        bar = set_up(QToolBar("Pages"), objectName="pages", movable=False, toolButtonStyle=text_only)
        self.addToolBar(bar)
        page = self.page
        for text, tip, keys, act in (
            ("Back", "The page before", ("Alt+Left", "Backspace"), page.backward),
            ("Forward", "Return to the next page", ("Alt+Right",), page.forward),
            ("Contents", "All pages", ("Alt+Home",), lambda: self.show_place(INDEX)),
            ("Search", "Words in all pages", ("Ctrl+F",), self._search),
            ("Larger text", "This page's text", ("Ctrl++", "Ctrl+="), page.zoomIn),
            ("Smaller text", "This page's text", ("Ctrl+-",), page.zoomOut),
            ("Close", "Close the handbook", ("Ctrl+W", "Esc"), self.close),
        ):
            action = set_up(
                bar.addAction(text), shortcuts=[QKeySequence(key) for key in keys], statusTip=tip,
                toolTip=f"{tip} ({', '.join(keys)})", triggered=lambda _=False, act=act: act(),
            )  # fmt: skip
            if available := {"Back": page.backwardAvailable, "Forward": page.forwardAvailable}.get(text):
                action.setEnabled(False)
                available.connect(action.setEnabled)

    def show_place(self, place: str) -> None:
        """Show ``"page.md#heading"`` in front of the other windows."""
        page, _, anchor = place.partition("#")
        if not (docs() / page).is_file():
            page, anchor = INDEX, ""
        url = QUrl.fromLocalFile(str(docs() / page))
        if anchor:
            url.setFragment(anchor)
        self.show()
        self.activateWindow()
        self._go(url)

    def _go(self, url: QUrl) -> None:
        self._outside.hide()
        self.page.setExtraSelections([])
        self.page.setSource(url, QTextDocument.ResourceType.MarkdownResource)
        self.page.setFocus()

    def _follow(self, url: QUrl) -> None:
        """Open a link to another page; for one out of the handbook, offer its address."""
        target = self.page.source().resolved(url)
        file = Path(target.toLocalFile()).resolve() if target.isLocalFile() else None
        if file is not None and file.is_file() and file.is_relative_to(docs().resolve()):
            self._go(target)
            return
        self._address = url.toString()
        self._outside_text.setText(f"This is outside of the handbook: {self._address}")
        self._outside.show()

    def _arrived(self, url: QUrl) -> None:
        page = Path(url.toLocalFile()).name
        if url.fragment():
            self._scroll_to(unquote(url.fragment()))
        if not self.words.text():
            for i in range(self.list.count()):
                if self.list.item(i).data(Qt.ItemDataRole.UserRole) == page:
                    self.list.setCurrentRow(i)

    def _scroll_to(self, anchor: str) -> None:
        block = self.page.document().begin()
        while block.isValid():
            if block.blockFormat().headingLevel() and slug(block.text()) == anchor:
                # To the end and back, so that the heading stands at the top.
                self.page.moveCursor(QTextCursor.MoveOperation.End)
                self.page.setTextCursor(QTextCursor(block))
                self.page.ensureCursorVisible()
                return
            block = block.next()

    # ---- contents and search

    def _search(self) -> None:
        self.words.setFocus()
        self.words.selectAll()

    def _list(self, words: str) -> None:
        self.list.clear()
        rows = [] if words.strip() else contents()
        for s, excerpt in search(words):
            heading = s.title if s.heading == s.title else f"{s.title} – {s.heading}"
            rows.append((f"{heading}\n{excerpt}", s.place))
        for text, place in rows:
            self.list.addItem(set_up(QListWidgetItem(text), data=(Qt.ItemDataRole.UserRole, place)))
        if not rows:
            item = set_up(QListWidgetItem("No page holds all these words."), flags=Qt.ItemFlag.NoItemFlags)
            self.list.addItem(item)
        elif words.strip():
            self.list.setCurrentRow(0)

    def _choose(self, item: QListWidgetItem | None) -> None:
        place = None if item is None else item.data(Qt.ItemDataRole.UserRole)
        if place:
            self.show_place(place)
            self._mark(self.words.text().split())

    def _mark(self, words: list[str]) -> None:
        """Tint all occurrences of the words searched for."""
        marks: list[QTextEdit.ExtraSelection] = []
        for word in words:
            hit = self.page.document().find(word)
            while not hit.isNull() and len(marks) < 1000:
                mark = QTextEdit.ExtraSelection()
                mark.cursor = hit
                mark.format.setBackground(self.palette().highlight())
                mark.format.setForeground(self.palette().highlightedText())
                marks.append(mark)
                hit = self.page.document().find(word, hit)
        self.page.setExtraSelections(marks)

    @guarded
    def closeEvent(self, event: QCloseEvent) -> None:
        Handbook.last = None
        super().closeEvent(event)
        self.deleteLater()


def handbook() -> Handbook:
    """The one window of the handbook."""
    if Handbook.last is None:
        Handbook.last = Handbook()
    return Handbook.last
