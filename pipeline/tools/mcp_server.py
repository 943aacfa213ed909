"""One MCP server's lives: started when it is needed, stopped when nobody uses it, started anew when it ended.

Turns share it. What a connection is, is `mcp_client`'s; what the model is told, `mcp_group`'s.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from pipeline.domain.clock import Clock
from pipeline.domain.errors import ConfigurationError
from pipeline.redaction.redactor import Redactor
from pipeline.tools.mcp_client import ListedTool, McpAnswer, McpConnection, McpGone, McpRefused, clean_words
from pipeline.tools.tool import ToolFailed

_log = logging.getLogger(__name__)

START_S = 30.0
LIST_S = 20.0
"""With the start within the minute that loading a group is commonly given."""
_WINDING_UP_S = 5.0
_FAILURE_CHARS = 600
"""More than a server's last words have."""
_MOST_WORDS = 20_000
"""Of an error are looked at; a server may send megabytes."""
MAX_STARTS = 5
STARTS_WITHIN_S = 60.0
"""(seed 4: crash budget, 5 in 60 s)"""

ResultT = TypeVar("ResultT")
Connect = Callable[[], AbstractAsyncContextManager[McpConnection]]


class Spawn(Protocol):
    """Runs work in the background under supervision; as `gateway.runtime.tasks.Supervisor.spawn`."""

    def __call__(self, work: Coroutine[Any, Any, None], *, name: str) -> asyncio.Task[None]: ...


@dataclass(slots=True)
class _Life:
    """From one start to its end."""

    used_at: float
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    """It stands, or it failed to."""
    connection: McpConnection | None = None
    failure: str = ""
    calls: int = 0
    task: asyncio.Task[None] | None = None


class McpServer:
    """One configured server. Every failure is a ToolFailed in words, and the next call starts it anew."""

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
        self._life: _Life | None = None
        self._starting = asyncio.Lock()
        self._starts: deque[float] = deque(maxlen=MAX_STARTS)
        self._tasks: set[asyncio.Task[None]] = set()
        """Of lives, also of one that is being wound up."""
        self._closed = False

    @property
    def running(self) -> bool:
        """Whether there is a connection, or one is being made."""
        return self._life is not None

    @property
    def longest_s(self) -> float:
        """What a call can take with a start before it and an end after it: whoever bounds it leaves so much,
        or the server's own words are lost."""
        return START_S + self._timeout_s + _WINDING_UP_S

    async def tools(self) -> tuple[ListedTool, ...]:
        """The server's tools as they are now; starts it. Raises ToolFailed."""
        return await self._use(lambda connection: connection.tools(), min(LIST_S, self._timeout_s))

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> McpAnswer:
        """Call a tool; starts the server. Raises ToolFailed."""
        return await self._use(lambda connection: connection.call(tool, arguments), self._timeout_s)

    async def close(self) -> None:
        """End it for good. Doing it twice is harmless."""
        self._closed = True
        self._life = None
        await _ended(tuple(self._tasks))

    async def _use(
        self, ask: Callable[[McpConnection], Coroutine[Any, Any, ResultT]], within_s: float
    ) -> ResultT:
        life = await self._ready()
        if life.connection is None:
            raise ToolFailed(f"the MCP server {self._name} cannot be used: {life.failure}")
        life.calls += 1
        try:
            async with self._clock.timeout(within_s):
                return await ask(life.connection)
        except TimeoutError:
            await self._end(life)
            raise ToolFailed(
                f"the MCP server {self._name} did not answer within {within_s:g} seconds and was "
                "stopped; nobody knows whether it did it. It is started anew when it is used again"
            ) from None
        except McpGone as error:
            await self._end(life)
            raise ToolFailed(
                f"the connection to the MCP server {self._name} is over ({self._short(error)}); nobody knows "
                "whether it did it. It is started anew when it is used again"
            ) from None
        except McpRefused as error:
            raise ToolFailed(f"the MCP server {self._name} refuses: {self._short(error)}") from None
        finally:
            life.calls -= 1
            life.used_at = self._clock.monotonic()

    async def _ready(self) -> _Life:
        """The life that there is, or a new one, once it stands or has failed."""
        async with self._starting:
            life = self._life or self._start()
            try:
                async with self._clock.timeout(START_S):
                    await life.settled.wait()
            except TimeoutError:
                await self._end(life)
                life.failure = f"it did not start within {START_S:.0f} seconds"
            return life

    def _start(self) -> _Life:
        now = self._clock.monotonic()
        if self._closed:
            raise ToolFailed(f"the MCP server {self._name} is shut down")
        if len(self._starts) == MAX_STARTS and now - self._starts[0] < STARTS_WITHIN_S:
            wait = STARTS_WITHIN_S - (now - self._starts[0])
            raise ToolFailed(
                f"the MCP server {self._name} was started {MAX_STARTS} times within a minute and is left "
                f"alone for {wait:.0f} seconds"
            )
        self._starts.append(now)
        life = self._life = _Life(used_at=now)
        task = life.task = self._spawn(self._live(life), name=f"mcp {self._name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return life

    async def _live(self, life: _Life) -> None:
        """One life. The connection is entered and left here, and nowhere else."""
        try:
            async with self._connect() as connection:
                life.connection = connection
                life.settled.set()
                await self._until_unused(life, connection)
        except (ConfigurationError, McpGone, McpRefused, OSError, ValueError, ExceptionGroup) as error:
            life.failure = self._short(error)
            _log.warning("an MCP server failed", extra={"server": self._name, "reason": life.failure})
        finally:
            life.failure = life.failure or "it was stopped"
            self._forget(life)
            life.settled.set()

    async def _until_unused(self, life: _Life, connection: McpConnection) -> None:
        """Return when the server has ended, or nobody has used it for long."""
        while True:
            idle = self._clock.monotonic() - life.used_at
            if idle >= self._idle_s and not life.calls:
                _log.info("an MCP server is stopped: nobody uses it", extra={"server": self._name})
                break
            try:
                async with self._clock.timeout(max(1.0, self._idle_s - idle)):
                    await connection.over.wait()
                break
            except TimeoutError:
                continue
        # At once, before it is wound up: whoever comes now gets a new one.
        self._forget(life)

    def _forget(self, life: _Life) -> None:
        if self._life is life:
            self._life = None

    def _short(self, error: BaseException) -> str:
        """What went wrong, in one line, which may be the server's own."""
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, FileNotFoundError):
            return f"there is no {error.filename}"
        # Without what cannot be seen, before secrets are looked for: it may stand in the middle of one.
        words = clean_words(str(error)[:_MOST_WORDS]) or type(error).__name__
        return self._redactor.line(words, _FAILURE_CHARS)

    async def _end(self, life: _Life) -> None:
        """Stop a life and wait until nothing of it is left."""
        self._forget(life)
        if life.task is not None:
            await _ended((life.task,))


async def _ended(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
