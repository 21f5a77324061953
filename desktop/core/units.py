"""Numbers as people read them."""

from __future__ import annotations

import math


def si(value: float, digits: int = 4, largest: float | None = None) -> str:
    """Significant digits and an SI prefix, for a unit to follow: its own, or that of the `largest` beside it.

    >>> si(0.0000123) + "s", si(-2.5) + "s", si(0.0) + "s"
    ('12.3 µs', '-2.5 s', '0 s')
    """
    most = abs(value) if largest is None else largest
    if most == 0 or not math.isfinite(value):
        return f"{value:g} "
    exponent = max(-4, min(2, math.floor(math.log10(most) / 3)))
    return f"{value / 1000.0**exponent:.{digits}g} {('p', 'n', 'µ', 'm', '', 'k', 'M')[exponent + 4]}"
