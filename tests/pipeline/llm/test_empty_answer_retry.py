"""An empty answer is asked for once more, with the system message and the last three messages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.domain.chat import ChatMessage, Role, ToolCall
from pipeline.domain.clock import ManualClock
from pipeline.llm.client import LlmFinished, LlmItem, LlmRequest, TextDelta
from pipeline.llm.empty_answer_retry import read_answer, shortened
from pipeline.llm.failures import EmptyAnswer
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm

EMPTY = ScriptedAnswer(prompt_tokens=10, cost=0.5)
SYSTEM = ChatMessage(role="system", content="Be brief.")
CALL = ToolCall(id="c", name="weather", arguments="{}")


def said(role: Role, content: str = "") -> ChatMessage:
    return ChatMessage(role=role, content=content or role)


def asking(retries: int | None = 2) -> LlmRequest:
    talk = [
        said("user", "1"),
        said("assistant", "2"),
        said("user", "3"),
        said("assistant", "4"),
        said("user", "5"),
    ]
    return LlmRequest(messages=(SYSTEM, *talk), retries=retries, timeout_s=60)  # fmt: skip


async def items_of(llm: ScriptedLlm, request: LlmRequest) -> list[LlmItem]:
    items: list[LlmItem] = []

    async def take(item: LlmItem) -> None:
        items.append(item)

    await read_answer(llm, request, ManualClock(), take)
    return items


async def test_an_answer_is_passed_on_as_it_is() -> None:
    llm = ScriptedLlm([ScriptedAnswer.of("fine")])
    assert (await items_of(llm, asking()))[0] == TextDelta(text="fine")
    assert len(llm.requests) == 1


async def test_an_empty_answer_is_replaced_and_both_are_paid_for() -> None:
    llm = ScriptedLlm([EMPTY, ScriptedAnswer(chunks=("fine",), prompt_tokens=4, cost=0.25)])
    text, finished = await items_of(llm, asking())
    assert text == TextDelta(text="fine")
    assert isinstance(finished, LlmFinished)
    assert (finished.prompt_tokens, finished.cost, finished.attempts) == (14, 0.75, 2)
    assert [message.content for message in llm.requests[1].messages] == ["Be brief.", "3", "4", "5"]
    assert llm.requests[1].retries == 1


async def test_a_second_empty_answer_is_the_end() -> None:
    llm = ScriptedLlm([EMPTY, EMPTY, ScriptedAnswer.of("too late")])
    with pytest.raises(EmptyAnswer) as caught:
        await items_of(llm, asking())
    assert len(llm.requests) == 2
    assert (caught.value.finished.attempts, caught.value.finished.cost) == (2, 1.0)


@pytest.mark.parametrize(("retries", "attempts"), [(0, 1), (1, 2), (2, 3)])
async def test_without_retries_left_nothing_is_repeated(retries: int, attempts: int) -> None:
    llm = ScriptedLlm([ScriptedAnswer(attempts=attempts), ScriptedAnswer.of("too late")])
    with pytest.raises(EmptyAnswer):
        await items_of(llm, asking(retries))
    assert len(llm.requests) == 1


def test_the_call_of_a_result_and_the_question_come_along() -> None:
    asked = ChatMessage(role="assistant", content="", tool_calls=(CALL, CALL))
    results = [ChatMessage(role="tool", content=str(n), tool_call_id="c") for n in range(4)]
    talk = (said("user", "old"), said("assistant", "old"), said("user", "new"), asked, *results)
    assert shortened((SYSTEM, *talk)) == (SYSTEM, *talk[2:])


@given(st.lists(st.sampled_from(["user", "assistant", "turn with a tool"]), max_size=12))
def test_what_is_left_is_always_a_conversation(parts: list[str]) -> None:
    talk: list[ChatMessage] = [said("user", "first")]
    for part in parts:
        if part == "turn with a tool":
            talk.append(ChatMessage(role="assistant", content="", tool_calls=(CALL,)))
            talk.append(ChatMessage(role="tool", content="result", tool_call_id="c"))
        else:
            talk.append(said("user" if part == "user" else "assistant"))
    system, *kept = shortened((SYSTEM, *talk))
    assert system == SYSTEM
    assert kept[-1] == talk[-1]
    assert kept[0].role == "user"
    for before, message in zip([None, *kept], kept, strict=False):
        assert message.role != "tool" or (before is not None and bool(before.tool_calls))
