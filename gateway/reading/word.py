"""The text of a Word document (.docx). Runs in the reading process only.

Read are its paragraphs, tables, foot- and endnotes. Not read: deleted text, field codes, comments, macros,
and whatever the document refers to.
"""

from __future__ import annotations

from gateway.reading.limits import MAX_TEXT_CHARS
from gateway.reading.office_package import relations_of
from gateway.reading.office_text import OfficeText
from gateway.reading.zip_contents import ZipContents

_NOTES = ("footnotes", "endnotes")


def word_text(contents: ZipContents, part: str) -> str:
    """The text of the document in `part`, with a blank line between paragraphs. Raises ReadingFailed."""
    notes = [one.part for one in relations_of(contents, part).values() if one.kind in _NOTES]
    found = OfficeText(most_chars=MAX_TEXT_CHARS, between="\n\n")
    for name in (part, *notes):
        found.read(contents.read(name))
    return found.text
