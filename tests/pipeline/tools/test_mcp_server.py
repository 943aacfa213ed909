"""An MCP server's lives, on connections that the test makes: when it starts, ends, and starts again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from gateway.runtime.tasks import Supervisor
from pipeline.domain.clock import ManualClock
from pipeline.redaction.known import KnownSecrets
from pipeline.redaction.redactor import Redactor, StreamingRedactor
from pipeline.tools.mcp_client import ListedTool, McpAnswer, McpConnection, McpGone, McpRefused
from pipeline.tools.mcp_group import McpGroup
from pipeline.tools.mcp_server import MAX_STARTS, START_S, STARTS_WITHIN_S, McpServer
from pipeline.tools.tool import ToolFailed
from tests.support.contexts import scope

ECHO = ListedTool(name="echo", description="", schema={"type": "object"})


class Line(McpConnection):
    """A connection whose calls do what their name says."""

    def __init__(self, *listed: ListedTool) -> None:
        super().__init__(None, asyncio.Event(), str)
        self._listed = listed

    async def tools(self) -> tuple[ListedTool, ...]:
        return self._listed

    async def call(self, name: str, arguments: Mapping[str, Any]) -> McpAnswer:
        match name:
            case "hang":
                await asyncio.Event().wait()
            case "gone":
                raise McpGone("it ended")
            case "refuse":
                raise McpRefused("not today")
            case "blurt":
                raise McpRefused("\u202e" + "w" * 550 + " ghp_" + "aB3\u200d\u200e" * 12 + "x" * 10_000_000)
            case "shared":
                await self.over.wait()
                raise McpGone("it ended")
        return McpAnswer(text="echo", failed=False)


class ServerHarness:
    """A server, and how often it was started and ended."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.supervisor = Supervisor()
        self.lines: list[Line] = []
        self.listed: tuple[ListedTool, ...] = (ECHO,)
        self.ended = 0
        self.starting: asyncio.Event | None = None
        self.failure: Exception | None = None
        self.server = McpServer(
            "s", self.connect, clock=self.clock, spawn=self.supervisor.spawn, idle_s=300, timeout_s=60
        )

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[McpConnection]:
        try:
            if self.starting is not None:
                await self.starting.wait()
            if self.failure is not None:
                raise self.failure
            line = Line(*self.listed)
            self.lines.append(line)
            yield line
            line.over.set()
        finally:
            self.ended += 1

    async def call(self, name: str = "echo") -> str:
        return (await self.server.call(name, {})).text

    async def words(self, name: str = "echo") -> str:
        with pytest.raises(ToolFailed) as failed:
            await self.call(name)
        return str(failed.value)


async def test_a_server_is_started_when_it_is_first_needed_and_shared_then() -> None:
    harness = ServerHarness()
    assert not harness.server.running

    await asyncio.gather(harness.server.tools(), harness.call(), harness.call())

    assert len(harness.lines) == 1
    await harness.server.close()


async def test_a_server_that_no_one_uses_is_stopped_and_started_when_it_is_needed_again() -> None:
    harness = ServerHarness()
    await harness.call()
    await harness.clock.advance(200)
    await harness.call()
    await harness.clock.advance(299)
    assert harness.ended == 0
    await harness.clock.advance(2)
    assert (harness.ended, harness.server.running, len(harness.supervisor)) == (1, False, 0)

    assert await harness.call() == "echo"
    assert len(harness.lines) == 2
    await harness.server.close()


async def test_a_call_that_hangs_ends_in_words_and_the_server_with_it() -> None:
    harness = ServerHarness()
    async with asyncio.TaskGroup() as tasks:
        hanging = tasks.create_task(harness.words("hang"))
        await harness.clock.advance(60)

        assert "did not answer within 60 seconds and was stopped; it is unknown" in await hanging
    assert (harness.ended, harness.server.running) == (1, False)
    assert await harness.call() == "echo"
    await harness.server.close()


async def test_a_server_is_not_idle_while_a_call_runs() -> None:
    harness = ServerHarness()
    harness.server = McpServer(
        "s", harness.connect, clock=harness.clock, spawn=harness.supervisor.spawn, idle_s=5, timeout_s=60
    )
    async with asyncio.TaskGroup() as tasks:
        hanging = tasks.create_task(harness.words("hang"))
        await harness.clock.advance(59)
        assert harness.ended == 0
        await harness.clock.advance(1)
        await hanging


async def test_a_crash_is_said_to_everybody_who_waits_and_the_next_call_starts_it_again() -> None:
    harness = ServerHarness()
    async with asyncio.TaskGroup() as tasks:
        waiting = [tasks.create_task(harness.words("shared")) for _ in range(2)]
        await harness.clock.advance(0)
        harness.lines[0].over.set()
        said = [await one for one in waiting]

    assert all("is over (it ended); it is unknown whether it did it" in words for words in said)
    assert await harness.call() == "echo"
    assert (len(harness.lines), harness.ended) == (2, 1)
    await harness.server.close()


async def test_a_server_that_ended_between_two_calls_is_not_noticed() -> None:
    harness = ServerHarness()
    await harness.call()
    harness.lines[0].over.set()
    await harness.clock.advance(0)

    assert await harness.call() == "echo"
    assert len(harness.lines) == 2
    await harness.server.close()


async def test_a_refusal_is_words_and_the_server_continues() -> None:
    harness = ServerHarness()

    assert await harness.words("refuse") == "the MCP server s refuses: not today"
    assert await harness.call() == "echo"
    assert len(harness.lines) == 1
    await harness.server.close()


async def test_the_words_of_a_refusal_are_short_and_hold_no_secret_and_nothing_unseen() -> None:
    harness = ServerHarness()
    words = await harness.words("blurt")
    assert words.startswith("the MCP server s refuses: www")
    assert "aB3" not in words
    assert len(words) < 650
    assert not {"\u202e", "\u200d", "\u200e"} & set(words)
    await harness.server.close()


async def test_a_tool_that_cannot_be_used_is_named_by_its_group_and_not_offered() -> None:
    harness = ServerHarness()
    odd = ListedTool(name="o d\u202ed", description="", schema={}, fault="its name is not good")
    harness.listed = (ECHO, odd)
    group = McpGroup("s", harness.server)
    assert [tool.name for tool in await group.tools(scope())] == ["mcp__s__echo"]
    (unusable,) = group.unusable
    assert unusable.startswith("mcp__s__o_dd_")
    assert unusable.endswith(" (its name is not good)")
    harness.listed = (ECHO,)
    await harness.server.close()


async def test_five_starts_in_a_minute_are_enough() -> None:
    harness = ServerHarness()
    for _ in range(MAX_STARTS):
        await harness.words("gone")
    assert "was started 5 times within a minute and is left alone for 60 seconds" in await harness.words()

    await harness.clock.advance(STARTS_WITHIN_S)
    assert await harness.call() == "echo"
    await harness.server.close()


@pytest.mark.parametrize(
    "failure",
    [
        FileNotFoundError(2, "x", "npx"),
        ExceptionGroup("x", [McpGone("no licence")]),
        ValueError("bad"),
        OSError("x"),
    ],
)
async def test_a_server_that_cannot_be_started_is_said(failure: Exception) -> None:
    harness = ServerHarness()
    harness.failure = failure

    assert (await harness.words()).startswith("the MCP server s cannot be used: ")
    harness.failure = None
    assert await harness.call() == "echo"
    await harness.server.close()


async def test_a_start_that_hangs_ends_in_words() -> None:
    harness = ServerHarness()
    harness.starting = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(harness.words())
        await harness.clock.advance(START_S)

        assert await waiting == "the MCP server s cannot be used: it did not start within 30 seconds"
    assert harness.ended == 1
    assert len(harness.supervisor) == 0


async def test_a_caller_that_is_cancelled_leaves_the_server_to_the_others() -> None:
    harness = ServerHarness()
    async with asyncio.TaskGroup() as tasks:
        hanging = tasks.create_task(harness.call("hang"))
        await harness.clock.advance(0)
        hanging.cancel()

    assert await harness.call() == "echo"
    assert len(harness.lines) == 1
    await harness.server.close()


async def test_a_closed_server_stays_closed_and_leaves_no_task() -> None:
    harness = ServerHarness()
    await harness.call()
    await harness.server.close()
    await harness.server.close()

    assert (harness.ended, len(harness.supervisor)) == (1, 0)
    assert "is shut down" in await harness.words()


async def test_a_tool_whose_name_has_megabytes_is_looked_through_only_at_its_beginning() -> None:
    looked_at = 0

    class Watching(StreamingRedactor):
        def feed(self, chunk: str) -> str:
            nonlocal looked_at
            looked_at += len(chunk)
            return super().feed(chunk)

    class Watched(Redactor):
        def text(self, text: str) -> str:
            nonlocal looked_at
            looked_at += len(text)
            return super().text(text)

        def stream(self) -> StreamingRedactor:
            return Watching(KnownSecrets(()))

    harness = ServerHarness()
    harness.listed = (replace(ECHO, name="token=hunter2hunter " * 100_000),)
    (tool,) = await McpGroup("s", harness.server, Watched()).tools(scope())
    await harness.supervisor.close()
    assert tool.definition.name.startswith("mcp__s__token__REDACTED__token_")
    assert looked_at < 20_000
