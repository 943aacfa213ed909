"""The litellm client against a real HTTP server on loopback."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from pipeline.domain.errors import ModelError, ModelRejected, ModelTimeout, ModelUnavailable
from pipeline.llm.client import LlmItem, TextDelta
from pipeline.llm.litellm_client import LitellmClient
from tests.pipeline.llm.asking import ImpatientClock, answer_of, ask, collect
from tests.support.openai_server import GARBAGE, Behaviour, FakeOpenAiServer

SECRET = "sk-not-a-real-key-0123456789"


@pytest.fixture
async def client(server: FakeOpenAiServer, clock: ImpatientClock) -> AsyncIterator[LitellmClient]:
    made = LitellmClient(model="openai/fake", api_base=server.api_base, api_key=SECRET, clock=clock)
    yield made
    await made.close()


async def test_an_answer_streams_with_its_end_and_its_token_counts(
    server: FakeOpenAiServer, client: LitellmClient
) -> None:
    text, finished = await answer_of(client, ask("hello", max_tokens=17))

    assert text == "Hello from the fake."
    assert (finished.finish_reason, finished.prompt_tokens, finished.completion_tokens) == ("stop", 7, 4)
    received = server.requests[0]
    assert received.authorization == f"Bearer {SECRET}"
    assert received.body["messages"][-1] == {"role": "user", "content": "hello"}
    assert received.body["max_tokens"] == 17
    assert client.status() == "ready"


async def test_a_cut_off_answer_says_length(server: FakeOpenAiServer, client: LitellmClient) -> None:
    server.script.append(Behaviour(finish_reason="length", usage=False))
    _, finished = await answer_of(client, ask())
    assert finished.finish_reason == "length"


async def test_an_answer_that_repeats_one_chunk_is_not_taken_for_a_loop(
    server: FakeOpenAiServer, client: LitellmClient
) -> None:
    server.script.append(Behaviour(chunks=("-----",) * 150))
    text, _ = await answer_of(client, ask())
    assert text == "-----" * 150


async def test_a_rate_limit_is_waited_out_as_long_as_the_provider_says(
    server: FakeOpenAiServer, client: LitellmClient, clock: ImpatientClock
) -> None:
    server.script.append(Behaviour(status=429, retry_after="7"))
    text, _ = await answer_of(client, ask())
    assert text == "Hello from the fake."
    assert clock.slept == [7.0]
    assert len(server.requests) == 2


async def test_a_rate_limit_beyond_the_deadline_is_reported_at_once(
    server: FakeOpenAiServer, client: LitellmClient, clock: ImpatientClock
) -> None:
    server.script.append(Behaviour(status=429, retry_after="120"))
    with pytest.raises(ModelUnavailable, match="limits the rate") as caught:
        await answer_of(client, ask(timeout_s=20))
    assert caught.value.retry_after_s == 120
    assert clock.slept == []
    assert len(server.requests) == 1


async def test_server_errors_are_retried_with_growing_waits_and_then_reported(
    server: FakeOpenAiServer, client: LitellmClient, clock: ImpatientClock
) -> None:
    server.script.extend([Behaviour(status=500), Behaviour(status=503), Behaviour(status=500)])
    with pytest.raises(ModelUnavailable, match="openai/fake"):
        await answer_of(client, ask())
    assert len(server.requests) == 3
    first, second = clock.slept
    assert 0.25 <= first <= 0.5 <= second <= 1.0
    assert "openai/fake" in client.status()


async def test_the_server_errors_own_retries_of_the_library_are_off(
    server: FakeOpenAiServer, clock: ImpatientClock
) -> None:
    once = LitellmClient(model="openai/fake", api_base=server.api_base, api_key="k", clock=clock, retries=0)
    server.script.append(Behaviour(status=500))
    with pytest.raises(ModelUnavailable):
        await answer_of(once, ask())
    assert len(server.requests) == 1
    await once.close()


@pytest.mark.parametrize(
    ("status", "setting"),
    [
        (400, "llm.model"),
        (401, "llm.api_key"),
        (403, "llm.api_key"),
        (404, "llm.api_base"),
        (422, "llm.model"),
    ],
)
async def test_a_refusal_is_not_retried_and_names_the_setting(
    server: FakeOpenAiServer, client: LitellmClient, status: int, setting: str
) -> None:
    server.script.append(Behaviour(status=status))
    with pytest.raises(ModelRejected, match=setting) as caught:
        await answer_of(client, ask())
    assert "openai/fake" in str(caught.value)
    assert len(server.requests) == 1
    assert client.status() == str(caught.value)


async def test_a_conversation_that_is_too_long_is_reported_as_such(
    server: FakeOpenAiServer, client: LitellmClient
) -> None:
    words = "request (5030 tokens) exceeds the available context size (4096 tokens)"
    server.script.append(Behaviour(status=400, message=words))
    with pytest.raises(ModelRejected, match="/new"):
        await answer_of(client, ask())


async def test_a_key_that_the_provider_quotes_is_not_repeated(
    server: FakeOpenAiServer, client: LitellmClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.script.append(Behaviour(status=401, message=f"Incorrect API key provided: {SECRET}"))
    with pytest.raises(ModelError) as caught:
        await answer_of(client, ask())
    for shown in (str(caught.value), repr(client), client.status(), caplog.text):
        assert SECRET not in shown
    assert "***" in caught.value.detail


async def test_a_missing_key_names_the_setting(server: FakeOpenAiServer, clock: ImpatientClock) -> None:
    keyless = LitellmClient(model="openai/fake", api_base=server.api_base, clock=clock)
    with pytest.raises(ModelRejected, match=r"llm\.api_key"):
        await answer_of(keyless, ask())
    assert server.requests == []
    await keyless.close()


async def test_an_unknown_provider_names_the_setting(clock: ImpatientClock) -> None:
    client = LitellmClient(model="nonsense", api_key="k", clock=clock)
    with pytest.raises(ModelRejected, match=r"llm\.model"):
        await answer_of(client, ask())


async def test_a_server_that_is_not_there_is_unavailable(clock: ImpatientClock) -> None:
    async with FakeOpenAiServer() as gone:
        address = gone.api_base
    client = LitellmClient(model="openai/fake", api_base=address, api_key="k", clock=clock)
    with pytest.raises(ModelUnavailable, match="cannot be reached"):
        await answer_of(client, ask())
    assert len(clock.slept) == 2
    await client.close()


@pytest.mark.parametrize("hang", [Behaviour(hang_before=True), Behaviour(hang_after=0)])
async def test_silence_before_the_first_word_ends_at_the_deadline(
    server: FakeOpenAiServer, client: LitellmClient, hang: Behaviour
) -> None:
    await client.warm_up()
    server.script.append(hang)
    with pytest.raises(ModelTimeout, match="within 2 seconds"):
        await answer_of(client, ask(timeout_s=2))
    async with asyncio.timeout(60):
        await server.disconnected.wait()


async def test_silence_in_the_middle_ends_at_the_deadline(
    server: FakeOpenAiServer, client: LitellmClient
) -> None:
    await client.warm_up()
    server.script.append(Behaviour(hang_after=2))
    heard: list[LlmItem] = []
    with pytest.raises(ModelTimeout):
        await collect(client, ask(timeout_s=2), heard)
    assert heard == [TextDelta(text="Hello"), TextDelta(text=" from")]
    async with asyncio.timeout(60):
        await server.disconnected.wait()


async def test_a_connection_cut_after_the_first_word_is_not_retried(
    server: FakeOpenAiServer, client: LitellmClient
) -> None:
    server.script.append(Behaviour(cut_after=2))
    heard: list[LlmItem] = []
    with pytest.raises(ModelUnavailable):
        await collect(client, ask(), heard)
    assert heard[0] == TextDelta(text="Hello")
    assert len(server.requests) == 1


@pytest.mark.parametrize("odd", [Behaviour(raw=GARBAGE), Behaviour(cut_after=0)])
async def test_an_answer_that_breaks_before_its_first_word_is_asked_for_again(
    server: FakeOpenAiServer, client: LitellmClient, odd: Behaviour
) -> None:
    server.script.append(odd)
    text, _ = await answer_of(client, ask())
    assert text == "Hello from the fake."
    assert len(server.requests) == 2


async def test_closing_the_stream_makes_the_provider_stop(
    server: FakeOpenAiServer, client: LitellmClient
) -> None:
    server.script.append(Behaviour(hang_after=1))
    stream = client.stream(ask())
    assert await anext(stream) == TextDelta(text="Hello")
    await stream.aclose()
    async with asyncio.timeout(60):
        await server.disconnected.wait()


@pytest.mark.parametrize("hang", [Behaviour(hang_before=True), Behaviour(hang_after=1)])
async def test_cancelling_the_consumer_makes_the_provider_stop(
    server: FakeOpenAiServer, client: LitellmClient, hang: Behaviour
) -> None:
    await client.warm_up()
    server.script.append(hang)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(answer_of(client, ask()))
        await server.arrived.wait()
        task.cancel()
    assert task.cancelled()
    async with asyncio.timeout(60):
        await server.disconnected.wait()


async def test_many_streams_run_side_by_side(server: FakeOpenAiServer, client: LitellmClient) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(answer_of(client, ask(str(n)))) for n in range(20)]
    assert {task.result()[0] for task in tasks} == {"Hello from the fake."}
    assert len(server.requests) == 20


async def test_a_model_on_the_price_list_tells_what_an_answer_cost(
    server: FakeOpenAiServer, clock: ImpatientClock
) -> None:
    priced = LitellmClient(model="openai/gpt-4o", api_base=server.api_base, api_key="k", clock=clock)
    _, finished = await answer_of(priced, ask())
    # 7 and 4 tokens at $2.50 and $10 a million.
    assert finished.cost == pytest.approx(7 * 2.5e-6 + 4 * 10e-6)
    await priced.close()


async def test_closing_one_client_leaves_another_usable(
    server: FakeOpenAiServer, client: LitellmClient, clock: ImpatientClock
) -> None:
    other = LitellmClient(model="openai/fake", api_base=server.api_base, api_key="k", clock=clock)
    await answer_of(client, ask())
    await answer_of(other, ask())
    await other.close()
    text, _ = await answer_of(client, ask())
    assert text == "Hello from the fake."
