"""Compiled kernels: one decorator, so that all of them release the interpreter lock and are cached."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import cfunc, njit


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` on first use, without the interpreter lock, cached on disk where possible."""
    return _compiled(function)


def arithmetic(function: Callable[..., Any]) -> Any:
    """A kernel that makes no array: several times faster where small kernels call each other.

    Numba counts a reference whenever an array is taken from a tuple, by a call that keeps the compiler from
    seeing through; without arrays of its own a kernel needs no counts. A division by 0 gives an infinity or
    NaN, and a product and a sum are rounded once where the processor can.
    """
    return _compiled(function, **_ARITHMETIC)


def inlined(function: Callable[..., Any]) -> Any:
    """An `arithmetic` kernel that becomes part of each one that calls it."""
    return _compiled(function, **_ARITHMETIC, forceinline=True)


def formula(function: Callable[..., Any]) -> Any:
    """An `inlined` kernel of finite numbers only: what a literal 0 multiplies vanishes."""
    options = _ARITHMETIC | {"fastmath": {"contract", "nnan", "nsz"}}
    return _compiled(function, **options, forceinline=True)


_ARITHMETIC: dict[str, Any] = {"_nrt": False, "error_model": "numpy", "fastmath": {"contract"}}


def _compiled(function: Callable[..., Any], **options: Any) -> Any:
    # Numba raises when neither the module's folder nor the user's cache folder can be written; then the
    # kernel is compiled anew in every process, which is slower but right.
    try:
        return njit(nogil=True, cache=True, **options)(function)
    except RuntimeError:
        return njit(nogil=True, **options)(function)


def callback(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a C callback (its `.address` is handed to a native library), cached where possible."""

    def wrap(function: Callable[..., Any]) -> Any:
        try:
            return cfunc(signature, cache=True)(function)
        except RuntimeError:
            return cfunc(signature)(function)

    return wrap
