"""One recogniser of the pool: a worker process, its start, deadlines and replacement.

Not here: scheduling (`voice.transcription.pool`), the process itself (`voice.workers.child`), the
model (`voice.transcription.recognizer_main`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from voice.errors import NOT_STARTING, SHUTTING_DOWN, TranscriberUnavailable, TranscriptionTimeout, VoiceError
from voice.workers.child import Child, Dying, OnLine
from voice.workers.frames import WorkerFrame

_WARM_UP = WorkerFrame(header={"kind": "warm_up"})


class Recogniser:
    """Answers one request at a time, in a process that is started on first use.

    Recognition cannot be interrupted from outside: cancelling kills the process.
    """

    def __init__(self, command: Sequence[str], on_line: OnLine, *, start_deadline_s: float) -> None:
        self.jobs = 0
        """Requests since the process started."""
        self.starting = False
        self._command = command
        self._on_line = on_line
        self._start_deadline_s = start_deadline_s
        self._turn = asyncio.Lock()
        self._child: Child | None = None
        self._coming: set[Child] = set()
        """Processes that are starting."""
        self._dying = Dying()
        self._renewing = False
        self._closed = False

    @property
    def pid(self) -> int | None:
        """The running process's id; None where there is none."""
        return self._child.pid if self._child is not None and self._child.alive else None

    @property
    def idle(self) -> bool:
        """Whether a request would be processed at once."""
        return self.pid is not None and not self._turn.locked()

    async def start(self) -> None:
        """Start the process and load its model, unless it runs. Raises TranscriberUnavailable."""
        async with self._turn:
            await self._living()

    async def warm_up(self) -> None:
        """Start, so that the first request waits no longer than the next.

        Raises TranscriberUnavailable or TranscriptionTimeout.
        """
        async with self._turn:
            child = await self._living()
            try:
                await self._ask(child, _WARM_UP, self._start_deadline_s)
            except TimeoutError as error:
                raise TranscriptionTimeout(NOT_STARTING) from error

    async def ask(self, request: WorkerFrame, *, deadline_s: float) -> WorkerFrame:
        """The answer of the process, which `start` started.

        Raises TimeoutError at the deadline and VoiceError when the process dies; it has ended in both cases.
        """
        async with self._turn:
            child = await self._living()
            self.jobs += 1
            return await self._ask(child, request, deadline_s)

    async def renew(self) -> None:
        """Replace the process. The fresh one is started first, so that no request waits for it.

        Raises TranscriberUnavailable or TranscriptionTimeout; the old process then stays in use.
        """
        if self._renewing or self._closed:
            return
        self._renewing = True
        try:
            fresh = await self._start_child()
            self._coming.add(fresh)
            try:
                await self._ask(fresh, _WARM_UP, self._start_deadline_s)
                async with self._turn:
                    self._refuse_when_closed()
                    self._discard(self._child)
                    self._coming.discard(fresh)
                    self._child, self.jobs = fresh, 0
            except TimeoutError as error:
                raise TranscriptionTimeout(NOT_STARTING) from error
            except BaseException:
                self._discard(fresh)
                raise
        finally:
            self._renewing = False

    def kill(self) -> None:
        """End the process now; the next request starts another."""
        self._discard(self._child)

    async def close(self) -> None:
        """End the processes and wait for that. A running request fails."""
        self._closed = True
        self.kill()
        for child in self._coming:
            child.kill()
        async with self._turn:
            self.kill()
        for child in tuple(self._coming):
            self._discard(child)
        await self._dying.gone()

    async def _living(self) -> Child:
        if self._child is not None and self._child.alive:
            return self._child
        self._discard(self._child)
        self.starting = True
        try:
            self._child = await self._start_child()
        finally:
            self.starting = False
        self.jobs = 0
        return self._child

    async def _start_child(self) -> Child:
        """A process that is ready. Raises TranscriberUnavailable, after ending the process."""
        child: Child | None = None
        try:
            self._refuse_when_closed()
            async with asyncio.timeout(self._start_deadline_s):
                child = await Child.start(self._command, self._on_line)
                self._coming.add(child)
                self._refuse_when_closed()
                await asyncio.shield(child.ready)
            self._refuse_when_closed()
        except TimeoutError as error:
            self._discard(child)
            raise TranscriberUnavailable(NOT_STARTING) from error
        except (VoiceError, asyncio.CancelledError):
            self._discard(child)
            raise
        self._coming.discard(child)
        return child

    async def _ask(self, child: Child, request: WorkerFrame, deadline_s: float) -> WorkerFrame:
        try:
            async with asyncio.timeout(deadline_s):
                return await child.ask(request)
        except (TimeoutError, asyncio.CancelledError):
            self._discard(child)
            raise

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise TranscriberUnavailable(SHUTTING_DOWN)

    def _discard(self, child: Child | None) -> None:
        """Kill a process, and track it until it has ended."""
        if child is None:
            return
        if child is self._child:
            self._child = None
        self._coming.discard(child)
        self._dying.end(child)
