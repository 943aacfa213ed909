"""What a newcomer does: open the page, type, speak, reload; and what a power cut in between changes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect

from tests.end_to_end.real.conftest import CLIP
from tests.support.browser_fixture import Watch
from tests.support.gateway_process import GatewayProcess, free_port
from voice.wer import word_error_rate

pytestmark = [
    pytest.mark.browser,
    pytest.mark.models,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(900),
]

ANSWER_MS = 240_000
"""The recogniser loads slowly where others are at work."""
RECORDING_MS = 4_000


async def _sign_in(page: Page, gateway: GatewayProcess) -> None:
    await page.goto(gateway.url)
    await page.get_by_test_id("token-input").fill(gateway.token)
    await page.get_by_test_id("sign-in").click()


def _answers(page: Page) -> Locator:
    return page.locator('[data-testid="entry"][data-role="assistant"]')


async def test_typed_and_spoken_messages_are_answered_and_survive_a_reload(
    page: Page, gateway: GatewayProcess, watch: Watch
) -> None:
    watch.list_requests(page.context)
    await _sign_in(page, gateway)
    await page.get_by_test_id("composer").fill("the capital of France is Paris")
    await page.keyboard.press("Enter")
    await expect(_answers(page)).to_have_count(1, timeout=ANSWER_MS)
    await expect(_answers(page).first).to_contain_text("Paris", timeout=ANSWER_MS)
    await expect(page.get_by_test_id("stop")).to_be_hidden(timeout=ANSWER_MS)

    await page.get_by_test_id("mic").click()
    await page.wait_for_timeout(RECORDING_MS)
    await page.get_by_test_id("mic").click()
    transcript = page.get_by_test_id("transcript")
    await expect(transcript).to_have_count(1, timeout=ANSWER_MS)
    heard = await transcript.inner_text()
    assert word_error_rate(CLIP.transcript, heard) < 0.2, heard
    await expect(_answers(page)).to_have_count(2, timeout=ANSWER_MS)
    await expect(page.get_by_test_id("stop")).to_be_hidden(timeout=ANSWER_MS)

    shown = await _answers(page).all_inner_texts()
    await page.reload()
    await expect(_answers(page)).to_have_count(2)
    for before, after in zip(shown, await _answers(page).all_inner_texts(), strict=True):
        assert before.split("\n")[:3] == after.split("\n")[:3]
    await expect(page.get_by_test_id("transcript")).to_have_text(heard)
    assert watch.complaints == []
    assert {url.split("/")[2] for url in watch.requests if url.startswith("http")} == {
        gateway.url.removeprefix("http://")
    }


async def test_a_kill_in_the_middle_of_an_answer_is_mended_by_the_next_start(
    page: Page, tmp_path: Path
) -> None:
    # What mends it is the same with any model, and this one's words come as slowly as a test needs.
    overrides = ('llm.model="scripted:echo:delay=0.2"', 'voice.transcriber="scripted:hello"')
    async with GatewayProcess(tmp_path, overrides=overrides, port=free_port()) as gateway:
        await gateway.start()
        await _sign_in(page, gateway)
        await page.get_by_test_id("composer").fill("tell me of the lighthouse and of its keeper " * 6)
        await page.keyboard.press("Enter")
        await expect(_answers(page)).to_contain_text(re.compile(r"\w+ \w+ \w+ \w+ \w+"), timeout=ANSWER_MS)
        await gateway.kill()
        await gateway.start()
        await expect(_answers(page)).not_to_have_attribute("data-streaming", "true", timeout=ANSWER_MS)
        await expect(_answers(page)).to_have_count(1)
        answer = await _answers(page).locator("p").first.inner_text()
        await page.reload()
        await expect(_answers(page)).to_contain_text(answer.splitlines()[0])
        await expect(_answers(page)).to_have_count(1)
