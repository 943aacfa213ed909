"""What a turn has read that neither its author nor the operator wrote: web pages, MCP results, others' words.

Such text may hold instructions. As long as it is among what the model sees, whatever changes something is a
person's decision (`pipeline.tools.policy`), and links in answers are shown inert.
"""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.domain.chat import ChatMessage

_MOST_SOURCES = 8
"""Named to a person; more would only be a longer line."""


class ForeignWords:
    """The kinds of foreign text that one turn has read, its sub-agents included. True once there is one."""

    def __init__(self) -> None:
        self._sources: dict[str, None] = {}

    def __bool__(self) -> bool:
        return bool(self._sources)

    @property
    def sources(self) -> tuple[str, ...]:
        """In words of ours, in the order in which they were read: `a web page`, `the MCP server files`."""
        return tuple(self._sources)

    def note(self, source: str) -> None:
        """Foreign text of this kind was read; an empty `source` changes nothing."""
        if source and len(self._sources) < _MOST_SOURCES:
            self._sources[source] = None

    def read(self, messages: Iterable[ChatMessage]) -> None:
        """Note the sources of `messages`."""
        for message in messages:
            self.note(message.foreign)
