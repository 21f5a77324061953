"""Traces packed into one .tar, .tar.gz, .tar.bz2, .tar.xz or .zip.

An archive may come from anyone. Only plain files and folders are created, inside the given folder, and no
more or larger ones than the limits here allow.
"""

from __future__ import annotations

import lzma
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from io import BufferedIOBase, BufferedReader
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import NamedTuple

from desktop.data.lines import content_of, opener, unpacked_head
from desktop.data.reading import head
from desktop.errors import TraceFormatError, reason
from desktop.progress import Progress

#: Most files and folders in an archive; the largest OTF2 archives have two files per location.
MEMBERS = 1 << 20
#: Most bytes of all files together, unpacked.
UNPACKED = 1 << 40
#: Largest ratio of content to archive (gzip at its best: 1032), for contents above a size.
RATIO = 1000
RATIO_FROM = 1 << 26

_PIECE = 1 << 20
_BLOCK = 512
#: Most bytes of names and attributes of one member; more is an attempt to fill the memory.
_HEADER = 1 << 20
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_UNPACK_IT = "if you trust where it is from, unpack it yourself and open the trace in it"
_BROKEN = (
    *(EOFError, OSError, RuntimeError, NotImplementedError, ValueError),
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError),
)


def is_archive(path: Path) -> bool:
    """Whether a file is an archive of files, by its content."""
    try:
        first = head(path, _BLOCK)
    except OSError:
        return False
    if first.startswith(_ZIP):
        return True
    if opener(first):
        first = unpacked_head(path)[0][:_BLOCK]
    try:
        tarfile.TarInfo.frombuf(first, "utf-8", "surrogateescape")  # verifies the checksum of the header
    except tarfile.HeaderError:
        return False
    return True


def unpack(archive: Path, folder: Path, progress: Progress) -> None:
    """Unpack an archive into `folder`, which must be empty and used for nothing else.

    Raises
    ------
    TraceFormatError : it is damaged or encrypted, exceeds a limit (which is named), contains a link or a
        device, or a name that points out of `folder`. What was unpacked before remains there.
    """

    def refuse(what: str, member: str = "", hint: str = _UNPACK_IT) -> TraceFormatError:
        """`member`: the last one that was started."""
        return TraceFormatError(what, file=archive, where=f"at {member!r}" if member else "", hint=hint)

    unpacked = 0
    name = ""
    try:
        size = archive.stat().st_size
        with archive.open("rb") as raw:
            zipped = raw.read(4).startswith(_ZIP)
            raw.seek(0)
            for number, member in enumerate(_zipped(raw) if zipped else _tarred(raw), 1):
                name = member.name
                if member.fault:
                    raise refuse(f"is an archive with {member.fault}, which is not unpacked", name)
                place = _place(name)
                if place is None:
                    raise refuse("is an archive with a name that leads out of its folder", name)
                if number > MEMBERS:
                    raise refuse(f"is an archive of more than {MEMBERS} files, the limit")
                if unpacked + member.size > UNPACKED:
                    raise refuse(f"is an archive of more than {UNPACKED >> 30} GiB unpacked, the limit", name)
                if member.size > shutil.disk_usage(folder).free:
                    raise refuse(
                        f"has no room to be unpacked in {folder.parent}",
                        name,
                        "make room or choose another folder for the imported file",
                    )
                if not _is_litter(place):
                    target = folder / place
                    if member.read is None:
                        target.mkdir(parents=True, exist_ok=True)
                        continue
                    target.parent.mkdir(parents=True, exist_ok=True)
                    with target.open("wb") as file:
                        left = member.size
                        while left:
                            progress.step(raw.tell(), size, "unpacking")
                            piece = member.read(min(left, _PIECE))
                            if not piece:
                                raise EOFError(f"{left} bytes are missing")
                            file.write(piece)
                            left -= len(piece)
                            unpacked += len(piece)
                            if unpacked > RATIO_FROM and unpacked > RATIO * (size if zipped else raw.tell()):
                                raise refuse(
                                    f"is an archive whose content is more than {RATIO} times as large, the "
                                    "limit",
                                    name,
                                )
    except RecursionError:
        raise refuse("is an archive whose headers are nested without end", name) from None
    except _BROKEN as error:
        why = reason(error, "")
        if why:
            raise refuse(f"cannot be unpacked ({why})", name) from error
        raise refuse("is an archive that is cut or damaged", name, "copy it again") from error


class _Member(NamedTuple):
    """`read` gives the next bytes of a file, None for a folder; `fault`: its kind if it is neither."""

    name: str
    size: int = 0
    read: Callable[[int], bytes] | None = None
    fault: str = ""


def _tarred(raw: BufferedReader) -> Iterator[_Member]:
    stream = _Forward(content_of(raw))
    with tarfile.open(fileobj=stream, mode="r:", errorlevel=1) as tar:  # type: ignore[call-overload]  # needs no more than _Forward has
        while (member := tar.next()) is not None:
            tar.members.clear()  # or they would all be kept
            if member.isdir():
                yield _Member(member.name)
            elif not member.isreg() or member.issparse():
                yield _Member(member.name, fault=_kind_in_tar(member))
            else:
                stream.seek(member.offset_data)
                yield _Member(member.name, member.size, stream.read)
    # The module takes a damaged header for the end; the real end is a block of zeros, or the end of the file.
    if stream.last.strip(b"\0"):
        raise tarfile.ReadError("a header in it is damaged")


def _kind_in_tar(member: tarfile.TarInfo) -> str:
    if member.issym() or member.islnk():
        return "a link"
    return "a device" if member.isdev() else "a member that is no plain file"


def _zipped(raw: BufferedReader) -> Iterator[_Member]:
    with zipfile.ZipFile(raw) as packed:
        for member in packed.infolist():
            mode = member.external_attr >> 16
            if member.is_dir():
                yield _Member(member.filename)
            elif stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                yield _Member(member.filename, fault="a link" if stat.S_ISLNK(mode) else "a device")
            elif member.flag_bits & 1:
                yield _Member(member.filename, fault="an encrypted file")
            else:
                with packed.open(member) as file:
                    yield _Member(member.filename, member.file_size, file.read)


class _Forward:
    """A stream for `tarfile` that only moves forward, in pieces of bounded size."""

    def __init__(self, stream: BufferedIOBase) -> None:
        self._stream = stream
        self._at = 0
        self.last = b""

    def tell(self) -> int:
        return self._at

    def seek(self, to: int) -> int:
        while self._at < to:
            if not self.read(min(to - self._at, _PIECE)):
                raise EOFError("it ends early")
        return self._at

    def read(self, size: int) -> bytes:
        if size > _HEADER:
            raise tarfile.ReadError("a header in it is too large")
        self.last = self._stream.read(size)
        self._at += len(self.last)
        return self.last


def _place(name: str) -> PurePosixPath | None:
    """The relative path of a member; None if it leads anywhere else on any system."""
    path = PurePosixPath(name)
    strange = PureWindowsPath(name).drive or "\\" in name or "\0" in name
    return None if path.is_absolute() or ".." in path.parts or strange else path


def _is_litter(path: PurePosixPath) -> bool:
    """Whether it is a file that macOS adds beside others in archives, with the same suffixes."""
    return path.parts[:1] == ("__MACOSX",) or path.name.startswith("._")
