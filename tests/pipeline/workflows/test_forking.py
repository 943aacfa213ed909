"""A copy of a run has all that the run has, and changes apart from it.

Covers: pipeline/workflows/exploring/forking.py.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from pipeline.graph.definition.decisions import NodeResult, State
from pipeline.graph.definition.elements import END, EdgeSpec
from pipeline.graph.definition.spec import GraphSpec
from pipeline.graph.definition.structure import NodeSpec
from pipeline.graph.run.frames import Frame, branch_frame
from pipeline.graph.run.state import Run
from pipeline.workflows.exploring.forking import forked

_CHANGED_IN_PLACE = ("updates", "children", "finished", "effects")


async def _nothing(_state: State, _context: object) -> NodeResult:
    return NodeResult()


def _run() -> Run:
    """A run with one branch, in which no field has the value that a new frame has."""
    graph: GraphSpec[Any, Any] = GraphSpec(
        name="one", entry="a", nodes={"a": NodeSpec(run=_nothing)}, edges=(EdgeSpec(source="a", target=END),)
    )
    run = Run.begin("run", graph, {"number": 7}, "a")
    branch = branch_frame(run.root, "a", "join", {"own": 1})
    run.root.children["a"] = run.frames[branch.id] = branch
    for one in fields(Frame):
        if one.name in _CHANGED_IN_PLACE:
            continue
        if one.default is getattr(branch, one.name):
            setattr(branch, one.name, object())
    branch.updates.append({"number": 8})
    branch.finished.append("b")
    branch.effects["call"] = ("begun", None)
    return run


def test_each_field_of_a_frame_is_copied() -> None:
    run = _run()
    copy = forked(run)
    assert copy.root.children.keys() == run.root.children.keys()
    assert [*copy.frames] == [*run.frames]
    there, here = run.root.children["a"], copy.root.children["a"]
    assert (here.parent, copy.frames[here.id]) == (copy.root, here)
    for name in Frame.__slots__:
        if name != "parent":
            assert getattr(here, name) == getattr(there, name), name


def test_what_changes_in_place_is_not_shared() -> None:
    run = _run()
    copy = forked(run)
    there, here = run.root.children["a"], copy.root.children["a"]
    for name in _CHANGED_IN_PLACE:
        assert getattr(here, name) is not getattr(there, name), name
        assert getattr(copy.root, name) is not getattr(run.root, name), name
