"""Tiles of the timeline: those at hand, and those being made, for the part in view."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, QTimer

from desktop.core.arrays import Bytes, Ints
from desktop.core.density import apart, line_density
from desktop.data import memory
from desktop.data.message_filter import MessageFilter
from desktop.ui.pages import set_up
from desktop.workbench.jobs import Job, Lane

if TYPE_CHECKING:
    from desktop.data.timeline import Collective, Tile, Timeline, TimelineMessages

T = TypeVar("T")
U = TypeVar("U")
#: Cells (locations times columns) that are made while painting; more are made beside the window.
INLINE = 60_000
#: Cells of a picture that reaches a screen beyond what is in view, to either side (fewer if memory is
#: limited: so many bytes are counted for each).
ROOMY, CELL_BYTES = 4_000_000, 128
#: Columns of the picture of the whole run, which is shown until a sharper one is made.
OVERVIEW = 1024
#: The view has come to rest when it has not changed for so long (ms).
REST = 40
#: Locations in view up to which rows are drawn from their events where bins are wider than pixels.
EXACT = 2048
#: Collectives that are drawn at most.
DRAWN = 2000


@dataclass(frozen=True, eq=False)
class Placed:
    """A tile whose first row is the band `first`."""

    tile: Tile
    first: int

    @property
    def pixel(self) -> float:
        """Seconds in a column."""
        return (self.tile.b - self.tile.a) / int(self.tile.dominant.shape[1])


@dataclass(frozen=True)
class TileView:
    """What is in view: seconds, device columns, and the bands `first` .. `last - 1`.

    Of the rows in device pixels: the height of one, how far they are scrolled up, and the height of them all.
    """

    a: float
    b: float
    columns: int
    first: int
    last: int
    step: float = 1.0
    scrolled: float = 0.0
    height: int = 0


@dataclass(frozen=True, eq=False)
class TileMarks:
    """Messages and collectives of a view: `messages` (also some beside it) where single lines can be told
    apart, else how many pass through each pixel; None where they are more than there is memory for."""

    view: TileView
    messages: TimelineMessages | None = None
    collectives: tuple[Collective, ...] = ()
    count: int = 0
    density: NDArray[np.int32] | None = None


def _roomy() -> int:
    return min(ROOMY, memory.limit() // CELL_BYTES)


class Tiles(QObject):
    """Makes tiles when they are asked for, at once if that is quick, and exact ones when the view rests.

    `changed` is called when there is more to be seen than before.
    """

    def __init__(
        self, lane: Lane, changed: Callable[[], None], failed: Callable[[BaseException], None]
    ) -> None:
        super().__init__()
        self._lane, self._changed, self._failed = lane, changed, failed
        self._rest_timer = set_up(QTimer(self), singleShot=True, timeout=self._at_rest)
        self._messages = MessageFilter()
        self.show(None, (), None)

    def show(
        self,
        timeline: Timeline | None,
        bands: Sequence[Sequence[int]],
        by_region: Bytes | None,
        row_of: Ints | None = None,
    ) -> None:
        """Set the rows, and their classes; `row_of` (locations,): the row of each, -1 for none."""
        if timeline is None or timeline is not getattr(self, "_timeline", None):
            self.marks: TileMarks | None = None
        self._timeline, self._bands, self._by_region = timeline, bands, by_region
        self._row_of = np.zeros(0, np.int64) if row_of is None else row_of
        self._overview: Placed | None = None
        self._detail: Placed | None = None
        self._view: TileView | None = None
        self._rested: TileView | None = None
        self._making = ""
        self._lane.cancel()
        self._rest_timer.stop()

    def set_messages(self, criteria: MessageFilter) -> None:
        """Which messages are drawn."""
        if criteria != self._messages:
            self._messages, self._rested = criteria, None
            if self._view is not None:
                self._rest_timer.start(0)

    @property
    def busy(self) -> bool:
        """Whether tiles are being computed or will be soon."""
        return bool(self._making) or self._rest_timer.isActive()

    def get(self, view: TileView) -> list[Placed]:
        """The tiles to paint now, from back to front; sharper ones are made."""
        if self._timeline is None or view.last <= view.first or view.columns < 1:
            return []
        if view != self._view:
            self._view = view
            self._rest_timer.start(REST)  # each time, as what `start` is given stays the interval
        if self._detail is None or not self._fits(self._detail, view):
            self._make(view)
        detail = self._detail
        if detail is not None and self._covers(detail, view):
            return [detail]
        return [p for p in (self._overview, detail) if p is not None]

    def available(self, view: TileView) -> list[Placed]:
        """The tiles at hand of a view, without making more."""
        tiles = [p for p in (self._overview, self._detail) if p is not None]
        return [p for p in tiles if p.first <= view.first and view.last <= p.first + p.tile.dominant.shape[0]]

    def _covers(self, placed: Placed, view: TileView) -> bool:
        tile = placed.tile
        rows = placed.first <= view.first and view.last <= placed.first + tile.dominant.shape[0]
        return rows and tile.a <= view.a and view.b <= tile.b

    def _fits(self, placed: Placed, view: TileView) -> bool:
        pixel = (view.b - view.a) / view.columns
        return self._covers(placed, view) and abs(placed.pixel / pixel - 1) < 1e-6

    def _make(self, view: TileView) -> None:
        count = sum(len(group) for group in self._bands[view.first : view.last])
        cells = count * view.columns
        timeline, bands, by_region = self._timeline, self._bands, self._by_region
        assert timeline is not None
        margin = view.columns if 3 * cells <= _roomy() else 0
        pixel = (view.b - view.a) / view.columns
        a, b = view.a - margin * pixel, view.b + margin * pixel

        def make() -> Placed:
            group = bands[view.first : view.last]
            return Placed(timeline.tile(group, a, b, view.columns + 2 * margin, by_region), view.first)

        if cells <= INLINE:
            self._detail = make()
            return
        if self._overview is None:
            self._make_overview()
            return
        if self._making == "detail":
            return  # its end lets the view call this again

        def done(placed: Placed) -> None:
            self._detail = placed
            current = self._view
            if current is None or self._fits(placed, current):
                self._changed()
            else:  # the view has moved on: a paint of its own is only worth what is sharp there
                self._make(current)

        self._submit("detail", lambda job: make(), done)

    def _make_overview(self) -> None:
        timeline, bands, by_region, view = self._timeline, self._bands, self._by_region, self._view
        assert timeline is not None and view is not None
        columns = max(min(OVERVIEW, _roomy() // max(len(bands), 1)), 64)
        end = timeline.end_s

        def done(placed: Placed) -> None:
            self._overview = placed
            self._changed()

        if self._making != "overview":
            self._submit(
                "overview", lambda job: Placed(timeline.tile(bands, 0.0, end, columns, by_region), 0), done
            )

    def _at_rest(self) -> None:
        """Messages, and rows from their events where bins are wider than pixels."""
        view, timeline, placed = self._view, self._timeline, self._detail
        if view is None or timeline is None:
            return
        if placed is None or not self._fits(placed, view) or self._making == "detail":
            if self._making:
                self._rest_timer.start(REST)  # a little later, when it is there
            return
        locations = {m for group in self._bands[view.first : view.last] for m in group}
        pending = bool(placed.tile.pending) and len(locations) <= EXACT
        if self._rested == view and not pending:
            return
        current = self.marks if self._rested == view else None
        criteria, row_of = self._messages, self._row_of

        def work(job: Job) -> tuple[Placed, TileMarks]:
            marks = current or _marks(timeline, placed.tile, view, locations, row_of, criteria)
            return (Placed(timeline.refine(placed.tile, job), placed.first) if pending else placed), marks

        def done(result: tuple[Placed, TileMarks]) -> None:
            refined, self.marks = result
            self._rested = view if criteria == self._messages else None
            if self._detail is placed:
                self._detail = refined
                if pending and refined.tile.pending:
                    self._rest_timer.start(0)
            self._changed()

        self._submit("rest", work, done)

    def _submit(self, task: str, work: Callable[[Job], T], done: Callable[[T], None]) -> None:
        def ended(then: Callable[[U], None], result: U) -> None:
            self._making = ""
            then(result)

        self._making = task
        self._lane.submit("Timeline", work, partial(ended, done), partial(ended, self._failed))


def _marks(
    timeline: Timeline, tile: Tile, view: TileView, locations: set[int], row_of: Ints, criteria: MessageFilter
) -> TileMarks:
    matches = timeline.filtered_messages(criteria) if criteria.shown else None
    messages, count, density = None, 0, None
    if matches is not None:
        in_view = np.zeros(len(timeline.store.locations), bool)
        in_view[list(locations)] = True
        sent = int(np.searchsorted(matches.sent_s, tile.b, side="right"))
        sender, receiver = matches.sender[:sent], matches.receiver[:sent]
        inside = np.flatnonzero((matches.received_s[:sent] >= tile.a) & (in_view[sender] | in_view[receiver]))
        near = inside[(matches.sent_s[inside] <= view.b) & (matches.received_s[inside] >= view.a)]
        count = near.size
        density = _density(matches, near, view, row_of)
        if apart(density, count):
            # With those beside the view, for when it is moved, unless they are far more.
            messages, density = matches.only(inside if inside.size <= 5 * DRAWN else near), None
    collectives = timeline.collectives(view.a, view.b, DRAWN) or []
    shown = tuple(c for c in collectives if c.location in locations)
    return TileMarks(view, messages, shown, count, density)


def _density(messages: TimelineMessages, indices: Ints, view: TileView, row_of: Ints) -> NDArray[np.int32]:
    """(height, columns) how many messages pass through each pixel of a view."""
    middle = (row_of + 0.5) * view.step - view.scrolled
    middle[row_of < 0] = np.nan
    pixel = (view.b - view.a) / view.columns
    x = (np.stack([messages.sent_s[indices], messages.received_s[indices]]) - view.a) / pixel
    y = np.stack([middle[messages.sender[indices]], middle[messages.receiver[indices]]])
    return line_density(x, y, view.columns, view.height)
