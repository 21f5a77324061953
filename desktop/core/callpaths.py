"""Call paths: which regions are open in which order, replayed event by event into a tree of paths.

A location's regions open at a time, the outermost first, are a path from the root of a tree (node 0, no
region). Nesting may be broken: a leave without enter is ignored, a leave of another region than the
innermost closes the innermost matching one, and those inside it then are on another path. So the path is
always that of the regions that are open, and with it what the location does.

The number of paths is bounded: beyond it a region is *folded*, it counts for one node of its own name
whatever path it was on. What is opened inside a folded region is folded too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from desktop.core.jit import arithmetic, inlined, kernel

Ints = NDArray[np.int64]

#: Fields of a `Walk`'s state.
TIME, TOP, FREE, USED, NODES, FOLDS, FOLDED, ROW = range(8)
FIELDS = 8

#: What `advance` returns.
DONE, NO_ROOM, BAD = 0, 1, -1


class Walk(NamedTuple):
    """A replay's place in the events of a location.

    tree : (2, capacity) parent and region of each node; a folded node's parent is -1. A parent has a
        smaller number than its children.
    slots : hash table of the nodes, number + 1; its length is a power of two.
    last : (regions,) newest open entry of each region, -1 if none.
    entries : (5, room) of what is open: next older of the same region, next older and newer of all,
        region, node. Free ones are linked by the first.
    state : (FIELDS,) time of the last event; newest entry; first free entry; entries ever used; nodes, and
        how many of them are folded; open entries that are folded; next row.
    ticks, calls : (capacity,) of each node: time exclusive of others, and enters.
    """

    tree: Ints
    slots: Ints
    last: Ints
    entries: Ints
    state: Ints
    ticks: Ints
    calls: Ints


def walk(regions: int, limit: int) -> Walk:
    """A walk that has seen nothing, for up to `limit` paths and each region folded."""
    capacity = limit + regions + 1
    return Walk(
        np.full((2, capacity), -1, np.int64),
        np.zeros(1 << int(2 * capacity).bit_length(), np.int64),
        np.full(regions, -1, np.int64),
        np.zeros((5, 64), np.int64),
        start(np.zeros(FIELDS, np.int64)),
        np.zeros(capacity, np.int64),
        np.zeros(capacity, np.int64),
    )


def wider(old: Walk, regions: int, limit: int) -> Walk:
    """The same for more regions, with what is open and known."""
    new = walk(regions, limit)
    nodes = int(old.state[NODES])
    plant(old.tree[0, 1:nodes], old.tree[1, 1:nodes], regions, new.tree, new.slots, start(new.state))
    new.ticks[:nodes], new.calls[:nodes] = old.ticks[:nodes], old.calls[:nodes]
    new.last[: old.last.size] = old.last
    new.state[:] = old.state
    return new._replace(entries=old.entries)


def start(state: Ints) -> Ints:
    """A state before the first event: only the root is known."""
    state[:] = 0
    state[[TOP, FREE]] = -1
    state[NODES] = 1
    return state


def roomier(old: Walk) -> Walk:
    """The same with room for twice as many open regions."""
    entries = np.zeros((5, 2 * old.entries.shape[1]), np.int64)
    entries[:, : old.entries.shape[1]] = old.entries
    return old._replace(entries=entries)


@arithmetic
def advance(
    time: Any, kind: Any, region: Any, until: int, limit: int, tree: Any, slots: Any, last: Any,
    entries: Any, state: Any, ticks: Any, calls: Any,
) -> int:  # fmt: skip
    """Replay rows from ``state[ROW]`` on whose time is before `until`; what it returned is one of DONE,
    NO_ROOM (for another open region: make room and go on) and BAD (rows that cannot be).

    New paths are made while there are fewer than `limit`; with 0 the tree stands.
    """
    same, older, newer, of_region, of_node = entries[0], entries[1], entries[2], entries[3], entries[4]
    for i in range(state[ROW], time.size):
        t = time[i]
        if t >= until:
            state[ROW] = i
            return DONE
        r = np.int64(region[i])
        if t < state[TIME] or r >= last.size:
            return BAD
        if state[FREE] < 0 and state[USED] == entries.shape[1]:
            state[ROW] = i
            return NO_ROOM
        top = state[TOP]
        here = of_node[top] if top >= 0 else 0
        ticks[here] += t - state[TIME]
        state[TIME] = t
        if kind[i] == 0:
            node = child(here, r, limit, tree, slots, state)
            if node < 0:
                return BAD
            open_entry(r, node, last, entries, state)
            if tree[0, node] < 0:
                state[FOLDED] += 1
            calls[node] += 1
            continue
        entry = last[r]
        if entry < 0:
            continue
        last[r] = same[entry]
        if tree[0, of_node[entry]] < 0:
            state[FOLDED] -= 1
        below, above = older[entry], newer[entry]
        if below >= 0:
            newer[below] = above
        if above >= 0:
            older[above] = below
        else:
            state[TOP] = below
        same[entry] = state[FREE]
        state[FREE] = entry
        path = of_node[below] if below >= 0 else 0
        while above >= 0 and tree[0, of_node[above]] >= 0:
            path = child(path, of_region[above], limit, tree, slots, state)
            if path < 0:
                return BAD
            if tree[0, path] < 0:
                state[FOLDED] += 1
            of_node[above] = path
            above = newer[above]
    state[ROW] = time.size
    return DONE


@inlined
def open_entry(region: int, node: int, last: Any, entries: Any, state: Any) -> None:
    """Put a region on top of those that are open; there is room for it."""
    entry = state[FREE]
    if entry >= 0:
        state[FREE] = entries[0, entry]
    else:
        entry = state[USED]
        state[USED] += 1
    top = state[TOP]
    entries[0, entry] = last[region]
    entries[1, entry] = top
    entries[2, entry] = -1
    entries[3, entry] = region
    entries[4, entry] = node
    if top >= 0:
        entries[2, top] = entry
    last[region] = entry
    state[TOP] = entry


@inlined
def child(parent: int, region: int, limit: int, tree: Any, slots: Any, state: Any) -> int:
    """The node of a region within a path; -1 if it is neither known nor may be made."""
    if parent > 0 and tree[0, parent] < 0:
        parent = -1  # folded, and so is all within
    if parent >= 0:
        at = place(parent, region, tree, slots)
        if slots[at] > 0:
            return slots[at] - 1
        if state[NODES] - state[FOLDS] <= limit:
            return add(parent, region, at, tree, slots, state)
        parent = -1
    at = place(parent, region, tree, slots)
    if slots[at] > 0:
        return slots[at] - 1
    if limit == 0 or state[NODES] == tree.shape[1]:
        return -1
    state[FOLDS] += 1
    return add(parent, region, at, tree, slots, state)


@inlined
def place(parent: int, region: int, tree: Any, slots: Any) -> int:
    """Where in the hash table a node is, or would be."""
    mask = slots.size - 1
    h = np.uint64((parent + 1) << 32 | region) * np.uint64(0x9E3779B97F4A7C15)
    at = np.int64(h >> np.uint64(24)) & mask
    while slots[at] > 0:
        node = slots[at] - 1
        if tree[0, node] == parent and tree[1, node] == region:
            break
        at = (at + 1) & mask
    return at


@inlined
def add(parent: int, region: int, at: int, tree: Any, slots: Any, state: Any) -> int:
    """A new node, the child of `parent` in `region`, found from now on at place `at` of the table."""
    node = state[NODES]
    state[NODES] += 1
    tree[0, node] = parent
    tree[1, node] = region
    slots[at] = node + 1
    return node


@arithmetic
def forget(tree: Any, slots: Any, last: Any, entries: Any, state: Any, ticks: Any, calls: Any) -> None:
    """Empty a walk for the next location; costs what it held, not what it has room for."""
    # Youngest first: what was put into the table later never stands in the way of what was there before.
    for node in range(state[NODES] - 1, -1, -1):
        ticks[node] = 0
        calls[node] = 0
        if node:
            slots[place(tree[0, node], tree[1, node], tree, slots)] = 0
    close_all(last, entries, state)
    state[NODES] = 1
    state[FOLDS] = 0
    state[TIME] = 0
    state[ROW] = 0


@arithmetic
def close_all(last: Any, entries: Any, state: Any) -> None:
    """No region is open."""
    entry = state[TOP]
    while entry >= 0:
        last[entries[3, entry]] = -1
        entry = entries[1, entry]
    state[TOP] = -1
    state[FREE] = -1
    state[USED] = 0
    state[FOLDED] = 0


@arithmetic
def folded_open(tree: Any, entries: Any, state: Any, out: Any) -> None:
    """The nodes of the open entries that are folded, outermost first; `out` has room for just these."""
    entry = state[TOP]
    for i in range(out.size - 1, -1, -1):
        out[i] = entries[4, entry]
        entry = entries[1, entry]


@arithmetic
def path_open(tree: Any, entries: Any, state: Any) -> int:
    """The node of the innermost open entry that is not folded; 0 if there is none."""
    entry = state[TOP]
    while entry >= 0 and tree[0, entries[4, entry]] < 0:
        entry = entries[1, entry]
    return entries[4, entry] if entry >= 0 else 0


@arithmetic
def reopen(
    node: int, folded: Any, tree: Any, last: Any, entries: Any, state: Any, way: Any
) -> None:  # fmt: skip
    """Open the path to a node, and within it the folded ones. There is room for all; `way` (nodes,)."""
    close_all(last, entries, state)
    depth = 0
    while node > 0:
        way[depth] = node
        depth += 1
        node = tree[0, node]
    for i in range(depth - 1, -1, -1):
        open_entry(tree[1, way[i]], way[i], last, entries, state)
    for i in range(folded.size):
        open_entry(tree[1, folded[i]], folded[i], last, entries, state)
    state[FOLDED] = folded.size


@arithmetic
def plant(parent: Any, region: Any, regions: int, tree: Any, slots: Any, state: Any) -> bool:
    """Put known nodes, from 1 on, into an empty tree; False if they are none (a damaged file)."""
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


@arithmetic
def accumulate(node: Any, ticks: Any, calls: Any, sum_ticks: Any, sum_calls: Any) -> None:
    """Add ticks and calls (n,) to the sums (nodes,) of their nodes."""
    for i in range(node.size):
        sum_ticks[node[i]] += ticks[i]
        sum_calls[node[i]] += calls[i]


# ------------------------------------------------------------------ what follows from a tree


@kernel
def activities(
    tree: Any, classes: Any, active: Any, strength: Any, strongest: bool, worker: bool, base: int
) -> Any:  # fmt: skip
    """(nodes,) what a location does on each path; `classes` and `active` (regions,) as in
    `desktop.data.utilization`: of several regions that do not compute the outermost (or the strongest)
    decides, a worker thread computes in active regions only, and in no region a location does its base."""
    nodes = tree.shape[1]
    decisive = np.zeros(nodes, np.int64)
    at_work = np.zeros(nodes, np.bool_)
    found = np.zeros(nodes, np.int64)
    found[0] = base
    for node in range(1, nodes):
        parent = max(tree[0, node], 0)
        own = np.int64(classes[tree[1, node]])
        above = decisive[parent]
        if above == 0 or (strongest and strength[own] > strength[above]):
            decisive[node] = own
        else:
            decisive[node] = above
        at_work[node] = at_work[parent] or active[tree[1, node]] != 0
        if decisive[node] != 0:
            found[node] = decisive[node]
        elif worker and not at_work[node]:
            found[node] = base
    return found


@kernel
def inclusive(tree: Any, exclusive: Any) -> Any:
    """(nodes, n) sums of `exclusive` over each node and all below it; folded nodes stand for themselves."""
    found = exclusive.copy()
    for node in range(tree.shape[1] - 1, 0, -1):
        parent = tree[0, node]
        if parent >= 0:
            for k in range(found.shape[1]):
                found[parent, k] += found[node, k]
    return found


@kernel
def outermost(tree: Any) -> Any:
    """(nodes,) whether no ancestor of a node is of the same region."""
    found = np.ones(tree.shape[1], np.bool_)
    for node in range(1, tree.shape[1]):
        above = tree[0, node]
        while above > 0:
            if tree[1, above] == tree[1, node]:
                found[node] = False
                break
            above = tree[0, above]
    return found


@kernel
def add_by_region(
    tree: Any, first: Any, own: Any, within: Any, calls: Any, sum_own: Any, sum_within: Any, sum_calls: Any
) -> None:  # fmt: skip
    """Add exclusive and inclusive ticks and calls (nodes, n) to those of the regions (regions, n);
    inclusive ones where a region is `first` on its path, so that recursion counts once."""
    for node in range(1, tree.shape[1]):
        region = tree[1, node]
        for k in range(own.shape[1]):
            sum_own[region, k] += own[node, k]
            sum_calls[region, k] += calls[node, k]
            if first[node]:
                sum_within[region, k] += within[node, k]


@kernel
def add_by_class(found: Any, own: Any, sums: Any) -> None:
    """Add ticks (nodes, n) to those of their activities (n, activities)."""
    for node in range(found.size):
        for k in range(own.shape[1]):
            sums[k, found[node]] += own[node, k]
