"""The wheel brings the recorder compiled, where it is built on a machine that can (pyproject.toml)."""

from __future__ import annotations

import importlib.util
import platform
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


def compiling(root: str) -> Any:
    """The program's module of that name; the program itself need not be installed here."""
    spec = importlib.util.spec_from_file_location(
        "compiling", Path(root, "desktop", "recorder", "compiling.py")
    )
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class RecorderHook(BuildHookInterface):  # type: ignore[type-arg]
    """Without the recorder the wheel is for every machine, and compiles it when it is first used."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="phasewright-")
        if version == "editable":
            return
        if sys.maxsize < 2**32:  # on a machine of 64 bits, whose compiler makes what the tag does not say
            made, why = None, "Python has 32 bits"
        else:
            made, why = compiling(self.root).compile_into(Path(self._scratch.name))
        if made is None:
            self.app.display_warning(f"The wheel brings no compiled recorder: here {why}.")
            return
        build_data["force_include"][str(made)] = f"desktop/recorder/{made.name}"
        build_data.update(pure_python=False, tag=f"py3-none-linux_{platform.machine()}")

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        self._scratch.cleanup()
