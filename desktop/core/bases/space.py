"""The description of one space of functions besides polynomials, `FunctionSpace`, and common formulas.

The module of a space is one entry of the table `desktop.core.bases.TABLE`: a record and the formulas that
`desktop.core.spaces` compiles, each a plain function of numbers. An interval has half width h; u runs from -1
to 1 across it, x = abs(rate) h; its orthogonal functions are q0 = 1, q1 = u, q2 and, if there are four, q3.
If the rate changes sign, so do u, q1 and q3. The formulas need at most five numbers that depend only on an
interval's width, its *shape*; it is stored with each node, as sines and powers cost more than anything else::

    TERMS                               3 or 4 functions
    shape(x)                            the five numbers
    norms(x)                            squared norms of q2 and q3 on [-1, 1]
    split(rate, r, t, xa, a, xb, b)     of two neighbours, parts r and t of the whole, x and shape of each:
                                        the shape of the whole, then for the left and for the right one
                                        its coefficients (8,) of the whole's q2 and q3 in its own q0 to q3
    ends(rate, x, shape)                q2 and q3 at -1, q2 and q3 at 1
    functions(rate, x, u)               q2 and its derivative, q3 and its derivative
    bend(rate, x, c2, c3, left, right)  largest deviation of c2 q2 + c3 q3 from the chord, u = left to right
    means(rate, x, left, right)         the means of q2 and q3 there, used if x (right - left) is above 1
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import factorial
from typing import NamedTuple, TypeAlias

Shape: TypeAlias = tuple[float, float, float, float, float]
#: Coefficients of q2 and q3 of a whole interval in q0 to q3 of a part of it.
Part: TypeAlias = tuple[float, float, float, float, float, float, float, float]

# With so few terms a series is exact to a double's last digits if the square of its argument is below this.
_SHORT, _SMALL = 7, 0.1
#: Below this argument two terms are exact, and so are the first terms of a sine, a cosine or an exponential.
FLAT = 1e-4
#: Above this argument the closed formulas lose no precision.
LARGE = 2.0
# Terms of the norms' series, and of the shapes' series, which fall faster.
NORM, SHAPE = 20, 13


class RateScale(NamedTuple):
    """The scale that determines the rate of a space.

    `name`: such as "period"; `turns`: rate times the scale; `letter`: the rate in formulas, `formula`: its
    definition. `limits`: slowest and fastest rate of the search, times the duration of a run; None: the
    search starts at the highest peaks in the spectrum of the residuals of polynomials.
    """

    name: str
    turns: float
    letter: str
    formula: str
    limits: tuple[float, float] | None = None

    @property
    def key(self) -> str:
        """The name in tables and JSON."""
        return f"{self.name.replace(' ', '_')}_s"


class FunctionSpace(NamedTuple):
    """An entry of the table.

    Attributes
    ----------
    model, title, tip : name of the model with only such phases, its title, and its purpose.
    kind, noun : adjective and noun for such a phase, as "periodic", "period".
    columns : names of the coefficients after c0 and c1 in `natural` functions; the price of a phase is their
        number and three: its start, c0 and c1.
    factors : the same functions in a formula, of the time since the phase's start, "{t}".
    natural : maps rate, width (in the unit of 1/rate) and coefficients (4,) of a phase to those (4,) of 1, t
        and `columns`, with t from the phase's start.
    at_start : maps rate and coefficients from `natural` to value, slope and half the second derivative there.
    scale : the scale of its rate; None if it has none.
    """

    model: str
    title: str
    tip: str
    kind: str
    noun: str
    columns: tuple[str, ...]
    factors: tuple[str, ...]
    natural: Callable[[float, float, Sequence[float]], tuple[float, float, float, float]]
    at_start: Callable[[float, Sequence[float]], tuple[float, float, float]]
    scale: RateScale | None

    @property
    def terms(self) -> int:
        return 2 + len(self.columns)


def powers(coefficient: Callable[[int], Fraction], first: int, terms: int) -> tuple[float, ...]:
    """The coefficients first to first + terms - 1 of a power series."""
    return tuple(float(coefficient(k)) for k in range(first, first + terms))


def over_factorial(n: int) -> Fraction:
    """1/n!"""
    return Fraction(1, factorial(n))


def square(k: int, sign: int) -> Fraction:
    """Coefficient of x^2k in 6 (x cosh x - sinh x)² for sign 1, with sin and cos for -1."""
    f = over_factorial
    inside = f(2 * k) / 2 - f(2 * k - 1) / 2 + (f(2 * k - 2) / 8 if k > 1 else Fraction(1, 4))
    return 6 * Fraction(4**k * sign ** (k - 1)) * inside


# In powers of x²: (sinh x - x)/x³, (a - x)/x³ with a = 3 (x cosh x - sinh x)/x²; with sin and cos for the
# second pair.
HS = powers(lambda k: over_factorial(2 * k + 1), 1, SHAPE)
HA = powers(lambda k: 6 * k * over_factorial(2 * k + 1), 2, SHAPE)
GS = tuple(value * (-1) ** k for k, value in enumerate(HS, 1))
GA = tuple(value * (-1) ** k for k, value in enumerate(HA, 1))


def series(coefficients: Sequence[float], square: float) -> float:
    """The value of a power series in x², at `square` = x²."""
    if square < FLAT * FLAT:
        return coefficients[1] * square + coefficients[0]
    count = _SHORT if square < _SMALL else len(coefficients)
    value = coefficients[count - 1]
    for k in range(count - 2, -1, -1):
        value = value * square + coefficients[k]
    return value
