"""The tool `search_web` of the group `web`: results of a search engine as foreign text, limited per person.

A search runs without approval: its words go to the operator's search engine alone, not to an address that a
text could choose.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.domain.chat import ToolDefinition
from pipeline.domain.clock import Clock
from pipeline.domain.errors import ParlourError
from pipeline.domain.ids import identity_key
from pipeline.domain.rates import SlidingWindow
from pipeline.domain.visible import visible_text
from pipeline.redaction.redactor import Redactor
from pipeline.runtime.scope import TurnScope
from pipeline.tools.search_backends import Hit, SearchBackend, SearchFailed
from pipeline.tools.tool import Tool, ToolFailed, ToolOutput, tool_schema
from pipeline.tools.web_addresses import BadUrl, read_url

FOREIGN = "results of a web search"
MAX_QUERY_CHARS = 200
MAX_RESULTS = 10
_USUAL_RESULTS = 5
_TITLE_CHARS = 120
_EXCERPT_CHARS = 250
_URL_CHARS = 300
"""A longer address is left out with its result: a cut one would lead elsewhere."""
_REACHABLE_S = 300.0
_UNREACHABLE_S = 60.0
_HOUR_S = 3_600.0
_MOST_PEOPLE = 1_000
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,200}>")
_SEARCH = ToolDefinition(
    name="search_web",
    description="Search the web. Returns titles, addresses and excerpts; read a page with fetch_page.",
    parameters=tool_schema(
        {
            "query": {
                "type": "string",
                "description": "What to search for, in a few words.",
                "maxLength": MAX_QUERY_CHARS,
            }
        },
        {"count": {"type": "integer", "description": f"How many results, 1 to {MAX_RESULTS}."}},
    ),
)


class WebSearch:
    """Searches for every agent. `per_hour` limits one person's searches; 0 sets no limit."""

    def __init__(
        self, backend: SearchBackend, clock: Clock, *, per_hour: int, redactor: Redactor | None = None
    ) -> None:
        self._backend = backend
        self._clock = clock
        self._per_hour = per_hour
        self._redactor = redactor or Redactor()
        self._recent: dict[str, SlidingWindow] = {}
        self._problem = ""
        self._known_until = float("-inf")
        self._tool = Tool(definition=_SEARCH, group="web", run=self._run, reads_only=True)

    @property
    def label(self) -> str:
        """The search engine's name for people."""
        return self._backend.label

    async def offered(self) -> tuple[Tool, ...]:
        """The tool; nothing while the search engine cannot be reached."""
        return () if await self.problem() else (self._tool,)

    async def problem(self) -> str:
        """Why the search engine cannot be reached; empty if it can. Known for some minutes without a new
        attempt."""
        now = self._clock.monotonic()
        if now >= self._known_until:
            self._problem = await self._backend.problem()
            self._known_until = now + (_UNREACHABLE_S if self._problem else _REACHABLE_S)
        return self._problem

    async def found(self, query: str, count: int) -> Sequence[Hit]:
        """The usable results, cleaned and shortened. Raises ToolFailed with one readable line."""
        try:
            hits = await self._backend.search(self._redactor.line(query, MAX_QUERY_CHARS), count)
        except (SearchFailed, ParlourError) as error:
            # Of the second kind is a key that cannot be read; its text names the reference.
            raise ToolFailed(f"The web was not searched. {error}") from None
        return [shown for hit in hits if (shown := self._shown(hit)) is not None][:count]

    async def _run(self, arguments: Mapping[str, Any], scope: TurnScope) -> ToolOutput:
        query = " ".join(str(arguments["query"]).split())
        if not query:
            raise ToolFailed("There is nothing to search for: the query is empty.")
        count = min(MAX_RESULTS, max(1, int(arguments.get("count", _USUAL_RESULTS))))
        if not self._has_room(scope):
            raise ToolFailed(
                f"The web was not searched: one person may search {self._per_hour} times an hour."
            )
        hits = await self.found(query, count)
        if not hits:
            # A refusal of an engine may look like an empty list.
            return ToolOutput(text="The search engine returned no results.", success=False)
        lines = [f"{len(hits)} results from {self._backend.label}:"]
        lines += [
            f"{number}. {hit.title}\n   {hit.url}\n   {hit.excerpt}".rstrip()
            for number, hit in enumerate(hits, 1)
        ]
        return ToolOutput(text="\n".join(lines), foreign=FOREIGN)

    def _shown(self, hit: Hit) -> Hit | None:
        """The result in single lines of bounded length, or None if its address cannot be used."""
        try:
            url = read_url(hit.url.strip(), ports=range(1, 65_536)).url
        except BadUrl:
            return None
        if len(url) > _URL_CHARS:
            return None
        title = self._redactor.line(_plain(hit.title), _TITLE_CHARS) or url
        return Hit(title=title, url=url, excerpt=self._redactor.line(_plain(hit.excerpt), _EXCERPT_CHARS))

    def _has_room(self, scope: TurnScope) -> bool:
        """Whether the person may search now; the search counts."""
        if not self._per_hour:
            return True
        now, place = self._clock.monotonic(), scope.thread
        person = scope.person or identity_key(place.channel, place.account, scope.author.id)
        if len(self._recent) >= _MOST_PEOPLE:
            self._recent = {key: times for key, times in self._recent.items() if not times.is_empty(now)}
        times = self._recent.setdefault(person, SlidingWindow(self._per_hour, _HOUR_S))
        if times.wait_s(now) > 0:
            return False
        times.add(now)
        return True


def _plain(text: str) -> str:
    """A title or excerpt without marks of HTML and characters that are not seen."""
    return " ".join(visible_text(html.unescape(_TAG.sub("", text[:5_000]))).split())
