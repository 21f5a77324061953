"""Files of plain values: projects, and what is kept for recovery.

A file is JSON with sorted keys: ``format``, ``schema`` and the tree, a dataclass of dataclasses. Reading runs
nothing: it makes objects of the declared classes and no others, and all that is not as declared is a problem
with the path of its key. Paths are kept relative to the file's folder, so that a folder may move as a whole.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import types
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from desktop.data.archive import unpack
from desktop.data.atomic import PartFile, place_of, write_bytes, write_text
from desktop.data.experiment import DESCRIPTION
from desktop.data.reading import head, plain
from desktop.errors import ProjectError, reason
from desktop.progress import Progress

SUFFIX = ".phasewright"
PROJECT, RECOVERY = "phasewright project", "phasewright recovery"
SCHEMA = 3


def _with_settings(content: dict[str, Any]) -> dict[str, Any]:
    """Experiments and tables were paths; now they have settings."""
    for workspace in (content.get("tree"), *_inside(content.get("tree"), "workspace")):
        for kind in ("experiments", "tables"):
            for paths in _inside(workspace, kind):
                if isinstance(paths, list):
                    workspace[kind] = [{"path": path} for path in paths]
    return content


def _inside(tree: Any, key: str) -> tuple[Any, ...]:
    """What a tree has under a key, if it is as a tree should be: a stranger's may be anything."""
    return (tree[key],) if isinstance(tree, dict) and key in tree else ()


#: From the schema of an older file to the next one.
MIGRATIONS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {
    1: _with_settings,
    # Only keys more: the limit of the analysis, degrees of phases.
    2: dict,
}
#: Bytes of a project file; annotations of a lifetime are far fewer.
LIMIT = 1 << 26
#: Numbers are smaller than this, so that the difference of any two is one.
LARGEST = 1e300
#: Problems that are listed in the sentence; all are in `ProjectError.problems`.
_NAMED = 3

Tree = TypeVar("Tree")


def is_project(path: Path) -> bool:
    """Whether a file is a project, by its first bytes."""
    try:
        first = head(path, 200)
    except OSError:
        return False
    return f'"format": "{PROJECT}"'.encode() in first


def digest_of(path: Path) -> str:
    """By what a file or folder is known again: the SHA-256 of its content; "" where it cannot be read.

    Of an experiment that of its description; of another folder, of all files in it.
    """
    found = hashlib.sha256()
    try:
        if (path / DESCRIPTION).is_file():
            path = path / DESCRIPTION
        for file in sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else (path,):
            with plain(file).open("rb") as opened:
                found.update(hashlib.file_digest(opened, "sha256").digest())
    except OSError:
        return ""
    return found.hexdigest()


def backup_of(path: Path) -> Path:
    """Where `write` keeps the version before."""
    return path.with_name(f"{path.name}~")


def write(path: Path, tree: Any, form: str = PROJECT, *, backup: bool = True) -> None:
    """Write a tree of dataclasses; the file is there whole or as it was before, whenever the process stops.

    Raises
    ------
    OSError : it cannot be written.
    ProjectError : it holds a number that `read` would refuse.
    """
    path = place_of(path.absolute())
    content = {"format": form, "schema": SCHEMA, "tree": encode(tree, path.parent)}
    # Escapes also keep names whose bytes are no text.
    text = json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n"
    if backup and path.exists():
        write_bytes(backup_of(path), path.read_bytes())
    write_text(path, text)


def read(
    path: Path,
    kind: type[Tree],
    names: Mapping[str, Any] | None = None,
    form: str = PROJECT,
    *,
    closed: bool = False,
) -> Tree:
    """Read what `write` has written.

    Parameters
    ----------
    kind : the dataclass of the tree. A class may have a method ``problem() -> str``: what is wrong with its
        values, or nothing.
    names : classes that annotations name but their modules do not import.
    closed : nothing outside of the file's folder may be named, as in a bundle.

    Raises
    ------
    ProjectError : it cannot be read, is no project, of a newer version, or not as declared.
    """
    path = Path(os.path.realpath(path)) if path.is_symlink() else path.absolute()
    try:
        if path.stat().st_size > LIMIT:
            raise ProjectError(f"is larger than {LIMIT >> 20} MiB, the limit for a project", file=path)
        content = json.loads(plain(path).read_text(encoding="utf-8"), parse_constant=_no_number)
    except OSError as error:
        raise ProjectError(f"cannot be read ({reason(error)})", file=path) from None
    except (ValueError, RecursionError) as error:
        raise ProjectError(
            "is no project or damaged",
            file=path,
            where=f"line {error.lineno}" if isinstance(error, json.JSONDecodeError) else "",
            hint=f"the version before is in {backup_of(path).name}" if backup_of(path).exists() else "",
        ) from None
    if not isinstance(content, dict) or content.get("format") != form:
        raise ProjectError(f"is no {form}", file=path)
    schema = content.get("schema")
    if type(schema) is not int or schema < 1:
        raise ProjectError(f"has no valid schema number ({schema!r})", file=path)
    if schema > SCHEMA:
        raise ProjectError(
            f"was written by a newer version (schema {schema}, this version reads up to {SCHEMA})",
            file=path,
            hint="update Phasewright",
        )
    while schema < SCHEMA:
        content = MIGRATIONS[schema](content)
        schema += 1
    problems = [f"{key} is not known" for key in sorted(content.keys() - {"format", "schema", "tree"})]
    tree = _Decoder(path.parent, problems, names or {}, closed).decode(kind, content.get("tree"), "tree")
    if problems:
        more = f"; and {len(problems) - _NAMED} more" if len(problems) > _NAMED else ""
        raise ProjectError(
            f"is not as a project should be: {'; '.join(problems[:_NAMED])}{more}",
            file=path,
            problems=tuple(problems),
        )
    return tree


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number")


# --- plain values


def encode(value: Any, folder: Path, place: str = "tree") -> Any:
    """Lists, dictionaries, text and numbers for a tree; paths relative to `folder` where they can be.

    A field that holds no number (NaN) and does so at first is left out: JSON has no word for it.

    Raises
    ------
    ProjectError : a number that `read` would refuse.
    """
    if is_dataclass(value):
        held = ((f, getattr(value, f.name)) for f in fields(value))
        return {
            f.name: encode(one, folder, f"{place}.{f.name}")
            for f, one in held
            if not (_is_nan(one) and _is_nan(f.default))
        }
    if isinstance(value, Enum):
        return value.name.lower()
    if isinstance(value, Path):
        try:
            return PurePosixPath(*Path(os.path.relpath(value, folder)).parts).as_posix()
        except ValueError:  # on another drive
            return value.as_posix()
    if isinstance(value, tuple):
        return [encode(item, folder, f"{place}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, frozenset):
        return sorted(encode(item, folder, place) for item in value)
    if isinstance(value, dict):
        return {key: encode(item, folder, f"{place}.{key}") for key, item in value.items()}
    if isinstance(value, float) and not abs(value) < LARGEST:
        raise ProjectError(
            f"the project cannot be saved: {place} is {value}, numbers in it are below {LARGEST:g}",
            hint="change it there",
        )
    return value


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


@cache
def _hints(kind: type[Any], names: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    return get_type_hints(kind, localns=dict(names))


class _Wrong(Exception):
    """A value is not as declared; said already."""


class _Decoder:
    def __init__(self, folder: Path, problems: list[str], names: Mapping[str, Any], closed: bool) -> None:
        self._folder, self._problems, self._closed = folder, problems, closed
        self._names = tuple(names.items())

    def decode(self, kind: Any, value: Any, place: str) -> Any:
        """The value as a `kind`, or None and one problem more."""
        try:
            return self._made(kind, value, place)
        except _Wrong:
            return None

    def _wrong(self, place: str, value: Any, wanted: str) -> _Wrong:
        try:
            shown = json.dumps(value, ensure_ascii=False)
        except RecursionError:  # a little less deep than what can be read at all
            shown = "[…]"
        self._problems.append(f"{place} is {shown[:40]}{'…' if len(shown) > 40 else ''}, {wanted}")
        return _Wrong()

    def _made(self, kind: Any, value: Any, place: str) -> Any:
        origin, arguments = get_origin(kind), get_args(kind)
        if is_dataclass(kind) and isinstance(kind, type):
            return self._record(kind, value, place)
        if origin in (Union, types.UnionType):
            if value is None and type(None) in arguments:
                return None
            (one,) = (a for a in arguments if a is not type(None))
            return self._made(one, value, place)
        if origin is Literal:
            if value not in arguments or type(value) is bool:
                raise self._wrong(place, value, f"allowed are {', '.join(map(str, arguments))}")
            return value
        if origin in (tuple, frozenset):
            return self._list(kind, value, place)
        if origin is dict:
            if not isinstance(value, dict):
                raise self._wrong(place, value, "it must be an object")
            return {key: self.decode(arguments[1], item, f"{place}.{key}") for key, item in value.items()}
        return self._plain(kind, value, place)

    def _plain(self, kind: Any, value: Any, place: str) -> Any:
        if isinstance(kind, type) and issubclass(kind, Enum):
            members = {member.name.lower(): member for member in kind}
            if not isinstance(value, str) or value not in members:
                raise self._wrong(place, value, f"allowed are {', '.join(members)}")
            return members[value]
        if kind is Path:
            if not isinstance(value, str) or not value or "\0" in value:
                raise self._wrong(place, value, "it must be a path")
            found = Path(os.path.normpath(self._folder / value))
            if self._closed and not found.is_relative_to(self._folder):
                raise self._wrong(place, value, "it must be inside of the bundle")
            return found
        if kind is float and type(value) in (int, float) and abs(value) < LARGEST:
            return float(value)
        if kind in (int, str, bool) and type(value) is kind:
            return value
        raise self._wrong(place, value, f"it must be of type {kind.__name__}")

    def _list(self, kind: Any, value: Any, place: str) -> Any:
        origin, arguments = get_origin(kind), get_args(kind)
        if not isinstance(value, list):
            raise self._wrong(place, value, "it must be a list")
        if origin is frozenset or arguments[-1] is Ellipsis:
            each: Iterable[Any] = (arguments[0] for _ in value)
        elif len(value) != len(arguments):
            raise self._wrong(place, value, f"it must be a list of {len(arguments)}")
        else:
            each = arguments
        found = [
            self.decode(one, item, f"{place}[{i}]")
            for i, (one, item) in enumerate(zip(each, value, strict=True))
        ]
        return frozenset(found) if origin is frozenset else tuple(found)

    def _record(self, kind: type[Any], value: Any, place: str) -> Any:
        if not isinstance(value, dict):
            raise self._wrong(place, value, "it must be an object")
        before = len(self._problems)
        hints = _hints(kind, self._names)  # type: ignore[arg-type]  # a class is hashable
        known = {f.name: f for f in fields(kind)}
        self._problems += [f"{place}.{key} is not known" for key in sorted(value.keys() - known.keys())]
        made = {}
        for name, f in known.items():
            if name in value:
                made[name] = self.decode(hints[name], value[name], f"{place}.{name}")
            elif f.default is MISSING and f.default_factory is MISSING:
                self._problems.append(f"{place}.{name} is missing")
        if len(self._problems) > before:
            raise _Wrong
        record = kind(**made)
        problem = record.problem() if hasattr(record, "problem") else ""
        if problem:
            self._problems.append(f"{place}: {problem}")
            raise _Wrong
        return record


# --- bundles

#: The project in a bundle.
BUNDLED = f"project{SUFFIX}"


def is_bundle(path: Path) -> bool:
    """Whether a file is a bundle, by its content."""
    try:
        with zipfile.ZipFile(path) as packed:
            return BUNDLED in packed.namelist()
    except (OSError, zipfile.BadZipFile, NotImplementedError, ValueError):
        return False


def pack(target: Path, folder: Path, files: Mapping[str, Path], progress: Progress) -> None:
    """Make a bundle of the project ``folder/BUNDLED`` and of `files`, by their names in it.

    Raises
    ------
    OSError : a file cannot be read or the bundle not be written.
    Cancelled : by `progress`; nothing is left behind.
    """
    every = {BUNDLED: folder / BUNDLED, **files}
    total = sum(path.stat().st_size for path in every.values())
    with PartFile(target.absolute()) as part:
        done = 0
        with zipfile.ZipFile(part.part, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
            for name, path in every.items():
                # Stores are compressed already.
                how = zipfile.ZIP_STORED if path.suffix == ".h5" else zipfile.ZIP_DEFLATED
                entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
                entry.compress_type, entry.external_attr = how, 0o644 << 16
                entry.file_size = path.stat().st_size
                with path.open("rb") as source, packed.open(entry, "w") as sink:
                    while piece := source.read(1 << 20):
                        progress.step(done, total, "packing")
                        sink.write(piece)
                        done += len(piece)


def unpack_bundle(bundle: Path, folder: Path, progress: Progress) -> Path:
    """Unpack into `folder`, an empty one, with the limits and refusals of every archive; the project in it.

    Raises
    ------
    TraceFormatError : see `desktop.data.archive.unpack`.
    Cancelled : by `progress`.
    """
    unpack(bundle, folder, progress)
    return folder / BUNDLED
