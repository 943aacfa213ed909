"""Run the commands of conversations: each in its conversation's folder, one at a time there, a few in all."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from gateway.sandbox.folders import CommandFolders
from gateway.sandbox.process import SandboxBroken, run_in_sandbox
from gateway.sandbox.protocol import SandboxLimits, SandboxRequest
from pipeline.domain.clock import Clock
from pipeline.domain.ids import ThreadKey
from pipeline.runtime.scope import TurnScope
from pipeline.tools.command_end import CommandEnd
from pipeline.tools.shell import CommandResult, OnOutput
from pipeline.tools.tool import ToolFailed

_AROUND_S = 60.0
"""For starting, and for copying the files in and out."""
_WAIT_S = 120.0
"""The longest wait for other conversations' commands."""
_BUSY = "other commands are running, and none ended within two minutes; try again later"
_FAILED = "the folder of the commands cannot be used"
_log = logging.getLogger(__name__)


class SandboxedCommands:
    """Implements `CommandRunner`. At most `at_once` commands run at the same time; `hidden` are paths that
    no command may see, and `spawn` starts a task that ends with the gateway."""

    def __init__(
        self,
        folders: CommandFolders,
        *,
        limits: SandboxLimits,
        at_once: int,
        hidden: Sequence[Path],
        clock: Clock,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self._folders = folders
        self._limits = limits
        self._hidden = tuple(str(path.resolve()) for path in hidden)
        self._clock = clock
        self._spawn = spawn
        self._slots = asyncio.Semaphore(at_once)
        self._locks = WeakValueDictionary[str, asyncio.Lock]()

    @property
    def seconds(self) -> float:
        """See `CommandRunner.seconds`."""
        return self._limits.seconds + _AROUND_S + _WAIT_S

    async def run(self, argv: Sequence[str], scope: TurnScope, on_output: OnOutput) -> CommandResult:
        """See `CommandRunner.run`."""
        async with AsyncExitStack() as held:
            try:
                async with self._clock.timeout(_WAIT_S):
                    await held.enter_async_context(self._lock(scope.thread))
                    await held.enter_async_context(self._slots)
            except TimeoutError:
                raise ToolFailed(_BUSY) from None
            return await self._run(argv, scope, on_output)

    async def read(self, name: str, scope: TurnScope, most_bytes: int) -> bytes:
        """See `CommandRunner.read`."""
        async with self._lock(scope.thread):
            return await asyncio.to_thread(
                self._folders.read, scope.thread, scope.session_id, name, most_bytes
            )

    def end_conversation(self, thread: ThreadKey) -> None:
        """Remove the folder of the thread's conversation, which has ended."""
        self._spawn(self._remove(thread))

    async def _run(self, argv: Sequence[str], scope: TurnScope, on_output: OnOutput) -> CommandResult:
        try:
            folder = await asyncio.to_thread(self._folders.open, scope.thread, scope.session_id)
            request = SandboxRequest(
                argv=tuple(argv), folder=str(folder), hidden=self._hidden, limits=self._limits
            )
            async with self._clock.timeout(self._limits.seconds + _AROUND_S):
                output, end = await run_in_sandbox(request, on_output)
        except TimeoutError:
            _log.warning("a sandbox did not end in time and was killed")
            return CommandResult(output=b"", end=CommandEnd(ending="broken"))
        except SandboxBroken as error:
            _log.warning("a sandbox ended unexpectedly", extra={"reason": str(error)})
            return CommandResult(output=b"", end=CommandEnd(ending="broken"))
        except OSError as error:
            raise ToolFailed(f"{_FAILED} ({error.strerror or 'I/O error'})") from error
        return CommandResult(output=output, end=end)

    async def _remove(self, thread: ThreadKey) -> None:
        async with self._lock(thread):
            try:
                await asyncio.to_thread(self._folders.remove, thread)
            except OSError as error:
                _log.warning("a folder of commands is not removed", extra={"reason": str(error)})

    def _lock(self, thread: ThreadKey) -> asyncio.Lock:
        """One folder is used by one command, or removed, at a time."""
        key = thread.encode()
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = asyncio.Lock()
        return lock
