"""Open regions of a location and its activity: the replay of enter and leave events.

Open regions are entries of a doubly linked list, the outermost first; entries of one region are linked too,
so that a leave finds the innermost matching one at once. Nesting may be broken: a leave without enter is
ignored, a leave of another region than the innermost closes the innermost matching one. Every event has
constant cost, however deep or crossed the regions are (except where paths change, see below).

The activity of a location follows from those of its open regions (0: computing):

* of several that do not compute the outermost decides, or the strongest (`strength`) if `strongest` is true;
* else it computes where a region is open; a worker thread only inside an active (parallel) region;
* outside of all regions it has its base activity.

Whether it is a worker thread is known only at the end, so events get a code: an activity, or `BASE` (no
region is open) or `OUTSIDE` (regions are open, but no active one); `resolved` translates these.

The same replay can follow the call paths (`desktop.core.callpaths`). The path is always that of the open
regions, so after a region is left out of order those inside of it are on another path.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from desktop.core.arrays import AnyArray, Bytes, Ints
from desktop.core.callpaths import FOLDED, FOLDS, NODES, child, place, plant
from desktop.core.jit import arithmetic, inlined, kernel

BASE, OUTSIDE = 5, 6
CODES = 8

#: Rows of the entries: the next older entry of the same region (of a free entry the next free one), the next
#: older and newer of all, region, node of its path, time of its enter.
SAME, OLDER, NEWER, REGION, NODE, SINCE = range(6)
#: Fields of the state besides those of the tree (`desktop.core.callpaths`): time of the last event; innermost
#: entry; first free entry; entries ever used; open entries, and how many of them are active; outermost one
#: that does not compute; whether an active one was ever entered; leaves without enter; next row.
TIME, TOP, FREE, USED, OPEN, ACTIVE, OUTERMOST, PARALLEL, STRAY, ROW = range(3, 13)
FIELDS = 13

#: Limits of paths: none are followed; only known ones (see `OpenRegions.follow`).
NO_PATHS, KNOWN = -1, 0

#: What `replay` returns, and `replay_noting` in addition.
DONE, NO_ROOM, BAD, NO_NOTES = 0, 1, -1, 2

#: Before and after all times.
BEGIN, END = -(1 << 62), 1 << 62


class Classes(NamedTuple):
    """Regions as the rule for activities sees them: classes (regions,) their activities, active (regions,) 1
    where worker threads compute, strength (activities,) and strongest as above."""

    classes: Bytes
    active: Bytes
    strength: Ints
    strongest: bool


class OpenEntries(NamedTuple):
    """The open regions: last (regions,) the innermost entry of each, -1 none; entries (6, capacity); state
    (FIELDS,); counts (activities,) number of open regions of each."""

    last: Ints
    entries: Ints
    state: Ints
    counts: Ints


class Paths(NamedTuple):
    """The call paths: tree (2, capacity) parent and region of each node; slots, the hash table of nodes;
    ticks, calls (capacity,) exclusive time and enters of each node."""

    tree: Ints
    slots: Ints
    ticks: Ints
    calls: Ints


class PathRoom(NamedTuple):
    """Space for notes on paths. noted (1,): row of the last note. profile (6, capacity): row, time, node of
    the innermost entry that is not folded, node, ticks, calls. folded (2, capacity): row and node of the
    folded entries, outermost first. used, used_folded (1,): numbers of used columns."""

    noted: Ints
    used: Ints
    profile: Ints
    used_folded: Ints
    folded: Ints


def no_classes(regions: int) -> Classes:
    """Classes for a replay without activities."""
    none = np.zeros(regions, np.uint8)
    return Classes(none, none, np.zeros(1, np.int64), False)


class OpenRegions:
    """The state of a replay of a location's events, and the paths found so far.

    `limit`: largest number of paths, beyond which regions are folded; `NO_PATHS`: none are followed.
    """

    def __init__(self, classes: Classes, limit: int = NO_PATHS) -> None:
        self.rule, self.limit = classes, limit
        regions = classes.classes.size
        self.state = np.zeros(FIELDS, np.int64)
        counts = np.zeros(max(classes.strength.size, 1), np.int64)
        self.opened = OpenEntries(
            np.full(regions, -1, np.int64), np.zeros((6, 64), np.int64), self.state, counts
        )
        self._make_tree(0 if limit < 0 else limit + regions + 1)
        self._start()

    def _make_tree(self, capacity: int) -> None:
        slots = np.zeros(1 << int(2 * capacity).bit_length(), np.int64)
        self.paths = Paths(np.full((2, capacity), -1, np.int64), slots, *np.zeros((2, capacity), np.int64))

    def _start(self) -> None:
        self.state[:] = 0
        self.state[[TOP, FREE, OUTERMOST]] = -1
        self.state[TIME] = BEGIN
        self.state[NODES] = 1
        self.opened.counts[:] = 0

    def begin(self, time: int = BEGIN) -> None:
        """Start another location, whose ticks count from `time` on; memory is reused."""
        forget(self.opened, self.paths)
        self._start()
        self.state[TIME] = time

    def know(self, classes: Classes) -> None:
        """Replace the classes after more regions were defined; former ones must be unchanged."""
        self.rule = classes
        regions, former = classes.classes.size, self.opened.last
        if regions > former.size:
            last = np.pad(former, (0, 2 * regions - former.size), constant_values=-1)
            self.opened = self.opened._replace(last=last)
            if self.limit >= 0:
                (tree, _, ticks, calls), nodes = self.paths, self.nodes
                self._make_tree(self.limit + last.size + 1)
                state = np.zeros(FIELDS, np.int64)
                state[NODES] = 1
                plant(tree[0, 1:nodes], tree[1, 1:nodes], last.size, *self.paths[:2], state)
                self.paths.ticks[:nodes], self.paths.calls[:nodes] = ticks[:nodes], calls[:nodes]

    def follow(self, tree: Ints) -> bool:
        """Follow only the known paths of a location, `tree` (2, nodes), from now on; False if they are
        invalid (a damaged file)."""
        self.limit = KNOWN
        self._make_tree(tree.shape[1])
        self._start()
        regions = self.opened.last.size
        return bool(plant(tree[0, 1:], tree[1, 1:], regions, *self.paths[:2], self.state))

    def reopen(self, regions: Ints, nodes: Ints, since: Ints | None = None) -> None:
        """Set the open regions, outermost first, and their nodes (any numbers without paths)."""
        while self.opened.entries.shape[1] < regions.size:
            self._make_room()
        close_all(self.opened)
        self.opened.counts[:] = 0
        since = np.zeros(regions.size, np.int64) if since is None else since
        reopen(regions, nodes, since, self.rule, self.opened, self.paths.tree)

    def _make_room(self) -> None:
        entries = self.opened.entries
        self.opened = self.opened._replace(entries=np.concatenate([entries, np.zeros_like(entries)], axis=1))

    def feed(
        self,
        time: Ints,
        kind: Bytes,
        region: NDArray[np.uint32],
        until: int = END,
        states: tuple[NDArray[np.int32], Bytes] | None = None,
    ) -> bool:
        """Replay events before `until`; `states` (each (n,)) get the innermost region (-1: none) and the
        code after each event. False for invalid events: out of order, or of unknown regions or paths."""
        top, code = (np.empty(0, np.int32), np.empty(0, np.uint8)) if states is None else states
        self.state[ROW] = 0
        while True:
            end = replay(time, kind, region, until, self.limit, self.rule, self.opened, self.paths, top, code)
            if end != NO_ROOM:
                return bool(end == DONE)
            self._make_room()

    def feed_noting(
        self,
        row: int,
        events: tuple[Ints, Bytes, NDArray[np.uint32]],
        states: tuple[NDArray[np.int32], Bytes],
        how: tuple[int, int],
        room: Callable[[], PathRoom],
    ) -> bool:
        """`feed` of events, the first of which is the `row`-th of its location, with notes on paths: `how`
        are the two intervals of `replay_noting`, `room` gives space for notes whenever it is used up."""
        self.state[ROW] = 0
        notes = room()
        while True:
            end = replay_noting(
                row, *how, notes, *events, END, self.limit, self.rule, self.opened, self.paths, *states
            )
            if end == NO_NOTES:
                notes = room()
            elif end == NO_ROOM:
                self._make_room()
            else:
                return bool(end == DONE)

    def note(self, row: int, notes: PathRoom) -> None:
        """Note what is not noted yet before the `row`-th event."""
        note_path(row, 0, notes, self.opened, self.paths)

    def states(
        self, time: Ints, kind: Bytes, region: NDArray[np.uint32]
    ) -> tuple[NDArray[np.int32], Bytes] | None:
        """Innermost region (-1: none) and code after each event; None where `feed` returns False."""
        states = np.empty(time.size, np.int32), np.empty(time.size, np.uint8)
        return states if self.feed(time, kind, region, states=states) else None

    @property
    def depth(self) -> int:
        """Number of open regions."""
        return int(self.state[OPEN])

    @property
    def worked(self) -> bool:
        """Whether an active region has been entered."""
        return bool(self.state[PARALLEL])

    @property
    def open(self) -> tuple[Ints, Ints]:
        """The open regions, outermost first, and the times of their enters."""
        rows = np.empty((3, self.depth), np.int64)
        list_open(self.opened, rows)
        return rows[0], rows[2]

    @property
    def stray(self) -> int:
        """Leaves without an enter, which were ignored."""
        return int(self.state[STRAY])

    def count_open(self, regions: Ints) -> int:
        """Number of open entries of these regions."""
        return int(np.isin(self.open[0], regions).sum()) if regions.size else 0

    @property
    def now(self) -> tuple[int, int]:
        """The time of the last event, and the node of the innermost open entry (0: there is none)."""
        top = int(self.state[TOP])
        return int(self.state[TIME]), int(self.opened.entries[NODE, top]) if top >= 0 else 0

    def resume(self, time: int, ticks: Ints, calls: Ints) -> None:
        """Go on from a time, with the ticks and calls of the nodes (nodes,) up to it."""
        self.state[TIME] = time
        self.paths.ticks[:], self.paths.calls[:] = ticks, calls

    @property
    def nodes(self) -> int:
        """Number of nodes of the tree, including the root."""
        return int(self.state[NODES])

    @property
    def folds(self) -> bool:
        """Whether paths are folded."""
        return bool(self.state[FOLDS])

    @property
    def folded(self) -> int:
        """Number of open entries that are folded."""
        return int(self.state[FOLDED])

    def leave_times(self, time: Ints, kind: Bytes, region: NDArray[np.uint32], ends: Ints, left: int) -> int:
        """Set ``ends[node]`` to the leave time of each reopened entry (its node; -1: not wanted) from these
        events. `left`: how many are not known yet; returns how many remain."""
        self.state[ROW] = 0
        while True:
            left = leave_times(time, kind, region, self.rule, self.opened, ends, left)
            if left == 0 or self.state[ROW] == time.size:
                return left
            self._make_room()


def resolved(base: int, computes: int, idle: int, worker: bool) -> Bytes:
    """(CODES,) the activity of each code at a location."""
    activity = np.arange(CODES, dtype=np.uint8)
    activity[BASE] = idle if worker else base
    activity[OUTSIDE] = idle if worker else computes
    return activity


@arithmetic
def replay(
    time: Ints, kind: Bytes, region: AnyArray, until: int, limit: int, rule: Classes, opened: OpenEntries,
    paths: Paths, top: AnyArray, code: Bytes,
) -> int:  # fmt: skip
    """Replay rows from ``state[ROW]`` on whose time is before `until`; returns DONE, NO_ROOM (for another
    open region: add room and continue) or BAD (invalid rows).

    New paths are added while there are fewer than `limit`. `top` and `code` may be empty if not wanted.
    """
    last, entries, state, _ = opened
    tree, slots, ticks, calls = paths
    of_region, of_node, newer = entries[REGION], entries[NODE], entries[NEWER]
    following, noting = limit >= 0, code.size > 0
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
        node = 0
        if following:
            if state[TOP] >= 0:
                node = of_node[state[TOP]]
            ticks[node] += t - state[TIME]
        state[TIME] = t
        if kind[i] == 0:
            if following:
                node = child(node, r, limit, tree, slots, state)
                if node < 0:
                    return BAD
                state[FOLDED] += tree[0, node] < 0
                calls[node] += 1
            open_entry(r, node, t, rule, opened)
        elif last[r] < 0:
            state[STRAY] += 1
        else:
            entry = last[r]
            below, above = entries[OLDER, entry], newer[entry]
            close_entry(entry, r, rule, opened)
            if following:
                state[FOLDED] -= tree[0, of_node[entry]] < 0
                path = of_node[below] if below >= 0 else 0
                while above >= 0 and tree[0, of_node[above]] >= 0:
                    path = child(path, of_region[above], limit, tree, slots, state)
                    if path < 0:
                        return BAD
                    state[FOLDED] += tree[0, path] < 0
                    of_node[above] = path
                    above = newer[above]
        if noting:
            top[i] = of_region[state[TOP]] if state[TOP] >= 0 else -1
            code[i] = code_now(rule, opened)
    state[ROW] = time.size
    return DONE


@arithmetic
def replay_noting(
    row: int, every: int, for_each: int, notes: PathRoom, time: Ints, kind: Bytes, region: AnyArray,
    until: int, limit: int, rule: Classes, opened: OpenEntries, paths: Paths, top: AnyArray, code: Bytes,
) -> int:  # fmt: skip
    """`replay` with `note_path` before each event whose number, counted from `row`, is a multiple of `every`;
    returns also NO_NOTES, when there is no space for notes."""
    while True:
        at = opened.state[ROW]
        event = row + at
        if event % every == 0 and not note_path(event, for_each, notes, opened, paths):
            return NO_NOTES
        if at == time.size:
            return DONE
        stop = min(time.size, at + every - event % every)
        end = replay(time[:stop], kind, region, until, limit, rule, opened, paths, top, code)
        if end != DONE:
            return end


@arithmetic
def note_path(row: int, for_each: int, notes: PathRoom, opened: OpenEntries, paths: Paths) -> bool:
    """Note the ticks and calls of nodes since the last note, and clear them; False if there is no space.

    Nothing is noted if there were fewer than `for_each` rows for each changed node and each folded entry.
    """
    noted, used, profile, used_folded, folded = notes
    _, entries, state, _ = opened
    _, _, ticks, calls = paths
    rows = row - noted[0]
    if rows == 0:
        return True
    changed = 0
    for node in range(state[NODES]):
        changed += ticks[node] != 0 or calls[node] != 0
    inside = state[FOLDED]
    if rows < for_each * (changed + inside):
        return True
    if used[0] + max(changed, 1) > profile.shape[1] or used_folded[0] + inside > folded.shape[1]:
        return False
    entry = state[TOP]
    for k in range(used_folded[0] + inside - 1, used_folded[0] - 1, -1):
        folded[0, k] = row
        folded[1, k] = entries[NODE, entry]
        entry = entries[OLDER, entry]
    used_folded[0] += inside
    top = entries[NODE, entry] if entry >= 0 else 0
    for node in range(state[NODES]):
        if ticks[node] != 0 or calls[node] != 0 or (changed == 0 and node == 0):
            at = used[0]
            profile[0, at] = row
            profile[1, at] = state[TIME]
            profile[2, at] = top
            profile[3, at] = node
            profile[4, at] = ticks[node]
            profile[5, at] = calls[node]
            ticks[node] = 0
            calls[node] = 0
            used[0] += 1
    noted[0] = row
    return True


@inlined
def code_now(rule: Classes, opened: OpenEntries) -> int:
    """The code of the open regions by the rule."""
    classes, _, strength, strongest = rule
    _, entries, state, counts = opened
    outermost = state[OUTERMOST]
    if outermost < 0:
        if state[OPEN] == 0:
            return BASE
        return 0 if state[ACTIVE] > 0 else OUTSIDE
    if not strongest:
        return int(classes[entries[REGION, outermost]])
    best = 0
    for k in range(counts.size):
        if counts[k] > 0 and strength[k] > strength[best]:
            best = k
    return best


@kernel
def activities(tree: Ints, rule: Classes, resolve: Bytes) -> Ints:
    """(nodes,) the activity of a location on each path, by the rule; `resolve` as `resolved` returns."""
    classes, active, strength, strongest = rule
    nodes = tree.shape[1]
    decisive = np.zeros(nodes, np.int64)
    at_work = np.zeros(nodes, np.bool_)
    activity = np.zeros(nodes, np.int64)
    activity[0] = resolve[BASE]
    for node in range(1, nodes):
        parent = max(tree[0, node], 0)
        code = np.int64(classes[tree[1, node]])
        above = decisive[parent]
        if above == 0 or (strongest and strength[code] > strength[above]):
            decisive[node] = code
        else:
            decisive[node] = above
        at_work[node] = at_work[parent] or active[tree[1, node]] != 0
        activity[node] = resolve[decisive[node] if decisive[node] != 0 or at_work[node] else OUTSIDE]
    return activity


@inlined
def open_entry(region: int, node: int, time: int, rule: Classes, opened: OpenEntries) -> None:
    """Add a region as the innermost open one; there must be room for it."""
    last, entries, state, counts = opened
    entry = state[FREE]
    if entry >= 0:
        state[FREE] = entries[SAME, entry]
    else:
        entry = state[USED]
        state[USED] += 1
    top = state[TOP]
    entries[SAME, entry] = last[region]
    entries[OLDER, entry] = top
    entries[NEWER, entry] = -1
    entries[REGION, entry] = region
    entries[NODE, entry] = node
    entries[SINCE, entry] = time
    if top >= 0:
        entries[NEWER, top] = entry
    last[region] = entry
    state[TOP] = entry
    state[OPEN] += 1
    code = np.int64(rule.classes[region])
    counts[code] += 1
    if code != 0 and state[OUTERMOST] < 0:
        state[OUTERMOST] = entry
    if rule.active[region]:
        state[ACTIVE] += 1
        state[PARALLEL] = 1


@inlined
def close_entry(entry: int, region: int, rule: Classes, opened: OpenEntries) -> None:
    """Remove the innermost entry of a region from the open ones."""
    last, entries, state, counts = opened
    last[region] = entries[SAME, entry]
    below, above = entries[OLDER, entry], entries[NEWER, entry]
    if below >= 0:
        entries[NEWER, below] = above
    if above >= 0:
        entries[OLDER, above] = below
    else:
        state[TOP] = below
    entries[SAME, entry] = state[FREE]
    state[FREE] = entry
    state[OPEN] -= 1
    counts[np.int64(rule.classes[region])] -= 1
    state[ACTIVE] -= rule.active[region] != 0
    if entry == state[OUTERMOST]:
        # It only moves to newer entries, so all these steps together are at most the number of enters.
        while above >= 0 and rule.classes[entries[REGION, above]] == 0:
            above = entries[NEWER, above]
        state[OUTERMOST] = above


@arithmetic
def forget(opened: OpenEntries, paths: Paths) -> None:
    """Clear a replay for the next location; the cost depends on its content, not on its capacity."""
    tree, slots, ticks, calls = paths
    # Youngest first: later entries of the hash table are never needed to find earlier ones.
    for node in range(min(opened.state[NODES], tree.shape[1]) - 1, -1, -1):
        ticks[node] = 0
        calls[node] = 0
        if node:
            slots[place(tree[0, node], tree[1, node], tree, slots)] = 0
    close_all(opened)


@arithmetic
def close_all(opened: OpenEntries) -> None:
    """Close all regions."""
    last, entries, state, _ = opened
    entry = state[TOP]
    while entry >= 0:
        last[entries[REGION, entry]] = -1
        entry = entries[OLDER, entry]
    state[TOP] = -1
    state[FREE] = -1
    state[USED] = 0
    state[OPEN] = 0
    state[ACTIVE] = 0
    state[OUTERMOST] = -1
    state[FOLDED] = 0


@arithmetic
def reopen(regions: Ints, nodes: Ints, since: Ints, rule: Classes, opened: OpenEntries, tree: Ints) -> None:
    """Open regions, outermost first; there must be room for all."""
    for i in range(regions.size):
        open_entry(regions[i], nodes[i], since[i], rule, opened)
        if tree.shape[1] > 0:
            opened.state[FOLDED] += tree[0, nodes[i]] < 0


@arithmetic
def list_open(opened: OpenEntries, out: Ints) -> None:
    """Region, node and time (3, open) of the open entries, outermost first."""
    entries, entry = opened.entries, opened.state[TOP]
    for i in range(out.shape[1] - 1, -1, -1):
        out[0, i] = entries[REGION, entry]
        out[1, i] = entries[NODE, entry]
        out[2, i] = entries[SINCE, entry]
        entry = entries[OLDER, entry]


@arithmetic
def leave_times(
    time: Ints, kind: Bytes, region: AnyArray, rule: Classes, opened: OpenEntries, ends: Ints, left: int
) -> int:
    """Leave times of open entries: sets `ends` at the number that an entry has as its node (-1: not wanted).
    From ``state[ROW]`` on, until there is no room for another open region; returns how many are `left`."""
    last, entries, state, _ = opened
    for i in range(state[ROW], kind.size):
        if left == 0 or (state[FREE] < 0 and state[USED] == entries.shape[1]):
            state[ROW] = i
            return left
        r = np.int64(region[i])
        if kind[i] == 0:
            open_entry(r, -1, time[i], rule, opened)
        elif last[r] >= 0:
            entry = last[r]
            close_entry(entry, r, rule, opened)
            if entries[NODE, entry] >= 0:
                ends[entries[NODE, entry]] = time[i]
                left -= 1
    state[ROW] = kind.size
    return left


# ------------------------------------------------------------------ activities of a location


@arithmetic
def steps(time: Ints, code: Bytes, state: Ints, out_time: Ints, out_code: Bytes) -> int:
    """Changes of activity of a location, from its codes (n,) after events; returns the number of steps.

    Of several events at one time the last one counts. state (3,): time and code of the last event, and the
    code of the last step; -1: none. The last event is not among the steps, as another may follow at its time.
    """
    n = 0
    for i in range(time.size):
        if state[1] >= 0 and time[i] > state[0] and state[1] != state[2]:
            out_time[n] = state[0]
            out_code[n] = state[1]
            state[2] = state[1]
            n += 1
        state[0] = time[i]
        state[1] = code[i]
    return n
