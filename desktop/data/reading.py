"""Reading files named by the user: regular ones only, as reading pipes and devices could block for ever."""

from __future__ import annotations

from pathlib import Path

from desktop.errors import FileError


def alone(path: Path, suffix: str) -> Path | None:
    """The path itself; for a folder the only file with that suffix in it, if there is exactly one."""
    if not path.is_dir():
        return path
    files = [file for file in path.iterdir() if file.suffix.lower() == suffix]
    return files[0] if len(files) == 1 else None


def head(path: Path, size: int) -> bytes:
    """Up to `size` bytes from the beginning, which identify the kind of a file.

    Raises
    ------
    OSError : it cannot be read, or is a pipe or a device.
    """
    with plain(path).open("rb") as file:
        return file.read(size)


def plain(path: Path) -> Path:
    """The path of a file, if it can be read without blocking.

    Raises
    ------
    FileError : it is a pipe or a device.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise FileError("it is a pipe or a device", file=path)
    return path
