"""The text of OpenDocument files: text, presentation, spreadsheet. Runs in the reading process only.

Deleted text that a document still tracks, comments and whatever it refers to are not read.
"""

from __future__ import annotations

from collections.abc import Mapping

from gateway.reading.failures import ReadingFailed
from gateway.reading.limits import MAX_TEXT_CHARS
from gateway.reading.xml_events import EnoughRead, parse, text_of
from gateway.reading.zip_contents import ZipContents
from pipeline.domain.readings import DocumentKind

_TYPES: Mapping[bytes, DocumentKind] = {
    b"application/vnd.oasis.opendocument.text": "odt",
    b"application/vnd.oasis.opendocument.text-template": "odt",
    b"application/vnd.oasis.opendocument.presentation": "odp",
    b"application/vnd.oasis.opendocument.spreadsheet": "ods",
}
_LEFT_OUT = frozenset({"tracked-changes", "annotation", "notes", "settings", "forms"})
_MOST_BLANKS = 100


def open_document_kind(contents: ZipContents) -> DocumentKind | None:
    """The kind that the file declares; None if it is no OpenDocument. Raises ReadingFailed if it is
    encrypted."""
    kind = _TYPES.get(contents.read("mimetype").strip())
    if kind is not None and b"encryption-data" in contents.read("META-INF/manifest.xml"):
        raise ReadingFailed("encrypted")
    return kind


def open_document_title(contents: ZipContents) -> str:
    """The title in the file's properties."""
    return text_of(contents.read("meta.xml"), "title")


def open_document_texts(contents: ZipContents) -> list[str]:
    """The text of the whole document, or of each slide or sheet. Raises ReadingFailed."""
    reader = _Reader()
    content = contents.read("content.xml")
    if not content:
        raise ReadingFailed("document_damaged")
    parse(content, reader.on_start, reader.on_end, reader.on_text)
    return ["".join(words) for words in reader.parts if words]


class _Reader:
    def __init__(self) -> None:
        self.parts: list[list[str]] = [[]]
        self._chars = 0
        self._paragraphs = 0
        self._left_out = 0
        self._cells = 0

    def on_start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name in _LEFT_OUT:
            self._left_out += 1
        elif name == "page" or (name == "table" and not self._paragraphs and self._is_sheet(attributes)):
            self.parts.append([])
        elif name in ("p", "h"):
            self._paragraphs += 1
        elif name == "table-cell":
            self._cells += 1
        elif name == "tab":
            self._add("\t")
        elif name == "line-break":
            self._add("\n")
        elif name == "s":
            count = attributes.get("c", "1")
            self._add(" " * min(int(count) if count.isascii() and count.isdigit() else 1, _MOST_BLANKS))

    def on_end(self, name: str) -> None:
        if name in _LEFT_OUT:
            self._left_out -= 1
        elif name in ("p", "h"):
            self._paragraphs -= 1
            self._add(" " if self._cells else "\n\n")
        elif name == "table-cell":
            self._cells -= 1
            self._add("\t")
        elif name in ("table-row", "table"):
            self._add("\n")

    def on_text(self, text: str) -> None:
        if self._paragraphs:
            self._add(text)

    def _is_sheet(self, attributes: Mapping[str, str]) -> bool:
        return not self._cells and "name" in attributes and len(self.parts) < 1_000

    def _add(self, text: str) -> None:
        if self._left_out:
            return
        self.parts[-1].append(text)
        self._chars += len(text)
        if self._chars > MAX_TEXT_CHARS:
            raise EnoughRead
