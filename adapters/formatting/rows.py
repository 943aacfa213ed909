"""What a channel shows, line by line: the form between the tree and a channel's own text.

A row is one line as the writer saw it. Every channel renders a row without looking at the rows around it,
apart from what joins two rows; so a text can be cut between any two rows, and inside one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Mark = Literal["bold", "italic", "strike"]
Kind = Literal["text", "heading", "code"]

AT_BLOCK = 3
"""How good a cut before a row is: before a block of the text,"""
AT_ITEM = 2
"""before an item of a list or a paragraph inside one,"""
AT_LINE = 1
"""between two lines of one paragraph or of one code block,"""
AT_CONTENT = 0
"""between a heading and what it is the heading of."""


@dataclass(frozen=True, slots=True)
class Span:
    """Words that look the same all along."""

    text: str
    marks: tuple[Mark, ...] = ()
    """In the order of nesting, the outermost first; none twice."""
    code: bool = False
    target: str = ""
    """A checked address, where the words are a link."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line."""

    spans: tuple[Span, ...]
    kind: Kind = "text"
    indent: int = 0
    marker: str = ""
    """What stands before an item of a list: a bullet, or a number with its dot."""
    level: int = 0
    """Of a heading."""
    group: int = 0
    """The same number for the rows of one code block."""
    language: str = ""
    quote: int = 0
    """The same number for the rows of one quote; 0 outside."""
    gap: bool = False
    """A blank line stands before it."""
    cut: int = AT_LINE

    @property
    def length(self) -> int:
        """Characters of its words: what it takes at least in any channel."""
        return sum(len(span.text) for span in self.spans)


def utf16(text: str) -> int:
    """The length of `text` in UTF-16 code units: what the platforms count, or more than they count."""
    if text.isascii():
        return len(text)
    return len(text) + sum(1 for char in text if char > "\uffff")
