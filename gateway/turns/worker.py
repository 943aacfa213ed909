"""Run turns: one FIFO and one runner per thread. A runner claims entries, runs the pipeline and commits.

A runner lives while its thread has work and `LINGER_S` longer, holding the lease and the conversation, so the
next message needs no look-up. While no entry waits, it runs the work given to `when_idle`.

Among several processes, a wake is addressed to one of them, which passes it on to the owner of the thread if
that is another one. What has no live owner is claimed by those with free slots."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from typing import NoReturn

from gateway.runtime.tasks import Supervisor
from gateway.storage.leases import ProcessingCoordinator
from gateway.storage.ports import InboxEntry, Lease, Store
from gateway.storage.shared_leases import SharedCoordinator
from gateway.turns.elsewhere import LOOK_S, Elsewhere
from gateway.turns.ending_threads import end_threads
from gateway.turns.live_thread import IdleAttempt, IdleWork, LiveThread
from gateway.turns.runner import TurnRunner
from gateway.turns.waiting_stops import WaitingStops
from pipeline.domain.clock import Clock, within
from pipeline.domain.errors import FenceLost, StorageError
from pipeline.graph.execution.control import asked_to_stop
from pipeline.runtime.stopping import TurnHalted

_log = logging.getLogger(__name__)

LINGER_S = 20.0
_BACKOFF_S = (0.5, 1.0, 2.0, 5.0)
_MOST_CLAIMED = 64
_MOST_ASKED = 5
_ENDS = 1_000_000


class Worker:
    """Runs every thread's turns in order, different threads concurrently. `withdraw` takes back the questions
    of a thread's stopped turns, except those of the given messages."""

    def __init__(
        self,
        *,
        store: Store,
        coordinator: ProcessingCoordinator,
        turns: TurnRunner,
        clock: Clock,
        supervisor: Supervisor,
        withdraw: Callable[[str, Collection[str]], Awaitable[None]] | None = None,
        linger_s: float = LINGER_S,
        shared: SharedCoordinator | None = None,
        ask_for: Callable[[str], None] = lambda _thread: None,
        look_s: Callable[[], float] = lambda: LOOK_S,
        all_full: Callable[[], bool] = lambda: False,
    ) -> None:
        """`shared` is the coordinator, in a process among several; `ask_for` asks the others to release a
        thread, `look_s` gives the time between two looks, and `all_full` whether no worker has room."""
        self._shared, self._look_s, self._ask_for = shared, look_s, ask_for
        self._all_full, self._full_until = all_full, 0.0
        self.on_refused: Callable[[str, LiveThread], None] = lambda _thread, _live: None
        """Called with a thread whose lease another process has."""
        self._store = store
        self._coordinator = coordinator
        self._turns = turns
        self._clock = clock
        self._supervisor = supervisor
        self._stops = WaitingStops(store, turns, self.withdraw, withdraw or _withdraw_nothing)
        self._linger_s = linger_s
        self.threads: dict[str, LiveThread] = {}
        self._elsewhere = Elsewhere(clock)
        self._freed = asyncio.Event()
        """Set when a slot is free that work of other processes could take."""
        self._starting: set[str] = set()
        """Threads whose first turn has not begun, and will take a slot."""
        self._has_left_work = False
        self._draining = False
        self._has_halted = False
        """Whether a turn was halted before a shutdown, and waits for the next start."""

    async def recover(self) -> int:
        """Start the entries that an earlier process left unfinished; return how many."""
        self._turns.note_deaths(await self._store.deaths.note())
        total = 0
        threads = await self._store.open_threads()
        # Every stop first: one of a chat ends heartbeats, which are entries of another thread.
        for thread in threads:
            total += await self._stops.carry_out(thread)
        for thread in threads:
            self.wake(thread)
        return total

    async def look_for_work(self) -> NoReturn:
        """Take over the threads that have work and no live owner, until cancelled. For one of several."""
        while True:
            with suppress(TimeoutError):
                await within(self._clock, self._look_s(), self._freed.wait())
            self._freed.clear()
            try:
                await self.claim()
            except StorageError as error:
                _log.warning("no work was looked for", extra={"reason": str(error)})

    async def claim(self) -> int:
        """Take over what has no live owner, as much as can run now; how many threads. Raises StorageError.

        While no worker has room, each takes one at times: else a thread would wait for as long as the chats
        of all of them keep their slots busy."""
        if self._shared is None or self._draining:
            return 0
        spare = min(_MOST_CLAIMED, self.room or self._share_when_full())
        leases = await self._shared.claim(spare) if spare else ()
        self._has_left_work = len(leases) >= spare
        for lease in leases:
            if lease.thread in self.threads:
                # Its runner had lost the lease, or never got it, and acquires it again.
                self.wake(lease.thread)
                continue
            await self._stops.carry_out(lease.thread)
            self._start(lease.thread, claimed=lease)
        return len(leases)

    def _share_when_full(self) -> int:
        """How many threads this worker takes although it has no room: one for each time between two looks."""
        now = self._clock.monotonic()
        if not (self._turns.slots.locked() and self._all_full()) or now < self._full_until:
            return 0
        self._full_until = now + self._look_s()
        return 1

    def wake(self, thread: str) -> None:
        """Look for work in `thread`."""
        live = self.threads.get(thread)
        if live is not None:
            live.unread = True
            live.work.set()
            self._turns.bursts.wake(thread)
        elif self._shared is None or self.may_try(thread):
            self._start(thread)

    def may_try(self, thread: str) -> bool:
        """Whether one of several tries to get a thread that it was woken for: not without a free slot."""
        if not self.room:
            self._has_left_work = True
            return False
        return not self._elsewhere.has(thread)

    @property
    def room(self) -> int:
        """How many more turns could run now."""
        return 0 if self._draining else self._turns.room(len(self._starting))

    @property
    def waiting(self) -> int:
        """How many turns wait for a slot here; more than elsewhere while this process ends."""
        return _ENDS if self._draining else self._turns.slots.waiting

    def _look_soon(self) -> None:
        """Look for work now if some was left for want of a slot, which is free now."""
        if self._has_left_work:
            self._freed.set()

    def may_begin(self) -> bool:
        """Whether a message that is accepted now, as the first of its thread, starts its turn at once."""
        # Among several, another process may have the thread.
        return self._shared is None and self.room > 0

    def begin(self, entry: InboxEntry) -> None:
        """Start the turn of an entry whose first attempt `accept` has counted, without reading it again."""
        live = self.threads.get(entry.thread)
        if live is not None:
            live.begun = entry
            live.work.set()
        else:
            self._start(entry.thread, entry)

    def stop_before(self, thread: str, seq: int, cancelled: int, heartbeats: int = 0) -> None:
        """Stop the turn of `thread` if its entry is older than `seq`; the numbers are for its own line."""
        self._turns.note_stop(seq, cancelled, heartbeats)
        live = self.threads.get(thread)
        if live is None:
            return
        live.stopped_before = max(live.stopped_before, seq)
        if live.stop is not None and live.running_seq < seq:
            live.stop.request()

    def withdraw(self, thread: str, seq: int, *, silent: bool = True) -> None:
        """Stop the turn of one entry of `thread`; with `silent`, without a line if it has not begun."""
        if silent:
            self._turns.note_withdrawn(seq)
        live = self.threads.get(thread)
        if live is None:
            return
        live.withdrawn.add(seq)
        if live.stop is not None and (live.running_seq == seq or self._turns.bursts.covers(thread, seq)):
            live.stop.request()

    def interrupt(self, thread: str, seq: int, at: float) -> None:
        """Stop the turn that runs in `thread` if its entry is older than `seq` and it had begun by the Unix
        time `at`. Waiting entries are not stopped, even if one has begun meanwhile."""
        live = self.threads.get(thread)
        if live is None or live.stop is None:
            return
        if live.running_seq < seq and live.began_at <= at:
            live.stop.request()

    def release(self, thread: str) -> None:
        """Release the thread for another process, if it has no work."""
        live = self.threads.get(thread)
        if live is not None and not live.idle:
            live.hurry()

    async def when_idle(self, thread: str, work: IdleWork) -> bool:
        """Run `work` under the thread's lease when none of its entries waits. False if it did not run or not
        to its end: a new entry cancels it, and so does a shutdown. Raises what `work` raises."""
        if self._draining:
            return False
        idle = IdleAttempt(work, asyncio.get_running_loop().create_future())
        if thread not in self.threads:
            self._start(thread)
        live = self.threads[thread]
        live.idle.append(idle)
        if not live.idling:
            live.work.set()
        return await idle.completed

    async def close(self) -> None:
        """Disconnect from the cache of conversations, after everything is drained."""
        await self._turns.sessions.close()

    async def drain(
        self,
        timeout_s: float,
        unanswered: Callable[[], Collection[str]] = tuple,
        *,
        halt_after_s: float | None = None,
    ) -> bool:
        """Start nothing new and let running turns finish; False if some did not within `timeout_s` seconds.

        After `halt_after_s` seconds they halt before their next node. Turns of the threads `unanswered` wait
        for a person, whose answer the closed inbox refuses: they are cut off. The next start resumes all.
        """
        self._draining = True
        ended = await end_threads(self.threads, timeout_s, unanswered, halt_after_s=halt_after_s)
        return ended and not self._has_halted

    def _start(self, thread: str, begun: InboxEntry | None = None, *, claimed: Lease | None = None) -> None:
        # Without a runner, no entry of the thread is unfinished but the one that begins.
        live = LiveThread(work=asyncio.Event(), unread=begun is None, begun=begun, claimed=claimed)
        self.threads[thread] = live
        self._starting.add(thread)
        live.task = self._supervisor.spawn(self._run(thread, live), name=f"thread {thread}")

    async def _run(self, thread: str, live: LiveThread) -> None:
        failures = 0
        try:
            while not self._draining and self.threads.get(thread) is live:
                try:
                    if not await self._own(thread, live):
                        return
                    failures = 0
                    continue
                except FenceLost:
                    _log.warning("thread taken over", extra={"thread_key": thread})
                except TurnHalted:
                    self._has_halted = True
                    return
                except StorageError:
                    _log.exception("thread waits for the store", extra={"thread_key": thread})
                except asyncio.CancelledError:
                    if asked_to_stop():
                        raise
                    # Something that the turn waited for was cancelled, not this runner.
                    _log.exception("thread tries again", extra={"thread_key": thread})
                except Exception:  # noqa: BLE001 - without a runner the thread would wait for ever
                    _log.exception("thread tries again", extra={"thread_key": thread})
                failures += 1
                live.unread = True
                await self._clock.sleep(_BACKOFF_S[min(failures, len(_BACKOFF_S)) - 1])
        finally:
            self._starting.discard(thread)
            self._forget(thread, live)
            live.end()
            await self._discount_begun(thread, live)

    async def _discount_begun(self, thread: str, live: LiveThread) -> None:
        """Take back the attempt of an entry whose turn a shutdown prevented."""
        if (entry := live.take_begun()) is None:
            return
        try:
            # Held for one write, which is refused if it is lost.
            lease = await self._coordinator.acquire(thread, lambda: None)
            if lease is not None:
                await self._store.discount_attempt(lease, entry.seq)
                await self._coordinator.release(lease)
        except StorageError as error:
            _log.info("the attempt stays counted", extra={"reason": str(error)})

    def _forget(self, thread: str, live: LiveThread) -> None:
        """Take a runner out of the table, unless a later one has replaced it."""
        if self.threads.get(thread) is live:
            del self.threads[thread]

    async def _own(self, thread: str, live: LiveThread) -> bool:
        """Work under one lease. False when there is no work left."""
        task = asyncio.current_task()
        others = task.cancelling() if task is not None else 0
        lost = False

        def on_lost() -> None:
            nonlocal lost
            lost = True
            if task is not None:
                task.cancel()

        lease = await self._acquire(thread, live, on_lost)
        if lease is None:
            return await self._leave_to_other(thread, live)
        try:
            session = await self._turns.open_session(thread, lease)
            while not self._draining:
                live.work.clear()
                entry = live.take_begun() or await self._unread_entry(thread, live)
                if entry is not None:
                    self._starting.discard(thread)
                    stop = live.begin(entry, self._clock.now())
                    # Read after the turn, since a message may arrive during it.
                    live.unread = await self._turns.run(lease, entry, session, stop) or live.unread
                    live.stop = None
                    self._look_soon()
                    continue
                await live.do_idle_work(lease, session)
                if not await self._more_work(thread, live):
                    break
            await self._turns.sessions.leave(lease, session)
        except asyncio.CancelledError:
            if lost and task is not None and task.uncancel() <= others:
                live.unread = True
                return True
            raise
        else:
            return False
        finally:
            live.stop = None
            await self._coordinator.release(lease)

    async def _acquire(self, thread: str, live: LiveThread, on_lost: Callable[[], None]) -> Lease | None:
        """The lease of the thread: the one that was claimed, or a new one."""
        claimed, live.claimed = live.claimed, None
        if claimed is None or self._shared is None:
            return await self._coordinator.acquire(thread, on_lost)
        self._shared.adopt(claimed, on_lost)
        return claimed

    async def _leave_to_other(self, thread: str, live: LiveThread) -> bool:
        """What `_own` returns while another process has the thread. Alone, its lease must expire first; one
        of several leaves the turns to the other, and asks for the thread a few times for idle work."""
        if self._shared is not None:
            self._elsewhere.note(thread)
            self.on_refused(thread, live)
            live.asked += 1
            if not live.idle or live.asked > _MOST_ASKED:
                return False
            self._ask_for(thread)
        await self._clock.sleep(1.0)
        return True

    async def _unread_entry(self, thread: str, live: LiveThread) -> InboxEntry | None:
        """The oldest unfinished entry. After an entry that was accepted as the first of its thread there is
        none to read, until the thread is woken again."""
        if not live.unread:
            return None
        live.unread = False
        entry = await self._store.next_entry(thread)
        if entry is not None and self._shared is not None and entry.attempts > entry.excused:
            self._turns.note_deaths(await self._shared.deaths(entry.seq), more=True)
        live.unread = live.unread or entry is not None
        return entry

    async def _more_work(self, thread: str, live: LiveThread) -> bool:
        """Wait up to the linger time for work. On False the runner has left the table in the same step, so a
        message that arrives later starts a new runner and none is lost in between."""
        await live.linger(self._linger_s)
        # Work may have come between the timer and this step.
        if live.lingered and not live.unread and live.begun is None and not live.idle:
            self._forget(thread, live)
            return False
        return True


async def _withdraw_nothing(_thread: str, _but: Collection[str]) -> None:
    """Do nothing: no turn asks a person anything."""
