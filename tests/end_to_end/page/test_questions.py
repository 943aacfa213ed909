"""A run that asks a person, on the page of a real gateway: the card waits, survives a reload, is answered."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from pipeline.domain.ids import identity_key
from tests.end_to_end.page.acts import ask, entries, focus_by_tab, ready, send, sign_in
from tests.end_to_end.page.fake_gateway import FakeGateway
from tests.end_to_end.page.worker_port import port_setting
from tests.end_to_end.test_memory_command import fact, remember
from tests.support.browser_fixture import Watch
from tests.support.gate_graph import PROMPT, Ledger, gate_graph
from tests.support.harness import GatewayHarness, open_gateway

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

OWNER = identity_key("web", "local", "owner")
QUESTION = {"tool_name": "ask", "reasoning": PROMPT, "options": ["approve", "deny"]}


def _web() -> tuple[str, ...]:
    return ("channels.web.enabled=true", port_setting())


async def _sign_in(page: Page, harness: GatewayHarness, data: Path) -> None:
    await page.goto(harness.gateway.url)
    await sign_in(page, (data / "web-token").read_text(encoding="ascii").strip())


async def test_a_paused_run_is_answered_with_the_keyboard_after_a_reload(
    page: Page, watch: Watch, tmp_path: Path
) -> None:
    ledger = Ledger(tmp_path / "ledger")
    async with open_gateway(tmp_path, *_web(), graph=gate_graph(ledger)) as harness:
        await _sign_in(page, harness, tmp_path)
        await send(page, "pay")
        card = entries(page, "approval")
        await expect(card).to_contain_text("I wait for your answer")
        await expect(page.get_by_test_id("stop")).to_be_hidden()
        await page.reload()
        await ready(page)
        await expect(card).to_have_count(1)
        await expect(entries(page, "assistant")).to_have_count(1)
        # It is below the line that asks.
        order = await page.get_by_test_id("entry").evaluate_all("rows => rows.map(row => row.dataset.role)")
        assert order == ["user", "assistant", "approval"]
        group = card.get_by_role("group", name=f"Answer to: {PROMPT}")
        await focus_by_tab(page, group.get_by_role("button", name="approve"))
        await page.keyboard.press("Enter")
        await expect(entries(page, "assistant").last).to_contain_text("pay: approve by owner")
        await expect(card).to_contain_text("Answered: approve")
        await expect(card.get_by_role("button")).to_have_count(0)
        await page.reload()
        await ready(page)
        await expect(entries(page, "assistant")).to_have_count(2)
        await expect(card).to_contain_text("I waited for your answer")
        await expect(card).to_contain_text(PROMPT)
        await expect(card).to_contain_text("Answered: approve")
        await expect(card.get_by_role("button")).to_have_count(0)
        order = await page.get_by_test_id("entry").evaluate_all("rows => rows.map(row => row.dataset.role)")
        # The answer is a separate line, and its turn's answer follows.
        assert order == ["user", "assistant", "approval", "user", "assistant"]
    assert ledger.lines() == ["prepare", "ask", "act approve"]
    assert [words for words in watch.complaints if "WebSocket connection" not in words] == []


async def test_a_refused_answer_is_reported_in_words_and_closes_the_question(
    room: Page, gateway: FakeGateway
) -> None:
    message = await ask(room, gateway, "pay")
    await gateway.begin(message)
    await gateway.event("approval_required", message, interaction_id="i_1", timeout_s=0.0, **QUESTION)
    await gateway.complete(message, PROMPT)
    card = entries(room, "approval")
    words = {"code": "unavailable", "message": "The store is busy."}
    gateway.refusal = lambda _frame: words
    await card.get_by_role("button", name="approve").click()
    await expect(room.get_by_text("The store is busy.")).to_be_visible()
    await expect(card.get_by_role("button", name="approve")).to_be_enabled()
    words.update(code="refused", message="This question has already been answered.")
    await card.get_by_role("button", name="approve").click()
    await expect(room.get_by_text("This question has already been answered.")).to_be_visible()
    await expect(card).to_contain_text("No longer open")


async def test_a_question_closes_when_its_time_is_over_or_its_turn_fails(
    room: Page, gateway: FakeGateway
) -> None:
    for name, seconds in (("i_1", 0.2), ("i_2", 60.0)):
        message = await ask(room, gateway, name)
        await gateway.begin(message)
        await gateway.event("approval_required", message, interaction_id=name, timeout_s=seconds, **QUESTION)
        if name == "i_1":
            await gateway.complete(message, PROMPT)
        else:
            await gateway.fail(message, "model", "It broke.")
    await expect(entries(room, "approval").get_by_text("No longer open")).to_have_count(2)


async def test_a_question_that_the_gateway_does_not_name_again_is_closed(
    room: Page, gateway: FakeGateway
) -> None:
    message = await ask(room, gateway, "pay")
    await gateway.begin(message)
    await gateway.event("approval_required", message, interaction_id="i_1", timeout_s=0.0, **QUESTION)
    await gateway.event("approval_required", message, interaction_id="i_1", timeout_s=0.0, **QUESTION)
    await gateway.complete(message, PROMPT)
    await expect(entries(room, "approval")).to_have_count(1)
    gateway.cut()
    await expect(entries(room, "approval")).to_contain_text("No longer open")


async def test_a_question_that_no_one_answered_in_time_says_so(room: Page, gateway: FakeGateway) -> None:
    message = await ask(room, gateway, "pay")
    await gateway.begin(message)
    await gateway.event("approval_required", message, interaction_id="i_1", timeout_s=600.0, **QUESTION)
    card = entries(room, "approval")
    await expect(card.get_by_role("button", name="approve")).to_be_visible()
    await gateway.event("approval_resolved", message, interaction_id="i_1", choice="expired")
    await expect(card).to_contain_text("No one answered in time")
    await expect(card).not_to_contain_text("Answered")


async def test_an_open_question_of_the_memory_is_shown_where_it_was_asked_after_a_reload(
    page: Page, watch: Watch, tmp_path: Path
) -> None:
    async with open_gateway(tmp_path, *_web()) as harness:
        await _sign_in(page, harness, tmp_path)
        await send(page, "first")
        await expect(entries(page, "assistant")).to_have_count(1)
        await remember(harness.store, OWNER, fact("f1", "I want to see a heron", "a heron"))
        await send(page, "/memory")
        card = entries(page, "approval")
        await expect(card.get_by_role("button", name="Forget all")).to_be_visible()
        await send(page, "second")
        await expect(entries(page, "assistant")).to_have_count(2)
        await page.reload()
        await ready(page)
        await expect(entries(page, "assistant")).to_have_count(2)
        await expect(card).to_have_count(1)
        # Its list is not kept, as it may be forgotten; the question stays open between the two messages.
        assert await _roles(page) == ["user", "assistant", "approval", "user", "assistant"]
        await card.get_by_role("button", name="Forget all").click()
        await expect(page.get_by_text("Forget everything that I remember of you")).to_be_visible()
    assert [words for words in watch.complaints if "WebSocket connection" not in words] == []


async def _roles(page: Page) -> list[str]:
    """The roles of the rows, from the top."""
    roles: list[str] = await page.get_by_test_id("entry").evaluate_all(
        "rows => rows.map(row => row.dataset.role)"
    )
    return roles
