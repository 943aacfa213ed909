"""/usage and /status in a whole gateway."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import pytest

from gateway import __version__
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.harness import GatewayHarness, open_gateway
from tests.support.posting_channel import MemoryPosts

_NUMBERS = itertools.count()


async def ask(harness: GatewayHarness, text: str) -> str:
    accepted = await harness.channel.say(text, native_id=f"n{next(_NUMBERS)}")
    return (await harness.channel.reply(accepted.message_id)).text


@pytest.mark.parametrize("limit", [(), ("budget.person_tokens=1000000",)])
async def test_usage_counts_a_person_with_and_without_a_limit_and_over_a_restart(
    tmp_path: Path, limit: tuple[str, ...]
) -> None:
    async with open_gateway(tmp_path, *limit) as harness:
        assert "used 0 tokens, and this month 0 tokens" in await ask(harness, "/usage")
        await ask(harness, "hello")
        used = await ask(harness, "/usage")
        assert "used 0 tokens" not in used
        assert ("1,000,000 tokens a day" in used) == bool(limit)
        assert "The cost is not known" in used
    async with open_gateway(tmp_path, *limit) as harness:
        assert await ask(harness, "/usage") == used


async def test_usage_has_the_cost_of_each_model_that_answered_and_says_what_it_leaves_out(
    tmp_path: Path,
) -> None:
    dear = ScriptedAnswer(chunks=("Dear.",), prompt_tokens=999, cost=0.25)
    settings = ('llm.model="openai/gpt-4o"', 'llm.choices=["scripted:echo"]')
    async with open_gateway(tmp_path, *settings, llm=ScriptedLlm([dear, dear])) as harness:
        await ask(harness, "hello")
        one = await ask(harness, "/usage")
        assert one.startswith("Today you have used 1,")
        assert "tokens ($0.2500), and this month" in one
        await ask(harness, "/model scripted:echo")
        assert await ask(harness, "hello") == "You said: hello"
        await ask(harness, "/model openai/gpt-4o")
        await ask(harness, "hello")
        used = await ask(harness, "/usage")
    assert used.startswith("Today you have used 2,")
    assert "tokens ($0.5000), and this month" in used
    assert used.endswith("The cost is that of the answers whose price is known.")


async def test_usage_is_shown_in_private_only_and_never_that_of_another_person(tmp_path: Path) -> None:
    posts = MemoryPosts()
    async with open_gateway(tmp_path, posts=posts) as harness:
        await posts.receive("hello", native_id="1")
        await posts.until(lambda: "You said: hello" in posts.texts())
        assert "used 0 tokens" in await ask(harness, "/usage")


async def test_status_shows_what_answers_and_what_waits(tmp_path: Path) -> None:
    llm = ScriptedLlm([ScriptedAnswer.of("hi"), ScriptedAnswer(chunks=("x",), gate=asyncio.Event())])
    settings = ('llm.model="scripted:echo"', 'bot.name="Secret bot"', "llm.context_tokens=8000")
    async with open_gateway(tmp_path, *settings, llm=llm) as harness:
        first = await ask(harness, "/status")
        assert first.splitlines()[:3] == [
            "- Agent: `default`",
            "- Model: `scripted:echo`",
            "- This conversation is on the record.",
        ]
        assert "about 0 of 8,000 tokens (0 %)" in first
        assert first.splitlines()[-1] == f"- Parlour {__version__}"
        assert "Secret" not in first
        await ask(harness, "hello")
        await ask(harness, "/voice")
        status = await ask(harness, "/status")
        assert "about 0 of" not in status
        assert "- Messages that wait: 0" in status
        await harness.channel.say("waits")
        await harness.channel.until(lambda: len(llm.requests) == 2)
        await harness.channel.say("/stop")
        await ask(harness, "/otr")
        assert "off the record" in await ask(harness, "/status")
