"""What a page asks of the past: the chat spoken in last, earlier lines, and which chats there are."""

from __future__ import annotations

from pathlib import Path

from adapters.web.inbound import thread_of
from pipeline.domain.errors import StorageError
from pipeline.domain.timeline import TimelineEntry
from tests.adapters.web.harness import CHAT, WebHarness, serving

OTHER = "c_" + "fedcba9876543210" * 2


def _fill(harness: WebHarness, chat: str, numbers: range) -> None:
    for number in numbers:
        entry = TimelineEntry(
            entry_id=number,
            message_id=f"m_{number}",
            role="assistant",
            text=f"line {number}",
            at=float(number),
        )
        harness.timeline.add(thread_of(chat), entry)


async def test_the_latest_chat_is_the_one_spoken_in_last_for_any_caller(tmp_path: Path) -> None:
    harness = WebHarness(tmp_path)
    _fill(harness, CHAT, range(1, 3))
    _fill(harness, OTHER, range(3, 5))
    async with serving(harness) as browser:
        for _ in range(2):
            _, frames = await browser.open(chat="latest")
            assert frames[0]["chat"] == OTHER
            assert [frame["text"] for frame in frames if frame["type"] == "entry"] == ["line 3", "line 4"]


async def test_without_any_chat_the_latest_is_a_new_one(tmp_path: Path) -> None:
    async with serving(WebHarness(tmp_path)) as browser:
        first, frames = await browser.open(chat="latest")
        assert frames[0]["chat"].startswith("c_")
        assert frames[-1] == {"type": "ready", "earlier": 0}
        assert await first.ping() == []


async def test_a_store_that_cannot_name_the_latest_is_reported_and_the_client_may_come_back(
    tmp_path: Path,
) -> None:
    harness = WebHarness(tmp_path)
    harness.timeline.error = StorageError("read error")
    async with serving(harness) as browser:
        page = await browser.connect()
        await page.say(type="hello", protocol=1, token="correct-horse", chat="latest")
        assert (await page.hear())["code"] == "unavailable"
        assert await page.hear_close() == 1013


async def test_a_long_history_is_read_backwards_on_request(tmp_path: Path) -> None:
    harness = WebHarness(tmp_path, history_entries=3, earlier_entries=4)
    _fill(harness, CHAT, range(1, 11))
    async with serving(harness) as browser:
        page, frames = await browser.open()
        assert frames[-1] == {"type": "ready", "earlier": 8}
        read, before = [], 8
        for number in range(2):
            await page.say(type="earlier", client_id=f"e{number}", before=before)
            heard = await page.hear_until("earlier")
            assert heard[-1]["client_id"] == f"e{number}"
            read.append([frame["entry_id"] for frame in heard[:-1]])
            before = heard[-1]["earlier"]
        assert (read, before) == ([[4, 5, 6, 7], [1, 2, 3]], 0)


async def test_a_client_that_has_the_history_is_not_reported_of_earlier_lines(tmp_path: Path) -> None:
    harness = WebHarness(tmp_path, history_entries=3)
    _fill(harness, CHAT, range(1, 11))
    async with serving(harness) as browser:
        _, frames = await browser.open(after=9)
        assert frames[-1] == {"type": "ready", "earlier": 0}


async def test_the_chats_are_listed_and_one_that_fails_is_reported(tmp_path: Path) -> None:
    harness = WebHarness(tmp_path)
    _fill(harness, CHAT, range(1, 3))
    _fill(harness, OTHER, range(3, 5))
    async with serving(harness) as browser:
        page, _ = await browser.open()
        await page.say(type="chats", client_id="a")
        assert await page.hear() == {
            "type": "chats",
            "client_id": "a",
            "chats": [
                {"chat": OTHER, "title": "line 3", "at": 4.0},
                {"chat": CHAT, "title": "line 1", "at": 2.0},
            ],
        }
        harness.timeline.error = StorageError("read error")
        await page.say(type="chats", client_id="b")
        problem = await page.hear()
        assert (problem["code"], problem["client_id"]) == ("unavailable", "b")
