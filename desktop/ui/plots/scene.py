"""Base classes of the plots on pyqtgraph: boxes that move only when told, items that paint pixels, axes, and
a view that is repainted only where it is told to.

pyqtgraph is imported where plots are, never on the command line's paths. Set no option of it
(`setConfigOption` is global), give pens and brushes explicitly, and never link boxes by `setXLink`: it lines
them up by screen pixels. See `resources/docs/developing.md`, "Plots".
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

import pyqtgraph as pg
import shiboken6
from pyqtgraph import debug
from PySide6.QtCore import QEvent, QRectF, Qt
from PySide6.QtGui import QColor, QHelpEvent, QImage, QPainter, QPaintEvent, QRegion, QResizeEvent
from PySide6.QtWidgets import QGraphicsItem, QGraphicsObject, QGraphicsView, QToolTip, QWidget

from desktop.ui.guard import guarded, saved
from desktop.ui.theme import LIGHT, Theme, paint_focus

#: A pixel on each side, by which Qt takes every item for larger: so neighbours are not painted with it.
_BORDER = (1, 1, -1, -1)
#: Paints within a rectangle; painter and rectangle are in logical pixels of the view.
Draw = Callable[[QPainter, QRectF], None]

#: Curves and marks of pyqtgraph catch what goes wrong in their paint; else it would be printed, and not told.
debug.printExc = lambda *_, **__: sys.excepthook(*sys.exc_info())


class QuietBox(pg.ViewBox):
    """A ViewBox that moves only when it is told: no mouse, menu, automatic range or padding.

    Items added by `addItem` are in data coordinates; for these Qt finds out what to repaint.
    """

    def __init__(self) -> None:
        super().__init__(enableMenu=False, enableMouse=False, defaultPadding=0)
        self.pictures: list[PixelItem] = []  # or Python would free them
        self.disableAutoRange()

    def show_range(self, a: float, b: float, low: float, high: float) -> None:
        """Show ``[a, b]`` and ``[low, high]``; nothing happens if it is shown already."""
        if self.viewRange() != [[a, b], [low, high]]:
            self.setRange(xRange=(float(a), float(b)), yRange=(float(low), float(high)), padding=0)

    def addItem(self, item: QGraphicsItem, ignoreBounds: bool = False) -> None:
        super().addItem(item, ignoreBounds)
        self._tell()

    def removeItem(self, item: QGraphicsItem) -> None:
        super().removeItem(item)
        self._tell()

    @property
    def holds_items(self) -> bool:
        """Whether it holds items in data coordinates."""
        return bool(self.childGroup.childItems())

    def _tell(self) -> None:
        scene = self.scene()
        for view in [] if scene is None else scene.views():
            if isinstance(view, PlotView):
                view.items_changed()


class PixelItem(QGraphicsObject):
    """An item painted by a function in the view's logical pixels, so that pictures are neither scaled nor
    moved by parts of a pixel, and the deepest zoom loses no precision.

    It fills the box that is its parent, else the rectangle set by `place`. `z` below 0 lies under the items
    of the box, above 0 over them.
    """

    def __init__(self, draw: Draw, box: QuietBox | None = None, z: float = -50.0) -> None:
        super().__init__(box)
        self._draw = draw
        self._rect = QRectF() if box is None else QRectF(box.rect())
        self.setZValue(z)
        if box is not None:
            box.pictures.append(self)
            box.sigResized.connect(self._resized)

    @guarded
    def _resized(self, box: pg.ViewBox) -> None:
        self.place(box.rect())

    def place(self, rect: QRectF) -> None:
        """Set its rectangle, in the coordinates of the parent."""
        if rect != self._rect:
            self.prepareGeometryChange()
            self._rect = QRectF(rect)

    @guarded(otherwise=QRectF)
    def boundingRect(self) -> QRectF:
        return self._rect.adjusted(*_BORDER)

    @guarded
    def paint(self, painter: QPainter, _option: object, _widget: QWidget | None = None) -> None:
        _in_view(self, painter, self._rect, self._draw)


class DrawnAxis(pg.AxisItem):
    """An axis that is painted by a function; pyqtgraph's own records a picture and sets its title's HTML with
    every range. `reach`: logical pixels that it paints beyond its ends, if these are not its title's.
    """

    def __init__(self, side: str, draw: Draw, reach: float = 2.0) -> None:
        self.range = [0.0, 1.0]  # which the constructor of the base class sets
        self._draw = draw
        self._reach = reach
        super().__init__(side)

    def setRange(self, mn: float, mx: float) -> None:
        self.range = [mn, mx]

    @guarded(otherwise=QRectF)
    def boundingRect(self) -> QRectF:
        bounds = self._bounds().adjusted(*_BORDER)
        return bounds if self.orientation in ("left", "right") else bounds.adjusted(0, 2, 0, 0)

    @guarded
    def paint(self, painter: QPainter, _option: object, _widget: QWidget | None = None) -> None:
        painter.setClipRect(self._bounds())
        _in_view(self, painter, QRectF(self.rect()), self._draw)

    def place(self, rect: QRectF) -> None:
        """Set its rectangle; for an axis below or above a lane, which is in no plot's layout."""
        self.setHeight(rect.height())
        self.setGeometry(rect)

    def _bounds(self) -> QRectF:
        """The rectangle that it paints in, never into the lane beside it."""
        r = QRectF(self.rect())
        if self.orientation in ("left", "right"):
            reach = max(self._reach, title_reach(r.height()))
            return r.adjusted(0, -reach, 0, reach)
        return r.adjusted(-self._reach, 0, self._reach, 0)


def title_reach(height: float) -> float:
    """How far an upright title reaches beyond the ends of a lane so high, logical pixels."""
    return max(2.0, 75 - height / 2)


def _in_view(item: QGraphicsItem, painter: QPainter, rect: QRectF, draw: Draw) -> None:
    """Let a function paint an item as if it painted the view, in its font."""
    origin = item.scenePos()
    with saved(painter):
        painter.setFont(item.scene().views()[0].font())
        painter.translate(-origin)
        draw(painter, rect.translated(origin))


def lane_plot(left: DrawnAxis, right: DrawnAxis | None = None) -> pg.PlotItem:
    """A plot of a quiet box with these axes alone; it lies where `place_lane` puts it. Making one takes some
    milliseconds: make few, and once."""
    axes = {"left": left} if right is None else {"left": left, "right": right}
    plot = pg.PlotItem(viewBox=QuietBox(), axisItems=axes, enableMenu=False)
    plot.hideButtons()
    plot.layout.setContentsMargins(0, 0, 0, 0)
    for name in {"left", "bottom", "right", "top"} - set(axes):
        plot.getAxis(name).unlinkFromView()  # each sets the HTML of its title at every move
    plot.hideAxis("bottom")
    return plot


def place_lane(plot: pg.PlotItem, lane: QRectF, *, right: float = 0.0) -> None:
    """Put a plot so that its box fills `lane` exactly; its left axis reaches to the view's left edge. A
    layout of the scene's own would make parts of pixels of it."""
    plot.getAxis("left").setWidth(lane.left())
    if plot.getAxis("right").isVisible():
        plot.getAxis("right").setWidth(right)
    plot.setGeometry(QRectF(0, lane.top(), lane.right() + right, lane.height()))
    plot.layout.activate()  # now, not when the loop is next free: it is painted before that


def blit(painter: QPainter, rect: QRectF, image: QImage) -> None:
    """Fill a rectangle that lies on device pixels with a picture of as many of them, or of fewer."""
    dpr = painter.device().devicePixelRatioF()
    edges = (round(v * dpr) for v in (rect.left(), rect.top(), rect.right(), rect.bottom()))
    left, top, right, bottom = edges
    with saved(painter):
        painter.scale(1 / dpr, 1 / dpr)
        painter.drawImage(QRectF(left, top, right - left, bottom - top), image, QRectF(image.rect()))


class PlotView(pg.GraphicsView):
    """A scene in logical pixels of the view. Derived classes handle mouse and keys, pyqtgraph does not;
    changed parts are given to `dirty`, and painted once.

    While a box holds items in data coordinates, Qt finds out itself what to paint.
    """

    def __init__(self) -> None:
        self._theme: Theme = LIGHT
        self._opaque: tuple[QRectF, ...] = ()
        self._bare: list[QRectF] | None = None
        self._all_dirty = False  # everything will be painted anyway
        super().__init__(background=None)
        self.setCacheMode(QGraphicsView.CacheModeFlag.CacheNone)
        self.setViewportUpdateMode(QGraphicsView.ViewportUpdateMode.NoViewportUpdate)
        self.setOptimizationFlag(QGraphicsView.OptimizationFlag.DontAdjustForAntialiasing)
        self.scene().setItemIndexMethod(self.scene().ItemIndexMethod.NoIndex)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        for action in self.scene().contextMenu:  # a command that nobody would find
            action.setParent(None)
        self.scene().contextMenu = []
        self.setAcceptDrops(False)  # which the window takes
        port = self.viewport()
        port.setAcceptDrops(False)
        port.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        port.setMouseTracking(True)
        port.setFocusProxy(None)
        port.setFocusPolicy(Qt.FocusPolicy.NoFocus)

    # ---- what a plot says of itself

    def prepare(self, dpr: float) -> None:
        """Bring ranges and geometry up to date before a paint at so many device pixels to a logical one."""

    def boxes(self) -> Iterable[QuietBox]:
        """The boxes that may hold items of scripts."""
        return [item for item in self.scene().items() if isinstance(item, QuietBox)]

    # ---- what is painted

    def dirty(self, *rects: QRectF) -> None:
        """Repaint these parts (logical pixels); without any, everything."""
        port = self.viewport()
        if self._all_dirty:
            return
        if not rects:
            self._all_dirty = True
            port.update()
        for rect in rects:
            port.update(rect.toAlignedRect())

    def set_opaque(self, *rects: QRectF) -> None:
        """Set the rectangles that items cover completely, which need no ground."""
        if rects != self._opaque:
            self._opaque, self._bare = rects, None

    def items_changed(self) -> None:
        """Items in data coordinates were added or removed."""
        modes = QGraphicsView.ViewportUpdateMode
        holds = any(box.holds_items for box in self.boxes())
        self.setViewportUpdateMode(modes.MinimalViewportUpdate if holds else modes.NoViewportUpdate)
        self.dirty()

    @guarded
    def paintEvent(self, event: QPaintEvent) -> None:
        if self.closed:
            return
        self.prepare(self.viewport().devicePixelRatioF())
        self._all_dirty = False
        super().paintEvent(event)

    def paint_on(self, image: QImage) -> None:
        """Paint all of it on an image of the view's size at its own scale."""
        self.prepare(image.devicePixelRatio())
        area = QRectF(0, 0, self.width(), self.height())
        with QPainter(image) as painter:
            painter.setFont(self.font())
            self.render(painter, area, area.toRect())

    @guarded
    def drawBackground(self, painter: QPainter, rect: QRectF) -> None:
        if self._bare is None:
            region = QRegion(0, 0, self.width(), self.height())
            for opaque in self._opaque:
                inner = opaque.adjusted(1, 1, -1, -1).toAlignedRect()
                region -= QRegion(inner)
            self._bare = [QRectF(r) for r in region]  # type: ignore[attr-defined]  # which Qt's stubs lack
        ground = QColor(self._theme.background)
        for bare in self._bare:
            if bare.intersects(rect):
                painter.fillRect(bare, ground)

    @guarded
    def drawForeground(self, painter: QPainter, _rect: QRectF) -> None:
        if not isinstance(painter.device(), QImage):  # of a picture it is no part
            paint_focus(painter, self, self._theme)

    @guarded
    def resizeEvent(self, event: QResizeEvent | None) -> None:
        if self.closed:
            return
        super().resizeEvent(event)
        self._bare = None
        self.dirty()

    @guarded(otherwise=lambda: False)
    def viewportEvent(self, event: QEvent) -> bool:
        """Show tooltips of the view; its scene would only show those of items."""
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            QToolTip.showText(event.globalPos(), self.toolTip(), self)
            return True
        return bool(super().viewportEvent(event))

    def __del__(self) -> None:
        """Delete the view first, and all in it: Python's collector would delete view, scene and items in any
        order, which ends the process."""
        if shiboken6.isValid(self) and shiboken6.ownedByPython(self):
            shiboken6.delete(self)

    def close(self) -> bool:
        """Close as any widget; pyqtgraph's own would empty the scene, so that it could not be shown again."""
        return bool(QGraphicsView.close(self))

    # ---- accessibility

    def setAccessibleName(self, name: str) -> None:
        """Set it for the view and its viewport, which screen readers see as a widget of its own."""
        super().setAccessibleName(name)
        self.viewport().setAccessibleName(name)

    def setAccessibleDescription(self, text: str) -> None:
        super().setAccessibleDescription(text)
        self.viewport().setAccessibleDescription(text)
