"""Kernels of the timeline: states to time bins, bins to pixel columns, columns to pixels.

A *state* is what a location does between two of its events: its innermost open region and its activity. A
*strip* is the dyadic picture of one location: bins of ``2**width`` ticks, aligned to whole multiples, each
with the region and the activity that last longest in it and a set of all that occur in it, however short;
every further level has bins four times as wide. A pixel column of any view touches a few bins of the right
level, so a picture costs its number of cells, whatever it stands for.

Regions are counted from 0, -1 is none. A key is ``(region + 1) * CODES + code``; what a code means is known
at the end of a location (`desktop.core.open_regions`).
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from desktop.core.arrays import AnyArray, Bytes, Floats, Ints
from desktop.core.clock_kernels import common, local
from desktop.core.jit import arithmetic, kernel
from desktop.core.open_regions import CODES

#: Bits for regions in a set; one more stands for none.
BITS = 63
#: Bins of one level that become one bin of the next: 2**FAN_BITS.
FAN_BITS = 2

# State of `fill`.
WIDTH, USED, FIRST, NOW, KEY = range(5)

#: Classes of a tile; the first are activities or colours of regions.
CLASSES = 16
NO_REGION, ABSENT = 14, 15
#: Colours of regions; a class for regions that have none of their own in a picture.
COLOURS, OTHER_REGION = 12, 13
#: What time in no region is called.
NO_REGION_NAME = "(no region)"


def region_classes(names: list[str], weights: Floats) -> Bytes:
    """(regions + 1,) the colour of every region, none first; `weights` likewise.

    The name decides, so that a region looks the same in every trace; where two of the heaviest twelve
    would look alike, the lighter one takes the next colour that is free.
    """
    classes = np.array([zlib.crc32(name.encode()) % COLOURS for name in names], np.uint8)
    taken: set[int] = set()
    for region in np.argsort(-weights[1:], kind="stable")[:COLOURS].tolist():
        wanted = int(classes[region])
        free = next(c for k in range(COLOURS) if (c := (wanted + k) % COLOURS) not in taken)
        classes[region] = free
        taken.add(free)
    return np.concatenate([[NO_REGION], classes]).astype(np.uint8)


def region_shares(names: Sequence[str], colours: Bytes, weights: Floats) -> list[tuple[int, str, int]]:
    """The regions that take most time, each in a colour of its own, then none: number (-1), name, and colour
    as `region_classes` has them. `weights`: of each region, none first."""
    most = [r for r in np.argsort(-weights[1:], kind="stable").tolist() if weights[r + 1]][:COLOURS]
    coloured = [(r, names[r], int(colours[r + 1])) for r in most]
    return [*coloured, (-1, NO_REGION_NAME, NO_REGION)] if weights[0] else coloured


# --- states to bins ---


@arithmetic
def _add(bins: Ints, keys: Ints, ticks: Ints, n: int, slot: Ints, b: int, key: int, more: int) -> int:
    """Add time to the entry of a key in the newest bin, or begin one; the number of entries."""
    s = slot[key]
    if s < n and keys[s] == key and bins[s] == b:
        ticks[s] += more
        return n
    bins[n], keys[n], ticks[n] = b, key, more
    slot[key] = n
    return n + 1


@arithmetic
def coarsen(bins: Ints, keys: Ints, ticks: Ints, n: int, slot: Ints) -> int:
    """Join neighbouring bins, in place; the number of entries."""
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

    ``state[NOW]`` and ``state[KEY]`` are when the last state began and what it was. There are at most
    `most` bins; so that there are no more, nor more entries than there is room for, bins double in width.
    A state without duration has an entry of no ticks.
    """
    w, n, first, now, key = state[0], state[1], state[2], state[3], state[4]
    # At once as wide as they will have to be, or bins would be filled to be joined again.
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

    Bit ``r % 63`` stands for region r, bit 63 for none. `spent` is scratch, one per region and none,
    all zero before and after, and `by_activity` (8,). Returns the number of bins.
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

    The strip begins at cell `at`, its events reach from `first` to `last` (recorded ticks, as its bins).
    ``lut[value]`` is the class that dominates a cell. The location is there from `begin` to `end`: `before`
    its first event and `after` its last one it does these.
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

    Each bit of `present` stands for the classes ``bits[bit]``, or, if there are none, for the class of its
    own number.
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
                there = common(begin[s], shift[s], drift[s], origin[s])
                _add_idle(edges, there, common(end[s], shift[s], drift[s], origin[s]), before[s], acc, mask)
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
    """A location without events: it is there, in no region."""
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
    """Add states to a row of columns exactly; state i begins at ``time[i]``, the last one ends at `until`."""
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
    """The class of most time in every column, and the set of all; scratch is zero again afterwards.

    Columns narrower than a tick show what the next one does, in which the tick lies.
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
    """The first bin from `start` on (going by `step`, 1 or -1) in which regions of these bits may occur; -1:
    none."""
    k = start
    while 0 <= k < n:
        if regions[at + k] & bits:
            return k
        k += step
    return -1


# --- columns to pixels ---


@kernel
def _ranks(order: Ints) -> Bytes:
    """(2, 256) the place in `order` of the first class in each byte of a set; the length of `order`: none."""
    ranks = np.full((2, 256), order.size, np.uint8)
    for k in range(order.size - 1, -1, -1):
        for byte in range(256):
            if byte >> (order[k] & 7) & 1:
                ranks[order[k] >> 3, byte] = k
    return ranks


def warm_up() -> None:
    """Load or compile what paints rows, which would be done by the window's thread."""
    one, cell = np.zeros(1, np.int64), np.zeros((1, 1), np.uint8)
    pixels, colours = np.zeros((1, 1), np.uint32), np.zeros(1, np.uint32)
    paint(pixels, one, one, one, one, one, cell, cell.astype(np.uint16), colours, one, 1, 0)


@kernel
def paint(
    pixels: AnyArray, tops: Ints, bottoms: Ints, rows: Ints, low: Ints, high: Ints, dominant: Bytes,
    hidden: AnyArray, colours: AnyArray, order: Ints, gap: int, ground: int,
) -> None:  # fmt: skip
    """Paint rows of a tile: band k fills the pixel rows ``tops[k] .. bottoms[k]-1`` from row ``rows[k]``.

    Pixel column x shows the tile columns ``low[x] .. high[x]-1`` (none: it is left as it is). A column that
    holds a class which neither it nor its neighbours show gets a stripe in the colour of the one that is
    first in `order`, or, where rows are too low for a stripe, a hatching.
    """
    height, width = pixels.shape
    runs = np.empty(2 * width + 2, np.int64)  # where columns that show anything begin and end
    ends = 0
    for x in range(width):
        if (high[x] > low[x]) != (ends % 2 == 1):
            runs[ends] = x
            ends += 1
    if ends % 2 == 1:
        runs[ends] = width
        ends += 1
    middle = (low + high) >> 1
    shown = np.zeros(width + 2, np.uint16)  # the bit of the class of column x - 1
    plain = np.empty(width, np.uint32)
    marked = np.empty(width, np.uint32)
    ranks, inks = _ranks(order), colours[order]
    for band in range(tops.size):
        r = rows[band]
        top, bottom = max(tops[band], 0), min(bottoms[band], height)
        if r < 0 or top >= bottom:
            continue
        here, there = dominant[r], hidden[r]
        for e in range(0, ends, 2):
            for x in range(runs[e], runs[e + 1]):
                main = here[middle[x]]
                shown[x + 1] = 1 << main
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
                present = there[a] | there[b - 1]
                for c in range(a + 1, b - 1):
                    present |= there[c]
                rest = present & ~(shown[x] | shown[x + 1] | shown[x + 2])
                marked[x] = plain[x]
                if rest:
                    first = min(ranks[0, rest & 255], ranks[1, (rest >> 8) & 255])
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
