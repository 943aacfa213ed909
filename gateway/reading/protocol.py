"""What passes between the gateway and its reading processes, as frames. The gateway trusts no answer.

A document's texts are the body of its frame, one after the other in UTF-8; the header has their lengths.
Facts that become words are numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from gateway.reading.failures import ReadingFailed
from gateway.reading.limits import MAX_PIXELS, MAX_TITLE_CHARS
from pipeline.domain.frozen import dataclass
from pipeline.domain.readings import DocumentKind, DocumentText, Picture
from voice.workers.frames import BrokenFrame, WorkerFrame, checked_number

_KINDS: Mapping[str, DocumentKind] = {kind: kind for kind in get_args(DocumentKind)}
_LARGEST_NUMBER = 2**40
_PICTURE_MIMES = ("image/jpeg", "image/png")


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """A document as the reading process returns it."""

    kind: DocumentKind
    pages: Sequence[str]
    title: str = ""
    cut: bool = False
    all_pages: int = 0
    """How many pages a document has of which only the first were read; 0 where all were."""
    pictures: int = 0
    """Pages that show something and have no text."""
    macros: bool = False
    hidden: int = 0
    """Sheets or slides that the document hides; they are read too."""


def picture_frame(picture: Picture) -> WorkerFrame:
    """Inverse of `picture_from`."""
    header = {
        "kind": "picture",
        "mime": picture.mime,
        "width": picture.width,
        "height": picture.height,
        "original_width": picture.original_width,
        "original_height": picture.original_height,
        "animated": picture.animated,
    }
    return WorkerFrame(header=header, body=picture.content)


def picture_from(frame: WorkerFrame, *, max_side: int, max_bytes: int) -> Picture:
    """The picture in an answer. Raises BrokenFrame, ReadingFailed."""
    header = _answer(frame, "picture")
    sides = {name: _side(header.get(name)) for name in ("width", "height")}
    originals = {name: _side(header.get(name)) for name in ("original_width", "original_height")}
    mime = header.get("mime")
    if mime not in _PICTURE_MIMES or max(sides.values()) > max_side or len(frame.body) > max_bytes:
        raise BrokenFrame("a picture is not what was wanted")
    return Picture(
        content=frame.body,
        mime=mime,
        width=sides["width"],
        height=sides["height"],
        original_width=originals["original_width"],
        original_height=originals["original_height"],
        animated=header.get("animated") is True,
    )


def document_frame(extracted: Extracted) -> WorkerFrame:
    """Inverse of `document_from`."""
    texts = [text.encode() for text in (extracted.title, *extracted.pages)]
    header = {
        "kind": "document",
        "form": extracted.kind,
        "lengths": [len(text) for text in texts],
        "cut": extracted.cut,
        "all_pages": extracted.all_pages,
        "pictures": extracted.pictures,
        "macros": extracted.macros,
        "hidden": extracted.hidden,
    }
    return WorkerFrame(header=header, body=b"".join(texts))


def document_from(frame: WorkerFrame, *, max_pages: int) -> DocumentText:
    """The document in an answer. Raises BrokenFrame, ReadingFailed."""
    header = _answer(frame, "document")
    kind, lengths = _KINDS.get(str(header.get("form"))), header.get("lengths")
    if kind is None or not isinstance(lengths, list):
        raise BrokenFrame("a document is not what was wanted")
    if not 1 <= len(lengths) <= max_pages + 1:
        raise BrokenFrame("a document has too many pages")
    title, *pages = _texts(frame.body, [_count(length) for length in lengths])
    return DocumentText(
        kind=kind,
        pages=tuple(pages),
        title=title[:MAX_TITLE_CHARS],
        cut=header.get("cut") is True,
        notes=tuple(_notes(header, read=len(pages))),
    )


def failure_frame(failure: ReadingFailed) -> WorkerFrame:
    """The answer for a file that is not read."""
    return WorkerFrame(header={"kind": "unreadable", "name": failure.name, "numbers": failure.numbers})


def _answer(frame: WorkerFrame, kind: str) -> Mapping[str, Any]:
    header = frame.header
    if header.get("kind") == "unreadable":
        numbers = header.get("numbers")
        if not isinstance(numbers, dict):
            raise BrokenFrame("a failure has no numbers")
        failure = ReadingFailed(str(header.get("name")))
        failure.numbers = {name: _count(one) for name, one in numbers.items()}
        raise failure
    if header.get("kind") != kind:
        raise BrokenFrame(f"an answer is no {kind}")
    return header


def _count(value: object) -> int:
    if not isinstance(value, int) or checked_number(value, at_most=_LARGEST_NUMBER) != value:
        raise BrokenFrame("a number is not whole")
    return value


def _side(value: object) -> int:
    side = _count(value)
    if not 1 <= side <= MAX_PIXELS:
        raise BrokenFrame("a side is out of its bounds")
    return side


def _texts(body: bytes, lengths: Sequence[int]) -> list[str]:
    if sum(lengths) != len(body):
        raise BrokenFrame("the texts and their lengths differ")
    texts, start = [], 0
    for length in lengths:
        try:
            texts.append(body[start : start + length].decode())
        except UnicodeDecodeError as error:
            raise BrokenFrame("a text is not UTF-8") from error
        start += length
    return texts


def _notes(header: Mapping[str, Any], *, read: int) -> list[str]:
    notes = []
    if count := _count(header.get("all_pages")):
        notes.append(f"only the first {read} of {count} pages were read")
    if count := _count(header.get("pictures")):
        notes.append("1 page has no text; it is a picture" if count == 1 else _PICTURES.format(count=count))
    if header.get("macros") is True:
        notes.append("the document contains macros, which were ignored")
    if count := _count(header.get("hidden")):
        notes.append(f"{count} hidden {'part' if count == 1 else 'parts'} of the document are included")
    return notes


_PICTURES = "{count} pages have no text; they are pictures"
