"""Clean a user's text without changing its meaning.

Direction marks, indentation, tables and the joiners of emoji families and of Persian and Hindi words stay:
people mean them. Control characters, characters that reorder or hide text, and text beyond the length limit
are removed. Not here: the more strictly cleaned copy that is searched for attacks
(`pipeline.intake.detection`).
"""

from __future__ import annotations

from pipeline.domain.visible import visible_text

MAX_MESSAGE_CHARS = 100_000
TRUNCATION_MARK = "\n[truncated]"


def clean_text(text: str) -> str:
    """`text` as it is stored and sent to the model: line ends as LF, no unwanted invisible characters, at
    most 100,000 characters and a mark that the rest is missing. Idempotent."""
    if text.isascii() and text.isprintable() and len(text) <= MAX_MESSAGE_CHARS:
        return text.strip()  # most messages: there is nothing to remove
    cleaned = visible_text(text).strip()
    if len(cleaned) <= MAX_MESSAGE_CHARS:
        return cleaned
    if cleaned.endswith(TRUNCATION_MARK) and len(cleaned) <= MAX_MESSAGE_CHARS + len(TRUNCATION_MARK):
        return cleaned
    # Cleaned again, because the cut may leave a joiner at the end that joins nothing.
    return visible_text(cleaned[:MAX_MESSAGE_CHARS]) + TRUNCATION_MARK
