"""Uploads for messages over HTTP, for the holder of the token only."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.domain.messages import InboundMessage
from tests.adapters.web.harness import CHAT, TOKEN, Browser, WebHarness, serving

BEARER = {"Authorization": f"Bearer {TOKEN}"}
JPEG = b"\xff\xd8\xff a picture"


async def uploaded(browser: Browser, content: bytes, chat: str = CHAT) -> dict[str, Any]:
    async with browser.client.post(f"/files/{chat}", data=content, headers=BEARER) as response:
        assert response.status == 200
        plain: dict[str, Any] = await response.json()
        return plain


@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": TOKEN}, {"Authorization": "Bearer "}]
)
async def test_without_the_token_nothing_is_taken(tmp_path: Path, headers: dict[str, str]) -> None:
    harness = WebHarness(tmp_path)
    async with (
        serving(harness) as browser,
        browser.client.post(f"/files/{CHAT}", data=JPEG, headers=headers) as response,
    ):
        assert response.status == 401
    assert not harness.media_dir.exists()


async def test_a_request_of_another_page_is_refused_even_with_the_token(tmp_path: Path) -> None:
    async with serving(WebHarness(tmp_path)) as browser:
        headers = {**BEARER, "Origin": "https://evil.example"}
        async with browser.client.post(f"/files/{CHAT}", data=JPEG, headers=headers) as response:
            assert response.status == 403


async def test_an_upload_for_what_is_no_chat_is_refused(tmp_path: Path) -> None:
    harness = WebHarness(tmp_path)
    async with (
        serving(harness) as browser,
        browser.client.post("/files/c_x", data=JPEG, headers=BEARER) as response,
    ):
        assert response.status == 404
    assert not harness.media_dir.exists()


async def test_an_upload_is_stored_and_belongs_to_the_message_that_names_it(tmp_path: Path) -> None:
    harness = WebHarness(tmp_path)
    async with serving(harness) as browser:
        page, _ = await browser.open()
        given = await uploaded(browser, JPEG)
        assert given["size"] == len(JPEG)
        file = {"handle": given["handle"], "name": "cat.jpg", "mime": "image/jpeg", "size": len(JPEG)}
        await page.say(type="message", client_id="1", text="", files=[file])
        await page.hear_until("accepted")
        (item,) = harness.inbox.items
        assert isinstance(item, InboundMessage)
        (ref,) = item.attachments
        assert (ref.kind, ref.name, ref.mime) == ("image", "cat.jpg", "image/jpeg")
        assert await harness.adapter.download(ref, max_bytes=100) == JPEG
        await harness.adapter.discard(ref)
    assert not list(harness.media_dir.iterdir())


async def test_words_that_look_like_a_command_are_a_caption_next_to_a_file(tmp_path: Path) -> None:
    harness = WebHarness(tmp_path)
    async with serving(harness) as browser:
        page, _ = await browser.open()
        given = await uploaded(browser, JPEG)
        file = {"handle": given["handle"], "name": "", "mime": "", "size": 1}
        await page.say(type="message", client_id="1", text="/new", files=[file])
        await page.hear_until("accepted")
    assert isinstance(harness.inbox.items[0], InboundMessage)


async def test_an_upload_that_is_too_large_leaves_nothing(tmp_path: Path) -> None:
    harness = WebHarness(tmp_path, file_bytes=1_000_000)

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(40):
            yield b"x" * 50_000

    async with serving(harness) as browser:
        async with browser.client.post(f"/files/{CHAT}", data=b"x" * 1_000_001, headers=BEARER) as response:
            assert (response.status, await response.text()) == (413, "The file is larger than 1 MB.\n")
        # Without a length, it is noticed while the content arrives.
        async with browser.client.post(f"/files/{CHAT}", data=endless(), headers=BEARER) as response:
            assert response.status == 413
    assert not list(harness.media_dir.iterdir())


async def test_uploads_are_refused_where_nothing_reads_files(tmp_path: Path) -> None:
    async with serving(WebHarness(tmp_path, file_bytes=0)) as browser:
        _, frames = await browser.open()
        assert frames[0]["limits"]["file_bytes"] == 0
        async with browser.client.post(f"/files/{CHAT}", data=JPEG, headers=BEARER) as response:
            assert response.status == 403


async def test_an_upload_whose_message_never_comes_is_removed(tmp_path: Path) -> None:
    harness = WebHarness(tmp_path)
    async with serving(harness) as browser:
        lost = await uploaded(browser, b"lost")
        await harness.clock.advance(3_601)
        kept = await uploaded(browser, b"kept")
    assert [path.read_bytes() for path in harness.media_dir.iterdir()] == [b"kept"]
    assert lost["handle"] != kept["handle"]


@pytest.mark.parametrize(
    "files",
    [
        "u_" + "0" * 32,
        [{"handle": "../x", "name": "", "mime": "", "size": 1}],
        [{"handle": "v_" + "0" * 32, "name": "", "mime": "", "size": 1}],
        [{"handle": "u_" + "0" * 32, "name": "", "mime": "x", "size": 1}],
        [{"handle": "u_" + "0" * 32, "name": "x" * 201, "mime": "", "size": 1}],
        [{"handle": "u_" + "0" * 32, "name": "", "mime": "", "size": 1}] * 11,
        ["u_" + "0" * 32],
    ],
)
async def test_wrong_files_of_a_message_are_a_problem(tmp_path: Path, files: object) -> None:
    harness = WebHarness(tmp_path)
    async with serving(harness) as browser:
        page, _ = await browser.open()
        await page.say(type="message", client_id="1", text="Hi", files=files)
        assert (await page.hear_until("problem"))[-1]["code"] == "bad_frame"
    assert not harness.inbox.items
