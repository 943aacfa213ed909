"""What a worker knows of one thread that it runs: the entry and the stop of the turn, idle work, and the wait
for more of either."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from gateway.storage.ports import InboxEntry, Lease
from gateway.turns.sessions import SessionState
from pipeline.runtime.stopping import StopSignal

IdleWork = Callable[[Lease, SessionState], Awaitable[None]]
"""Work on a thread under its lease, between turns."""


def _nothing() -> None:
    """Do nothing: the thread is not handed over."""


@dataclass(frozen=True, slots=True)
class IdleAttempt:
    """Idle work of a thread, and whether it was completed."""

    run: IdleWork
    completed: asyncio.Future[bool]

    def end(self, *, completed: bool) -> None:
        """Report it, unless that was done or its caller has left."""
        if not self.completed.done():
            self.completed.set_result(completed)


@dataclass(slots=True)
class LiveThread:
    """One live thread."""

    work: asyncio.Event
    unread: bool = True
    """The store may hold entries of the thread that were not read yet."""
    begun: InboxEntry | None = None
    """An entry that was accepted as the first of its thread, with its attempt counted."""
    chosen: bool = False
    """No other process was woken for it: if another one has the thread, that one is to be."""
    asked: int = 0
    """How often the process that has the thread was asked to release it for idle work."""
    claimed: Lease | None = None
    """The lease under which its first turn runs, if it was taken over."""
    task: asyncio.Task[object] | None = None
    running_seq: int = 0
    began_at: float = 0.0
    """When that turn began, as Unix time."""
    stop: StopSignal | None = None
    idle: deque[IdleAttempt] = field(default_factory=deque)
    idling: bool = False
    """Idle work runs: more of it does not interrupt it."""
    withdrawn: set[int] = field(default_factory=set)
    """Entries to stop, including one that was read just before it was marked."""
    stopped_before: int = 0
    """Entries with a smaller seq are to be stopped, including one that was read just before it was marked."""
    lingered: bool = False
    """The linger time has passed without work."""
    after: Callable[[], None] = _nothing
    """Called when the thread is free for another process, to which it was handed over."""
    off_record: bool = False
    """Its conversation is in this process's memory alone."""
    _lingers: bool = False
    """It waits for work."""
    _lingers_until: float = 0.0
    """Until then, in the loop's time."""
    _timer: asyncio.TimerHandle | None = None

    @property
    def runs(self) -> bool:
        """Whether a turn runs that was not stopped."""
        return self.stop is not None and not self.stop.requested

    async def linger(self, seconds: float) -> None:
        """Wait until there is work, or until it has waited so long: `lingered` says which.

        A timer of an earlier wait is not cancelled but set again once it is over: otherwise each turn would
        make one, and `asyncio.timeout` would take three times as long still."""
        loop = asyncio.get_running_loop()
        self.lingered, self._lingers, self._lingers_until = False, True, loop.time() + seconds
        self.after = _nothing
        if self._timer is None:
            self._timer = loop.call_at(self._lingers_until, self._look_again)
        try:
            await self.work.wait()
        finally:
            self._lingers = False

    async def do_idle_work(self, lease: Lease, session: SessionState) -> None:
        """Run the idle work under the thread's lease, one after the other. A new entry cancels what runs."""
        self.idling, self.off_record = True, session.mode == "otr"
        try:
            while self.idle and not self.work.is_set():
                idle = self.idle.popleft()
                try:
                    async with asyncio.TaskGroup() as group:
                        doing = group.create_task(_run(idle, lease, session))
                        work = group.create_task(self.work.wait())
                        ends = (doing, work, idle.completed)
                        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                        doing.cancel()
                        work.cancel()
                finally:
                    idle.end(completed=False)
        finally:
            self.idling = False

    def hurry(self) -> None:
        """End the wait now, if it waits and there is no work."""
        if self._lingers and not self.work.is_set():
            self.lingered = True
            self.work.set()

    def hand_over(self, after: Callable[[], None]) -> bool:
        """End the wait now, and have `after` called when another process can have the thread. False if it has
        work, or is off the record."""
        if not self._lingers or self.work.is_set() or self.idle or self.off_record:
            return False
        self.after = after
        self.hurry()
        return True

    def end(self) -> None:
        """Forget the timer, and report the idle work that is left as not done. The thread is free."""
        if self._timer is not None:
            self._timer.cancel()
        while self.idle:
            self.idle.popleft().end(completed=False)
        self.after()

    def _look_again(self) -> None:
        self._timer = None
        if not self._lingers or self.work.is_set():
            return  # the next wait sets a timer
        loop = asyncio.get_running_loop()
        if loop.time() < self._lingers_until:
            self._timer = loop.call_at(self._lingers_until, self._look_again)
            return
        self.lingered = True
        self.work.set()

    def begin(self, entry: InboxEntry, now: float) -> StopSignal:
        """The stop signal of the turn that starts now; already set if its stop came first."""
        self.stop = StopSignal()
        self.running_seq, self.began_at = entry.seq, now
        if entry.cancelled or entry.seq < self.stopped_before or entry.seq in self.withdrawn:
            self.stop.request()
        return self.stop

    def take_begun(self) -> InboxEntry | None:
        """The accepted first entry, unless it was read from the store meanwhile."""
        entry, self.begun = self.begun, None
        return entry if entry is not None and entry.seq > self.running_seq else None


async def _run(idle: IdleAttempt, lease: Lease, session: SessionState) -> None:
    try:
        await idle.run(lease, session)
    except Exception as error:  # noqa: BLE001 - raised by `Worker.when_idle`
        if not idle.completed.done():
            idle.completed.set_exception(error)
    else:
        idle.end(completed=True)
