"""Recognise a document by its content and read its text. Runs in the reading process only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice

from gateway.reading import pdf, plain_text
from gateway.reading.books import is_book, read_book
from gateway.reading.failures import ReadingFailed
from gateway.reading.limits import MAX_PAGE_CHARS, MAX_TEXT_CHARS, ReadingLimits
from gateway.reading.office_package import has_macros, main_part, title_of
from gateway.reading.open_document import open_document_kind, open_document_texts, open_document_title
from gateway.reading.plain_text import (
    decoded,
    delimiter_of,
    is_html,
    laid_out,
    one_line,
    pieces,
    table_pieces,
    tidy,
)
from gateway.reading.protocol import Extracted
from gateway.reading.rich_text import is_rich_text, rich_text
from gateway.reading.sheets import read_sheets
from gateway.reading.signatures import ARCHIVES, OLE, ZIP, is_heic, is_pdf, picture_format
from gateway.reading.slides import slide_texts
from gateway.reading.time_budget import processor_seconds
from gateway.reading.word import word_text
from gateway.reading.zip_contents import ZipContents
from pipeline.domain.readings import DocumentKind
from pipeline.tools.html_text import read_html

_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
"""The stream of an old container that holds a new Office file with a password."""


def prepare() -> None:
    """Load everything that a document can need: afterwards no file can be opened."""
    plain_text.prepare()
    pdf.prepare()
    read_html("<title>Trial</title><p>A trial.", processor_seconds)


def read_document(content: bytes, *, name: str, mime: str, limits: ReadingLimits) -> Extracted:
    """See `pipeline.domain.readings.FileReader.document`. Raises ReadingFailed, MemoryError."""
    if is_pdf(content):
        return pdf.read_pdf(content, limits)
    if content.startswith(ZIP):
        return _packed(ZipContents(content), limits)
    if content.startswith(OLE):
        raise ReadingFailed("encrypted" if _ENCRYPTED in content else "old_office")
    if content.startswith(ARCHIVES):
        raise ReadingFailed("archive")
    if picture_format(content) is not None or is_heic(content):
        raise ReadingFailed("picture_as_document")
    if is_rich_text(content):
        return _in_pieces("rtf", rich_text(content), limits)
    text = decoded(content)
    if text is None:
        raise ReadingFailed("no_document")
    return _plain(text, name, mime, limits)


def _packed(contents: ZipContents, limits: ReadingLimits) -> Extracted:
    part = main_part(contents)
    if part.startswith("word/"):
        extracted = _in_pieces("docx", word_text(contents, part), limits, title=title_of(contents))
    elif part.startswith("ppt/"):
        extracted = _presentation(contents, part, limits)
    elif part.startswith("xl/"):
        extracted = _workbook(contents, part, limits)
    elif is_book(contents):
        title, text, cut = read_book(contents, allowed_s=limits.seconds)
        extracted = _in_pieces("epub", text, limits, title=title, cut=cut)
    elif (kind := open_document_kind(contents)) is not None:
        extracted = _open_document(kind, contents, limits)
    else:
        raise ReadingFailed("archive")
    return replace(extracted, macros=has_macros(contents))


def _presentation(contents: ZipContents, part: str, limits: ReadingLimits) -> Extracted:
    slides, count = slide_texts(contents, part, most=limits.max_pages)
    extracted = _in_pages("pptx", slides, limits, title=title_of(contents))
    return replace(extracted, cut=extracted.cut or count > len(slides), all_pages=_if_more(count, slides))


def _workbook(contents: ZipContents, part: str, limits: ReadingLimits) -> Extracted:
    sheets, cut = read_sheets(contents, part)
    texts = [(f"Sheet: {one_line(sheet.name)}", laid_out(sheet.text)) for sheet in sheets]
    found = (f"{heading}\n{piece}".rstrip() for heading, text in texts for piece in table_pieces(text))
    extracted = _checked("xlsx", found, limits, title=title_of(contents), cut=cut)
    return replace(extracted, hidden=sum(sheet.hidden for sheet in sheets))


def _open_document(kind: DocumentKind, contents: ZipContents, limits: ReadingLimits) -> Extracted:
    texts, title = open_document_texts(contents), open_document_title(contents)
    if kind == "odt":
        return _in_pieces(kind, "\n\n".join(texts), limits, title=title)
    if kind == "odp":
        return _in_pages(kind, texts, limits, title=title)
    found = (piece for text in texts for piece in table_pieces(laid_out(text)))
    return _checked(kind, found, limits, title=title)


def _in_pages(kind: DocumentKind, texts: list[str], limits: ReadingLimits, *, title: str) -> Extracted:
    cut = any(len(text) > MAX_PAGE_CHARS for text in texts[: limits.max_pages])
    pages = (laid_out(text[:MAX_PAGE_CHARS]) for text in texts)
    extracted = _checked(kind, pages, limits, title=title, cut=cut)
    return replace(extracted, all_pages=_if_more(len(texts), extracted.pages))


def _if_more(count: int, pages: Sequence[str]) -> int:
    return count if count > len(pages) else 0


def _plain(text: str, name: str, mime: str, limits: ReadingLimits) -> Extracted:
    if is_html(text):
        page = read_html(text, processor_seconds)
        return _in_pieces("html", page.text, limits, title=page.title, cut=page.cut)
    cut = len(text) > MAX_TEXT_CHARS
    text = tidy(text[:MAX_TEXT_CHARS])
    if delimiter_of(text, name, mime):
        return _checked("csv", table_pieces(text), limits, cut=cut)
    return _checked("text", pieces(text), limits, cut=cut)


def _in_pieces(
    kind: DocumentKind, text: str, limits: ReadingLimits, *, title: str = "", cut: bool = False
) -> Extracted:
    cut = cut or len(text) > MAX_TEXT_CHARS
    return _checked(kind, pieces(laid_out(text[:MAX_TEXT_CHARS])), limits, title=title, cut=cut)


def _checked(
    kind: DocumentKind, found: Iterable[str], limits: ReadingLimits, *, title: str = "", cut: bool = False
) -> Extracted:
    """The document with at most as many pages as allowed."""
    pages = list(islice(found, limits.max_pages + 1))
    return Extracted(
        kind=kind,
        pages=pages[: limits.max_pages],
        title=one_line(title),
        cut=cut or len(pages) > limits.max_pages,
    )
