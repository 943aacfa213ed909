"""Collect the text of a part of a Word document or a slide: both use the same names of elements. Runs in the
reading process only."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.reading.xml_events import EnoughRead, parse

_LEFT_OUT = frozenset({"Fallback", "del", "moveFrom"})
"""A second form of the same content for old programs; deleted and moved text."""


class OfficeText:
    """Takes the elements of a part, and collects at most `most_chars` characters of text; then it ends the
    parsing. `between` is put between paragraphs."""

    def __init__(self, *, most_chars: int, between: str) -> None:
        self._words: list[str] = []
        self._most_chars, self._between = most_chars, between
        self._chars = 0
        self._in_text = 0
        self._left_out = 0
        self._cells = 0

    @property
    def text(self) -> str:
        """What was collected so far."""
        return "".join(self._words)

    def read(self, content: bytes) -> None:
        """Take the XML of a part, which may be empty. Raises ReadingFailed."""
        if content:
            parse(content, self._on_start, self._on_end, self._on_text)

    def _on_start(self, name: str, attributes: Mapping[str, str]) -> None:  # noqa: ARG002 - the handler's form
        if name in _LEFT_OUT:
            self._left_out += 1
        elif name == "t":
            self._in_text += 1
        elif name == "tab":
            self._add("\t")
        elif name in ("br", "cr"):
            self._add("\n")
        elif name == "tc":
            self._cells += 1

    def _on_end(self, name: str) -> None:
        if name in _LEFT_OUT:
            self._left_out -= 1
        elif name == "t":
            self._in_text -= 1
        elif name == "p":
            self._add(" " if self._cells else self._between)
        elif name == "tc":
            self._cells -= 1
            self._add("\t")
        elif name in ("tr", "tbl"):
            self._add("\n")

    def _on_text(self, text: str) -> None:
        if self._in_text:
            self._add(text)

    def _add(self, text: str) -> None:
        if self._left_out:
            return
        self._words.append(text)
        self._chars += len(text)
        if self._chars > self._most_chars:
            raise EnoughRead
