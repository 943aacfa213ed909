"""Render finished answers as HTML, once per answer, and cache them for all pages.

Not the renderer: see adapters.formatting.html. An answer that it cannot render
has no HTML here, and the page shows its Markdown.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable

from adapters.formatting.html import render_html

_log = logging.getLogger(__name__)
_KEPT_CHARS = 4_000_000


class HtmlCache:
    """Markdown to HTML, with an LRU cache of `kept_chars` characters."""

    def __init__(self, render: Callable[[str], str] = render_html, *, kept_chars: int = _KEPT_CHARS) -> None:
        self._render = render
        self._kept_chars = kept_chars
        self._chars = 0
        self._html: OrderedDict[str, str] = OrderedDict()

    def html_of(self, markdown: str) -> str:
        """The HTML of one finished answer; empty for an empty one and for one that cannot be rendered."""
        kept = self._html.get(markdown)
        if kept is not None:
            self._html.move_to_end(markdown)
            return kept
        html = self._rendered(markdown)
        self._html[markdown] = html
        self._chars += len(markdown) + len(html)
        while self._chars > self._kept_chars:
            oldest, its_html = self._html.popitem(last=False)
            self._chars -= len(oldest) + len(its_html)
        return html

    def _rendered(self, markdown: str) -> str:
        if not markdown:
            return ""
        try:
            return self._render(markdown)
        except Exception as error:  # noqa: BLE001 - one answer that cannot be rendered must not close the chat
            _log.error("web: an answer could not be rendered: %s", type(error).__name__)
            return ""
