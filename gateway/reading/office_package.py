"""The parts of an Office file (.docx, .pptx, .xlsx) and how they refer to each other. Runs in the reading
process only. References to anything outside of the file are dropped."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from gateway.reading.xml_events import parse, text_of
from gateway.reading.zip_contents import ZipContents
from pipeline.domain.frozen import dataclass

_MACROS = "vbaproject.bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """A reference from one part of the file to another."""

    kind: str
    """The last word of its type, such as `slide`."""
    part: str
    """The name of the other part."""


def main_part(contents: ZipContents) -> str:
    """The name of the part with the document; empty if the file is no Office file. Raises ReadingFailed."""
    related = relations_of(contents, "")
    return next((one.part for one in related.values() if one.kind == "officeDocument"), "")


def relations_of(contents: ZipContents, part: str) -> Mapping[str, Relation]:
    """What `part` refers to within the file, by id; for an empty name, what the file starts with."""
    folder, name = posixpath.split(part)
    found: dict[str, Relation] = {}

    def on_start(element: str, attributes: Mapping[str, str]) -> None:
        if element != "Relationship" or attributes.get("TargetMode") == "External":
            return
        target = attributes.get("Target", "")
        inside = target.lstrip("/") if target.startswith("/") else posixpath.join(folder, target)
        found[attributes.get("Id", "")] = Relation(
            kind=attributes.get("Type", "").rpartition("/")[2], part=posixpath.normpath(inside)
        )

    content = contents.read(posixpath.join(folder, "_rels", f"{name}.rels"))
    if content:
        parse(content, on_start, lambda _: None, lambda _: None)
    return found


def title_of(contents: ZipContents) -> str:
    """The title in the file's properties."""
    return text_of(contents.read("docProps/core.xml"), "title")


def has_macros(contents: ZipContents) -> bool:
    """Whether the file contains programs; they are never read."""
    return any(name.lower().endswith(_MACROS) for name in contents.names)
