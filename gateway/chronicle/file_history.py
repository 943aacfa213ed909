"""The states of one file, from its recorded changes. No disk, no store.

The changes of a file form a chain: each begins in the state that the one before it has led to. A change that
no tool made, such as the operator's, is recorded when it is noticed, so the chain has no gap.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

from gateway.storage.file_changes import FileChange, FileState


def expected_state(changes: Sequence[FileChange], undone: Collection[int] = ()) -> FileState:
    """The state of a file after all of its `changes`, which are settled and not empty, except those that were
    taken back and those with the ids `undone`: what the newest remaining change has led to, or what was there
    before the first."""
    for one in reversed(changes):
        if not one.undone_at and one.id not in undone:
            return settled(one)
    return changes[0].before


def later_changes(
    changes: Sequence[FileChange], than: FileChange, without: Collection[int]
) -> list[FileChange]:
    """The changes after `than` that decide the file's content: those that were not taken back, without some
    ids."""
    return [one for one in changes if one.id > than.id and not one.undone_at and one.id not in without]


def without_thread(
    changes: Sequence[FileChange], thread: str
) -> tuple[tuple[int, ...], dict[int, FileState]]:
    """How the changes of a file remain a chain without those that tools made in a thread: the ids of the
    changes to remove, and of those that have to stay as changes by no tool, each with the state before it."""
    others = [at for at, one in enumerate(changes) if one.tool and one.thread != thread]
    removed: list[int] = []
    links: dict[int, FileState] = {}
    for start, end in pairwise([-1, *others, len(changes)]):
        run = changes[start + 1 : end]
        if not any(one.thread == thread and one.tool for one in run):
            continue
        known = [one for one in run if not one.undone_at and one.after is not None]
        # Between two others, one change leads from the state before to the state after.
        if known and start >= 0 and end < len(changes):
            links[known[-1].id] = run[0].before
        removed += [one.id for one in run if one.id not in links]
    return tuple(removed), links


def settled(change: FileChange) -> FileState:
    """What the change has led to. Raises ValueError if that is not recorded yet."""
    if change.after is None:
        raise ValueError(f"change {change.id} is not settled")
    return change.after
