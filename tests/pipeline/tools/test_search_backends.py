"""SearXNG and Brave: what they are asked, and every way in which they fail."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aiohttp import web

from pipeline.tools.search_backends import Brave, Hit, SearchFailed, Searxng
from tests.pipeline.tools.web_server import guarded, moved, says, serving

KEY = "brave-key-1"
FOUND = {
    "results": [{"title": "Tea", "url": "https://tea.example/", "content": "Leaves", "score": 1}, "odd", {}]
}
BRAVE_FOUND = {"web": {"results": [{"title": "Tea", "url": "https://tea.example/", "description": "Leaves"}]}}
HIT = Hit(title="Tea", url="https://tea.example/", excerpt="Leaves")


def _json(body: Any, status: int = 200) -> Any:
    return says(json.dumps(body), content_type="application/json", status=status)


async def test_searxng_is_asked_for_json_and_its_results_are_read() -> None:
    async with serving({"/sx/search": _json(FOUND)}) as site:
        engine = Searxng(guarded(site), site.url("/sx/"))
        hits = await engine.search("grüner tee & kuchen", 5)
        (request,) = site.requests

    assert dict(request.query) == {"q": "grüner tee & kuchen", "format": "json"}
    assert hits == [HIT, Hit(title="", url="", excerpt="")]


async def test_brave_gets_its_key_in_a_header_and_the_number_of_results() -> None:
    async with serving({"/brave": _json(BRAVE_FOUND)}) as site:
        engine = Brave(guarded(site), lambda: KEY, site.url("/brave"))
        hits = await engine.search("tea", 3)
        (request,) = site.requests

    assert request.headers["X-Subscription-Token"] == KEY
    assert (request.query["q"], request.query["count"]) == ("tea", "3")
    assert hits == [HIT]


async def test_brave_without_web_results_has_found_nothing() -> None:
    async with serving({"/": _json({"type": "search"})}) as site:
        assert await Brave(guarded(site), lambda: KEY, site.url()).search("tea", 3) == []


@pytest.mark.parametrize(
    ("page", "words"),
    [
        (_json({}, 403), "SearXNG refuses JSON: its settings.yml needs json in search.formats."),
        (_json({}, 429), "SearXNG limits the number of searches now. Try again later."),
        (_json({}, 500), "SearXNG answers with status 500."),
        (says("<html>"), "SearXNG returned no list of results."),
        (says("[" * 100_000), "SearXNG returned no list of results."),
        (_json(["x"]), "SearXNG returned no list of results."),
        (_json({"results": 3}), "SearXNG returned no list of results."),
        (moved("http://elsewhere.example/"), "SearXNG cannot be asked: The server redirects elsewhere."),
        (
            says(b"x", content_type="image/png"),
            "SearXNG cannot be asked: There is no text at this address, but image/png.",
        ),
    ],
)
async def test_a_failing_searxng_is_one_sentence(page: Any, words: str) -> None:
    async with serving({"/search": page}) as site:
        with pytest.raises(SearchFailed) as raised:
            await Searxng(guarded(site), site.url("")).search("tea", 5)

    assert str(raised.value) == words
    assert len(site.requests) == 1


@pytest.mark.parametrize("status", [401, 403, 422])
async def test_a_refused_key_of_brave_is_said_without_the_key(status: int) -> None:
    async with serving({"/": _json({"key": KEY}, status)}) as site:
        with pytest.raises(SearchFailed) as raised:
            await Brave(guarded(site), lambda: KEY, site.url()).search("tea", 5)

    assert str(raised.value) == "Brave refuses the key of tools.search.api_key."


async def test_a_key_is_sent_to_no_second_server() -> None:
    async with serving({}) as thief, serving({"/": moved(thief.url())}) as site:
        with pytest.raises(SearchFailed, match="redirects elsewhere"):
            await Brave(guarded(site), lambda: KEY, site.url()).search("tea", 5)

        assert thief.requests == []


async def test_a_server_that_is_gone_is_a_problem_before_anything_is_sent() -> None:
    async with serving({"/search": _json(FOUND)}) as site:
        engine = Searxng(guarded(site), site.url(""))
        assert await engine.problem() == ""
        assert site.requests == []

    assert "cannot be fetched" in await engine.problem()
    with pytest.raises(SearchFailed, match="SearXNG cannot be asked"):
        await engine.search("tea", 5)


async def test_a_key_is_read_again_for_every_search() -> None:
    keys = ["one", "two"]

    async def shown(request: web.Request) -> web.StreamResponse:
        return web.json_response({"web": {"results": [{"title": request.headers["X-Subscription-Token"]}]}})

    async with serving({"/": shown}) as site:
        engine = Brave(guarded(site), lambda: keys.pop(0), site.url())
        titles = [(await engine.search("tea", 1))[0].title for _ in range(2)]

    assert titles == ["one", "two"]
