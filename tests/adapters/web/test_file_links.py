"""Files on the page's side: their links in entries, and what the server answers to one."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters.channel import OutboundReply
from pipeline.domain.errors import StorageError
from pipeline.domain.files import FileGone, StoredFile
from pipeline.domain.ids import ThreadKey
from pipeline.domain.timeline import TimelineEntry
from tests.adapters.web.harness import CHAT, Browser, WebHarness, serving
from tests.support.pictures import MP3, png

PICTURE = png()
FILE = StoredFile(
    id="a" * 64, kind="image", mime="image/png", size=9, name="chart.png", about="64 by 48", caption="June"
)
THREAD = ThreadKey(channel="web", account="local", chat=CHAT)


class Access:
    """Contents by token."""

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}

    def path(self, thread: ThreadKey, file: StoredFile) -> str:
        return f"/f/{thread.chat}-{file.id[:4]}/{file.name}"

    async def read(self, token: str, name: str) -> bytes:
        if token == "broken":
            raise StorageError("the disk")
        if token not in self.contents or name != f"{token}.bin":
            raise FileGone("This link has expired.")
        return self.contents[token]


async def get(browser: Browser, token: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    async with browser.client.get(f"/f/{token}/{token}.bin", headers=headers) as answer:
        return answer.status, dict(answer.headers), await answer.read()


@pytest.mark.parametrize(
    ("content", "mime", "shown"),
    [
        (PICTURE, "image/png", True),
        (MP3, "audio/mpeg", True),
        (b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", "application/octet-stream", False),
        (b"<html><script>alert(1)</script>", "application/octet-stream", False),
        (b"%PDF-1.7", "application/octet-stream", False),
    ],
)
async def test_only_pictures_and_media_are_shown_and_all_else_is_a_download(
    tmp_path: Path, content: bytes, mime: str, shown: bool
) -> None:
    access = Access()
    access.contents["t"] = content
    async with serving(WebHarness(tmp_path, links=access)) as browser:
        status, headers, body = await get(browser, "t")
        assert (status, body, headers["Content-Type"]) == (200, content, mime)
        assert headers["Content-Disposition"].startswith("inline" if shown else "attachment")
        assert headers["Content-Security-Policy"].startswith("default-src 'none'; sandbox")
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"


async def test_a_player_gets_the_part_that_it_asks_for(tmp_path: Path) -> None:
    access = Access()
    access.contents["t"] = MP3
    async with serving(WebHarness(tmp_path, links=access)) as browser:
        status, headers, body = await get(browser, "t", Range="bytes=10-19")
        assert (status, body) == (206, MP3[10:20])
        assert headers["Content-Range"] == f"bytes 10-19/{len(MP3)}"
        assert (await get(browser, "t", Range="bytes=5-"))[2] == MP3[5:]
        assert (await get(browser, "t", Range="nonsense"))[::2] == (200, MP3)
        assert (await get(browser, "t", Range="bytes=999999-"))[0] == 200


async def test_a_link_that_does_not_work_says_so_in_words(tmp_path: Path) -> None:
    async with serving(WebHarness(tmp_path, links=Access())) as browser:
        assert (await get(browser, "old"))[::2] == (404, b"This link has expired.\n")
        status, _, body = await get(browser, "broken")
        assert status == 503
        assert b"try again" in body
        assert (await get(browser, "old", Host="evil.example"))[0] == 403
    (tmp_path / "other").mkdir()
    async with serving(WebHarness(tmp_path / "other")) as browser:
        assert (await get(browser, "old"))[0] == 404


async def test_an_entry_carries_links_in_the_history_and_after_a_live_answer(tmp_path: Path) -> None:
    async with serving(WebHarness(tmp_path, links=Access())) as browser:
        browser.harness.timeline.add(
            THREAD,
            TimelineEntry(entry_id=3, message_id="m1", role="assistant", text="Here.", at=1.0, files=(FILE,)),
        )
        page, history = await browser.open()
        entry = next(frame for frame in history if frame["type"] == "entry")
        assert entry["files"] == [
            {
                "id": "a" * 64,
                "kind": "image",
                "mime": "image/png",
                "size": 9,
                "name": "chart.png",
                "about": "64 by 48",
                "caption": "June",
                "url": f"/f/{CHAT}-aaaa/chart.png",
            }
        ]
        reply = OutboundReply(
            key="m2",
            thread=THREAD,
            message_id="m2",
            entry_id=5,
            role="assistant",
            text="Again.",
            created_at=2.0,
            files=(FILE,),
        )
        await browser.harness.adapter.send(reply)
        assert (await page.hear())["files"][0]["url"] == f"/f/{CHAT}-aaaa/chart.png"
