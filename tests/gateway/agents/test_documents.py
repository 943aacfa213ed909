"""Each document of the agents is read once, and the agents and the API get the same one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.agents.documents import AgentDocuments
from gateway.config import load
from pipeline.domain.errors import ConfigurationError
from pipeline.graph_book import GraphBook
from tests.pipeline.workflows.documents import agent, document, start, way

_LETTERS = json.dumps(document(start(), agent("a"), routes=[way("start > a")]))


class _Counted:
    """Saved documents that know how often they were read."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def text(self, name: str, version: int | None) -> str | None:
        self.read.append(f"{name}@{version}")
        return _LETTERS if name == "letters" else None


def test_a_document_that_two_agents_name_is_read_once_for_all_that_use_it() -> None:
    saved = _Counted()
    settings = load(None, {}, ('agent.graph="saved:letters"', 'agents.b.graph="saved:letters"'))
    documents = AgentDocuments(settings, GraphBook(saved=saved))
    assert set(documents.runs) == {"default", "b"}
    assert documents.runs["b"] is documents.runs["default"]
    assert documents.graph("b").signature == documents.graph("default").signature
    assert saved.read == ["letters@None"]


def test_a_file_that_changes_meanwhile_is_the_same_for_the_agents_and_the_api(tmp_path: Path) -> None:
    file = tmp_path / "own.json"
    file.write_text(_LETTERS, "utf-8")
    documents = AgentDocuments(load(None, {}, (f'agent.graph="{file}"',)), GraphBook())
    run = documents.runs["default"]
    file.write_text(json.dumps(document(start(), agent("z"), routes=[way("start > z")])), "utf-8")
    assert "a" in run.nodes
    assert "a" in documents.graph("default").nodes


def test_an_agent_without_a_workflow_has_its_graph_and_no_run() -> None:
    documents = AgentDocuments(load(None, {}, ()), GraphBook())
    assert dict(documents.runs) == {}
    assert documents.graph("default").name == "conversation"


def test_a_workflow_that_is_not_there_is_named() -> None:
    documents = AgentDocuments(load(None, {}, ('agent.graph="saved:ghost"',)), GraphBook(saved=_Counted()))
    with pytest.raises(ConfigurationError, match="saved:ghost"):
        documents.graph("default")
