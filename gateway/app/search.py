"""Build the web search that the settings name, and examine it for `parlour doctor`."""

from __future__ import annotations

from urllib.parse import urlsplit

from gateway.config import Settings
from pipeline.domain.clock import Clock
from pipeline.redaction.redactor import Redactor
from pipeline.tools.search_backends import BRAVE_URL, Brave, SearchBackend, Searxng
from pipeline.tools.search_keyless import Keyless
from pipeline.tools.search_library import is_installed
from pipeline.tools.tool import ToolFailed
from pipeline.tools.web_client import GuardedWeb
from pipeline.tools.web_search import WebSearch

_TRIED = "weather"
_PORTS = {"http": 80, "https": 443}


def build_search(
    settings: Settings, *, web: GuardedWeb, clock: Clock, redactor: Redactor
) -> WebSearch | None:
    """The web search; None where it is off. `web` serves the backend without an address of the operator's."""
    backend = _backend(settings, web, clock)
    if backend is None:
        return None
    return WebSearch(backend, clock, per_hour=settings.tools.search.per_hour, redactor=redactor)


async def search_state(settings: Settings, clock: Clock, redactor: Redactor) -> tuple[bool, str]:
    """Whether all is well with the web search, and its state in words. Makes one search if it can."""
    wanted = settings.tools.search.backend
    search = build_search(settings, web=GuardedWeb(clock), clock=clock, redactor=redactor)
    if search is None:
        if wanted != "auto" or not is_enabled(settings):
            return True, "switched off"
        return True, "not set up, and nothing else needs it; to have it, `pip install 'parlour[search]'`"
    if problem := await search.problem():
        words = f"off, and not offered to the model, as the search engine cannot be reached: {problem}"
        return wanted == "auto", words
    try:
        hits = await search.found(_TRIED, 1)
    except ToolFailed as error:
        return False, str(error)
    return bool(hits), f"{search.label} found {'a page' if hits else 'nothing'}"


def is_enabled(settings: Settings) -> bool:
    """Whether the settings let the assistant use the web."""
    return settings.tools.enabled and "web" in settings.tools.groups


def _backend(settings: Settings, web: GuardedWeb, clock: Clock) -> SearchBackend | None:
    search = settings.tools.search
    if not is_enabled(settings):
        return None
    match search.backend:
        case "searxng" if search.url:
            return Searxng(_own_server(clock, search.url), search.url)
        case "brave" if search.api_key is not None:
            own = _own_server(clock, search.url) if search.url else web
            return Brave(own, search.api_key.resolve, search.url or BRAVE_URL)
        case "ddgs":
            return Keyless(web, clock)
        case "auto" if is_installed():
            return Keyless(web, clock)
        case _:
            return None


def _own_server(clock: Clock, url: str) -> GuardedWeb:
    """A client for the server that the operator names, which may be in a private network; no other port."""
    address = urlsplit(url)
    port = address.port or _PORTS[address.scheme]
    return GuardedWeb(clock, refused=lambda _address: "", ports=(port,))
