"""Other tools for the same job, each given the curve as well as it can take one.

`Peer.breaks(edges, level, n)` returns at most n phases: times (m+1,) and degrees (m,). None of these tools
knows a step function. Those that take weights get one sample per step, at its middle, weighted by its width;
the others get M equally spaced samples, M being the number of steps. A break between two samples is taken as
the edge between their steps (or cells); what a partition is worth is then computed on the exact curve, with
the best polynomials it allows, so that no tool is blamed for its sampling of the values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Partition = tuple[Floats, NDArray[np.int64]]


@dataclass(frozen=True)
class Peer:
    """``order``: how its time grows with M; ``at_once``: one solution holds all smaller n too."""

    name: str
    given: str
    order: float
    breaks: Callable[[Floats, Floats, int], Partition]
    at_once: bool = False


def _samples(edges: Floats, level: Floats) -> tuple[Floats, float]:
    cell = (edges[-1] - edges[0]) / level.size
    at = edges[0] + cell * (np.arange(level.size) + 0.5)
    return level[np.searchsorted(edges, at, side="right") - 1], cell


def _constants(edges: Floats, inner: Floats) -> Partition:
    return np.concatenate([edges[:1], inner, edges[-1:]]), np.zeros(inner.size + 1, np.int64)


def _ruptures(make: Callable[[], Any]) -> Callable[[Floats, Floats, int], Partition]:
    def breaks(edges: Floats, level: Floats, n: int) -> Partition:
        signal, cell = _samples(edges, level)
        if n == 1:
            return _constants(edges, edges[:0])
        ends = make().fit(signal.reshape(-1, 1)).predict(n_bkps=n - 1)
        return _constants(edges, edges[0] + cell * np.array(ends[:-1], float))

    return breaks


def _tree(edges: Floats, level: Floats, n: int) -> Partition:
    from sklearn.tree import DecisionTreeRegressor

    if n == 1:
        return _constants(edges, edges[:0])
    middle = (edges[:-1] + edges[1:]) / 2
    tree = DecisionTreeRegressor(max_leaf_nodes=n, random_state=0)
    tree.fit(middle.reshape(-1, 1), level, sample_weight=np.diff(edges))
    split = np.sort(tree.tree_.threshold[tree.tree_.feature >= 0])
    return _constants(edges, edges[np.searchsorted(middle, split)])


def _pcw(degree: int) -> Callable[[Floats, Floats, int], Partition]:
    def breaks(edges: Floats, level: Floats, n: int) -> Partition:
        from pcw_regrs_py.pcw_regrs_py import fit_pcw_poly

        middle = (edges[:-1] + edges[1:]) / 2
        weight = np.diff(edges) / np.diff(edges).mean()
        solved = fit_pcw_poly(middle / edges[-1], level, n * (degree + 1), degree + 1, weight)
        # Its models are those on the convex hull of error over degrees of freedom, the richest first.
        model = next(m for m in solved.model_func().values if len(m.cut_idxs) < n)
        inner = edges[np.array(model.cut_idxs, int) + 1]
        found = np.array([part.degrees_of_freedom - 1 for part in model.model_params], np.int64)
        return np.concatenate([edges[:1], inner, edges[-1:]]), found

    return breaks


def peers() -> list[Peer]:
    """The peers that are installed (``pip install phasewright[bench]`` has all of them)."""
    import ruptures
    import ruptures_rs

    equal = "M equal samples"
    weighted = "steps, weighted by width"
    return [
        Peer(
            "ruptures KernelCPD (C)",
            equal,
            2,
            _ruptures(lambda: ruptures.KernelCPD(kernel="linear", min_size=1, jump=1)),
        ),
        Peer("ruptures Binseg", equal, 1.2, _ruptures(lambda: ruptures.Binseg("l2", min_size=1, jump=1))),
        Peer("ruptures-rs Dynp", equal, 2, _ruptures(lambda: ruptures_rs.Dynp("l2", min_size=1, jump=1))),
        Peer("ruptures-rs Binseg", equal, 1, _ruptures(lambda: ruptures_rs.Binseg("l2", min_size=1, jump=1))),
        Peer("scikit-learn tree", weighted, 1.1, _tree),
        Peer("pcw-regrs-py, degree 0", weighted, 2.2, _pcw(0), at_once=True),
        Peer("pcw-regrs-py, degree <= 2", weighted, 2.2, _pcw(2), at_once=True),
    ]
