"""Find the graphs and agents of saved workflows.

Agents of the configuration read theirs from the store itself while the gateway is built, before the store is
open; a run from the editor is read from the store.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from gateway.agents.agent_book import Agent
from gateway.runtime.data_dir import STORE_FILE
from gateway.storage.sqlite.saved_workflows import saved_text as text_in_file
from pipeline.domain.errors import ConfigurationError, StorageError
from pipeline.graph.definition.spec import GraphSpec
from pipeline.graph_book import GraphBook, installed_graphs, saved_graph, saved_name
from pipeline.runtime.context import RunContext

BuildAgent = Callable[[str, GraphSpec[RunContext]], Agent]
"""Builds the agent of a saved workflow from its name with its version, and its graph."""


class Texts(Protocol):
    """What is read of the store."""

    async def text(self, name: str, version: int) -> str | None: ...


class SavedInFile:
    """The saved documents in the store's file: `pipeline.graph_book.SavedDocuments`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def text(self, name: str, version: int | None) -> str | None:
        """The text of a version, by default of the newest one that can run; None if there is none. Raises
        ConfigurationError if the file cannot be read."""
        try:
            return text_in_file(self._path, name, version)
        except StorageError as error:
            raise ConfigurationError(str(error)) from error


class SavedInDatabase:
    """The saved documents in a Postgres database: `pipeline.graph_book.SavedDocuments`."""

    def __init__(self, url: str) -> None:
        self._url = url

    def text(self, name: str, version: int | None) -> str | None:
        """As `SavedInFile.text`."""
        from gateway.storage.postgres.saved_text import saved_text  # noqa: PLC0415 - its driver is an extra

        try:
            return saved_text(self._url, name, version)
        except StorageError as error:
            raise ConfigurationError(str(error)) from error


def graphs_with_saved(data_dir: Path, url: str = "") -> GraphBook:
    """The installed graphs, and the workflows that the store has: in that folder, or in the Postgres database
    `url`."""
    saved = SavedInDatabase(url) if url else SavedInFile(data_dir / STORE_FILE)
    return installed_graphs().with_saved(saved)


class SavedAgents:
    """The agents of the runs that the editor begins."""

    def __init__(self, texts: Texts, build: BuildAgent) -> None:
        self._texts = texts
        self._build = build

    async def find(self, name: str) -> Agent | None:
        """The agent of a saved workflow with its version, as in `saved:letters@3`; None if there is none, or
        if it cannot run. Raises StorageError."""
        wanted = saved_name(name)
        if wanted is None or wanted.version is None:
            return None
        text = await self._texts.text(wanted.name, wanted.version)
        if text is None:
            return None
        try:
            graph = saved_graph(text, wanted)
        except ConfigurationError:
            return None
        return self._build(name, graph)
