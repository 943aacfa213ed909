"""The files that a run's tools have returned, as its state holds them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pipeline.agent.model_messages import EXCHANGE
from pipeline.agent.task_texts import TASKS
from pipeline.domain.files import StoredFile, stored_file_from_plain, stored_file_to_plain
from pipeline.graph.definition.decisions import State

SENDS: Final = "sends"
"""The key of the files in a message of the exchange, in a task node's note, and of those that the agents of a
workflow leave in its state."""


def sent_files(state: State) -> tuple[StoredFile, ...]:
    """The files of the exchange, of the task nodes and of the agents of a workflow, each once, in this
    order."""
    files = (stored_file_from_plain(plain) for plain in _plain(state))
    return tuple({file.id: file for file in files}.values())


def noted(state: State, node: str, files: list[StoredFile]) -> dict[str, Any]:
    """The part of a task node's note that holds its files, with those of its earlier executions; empty
    without any."""
    known = state.get(TASKS, {}).get(node, {}).get(SENDS, ())
    plain = [*known, *(stored_file_to_plain(file) for file in files)]
    return {SENDS: plain} if plain else {}


def _plain(state: State) -> Iterator[Mapping[str, Any]]:
    for message in state.get(EXCHANGE, ()):
        yield from message.get(SENDS, ())
    for note in state.get(TASKS, {}).values():
        if isinstance(note, Mapping):
            yield from note.get(SENDS, ())
    yield from state.get(SENDS, ())
