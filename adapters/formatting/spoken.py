"""Markdown as somebody would read it out: sentences without symbols, code and pictures only named.

Not here: who reads it, how long it may be, and in which language.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

from adapters.formatting.document import (
    Block,
    CodeBlock,
    Heading,
    Inline,
    ListBlock,
    Paragraph,
    Quote,
    Table,
    words,
)
from adapters.formatting.fallback import rendered
from adapters.formatting.markdown import clean, literal, parse
from adapters.formatting.sentences import FULL_STOPS, MAX_CHARS, sentences

CODE_BLOCK = "Code block."
_ENDS = FULL_STOPS | {":", ";"}
_ADDRESS = re.compile(r"\b(?:https?://|www\.)[^\s<>]+", re.IGNORECASE)
_SILENT = frozenset("#*_~`|^\\<>{}[]")
"""Signs that a voice would spell out, or that only steer the eye."""
_UNSEEN = frozenset({"So", "Sk", "Cf", "Co", "Cn", "Cs", "Cc"})
"""Emoji and other pictures, modifiers, joiners, what has no look at all."""
FIRST_PART_CHARS = 20
"""Shorter beginnings ("Yes.") take the next sentence along."""
_SPACES = re.compile(r"\s+")
_BEFORE_SIGN = re.compile(r"\s+(?=[.,!?;:…](?:\s|$))")


def spoken_text(markdown: str) -> str:
    """What is said for `markdown`, one line a paragraph, item or row; empty for nothing that can be said."""
    return rendered(
        lambda: "\n".join(_lines(parse(markdown).blocks)),
        lambda: "\n".join(_lines(literal(clean(markdown)))),
    )


def spoken_parts(markdown: str) -> tuple[str, ...]:
    """What is said for `markdown`, in parts to be made one after the other: first a sentence, so that it can
    be heard at once, then whole sentences of up to 300 characters. Empty for nothing that can be said."""
    parts: list[str] = []
    for sentence in sentences(spoken_text(markdown)):
        least = FIRST_PART_CHARS if len(parts) == 1 else MAX_CHARS - len(sentence)
        if parts and len(parts[-1]) < least:
            parts[-1] = f"{parts[-1]} {sentence}"
        else:
            parts.append(sentence)
    return tuple(parts)


def _lines(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        if isinstance(block, CodeBlock):
            yield CODE_BLOCK
        elif isinstance(block, Paragraph | Heading):
            yield from _line(_said(block.children))
        elif isinstance(block, Quote):
            yield from _lines(block.children)
        elif isinstance(block, ListBlock):
            yield from _items(block)
        elif isinstance(block, Table):
            yield from _rows(block)


def _items(block: ListBlock) -> Iterator[str]:
    """An item a line; the numbers of a numbered list are said."""
    for place, item in enumerate(block.items):
        lines = list(_lines(item))
        if lines and block.start is not None:
            lines[0] = f"{block.start + place}: {lines[0]}"
        yield from lines


def _rows(block: Table) -> Iterator[str]:
    """A row a line, each cell after the name of its column."""
    header = [_said(cell) for cell in block.header]
    for row in block.rows or (block.header,):
        cells = [_said(cell) for cell in row]
        pairs = zip(header, cells, strict=False)
        named = [f"{name}: {cell}" if name and name != cell else cell for name, cell in pairs if cell]
        yield from _line("; ".join(named))


def _said(inlines: tuple[Inline, ...]) -> str:
    text = _ADDRESS.sub("link", words(inlines))
    kept = "".join(" " if _is_silent(char) else char for char in text)
    return _BEFORE_SIGN.sub("", _SPACES.sub(" ", kept)).strip()


def _is_silent(char: str) -> bool:
    if char.isascii():
        return char in _SILENT
    return unicodedata.category(char) in _UNSEEN or "\ufe00" <= char <= "\ufe0f"


def _line(text: str) -> Iterator[str]:
    """The line with an end that a voice can hear; nothing for one without a letter or a figure."""
    if any(char.isalnum() for char in text):
        yield text if text[-1] in _ENDS else f"{text}."
