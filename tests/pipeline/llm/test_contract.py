"""What every language model client promises, tested with the fake and both backends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Literal, Protocol

import pytest

from pipeline.domain.chat import ChatMessage, ToolCall, ToolDefinition
from pipeline.domain.errors import ModelRejected, ModelTimeout, ModelUnavailable
from pipeline.llm.client import LlmClient, LlmFinished, LlmItem, LlmRequest, TextDelta, ToolAsked
from pipeline.llm.direct_client import DirectClient
from pipeline.llm.failures import EmptyAnswer
from pipeline.llm.litellm_client import LitellmClient
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.pipeline.llm.asking import ImpatientClock, answer_of, ask, collect
from tests.support.openai_server import Behaviour, FakeOpenAiServer

WEATHER = ToolDefinition(
    name="weather",
    description="Tells the weather.",
    parameters={"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
)
Kind = Literal["scripted", "direct", "litellm"]


class Subject(Protocol):
    """A client with something behind it whose answers can be set."""

    @property
    def client(self) -> LlmClient: ...
    def text(self, *chunks: str, reason: str = "stop") -> None: ...
    def calls(self, *calls: tuple[str, str], text: str = "") -> None: ...
    def empty(self) -> None: ...
    def refused(self) -> None: ...
    def silent_after(self, *chunks: str) -> None: ...
    def asked(self) -> int: ...
    async def stopped(self) -> None: ...


class Scripted:
    """The fake."""

    def __init__(self) -> None:
        self.client = ScriptedLlm()

    def text(self, *chunks: str, reason: str = "stop") -> None:
        self.client.add(ScriptedAnswer(chunks=chunks, finish_reason=reason))

    def calls(self, *calls: tuple[str, str], text: str = "") -> None:
        made = (ToolCall(id=f"call_{n}", name=name, arguments=said) for n, (name, said) in enumerate(calls))
        self.client.add(ScriptedAnswer.calling(*made, text=text))

    def empty(self) -> None:
        self.client.add(ScriptedAnswer())

    def refused(self) -> None:
        self.client.add(ScriptedAnswer(error=ModelRejected("no")))

    def silent_after(self, *chunks: str) -> None:
        # Without a word the fake would be a model that gave an empty answer.
        said = chunks or ("never said",)
        self.client.add(ScriptedAnswer(chunks=said, gate=asyncio.Event(), gate_at=len(chunks)))

    def asked(self) -> int:
        return len(self.client.requests)

    async def stopped(self) -> None:
        assert self.client.cancelled == 1


class Served:
    """A backend that calls the fake server."""

    def __init__(self, client: LlmClient, server: FakeOpenAiServer) -> None:
        self.client = client
        self.server = server

    def text(self, *chunks: str, reason: str = "stop") -> None:
        self.server.script.append(Behaviour(chunks=chunks, finish_reason=reason))

    def calls(self, *calls: tuple[str, str], text: str = "") -> None:
        self.server.script.append(Behaviour(chunks=(text,) if text else (), calls=calls))

    def empty(self) -> None:
        self.server.script.append(Behaviour(chunks=()))

    def refused(self) -> None:
        self.server.script.append(Behaviour(status=401))

    def silent_after(self, *chunks: str) -> None:
        self.server.script.append(Behaviour(chunks=chunks, hang_after=len(chunks)))

    def asked(self) -> int:
        return len(self.server.requests)

    async def stopped(self) -> None:
        async with asyncio.timeout(60):
            await self.server.disconnected.wait()


@pytest.fixture(params=["scripted", "direct", "litellm"])
async def subject(request: pytest.FixtureRequest) -> AsyncIterator[Subject]:
    if request.param == "scripted":
        yield Scripted()
        return
    async with FakeOpenAiServer() as server:
        client = make_client(request.param, server)
        await client.warm_up()
        yield Served(client, server)
        await client.close()


def make_client(kind: Kind, server: FakeOpenAiServer, clock: ImpatientClock | None = None) -> LlmClient:
    clock = clock or ImpatientClock()
    if kind == "direct":
        return DirectClient(model="fake", api_base=server.api_base, api_key="k", clock=clock)
    return LitellmClient(model="openai/fake", api_base=server.api_base, api_key="k", clock=clock)


async def test_a_text_streams_and_ends_with_its_reason(subject: Subject) -> None:
    subject.text("one", " two", " three", reason="length")
    text, finished = await answer_of(subject.client, ask())
    assert text == "one two three"
    assert finished.finish_reason == "length"
    assert finished.prompt_tokens > 0
    assert finished.completion_tokens == 3
    assert (finished.attempts, finished.cost) == (1, 0.0)


async def test_a_call_arrives_whole_after_the_text_before_it(subject: Subject) -> None:
    subject.calls(("weather", '{"place": "Zürich 🌧"}'), text="I look.")
    items = await items_of(subject.client, with_tools())
    *texts, called, finished = items
    assert "".join(item.text for item in texts if isinstance(item, TextDelta)) == "I look."
    assert isinstance(called, ToolAsked)
    assert (called.call.name, called.call.arguments) == ("weather", '{"place": "Zürich 🌧"}')
    assert called.call.id
    assert isinstance(finished, LlmFinished)
    assert finished.finish_reason == "tool_calls"


async def test_several_calls_keep_their_order_and_have_their_own_ids(subject: Subject) -> None:
    places = ["Oslo", "Rome", "Lima"]
    subject.calls(*(("weather", f'{{"place": "{place}"}}') for place in places))
    items = await items_of(subject.client, with_tools())
    calls = [item.call for item in items if isinstance(item, ToolAsked)]
    assert [call.arguments for call in calls] == [f'{{"place": "{place}"}}' for place in places]
    assert len({call.id for call in calls}) == 3


async def test_arguments_that_are_no_json_arrive_as_they_are(subject: Subject) -> None:
    subject.calls(("weather", '{"place": "Os'), ("no_such_tool", ""))
    items = await items_of(subject.client, with_tools())
    calls = [item.call for item in items if isinstance(item, ToolAsked)]
    assert [(call.name, call.arguments) for call in calls] == [
        ("weather", '{"place": "Os'),
        ("no_such_tool", ""),
    ]


async def test_an_empty_answer_is_reported_and_tells_what_it_took(subject: Subject) -> None:
    subject.empty()
    with pytest.raises(EmptyAnswer, match="empty answer") as caught:
        await answer_of(subject.client, ask())
    assert isinstance(caught.value, ModelUnavailable)
    assert caught.value.finished.attempts == 1
    assert caught.value.finished.prompt_tokens > 0
    assert subject.asked() == 1, "the same words would mostly be answered so again"


async def test_a_refusal_is_raised_before_anything_is_yielded(subject: Subject) -> None:
    subject.refused()
    heard: list[LlmItem] = []
    with pytest.raises(ModelRejected):
        await collect(subject.client, ask(), heard)
    assert heard == []


@pytest.mark.parametrize("before", [(), ("one",)])
async def test_cancelling_the_consumer_stops_the_model(subject: Subject, before: tuple[str, ...]) -> None:
    subject.silent_after(*before)
    heard: list[LlmItem] = []
    async with asyncio.TaskGroup() as group:
        task = group.create_task(collect(subject.client, ask(), heard))
        async with asyncio.timeout(60):
            while not (subject.asked() and len(heard) == len(before)):  # noqa: ASYNC110  # real sockets
                await asyncio.sleep(0)
        task.cancel()
    assert task.cancelled()
    await subject.stopped()


async def test_closing_the_stream_stops_the_model(subject: Subject) -> None:
    subject.silent_after("one")
    stream = subject.client.stream(ask())
    assert await anext(stream) == TextDelta(text="one")
    await stream.aclose()
    await subject.stopped()


async def test_a_client_serves_many_streams_at_once(subject: Subject) -> None:
    for _ in range(10):
        subject.text("fine")
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(answer_of(subject.client, ask())) for _ in range(10)]
    assert {task.result()[0] for task in tasks} == {"fine"}


async def test_a_client_can_be_closed_twice(subject: Subject) -> None:
    subject.text("fine")
    text, _ = await answer_of(subject.client, ask())
    await subject.client.close()
    await subject.client.close()
    assert text == "fine"


@pytest.mark.parametrize("kind", ["direct", "litellm"])
async def test_a_request_bounds_the_attempts_and_the_end_counts_them(kind: Kind) -> None:
    async with FakeOpenAiServer() as server:
        client = make_client(kind, server)
        server.script.extend([Behaviour(status=500), Behaviour(status=503)])
        _, finished = await answer_of(client, ask())
        assert finished.attempts == 3

        server.script.extend([Behaviour(status=500)] * 3)
        with pytest.raises(ModelUnavailable):
            await answer_of(client, with_tools(retries=1))
        assert len(server.requests) == 5
        await client.close()


@pytest.mark.parametrize("kind", ["direct", "litellm"])
async def test_a_provider_is_informed_of_tools_calls_and_results(kind: Kind) -> None:
    calls = (
        ToolCall(id="call_a", name="weather", arguments='{"place": "Oslo"}'),
        ToolCall(id="call_b", name="we ather!", arguments='{"place'),
    )
    request = LlmRequest(
        messages=(
            ChatMessage(role="user", content="And in Oslo?"),
            ChatMessage(role="assistant", content="", tool_calls=calls),
            ChatMessage(role="tool", content="rain", tool_call_id="call_a"),
            ChatMessage(role="tool", content="what?", tool_call_id="call_b"),
        ),
        tools=(WEATHER,),
    )
    async with FakeOpenAiServer() as server:
        client = make_client(kind, server)
        await answer_of(client, request)
        await client.close()
    body = server.requests[0].body
    assert body["tools"][0]["function"] == {
        "name": "weather",
        "description": "Tells the weather.",
        "parameters": WEATHER.parameters,
    }
    asked = body["messages"][1]
    assert [call["id"] for call in asked["tool_calls"]] == ["call_a", "call_b"]
    assert asked["tool_calls"][0]["function"] == {"name": "weather", "arguments": '{"place": "Oslo"}'}
    # What a model got wrong must not make the provider refuse the conversation for ever.
    assert asked["tool_calls"][1]["function"] == {
        "name": "we_ather_",
        "arguments": '{"unreadable": "{\\"place"}',
    }
    assert [message.get("tool_call_id") for message in body["messages"][2:]] == ["call_a", "call_b"]


@pytest.mark.parametrize("kind", ["direct", "litellm"])
async def test_the_deadline_covers_the_waits_between_attempts(kind: Kind) -> None:
    async with FakeOpenAiServer() as server:
        client = make_client(kind, server)
        await client.warm_up()
        server.script.extend([Behaviour(status=500), Behaviour(hang_before=True)])
        with pytest.raises(ModelTimeout, match="within 3 seconds"):
            await answer_of(client, ask(timeout_s=3))
        assert len(server.requests) == 2
        await client.close()


def with_tools(*, retries: int | None = None) -> LlmRequest:
    return LlmRequest(
        messages=(ChatMessage(role="user", content="What is the weather?"),),
        tools=(WEATHER,),
        retries=retries,
    )


async def items_of(client: LlmClient, request: LlmRequest) -> list[LlmItem]:
    found: list[LlmItem] = []
    await collect(client, request, found)
    return found
