"""Rows: the content line by line, the form between the tree and a channel's own text.

A row is one line as written. Every channel renders a row independently of the rows around it,
except for the separator between two rows; so a text can be cut between any two rows, and inside one.
"""

from __future__ import annotations

from typing import Literal

from pipeline.domain.frozen import dataclass

Mark = Literal["bold", "italic", "strike"]
Kind = Literal["text", "heading", "code"]

AT_BLOCK = 3
"""The quality of a cut before a row: before a block of the text,"""
AT_ITEM = 2
"""before an item of a list or a paragraph inside one,"""
AT_LINE = 1
"""between two lines of one paragraph or of one code block,"""
AT_CONTENT = 0
"""between a heading and its content."""


@dataclass(frozen=True, slots=True)
class Span:
    """Text with uniform formatting."""

    text: str
    marks: tuple[Mark, ...] = ()
    """In the order of nesting, the outermost first; no duplicates."""
    code: bool = False
    target: str = ""
    """A checked address, if the text is a link."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line."""

    spans: tuple[Span, ...]
    kind: Kind = "text"
    indent: int = 0
    marker: str = ""
    """The prefix of a list item: a bullet, or a number with its dot."""
    level: int = 0
    """The level of a heading."""
    group: int = 0
    """The same number for the rows of one code block."""
    language: str = ""
    quote: int = 0
    """The same number for the rows of one quote; 0 outside."""
    gap: bool = False
    """Whether a blank line precedes it."""
    cut: int = AT_LINE

    @property
    def length(self) -> int:
        """Characters of its text: its minimum size in any channel."""
        return sum(len(span.text) for span in self.spans)


def utf16(text: str) -> int:
    """The length of `text` in UTF-16 code units: the platforms' count, or more."""
    if text.isascii():
        return len(text)
    return len(text) + sum(1 for char in text if char > "\uffff")
