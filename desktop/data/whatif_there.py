"""What-if for a store on another machine: the replay runs there, where all events are, and its results are
sent here. `RerunThere` sends requests, `Reruns` answers them.

Nothing received is trusted: numbers must fit the run, and control characters are removed from texts.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from threading import Lock

import numpy as np

from desktop.core.arrays import Floats
from desktop.core.changes import NONE, Changes
from desktop.core.curve import StepCurve
from desktop.core.envelope import averaged
from desktop.core.plain import JSON
from desktop.data.causality import Causality
from desktop.data.helping import Help, helps, prepared
from desktop.data.remote_frames import inflated
from desktop.data.statistics import Statistics
from desktop.data.store import TraceStore
from desktop.data.structure import Decoder, encode
from desktop.data.utilization import Rules, Utilization, build
from desktop.data.whatif import NetworkEstimate, Rerun, RunPrediction, crowding, looked_at
from desktop.errors import DesktopError, StoreError
from desktop.printing import printable
from desktop.progress import Progress, working

#: Most bytes of an answer, unpacked.
MOST = 1 << 23
#: Most steps of a predicted curve that are sent unchanged; a longer one is sent as means of so many columns.
STEPS = 1 << 14
#: Most changes in a list of what would help.
_HELPS = 1000


class RerunThere:
    """A `Rerun` of a store on another machine, as far as needed here; parameters and errors as there."""

    causality = None

    def __init__(
        self,
        store: TraceStore,
        use: Utilization,
        progress: Progress | None = None,
        *,
        limit: tuple[float, float] | None = None,
        breakpoints: Sequence[float] = (),
    ) -> None:
        self._store, self._use = store, use
        self._about = {
            "rules": encode(use.rules, Path()),
            "limit": limit,
            "breaks": [float(x) for x in breakpoints],
        }
        begin, end, inner = looked_at(use, limit, breakpoints)
        self.start_s, self.recorded_s = (begin - use.start) * use.unit, (end - begin) * use.unit
        self.phases = inner.size + 1
        about, _ = self._ask({}, progress or Progress())
        try:
            names = {region.name for region in store.regions}
            #: names of the regions with most computing
            self.regions = tuple(name for name in map(str, about["regions"]) if name in names)
            estimate = about["estimate"]
            self.estimate = (
                None
                if estimate is None
                else NetworkEstimate(_time(estimate[0]), float(estimate[1]), int(estimate[2]))
            )
        except (ValueError, LookupError, TypeError) as error:
            raise self._senseless() from error

    def predict(
        self, changes: Changes = NONE, progress: Progress | None = None, times: bool = True
    ) -> RunPrediction:
        """The predicted run; a curve of more than `STEPS` steps as the means of so many columns."""
        query = {"changes": encode(changes, Path()), "times": times}
        about, content = self._ask(query, progress or Progress())
        try:
            if about["note"]:
                return RunPrediction(changes, math.nan, self.recorded_s, printable(str(about["note"]), 500))
            duration = _time(about["duration_s"])
            places, inner = len(self._store.locations), self.phases - 1
            ends, breakpoints, edges, level = _parted(content, about["sizes"])
            if ends.size != places or not times:
                breakpoints = edges = level = np.zeros(0)
            if ends.size != places or breakpoints.size != (inner if times else 0):
                raise ValueError("it is of another run")
            if (ends < 0).any() or (np.diff(breakpoints) < 0).any():
                raise ValueError("its times go back")
            drawn = None
            if level.size:
                if level.min() < 0 or level.max() > self._use.processors * (1 + 1e-6):
                    raise ValueError("more compute than there are")
                if edges.size == 2:
                    edges = np.linspace(edges[0], edges[1], level.size + 1)
                drawn = StepCurve(edges, level, float(self._use.processors), self._use.unit)
            low = about.get("low_s")
            low = math.nan if low is None else min(_time(low), duration)
            crowded = crowding(self._store) if low == low else ""
            return RunPrediction(
                changes, duration, self.recorded_s, "", ends, breakpoints, low, crowded, [lambda: drawn]
            )
        except (ValueError, LookupError, TypeError, DesktopError) as error:
            raise self._senseless() from error

    def helps(self, progress: Progress) -> tuple[Help, ...]:
        """What would help most, see `desktop.data.helping.helps`."""
        about, _ = self._ask({"helps": []}, progress)
        try:
            return tuple(_help(one) for one in about["helps"][:_HELPS])
        except (ValueError, LookupError, TypeError, DesktopError) as error:
            raise self._senseless() from error

    def _ask(self, query: JSON, progress: Progress) -> tuple[JSON, bytes]:
        assert self._store.elsewhere is not None
        with working(progress):
            packed = self._store.elsewhere.ask({"whatif": {**self._about, **query}}, MOST)
        try:
            content = inflated(packed, MOST)
            size = int.from_bytes(content[:8], "little")
            about = json.loads(content[8 : 8 + size])
            if not isinstance(about, dict):
                raise ValueError("it is no object")
        except (ValueError, RecursionError) as error:
            raise self._senseless() from error
        return about, content[8 + size :]

    def _senseless(self) -> StoreError:
        return StoreError("the other side's prediction makes no sense", file=self._store.path)


class Reruns:
    """Answers for one store; the run of the latest request is kept. `statistics`: of the store."""

    def __init__(self, statistics: Statistics) -> None:
        self._stats = statistics
        self._last: tuple[str, Rerun] | None = None

    def answer(self, query: JSON, progress: Progress, turn: Lock) -> bytes:
        """The answer to a `RerunThere`. `turn` is held while the run is prepared; predictions run in
        parallel.

        Raises
        ------
        ValueError, LookupError, TypeError : the request is invalid.
        DesktopError : the store is damaged, or there is too little memory.
        """
        program = self._program(query, progress, turn)
        arrays: list[Floats] = []
        if "changes" in query:
            changes = Decoder().decode(Changes, query["changes"])
            prediction = program.predict(changes, progress, bool(query["times"]))
            about: JSON = {"note": prediction.note, "duration_s": prediction.duration_s}
            drawn = prediction.curve
            arrays = [prediction.ends_s, prediction.breaks_s, np.zeros(0), np.zeros(0)]
            if drawn is not None:
                arrays[2:] = drawn.edges, drawn.level
                if drawn.segments > STEPS:
                    ends = drawn.edges[[0, -1]]
                    arrays[2:] = ends, averaged(drawn, np.linspace(ends[0], ends[1], STEPS + 1)).level
            about["sizes"] = [part.size for part in arrays]
            about["low_s"] = None if math.isnan(prediction.low_s) else prediction.low_s
            if prediction.note:
                about["duration_s"] = None
        elif "helps" in query:
            ranked = helps(program, progress)
            about = {"helps": [{**asdict(one), "changes": encode(one.changes, Path())} for one in ranked]}
        else:
            estimate = program.estimate
            about = {"regions": program.regions, "estimate": None if estimate is None else list(estimate)}
        words = json.dumps(about).encode()
        parts = [len(words).to_bytes(8, "little"), words, *(np.asarray(x, "<f8").tobytes() for x in arrays)]
        return zlib.compress(b"".join(parts), 1)

    def _program(self, query: JSON, progress: Progress, turn: Lock) -> Rerun:
        key = json.dumps([query["rules"], query["limit"], query["breaks"]])
        while not turn.acquire(timeout=0.1):
            progress.step(0, 0)
        try:
            if self._last is None or self._last[0] != key:
                self._last = None  # never two in memory at once
                use = build(self._stats.store, Decoder().decode(Rules, query["rules"]), progress)
                limit = (
                    None if query["limit"] is None else (float(query["limit"][0]), float(query["limit"][1]))
                )
                at = [float(time) for time in query["breaks"]]
                waits = self._stats.causality(use, progress)
                self._last = key, prepared(self._stats, use, progress, waits, limit, at)
            return self._last[1]
        finally:
            turn.release()


def rerun(
    store: TraceStore,
    use: Utilization,
    progress: Progress | None = None,
    *,
    causality: Causality | None = None,
    limit: tuple[float, float] | None = None,
    breakpoints: Sequence[float] = (),
) -> Rerun | RerunThere:
    """A run to be replayed where its events are, here or there; parameters and errors as for `Rerun`."""
    if store.elsewhere is not None:
        return RerunThere(store, use, progress, limit=limit, breakpoints=breakpoints)
    return prepared(Statistics(store), use, progress, causality, limit, breakpoints)


def would_help_most(program: Rerun | RerunThere, progress: Progress) -> tuple[Help, ...]:
    """`helps` for a run here or there."""
    return program.helps(progress) if isinstance(program, RerunThere) else helps(program, progress)


def _parted(content: bytes, sizes: Sequence[int]) -> list[Floats]:
    """The arrays of an answer."""
    values = np.frombuffer(content, "<f8").astype(np.float64)
    if sum(sizes) != values.size or min(sizes) < 0 or len(sizes) != 4 or not np.isfinite(values).all():
        raise ValueError("its numbers are none")
    return np.split(values, np.cumsum(sizes)[:-1])


def _help(plain: JSON) -> Help:
    return Help(
        str(plain["kind"]),
        printable(str(plain["title"]), 500),
        printable(str(plain["assumption"]), 500),
        Decoder().decode(Changes, plain["changes"]),
        _time(plain["duration_s"]),
        _time(plain["before_s"]),
    )


def _time(value: float) -> float:
    """A valid number of seconds."""
    seconds = float(value)
    if not 0 <= seconds < 1e300:
        raise ValueError("no time")
    return seconds
