"""The OTF2 samples: those bundled with the tests, and all of a shared collection where there is one."""

from __future__ import annotations

import json
import tarfile
from functools import cache
from pathlib import Path
from typing import Any

BUNDLED = Path(__file__).parents[1] / "data" / "otf2"
SHARED = Path(__file__).parents[3] / "shared" / "traces" / "otf2"
FOLDERS = [folder for folder in (BUNDLED, SHARED) if (folder / "facts.json").exists()]


@cache
def facts() -> dict[str, dict[str, Any]]:
    """What the reference tool says of every sound archive."""
    found: dict[str, dict[str, Any]] = {}
    for folder in FOLDERS:
        found = json.loads((folder / "facts.json").read_text()) | found
    return found


NAMES = sorted(facts())
DAMAGED = sorted(
    {file.name.removesuffix(".tar.gz") for folder in FOLDERS for file in folder.glob("damaged_*")}
)


def unpack(name: str, target: Path) -> Path:
    """The archive's directory, unpacked under `target`."""
    packed = next(file for folder in FOLDERS if (file := folder / f"{name}.tar.gz").exists())
    with tarfile.open(packed) as tar:
        # Debian 12's Python 3.11.2 has no filters yet; what is unpacked here is our own.
        tar.extractall(target, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return target / name
