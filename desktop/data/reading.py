"""Reading files that somebody names: plain ones only. Pipes and devices would be waited for without end."""

from __future__ import annotations

from pathlib import Path

from desktop.errors import FileError


def alone(path: Path, suffix: str) -> Path | None:
    """The path itself; of a folder the only file of that suffix in it, if there is one alone."""
    if not path.is_dir():
        return path
    files = [file for file in path.iterdir() if file.suffix.lower() == suffix]
    return files[0] if len(files) == 1 else None


def head(path: Path, size: int) -> bytes:
    """Up to `size` bytes from the beginning, by which the kind of a file is told.

    Raises
    ------
    OSError : it cannot be read, or is a pipe or a device.
    """
    with plain(path).open("rb") as file:
        return file.read(size)


def plain(path: Path) -> Path:
    """The path of a file, if it is one that can be read without waiting.

    Raises
    ------
    FileError : it is a pipe or a device.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise FileError("it is a pipe or a device", file=path)
    return path
