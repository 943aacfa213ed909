"""Voice notes: recorded in a real browser from a fake microphone, sent, heard, shown."""

from __future__ import annotations

import io
import re

import av
import pytest
from playwright.async_api import Page, expect

from tests.end_to_end.page.acts import entries, ready, send
from tests.end_to_end.page.fake_gateway import FakeGateway, Frame
from tests.end_to_end.page.probes import LOUDEST, NO_MICROPHONE, POOR_CONTRAST, WATCH_WISHES

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def recorded(room: Page, seconds: int = 1) -> None:
    """Waits until the timer shows that so much was recorded."""
    await expect(room.get_by_role("timer")).to_have_text(f"0:0{seconds} / 5:00")


async def test_a_tap_starts_a_tap_sends_and_the_transcript_is_shown(room: Page, gateway: FakeGateway) -> None:
    mic = room.get_by_test_id("mic")
    await mic.click()
    await expect(mic).to_have_attribute("aria-pressed", "true")
    await recorded(room, 2)
    assert await room.evaluate(LOUDEST) > 0.3
    await mic.click()
    note = await gateway.received("voice")
    await gateway.wait(lambda: "bytes" in note, "the voice note's bytes")
    await expect(entries(room, "user")).to_contain_text("Listening to your note…")
    message = gateway.id_of(note)
    await gateway.begin(message, spoken=True)
    await gateway.event("transcript_ready", message, text="What is a tide?", language="en", confidence=0.9)
    await expect(room.get_by_test_id("transcript")).to_have_text("What is a tide?")
    await expect(entries(room, "user")).to_contain_text(re.compile("Voice note, 0:0[2-9]"))
    await expect(entries(room, "user")).not_to_contain_text("Listening")
    await gateway.complete(message, "Water that follows the Moon.")
    await expect(entries(room, "assistant")).to_contain_text("Water that follows the Moon.")
    assert_sounds(note, seconds=2)
    await room.get_by_role("button", name="Play your voice note").click()
    await expect(room.get_by_role("button", name="Stop playing")).to_be_visible()


def assert_sounds(note: Frame, *, seconds: float) -> None:
    """The bytes are what the header says, and a decoder hears at least so many seconds: a busy machine
    stops a recording later than requested, never sooner."""
    data = note["bytes"]
    assert note["mime"] == "audio/webm"
    assert note["size"] == len(data)
    assert len(data) > 1000
    with av.open(io.BytesIO(data)) as container:
        frames = [frame.to_ndarray() for frame in container.decode(audio=0)]
        rate = container.streams.audio[0].rate
    assert sum(frame.shape[-1] for frame in frames) / rate > seconds - 0.6
    assert max(float(abs(frame).max()) for frame in frames) > 0.02


async def test_holding_records_releasing_sends_and_the_keyboard_records_too(
    room: Page, gateway: FakeGateway
) -> None:
    await room.get_by_test_id("mic").hover()
    await room.mouse.down()
    await recorded(room)
    await room.mouse.up()
    note = await gateway.received("voice")
    await gateway.wait(lambda: "bytes" in note, "the voice note's bytes")
    await expect(room.get_by_test_id("mic")).to_have_attribute("data-state", "idle")
    assert len(note["bytes"]) == note["size"]
    await room.get_by_test_id("mic").focus()
    await room.keyboard.press("Enter")
    await recorded(room)
    await room.keyboard.press("Enter")
    assert (await gateway.received("voice", 2))["size"] > 0


async def test_sliding_away_escape_and_the_cross_cancel(room: Page, gateway: FakeGateway) -> None:
    mic = room.get_by_test_id("mic")
    await mic.hover()
    await room.mouse.down()
    await recorded(room)
    await room.mouse.move(300, 200)
    await room.mouse.up()
    await expect(mic).to_have_attribute("data-state", "idle")
    await mic.click()
    await expect(mic).to_have_attribute("data-state", "recording")
    await room.keyboard.press("Escape")
    await expect(mic).to_have_attribute("data-state", "idle")
    await mic.click()
    await room.get_by_role("button", name="Cancel recording").click()
    await expect(mic).to_have_attribute("data-state", "idle")
    await send(room, "nothing was sent before this")
    await gateway.received("message")
    assert gateway.of("voice") == []


async def test_a_recording_ends_at_the_longest_length(room: Page, gateway: FakeGateway) -> None:
    gateway.limits["voice_seconds"] = 1
    await room.reload()
    await ready(room)
    await room.get_by_test_id("mic").click()
    assert (await gateway.received("voice"))["size"] > 0
    await expect(room.get_by_role("alert")).to_contain_text("longest length (0:01)")


async def test_a_voice_note_that_is_too_large_is_reported(room: Page, gateway: FakeGateway) -> None:
    gateway.refusal = lambda _frame: {"code": "voice_too_large", "message": "At most 20 MB of sound."}
    await room.get_by_test_id("mic").click()
    await recorded(room)
    await room.get_by_test_id("mic").click()
    await expect(entries(room, "user")).to_contain_text("At most 20 MB of sound.")
    await expect(entries(room, "user")).to_have_attribute("data-state", "failed")


async def test_a_recording_of_a_moment_is_too_short(room: Page, gateway: FakeGateway) -> None:
    # A moment, however busy the machine is.
    await room.evaluate("const at = performance.now(); performance.now = () => at")
    mic = room.get_by_test_id("mic")
    await mic.click()
    await expect(mic).to_have_attribute("data-state", "recording")
    await mic.click()
    await expect(room.get_by_role("alert")).to_contain_text("too short")
    assert gateway.of("voice") == []


async def test_a_microphone_that_cannot_be_had_is_reported(room: Page) -> None:
    for name, words in (
        ("NotAllowedError", "The microphone is blocked."),
        ("NotFoundError", "No microphone was found."),
        ("NotReadableError", "Another program is using the microphone."),
        ("TypeError", "could not be started"),
    ):
        await room.evaluate(NO_MICROPHONE, name)
        await room.get_by_test_id("mic").click()
        await expect(room.get_by_role("alert")).to_contain_text(words)
        await expect(room.get_by_test_id("mic")).to_have_attribute("data-state", "idle")


async def test_an_unaccepted_voice_note_is_sent_again(room: Page, gateway: FakeGateway) -> None:
    gateway.accepting = False
    await room.get_by_test_id("mic").click()
    await recorded(room)
    await room.get_by_test_id("mic").click()
    first = await gateway.received("voice")
    await gateway.wait(lambda: "bytes" in first, "the voice note's bytes")
    assert await room.evaluate(POOR_CONTRAST) == []
    gateway.accepting = True
    gateway.cut()
    again = await gateway.received("voice", 2)
    await gateway.wait(lambda: "bytes" in again, "the voice note's bytes again")
    assert again == first
    await expect(entries(room, "user")).to_have_attribute("data-state", "queued")
    await expect(entries(room, "user")).to_have_count(1)


async def test_a_voice_note_lost_with_a_reload_is_reported_once(room: Page, gateway: FakeGateway) -> None:
    gateway.accepting = False
    await room.get_by_test_id("mic").click()
    await recorded(room)
    await room.get_by_test_id("mic").click()
    await gateway.received("voice")
    await room.reload()
    await expect(entries(room, "notice")).to_contain_text("A voice note (0:01) was not confirmed")
    await room.reload()
    await ready(room)
    await expect(entries(room, "notice")).to_have_count(0)


async def test_sound_processing_is_on_unless_set_otherwise(room: Page) -> None:
    await room.evaluate(WATCH_WISHES)
    await room.get_by_test_id("mic").click()
    await expect(room.get_by_test_id("mic")).to_have_attribute("data-state", "recording")
    wish = {"echoCancellation": True, "noiseSuppression": True, "autoGainControl": True}
    assert await room.evaluate("window.wish") == wish
    await room.keyboard.press("Escape")
    await room.evaluate("localStorage.setItem('parlour.audio', '{\"autoGainControl\": false}')")
    await room.get_by_test_id("mic").click()
    await expect(room.get_by_test_id("mic")).to_have_attribute("data-state", "recording")
    assert await room.evaluate("window.wish") == {**wish, "autoGainControl": False}
    await room.keyboard.press("Escape")
