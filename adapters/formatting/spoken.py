"""Convert Markdown to text for reading aloud: sentences without symbols, code and pictures only named.

Not here: the speech synthesis, the maximum length, and the language.
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
"""Signs that speech synthesis would spell out, or that only affect the layout."""
_UNSEEN = frozenset({"So", "Sk", "Cf", "Co", "Cn", "Cs", "Cc"})
"""Emoji and other pictures, modifiers, joiners, invisible characters."""
FIRST_PART_CHARS = 20
"""A shorter first sentence ("Yes.") is joined with the next one."""
_SPACES = re.compile(r"\s+")
_BEFORE_SIGN = re.compile(r"\s+(?=[.,!?;:…](?:\s|$))")


def spoken_text(markdown: str) -> str:
    """The text to say for `markdown`, one line per paragraph, item or row; empty if there is none."""
    return rendered(
        lambda: "\n".join(_lines(parse(markdown).blocks)),
        lambda: "\n".join(_lines(literal(clean(markdown)))),
    )


def spoken_parts(markdown: str) -> tuple[str, ...]:
    """The text to say for `markdown`, in parts to synthesise one after the other: first one sentence, for a
    quick start, then whole sentences of up to 300 characters. Empty if there is none."""
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
    """One line per item; the numbers of a numbered list are said."""
    for place, item in enumerate(block.items):
        lines = list(_lines(item))
        if lines and block.start is not None:
            lines[0] = f"{block.start + place}: {lines[0]}"
        yield from lines


def _rows(block: Table) -> Iterator[str]:
    """One line per row, each cell after the name of its column."""
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
    """The line with a sentence end; nothing for one without a letter or a digit."""
    if any(char.isalnum() for char in text):
        yield text if text[-1] in _ENDS else f"{text}."
