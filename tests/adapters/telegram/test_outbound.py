"""Showing: rendering, posting, editing, files and buttons, through the real SDK."""

from __future__ import annotations

from dataclasses import replace

import pytest
from telegram.error import BadRequest, Forbidden, InvalidToken, NetworkError, TimedOut

from adapters.channel import Outgoing, PostingChannel
from adapters.formatting.overflow import MAX_PARTS
from adapters.telegram.adapter import TelegramAdapter
from adapters.telegram.api import FloodWait
from adapters.telegram.rate_limits import DEFAULT_RATES
from adapters.telegram.settings import TelegramOptions
from pipeline.domain.clock import SystemClock
from pipeline.domain.errors import InvalidInput
from pipeline.domain.events import ApprovalRequired
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import button_handle
from tests.adapters.formatting.rules import telegram_problems
from tests.adapters.telegram.harness import TelegramHarness, idle
from tests.support.platforms.platform import Fault, FaultKind, Place
from tests.support.platforms.telegram import FakeTelegram

QUESTION = ApprovalRequired(
    message_id="m_1",
    session_id="ses_1",
    interaction_id="int_1",
    tool_name="shell",
    reasoning="to look",
    options=("Allow once", "Deny"),
    timeout_s=60.0,
)


async def post(
    harness: TelegramHarness, text: str, *, place: Place | None = None, reply_handle: str = ""
) -> str:
    parts = harness.adapter.render(Outgoing(text=text))
    receipts = [
        await harness.adapter.post(harness.thread(place), part, key=f"m_1:{index}", reply_handle=reply_handle)
        for index, part in enumerate(parts)
    ]
    return receipts[-1].native_id


async def test_the_adapter_is_a_posting_channel_and_says_what_it_promises() -> None:
    async with idle() as harness:
        assert isinstance(harness.adapter, PostingChannel)
        posts = harness.adapter.capabilities
        assert (posts.resolution, posts.edit, posts.adopts) == ("none", True, True)
        assert "repeat goes" in posts.guarantee
    async with idle(replies="edit") as harness:
        edits = harness.adapter.capabilities
        assert (edits.resolution, edits.edit, edits.text_unit) == ("placeholder", True, "utf16")
        assert "never the answer twice" in edits.guarantee
        assert edits.rates == DEFAULT_RATES
    async with idle(replies="plain") as harness:
        plain = harness.adapter.capabilities
        assert (plain.resolution, plain.edit) == ("none", False)
        assert "at least once" in plain.guarantee


async def test_markdown_arrives_as_entities_without_previews_of_links() -> None:
    async with idle() as harness:
        await post(harness, "**bold** and [a link](https://example.org/) \U0001f600 `code`")
        (shown,) = harness.fake.visible(harness.place)
        assert shown.text == "bold and a link \U0001f600 code"
        call = harness.fake.calls[-1]
        assert call.payload["link_preview_options"] == {"is_disabled": True}
        entities = call.payload["entities"]
        assert isinstance(entities, list)
        assert [one["type"] for one in entities] == ["bold", "text_link", "code"]


@pytest.mark.parametrize(
    "text", ["", " \n ", "\u200b", "```\n```", "\ud800", "x" * 9000, "\U0001f600" * 5000]
)
async def test_every_text_becomes_parts_that_telegram_takes(text: str) -> None:
    async with idle() as harness:
        parts = harness.adapter.render(Outgoing(text=text))
        assert parts
        for part in parts:
            assert telegram_problems(part.body["text"], part.body.get("entities", [])) == []
            assert telegram_problems(part.plain, []) == []
        await post(harness, text)
        assert len(harness.fake.bot_texts(harness.place)) == len(parts)


async def test_an_answer_of_too_many_parts_comes_as_a_file() -> None:
    async with idle() as harness:
        text = "\n\n".join(f"paragraph {number} " + "word " * 300 for number in range(40))
        parts = harness.adapter.render(Outgoing(text=text, questions=(QUESTION,)))
        assert len(parts) == 2
        await post(harness, text)
        first, file = harness.fake.visible(harness.place)
        assert first.text.startswith("paragraph 0")
        assert file.file_name == "answer.md"
        assert harness.fake.state.files["upload0"] == text.encode()
        assert "reply_markup" in parts[1].body
        previews = harness.adapter.render(Outgoing(text=text, unfinished=True))
        assert len(previews) > MAX_PARTS
        assert all(part.file is None for part in previews)


async def test_a_question_has_buttons_below_its_last_part() -> None:
    async with idle() as harness:
        hidden = "Al\u202elow"
        question = ApprovalRequired(
            message_id="m_1",
            session_id="ses_1",
            interaction_id="int_2",
            tool_name="t",
            reasoning="r",
            options=(hidden, "x" * 300),
            timeout_s=0.0,
        )
        parts = harness.adapter.render(Outgoing(text="word " * 1500, questions=(QUESTION, question)))
        assert "reply_markup" not in parts[0].body
        receipt = await harness.adapter.post(harness.thread(), parts[-1], key="m_1:1")
        (shown,) = harness.fake.visible(harness.place)
        assert shown.native_id == receipt.native_id
        assert shown.buttons[:3] == ("Allow once", "Deny", "Al<U+202E>low")
        assert len(shown.buttons[3]) == 64
        stored = harness.fake.state.find(int(harness.place.chat), int(receipt.native_id))
        assert stored is not None
        assert [data for _, data in stored.buttons()][:2] == [
            f"q:{button_handle('int_1')}:0",
            f"q:{button_handle('int_1')}:1",
        ]


@pytest.mark.parametrize("options", [(), ("a",), tuple("abcdefghijkl"), ("",) * 30, ("x" * 40, "y" * 40)])
async def test_any_number_of_options_makes_a_keyboard_that_telegram_takes(options: tuple[str, ...]) -> None:
    async with idle() as harness:
        question = replace(QUESTION, options=options)
        (part,) = harness.adapter.render(Outgoing(text="May I?", questions=(question,)))
        await harness.adapter.post(harness.thread(), part, key="m_1:0")
        (shown,) = harness.fake.visible(harness.place)
        assert len(shown.buttons) == min(20, len(options))


async def test_more_questions_than_a_keyboard_has_room_for_leave_the_last_without_buttons() -> None:
    async with idle() as harness:
        questions = tuple(replace(QUESTION, interaction_id=f"int_{n}", options=("a",) * 40) for n in range(9))
        (part,) = harness.adapter.render(Outgoing(text="May I?", questions=questions))
        await harness.adapter.post(harness.thread(), part, key="m_1:0")
        (shown,) = harness.fake.visible(harness.place)
        assert len(shown.buttons) == 100


async def test_an_edit_replaces_the_text_and_doing_it_again_is_no_error() -> None:
    async with idle() as harness:
        native_id = await post(harness, "…")
        (part,) = harness.adapter.render(Outgoing(text="the *answer*"))
        for _ in range(3):
            receipt = await harness.adapter.edit(harness.thread(), native_id, part)
            assert receipt.native_id == native_id
        (shown,) = harness.fake.visible(harness.place)
        assert (shown.text, shown.edits) == ("the answer", 1)


async def test_editing_what_is_gone_is_not_found() -> None:
    async with idle() as harness:
        (part,) = harness.adapter.render(Outgoing(text="the answer"))
        with pytest.raises(BadRequest) as caught:
            await harness.adapter.edit(harness.thread(), "12345", part)
        assert harness.adapter.classify(caught.value).kind == "not_found"
        with pytest.raises(InvalidInput):
            await harness.adapter.edit(harness.thread(), "not a number", part)


async def test_refused_formatting_is_sent_once_more_as_plain_text() -> None:
    async with idle() as harness:
        harness.fake.faults.script.append(Fault(method="sendMessage", kind="refuse_format"))
        native_id = await post(harness, "see [here](https://example.org/)")
        assert [call.status for call in harness.fake.calls if call.method == "sendMessage"] == [400, 200]
        (shown,) = harness.fake.visible(harness.place)
        assert "https://example.org/" in shown.text
        harness.fake.faults.script.extend([Fault(method="editMessageText", kind="refuse_format")] * 2)
        (part,) = harness.adapter.render(Outgoing(text="**b**"))
        with pytest.raises(BadRequest):
            await harness.adapter.edit(harness.thread(), native_id, part)


async def test_in_a_room_the_answer_replies_and_a_lost_question_does_not_matter() -> None:
    async with idle() as harness:
        room = harness.fake.room("team", harness.ann)
        asked = await harness.fake.say(room, harness.ann, "hi")
        await post(harness, "hello", place=room, reply_handle=asked)
        await post(harness, "hello again", place=room, reply_handle="987654")
        first, second = harness.fake.visible(room)[1:]
        assert (first.reply_to, second.reply_to) == (asked, "")
        await post(harness, "in private", reply_handle="1")
        assert "reply_parameters" not in harness.fake.calls[-1].payload


async def test_topics_are_kept_apart() -> None:
    async with idle() as harness:
        room = harness.fake.room("forum", harness.ann)
        topic = Place(chat=room.chat, private=False, topic="77")
        await post(harness, "in the topic", place=topic)
        await harness.adapter.typing(harness.thread(topic))
        assert harness.fake.bot_texts(topic) == ["in the topic"]
        assert harness.fake.bot_texts(room) == []
        assert harness.fake.calls[-1].payload["message_thread_id"] == 77


async def test_a_thread_of_another_channel_is_refused_in_words() -> None:
    async with idle() as harness:
        (part,) = harness.adapter.render(Outgoing(text="x"))
        strange = ThreadKey(channel="telegram", account="main", chat="C0123")
        with pytest.raises(InvalidInput, match="no chat of Telegram"):
            await harness.adapter.post(strange, part, key="m_1:0")


@pytest.mark.parametrize(
    ("kind", "expected", "maybe", "shown"),
    [
        ("rate_limit", "rate_limit", False, 0),
        ("error_before", "transient", True, 0),
        ("error_after", "transient", True, 1),
        ("drop", "transient", True, 0),
    ],
)
async def test_a_fault_is_understood_and_tried_only_once(
    kind: FaultKind, expected: str, maybe: bool, shown: int
) -> None:
    async with idle() as harness:
        harness.fake.faults.script.append(Fault(method="sendMessage", kind=kind, retry_after_s=3))
        with pytest.raises((FloodWait, NetworkError)) as caught:
            await post(harness, "hello")
        failure = harness.adapter.classify(caught.value)
        assert (failure.kind, failure.maybe_delivered) == (expected, maybe)
        assert failure.retry_after_s == (3.0 if kind == "rate_limit" else None)
        assert len(harness.fake.bot_texts(harness.place)) == shown
        assert len(harness.fake.calls) == 1
        assert harness.fake.token not in str(caught.value)


async def test_a_blocked_bot_and_a_wrong_token_are_final() -> None:
    async with idle() as harness:
        harness.fake.state.blocked.add(int(harness.ann.id))
        with pytest.raises(Forbidden) as blocked:
            await post(harness, "hello")
        assert harness.adapter.classify(blocked.value).kind == "permission"
        harness.fake.state.token = "1:another"
        with pytest.raises(InvalidToken) as refused:
            await post(harness, "hello")
        assert harness.adapter.classify(refused.value).kind == "auth"


async def test_a_rotated_token_counts_at_the_next_call() -> None:
    async with FakeTelegram() as fake:
        place = fake.private_chat(fake.person("Ann"))
        current = "7770001:" + "o" * 35
        adapter = TelegramAdapter(
            TelegramOptions(token=lambda: current, api_base=fake.api_base), SystemClock()
        )
        thread = ThreadKey(channel="telegram", account="main", chat=place.chat)
        (part,) = adapter.render(Outgoing(text="hello"))
        with pytest.raises(InvalidToken):
            await adapter.post(thread, part, key="m_1:0")
        current = fake.token
        await adapter.post(thread, part, key="m_1:0")
        assert fake.bot_texts(place) == ["hello"]


async def test_a_server_that_is_not_there_has_certainly_shown_nothing() -> None:
    settings = TelegramOptions(token=lambda: "1:" + "x" * 35, api_base="http://127.0.0.1:1")
    adapter = TelegramAdapter(settings, SystemClock())
    (part,) = adapter.render(Outgoing(text="hello"))
    thread = ThreadKey(channel="telegram", account="main", chat="5")
    with pytest.raises((NetworkError, TimedOut)) as caught:
        await adapter.post(thread, part, key="m_1:0")
    failure = adapter.classify(caught.value)
    assert (failure.kind, failure.maybe_delivered) == ("transient", False)


async def test_nothing_can_be_found_again() -> None:
    async with idle() as harness:
        (part,) = harness.adapter.render(Outgoing(text="hello"))
        assert await harness.adapter.find(harness.thread(), part, key="m_1:0", since=0.0) is None
