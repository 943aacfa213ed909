"""What a thread's log makes of a conversation when it is read back, and what a summary does to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from gateway.storage.memory import MemoryStore
from gateway.storage.ports import Lease, NewRecord, RecordKind, Store
from gateway.turns.past_turns import message_on_record, past_turn, unanswered_turn
from gateway.turns.sessions import (
    MAX_HISTORY_RECORDS,
    MAX_TURNS,
    SessionState,
    load_session,
    session_record,
    write_summary,
)
from pipeline.domain.chat import ChatMessage, ToolCall, message_to_plain
from pipeline.domain.conversation import Conversation, PastTurn, Summary
from pipeline.domain.errors import FenceLost
from pipeline.domain.files import StoredFile
from pipeline.runtime.ports import UserWords

THREAD, SESSION = "console:local:c1", "ses-1"
CALL = ToolCall(id="c1", name="look_up", arguments='{"q": "tea", "n": 1}')
EXCHANGE = (
    ChatMessage(role="assistant", content="I look it up.", tool_calls=(CALL,)),
    ChatMessage(role="tool", content="a line\n" * 50 + "half a pair: \ud83d", tool_call_id="c1"),
)


def said(text: str) -> ChatMessage:
    return message_on_record(UserWords(text=text))


@pytest.fixture
async def store() -> AsyncIterator[MemoryStore]:
    store = MemoryStore()
    await store.open()
    yield store
    await store.close()


async def _lease(store: Store) -> Lease:
    lease = await store.acquire_lease(THREAD, "me", ttl_s=60.0, now=0.0)
    assert lease is not None
    return lease


def _record(kind: RecordKind, message: str, session: str = SESSION, **body: Any) -> NewRecord:
    return NewRecord(kind=kind, session_id=session, message_id=message, body=body, at=1.0)


def _talk(numbers: range) -> list[NewRecord]:
    return [
        record
        for number in numbers
        for record in (
            _record("user", f"m{number}", text=f"question {number}"),
            _record("assistant", f"m{number}", text=f"answer {number}"),
        )
    ]


async def _loaded(store: Store, records: Sequence[NewRecord]) -> SessionState:
    await store.append(await _lease(store), [session_record(SESSION, "m0", 0.0), *records])
    return await _read(store)


async def _read(store: Store) -> SessionState:
    session = await load_session(store, THREAD)
    await session.read()
    return session


def _words(conversation: Conversation) -> list[str]:
    return [message.content for message in conversation.messages]


def _turn(number: int) -> PastTurn:
    """With a picture or two, and with words from one of three places, in some."""
    pictures = tuple(
        StoredFile(id=f"{one:064}", kind="image", mime="image/png", size=9) for one in range(number % 3)
    )
    asked = replace(said(f"question {number}"), pictures=pictures)
    foreign = ("", "a web page", "an attached file", "the MCP server files")[number % 4]
    answer = ChatMessage(role="assistant", content="it" * number, foreign=foreign)
    return PastTurn(id=number, messages=(asked, *EXCHANGE, answer))


def test_a_conversation_that_grows_counts_as_one_that_was_read() -> None:
    session = SessionState(SESSION, stored=True)
    for number in range(1, MAX_TURNS + 3):
        grown = session.conversation
        whole = Conversation(summary=grown.summary, turns=grown.turns)
        assert (grown, grown.messages, grown.tokens) == (whole, whole.messages, whole.tokens)
        assert (grown.pictures, grown.foreign) == (whole.pictures, whole.foreign)
        session.extend(_turn(number))
        if number == 5:
            session.summarise(Summary(text="a summary", upto=2))
    assert [turn.id for turn in session.conversation.turns] == list(range(3, MAX_TURNS + 3))
    session.extend(_turn(MAX_TURNS + 3))
    assert [turn.id for turn in session.conversation.turns][:2] == [4, 5]
    assert len(session.conversation.turns) == MAX_TURNS


async def test_an_exchange_comes_back_byte_for_byte(store: MemoryStore) -> None:
    plain = [message_to_plain(message) for message in EXCHANGE]
    session = await _loaded(
        store,
        [
            _record("user", "m1", text="tea?"),
            _record("assistant", "m1", text="I look it up.\n\nGreen tea.", exchange=plain),
        ],
    )
    (turn,) = session.conversation.turns
    assert turn.messages == (
        ChatMessage(role="user", content="tea?"),
        *EXCHANGE,
        ChatMessage(role="assistant", content="Green tea."),
    )
    assert turn == past_turn(turn.id, said("tea?"), EXCHANGE, "I look it up.\n\nGreen tea.", 1.0)


def test_words_that_are_in_the_exchange_are_not_shown_again_in_the_answer() -> None:
    def last(answer: str) -> str:
        return past_turn(1, said("tea?"), EXCHANGE, answer, 0.0).messages[-1].content

    assert last("I look it up.\n\nGreen tea.") == "Green tea."
    assert last("Green tea.") == "Green tea."
    assert last("I look it up.") == "I look it up."


def test_a_question_is_shown_as_it_was_sent_when_it_was_new() -> None:
    turn = past_turn(1, said(" nul\x00byte\u2066 "), (), "yes", 0.0)
    assert turn.messages[0].content == "nulbyte"


async def test_a_question_without_an_answer_is_not_part_of_the_conversation(store: MemoryStore) -> None:
    session = await _loaded(
        store, [*_talk(range(1, 2)), _record("user", "m2", text="cut off"), *_talk(range(3, 4))]
    )
    assert _words(session.conversation) == ["question 1", "answer 1", "question 3", "answer 3"]


async def test_a_partial_answer_is_what_the_assistant_said(store: MemoryStore) -> None:
    session = await _loaded(
        store,
        [
            _record("user", "m1", text="long?"),
            _record("assistant", "m1", text="It is", partial=True),
            _record("error", "m1", text="Stopped.", code="stopped"),
        ],
    )
    assert _words(session.conversation) == [
        "long?",
        "It is\n\n[Stopped by the user before the answer was complete.]",
    ]


async def test_a_message_that_failed_is_part_of_the_conversation_with_what_became_of_it(
    store: MemoryStore,
) -> None:
    session = await _loaded(
        store,
        [
            _record("user", "m1", text="My flight is LX318."),
            _record("error", "m1", text="The model is away.", code="model_unavailable"),
            *_talk(range(2, 3)),
        ],
    )
    assert _words(session.conversation) == [
        "My flight is LX318.",
        "[Not answered: an error ended the turn.]",
        "question 2",
        "answer 2",
    ]


async def test_a_failed_turn_is_shown_with_its_calls_and_says_nothing_twice(store: MemoryStore) -> None:
    plain = [message_to_plain(message) for message in EXCHANGE]
    session = await _loaded(
        store,
        [
            _record("user", "m1", text="tea?"),
            _record("assistant", "m1", text="I look it up.\n\nGre", partial=True),
            _record("error", "m1", text="Too long.", code="timeout", exchange=plain),
        ],
    )
    (turn,) = session.conversation.turns
    assert turn.messages == (
        ChatMessage(role="user", content="tea?"),
        *EXCHANGE,
        ChatMessage(
            role="assistant", content="Gre\n\n[Given up before the answer was complete: it took too long.]"
        ),
    )
    assert turn == unanswered_turn(turn.id, said("tea?"), EXCHANGE, "I look it up.\n\nGre", "timeout", 1.0)


async def test_a_summary_of_an_earlier_release_that_ends_with_a_partial_answer_covers_it(
    store: MemoryStore,
) -> None:
    first = await _loaded(store, _talk(range(1, 2)))
    lease = await _lease(store)
    _, partial, _ = await store.append(
        lease,
        [
            _record("user", "m2", text="long?"),
            _record("assistant", "m2", text="It is", partial=True),
            _record("error", "m2", text="Stopped.", code="stopped"),
        ],
    )
    summary = _record("summary", "m2", text="They talked.", upto=partial, session=first.session_id)
    await store.append(lease, [summary])
    assert (await _read(store)).conversation.turns == ()


@pytest.mark.parametrize("code", ["gave_up", "unreadable"])
async def test_words_that_may_have_ended_the_process_are_not_shown_again(
    store: MemoryStore, code: str
) -> None:
    session = await _loaded(
        store, [_record("user", "m1", text="boom"), _record("error", "m1", text="Set aside.", code=code)]
    )
    assert session.conversation == Conversation()


async def test_a_summary_represents_what_it_covers_also_after_a_restart(store: MemoryStore) -> None:
    session = await _loaded(store, _talk(range(1, 6)))
    third = session.conversation.turns[2].id
    summary = Summary(text="They talked.", upto=third)
    assert await write_summary(store, await _lease(store), session, summary, at=2.0)
    for known in (session, await _read(store)):
        assert known.conversation.summary == summary
        assert _words(known.conversation) == ["question 4", "answer 4", "question 5", "answer 5"]
    everything = await store.read_log(THREAD, kinds=("user", "assistant"))
    assert len(everything) == 10


@pytest.mark.parametrize("upto", [-1, 3, 10_000])
async def test_a_summary_of_another_conversation_is_refused(store: MemoryStore, upto: int) -> None:
    session = await _loaded(store, _talk(range(1, 6)))
    known = session.conversation.turns
    await write_summary(store, await _lease(store), session, Summary(text="first", upto=known[2].id), at=2.0)
    wrong = known[1].id if upto == 3 else upto
    assert not await write_summary(
        store, await _lease(store), session, Summary(text="late", upto=wrong), at=3.0
    )
    assert session.conversation.summary == Summary(text="first", upto=known[2].id)
    assert len(await store.read_log(THREAD, kinds=("summary",))) == 1


async def test_without_the_lease_nothing_is_summed_up(store: MemoryStore) -> None:
    session = await _loaded(store, _talk(range(1, 6)))
    old = await _lease(store)
    await store.break_leases()
    assert await store.acquire_lease(THREAD, "another", ttl_s=60.0, now=0.0)
    before = session.conversation
    with pytest.raises(FenceLost):
        await write_summary(store, old, session, Summary(text="x", upto=before.turns[0].id), at=2.0)
    assert session.conversation == before


async def test_off_the_record_a_summary_lives_in_memory_alone(store: MemoryStore) -> None:
    turns = tuple(PastTurn(id=one, messages=EXCHANGE) for one in (1, 2))
    session = SessionState(SESSION, Conversation(turns=turns), stored=True, mode="otr")
    assert await write_summary(store, await _lease(store), session, Summary(text="x", upto=1), at=2.0)
    assert session.conversation == Conversation(summary=Summary(text="x", upto=1), turns=turns[1:])
    assert await store.read_log(THREAD) == ()


async def test_a_summary_from_before_the_newest_2000_records_is_still_read(store: MemoryStore) -> None:
    first = await _loaded(store, _talk(range(1, 4)))
    summary = Summary(text="They talked.", upto=first.conversation.turns[1].id)
    lease = await _lease(store)
    await write_summary(store, lease, first, summary, at=2.0)
    await store.append(lease, _talk(range(10, 10 + MAX_HISTORY_RECORDS)))
    session = await _read(store)
    assert session.conversation.summary == summary
    assert session.conversation.size == MAX_HISTORY_RECORDS
    assert _words(session.conversation)[0] == f"question {10 + MAX_HISTORY_RECORDS // 2}"


async def test_a_new_session_begins_without_the_summary_of_the_one_before(store: MemoryStore) -> None:
    session = await _loaded(store, _talk(range(1, 4)))
    lease = await _lease(store)
    upto = session.conversation.turns[1].id
    await write_summary(store, lease, session, Summary(text="They talked.", upto=upto), at=2.0)
    await store.append(lease, [session_record("ses-2", "m9", 9.0)])
    assert (await _read(store)).conversation == Conversation()
    session.restart("ses-2")
    assert session.conversation == Conversation()


async def test_a_summary_of_foreign_text_is_foreign_after_a_restart_and_in_the_next_summary(
    store: MemoryStore,
) -> None:
    read = ChatMessage(role="tool", content="x", tool_call_id="c", foreign="a web page")
    plain = [message_to_plain(read)]
    lease = await _lease(store)
    records = [_record("user", "m1", text="look"), _record("assistant", "m1", text="seen", exchange=plain)]
    records += _talk(range(2, 4))
    await store.append(lease, [session_record(SESSION, "m1", 1.0), *records])
    session = await _read(store)
    first, second = (turn.id for turn in session.conversation.turns[:2])
    assert await write_summary(store, lease, session, Summary(text="a", upto=first), at=2.0)
    assert await write_summary(store, lease, session, Summary(text="b", upto=second), at=3.0)
    later = await _read(store)
    assert later.conversation.summary == Summary(text="b", upto=second, foreign="a web page")
