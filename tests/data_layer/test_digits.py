"""Bytes of text many at once, against Python's own reading."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as some

from desktop.core.jit import arithmetic
from desktop.data.digits import byte, eight_digits, other_than_digits, places, trailing_zeros


@arithmetic
def _found(data, at, value):
    return places(data, at, value), other_than_digits(data, at), byte(data, at)


@arithmetic
def _number(data, end, count):
    return eight_digits(data, end, count)


@arithmetic
def _zeros(bits):
    return trailing_zeros(bits)


@given(some.binary(min_size=64, max_size=90), some.data())
@settings(deadline=None)
def test_places_of_bytes_wherever_they_lie(text, data):
    at = data.draw(some.integers(0, len(text) - 64))
    value = data.draw(some.sampled_from(text))
    same, others, here = _found(np.frombuffer(text, np.uint8), at, value)
    window = text[at : at + 64]
    assert int(same) == sum(1 << k for k, c in enumerate(window) if c == value)
    assert int(others) == sum(1 << k for k, c in enumerate(window) if not 48 <= c <= 57)
    assert here == text[at]


@given(some.integers(0, 63), some.integers(0, 2**63 - 1))
@settings(deadline=None)
def test_trailing_zeros(k, above):
    bits = (2 * above + 1 << k) % 2**64
    assert _zeros(np.uint64(bits)) == k


@given(some.binary(min_size=8, max_size=20), some.text("0123456789", min_size=1, max_size=8))
@settings(deadline=None)
def test_numbers_of_up_to_eight_digits(before, digits):
    text = before + digits.encode() + b"\xff"
    assert _number(np.frombuffer(text, np.uint8), len(text) - 1, len(digits)) == int(digits)
