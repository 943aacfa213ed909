"""/model: another model for one conversation, out of those that the operator allows."""

from __future__ import annotations

import itertools
from pathlib import Path

from tests.support.harness import GatewayHarness, open_gateway

_NUMBERS = itertools.count()
_OTHER = "scripted:echo:delay=0"
_TWO = ('llm.model="scripted:echo"', f'llm.choices=["{_OTHER}"]')


async def ask(harness: GatewayHarness, text: str) -> str:
    accepted = await harness.channel.say(text, native_id=f"n{next(_NUMBERS)}")
    return (await harness.channel.reply(accepted.message_id)).text


async def _answers(harness: GatewayHarness) -> str:
    """The model that answers a message; the harness has replaced the first one."""
    before = len(harness.llm.requests)
    assert await ask(harness, "hello") == "You said: hello"
    return "scripted:echo" if len(harness.llm.requests) > before else _OTHER


async def test_a_chosen_model_answers_in_its_conversation_also_after_a_restart(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, *_TWO) as harness:
        listed = await ask(harness, "/model")
        assert listed.splitlines()[2:4] == ["- `scripted:echo` (answers now)", f"- `{_OTHER}`"]
        assert "`/model`" in await ask(harness, "/help")
        assert await _answers(harness) == "scripted:echo"
        assert "answers from now on" in await ask(harness, f"/model {_OTHER.upper()}")
        assert await _answers(harness) == _OTHER
        assert _OTHER in await ask(harness, "/status")
        assert "answers here already" in await ask(harness, f"/model {_OTHER}")
    async with open_gateway(tmp_path, *_TWO) as harness:
        assert await _answers(harness) == _OTHER
        await ask(harness, "/model scripted:echo")
        assert await _answers(harness) == "scripted:echo"
        await ask(harness, f"/model {_OTHER}")
        await ask(harness, "/new")
        assert await _answers(harness) == "scripted:echo"


async def test_a_model_that_is_not_allowed_is_refused_and_one_taken_back_no_longer_answers(
    tmp_path: Path,
) -> None:
    async with open_gateway(tmp_path, *_TWO) as harness:
        assert "There is no model `scripted:x # no`" in await ask(harness, "/model `scripted:x`\n# no")
        await ask(harness, f"/model {_OTHER}")
    async with open_gateway(tmp_path, _TWO[0]) as harness:
        assert await _answers(harness) == "scripted:echo"
        assert "no other model" in await ask(harness, "/model")
        assert "/model" not in await ask(harness, "/help")


async def test_each_agent_has_its_own_choices(tmp_path: Path) -> None:
    cook = ('agents.cook.choices=["scripted:fail:rejected"]', 'routes.1.also=["cook"]')
    async with open_gateway(tmp_path, *_TWO, *cook) as harness:
        assert "fail" not in await ask(harness, "/model")
        await ask(harness, "/agent cook")
        assert "delay" not in await ask(harness, "/model")
        await ask(harness, "/model scripted:fail:rejected")
        assert (await ask(harness, "hello")) != "You said: hello"
