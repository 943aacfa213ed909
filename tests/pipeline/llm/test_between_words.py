"""A model has its time for the first word, and again for each further one: a long answer is no slow one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest

from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import ModelTimeout
from pipeline.llm.client import TextDelta
from pipeline.llm.direct_answer import DirectAnswer
from pipeline.llm.litellm_client import _Answer
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.pipeline.llm.asking import answer_of, ask

SOON_S, LATE_S = 0.02, 60.0


class Pieces:
    """The body of an HTTP answer, given out piece by piece."""

    def __init__(self) -> None:
        self.content = self
        self.waiting: asyncio.Queue[bytes] = asyncio.Queue()

    def say(self, word: str) -> None:
        event = {"choices": [{"delta": {"content": word}}]}
        self.waiting.put_nowait(f"data: {json.dumps(event)}\n\n".encode())

    async def readany(self) -> bytes:
        return await self.waiting.get()

    def close(self) -> None:
        """As of a connection that is given up: the reader gets an error."""
        self.waiting.put_nowait(b"")


async def past(deadline: float) -> None:
    """Wait until the loop's timers of `deadline` have rung."""
    over = asyncio.Event()
    asyncio.get_running_loop().call_at(deadline + SOON_S, over.set)
    await over.wait()


async def test_a_direct_answer_outlasts_the_deadline_of_its_first_word() -> None:
    body, deadline = Pieces(), asyncio.get_running_loop().time() + SOON_S
    answer = DirectAnswer(cast("aiohttp.ClientResponse", body), deadline, LATE_S, None)
    body.say("one")
    assert await answer.next() == TextDelta(text="one")
    await past(deadline)
    body.say("two")
    assert await answer.next() == TextDelta(text="two")
    await answer.aclose()


async def test_comments_are_no_words_and_do_not_put_the_deadline_off() -> None:
    body, deadline = Pieces(), asyncio.get_running_loop().time() + SOON_S
    answer = DirectAnswer(cast("aiohttp.ClientResponse", body), deadline, LATE_S, None)
    body.waiting.put_nowait(b": PROCESSING\n\n")
    with pytest.raises(Exception, match="stopped in the middle"):
        await answer.next()
    await answer.aclose()


async def test_an_answer_through_litellm_outlasts_the_deadline_of_its_first_word() -> None:
    waiting: asyncio.Queue[str] = asyncio.Queue()

    async def stream() -> AsyncGenerator[Any, None]:
        while True:
            delta = SimpleNamespace(content=await waiting.get(), tool_calls=None)
            choice = SimpleNamespace(delta=delta, finish_reason=None)
            yield SimpleNamespace(choices=[choice], usage=None)

    deadline = asyncio.get_running_loop().time() + SOON_S
    answer = _Answer(stream(), deadline, LATE_S, lambda _usage: 0.0)
    waiting.put_nowait("one")
    assert await answer.next() == TextDelta(text="one")
    await past(deadline)
    waiting.put_nowait("two")
    assert await answer.next() == TextDelta(text="two")
    await answer.aclose()


@pytest.mark.parametrize(("between", "whole"), [(9.0, True), (11.0, False)])
async def test_a_scripted_answer_has_its_time_for_each_word(between: float, whole: bool) -> None:
    clock = ManualClock()
    words = ScriptedAnswer(chunks=("a ", "b ", "c ", "d "), delay_s=between)
    heard: list[str] = []

    async def listen() -> None:
        try:
            heard.append((await answer_of(ScriptedLlm([words], clock=clock), ask(timeout_s=10)))[0])
        except ModelTimeout as error:
            heard.append(str(error))

    async with asyncio.TaskGroup() as group:
        group.create_task(listen())
        for _ in range(4):
            await asyncio.sleep(0)
            await clock.advance(between)
    assert heard == ["a b c d " if whole else "The scripted model said nothing within 10 seconds"]
