"""The graph that a document describes: what surrounds its nodes, and the way back to JSON.

Covers: pipeline/nodes/document_graph.py.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.domain.errors import GraphError
from pipeline.graph.documents.library import NodeLibrary
from pipeline.graph.documents.reader import graph_document, read_graph
from pipeline.nodes.document_graph import document_graph
from pipeline.nodes.kinds import NODE_KINDS
from pipeline.runtime.context import RunContext
from pipeline.topologies import conversation_graph, sub_agent_graph
from tests.pipeline.nodes.documents import Run, edge, node, steps

EXAMPLES = sorted((Path(__file__).parents[3] / "examples" / "graphs").glob("*.json"))
SAY = node("say", "reply", text="{message}")


def test_the_intake_comes_first_and_the_document_has_its_own_limits() -> None:
    document = steps(SAY, version="3", limits={"max_steps": 9}, terminals=["say"])
    graph = document_graph(document)
    assert (graph.name, graph.version, graph.limits.max_steps, graph.entry) == ("steps", "3", 9, "intake")
    # A refused message ends elsewhere, and that is no failure.
    assert graph.terminals == ("say", "declined", "set_aside")
    assert set(graph.nodes) == {"intake", "compact", "declined", "set_aside", "say"}


def test_a_node_cannot_take_the_name_of_one_that_every_graph_has() -> None:
    with pytest.raises(GraphError, match="graph steps: intake: every graph of a document has a node of that"):
        document_graph(steps(node("intake", "reply", text="x")))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_can_run_and_are_written_as_they_were_read(path: Path) -> None:
    library = NodeLibrary[RunContext](kinds=NODE_KINDS)
    graph = read_graph(path.read_text("utf-8"), library)
    written = graph_document(graph, library)
    assert graph_document(read_graph(json.dumps(written), library), library) == written
    assert document_graph(path.read_text("utf-8")).name == path.stem


def test_what_a_document_says_replaces_what_the_kind_says() -> None:
    library = NodeLibrary[RunContext](kinds=NODE_KINDS)
    ask = node("ask", "model", prompt="x", output="found")
    ask |= {"nullable": ["found"], "retry": {"max_attempts": 2}, "description": "Asks."}
    graph = read_graph(steps(ask), library)
    spec = graph.specs["ask"]
    assert (spec.writes, spec.nullable, spec.retry.max_attempts) == (("found",), ("found",), 2)
    assert graph_document(graph, library)["nodes"] == [ask]


async def test_a_document_can_name_a_graph_as_a_node() -> None:
    inner = {"id": "talk", "subgraph": "sub_agent", "writes": ["agent"]}
    document = steps(inner, SAY, edges=[edge("talk", "say")])
    graph = document_graph(document, subgraphs={"sub_agent": sub_agent_graph()})
    assert graph.specs["talk"].subgraph is not None


async def test_parameters_are_no_part_of_the_signature_of_recorded_runs() -> None:
    document = steps(SAY)
    changed = steps(node("say", "reply", text="{message}!"))
    assert document_graph(document).signature == document_graph(changed).signature
    assert document_graph(document | {"version": "2"}).signature != document_graph(document).signature


async def test_a_run_without_an_answer_is_an_outcome_without_one() -> None:
    wait = node("wait", "condition", **{"if": "message == ''", "then": "wait"})
    outcome = await Run(steps(wait)).start()
    assert (outcome.status, "agent" in outcome.state) == ("completed", False)


def test_the_conversation_keeps_its_signature() -> None:
    """Paused runs of earlier versions continue as long as it stays the same."""
    assert conversation_graph().signature == "fe0a9086950b"
    assert replace(conversation_graph(), version="2").signature != "fe0a9086950b"
