"""Decode a fetched page, which is untrusted, and read its title, text and links."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable

from pipeline.tools.html_text import ReadPage, read_html, visible
from pipeline.tools.web_client import WebPage

_DECLARED = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_:.-]{1,40})", re.IGNORECASE)
_NAMES_ALONE = frozenset({"punycode", "idna"})
"""Codecs of host names: a page of 2 MB would keep them busy for minutes."""
_HTML = ("text/html", "application/xhtml+xml")


def read_page(page: WebPage, monotonic: Callable[[], float]) -> ReadPage:
    """The page as text. Takes up to some seconds of processor time: call it in a separate thread."""
    text = _decoded(page)
    if page.media_type not in _HTML:
        return ReadPage(text=visible(text).strip(), cut=page.cut)
    return read_html(text, monotonic, base=page.url, cut=page.cut)


def _decoded(page: WebPage) -> str:
    """Decode by the byte-order mark, the server's charset, the page's own charset, or else as UTF-8."""
    declared = _DECLARED.search(page.body[:4_096])
    named = "utf-8-sig" if page.body.startswith(codecs.BOM_UTF8) else page.charset
    for name in (named, declared.group(1).decode("ascii") if declared else "", "utf-8"):
        try:
            if name and codecs.lookup(name).name not in _NAMES_ALONE:
                return page.body.decode(name, "replace")
        except (LookupError, ValueError):
            continue
    return page.body.decode("utf-8", "replace")
