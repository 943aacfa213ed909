"""Run one MCP server: start it on demand, stop it when it is unused, restart it when it has ended.

Turns share the server. `mcp_client` has the connection, `mcp_group` the form of the tools for models.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pipeline.domain.background import Spawn
from pipeline.domain.clock import Clock
from pipeline.domain.errors import ConfigurationError
from pipeline.domain.rates import SlidingWindow
from pipeline.redaction.redactor import Redactor
from pipeline.tools.mcp_client import ListedTool, McpAnswer, McpConnection, McpGone, McpRefused, clean_words
from pipeline.tools.tool import ToolFailed

_log = logging.getLogger(__name__)

START_S = 30.0
LIST_S = 20.0
"""Together with the start this fits into the minute that is the usual limit for loading a group."""
_WINDING_UP_S = 5.0
_FAILURE_CHARS = 600
"""More than the length of a server's last line."""
_MOST_WORDS = 20_000
"""The most of an error that is read; a server may send megabytes."""
MAX_STARTS = 5
STARTS_WITHIN_S = 60.0
"""A server that was started `MAX_STARTS` times within this time is not started again."""

ResultT = TypeVar("ResultT")
Connect = Callable[[], AbstractAsyncContextManager[McpConnection]]


@dataclass(slots=True)
class _ServerRun:
    """One run of the server, from its start to its end."""

    used_at: float
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the connection is open or has failed."""
    connection: McpConnection | None = None
    failure: str = ""
    calls: int = 0
    task: asyncio.Task[None] | None = None


class McpServer:
    """One configured server. Every failure is a readable ToolFailed, and the next call restarts it."""

    def __init__(
        self,
        name: str,
        connect: Connect,
        *,
        clock: Clock,
        spawn: Spawn,
        idle_s: float,
        timeout_s: float,
        redactor: Redactor | None = None,
    ) -> None:
        self._name = name
        self._connect = connect
        self._clock = clock
        self._spawn = spawn
        self._idle_s = idle_s
        self._timeout_s = timeout_s
        self._redactor = redactor or Redactor()
        self._run: _ServerRun | None = None
        self._starting = asyncio.Lock()
        self._starts = SlidingWindow(MAX_STARTS, STARTS_WITHIN_S)
        self._tasks: set[asyncio.Task[None]] = set()
        """The tasks of all runs, including one that is ending."""
        self._closed = False

    @property
    def running(self) -> bool:
        """Whether a connection is open or being made."""
        return self._run is not None

    @property
    def longest_s(self) -> float:
        """The longest time of a call with a start before it and an end after it. A caller's limit has to be
        longer, or the server's own error text is lost."""
        return START_S + self._timeout_s + _WINDING_UP_S

    async def tools(self) -> tuple[ListedTool, ...]:
        """The server's current tools; starts the server. Raises ToolFailed."""
        return await self._use(lambda connection: connection.tools(), min(LIST_S, self._timeout_s))

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> McpAnswer:
        """Call a tool; starts the server. Raises ToolFailed."""
        return await self._use(lambda connection: connection.call(tool, arguments), self._timeout_s)

    async def close(self) -> None:
        """End it for good. Safe to call more than once."""
        self._closed = True
        self._run = None
        await _ended(tuple(self._tasks))

    async def _use(
        self, ask: Callable[[McpConnection], Coroutine[Any, Any, ResultT]], within_s: float
    ) -> ResultT:
        run = await self._ready()
        if run.connection is None:
            raise ToolFailed(f"the MCP server {self._name} cannot be used: {run.failure}")
        run.calls += 1
        try:
            async with self._clock.timeout(within_s):
                return await ask(run.connection)
        except TimeoutError:
            await self._end(run)
            raise ToolFailed(
                f"the MCP server {self._name} did not answer within {within_s:g} seconds and was "
                "stopped; it is unknown whether it did it. It is started again when it is used again"
            ) from None
        except McpGone as error:
            await self._end(run)
            raise ToolFailed(
                f"the connection to the MCP server {self._name} is over ({self._short(error)}); it is "
                "unknown whether it did it. It is started again when it is used again"
            ) from None
        except McpRefused as error:
            raise ToolFailed(f"the MCP server {self._name} refuses: {self._short(error)}") from None
        finally:
            run.calls -= 1
            run.used_at = self._clock.monotonic()

    async def _ready(self) -> _ServerRun:
        """The current run, or a new one, once its connection is open or has failed."""
        async with self._starting:
            run = self._run or self._start()
            try:
                async with self._clock.timeout(START_S):
                    await run.settled.wait()
            except TimeoutError:
                await self._end(run)
                run.failure = f"it did not start within {START_S:.0f} seconds"
            return run

    def _start(self) -> _ServerRun:
        now = self._clock.monotonic()
        if self._closed:
            raise ToolFailed(f"the MCP server {self._name} is shut down")
        wait_s = self._starts.wait_s(now)
        if wait_s > 0:
            raise ToolFailed(
                f"the MCP server {self._name} was started {MAX_STARTS} times within a minute and is left "
                f"alone for {wait_s:.0f} seconds"
            )
        self._starts.add(now)
        run = self._run = _ServerRun(used_at=now)
        task = run.task = self._spawn(self._serve(run), name=f"mcp {self._name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return run

    async def _serve(self, run: _ServerRun) -> None:
        """Run the server once. The connection is opened and closed only here."""
        try:
            async with self._connect() as connection:
                run.connection = connection
                run.settled.set()
                await self._until_unused(run, connection)
        except (ConfigurationError, McpGone, McpRefused, OSError, ValueError, ExceptionGroup) as error:
            run.failure = self._short(error)
            _log.warning("an MCP server failed", extra={"server": self._name, "reason": run.failure})
        finally:
            run.failure = run.failure or "it was stopped"
            self._forget(run)
            run.settled.set()

    async def _until_unused(self, run: _ServerRun, connection: McpConnection) -> None:
        """Return when the server has ended, or has been unused for `idle_s` seconds."""
        while True:
            idle = self._clock.monotonic() - run.used_at
            if idle >= self._idle_s and not run.calls:
                _log.info("an MCP server is stopped: it is not used", extra={"server": self._name})
                break
            try:
                async with self._clock.timeout(max(1.0, self._idle_s - idle)):
                    await connection.over.wait()
                break
            except TimeoutError:
                continue
        # Before the connection is closed, so that the next caller gets a new run.
        self._forget(run)

    def _forget(self, run: _ServerRun) -> None:
        if self._run is run:
            self._run = None

    def _short(self, error: BaseException) -> str:
        """The error in one line, which may be the server's own text."""
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, FileNotFoundError):
            return f"there is no {error.filename}"
        # Invisible characters are removed before secrets: one may be inside a secret.
        words = clean_words(str(error)[:_MOST_WORDS]) or type(error).__name__
        return self._redactor.line(words, _FAILURE_CHARS)

    async def _end(self, run: _ServerRun) -> None:
        """Stop a run and wait until all of it has ended."""
        self._forget(run)
        if run.task is not None:
            await _ended((run.task,))


async def _ended(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
