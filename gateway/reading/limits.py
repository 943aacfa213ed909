"""The bounds of one file: in the process that reads it, and in the gateway that takes its answer."""

from __future__ import annotations

from pipeline.domain.frozen import dataclass

MAX_PIXELS = 64_000_000
"""Width times height of a picture: 256 MB as the decoder keeps it."""
MAX_TEXT_CHARS = 1_000_000
"""Characters of text of one document, about 300 printed pages; the rest is cut."""
MAX_PAGE_CHARS = 100_000
"""Characters of one page of a PDF or one slide; the rest is cut."""
PIECE_CHARS = 3_000
MAX_TITLE_CHARS = 200
ADDRESS_SPACE_BYTES = 768 * 1024**2
"""Of the process that reads a file: three times the largest picture, for its conversion and scaling."""
MAX_ANSWER_BYTES = 24 * 1024**2
"""A document's text in UTF-8, or a picture."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingLimits:
    """What the operator may set."""

    max_bytes: int = 20 * 1024 * 1024
    """Of a file."""
    max_pages: int = 300
    """Of a document: pages, slides or pieces."""
    seconds: int = 20
    """Of processor time for a file."""
