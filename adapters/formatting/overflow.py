"""When an answer is too long for messages: the first part is shown, and the whole comes as a file."""

from __future__ import annotations

MAX_PARTS = 5
"""Messages that one answer may take in a chat."""
FILE_NAME = "answer.md"


def as_file(markdown: str) -> bytes:
    """`markdown` in UTF-8, as it was written. Lone surrogates become question marks."""
    return markdown.encode("utf-8", errors="replace")
