"""The direct backend against a real HTTP server: what endpoints do that claim to be compatible."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from pipeline.domain.errors import ModelRejected, ModelTimeout, ModelUnavailable
from pipeline.llm.backends import OPENAI
from pipeline.llm.client import LlmItem, TextDelta, ToolAsked
from pipeline.llm.direct_client import DirectClient, completions_url
from tests.pipeline.llm.asking import ImpatientClock, answer_of, ask, collect
from tests.support.openai_server import Behaviour, FakeOpenAiServer

SECRET = "sk-not-a-real-key-0123456789"


@pytest.fixture
async def client(server: FakeOpenAiServer, clock: ImpatientClock) -> AsyncIterator[DirectClient]:
    made = DirectClient(model="fake", api_base=server.api_base, api_key=SECRET, clock=clock)
    yield made
    await made.close()


def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
    return b"data: " + json.dumps({"choices": [{"delta": delta, "finish_reason": finish}]}).encode() + b"\n\n"


STOP = event({}, "stop")
DONE = b"data: [DONE]\n\n"


@pytest.mark.parametrize("pieces", [0, 1, 7])
async def test_characters_that_are_cut_anywhere_arrive_whole(
    server: FakeOpenAiServer, client: DirectClient, pieces: int
) -> None:
    line = 'data: {"choices": [{"delta": {"content": "Grüße 🌧 "}}]}\r\n\r\n'.encode()
    halves = event({"content": "\ud83d"}) + event({"content": "\ude00!"})
    server.script.append(Behaviour(raw=b": hi\n\n" + line + halves + STOP + DONE, raw_pieces=pieces))
    text, _ = await answer_of(client, ask())
    assert text == "Grüße 🌧 😀!"


@pytest.mark.parametrize("tail", [STOP + DONE, STOP, DONE, STOP.rstrip(), event({"content": "!"}, "stop")])
async def test_an_answer_is_whole_with_its_reason_or_the_final_mark(
    server: FakeOpenAiServer, client: DirectClient, tail: bytes
) -> None:
    server.script.append(Behaviour(raw=event({"content": "whole"}) + tail))
    text, finished = await answer_of(client, ask())
    assert text.startswith("whole")
    assert finished.finish_reason == "stop"


@pytest.mark.parametrize("missing", [0, 2])
async def test_an_answer_without_either_was_cut_and_says_so_after_its_text(
    server: FakeOpenAiServer, client: DirectClient, missing: int
) -> None:
    whole = event({"content": "half an ans"})
    server.script.append(Behaviour(raw=whole[: len(whole) - missing]))
    heard: list[LlmItem] = []
    with pytest.raises(ModelUnavailable) as failed:
        await collect(client, ask(), heard)
    assert "stopped in the middle" in failed.value.detail
    assert heard == [TextDelta(text="half an ans")]
    assert len(server.requests) == 1


@pytest.mark.parametrize("calls", [(), (("weather", '{"place": "Oslo"}'), ("notes", "{}"))])
async def test_an_endpoint_that_does_not_stream_is_understood(
    server: FakeOpenAiServer, client: DirectClient, calls: tuple[tuple[str, str], ...]
) -> None:
    server.script.append(Behaviour(document=True, calls=calls))
    heard: list[LlmItem] = []
    await collect(client, ask(), heard)
    assert heard[0] == TextDelta(text="Hello from the fake.")
    assert [(i.call.name, i.call.arguments) for i in heard if isinstance(i, ToolAsked)] == list(calls)


@pytest.mark.parametrize("calls_in", [0, 1, 3])
async def test_arguments_arrive_whole_in_any_fragments(
    server: FakeOpenAiServer, client: DirectClient, calls_in: int
) -> None:
    calls = (("weather", '{"place": "Oslo"}'), ("notes", '{"text": "umbrella ☂"}'))
    server.script.append(Behaviour(chunks=(), calls=calls, calls_in=calls_in))
    heard: list[LlmItem] = []
    await collect(client, ask(), heard)
    assert [(i.call.name, i.call.arguments) for i in heard if isinstance(i, ToolAsked)] == list(calls)


@pytest.mark.parametrize(
    "error",
    [
        b'data: {"error": {"message": "the model crashed", "code": 500}}\n\n',
        b'event: error\ndata: {"error": "the model crashed"}\n\n',
        b'data: {"object": "error", "message": "the model crashed"}\n\n',
    ],
)
async def test_an_error_in_the_stream_is_reported_after_the_text_before_it(
    server: FakeOpenAiServer, client: DirectClient, error: bytes
) -> None:
    server.script.append(Behaviour(raw=event({"content": "so far"}) + error))
    heard: list[LlmItem] = []
    with pytest.raises(ModelUnavailable) as failed:
        await collect(client, ask(), heard)
    assert "the model crashed" in failed.value.detail
    assert heard == [TextDelta(text="so far")]

    server.script.append(Behaviour(raw=error))
    text, finished = await answer_of(client, ask())
    assert (text, finished.attempts) == ("Hello from the fake.", 2), "nothing was said: it is asked again"


async def test_a_newer_model_gets_its_own_parameters_from_then_on(
    server: FakeOpenAiServer, client: DirectClient
) -> None:
    server.script.append(
        Behaviour(
            status=400,
            code="unsupported_parameter",
            param="max_tokens",
            message="Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead.",
        )
    )
    server.script.append(
        Behaviour(
            status=400,
            code="unsupported_value",
            message="Unsupported value: 'temperature' does not support 0 with this model.",
        )
    )
    _, finished = await answer_of(client, ask(max_tokens=9))
    assert finished.attempts == 3
    await answer_of(client, ask(max_tokens=9))
    assert len(server.requests) == 4, "it is remembered"
    body = server.requests[-1].body
    assert body["max_completion_tokens"] == 9
    assert not {"max_tokens", "temperature"} & body.keys()


async def test_a_limit_that_is_too_large_is_a_refusal_and_no_dialect(
    server: FakeOpenAiServer, client: DirectClient
) -> None:
    words = "max_tokens is too large: 99999. This model supports at most 4096 completion tokens."
    server.script.append(Behaviour(status=400, param="max_tokens", message=words))
    with pytest.raises(ModelRejected) as refused:
        await answer_of(client, ask())
    assert "too large" in refused.value.detail
    assert len(server.requests) == 1


async def test_a_body_of_ones_own_reaches_the_endpoint(
    server: FakeOpenAiServer, clock: ImpatientClock
) -> None:
    client = DirectClient(
        model="fake", api_base=server.api_base, clock=clock, extra={"cache_prompt": True, "top_k": 1}
    )
    body = client.body_of(ask()) | {"response_format": {"type": "json_object"}, "top_k": 5}
    deadline = asyncio.get_running_loop().time() + 30
    async for _ in client.complete(body, deadline=deadline, retries=0):
        pass
    sent = server.requests[0]
    assert sent.body["response_format"] == {"type": "json_object"}
    assert (sent.body["cache_prompt"], sent.body["top_k"], sent.body["stream"]) == (True, 5, True)
    assert sent.authorization == "", "no key, no header"
    await client.close()


async def test_one_connection_serves_one_answer_after_the_other(
    server: FakeOpenAiServer, client: DirectClient
) -> None:
    for _ in range(4):
        await answer_of(client, ask())
    assert len(server.connections) == 1


async def test_a_redirect_is_not_followed_and_names_the_setting(clock: ImpatientClock) -> None:
    async def away(_request: web.Request) -> web.Response:
        return web.Response(status=307, headers={"Location": "https://elsewhere.example/v1?token=abc"})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", away)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    client = DirectClient(model="fake", api_base=f"http://127.0.0.1:{port}", api_key=SECRET, clock=clock)
    with pytest.raises(ModelRejected, match=r"elsewhere\.example/v1: .*llm\.api_base") as caught:
        await answer_of(client, ask())
    assert "abc" not in str(caught.value)
    await client.close()
    await runner.cleanup()


async def test_openai_without_a_key_is_not_even_called(clock: ImpatientClock) -> None:
    client = DirectClient(model="gpt-5-mini", clock=clock)
    with pytest.raises(ModelRejected, match=r"llm\.api_key"):
        await answer_of(client, ask())
    await client.close()


async def test_the_key_is_shown_nowhere(
    server: FakeOpenAiServer, client: DirectClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.script.append(Behaviour(status=401, message=f"Incorrect API key provided: {SECRET}"))
    with pytest.raises(ModelRejected, match=r"llm\.api_key") as caught:
        await answer_of(client, ask())
    assert server.requests[0].authorization == f"Bearer {SECRET}"
    for shown in (str(caught.value), repr(client), client.status(), caplog.text):
        assert SECRET not in shown


async def test_a_provider_that_continues_without_end_is_cut_at_our_own_limit(
    server: FakeOpenAiServer, client: DirectClient
) -> None:
    server.script.append(Behaviour(endless="words and more words "))
    text, finished = await answer_of(client, ask(max_tokens=10))
    assert finished.finish_reason == "length"
    assert 1_000 < len(text) < 200_000
    async with asyncio.timeout(60):
        await server.disconnected.wait()


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"data: " + b"x" * 1_100_000, "line of more than 1 MB"),
        (b": nothing but comments\n\n" * 500_000, "more than 10 MB"),
    ],
)
async def test_an_answer_without_bounds_is_refused_and_not_asked_for_again(
    server: FakeOpenAiServer, client: DirectClient, raw: bytes, words: str
) -> None:
    server.script.append(Behaviour(raw=raw))
    with pytest.raises(ModelRejected, match=words):
        await answer_of(client, ask())
    assert len(server.requests) == 1


async def test_an_answer_that_is_whole_does_not_fail_for_its_token_counts(
    server: FakeOpenAiServer, client: DirectClient
) -> None:
    """The endpoint says how the answer ended and then neither closes nor continues."""
    server.script.append(Behaviour(raw=event({"content": "whole"}) + STOP, hang_after=0))
    text, finished = await answer_of(client, ask(timeout_s=2))
    assert (text, finished.finish_reason) == ("whole", "stop")


async def test_silence_in_the_middle_ends_at_the_deadline(
    server: FakeOpenAiServer, client: DirectClient
) -> None:
    server.script.append(Behaviour(hang_after=2))
    heard: list[LlmItem] = []
    with pytest.raises(ModelTimeout, match="within 2 seconds"):
        await collect(client, ask(timeout_s=2), heard)
    assert "".join(item.text for item in heard if isinstance(item, TextDelta)) == "Hello from"
    async with asyncio.timeout(60):
        await server.disconnected.wait()


async def test_a_closed_client_opens_no_connection_again(
    server: FakeOpenAiServer, clock: ImpatientClock
) -> None:
    client = DirectClient(model="fake", api_base=server.api_base, clock=clock)
    stream = client.stream(ask())
    server.script.append(Behaviour(hang_after=1))
    assert await anext(stream) == TextDelta(text="Hello")
    await client.close()
    with pytest.raises(ModelUnavailable):
        await anext(stream)
    with pytest.raises(ModelUnavailable, match="shut down"):
        await answer_of(client, ask())
    assert len(server.requests) == 1


async def test_the_environments_proxy_is_used_but_not_for_this_machine(
    server: FakeOpenAiServer, client: DirectClient, clock: ImpatientClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", server.api_base.removesuffix("/v1"))
    away = DirectClient(model="fake", api_base="http://model.invalid/v1", clock=clock)
    assert (await answer_of(away, ask()))[0] == "Hello from the fake."
    await away.close()

    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert (await answer_of(client, ask()))[0] == "Hello from the fake."


@pytest.mark.parametrize(
    ("base", "url"),
    [
        (OPENAI, "https://api.openai.com/v1/chat/completions"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000/v1/chat/completions"),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000/v1/chat/completions"),
        ("https://openrouter.ai/api/v1/", "https://openrouter.ai/api/v1/chat/completions"),
        ("https://x.example/v1/chat/completions", "https://x.example/v1/chat/completions"),
    ],
)
def test_the_address_is_completed(base: str, url: str) -> None:
    assert completions_url(base) == url
