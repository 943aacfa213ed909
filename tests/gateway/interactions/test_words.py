"""Any words as the answer to a question, and which chats may have such a question.

Covers: gateway/interactions/answer_matching.py, gateway/interactions/word_questions.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gateway.interactions.answer_matching import LONGEST_WORDS, match_text, match_words, may_be_words
from gateway.interactions.word_questions import WordQuestions
from gateway.storage.memory.store import MemoryStore
from gateway.storage.ports import Interaction
from pipeline.domain.clock import ManualClock
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author, InboundMessage
from tests.contracts.store_values import THREAD, interaction


def _message(text: str) -> InboundMessage:
    return InboundMessage(
        message_id="m1",
        native_id="n1",
        thread=ThreadKey.decode(THREAD),
        author=Author(id="ann"),
        received_at=0.0,
        text=text,
    )


def _asks(name: str = "act-1", **given: Any) -> Interaction:
    return replace(interaction(name), options=(), body={"asks": "words"}, **given)


def test_the_newest_question_gets_the_words() -> None:
    found = match_words(_message(" The red\none "), [_asks("one"), _asks("two")])
    assert found is not None
    assert (found.interaction_id, found.choice) == ("two", "The red\none")


def test_a_longer_text_is_a_message() -> None:
    assert match_words(_message("x" * LONGEST_WORDS), [_asks()]) is not None
    assert match_words(_message("x" * (LONGEST_WORDS + 1)), [_asks()]) is None


def test_only_words_of_who_was_asked_count() -> None:
    assert match_words(_message("red"), [_asks(allowed_users=("eve",))]) is None


def test_a_wait_is_answered_by_nothing() -> None:
    waits = replace(interaction(), options=(), body={"asks": "nothing"})
    assert match_words(_message("red"), [waits]) is None
    assert match_text(_message("1"), [waits, interaction()]) is not None


@pytest.mark.parametrize("given", [{"edited": True}, {"forwarded": True}, {"unusable": "a sticker"}])
def test_other_messages_are_no_words(given: dict[str, Any]) -> None:
    assert may_be_words(_message("red"))
    assert not may_be_words(replace(_message("red"), **given))
    assert not may_be_words(_message("/status"))


async def test_the_store_is_read_once_for_a_chat_without_a_question() -> None:
    clock, store = ManualClock(), MemoryStore()
    await store.open()
    words = WordQuestions(store, clock)
    assert not await words.may_be_open(THREAD)
    asked = _asks(created_at=clock.now(), expires_at=clock.now() + 60)
    await store.open_interaction(asked)
    assert not await words.may_be_open(THREAD)  # not noted: known without a question
    words.asked(THREAD)
    assert await words.may_be_open(THREAD)


async def test_among_several_processes_each_message_looks_for_a_question() -> None:
    store = MemoryStore()
    await store.open()
    words = WordQuestions(store, ManualClock(0.0), shared=True)
    assert not await words.may_be_open(THREAD)
    # The turn that asks runs in another process.
    await store.open_interaction(_asks(expires_at=60.0))
    assert await words.may_be_open(THREAD)
