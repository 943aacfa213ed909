"""The tree of a Markdown text: its content, independent of any channel's display.

Inlines and blocks are closed unions, so that a type checker finds the cases that a renderer omits.
"""

from __future__ import annotations

from typing import Literal

from pipeline.domain.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Text:
    """Literal text. Never contains a line break."""

    text: str


@dataclass(frozen=True, slots=True)
class Strong:
    """Usually bold."""

    children: tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class Emphasis:
    """Usually italic."""

    children: tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class Strike:
    """Struck through."""

    children: tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class Code:
    """Text in a fixed-width font. Never contains a line break."""

    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """A link, or an image as a link with its alternative text. `target` is unchecked: see `links`."""

    target: str
    children: tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class LineBreak:
    """A new line within a paragraph. Includes soft breaks: chats keep the written lines."""


Inline = Text | Strong | Emphasis | Strike | Code | Link | LineBreak


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One paragraph."""

    children: tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of level 1 to 6."""

    level: int
    children: tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """A fenced or indented block. `language` is the first word after the fence, or empty."""

    text: str
    language: str


@dataclass(frozen=True, slots=True)
class ListBlock:
    """A list; `start` is the first number, or None for bullets. `loose`: blank lines separate its items."""

    items: tuple[tuple[Block, ...], ...]
    start: int | None
    loose: bool


@dataclass(frozen=True, slots=True)
class Quote:
    """A block quote."""

    children: tuple[Block, ...]


Cell = tuple[Inline, ...]


Align = Literal["", "left", "center", "right"]
"""The alignment of a column's cells; empty where the author gave none."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a header. Every row has as many cells as the header."""

    header: tuple[Cell, ...]
    rows: tuple[tuple[Cell, ...], ...]
    aligned: tuple[Align, ...] = ()
    """Per column; empty where no column has an alignment."""


@dataclass(frozen=True, slots=True)
class ThematicBreak:
    """A thematic break."""


Block = Paragraph | Heading | CodeBlock | ListBlock | Quote | Table | ThematicBreak


@dataclass(frozen=True, slots=True)
class Document:
    """A whole text."""

    blocks: tuple[Block, ...]


def words(inlines: tuple[Inline, ...]) -> str:
    """The text of `inlines`, without addresses; line breaks become spaces."""
    found: list[str] = []
    for inline in inlines:
        if isinstance(inline, Text | Code):
            found.append(inline.text)
        elif isinstance(inline, LineBreak):
            found.append(" ")
        else:
            found.append(words(inline.children))
    return "".join(found)
