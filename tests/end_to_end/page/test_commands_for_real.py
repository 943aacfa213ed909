"""Commands, a web search and a message that steers it, on the page of a real gateway."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from pipeline.domain.chat import ToolCall
from pipeline.domain.clock import SystemClock
from pipeline.llm.direct_client import DirectClient
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.end_to_end.page.acts import entries, ready, send, sign_in
from tests.end_to_end.page.worker_port import port_setting
from tests.end_to_end.test_web_search import PAGES
from tests.pipeline.tools.web_server import serving
from tests.support.browser_fixture import Watch
from tests.support.burst_talk import waits_for_three
from tests.support.harness import open_gateway
from tests.support.openai_server import FakeOpenAiServer

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

_OTHER = "scripted:echo:delay=0"


def _calls(name: str, gate: asyncio.Event | None = None, **arguments: object) -> ScriptedAnswer:
    call = ToolCall(id=name, name=name, arguments=json.dumps(arguments))
    return ScriptedAnswer(chunks=("One moment. ",), calls=(call,), gate=gate)


async def _sign_in(page: Page, url: str, data: Path) -> None:
    await page.goto(url)
    await sign_in(page, (data / "web-token").read_text(encoding="ascii").strip())


def _web() -> tuple[str, ...]:
    return ("channels.web.enabled=true", port_setting())


async def test_a_search_is_steered_by_a_message_that_arrives_meanwhile(page: Page, tmp_path: Path) -> None:
    gate = asyncio.Event()
    llm = ScriptedLlm(
        [
            _calls("load_tools", gate, groups=["web"]),
            _calls("search_web", query="green tea"),
            ScriptedAnswer.of("Two minutes, and three for black tea."),
        ]
    )
    settings = ('tools.search.backend="searxng"', 'turn.bursts="each"', 'turn.while_busy="steer"')
    async with serving(PAGES) as site:
        address = f'tools.search.url="http://127.0.0.1:{site.port}"'
        async with open_gateway(tmp_path, *_web(), *settings, address, llm=llm) as harness:
            await _sign_in(page, harness.gateway.url, tmp_path)
            await send(page, "how long does green tea steep?")
            await expect(entries(page, "user").last).to_have_attribute("data-state", "answering")
            await send(page, "and black tea?")
            await expect(entries(page, "user")).to_have_count(2)
            gate.set()
            await expect(entries(page, "assistant")).to_contain_text(
                ["Two minutes, and three for black tea."]
            )
            await page.get_by_test_id("work").locator("summary").click()
            await expect(page.get_by_test_id("work")).to_contain_text("search web")
        (request,) = site.requests
    assert request.query["q"] == "green tea"
    assert "and black tea?" in str(llm.requests[-1].messages)


async def test_messages_in_a_row_get_one_answer_on_the_page(page: Page, tmp_path: Path) -> None:
    async with FakeOpenAiServer(brain=waits_for_three) as server:
        model = DirectClient(model="m", clock=SystemClock(), api_base=server.api_base)
        bursts = ("turn.bursts=merge", "turn.burst_s=60")
        async with open_gateway(tmp_path, *_web(), *bursts, model=model) as harness:
            await _sign_in(page, harness.gateway.url, tmp_path)
            for word in ("red", "green", "blue"):
                await send(page, word)
            await expect(entries(page, "assistant")).to_contain_text(["You like red, green, blue."])
            await expect(entries(page, "user")).to_have_count(3)
            await expect(entries(page, "user").last).to_contain_text("Answered together")


async def test_a_message_that_interrupts_ends_the_answer_on_the_page(page: Page, tmp_path: Path) -> None:
    held = ScriptedAnswer(chunks=("Rome is very ", "sunny."), gate=asyncio.Event(), gate_at=1)
    llm = ScriptedLlm([held, ScriptedAnswer.of("Paris is wet.")])
    async with open_gateway(tmp_path, *_web(), 'turn.while_busy="interrupt"', llm=llm) as harness:
        await _sign_in(page, harness.gateway.url, tmp_path)
        await send(page, "the weather in Rome")
        await expect(entries(page, "assistant")).to_contain_text("Rome is very")
        await send(page, "I mean Paris")
        await expect(entries(page, "assistant").last).to_contain_text("Paris is wet.")
        await expect(page.get_by_test_id("stop")).to_be_hidden()
        await expect(page.get_by_test_id("log")).not_to_contain_text("sunny")
    assert llm.cancelled == 1


async def test_commands_answer_on_the_page_and_a_model_is_chosen_by_its_button(
    page: Page, watch: Watch, tmp_path: Path
) -> None:
    models = ('llm.model="scripted:echo"', f'llm.choices=["{_OTHER}"]')
    async with open_gateway(tmp_path, *_web(), *models) as harness:
        await _sign_in(page, harness.gateway.url, tmp_path)
        await send(page, "I like green tea")
        await expect(entries(page, "assistant")).to_have_count(1)
        notices = entries(page, "notice")
        for at, (command, shown) in enumerate(
            (("/history green", "green tea"), ("/usage", "Today you have used"), ("/status", "scripted:echo"))
        ):
            await send(page, command)
            await expect(notices).to_have_count(at + 1)
            await expect(notices.last).to_contain_text(shown)
        await send(page, "/model")
        await expect(notices.last).to_contain_text(_OTHER)
        card = entries(page, "approval")
        await expect(card.locator(".title")).to_have_text("Choose")
        await page.reload()
        await ready(page)
        # The command is done, and its menu is still open.
        await expect(page.get_by_test_id("stop")).to_be_hidden()
        await page.get_by_role("button", name=_OTHER).click()
        await expect(notices.last).to_contain_text("answers from now on")
        await expect(card).to_contain_text(f"Answered: {_OTHER}")
        await page.reload()
        await ready(page)
        await expect(card).to_have_count(0)
        await expect(page.get_by_test_id("stop")).to_be_hidden()
        await send(page, "/status")
        await expect(notices.last).to_contain_text(_OTHER)
    assert [words for words in watch.complaints if "WebSocket connection" not in words] == []
