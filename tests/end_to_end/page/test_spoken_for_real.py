"""The page against the real web adapter, its headers included: sound goes in, words and sound come out."""

from __future__ import annotations

import array
import asyncio
import math
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import BrowserContext, Page, expect

from adapters.channel import VoiceClip
from adapters.web.inbound import thread_of
from adapters.web.settings import PACKAGED_PAGE
from pipeline.domain.ids import ThreadKey
from pipeline.domain.live import SpeechFinal, SpeechPartial, SpeechStarted
from pipeline.domain.timeline import TimelineEntry
from tests.adapters.web.harness import CHAT, TOKEN, WebHarness, serving
from tests.adapters.web.ports import ScriptedLive, ScriptedVoice
from tests.end_to_end.page.acts import entries, sign_in
from tests.end_to_end.page.test_read_aloud import PLAYS, SOUND
from tests.end_to_end.page.test_talk import PLAIN_SOUND, RATE, talk, words
from tests.support.browser_fixture import Watch

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


class RecordedVoice(ScriptedVoice):
    """Says everything with the same recording."""

    async def read(self, text: str, *, thread: ThreadKey, message_id: str) -> VoiceClip:
        clip = await super().read(text, thread=thread, message_id=message_id)
        return VoiceClip(data=SOUND, mime="audio/ogg", seconds=clip.seconds, waveform=clip.waveform)


@pytest_asyncio.fixture(loop_scope="session")
async def harness(tmp_path: Path) -> AsyncIterator[WebHarness]:
    made = WebHarness(tmp_path, static_dir=PACKAGED_PAGE)
    line = TimelineEntry(entry_id=2, message_id="m_0", role="assistant", text="Water.", at=1.0)
    made.timeline.add(thread_of(CHAT), line)
    async with serving(made):
        yield made


async def opened(context: BrowserContext, harness: WebHarness) -> Page:
    page = await context.new_page()
    await page.goto(harness.origin)
    await page.evaluate(f"localStorage.setItem('parlour.chat', '{CHAT}'); {PLAIN_SOUND}")
    await sign_in(page, TOKEN)
    return page


async def test_the_microphone_reaches_the_port_and_what_it_hears_reaches_the_page(
    context: BrowserContext, harness: WebHarness, watch: Watch
) -> None:
    live = ScriptedLive()
    harness.adapter.attach(live, None)
    page = await opened(context, harness)
    await talk(page)
    stream = live.stream
    stream.on_event(SpeechStarted(utterance=1))
    await expect(words(page)).to_have_text("Hearing you…")
    stream.on_event(SpeechPartial(utterance=1, text="what is a time", stable_chars=9))
    await expect(entries(page, "user").locator(".unstable")).to_have_text(" time")
    stream.on_event(
        SpeechFinal(utterance=1, text="What is a tide?", language="en", confidence=0.9, message_id="m_1")
    )
    spoken = TimelineEntry(
        entry_id=3, message_id="m_1", role="user", text="What is a tide?", at=2.0, spoken=True
    )
    harness.adapter.entry_recorded(thread_of(CHAT), spoken)
    await expect(entries(page, "user").get_by_test_id("transcript")).to_have_text("What is a tide?")
    await expect(entries(page, "user")).to_have_count(1)
    async with asyncio.timeout(60):
        await stream.enough.wait()
    await page.get_by_test_id("talk").click()
    await expect(page.get_by_test_id("talk-bar")).to_be_hidden()
    await stream.closed.wait()
    assert {len(piece) for piece in stream.heard} == {2_048}
    samples = array.array("h", b"".join(stream.heard))
    assert len(samples) > RATE
    assert math.sqrt(sum(one * one for one in samples) / len(samples)) > 3_000
    await page.close()
    assert watch.complaints == []


async def test_an_answer_of_the_log_is_read_aloud(
    context: BrowserContext, harness: WebHarness, watch: Watch
) -> None:
    voice = RecordedVoice()
    harness.adapter.attach(None, voice)
    page = await opened(context, harness)
    await expect(page.get_by_test_id("talk")).to_be_hidden()
    row = entries(page, "assistant")
    await row.get_by_role("button", name="Listen to the answer").click()
    await page.wait_for_function(PLAYS, arg=await row.locator("audio").element_handle())
    assert voice.said == ["Water."]
    await page.close()
    assert watch.complaints == []
