"""`parlour workflow list | import | export`: the workflows that the page's editor saves.

They work with or without a running gateway, which sees every change with its next read.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from gateway.cli.graph import complain, write_out
from gateway.cli.stored_books import store_place, stored_books
from gateway.config import Settings, environment, load
from gateway.storage.saved_workflows import SavedWorkflowBook
from pipeline.domain.clock import Clock, SystemClock
from pipeline.domain.errors import ConfigurationError
from pipeline.graph.documents.json_text import parsed_json
from pipeline.graph_book import MAX_SAVED_NAME, document_text, is_saved_name, workflow_name
from pipeline.workflows.reading import checked

T = TypeVar("T")
_OK = 0
_INVALID = 2


def stored(config: Path | None, overrides: Sequence[str]) -> Settings:
    """The settings, which say where the store is. Raises ConfigurationError."""
    settings = load(config, environment(), overrides, secrets=False)
    if settings.storage.kind == "memory":
        raise ConfigurationError('storage.kind: in memory nothing is saved for other commands; use "sqlite"')
    return settings


def list_saved(settings: Settings) -> int:
    """Print the saved workflows, each with its newest version. Exit code 0. Raises StorageError and
    ConfigurationError."""
    found = _with(settings, lambda book: book.newest())
    for one in found:
        when = datetime.fromtimestamp(one.saved_at, tz=UTC).strftime("%Y-%m-%d %H:%M UTC")
        draft = "" if one.runs else "  has mistakes, does not run"
        write_out(f"{one.name}  version {one.version}  {when}{draft}\n")
    if not found:
        complain("no workflow is saved yet; the page's editor saves them, and `parlour workflow import`")
    return _OK


def import_file(settings: Settings, file: Path, name: str, clock: Clock | None = None) -> int:
    """Save the document of a file as the newest version of the workflow `name`, by default the document's own
    name. Exit code 0, 1 if another version was saved meanwhile, or 2 if the document has mistakes, which are
    printed. Raises StorageError and ConfigurationError."""
    text = document_text(file)
    workflow, mistakes = checked(text, workflow_name(file))
    for mistake in mistakes:
        write_out(f"{file}: {mistake}\n")
    if workflow is None:
        return _INVALID
    wanted = name or workflow.name
    if not is_saved_name(wanted):
        raise ConfigurationError(
            f"{wanted!r} cannot be the name of a saved workflow: it has at most {MAX_SAVED_NAME} letters, "
            "digits, spaces, _ and -; add another name behind the file"
        )

    async def save(book: SavedWorkflowBook) -> int | None:
        versions = await book.versions(wanted)
        base = versions[0].version if versions else 0
        return await book.save(wanted, text, base=base, runs=True, at=(clock or SystemClock()).now())

    version = _with(settings, save)
    if version is None:
        return complain(f"{wanted} was saved by someone else at the same moment; import the file again")
    write_out(f"{wanted} is saved as version {version}\n")
    return _OK


def export_saved(settings: Settings, name: str, version: int | None) -> int:
    """Print the document of a saved workflow, by default its newest version. Exit code 0. Raises StorageError
    and ConfigurationError."""

    async def read(book: SavedWorkflowBook) -> str | None:
        versions = await book.versions(name)
        wanted = version or (versions[0].version if versions else 0)
        return await book.text(name, wanted)

    text = _with(settings, read)
    if text is None:
        raise ConfigurationError(
            f"{name}: no such workflow, or no such version, is saved; `parlour workflow list` shows them"
        )
    write_out(json.dumps(parsed_json(text, name), indent=2, ensure_ascii=False) + "\n")
    return _OK


def _with(settings: Settings, work: Callable[[SavedWorkflowBook], Awaitable[T]]) -> T:
    place = store_place(settings, "workflows")

    async def run() -> T:
        async with stored_books(place) as books:
            return await work(books.workflows)

    return asyncio.run(run())
