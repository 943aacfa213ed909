"""Write the tree as Markdown that parses back to the same text, without new links.

Spacing and the choice of marks are free; a mark that is not possible at its position is shown as a character.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from adapters.formatting.document import (
    Block,
    Code,
    CodeBlock,
    Document,
    Emphasis,
    Heading,
    Inline,
    LineBreak,
    Link,
    ListBlock,
    Paragraph,
    Quote,
    Strike,
    Strong,
    Table,
    Text,
)

_SPECIAL = re.compile(r"[\\`*_~\[\]<&|]")
_LINE_START = re.compile(r"^(\s*)([#+=>-]|\d{1,9}[.)])")
_BACKTICKS = re.compile(r"`+")
_PLAIN_ADDRESS = re.compile(r"https?://[^\s\\`*_~\[\]<>&|\"]*[^\s\\`*_~\[\]<>&|\".,;:!?')]", re.IGNORECASE)
"""Parses as a link without any marks."""
_UNSAFE = str.maketrans({char: f"%{ord(char):02X}" for char in ' <>\\"`\n'})


def written(document: Document) -> str:
    """`document` as Markdown."""
    return _blocks(document.blocks, "\n\n")


def fenced(text: str, language: str) -> str:
    """`text` as a block of code."""
    fence = "`" * max(3, _longest(text) + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _blocks(blocks: Sequence[Block], gap: str) -> str:
    parts: list[str] = []
    before: Block | None = None
    other = False
    for block in blocks:
        # Two consecutive lists with the same signs would be one.
        other = isinstance(before, ListBlock) and isinstance(block, ListBlock) and not other
        parts.append(_block(block, other=other))
        before = block
    return gap.join(part for part in parts if part)


def _block(block: Block, *, other: bool) -> str:
    match block:
        case Paragraph(children=children):
            return _paragraph(children)
        case Heading(level=level, children=children):
            return f"{'#' * level} {_line(children)}"
        case CodeBlock(text=text, language=language):
            return fenced(text, language)
        case ListBlock():
            return _list(block, other=other)
        case Quote(children=children):
            return "\n".join(f"> {line}".rstrip() for line in _blocks(children, "\n\n").split("\n"))
        case Table(header=header, rows=rows):
            lines = [_row(header), f"|{' --- |' * len(header)}", *map(_row, rows)]
            return "\n".join(lines)
        case _:
            return "***"


def _list(block: ListBlock, *, other: bool) -> str:
    items: list[str] = []
    for number, item in enumerate(block.items, block.start or 0):
        sign = ("*" if other else "-") if block.start is None else f"{number}{')' if other else '.'}"
        first, *rest = _blocks(item, "\n\n" if block.loose else "\n").split("\n")
        indent = " " * (len(sign) + 1)
        lines = [f"{sign} {first}".rstrip(), *(indent + line if line else "" for line in rest)]
        items.append("\n".join(lines))
    return ("\n\n" if block.loose else "\n").join(items)


def _paragraph(children: Iterable[Inline]) -> str:
    lines = _inlines(children).split("\n")
    return "\n".join(_LINE_START.sub(_escaped_start, line.lstrip()) for line in lines)


def _escaped_start(match: re.Match[str]) -> str:
    gap, sign = match.groups()
    return f"{gap}{sign[:-1]}\\{sign[-1]}"


def _row(cells: Sequence[tuple[Inline, ...]]) -> str:
    return f"| {' | '.join(_line(map(_in_table, cell)) for cell in cells)} |"


def _in_table(inline: Inline) -> Inline:
    """Escape bars: in a table a bar ends the cell, even in code."""
    return Code(inline.text.replace("|", "\\|")) if isinstance(inline, Code) else inline


def _line(inlines: Iterable[Inline]) -> str:
    return _inlines(inlines).replace("\n", " ")


def _inlines(inlines: Iterable[Inline]) -> str:
    return "".join(map(_inline, inlines))


def _inline(inline: Inline) -> str:
    match inline:
        case Text(text=text):
            return _SPECIAL.sub(r"\\\g<0>", text)
        case Code(text=text):
            return _code(text)
        case Link(target=target, children=children):
            if children == (Text(target),) and _PLAIN_ADDRESS.fullmatch(target):
                return target
            return f"[{_line(children)}](<{target.translate(_UNSAFE)}>)"
        case Strong(children=children):
            return f"**{_inlines(children)}**"
        case Emphasis(children=children):
            return f"*{_inlines(children)}*"
        case Strike(children=children):
            return f"~~{_inlines(children)}~~"
        case LineBreak():
            return "\n"


def _code(text: str) -> str:
    text = text.replace("\n", " ")
    ticks = "`" * (_longest(text) + 1)
    gap = " " if text.startswith("`") or text.endswith("`") or not text.strip() else ""
    return f"{ticks}{gap}{text}{gap}{ticks}"


def _longest(text: str) -> int:
    return max((len(run) for run in _BACKTICKS.findall(text)), default=0)
