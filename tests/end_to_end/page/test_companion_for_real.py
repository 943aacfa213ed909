"""A companion on the page of a real gateway: a conversation, an exercise and a crisis message."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from pipeline.llm.scripted import ScriptedAnswer
from tests.end_to_end.page.acts import entries, ready, send, sign_in
from tests.end_to_end.page.worker_port import port_setting
from tests.support.companion import CompanionModel, open_companion

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_a_conversation_an_exercise_and_a_crisis_message(page: Page, tmp_path: Path) -> None:
    llm = CompanionModel([ScriptedAnswer.of("That sounds heavy. What is the **hardest** part of it?")])
    web = ("channels.web.enabled=true", port_setting(), 'bot.name="Robin"')
    async with open_companion(tmp_path, *web, llm=llm) as talk:
        await page.goto(talk.harness.gateway.url)
        await sign_in(page, (tmp_path / "web-token").read_text(encoding="ascii").strip())
        await send(page, "I can't calm down, nothing is helping")
        await ready(page)
        await expect(entries(page, "assistant").last).to_contain_text("That sounds heavy.")
        await send(page, "let's do a box breathing exercise")
        await ready(page)
        await send(page, "ok")
        await ready(page)
        await expect(entries(page, "assistant")).to_have_count(3)
        await send(page, "I want to kill myself")
        await ready(page)
        await expect(entries(page, "assistant").last).to_contain_text("Thank you for telling me.")
        await page.reload()
        await expect(entries(page, "assistant")).to_have_count(4)
