"""A tool that has to be allowed, on the page of a real gateway; and a session off the record."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from pipeline.domain.chat import ToolCall
from pipeline.domain.clock import ManualClock
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from pipeline.tools.action import action_hash
from tests.end_to_end.page.acts import entries, ready, send, sign_in
from tests.end_to_end.page.worker_port import port_setting
from tests.support.browser_fixture import Watch
from tests.support.harness import GatewayHarness, open_gateway

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


def _web() -> tuple[str, ...]:
    return ("channels.web.enabled=true", port_setting())


def _calls(name: str, **arguments: object) -> ScriptedAnswer:
    return ScriptedAnswer.calling(ToolCall(id="c", name=name, arguments=json.dumps(arguments)))


def _written(data: Path) -> list[str]:
    return [path.read_text(encoding="utf-8") for path in data.glob("workspace/people/*/files/tea.txt")]


async def _sign_in(page: Page, harness: GatewayHarness, data: Path) -> None:
    await page.goto(harness.gateway.url)
    await sign_in(page, (data / "web-token").read_text(encoding="ascii").strip())


async def test_a_tool_is_allowed_on_the_page_and_how_it_came_about_survives_a_reload(
    page: Page, watch: Watch, tmp_path: Path
) -> None:
    llm = ScriptedLlm(
        [
            _calls("load_tools", groups=["files"]),
            _calls("write_file", path="tea.txt", text="green"),
            ScriptedAnswer.of("It is written down."),
        ]
    )
    async with open_gateway(tmp_path, *_web(), llm=llm) as harness:
        await _sign_in(page, harness, tmp_path)
        await send(page, "note it")
        card = entries(page, "approval")
        await expect(card.locator(".title")).to_have_text("May I use write_file?")
        fingerprint = action_hash("write_file", {"path": "tea.txt", "text": "green"})
        words = (
            "It changes the file own/tea.txt.\n"
            "Why I ask: the rule “write-files” of the security policy asks for it.\n"
            f'Path: "tea.txt"\nText: "green"\nSHA-256: {fingerprint}'
        )
        await expect(card.locator(".reason")).to_have_text(words, use_inner_text=True)
        part = entries(page, "assistant").get_by_test_id("work")
        await expect(part).to_have_count(1)
        await card.get_by_role("button", name="Allow", exact=True).click()
        await expect(entries(page, "assistant")).to_contain_text("It is written down.")
        await expect(card).to_contain_text("Answered: Allow")
        rows = page.get_by_test_id("entry")
        roles = [await rows.nth(at).get_attribute("data-role") for at in range(await rows.count())]
        assert roles == ["user", "approval", "assistant"], "what was asked first is first"
        await page.reload()
        await ready(page)
        await part.locator("summary").click()
        await expect(part.locator("li").last).to_contain_text("write file")
        await expect(part.locator("li").last).to_have_attribute("data-state", "done")
        await expect(card.locator(".title")).to_have_text("May I use write_file?")
        await expect(card.locator(".reason")).to_have_text(words, use_inner_text=True)
        await expect(card).to_contain_text("Answered: Allow")
        await expect(card.get_by_role("button", name="Allow", exact=True)).to_have_count(0)
        again = [await rows.nth(at).get_attribute("data-role") for at in range(await rows.count())]
        assert again == roles
    assert _written(tmp_path) == ["green"]
    assert [words for words in watch.complaints if "WebSocket connection" not in words] == []


async def test_a_page_that_comes_back_shows_what_is_left_of_a_questions_time(
    fresh_page: Page, tmp_path: Path
) -> None:
    llm = ScriptedLlm(
        [
            _calls("load_tools", groups=["files"]),
            _calls("write_file", path="tea.txt", text="green"),
            ScriptedAnswer.of("Nothing is written."),
        ]
    )
    clock = ManualClock()
    # Years apart from the gateway's.
    await fresh_page.clock.set_fixed_time(datetime(2031, 5, 3, 12, 0, tzinfo=UTC))
    async with open_gateway(tmp_path, *_web(), llm=llm, clock=clock) as harness:
        await _sign_in(fresh_page, harness, tmp_path)
        await send(fresh_page, "note it")
        card = entries(fresh_page, "approval")
        await expect(card).to_contain_text("Open until 12:05")
        await clock.advance(120)
        await fresh_page.reload()
        await ready(fresh_page)
        await expect(card).to_contain_text("Open until 12:03")
        await card.get_by_role("button", name="Deny").click()
        await expect(card).to_contain_text("Answered: Deny")
        await expect(card).not_to_contain_text("Open until")


async def test_an_answered_question_of_a_turn_at_work_is_there_after_a_reload(
    page: Page, tmp_path: Path
) -> None:
    gate = asyncio.Event()
    llm = ScriptedLlm(
        [
            _calls("load_tools", groups=["files"]),
            _calls("write_file", path="tea.txt", text="green"),
            ScriptedAnswer(chunks=("It is written down.",), gate=gate),
        ]
    )
    async with open_gateway(tmp_path, *_web(), llm=llm) as harness:
        await _sign_in(page, harness, tmp_path)
        await send(page, "note it")
        card = entries(page, "approval")
        await card.get_by_role("button", name="Allow", exact=True).click()
        await expect(card).to_contain_text("Answered: Allow")
        await page.reload()
        await ready(page)
        await expect(page.get_by_test_id("stop")).to_be_visible()
        await expect(card).to_contain_text("Answered: Allow")
        gate.set()
        await expect(entries(page, "assistant")).to_contain_text("It is written down.")
        await expect(card).to_have_count(1)


async def test_a_session_off_the_record_is_marked_until_it_ends(page: Page, tmp_path: Path) -> None:
    async with open_gateway(tmp_path, *_web()) as harness:
        await _sign_in(page, harness, tmp_path)
        await send(page, "hello")
        await expect(entries(page, "assistant")).to_have_count(1)
        badge = page.get_by_test_id("off-record")
        await expect(badge).to_be_hidden()
        await send(page, "/otr")
        await expect(badge).to_be_visible()
        await expect(entries(page, "session").locator("code").first).to_have_text("/otr")
        await expect(entries(page, "session")).to_contain_text("This page shows it until you load it again.")
        for count, words in ((2, "one"), (3, "two")):
            await send(page, words)
            await expect(entries(page, "assistant")).to_have_count(count)
        await expect(page.get_by_test_id("stop")).to_be_hidden()
        rows = page.get_by_test_id("entry")
        shown = [await rows.nth(at).get_attribute("data-role") for at in range(await rows.count())]
        assert shown[-4:] == ["user", "assistant"] * 2, "each answer is below its message"
        await page.reload()
        await ready(page)
        await expect(badge).to_be_visible()
        await send(page, "/otr")
        await expect(badge).to_be_hidden()
