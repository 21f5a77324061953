"""Phases of functions other than polynomials: the kernels compiled from the table `desktop.core.bases.TABLE`.

Intervals of a space merge as polynomials do in `desktop.core.tree`: each keeps the coefficients of its best
function in orthogonal functions q0 to q3 and the squared error, and two neighbours merge by sums of squares,
as on a part of an interval the functions are combinations of the part's own. All integrals are exact: no
quadrature, and no nearly equal numbers are subtracted.

The kernels here are templates for any space: `space` represents its module, and `kernels` compiles them for
it. Code that all models share (`desktop.core.partition`) is compiled once and calls a space's `go` by its
address, `MomentTree.go`.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from functools import cache
from types import FunctionType, ModuleType, SimpleNamespace
from typing import NamedTuple, TypeAlias, TypeVar, cast

import numpy as np

from desktop.core import bases
from desktop.core.arrays import Floats, Ints
from desktop.core.compiler import address
from desktop.core.curve import StepCurve
from desktop.core.jit import arithmetic, formula, inlined, kernel
from desktop.core.tree import BLOCK, SHIFT, MomentTree, begin, moment_tree, row

# A node's row: width, c0 to c3, squared error, the squared norms of q2 and q3 (for a half width of 1), and
# the five numbers of its width.
COLUMNS = 13
Moments: TypeAlias = tuple[
    float, float, float, float, float, float, float, float, float, float, float, float, float
]
_EXACT = 1e-15
_ROUNDS = 120
# Gauss' rule of five points on [-1, 1].
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(5)


#: Placeholder for the module of a space, replaced in `kernels`.
space = ModuleType("space")
_Function = TypeVar("_Function", bound=Callable[..., object])
_TEMPLATES: list[tuple[Callable[..., object], FunctionType]] = []


class Basis(NamedTuple):
    """Functions of phases besides polynomials: the `model` of a space, and its `rate` (radians a second for a
    period; one over seconds for a time constant; 0 without a scale)."""

    model: str
    rate: float

    @classmethod
    def of(cls, model: str, seconds: float) -> Basis:
        """The basis with a period, or a time constant, of `seconds`."""
        scale = _space(model).scale
        return cls(model, scale.turns / seconds if scale else 0.0)

    @property
    def space(self) -> bases.FunctionSpace:
        return _space(self.model)

    @property
    def degree(self) -> int:
        """The number of its space, after the degrees of polynomials."""
        return bases.degree_of(self.model)

    @property
    def seconds(self) -> float:
        """The period, or the time constant (s)."""
        scale = self.space.scale
        return scale.turns / self.rate if scale else math.inf

    @property
    def scale(self) -> dict[str, float]:
        """``period_s`` or ``time_constant_s`` (the key in tables and JSON) and its value, or nothing."""
        scale = self.space.scale
        return {scale.key: self.seconds} if scale else {}


def _space(model: str) -> bases.FunctionSpace:
    return bases.TABLE[bases.degree_of(model) - bases.FIRST]


def with_basis(curve: StepCurve, basis: Basis | None) -> MomentTree:
    """The moment tree of a curve, with nodes of a basis if one is given: O(M) at the first call, then cached
    in ``curve.summaries``, which keeps the last one of each model."""
    tree = moment_tree(curve)
    if basis is None:
        return tree
    cached = curve.summaries.get(f"moments, {basis.model}")
    rate = basis.rate * curve.unit
    if not isinstance(cached, MomentTree) or cached.rate != rate:
        compiled = kernels(basis.model)
        cached = tree._replace(space=basis.degree, rate=rate, price=basis.space.terms + 1)
        cached = cached._replace(terms=np.empty((len(tree.nodes), COLUMNS)))
        cached = cached._replace(go=address(compiled.go, cached, 1, 0, 0.0, 0, 0.0, 0.0, 0.0))
        compiled.build(cached)
        curve.summaries[f"moments, {basis.model}"] = cached
    return cached


def evaluate(basis: Basis | None, degree: Ints, width: Floats, c: Floats, u: Floats) -> tuple[Floats, Floats]:
    """Values and slopes in u (n,) of phases: degree, width (seconds), u in [-1, 1] (n,), coefficients c
    (n, 4), of Legendre polynomials for degrees below 3."""
    value = c[:, 0] + u * c[:, 1] + (1.5 * u * u - 0.5) * c[:, 2]
    slope = c[:, 1] + 3 * u * c[:, 2]
    in_space = degree > 2
    if basis is not None and in_space.any():
        space_values = np.empty((2, int(in_space.sum())))
        kernels(basis.model).values(basis.rate, width[in_space], c[in_space], u[in_space], *space_values)
        value[in_space], slope[in_space] = space_values
    return value, slope


def template(how: Callable[..., object]) -> Callable[[_Function], _Function]:
    """A decorator of templates, which are compiled with the decorator `how` for each space."""

    def note(function: _Function) -> _Function:
        _TEMPLATES.append((how, cast(FunctionType, function)))
        return function

    return note


@cache
def kernels(model: str) -> SimpleNamespace:
    """The kernels below for a space, by name; each is compiled, or loaded from the folder of compiled
    kernels, when it is first called. Names of cached kernels identify the space and its formulas."""
    module = _compiled(_space(model).natural.__globals__)
    names = globals() | {"space": module}
    for how, function in _TEMPLATES:
        copy = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
        copy.__qualname__ = f"{function.__name__}-{model}-{module.digest:08x}"
        names[function.__name__] = how(copy)
    return SimpleNamespace(**{function.__name__: names[function.__name__] for _, function in _TEMPLATES})


def _compiled(names: dict[str, object]) -> ModuleType:
    """A space's module with its functions as kernels, and its tuples of numbers as arrays."""
    module = ModuleType(str(names["__name__"]))
    digest = zlib.crc32(module.__name__.encode())
    for name, value in names.items():
        if isinstance(value, FunctionType):
            if value.__globals__ is names:
                code = value.__code__
                digest = zlib.crc32(code.co_code + repr(code.co_consts).encode(), digest)
                value = FunctionType(code, module.__dict__, name, value.__defaults__)
            value = inlined(value)
        elif isinstance(value, tuple) and all(isinstance(one, float) for one in value):
            value = np.array(value)
        if not name.startswith("__") or name == "__name__":
            setattr(module, name, value)
    module.__dict__["digest"] = digest
    return module


@template(inlined)
def step(tree: MomentTree, w: float, height: float) -> Moments:
    """The moments of a part of a step."""
    x = abs(tree.rate) * w / 2
    n2, n3 = space.norms(x)
    return w, height, 0.0, 0.0, 0.0, 0.0, n2, n3, *space.shape(x)


@template(formula)
def joined(rate: float, a: Moments, b: Moments) -> Moments:
    """The moments of two neighbours merged, `a` to the left of `b`."""
    wa, a0, a1, a2, a3, ea, an2, an3, sa0, sa1, sa2, sa3, sa4 = a
    wb, b0, b1, b2, b3, eb, bn2, bn3, sb0, sb1, sb2, sb3, sb4 = b
    w = wa + wb
    r = wa / w
    t = wb / w
    difference = b0 - a0
    c0 = a0 + t * difference if t <= 0.5 else b0 - r * difference
    # The mean is orthogonal to all other functions.
    a0, b0 = -t * difference, r * difference
    xa, xb = abs(rate) * wa / 2, abs(rate) * wb / 2
    shape, left, right = space.split(rate, r, t, xa, (sa0, sa1, sa2, sa3, sa4), xb, (sb0, sb1, sb2, sb3, sb4))
    l20, l21, l22, l23, l30, l31, l32, l33 = left
    r20, r21, r22, r23, r30, r31, r32, r33 = right
    # Squared norms as parts of the whole width.
    pa0, pa1, pa2, pa3 = r, r / 3, r * an2 / 2, r * an3 / 2
    pb0, pb1, pb2, pb3 = t, t / 3, t * bn2 / 2, t * bn3 / 2
    n2 = l20 * l20 * pa0 + l21 * l21 * pa1 + l22 * l22 * pa2 + l23 * l23 * pa3
    n2 += r20 * r20 * pb0 + r21 * r21 * pb1 + r22 * r22 * pb2 + r23 * r23 * pb3
    c1 = 3 * (pa0 * -t * a0 + pa1 * r * a1 + pb0 * r * b0 + pb1 * t * b1)
    c2 = l20 * pa0 * a0 + l21 * pa1 * a1 + l22 * pa2 * a2 + l23 * pa3 * a3
    c2 += r20 * pb0 * b0 + r21 * pb1 * b1 + r22 * pb2 * b2 + r23 * pb3 * b3
    c2 /= n2
    n3, c3 = 0.0, 0.0
    if space.TERMS > 3:
        n3 = l30 * l30 * pa0 + l31 * l31 * pa1 + l32 * l32 * pa2 + l33 * l33 * pa3
        n3 += r30 * r30 * pb0 + r31 * r31 * pb1 + r32 * r32 * pb2 + r33 * r33 * pb3
        c3 = l30 * pa0 * a0 + l31 * pa1 * a1 + l32 * pa2 * a2 + l33 * pa3 * a3
        c3 += r30 * pb0 * b0 + r31 * pb1 * b1 + r32 * pb2 * b2 + r33 * pb3 * b3
        c3 /= n3
    u0 = a0 + t * c1 - l20 * c2 - l30 * c3
    v0 = b0 - r * c1 - r20 * c2 - r30 * c3
    u1 = a1 - r * c1 - l21 * c2 - l31 * c3
    v1 = b1 - t * c1 - r21 * c2 - r31 * c3
    u2 = a2 - l22 * c2 - l32 * c3
    v2 = b2 - r22 * c2 - r32 * c3
    u3 = a3 - l23 * c2 - l33 * c3
    v3 = b3 - r23 * c2 - r33 * c3
    more = pa0 * u0 * u0 + pa1 * u1 * u1 + pa2 * u2 * u2 + pa3 * u3 * u3
    more += pb0 * v0 * v0 + pb1 * v1 * v1 + pb2 * v2 * v2 + pb3 * v3 * v3
    return w, c0, c1, c2, c3, ea + eb + w * more, 2 * n2, 2 * n3, *shape


@template(inlined)
def at_ends(rate: float, m: Moments) -> tuple[float, float]:
    """The values of the best function at its interval's left and right end, relative to the reference."""
    w, c0, c1, c2, c3, _, _, _, s0, s1, s2, s3, s4 = m
    left2, left3, right2, right3 = space.ends(rate, abs(rate) * w / 2, (s0, s1, s2, s3, s4))
    return c0 - c1 + c2 * left2 + c3 * left3, c0 + c1 + c2 * right2 + c3 * right3


@template(inlined)
def node_at(tree: MomentTree, s: int, at: int) -> Moments:
    """The moments of the node in row `at`, mirrored for s = -1."""
    z = tree.terms[at]
    c1, c3 = s * z[2], s * z[4]
    return z[0], z[1], c1, z[3], c3, z[5], z[6], z[7], z[8], z[9], z[10], z[11], z[12]


@template(inlined)
def keep_node(tree: MomentTree, z: Floats, m: Moments, w: float) -> None:
    """Store moments in a node's row; `w`: its width from the edges, not a sum with rounding."""
    z[0], z[1], z[2], z[3], z[4], z[5], z[6], z[7] = w, m[1], m[2], m[3], m[4], m[5], m[6], m[7]
    z[8], z[9], z[10], z[11], z[12] = space.shape(abs(tree.rate) * w / 2)


@template(kernel)
def build(tree: MomentTree) -> None:
    edges, level, leaves = tree.edges, tree.level, tree.leaves
    for leaf in range(leaves):
        j = leaf << SHIFT
        end = j + BLOCK
        m = step(tree, edges[j + 1] - edges[j], level[j] - tree.reference)
        for i in range(j + 1, end):
            piece = step(tree, edges[i + 1] - edges[i], level[i] - tree.reference)
            m = joined(tree.rate, m, piece)
        node, depth = leaf, 0
        z = tree.terms[row(leaves, 0, leaf)]
        keep_node(tree, z, m, edges[end] - edges[j])
        while node & 1:
            left = node_at(tree, 1, row(leaves, depth, node - 1))
            right = node_at(tree, 1, row(leaves, depth, node))
            node, depth = node >> 1, depth + 1
            m = joined(tree.rate, left, right)
            z = tree.terms[row(leaves, depth, node)]
            keep_node(tree, z, m, edges[end] - edges[end - (BLOCK << depth)])


@inlined
def piece_of(edges: Floats, level: Floats, reference: float, i: int) -> tuple[float, float]:
    """Width and height of step i."""
    return edges[i + 1] - edges[i], level[i] - reference


@template(inlined)
def cut(
    tree: MomentTree, rate: float, m: Moments, height: float, width: float, e: float
) -> tuple[float, Moments, int]:
    """As `desktop.core.tree.cut`: width of the part that fits, its moments, number of merges."""
    spare = e - m[5]
    if spare <= 0:
        return 0.0, m, 0
    q = at_ends(rate, m)[1] - height
    stiff = q * q - spare * (space.TERMS * space.TERMS / m[0])
    t = spare / stiff if stiff * width > spare else 0.5 * width
    low, high = 0.0, width
    merges = 0
    while True:
        n = joined(rate, m, step(tree, t, height))
        merges += 1
        if abs(n[5] - e) <= _EXACT * e or merges >= _ROUNDS:
            break
        if n[5] > e:
            high = t
        else:
            low = t
        gained = n[5] - m[5]
        q = at_ends(rate, n)[1] - height
        divisor = spare * q * q * t - gained * (spare - gained)
        guess = t * (spare * q * q * t) / divisor if divisor > 0 else 0.0
        if not low < guess < high:
            guess = 0.5 * (low + high)
        if not low < guess < high or guess == t:
            break
        t = guess
    return t, n, merges


@template(arithmetic)
def reach(
    tree: MomentTree, s: int, j: int, o: float, cj: int, co: float, e: float, goal: float = np.nan
) -> tuple[int, float, Moments, int]:
    """As `desktop.core.tree.reach`, for the tree's own space: position, moments, number of merges.

    Going left, the moments are those of the mirrored curve.
    """
    edges, level, leaves = tree.edges, tree.level, tree.leaves
    rate = s * tree.rate
    back = (1 - s) // 2
    b, w, height, last, tail = begin(tree, s, j, o, cj, co)
    m = step(tree, w, height)
    if s * (last - b) < 0:
        return cj, co, m, 0
    merges = 0
    depth = 0
    rising = True
    while True:
        # As in `tree.climb` and `tree.descend`: ever larger nodes, then ever smaller ones, then single steps.
        on_leaf = b & (BLOCK - 1) == 0
        if rising and not on_leaf:
            if b == last:
                break
            n = joined(rate, m, step(tree, *piece_of(edges, level, tree.reference, b - back)))
            merges += 1
            if n[5] > e:
                break
            m = n
            b += s
            continue
        if rising and 1 << depth > leaves:
            rising = False
        if not rising:
            if depth == 0:
                break
            depth -= 1
        node = (b >> SHIFT >> depth) - back
        if rising and not (b >> SHIFT >> depth) & 1:
            depth += 1
            continue
        far = b + (s << depth << SHIFT)
        if s * (last - far) < 0 or node >= leaves >> depth or node < 0:
            rising = False
            continue
        n = joined(rate, m, node_at(tree, s, row(leaves, depth, node)))
        merges += 1
        if n[5] <= e:
            m = n
            b = far
            if rising:
                depth += 1
            if m[0] > goal:
                return b, 0.0, m, merges
        else:
            rising = False
            if n[0] <= goal:
                return b, 0.0, m, merges
    while b != last or tail > 0:
        pw, height = piece_of(edges, level, tree.reference, b - back)
        if b == last:
            pw = tail
        n = joined(rate, m, step(tree, pw, height))
        merges += 1
        if n[5] > e:
            if n[0] <= goal:
                return b, 0.0, m, merges
            t, m, more = cut(tree, rate, m, height, pw, e)
            return b, s * t, m, merges + more
        m = n
        if b == last:
            break
        b += s
    return cj, co, m, merges


@template(arithmetic)
def go(
    tree: MomentTree, s: int, j: int, o: float, cj: int, co: float, e: float, goal: float
) -> tuple[int, float, float, float, float, int]:
    """`reach`: position, error, the values of the fit at its start and end, number of merges."""
    j, o, moments, merges = reach(tree, s, j, o, cj, co, e, goal)
    first, final = at_ends(s * tree.rate, moments)
    return j, o, moments[5], first, final, merges


@template(arithmetic)
def describe(tree: MomentTree, j: Ints, o: Floats, c: Floats, error: Floats) -> None:
    """Set coefficients `c` (m, 4) of every interval from (j, o)[i, 0] to (j, o)[i, 1], and its column of
    `error`."""
    for i in range(j.shape[0]):
        _, _, m, _ = reach(tree, 1, j[i, 0], o[i, 0], j[i, 1], o[i, 1], np.inf)
        error[i, tree.space] = m[5]
        c[i, 0], c[i, 1], c[i, 2], c[i, 3] = m[1] + tree.reference, m[2], m[3], m[4]


@template(inlined)
def value_and_slope(rate: float, width: float, c: Floats, u: float) -> tuple[float, float]:
    """Value at u in [-1, 1] of a phase with coefficients c (4,), and the slope in u."""
    q2, slope2, q3, slope3 = space.functions(rate, abs(rate) * width / 2, u)
    return c[0] + u * c[1] + c[2] * q2 + c[3] * q3, c[1] + c[2] * slope2 + c[3] * slope3


@template(kernel)
def values(rate: float, width: Floats, c: Floats, u: Floats, value: Floats, slope: Floats) -> None:
    """`value_and_slope` of many: width, u (n,), c (n, 4)."""
    for i in range(u.size):
        value[i], slope[i] = value_and_slope(rate, width[i], c[i], u[i])


@template(kernel)
def between(rate: float, width: Floats, c: Floats, left: Floats, right: Floats, out: Floats) -> None:
    """Set `out` (3, n) for phases, width (n,), c (n, 4): lower and upper bound of the values from u = left to
    right, off by at most the deviation from the chord, and the exact mean."""
    for i in range(left.size):
        a, b = left[i], right[i]
        p0, _ = value_and_slope(rate, width[i], c[i], a)
        p1, _ = value_and_slope(rate, width[i], c[i], b)
        x = abs(rate) * width[i] / 2
        bent = space.bend(rate, x, c[i, 2], c[i, 3], a, b)
        out[0, i], out[1, i] = min(p0, p1) - bent, max(p0, p1) + bent
        if x * (b - a) < 1:
            total = 0.0
            for k in range(5):
                value, _ = value_and_slope(rate, width[i], c[i], (a + b) / 2 + (b - a) / 2 * _NODES[k])
                total += _WEIGHTS[k] * value
            out[2, i] = total / 2
        else:
            q2, q3 = space.means(rate, x, a, b)
            out[2, i] = c[i, 0] + c[i, 1] * (a + b) / 2 + c[i, 2] * q2 + c[i, 3] * q3
