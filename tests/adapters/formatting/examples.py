"""The examples in tests/data/markdown: every section of CommonMark, tables, strikethrough, and chat.

One example a line: ⏎ represents a line end and → for a tab.
"""

from __future__ import annotations

from pathlib import Path

_FILE = Path(__file__).parents[2] / "data" / "markdown" / "examples.txt"


def examples() -> list[tuple[str, str]]:
    """Section and Markdown of each example."""
    found: list[tuple[str, str]] = []
    section = ""
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith("== "):
            section = line.removeprefix("== ")
        elif line:
            found.append((section, line.replace("⏎", "\n").replace("→", "\t")))
    return found
