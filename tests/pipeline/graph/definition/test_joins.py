"""Joins agree with the definition of post-dominance, on drawn graphs and on the shapes that people build."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.graph.definition.joins import Joins

END = "end"
Successors = dict[str, tuple[str, ...]]


@st.composite
def _graphs(draw: st.DrawFn) -> Successors:
    names = [f"n{number}" for number in range(draw(st.integers(1, 9)))]
    targets = st.lists(st.sampled_from([*names, END]), max_size=3, unique=True).map(tuple)
    return {name: draw(targets) for name in names}


def _reaches_end(successors: Successors, start: str, without: str) -> bool:
    seen = {without}
    waiting = [start]
    while waiting:
        node = waiting.pop()
        if node == END:
            return True
        if node not in seen:
            seen.add(node)
            waiting.extend(successors[node])
    return False


def _post_dominators(successors: Successors, node: str) -> set[str]:
    """By definition: the nodes without which no way leads from `node` to the end, itself included."""
    return {other for other in successors if not _reaches_end(successors, node, other)}


@given(successors=_graphs(), data=st.data())
def test_a_join_is_the_nearest_node_that_every_way_of_every_target_passes(
    successors: Successors, data: st.DataObject
) -> None:
    targets = tuple(data.draw(st.lists(st.sampled_from([*successors, END]), min_size=1, max_size=4)))
    join = Joins(successors, END).of(targets)
    nodes = [target for target in targets if target != END]
    if len(nodes) < len(targets) or not all(_reaches_end(successors, node, "") for node in nodes):
        assert join == END
        return
    common = set.intersection(*(_post_dominators(successors, node) for node in nodes))
    if join == END:
        assert not common
    else:
        assert join in common
        # Nearest: every other candidate still lies on all paths from the join to the end.
        assert common == _post_dominators(successors, join)


@given(successors=_graphs(), data=st.data())
def test_the_order_of_the_targets_does_not_matter(successors: Successors, data: st.DataObject) -> None:
    targets = data.draw(st.lists(st.sampled_from([*successors, END]), min_size=1, max_size=4))
    shuffled = data.draw(st.permutations(targets))
    assert Joins(successors, END).of(tuple(targets)) == Joins(successors, END).of(tuple(shuffled))


@given(successors=_graphs(), data=st.data())
def test_a_branch_ends_at_its_join(successors: Successors, data: st.DataObject) -> None:
    target = data.draw(st.sampled_from([*successors]))
    joins = Joins(successors, END)
    join = joins.of((target, data.draw(st.sampled_from([*successors]))))
    branch = joins.branch(target, join)
    assert not branch & {join, END}
    assert (target in branch) == (target != join)
    exits = {after for node in branch for after in successors[node]}
    assert exits <= branch | {join, END}


def test_branches_of_several_nodes_meet_at_the_join() -> None:
    joins = Joins({"a": ("b", "c"), "b": ("b2",), "b2": ("j",), "c": ("j",), "j": (END,)}, END)
    assert joins.of(("b", "c")) == "j"
    assert joins.branch("b", "j") == {"b", "b2"}
    assert joins.branch("c", "j") == {"c"}


def test_a_target_may_be_the_join_itself_with_an_empty_branch() -> None:
    joins = Joins({"a": ("b", "j"), "b": ("j",), "j": (END,)}, END)
    assert joins.of(("b", "j")) == "j"
    assert joins.branch("j", "j") == frozenset()


def test_branches_without_a_common_node_meet_at_the_end() -> None:
    joins = Joins({"a": ("b", "c"), "b": (END,), "c": (END,)}, END)
    assert joins.of(("b", "c")) == END
    assert joins.branch("b", END) == {"b"}


def test_an_endless_cycle_joins_no_one_before_the_end() -> None:
    joins = Joins({"a": ("b", "c"), "b": ("b2",), "b2": ("b",), "c": ("j",), "j": (END,)}, END)
    assert joins.of(("b", "c")) == END
    assert joins.of(("b",)) == END
    assert joins.branch("b", END) == {"b", "b2"}


def test_a_loop_may_join_at_the_node_that_fans_out() -> None:
    joins = Joins({"a": ("b", "c", END), "b": ("a",), "c": ("a",)}, END)
    assert joins.of(("b", "c")) == "a"


def test_a_target_that_is_no_node_leads_nowhere() -> None:
    joins = Joins({"a": ("ghost", "b"), "b": (END,)}, END)
    assert joins.of(("ghost", "b")) == END
    assert joins.branch("ghost", END) == {"ghost"}


@pytest.mark.parametrize("shape", ["chain", "ladder"])
def test_five_hundred_nodes_do_not_explode(shape: str) -> None:
    names = [f"n{number}" for number in range(500)] + [END]
    step = 1 if shape == "chain" else 2
    successors = {
        name: tuple(dict.fromkeys((names[index + 1], names[min(index + step, 500)])))
        for index, name in enumerate(names[:-1])
    }
    joins = Joins(successors, END)
    began = time.process_time()
    assert joins.of((names[0], names[498])) == (names[498] if step == 1 else END)
    assert time.process_time() - began < 5  # an explosion, not a slow machine
