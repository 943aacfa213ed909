"""Graphs from JSON: every field, every mistake with its place, and the way back."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest

from pipeline.domain.errors import GraphError
from pipeline.graph.definition.retry import RetryPolicy
from pipeline.graph.definition.spec import (
    EdgeSpec,
    FanOut,
    Goal,
    GraphSpec,
    Limits,
    LlmDecide,
    NodeSpec,
    OnFailure,
    When,
)
from pipeline.graph.documents.library import NodeLibrary, library_for_pictures
from pipeline.graph.documents.reader import MAX_BYTES, graph_document, read_graph
from pipeline.nodes.kinds import NODE_KINDS
from tests.pipeline.graph.documents.examples import FULL, FULL_GRAPH, LIBRARY, work
from tests.support.tables import each

EXAMPLES = sorted((Path(__file__).parent / "graphs").glob("*.json"))


def document(**changes: Any) -> dict[str, Any]:
    """A small graph with changes to its fields."""
    small = {"name": "small", "entry": "a", "nodes": [{"id": "a", "run": "work"}]}
    return {name: value for name, value in (small | changes).items() if value is not ...}


def node(**fields: Any) -> dict[str, Any]:
    """The small graph with these fields in its node."""
    return document(nodes=[{"id": "a", **fields}])


def way(**fields: Any) -> dict[str, Any]:
    """The small graph with an edge of these fields from its node."""
    return document(edges=[{"source": "a", **fields}])


def mistakes(source: str | dict[str, Any]) -> list[str]:
    with pytest.raises(GraphError) as caught:
        read_graph(source, LIBRARY)
    return str(caught.value).splitlines()


def test_every_field_is_read() -> None:
    graph = read_graph(json.dumps(FULL), LIBRARY)
    for part in dataclasses.fields(FULL_GRAPH):
        if part.name != "nodes":
            assert getattr(graph, part.name) == getattr(FULL_GRAPH, part.name), part.name
    for name, spec in FULL_GRAPH.specs.items():
        if name != "d":
            assert graph.specs[name] == spec, name
    own = graph.specs["d"].subgraph
    assert own is not None
    assert (own.name, own.entry, own.specs) == ("own", "x", {"x": NodeSpec(run=work)})
    assert graph.signature == FULL_GRAPH.signature


def test_every_field_is_written() -> None:
    assert graph_document(FULL_GRAPH, LIBRARY) == FULL


def test_the_full_document_has_every_field_that_the_types_have() -> None:
    for given_fields, kind in (
        (FULL, GraphSpec),
        (FULL["goal"], Goal),
        (FULL["limits"], Limits),
        (FULL["fan_out"], FanOut),
        # The kind and its parameters are `run` and `with`: see tests/pipeline/nodes/test_document_graph.py.
        (FULL["nodes"][0] | {"subgraph": "", "kind": "", "parameters": {}}, NodeSpec),
        (FULL["nodes"][0]["retry"], RetryPolicy),
        (FULL["edges"][2] | {"mapping": {}}, EdgeSpec),
    ):
        assert {part.name for part in dataclasses.fields(kind)} - given_fields.keys() == set()


def test_without_a_library_functions_are_under_their_own_names() -> None:
    written = graph_document(FULL_GRAPH)
    assert [node.get("run") for node in written["nodes"]] == ["work", "other_work", None, None, "work"]
    assert written["nodes"][2]["subgraph"]["name"] == "inner"
    assert written["edges"][1]["when"] == {"call": "urgent"}
    assert written["channels"]["best"] == "longest"


OTHER_NODE = {
    "id": "a",
    "input_keys": ["x"],
    "output_keys": ["y"],
    "nullable_output_keys": ["y"],
    "max_node_visits": 4,
}
OTHER_EDGES: list[dict[str, Any]] = [
    {"source": "a", "target": "b", "condition": "conditional", "condition_expr": "y > 1"},
    {"source": "a", "target": "c", "condition": "llm_decide", "description": "done", "fallback": True},
    {"source": "a", "target": "c", "condition": "on_failure"},
    {"source": "b", "target": "c", "condition": "always", "input_mapping": {"k": "y"}},
]
OTHER_SPELLINGS = {
    "name": "spelled",
    "entry_node": "a",
    "terminal_nodes": ["c"],
    "max_steps": 12,
    "conversation_mode": "isolated",
    "nodes": [OTHER_NODE, {"id": "b"}, {"id": "c"}],
    "edges": OTHER_EDGES,
}


def test_other_spellings_of_a_field_mean_the_same() -> None:
    library = NodeLibrary[object](nodes=dict.fromkeys("abc", work))
    graph = read_graph(OTHER_SPELLINGS, library)
    assert graph == GraphSpec[object](
        name="spelled",
        entry="a",
        terminals=("c",),
        limits=Limits(max_steps=12),
        conversation="isolated",
        nodes={
            "a": NodeSpec(run=work, reads=("x",), writes=("y",), nullable=("y",), max_visits=4),
            "b": NodeSpec(run=work),
            "c": NodeSpec(run=work),
        },
        edges=(
            EdgeSpec(source="a", target="b", when=When("y > 1")),
            EdgeSpec(source="a", target="c", when=LlmDecide("done"), fallback=True),
            EdgeSpec(source="a", target="c", when=OnFailure()),
            EdgeSpec(source="b", target="c", mapping={"k": "y"}),
        ),
    )


@each(
    "wrong, words",
    [
        (document(name=...), "name: is missing"),
        (document(name=""), "name: is empty"),
        (document(entry=3), "entry: expected a text, but a whole number was given"),
        (document(entry=..., entri="a"), "entri: there is no such field; did you mean entry?"),
        (document(entry_node="a"), "entry_node: says the same as entry; give one of them"),
        (document(terminals="a"), "terminals: expected a list, but a text was given"),
        (document(terminals=["a", None]), "terminals[1]: expected a text, but null was given"),
        (document(entry_points={"x": 1}), "entry_points.x: expected a text, but a whole number was given"),
        (document(conversation="isolate"), "did you mean isolated?"),
        (document(conversation=[]), "conversation: expected continuous or isolated, but a list was given"),
        (document(goal="win"), "goal: expected an object, but a text was given"),
        (document(goal={}), "goal.description: is missing"),
        (
            document(limits={"max_steps": True}),
            "limits.max_steps: expected a whole number, but true",
        ),
        (document(limits={"max_steps": 2.0}), "limits.max_steps: expected a whole number, but a number"),
        (document(limits={"max_steps": 2}, max_steps=2), "max_steps: says the same as limits.max_steps"),
        (document(limits={"max_seconds": "1"}), "limits.max_seconds: expected a number, but a text"),
        (document(limits={"max_seconds": 10**400}), "limits.max_seconds: is too large for a number"),
        (document(limits={"decide_seconds": None}), "limits.decide_seconds: expected a number, but null"),
        (document(fan_out={"on_failure": "fail"}), "did you mean fail_all?"),
        (
            document(channels={"k": "apend"}),
            "there is no channel called 'apend' here; did you mean append?",
        ),
        (document(nodes={}), "nodes: expected a list, but an object was given"),
        (document(nodes=["a"]), "nodes[0]: expected an object, but a text was given"),
        (node(run="wrok"), "nodes[0].run: there is no node function called 'wrok' here; did you mean work?"),
        (document(nodes=[{"id": "a", "run": "work"}] * 2), "nodes[1].id: another node is called a already"),
        (node(run="work", event_loop=1), "nodes[0].event_loop: expected true or false"),
        (node(run="work", retry={"jitter": []}), "nodes[0].retry.jitter: expected a number"),
        (node(run="work", retry={"retry_on": ["Flakey"]}), "did you mean Flaky?"),
        (node(subgraph="outer"), "nodes[0].subgraph: there is no subgraph called 'outer'"),
        (node(subgraph={"nam": "x"}), "nodes[0].subgraph.nam: there is no such field; did you mean name?"),
        (way(), "edges[0].target: is missing"),
        (way(target="a", when="on_sucess"), "did you mean on_success?"),
        (way(target="a", when={}), "edges[0].when: give exactly one of if, call"),
        (way(target="a", when={"if": "x", "call": "y"}), "edges[0].when: give exactly one"),
        (way(target="a", when={"call": "urgnt"}), "did you mean urgent?"),
        (way(when={"route": "chose", "targets": []}), "did you mean choose?"),
        (way(target="a", when="always", condition="always"), "edges[0].condition: says the same as when"),
        (way(target="a", condition="conditional"), "edges[0].condition_expr: is missing"),
        (way(target="a", description="x"), "edges[0].description: there is no such field"),
        (document(name="half \ud800"), "name: holds half of a character"),
    ],
)
def test_a_mistake_of_form_is_reported_with_its_place(wrong: dict[str, Any], words: str) -> None:
    found = mistakes(wrong)
    assert [line for line in found if words in line], found


def test_all_mistakes_of_form_come_at_once() -> None:
    found = mistakes(document(entry=1, limits=[], nodes=[{"id": "a", "run": "work", "reads": 2}], edges=[{}]))
    assert found == [
        "graph small: entry: expected a text, but a whole number was given",
        "graph small: limits: expected an object, but a list was given",
        "graph small: nodes[0].reads: expected a list, but a whole number was given",
        "graph small: edges[0].source: is missing",
        "graph small: edges[0].target: is missing",
    ]


def test_where_the_form_is_right_the_mistakes_of_the_graph_come_at_once() -> None:
    found = mistakes(document(entry="b", edges=[{"source": "a", "target": "c", "when": {"if": "1 +"}}]))
    assert [line for line in found if line.startswith("graph small: entry b: no such node")]
    assert [line for line in found if line.startswith("graph small: edge a -> c: ")]
    assert len(found) >= 3


@each(
    "text, words",
    [
        ('{"name": "x",\n  "entry" "a"}', "line 2, column 11"),
        ("", "line 1, column 1"),
        ("[]", "must be a JSON object"),
        ('{"name": "a", "name": "b"}', "the field 'name' twice in one object"),
        ("[" * 100_000, "nested too deeply"),
        ('{"name": ' + "[" * 40 + "]" * 40 + "}", "nested deeper than 32 levels"),
        ('{"name": NaN}', "nan is not a JSON number"),
        ('{"name": ' + "9" * 5000 + "}", "not usable JSON"),
        (" " * (MAX_BYTES + 1), f"larger than {MAX_BYTES} bytes"),
        ("é" * (MAX_BYTES // 2 + 1), f"larger than {MAX_BYTES} bytes"),
    ],
)
def test_a_text_that_is_no_document_is_refused_in_words(text: str, words: str) -> None:
    (line,) = mistakes(text)
    assert words in line


def test_a_mapping_that_is_not_plain_data_is_refused() -> None:
    with pytest.raises(GraphError, match="must be plain data, and set is not"):
        read_graph({"name": {"a"}}, LIBRARY)


async def test_a_graph_that_was_read_for_its_picture_does_not_run() -> None:
    graph = read_graph(document(nodes=[{"id": "a", "run": "brew"}]), library_for_pictures())
    run = graph.specs["a"].run
    assert run is not None
    with pytest.raises(GraphError, match="brew is known by name only"):
        await run({}, None)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_documents_of_a_program_s_own_functions_are_graphs(path: Path) -> None:
    library = library_for_pictures()
    graph = read_graph(path.read_text("utf-8"), library)
    assert graph.name == path.stem
    assert read_graph(graph_document(graph, library), library) == graph


def test_there_are_examples_of_every_kind_of_condition() -> None:
    library = library_for_pictures()
    graphs = [read_graph(path.read_text("utf-8"), library) for path in EXAMPLES]
    kinds = {type(edge.when).__name__ for graph in graphs for edge in graph.edges}
    kinds |= {
        type(e.when).__name__
        for g in graphs
        for s in g.specs.values()
        if s.subgraph
        for e in s.subgraph.edges
    }
    assert kinds == {"Always", "OnSuccess", "OnFailure", "When", "LlmDecide", "Route"}


GUIDE = (Path(__file__).parents[4] / "docs" / "guides" / "graphs.md").read_text("utf-8")


def test_the_guide_explains_every_field() -> None:
    explained = set(re.findall(r"^\| `(?:\w+\.)?(\w+)` \|", GUIDE, re.MULTILINE))
    fields = {
        part.name
        for kind in (GraphSpec, Limits, FanOut, NodeSpec, RetryPolicy, EdgeSpec)
        for part in dataclasses.fields(kind)
    }
    # A document gives the kind of a node as `run`, and its parameters as `with`.
    fields = (fields - {"kind", "parameters"}) | {"with"}
    assert fields - explained == set()
    assert set(NODE_KINDS) - explained == set()
    decisions = {"Next", "Continue", "Revise", "Pause", "End"}
    assert explained - fields - {"id", *decisions, *NODE_KINDS} == set()


def test_the_guide_names_the_other_spellings() -> None:
    spellings = {*OTHER_SPELLINGS, *OTHER_NODE, *(name for edge in OTHER_EDGES for name in edge)}
    assert [name for name in sorted(spellings) if f"`{name}`" not in GUIDE and f'"{name}"' not in GUIDE] == []


def test_the_graph_of_the_guide_can_be_built_and_read() -> None:
    first, second, *_ = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    names: dict[str, Any] = {}
    exec(first, names)
    names["text"] = json.dumps(graph_document(names["graph"]))
    written = names["graph"]
    exec(second, names)
    assert names["graph"].specs == written.specs
    assert names["graph"].signature == written.signature
    assert names["document"] == json.loads(names["text"])
