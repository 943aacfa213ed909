"""Track text that neither the author nor the operator wrote: web pages, MCP results, words of others.

Such text may contain instructions. While the model sees it, a person has to allow every change
(`pipeline.shield`), and links in answers are shown inert.
"""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.domain.chat import ChatMessage

_MOST_SOURCES = 8
"""Shown to a person; more would only make the line longer."""


class ForeignWords:
    """The kinds of foreign text that one turn and its sub-agents have read. True if there is any."""

    def __init__(self) -> None:
        self.sources: tuple[str, ...] = ()
        """As text for people, in the order in which they were read: `a web page`, `the MCP server files`."""

    def __bool__(self) -> bool:
        return bool(self.sources)

    def note(self, source: str) -> None:
        """Note that foreign text of this kind was read; an empty `source` changes nothing."""
        if source and source not in self.sources and len(self.sources) < _MOST_SOURCES:
            self.sources = (*self.sources, source)

    def read(self, messages: Iterable[ChatMessage]) -> None:
        """Note the sources of `messages`."""
        for message in messages:
            if message.foreign:
                self.note(message.foreign)
