"""The port that reads pictures and documents of people, and what it returns.

Not here: the process that reads them (`gateway.reading`), and what a turn does with the result.
"""

from __future__ import annotations

from typing import ClassVar, Literal, Protocol

from pipeline.domain.errors import ParlourError
from pipeline.domain.frozen import dataclass

DocumentKind = Literal[
    "pdf", "docx", "odt", "rtf", "epub", "pptx", "odp", "xlsx", "ods", "html", "csv", "text"
]
Unreadable = Literal["empty", "unsupported", "damaged", "encrypted", "too_large", "too_slow", "unavailable"]
"""Why a file was not read. Only the last one may work later with the same file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A picture as a model can take it: encoded again, without any metadata, the right way up."""

    content: bytes
    mime: Literal["image/jpeg", "image/png"]
    width: int
    """In pixels, as `height`."""
    height: int
    original_width: int
    """The width of the file's picture in pixels, the right way up."""
    original_height: int
    animated: bool = False
    """The file has more frames than this one, which is the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentText:
    """The text of a document. Everything in it comes from outside and is not to be trusted."""

    kind: DocumentKind
    """What the content is; the name of the file does not matter."""
    pages: tuple[str, ...]
    """For a PDF its pages, for a presentation its slides, for a spreadsheet its sheets in pieces; for other
    kinds pieces of about 3,000 characters, cut between paragraphs. A page without text is empty."""
    title: str = ""
    """The document's own title, on one line; empty without one."""
    cut: bool = False
    """Text at the end is missing, because the document is larger than a limit."""
    notes: tuple[str, ...] = ()
    """What a reader of `pages` should know, such as "12 pages have no text; they are pictures". Sentences
    without a full stop; no text of the document."""


class FileUnreadable(ParlourError):
    """The file could not be read. The text is one sentence or two for the person who sent it."""

    code: ClassVar[str] = "file_unreadable"

    def __init__(self, words: str, *, reason: Unreadable, detail: str = "") -> None:
        super().__init__(words)
        self.reason: Unreadable = reason
        self.detail = detail
        """What failed, for the log and the doctor and never for people in a chat."""


class FileReader(Protocol):
    """Reads files of strangers. Safe to call at the same time; cancelling a call ends its work."""

    async def picture(self, content: bytes, *, max_side: int, max_bytes: int) -> Picture:
        """The picture in `content`, recognised by its bytes: JPEG, PNG, GIF, WebP, BMP, TIFF or AVIF.

        Neither side is longer than `max_side` pixels and `Picture.content` has at most `max_bytes`; a small
        picture is never enlarged. Raises FileUnreadable.
        """
        ...

    async def document(self, content: bytes, *, name: str, mime: str) -> DocumentText:
        """The text of the document in `content`.

        The content decides what it is. `name` and `mime`, as the sender gives them, only choose among kinds
        of plain text, such as CSV. Raises FileUnreadable.
        """
        ...
