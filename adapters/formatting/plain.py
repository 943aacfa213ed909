"""Render to plain text, with addresses written out: for fallbacks, notifications and terminals."""

from __future__ import annotations

from collections.abc import Sequence

from adapters.formatting.fallback import rendered
from adapters.formatting.layout import as_written, lay_out
from adapters.formatting.links import WEB, same_address
from adapters.formatting.markdown import parse
from adapters.formatting.rows import Row, Span


def plain_text(markdown: str, *, transcript: str = "") -> str:
    """`markdown` without formatting; empty for nothing to show."""
    return rendered(
        lambda: plain_lines(lay_out(parse(markdown), transcript=transcript, schemes=WEB | {"mailto"})),
        lambda: as_written(markdown, transcript),
    )


def plain_lines(rows: Sequence[Row], *, addresses: bool = True) -> str:
    """The lines of `rows`; without `addresses`, links show only their label."""
    lines: list[str] = []
    for row in rows:
        if row.gap and lines:
            lines.append("")
        words = "".join(_words(span, addresses=addresses) for span in row.spans)
        quote = "> " if row.quote and row.kind != "code" else ""
        lines.append(quote + " " * row.indent + (row.marker and row.marker + " ") + words)
    return "\n".join(lines)


def _words(span: Span, *, addresses: bool) -> str:
    if not addresses or not span.target or same_address(span.text, span.target):
        return span.text
    return f"{span.text} ({span.target})"
