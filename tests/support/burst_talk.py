"""Helpers for tests of messages that are answered together."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.harness import THREAD, GatewayHarness
from tests.support.openai_server import Behaviour


def held_answer(text: str = "never shown") -> tuple[ScriptedAnswer, asyncio.Event]:
    """An answer that waits before its first word."""
    gate = asyncio.Event()
    return ScriptedAnswer(chunks=(text,), gate=gate), gate


def scripted(*answers: ScriptedAnswer | str) -> ScriptedLlm:
    """A model with these answers."""
    return ScriptedLlm([ScriptedAnswer.of(one) if isinstance(one, str) else one for one in answers])


def asked_in(llm: ScriptedLlm, number: int) -> str:
    """The last message of the model's call of that number, from 0."""
    return llm.requests[number].messages[-1].content


async def one_answer(harness: GatewayHarness, first: str, *others: str) -> str:
    """The one answer to messages that were sent before the process died."""
    await harness.channel.terminal(first)
    (answer,) = await harness.records("assistant")
    assert answer.message_id == first
    assert answer.body["together"] == list(others)
    assert await harness.store.open_entries(THREAD) == ()
    assert [one.message_id for one in await harness.records("user")] == [first, *others]
    return str(answer.body["text"])


def waits_for_three(body: Mapping[str, Any]) -> Behaviour:
    """A model that answers once a message has the words of all three."""
    said = str(body["messages"][-1]["content"])
    if all(word in said for word in ("red", "green", "blue")):
        return Behaviour(chunks=(f"You like {', '.join(said.split())}.",))
    return Behaviour(hang_before=True)
