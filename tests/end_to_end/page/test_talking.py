"""A conversation by text: sending, the answer as it is written, commands, errors, questions."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.end_to_end.page.acts import ask, copied, entries, focus_by_tab, ready, send
from tests.end_to_end.page.fake_gateway import FakeGateway

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_enter_sends_and_shift_enter_starts_a_line(kept: tuple[Page, FakeGateway]) -> None:
    room, gateway = kept
    field = room.get_by_test_id("composer")
    await field.press_sequentially("one")
    await field.press("Shift+Enter")
    await field.press_sequentially("two")
    await field.press("Enter")
    frame = await gateway.received("message")
    assert frame["text"] == "one\ntwo"
    await expect(field).to_have_value("")
    await expect(entries(room, "user")).to_contain_text("one\ntwo")


async def test_an_answer_is_shown_while_it_is_written_and_then_replaced(
    kept: tuple[Page, FakeGateway],
) -> None:
    room, gateway = kept
    message = await ask(room, gateway, "hello")
    await gateway.begin(message)
    answer = entries(room, "assistant")
    await expect(answer).to_contain_text("Writing an answer")
    await expect(room.get_by_test_id("stop")).to_be_visible()
    await gateway.say(message, "Hello **wor")
    await expect(answer).to_contain_text("Hello **wor")
    await expect(answer).to_have_attribute("data-streaming", "true")
    await gateway.say(message, "ld**")
    await expect(answer.locator("strong")).to_have_text("world")
    await gateway.complete(message, "The *final* words.")
    await expect(answer.locator("em")).to_have_text("final")
    await expect(answer).not_to_contain_text("Hello")
    await expect(answer).not_to_have_attribute("data-streaming", "true")
    await expect(room.get_by_test_id("stop")).to_be_hidden()
    await expect(entries(room, "user")).to_have_attribute("data-state", "answered")


async def test_offsets_count_code_points_and_mend_an_overlap(kept: tuple[Page, FakeGateway]) -> None:
    room, gateway = kept
    message = await ask(room, gateway, "smile")
    await gateway.begin(message)
    await gateway.event("llm_token", message, text="👍🏽 yes", offset=0)
    await gateway.event("llm_token", message, text=" and no", offset=6)
    await expect(entries(room, "assistant")).to_contain_text("👍🏽 yes and no")
    await gateway.event("llm_token", message, text="👍🏽 once more", offset=0)
    await expect(entries(room, "assistant").locator(".prose")).to_have_text("👍🏽 once more")


async def test_a_finished_answer_is_one_new_node_and_tokens_are_not_announced(
    room: Page, gateway: FakeGateway
) -> None:
    await room.evaluate(
        """() => {
          window.added = [];
          new MutationObserver((records) => records.forEach((record) => record.addedNodes.forEach((node) => {
            if (node.dataset?.role !== 'assistant') return;
            window.added.push(node.getAttribute('aria-live') ?? 'announced');
          }))).observe(document.getElementById('log'), { childList: true });
        }"""
    )
    await expect(room.get_by_role("log")).to_have_attribute("aria-live", "polite")
    message = await ask(room, gateway, "count")
    await gateway.begin(message)
    for piece in ("one ", "two ", "three"):
        await gateway.say(message, piece)
    await expect(entries(room, "assistant")).to_contain_text("three")
    await gateway.complete(message, "one two three")
    await expect(entries(room, "assistant")).not_to_have_attribute("aria-live", "off")
    assert await room.evaluate("window.added") == ["off", "announced"]


async def test_the_stop_button_and_escape_send_stop(kept: tuple[Page, FakeGateway]) -> None:
    room, gateway = kept
    message = await ask(room, gateway, "a long story")
    await gateway.begin(message)
    await gateway.say(message, "Once upon")
    await room.get_by_test_id("stop").click()
    assert (await gateway.received("command"))["name"] == "stop"
    await room.keyboard.press("Escape")
    assert (await gateway.received("command", 2))["name"] == "stop"
    await gateway.fail(message, "stopped", "Stopped.", recoverable=False)
    await expect(entries(room, "error")).to_contain_text("Stopped.")
    await expect(entries(room, "assistant")).to_have_count(0)
    await expect(room.get_by_test_id("stop")).to_be_hidden()
    await room.keyboard.press("Escape")
    await send(room, "next")
    await gateway.received("message", 2)
    assert len(gateway.of("command")) == 2


async def test_a_new_conversation_is_a_line_across_the_page(kept: tuple[Page, FakeGateway]) -> None:
    room, gateway = kept
    await gateway.answer(await ask(room, gateway, "before"), "An answer.")
    await room.get_by_test_id("new-chat").click()
    assert (await gateway.received("command"))["name"] == "new"
    await gateway.send(gateway.write("session", "New conversation", chat=gateway.chat))
    await expect(entries(room, "session")).to_have_text("New conversation")
    await expect(entries(room, "user")).to_have_count(1)


async def test_a_typed_command_is_no_message_takes_an_argument_and_is_answered_by_a_notice(
    kept: tuple[Page, FakeGateway],
) -> None:
    room, gateway = kept
    await send(room, "/help")
    assert (await gateway.received("command"))["name"] == "help"
    await gateway.send(gateway.write("notice", "Write `/stop` to stop.", chat=gateway.chat))
    await expect(entries(room, "notice").locator("code")).to_have_text("/stop")
    await expect(entries(room, "user")).to_have_count(0)
    await send(room, "/Agent  shop ")
    frame = await gateway.received("command", 2)
    assert (frame["name"], frame["argument"]) == ("agent", "shop")
    assert gateway.of("message") == []
    await send(room, "/stop it")
    assert (await gateway.received("message"))["text"] == "/stop it"


async def test_an_error_is_shown_in_its_words_and_can_be_asked_again(kept: tuple[Page, FakeGateway]) -> None:
    room, gateway = kept
    message = await ask(room, gateway, "too hard")
    await gateway.begin(message)
    await gateway.fail(message, "model_timeout", "The model gave no answer within 60 s.")
    await expect(entries(room, "error")).to_contain_text("The model gave no answer within 60 s.")
    await room.get_by_role("button", name="Ask again").click()
    frame = await gateway.received("message", 2)
    assert frame["text"] == "too hard"
    assert frame["client_id"] != gateway.of("message")[0]["client_id"]


async def test_a_refused_message_says_why_and_can_be_discarded(kept: tuple[Page, FakeGateway]) -> None:
    room, gateway = kept
    words = "Ten messages are waiting already."
    gateway.refusal = lambda _frame: {"code": "refused", "message": words}
    await send(room, "one too many")
    await expect(entries(room, "user")).to_contain_text(words)
    await expect(entries(room, "user")).to_have_attribute("data-state", "failed")
    await room.get_by_role("button", name="Discard").click()
    await expect(entries(room, "user")).to_have_count(0)


async def test_a_text_that_is_too_long_is_kept_and_counted(room: Page, gateway: FakeGateway) -> None:
    gateway.limits["text_chars"] = 10
    await room.reload()
    await ready(room)
    await send(room, "eleven chars 🙂")
    await expect(room.get_by_text("4 characters too many")).to_be_visible()
    await expect(room.get_by_test_id("composer")).to_have_value("eleven chars 🙂")
    await expect(room.get_by_test_id("send")).to_be_disabled()
    assert gateway.of("message") == []


async def test_a_question_about_an_action_has_a_button_for_each_option(
    kept: tuple[Page, FakeGateway],
) -> None:
    room, gateway = kept
    message = await ask(room, gateway, "look it up")
    await gateway.begin(message)
    await gateway.event("action_started", message, tool_name="search", summary="Searching the web")
    await expect(entries(room, "assistant")).to_contain_text("Searching the web")
    fields = {"tool_name": "search", "reasoning": "It needs the network.", "timeout_s": 60.0}
    await gateway.event(
        "approval_required", message, interaction_id="i_1", options=["Allow once", "Deny"], **fields
    )
    question = entries(room, "approval")
    await expect(question).to_contain_text("It needs the network.")
    await question.get_by_role("button", name="Deny").click()
    answer = await gateway.received("approval")
    assert (answer["interaction"], answer["choice"]) == ("i_1", "Deny")
    await gateway.event("approval_resolved", message, interaction_id="i_1", choice="Deny")
    await expect(question).to_contain_text("Answered: Deny")
    await expect(question.get_by_role("button")).to_have_count(0)


async def test_a_helper_at_work_is_one_quiet_line(kept: tuple[Page, FakeGateway]) -> None:
    room, gateway = kept
    message = await ask(room, gateway, "research")
    await gateway.begin(message)
    await gateway.event("sub_agent_spawned", message, name="reader", task="read the paper")
    await gateway.event("sub_agent_progress", message, name="reader", status="page 3")
    await expect(room.locator(".activity")).to_have_text("reader: page 3")
    await gateway.event("an_event_of_tomorrow", message, anything=1)
    await gateway.complete(message, "Done.")
    await expect(room.locator(".activity")).to_have_count(0)


async def test_the_reader_who_scrolled_up_is_left_alone(kept: tuple[Page, FakeGateway]) -> None:
    room, gateway = kept
    long = "\n\n".join(f"Paragraph {number}" for number in range(60))
    await gateway.answer(await ask(room, gateway, "long"), long)
    scroller = room.locator("#scroller")
    at_end = "node => node.scrollHeight - node.scrollTop - node.clientHeight < 4"
    await expect(entries(room, "assistant")).to_contain_text("Paragraph 59")
    await room.wait_for_function(f"({at_end})(document.getElementById('scroller'))")
    await scroller.evaluate("node => { node.scrollTop = 0; }")
    jump = room.get_by_role("button", name="Jump to latest")
    await expect(jump).to_be_visible()
    await gateway.send(gateway.write("notice", "Something new", chat=gateway.chat))
    await expect(entries(room, "notice")).to_be_attached()
    assert await scroller.evaluate("node => node.scrollTop") == 0
    await jump.click()
    await room.wait_for_function(f"({at_end})(document.getElementById('scroller'))")
    await expect(jump).to_be_hidden()


async def test_everything_works_by_keyboard_alone(page: Page, gateway: FakeGateway) -> None:
    await page.goto(gateway.origin)
    await expect(page.get_by_test_id("token-input")).to_be_focused()
    await page.keyboard.type("correct-horse-battery")
    await page.keyboard.press("Enter")
    await expect(page.get_by_test_id("composer")).to_be_focused()
    await page.keyboard.type("hello")
    await page.keyboard.press("Enter")
    message = gateway.id_of(await gateway.received("message"))
    await gateway.begin(message)
    await gateway.say(message, "Well")
    await expect(page.get_by_test_id("stop")).to_be_visible()
    await focus_by_tab(page, page.get_by_test_id("stop"))
    await page.keyboard.press("Enter")
    assert (await gateway.received("command"))["name"] == "stop"
    await gateway.complete(message, "Well.")
    await focus_by_tab(page, page.get_by_test_id("new-chat"))
    await page.keyboard.press("Space")
    assert (await gateway.received("command", 2))["name"] == "new"
    await focus_by_tab(page, page.get_by_test_id("theme"))
    await page.keyboard.press("Enter")
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    await page.keyboard.press("/")
    await expect(page.get_by_test_id("composer")).to_be_focused()
    await expect(page.get_by_test_id("composer")).to_have_value("")
    await page.keyboard.type("/")
    await expect(page.get_by_test_id("composer")).to_have_value("/")


async def test_a_suggestion_starts_the_conversation(kept: tuple[Page, FakeGateway]) -> None:
    room, gateway = kept
    await expect(room.get_by_text("Make yourself at home.")).to_be_visible()
    chips = room.locator(".chip")
    await expect(chips).to_have_count(3)
    words = await chips.first.inner_text()
    await chips.first.click()
    assert (await gateway.received("message"))["text"] == words
    await expect(room.get_by_text("Make yourself at home.")).to_be_hidden()


async def test_an_answer_can_be_copied(room: Page, gateway: FakeGateway) -> None:
    await room.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await gateway.answer(await ask(room, gateway, "code"), "Run:\n\n```sh\nls -l\n```")
    await expect(room.locator(".language")).to_have_text("sh")
    assert await copied(room, room.get_by_role("button", name="Copy code")) == "ls -l"
    answer = room.get_by_role("button", name="Copy answer")
    assert await copied(room, answer) == "Run:\n\n```sh\nls -l\n```"


async def test_commands_are_offered_while_one_is_typed_and_work_by_the_keyboard(
    room: Page, gateway: FakeGateway
) -> None:
    field, offered = room.get_by_test_id("composer"), room.get_by_role("option")
    await field.press_sequentially("/u")
    await expect(offered).to_have_count(3)
    await expect(offered.first).to_contain_text("/undo Take your last message")
    await field.press("ArrowDown")
    await field.press("ArrowDown")
    await expect(offered.nth(1)).to_have_attribute("aria-selected", "true")
    await field.press("Enter")
    await expect(field).to_have_value("/usage")
    await expect(offered).to_have_count(0)
    await field.press("Enter")
    assert (await gateway.received("command"))["name"] == "usage"
    await field.press_sequentially("/ag")
    await field.press("Tab")
    await expect(field).to_have_value("/agent ")
    await field.press_sequentially("shop")
    await field.press("Enter")
    frame = await gateway.received("command", 2)
    assert (frame["name"], frame["argument"]) == ("agent", "shop")
    await field.press_sequentially("/new")
    await offered.click()
    await expect(field).to_have_value("/new")
    await expect(field).to_be_focused()
