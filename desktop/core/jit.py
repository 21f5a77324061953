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
    return _compiled(function, {})


def step(function: Callable[..., Any]) -> Any:
    """A `kernel` of small steps that makes no array and may divide by zero.

    Numba then counts no references to the arrays that are handed from step to step, which would cost
    several times what the steps do.
    """
    return _compiled(function, {"_nrt": False, "error_model": "numpy"})


def _compiled(function: Callable[..., Any], options: dict[str, Any]) -> Any:
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
