"""Answers read aloud on the page while they are still being written, and what ends that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, expect

from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.end_to_end.page.acts import ask, entries, ready, send, sign_in
from tests.end_to_end.page.fake_gateway import FakeGateway, Frame
from tests.end_to_end.page.test_read_aloud import PLAYS, SOUND
from tests.end_to_end.page.test_talk import talk, words
from tests.end_to_end.page.worker_port import port_setting
from tests.support.browser_fixture import Watch
from tests.support.harness import open_gateway
from voice.synthesis.scripted_synthesizer import ScriptedSpeaker

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

SPOKEN = (
    # At the element itself: it plays before the row that shows it is drawn. A sound that stalls and continues
    # is the same sound.
    """const { play } = HTMLMediaElement.prototype;
    HTMLMediaElement.prototype.play = function () {
        window.played ??= new Set();
        this.addEventListener('playing', () => window.played.add(this.src));
        return play.call(this);
    }"""
)


@pytest_asyncio.fixture(loop_scope="session")
async def room(room: Page) -> Page:
    """A page on which somebody talks and has answers read aloud."""
    await room.evaluate("localStorage.setItem('parlour.readAloud', 'yes')")
    await talk(room)
    return room


async def reading(room: Page, gateway: FakeGateway) -> tuple[str, Locator]:
    """An answer is being written, and its first part is being played: its message and its row."""
    message = await ask(room, gateway, "tides?")
    await gateway.begin(message)
    await gateway.say(message, "The tide rises twice a day. The")
    frame = await gateway.received("speak")
    assert (frame["message_id"], frame["part"]) == (message, 0)
    assert "entry_id" not in frame
    await gateway.read_aloud(frame, SOUND)
    row = entries(room, "assistant")
    await plays(room, row)
    return message, row


async def plays(room: Page, row: Locator) -> None:
    await room.wait_for_function(PLAYS, arg=await row.locator("audio").element_handle())


async def test_an_answer_is_heard_while_it_is_written_and_each_part_once(
    room: Page, gateway: FakeGateway
) -> None:
    message, row = await reading(room, gateway)
    await expect(words(room)).to_have_text("Speaking")
    await expect(row).to_have_attribute("data-streaming", "true")
    handle = await row.locator("audio").element_handle()
    second = await gateway.received("speak", 2)
    assert (second["message_id"], second["part"]) == (message, 1)
    await gateway.complete(message, "The tide rises twice a day. The moon draws it.")
    await expect(row).not_to_have_attribute("data-streaming", "true")
    # The row of the finished answer is another one, and the player moved into it without a pause.
    assert await handle.evaluate("audio => audio.isConnected && !(audio.paused && !audio.ended)")
    await gateway.read_aloud(second, SOUND)
    await gateway.end_reading(await gateway.received("speak", 3))
    await room.wait_for_function("audio => audio.paused && audio.currentTime === 0", arg=handle)
    await expect(words(room)).to_have_text("Listening")
    await expect(row.get_by_role("button", name="Listen to the answer")).to_have_count(0)
    assert [frame["part"] for frame in gateway.of("speak")] == [0, 1, 2]


@pytest.mark.parametrize("how", ["voice", "stop", "escape", "switch"])
async def test_it_falls_silent_at_once_and_is_not_begun_again(
    room: Page, gateway: FakeGateway, how: str
) -> None:
    message, row = await reading(room, gateway)
    audio = await row.locator("audio").element_handle()
    match how:
        case "voice":
            await gateway.hear("speech_started")
        case "stop":
            await room.get_by_test_id("stop").click()
        case "escape":
            await room.keyboard.press("Escape")
        case _:
            await room.get_by_test_id("read-aloud").click()
    await gateway.received("speak_stop")
    assert await audio.evaluate("audio => audio.paused")
    asked = len(gateway.of("speak"))
    await gateway.say(message, " moon draws it. And")
    await gateway.complete(message, "The tide rises twice a day. The moon draws it. And so on.")
    await expect(row.get_by_role("button", name="Listen to the answer")).to_be_visible()
    assert len(gateway.of("speak")) == asked
    await expect(row.locator("audio")).to_have_count(0)


async def test_an_answer_that_is_taken_back_is_read_no_further(room: Page, gateway: FakeGateway) -> None:
    message, row = await reading(room, gateway)
    audio = await row.locator("audio").element_handle()
    await gateway.fail(message, "stopped", "Stopped.")
    await expect(row).to_have_count(0)
    await gateway.received("speak_stop")
    assert await audio.evaluate("audio => audio.paused")
    await expect(words(room)).to_have_text("Listening")


async def test_an_answer_that_was_complete_before_it_was_asked_for_is_read_from_the_log(
    room: Page, gateway: FakeGateway
) -> None:
    problem: Frame = {"code": "not_found", "message": "message_id: no such answer"}
    gateway.refusal = lambda frame: problem if "message_id" in frame else None
    message = await ask(room, gateway, "tides?")
    await gateway.answer(message, "Water.")
    await gateway.read_aloud(await gateway.received("speak", 2), SOUND)
    assert gateway.of("speak")[1]["entry_id"] == 2
    await plays(room, entries(room, "assistant"))
    await expect(room.get_by_role("alert")).to_be_hidden()


async def test_a_lost_connection_silences_it_and_the_answer_can_be_listened_to(
    room: Page, gateway: FakeGateway
) -> None:
    message, row = await reading(room, gateway)
    gateway.cut()
    await gateway.greeted(2)
    await ready(room)
    await gateway.complete(message, "The tide rises twice a day.")
    await expect(row.get_by_role("button", name="Listen to the answer")).to_be_visible()
    await expect(row.locator("audio")).to_have_count(0)


async def test_off_the_record_nothing_is_read_along(room: Page, gateway: FakeGateway) -> None:
    await gateway.send(gateway.write("session", "Off the record", chat=gateway.chat, code="otr"))
    message = await ask(room, gateway, "tides?")
    await gateway.answer(message, "Water.")
    await expect(entries(room, "assistant")).to_contain_text("Water.")
    assert gateway.of("speak") == []


@pytest_asyncio.fixture(loop_scope="session")
async def held_back(tmp_path: Path) -> AsyncIterator[tuple[str, str, asyncio.Event, ScriptedSpeaker]]:
    """A whole gateway whose model holds back all but its first sentence: its address, its token, what lets
    the model continue, and its voice."""
    proceed = asyncio.Event()
    chunks = ("The tide rises ", "twice a day. ", "And ", "then it falls. ", "That is all.")
    llm = ScriptedLlm([ScriptedAnswer(chunks=chunks, gate=proceed, gate_at=3)])
    speaker = ScriptedSpeaker()
    settings = ("channels.web.enabled=true", port_setting())
    async with open_gateway(tmp_path, *settings, llm=llm, speaker=speaker) as harness:
        yield (
            harness.gateway.url,
            (tmp_path / "web-token").read_text(encoding="ascii").strip(),
            proceed,
            speaker,
        )


async def test_the_first_sentence_is_heard_while_the_model_still_holds_back_the_rest(
    page: Page, watch: Watch, held_back: tuple[str, str, asyncio.Event, ScriptedSpeaker]
) -> None:
    url, token, proceed, speaker = held_back
    await page.goto(url)
    # With the button held only: hands-free, the real detector may take the microphone's sound for a voice.
    await page.evaluate("localStorage.setItem('parlour.readAloud', 'yes')")
    await page.evaluate("localStorage.setItem('parlour.handsFree', 'no')")
    await page.reload()
    await page.evaluate(f"{SPOKEN}; 0")
    await sign_in(page, token)
    await page.get_by_test_id("talk").click()
    await expect(words(page)).to_have_text("Hold the microphone to talk")
    await send(page, "tides?")
    row = entries(page, "assistant")
    await page.wait_for_function("() => window.played?.size === 1")
    await expect(row).to_have_attribute("data-streaming", "true")
    await expect(row).not_to_contain_text("falls")
    assert [call.text for call in speaker.calls] == ["The tide rises twice a day."]
    proceed.set()
    await expect(row).to_contain_text("That is all.")
    await page.wait_for_function("() => window.played?.size >= 2")
    await expect(words(page)).to_have_text("Hold the microphone to talk")
    whole = "The tide rises twice a day. And then it falls. That is all."
    assert " ".join(call.text for call in speaker.calls) == whole
    assert [words for words in watch.complaints if "WebSocket connection" not in words] == []
