"""Dataclasses from plain values (JSON, TOML) and back: the one decoder of project files, and of descriptions
of experiments and stores.

Reading runs nothing: it creates objects of the declared classes and no others, and everything that does not
match the declarations is a problem with the path of its key. Not cattrs, which takes 0.13 s to import in
every command, nor msgspec, which reports only the first problem.
"""

from __future__ import annotations

import json
import math
import os
import types
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum, IntEnum
from itertools import count
from pathlib import Path, PurePosixPath
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from desktop.errors import DesktopError, ProjectError
from desktop.remote import RemotePath, place

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

#: Numbers are smaller than this, so that the difference of any two is finite.
LARGEST = 1e300
_TYPES: dict[object, str] = {int: "a whole number", str: "text", bool: "true or false", float: "a number"}

#: Problems listed in the error text; all are in `Misfit.problems`.
_NAMED = 3

#: Makes a value of a declared class, which its caller knows.
Make: TypeAlias = Callable[[object], Any]
Tree = TypeVar("Tree")


class Misfit(DesktopError, ValueError):
    """The value does not match the declaration. `problems`: all that is wrong, with paths of keys."""

    def __init__(self, problems: list[str]) -> None:
        more = f"; and {len(problems) - _NAMED} more" if len(problems) > _NAMED else ""
        super().__init__("; ".join(problems[:_NAMED]) + more)
        self.problems = tuple(problems)


class _Wrong(Exception):
    """`args[0]`: paths below the place where it is raised, as ``.runs[0].n``, and what is wrong there."""


def _wrong(value: object, expected: str) -> _Wrong:
    try:
        text = json.dumps(value, ensure_ascii=False)
    except RecursionError:  # nested almost as deep as can be read at all
        text = "[…]"
    return _Wrong([("", f" is {text[:40]}{'…' if len(text) > 40 else ''}, {expected}")])


class Decoder:
    """Makes values of declared classes, with functions that are made once for every declaration.

    A class may have a method ``problem() -> str``: what is wrong with its values, or "".

    Parameters
    ----------
    folder : of the file; paths in it are relative to it.
    names : classes that annotations use but their modules do not import.
    closed : whether paths must be inside of `folder`, as in a bundle.
    """

    def __init__(
        self, folder: Path = Path(), names: Mapping[str, object] | None = None, closed: bool = False
    ) -> None:
        self._folder, self._names, self._closed = folder, dict(names or {}), closed
        self._makers: dict[object, Make] = {}

    def decode(self, kind: type[Tree], value: object, place: str = "", also: Iterable[str] = ()) -> Tree:
        """The plain `value`, which is at `place`, as a `kind`.

        Raises
        ------
        Misfit : with all problems, those already known (`also`) first.
        """
        problems = list(also)
        try:
            decoded: Tree = self._maker(kind)(value)
        except _Wrong as wrong:
            problems += [(place + path).lstrip(".") + text for path, text in wrong.args[0]]
        if problems:
            raise Misfit(problems)
        return decoded

    def _maker(self, kind: object) -> Make:
        if kind not in self._makers:
            self._makers[kind] = lambda value: self._makers[kind](value)  # for a class that contains itself
            self._makers[kind] = self._new(kind)
        return self._makers[kind]

    def _new(self, kind: object) -> Make:
        origin, arguments = get_origin(kind), get_args(kind)
        if kind is Any:
            return lambda value: value
        if isinstance(kind, type) and is_dataclass(kind):
            return self._record(kind)
        if origin in (Union, types.UnionType):
            (one,) = (self._maker(a) for a in arguments if a is not type(None))
            return lambda value: None if value is None else one(value)
        if origin is Literal:
            return _choice(dict(zip(arguments, arguments, strict=True)))
        if origin in (tuple, list, frozenset):
            return self._list(origin, arguments)
        if origin is dict:
            return self._dict(self._maker(arguments[1]))
        if isinstance(kind, type) and issubclass(kind, Enum):
            values = {member.value: member for member in kind} if issubclass(kind, IntEnum) else {}
            return _choice({member.name.lower(): member for member in kind}, values)
        return self._path if kind is Path else _plain(kind)

    def _path(self, value: object) -> Path:
        if not isinstance(value, str) or not value or "\0" in value:
            raise _wrong(value, "it must be a path")
        if value.startswith("ssh:/"):
            with suppress(ValueError):
                far = place(value)
                if not self._closed:
                    return far
        path = Path(os.path.normpath(self._folder / value))
        if self._closed and not path.is_relative_to(self._folder):
            raise _wrong(value, "it must be inside of the bundle")
        return path

    def _dict(self, one: Make) -> Make:
        def make(value: object) -> object:
            if not isinstance(value, dict):
                raise _wrong(value, "it must be an object")
            return dict(
                zip(value, _each(".{}", ((key, one, item) for key, item in value.items())), strict=True)
            )

        return make

    def _list(self, origin: Callable[[Iterable[object]], object], arguments: tuple[object, ...]) -> Make:
        makers = [self._maker(a) for a in arguments if a is not Ellipsis]
        fixed = origin is tuple and arguments[-1] is not Ellipsis

        def make(value: object) -> object:
            if not isinstance(value, list):
                raise _wrong(value, "it must be a list")
            if fixed and len(value) != len(makers):
                raise _wrong(value, f"it must be a list of {len(makers)}")
            each = makers if fixed else makers * len(value)
            return origin(_each("[{}]", zip(count(), each, value, strict=False)))

        return make

    def _record(self, kind: type[DataclassInstance]) -> Make:
        hints = get_type_hints(kind, localns=self._names)
        makers = {f.name: self._maker(hints[f.name]) for f in fields(kind)}
        needed = {f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING}
        names = makers.keys()
        unknown = f" is not known, known are {', '.join(sorted(names))}"
        check: Callable[[object], str] | None = getattr(kind, "problem", None)

        def make(value: object) -> object:
            if not isinstance(value, dict):
                raise _wrong(value, "it must be an object")
            problems = []
            if value.keys() != names:
                problems += [(f".{key}", unknown) for key in sorted(value.keys() - names)]
                problems += [(f".{key}", " is missing") for key in sorted(needed - value.keys())]
            keys = [key for key in makers if key in value]
            fields = _each(".{}", ((key, makers[key], value[key]) for key in keys), problems)
            try:
                record = kind(**dict(zip(keys, fields, strict=True)))
            except ValueError as error:  # from its own checks
                raise _wrong(value, str(error)) from None
            problem = check(record) if check else ""
            if problem:
                raise _Wrong([("", f": {problem}")])
            return record

        return make


def _each(
    path: str, items: Iterable[tuple[object, Make, object]], problems: list[tuple[str, str]] | None = None
) -> list[object]:
    """The results for (key, maker, value), or one `_Wrong` with all `problems` and the ones found."""
    problems, values = problems or [], []
    for key, one, item in items:
        try:
            values.append(one(item))
        except _Wrong as wrong:
            problems += [(path.format(key) + below, text) for below, text in wrong.args[0]]
    if problems:
        raise _Wrong(problems)
    return values


def _choice(members: Mapping[str, object], values: Mapping[int, object] | None = None) -> Make:
    choices: dict[object, object] = dict([*members.items(), *(values or {}).items()])

    def make(value: object) -> object:
        if type(value) not in (str, int) or value not in choices:
            raise _wrong(value, f"allowed are {', '.join(map(str, members))}")
        return choices[value]

    return make


def _plain(kind: object) -> Make:
    def make(value: Any) -> object:
        if type(value) is kind and (kind is not float or abs(value) < LARGEST):
            return value
        if kind is float and type(value) is int and abs(value) < LARGEST:
            return float(value)
        if kind is int and type(value) is float and value.is_integer() and abs(value) < 1 << 53:
            return int(value)
        raise _wrong(value, f"it must be {_TYPES[kind]}")

    return make


def encode(value: object, folder: Path, place: str = "tree") -> Any:
    """Lists, dictionaries, text and numbers for a tree; paths relative to `folder` where possible.

    A field that is NaN or infinite, and so by default, is left out: JSON cannot express it.

    Raises
    ------
    ProjectError : a number that `Decoder` would refuse.
    """
    if is_dataclass(value):
        held = ((f, getattr(value, f.name)) for f in fields(value))
        return {
            f.name: encode(one, folder, f"{place}.{f.name}")
            for f, one in held
            if not _left_out(one, f.default)
        }
    if isinstance(value, Enum):
        return value.name.lower()
    if isinstance(value, RemotePath):
        return str(value)
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


def _left_out(value: object, default: object) -> bool:
    if not (isinstance(value, float) and isinstance(default, float)):
        return False
    return value == default if math.isinf(value) else math.isnan(value) and math.isnan(default)
