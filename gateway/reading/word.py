"""The text of a Word document (.docx). Runs in the reading process only.

Read are its paragraphs, tables, foot- and endnotes. Not read: deleted text, field codes, comments, macros,
and whatever the document refers to.
"""

from __future__ import annotations

from collections.abc import Mapping

from gateway.reading.limits import MAX_TEXT_CHARS
from gateway.reading.office_package import relations_of
from gateway.reading.xml_events import EnoughRead, parse
from gateway.reading.zip_contents import ZipContents

_NOTES = ("footnotes", "endnotes")
_LEFT_OUT = frozenset({"Fallback", "del", "moveFrom"})
"""A second form of the same content for old programs; deleted and moved text."""


def word_text(contents: ZipContents, part: str) -> str:
    """The text of the document in `part`, with a blank line between paragraphs. Raises Refusal."""
    notes = [one.part for one in relations_of(contents, part).values() if one.kind in _NOTES]
    reader = _Reader()
    for name in (part, *notes):
        content = contents.read(name)
        if content:
            parse(content, reader.on_start, reader.on_end, reader.on_text)
    return "".join(reader.words)


class _Reader:
    def __init__(self) -> None:
        self.words: list[str] = []
        self._chars = 0
        self._in_text = 0
        self._left_out = 0
        self._cells = 0

    def on_start(self, name: str, attributes: Mapping[str, str]) -> None:  # noqa: ARG002 - the handler's form
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

    def on_end(self, name: str) -> None:
        if name in _LEFT_OUT:
            self._left_out -= 1
        elif name == "t":
            self._in_text -= 1
        elif name == "p":
            self._add(" " if self._cells else "\n\n")
        elif name == "tc":
            self._cells -= 1
            self._add("\t")
        elif name in ("tr", "tbl"):
            self._add("\n")

    def on_text(self, text: str) -> None:
        if self._in_text:
            self._add(text)

    def _add(self, text: str) -> None:
        if self._left_out:
            return
        self.words.append(text)
        self._chars += len(text)
        if self._chars > MAX_TEXT_CHARS:
            raise EnoughRead
