"""Twelve faults of a provider under a whole gateway: each message ends in an answer or a visible error."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pipeline.domain.events import ErrorEvent, ResponseComplete
from tests.pipeline.llm.test_contract import Kind, make_client
from tests.support.harness import open_gateway
from tests.support.llm_faults import ANSWER, CALLS_AT_MOST, FAULTS, NORMAL, Fault
from tests.support.openai_server import FakeOpenAiServer

SETTINGS = ("llm.max_tokens=10", "agent.completion=implicit")


@pytest.mark.parametrize("kind", ["direct", "litellm"])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
async def test_every_message_ends_by_its_deadline_and_the_next_one_is_answered(
    fault: Fault, kind: Kind, tmp_path: Path
) -> None:
    async with FakeOpenAiServer() as server:
        model = make_client(kind, server)
        await model.warm_up()
        server.script.extend(fault.first)
        server.default = fault.then
        if fault.gone:
            await server.__aexit__()
        limit = f"llm.timeout_s={1 if fault.slow else 30}"
        async with open_gateway(tmp_path, *SETTINGS, limit, model=model) as harness:
            accepted = await harness.channel.say("hello")
            async with asyncio.timeout(60):
                done = await harness.channel.terminal(accepted.message_id)
            assert len(server.requests) == fault.asked <= CALLS_AT_MOST
            if fault.error is None:
                assert isinstance(done, ResponseComplete)
                assert done.content
            else:
                assert isinstance(done, ErrorEvent)
                assert done.message

            if fault.gone:
                await server.__aenter__()
            server.default = NORMAL
            later = await harness.channel.say("and now?")
            async with asyncio.timeout(60):
                done = await harness.channel.terminal(later.message_id)
            assert isinstance(done, ResponseComplete)
            assert done.content == ANSWER


@pytest.mark.parametrize("kind", ["direct", "litellm"])
async def test_an_empty_answer_is_asked_for_again_with_less_before_it(kind: Kind, tmp_path: Path) -> None:
    empty = next(fault.then for fault in FAULTS if fault.name == "empty answer")
    async with FakeOpenAiServer() as server:
        model = make_client(kind, server)
        await model.warm_up()
        async with open_gateway(tmp_path, *SETTINGS, model=model) as harness:
            for said in ("one", "two", "three"):
                accepted = await harness.channel.say(said)
                await harness.channel.reply(accepted.message_id)
            server.script.append(empty)
            accepted = await harness.channel.say("four")
            done = await harness.channel.terminal(accepted.message_id)
            assert isinstance(done, ResponseComplete)
            assert done.content == ANSWER
        first, second = (request.body["messages"] for request in server.requests[3:])
        assert len(first) == 8
        assert [message["role"] for message in second] == ["system", "user", "assistant", "user"]
        assert (second[0], second[1:]) == (first[0], first[-3:])
