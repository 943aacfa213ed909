"""Posts, edits and what is found again, through the real SDK; and what each failure means."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from adapters.channel import Failure, Outgoing, Receipt
from adapters.slack.adapter import SlackAdapter
from adapters.slack.failures import CallFailed
from adapters.slack.outbound import render
from pipeline.domain.clock import SystemClock
from pipeline.domain.events import ApprovalRequired
from tests.adapters.slack.harness import Running, running, settings_for, thread_of
from tests.support.platforms.platform import Fault, FaultKind, Place
from tests.support.platforms.slack import FakeSlack
from tests.support.platforms.slack_rules import refusal


@pytest.fixture
async def live() -> AsyncIterator[Running]:
    async with FakeSlack(echo_own=False) as slack, running(slack) as live:
        yield live


def dm(live: Running) -> Place:
    return live.slack.private_chat(live.slack.person("ann"))


async def failure(live: Running, text: str = "hello") -> Failure:
    """What the adapter says about a post that fails."""
    with pytest.raises(CallFailed) as raised:
        await post(live, text)
    assert live.slack.bot_token not in repr(raised.value)
    assert raised.value.__cause__ is None
    return live.adapter.classify(raised.value)


async def post(live: Running, text: str = "hello", *, chat: str = "", topic: str | None = None) -> Receipt:
    part = live.adapter.render(Outgoing(text=text))[0]
    thread = thread_of(chat or dm(live).chat, topic)
    return await live.adapter.post(thread, part, key="m_1:0", reply_handle="")


async def test_a_reply_in_a_channel_goes_into_its_thread(live: Running) -> None:
    ann = live.slack.person("ann")
    place = live.slack.room("general", ann)
    asked = await live.slack.say(place, ann, "hello")
    receipt = await post(live, "**hi**", chat=place.chat, topic=asked.partition(":")[2])
    answer = live.slack.visible(place)[-1]
    assert (answer.native_id, answer.text, answer.reply_to) == (receipt.native_id, "hi", asked)
    assert live.slack.workspace.unfurls == 0


async def test_an_edit_may_be_repeated(live: Running) -> None:
    receipt = await post(live)
    part = live.adapter.render(Outgoing(text="better"))[0]
    for _ in range(2):
        assert await live.adapter.edit(thread_of(dm(live).chat), receipt.native_id, part) == receipt
    assert live.slack.bot_texts(dm(live)) == ["better"]


@pytest.mark.parametrize("topic", [False, True])
async def test_a_post_whose_answer_was_lost_is_found_by_its_key(live: Running, topic: bool) -> None:
    ann = live.slack.person("ann")
    place = live.slack.room("general", ann) if topic else dm(live)
    root = (await live.slack.say(place, ann, "hello")).partition(":")[2] if topic else None
    thread = thread_of(place.chat, root)
    started = SystemClock().now()
    live.slack.faults.script.append(Fault(method="chat.postMessage", kind="error_after"))
    with pytest.raises(CallFailed) as raised:
        await post(live, chat=place.chat, topic=root)
    assert raised.value.failure.maybe_delivered
    part = live.adapter.render(Outgoing(text="hello"))[0]
    found = await live.adapter.find(thread, part, key="m_1:0", since=started)
    assert found == Receipt(native_id=live.slack.visible(place)[-1].native_id)
    assert await live.adapter.find(thread, part, key="m_1:1", since=started) is None


async def test_a_post_that_never_arrived_is_not_found(live: Running) -> None:
    live.slack.faults.script.append(Fault(method="chat.postMessage", kind="error_before"))
    assert (await failure(live)).maybe_delivered
    part = live.adapter.render(Outgoing(text="hello"))[0]
    assert await live.adapter.find(thread_of(dm(live).chat), part, key="m_1:0", since=0) is None


async def test_a_long_history_is_searched_page_by_page(live: Running) -> None:
    live.slack.lenient = True
    receipt = await post(live)
    ann = live.slack.person("ann")
    for number in range(250):
        await live.slack.say(dm(live), ann, f"and {number}")
    part = live.adapter.render(Outgoing(text="hello"))[0]
    assert await live.adapter.find(thread_of(dm(live).chat), part, key="m_1:0", since=0) == receipt


async def test_refused_formatting_is_tried_once_in_plain_words(live: Running) -> None:
    live.slack.faults.script.append(Fault(method="chat.postMessage", kind="refuse_format"))
    await post(live, "**bold** & <b>")
    assert [call.method for call in live.slack.calls].count("chat.postMessage") == 2
    assert live.slack.workspace.messages[-1].blocks == []
    assert live.slack.bot_texts(dm(live)) == ["bold & <b>"]


async def test_a_wait_is_obeyed_by_the_caller_who_reads_it(live: Running) -> None:
    live.slack.faults.script.append(Fault(method="chat.postMessage", kind="rate_limit", retry_after_s=7))
    limited = await failure(live)
    assert (limited.kind, limited.retry_after_s, limited.maybe_delivered) == ("rate_limit", 7.0, False)
    assert live.slack.bot_texts(dm(live)) == []


@pytest.mark.parametrize("kind", ["error_before", "error_after", "drop"])
async def test_an_answer_that_never_came_may_have_been_a_yes(live: Running, kind: FaultKind) -> None:
    live.slack.faults.script.append(Fault(method="chat.postMessage", kind=kind))
    found = await failure(live)
    assert (found.kind, found.maybe_delivered) == ("transient", True)


async def test_where_no_one_listens_nothing_was_sent() -> None:
    async with FakeSlack() as slack:
        settings = settings_for(slack)
        place = slack.private_chat(slack.person("ann"))
    adapter = SlackAdapter(settings, SystemClock())
    with pytest.raises(CallFailed) as raised:
        await adapter.post(thread_of(place.chat), render(Outgoing(text="x"))[0], key="k")
    assert (raised.value.failure.kind, raised.value.failure.maybe_delivered) == ("transient", False)


async def test_each_refusal_has_its_kind(live: Running) -> None:
    part = live.adapter.render(Outgoing(text="x"))[0]
    kinds: dict[str, str] = {}
    room = live.slack.room("closed")
    live.slack.workspace.conversations[room.chat].joined = False
    person = await live.slack.say(dm(live), live.slack.person("ann"), "mine")
    for name, attempt in {
        "no such chat": live.adapter.post(thread_of("C404"), part, key="k"),
        "not in it": live.adapter.post(thread_of(room.chat), part, key="k"),
        "no such message": live.adapter.edit(thread_of(dm(live).chat), f"{dm(live).chat}:1.2", part),
        "not ours": live.adapter.edit(thread_of(dm(live).chat), person, part),
        "no message at all": live.adapter.edit(thread_of(dm(live).chat), "nonsense", part),
    }.items():
        with pytest.raises(CallFailed) as raised:
            await attempt
        kinds[name] = live.adapter.classify(raised.value).kind
    assert kinds == {
        "no such chat": "not_found",
        "not in it": "permission",
        "no such message": "not_found",
        "not ours": "not_found",
        "no message at all": "invalid",
    }
    live.slack.web.bot_token = "xoxb-rotated"
    assert (await failure(live)).kind == "auth"
    assert live.adapter.classify(RuntimeError("secret")).message == "a call failed (RuntimeError)"


async def test_more_than_five_messages_become_one_and_a_file(live: Running) -> None:
    text = "\n\n".join(f"Paragraph {number}: " + "word " * 400 for number in range(40))
    first, file = live.adapter.render(Outgoing(text=text))
    thread = thread_of(dm(live).chat)
    await live.adapter.post(thread, first, key="m_1:0")
    await live.adapter.post(thread, file, key="m_1:1")
    shown = live.slack.visible(dm(live))
    assert [one.file_name for one in shown] == ["", "answer.md"]
    assert live.slack.workspace.contents[live.slack.workspace.messages[-1].files[0]["id"]] == text.encode()
    found = await live.adapter.find(thread, file, key="m_1:1", since=0)
    assert found == Receipt(native_id=shown[1].native_id)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n",
        "<!channel> <!here>",
        "&" * 30_000,
        "x" * 60_000,
        "*a* _b_ `c` <@U1>",
        "\ud800",
        "```\n" + "y\n" * 9000,
    ],
)
def test_whatever_the_text_slack_takes_it(text: str) -> None:
    question = ApprovalRequired(
        session_id="s",
        message_id="m",
        interaction_id="i",
        tool_name="t",
        reasoning="r",
        options=tuple(f"option {number} " + "z" * 100 for number in range(60)),
        timeout_s=0,
    )
    parts = render(Outgoing(text=text, heard=text, questions=(question,) * 30, unfinished=True))
    assert parts
    for part in parts:
        if part.file is None:
            assert refusal(dict(part.body)) == ""
            assert "<!" not in part.body["text"]


async def test_a_status_is_shown_in_threads_and_ends_with_the_answer(live: Running) -> None:
    ann = live.slack.person("ann")
    place = live.slack.room("general", ann)
    topic = (await live.slack.say(place, ann, "hello")).partition(":")[2]
    receipt = await post(live, chat=place.chat, topic=topic)
    await live.adapter.typing(thread_of(place.chat, topic))
    await live.adapter.typing(thread_of(dm(live).chat))
    part = live.adapter.render(Outgoing(text="done"))[0]
    for _ in range(2):
        await live.adapter.edit(thread_of(place.chat, topic), receipt.native_id, part)
    assert [status for _, _, status in live.slack.workspace.statuses] == ["is thinking…", ""]


async def test_a_workspace_without_statuses_is_asked_once(live: Running) -> None:
    live.slack.web.statuses = False
    for _ in range(3):
        await live.adapter.typing(thread_of(live.slack.room("general").chat, "1.2"))
    assert [call.method for call in live.slack.calls].count("assistant.threads.setStatus") == 1


async def test_a_rotated_token_counts_from_the_next_call() -> None:
    async with FakeSlack() as slack:
        tokens = ["xoxb-old"]
        adapter = SlackAdapter(settings_for(slack, bot_token=lambda: tokens[0]), SystemClock())
        place = slack.private_chat(slack.person("ann"))
        part = render(Outgoing(text="x"))[0]
        with pytest.raises(CallFailed):
            await adapter.post(thread_of(place.chat), part, key="k")
        tokens[0] = slack.bot_token
        await adapter.post(thread_of(place.chat), part, key="k")
        assert slack.bot_texts(place) == ["x"]
