"""The checks of what is watched, against a real server and real files: what is new, and what it costs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from gateway.scheduling.watch_checks import WatchChecks, WatchFailed, WatchFinding
from gateway.scheduling.watch_records import Watch, watch_of
from gateway.storage.heartbeats import WATCH
from gateway.storage.memory import MemoryStore
from pipeline.domain.clock import ManualClock, SystemClock
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author
from pipeline.schedules.repetition import Repetition
from pipeline.tools.web_client import GuardedWeb
from pipeline.watches.conditions import WatchCondition

CHAT = ThreadKey(channel="console", account="local", chat="c1")
NOON = 1_800_000_000.0


def watch(**condition: Any) -> Watch:
    if "repetition" not in condition:
        condition.setdefault("every_s", 1_800.0)
    return Watch(
        id="w", condition=WatchCondition(**condition), text="tell me", thread=CHAT, author=Author(id="owner")
    )


class Rights:
    """The rights of somebody for whom no host but that of the server is open."""

    def __init__(self, root: Path, *, reachable: bool = True, tool: str = "") -> None:
        self.root = root
        self.reachable = reachable
        self.tool = tool
        self.read: list[tuple[str, Mapping[str, Any]]] = []
        self.noted: list[str] = []

    def folder(self, _watch: Watch) -> Path:
        return self.root

    def owner(self, _watch: Watch) -> str:
        return "ann"

    async def read_by_tool(
        self, _watch: Watch, _session: str, tool: str, arguments: Mapping[str, Any]
    ) -> tuple[str, str]:
        self.read.append((tool, arguments))
        return self.tool, ""

    async def may_fetch(self, _watch: Watch, _session: str) -> Callable[[str], bool]:
        return lambda _host: self.reachable

    async def note_fetched(self, _watch: Watch, _session: str, text: str, _source: str) -> None:
        self.noted.append(text)


class Site:
    """A server with one page."""

    def __init__(self) -> None:
        self.body = "first"
        self.mime = "text/plain"
        self.etag = '"1"'
        self.status = 200
        self.asked: list[Mapping[str, str]] = []
        self.url = ""

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(dict(request.headers))
        if self.etag and request.headers.get("If-None-Match") == self.etag:
            return web.Response(status=304)
        headers = {"ETag": self.etag} if self.etag else {}
        return web.Response(text=self.body, content_type=self.mime, status=self.status, headers=headers)


@asynccontextmanager
async def site() -> AsyncIterator[Site]:
    served = Site()
    app = web.Application()
    app.router.add_get("/", served.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    listening = web.TCPSite(runner, "127.0.0.1", 0)
    await listening.start()
    served.url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
    try:
        yield served
    finally:
        await runner.cleanup()


def checks(rights: Rights, *, port: int = 80, clock: Any = None, guarded: bool = False) -> WatchChecks:
    now = clock or SystemClock()
    web_client = GuardedWeb(now) if guarded else GuardedWeb(now, refused=lambda _address: "", ports=(port,))
    return WatchChecks(clock=now, web=web_client, memories=MemoryStore().memories, rights=rights)


def port_of(served: Site) -> int:
    return int(served.url.rsplit(":", 1)[1].strip("/"))


async def again(made: WatchChecks, one: Watch, found: WatchFinding) -> tuple[Watch, WatchFinding]:
    after = one.with_seen(found.seen)
    return after, await made.check(after, "ses")


async def test_a_page_is_asked_for_its_version_and_read_only_when_it_has_another_text(tmp_path: Path) -> None:
    rights = Rights(tmp_path)
    async with site() as served:
        made, one = checks(rights, port=port_of(served)), watch(kind="page", target=served.url)
        found = await made.check(one, "ses")
        assert (found.text, rights.noted) == ("", [])
        one, found = await again(made, one, found)
        assert found.text == ""
        assert served.asked[-1]["If-None-Match"] == '"1"'
        # Another version with the same text is nothing new.
        served.etag = '"2"'
        one, found = await again(made, one, found)
        assert (found.text, found.seen["etag"]) == ("", '"2"')
        served.etag, served.body = '"3"', "second"
        one, found = await again(made, one, found)
        assert (found.text, found.source, rights.noted) == ("second", "a watched page", ["second"])
        one, found = await again(made, one, found)
        assert found.text == ""
    assert len(served.asked) == 5


async def test_a_page_without_versions_is_compared_by_its_text(tmp_path: Path) -> None:
    async with site() as served:
        served.etag = ""
        made, one = checks(Rights(tmp_path), port=port_of(served)), watch(kind="page", target=served.url)
        one, found = await again(made, one, await made.check(one, "ses"))
        assert found.text == ""
        served.body = "second"
        _, found = await again(made, one, found)
        assert found.text == "second"


async def test_new_entries_of_a_feed_are_listed_once(tmp_path: Path) -> None:
    item = "<item><guid>{0}</guid><title>Entry {0}</title></item>"
    async with site() as served:
        served.etag, served.mime = "", "application/rss+xml"
        served.body = f"<rss>{item.format(1)}</rss>"
        made, one = checks(Rights(tmp_path), port=port_of(served)), watch(kind="feed", target=served.url)
        found = await made.check(one, "ses")
        assert found.text == ""
        served.body = f"<rss>{item.format(3)}{item.format(2)}{item.format(1)}</rss>"
        one, found = await again(made, one, found)
        assert (found.text, found.source) == ("- Entry 3\n- Entry 2", "a watched feed")
        one, found = await again(made, one, found)
        assert found.text == ""


@pytest.mark.parametrize("status", [404, 500])
async def test_a_page_that_the_server_does_not_give_cannot_be_checked(tmp_path: Path, status: int) -> None:
    async with site() as served:
        served.status = status
        made = checks(Rights(tmp_path), port=port_of(served))
        with pytest.raises(WatchFailed, match=f"status {status}"):
            await made.check(watch(kind="page", target=served.url), "ses")


async def test_addresses_that_are_private_or_closed_by_the_policy_are_not_fetched(tmp_path: Path) -> None:
    async with site() as served:
        with pytest.raises(WatchFailed):
            await checks(Rights(tmp_path), guarded=True).check(watch(kind="page", target=served.url), "ses")
        closed = checks(Rights(tmp_path, reachable=False), port=port_of(served))
        with pytest.raises(WatchFailed, match="security policy closes"):
            await closed.check(watch(kind="page", target=served.url), "ses")
    assert served.asked == []


async def test_a_file_is_read_only_when_its_contents_are_others(tmp_path: Path) -> None:
    place = tmp_path / "files" / "list.txt"
    place.parent.mkdir(parents=True)
    place.write_text("milk\n")
    rights = Rights(tmp_path, tool="tea")
    made, one = checks(rights), watch(kind="file", target="shared/list.txt")
    one, found = await again(made, one, await made.check(one, "ses"))
    assert (found.text, rights.read) == ("", [])
    place.write_text("milk\ntea\n")
    one, found = await again(made, one, found)
    assert (found.text, rights.read) == ("tea", [("read_file", {"path": "shared/list.txt", "line": 2})])
    place.write_text("other\n")
    one, found = await again(made, one, found)
    assert rights.read[-1] == ("read_file", {"path": "shared/list.txt"})
    place.unlink()
    one, found = await again(made, one, found)
    assert found.text == "The file is no longer there."
    _, found = await again(made, one, found)
    assert found.text == ""


@pytest.mark.parametrize("path", ["list.txt", "/etc/passwd", "own/../../secret", "shared"])
async def test_a_path_that_leads_elsewhere_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(WatchFailed, match="path"):
        await checks(Rights(tmp_path)).check(watch(kind="file", target=path), "ses")


async def test_the_result_of_a_tool_counts_when_it_is_another(tmp_path: Path) -> None:
    rights = Rights(tmp_path, tool="one")
    made, one = checks(rights), watch(kind="tool", target="about", arguments='{"a": 1}')
    one, found = await again(made, one, await made.check(one, "ses"))
    assert (found.text, rights.read[-1]) == ("", ("about", {"a": 1}))
    rights.tool = "two"
    _, found = await again(made, one, found)
    assert found.text == "two"


async def test_a_time_counts_once_and_also_late(tmp_path: Path) -> None:
    clock = ManualClock(NOON)
    made = checks(Rights(tmp_path), clock=clock)
    one = watch(kind="time", target="hourly", repetition=Repetition(start=NOON + 3_600.0, every_s=3_600.0))
    found = await made.check(one, "ses")
    assert found.text == ""
    await clock.advance(3_600.0 * 5)
    one, found = await again(made, one, found)
    assert found.text.startswith("The time has come")
    _, found = await again(made, one, found)
    assert found.text == ""


async def test_a_watch_comes_back_from_its_job_as_it_was() -> None:
    one = watch(kind="page", target="https://example.org").with_seen({"etag": "x"})
    store = MemoryStore()
    await store.open()
    await store.jobs.add(one.job())
    (kept,) = await store.jobs.all_of(WATCH)
    assert watch_of(kept) == one
