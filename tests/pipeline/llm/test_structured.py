"""Structured answers: what each client sends, what counts as an answer, and the second question."""

from __future__ import annotations

from collections import deque

import pytest

from pipeline.domain.chat import ChatMessage
from pipeline.domain.clock import SystemClock
from pipeline.llm.client import LlmClient, LlmRequest
from pipeline.llm.direct_client import DirectClient
from pipeline.llm.litellm_client import LitellmClient
from pipeline.llm.structured import AnswerUnreadable, Ask, structured
from tests.pipeline.llm.asking import PLACE, answer_of
from tests.support.openai_server import Behaviour, FakeOpenAiServer

_ROME = '{"kind": "city", "name": "Rome"}'


def _request(text: str = "Where?") -> LlmRequest:
    message = ChatMessage(role="user", content=text)
    return LlmRequest(messages=(message,), schema=PLACE, max_tokens=60, temperature=0.0, timeout_s=60)


def _direct(server: FakeOpenAiServer) -> LlmClient:
    return DirectClient(model="fake", api_base=server.api_base, api_key="k", clock=SystemClock())


async def test_an_endpoint_gets_the_schema_as_its_response_format() -> None:
    async with FakeOpenAiServer(script=deque([Behaviour(chunks=(_ROME,))])) as server:
        client = _direct(server)
        assert (await answer_of(client, _request()))[0] == _ROME
        await client.close()
    assert server.requests[0].body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "place", "schema": PLACE.schema},
    }


async def test_an_endpoint_that_does_not_know_the_format_is_asked_without_it() -> None:
    refusal = Behaviour(status=400, message="Unsupported parameter: response_format", param="response_format")
    script = deque([refusal, Behaviour(chunks=(_ROME,)), Behaviour(chunks=(_ROME,))])
    async with FakeOpenAiServer(script=script) as server:
        client = _direct(server)
        assert (await answer_of(client, _request()))[0] == _ROME
        await answer_of(client, _request())
        await client.close()
    assert ["response_format" in one.body for one in server.requests] == [True, False, False]


@pytest.mark.parametrize(("model", "known"), [("openai/gpt-4o-mini", True), ("openai/fake", False)])
async def test_litellm_gets_it_for_the_models_of_its_table(model: str, *, known: bool) -> None:
    async with FakeOpenAiServer(script=deque([Behaviour(chunks=(_ROME,))])) as server:
        client = LitellmClient(model=model, api_base=server.api_base, api_key="k", clock=SystemClock())
        assert (await answer_of(client, _request()))[0] == _ROME
        await client.close()
    assert ("response_format" in server.requests[0].body) == known


async def test_the_first_object_that_fits_is_the_answer() -> None:
    words = f'Sure {{not this}} {{"kind": "city"}}:\n```json\n{_ROME}\n``` {{"kind": "river", "name": "Po"}}'
    assert await structured((), PLACE, _said(words)) == {"kind": "city", "name": "Rome"}


async def test_a_wrong_answer_is_asked_for_again_with_the_reason() -> None:
    asked: list[tuple[ChatMessage, ...]] = []
    answers = deque(['{"kind": "sea", "name": "Red"}', _ROME])

    async def ask(messages: tuple[ChatMessage, ...]) -> str:
        asked.append(messages)
        return answers.popleft()

    question = ChatMessage(role="user", content="Where?")
    assert (await structured([question], PLACE, ask))["name"] == "Rome"
    first, second = asked
    assert first == (question,)
    assert (second[0], second[1].content) == (question, '{"kind": "sea", "name": "Red"}')
    assert second[2].content.startswith("That answer cannot be used: kind: must be one of city, river.")
    assert '"enum": ["city", "river"]' in second[2].content


@pytest.mark.parametrize(("again", "calls"), [(True, 2), (False, 1)])
async def test_after_that_it_is_an_error_with_the_first_answer(*, again: bool, calls: int) -> None:
    answers = deque(["Rome", "Paris"])

    async def ask(_messages: tuple[ChatMessage, ...]) -> str:
        return answers.popleft()

    with pytest.raises(AnswerUnreadable, match="the form place: it holds no JSON object") as caught:
        await structured((), PLACE, ask, again=again)
    assert caught.value.answer == "Rome"
    assert len(answers) == 2 - calls


def _said(text: str) -> Ask:
    async def ask(_messages: tuple[ChatMessage, ...]) -> str:
        return text

    return ask
