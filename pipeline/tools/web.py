"""The tool group `web`: one page of the public internet as text, and a search if there is a search engine.

The address of a request can send data to others, so each page needs approval.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from pipeline.domain.chat import ToolDefinition
from pipeline.domain.clock import Clock
from pipeline.redaction.redactor import Redactor
from pipeline.runtime.scope import TurnScope
from pipeline.tools.html_text import ReadPage
from pipeline.tools.tool import Tool, ToolFailed, ToolOutput, tool_schema
from pipeline.tools.web_addresses import MAX_URL_CHARS
from pipeline.tools.web_client import GuardedWeb, WebFailed, WebPage
from pipeline.tools.web_search import WebSearch
from pipeline.tools.web_text import read_page

MAX_TEXT_CHARS = 5_000
_TITLE_CHARS = 300
_LINK_CHARS = 80
_SHOWN_URL_CHARS = 180
_FETCH = ToolDefinition(
    name="fetch_page",
    description="Read one page of the public web, given its full address, as plain text.",
    parameters=tool_schema(
        {
            "url": {
                "type": "string",
                "description": "The address, beginning with https:// or http://.",
                "maxLength": MAX_URL_CHARS,
            }
        }
    ),
)


class WebGroup:
    """Implements ToolGroup. `search` is None without a search engine."""

    name = "web"

    def __init__(
        self,
        web: GuardedWeb,
        clock: Clock,
        redactor: Redactor | None = None,
        *,
        search: WebSearch | None = None,
    ) -> None:
        self._web = web
        self._search = search
        self._redactor = redactor or Redactor()
        self._clock = clock
        self._fetch = Tool(definition=_FETCH, group=self.name, run=self._run, describe=_describe)

    @property
    def description(self) -> str:
        return "search the web and read its pages" if self._search else "read pages of the public web"

    async def tools(self, _scope: TurnScope) -> tuple[Tool, ...]:
        """Fetching a page, and searching while the search engine can be reached."""
        found = await self._search.offered() if self._search else ()
        return (self._fetch, *found)

    async def close(self) -> None:
        """Do nothing: each page has its own connection, which is closed with it."""

    async def _run(self, arguments: Mapping[str, Any], scope: TurnScope) -> ToolOutput:
        try:
            page = await self._web.get(str(arguments["url"]), may_reach=scope.reading.takes)
        except WebFailed as error:
            raise ToolFailed(str(error)) from None
        read = await asyncio.to_thread(read_page, page, self._clock.monotonic)
        return ToolOutput(text=self._shown(page, read), success=page.status < 400, foreign="a web page")

    def _shown(self, page: WebPage, read: ReadPage) -> str:
        """The page in at most `MAX_TEXT_CHARS`, each part without secrets before it is cut."""
        head = [f"Address: {page.url}"]
        if page.status >= 400:
            head.append(f"The server answers with status {page.status}.")
        if title := self._redactor.line(read.title, _TITLE_CHARS):
            head.append(f"Title: {title}")
        lines = "\n".join(head)
        room = MAX_TEXT_CHARS - len(lines) - 2
        found = self._redactor.excerpt(read.text, room, is_cut=read.cut)
        if not found.whole:
            note = "\n[The rest of the page is left out.]"
            return f"{lines}\n\n{found.text[: room - len(note)].rstrip()}{note}"
        text, links = found.text or "(The page has no text.)", ""
        for words, url in read.links:
            line = f"\n- {self._redactor.line(words, _LINK_CHARS)}: {url}"
            if len(text) + len(links) + len(line) + 8 <= room:
                links += line
        return f"{lines}\n\n{text}" + (f"\n\nLinks:{links}" if links else "")


def _describe(arguments: Mapping[str, Any]) -> str:
    """The approval line: it shows how much data the address sends, and to which host."""
    url = " ".join(str(arguments.get("url", "")).split())
    if len(url) <= _SHOWN_URL_CHARS:
        return f"read {url}"
    return f"read {url[:_SHOWN_URL_CHARS]}… ({len(url)} characters)"
