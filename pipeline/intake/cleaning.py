"""Cleaning what a user typed, without harming what they meant.

Direction marks, indentation, tables and the joiners of emoji families and of Persian and Hindi words stay:
people mean them. What goes is what no keyboard sends and nobody sees: control characters, characters that
reorder or hide text, and more text than a message may have. Not here: the harder-cleaned copy in which
attacks are looked for (`pipeline.intake.detection`).
"""

from __future__ import annotations

from pipeline.domain.visible import visible_text

MAX_MESSAGE_CHARS = 100_000
TRUNCATION_MARK = "\n[truncated]"


def clean_text(text: str) -> str:
    """`text` as it is stored and goes to the model: line ends as LF, nothing invisible that was not meant,
    at most 100,000 characters and a mark that the rest is missing. Idempotent."""
    cleaned = visible_text(text).strip()
    if len(cleaned) <= MAX_MESSAGE_CHARS:
        return cleaned
    if cleaned.endswith(TRUNCATION_MARK) and len(cleaned) <= MAX_MESSAGE_CHARS + len(TRUNCATION_MARK):
        return cleaned
    # Again, because the cut may part what belongs together: a joiner at the end joins nothing.
    return visible_text(cleaned[:MAX_MESSAGE_CHARS]) + TRUNCATION_MARK
