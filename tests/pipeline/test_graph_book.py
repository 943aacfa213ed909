"""The graphs of an installation: shipped, of plug-ins, of files.

Covers: pipeline/graph_book.py.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from pipeline.domain.errors import ConfigurationError
from pipeline.graph.definition.spec import NodeSpec
from pipeline.graph.documents.fields import Fields
from pipeline.graph_book import GraphBook, SavedName, saved_name
from pipeline.runtime.context import RunContext
from pipeline.topologies import sub_agent_graph
from tests.pipeline.nodes.documents import node, steps
from tests.pipeline.workflows.documents import agent, document, start, way
from tests.support.tables import each


def test_it_has_the_shipped_graphs_and_those_that_were_added() -> None:
    book = GraphBook({"mine": sub_agent_graph})
    assert book.names == ("conversation", "sub_agent", "companion", "heartbeat", "mine")
    assert book.open("conversation").name == "conversation"
    assert book.find("nothing") is None
    with pytest.raises(ConfigurationError, match="there is no graph of this name; there are: conversation"):
        book.open("nothing")


def test_a_shipped_graph_has_aliases_that_nothing_replaces() -> None:
    book = GraphBook({"general": sub_agent_graph})
    assert book.aliases == {"agent": "conversation", "general": "conversation", "overlord": "heartbeat"}
    assert (
        book.open("general").signature == book.open("agent").signature == book.open("conversation").signature
    )
    # They are other names, not other graphs.
    assert not set(book.names) & set(book.aliases)


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


class _Saved:
    """Saved documents in a dictionary; a document's first version is the one that can run."""

    def __init__(self, texts: dict[str, str]) -> None:
        self._texts = texts

    def text(self, name: str, version: int | None) -> str | None:
        return self._texts.get(name) if version in (None, 1) else None


def test_a_saved_workflow_has_its_name_behind_a_prefix() -> None:
    text = json.dumps(document(start(), agent("a"), routes=[way("start > a")]))
    book = GraphBook().with_saved(_Saved({"letters": text, "wrong": json.dumps(document(start()))}))
    assert book.open("saved:letters").signature == book.open("saved:letters@1").signature
    assert book.open("conversation").name == "conversation"
    for name, words in (
        ("saved:other", "saved:other: no such workflow is saved that can run"),
        ("saved:letters@2", "saved:letters@2: no such workflow"),
        ("saved:a/b", "saved: is followed by a name of at most 60"),
        ("saved:wrong", "saved:wrong: workflow wrong: node start: nothing follows the start"),
    ):
        with pytest.raises(ConfigurationError, match=re.escape(words)):
            book.open(name)
    with pytest.raises(ConfigurationError, match="no such workflow is saved"):
        GraphBook().open("saved:letters")


@each(
    "given, meant",
    [
        ("saved:a", SavedName(name="a")),
        ("saved:Über uns-2", SavedName(name="Über uns-2")),
        ("saved:a@12", SavedName(name="a", version=12)),
        *(
            (f"saved:{wrong}", None)
            for wrong in ("", "a@", "a@0", "a@-1", "a@²", "a b ", "@1", "a.b", "x" * 61)
        ),
        ("a", None),
    ],
)
def test_the_name_of_a_saved_workflow_is_strict(given: str, meant: SavedName | None) -> None:
    assert saved_name(given) == meant
    if meant is not None:
        assert str(meant) == given
