"""Render rows in a channel's own markup, for channels with formatting inside the text.

A dialect defines how a mark, a link and a fence are written and how text is escaped.
The common part is here: marks are opened and closed in order, around words and not around
spaces, and never so that two adjacent markers are read as a third.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from adapters.formatting.rows import Mark, Row, Span, utf16

ZERO_WIDTH_SPACE = "\u200b"
_MARKERS = "*_~`"
_TICKS = re.compile(r"`(?=`)")
_SEAM = 2
"""The most zero-width spaces around a span."""


class Markup(ABC):
    """One channel's markup. Subclasses define escaping and markers; it is a `split.Scale`."""

    markers: Mapping[Mark, str]
    boundaries = False
    """Whether a marker counts only without a letter outside next to it."""

    def __init__(self) -> None:
        self._written: dict[int, tuple[Row, str]] = {}
        """Rows are measured and then written: each is rendered once. Holds the rows, so that no id is
        reused."""

    @abstractmethod
    def words(self, text: str, *, opening: bool) -> str:
        """`text` escaped to show literally. `opening`: it is at the beginning of a line."""

    @abstractmethod
    def code(self, text: str) -> str:
        """`text` as code within a line."""

    @abstractmethod
    def code_line(self, text: str) -> str:
        """`text` as a line within a fence."""

    @abstractmethod
    def link(self, label: str, target: str) -> str:
        """`label`, linked to `target`; the bare address where they are the same."""

    @abstractmethod
    def fence(self, language: str, /) -> str:
        """The line that opens a block of code."""

    @abstractmethod
    def lead(self, row: Row) -> str:
        """The prefix of a row: its indent and marker, the sign of a heading."""

    def spans_of(self, row: Row) -> tuple[Span, ...]:
        """The spans of a row, with the marks of its kind in this channel."""
        return row.spans

    def text(self, rows: Sequence[Row]) -> str:
        """The rows of one part."""
        pieces: list[str] = []
        before: Row | None = None
        for row in rows:
            pieces.extend((self._joint(before, row), self._row(row)))
            before = row
        if before is not None:
            pieces.append(self._close(before))
        return "".join(pieces)

    def joint(self, before: Row | None, row: Row) -> int:
        return utf16(self._joint(before, row))

    def row(self, row: Row) -> int:
        return utf16(self._row(row))

    def prefix(self, row: Row) -> int:
        return utf16(self._prefix(row))

    def span(self, span: Span, row: Row) -> int:
        if row.kind == "code":
            return utf16(self.code_line(span.text))
        plain = not (span.marks or span.code or span.target)
        # A heading can add a mark that is two characters wide on either side.
        return utf16(self._line((span,), opening=True)) + (0 if plain else _SEAM) + 4

    def close(self, row: Row) -> int:
        return utf16(self._close(row))

    def _row(self, row: Row) -> str:
        known = self._written.get(id(row))
        if known is not None:
            return known[1]
        if row.kind == "code":
            text = "".join(self.code_line(span.text) for span in row.spans)
        else:
            text = self._prefix(row) + self._line(self.spans_of(row), opening=True)
        self._written[id(row)] = (row, text)
        return text

    def _prefix(self, row: Row) -> str:
        return "" if row.kind == "code" else ("> " if row.quote else "") + self.lead(row)

    def _joint(self, before: Row | None, row: Row) -> str:
        opens = row.kind == "code" and (before is None or before.group != row.group)
        fence = self.fence(row.language) + "\n" if opens else ""
        if before is None:
            return fence
        closes = "\n```" if before.kind == "code" and before.group != row.group else ""
        if not row.gap:
            return closes + "\n" + fence
        return closes + ("\n> \n" if row.quote and row.quote == before.quote else "\n\n") + fence

    def _close(self, row: Row) -> str:
        return "\n```" if row.kind == "code" else ""

    def _line(self, spans: Sequence[Span], *, opening: bool) -> str:
        if len(spans) == 1 and spans[0].marks == () and not spans[0].code and not spans[0].target:
            return self.words(spans[0].text, opening=opening)
        line = _Line(self)
        for span in spans:
            line.add(span, opening=opening and line.empty)
        return line.done()


class _Line:
    """A line being built: its parts and the open marks."""

    def __init__(self, dialect: Markup) -> None:
        self._dialect = dialect
        self._pieces: list[str] = []
        self._open: list[Mark] = []
        self._after_marker = False

    @property
    def empty(self) -> bool:
        return not self._pieces

    def add(self, span: Span, *, opening: bool) -> None:
        if span.text.isspace() and not span.code:
            self._pieces.append(span.text)
            self._after_marker = False
            return
        common = 0
        while common < min(len(self._open), len(span.marks)) and self._open[common] == span.marks[common]:
            common += 1
        self._close_to(common)
        written = self._written(span, opening=opening)
        marks = span.marks[common:]
        if marks:
            words = written.lstrip()
            self._pieces.append(written[: len(written) - len(words)])
            self._mark("".join(self._dialect.markers[mark] for mark in marks), opens=True)
            self._open.extend(marks)
            written = words
        self._append(written, is_marker=span.code)

    def done(self) -> str:
        self._close_to(0)
        return "".join(self._pieces)

    def _written(self, span: Span, *, opening: bool) -> str:
        if span.target:
            return self._dialect.link(span.text, span.target)
        if span.code and span.text.strip():
            return self._dialect.code(span.text)
        return self._dialect.words(span.text, opening=opening)

    def _close_to(self, depth: int) -> None:
        if len(self._open) <= depth:
            return
        spaces = ""
        while self._pieces and (not self._pieces[-1] or self._pieces[-1].isspace()):
            spaces = self._pieces.pop() + spaces
        words = self._pieces[-1].rstrip()
        spaces = self._pieces[-1][len(words) :] + spaces
        self._pieces[-1] = words
        closing = "".join(self._dialect.markers[mark] for mark in reversed(self._open[depth:]))
        del self._open[depth:]
        self._mark(closing, opens=False)
        if spaces:
            self._pieces.append(spaces)
            self._after_marker = False

    def _mark(self, marker: str, *, opens: bool) -> None:
        last = self._last()
        touches = last in _MARKERS and last != "" and opens
        letter = self._dialect.boundaries and opens and (last.isalnum() or last == "_")
        self._pieces.append((ZERO_WIDTH_SPACE if touches or letter else "") + marker)
        self._after_marker = not opens

    def _append(self, written: str, *, is_marker: bool) -> None:
        first = written[:1]
        last = self._last()
        ticks_touch = first != "" and first in _MARKERS and last == "`"
        outside = self._after_marker and self._dialect.boundaries
        if ticks_touch or (outside and first != "" and (first.isalnum() or first in _MARKERS)):
            written = ZERO_WIDTH_SPACE + written
        self._pieces.append(written)
        self._after_marker = is_marker

    def _last(self) -> str:
        for piece in reversed(self._pieces):
            if piece:
                return piece[-1]
        return ""


def apart(text: str) -> str:
    """`text` with adjacent backticks separated, so that none of them ends a block of code."""
    return _TICKS.sub("`" + ZERO_WIDTH_SPACE, text) if "``" in text else text
