"""Compiled kernels: one decorator, so that all of them release the interpreter lock and are cached."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import cfunc, njit


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` on first use, without the interpreter lock, cached on disk where that is possible.

    Numba raises when neither the module's folder nor the user's cache folder can be written; then the
    kernel is compiled anew in every process, which is slower but right.
    """
    try:
        return njit(nogil=True, cache=True)(function)
    except RuntimeError:
        return njit(nogil=True)(function)


def callback(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a C callback (its `.address` is handed to a native library), cached where possible."""

    def wrap(function: Callable[..., Any]) -> Any:
        try:
            return cfunc(signature, cache=True)(function)
        except RuntimeError:
            return cfunc(signature)(function)

    return wrap
