"""The graphs of an installation: shipped, of plug-ins, of files.

Covers: pipeline/graph_book.py.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.domain.errors import ConfigurationError
from pipeline.graph.definition.spec import NodeSpec
from pipeline.graph.documents.fields import Fields
from pipeline.graph_book import GraphBook
from pipeline.runtime.context import RunContext
from pipeline.topologies import sub_agent_graph
from tests.pipeline.nodes.documents import node, steps


def test_it_has_the_shipped_graphs_and_those_that_were_added() -> None:
    book = GraphBook({"mine": sub_agent_graph})
    assert book.names == ("conversation", "sub_agent", "companion", "mine")
    assert book.open("conversation").name == "conversation"
    assert book.find("nothing") is None
    with pytest.raises(ConfigurationError, match="there is no graph of this name; there are: conversation"):
        book.open("nothing")


def test_a_shipped_graph_has_aliases_that_nothing_replaces() -> None:
    book = GraphBook({"general": sub_agent_graph})
    assert book.aliases == {"agent": "conversation", "general": "conversation"}
    assert (
        book.open("general").signature == book.open("agent").signature == book.open("conversation").signature
    )
    # They are other names, not other graphs; and an alias of a graph that does not exist is no name.
    assert not set(book.names) & set(book.aliases)
    assert book.find("overlord") is None


def test_a_document_may_use_an_alias(tmp_path: Path) -> None:
    path = tmp_path / "doc.json"
    path.write_text(json.dumps(steps({"id": "b", "subgraph": "general"})))
    found = GraphBook().open(str(path)).specs["b"].subgraph
    assert found is not None
    assert found.name == "conversation"


def test_a_file_may_use_added_graphs_and_kinds(tmp_path: Path) -> None:
    def shout(given: Fields) -> NodeSpec[RunContext]:
        run = sub_agent_graph().specs["agent"].run
        return NodeSpec(run=run, max_visits=given.whole("times", default=1))

    book = GraphBook({"mine": sub_agent_graph}, {"shout": shout})
    path = tmp_path / "doc.json"
    nodes = (node("a", "shout", times=2), {"id": "b", "subgraph": "mine"})
    path.write_text(json.dumps(steps(*nodes, edges=[{"source": "a", "target": "b"}])))
    graph = book.open(str(path))
    assert graph.specs["b"].subgraph is not None
    assert "shout" in book.kinds


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "there is no such file"),
        (b"\xff", "is not UTF-8 text (byte 0)"),
        (b"[]", "must be a JSON object"),
        (b" " * 1_000_001, "is larger than 1000000 bytes"),
    ],
)
def test_a_file_that_is_no_document_is_named(tmp_path: Path, content: bytes | None, words: str) -> None:
    path = tmp_path / "doc.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigurationError) as caught:
        GraphBook().document(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert words in str(caught.value)
