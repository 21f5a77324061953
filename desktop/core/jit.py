"""Decorators of compiled kernels, which all release the interpreter lock and are cached.

Numba is loaded when the first kernel is called, as that takes longer than reading a small trace.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from threading import Lock
from typing import Any, Generic, TypeVar

from desktop.core.arrays import AnyArray

_lock = Lock()
_Result = TypeVar("_Result")


class Kernel(Generic[_Result]):
    """A function that is compiled, or loaded, when it is first called, or first used in another kernel.
    Further attributes are those of numba's dispatcher."""

    def __init__(self, function: Callable[..., _Result], options: dict[str, object]) -> None:
        update_wrapper(self, function)
        self._function, self._options = function, options
        self._dispatcher: Callable[..., _Result] | None = None

    def __call__(self, *arguments: object) -> _Result:
        return (self._dispatcher or self.dispatcher)(*arguments)

    @property
    def dispatcher(self) -> Callable[..., _Result]:
        """Numba's dispatcher of the function."""
        from desktop.core.compiler import compiled

        with _lock:
            if self._dispatcher is None:
                self._dispatcher = compiled(self._function, **self._options)
        return self._dispatcher

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.dispatcher, name)


def kernel(function: Callable[..., _Result]) -> Kernel[_Result]:
    """Compile `function` on first use, without the interpreter lock, cached on disk where possible."""
    return Kernel(function, {})


def arithmetic(function: Callable[..., _Result]) -> Kernel[_Result]:
    """A kernel that makes no array: several times faster where small kernels call each other.

    Numba counts references whenever an array is taken from a tuple, by a call that blocks optimisation;
    without arrays of its own a kernel needs no counts. A division by 0 gives an infinity or NaN, and a
    product and a sum may be rounded once (fused).
    """
    return Kernel(function, _ARITHMETIC)


def inlined(function: Callable[..., _Result]) -> Kernel[_Result]:
    """An `arithmetic` kernel that is inlined into its callers."""
    return Kernel(function, _ARITHMETIC | {"forceinline": True})


def formula(function: Callable[..., _Result]) -> Kernel[_Result]:
    """An `inlined` kernel of finite numbers only, so that products with a literal 0 are removed."""
    finite = {"fastmath": {"contract", "nnan", "nsz"}, "forceinline": True}
    return Kernel(function, _ARITHMETIC | finite)


_ARITHMETIC: dict[str, object] = {"_nrt": False, "error_model": "numpy", "fastmath": {"contract"}}


@inlined
def place_in(values: AnyArray, value: int) -> int:
    """Index of the first of ascending values that is not below `value`. Kernels that call numpy for this, or
    make arrays, load much of numba, some also scipy, which takes longer than reading a small trace."""
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def put_in_order(values: AnyArray, count: int) -> None:
    """Sort the first `count` values in place, by Shell's method."""
    gap = 1
    while gap < count:
        gap = 3 * gap + 1
    while gap > 1:
        gap //= 3
        for i in range(gap, count):
            value, at = values[i], i
            while at >= gap and values[at - gap] > value:
                values[at] = values[at - gap]
                at -= gap
            values[at] = value
