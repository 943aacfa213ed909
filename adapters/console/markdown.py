"""Render Markdown for a terminal: bold, code and headings by ANSI styles, links with addresses."""

from __future__ import annotations

import re
from collections.abc import Sequence

from adapters.console.screen import printable
from adapters.formatting.fallback import rendered
from adapters.formatting.layout import as_written, lay_out
from adapters.formatting.links import WEB, same_address
from adapters.formatting.markdown import parse
from adapters.formatting.rows import Row, Span

_STYLES = {
    "bold": ("\x1b[1m", "\x1b[22m"),
    "italic": ("\x1b[3m", "\x1b[23m"),
    "strike": ("\x1b[9m", "\x1b[29m"),
}
_CODE, _PLAIN_COLOUR = "\x1b[36m", "\x1b[39m"
_CODE_INDENT = "    "
_QUOTE = "│ "
_FENCE = re.compile(r" {0,3}(```|~~~)")


def terminal_text(markdown: str) -> str:
    """`markdown` with ANSI styles, which end on the line where they begin; no other terminal control
    characters. Empty if there is nothing to show."""
    return rendered(
        lambda: _lines(lay_out(parse(markdown), transcript="", schemes=WEB | {"mailto"})),
        lambda: printable(as_written(markdown, "")),
    )


def finished_blocks(markdown: str) -> int:
    """The length of the finished blocks of an answer in progress, which later text cannot change: up to a
    blank line outside a fence, followed by a line at the margin. One pass over the lines."""
    cut = place = 0
    fenced = blank = False
    for line in markdown.splitlines(keepends=True):
        if not fenced and blank and line[0] not in " \t\r\n":
            cut = place
        if _FENCE.match(line):
            fenced = not fenced
        blank = not line.strip()
        place += len(line)
    return cut


def _lines(rows: Sequence[Row]) -> str:
    lines: list[str] = []
    for row in rows:
        if row.gap and lines:
            lines.append("")
        lines.append(_line(row))
    return "\n".join(lines)


def _line(row: Row) -> str:
    if row.kind == "code":
        words = printable("".join(span.text for span in row.spans))
        return f"{_CODE_INDENT}{_CODE}{words}{_PLAIN_COLOUR}" if words else ""
    heading = row.kind == "heading"
    words = "".join(_styled(span, bold=heading) for span in row.spans)
    marker = row.marker and f"{row.marker} "
    return f"{_QUOTE if row.quote else ''}{' ' * row.indent}{marker}{words}"


def _styled(span: Span, *, bold: bool) -> str:
    words = printable(span.text)
    if span.target and not same_address(span.text, span.target):
        words = f"{words} ({printable(span.target)})"
    if span.code:
        words = f"{_CODE}{words}{_PLAIN_COLOUR}"
    for mark in {*span.marks, "bold"} if bold else span.marks:
        begin, end = _STYLES[mark]
        words = f"{begin}{words}{end}"
    return words
