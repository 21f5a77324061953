"""Bytes of text many at once, for kernels: where separators are, and what number digits make.

A loop over digits ends somewhere else each time, and a processor that guessed wrong loses as much time as
five digits take. Here nothing depends on how long a number is: 64 bytes are compared in a few instructions,
and eight digits become a number in one word.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from desktop.core.jit import inlined, instruction

_BYTE, _WORD = ir.IntType(8), ir.IntType(64)
_64_BYTES = ir.VectorType(_BYTE, 64)


@inlined
def byte(data: Any, at: int) -> Any:
    """The byte at a place in (N,) bytes; `at` is not negative, which spares a comparison."""
    return np.int64(data[np.uint64(at)])


def _read(context: Any, builder: Any, signature: Any, args: Any, kind: ir.Type) -> Any:
    """The bytes args[0] from place args[1] on as one value, wherever they lie."""
    start = context.make_array(signature.args[0])(context, builder, args[0]).data
    return builder.load(builder.bitcast(builder.gep(start, [args[1]]), kind.as_pointer()), align=1)


@instruction
def places(typing: Any, data: Any, at: Any, value: Any) -> Any:
    """Which of the 64 bytes from a place on have a value, the first as the lowest bit."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        found = _read(context, builder, signature, args, _64_BYTES)
        zero = ir.Constant(ir.VectorType(ir.IntType(32), 64), [0] * 64)
        one = builder.insert_element(ir.Constant(_64_BYTES, ir.Undefined), args[2], zero.constant[0])
        same = builder.icmp_unsigned("==", found, builder.shuffle_vector(one, one, zero))
        return builder.bitcast(same, _WORD)

    return types.uint64(data, types.int64, types.uint8), code


@instruction
def other_than_digits(typing: Any, data: Any, at: Any) -> Any:
    """Which of the 64 bytes from a place on are no digits, the first as the lowest bit."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        found = _read(context, builder, signature, args, _64_BYTES)
        digit = builder.sub(found, ir.Constant(_64_BYTES, [48] * 64))
        return builder.bitcast(builder.icmp_unsigned(">", digit, ir.Constant(_64_BYTES, [9] * 64)), _WORD)

    return types.uint64(data, types.int64), code


@instruction
def trailing_zeros(typing: Any, bits: Any) -> Any:
    """How many low bits of a word that is not 0 are 0."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), code


@instruction
def _eight(typing: Any, data: Any, at: Any) -> Any:
    """The 8 bytes from a place on, the first as the lowest."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _read(context, builder, signature, args, _WORD)

    return types.uint64(data, types.int64), code


@inlined
def eight_digits(data: Any, end: int, count: int) -> Any:
    """The number that the `count` (1 .. 8) digits before `end` are; at least 8 bytes must be before it."""
    unused = np.uint64(64 - 8 * count)
    ones = ((_eight(data, end - 8) ^ np.uint64(0x3030303030303030)) >> unused) << unused
    pairs = ones * np.uint64(10) + (ones >> np.uint64(8))  # in every second byte
    first = (pairs & np.uint64(0x000000FF000000FF)) * np.uint64(100 + (1000000 << 32))
    second = ((pairs >> np.uint64(16)) & np.uint64(0x000000FF000000FF)) * np.uint64(1 + (10000 << 32))
    return np.int64((first + second) >> np.uint64(32))
