"""Cut rows into parts that each fit one message, measured as the channel renders them.

Cuts are made before a block if that leaves the part reasonably full, else before an item, else between
lines, else inside a line: after a sentence, at a space, between characters. Only
whitespace at a cut is lost, and parts without visible text.

It always terminates. A step either adds a row to the part, or finishes a part and with it at least one row or
one character, or removes formatting from a row, which is possible twice per row. A bug here would raise
`CannotSplit`, after a number of steps proportional to the length of the rows.
"""

from __future__ import annotations

import unicodedata
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from adapters.formatting.graphemes import cut_position
from adapters.formatting.links import same_address
from adapters.formatting.rows import Kind, Row, Span

LEAST_LIMIT = 128
"""No channel has smaller messages; below it, a fence or a link would leave no space for text."""
_FULL_ENOUGH = 0.4
_LEAST_PIECE = 16
"""Characters of a line that a separate part must fit, or the line loses its links and marks."""
_FREE_STEPS = 256
_STEPS_PER_ROW = 8
_STEPS_PER_PART = 64
"""Steps per `limit` characters. Real texts take three at most."""
_AHEAD = 64
_NO_WORDS = (Span(""),)
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Mn", "Me"})
_BLANK = "\u115f\u1160\u2800\u3164\uffa0"


class CannotSplit(Exception):
    """The rows cannot be cut into parts that fit, or not within the allowed number of steps."""


class Scale(Protocol):
    """Measures rows in one channel's unit. Sums are exact or too large, never too small."""

    def joint(self, before: Row | None, row: Row) -> int:
        """Between `before` and `row`: line ends, fences. None: `row` opens the part."""
        ...

    def row(self, row: Row) -> int:
        """A whole row with its prefix."""
        ...

    def prefix(self, row: Row) -> int:
        """A row without its spans."""
        ...

    def span(self, span: Span, row: Row) -> int:
        """One span of `row`, or a part of one, at any position in it."""
        ...

    def close(self, row: Row, /) -> int:
        """After `row`, when it is the last of the part."""
        ...


def split(rows: Sequence[Row], *, limit: int, scale: Scale) -> list[tuple[Row, ...]]:
    """The parts of `rows`, each at most `limit` by `scale` and with visible text. None for rows without
    visible text. Raises ValueError for a limit below `LEAST_LIMIT`, and CannotSplit."""
    check_limit(limit)
    cutter = _Cutter(limit, scale)
    queue = deque(rows)
    for _ in range(_most_steps(rows, limit)):
        if not queue:
            break
        row = queue.popleft()
        if not cutter.add(row):
            queue.extendleft(reversed(cutter.overflow(row)))
    if queue:
        raise CannotSplit(f"{len(queue)} rows are left after the last step")
    cutter.emit(len(cutter.part))
    return cutter.parts


def check_limit(limit: int) -> None:
    """Raises ValueError for a limit below `LEAST_LIMIT`."""
    if limit < LEAST_LIMIT:
        raise ValueError(
            f"limit: {limit} is less than {LEAST_LIMIT}, the shortest message that can be filled"
        )


def _most_steps(rows: Sequence[Row], limit: int) -> int:
    characters = sum(len(span.text) + len(span.target) for row in rows for span in row.spans)
    return _FREE_STEPS + _STEPS_PER_ROW * len(rows) + _STEPS_PER_PART * characters // limit


def has_ink(text: str) -> bool:
    """Whether `text` has any visible character."""
    return any(
        not char.isspace() and char not in _BLANK and unicodedata.category(char) not in _INVISIBLE
        for char in text
    )


class _Cutter:
    """The part being filled, and the finished ones."""

    def __init__(self, limit: int, scale: Scale) -> None:
        self.parts: list[tuple[Row, ...]] = []
        self.part: list[Row] = []
        self._fills: list[int] = []
        self._limit = limit
        self._scale = scale

    def add(self, row: Row) -> bool:
        """Add `row` to the part; False if it does not fit."""
        before = self.part[-1] if self.part else None
        if before is None:
            if _is_blank_code(row):
                return True
            row = replace(row, indent=0, gap=False) if row.indent or row.gap else row
        used = self._used + self._scale.joint(before, row)
        space = self._limit - used - self._scale.close(row)
        if _is_longer(row, space):
            return False
        size = self._scale.row(row)
        if size > space:
            return False
        self._fills.append(used + size)
        self.part.append(row)
        return True

    def overflow(self, row: Row) -> list[Row]:
        """Finish the part into which `row` did not fit; the remaining rows, in order."""
        cut = self._best_cut(row)
        if cut:
            left = self.part[cut:]
            self.emit(cut)
            return [*left, row]
        head, tail = self._cut_row(row)
        if head is not None and self.add(head):
            self.emit(len(self.part))
            return tail
        if self.part:
            self.emit(len(self.part))
            return [row]
        plainer = _plainer(row)
        return self._forced(row) if plainer is None else [plainer]

    def emit(self, count: int) -> None:
        """Move the first `count` rows of the part to the result; drop the others."""
        rows = self.part[:count]
        while rows and _is_blank_code(rows[-1]):
            rows.pop()
        if any(row.marker or has_ink(span.text) for row in rows for span in row.spans or _NO_WORDS):
            self.parts.append(tuple(rows))
        self.part, self._fills = [], []

    @property
    def _used(self) -> int:
        return self._fills[-1] if self._fills else 0

    def _space_left(self, row: Row) -> int:
        before = self.part[-1] if self.part else None
        return self._limit - self._used - self._scale.joint(before, row) - self._scale.close(row)

    def _best_cut(self, row: Row) -> int:
        """The number of rows to keep in the part; 0 if it is not full enough to be cut between rows."""
        best, kept = -1, 0
        for number, fill in enumerate(self._fills, start=1):
            following = self.part[number] if number < len(self.part) else row
            if fill >= self._limit * _FULL_ENOUGH and following.cut >= best:
                best, kept = following.cut, number
        return kept

    def _cut_row(self, row: Row) -> tuple[Row | None, list[Row]]:
        """The part of `row` that fits, and the rest. None if there is no good cut."""
        if not self.part:
            row = replace(row, indent=0, gap=False)
        length = self._fitting(row, self._space_left(row) - self._scale.prefix(row))
        if length <= 0 or (not self.part and length < _LEAST_PIECE and _is_longer(row, length)):
            return None, [row]
        text = _beginning(row, length + _AHEAD)
        position = cut_position(text[:length], text[length:])
        if position <= 0 and self.part:
            return None, [row]
        # A single visible character that is longer than a message is cut nevertheless.
        return _cut_at(row, position or length)

    def _forced(self, row: Row) -> list[Row]:
        """Fill a separate part with the start of `row`, which has no formatting left, however short that
        is; the rest."""
        count = self._limit
        while count:
            head, tail = _cut_at(replace(row, indent=0, gap=False), count)
            if self.add(head):
                self.emit(len(self.part))
                return tail
            count //= 2
        raise CannotSplit(f"one character does not fit into a part of {self._limit}")

    def _fitting(self, row: Row, space: int) -> int:
        """The number of characters of `row` that fit into `space`."""
        count = 0
        for span in row.spans:
            if len(span.text) <= space:
                size = self._scale.span(span, row)
                if size <= space:
                    space -= size
                    count += len(span.text)
                    continue
            return count + self._fitting_text(span, space, row)
        return count

    def _fitting_text(self, span: Span, space: int, row: Row) -> int:
        """The number of characters that fit, or slightly less: each try is measured, the next is in
        proportion."""
        count = min(len(span.text), max(space, 0))
        while count:
            size = self._scale.span(replace(span, text=span.text[:count]), row)
            if size <= space:
                break
            count = min(count - 1, count * max(space, 0) // size)
        return count


def _plainer(row: Row) -> Row | None:
    """A simpler `row` when nothing of it fits into an empty part: first with its addresses written out, then
    without marks. None when it has neither."""
    if any(span.target for span in row.spans):
        return replace(row, spans=tuple(_written_out(span) for span in row.spans))
    if row.kind == "heading" or any(span.marks or span.code for span in row.spans):
        kind: Kind = "text" if row.kind == "heading" else row.kind
        return replace(row, kind=kind, level=0, spans=(Span("".join(span.text for span in row.spans)),))
    return None


def _written_out(span: Span) -> Span:
    if not span.target or same_address(span.text, span.target):
        return replace(span, target="")
    return Span(f"{span.text} ({span.target})", span.marks)


def _is_longer(row: Row, space: int) -> bool:
    """Whether the text of `row` alone is longer than `space`. Reads no further than that."""
    for span in row.spans:
        space -= len(span.text)
        if space < 0:
            return True
    return space < 0


def _beginning(row: Row, length: int) -> str:
    """The first `length` characters of the text of `row`."""
    pieces: list[str] = []
    for span in row.spans:
        if length <= 0:
            break
        pieces.append(span.text[:length])
        length -= len(span.text)
    return "".join(pieces)


def _cut_at(row: Row, position: int) -> tuple[Row, list[Row]]:
    """The first `position` characters of `row` and the rest, without the spaces at the cut."""
    head, tail = _sliced(row.spans, position)
    if row.kind != "code":
        head, tail = _stripped(head, at_end=True), _stripped(tail, at_end=False)
    return replace(row, spans=head), [replace(row, spans=tail, marker="", gap=False)] if tail else []


def _is_blank_code(row: Row) -> bool:
    return row.kind == "code" and not any(span.text.strip() for span in row.spans)


def _sliced(spans: Sequence[Span], position: int) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    head: list[Span] = []
    for number, span in enumerate(spans):
        if len(span.text) > position:
            if position:
                head.append(replace(span, text=span.text[:position]))
            return tuple(head), (replace(span, text=span.text[position:]), *spans[number + 1 :])
        head.append(span)
        position -= len(span.text)
    return tuple(head), ()


def _stripped(spans: tuple[Span, ...], *, at_end: bool) -> tuple[Span, ...]:
    left = list(spans)
    while left:
        edge = left[-1] if at_end else left[0]
        text = edge.text.rstrip() if at_end else edge.text.lstrip()
        if text:
            left[-1 if at_end else 0] = replace(edge, text=text)
            break
        left.pop(-1 if at_end else 0)
    return tuple(left)
