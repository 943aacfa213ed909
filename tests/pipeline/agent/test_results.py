"""A run's own tool results within the model's window."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.agent.model_messages import build_messages
from pipeline.agent.results import fitted
from pipeline.domain.chat import ChatMessage, ToolCall, message_to_plain
from pipeline.domain.marking import marked, unmarked
from pipeline.runtime.settings import PipelineSettings
from tests.support.contexts import context


def asking(*ids: str) -> ChatMessage:
    calls = tuple(ToolCall(id=one, name="look", arguments="{}") for one in ids)
    return ChatMessage(role="assistant", content="", tool_calls=calls)


def result(of: str, text: str) -> ChatMessage:
    return ChatMessage(role="tool", content=marked("look", text), tool_call_id=of)


def test_what_fits_is_sent_as_it_is() -> None:
    messages = [asking("a"), result("a", "word " * 100), asking("b"), result("b", "word " * 100)]
    assert fitted(messages, sum(message.tokens for message in messages)) == messages


def test_results_that_were_answered_to_give_way_before_the_newest_is_cut() -> None:
    messages = [asking("a"), result("a", "old " * 500), asking("b"), result("b", "new " * 500)]
    kept = fitted(messages, 900)
    assert kept[1].content.startswith("[A result of ")
    assert kept[3] == messages[3]
    kept = fitted(messages, 300)
    assert sum(message.tokens for message in kept) <= 300
    assert kept[3].content.startswith("[TOOL_OUTPUT tool=look]\nnew new")
    assert "there is no room for them" in unmarked(kept[3].content)
    assert unmarked(kept[3].content) != kept[3].content


@settings(max_examples=80, deadline=None)
@given(
    rounds=st.lists(st.lists(st.integers(0, 5_000), min_size=1, max_size=3), min_size=1, max_size=5),
    letter=st.sampled_from(("a", "ж")),
)
def test_a_turn_of_long_results_fits_the_window_with_every_call_answered(
    rounds: list[list[int]], letter: str
) -> None:
    exchange: list[ChatMessage] = []
    for number, sizes in enumerate(rounds):
        ids = [f"{number}-{place}" for place in range(len(sizes))]
        exchange.append(asking(*ids))
        exchange += [result(one, letter * size) for one, size in zip(ids, sizes, strict=True)]
    window = PipelineSettings(context_tokens=4096)
    state = {"exchange": [message_to_plain(message) for message in exchange]}
    messages = asyncio.run(build_messages(context("What is it?", settings=window), state))
    assert sum(message.tokens for message in messages) <= 4096 - window.max_answer_tokens
    assert [message.tool_call_id for message in messages if message.role == "tool"] == [
        call.id for message in messages for call in message.tool_calls
    ]
