"""Activities of a run that grows: sums in bins are exact, however the bins have doubled."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.core import growing
from desktop.core.growing import NOTED, GrowingActivities

#: What a processor does: it computes so long, then is so long in an activity.
stretches = st.lists(
    st.tuples(st.integers(0, 5000), st.integers(0, 5000), st.integers(1, NOTED)), min_size=1, max_size=40
)


@settings(deadline=None)  # the kernel may have to be compiled
@given(
    runs=st.lists(st.tuples(st.integers(0, 20_000), stretches), min_size=1, max_size=4),
    parts=st.integers(1, 5),
)
def test_every_bin_holds_what_it_should(
    runs: list[tuple[int, list[tuple[int, int, int]]]], parts: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(growing, "_BINS", 64)
        patch.setattr(growing, "_WIDTH", 16)
        grown = GrowingActivities()
    known = []
    for begun, stretched in runs:
        place = grown.add_processor(begun)
        gaps, lengths, kinds = np.array(stretched, np.int64).T
        end = begun + np.cumsum(gaps + lengths)
        for part in np.array_split(np.arange(end.size), parts):
            if part.size:
                begin = (end - lengths)[part]
                grown.add(place, begin, end[part], kinds[part], int(end[part[-1]]))
                grown.levels()  # which keep what they have summed
                grown.computing(7)
        grown.ended[place] = True
        known.append((begun, end - lengths, end, kinds))
    levels, edges = grown.levels()
    assert grown.common == max(int(end[-1]) for _, _, end, _ in known)
    assert np.all(np.diff(edges) == grown.width)
    expected = np.zeros_like(levels)
    for begun, begin, end, kinds in known:
        there = np.diff(np.clip(edges, begun, end[-1]))
        inside = [np.diff(np.clip(edges, a, b)) for a, b in zip(begin, end, strict=True)]
        for kind, shared in zip(kinds, inside, strict=True):
            expected[kind] += shared
        expected[0] += there - sum(inside)
    np.testing.assert_allclose(levels * grown.width, expected, atol=1e-6)
    curves = grown.curves(("computing", "overhead", "idle", "io", "unmeasured"))
    if edges.size > 1:
        assert curves["computing"].integral == pytest.approx(expected[0].sum() * 1e-9)
        share, ends = grown.computing(7)
        assert share.shape[1] <= 7 and ends[-1] == edges[-1]
        assert (share * np.diff(ends)).sum() == pytest.approx(expected[0].sum(), abs=1e-6)


def test_memory_stays_bounded() -> None:
    grown = GrowingActivities()
    for _ in range(600):
        grown.add_processor(0)
    assert grown.processors * grown.bins <= 600 * 4096
    grown.add(0, np.array([0]), np.array([10**15]), np.array([2]), 10**15)
    assert grown.width * grown.bins >= 10**15


def test_what_goes_on_is_known_as_far_as_the_last_one_tells() -> None:
    grown = GrowingActivities()
    first, second, third = (grown.add_processor(begun) for begun in (0, 8192, 0))
    nothing = np.zeros(0, np.int64)
    for place, known in ((first, 40_000), (second, 90_000), (third, 10_000)):
        grown.add(place, nothing, nothing, nothing, known)
    assert grown.common == 10_000
    grown.ended[third] = True
    assert grown.common == 40_000, "of those that go on the one that is known least far"
    grown.add(first, nothing, nothing, nothing, 30_000)
    assert grown.common == 40_000, "what is known stays known"
    curves = grown.curves(("computing", "overhead", "idle", "io", "unmeasured"))
    assert list(curves) == ["computing"], "what never was is no curve"
    assert curves["computing"].level.tolist() == [2.0, 2.0, 2 + 1808 / 4096, *[2.0] * 6]


def test_bins_are_no_wider_and_no_more_than_they_have_to_be() -> None:
    grown = GrowingActivities()
    nothing = np.zeros(0, np.int64)
    grown.add_processor(0)
    grown.add(0, nothing, nothing, nothing, grown.width * grown.bins)
    assert grown.width == 4096
    grown.add(0, nothing, nothing, nothing, grown.width * grown.bins + 1)
    assert grown.width == 8192
    grown.add_processor(grown.width * grown.bins + 1)  # also of who begins later
    assert grown.width == 16384
    for _ in range(4200):
        grown.add_processor(0)
        assert grown.bins >= 512 and (grown.bins == 512 or grown.processors * grown.bins <= 1 << 21)
