"""Opening and ending a socket: who gets in, who is sent away with which code, and what a shutdown leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters.web.inbound import thread_of
from pipeline.domain.errors import StorageError
from pipeline.domain.timeline import TimelineEntry
from tests.adapters.web.harness import CHAT, TOKEN, Browser, WebHarness, serving


async def _first_problem(browser: Browser, frame: str | bytes) -> tuple[str, int | None]:
    page = await browser.connect()
    await (page.socket.send_str(frame) if isinstance(frame, str) else page.socket.send_bytes(frame))
    code = (await page.hear())["code"]
    return code, await page.hear_close()


@pytest.mark.parametrize(
    ("frame", "code", "close"),
    [
        ('{"type": "ping"}', "hello_first", 4400),
        ('{"type": "message", "client_id": "a", "text": "hi"}', "hello_first", 4400),
        (b"\x00", "hello_first", 4400),
        ("nonsense", "bad_frame", 4400),
        ('{"type": "hello", "protocol": 1}', "bad_frame", 4400),
        ('{"type": "hello", "protocol": "1", "token": "x"}', "bad_frame", 4400),
        ('{"type": "hello", "protocol": 2, "token": "correct-horse"}', "wrong_protocol", 4400),
        ('{"type": "hello", "protocol": 1, "token": "correct-horse", "chat": "c_1"}', "bad_chat", 4400),
        (
            '{"type": "hello", "protocol": 1, "token": "correct-horse", "chat": "../etc/passwd"}',
            "bad_chat",
            4400,
        ),
        ('{"type": "hello", "protocol": 1, "token": "correct-horse", "after": -1}', "bad_frame", 4400),
        ('{"type": "hello", "protocol": 1, "token": "wrong"}', "wrong_token", 4401),
        ('{"type": "hello", "protocol": 1, "token": ""}', "wrong_token", 4401),
    ],
)
async def test_a_wrong_opening_closes_the_socket_with_its_code(
    tmp_path: Path, frame: str | bytes, code: str, close: int
) -> None:
    harness = WebHarness(tmp_path)
    async with serving(harness) as browser:
        assert await _first_problem(browser, frame) == (code, close)
    assert harness.timeline.calls == []
    assert harness.inbox.offered == 0


async def test_a_silent_client_is_closed_after_its_time(tmp_path: Path) -> None:
    async with serving(WebHarness(tmp_path, hello_timeout_s=0.05)) as browser:
        page = await browser.connect()
        assert (await page.hear())["code"] == "hello_timeout"
        assert await page.hear_close() == 4408


async def test_after_five_wrong_tokens_the_right_one_still_opens(tmp_path: Path) -> None:
    harness = WebHarness(tmp_path)
    wrong = '{"type": "hello", "protocol": 1, "token": "guess"}'
    async with serving(harness) as browser:
        inside, _ = await browser.open()
        for _ in range(5):
            assert await _first_problem(browser, wrong) == ("wrong_token", 4401)
            await harness.clock.advance(5)
        assert await _first_problem(browser, wrong) == ("too_many_attempts", 4429)
        assert await inside.ping() == []
        page, frames = await browser.open()
        assert frames[-1]["type"] == "ready"
        assert await page.ping() == []
        await harness.clock.advance(60)
        assert await _first_problem(browser, wrong) == ("wrong_token", 4401)


async def test_before_the_gateway_receives_hello_is_answered_unavailable(tmp_path: Path) -> None:
    harness = WebHarness(tmp_path)
    assert harness.adapter.health().state == "starting"
    async with serving(harness, running=False) as browser:
        right = f'{{"type": "hello", "protocol": 1, "token": "{TOKEN}"}}'
        assert await _first_problem(browser, right) == ("unavailable", 1013)


@pytest.mark.parametrize(
    ("error", "code"), [(StorageError("read error"), "unavailable"), (KeyError("x"), "internal")]
)
async def test_an_unreadable_history_is_reported_and_the_client_may_come_back(
    tmp_path: Path, error: Exception, code: str
) -> None:
    harness = WebHarness(tmp_path)
    harness.timeline.error = error
    hello = f'{{"type": "hello", "protocol": 1, "token": "{TOKEN}", "chat": "{CHAT}"}}'
    async with serving(harness) as browser:
        assert await _first_problem(browser, hello) == (code, 1013)
        harness.timeline.error = None
        _, frames = await browser.open()
    assert frames[-1]["type"] == "ready"


async def test_the_shutdown_closes_every_socket_with_1001(tmp_path: Path) -> None:
    harness = WebHarness(tmp_path)
    async with serving(harness) as browser:
        pages = [(await browser.open())[0] for _ in range(3)]
        browser.stop()
        assert [await page.hear_close() for page in pages] == [1001] * 3
    assert harness.adapter.health().state == "down"


async def test_the_shutdown_does_not_wait_for_a_hello_that_may_never_come(tmp_path: Path) -> None:
    harness = WebHarness(tmp_path, hello_timeout_s=1000.0)
    async with serving(harness) as browser:
        silent = await browser.connect()
        browser.stop()
        assert await silent.hear_close() == 1006


async def test_the_shutdown_lets_a_reading_client_have_what_is_queued(tmp_path: Path) -> None:
    harness = WebHarness(tmp_path)
    async with serving(harness) as browser:
        page, _ = await browser.open()
        # More than a socket's buffers hold, so that much of it is still queued at the shutdown.
        for number in range(1, 201):
            entry = TimelineEntry(
                entry_id=number, message_id=f"m_{number}", role="assistant", text="x" * 40_000, at=1.0
            )
            harness.adapter.entry_recorded(thread_of(CHAT), entry)
        browser.stop()
        assert [(await page.hear())["entry_id"] for _ in range(200)] == list(range(1, 201))
        assert await page.hear_close() == 1001


async def test_one_chat_has_a_limited_number_of_windows_and_another_chat_is_free(tmp_path: Path) -> None:
    async with serving(WebHarness(tmp_path, max_sockets_per_chat=2)) as browser:
        first, _ = await browser.open()
        await browser.open()
        hello = f'{{"type": "hello", "protocol": 1, "token": "{TOKEN}", "chat": "{CHAT}"}}'
        assert await _first_problem(browser, hello) == ("refused", 1013)
        assert (await browser.open(chat=None))[1][-1]["type"] == "ready"
        await first.socket.close()
        assert (await browser.open())[1][-1]["type"] == "ready"
