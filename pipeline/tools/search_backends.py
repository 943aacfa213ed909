"""Search engines with an address: SearXNG and Brave; and the type of every search engine.

What an engine returns is untrusted; `web_search` cleans and shortens it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import urlencode

from pipeline.domain.frozen import dataclass
from pipeline.tools.web_client import GuardedWeb, WebFailed, WebPage

BRAVE_URL = "https://api.search.brave.com/res/v1/web/search"


class SearchFailed(Exception):
    """The search engine gave no result list; the text gives the reason in one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One result, as the engine wrote it."""

    title: str
    url: str
    excerpt: str


class SearchBackend(Protocol):
    """A search engine."""

    @property
    def label(self) -> str:
        """Its name for people."""
        ...

    async def problem(self) -> str:
        """Why no connection to it can be made now; empty if one can. Sends no query."""
        ...

    async def search(self, query: str, count: int) -> Sequence[Hit]:
        """At most `count` results, the best one first. Raises SearchFailed."""
        ...


class Searxng:
    """Implements SearchBackend for a SearXNG server, whose `formats` must have `json`."""

    def __init__(self, web: GuardedWeb, url: str) -> None:
        self._web = web
        self._url = f"{url.rstrip('/')}/search"

    @property
    def label(self) -> str:
        return "SearXNG"

    async def problem(self) -> str:
        """See `SearchBackend.problem`."""
        return await self._web.reach(self._url)

    async def search(self, query: str, count: int) -> Sequence[Hit]:
        """See `SearchBackend.search`."""
        page = await _got(
            self._web, f"{self._url}?{urlencode({'q': query, 'format': 'json'})}", {}, self.label
        )
        if page.status == 403:
            raise SearchFailed("SearXNG refuses JSON: its settings.yml needs json in search.formats.")
        return _hits(_json(page, self.label).get("results"), "content", self.label)[:count]


class Brave:
    """Implements SearchBackend for Brave's API. `key` returns the current key; it may raise an error whose
    text is for people."""

    def __init__(self, web: GuardedWeb, key: Callable[[], str], url: str = BRAVE_URL) -> None:
        self._web = web
        self._key = key
        self._url = url

    @property
    def label(self) -> str:
        return "Brave"

    async def problem(self) -> str:
        """See `SearchBackend.problem`."""
        return await self._web.reach(self._url)

    async def search(self, query: str, count: int) -> Sequence[Hit]:
        """See `SearchBackend.search`."""
        headers = {"X-Subscription-Token": self._key(), "Accept": "application/json"}
        address = f"{self._url}?{urlencode({'q': query, 'count': count, 'text_decorations': 0})}"
        page = await _got(self._web, address, headers, self.label)
        if page.status in (401, 403, 422):
            raise SearchFailed("Brave refuses the key of tools.search.api_key.")
        found = _json(page, self.label).get("web")
        results = found.get("results") if isinstance(found, Mapping) else []
        return _hits(results, "description", self.label)[:count]


async def _got(web: GuardedWeb, url: str, headers: Mapping[str, str], label: str) -> WebPage:
    try:
        # No redirect: neither the query nor a key is sent to another server.
        return await web.get(url, headers=headers, redirects=0)
    except WebFailed as error:
        raise SearchFailed(f"{label} cannot be asked: {error}") from None


def _json(page: WebPage, label: str) -> Mapping[str, Any]:
    if page.status == 429:
        raise SearchFailed(f"{label} limits the number of searches now. Try again later.")
    if page.status >= 400:
        raise SearchFailed(f"{label} answers with status {page.status}.")
    try:
        found = json.loads(page.body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, Mapping):
        raise SearchFailed(f"{label} returned no list of results.")
    return found


def _hits(results: Any, excerpt: str, label: str) -> list[Hit]:
    if not isinstance(results, list):
        raise SearchFailed(f"{label} returned no list of results.")
    return [
        Hit(title=_text(one, "title"), url=_text(one, "url"), excerpt=_text(one, excerpt))
        for one in results
        if isinstance(one, Mapping)
    ]


def _text(one: Mapping[str, Any], key: str) -> str:
    value = one.get(key)
    return value if isinstance(value, str) else ""
