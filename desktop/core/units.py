"""Numbers as people read them."""

from __future__ import annotations

import math


def si(value: float, digits: int = 4) -> str:
    """Significant digits and an SI prefix, for a unit to follow.

    >>> si(0.0000123) + "s", si(-2.5) + "s", si(0.0) + "s"
    ('12.3 µs', '-2.5 s', '0 s')
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g} "
    exponent = max(-4, min(2, math.floor(math.log10(abs(value)) / 3)))
    return f"{value / 1000.0**exponent:.{digits}g} {('p', 'n', 'µ', 'm', '', 'k', 'M')[exponent + 4]}"
