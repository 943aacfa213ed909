"""Cleaning what a user typed, without harming what they meant.

Joiners, direction marks and indentation stay: emoji families, Persian and Hindi words and code need
them. What goes is what no keyboard sends: control characters, and more text than a message may have.
"""

from __future__ import annotations

import re

MAX_MESSAGE_CHARS = 100_000
TRUNCATION_MARK = "\n[truncated]"

# C0 controls except TAB and LF, DEL, C1 controls, the byte order mark, and bidi overrides, which
# reorder text that somebody else reads.
_UNWANTED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufeff\u202a-\u202e\u2066-\u2069]")


def clean_text(text: str) -> str:
    """`text` as it goes to the model: line ends as LF, no control characters, bounded. Idempotent."""
    unified = text.replace("\r\n", "\n").replace("\r", "\n")
    cleaned = _UNWANTED.sub("", unified).strip()
    if len(cleaned) <= MAX_MESSAGE_CHARS:
        return cleaned
    if cleaned.endswith(TRUNCATION_MARK) and len(cleaned) <= MAX_MESSAGE_CHARS + len(TRUNCATION_MARK):
        return cleaned
    return cleaned[:MAX_MESSAGE_CHARS] + TRUNCATION_MARK
