"""Which pictures of the timeline there are, and which are being made, for what is in view."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, QTimer

from desktop.data import memory
from desktop.workbench.jobs import Job, Lane

if TYPE_CHECKING:
    from desktop.data.timeline import Collective, Messages, Tile, Timeline

#: Cells (locations times columns) that are made while painting; more are made beside the window.
INLINE = 60_000
#: Cells of a picture that reaches a screen beyond what is in view, to either side (fewer if memory is
#: limited: so many bytes are counted for each).
ROOMY, CELL_BYTES = 4_000_000, 128
#: Columns of the picture of the whole run, which is there until a sharper one is.
OVERVIEW = 1024
#: The view has come to rest when it has not changed for so long (ms).
REST = 40
#: Locations in view up to which rows are drawn from their events where bins are wider than pixels.
EXACT = 2048
#: Messages (or collectives) that are drawn at most.
DRAWN = 2000


@dataclass(frozen=True, eq=False)
class Placed:
    """A tile whose first row is the band `first`."""

    tile: Tile
    first: int

    @property
    def pixel(self) -> float:
        """Seconds in a column."""
        return (self.tile.b - self.tile.a) / self.tile.dominant.shape[1]


@dataclass(frozen=True)
class View:
    """What is in view: seconds, device columns, and the bands `first` .. `last - 1`."""

    a: float
    b: float
    columns: int
    first: int
    last: int


@dataclass(frozen=True, eq=False)
class Marks:
    """Messages and collectives from `a` to `b`; None where there are too many to draw, then counted."""

    a: float
    b: float
    messages: Messages | None = None
    collectives: tuple[Collective, ...] = ()
    unseen: int = 0


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
        self._rest = QTimer(self)
        self._rest.setSingleShot(True)
        self._rest.timeout.connect(self._at_rest)
        self.show(None, (), None)

    def show(
        self,
        timeline: Timeline | None,
        bands: Sequence[Sequence[int]],
        by_region: NDArray[np.uint8] | None,
    ) -> None:
        """Other rows, or another class for them."""
        if timeline is None or timeline is not getattr(self, "_timeline", None):
            self.marks: Marks | None = None
        self._timeline, self._bands, self._by_region = timeline, bands, by_region
        self._overview: Placed | None = None
        self._detail: Placed | None = None
        self._view: View | None = None
        self._rested: View | None = None
        self._making = ""
        self._lane.cancel()
        self._rest.stop()

    @property
    def busy(self) -> bool:
        return bool(self._making) or self._rest.isActive()

    def get(self, view: View) -> list[Placed]:
        """What there is to paint now, from back to front."""
        if self._timeline is None or view.last <= view.first or view.columns < 1:
            return []
        if view != self._view:
            self._view = view
            self._rest.start(REST)  # said each time: what is given to `start` stays the timer's interval
        if self._detail is None or not self._fits(self._detail, view):
            self._make(view)
        found = self._detail
        if found is not None and self._covers(found, view):
            return [found]
        return [p for p in (self._overview, found) if p is not None]

    def known(self, view: View) -> list[Placed]:
        """What there is of a view, without asking for more."""
        there = [p for p in (self._overview, self._detail) if p is not None]
        return [p for p in there if p.first <= view.first and view.last <= p.first + p.tile.dominant.shape[0]]

    def _covers(self, placed: Placed, view: View) -> bool:
        tile = placed.tile
        rows = placed.first <= view.first and view.last <= placed.first + tile.dominant.shape[0]
        return rows and tile.a <= view.a and view.b <= tile.b

    def _fits(self, placed: Placed, view: View) -> bool:
        pixel = (view.b - view.a) / view.columns
        return self._covers(placed, view) and abs(placed.pixel / pixel - 1) < 1e-6

    def _make(self, view: View) -> None:
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
            return  # its answer makes the view look again

        def done(placed: Placed) -> None:
            self._making = ""
            self._detail = placed
            now = self._view
            if now is None or self._fits(placed, now):
                self._changed()
            else:  # the view has moved on: a paint of its own is only worth what is sharp there
                self._make(now)

        self._submit("detail", lambda job: make(), done)

    def _make_overview(self) -> None:
        timeline, bands, by_region, view = self._timeline, self._bands, self._by_region, self._view
        assert timeline is not None and view is not None
        columns = max(min(OVERVIEW, _roomy() // max(len(bands), 1)), 64)
        end = timeline.end_s

        def done(placed: Placed) -> None:
            self._making = ""
            self._overview = placed
            self._changed()

        if self._making != "overview":
            self._submit(
                "overview",
                lambda job: Placed(timeline.tile(bands, 0.0, end, columns, by_region), 0),
                done,
            )

    def _at_rest(self) -> None:
        """Messages, and rows from their events where bins are wider than pixels."""
        view, timeline, placed = self._view, self._timeline, self._detail
        if view is None or timeline is None:
            return
        if placed is None or not self._fits(placed, view) or self._making == "detail":
            if self._making:
                self._rest.start(REST)  # a little later, when it is there
            return
        locations = {m for group in self._bands[view.first : view.last] for m in group}
        pending = bool(placed.tile.pending) and len(locations) <= EXACT
        if self._rested == view and not pending:
            return
        known = self.marks if self._rested == view else None

        def work(job: Job) -> tuple[Placed, Marks]:
            marks = known or _marks(timeline, placed.tile, view, locations)
            return (Placed(timeline.refine(placed.tile, job), placed.first) if pending else placed), marks

        def done(result: tuple[Placed, Marks]) -> None:
            self._making = ""
            refined, self.marks = result
            self._rested = view
            if self._detail is placed:
                self._detail = refined
                if pending and refined.tile.pending:
                    self._rest.start(0)
            self._changed()

        self._submit("rest", work, done)

    def _submit(self, what: str, work: Callable[[Job], object], done: Callable[..., None]) -> None:
        def failed(error: BaseException) -> None:
            self._making = ""
            self._failed(error)

        self._making = what
        self._lane.submit("Timeline", work, done, failed)


def _marks(timeline: Timeline, tile: Tile, view: View, locations: set[int]) -> Marks:
    known = timeline.messages()
    messages, unseen = None, 0
    if known is not None:
        there = np.zeros(len(timeline.store.locations), bool)
        there[list(locations)] = True
        shown = there[known.sender] | there[known.receiver]
        inside = shown & (known.sent_s <= tile.b) & (known.received_s >= tile.a)
        near = inside & (known.sent_s <= view.b) & (known.received_s >= view.a)
        unseen = int(near.sum())
        if unseen <= DRAWN and int(inside.sum()) <= 5 * DRAWN:
            messages, unseen = known.only(inside), 0
        elif unseen <= DRAWN:
            messages, unseen = known.only(near), 0
    collectives = timeline.collectives(view.a, view.b, DRAWN) or []
    return Marks(view.a, view.b, messages, tuple(c for c in collectives if c.location in locations), unseen)
