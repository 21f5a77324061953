"""Packed chunks against zlib, numpy and damage."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.data.packing import Packer, unpack

TYPES = ("u1", "i4", "u4", "i8", "u8", "f8")


def shuffled(rows: np.ndarray) -> bytes:
    """What HDF5's filter shuffle makes of them."""
    return rows.view(np.uint8).reshape(rows.size, rows.itemsize).T.tobytes()


@st.composite
def columns(draw: st.DrawFn) -> list[np.ndarray]:
    """Chunks of one column: of few or many different bytes, small, large and negative numbers."""
    dtype = np.dtype(draw(st.sampled_from(TYPES)))
    rows = draw(st.sampled_from([1, 2, 255, 256, 1000, 70000]))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    chunks = []
    for _ in range(draw(st.integers(1, 4))):
        bits = draw(st.integers(0, 8 * dtype.itemsize))
        noise = draw(st.integers(0, bits))
        numbers = np.frombuffer(rng.bytes(8 * rows), np.uint64) & np.uint64((1 << noise) - 1)
        if bits > noise:
            numbers = numbers | np.uint64(1 << (bits - 1))
        chunks.append(numbers.astype(f"u{dtype.itemsize}").view(dtype))
    return chunks


@settings(deadline=None, max_examples=150)
@given(columns())
def test_packed_is_what_any_reader_of_hdf5_expects(chunks: list[np.ndarray]) -> None:
    pack = Packer()
    for rows in chunks:
        packed = pack(rows)
        assert zlib.decompress(packed) == shuffled(rows)
        for stream in (packed, zlib.compress(shuffled(rows), 1)):
            found = unpack(stream, rows.size, rows.dtype)
            assert found.dtype == rows.dtype and found.tobytes() == rows.tobytes()


def test_noise_is_not_made_larger_and_zeros_take_nothing() -> None:
    rng = np.random.default_rng(3)
    noise = rng.integers(0, 1 << 16, 1 << 14)
    # Two planes are stored, six are zero.
    assert len(Packer()(noise)) < 2 * noise.size + 200
    assert len(Packer()(np.zeros(1 << 14, np.int64))) < 200


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_damage_is_found(data: st.DataObject) -> None:
    """Whichever of the three kinds of planes it hits, as zlib finds it; or it changes nothing.

    The check sum is weak: now and then a few small numbers can change together and it stays the same.
    """
    rng = np.random.default_rng(5)
    rows = rng.integers(0, 1 << 10, 500) + (np.arange(500) // 50 << 16)
    packed = bytearray(data.draw(st.sampled_from([Packer()(rows), zlib.compress(shuffled(rows), 1)])))
    if data.draw(st.booleans()):
        del packed[data.draw(st.integers(0, len(packed) - 1)) :]
    else:
        packed[data.draw(st.integers(0, len(packed) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        found = unpack(bytes(packed), rows.size, rows.dtype)
    except ValueError:
        return
    try:
        expected = zlib.decompress(packed)
    except zlib.error:
        expected = shuffled(rows)
    assert shuffled(found) == expected


def test_numbers_without_their_check_sum_are_damaged() -> None:
    rows = np.arange(500)
    for stream in (Packer()(rows), zlib.compress(shuffled(rows), 1)):
        for cut in range(1, 5):
            with pytest.raises(ValueError, match="damaged"):
                unpack(stream[:-cut], rows.size, rows.dtype)


@pytest.mark.parametrize("size", [499, 501, 10**6])
def test_another_number_of_rows_is_refused(size: int) -> None:
    packed = Packer()(np.arange(500))
    with pytest.raises(ValueError, match="too short or too long"):
        unpack(packed, size, np.int64)
    with pytest.raises(ValueError, match="too short or too long"):
        unpack(zlib.compress(bytes(8 * size)), 500, np.int64)
