"""The text of a PDF's pages. Runs in the reading process only.

Nothing in the file is executed, and nothing that it refers to is opened: the library is built without
JavaScript and forms.
"""

from __future__ import annotations

import pypdfium2
import pypdfium2.raw as pdfium

from gateway.reading.failures import ReadingFailed
from gateway.reading.limits import MAX_PAGE_CHARS, MAX_TEXT_CHARS, ReadingLimits
from gateway.reading.plain_text import one_line, tidy
from gateway.reading.protocol import Extracted
from gateway.reading.time_budget import is_late

_LOCKED = (pdfium.FPDF_ERR_PASSWORD, pdfium.FPDF_ERR_SECURITY)
_HYPHEN = "\ufffe"
"""What the library writes for a hyphen at the end of a line, before the rest of the word."""


_TRIAL = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj "
    b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R"
    b"/Resources<</Font<</F 5 0 R>>>>>>endobj "
    b"4 0 obj<</Length 25>>stream\nBT /F 9 Tf (A trial) Tj ET\nendstream endobj "
    b"5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj trailer<</Root 1 0 R>>"
)


def prepare() -> None:
    """Load the library and its fonts."""
    read_pdf(_TRIAL, ReadingLimits())


def read_pdf(content: bytes, limits: ReadingLimits) -> Extracted:
    """The text of the first pages. Raises ReadingFailed."""
    try:
        document = pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError as error:
        locked = error.err_code in _LOCKED
        raise ReadingFailed("encrypted" if locked else "document_damaged") from error
    count = len(document)
    if not count:
        raise ReadingFailed("document_damaged")
    pages: list[str] = []
    left, pictures, broken, cut = MAX_TEXT_CHARS, 0, 0, False
    for index in range(min(count, limits.max_pages)):
        try:
            text, shows, whole = _page(document, index, min(left, MAX_PAGE_CHARS))
        except pypdfium2.PdfiumError:
            text, shows, whole = "", False, True
            broken += 1
        pages.append(text)
        left -= len(text)
        cut = cut or not whole
        pictures += shows and not text
        if left <= 0 or is_late(limits.seconds):
            break
    if broken == len(pages):
        raise ReadingFailed("document_damaged")
    return Extracted(
        kind="pdf",
        pages=pages,
        title=one_line(document.get_metadata_value("Title")),
        cut=cut or len(pages) < count,
        all_pages=count if len(pages) < count else 0,
        pictures=pictures,
    )


def _page(document: pypdfium2.PdfDocument, index: int, most: int) -> tuple[str, bool, bool]:
    """The first `most` characters of a page, whether it shows anything, and whether that is all its text."""
    page = document[index]
    try:
        words = page.get_textpage()
        try:
            count = max(0, words.count_chars())
            text = words.get_text_range(0, min(count, most)) if count else ""
        finally:
            words.close()
        return tidy(text.replace(_HYPHEN, "")), pdfium.FPDFPage_CountObjects(page) > 0, count <= most
    finally:
        page.close()
