"""Render to text and entities for Telegram: without a parse mode, nothing needs escaping.

Offsets and sizes are UTF-16 code units. A message may have 100 entities, further ones are silently dropped;
so an entity counts as at least 1/90 of a message, and a list of links is cut earlier.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adapters.formatting.fallback import plain_parts, rendered
from adapters.formatting.layout import as_written, lay_out
from adapters.formatting.links import WEB
from adapters.formatting.markdown import parse
from adapters.formatting.plain import plain_lines
from adapters.formatting.rows import Row, Span, utf16
from adapters.formatting.split import check_limit, split
from pipeline.domain.frozen import dataclass

NOTHING = "…"
_MOST_ENTITIES = 90
"""The limit for spans; blocks of code and quotes around them are additional."""
_TYPES: Mapping[str, str] = {"bold": "bold", "italic": "italic", "strike": "strikethrough"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramText:
    """One message. `entities` as the Bot API takes them, ordered by offset; `plain` is the same text
    with the addresses of links, as far as they fit."""

    text: str
    entities: tuple[Mapping[str, Any], ...]
    plain: str


def telegram_parts(markdown: str, *, transcript: str = "", limit: int = 4096) -> tuple[TelegramText, ...]:
    """`markdown` as messages of at most `limit` UTF-16 units; `transcript` is quoted above the first.

    At least one part for anything: nothing to show becomes an ellipsis. Raises ValueError for a limit below
    `split.LEAST_LIMIT`.
    """
    check_limit(limit)
    return rendered(
        lambda: _formatted(markdown, transcript, limit), lambda: _unformatted(markdown, transcript, limit)
    ) or (TelegramText(text=NOTHING, entities=(), plain=NOTHING),)


def _formatted(markdown: str, transcript: str, limit: int) -> tuple[TelegramText, ...]:
    rows = lay_out(parse(markdown), transcript=transcript, schemes=WEB | {"tg"})
    parts = split(rows, limit=limit, scale=_TelegramScale(limit))
    return tuple(_message(part, limit) for part in parts)


def _unformatted(markdown: str, transcript: str, limit: int) -> tuple[TelegramText, ...]:
    parts = plain_parts(as_written(markdown, transcript), limit=limit)
    return tuple(TelegramText(text=part, entities=(), plain=part) for part in parts)


def _message(part: Sequence[Row], limit: int) -> TelegramText:
    writer = _Writer()
    for row in part:
        writer.row(row)
    text, entities = writer.done()
    with_addresses = plain_lines(part)
    return TelegramText(
        text=text, entities=entities, plain=with_addresses if utf16(with_addresses) <= limit else text
    )


def _outermost_first(entity: Mapping[str, Any]) -> tuple[int, int, bool]:
    return entity["offset"], -entity["length"], entity["type"] != "blockquote"


class _TelegramScale:
    """Measures rows in a Telegram message of at most `limit` units."""

    def __init__(self, limit: int) -> None:
        self._entity_size = -(-limit // _MOST_ENTITIES)

    def joint(self, before: Row | None, row: Row) -> int:
        if before is None:
            return 0
        size = 2 if row.gap else 1
        opens = (row.kind == "code" and row.group != before.group) or (
            row.quote and row.quote != before.quote
        )
        return max(size, self._entity_size) if opens else size

    def row(self, row: Row) -> int:
        entities = sum(len(_styles(span, row)) for span in row.spans)
        size = self.prefix(row) + sum(utf16(span.text) for span in row.spans)
        return max(size, entities * self._entity_size)

    def prefix(self, row: Row) -> int:
        return len(_prefix(row))

    def span(self, span: Span, row: Row) -> int:
        return max(utf16(span.text), len(_styles(span, row)) * self._entity_size)

    def close(self, _row: Row, /) -> int:
        return 0


def _prefix(row: Row) -> str:
    return "" if row.kind == "code" else " " * row.indent + (row.marker and row.marker + " ")


_Style = tuple[str, str]
"""An entity's type and its address."""


def _styles(span: Span, row: Row) -> tuple[_Style, ...]:
    """The styles, the outermost first. Code allows no other entity around it except a quote."""
    if row.kind == "code":
        return ()
    if not span.text.strip():
        return ()
    if span.code:
        return (("code", ""),)
    marks = [_TYPES[mark] for mark in span.marks]
    if row.kind == "heading":
        marks = ["bold", *(mark for mark in marks if mark != "bold")]
    styles = [(mark, "") for mark in marks]
    if span.target:
        styles.append(("text_link", span.target))
    return tuple(styles)


class _Writer:
    """A message being built."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._length = 0
        self._entities: list[dict[str, Any]] = []
        self._open: list[tuple[_Style, int]] = []
        self._before: Row | None = None
        self._block: dict[str, Any] | None = None
        self._block_key = (0, 0)

    def row(self, row: Row) -> None:
        key = (row.group, 0) if row.kind == "code" else (0, row.quote)
        if key != self._block_key:
            self._close_block()
        if self._before is not None:
            self._write("\n\n" if row.gap else "\n")
        if key != self._block_key:
            self._open_block(row, key)
        self._write(_prefix(row))
        for span in row.spans:
            self._switch(_styles(span, row))
            self._write(span.text)
        self._switch(())
        self._before = row

    def done(self) -> tuple[str, tuple[Mapping[str, Any], ...]]:
        self._close_block()
        entities = sorted(self._entities, key=_outermost_first)
        return "".join(self._pieces), tuple(entities)

    def _write(self, text: str) -> None:
        self._pieces.append(text)
        self._length += utf16(text)

    def _switch(self, styles: tuple[_Style, ...]) -> None:
        common = 0
        while common < min(len(styles), len(self._open)) and self._open[common][0] == styles[common]:
            common += 1
        while len(self._open) > common:
            (kind, target), start = self._open.pop()
            self._entity(kind, start, {"url": target} if target else {})
        self._open.extend((style, self._length) for style in styles[common:])

    def _open_block(self, row: Row, key: tuple[int, int]) -> None:
        self._block_key = key
        if row.kind == "code":
            language = {"language": row.language} if row.language else {}
            self._block = {"type": "pre", "offset": self._length, **language}
        elif row.quote:
            self._block = {"type": "blockquote", "offset": self._length}

    def _close_block(self) -> None:
        if self._block is not None:
            kind, start = self._block.pop("type"), self._block.pop("offset")
            self._entity(kind, start, self._block)
        self._block, self._block_key = None, (0, 0)

    def _entity(self, kind: str, start: int, extra: Mapping[str, Any]) -> None:
        if self._length > start:
            entity = {"type": kind, "offset": start, "length": self._length - start, **extra}
            self._entities.append(entity)
