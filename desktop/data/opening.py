"""Any source becomes a store once and is found again: detect, import, check the clocks, store the curve."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

import numpy as np
from platformdirs import user_cache_path

from desktop.core.plain import JSON
from desktop.core.units import brief
from desktop.core.units import count as number_of
from desktop.data import importers
from desktop.data.archive import is_archive, unpack
from desktop.data.atomic import WorkFolder, lock_file, place_of, scratch_folder
from desktop.data.clock import ClockResult, check_clocks
from desktop.data.consistency import CUT_OFF, RARE, NestingDigest, judge
from desktop.data.events import Importer
from desktop.data.farm import Cluster, Farm, cores
from desktop.data.importers import curve
from desktop.data.matching import links_of
from desktop.data.parts import (
    DIGESTS,
    Part,
    curves,
    name_apart,
    read_parts,
    set_apart,
    steps_of,
    unreadable,
)
from desktop.data.sources import opens, traces_in
from desktop.data.store import (
    SCHEMA,
    SUFFIX,
    ClockSummary,
    Source,
    StoreWriter,
    TraceStore,
    is_store,
    open_store,
)
from desktop.data.utilization import UtilizationWriter
from desktop.errors import DesktopError, StoreError, TraceFormatError, explained, reason
from desktop.progress import Cancelled, Progress, Share
from desktop.remote import RemotePath

#: Bytes hashed at once: each time the thread waits for the interpreter's lock.
_HASHED_AT_ONCE = 1 << 23
#: Up to this share of message ends without a partner, records are lost; above, the tracer omits them.
FEW_LONELY = 0.1

#: Bytes of all sources from which one process per source saves more than its start costs.
SIDE_BY_SIDE = 1 << 24
#: Bytes of a trace from which its locations are divided among processes, and number of cores from which this
#: is done by default: reading in parts and combining them takes two thirds more processor time, and one
#: process alone keeps two cores busy.
DIVIDED = 1 << 28
DIVIDED_AMONG = 4

#: Path, size in bytes and modification time in ns of every file of a source.
Stamp = list[tuple[str, int, int]]


# Many: what a source can be opened with.
def open_trace(
    path: Path,
    progress: Progress | None = None,
    *,
    format_id: str | None = None,
    force: bool = False,
    output: Path | None = None,
    time_unit: str = "s",
    workers: int | None = None,
    scheduler: str | None = None,
    member: str | None = None,
) -> TraceStore:
    """The store of a trace. A source that is not a store is imported first, unless it was before.

    Parameters
    ----------
    path : a store, a source of any format, or an archive (.tar, .tar.gz, .zip, ...) or folder that contains
        one; if it is on another machine (`desktop.remote.place`), it is imported there.
    format_id : one of `desktop.data.importers.FORMATS`; None: detected from the content.
    force : import again even if the store of an earlier import is up to date.
    output : path of the store; None: in the user's cache.
    time_unit : of the times in a curve file, and of an OTF trace that does not define it: one of
        `desktop.data.events.UNITS`.
    workers : processes among which the locations of a large trace are divided; None: one per core, if there
        are enough cores to save time. The store does not depend on it.
    scheduler : address of a `dask.distributed` scheduler (``tcp://host:8786``), whose workers read the
        locations instead; they must see the source and the folder of the store at the same paths. Formats
        that cannot be divided are read by this process.
    member : the trace to open in an archive or folder that holds several, by its path there.

    Raises
    ------
    TraceFormatError : nothing usable can be read from the source; its `choices` are the traces in an archive
        or folder of several.
    StoreError : the store cannot be read or written.
    DesktopError : the process or the cluster that read it failed, twice.
    Cancelled : by `progress`; nothing is left behind.
    """
    about: JSON = {
        "format_id": format_id, "force": force, "time_unit": time_unit, "member": member
    }  # fmt: skip
    if isinstance(path, RemotePath):
        from desktop.data.remote import copy_remote, open_remote

        about |= {"workers": workers, "scheduler": scheduler}
        if output is None:
            return open_remote(path, progress or Progress(), about)
        return open_store(copy_remote(path, progress or Progress(), about, output))
    stored = _stored(Path(path), output, progress or Progress(), _workers(workers, scheduler), **about)
    return open_store(stored) if isinstance(stored, Path) else stored


def _stored(
    path: Path,
    output: Path | None,
    progress: Progress,
    how: _Workers,
    *,
    format_id: str | None = None,
    force: bool = False,
    time_unit: str = "s",
    member: str | None = None,
) -> TraceStore | Path:
    """As `open_trace`, but a store that was only just written is not opened."""
    path = path.absolute()
    if format_id is None and is_store(path):
        return open_store(path)
    source = _chosen(path, progress, format_id, time_unit, member)
    stamp = source.stamp()
    target = _cached(source, stamp) if output is None else place_of(Path(output).absolute())
    if target.exists() and not force:
        existing = _existing(target, source, stamp, replaceable=output is None)
        if existing is not None:
            return existing
    if output is None:
        _make_cache(target)
    try:
        _import(source, target, stamp, progress, how)
    except DesktopError as error:
        error.file = error.file or str(source.path)  # a process that died cannot name what it read
        raise
    if output is None:
        _drop_superseded(target)
    return target


def files_of(
    path: Path, progress: Progress, format_id: str | None, time_unit: str, member: str | None
) -> list[tuple[Path, int]]:
    """The files that `open_trace` would read, links followed, and their bytes.

    Raises
    ------
    DesktopError : nothing usable can be read from the source.
    """
    path = path.absolute()
    if format_id is None and is_store(path):
        return [(path.resolve(), path.stat().st_size)]
    stamp = _chosen(path, progress, format_id, time_unit, member).stamp()
    return [(Path(name), size) for name, size, _ in stamp]


def _chosen(
    path: Path, progress: Progress, format_id: str | None, time_unit: str, member: str | None
) -> _Source:
    """The source to open; of a folder that is no trace itself the trace in it."""
    if path.is_dir() and not opens(path):
        path, member = _trace_in(path, "a folder", format_id, member, progress), None
    return _Source(path, format_id, time_unit, member)


def import_all(
    sources: Sequence[tuple[Path, Path | None]], progress: Progress | None = None, **options: Any
) -> list[Path | Exception]:
    """Import several sources, in parallel on the available cores if that saves time.

    Parameters
    ----------
    sources : path of each, and path of its store (None: in the cache).
    options : `format_id`, `force`, `time_unit` and `scheduler` as for `open_trace`.

    Returns
    -------
    The store of each, or the exception: `Cancelled` if `progress` stopped it before it was complete. A source
    that fails, or whose process dies, does not stop the others.
    """
    progress = progress or Progress()
    workers = min(cores(), len(sources))
    on_cluster = options.get("scheduler") is not None  # which divides each source
    if workers > 1 and not on_cluster and sum(_size(path) for path, _ in sources) >= SIDE_BY_SIDE:
        options = options | {"workers": _worthwhile(cores() // workers)}
        tasks = [(path, output, options) for path, output in sources]
        with scratch_folder() as folder, Farm(folder, workers) as farm:
            with suppress(Cancelled):  # some may be complete nevertheless
                farm.run(_import_one, tasks, progress, "importing")
            return [_outcome(farm.ended.get(i), path) for i, (path, _) in enumerate(sources)]
    outcomes: list[Path | Exception] = []
    for number, (path, output) in enumerate(sources):
        share = Share(progress, number / len(sources), (number + 1) / len(sources))
        try:
            outcomes.append(_import_one(path, output, options, share))
        except Cancelled as stopped:
            return [*outcomes, *[stopped] * (len(sources) - number)]
        except (DesktopError, OSError, ValueError, MemoryError) as error:
            outcomes.append(error)
    return outcomes


def _worthwhile(processes: int) -> int:
    """`processes`, among which a trace may be divided, or one if so few save no time."""
    return processes if processes >= DIVIDED_AMONG else 1


def _import_one(path: Path, output: Path | None, options: JSON, progress: Progress) -> Path:
    options = dict(options)
    if isinstance(path, RemotePath):
        from desktop.data.remote import copy_remote

        return copy_remote(path, progress, options, output)
    how = _workers(options.pop("workers", None), options.pop("scheduler", None))
    stored = _stored(path, output, progress, how, **options)
    if isinstance(stored, Path):
        return stored
    with stored as store:
        return store.path


def _outcome(done: Future[Path] | None, source: Path) -> Path | Exception:
    if done is None or done.cancelled():
        return Cancelled()
    error = done.exception()
    if error is None:
        return done.result()
    if not isinstance(error, Exception):
        raise error
    if isinstance(error, DesktopError) and error.file is None:
        error.file = str(source)
    return error


def _size(path: Path) -> int:
    """Bytes of a source, 0 if unknown."""
    try:
        return sum(size for _, size, _ in _Source(path.absolute(), None, "s").stamp())
    except DesktopError:
        return 0


def _trace_in(
    folder: Path,
    kind: str,
    format_id: str | None,
    member: str | None,
    progress: Progress,
    file: Path | None = None,
) -> Path:
    """The trace in a folder, of several the one named by `member`. Errors call it `kind`, and `file`."""
    inside = traces_in(folder, progress).traces
    if format_id:
        inside = [(trace, importer) for trace, importer in inside if importer.id == format_id]
    # Two columns of numbers beside a trace are notes, not a curve.
    inside = [one for one in inside if one[1].id != curve.IMPORTER.id] or inside
    if len(inside) == 1:
        return inside[0][0]
    names = [trace.relative_to(folder).as_posix() for trace, _ in inside]
    if member:
        if member in names:
            return inside[names.index(member)][0]
        raise TraceFormatError(f"is {kind} without a trace {member!r}", file=file or folder)
    if not names:
        raise TraceFormatError(
            f"is {kind} without a trace that can be imported",
            file=file or folder,
            hint=f"known are: {', '.join(importers.importer(name).title for name in importers.FORMATS)}",
        )
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    raise TraceFormatError(
        f"is {kind} of several traces ({', '.join(names[:5])}{more})",
        file=file or folder,
        hint="open one of them" if file is None else "unpack it and open one of them",
        choices=tuple(names),
    )


class _Source:
    """The source to open: a trace, or an archive whose contents are unknown yet."""

    def __init__(self, path: Path, format_id: str | None, time_unit: str, member: str | None = None) -> None:
        if not path.exists():
            raise TraceFormatError("does not exist", file=path)
        self.path = path
        self._format_id, self._time_unit, self._member = format_id, time_unit, member
        self._packed = is_archive(path)
        if member and not self._packed:
            raise TraceFormatError(f"is no archive and holds no {member!r}", file=path)
        self._importer = None if self._packed else self._choose(path)

    @property
    def place(self) -> Path:
        """Path of the trace: the source itself, or the chosen member of it."""
        return self.path / self._member if self._member else self.path

    @property
    def importers(self) -> list[tuple[str, str]]:
        """Id and version of the importers that may read it."""
        if self._importer:
            possible = [self._importer]
        elif self._time_unit != "s":
            possible = [
                one.in_unit(self._time_unit)
                for name in importers.FORMATS
                if (one := importers.importer(name)).takes_unit and self._format_id in (None, name)
            ]
        else:
            names = importers.FORMATS if self._format_id is None else (self._format_id,)
            possible = [importers.importer(name) for name in names]
        return [(importer.id, importer.version) for importer in possible]

    def stamp(self) -> Stamp:
        """Path and state of its files; a member of an archive changes with the archive."""
        try:
            stamp = []
            folders: dict[Path, Path] = {}  # resolved once each: a trace may have 10^5 files in one
            for file in self._importer.files(self.path) if self._importer else [self.path]:
                status = file.stat()
                folder = file.parent
                if folder not in folders:
                    folders[folder] = folder.resolve()
                place = file.resolve() if file.is_symlink() else folders[folder] / file.name
                if self._member:
                    place /= self._member
                stamp.append((str(place), status.st_size, status.st_mtime_ns))
            return stamp
        except OSError as error:
            raise TraceFormatError(
                f"cannot be read ({reason(error)})", file=error.filename or self.path
            ) from None

    @contextmanager
    def unpacked(self, target: Path, progress: Progress) -> Iterator[tuple[Path, Importer, Progress]]:
        """The trace, its importer, and the rest of the progress. An archive is unpacked beside `target`
        meanwhile."""
        if self._importer:
            yield self.path, self._importer, progress
            return
        with _work_folder(target) as work:
            folder = work / "unpacked"
            folder.mkdir()
            unpack(self.path, folder, Share(progress, 0.0, 0.1))
            try:
                searched = Share(progress, 0.1, 0.1)
                trace = _trace_in(folder, "an archive", self._format_id, self._member, searched, self.path)
                yield trace, self._choose(trace), Share(progress, 0.1, 1.0)
            except TraceFormatError as error:
                # The temporary folder is unknown to the user; the place in the archive says more.
                if error.file and Path(error.file).is_relative_to(folder):
                    error.file = str(self.path / Path(error.file).relative_to(folder))
                raise

    def _choose(self, path: Path) -> Importer:
        importer = importers.detect(path) if self._format_id is None else importers.importer(self._format_id)
        try:
            return importer.in_unit(self._time_unit)
        except ValueError:
            raise TraceFormatError(
                f"is of the kind {importer.title}, which says its own unit of time",
                file=path,
                hint="leave the unit of time out",
            ) from None


def _work_folder(target: Path) -> WorkFolder:
    hint = "choose another folder or make room"
    with explained(StoreError, "cannot be written", file=target, hint=hint):
        return WorkFolder(target)


# --- the store of an earlier import ---


def _cached(source: _Source, stamp: Stamp) -> Path:
    """Path of the store in the cache: one name for the place of the source, and one for its state."""
    place = _digest([name for name, _, _ in stamp])
    state = _digest([SCHEMA, source.importers, stamp])
    folder = user_cache_path("phasewright", appauthor=False) / "imports"
    return folder / f"{source.path.stem[:60]}-{place}-{state}{SUFFIX}"


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode("utf-8", "surrogateescape")).hexdigest()[:12]


def _existing(target: Path, source: _Source, stamp: Stamp, *, replaceable: bool) -> TraceStore | None:
    """The store at `target` if it holds this source; None if it may be replaced."""
    try:
        store = open_store(target)
    except StoreError as error:
        if replaceable:
            return None
        raise StoreError(
            "exists and is no imported trace", file=target, hint="choose another name, or force to replace it"
        ) from error
    same = (store.importer.id, store.importer.version) in source.importers
    if same and store.source.files == stamp:
        return store
    store.close()
    return None


def _make_cache(target: Path) -> None:
    hint = "choose with -o a place for the imported file"
    with explained(StoreError, "the cache cannot be made", file=target.parent, hint=hint):
        target.parent.mkdir(parents=True, exist_ok=True)


def _drop_superseded(target: Path) -> None:
    """Remove stores of former states of the source from the cache, but those that a process has open: it may
    open them again."""
    place = target.name.rsplit("-", 1)[0].rsplit("-", 1)[1]
    for other in target.parent.glob(f"*-{place}-*{SUFFIX}"):
        if other != target:
            with suppress(OSError):
                with other.open("rb") as file:
                    unused = lock_file(file.fileno())
                if unused:
                    other.unlink()


# --- import ---


class _Workers(NamedTuple):
    """How locations are read: in so many processes, or on a cluster."""

    workers: int
    scheduler: str | None

    def farm(
        self, importer: Importer, trace: Path, folder: Callable[[], Path], progress: Progress
    ) -> Farm | None:
        """The farm that reads the trace in parts; None if it is not divided. `folder` creates its folder."""
        if importer.divisible and self.scheduler is not None:
            return Cluster(folder(), self.scheduler, progress)
        if importer.divisible and self.workers > 1 and _bytes(importer.files(trace)) >= DIVIDED:
            return Farm(folder(), self.workers)
        return None


def _workers(workers: int | None, scheduler: str | None) -> _Workers:
    return _Workers(_worthwhile(cores()) if workers is None else workers, scheduler)


def _import(source: _Source, target: Path, stamp: Stamp, progress: Progress, workers: _Workers) -> None:
    about = Source(str(source.place), source.place.name, sum(size for _, size, _ in stamp), files=stamp)
    files = [Path(name) for name, _, _ in stamp] if source.place == source.path else [source.path]
    with (
        _hashing(files) as digest,
        source.unpacked(target, progress) as (trace, importer, left),
        ExitStack() as stack,
        StoreWriter(target, about, importer, (*DIGESTS, NestingDigest)) as writer,
    ):
        farm = workers.farm(importer, trace, lambda: stack.enter_context(_work_folder(target)), left)
        parts = None
        if farm is not None:
            stack.enter_context(farm)
            parts = read_parts(trace, importer, farm, writer, stack, Share(left, 0.0, 0.7))
        if parts is None:
            try:
                importer.read(trace, writer, Share(left, 0.0, 0.8))
            except OSError as error:
                raise unreadable(error, trace) from error
        set_apart(writer)
        name_apart(writer)
        followed = next(one for one in writer.digests if isinstance(one, NestingDigest))
        judge(writer, writer.report, Share(left, 0.8, 0.85), followed)
        # Most clocks agree, so the curve does not wait for their comparison.
        with _curve(writer, Share(left, 0.85, 1.0), parts, farm) as curve:
            with links_of(writer) as links:
                result = check_clocks(writer, _Between(Share(left, 0.85, 0.85), curve), links.add)
            if not writer.repair:  # the shifts do not affect the curve
                curve.tell()
            _apply(result, writer)
            if writer.repair and (result.shift.any() or result.drift.any()):
                curve.forget()
                with _curve(writer, Share(left, 0.85, 1.0), parts, farm) as mended:
                    mended.tell()
            elif writer.repair:
                curve.tell()
        while not wait((digest,), 0.05).done:
            progress.step(1.0, 1.0, "source hash")
        about.sha256 = digest.result()
        if source.stamp() != stamp:
            writer.report.add(
                "source changed", "notice", "The source was changed while it was imported; import it again."
            )


def _curve(
    writer: StoreWriter, progress: Progress, parts: Sequence[Part] | None, farm: Farm | None
) -> UtilizationWriter:
    partial = curves(parts, farm, writer, Share(progress, 0.0, 2 / 3)) if farm and parts else []
    steps = None if parts else steps_of(writer)
    return UtilizationWriter(writer, Share(progress, 2 / 3 if partial else 0.0, 1.0), partial, steps)


class _Between(Progress):
    """Progress that puts a curve into the store between the steps of other work."""

    def __init__(self, whole: Progress, curve: UtilizationWriter) -> None:
        super().__init__()
        self._whole, self._curve = whole, curve

    def step(self, done: float, total: float, text: str = "") -> None:
        self._whole.step(done, total, text)
        self._curve.some()


def _bytes(files: Sequence[Path]) -> int:
    total = 0
    for file in files:
        with suppress(OSError):
            total += file.stat().st_size
    return total


def _apply(result: ClockResult, writer: StoreWriter) -> None:
    """Store the repair, and report the findings. By default it is applied if the importer recommends it."""
    repair = zip(result.shift, result.drift, result.origin, result.off, strict=True)
    for location, (shift, drift, origin, off) in zip(writer.locations, repair, strict=True):
        location.shift, location.drift, location.origin = int(shift), float(drift), int(origin)
        location.half_width = float(off)
    repaired = result.repair in ("shift", "linear")
    applied = repaired and writer.repair
    after = result.after if applied else result.before
    unit = 1.0 / writer.ticks_per_second
    writer.clock = ClockSummary(
        checked=result.collectives + result.messages,
        violations_before=result.before.checks,
        violations_after=after.checks,
        repair="none" if repaired and not applied else result.repair,
        details={
            "collectives": result.collectives,
            "messages": result.messages,
            "collectives_before": result.before.collectives,
            "messages_before": result.before.messages,
            "collectives_after": after.collectives,
            "messages_after": after.messages,
            "most_before_s": result.before.most * unit,
            "most_after_s": after.most * unit,
            "possible": result.repair,
            # With the possible repair, whether it is applied or not.
            "most_repaired_s": result.after.most * unit,
            "repaired": result.after.checks,
        },
    )
    # A program must receive what it was sent (MPI 4.1, 11.2.2); a tracer that omits ends omits them
    # everywhere. What was on its way to a killed process has no other end.
    cut = any(location.damage == CUT_OFF for location in writer.locations)
    for ends, other, count in zip(("sends", "receives"), ("receive", "send"), result.unmatched, strict=True):
        few = not cut and count <= FEW_LONELY * (result.messages + count)
        if count:
            writer.report.add(
                f"{ends} without partner",
                "loss" if few else "notice",
                f"There are {ends} for which no {other} was found in the trace."
                + (" Nearly all others have one, so records are missing or changed." if few else ""),
                count=count,
            )
    if 0 < result.disagreeing <= max(1, RARE * result.collectives):
        writer.report.add(
            "roots of collectives",
            "loss",
            "Members of a collective operation name different roots; records are missing or changed.",
            count=result.disagreeing,
        )
    if result.unequal:
        writer.report.add(
            "messages of unequal length",
            "notice",
            "The two ends of a message say different numbers of bytes; what was sent counts.",
            count=result.unequal,
        )
    if result.before.checks:
        before = result.before
        writer.report.add(
            "clocks contradict",
            "notice",
            f"The clocks contradict {_contradicted(result)}, by {brief(before.most * unit)} at most; "
            f"{_remedy(result, applied, unit)}.",
            count=before.checks,
        )


def _contradicted(result: ClockResult) -> str:
    """``6 of 6 collectives and 18 of 85 messages``; only what the trace has."""
    pairs = (
        (result.before.collectives, result.collectives, "collectives"),
        (result.before.messages, result.messages, "messages"),
    )
    return " and ".join(f"{wrong} of {of} {what}" for wrong, of, what in pairs if of)


def _remedy(result: ClockResult, applied: bool, unit: float) -> str:
    if result.repair == "impossible":
        return "neither shifts nor rates of the clocks repair that, so times are as recorded"
    if result.repair == "none":
        return (
            "that is too little to distinguish wrong clocks from readings that scatter, so times are as "
            "recorded"
        )
    steady, may_drift = (float(x.max(initial=0)) * unit for x in (result.off_if_steady, result.off))
    bounds = []
    if result.repair == "shift" and np.isfinite(steady):
        bounds.append(f"to {brief(steady)} if none drifts")
    if np.isfinite(may_drift):
        bounds.append(f"to {brief(may_drift)}" + " if some do" * bool(bounds))
    off = f"; then they agree {', '.join(bounds)}" if bounds else ""
    most = brief(float(np.abs(result.shift - result.shift[0]).max()) * unit)
    drifts, shift = "", f"a constant shift of up to {most}"
    if result.repair == "linear":
        rates = np.abs(result.drift - result.drift[0]).max() * 1e6
        shift = f"a shift of up to {most} and a rate of up to {rates:.3g} us in a second"
        drifts = "drifts and "
    if applied:
        left = number_of(result.after.checks, "contradiction") if result.after.checks else "no contradiction"
        return f"every clock {drifts}gets {shift}, which leaves {left}{off}"
    return f"{shift} of every clock could repair that, but the clock offsets of the trace itself are kept"


@contextmanager
def _hashing(files: Sequence[Path]) -> Iterator[Future[str]]:
    """SHA-256 (hexadecimal) of all files, one after the other, computed meanwhile; "" if the importer could
    read them but this cannot."""
    stop = Event()

    def digest() -> str:
        whole, room = hashlib.sha256(), memoryview(bytearray(_HASHED_AT_ONCE))
        try:
            for path in files:
                with path.open("rb", buffering=0) as file:
                    while not stop.is_set() and (count := file.readinto(room)):
                        whole.update(room[:count])
        except OSError:
            return ""
        return whole.hexdigest()

    with ThreadPoolExecutor(1, "source hash") as pool:
        try:
            yield pool.submit(digest)
        finally:
            stop.set()
