"""Undo keeps trees: names, merging and what a new edit forgets."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.workbench.history import Branch, History
from desktop.workbench.model import PhaseSettings, Project


def project(n: int) -> Project:
    return Project(PhaseSettings(n=n))


def opened(n: int) -> tuple[History, Branch[Project]]:
    history = History()
    return history, history.branch(project(n))


def undone(history: History, one: Branch[Project]) -> Project:
    history.undo()
    return one.value


def test_steps_are_named_and_come_back() -> None:
    history, one = opened(1)
    one.edit("set 2 phases", project(2), "n")
    one.edit("move breakpoint 1", replace(project(2), phases=PhaseSettings(n=2, breaks=(0.0, 1.0, 2.0))))
    assert (history.undo_label, history.redo_label) == ("move breakpoint 1", None)
    assert undone(history, one) == project(2)
    assert (history.undo_label, history.redo_label) == ("set 2 phases", "move breakpoint 1")
    assert undone(history, one) == project(1)
    assert undone(history, one) == project(1), "nothing lies before the beginning"
    assert history.undo_label is None
    history.redo()
    assert one.value == project(2)


def test_a_turn_of_the_wheel_is_one_step_until_it_is_sealed() -> None:
    history, one = opened(1)
    for n in (2, 3, 4):
        one.edit(f"set {n} phases", project(n), "n")
    history.seal()
    one.edit("set 5 phases", project(5), "n")
    assert undone(history, one) == project(4)
    assert history.undo_label == "set 4 phases"
    assert undone(history, one) == project(1)


def test_edits_after_undo_never_merge_with_what_was_before() -> None:
    history, one = opened(1)
    one.edit("a", project(2), "n")
    one.edit("b", project(3), "other")
    history.undo()
    one.edit("c", project(4), "n")
    assert history.redo_label is None
    assert undone(history, one) == project(2)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.one_of(st.integers(1, 50), st.sampled_from(["undo", "redo"])), max_size=40))
def test_it_is_a_list_with_a_place_in_it(moves: list[int | str]) -> None:
    """Against the plainest possible model, without merging."""
    (history, one), trees, at = opened(0), [0], 0
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
            one.edit(f"set {move}", project(move))
        assert one.value == project(trees[at])
        assert (history.undo_label is None) == (at == 0)
        assert (history.redo_label is None) == (at == len(trees) - 1)


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.one_of(st.tuples(st.integers(0, 2), st.integers(1, 50)), st.sampled_from(["undo", "redo"])))
)
def test_branches_have_one_line_of_steps(moves: list[tuple[int, int] | str]) -> None:
    """Against whole trees that are kept, whichever branch a step was of."""
    history, heard = History(), list[tuple[int, int]]()
    branches = [history.branch(0, lambda n, k=k: heard.append((k, n))) for k in range(3)]
    trees, at = [(0, 0, 0)], 0
    for move in moves:
        if isinstance(move, tuple):
            k, n = move
            branches[k].edit(f"set {n}", n)
            tree = list(trees[at])
            tree[k] = n
            trees[at + 1 :] = [(tree[0], tree[1], tree[2])]
            at += 1
        else:
            before = at
            at = max(0, at - 1) if move == "undo" else min(len(trees) - 1, at + 1)
            branch = history.undo() if move == "undo" else history.redo()
            assert (branch is None) == (at == before)
            if branch is not None:
                assert heard[-1] == (branches.index(branch), branch.value)
        assert tuple(branch.value for branch in branches) == trees[at]


def test_steps_of_a_run_that_is_not_shown_wait_for_it() -> None:
    history = History()
    here, contents, there = (history.branch(0) for _ in range(3))
    here.edit("here", 1)
    contents.edit("add", 1)
    here.parked = True
    there.edit("there", 1)
    assert (history.undo(), history.undo(), history.undo()) == (there, contents, None)
    here.parked, there.parked = False, True
    assert (history.undo_label, history.redo_label) == ("here", "add")
    assert history.undo() is here and history.redo() is here and history.redo() is contents
    assert history.redo() is None
    history.forget(parked=True)
    there.parked = False
    assert history.redo_label is None and there.value == 0
