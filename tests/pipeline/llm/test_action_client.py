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

LAMP = ToolDefinition(name="lamp", description="Turn the lamp on.", parameters={"type": "object"})
LINE = ToolDefinition(
    name="keep_line",
    description="Keep a line.",
    parameters={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
)
LOAD = ToolDefinition(
    name="load_tools",
    description="Load.",
    parameters={
        "type": "object",
        "properties": {
            "groups": {"type": "array", "items": {"type": "string", "enum": ["mcp:lines", "mcp:web"]}}
        },
    },
)
USER = ChatMessage(role="user", content="A line with milk")


@pytest.fixture
async def server() -> AsyncIterator[FakeOpenAiServer]:
    async with FakeOpenAiServer() as fake:
        yield fake


async def answered(
    server: FakeOpenAiServer, messages: tuple[ChatMessage, ...], *tools: ToolDefinition, asked: str = ""
) -> list[LlmItem]:
    inner = DirectClient(model="local", api_base=server.api_base, clock=SystemClock(), retries=0)
    client = ActionClient(inner)
    deadline = asyncio.get_running_loop().time() + 30
    request = LlmRequest(messages=messages, tools=tools, asked=asked)
    items = [item async for item in client.stream(request, deadline)]
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
    items = await answered(server, (USER,), LAMP, LINE)
    assert items[0] == TextDelta(text="Hi.")
    choice, words = server.requests
    assert choice.body["grammar"] == 'root ::= "answer" | "lamp" | "keep_line"'
    assert words.body["messages"] == [{"role": "user", "content": "A line with milk"}]
    assert "tools" not in words.body
    finished = items[-1]
    assert isinstance(finished, LlmFinished)
    assert finished.prompt_tokens == 14, "both questions are counted"
    assert finished.attempts == 1, "the choice is no attempt at an answer"


async def test_a_chosen_tool_is_asked_for_with_its_arguments(server: FakeOpenAiServer) -> None:
    saying(server, "keep_line", '{"text": "milk"}')
    items = await answered(server, (USER,), LAMP, LINE)
    assert len(items) == 2
    asked, finished = items
    assert isinstance(asked, ToolAsked)
    assert asked.call.id
    assert (asked.call.name, asked.call.arguments) == ("keep_line", '{"text": "milk"}')
    assert isinstance(finished, LlmFinished)
    assert finished.finish_reason == "tool_calls"
    schema = server.requests[1].body["response_format"]["json_schema"]["schema"]
    assert schema["required"] == ["text"]


async def test_a_tool_without_arguments_costs_no_second_question(server: FakeOpenAiServer) -> None:
    saying(server, "lamp")
    asked, _ = await answered(server, (USER,), LAMP)
    assert isinstance(asked, ToolAsked)
    assert asked.call.arguments == "{}"
    assert len(server.requests) == 1


async def test_a_group_is_loaded_first_and_then_only_its_tools_are_choices(server: FakeOpenAiServer) -> None:
    saying(server, "mcp:lines")
    asked, _ = await answered(server, (USER,), LOAD)
    assert isinstance(asked, ToolAsked)
    assert json.loads(asked.call.arguments) == {"groups": ["mcp:lines"]}

    loaded = (
        USER,
        ChatMessage(role="assistant", content="", tool_calls=(asked.call,)),
        ChatMessage(role="tool", content="mcp:lines: loaded", tool_call_id=asked.call.id),
    )
    saying(server, "keep_line", '{"text": "milk"}')
    asked, _ = await answered(server, loaded, LOAD, LINE)
    assert isinstance(asked, ToolAsked)
    assert asked.call.name == "keep_line"
    assert server.requests[1].body["grammar"] == 'root ::= "keep_line"', "it was loaded to be used"


async def test_a_group_that_could_not_be_loaded_is_not_chosen_again(server: FakeOpenAiServer) -> None:
    call = ToolCall(id="a", name="load_tools", arguments='{"groups": ["mcp:lines"]}')
    tried = (
        USER,
        ChatMessage(role="assistant", content="", tool_calls=(call,)),
        ChatMessage(role="tool", content="mcp:lines: not loaded", tool_call_id="a"),
    )
    saying(server, "answer", "I cannot.")
    await answered(server, tried, LOAD)
    assert server.requests[0].body["grammar"] == 'root ::= "answer" | "mcp:web"'


async def test_behind_a_tools_result_come_words(server: FakeOpenAiServer) -> None:
    call = ToolCall(id="a", name="keep_line", arguments='{"text": "milk"}')
    done = (
        USER,
        ChatMessage(role="assistant", content="", tool_calls=(call,)),
        ChatMessage(role="tool", content="Noted.", tool_call_id="a"),
    )
    saying(server, "It is noted.")
    items = await answered(server, done, LAMP, LINE)
    assert items[0] == TextDelta(text="It is noted.")
    (only,) = server.requests
    (sent,) = only.body["messages"]
    assert sent["role"] == "user"
    assert "(keep_line says: Noted.)" in sent["content"]


async def test_no_page_is_read_whose_address_no_one_said(server: FakeOpenAiServer) -> None:
    page = ToolDefinition(
        name="look_up",
        description="Read a page.",
        parameters={"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]},
    )
    words = ChatMessage(role="user", content="Sum up what we said.")
    for offered, label in ((page, "look_up"),):
        saying(server, label, "We said hi.")
        items = await answered(server, (words,), offered)
        assert items[0] == TextDelta(text="We said hi.")

    said = (
        ChatMessage(role="user", content="I like example.org"),
        ChatMessage(role="assistant", content="Ah."),
    )
    saying(server, "look_up", '{"url": "example.org"}')
    asked, _ = await answered(server, (*said, words), page)
    assert isinstance(asked, ToolAsked), "the address may have been said just before"


async def test_a_choice_that_is_none_of_the_labels_is_answered_in_words(server: FakeOpenAiServer) -> None:
    saying(server, "something else", "Hi.")
    items = await answered(server, (USER,), LAMP)
    assert items[0] == TextDelta(text="Hi.")


BUILT_IN = ToolDefinition(
    name="load_tools",
    description="Load.",
    parameters={
        "type": "object",
        "properties": {
            "groups": {"type": "array", "items": {"type": "string", "enum": ["schedule", "notes", "mcp:a"]}}
        },
    },
)


def turn(words: str, *done: tuple[str, str, str]) -> tuple[ChatMessage, ...]:
    """A message, and the calls that were made for it: (name, arguments, result)."""
    messages = [ChatMessage(role="user", content=words)]
    for number, (name, arguments, result) in enumerate(done):
        call = ToolCall(id=f"c{number}", name=name, arguments=arguments)
        messages += [
            ChatMessage(role="assistant", content="", tool_calls=(call,)),
            ChatMessage(role="tool", content=result, tool_call_id=call.id),
        ]
    return tuple(messages)


def words_of(items: list[LlmItem]) -> str:
    return "".join(item.text for item in items if isinstance(item, TextDelta))


async def test_a_built_in_tool_is_asked_for_by_rule_without_a_word_of_the_model(
    server: FakeOpenAiServer,
) -> None:
    said = "Erinnere mich in 2 Minuten daran, die Pflanzen zu gießen"
    asked, _ = await answered(server, turn(said), BUILT_IN)
    assert isinstance(asked, ToolAsked)
    assert (asked.call.name, json.loads(asked.call.arguments)) == ("load_tools", {"groups": ["schedule"]})
    loaded = turn(said, ("load_tools", asked.call.arguments, "schedule: loaded"))
    # It is proposed also where it is not offered: off the record the gate refuses it in true words.
    asked, _ = await answered(server, loaded, BUILT_IN)
    assert isinstance(asked, ToolAsked)
    assert asked.call.name == "remind_me"
    assert json.loads(asked.call.arguments) == {"text": "die Pflanzen zu gießen", "when": "in 2 Minuten"}
    assert server.requests == []


async def test_in_a_room_the_persons_own_words_are_read_and_no_one_elses(server: FakeOpenAiServer) -> None:
    shown = turn("(Ben said: remind me tomorrow to steal)\nAda: Note: milk")
    asked, _ = await answered(server, shown, BUILT_IN, asked="Note: milk")
    assert isinstance(asked, ToolAsked)
    assert json.loads(asked.call.arguments) == {"groups": ["notes"]}


async def test_what_a_tool_that_is_turned_off_would_do_is_not_claimed(server: FakeOpenAiServer) -> None:
    items = await answered(server, turn("Open todo.txt"), BUILT_IN)
    assert "turned off" in words_of(items)
    assert server.requests == []


async def test_the_model_chooses_among_tools_of_others_alone(server: FakeOpenAiServer) -> None:
    saying(server, "answer", "Hi.")
    await answered(server, turn("I like notes."), BUILT_IN)
    assert server.requests[0].body["grammar"] == 'root ::= "answer" | "mcp:a"'


async def test_arguments_that_the_model_made_up_call_nothing(server: FakeOpenAiServer) -> None:
    saying(server, "keep_line", '{"text": "eat"}', "Which line?")
    items = await answered(server, (USER,), LINE)
    assert words_of(items) == "Which line?"


async def test_a_refusal_behind_a_result_gives_way_to_the_result(server: FakeOpenAiServer) -> None:
    saying(server, "I'm sorry, but I can't assist with that. " + "More. " * 100)
    done = turn("A line with milk", ("keep_line", '{"text": "milk"}', "The line is kept."))
    items = await answered(server, done, LINE)
    assert words_of(items) == "The line is kept."
    assert isinstance(items[-1], LlmFinished)


@pytest.mark.parametrize(
    "claim",
    [
        "Certainly! I've sent the e-mail to Bob.",
        "Natürlich! Ich habe die E-Mail an Bob gesendet.",
        "Bien sûr ! J'ai envoyé le message.",
        "¡Claro! He enviado el mensaje.",
        "Sure. The message has been sent.",
    ],
)
async def test_what_no_tool_did_is_not_claimed(server: FakeOpenAiServer, claim: str) -> None:
    saying(server, "answer", claim)
    items = await answered(server, turn("Send an e-mail to Bob."), LINE)
    assert words_of(items).startswith("I did not do that")


async def test_a_company_that_did_not_make_the_bot_is_not_named(server: FakeOpenAiServer) -> None:
    saying(server, "answer", "I am ChatGPT, a language model created by OpenAI.")
    items = await answered(server, turn("Who are you?"), LINE)
    assert "OpenAI" not in words_of(items)


async def test_ordinary_words_are_kept(server: FakeOpenAiServer) -> None:
    server.script.extend([Behaviour(chunks=("answer",)), Behaviour(chunks=("Rome ", "is it."))])
    items = await answered(server, turn("What is the capital of Italy?"), LINE)
    assert words_of(items) == "Rome is it."
    server.script.extend([Behaviour(chunks=("answer",)), Behaviour(chunks=("Dear Bob, ", "hello."))])
    items = await answered(server, turn("Write an e-mail to Bob."), LINE)
    assert words_of(items) == "Dear Bob, hello."
