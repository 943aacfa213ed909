"""Find a circle that nothing leads out of, from the document alone: at any size, whatever the engine does.

A node can end if some handle of it leads only to nodes that can end: all targets of a handle are followed.
"""

from __future__ import annotations

from pipeline.workflows.exploring.meaning import Meaning


def endless_path(meaning: Meaning) -> tuple[str, ...]:
    """The nodes from the start into a circle that never ends, ending with the node at which the circle began;
    empty if there is none."""
    ends = _ending(meaning)
    node = meaning.workflow.start.id
    path: list[str] = []
    if node in ends:
        # Every handle of a node that can end may be taken, so look at all that a run reaches.
        found = _first_without_end(meaning, ends)
        if found is None:
            return ()
        path = list(found[:-1])
        node = found[-1]
    while node not in path:
        path.append(node)
        node = next(target for target in _targets(meaning, node) if target not in ends)
    return (*path, node)


def _ending(meaning: Meaning) -> set[str]:
    ends: set[str] = set()
    while more := {
        name
        for name in meaning.workflow.reached
        if name not in ends
        and any(
            all(target in ends for target in meaning.workflow.targets(name, handle))
            for handle in meaning.handles(name)
        )
    }:
        ends |= more
    return ends


def _first_without_end(meaning: Meaning, ends: set[str]) -> tuple[str, ...] | None:
    """The shortest way from the start to a node that cannot end."""
    start = meaning.workflow.start.id
    paths: dict[str, tuple[str, ...]] = {start: (start,)}
    waiting = [start]
    for name in waiting:
        if name not in ends:
            return paths[name]
        for target in _targets(meaning, name):
            if target not in paths:
                paths[target] = (*paths[name], target)
                waiting.append(target)
    return None


def _targets(meaning: Meaning, name: str) -> list[str]:
    """Where the handles that a run can leave by lead, each once."""
    handles = meaning.handles(name)
    return list(
        dict.fromkeys(target for handle in handles for target in meaning.workflow.targets(name, handle))
    )
