"""Call paths of a location, as a tree.

The regions that are open at a time, the outermost first, are a path from the root of a tree (node 0, no
region): (2, nodes) parent and region of each node, where parents have smaller numbers than their children. It
grows while events are replayed (`desktop.core.open_regions`).

The number of paths is bounded: beyond the limit a region is *folded*, that is, it counts for one node of its
region whatever its path. Regions opened inside a folded region are folded too. A folded node's parent is -1.
"""

from __future__ import annotations

import numpy as np

from desktop.core.arrays import AnyArray, Flags, Ints
from desktop.core.jit import arithmetic, inlined, kernel

#: Fields of the state of a replay (`desktop.core.open_regions`) for the tree: number of nodes, of folded
#: nodes, and of open regions that are folded.
NODES, FOLDS, FOLDED = range(3)


@inlined
def child(parent: int, region: int, limit: int, tree: Ints, slots: Ints, state: Ints) -> int:
    """The node of a region within a path, added if necessary; -1 if it is unknown and may not be added."""
    if parent > 0 and tree[0, parent] < 0:
        parent = -1  # folded, and so are all regions inside
    if parent >= 0:
        at = place(parent, region, tree, slots)
        if slots[at] > 0:
            return int(slots[at]) - 1
        if state[NODES] - state[FOLDS] <= limit:
            return add(parent, region, at, tree, slots, state)
        parent = -1
    at = place(parent, region, tree, slots)
    if slots[at] > 0:
        return int(slots[at]) - 1
    if limit == 0 or state[NODES] == tree.shape[1]:
        return -1
    state[FOLDS] += 1
    return add(parent, region, at, tree, slots, state)


@inlined
def place(parent: int, region: int, tree: Ints, slots: Ints) -> int:
    """Index of a node in the hash table, or of the free slot for it."""
    mask = slots.size - 1
    h = np.uint64((parent + 1) << 32 | region) * np.uint64(0x9E3779B97F4A7C15)
    at = np.int64(h >> np.uint64(24)) & mask
    while slots[at] > 0:
        node = slots[at] - 1
        if tree[0, node] == parent and tree[1, node] == region:
            break
        at = (at + 1) & mask
    return int(at)


@inlined
def add(parent: int, region: int, at: int, tree: Ints, slots: Ints, state: Ints) -> int:
    """Add a node, the child of `parent` in `region`, in slot `at` of the hash table; returns its number."""
    node = int(state[NODES])
    state[NODES] += 1
    tree[0, node] = parent
    tree[1, node] = region
    slots[at] = node + 1
    return node


@arithmetic
def plant(parent: Ints, region: Ints, regions: int, tree: Ints, slots: Ints, state: Ints) -> bool:
    """Put known nodes, from 1 on, into an empty tree; False if they are invalid (a damaged file)."""
    for i in range(parent.size):
        if parent[i] < -1 or parent[i] > i or region[i] >= regions:
            return False
        if parent[i] > 0 and tree[0, parent[i]] < 0:
            return False
        at = place(parent[i], region[i], tree, slots)
        if slots[at] > 0:
            return False
        add(parent[i], region[i], at, tree, slots, state)
        if parent[i] < 0:
            state[FOLDS] += 1
    return True


@kernel
def path(node: int, tree: Ints) -> Ints:
    """(depth,) the nodes on the path to a node, the outermost first."""
    depth = 0
    at = node
    while at > 0:
        depth += 1
        at = tree[0, at]
    path = np.empty(depth, np.int64)
    for i in range(depth - 1, -1, -1):
        path[i] = node
        node = tree[0, node]
    return path


@arithmetic
def accumulate(node: AnyArray, ticks: Ints, calls: Ints, sum_ticks: Ints, sum_calls: Ints) -> None:
    """Add ticks and calls (n,) to the sums (nodes,) of their nodes."""
    for i in range(node.size):
        sum_ticks[node[i]] += ticks[i]
        sum_calls[node[i]] += calls[i]


# ------------------------------------------------------------------ sums over a tree


@kernel
def inclusive(tree: Ints, exclusive: Ints) -> Ints:
    """(nodes, n) sums of `exclusive` over each node and all below it; folded nodes only count for
    themselves."""
    total = exclusive.copy()
    for node in range(tree.shape[1] - 1, 0, -1):
        parent = tree[0, node]
        if parent >= 0:
            for k in range(total.shape[1]):
                total[parent, k] += total[node, k]
    return total


@kernel
def outermost(tree: Ints) -> Flags:
    """(nodes,) whether no ancestor of a node has the same region."""
    outer = np.ones(tree.shape[1], np.bool_)
    for node in range(1, tree.shape[1]):
        above = tree[0, node]
        while above > 0:
            if tree[1, above] == tree[1, node]:
                outer[node] = False
                break
            above = tree[0, above]
    return outer


@kernel
def add_by_region(
    tree: Ints, first: Flags, exclusive: Ints, inclusive: Ints, calls: Ints, sum_exclusive: Ints,
    sum_inclusive: Ints, sum_calls: Ints,
) -> None:  # fmt: skip
    """Add exclusive and inclusive ticks and calls (nodes, n) to the sums of regions (regions, n); inclusive
    ones only where a region is `first` on its path, so that recursion counts once."""
    for node in range(1, tree.shape[1]):
        region = tree[1, node]
        for k in range(exclusive.shape[1]):
            sum_exclusive[region, k] += exclusive[node, k]
            sum_calls[region, k] += calls[node, k]
            if first[node]:
                sum_inclusive[region, k] += inclusive[node, k]


@kernel
def add_by_class(classes: Ints, ticks: Ints, sums: Ints) -> None:
    """Add ticks (nodes, n) to the sums of their activities (n, activities)."""
    for node in range(classes.size):
        for k in range(ticks.shape[1]):
            sums[k, classes[node]] += ticks[node, k]
