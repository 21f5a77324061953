"""What a speaker says of the run and of each phase."""

from __future__ import annotations

import pytest

from desktop.core.explanation import Explanation, PhaseText
from desktop.data.material import Mark
from desktop.data.speaking import notes

BREAKS = (1.0, 2.0, 4.0)


def explained(*sentences: str) -> Explanation:
    return Explanation("Much is lost.", phases=tuple(PhaseText(s, 0.0, 1.0, 0.0, ()) for s in sentences))


def test_of_the_run_then_of_each_phase() -> None:
    told = explained("The first.", "The second.")
    assert told.paragraph
    assert notes(told, BREAKS, (), ()) == [told.paragraph, "The first.", "The second."]
    assert notes(None, BREAKS, (), ()) == ["", "", ""]
    assert notes(None, (), (), ()) == [""], "there are no phases"
    assert notes(explained("a", "b", "c"), BREAKS, (), ())[1:] == ["a", "b"], (
        "of another fit with more phases"
    )
    assert notes(explained("a"), BREAKS, (), ())[1:] == ["a", ""]


@pytest.mark.parametrize(
    ("at", "where"), [(0.5, 0), (1.0, 1), (1.999, 1), (2.0, 2), (3.999, 2), (4.0, 0), (9.0, 0)]
)
def test_what_has_a_time_is_said_with_its_phase(at: float, where: int) -> None:
    """A phase begins at its break and ends before the next."""
    said = notes(None, BREAKS, [Mark(at, "halo")], ())
    assert [k for k, text in enumerate(said) if text.endswith(": halo")] == [where]
    own = notes(None, BREAKS, (), [(at, "mine")])
    assert own == (["", "", ""] if where == 0 else ["", *("mine" if k == where else "" for k in (1, 2))]), (
        "a note of a phase that is no more is not that of the run"
    )


def test_annotations_follow_in_time_with_their_stretch_and_place() -> None:
    marks = [Mark(3.0, "late", where="rank 2"), Mark(2.5, "early", end_s=2.75)]
    said = notes(explained("The first.", "The second."), BREAKS, marks, ())[2].split("\n")
    assert said == ["The second.", "2.500 s to 2.750 s: early", "3 s: rank 2: late"]


def test_what_the_user_wrote_takes_the_place_of_all_else() -> None:
    told, marks = explained("The first.", "The second."), [Mark(1.5, "halo")]
    assert notes(told, BREAKS, marks, [(None, "Hello"), (1.2, "Mine")]) == ["Hello", "Mine", "The second."]
    assert notes(told, BREAKS, marks, [(2.2, "")])[1:] == ["The first.\n1.500 s: halo", ""], "nothing is said"
