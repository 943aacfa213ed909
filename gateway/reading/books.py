"""The text of an e-book (.epub), chapter by chapter. Runs in the reading process only."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from urllib.parse import unquote

from gateway.reading.failures import ReadingFailed
from gateway.reading.limits import MAX_TEXT_CHARS
from gateway.reading.plain_text import decoded
from gateway.reading.time_budget import is_late, processor_seconds
from gateway.reading.xml_events import parse, text_of
from gateway.reading.zip_contents import ZipContents
from pipeline.tools.html_text import read_html

_MIME = b"application/epub+zip"
_MOST_CHAPTERS = 2_000
_FONTS_ALONE = (b"http://www.idpf.org/2008/embedding", b"http://ns.adobe.com/pdf/enc#RC")
"""The methods that scramble the fonts of a book whose text is readable."""


def is_book(contents: ZipContents) -> bool:
    """Whether the file declares to be an e-book."""
    return contents.read("mimetype").strip() == _MIME


def read_book(contents: ZipContents, *, allowed_s: float) -> tuple[str, str, bool]:
    """The title, the text, and whether its end is missing. Reading may take `allowed_s` seconds. Raises
    ReadingFailed."""
    locks = contents.read("META-INF/encryption.xml")
    if b"EncryptedData" in locks and not any(way in locks for way in _FONTS_ALONE):
        raise ReadingFailed("encrypted")
    package = _package(contents)
    description = contents.read(package)
    if not description:
        raise ReadingFailed("document_damaged")
    texts: list[str] = []
    left, cut = MAX_TEXT_CHARS, False
    for name in _chapters(description, posixpath.dirname(package)):
        cut = left <= 0 or is_late(allowed_s)
        if cut:
            break
        page = read_html(decoded(contents.read(name)) or "", processor_seconds)
        texts.append(page.text)
        left -= len(page.text)
    return text_of(description, "title"), "\n\n".join(texts), cut


def _package(contents: ZipContents) -> str:
    """The name of the part that lists the chapters."""
    found: list[str] = []

    def on_start(name: str, attributes: Mapping[str, str]) -> None:
        if name == "rootfile":
            found.append(attributes.get("full-path", ""))

    content = contents.read("META-INF/container.xml")
    if content:
        parse(content, on_start, _ignore, _ignore)
    return found[0] if found else ""


def _chapters(description: bytes, folder: str) -> list[str]:
    """The names of the chapters, in their order."""
    files: dict[str, str] = {}
    order: list[str] = []

    def on_start(name: str, attributes: Mapping[str, str]) -> None:
        if name == "item":
            files[attributes.get("id", "")] = attributes.get("href", "")
        elif name == "itemref" and len(order) < _MOST_CHAPTERS:
            order.append(attributes.get("idref", ""))

    parse(description, on_start, _ignore, _ignore)
    names = [posixpath.normpath(posixpath.join(folder, unquote(files[key]))) for key in order if key in files]
    return list(dict.fromkeys(names))  # a chapter that is listed often is read once


def _ignore(_: str) -> None:
    """An end or a text of no interest."""
