"""Values for JSON, as commands print with ``--json`` and reports contain."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

#: A JSON object. The handbook's page on the command line describes its keys and values.
JSON: TypeAlias = dict[str, Any]


def plain_values(value: object) -> Any:
    """`value` with numpy's numbers and arrays as Python's, and NaN and infinities as None."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: plain_values(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_values(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
