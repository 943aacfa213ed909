"""Write what a model reads of a message's files: a note for each, and the first pages of documents.

Not here: reading the files (`gateway.reading`). Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.domain.attachments import plain_name, used_note
from pipeline.domain.chat import estimate_tokens
from pipeline.domain.files import StoredFile
from pipeline.domain.frozen import dataclass
from pipeline.domain.marking import marked_file
from pipeline.domain.readings import DocumentText
from pipeline.history.summarization import cut_to_tokens

_UNITS = {"pdf": "page", "pptx": "slide", "odp": "slide"}
_NO_TEXT = "no text in it"
_PART = "only the beginning of page {last} follows"
_FIRST = "pages 1 to {last} follow"
_MORE = "{shown}; read_attachment reads more"
_SPOKEN = "what is said in it follows"
_LEAST_TOKENS = 30
"""A beginning of fewer tokens says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedFile:
    """A file that can be used, with its content as text."""

    file: StoredFile
    document: DocumentText | None = None
    said: str = ""
    """What is said in a recording."""


def attached_text(used: Sequence[UsedFile], max_tokens: int) -> str:
    """A note for each file and the beginning of its text, all texts in `max_tokens` tokens."""
    parts: list[str] = []
    left = sum(1 for one in used if one.document is not None or one.said)
    for one in used:
        if one.document is None and not one.said:
            parts.append(used_note(one.file))
            continue
        note, text = _excerpt(one, max_tokens // left)
        parts.append(
            f"{used_note(one.file, note)}\n{marked_file(plain_name(one.file), text)}"
            if text
            else used_note(one.file, note)
        )
        max_tokens -= estimate_tokens(text)
        left -= 1
    return "\n".join(parts)


def document_about(document: DocumentText) -> str:
    """The size of a document for people: `12 pages`; empty for a short one of another kind."""
    count, unit = len(document.pages), _UNITS.get(document.kind, "part")
    if count == 1:
        return f"1 {unit}" if unit != "part" else ""
    return f"{count} {unit}s"


def _excerpt(one: UsedFile, max_tokens: int) -> tuple[str, str]:
    """What the note says of the text, and the text."""
    if one.document is None:
        return _SPOKEN, cut_to_tokens(one.said, max(_LEAST_TOKENS, max_tokens))
    notes = one.document.notes
    if not any(page.strip() for page in one.document.pages):
        return "; ".join((_NO_TEXT, *notes)), ""
    shown, text = _first_pages(one.document.pages, max(_LEAST_TOKENS, max_tokens))
    return "; ".join(part for part in (shown, *notes) if part), text


def _first_pages(pages: Sequence[str], max_tokens: int) -> tuple[str, str]:
    parts: list[str] = []
    for number, page in enumerate(pages, start=1):
        text = f"(page {number})\n{page.strip()}" if len(pages) > 1 else page.strip()
        tokens = estimate_tokens(text)
        if tokens > max_tokens:
            if number > 1:
                return _MORE.format(shown=_FIRST.format(last=number - 1)), "\n\n".join(parts)
            return _MORE.format(shown=_PART.format(last=1)), cut_to_tokens(text, max_tokens)
        parts.append(text)
        max_tokens -= tokens
    return "", "\n\n".join(parts)
