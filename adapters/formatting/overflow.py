"""The limit for long answers: beyond it, the first part is shown and the whole text is sent as a file."""

from __future__ import annotations

MAX_PARTS = 5
"""The most messages per answer in a chat."""
FILE_NAME = "answer.md"


def as_file(markdown: str) -> bytes:
    """`markdown` in UTF-8, unchanged. Lone surrogates become question marks."""
    return markdown.encode("utf-8", errors="replace")
