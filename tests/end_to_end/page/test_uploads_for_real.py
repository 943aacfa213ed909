"""Files on the page of a real gateway: pasted, dropped, chosen, sent, shown again, enlarged, downloaded."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from playwright.async_api import FilePayload, Page, Route, expect

from pipeline.domain.clock import SystemClock
from pipeline.domain.readings import Picture
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.end_to_end.page.accessibility import serious_violations
from tests.end_to_end.page.acts import entries, ready, send, sign_in
from tests.end_to_end.page.worker_port import port_setting
from tests.support.browser_fixture import Watch
from tests.support.file_reader import FakeFileReader
from tests.support.harness import GatewayHarness, open_gateway
from tests.support.pictures import png

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAFUlEQVR42mNkYPhfz0AAMI4qGVUCAJcmAw9Fw0tNAAAAAElFTkSuQmCC"
)
_HAND_OVER = """([kind, target, encoded]) => {
  const bytes = Uint8Array.from(atob(encoded), (sign) => sign.charCodeAt(0));
  const data = new DataTransfer();
  data.items.add(new File([bytes], 'shot.png', { type: 'image/png' }));
  const options = { bubbles: true, cancelable: true };
  const event = kind === 'paste'
    ? new ClipboardEvent('paste', { ...options, clipboardData: data })
    : new DragEvent(kind, { ...options, dataTransfer: data });
  document.querySelector(target).dispatchEvent(event);
}"""
"""Hands a picture to an element."""


class KeepingReader(FakeFileReader):
    """A reader that leaves pictures as they are, so that a browser can show them."""

    async def picture(self, content: bytes, *, max_side: int, max_bytes: int) -> Picture:
        await super().picture(content, max_side=max_side, max_bytes=max_bytes)
        return Picture(
            content=content, mime="image/png", width=8, height=8, original_width=8, original_height=8
        )


@asynccontextmanager
async def opened(page: Page, data: Path, *answers: str) -> AsyncIterator[GatewayHarness]:
    """A signed-in page of a gateway whose model sees pictures."""
    llm = ScriptedLlm([ScriptedAnswer.of(answer) for answer in answers])
    web = ("channels.web.enabled=true", port_setting(), 'llm.model="openai/gpt-4o-mini"')
    async with open_gateway(data, *web, llm=llm, file_reader=KeepingReader()) as harness:
        await page.goto(harness.gateway.url)
        await sign_in(page, (data / "web-token").read_text(encoding="ascii").strip())
        yield harness


async def _once(uploaded: asyncio.Event, route: Route) -> None:
    await uploaded.wait()
    await route.continue_()


async def test_a_pasted_picture_is_sent_shown_enlarged_and_there_again_after_a_reload(
    page: Page, watch: Watch, tmp_path: Path
) -> None:
    async with opened(page, tmp_path, "A square.") as harness:
        await page.evaluate(_HAND_OVER, ["paste", "#input", base64.b64encode(PNG).decode()])
        pending = page.get_by_test_id("pending-file")
        await expect(pending).to_have_attribute("data-ready", "true")
        await expect(pending).to_contain_text("shot.png")
        assert await serious_violations(page) == []
        await page.get_by_test_id("composer").fill("What is it?")
        await page.get_by_test_id("composer").press("Enter")
        await expect(entries(page, "assistant")).to_contain_text("A square.")
        await expect(pending).to_have_count(0)
        for _ in range(2):
            picture = entries(page, "user").get_by_role("button", name="Enlarge the picture: shot.png")
            await expect(picture.locator("img")).to_have_js_property("naturalWidth", 8)
            assert await serious_violations(page) == []
            await picture.click()
            enlarged = page.get_by_role("dialog")
            await expect(enlarged.locator("img")).to_have_js_property("naturalWidth", 8)
            assert await serious_violations(page) == []
            await page.keyboard.press("Escape")
            await expect(enlarged).to_have_count(0)
            await page.reload()
            await ready(page)
        await expect(entries(page, "user")).to_contain_text("What is it?")
        (request,) = harness.llm.requests
        assert list(request.pictures.values()) == [PNG]
    assert watch.complaints == []
    assert not list((tmp_path / "media").glob("u_*"))


async def test_a_dropped_and_a_chosen_file_are_previewed_and_one_is_removed_before_sending(
    page: Page, watch: Watch, tmp_path: Path
) -> None:
    async with opened(page, tmp_path, "Read.") as harness:
        uploaded = asyncio.Event()
        await page.route("**/files/**", lambda route: _once(uploaded, route))
        await page.evaluate(_HAND_OVER, ["drop", "#log", base64.b64encode(PNG).decode()])
        notes: FilePayload = {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"buy milk"}
        await page.get_by_test_id("attach-input").set_input_files(files=[notes])
        pending = page.get_by_test_id("pending-file")
        await expect(pending).to_contain_text(["Uploading", "Uploading"])
        assert await serious_violations(page) == []
        uploaded.set()
        await expect(page.locator("[data-testid=pending-file][data-ready=true]")).to_have_count(2)
        assert await serious_violations(page) == []
        await expect(page.get_by_test_id("send")).to_be_enabled()
        await page.get_by_role("button", name="Remove shot.png").click()
        await expect(pending).to_have_count(1)
        await page.get_by_test_id("send").click()
        await expect(entries(page, "assistant")).to_contain_text("Read.")
        await page.reload()
        await ready(page)
        line = entries(page, "user").get_by_role("link", name="notes.txt")
        async with page.expect_download() as started:
            await line.click()
        saved = await (await started.value).path()
        assert saved.read_bytes() == b"buy milk"
        assert "buy milk" in harness.llm.requests[0].messages[-1].content
    assert watch.complaints == []


async def test_off_the_record_two_pictures_are_seen_in_order_and_no_byte_of_them_stays(
    page: Page, tmp_path: Path
) -> None:
    pictures = [png(9, 9), png(7, 7)]
    async with opened(page, tmp_path, "Two squares.") as harness:
        await send(page, "/otr")
        await expect(page.get_by_test_id("off-record")).to_be_visible()
        chosen: list[FilePayload] = [
            {"name": f"{number}.png", "mimeType": "image/png", "buffer": one}
            for number, one in enumerate(pictures)
        ]
        await page.get_by_test_id("attach-input").set_input_files(files=chosen)
        await expect(page.locator("[data-testid=pending-file][data-ready=true]")).to_have_count(2)
        await send(page, "Which is larger?")
        await expect(entries(page, "assistant")).to_contain_text("Two squares.")
        (request,) = harness.llm.requests
        asked = request.messages[-1]
        assert asked.content.startswith("Which is larger?")
        assert [request.pictures[one.id] for one in asked.pictures] == pictures
        # The uploads are removed right after the answer.
        async with asyncio.timeout(60):
            while any(_holding(tmp_path, one) for one in pictures):
                await SystemClock().sleep(0.01)


def _holding(folder: Path, content: bytes) -> list[Path]:
    """The files that contain it."""
    found = []
    for one in folder.rglob("*"):
        # A file may be removed meanwhile.
        with suppress(FileNotFoundError, IsADirectoryError):
            found += [one] if content in one.read_bytes() else []
    return found


async def test_a_picture_that_is_no_longer_stored_becomes_a_line(page: Page, tmp_path: Path) -> None:
    async with opened(page, tmp_path, "A square."):
        await page.evaluate(_HAND_OVER, ["paste", "#input", base64.b64encode(PNG).decode()])
        await expect(page.get_by_test_id("send")).to_be_enabled()
        await page.get_by_test_id("send").click()
        await expect(entries(page, "assistant")).to_contain_text("A square.")
        for stored in (tmp_path / "files").rglob("*"):
            if stored.is_file():
                stored.unlink()
        # The browser's cache, which still has the picture, is not used while requests are routed.
        await page.route("**/f/**", lambda route: route.continue_())
        await page.reload()
        await ready(page)
        await expect(entries(page, "user").get_by_role("link", name="shot.png")).to_be_visible()


async def test_a_file_that_is_too_large_is_refused_before_it_is_uploaded(page: Page, tmp_path: Path) -> None:
    async with opened(page, tmp_path, "Hi."):
        await page.evaluate(
            """() => {
              const data = new DataTransfer();
              data.items.add(new File([new Uint8Array(20_000_001)], 'film.mp4', { type: 'video/mp4' }));
              const options = { bubbles: true, cancelable: true, dataTransfer: data };
              document.querySelector('#log').dispatchEvent(new DragEvent('drop', options));
            }"""
        )
        await expect(page.get_by_role("alert")).to_contain_text("film.mp4 is larger than 20 MB")
        await expect(page.get_by_test_id("pending-file")).to_have_count(0)
        await send(page, "hello")
        await expect(entries(page, "assistant")).to_contain_text("Hi.")
