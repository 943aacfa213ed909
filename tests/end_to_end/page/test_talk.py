"""Talking live: a real microphone as PCM, what is heard while it is said, and the state in words."""

from __future__ import annotations

import array
import math
from itertools import pairwise

import pytest
from playwright.async_api import Locator, Page, expect

from tests.end_to_end.page.acts import ask, entries, ready, send, sign_in
from tests.end_to_end.page.fake_gateway import FakeGateway, Frame
from tests.end_to_end.page.probes import NAMELESS, NO_MICROPHONE, POOR_CONTRAST, WATCH_WISHES

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

RATE = 16_000
PLAIN_SOUND = """localStorage.setItem('parlour.audio',
  '{"echoCancellation": false, "noiseSuppression": false, "autoGainControl": false}')"""
RESAMPLED = """async ([rate, hz]) => {
  const sound = new OfflineAudioContext(1, 2 * rate, rate);
  await sound.audioWorklet.addModule('/static/pcm-worklet.js');
  const frames = [];
  const node = new AudioWorkletNode(sound, 'pcm-frames', { channelCount: 1, channelCountMode: 'explicit' });
  const enough = new Promise((done) => {
    node.port.onmessage = ({ data }) => { if (frames.push(new Int16Array(data)) === 30) done(); };
  });
  const tone = new OscillatorNode(sound, { frequency: hz });
  tone.connect(node).connect(sound.destination);
  tone.start();
  await sound.startRendering();
  await enough;
  const samples = frames.slice(1).flatMap((frame) => [...frame]);
  return Math.sqrt(samples.reduce((sum, one) => sum + one * one, 0) / samples.length) / 32767;
}"""


def words(room: Page) -> Locator:
    return room.get_by_test_id("talk-words")


async def talk(room: Page) -> None:
    """Presses Talk and waits until the gateway listens."""
    await room.get_by_test_id("talk").click()
    await expect(words(room)).to_have_text("Listening")


async def hold_to_talk(room: Page) -> None:
    """Talks with the button held from now on."""
    await talk(room)
    await room.get_by_test_id("talk-manner").click()
    await expect(words(room)).to_have_text("Hold the microphone to talk")


async def test_the_microphone_arrives_at_16_khz_and_as_loud_as_it_was(
    room: Page, gateway: FakeGateway
) -> None:
    await room.evaluate(PLAIN_SOUND)
    await talk(room)
    start = await gateway.received("live_start")
    assert start["hands_free"] is True
    await gateway.wait(lambda: len(gateway.sound) >= 3 * RATE * 2, "three seconds of sound")
    samples = array.array("h", gateway.sound[RATE : RATE + 2 * RATE * 2])
    assert len(samples) == 2 * RATE
    loudness = math.sqrt(sum(one * one for one in samples) / len(samples))
    assert loudness == pytest.approx(12_000 * math.sqrt(3 / 8) / math.sqrt(2), rel=0.2)
    crossings = sum(a < 0 <= b for a, b in pairwise(samples))
    assert crossings / 2 == pytest.approx(180, rel=0.05)
    await room.get_by_test_id("talk").click()
    await gateway.received("live_stop")
    await expect(room.get_by_test_id("talk-bar")).to_be_hidden()
    await send(room, "typed")
    await gateway.received("message")
    silent = len(gateway.sound)
    await send(room, "still typed")
    await gateway.received("message", 2)
    assert len(gateway.sound) == silent


async def test_any_rate_becomes_16_khz_and_nothing_folds_back(room: Page) -> None:
    for rate in (16_000, 44_100, 48_000, 96_000):
        loudness = await room.evaluate(RESAMPLED, [rate, 1_000])
        assert loudness == pytest.approx(math.sqrt(0.5), rel=0.02), rate
        if rate > RATE:
            assert await room.evaluate(RESAMPLED, [rate, 10_000]) < 0.01, rate


async def test_what_is_said_grows_and_becomes_the_message_in_the_same_row(
    room: Page, gateway: FakeGateway
) -> None:
    await talk(room)
    await gateway.hear("speech_started")
    await expect(words(room)).to_have_text("Hearing you…")
    await gateway.hear("speech_partial", text="what is", stable_chars=0)
    await gateway.hear("speech_partial", text="what is a 🌊 time", stable_chars=11)
    row = entries(room, "user")
    await expect(row).to_have_attribute("data-state", "hearing")
    await expect(row.get_by_test_id("transcript")).to_have_text("what is a 🌊 time")
    await expect(row.locator(".unstable")).to_have_text("time")
    await row.evaluate("node => { node.mine = true; }")
    await gateway.hear("speech_ended")
    await expect(words(room)).to_have_text("Listening")
    final: Frame = {"text": "What is a tide?", "language": "en", "confidence": 0.9}
    await gateway.hear("speech_final", message_id="m_1", **final)
    await expect(row).to_have_attribute("data-state", "queued")
    await gateway.begin("m_1", text="What is a tide?", spoken=True)
    await gateway.complete("m_1", "Water.")
    await expect(entries(room, "assistant")).to_contain_text("Water.")
    await expect(words(room)).to_have_text("Listening")
    await expect(row).to_have_count(1)
    await expect(row.get_by_test_id("transcript")).to_have_text("What is a tide?")
    assert await row.evaluate("node => node.mine") is True


async def test_a_message_that_overtakes_the_word_of_it_shows_once(room: Page, gateway: FakeGateway) -> None:
    await talk(room)
    await gateway.hear("speech_started")
    await gateway.hear("speech_partial", text="good mourning", stable_chars=4)
    await gateway.hear("speech_ended")
    row = entries(room, "user")
    await row.evaluate("node => { node.mine = true; }")
    await gateway.begin("m_1", text="Good morning", spoken=True)
    await expect(row.get_by_test_id("transcript")).to_have_text("Good morning")
    await expect(row).to_have_count(1)
    final: Frame = {"text": "Good morning", "language": "en", "confidence": 0.9}
    await gateway.hear("speech_final", message_id="m_1", **final)
    await gateway.complete("m_1", "Good morning to you.")
    await expect(row).to_have_attribute("data-state", "answered")
    await expect(row).to_have_count(1)
    assert await row.evaluate("node => node.mine") is True


async def test_what_came_to_nothing_goes_with_a_word_why(room: Page, gateway: FakeGateway) -> None:
    await talk(room)
    await gateway.hear("speech_started")
    await gateway.hear("speech_partial", text="hm", stable_chars=0)
    await expect(entries(room, "user")).to_have_count(1)
    await gateway.hear("speech_dropped", reason="busy", message="Too many people speak just now.")
    await expect(entries(room, "user")).to_have_count(0)
    await expect(room.get_by_role("alert")).to_contain_text("Too many people speak just now.")
    await expect(words(room)).to_have_text("Listening")


async def test_talk_does_not_hide_typing_and_stop(room: Page, gateway: FakeGateway) -> None:
    await talk(room)
    await expect(room.get_by_test_id("mic")).to_be_hidden()
    message = await ask(room, gateway, "typed while talking")
    await gateway.begin(message)
    await gateway.say(message, "Well")
    await expect(words(room)).to_have_text("Thinking…")
    await room.get_by_test_id("stop").click()
    assert (await gateway.received("command"))["name"] == "stop"


async def test_push_to_talk_sends_only_what_is_said_with_the_button_held(
    room: Page, gateway: FakeGateway
) -> None:
    await hold_to_talk(room)
    assert (await gateway.received("live_start", 2))["hands_free"] is False
    mic = room.get_by_test_id("mic")
    await expect(mic).to_have_accessible_name("Hold to talk")
    before = len(gateway.sound)
    await mic.hover()
    await room.mouse.down()
    await expect(words(room)).to_have_text("Hearing you…")
    await gateway.wait(lambda: len(gateway.sound) > before + RATE, "half a second of sound")
    await gateway.hear("speech_started")
    await gateway.hear("speech_partial", text="hell", stable_chars=0)
    await expect(entries(room, "user")).to_have_count(1)
    await room.mouse.up()
    await gateway.received("live_finish")
    await expect(words(room)).to_have_text("Thinking…")
    said = len(gateway.sound)
    final: Frame = {"text": "Hello", "language": "en", "confidence": 0.9}
    await gateway.hear("speech_final", message_id="m_1", **final)
    await expect(words(room)).to_have_text("Hold the microphone to talk")
    await expect(entries(room, "user")).to_contain_text("Hello")
    assert len(gateway.sound) == said
    assert gateway.of("voice") == []


async def test_push_to_talk_works_with_the_keyboard_and_not_while_typing(
    room: Page, gateway: FakeGateway
) -> None:
    await hold_to_talk(room)
    await room.get_by_test_id("composer").press_sequentially("a b")
    await expect(room.get_by_test_id("composer")).to_have_value("a b")
    assert gateway.of("live_finish") == []
    await room.get_by_test_id("mic").focus()
    await room.keyboard.down("Space")
    await expect(words(room)).to_have_text("Hearing you…")
    await expect(room.get_by_test_id("mic")).to_have_attribute("aria-pressed", "true")
    await room.keyboard.up("Space")
    await gateway.received("live_finish")
    await expect(words(room)).to_have_text("Hold the microphone to talk")
    await room.get_by_test_id("talk").click()
    await expect(room.get_by_test_id("mic")).to_have_accessible_name("Record a voice note")
    await room.reload()
    await ready(room)
    await room.get_by_test_id("talk").click()
    await expect(words(room)).to_have_text("Hold the microphone to talk")


async def test_a_microphone_that_cannot_be_had_is_reported(room: Page, gateway: FakeGateway) -> None:
    for name, reported in (
        ("NotAllowedError", "The microphone is blocked."),
        ("NotFoundError", "No microphone was found."),
    ):
        await room.evaluate(NO_MICROPHONE, name)
        await room.get_by_test_id("talk").click()
        await expect(room.get_by_role("alert")).to_contain_text(reported)
        await expect(room.get_by_test_id("talk")).to_have_attribute("aria-pressed", "false")
        await expect(room.get_by_test_id("talk-bar")).to_be_hidden()
    assert gateway.of("live_start") == []


async def test_the_browser_is_asked_to_take_the_echo_out(room: Page) -> None:
    await room.evaluate(WATCH_WISHES)
    await talk(room)
    wish = {"echoCancellation": True, "noiseSuppression": True, "autoGainControl": True}
    assert await room.evaluate("window.wish") == wish


async def test_a_refusal_and_an_end_are_reported_and_close_the_microphone(
    room: Page, gateway: FakeGateway
) -> None:
    gateway.refusal = lambda _frame: {"code": "live_unavailable", "message": "No one can listen now."}
    await room.get_by_test_id("talk").click()
    await expect(room.get_by_role("alert")).to_contain_text("No one can listen now.")
    await expect(room.get_by_test_id("talk-bar")).to_be_hidden()
    gateway.refusal = lambda _frame: None
    await talk(room)
    await gateway.send({"type": "live_ended", "reason": "too_fast", "message": "That was too fast."})
    await expect(room.get_by_role("alert")).to_contain_text("That was too fast.")
    await expect(room.get_by_test_id("talk-bar")).to_be_hidden()


async def test_a_lost_connection_is_picked_up_again(room: Page, gateway: FakeGateway) -> None:
    await talk(room)
    await gateway.hear("speech_partial", text="half a", stable_chars=0)
    await expect(entries(room, "user")).to_have_count(1)
    gateway.down = True
    gateway.cut()
    await expect(words(room)).to_have_text("Reconnecting…")
    gateway.down = False
    await expect(words(room)).to_have_text("Listening")
    await expect(entries(room, "user")).to_have_count(0)
    assert len(gateway.of("live_start")) == 2


async def test_without_recognition_and_synthesis_no_control_is_shown(
    room: Page, gateway: FakeGateway
) -> None:
    await expect(room.get_by_test_id("talk")).to_be_visible()
    gateway.can.update(live=False, speech=False)
    message = await ask(room, gateway, "hello")
    await gateway.answer(message, "Hello.")
    await expect(room.get_by_role("button", name="Listen to the answer")).to_be_visible()
    await room.reload()
    await ready(room)
    await expect(room.get_by_test_id("mic")).to_be_visible()
    await expect(room.get_by_test_id("talk")).to_be_hidden()
    await expect(entries(room, "assistant")).to_have_count(1)
    await expect(room.get_by_role("button", name="Listen to the answer")).to_be_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_it_is_readable_named_and_fits_a_narrow_screen(
    room: Page, gateway: FakeGateway, scheme: str
) -> None:
    await room.evaluate("scheme => localStorage.setItem('parlour.theme', scheme)", scheme)
    await room.set_viewport_size({"width": 320, "height": 640})
    await room.reload()
    await ready(room)
    await talk(room)
    await gateway.hear("speech_started")
    await gateway.hear("speech_partial", text="a rather long sentence that wraps", stable_chars=8)
    await expect(entries(room, "user").locator(".unstable")).to_be_visible()
    for manner in ("true", "false"):
        await expect(room.get_by_test_id("talk-manner")).to_have_attribute("aria-pressed", manner)
        assert await room.evaluate(POOR_CONTRAST) == []
        assert await room.evaluate(NAMELESS) == []
        for selector in ("html", "#scroller", "#composer-card", "#talk-bar"):
            assert await room.locator(selector).evaluate("node => node.scrollWidth - node.clientWidth") <= 0
        await room.get_by_test_id("talk-manner").click()
    await room.get_by_test_id("talk").focus()
    await expect(room.get_by_test_id("talk")).to_have_accessible_name("End the conversation by voice")


async def test_what_cannot_be_loaded_is_reported_and_is_there_after_a_reload(
    page: Page, gateway: FakeGateway
) -> None:
    """The parts for speech are loaded when they are first used."""
    await page.goto(gateway.origin)
    await sign_in(page)
    for module in ("talk", "recorder"):
        await page.route(f"**/{module}.js", lambda route: route.abort())
    for button in ("talk", "mic"):
        await page.get_by_test_id(button).press("Enter")
        await expect(page.get_by_role("alert")).to_contain_text("This could not be loaded.")
        await page.get_by_role("button", name="Close this message").click()
    await expect(page.get_by_test_id("mic")).to_have_attribute("data-state", "idle")
    await page.unroute_all()
    # A browser remembers that a module could not be loaded.
    await page.reload()
    await ready(page)
    await talk(page)
    await expect(page.get_by_test_id("talk")).to_have_accessible_name("End the conversation by voice")
