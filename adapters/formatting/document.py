"""The tree that a text in Markdown becomes: what was said, without a word on how any channel shows it.

Inlines and blocks are closed unions, so that a type checker tells a renderer what it forgot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Text:
    """Words as they are. Never holds a line break."""

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
    """Words in a fixed-width font. Never holds a line break."""

    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """A link, or an image as a link with its alternative text. `target` is unchecked: see `links`."""

    target: str
    children: tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class LineBreak:
    """A new line within a paragraph. Soft breaks count: chat shows the lines that were written."""


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
    """A list; `start` is the first number, or None for bullets. `loose`: its items stand apart."""

    items: tuple[tuple[Block, ...], ...]
    start: int | None
    loose: bool


@dataclass(frozen=True, slots=True)
class Quote:
    """A block quote."""

    children: tuple[Block, ...]


Cell = tuple[Inline, ...]


Align = Literal["", "left", "center", "right"]
"""How the cells of a column stand; empty where the author left it open."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a header. Every row has as many cells as the header."""

    header: tuple[Cell, ...]
    rows: tuple[tuple[Cell, ...], ...]
    aligned: tuple[Align, ...] = ()
    """Of each column; none where nothing is said of any."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A thematic break."""


Block = Paragraph | Heading | CodeBlock | ListBlock | Quote | Table | Rule


@dataclass(frozen=True, slots=True)
class Document:
    """A whole text."""

    blocks: tuple[Block, ...]


def words(inlines: tuple[Inline, ...]) -> str:
    """The bare words of `inlines`, without addresses; line breaks become spaces."""
    found: list[str] = []
    for inline in inlines:
        if isinstance(inline, Text | Code):
            found.append(inline.text)
        elif isinstance(inline, LineBreak):
            found.append(" ")
        else:
            found.append(words(inline.children))
    return "".join(found)
