"""Render to Slack's mrkdwn: everything that Slack reads as a command is escaped, so only intended links work.

mrkdwn cannot escape its markers; a zero-width space after one that could open a mark keeps it a
character. Language names of code blocks are left out, as Slack shows them as code. Sizes are UTF-16 code
units after escaping.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

from adapters.formatting.fallback import plain_parts, rendered
from adapters.formatting.layout import as_written, lay_out
from adapters.formatting.links import WEB
from adapters.formatting.markdown import parse
from adapters.formatting.markup import ZERO_WIDTH_SPACE, Markup, apart
from adapters.formatting.plain import plain_lines
from adapters.formatting.rows import Row, Span, utf16
from adapters.formatting.split import check_limit, split
from pipeline.domain.frozen import dataclass

NOTHING = "…"
PART_CHARS = 11_000
"""The limit per message: all sections together may have about 13,200."""
SECTION_LIMIT = 3000
_MOST_SECTIONS = 40
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_MARKER = re.compile(r"(?<![^\W_])([*_~`])(?=[^\s])")
_QUOTED = re.compile(r"(\s*)>")


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackText:
    """One message: the texts of its section blocks, in mrkdwn. `plain` is for the field `text`: the same
    text without formatting, escaped as Slack requires there too."""

    sections: tuple[str, ...]
    plain: str


def slack_parts(markdown: str, *, transcript: str = "", limit: int = PART_CHARS) -> tuple[SlackText, ...]:
    """`markdown` as messages of at most `limit` characters in sections of at most 3000; `transcript` is
    quoted above the first.

    At least one part for anything: nothing to show becomes an ellipsis. Raises ValueError for a limit below
    `split.LEAST_LIMIT`.
    """
    check_limit(limit)
    return rendered(
        lambda: _formatted(markdown, transcript, limit), lambda: _unformatted(markdown, transcript, limit)
    ) or (SlackText(sections=(NOTHING,), plain=NOTHING),)


def _formatted(markdown: str, transcript: str, limit: int) -> tuple[SlackText, ...]:
    dialect = _Slack()
    rows = lay_out(parse(markdown), transcript=transcript, schemes=WEB | {"mailto"})
    sections = split(rows, limit=min(limit, SECTION_LIMIT), scale=dialect)
    parts: list[list[tuple[Row, ...]]] = []
    filled = limit
    texts: list[list[str]] = []
    for section in sections:
        text = dialect.text(section)
        if filled + utf16(text) > limit or len(texts[-1]) >= _MOST_SECTIONS:
            parts.append([])
            texts.append([])
            filled = 0
        parts[-1].append(section)
        texts[-1].append(text)
        filled += utf16(text)
    return tuple(
        SlackText(sections=tuple(found), plain=_plain(part)) for found, part in zip(texts, parts, strict=True)
    )


def _unformatted(markdown: str, transcript: str, limit: int) -> tuple[SlackText, ...]:
    write = partial(_Slack().words, opening=True)
    parts = plain_parts(as_written(markdown, transcript), limit=min(limit, SECTION_LIMIT), write=write)
    return tuple(SlackText(sections=(part,), plain=part) for part in parts)


def _plain(sections: list[tuple[Row, ...]]) -> str:
    return "\n\n".join(plain_lines(section) for section in sections).translate(_ESCAPES)


class _Slack(Markup):
    markers = {"bold": "*", "italic": "_", "strike": "~"}  # noqa: RUF012 - read only, as in the base class
    boundaries = True

    def words(self, text: str, *, opening: bool) -> str:
        if opening:
            text = _QUOTED.sub(r"\1" + ZERO_WIDTH_SPACE + ">", text, count=1) if _QUOTED.match(text) else text
        return _MARKER.sub(r"\1" + ZERO_WIDTH_SPACE, text).translate(_ESCAPES)

    def code(self, text: str) -> str:
        if "`" in text:
            return self.words(text, opening=False)
        return f"`{text.translate(_ESCAPES)}`"

    def code_line(self, text: str) -> str:
        return apart(text).translate(_ESCAPES)

    def link(self, label: str, target: str) -> str:
        address = target.translate(_ESCAPES)
        if label == target:
            return f"<{address}>"
        return f"<{address}|{self._label(label)}>"

    def fence(self, _language: str, /) -> str:
        return "```"

    def lead(self, row: Row) -> str:
        return " " * row.indent + (row.marker and row.marker + " ")

    def spans_of(self, row: Row) -> tuple[Span, ...]:
        if row.kind != "heading":
            return row.spans
        return tuple(
            replace(span, marks=("bold", *(mark for mark in span.marks if mark != "bold")))
            for span in row.spans
        )

    def _label(self, label: str) -> str:
        """A link's label. A bar would end the address, and Slack reads no markup in it."""
        return label.replace("|", "\u00a6").translate(_ESCAPES)
