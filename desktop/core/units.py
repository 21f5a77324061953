"""Numbers as text on screen, in reports and on the command line: SI prefixes and significant digits."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

#: Seconds in each unit of time.
TIME_UNITS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}
_PREFIXES = {-12: "p", -9: "n", -6: "µ", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T"}
# As they are typed.
_TYPED = {prefix: float(f"1e{power}") for power, prefix in _PREFIXES.items()} | {
    "u": 1e-6,
    "μ": 1e-6,
    "K": 1e3,
}
_BINARY = {"ki": 2.0**10, "mi": 2.0**20, "gi": 2.0**30, "ti": 2.0**40}


_time_unit = ""


def set_time_unit(name: str) -> None:
    """Show all times in one of `TIME_UNITS`; "": in the most readable one."""
    global _time_unit
    _time_unit = name


def preferred_unit() -> tuple[float, str] | None:
    """Seconds and name of the requested unit of time, None if there is none."""
    return (TIME_UNITS[_time_unit], _time_unit) if _time_unit else None


@dataclass(frozen=True)
class Scale:
    """A unit with its prefix: a value divided by `factor` is shown with `symbol`."""

    factor: float
    symbol: str


def scale(span: float, unit: str) -> Scale:
    """The prefix under which `span` lies between 1 and 1000."""
    exponent = 0
    if span and math.isfinite(span):
        exponent = max(-12, min(12, 3 * math.floor(math.log10(abs(span)) / 3 + 1e-12)))
    return Scale(10.0**exponent, _PREFIXES[exponent] + unit)


def time_scale(span_s: float) -> Scale:
    """`scale` for times; a unit is used from two of it on, as on axes, and none is above seconds."""
    unit = preferred_unit()
    if unit is not None:
        return Scale(*unit)
    return scale(min(abs(span_s) / 2, 1.0), "s")


def digits(value: float, significant: int = 4) -> str:
    """`value` rounded to so many significant digits, with an exponent only where it is needed."""
    if not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if -4 <= size < 7:
        return f"{value:.{max(0, significant - 1 - size)}f}".replace("-", "−")
    return f"{value:.{significant - 1}e}".replace("e-0", "e-").replace("e+0", "e").replace("-", "−")


def trimmed(value: float, significant: int) -> str:
    """`value` in so many significant digits, but all of those before the point; without zeros at the end.

    >>> trimmed(150.3, 2), trimmed(-0.5, 3), trimmed(999.6, 3), trimmed(12345.6, 3)
    ('150', '−0.5', '1000', '12346')
    """
    rounded = float(f"{value:.{significant}g}") if abs(value) < 10**significant else round(value, 0)
    return f"{rounded:.12g}".replace("-", "−")


def format_number(value: float, significant: int = 4) -> str:
    """As `digits`, but whole numbers without decimals."""
    if abs(value) < 1e7 and value == round(value):
        return f"{value:.0f}".replace("-", "−")
    return digits(value, significant)


def percent(part: float | None, places: int = 0) -> str:
    """A part of a whole in percent.

    >>> percent(0.1234), percent(0.0004), percent(1.0), percent(0.0), percent(0.1234, 1), percent(None)
    ('12 %', '0.04 %', '100 %', '0 %', '12.3 %', '–')
    """
    if part is None or not math.isfinite(part):
        return "–"
    return f"{100 * part:.2g} %" if part < 0.01 else f"{100 * part:.{places}f} %"


def tenth(part: float | None) -> str:
    """A part of a whole in a column: ``12.3 %``, always with one decimal."""
    return "–" if part is None or not math.isfinite(part) else f"{100 * part:.1f} %"


def mean_number(mean: float, most: float, digits: int = 3) -> str:
    """A mean number of processors out of `most`, as which it is given only if less than 0.05 % are missing.

    >>> mean_number(7.5634, 16), mean_number(15.86, 16, 2), mean_number(15.999, 16), mean_number(2e-4, 4)
    ('7.56', '15.9', '16', 'fewer than 0.01')
    >>> mean_number(150.3, 256, 2), mean_number(1023.2, 1024)
    ('150', '1023')
    """
    if 0.0 < mean < 0.01:
        return "fewer than 0.01"
    texts = (trimmed(mean, more) for more in range(digits, digits + 8))
    return next((text for text in texts if float(text) < most or mean >= most * (1 - 5e-4)), f"{mean:g}")


def capital(text: str) -> str:
    """`text` with a capital first letter."""
    return text[:1].upper() + text[1:]


def with_unit(title: str, unit: str) -> str:
    """A title with its unit, if there is one and the title does not end in it.

    >>> with_unit("Effect", "s"), with_unit("wall_s", "s"), with_unit("Factor", "")
    ('Effect (s)', 'wall_s', 'Factor')
    """
    return f"{title} ({unit})" if unit and not title.endswith(f"_{unit}") else title


def signed(value: float, significant: int = 4) -> str:
    """A number with its sign: ``+0.8``, ``−0.8``."""
    return ("+" if value > 0 else "") + digits(value, significant)


def quantity(value: float, unit: str, significant: int = 4) -> str:
    """A value with a suitable prefix of its unit.

    >>> quantity(0.01234, "s"), quantity(0.3431, "proc·s"), quantity(12, "B")
    ('12.34 ms', '343.1 proc·ms', '12 B')
    """
    if unit == "B" and abs(value) < 1000 and value == round(value):
        return f"{value:.0f} B"  # whole bytes
    prefix = _prefix(abs(value) if math.isfinite(value) else 0.0, unit)
    if unit == "s" and preferred_unit() is not None and abs(value) >= 1e7 * prefix.factor:
        return f"{value / prefix.factor:,.0f} {prefix.symbol}".replace(",", "\u2009").replace("-", "−")
    return f"{digits(value / prefix.factor, significant)} {prefix.symbol}".rstrip()


def margin(value: float, error: float, unit: str, significant: int = 2) -> str:
    """A value with its error, both with the prefix of the value.

    >>> margin(0.0046, 0.001366, "s"), margin(1.5, 0.25, "")
    ('4.6 ± 1.4 ms', '1.5 ± 0.25')
    """
    of = common((value,), unit)
    return f"{digits(value / of.factor, significant)} ± {scaled(error, of, significant)}"


def read_quantity(text: str, unit: str) -> float | None:
    """A typed number with its unit, or without one; None: not such a number. The unit may have an SI prefix,
    of bytes (which may be the prefix alone) also a binary one.

    >>> read_quantity("64 Ki", "B"), read_quantity("1,5 us", "s"), read_quantity("3 m", "s")
    (65536.0, 1.5e-06, None)
    """
    number = r"(\+?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][+-]?\d+)?)"
    match = re.fullmatch(rf"{number}\s*(?:([a-zA-Zµμ]*?){unit}{'?' * (unit == 'B')})?", text.strip())
    if match is None:
        return None
    value, prefix = float(match[1].replace(",", ".")), match[2] or ""
    factor = _BINARY.get(prefix.lower()) if unit == "B" else None
    if factor is None:
        factor = _TYPED.get(prefix)
    return None if factor is None else value * factor


def read_seconds(text: str) -> float | None:
    """A typed time, such as ``26.2 ms`` or ``0.0262``, in seconds; None if it is not a time above 0.

    >>> read_seconds("26.5 ms"), read_seconds("2 s"), read_seconds("soon"), read_seconds("0")
    (0.0265, 2.0, None, None)
    """
    value = read_quantity(text, "s")
    return value if value is not None and 0 < value < math.inf else None


def seconds(value: float) -> str:
    """A time in a sentence of a report, whatever the window's unit: ``6 s``, ``12.34 ms``."""
    of = scale(min(abs(value), 1.0), "s")
    number = grouped(value) if abs(value) >= 1000 else format_number(value / of.factor)
    return f"{number} {of.symbol}"


def common(values: Iterable[float], unit: str) -> Scale:
    """The common prefix of a column or axis: that of its largest value. ``"proc·s"``: processor-seconds."""
    return _prefix(max((abs(value) for value in values if math.isfinite(value)), default=0.0), unit)


def _prefix(most: float, unit: str) -> Scale:
    if unit == "proc·s":
        seconds = time_scale(most)
        return Scale(seconds.factor, f"proc·{seconds.symbol}")
    if unit == "B" and most < 1000:
        return Scale(1.0, "B")
    return time_scale(most) if unit == "s" else scale(most, unit)


def scaled(value: float, of: Scale, significant: int = 4) -> str:
    """A value in a given scale, ``12.34 ms``; whole bytes without decimals."""
    if not math.isfinite(value):
        return "–"
    if of.symbol == "B" and value == round(value):
        return f"{value:.0f} B"
    return f"{digits(value / of.factor, significant)} {of.symbol}".rstrip()


def instant(value_s: float, span_s: float, start_s: float = 0.0, axis_s: float | None = None) -> str:
    """A point in time with the resolution that a range of `span_s` seconds allows, in the unit of the axis,
    which is `axis_s` seconds long (None: as long as the range)."""
    whole = time_scale(span_s if axis_s is None else axis_s)
    if abs(value_s - start_s) >= 1e7 * whole.factor:  # then the axis has an offset
        whole = time_scale(max(abs(value_s - start_s), span_s))
    step = max(span_s / 2000, 1e-15) / whole.factor
    places = max(0, min(12, math.ceil(-math.log10(step))))
    return f"{value_s / whole.factor:.{places}f} {whole.symbol}".replace("-", "−")


def grouped(number: float) -> str:
    """A whole number in groups of three digits, ``12 345``."""
    return f"{number:,.0f}".replace(",", " ").replace("-", "−")


def count(number: int, noun: str) -> str:
    """A number with its noun: ``1 phase``, ``12 345 phases``."""
    return f"{grouped(number)} {noun}{'' if number == 1 else 's'}"


#: A space at which no line is broken.
NO_BREAK = "\u00a0"


def unbroken(text: str) -> str:
    """`text` in which no line is broken inside of a number, or between a number and its unit.

    >>> unbroken("1 440 messages take 5 ms, 41 % of it").replace(NO_BREAK, "_")
    '1_440 messages take 5_ms, 41_% of it'
    """
    text = re.sub(r"(?<=\d)[ \u2009\u202f](?=\d{3}(?!\d))", NO_BREAK, text)
    return re.sub(r"(?<=\d) (?=%|proc·|[kMGT]?B\b|[mµn]?s\b)", NO_BREAK, text)


def left(seconds: float) -> str:
    """Remaining time in words, approximately."""
    if seconds < 1:
        return "less than 1 s left"
    if seconds < 90:
        return f"about {seconds:.0f} s left"
    return f"about {seconds / 60:.0f} min left"


def si(value: float, digits: int = 4, largest: float | None = None) -> str:
    """A number and an SI prefix, for a unit to follow; the prefix is that of the value, or of `largest`.

    >>> si(0.0000123) + "s", si(-2.5) + "s", si(0.0) + "s", si(0.99996, 3) + "s"
    ('12.3 µs', '-2.5 s', '0 s', '1 s')
    """
    value = float(f"{value:.{digits}g}")
    most = abs(value) if largest is None else largest
    if most == 0 or not math.isfinite(value):
        return f"{value:g} "
    exponent = max(-12, min(12, 3 * math.floor(math.log10(most) / 3)))
    return f"{value / 10.0**exponent:.12g} {_PREFIXES[exponent]}"


def brief(value_s: float, digits: int = 4) -> str:
    """A time as by `si`, but seconds have no prefix that makes them longer.

    >>> brief(0.35), brief(12345, 3), brief(999.96)
    ('350 ms', '12 300 s', '1 000 s')
    """
    rounded = float(f"{value_s:.{digits}g}")
    return f"{grouped(rounded)} s" if abs(rounded) >= 1000 else f"{si(value_s, digits)}s"
