"""Why a file cannot be read, and the words for the person who sent it.

The reading process names a failure and some numbers; the words are put together by the gateway alone, so
that a hostile file cannot choose what the bot says.
"""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.domain.attachments import file_size
from pipeline.domain.frozen import dataclass
from pipeline.domain.readings import FileUnreadable, Unreadable

PICTURES = "JPEG, PNG, GIF, WebP, BMP, TIFF and AVIF"
DOCUMENTS = (
    "PDF, Word (.docx), PowerPoint (.pptx), Excel (.xlsx), OpenDocument, EPUB, RTF, HTML, CSV and plain text"
)
_AGAIN = "Please send it again."
_DAMAGED = f"It is damaged or incomplete. {_AGAIN}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Words:
    reason: Unreadable
    text: str
    """May name the numbers of the failure in braces."""


_WORDS: Mapping[str, _Words] = {
    "empty": _Words(reason="empty", text=f"The file is empty. {_AGAIN}"),
    "too_large": _Words(
        reason="too_large",
        text="The file has {size}; I read files of up to {most}. Please send a smaller one.",
    ),
    "unpacks_too_large": _Words(
        reason="too_large",
        text="The file unpacks to much more than its size, so I did not read it. "
        "Please send the document as PDF.",
    ),
    "too_much_memory": _Words(
        reason="too_large",
        text="Reading the file needs more memory than I may use. Please send a smaller one.",
    ),
    "too_many_pixels": _Words(
        reason="too_large",
        text="The picture has {width} by {height} pixels; I read up to {most} million. "
        "Please send a smaller one.",
    ),
    "picture_too_detailed": _Words(
        reason="too_large", text="The picture cannot be made small enough to be sent to the model."
    ),
    "no_picture": _Words(
        reason="unsupported", text=f"I cannot read this kind of picture. I read {PICTURES}."
    ),
    "heic": _Words(
        reason="unsupported",
        text="I cannot read HEIC pictures, as iPhones make them. Please send it as a photo instead of a "
        "file, or as JPEG.",
    ),
    "no_document": _Words(reason="unsupported", text=f"I cannot read this kind of file. I read {DOCUMENTS}."),
    "picture_as_document": _Words(
        reason="unsupported",
        text="The file is a picture, whatever its name says. Please send it as a picture.",
    ),
    "archive": _Words(
        reason="unsupported", text="I do not open archives. Please send the files in it one by one."
    ),
    "old_office": _Words(
        reason="unsupported",
        text="I cannot read the old formats of Office (.doc, .xls, .ppt). "
        "Please save it as .docx, .xlsx, .pptx or PDF.",
    ),
    "encrypted": _Words(
        reason="encrypted",
        text="The file needs a password, which I cannot enter. Please send it without one.",
    ),
    "picture_damaged": _Words(reason="damaged", text=f"I cannot read the picture. {_DAMAGED}"),
    "document_damaged": _Words(reason="damaged", text=f"I cannot read the document. {_DAMAGED}"),
    "crashed": _Words(reason="damaged", text=f"I cannot read the file: it seems to be damaged. {_AGAIN}"),
    "too_slow": _Words(reason="too_slow", text="Reading the file took too long. Please send a shorter one."),
    "unavailable": _Words(
        reason="unavailable", text="I cannot read files at the moment. Please try again later."
    ),
}


class ReadingFailed(Exception):
    """The file is not read. `name` is one of the failures of this module; `numbers` fill its words."""

    def __init__(self, name: str, **numbers: int) -> None:
        super().__init__(name)
        self.name = name
        self.numbers = numbers


def unreadable(failure: ReadingFailed, *, detail: str = "") -> FileUnreadable:
    """The error with the words for the person, and `detail` for the operator."""
    words = _WORDS.get(failure.name) or _WORDS["crashed"]
    try:
        text = words.text.format_map(failure.numbers)
    except KeyError:
        words = _WORDS["crashed"]
        text = words.text
    return FileUnreadable(text, reason=words.reason, detail=detail)


def too_large(size: int, *, max_bytes: int) -> FileUnreadable:
    """The error for a file of `size` bytes."""
    words = _WORDS["too_large"]
    text = words.text.format(size=file_size(size), most=file_size(max_bytes))
    return FileUnreadable(text, reason=words.reason)
