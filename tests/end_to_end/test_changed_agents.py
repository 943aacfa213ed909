"""Runs that a dead process began, after the agents were changed: resumed on the graph that began them, begun
again where nothing was done, and else over in words.

Covers: pipeline/service.py, gateway/turns/runner.py.
"""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pipeline.domain.events import ErrorEvent
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.harness import GatewayHarness, open_gateway

_THINK = {"id": "think", "run": "model", "with": {"prompt": "What is it about?", "output": "topic"}}
_REMIND = {
    "id": "remind",
    "run": "tool",
    "with": {"tool": "remind_me", "group": "schedule", "arguments": {"text": "tea", "in_minutes": 60}},
}


def _document(folder: Path, name: str, *before: dict[str, Any], version: str = "1") -> str:
    """A document of the nodes `before`, a call of the model and a reply that names the document; its path."""
    say = {"id": "say", "run": "reply", "with": {"text": f"{name} {version}: {{topic}}"}}
    nodes = [*before, _THINK, say]
    edges = [{"source": first["id"], "target": second["id"]} for first, second in pairwise(nodes)]
    path = folder / f"{name}.json"
    document = {"name": name, "version": version, "entry": nodes[0]["id"], "nodes": nodes, "edges": edges}
    path.write_text(json.dumps(document), "utf-8")
    return str(path)


async def _cut_off(folder: Path, *overrides: str) -> str:
    """A message whose process ended while the model worked on it; its id."""
    llm = ScriptedLlm([ScriptedAnswer(chunks=("never",), gate=asyncio.Event())])
    async with open_gateway(folder, *overrides, llm=llm, drain_s=0) as harness:
        accepted = await harness.channel.say("hi")
        await harness.channel.until(lambda: llm.requests)
    return accepted.message_id


async def _failed(harness: GatewayHarness, message_id: str) -> ErrorEvent:
    """The visible error that ends the turn."""
    ended = await harness.channel.terminal(message_id)
    assert isinstance(ended, ErrorEvent)
    assert (await harness.channel.reply(message_id)).text == ended.message
    return ended


def _tea() -> ScriptedLlm:
    return ScriptedLlm([ScriptedAnswer.of("tea")])


async def test_a_cut_off_run_is_resumed_on_the_graph_that_began_it_when_the_routes_have_changed(
    tmp_path: Path,
) -> None:
    agents = (
        f'agents.shop.graph="{_document(tmp_path, "shop", _REMIND)}"',
        f'agents.cook.graph="{_document(tmp_path, "cook")}"',
    )
    message_id = await _cut_off(tmp_path, *agents, 'routes.1.agent="shop"')
    async with open_gateway(tmp_path, *agents, 'routes.1.agent="cook"', llm=_tea()) as harness:
        assert (await harness.channel.reply(message_id)).text == "shop 1: tea"
        assert len(await harness.store.jobs.listed(limit=10)) == 1


async def test_a_cut_off_run_of_a_removed_agent_is_over_in_words(tmp_path: Path) -> None:
    agent = f'agents.shop.graph="{_document(tmp_path, "shop")}"'
    message_id = await _cut_off(tmp_path, agent, 'routes.1.agent="shop"')
    async with open_gateway(tmp_path) as harness:
        ended = await _failed(harness, message_id)
        assert ended.code == "no_agent"
        assert ended.message.startswith("The agent that worked on this message is no longer there")
        assert harness.llm.requests == []


async def test_a_cut_off_run_that_did_nothing_begins_again_on_the_changed_graph(tmp_path: Path) -> None:
    agent = f'agent.graph="{_document(tmp_path, "bot")}"'
    message_id = await _cut_off(tmp_path, agent)
    _document(tmp_path, "bot", version="2")
    async with open_gateway(tmp_path, agent, llm=_tea()) as harness:
        assert (await harness.channel.reply(message_id)).text == "bot 2: tea"


@pytest.mark.parametrize("changed", ["version", "graph"])
async def test_a_cut_off_run_that_did_something_is_over_in_words_on_a_changed_graph(
    tmp_path: Path, changed: str
) -> None:
    agent = f'agent.graph="{_document(tmp_path, "bot", _REMIND)}"'
    message_id = await _cut_off(tmp_path, agent)
    if changed == "version":
        _document(tmp_path, "bot", _REMIND, version="2")
    else:
        agent = 'agent.graph="conversation"'
    async with open_gateway(tmp_path, agent) as harness:
        ended = await _failed(harness, message_id)
        assert ended.code == "graph_changed"
        assert "had already begun an action" in ended.message
        assert harness.llm.requests == []
        assert len(await harness.store.jobs.listed(limit=10)) == 1
