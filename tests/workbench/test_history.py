"""Undo keeps trees: names, merging and what a new edit forgets."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.workbench.history import History
from desktop.workbench.model import PhaseSettings, Project


def project(n: int) -> Project:
    return Project(PhaseSettings(n=n))


def test_steps_are_named_and_come_back() -> None:
    history = History(project(1))
    history.edit("set 2 phases", project(2), "n")
    history.edit("move break 1", replace(project(2), phases=PhaseSettings(n=2, breaks=(0.0, 1.0, 2.0))))
    assert (history.undo_label, history.redo_label) == ("move break 1", None)
    assert history.undo() == project(2)
    assert (history.undo_label, history.redo_label) == ("set 2 phases", "move break 1")
    assert history.undo() == project(1)
    assert history.undo() == project(1), "nothing lies before the beginning"
    assert history.undo_label is None
    assert history.redo() == project(2)


def test_a_turn_of_the_wheel_is_one_step_until_it_is_sealed() -> None:
    history = History(project(1))
    for n in (2, 3, 4):
        history.edit(f"set {n} phases", project(n), "n")
    history.seal()
    history.edit("set 5 phases", project(5), "n")
    assert history.undo() == project(4)
    assert history.undo_label == "set 4 phases"
    assert history.undo() == project(1)


def test_edits_after_undo_never_merge_with_what_was_before() -> None:
    history = History(project(1))
    history.edit("a", project(2), "n")
    history.edit("b", project(3), "other")
    history.undo()
    history.edit("c", project(4), "n")
    assert history.redo_label is None
    assert history.undo() == project(2)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.one_of(st.integers(1, 50), st.sampled_from(["undo", "redo"])), max_size=40))
def test_it_is_a_list_with_a_place_in_it(moves: list[int | str]) -> None:
    """Against the plainest possible model, without merging."""
    history, trees, at = History(project(0)), [0], 0
    for move in moves:
        if move == "undo":
            at = max(0, at - 1)
            history.undo()
        elif move == "redo":
            at = min(len(trees) - 1, at + 1)
            history.redo()
        else:
            assert isinstance(move, int)
            trees[at + 1 :] = [move]
            at += 1
            history.edit(f"set {move}", project(move))
        assert history.project == project(trees[at])
        assert (history.undo_label is None) == (at == 0)
        assert (history.redo_label is None) == (at == len(trees) - 1)
