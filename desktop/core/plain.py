"""Values as JSON has them: what commands print with ``--json`` and reports say of their data."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

#: An object of JSON. Its keys, and what their values are, the page on the command line says.
JSON: TypeAlias = dict[str, Any]


def plain_values(value: object) -> Any:
    """Numbers and arrays of numpy become those of Python, what is not a number becomes null."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: plain_values(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_values(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
