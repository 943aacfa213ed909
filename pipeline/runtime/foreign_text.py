"""Track text that neither the author nor the operator wrote: web pages, MCP results, words of others.

Such text may contain instructions. While the model sees it, a person has to allow every change
(`pipeline.tools.policy`), and links in answers are shown inert.
"""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.domain.chat import ChatMessage

_MOST_SOURCES = 8
"""Shown to a person; more would only make the line longer."""


class ForeignWords:
    """The kinds of foreign text that one turn and its sub-agents have read. True if there is any."""

    def __init__(self) -> None:
        self._sources: dict[str, None] = {}

    def __bool__(self) -> bool:
        return bool(self._sources)

    @property
    def sources(self) -> tuple[str, ...]:
        """As text for people, in the order in which they were read: `a web page`, `the MCP server files`."""
        return tuple(self._sources)

    def note(self, source: str) -> None:
        """Note that foreign text of this kind was read; an empty `source` changes nothing."""
        if source and len(self._sources) < _MOST_SOURCES:
            self._sources[source] = None

    def read(self, messages: Iterable[ChatMessage]) -> None:
        """Note the sources of `messages`."""
        for message in messages:
            self.note(message.foreign)
