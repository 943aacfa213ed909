"""How an answer came about, on the page: its steps, a question on the way, and what is kept."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.end_to_end.page.acts import ask, entries, focus_by_tab, ready, send
from tests.end_to_end.page.fake_gateway import FakeGateway
from tests.end_to_end.page.probes import NAMELESS, POOR_CONTRAST

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

THOUGHTS: list[dict[str, Any]] = [
    {"stage": "reasoning", "summary": "I look into the notes first."},
    {
        "stage": "tool_call",
        "summary": "read_file -> path: notes.txt",
        "detail": {"tool_name": "read_file", "success": True},
    },
    {
        "stage": "tool_call",
        "summary": "write_file -> path: summary.txt",
        "detail": {"tool_name": "write_file", "success": False},
    },
]


async def work(gateway: FakeGateway, message: str) -> None:
    """A tool that is used, and one that has to be allowed."""
    await gateway.say(message, "I look into the notes. ")
    await gateway.event(
        "action_started", message, tool_name="read_file", summary="Reading the file “notes.txt”"
    )
    verdict = {"tier": 0, "confidence": 1.0, "reasoning": "it only reads"}
    await gateway.event("shield_verdict", message, tool_name="read_file", decision="ALLOW", **verdict)
    progress = {"summary": "Reading the file “notes.txt”", "line": "line 2"}
    await gateway.event("action_progress", message, tool_name="read_file", **progress)
    await gateway.event("action_completed", message, tool_name="read_file", success=True, summary="3 lines")
    await gateway.event(
        "action_started", message, tool_name="write_file", summary="Writing the file “summary.txt”"
    )
    await gateway.event("shield_verdict", message, tool_name="write_file", decision="ESCALATE", **verdict)
    await gateway.event(
        "approval_required",
        message,
        interaction_id="i_1",
        tool_name="write_file",
        reasoning="Write summary.txt in the workspace?",
        options=["Allow", "Deny"],
        timeout_s=300.0,
        paused=False,
    )


async def finish(gateway: FakeGateway, message: str, content: str, thoughts: list[dict[str, Any]]) -> None:
    """The answer is durable, and so is how it came about."""
    chat = gateway.chats[gateway.chat]
    chat.writing.pop(message, None)
    entry = gateway.write("assistant", content, message_id=message, chat=gateway.chat, thoughts=thoughts)
    fields = {"content": content, "html": entry["html"], "entry_id": entry["entry_id"]}
    await gateway.event("response_complete", message, thoughts=thoughts, **fields)


async def test_the_steps_are_in_the_answer_and_a_question_is_answered_on_the_way(
    kept: tuple[Page, FakeGateway],
) -> None:
    room, gateway = kept
    message = await ask(room, gateway, "sum up my notes")
    await gateway.begin(message)
    await work(gateway, message)
    answer = entries(room, "assistant")
    part = answer.get_by_test_id("work")
    await expect(part.locator(".now")).to_have_text("write file: needs your word")
    await expect(part.locator(".now")).to_have_attribute("aria-live", "polite")
    await expect(part.locator("li").first).to_be_hidden()
    await focus_by_tab(room, part.locator("summary"))
    await room.keyboard.press("Enter")
    steps = part.locator("li")
    await expect(steps).to_have_text(
        [
            "✓done: Reading the file “notes.txt”: line 2",
            "?waits for an answer: Writing the file “summary.txt”",
        ]
    )
    card = entries(room, "approval")
    await focus_by_tab(room, card.get_by_role("button", name="Deny"))
    await room.keyboard.press("Enter")
    sent = await gateway.received("approval")
    assert (sent["interaction"], sent["choice"]) == ("i_1", "Deny")
    await gateway.event("approval_resolved", message, interaction_id="i_1", choice="Deny")
    await gateway.event("action_completed", message, tool_name="write_file", success=False, summary="refused")
    await expect(steps.last).to_have_attribute("data-state", "failed")
    await expect(steps.last).to_have_text("✗not done: Writing the file “summary.txt”: refused")
    await finish(gateway, message, "Your notes are about tea.", THOUGHTS)
    # What the reader has opened stays open when the answer is complete.
    await expect(part.locator(".now")).to_have_text("How I got there (3 steps)")
    await expect(steps.first).to_be_visible()
    await expect(steps.first).to_contain_text("I look into the notes first.")
    await expect(steps.nth(1)).to_contain_text("read file path: notes.txt")
    await expect(steps.last).to_have_attribute("data-state", "failed")
    await expect(room.locator(".activity")).to_have_count(0)
    assert await room.evaluate(NAMELESS) == []


async def test_a_long_payload_is_shown_in_part_and_whole_on_request_before_it_is_allowed(
    kept: tuple[Page, FakeGateway],
) -> None:
    room, gateway = kept
    message = await ask(room, gateway, "write it")
    await gateway.begin(message)
    lines = ['Path: "a.txt"', f'Text: "{"x" * 2_000}THE MIDDLE{"y" * 2_000}"', "SHA-256: 12ab"]
    await gateway.event(
        "approval_required",
        message,
        interaction_id="i_1",
        tool_name="write_file",
        reasoning="\n".join(["May I use write_file?", *lines]),
        options=["Allow", "Deny"],
        timeout_s=300.0,
        paused=False,
    )
    card = entries(room, "approval")
    await expect(card.locator(".payload")).to_contain_text("SHA-256: 12ab")
    await expect(card.locator(".payload")).not_to_contain_text("THE MIDDLE")
    await card.get_by_role("button", name="Show all").click()
    await expect(card.locator(".payload")).to_have_text("\n".join(lines), use_inner_text=True)
    colours = [
        await card.get_by_role("button", name=name).evaluate(
            "button => getComputedStyle(button).backgroundColor"
        )
        for name in ("Allow", "Deny")
    ]
    assert colours[0] != colours[1], "the two are not alike"


async def test_how_it_came_about_is_there_after_a_reload_and_closed(room: Page, gateway: FakeGateway) -> None:
    message = await ask(room, gateway, "sum up my notes")
    await gateway.begin(message)
    await finish(gateway, message, "Tea.", THOUGHTS)
    await room.reload()
    await ready(room)
    part = entries(room, "assistant").get_by_test_id("work")
    await expect(part.locator(".now")).to_have_text("How I got there (3 steps)")
    await expect(part.locator("li").first).to_be_hidden()


async def test_sub_agents_are_steps_with_what_came_of_them(kept: tuple[Page, FakeGateway]) -> None:
    room, gateway = kept
    message = await ask(room, gateway, "research")
    await gateway.begin(message)
    for name in ("reader", "writer"):
        await gateway.event("sub_agent_spawned", message, name=name, task=f"the {name}'s task")
    await gateway.event("sub_agent_progress", message, name="reader", status="web_fetch: page 3")
    part = entries(room, "assistant").get_by_test_id("work")
    await expect(part.locator(".now")).to_have_text("reader: web_fetch: page 3")
    await gateway.event("sub_agent_completed", message, name="reader", result="Three papers.")
    await gateway.event("sub_agent_failed", message, name="writer", reason="no paper to write on")
    await part.locator("summary").click()
    await expect(part.locator("li")).to_have_text(
        ["✓done: reader Three papers.", "✗not done: writer no paper to write on"]
    )


async def test_a_turn_that_begins_again_begins_its_steps_again(kept: tuple[Page, FakeGateway]) -> None:
    room, gateway = kept
    message = await ask(room, gateway, "go")
    await gateway.begin(message)
    await gateway.event("action_started", message, tool_name="a", summary="first")
    await expect(entries(room, "assistant").get_by_test_id("work")).to_have_count(1)
    await gateway.event("turn_started", message)
    await expect(entries(room, "assistant").get_by_test_id("work")).to_have_count(0)
    await gateway.event("action_started", message, tool_name="b", summary="second")
    await gateway.complete(message, "Done.")
    # It never ended, as far as anybody knows.
    part = entries(room, "assistant").get_by_test_id("work")
    await expect(part.locator("li")).to_have_attribute("data-state", "failed")


async def test_hostile_words_in_steps_are_inert(kept: tuple[Page, FakeGateway]) -> None:
    room, gateway = kept
    bad = "<img src=x onerror=window.pwned=1>"
    message = await ask(room, gateway, "go")
    await gateway.begin(message)
    await gateway.event("action_started", message, tool_name=bad, summary=bad)
    hostile = [{"stage": bad, "summary": bad, "detail": {"tool_name": bad}}, {"summary": 7}, None, "x"]
    await finish(gateway, message, "Done.", hostile)  # type: ignore[arg-type]  # whatever comes
    part = entries(room, "assistant").get_by_test_id("work")
    await part.locator("summary").click()
    await expect(part.locator("li")).to_contain_text(bad)
    assert await room.evaluate("window.pwned") is None
    assert await room.locator("#log img").count() == 0


async def test_the_header_tells_the_title_and_that_a_session_is_off_the_record(
    room: Page, gateway: FakeGateway
) -> None:
    chat = gateway.chat
    title, badge = room.get_by_test_id("chat-title"), room.get_by_test_id("off-record")
    await gateway.send(gateway.write("title", "Tea and its history", chat=chat))
    await expect(title).to_have_text("Tea and its history")
    await expect(badge).to_be_hidden()
    await send(room, "/otr")
    assert (await gateway.received("command"))["name"] == "otr"
    await gateway.send(gateway.write("session", "Off the record from here on", chat=chat, code="otr"))
    await expect(badge).to_be_visible()
    await expect(title).to_be_hidden()
    await room.reload()
    await ready(room)
    await expect(badge).to_be_visible()
    await gateway.send(gateway.write("session", "New conversation", chat=chat))
    await expect(badge).to_be_hidden()
    await expect(entries(room, "session")).to_have_count(2)


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_it_is_readable_on_every_screen(room: Page, gateway: FakeGateway, scheme: str) -> None:
    await room.evaluate("scheme => localStorage.setItem('parlour.theme', scheme)", scheme)
    await room.reload()
    await ready(room)
    chat = gateway.chat
    await gateway.send(gateway.write("session", "Off the record", chat=chat, code="otr"))
    await gateway.send(gateway.write("title", "A long title about tea and how it came to us", chat=chat))
    message = await ask(room, gateway, "sum up my notes")
    await gateway.begin(message)
    await work(gateway, message)
    part = entries(room, "assistant").get_by_test_id("work")
    await part.locator("summary").click()
    await expect(part.locator("li")).to_have_count(2)
    for width in (320, 1100):
        await room.set_viewport_size({"width": width, "height": 700})
        assert await room.evaluate(POOR_CONTRAST) == []
        for selector in ("html", ".top", "#scroller"):
            overflow = "node => node.scrollWidth - node.clientWidth"
            assert await room.locator(selector).evaluate(overflow) <= 0, (width, selector)
