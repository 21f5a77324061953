"""Kernels of the timeline: states to time bins, bins to pixel columns, columns to pixels.

A *state* of a location is its innermost open region and its activity between two of its events. A *strip* is
a pyramid of one location: bins of ``2**width`` ticks, aligned to whole multiples, each with the region and
the activity that last longest in it and a set of all that occur in it, however short; every further level has
bins four times as wide. A pixel column of any view overlaps a few bins of the right level, so the cost of a
picture is proportional to its cells, whatever the number of events.

Regions are numbered from 0, -1 is none. A key is ``(region + 1) * CODES + code``; the meaning of a code is
known at the end of a location (`desktop.core.open_regions`).
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from desktop.core.arrays import AnyArray, Bytes, Floats, Ints
from desktop.core.clock_kernels import common, local
from desktop.core.jit import arithmetic, kernel
from desktop.core.open_regions import CODES

#: Bits for regions in a set; one more represents none.
BITS = 63
#: Bins of one level that become one bin of the next: 2**FAN_BITS.
FAN_BITS = 2

# State of `fill`.
WIDTH, USED, FIRST, NOW, KEY = range(5)

#: Number of classes of a tile; the first are activities or colours of regions.
CLASSES = 16
NO_REGION, ABSENT = 14, 15
#: Number of colours of regions; class of regions without a colour of their own in a picture.
COLOURS, OTHER_REGION = 12, 13
#: Name of time outside of all regions.
NO_REGION_NAME = "(no region)"


def region_classes(names: list[str], weights: Floats) -> Bytes:
    """(regions + 1,) the colour of every region, no region first; `weights` likewise.

    It depends on the name, so that a region looks the same in every trace; if two of the twelve regions of
    most weight would have one colour, the lighter one takes the next free colour.
    """
    classes = np.array([zlib.crc32(name.encode()) % COLOURS for name in names], np.uint8)
    used: set[int] = set()
    for region in np.argsort(-weights[1:], kind="stable")[:COLOURS].tolist():
        colour = int(classes[region])
        free = next(c for k in range(COLOURS) if (c := (colour + k) % COLOURS) not in used)
        classes[region] = free
        used.add(free)
    return np.concatenate([[NO_REGION], classes]).astype(np.uint8)


def region_shares(names: Sequence[str], colours: Bytes, weights: Floats) -> list[tuple[int, str, int]]:
    """Number, name, and colour (by `region_classes`) of the regions with most time, which have colours of
    their own, then of no region (-1). weights (regions + 1,): of each region, no region first."""
    most = [r for r in np.argsort(-weights[1:], kind="stable").tolist() if weights[r + 1]][:COLOURS]
    coloured = [(r, names[r], int(colours[r + 1])) for r in most]
    return [*coloured, (-1, NO_REGION_NAME, NO_REGION)] if weights[0] else coloured


# --- states to bins ---


@arithmetic
def _add(bins: Ints, keys: Ints, ticks: Ints, n: int, slot: Ints, b: int, key: int, more: int) -> int:
    """Add time to the entry of a key in the newest bin, or begin one; returns the number of entries."""
    s = slot[key]
    if s < n and keys[s] == key and bins[s] == b:
        ticks[s] += more
        return n
    bins[n], keys[n], ticks[n] = b, key, more
    slot[key] = n
    return n + 1


@arithmetic
def coarsen(bins: Ints, keys: Ints, ticks: Ints, n: int, slot: Ints) -> int:
    """Merge pairs of neighbouring bins in place; returns the number of entries."""
    out = 0
    for i in range(n):
        out = _add(bins, keys, ticks, out, slot, bins[i] >> 1, keys[i], ticks[i])
    return out


@arithmetic
def fill(
    time: Ints, top: AnyArray, code: Bytes, state: Ints, slot: Ints, bins: Ints, keys: Ints, ticks: Ints,
    most: int,
) -> None:  # fmt: skip
    """Sort states into bins: entries (bin, key, ticks), a key once per bin, bins ascending.

    ``state[NOW]`` and ``state[KEY]`` are the begin and the key of the last state. Bins double in width
    whenever there would be more than `most` bins, or more entries than there is room for. A state without
    duration has an entry of 0 ticks.
    """
    w, n, first, now, key = state[0], state[1], state[2], state[3], state[4]
    # Take the final width at once, as bins would otherwise be filled and merged again.
    while time.size and (time[-1] >> w) - (first >> w) >= most:
        n = coarsen(bins, keys, ticks, n, slot)
        w += 1
    for i in range(time.size):
        t = time[i]
        while n + (t >> w) - (now >> w) + 1 >= bins.size:
            n = coarsen(bins, keys, ticks, n, slot)
            w += 1
        if key >= 0:
            b = now >> w
            if t == now:
                n = _add(bins, keys, ticks, n, slot, b, key, 0)
            while now < t:
                end = min((b + 1) << w, t)
                n = _add(bins, keys, ticks, n, slot, b, key, end - now)
                now = end
                b += 1
        now = t
        key = (np.int64(top[i]) + 1) * CODES + code[i]
    state[0], state[1], state[3], state[4] = w, n, now, key


@arithmetic
def cells(
    bins: Ints, keys: Ints, ticks: Ints, n: int, resolve: AnyArray, spent: Ints, by_activity: Ints,
    region: AnyArray, activity: AnyArray, regions: AnyArray, activities: AnyArray,
) -> int:  # fmt: skip
    """One cell per bin: the region and the activity of most time, and the bits of all that occur.

    Bit ``r % 63`` represents region r, bit 63 none. Work space: `spent` (regions + 1,), zero before and
    after, and `by_activity` (8,). Returns the number of bins.
    """
    i = 0
    cell = 0
    while i < n:
        j = i
        for a in range(8):
            by_activity[a] = 0
        present = np.uint64(0)
        does = 0
        while j < n and bins[j] == bins[i]:
            r = (keys[j] >> 3) - 1
            a = resolve[keys[j] & 7]
            spent[r + 1] += ticks[j]
            by_activity[a] += ticks[j]
            does |= 1 << a
            present |= np.uint64(1) << np.uint64(r % 63 if r >= 0 else 63)
            j += 1
        most = np.int64(-1)
        for k in range(i, j):
            r = keys[k] >> 3
            if spent[r] > most:
                most = spent[r]
                region[cell] = r - 1
        for k in range(i, j):
            spent[keys[k] >> 3] = 0
        best = -1
        for a in range(5):
            if does >> a & 1 and (best < 0 or by_activity[a] > by_activity[best]):
                best = a
        activity[cell] = best
        regions[cell] = present
        activities[cell] = does
        cell += 1
        i = j
    return cell


# --- bins to columns ---


@kernel
def add_strip(
    edges: Ints, shift: int, drift: float, origin: int, width: int, first: int, last: int, levels: int,
    at: int, value: AnyArray, present: AnyArray, lut: Bytes, begin: int, end: int, before: int, after: int,
    acc: Floats, mask: Ints, sets: AnyArray,
) -> None:  # fmt: skip
    """Add a location to a row of columns: ticks of each class to `acc`, the classes that occur to `mask`,
    the sets of cells to `sets`.

    The strip begins at cell `at`, its events are from `first` to `last` (recorded ticks, as its bins).
    ``lut[value + 1]`` is the class that dominates a cell. The location exists from `begin` to `end`; `before`
    and `after` are its classes before its first and after its last event.
    """
    columns = edges.size - 1
    pixel = (edges[columns] - edges[0]) // columns
    w, n = width, (last >> width) - (first >> width) + 1
    for _ in range(levels - 1):
        if (np.int64(1) << (w + 2)) > pixel:
            break
        at += n
        w += 2
        n = (last >> w) - (first >> w) + 1
    at -= first >> w
    for c in range(columns):
        a = local(edges[c], shift, drift, origin)
        b = local(edges[c + 1], shift, drift, origin)
        if b <= a or b <= begin or a > end:
            continue
        if first > begin and a < first:
            acc[c, before] += min(b, first) - max(a, begin)
            mask[c] |= 1 << before
        if b > last and end > last:
            acc[c, after] += min(b, end) - max(a, last)
            mask[c] |= 1 << after
        if b <= first or a > last:
            continue
        stop = min(b - 1, last) >> w
        now, until = max(a, first), min(b, last)
        seen, classes = sets[c], mask[c]
        for k in range(now >> w, stop + 1):
            then = min((k + 1) << w, until)
            most = lut[value[at + k] + 1]
            acc[c, most] += then - now
            seen |= present[at + k]
            classes |= 1 << most
            now = then
        sets[c], mask[c] = seen, classes


@kernel
def add_strips(
    starts: Ints, members: Ints, edges: Ints, shift: Ints, drift: Floats, origin: Ints, width: Ints,
    first: Ints, last: Ints, levels: Ints, at: Ints, value: AnyArray, present: AnyArray, lut: Bytes,
    bits: AnyArray, begin: Ints, end: Ints, before: Bytes, after: Bytes, dominant: Bytes, hidden: AnyArray,
) -> None:  # fmt: skip
    """Rows of columns from strips; row r merges the locations ``members[starts[r] : starts[r + 1]]``.

    Each bit of `present` represents the classes ``bits[bit]`` or, if `bits` is empty, the class of its own
    number.
    """
    columns = edges.size - 1
    acc = np.zeros((columns, 16), np.float64)
    mask = np.zeros(columns, np.int64)
    sets = np.zeros(columns, np.uint64)
    classes = np.zeros((8, 256), np.int64)  # of the sets that each byte of `present` may be
    for bit in range(bits.size):
        for byte in range(256):
            if byte >> (bit % 8) & 1:
                classes[bit // 8, byte] |= bits[bit]
    for r in range(starts.size - 1):
        for m in range(starts[r], starts[r + 1]):
            s = members[m]
            if levels[s] > 0:
                add_strip(
                    edges, shift[s], drift[s], origin[s], width[s], first[s], last[s], levels[s], at[s],
                    value, present, lut, begin[s], end[s], before[s], after[s], acc, mask, sets,
                )  # fmt: skip
            elif end[s] >= begin[s]:
                start = common(begin[s], shift[s], drift[s], origin[s])
                _add_idle(edges, start, common(end[s], shift[s], drift[s], origin[s]), before[s], acc, mask)
        for c in range(columns):
            if bits.size == 0:
                mask[c] |= np.int64(sets[c])
            else:
                for k in range(8):
                    mask[c] |= classes[k, (sets[c] >> np.uint64(8 * k)) & np.uint64(255)]
            sets[c] = 0
        settle(edges, acc, mask, dominant[r], hidden[r])


@kernel
def _add_idle(edges: Ints, begin: int, end: int, idle: int, acc: Floats, mask: Ints) -> None:
    """Add a location without events, which exists from `begin` to `end` outside of all regions."""
    for c in range(edges.size - 1):
        lo, hi = max(edges[c], begin), min(edges[c + 1], end)
        if hi > lo:
            acc[c, idle] += hi - lo
            mask[c] |= 1 << idle


@kernel
def add_states(
    time: Ints, key: Ints, until: int, edges: Ints, lut: Bytes, resolve: Bytes, by_region: bool, acc: Floats,
    mask: Ints,
) -> None:  # fmt: skip
    """Add states exactly to a row of columns; state i begins at ``time[i]``, the last one ends at `until`."""
    columns = edges.size - 1
    c = 0
    for i in range(time.size):
        a = time[i]
        b = time[i + 1] if i + 1 < time.size else until
        if a >= edges[columns]:
            break
        if b < edges[0] or (b == edges[0] and a < b):
            continue
        kind = lut[key[i] >> 3] if by_region else resolve[key[i] & 7]
        while c < columns - 1 and edges[c + 1] <= a:
            c += 1
        k = c
        mask[k] |= 1 << kind
        while k < columns and edges[k] < b:
            lo, hi = max(edges[k], a), min(edges[k + 1], b)
            if hi > lo:
                acc[k, kind] += hi - lo
                mask[k] |= 1 << kind
            k += 1


@kernel
def settle(edges: Ints, acc: Floats, mask: Ints, dominant: Bytes, hidden: AnyArray) -> None:
    """Set the class of most time in every column, and the set of all; clears `acc` and `mask`.

    Columns narrower than a tick show the same as the next one, which contains the tick.
    """
    for c in range(edges.size - 2, -1, -1):
        if edges[c + 1] <= edges[c] and c + 1 < dominant.size:
            dominant[c], hidden[c] = dominant[c + 1], hidden[c + 1]
        else:
            best = 15
            most = 0.0
            for k in range(15):
                if mask[c] >> k & 1 and (best == 15 or acc[c, k] > most):
                    best = k
                    most = acc[c, k]
            dominant[c], hidden[c] = best, mask[c]
        mask[c] = 0
        for k in range(16):
            acc[c, k] = 0.0


# --- finding ---


@kernel
def next_bin(regions: AnyArray, at: int, n: int, start: int, step: int, bits: int) -> int:
    """The first bin from `start` on (in steps of `step`, 1 or -1) in which regions of these bits may occur;
    -1 if none."""
    k = start
    while 0 <= k < n:
        if regions[at + k] & bits:
            return k
        k += step
    return -1


# --- columns to pixels ---


@kernel
def _ranks(order: Ints) -> Bytes:
    """(2, 256) index in `order` of the first class in each byte of a set; the length of `order` if none."""
    ranks = np.full((2, 256), order.size, np.uint8)
    for k in range(order.size - 1, -1, -1):
        for byte in range(256):
            if byte >> (order[k] & 7) & 1:
                ranks[order[k] >> 3, byte] = k
    return ranks


def warm_up() -> None:
    """Load or compile the kernel that paints rows, so that the window's thread need not."""
    one, cell = np.zeros(1, np.int64), np.zeros((1, 1), np.uint8)
    pixels, colours = np.zeros((1, 1), np.uint32), np.zeros(1, np.uint32)
    paint(pixels, one, one, one, one, one, cell, cell.astype(np.uint16), colours, one, 1, 0)


@kernel
def paint(
    pixels: AnyArray, tops: Ints, bottoms: Ints, rows: Ints, low: Ints, high: Ints, dominant: Bytes,
    hidden: AnyArray, colours: AnyArray, order: Ints, gap: int, ground: int,
) -> None:  # fmt: skip
    """Paint rows of a tile: band k fills the pixel rows ``tops[k] .. bottoms[k]-1`` from row ``rows[k]``.

    Pixel column x shows the tile columns ``low[x] .. high[x]-1`` (none: it is unchanged). A column that
    holds a class which neither it nor its neighbours show gets a stripe in the colour of the first such class
    in `order`, or a hatching where rows are too low for a stripe.
    """
    height, width = pixels.shape
    runs = np.empty(2 * width + 2, np.int64)  # begins and ends of columns that show anything
    ends = 0
    for x in range(width):
        if (high[x] > low[x]) != (ends % 2 == 1):
            runs[ends] = x
            ends += 1
    if ends % 2 == 1:
        runs[ends] = width
        ends += 1
    middle = (low + high) >> 1
    drawn = np.zeros(width + 2, np.uint16)  # the bit of the class of column x - 1
    plain = np.empty(width, np.uint32)
    marked = np.empty(width, np.uint32)
    ranks, inks = _ranks(order), colours[order]
    for band in range(tops.size):
        r = rows[band]
        top, bottom = max(tops[band], 0), min(bottoms[band], height)
        if r < 0 or top >= bottom:
            continue
        front, behind = dominant[r], hidden[r]
        for e in range(0, ends, 2):
            for x in range(runs[e], runs[e + 1]):
                main = front[middle[x]]
                drawn[x + 1] = 1 << main
                plain[x] = colours[main]
        inner = bottoms[band] - tops[band]
        space = gap if inner >= 5 * gap else 0
        inner -= space
        stripe = max(gap, inner // 4) if inner >= 4 * gap else 0
        edge = bottoms[band] - space
        step = 1 if stripe or bottom - top > 1 else 3  # a single row is hatched in every third column
        for e in range(0, ends, 2):
            begin = runs[e] if step == 1 else runs[e] + (-(runs[e] + top)) % 3
            for x in range(begin, runs[e + 1], step):
                a, b = low[x], high[x]
                present = behind[a] | behind[b - 1]
                for c in range(a + 1, b - 1):
                    present |= behind[c]
                missing = present & ~(drawn[x] | drawn[x + 1] | drawn[x + 2])
                marked[x] = plain[x]
                if missing:
                    first = min(ranks[0, missing & 255], ranks[1, (missing >> 8) & 255])
                    if first < order.size:
                        marked[x] = inks[first]
        for y in range(top, bottom):
            out = pixels[y]
            for e in range(0, ends, 2):
                a, b = runs[e], runs[e + 1]
                if y >= edge:
                    out[a:b] = ground
                elif stripe and y >= edge - stripe:
                    out[a:b] = marked[a:b]
                else:
                    out[a:b] = plain[a:b]
                    if not stripe:
                        for x in range(a + (-(a + y)) % 3, b, 3):
                            out[x] = marked[x]
