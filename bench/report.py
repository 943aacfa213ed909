"""A bench's report, its printing, and the arithmetic that all benches share."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]


class BenchUnavailable(Exception):
    """A bench cannot run here. The message says what is missing and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One bench's result: a table for people and figures for programs."""

    bench: str
    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    more: Sequence[str] = ()
    """Lines between the table and the notes, such as a second table."""
    notes: Sequence[str] = ()
    figures: Mapping[str, object]

    def text(self) -> str:
        """The table, the notes, and last one line of JSON."""
        lines = [self.title, "", *table(self.head, self.rows), *self.more, ""]
        lines += [f"* {note}" for note in self.notes]
        figures = json.dumps({"bench": self.bench, **self.figures})
        return "\n".join([*lines, figures])


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of plain text, columns aligned: the first to the left, the others to the right."""
    cells = [list(head), *map(list, rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    lines = [
        "  ".join(
            text.rjust(width) if column else text.ljust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
    return [lines[0], "  ".join("-" * width for width in widths), *lines[1:]]


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` (0 to 1) of `values` do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)]


def median(values: Sequence[float]) -> float:
    """The middle value."""
    return percentile(values, 0.5)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder on the project's own disk: the system's temporary folder may be in memory."""
    base = ROOT / "build"
    base.mkdir(exist_ok=True)
    with TemporaryDirectory(dir=base, prefix="bench-") as folder:
        yield Path(folder)
