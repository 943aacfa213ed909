"""The text of a presentation (.pptx), slide by slide. Runs in the reading process only.

Pictures, notes, animations and whatever the presentation refers to are not read.
"""

from __future__ import annotations

from collections.abc import Mapping

from gateway.reading.limits import MAX_PAGE_CHARS
from gateway.reading.office_package import relations_of
from gateway.reading.office_text import OfficeText
from gateway.reading.xml_events import parse
from gateway.reading.zip_contents import ZipContents


def slide_texts(contents: ZipContents, part: str, *, most: int) -> tuple[list[str], int]:
    """The texts of the first `most` slides, in the order in which they are shown, and how many slides there
    are. Raises ReadingFailed."""
    order: list[str] = []

    def on_start(name: str, attributes: Mapping[str, str]) -> None:
        if name == "sldId":
            order.append(attributes.get("r:id", ""))

    parse(contents.read(part), on_start, lambda _: None, lambda _: None)
    related = relations_of(contents, part)
    slides = [related[key].part for key in order if key in related and related[key].kind == "slide"]
    return [_text(contents.read(name)) for name in slides[:most]], len(slides)


def _text(content: bytes) -> str:
    found = OfficeText(most_chars=MAX_PAGE_CHARS, between="\n")
    found.read(content)
    return found.text
