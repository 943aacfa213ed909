"""Twelve faults of a provider with both backends: each call ends with a reason after a few requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from pipeline.domain.errors import ModelError, ModelTimeout
from pipeline.llm.client import LlmClient, LlmFinished, LlmItem
from tests.pipeline.llm.asking import ask, collect
from tests.pipeline.llm.test_contract import make_client
from tests.support.llm_faults import CALLS_AT_MOST, FAULTS, Fault
from tests.support.openai_server import FakeOpenAiServer


@pytest.fixture(params=["direct", "litellm"])
async def client(request: pytest.FixtureRequest, server: FakeOpenAiServer) -> AsyncIterator[LlmClient]:
    made = make_client(request.param, server)
    await made.warm_up()
    yield made
    await made.close()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
async def test_every_fault_ends_in_an_answer_or_an_error_in_words(
    fault: Fault, server: FakeOpenAiServer, client: LlmClient
) -> None:
    server.script.extend(fault.first)
    server.default = fault.then
    if fault.gone:
        await server.__aexit__()
    # On a busy machine the time of a slow one may pass before its request arrives.
    for timeout_s in (0.5, 5, 30) if fault.slow else (30,):
        await _ends_as_it_says(fault, client, timeout_s)
        if server.requests:
            break
    assert len(server.requests) == fault.calls <= CALLS_AT_MOST


async def _ends_as_it_says(fault: Fault, client: LlmClient, timeout_s: float) -> None:
    request = replace(ask(max_tokens=10, timeout_s=timeout_s), retries=2)
    heard: list[LlmItem] = []
    async with asyncio.timeout(60):
        if fault.error is None:
            await collect(client, request, heard)
            assert isinstance(heard[-1], LlmFinished)
        else:
            with pytest.raises(ModelError, match=fault.error) as caught:
                await collect(client, request, heard)
            assert isinstance(caught.value, ModelTimeout) == fault.slow
            assert client.status() == str(caught.value)


async def test_a_rate_limit_that_passes_costs_one_more_call(
    server: FakeOpenAiServer, client: LlmClient
) -> None:
    limited = next(fault.then for fault in FAULTS if fault.name.startswith("429"))
    server.script.append(limited)
    heard: list[LlmItem] = []
    await collect(client, ask(), heard)
    assert isinstance(heard[-1], LlmFinished)
    assert heard[-1].attempts == len(server.requests) == 2
