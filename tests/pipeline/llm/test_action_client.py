"""Choice, arguments and words, against a server that plays the small model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from pipeline.domain.chat import ChatMessage, ToolCall, ToolDefinition
from pipeline.domain.clock import SystemClock
from pipeline.llm.action_client import ActionClient
from pipeline.llm.client import LlmFinished, LlmItem, LlmRequest, TextDelta, ToolAsked
from pipeline.llm.direct_client import DirectClient
from tests.support.openai_server import Behaviour, FakeOpenAiServer

TIME = ToolDefinition(name="current_time", description="The time.", parameters={"type": "object"})
NOTE = ToolDefinition(
    name="write_note",
    description="Keep a note.",
    parameters={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
)
LOAD = ToolDefinition(
    name="load_tools",
    description="Load.",
    parameters={
        "type": "object",
        "properties": {"groups": {"type": "array", "items": {"type": "string", "enum": ["notes", "web"]}}},
    },
)
USER = ChatMessage(role="user", content="Note: milk")


@pytest.fixture
async def server() -> AsyncIterator[FakeOpenAiServer]:
    async with FakeOpenAiServer() as fake:
        yield fake


async def answered(
    server: FakeOpenAiServer, messages: tuple[ChatMessage, ...], *tools: ToolDefinition
) -> list[LlmItem]:
    door = DirectClient(model="local", api_base=server.api_base, clock=SystemClock(), retries=0)
    client = ActionClient(door)
    deadline = asyncio.get_running_loop().time() + 30
    items = [item async for item in client.stream(LlmRequest(messages=messages, tools=tools), deadline)]
    await client.close()
    return items


def saying(server: FakeOpenAiServer, *texts: str) -> None:
    server.script.extend(Behaviour(chunks=(text,)) for text in texts)


async def test_without_tools_the_words_are_asked_for_at_once(server: FakeOpenAiServer) -> None:
    items = await answered(server, (USER,))
    assert "".join(item.text for item in items if isinstance(item, TextDelta)) == "Hello from the fake."
    assert len(server.requests) == 1
    assert "grammar" not in server.requests[0].body


async def test_words_that_need_no_tool_are_answered_as_without_tools(server: FakeOpenAiServer) -> None:
    saying(server, "answer", "Hi.")
    items = await answered(server, (USER,), TIME, NOTE)
    assert items[0] == TextDelta(text="Hi.")
    choice, words = server.requests
    assert choice.body["grammar"] == 'root ::= "answer" | "current_time" | "write_note"'
    assert words.body["messages"] == [{"role": "user", "content": "Note: milk"}]
    assert "tools" not in words.body
    finished = items[-1]
    assert isinstance(finished, LlmFinished)
    assert finished.prompt_tokens == 14, "both questions are counted"
    assert finished.attempts == 1, "the choice is no attempt at an answer"


async def test_a_chosen_tool_is_asked_for_with_its_arguments(server: FakeOpenAiServer) -> None:
    saying(server, "write_note", '{"text": "milk"}')
    items = await answered(server, (USER,), TIME, NOTE)
    assert len(items) == 2
    asked, finished = items
    assert isinstance(asked, ToolAsked)
    assert asked.call.id
    assert (asked.call.name, asked.call.arguments) == ("write_note", '{"text": "milk"}')
    assert isinstance(finished, LlmFinished)
    assert finished.finish_reason == "tool_calls"
    schema = server.requests[1].body["response_format"]["json_schema"]["schema"]
    assert schema["required"] == ["text"]


async def test_a_tool_without_arguments_costs_no_second_question(server: FakeOpenAiServer) -> None:
    saying(server, "current_time")
    asked, _ = await answered(server, (USER,), TIME)
    assert isinstance(asked, ToolAsked)
    assert asked.call.arguments == "{}"
    assert len(server.requests) == 1


async def test_a_group_is_loaded_first_and_then_only_its_tools_are_choices(server: FakeOpenAiServer) -> None:
    saying(server, "notes")
    asked, _ = await answered(server, (USER,), LOAD)
    assert isinstance(asked, ToolAsked)
    assert json.loads(asked.call.arguments) == {"groups": ["notes"]}

    loaded = (
        USER,
        ChatMessage(role="assistant", content="", tool_calls=(asked.call,)),
        ChatMessage(role="tool", content="notes: loaded", tool_call_id=asked.call.id),
    )
    saying(server, "write_note", '{"text": "milk"}')
    asked, _ = await answered(server, loaded, LOAD, NOTE)
    assert isinstance(asked, ToolAsked)
    assert asked.call.name == "write_note"
    assert server.requests[1].body["grammar"] == 'root ::= "write_note"', "it was loaded to be used"


async def test_a_group_that_could_not_be_loaded_is_not_chosen_again(server: FakeOpenAiServer) -> None:
    call = ToolCall(id="a", name="load_tools", arguments='{"groups": ["notes"]}')
    tried = (
        USER,
        ChatMessage(role="assistant", content="", tool_calls=(call,)),
        ChatMessage(role="tool", content="notes: not loaded", tool_call_id="a"),
    )
    saying(server, "answer", "I cannot.")
    await answered(server, tried, LOAD)
    assert server.requests[0].body["grammar"] == 'root ::= "answer" | "web"'


async def test_behind_a_tools_result_come_words(server: FakeOpenAiServer) -> None:
    call = ToolCall(id="a", name="write_note", arguments='{"text": "milk"}')
    done = (
        USER,
        ChatMessage(role="assistant", content="", tool_calls=(call,)),
        ChatMessage(role="tool", content="Noted.", tool_call_id="a"),
    )
    saying(server, "It is noted.")
    items = await answered(server, done, TIME, NOTE)
    assert items[0] == TextDelta(text="It is noted.")
    (only,) = server.requests
    (sent,) = only.body["messages"]
    assert sent["role"] == "user"
    assert "(write_note says: Noted.)" in sent["content"]


async def test_no_page_is_read_whose_address_nobody_said(server: FakeOpenAiServer) -> None:
    page = ToolDefinition(
        name="fetch_page",
        description="Read a page.",
        parameters={"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]},
    )
    words = ChatMessage(role="user", content="Sum up what we said.")
    for offered, label in ((LOAD, "web"), (page, "fetch_page")):
        saying(server, label, "We said hi.")
        items = await answered(server, (words,), offered)
        assert items[0] == TextDelta(text="We said hi.")

    said = (
        ChatMessage(role="user", content="I like example.org"),
        ChatMessage(role="assistant", content="Ah."),
    )
    saying(server, "web")
    asked, _ = await answered(server, (*said, words), LOAD)
    assert isinstance(asked, ToolAsked), "the address may have been said just before"


async def test_a_choice_that_is_none_of_the_labels_is_answered_in_words(server: FakeOpenAiServer) -> None:
    saying(server, "something else", "Hi.")
    items = await answered(server, (USER,), TIME)
    assert items[0] == TextDelta(text="Hi.")
