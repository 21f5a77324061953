"""Files of plain values: projects, and the state kept for recovery.

A file is JSON with sorted keys: ``format``, ``schema`` and the tree, a dataclass of dataclasses, read and
written by `desktop.data.structure`. Paths are stored relative to the file's folder, so that the folder can be
moved as a whole.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from desktop.core.plain import JSON
from desktop.data.archive import unpack
from desktop.data.atomic import PartFile, place_of, write_bytes, write_text
from desktop.data.naming import DESCRIPTION
from desktop.data.reading import head, plain
from desktop.data.structure import Decoder, Misfit, Tree, encode
from desktop.errors import ProjectError, reason
from desktop.progress import Progress

SUFFIX = ".phasewright"
PROJECT, RECOVERY = "phasewright project", "phasewright recovery"
SCHEMA = 3


def _with_settings(content: JSON) -> JSON:
    """Experiments and tables were paths once; now they have settings."""
    for workspace in (content.get("tree"), *_inside(content.get("tree"), "workspace")):
        for kind in ("experiments", "tables"):
            for paths in _inside(workspace, kind):
                if isinstance(paths, list):
                    workspace[kind] = [{"path": path} for path in paths]
    return content


def _inside(tree: object, key: str) -> tuple[Any, ...]:
    """The list under a key of a tree, if it is well-formed: a file from anyone may contain anything."""
    return (tree[key],) if isinstance(tree, dict) and key in tree else ()


#: Converters from the schema of an older file to the next one.
MIGRATIONS: dict[int, Callable[[JSON], JSON]] = {
    1: _with_settings,
    # Only additional keys: the limit of the analysis, degrees of phases.
    2: dict,
}
#: Most bytes of a project file; a lifetime's annotations are far less.
LIMIT = 1 << 26


def is_project(path: Path) -> bool:
    """Whether a file is a project, by its first bytes."""
    try:
        first = head(path, 200)
    except OSError:
        return False
    return f'"format": "{PROJECT}"'.encode() in first


def digest_of(path: Path) -> str:
    """The identity of a file or folder: the SHA-256 of its content; "" if it cannot be read.

    For an experiment that of its description; for another folder, of all files in it.
    """
    digest = hashlib.sha256()
    try:
        if (path / DESCRIPTION).is_file():
            path = path / DESCRIPTION
        for file in sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else (path,):
            with plain(file).open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
    except OSError:
        return ""
    return digest.hexdigest()


def backup_of(path: Path) -> Path:
    """Where `write` keeps the previous version."""
    return path.with_name(f"{path.name}~")


def write(path: Path, tree: object, form: str = PROJECT, *, backup: bool = True) -> None:
    """Write a tree of dataclasses atomically: the file is whole or as before, whenever the process stops.

    Raises
    ------
    OSError : it cannot be written.
    ProjectError : it contains a number that `read` would refuse.
    """
    path = place_of(path.absolute())
    content = {"format": form, "schema": SCHEMA, "tree": encode(tree, path.parent)}
    # Escapes also preserve names whose bytes are not valid text.
    text = json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n"
    if backup and path.exists():
        write_bytes(backup_of(path), path.read_bytes())
    write_text(path, text)


def read(
    path: Path,
    kind: type[Tree],
    names: Mapping[str, object] | None = None,
    form: str = PROJECT,
    *,
    closed: bool = False,
) -> Tree:
    """Read a file written by `write`.

    Parameters
    ----------
    kind : the dataclass of the tree; `names` and `closed`: see `Decoder`.

    Raises
    ------
    ProjectError : it cannot be read, is no project, of a newer version, or does not match the declarations.
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
    odd = [f"{key} is not known" for key in sorted(content.keys() - {"format", "schema", "tree"})]
    try:
        return Decoder(path.parent, names, closed).decode(kind, content.get("tree"), "tree", odd)
    except Misfit as misfit:
        raise ProjectError(
            f"is not as a project should be: {misfit}", file=path, problems=misfit.problems
        ) from None


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number")


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
    """Make a bundle of the project ``folder/BUNDLED`` and of `files`, given by their names in the bundle.

    Raises
    ------
    OSError : a file cannot be read or the bundle cannot be written.
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
    """Unpack into `folder`, which is empty, with the limits of every archive; returns the project in it.

    Raises
    ------
    TraceFormatError : see `desktop.data.archive.unpack`.
    """
    unpack(bundle, folder, progress)
    return folder / BUNDLED
