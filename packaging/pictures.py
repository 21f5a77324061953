"""The pictures of the documentation, made from the program itself.

    python3 dev.py pictures              draw all pictures into resources/docs/pictures
    python3 dev.py pictures NAME...      only these
    python3 dev.py pictures --check      draw nothing; exit code 1 if a picture is not what the program shows

The real windows are driven without a display, on the bundled samples, with settings and a cache of their own.
What is drawn depends on the sources, the bundled font and Qt's version only, but for the length of a delay,
which is measured where the program runs. As another version of Qt may also put a line of text a pixel lower,
`--check` compares what an eye sees and not bytes.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "resources" / "docs" / "pictures"
#: Responses that were measured: pictures of an experiment need no compiler and are always the same.
TRIALS = ROOT / "tests" / "data" / "spt" / "measured_2026-11-21_screen_2p6m2.csv"
#: The bundled Cholesky factorization with its columns broadcast, on 8 ranks.
OTHER_RUN = ROOT / "tests" / "data" / "otf2" / "ezt_cholesky_bcast_8_dilated.tar.gz"
SIZE = (1200, 750)
#: Part of a picture's blocks that may look otherwise before the picture counts as stale.
TOLERANCE = 0.02
_BLOCK, _SEEN, _COLOURS = 8, 24, 256

if TYPE_CHECKING:
    from PySide6.QtGui import QImage
    from PySide6.QtWidgets import QDialog, QDockWidget, QWidget

    from desktop.ui.settings import Settings
    from desktop.ui.trace_page import TracePage


class Stage:
    """Opens windows, waits for them, and closes what it opened."""

    def __init__(self, folder: Path) -> None:
        from PySide6.QtWidgets import QApplication

        from desktop.ui.app import application, load_font

        self.folder = folder
        self._app = application()
        load_font(self._app)  # where somebody else has made the application
        QApplication.setCursorFlashTime(0)
        QApplication.setEffectEnabled(_animations(), False)
        self._windows: dict[str, Any] = {}

    def settings(self) -> Settings:
        """Of a window of its own: no layout, no recent files."""
        from PySide6.QtCore import QSettings

        from desktop.ui.settings import Settings

        file = self.folder / f"settings-{len(self._windows)}.ini"
        settings = Settings(QSettings(str(file), QSettings.Format.IniFormat))
        settings.theme = "light"
        return settings

    def page(self, name: str, kind: str) -> Any:
        """The page of a kind in front of the window `name`, made where it is not yet there, of the same size
        every time; all others hide."""
        from desktop.ui.frame import Frame

        if name not in self._windows:
            self._windows[name] = Frame(self.settings())
        shown = self._windows[name]
        for other in self._windows.values():
            if other is not shown:
                other.hide()
        page = shown.show_kind(kind)
        shown.resize(*SIZE)
        shown.show()
        return page

    def main(
        self, sample: int = 0, panel: str = "phases", use: str = "main", path: Path | None = None
    ) -> TracePage:
        """The page of traces on a bundled trace: four phases, nothing selected, the whole run in view. `use`
        names another window; `path` is a copy of the trace."""
        from desktop import resources
        from desktop.ui.theme import LIGHT

        window: TracePage = self.page(f"{use}-{sample}", "trace")
        bench = window.workbench
        if bench.snapshot.document is None:
            window.open_path(path or resources.samples()[sample].path)
            self.settle(window)
        size_docks(window, wide=300, high=165)
        window.frame.statusBar().clearMessage()
        window.frame.use_theme(LIGHT)
        bench.select(None)
        bench.set_model("mixed")
        bench.set_n(4)
        bench.select_phase(None)
        window.curve_view.show_all()
        for name in ("phases", "table", panel):
            window.show_panel(name)
        self.settle(window)
        return window

    def settle(self, window: Any) -> None:
        """Let all work end and all that it changed be painted.

        Raises
        ------
        TimeoutError : it does not end.
        """
        end, quiet = time.monotonic() + 120, 0
        while quiet < 12:
            self._app.processEvents()
            time.sleep(0.02)
            busy = window.busy if hasattr(window, "busy") else window.bench.busy
            quiet = 0 if busy else quiet + 1
            if time.monotonic() > end:
                raise TimeoutError(f"the window is still busy: {window.windowTitle()}")

    def paint(self, widget: QWidget) -> QImage:
        """What `widget` shows."""
        self._app.processEvents()
        return widget.grab().toImage()

    def close(self) -> None:
        for window in self._windows.values():
            window.close_unasked()
            window.deleteLater()
        self._windows.clear()
        self._app.processEvents()


def docks(window: TracePage) -> dict[str, QDockWidget]:
    from PySide6.QtWidgets import QDockWidget

    return {dock.objectName().removeprefix("dock_"): dock for dock in window.findChildren(QDockWidget)}


def size_docks(window: TracePage, wide: int, high: int) -> None:
    """The panels on the right so wide, those below so high, pixels."""
    from PySide6.QtCore import Qt

    there = docks(window)
    window.resizeDocks([there["phases"]], [wide], Qt.Orientation.Horizontal)
    window.resizeDocks([there["table"]], [high], Qt.Orientation.Vertical)


def _animations() -> Any:
    from PySide6.QtCore import Qt

    return Qt.UIEffect.UI_General


# ------------------------------------------------------------------ what there is to see


def _start(stage: Stage) -> QImage:
    window = stage.page("empty", "trace")
    stage.settle(window)
    return stage.paint(window.frame)


def _window(stage: Stage) -> QImage:
    window = stage.main()
    window.workbench.select_phase(1)
    stage.settle(window)
    return stage.paint(window.frame)


def _dark(stage: Stage) -> QImage:
    from desktop.ui.theme import DARK, LIGHT

    window = stage.main()
    window.frame.use_theme(DARK)
    stage.settle(window)
    image = stage.paint(window.frame)
    window.frame.use_theme(LIGHT)
    return image


def _suggested(stage: Stage) -> QImage:
    window = stage.main()
    window.workbench.use_suggestion()
    stage.settle(window)
    return stage.paint(window.frame)


def _panel(name: str, *, phase: int | None = None, sample: int = 0) -> Callable[[Stage], QImage]:
    def draw(stage: Stage) -> QImage:
        window = stage.main(sample, name)
        window.workbench.select_phase(phase)
        return _dock(stage, window, name)

    return draw


def _dock(stage: Stage, window: TracePage, panel: str) -> QImage:
    """A panel by itself, at the size that it has in a large window."""
    window.frame.resize(1600, 1000)
    size_docks(window, wide=560, high=340)
    stage.settle(window)
    return stage.paint(docks(window)[panel])


def _kept(stage: Stage) -> TracePage:
    """A window of its own with two views and three annotations."""
    window = stage.main(panel="views", use="kept")
    bench = window.workbench
    if not bench.snapshot.project.views:
        window.desk.keep_view(1)
        bench.rename_view(1, "Whole run")
        window.curve_view.zoom_to(0.4, 0.6)
        stage.settle(window)
        window.desk.keep_view(2)
        bench.rename_view(2, "End of the factorization")
        bench.annotate("Columns get short", 0.32, 0.43)
        bench.annotate("Forward solve", 0.46, 0.87)
        bench.annotate("The last rank waits", 0.875)
        window.curve_view.show_all()
        stage.settle(window)
    return window


def _views(stage: Stage) -> QImage:
    return _dock(stage, _kept(stage), "views")


def _annotated(stage: Stage) -> QImage:
    return stage.paint(_kept(stage))


def _messages_drawn(stage: Stage) -> QImage:
    """Curve and timeline, near enough to see single messages."""
    window = stage.main()
    window.curve_view.zoom_to(0.870, 0.885)
    stage.settle(window)
    return stage.paint(window.frame)


def _timeline(stage: Stage) -> QImage:
    window = stage.main()
    window.frame.resize(1600, 1000)
    window.workbench.select_phase(2)
    stage.settle(window)
    return stage.paint(window.timeline)


def _presentation(stage: Stage) -> QImage:
    window = stage.main()
    window.workbench.select_phase(1)
    window.present()
    shown = window.presentation
    assert shown is not None
    shown.showNormal()
    shown.resize(1200, 675)
    stage.settle(window)
    image = stage.paint(shown)
    shown.close()
    stage.settle(window)
    return image


def _figure(stage: Stage) -> QImage:
    """The dialog that exports a figure."""
    from desktop.ui.exporting import FigureDialog

    window = stage.main()
    window.export_figure()
    dialog = window.findChild(FigureDialog)
    assert dialog is not None
    while dialog.lane.busy:
        stage.settle(window)
    return _closed(stage, window, dialog)


def _closed(stage: Stage, window: TracePage, dialog: QDialog) -> QImage:
    """What a dialog shows; then it is closed."""
    stage.settle(window)
    image = stage.paint(dialog)
    dialog.close()
    stage.settle(window)
    return image


def _palette(stage: Stage) -> QImage:
    from PySide6.QtWidgets import QLineEdit

    from desktop.ui.palette import Palette

    window = stage.main()
    window.frame.show_palette()
    palette = window.frame.findChild(Palette)
    assert palette is not None
    words = palette.findChild(QLineEdit)
    assert words is not None
    words.setText("phase")
    return _closed(stage, window, palette)


def _preferences(stage: Stage) -> QImage:
    from desktop.ui.preferences import Preferences

    window = stage.main()
    window.frame.show_preferences()
    preferences = window.frame.findChild(Preferences)
    assert preferences is not None
    preferences.pages.setCurrentWidget(preferences.appearance)
    return _closed(stage, window, preferences)


def _project(stage: Stage) -> TracePage:
    """A window of its own on two runs of one program, of different size and with other communication."""
    from desktop import resources

    # The panel says where files are; where this clone is, is nobody's business.
    place = stage.folder / "runs"
    if not place.exists():
        shutil.copytree(resources.samples()[0].path.parent, place / "cholesky_16")
        for file in (OTHER_RUN, resources.example_table()):
            shutil.copy(file, place)
    window = stage.main(panel="project", use="compared", path=place / "cholesky_16" / "traces.otf2")
    projects = window.desk.projects
    if len(projects.workspace.runs) < 2:
        projects.add_run(place / OTHER_RUN.name)
        stage.settle(window)
        window.workbench.set_n(4)
        stage.settle(window)
        projects.add_files(tables=(place / resources.example_table().name,))
        stage.settle(window)
    return window


def _effects(stage: Stage) -> QImage:
    """The measured quicksort beside a trace of another program, whose factorization stands for a place."""
    window = stage.main(panel="effects", use="effects")
    window.desk.projects.add_files(experiments=(TRIALS,))
    stage.settle(window)
    side = window.desk.sides["effects"]
    side.select("F4")
    side.pin_to("F4", "factor")
    stage.settle(window)
    return _dock(stage, window, "effects")


def _beside(stage: Stage) -> QImage:
    """The factor model in its panel."""
    window = _project(stage)
    window.show_panel("model")
    return _dock(stage, window, "model")


def _held(stage: Stage) -> QImage:
    window = _project(stage)
    window.show_panel("project")
    return _dock(stage, window, "project")


def _compare(stage: Stage) -> QImage:
    window = _project(stage).frame.show_kind("compare")
    stage.settle(window)
    return stage.paint(window.frame)


def _report(stage: Stage) -> QImage:
    """The first page of a report as PDF."""
    from datetime import UTC, datetime

    from desktop import resources
    from desktop.data.material import Subject
    from desktop.data.opening import open_trace
    from desktop.data.report import Contents, compose
    from desktop.ui.reporting import first_page

    path = resources.samples()[0].path
    with open_trace(path) as store:
        subject = Subject(store=store, title="Cholesky, 16 ranks")
        words = "phasewright report traces.otf2 -o report.pdf"
        date = datetime(2026, 1, 1, tzinfo=UTC)
        report = compose([subject], Contents(("curve",), tables=("why",)), command=words, date=date)
    return first_page(report)


def _experiment(step: int, *, measured: bool = False) -> Callable[[Stage], QImage]:
    """A step of the window of experiments: on the bundled quicksort, or on its measured runs."""

    def draw(stage: Stage) -> QImage:
        window = stage.page(f"experiment-{measured}", "experiment")
        if not window.name:
            if measured:
                window.open_path(TRIALS)
            else:
                window.bench.open_example(stage.folder / "quicksort")
            stage.settle(window)
        window.show_step(step)
        stage.settle(window)
        return stage.paint(window.frame)

    return draw


def _model(stage: Stage) -> QImage:
    from desktop import resources

    window = stage.page("model", "model")
    window.open_path(resources.example_table())
    stage.settle(window)
    return stage.paint(window.frame)


#: Floors of the house from above: name, what is on it, and the colour of its edge.
FLOORS = (
    ("ui/   commands/   notebook.py", "draw and print; gestures and words become edits", "#0072b2"),
    (
        "workbench/",
        "what the user asked for: one frozen tree, one history; work beside the window",
        "#009e73",
    ),
    ("data/", "files: formats, store, projects, experiments, reports as data", "#d55e00"),
    ("core/", "numbers: curve, phases, causes, effects, factor model; compiled kernels", "#cc79a7"),
)


def _architecture(stage: Stage) -> QImage:
    """The floors of the house, what goes between them, and the way of a trace through the data."""
    from PySide6.QtCore import QPointF, QRectF, Qt
    from PySide6.QtGui import QColor, QFont, QImage, QPainter, QPen

    image = QImage(1100, 560, QImage.Format.Format_RGB32)
    image.fill(QColor("white"))
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    dark, bold = QColor("#222222"), QFont("DejaVu Sans", 15, QFont.Weight.Bold)
    plain, small = QFont("DejaVu Sans", 12), QFont("DejaVu Sans", 11)

    def words(
        box: QRectF, text: str, font: QFont, flags: Qt.AlignmentFlag = Qt.AlignmentFlag.AlignCenter
    ) -> None:
        painter.setPen(dark)
        painter.setFont(font)
        painter.drawText(box, flags | Qt.TextFlag.TextWordWrap, text)

    def arrow(x1: float, y1: float, x2: float, y2: float, *, dashed: bool = False) -> None:
        pen = QPen(dark, 2, Qt.PenStyle.DashLine if dashed else Qt.PenStyle.SolidLine)
        painter.setPen(pen)
        painter.drawLine(QPointF(x1, y1), QPointF(x2, y2))
        painter.setPen(QPen(dark, 2))
        along = np.array([x2 - x1, y2 - y1]) / np.hypot(x2 - x1, y2 - y1)
        for across in (np.array([-along[1], along[0]]), np.array([along[1], -along[0]])):
            tip = np.array([x2, y2]) - 9 * along + 5 * across
            painter.drawLine(QPointF(x2, y2), QPointF(*tip))

    tops = (15, 135, 255, 460)
    highs = (75, 75, 160, 85)
    left = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop
    for (name, text, edge), top, high in zip(FLOORS, tops, highs, strict=True):
        painter.setPen(QPen(QColor(edge), 3))
        painter.setBrush(QColor("#f7f7f7"))
        painter.drawRoundedRect(QRectF(20, top, 1060, high), 8, 8)
        words(QRectF(40, top + 9, 1020, 30), name, bold, left)
        words(QRectF(40, top + 39, 1020, 30), text, plain, left)
    steps = (
        "OTF2, OTF, Paraver, PICL, recordings",
        "importers",
        "store (HDF5)",
        "curve, timeline, profile",
        "statistics, causes",
    )
    for k, step in enumerate(steps):
        box = QRectF(40 + 208 * k, 332, 178, 66)
        painter.setPen(QPen(QColor(FLOORS[2][2]), 1.5))
        painter.setBrush(QColor("white"))
        painter.drawRoundedRect(box, 6, 6)
        words(box.adjusted(6, 2, -6, -2), step, small)
        if k:
            arrow(box.left() - 28, 365, box.left() - 3, 365)
    down = ("edits", "requests", "arrays")
    up = ("snapshots", "answers; the last request wins", "fits, sums, words")
    for k, (asked, answer) in enumerate(zip(down, up, strict=True)):
        above, below = tops[k] + highs[k] + 2, tops[k + 1] - 3
        arrow(330, above, 330, below)
        arrow(720, below, 720, above, dashed=True)
        words(
            QRectF(345, above, 330, below - above),
            f"{asked} (may import)",
            small,
            Qt.AlignmentFlag.AlignVCenter,
        )
        words(QRectF(735, above, 330, below - above), answer, small, Qt.AlignmentFlag.AlignVCenter)
    painter.end()
    return image


#: Of a real run of an MPI program, as getting-traces.md says, or of an older commit: not made here.
OF_RUNS = ("watch-begins", "watch-goes-on", "watch-ended", "before-and-now")
#: Every picture by the name of its file.
PICTURES: dict[str, Callable[[Stage], QImage]] = {
    "start": _start,
    "window": _window,
    "window-dark": _dark,
    "suggested": _suggested,
    "phases": _panel("phases"),
    "table": _panel("table", phase=1),
    "trace": _panel("trace", sample=1),
    "computing": _panel("classes"),
    "views": _views,
    "annotated": _annotated,
    "zoomed": _messages_drawn,
    "statistics": _panel("statistics", phase=1),
    "profile": _panel("profile", phase=1),
    "messages": _panel("messages", phase=1),
    "changes": _panel("changes"),
    "effects": _effects,
    "factor-model": _beside,
    "project": _held,
    "timeline": _timeline,
    "presentation": _presentation,
    "figure": _figure,
    "report": _report,
    "compare": _compare,
    "palette": _palette,
    "preferences": _preferences,
    "experiment-program": _experiment(0),
    "experiment-design": _experiment(1),
    "experiment-read": _experiment(3, measured=True),
    "model": _model,
    "architecture": _architecture,
}


# ------------------------------------------------------------------ files


def draw(names: Sequence[str]) -> Iterator[tuple[str, QImage]]:
    """The pictures called `names`, one after the other, as the program shows them now.

    Raises
    ------
    KeyError : there is no picture of that name.
    """
    scenes = [(name, PICTURES[name]) for name in names]
    with _own_places() as folder:
        stage = Stage(folder)
        try:
            for name, scene in scenes:
                yield name, few_colours(scene(stage))
        finally:
            stage.close()


@contextmanager
def _own_places() -> Iterator[Path]:
    """A folder for settings, cache and state, so that neither what the user has nor what he did shows."""
    kept = {name: os.environ.get(name) for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME")}
    # One window shows where its experiment is, so this has the same name every time, if it is free.
    folder = Path(tempfile.gettempdir()) / "phasewright-pictures"
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        folder = Path(tempfile.mkdtemp(prefix="phasewright-pictures-"))
    try:
        for name in kept:
            os.environ[name] = str(folder / name.lower())
        yield folder
    finally:
        for name, value in kept.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value
        shutil.rmtree(folder, ignore_errors=True)


def few_colours(image: QImage) -> QImage:
    """`image` with 256 colours, a fifth of the size as PNG. Colours of large areas stay exact."""
    from PySide6.QtGui import QImage

    seen, where, count = np.unique(
        _pixels(image).reshape(-1, 3), axis=0, return_inverse=True, return_counts=True
    )
    # Of each cell of the colour cube its most frequent colour; of these the one that is worst represented so
    # far, by its distance and the number of its pixels, until the palette is full.
    order = np.argsort(-count, kind="stable")
    _, first = np.unique(seen[order] >> 3, axis=0, return_index=True)
    cells = order[np.sort(first)]
    colour, weight = seen[cells].astype(np.int64), np.sqrt(count[cells])
    table, far = colour[:1], ((colour - colour[0]) ** 2).sum(1)
    while len(table) < min(_COLOURS, len(cells)):
        chosen = colour[np.argmax(far * weight)]
        table = np.vstack([table, chosen])
        far = np.minimum(far, ((colour - chosen) ** 2).sum(1))
    nearest = np.empty(len(seen), np.uint8)
    for start in range(0, len(seen), 4096):
        part = seen[start : start + 4096].astype(np.int64)
        nearest[start : start + 4096] = ((part[:, None] - table) ** 2).sum(2).argmin(1)
    rows = np.ascontiguousarray(nearest[where].reshape(image.height(), image.width()))
    found = QImage(
        rows.data, image.width(), image.height(), image.width(), QImage.Format.Format_Indexed8
    ).copy()
    found.setColorTable([0xFF000000 | int(r) << 16 | int(g) << 8 | int(b) for r, g, b in table])
    return found


def _pixels(image: QImage) -> np.ndarray:
    """(height, width, 3) of red, green and blue, 0 to 255."""
    from PySide6.QtGui import QImage

    plain = image.convertToFormat(QImage.Format.Format_RGB32)
    raw = np.frombuffer(plain.constBits(), np.uint8).reshape(plain.height(), plain.bytesPerLine())
    return raw[:, : 4 * plain.width()].reshape(plain.height(), plain.width(), 4)[:, :, 2::-1].copy()


def difference(one: QImage, other: QImage) -> float:
    """Part of the 8 x 8 blocks whose mean colour an eye would call another; 1 if the sizes differ."""
    if one.size() != other.size():
        return 1.0
    return float((np.abs(_blocks(one) - _blocks(other)).max(2) > _SEEN).mean())


def _blocks(image: QImage) -> np.ndarray:
    pixels = _pixels(image).astype(np.float64)
    high, wide = (length // _BLOCK * _BLOCK for length in pixels.shape[:2])
    return pixels[:high, :wide].reshape(high // _BLOCK, _BLOCK, wide // _BLOCK, _BLOCK, 3).mean((1, 3))


def save(image: QImage, file: Path) -> None:
    from PySide6.QtCore import QByteArray
    from PySide6.QtGui import QImageWriter

    writer = QImageWriter(str(file), QByteArray(b"png"))
    writer.setCompression(100)
    if not writer.write(image):
        raise OSError(f"{file} cannot be written: {writer.errorString()}")


def main(words: Sequence[str]) -> int:
    check = "--check" in words
    names = [word for word in words if word != "--check"] or list(PICTURES)
    unknown = [name for name in names if name not in PICTURES]
    if unknown:
        print(f"there is no picture {unknown[0]}, there are {', '.join(PICTURES)}", file=sys.stderr)
        return 2
    from PySide6.QtGui import QImage

    FOLDER.mkdir(exist_ok=True)
    stale = 0
    for name, image in draw(names):
        file = FOLDER / f"{name}.png"
        if not check:
            save(image, file)
            print(f"{name}: {image.width()} x {image.height()}, {file.stat().st_size / 1024:.0f} KiB")
            continue
        there = QImage(str(file))
        off = 1.0 if there.isNull() else difference(there, image)
        stale += off > TOLERANCE
        print(f"{name}: {100 * off:.1f} % differs" + (", stale" if off > TOLERANCE else ""))
    return 1 if stale else 0


if __name__ == "__main__":
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    sys.path.insert(0, str(ROOT))
    sys.exit(main(sys.argv[1:]))
