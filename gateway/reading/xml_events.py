"""Parse XML of strangers, one element after the other. Runs in the reading process only.

A document type is refused, so there are no entities to expand and nothing outside to open. No tree is
built; the nesting is limited.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from xml.parsers import expat

from gateway.reading.failures import ReadingFailed

_DEEPEST = 200
_CHUNK = 65_536
_REFERENCE = "/relationships}id"

OnStart = Callable[[str, Mapping[str, str]], None]
OnEnd = Callable[[str], None]
OnText = Callable[[str], None]


class EnoughRead(Exception):
    """A handler has what it wants; the rest is not parsed."""


def parse(content: bytes, on_start: OnStart, on_end: OnEnd, on_text: OnText) -> None:
    """Call the handlers with the local names of elements and attributes, in order. Raises ReadingFailed.

    An Office file's reference to another part is the attribute `r:id`.

    A handler may raise EnoughRead to end the parsing.
    """
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True
    depth = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEEPEST:
            raise ReadingFailed("document_damaged")
        on_start(_local(name), {_attribute(key): value for key, value in attributes.items()})

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        on_end(_local(name))

    def refuse(*_: object) -> None:
        raise ReadingFailed("document_damaged")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = on_text
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    try:
        for at in range(0, len(content), _CHUNK):
            parser.Parse(content[at : at + _CHUNK])
        parser.Parse(b"", True)  # noqa: FBT003 - the library takes it by position only
    except EnoughRead:
        return
    except (expat.ExpatError, ValueError, LookupError, OSError) as error:
        raise ReadingFailed("document_damaged") from error


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _attribute(name: str) -> str:
    """The local name, but `r:id` for a reference to another part, which an element has besides an `id`."""
    return "r:id" if name.endswith(_REFERENCE) else _local(name)


def text_of(content: bytes, element: str) -> str:
    """The text of the first element of that local name; empty without one, or if the XML is broken."""
    found: list[str] = []
    inside = False

    def on_start(name: str, _: Mapping[str, str]) -> None:
        nonlocal inside
        inside = inside or name == element

    def on_end(name: str) -> None:
        if inside and name == element:
            raise EnoughRead

    def on_text(text: str) -> None:
        if inside:
            found.append(text)

    try:
        parse(content, on_start, on_end, on_text)
    except ReadingFailed:
        return ""
    return " ".join("".join(found).split())
