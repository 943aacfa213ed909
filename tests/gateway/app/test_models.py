"""The clients of the agents' models: shared where they are the same, closed with the gateway."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.app.llm import ModelClients
from gateway.config import agent_settings, load
from pipeline.domain.chat import ChatMessage
from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import ModelUnavailable
from pipeline.llm.client import LlmClient, LlmRequest
from pipeline.llm.direct_client import DirectClient
from pipeline.llm.scripted import ScriptedLlm

_TABLES = [
    "llm.model=local",
    "budget.cheaper_model=scripted:fail:unavailable",
    "agents.warm.temperature=1",
    "agents.wide.context_tokens=8192",
    "agents.fake.model=scripted:echo",
]


async def test_assistants_with_the_same_model_share_its_client() -> None:
    settings = load(Path("/dev/null"), {}, _TABLES)
    clients = ModelClients(settings, ManualClock())
    default = clients.main(settings)

    assert clients.main(agent_settings(settings, "warm")) is default
    assert clients.main(agent_settings(settings, "wide")) is not default
    assert isinstance(clients.main(agent_settings(settings, "fake")), ScriptedLlm)
    assert clients.cheaper() is clients.cheaper()


async def test_a_host_gives_only_the_default_model() -> None:
    settings, given = load(Path("/dev/null"), {}, _TABLES), ScriptedLlm.echo()
    clients = ModelClients(settings, ManualClock(), given)

    assert clients.main(settings) is clients.main(agent_settings(settings, "warm")) is given
    assert clients.main(agent_settings(settings, "fake")) is not given


async def test_every_client_is_closed() -> None:
    settings, given = load(Path("/dev/null"), {}, _TABLES), ScriptedLlm.echo()
    clients = ModelClients(settings, ManualClock(), given)
    cheaper = clients.cheaper()
    assert cheaper is not None

    await clients.close()

    for client in (given, cheaper):
        with pytest.raises(ModelUnavailable, match="closed"):
            await _ask(client)


async def _ask(client: LlmClient) -> None:
    request = LlmRequest(messages=(ChatMessage(role="user", content="hi"),), max_tokens=5, timeout_s=5)
    async for _item in client.stream(request):
        pass


def test_the_cheaper_model_gets_no_key_of_an_agent_with_another_provider() -> None:
    tables = ["llm.model=openai/x", "llm.api_key=env:OURS", "budget.cheaper_model=openai/small"]
    tables += ["agents.other.model=anthropic/x", "agents.other.api_key=env:THEIRS"]
    environ = {"OURS": "our-key", "THEIRS": "their-key"}
    settings = load(Path("/dev/null"), environ, tables)
    clients = ModelClients(settings, ManualClock())

    clients.main(agent_settings(settings, "other"))
    cheaper = clients.cheaper()

    assert isinstance(cheaper, DirectClient)
    assert cheaper._target.secret == "our-key"
