"""Convert the tree to rows: the part of rendering that all chat channels share.

It replaces what no chat channel has: tables become aligned lines in a fixed-width font, or one line per
cell where they are too wide for a phone; images become links; a link shows its address.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from adapters.formatting.document import (
    Block,
    Cell,
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
    Strong,
    Table,
    Text,
    ThematicBreak,
    words,
)
from adapters.formatting.links import resolve
from adapters.formatting.markdown import clean
from adapters.formatting.rows import AT_BLOCK, AT_CONTENT, AT_ITEM, AT_LINE, Kind, Mark, Row, Span

MICROPHONE = "\U0001f399"
BULLET = "•"
_RULE = "———"
_TABLE_WIDTH = 64
_MAX_INDENT = 12


def lay_out(document: Document, *, transcript: str, schemes: frozenset[str]) -> list[Row]:
    """The rows of `document`, below the `transcript` if there is one. Links are live for `schemes`."""
    layout = _Layout(schemes)
    layout.add_transcript(clean(transcript))
    layout.blocks(document.blocks)
    return layout.rows


def as_written(markdown: str, transcript: str) -> str:
    """Both texts cleaned but not formatted, for where they cannot be laid out."""
    return f"{MICROPHONE} {clean(transcript)}\n{clean(markdown)}" if transcript.strip() else clean(markdown)


class _Layout:
    """Builds the rows. A container sets the prefix of the next row, which uses it up."""

    def __init__(self, schemes: frozenset[str]) -> None:
        self.rows: list[Row] = []
        self._schemes = schemes
        self._indent = 0
        self._marker = ""
        self._quote = 0
        self._groups = 0
        self._gap = False
        self._cut = AT_BLOCK
        self._depth = 0

    def add_transcript(self, transcript: str) -> None:
        lines = [line for line in transcript.split("\n") if line.strip()]
        if not lines:
            return
        self._groups += 1
        self._quote = self._groups
        for number, line in enumerate(lines):
            self._row((Span(f"{MICROPHONE} {line.strip()}" if number == 0 else line.strip()),))
        self._quote = 0
        self._gap = True

    def blocks(self, blocks: Iterable[Block], *, apart: bool = True) -> None:
        first = True
        for block in blocks:
            if not first:
                self._gap = apart
            if self._cut != AT_CONTENT:
                self._cut = AT_ITEM if self._depth else AT_BLOCK
            first = False
            self._block(block)
            if not isinstance(block, Heading):
                self._cut = AT_LINE

    def _block(self, block: Block) -> None:
        if isinstance(block, Paragraph):
            self._lines(block.children)
        elif isinstance(block, Heading):
            self._lines(block.children, kind="heading", level=block.level)
            self._cut = AT_CONTENT
        elif isinstance(block, CodeBlock):
            self._code(block.text.split("\n"), block.language)
        elif isinstance(block, ListBlock):
            self._list(block)
        elif isinstance(block, Quote):
            self._quoted(block)
        elif isinstance(block, Table):
            self._table(block)
        else:
            self._rule(block)

    def _rule(self, _block: ThematicBreak) -> None:
        self._row((Span(_RULE),))

    def _lines(self, inlines: Sequence[Inline], *, kind: Kind = "text", level: int = 0) -> None:
        for spans in self._spans(inlines):
            self._row(tuple(spans), kind=kind, level=level)

    def _code(self, lines: Sequence[str], language: str) -> None:
        kept = list(lines)
        while kept and not kept[-1].strip():
            kept.pop()
        while kept and not kept[0].strip():
            kept.pop(0)
        if self._marker:
            self._row(())
        self._groups += 1
        group = self._groups
        for line in kept:
            self._add(Row((Span(line),), "code", 0, "", 0, group, language, 0, self._separated, self._cut))

    def _list(self, block: ListBlock) -> None:
        outer_indent, outer_marker, number = self._indent, self._marker, block.start
        self._depth += 1
        for count, item in enumerate(block.items):
            if outer_marker and not count:
                # A list at the start of another list's item: the outer item keeps its line.
                self._row(())
            self._gap = self._gap if not count else block.loose
            self._cut = AT_ITEM if count or self._depth > 1 else max(self._cut, AT_CONTENT)
            self._indent = min(outer_indent, _MAX_INDENT)
            self._marker = BULLET if number is None else f"{number + count}."
            if not item:
                self._row(())
                continue
            self.blocks(item, apart=block.loose)
        self._depth -= 1
        self._indent, self._marker = outer_indent, ""

    def _quoted(self, block: Quote) -> None:
        if self._quote:
            self.blocks(block.children)
            return
        self._groups += 1
        self._quote = self._groups
        self._depth += 1
        self.blocks(block.children)
        self._depth -= 1
        self._quote = 0

    def _table(self, block: Table) -> None:
        lines = _aligned([[self._cell(cell) for cell in row] for row in (block.header, *block.rows)])
        if lines is not None:
            self._code(lines, "")
            return
        indent = self._indent
        for row in block.rows or (block.header,):
            for number, (name, cell) in enumerate(zip(block.header, row, strict=False)):
                if not words(cell).strip() and number:
                    continue
                self._marker = BULLET if number == 0 else self._marker
                self._indent = indent if number == 0 else indent + 2
                label = () if row is block.header or not words(name).strip() else (Strong(name), Text(": "))
                self._lines((*label, *_on_one_line(cell)))
            self._cut = AT_ITEM
        self._indent = indent

    def _cell(self, cell: Cell) -> str:
        return "".join(
            span.text if not span.target or span.target == span.text else f"{span.text} ({span.target})"
            for spans in self._spans(_on_one_line(cell))
            for span in spans
        ).strip()

    def _row(self, spans: tuple[Span, ...], *, kind: Kind = "text", level: int = 0) -> None:
        if not any(span.text.strip() for span in spans) and not self._marker:
            return
        before = (self._separated, self._cut)
        self._add(Row(spans, kind, self._indent, self._marker, level, 0, "", self._quote, *before))

    @property
    def _separated(self) -> bool:
        return self._gap and bool(self.rows)

    def _add(self, row: Row) -> None:
        self.rows.append(row)
        if self._marker:
            # Later blocks of the item are indented below its text, not below its marker.
            self._indent = min(self._indent + len(self._marker) + 1, _MAX_INDENT)
        self._marker, self._gap, self._cut = "", False, AT_LINE

    def _spans(self, inlines: Sequence[Inline]) -> list[list[Span]]:
        lines: list[list[Span]] = [[]]
        self._collect(inlines, (), lines)
        return lines

    def _collect(self, inlines: Sequence[Inline], marks: tuple[Mark, ...], lines: list[list[Span]]) -> None:
        for inline in inlines:
            if isinstance(inline, Text):
                lines[-1].append(Span(inline.text, marks))
            elif isinstance(inline, Code):
                lines[-1].append(Span(inline.text, marks, code=True))
            elif isinstance(inline, LineBreak):
                lines.append([])
            elif isinstance(inline, Link):
                label, target = resolve(words(inline.children), inline.target, schemes=self._schemes)
                if label:
                    lines[-1].append(Span(label, _marks_of(inline, marks), target=target))
            else:
                self._collect(inline.children, _with(marks, _mark(inline)), lines)


def _mark(inline: Inline) -> Mark:
    if isinstance(inline, Strong):
        return "bold"
    return "italic" if isinstance(inline, Emphasis) else "strike"


def _with(marks: tuple[Mark, ...], mark: Mark) -> tuple[Mark, ...]:
    return marks if mark in marks else (*marks, mark)


def _marks_of(link: Link, marks: tuple[Mark, ...]) -> tuple[Mark, ...]:
    """The marks of a link, which is one span: marks around its whole label count, marks within do not."""
    children = link.children
    while len(children) == 1 and not isinstance(children[0], Text | Code | LineBreak | Link):
        marks = _with(marks, _mark(children[0]))
        children = children[0].children
    return marks


def _on_one_line(cell: Cell) -> tuple[Inline, ...]:
    return tuple(Text(" ") if isinstance(inline, LineBreak) else inline for inline in cell)


def _aligned(rows: Sequence[Sequence[str]]) -> list[str] | None:
    """The lines of a table with a line below its header; None if it is too wide for that."""
    columns = [max(_width(row[number]) for row in rows) for number in range(len(rows[0]))]
    if sum(columns) + 3 * (len(columns) - 1) > _TABLE_WIDTH:
        return None
    lines = [
        " | ".join(_padded(cell, width) for cell, width in zip(row, columns, strict=True)) for row in rows
    ]
    lines.insert(1, "-+-".join("-" * width for width in columns))
    return [line.rstrip() for line in lines]


def _padded(cell: str, width: int) -> str:
    return cell + " " * (width - _width(cell))


def _width(text: str) -> int:
    """Columns in a fixed-width font: two for wide characters, none for combining ones."""
    if text.isascii():
        return len(text)
    return sum(
        0
        if unicodedata.category(char) in ("Mn", "Me", "Cf")
        else 2
        if unicodedata.east_asian_width(char) in "WF"
        else 1
        for char in text
    )
