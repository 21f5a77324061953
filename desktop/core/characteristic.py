"""Characteristic functions of p, and of the problem size N: the seven of the paper, and the user's own.

Source: Strohmaier, UTK-CS-97-354, section 3. Logarithms are natural (its table 2 fits no other base).
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from desktop.core.arrays import Floats

#: Longest expression in characters, and the largest number of its parts.
_LONGEST, _PARTS = 200, 60


@dataclass(frozen=True)
class Characteristic:
    """`u(p, size)`: (K,) values at p (K,) >= 1 and problem sizes (K,), which only `sized` functions use;
    `text`: its name in tables and files."""

    text: str
    u: Callable[..., Floats]
    sized: bool = False


#: In the order of the paper.
CHARACTERISTICS: tuple[Characteristic, ...] = (
    Characteristic("1/p^2", lambda p, size=None: 1.0 / (p * p)),
    Characteristic("1/p", lambda p, size=None: 1.0 / p),
    Characteristic("log(p)/p", lambda p, size=None: np.log(p) / p),
    Characteristic("1/sqrt(p)", lambda p, size=None: 1.0 / np.sqrt(p)),
    Characteristic("1", lambda p, size=None: np.ones_like(p)),
    Characteristic("log(p)", lambda p, size=None: np.log(p)),
    Characteristic("p", lambda p, size=None: p.copy()),
)
#: With the problem size: strong scaling of several sizes, and weak scaling (N grows with p).
SIZED = ("N/p", "N*log(p)/p", "N*log(N)/p", "N/sqrt(p)", "(N/p)^(2/3)")

_BINARY: dict[type, Callable[[Floats, Floats], Floats]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.power,
}
_CALLS: dict[str, Callable[[Floats], Floats]] = {
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "sqrt": np.sqrt,
    "cbrt": np.cbrt,
    "exp": np.exp,
}


def characteristic(text: str) -> Characteristic:
    """One of the seven by its text, or a function of p (and of the problem size N) written with + - * / ^
    ( ), numbers and `_CALLS`.

    The expression is parsed and interpreted, never executed as code.

    Raises
    ------
    ValueError : `text` is not such an expression, or is not finite at p = 1, 2, 1000 or 10^6.
    """
    formula = "".join(text.split())
    for standard in CHARACTERISTICS:
        if standard.text == formula:
            return standard
    if len(formula) > _LONGEST:
        raise ValueError(f"the function of p has {len(formula)} characters, at most {_LONGEST} are allowed")
    try:
        tree = ast.parse(formula.replace("^", "**"), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(f"{text!r} is no function of p, write for example log(p)/p or p^0.75") from None
    if sum(1 for _ in ast.walk(tree)) > 3 * _PARTS:
        raise ValueError(f"the function {text!r} has too many parts")
    _check(tree, text)

    sized = any(isinstance(node, ast.Name) and node.id == "N" for node in ast.walk(tree))

    def u(p: Floats, size: Floats | None = None) -> Floats:
        p = np.asarray(p, np.float64)
        if sized and size is None:
            raise ValueError(f"{formula} needs the problem size N")
        with np.errstate(all="ignore"):
            return np.broadcast_to(_value(tree, p, p if size is None else size), p.shape).astype(np.float64)

    samples = np.array([1.0, 2.0, 1e3, 1e6])
    if not np.isfinite(u(samples, samples)).all():
        raise ValueError(f"{text!r} has no finite value for every p from 1 to 1000000")
    return Characteristic(formula, u, sized)


def _check(node: ast.AST, text: str) -> None:
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        _check(node.left, text)
        _check(node.right, text)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd | ast.USub):
        _check(node.operand, text)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CALLS:
        if len(node.args) != 1 or node.keywords:
            raise ValueError(f"{node.func.id} takes one value in {text!r}")
        _check(node.args[0], text)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        if isinstance(node.value, bool) or abs(node.value) > 1e100:
            raise ValueError(f"{node.value} in {text!r} is not a usable number")
    elif not (isinstance(node, ast.Name) and node.id in ("p", "N")):
        part = ast.unparse(node)[:40]
        raise ValueError(
            f"{part!r} in {text!r} is not understood: there are p, the problem size N, numbers, + - * / ^ "
            f"and {', '.join(_CALLS)}"
        )


def _value(node: ast.AST, p: Floats, size: Floats) -> Floats:
    if isinstance(node, ast.BinOp):
        return _BINARY[type(node.op)](_value(node.left, p, size), _value(node.right, p, size))
    if isinstance(node, ast.UnaryOp):
        value = _value(node.operand, p, size)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.Call):
        assert isinstance(node.func, ast.Name)
        return _CALLS[node.func.id](_value(node.args[0], p, size))
    if isinstance(node, ast.Constant):
        assert isinstance(node.value, int | float)
        return np.asarray(float(node.value))
    return size if isinstance(node, ast.Name) and node.id == "N" else p
