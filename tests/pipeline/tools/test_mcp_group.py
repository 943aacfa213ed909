"""The groups `mcp:<server>` on a real server of the official SDK, over its pipes and over HTTP.

Where a test ends its server, that is a handwritten one, whose start is cheap.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.config import environment
from gateway.runtime.tasks import Supervisor
from pipeline.domain.clock import Clock, ManualClock, SystemClock
from pipeline.domain.errors import ConfigurationError
from pipeline.tools.mcp_config import McpServerConfig
from pipeline.tools.mcp_group import MAX_RESULT_CHARS, McpGroup, mcp_groups, schema_for_models, tool_name
from pipeline.tools.tool import Tool, ToolFailed, ToolOutput
from tests.architecture.sources import ROOT
from tests.support import odd_mcp_server
from tests.support.contexts import scope
from tests.support.mcp_log import listening
from tests.support.mcp_server import over_http
from tests.support.pictures import MP3, png
from tests.support.plain_mcp_server import reply_to

PLAIN = "plain_mcp_server"
on_the_shared_loop = pytest.mark.asyncio(loop_scope="module")


class McpHarness:
    """A group on a running server, called as the gate would."""

    def __init__(self, group: McpGroup, supervisor: Supervisor) -> None:
        self.group = group
        self.supervisor = supervisor

    async def tools(self) -> dict[str, Tool]:
        return {tool.name: tool for tool in await self.group.tools(scope())}

    async def call(self, name: str, **arguments: Any) -> ToolOutput:
        tools = await self.tools()
        return await tools[f"mcp__weather__{name}"].run(arguments, scope())

    async def pids(self) -> list[int]:
        """Of the server, and of a process that it has started."""
        return [int(pid) for pid in (await self.call("pid")).text.split()]

    async def failure(self, name: str, **arguments: Any) -> str:
        with pytest.raises(ToolFailed) as failed:
            await self.call(name, **arguments)
        return str(failed.value)


@asynccontextmanager
async def open_group(
    config: McpServerConfig, *, clock: Clock | None = None, environ: Mapping[str, str] | None = None
) -> AsyncIterator[McpHarness]:
    supervisor = Supervisor()
    (group,) = mcp_groups(
        [config],
        environ=environment() if environ is None else environ,
        resolve=_resolve,
        clock=clock or SystemClock(),
        spawn=supervisor.spawn,
        idle_s=300,
        timeout_s=20 if clock else 120,  # real servers have time on a busy machine
    )
    try:
        yield McpHarness(group, supervisor)
    finally:
        await group.close()
        assert len(supervisor) == 0


def program(module: str = "mcp_server", **given: Any) -> McpServerConfig:
    args = ("-m", f"tests.support.{module}")
    return McpServerConfig(name="weather", command=sys.executable, args=args, cwd=str(ROOT), **given)


def _resolve(reference: str) -> str:
    if reference == "env:KEY":
        return "the-key"
    raise ConfigurationError(f"{reference}: the variable is not set; set it")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared() -> AsyncIterator[McpHarness]:
    """One server for all tests that do not depend on its earlier calls: a start takes seconds."""
    ours = {**environment(), "PARLOUR_SECRET": "hidden", "OPENAI_API_KEY": "hidden"}
    async with open_group(program(env={"WEATHER_KEY": "env:KEY"}), environ=ours) as weather:
        yield weather


@on_the_shared_loop
async def test_a_real_servers_tools_are_listed_and_called(shared: McpHarness) -> None:
    weather = shared
    tools = await weather.tools()
    tool = tools["mcp__weather__weather"]

    assert (await tool.run({"city": "Bonn"}, scope())).text == "It rains in Bonn."
    assert (tool.group, tool.built_in, tool.reads_only, tool.own_only) == (
        "mcp:weather",
        False,
        False,
        False,
    )
    assert tool.definition.parameters["required"] == ["city"]
    assert tool.describe({"city": "Bonn"}) == "mcp:weather:weather city: Bonn"
    description = tool.definition.description
    assert description.startswith("The weather in a city. More. More.")
    assert (len(description), description[-1]) == (1_024, "…")
    (odd,) = (name for name in tools if "odd" in name)
    assert (await tools[odd].run({}, scope())).text == "odd"
    assert tools[odd].describe({}) == "mcp:weather:odd name: über/tool.v2!"

    failed = await weather.call("fail")
    assert (failed.success, failed.text.startswith("Error executing tool fail")) == (False, True)
    assert not (await weather.call("weather")).success
    assert "null" in (await weather.call("nothing")).text
    assert (await weather.call("chatter")).text == "said"
    drawn = await weather.call("draw")
    assert drawn.text.splitlines() == [
        "The chart of June.",
        "Sales rose.",
        "[report: https://reports.example/june]",
        "[image/png, which cannot be read: it is not base64]",
    ]
    assert [(file.data, file.name, file.mime) for file in drawn.files] == [
        (png(640, 480), "image", "image/png"),
        (MP3, "audio", "audio/mpeg"),
        (b"a,b\n1,2\n", "sales of june.csv", "text/csv"),
    ]
    big = await weather.call("big", megabytes=10)
    assert (big.text, big.left_out) == ("x" * MAX_RESULT_CHARS, 10_000_000 - MAX_RESULT_CHARS)


@on_the_shared_loop
async def test_an_error_of_the_servers_own_under_the_number_of_a_lost_connection_keeps_its_words(
    shared: McpHarness,
) -> None:
    words = await shared.failure("decline")
    assert words == "the MCP server weather refuses: the quota of this month is used up"
    assert "It rains" in (await shared.call("weather", city="Bonn")).text


def test_a_schema_for_which_a_provider_would_refuse_the_whole_request_is_put_right() -> None:
    places = {"type": "array"}
    given = {"type": "object", "properties": {"places": places, "type": {"type": "string"}}, "anyOf": [{}]}
    assert schema_for_models(given, str) == {
        "type": "object",
        "properties": {"places": {"type": "array", "items": {}}, "type": {"type": "string"}},
    }


@on_the_shared_loop
async def test_a_server_sees_no_secret_but_those_that_it_is_given(shared: McpHarness) -> None:
    seen = (await shared.call("environment")).text

    assert '"WEATHER_KEY": "the-key"' in seen
    assert "hidden" not in seen
    # The last two are set by the server's own Python and its imports.
    allowed = {"PATH", "HOME", "LANG", "WEATHER_KEY", "LC_CTYPE", "OPENBLAS_NUM_THREADS"}
    assert set(_names(seen)) <= allowed


def _names(shown: str) -> list[str]:
    return [line.split('"')[1] for line in shown.splitlines() if line.strip().startswith('"')]


async def test_a_crash_and_too_much_at_once_are_words_and_the_next_call_works() -> None:
    async with open_group(program(PLAIN)) as weather:
        crashed = await weather.failure("crash")
        again = await weather.call("weather", city="Bonn")
        too_much = await weather.failure("big", megabytes=40)

    assert "the MCP server weather is over (it ended: out of cheese); it is unknown whether" in crashed
    assert again.text == "It rains in Bonn."
    assert "it sent a message of more than 32 megabytes" in too_much


@pytest.mark.parametrize("name", ["hang", "deaf"])
async def test_a_call_that_hangs_is_words_and_leaves_no_process(name: str) -> None:
    clock = ManualClock()
    with listening() as said:
        # A server on the SDK hangs without blocking its event loop.
        served = program("mcp_server" if name == "hang" else PLAIN)
        async with open_group(served, clock=clock) as weather, asyncio.TaskGroup() as tasks:
            pids = await weather.pids()
            tool = (await weather.tools())[f"mcp__weather__{name}"]
            hanging = tasks.create_task(_words(tool))
            await said.hanging.wait()
            await clock.advance(20)

            assert "did not answer within 20 seconds and was stopped" in await hanging
            assert await _ended(pids)


async def test_closing_leaves_neither_the_process_nor_its_children() -> None:
    async with open_group(program(PLAIN)) as weather:
        pids = await weather.pids()

    assert await _ended(pids)


async def _words(tool: Tool) -> str:
    with pytest.raises(ToolFailed) as failed:
        await tool.run({}, scope())
    return str(failed.value)


async def _ended(pids: Sequence[int]) -> bool:
    """Whether these processes end without anybody's doing: what is killed takes a moment to die."""
    for pid in pids:
        ended = asyncio.Event()
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        loop = asyncio.get_running_loop()
        loop.add_reader(handle, ended.set)
        try:
            async with asyncio.timeout(20):
                await ended.wait()
        except TimeoutError:
            return False
        finally:
            loop.remove_reader(handle)
            os.close(handle)
    return True


async def test_a_program_that_cannot_serve_says_why() -> None:
    gives_up = "import os, sys; os.write(2, b'no licence found'); sys.exit(1)"
    config = McpServerConfig(name="weather", command=sys.executable, args=("-c", gives_up))
    async with open_group(config) as broken:
        assert await broken.failure("x") == "the MCP server weather cannot be used: no licence found"
    async with open_group(McpServerConfig(name="weather", command="/no/such/program")) as missing:
        assert (
            await missing.failure("x")
            == "the MCP server weather cannot be used: there is no /no/such/program"
        )
    async with open_group(program(PLAIN, env={"A": "env:NOT_THERE"})) as unset:
        assert "env:NOT_THERE: the variable is not set" in await unset.failure("x")


async def test_a_server_over_http_is_called_and_one_that_is_gone_is_words() -> None:
    clock = ManualClock()
    with over_http() as url:
        config = McpServerConfig(name="weather", url=url, headers={"Authorization": "env:KEY"})
        async with open_group(config, clock=clock) as weather, asyncio.TaskGroup() as tasks:
            assert (await weather.call("weather", city="Bonn")).text == "It rains in Bonn."
            assert len((await weather.call("big", megabytes=10)).text) < MAX_RESULT_CHARS + 100
            hanging = tasks.create_task(_words((await weather.tools())["mcp__weather__hang"]))
            await clock.advance(20)
            assert "did not answer within" in await hanging
    async with open_group(config) as gone:
        assert "the MCP server weather cannot be used: " in await gone.failure("weather")


async def test_the_sdk_is_not_loaded_before_a_server_is_used() -> None:
    code = "import sys, pipeline.tools.mcp_group; print(sorted({'mcp', 'httpx2'} & set(sys.modules)))"
    started = await asyncio.create_subprocess_exec(sys.executable, "-c", code, cwd=ROOT, stdout=PIPE)
    said, _ = await started.communicate()

    assert said.strip() == b"[]"


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(min_size=0, max_size=90), max_size=8, unique=True))
def test_every_name_is_one_that_providers_take_and_no_two_are_the_same(names: list[str]) -> None:
    safe = [tool_name("server-1", name) for name in names]

    assert all(len(name) <= 64 and name.isascii() for name in safe)
    assert all(
        set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") for name in safe
    )
    assert len(set(safe)) == len(names)


def test_names_that_differ_in_what_providers_do_not_take_differ_in_their_checksum() -> None:
    names = [
        "a.b",
        "a_b",
        "a b",
        "a/b",
        "A_b",
        "x" * 70,
        "x" * 71,
        tool_name("s", "a.b").removeprefix("mcp__s__"),
    ]

    assert len({tool_name("s", name) for name in names}) == len(names)
    assert tool_name("s", "a_b") == "mcp__s__a_b"
    assert tool_name("a", "b__c") != tool_name("a-b", "c")


@pytest.mark.parametrize("served", ["pipes", "http"])
async def test_a_tool_whose_schema_is_none_is_left_out_by_name_and_the_others_work(
    caplog: pytest.LogCaptureFixture, served: str
) -> None:
    config = program("odd_mcp_server")
    app = web.Application()
    app.router.add_route("*", "/mcp", _odd_over_http)
    async with TestServer(app) as server:
        if served == "http":
            config = McpServerConfig(name="weather", url=str(server.make_url("/mcp")))
        async with open_group(config) as odd:
            assert list(await odd.tools()) == ["mcp__weather__fine"]
            (unusable,) = odd.group.unusable
            assert unusable == "mcp__weather__strange (its inputSchema is not what the protocol asks for)"
            assert (await odd.call("fine")).text == "done"
    left_out = [record for record in caplog.records if "is left out" in record.message]
    assert {record.__dict__["tool"] for record in left_out} == {"strange"}


async def _odd_over_http(request: web.Request) -> web.Response:
    if request.method != "POST":
        return web.Response(status=405)
    asked = await request.json()
    reply = reply_to(asked, odd_mcp_server.answer) if "id" in asked else None
    return web.json_response(reply) if reply else web.Response(status=202)
