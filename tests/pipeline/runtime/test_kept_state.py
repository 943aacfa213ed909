"""What a run begins with and leaves, when other runs change the same state."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.graph.definition.decisions import NodeResult, State
from pipeline.graph.definition.spec import GraphSpec, Kept, append, first, merge
from pipeline.runtime.kept_state import MAX_CHARS, KeptValues, StateChange, first_state

TABLE = {"table": {"a": 7, "b": 2}}
KEPT = Kept(lives="session")


async def _nothing(_state: State, _context: None) -> NodeResult:
    return NodeResult()


GRAPH: GraphSpec[None] = GraphSpec(
    name="g",
    version="3",
    entry="a",
    nodes={"a": _nothing},
    edges=(),
    channels={"list": append, "table": merge, "once": first},
    keep={"list": KEPT, "table": KEPT, "once": KEPT, "plain": Kept(lives="session", was=("old", "older"))},
)


def stored(version: str = "3", **values: Any) -> KeptValues:
    return KeptValues(version=version, values=values)


def changed(before: dict[str, Any], after: dict[str, Any], now: KeptValues | None) -> dict[str, Any]:
    return dict(StateChange(graph=GRAPH, before=before, after=after).applied("session", now).values)


@pytest.mark.parametrize(
    ("kept", "state"),
    [
        (stored(plain=1, list=[1, 2], gone=3), {"plain": 1, "list": (1, 2)}),
        (stored("2", old=1, older=2), {"plain": 1}),
        (stored("2", older=2), {"plain": 2}),
        (stored("2", plain=0, old=1), {"plain": 0}),
        (stored(old=1), {}),
    ],
)
def test_a_run_begins_with_the_declared_keys(kept: KeptValues, state: dict[str, Any]) -> None:
    assert first_state(GRAPH, {"session": kept}) == state
    assert first_state(GRAPH, {"person": kept}) == {}
    assert first_state(GRAPH, {}) == {}


@pytest.mark.parametrize(
    ("before", "after", "now", "left"),
    [
        ({}, {"plain": 1, "other": 2}, None, {"plain": 1}),
        ({"plain": 1}, {"plain": 1}, stored(plain=5), {"plain": 5}),
        ({"plain": 1}, {"plain": 2}, stored(plain=5), {"plain": 2}),
        ({"plain": 1}, {}, stored(plain=1, list=[1]), {"list": (1,)}),
        ({"list": (1,)}, {"list": (1, 2)}, stored(list=[1, 9]), {"list": (1, 9, 2)}),
        ({}, {"list": (2,)}, stored(list=[9]), {"list": (9, 2)}),
        ({"table": {"a": 1}}, {"table": {"a": 1, "b": 2}}, stored(table={"a": 7}), TABLE),
        ({}, {"once": 1}, stored(once=2), {"once": 2}),
    ],
)  # fmt: skip
def test_a_run_adds_to_what_another_one_has_written_meanwhile(
    before: dict[str, Any], after: dict[str, Any], now: KeptValues | None, left: dict[str, Any]
) -> None:
    assert changed(before, after, now) == left


def test_a_list_that_is_too_long_begins_again_and_a_value_that_is_too_large_is_not_kept() -> None:
    long = tuple("x" * 1_000 for _ in range(MAX_CHARS // 1_000))
    assert changed({"list": long}, {"list": (*long, "new")}, stored(list=list(long))) == {"list": ("new",)}
    assert changed({}, {"plain": "x" * MAX_CHARS}, stored(plain="small")) == {"plain": "small"}


def test_a_source_of_foreign_text_stays_with_the_state() -> None:
    first_run = StateChange(graph=GRAPH, before={}, after={"plain": 1}, foreign="a web page")
    kept = first_run.applied("session", None)
    later = StateChange(graph=GRAPH, before={"plain": 1}, after={"plain": 2})
    assert (kept.foreign, later.applied("session", kept).foreign) == ("a web page", "a web page")
    assert (first_run.lifetimes, StateChange(graph=GRAPH, before={}, after={}).lifetimes) == (
        ("session",),
        (),
    )
