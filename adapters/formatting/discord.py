"""Render to Discord's Markdown, escaped by context, so that text shows literally and mentions no one.

Sizes are UTF-16 code units, never less than the code points that Discord's servers count.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

from adapters.formatting.fallback import plain_parts, rendered
from adapters.formatting.layout import BULLET, as_written, lay_out
from adapters.formatting.links import WEB, same_address
from adapters.formatting.markdown import parse
from adapters.formatting.markup import ZERO_WIDTH_SPACE, Markup, apart
from adapters.formatting.plain import plain_lines
from adapters.formatting.rows import Row, Span, utf16
from adapters.formatting.split import check_limit, split
from pipeline.domain.frozen import dataclass

NOTHING = "…"
_ALWAYS = re.compile(r"[\\*_~`|\[\]<]")
_MARKS = r"[\\*_~`|]*"


def _called(name: str) -> str:
    """A pattern for `name` with marks between its letters, or for its beginning at the end of a part: the
    next part, with other marks, may continue it."""
    pattern = ""
    for letter in reversed(name):
        pattern = rf"(?:\Z|{letter}{_MARKS}{pattern})"
    return _MARKS + pattern


_MENTION = re.compile(rf"@(?={_called('everyone')}|{_called('here')})|(?<=<)@(?=[!&]?(?:\d|\Z))")
_EMOJI = re.compile(r":(?=[\w+-]+:)|:(?=//)")
_OPENING = re.compile(r"(\s*)(?:(?=[#>+-])|(\d{1,10})(?=[.)]))")


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscordText:
    """One message. `plain` is the same text without formatting, and without anything that mentions."""

    content: str
    plain: str


def discord_parts(markdown: str, *, transcript: str = "", limit: int = 2000) -> tuple[DiscordText, ...]:
    """`markdown` as messages of at most `limit` characters; `transcript` is quoted above the first.

    At least one part for anything: nothing to show becomes an ellipsis. Raises ValueError for a limit below
    `split.LEAST_LIMIT`.
    """
    check_limit(limit)
    return rendered(
        lambda: _formatted(markdown, transcript, limit), lambda: _unformatted(markdown, transcript, limit)
    ) or (DiscordText(content=NOTHING, plain=NOTHING),)


def _formatted(markdown: str, transcript: str, limit: int) -> tuple[DiscordText, ...]:
    rows = lay_out(parse(markdown), transcript=transcript, schemes=WEB)
    dialect = _Discord()
    parts = split(rows, limit=limit, scale=dialect)
    texts = [(dialect.text(part), part) for part in parts]
    return tuple(DiscordText(content=text, plain=_plain(part, limit) or text) for text, part in texts)


def _unformatted(markdown: str, transcript: str, limit: int) -> tuple[DiscordText, ...]:
    write = partial(_Discord().words, opening=True)
    parts = plain_parts(as_written(markdown, transcript), limit=limit, write=write)
    return tuple(DiscordText(content=part, plain=part) for part in parts)


def _plain(part: tuple[Row, ...], limit: int) -> str:
    """The text without formatting; empty if it is longer than the limit, which indents can cause."""
    for addresses in (True, False):
        text = _without_mentions(plain_lines(part, addresses=addresses))
        if utf16(text) <= limit:
            return text
    return ""


def _without_mentions(text: str) -> str:
    return _MENTION.sub("@" + ZERO_WIDTH_SPACE, text)


class _Discord(Markup):
    markers = {"bold": "**", "italic": "*", "strike": "~~"}  # noqa: RUF012 - read only, as in the base class

    def words(self, text: str, *, opening: bool) -> str:
        escaped = _ALWAYS.sub(r"\\\g<0>", text)
        if ":" in escaped:
            escaped = _EMOJI.sub(r"\\:", escaped)
        if "@" in escaped:
            escaped = _without_mentions(escaped)
        return _OPENING.sub(r"\1\2\\", escaped, count=1) if opening and _OPENING.match(escaped) else escaped

    def code(self, text: str) -> str:
        if "`" not in text:
            return f"`{text}`"
        return f"`` {apart(text)} ``"

    def code_line(self, text: str) -> str:
        return apart(text)

    def link(self, label: str, target: str) -> str:
        if same_address(label, target):
            return f"<{target}>"
        # Discord links no label that looks like an address. A label that equals its address is allowed.
        words = self.words(label.replace("://", f":{ZERO_WIDTH_SPACE}//"), opening=False)
        return f"[{words}](<{target}>)"

    def fence(self, language: str, /) -> str:
        return "```" + language

    def lead(self, row: Row) -> str:
        marker = row.marker and ("- " if row.marker == BULLET else row.marker + " ")
        sign = "#" * row.level + " " if row.kind == "heading" and row.level <= 3 else ""
        return " " * row.indent + marker + sign

    def spans_of(self, row: Row) -> tuple[Span, ...]:
        if row.kind != "heading" or row.level <= 3:
            return row.spans
        return tuple(
            replace(span, marks=("bold", *(mark for mark in span.marks if mark != "bold")))
            for span in row.spans
        )
