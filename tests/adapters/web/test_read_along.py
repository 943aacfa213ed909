"""An answer read aloud while it is written, over a real socket: each part when it is settled, and its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from adapters.web.inbound import thread_of
from pipeline.domain.events import (
    ActionStarted,
    ErrorEvent,
    LlmToken,
    PipelineEvent,
    ResponseComplete,
    TurnStarted,
)
from pipeline.turn import Ids
from tests.adapters.web.harness import CHAT, PATIENCE_S, Frame, Page, WebHarness, serving
from tests.adapters.web.ports import ScriptedVoice

IDS: Ids = {"session_id": "ses_1", "message_id": "m_1"}
FIRST = "The tide rises twice a day."
SECOND = "The moon draws it."
BEGUN = f"{FIRST} {SECOND} And"
Send = Callable[[PipelineEvent], Awaitable[None]]


def token(text: str, offset: int) -> LlmToken:
    return LlmToken(**IDS, text=text, offset=offset)


def complete(text: str) -> ResponseComplete:
    return ResponseComplete(**IDS, content=text, entry_id=7)


@asynccontextmanager
async def answering(tmp_path: Path, text: str = "") -> AsyncIterator[tuple[Page, ScriptedVoice, Send]]:
    """A page of a chat in which an answer is being written, `text` so far."""
    voice = ScriptedVoice()
    harness = WebHarness(tmp_path)
    harness.adapter.attach(None, voice)
    async with serving(harness) as browser:
        page, _ = await browser.open()
        send = harness.adapter.sender_for(thread_of(CHAT)).send_event
        await send(TurnStarted(**IDS))
        if text:
            await send(token(text, 0))
        await page.ping()
        yield page, voice, send


async def ask(page: Page, part: int) -> None:
    await page.say(type="speak", client_id=f"s{part}", message_id="m_1", part=part)
    await page.ping()


async def spoken(page: Page) -> Frame:
    """The next frame that is no live event."""
    frame = await page.hear()
    while frame["type"] == "event":
        frame = await page.hear()
    return frame


async def read(page: Page, part: int) -> str:
    """Asks for a part and hears it; its words, which are the scripted voice's sound."""
    await page.say(type="speak", client_id=f"s{part}", message_id="m_1", part=part)
    return await heard(page, part)


async def heard(page: Page, part: int) -> str:
    header = await spoken(page)
    assert (header["type"], header["client_id"], header["part"]) == ("speech", f"s{part}", part), header
    assert "parts" not in header
    sound: bytes = (await page.hear())["bytes"]
    assert len(sound) == header["size"]
    return sound.decode()


async def ended(page: Page, part: int) -> str:
    frame = await spoken(page)
    assert (frame["type"], frame["client_id"]) == ("speech_ended", f"s{part}"), frame
    reason: str = frame["reason"]
    return reason


async def test_each_part_comes_while_the_answer_is_written_and_the_rest_with_its_end(tmp_path: Path) -> None:
    async with answering(tmp_path) as (page, voice, send):
        await ask(page, 0)
        await send(token("The tide **rises** twice", 0))
        await send(token(" a day. The", 24))
        assert await heard(page, 0) == FIRST
        await ask(page, 1)
        await send(token(" moon draws it. And the sun helps", 35))
        assert await heard(page, 1) == SECOND
        await ask(page, 2)
        await send(complete("The tide **rises** twice a day. The moon draws it. And the sun helps."))
        assert await heard(page, 2) == "And the sun helps."
        await ask(page, 3)
        assert await ended(page, 3) == "complete"
    assert voice.said == [FIRST, SECOND, "And the sun helps."]


async def test_what_the_final_answer_says_otherwise_is_read_as_it_says_it(tmp_path: Path) -> None:
    async with answering(tmp_path, f"{FIRST} Then it falls by its") as (page, _, send):
        assert await read(page, 0) == FIRST
        await send(complete(f"{FIRST} Then the water goes."))
        assert await read(page, 1) == "Then the water goes."
        await ask(page, 2)
        assert await ended(page, 2) == "complete"


async def test_words_before_a_tool_are_read_while_it_works(tmp_path: Path) -> None:
    async with answering(tmp_path) as (page, _, send):
        await ask(page, 0)
        await send(token("I look that up for you.", 0))
        await send(ActionStarted(**IDS, tool_name="web", summary="looks"))
        assert await heard(page, 0) == "I look that up for you."


async def test_an_answer_that_fails_ends_the_reading_and_what_waits_for_it(tmp_path: Path) -> None:
    async with answering(tmp_path, BEGUN) as (page, voice, send):
        assert await read(page, 0) == FIRST
        assert await read(page, 1) == SECOND
        await ask(page, 2)
        await send(ErrorEvent(**IDS, code="stopped", message="Stopped.", recoverable=False, entry_id=7))
        assert await ended(page, 2) == "failed"
        await ask(page, 0)
        problem = await page.hear()
    assert problem["code"] == "not_found"
    assert voice.said == [FIRST, SECOND]


async def test_who_stops_listening_is_answered_at_once_and_may_ask_again(tmp_path: Path) -> None:
    async with answering(tmp_path, BEGUN) as (page, voice, send):
        voice.gate.clear()
        await ask(page, 0)
        await page.say(type="speak_stop")
        assert await ended(page, 0) == "stopped"
        async with asyncio.timeout(PATIENCE_S):
            await voice.cancelled.wait()
        voice.gate.set()
        await page.say(type="speak_stop")
        await send(complete(BEGUN))
        await ask(page, 1)
        problem = await spoken(page)
    assert problem["code"] == "not_found"


@pytest.mark.parametrize(
    ("message_id", "part"),
    [("m_2", 0), ("m_1", 1)],
)
async def test_only_an_answer_that_is_being_written_is_read_along_and_from_its_beginning(
    tmp_path: Path, message_id: str, part: int
) -> None:
    async with answering(tmp_path, BEGUN) as (page, voice, _):
        await page.say(type="speak", client_id="s1", message_id=message_id, part=part)
        problem = await page.hear()
    assert (problem["code"], problem["client_id"]) == ("not_found", "s1")
    assert voice.said == []


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"message_id": "m_1", "part": 0, "entry_id": 1}, "entry_id"),
        ({"message_id": "m_1"}, "part"),
        ({"message_id": 1, "part": 0}, "message_id"),
    ],
)
async def test_a_frame_that_names_no_part_of_one_answer_is_refused(
    tmp_path: Path, fields: Frame, name: str
) -> None:
    async with answering(tmp_path, BEGUN) as (page, _, _):
        await page.say(type="speak", client_id="s1", **fields)
        problem = await page.hear()
    assert problem["code"] == "bad_frame"
    assert problem["message"].startswith(f"{name}:")
