"""Talking to the page: the real gateway and Whisper, a real browser, real speech. The answers are an echo."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Locator, Page, expect

from tests.support.browser_fixture import Watch, open_chromium
from tests.support.gateway_process import GatewayProcess, free_port
from tests.support.live_page import Passed, open_page, passed, recording
from tests.support.models import require_models
from tests.support.web_client import WebChat
from tests.voice.clips import CLIPS, samples_of
from tests.voice.voices import voices_dir
from voice.wer import normalised_words, word_error_rate

pytestmark = [
    pytest.mark.browser,
    pytest.mark.models,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(900),
]

CLIP = CLIPS["lv_0890"]
"""5.3 s of speech."""
OTHER, PAUSE = CLIPS["lv_0880"], bytes(64_000)
"""What somebody else says meanwhile through the socket, and the silence behind it."""
PATIENCE_MS = 300_000
LONG = "tides " * 400


@pytest.fixture(scope="module")
def sentence(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recording(tmp_path_factory.mktemp("sentence") / "s.wav", CLIP, before_s=0.5, after_s=60.0)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def browser(sentence: Path) -> AsyncIterator[Browser]:
    """A Chromium whose microphone says one sentence."""
    async with open_chromium(sentence) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[GatewayProcess]:
    """A gateway that hears and speaks for real, and repeats its input."""
    require_models()
    models = json.dumps(str(voices_dir().parent))
    overrides = (f"models.dir={models}", "voice.workers=1", 'llm.model="scripted:echo:delay=0.02"')
    folder = tmp_path_factory.mktemp("gateway")
    async with GatewayProcess(folder, overrides=overrides, port=free_port(), executed=True) as process:
        await process.start()
        yield process


def rows(page: Page, role: str) -> Locator:
    return page.locator(f'[data-testid="entry"][data-role="{role}"]')


def live(moments: list[Passed]) -> list[Passed]:
    return [moment for moment in moments if moment.type.startswith("speech_")]


async def answered(page: Page) -> str:
    """The one message that was spoken, understood and answered; its words."""
    spoken = page.locator('[data-role="user"][data-state="answered"]').get_by_test_id("transcript")
    await expect(spoken).to_have_count(1, timeout=PATIENCE_MS)
    return await spoken.inner_text()


async def test_two_who_talk_at_once_are_heard_apart_and_each_says_one_message(
    context: BrowserContext, gateway: GatewayProcess, watch: Watch
) -> None:
    page = await open_page(context, gateway)
    async with WebChat() as other:
        await other.connect(gateway.url, gateway.token)
        await page.get_by_test_id("talk").click()
        await other.talk("t1")
        await other.send_sound(samples_of(OTHER) + PAUSE)
        final = await other.wait_for(
            lambda frame: frame["type"] == "live" and frame["event"]["type"] == "speech_final"
        )
        said = final["event"]
        assert word_error_rate(OTHER.transcript, said["text"]) < 0.15, said
        answer = await other.answer(said["message_id"])
        assert answer.text == f"You said: {said['text']}"
        heard = await answered(page)
        assert list(other.seen.started) == [said["message_id"]]
    assert word_error_rate(CLIP.transcript, heard) < 0.15, heard
    await expect(rows(page, "user")).to_have_count(1)
    await expect(rows(page, "assistant")).to_have_count(1)
    await expect(page.get_by_test_id("talk-words")).to_have_text("Listening")
    reported = live(await passed(page))
    # Whether words grow meanwhile is the machine's: what is shown so far gives way to what ends. Where
    # no one else talks, the tests below see them grow.
    order = [moment.type for moment in reported]
    assert order[0] == "speech_started"
    assert order.index("speech_ended") < len(order) - 1
    assert [reported[-1].type, reported[-1].fields["text"], order.count("speech_final")] == [
        "speech_final",
        heard,
        1,
    ]
    assert reported[-1].fields["message_id"] != said["message_id"]
    await page.reload()
    await expect(rows(page, "user").get_by_test_id("transcript")).to_have_text(heard)
    await page.close()
    assert watch.complaints == []


async def test_a_voice_stops_the_answer_that_is_written_and_the_one_that_is_read(
    context: BrowserContext, gateway: GatewayProcess, watch: Watch
) -> None:
    page = await open_page(context, gateway)
    composer = page.get_by_test_id("composer")
    await composer.fill(
        "The tide is the rise and fall of the sea, twice a day, drawn by the moon and by the sun."
    )
    await composer.press("Enter")
    await page.get_by_role("button", name="Listen to the answer").click(timeout=PATIENCE_MS)
    player = page.locator("audio")
    await expect(player).to_be_visible(timeout=PATIENCE_MS)
    await page.wait_for_function("() => document.querySelector('audio').currentTime > 0")
    await composer.fill(LONG)
    await composer.press("Enter")
    await expect(rows(page, "assistant").last).to_contain_text("tides tides", timeout=PATIENCE_MS)
    assert not await player.evaluate("audio => audio.paused")
    await page.get_by_test_id("talk").click()
    stopped = rows(page, "error")
    await expect(stopped).to_have_attribute("data-code", "stopped", timeout=PATIENCE_MS)
    assert await player.evaluate("audio => audio.paused && !audio.ended")
    # While it is said, or once it is: the machine's choice.
    spoken = rows(page, "user").get_by_test_id("transcript")
    await expect(spoken).to_contain_text("nless to be", timeout=PATIENCE_MS)
    moments = await passed(page)
    (asked,) = [
        moment for moment in moments if moment.fields.get("code") == "stopped" and moment.type == "error"
    ]
    tokens = [moment for moment in moments if moment.type == "llm_token"]
    cut = [moment for moment in tokens if moment.fields["message_id"] == asked.fields["message_id"]]
    assert 0 < len(cut) < len(LONG.split())
    assert max(moment.at for moment in cut) <= asked.at
    await expect(stopped).to_have_count(1)
    await page.close()
    assert watch.complaints == []


async def test_with_push_to_talk_what_was_said_is_a_message_when_the_button_is_released(
    context: BrowserContext, gateway: GatewayProcess, watch: Watch
) -> None:
    page = await open_page(context, gateway, hands_free=False)
    await page.get_by_test_id("talk").click()
    await expect(page.get_by_test_id("talk-words")).to_have_text("Hold the microphone to talk")
    await page.get_by_test_id("mic").hover()
    await page.mouse.down()
    await expect(page.get_by_test_id("transcript")).to_contain_text("be", timeout=PATIENCE_MS)
    await page.mouse.up()
    heard = await answered(page)
    # Where in the sentence the button is pressed and released is the machine's choice.
    assert len({"unless", "to", "be", "rather", "cold"} & set(normalised_words(heard))) >= 2, heard
    await expect(rows(page, "user")).to_have_count(1)
    await expect(page.get_by_test_id("talk-words")).to_have_text("Hold the microphone to talk")
    moments = await passed(page)
    (released,) = [moment for moment in moments if moment.type == "live_finish"]
    (final,) = [moment for moment in moments if moment.type == "speech_final"]
    assert released.at < final.at
    assert not [moment for moment in moments if moment.kind == "sound" and moment.at > released.at]
    await page.close()
    assert watch.complaints == []
