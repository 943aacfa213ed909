"""Read a feed, RSS or Atom, without entities: its entries by identity."""

from __future__ import annotations

import re
from typing import Final
from xml.etree import ElementTree

from pipeline.domain.errors import InvalidInput
from pipeline.domain.frozen import dataclass

MAX_ENTRIES: Final = 200
_CHARS = 300
_DECLARED = re.compile(rb"<!\s*(?:DOCTYPE|ENTITY)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedEntry:
    """One entry."""

    id: str
    """Its own, or else its link or title."""
    title: str
    link: str


def read_feed(data: bytes) -> tuple[FeedEntry, ...]:
    """The first entries of a feed, as it lists them. Raises InvalidInput for what is no feed, and for one
    that declares a document type, with which a small text can grow without end."""
    if _DECLARED.search(data[:4_096]):
        raise InvalidInput("watch: this feed declares a document type, which is not read")
    try:
        root = ElementTree.fromstring(data)  # noqa: S314 - without a document type there are no entities
    except (ElementTree.ParseError, ValueError, LookupError):
        raise InvalidInput("watch: there is no feed at this address") from None
    if _name(root) not in ("rss", "feed", "RDF"):
        raise InvalidInput("watch: there is no feed at this address")
    found = [_entry(one) for one in root.iter() if _name(one) in ("item", "entry")]
    return tuple(one for one in found[:MAX_ENTRIES] if one.id)


def _entry(element: ElementTree.Element) -> FeedEntry:
    texts: dict[str, str] = {}
    for child in element:
        name = _name(child)
        value = (child.text or "").strip()
        if name == "link" and not value:
            value = child.get("href", "") if child.get("rel", "alternate") == "alternate" else ""
        if value and name not in texts:
            texts[name] = " ".join(value.split())[:_CHARS]
    title, link = texts.get("title", ""), texts.get("link", "")
    return FeedEntry(id=texts.get("guid") or texts.get("id") or link or title, title=title, link=link)


def _name(element: ElementTree.Element) -> str:
    """The name without its namespace."""
    return str(element.tag).rpartition("}")[2]
