"""Check what is watched when it is due, without a model, and enqueue a heartbeat with what has happened.

The times of the checks are in a heap in memory; what was seen last is in the store, and changes in the
transaction that enqueues the heartbeat. So a restart neither repeats an event nor misses one. Heartbeats of
one chat never overlap: while one is in the inbox, the chat's watches wait.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NoReturn

from gateway.runtime.crash_labels import CrashLabels
from gateway.scheduling.first_checks import (
    first_due,
    first_dues,
    open_tasks,
    place_of,
    stored_watches,
)
from gateway.scheduling.heartbeat_document import TASKS, DocumentFile
from gateway.scheduling.heartbeat_entries import failure_entry, heartbeat_entry
from gateway.scheduling.heartbeat_log import HeartbeatLog
from gateway.scheduling.watch_checks import Checked, WatchChecks, WatchFailed
from gateway.scheduling.watch_records import NEVER, Watch
from gateway.storage.heartbeats import (
    HEARTBEAT_SETTINGS,
    WATCH,
    outcome_words,
    owner_of,
    session_of,
)
from gateway.storage.jobs import NewJob
from gateway.storage.ports import Store
from pipeline.domain.background import Spawn
from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError
from pipeline.domain.ids import ThreadKey, heartbeat_thread
from pipeline.domain.messages import HeartbeatDue
from pipeline.heartbeat_runs import HeartbeatResult
from pipeline.schedules.quiet_hours import QuietHours
from pipeline.watches.due_heap import DueHeap

_log = logging.getLogger(__name__)

NOTICE_AT: Final = 3
"""After so many failed checks in a row the person gets one notice."""
_BUSY_AGAIN_S: Final = 60.0
_STORE_AGAIN_S: Final = 5.0
_POLL_S: Final = 60.0
"""The longest wait, which bounds the delay after a change of the machine's clock."""
_AT_ONCE: Final = 8
"""Checks that run at the same time."""
_MOST_EVENTS: Final = 20
"""Events of one heartbeat; further ones wait for the next."""
_EVENTS: Final = "what has happened: {count}"
_DOCUMENT: Final = "HEARTBEAT.md"
"""The key of the look at the document in the heap."""


class WatchScheduler:
    """The watches of everybody; `heartbeat_port` is what people reach of it. `wake` is called with a thread
    that has work; `still_allowed` says whether the bot may still work for a watch's author."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        checks: WatchChecks,
        wake: Callable[[str], None],
        still_allowed: Callable[[HeartbeatDue], Awaitable[bool]],
        crash_labels: CrashLabels,
        log: HeartbeatLog,
        spawn: Spawn,
        document: DocumentFile | None = None,
        quiet: QuietHours | None = None,
        still_leads: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        """`still_leads` asks the store whether this process still checks for all that share it."""
        self.log = log
        self._still_leads = still_leads
        self.document = document
        self._store = store
        self._clock = clock
        self._checks = checks
        self._wake = wake
        self._still_allowed = still_allowed
        self._crash_labels = crash_labels
        self._spawn = spawn
        self._quiet = quiet
        self._heap = DueHeap()
        self._watches: dict[str, Watch] = {}
        self._settings: dict[str, Mapping[str, Any]] = {}
        """By owner: `off` and `to`."""
        self._changed = asyncio.Event()
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._is_loaded = False
        self._leads = False
        """This process checks what is due; another one may, and this one only adds and shows."""
        self._running = 0
        """Checks of chats, and looks at the document, that are not over."""

    # -- what is watched ----------------------------------------------------------------------
    async def run(self) -> None:
        """Check what is due, for ever."""
        try:
            while not self._is_loaded:
                try:
                    await self._load()
                except StorageError as error:
                    _log.warning("heartbeats wait for the store", extra={"reason": str(error)})
                    await self._clock.sleep(_STORE_AGAIN_S)
            self.log.note("scheduler_started")
            await self._check_due()
        finally:
            # Another process may continue, and this one after it.
            self._is_loaded = self._leads = False

    async def _check_due(self) -> NoReturn:
        while True:
            self._changed.clear()
            self._start_due()
            following, now = self._heap.next_due(), self._clock.now()
            wait = _POLL_S if following is None else min(_POLL_S, following - now)
            if wait <= 0:
                continue
            try:
                async with self._clock.timeout(wait):
                    await self._changed.wait()
            except TimeoutError:
                continue

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being checked, and nothing is due now."""
        following = self._heap.next_due()
        return self._is_loaded and not self._running and (following is None or following > self._clock.now())

    def of(self, owner: str) -> tuple[Watch, ...]:
        """The owner's watches, in the order in which they were added."""
        return tuple(one for one in self._watches.values() if one.owner == owner and one.id != TASKS)

    def settings(self, owner: str) -> Mapping[str, Any]:
        """What the owner has set: `off`, and `to`, the chat for the results."""
        return self._settings.get(owner, {})

    async def add(self, watch: Watch, *, limit: int | None = None) -> bool:
        """Watch it from now on, durably; False if its owner has `limit` watches. Raises StorageError."""
        if not await self._store.jobs.add(watch.job(), limit=limit):
            return False
        self._put(watch, first_due(watch, self._clock.now(), at_start=not self._is_loaded))
        return True

    async def remove(self, owner: str, watch_id: str) -> bool:
        """End one of the owner's watches; False if there is no such one. Raises StorageError."""
        known = self._watches.get(watch_id)
        if known is None or known.owner != owner:
            return False
        self._forget(watch_id)
        return await self._store.jobs.remove(WATCH, owner, watch_id)

    async def change_settings(self, owner: str, chat: ThreadKey, **changes: Any) -> None:
        """Store what the owner has set, durably. Raises StorageError."""
        body = {**self.settings(owner), **changes}
        job = NewJob(
            kind=HEARTBEAT_SETTINGS, key=owner, owner=owner, thread=chat.encode(), due=NEVER, body=body
        )
        if not await self._store.jobs.change(HEARTBEAT_SETTINGS, owner, owner, due=NEVER, body=body):
            await self._store.jobs.add(job)
        self._settings[owner] = body

    def ended(self, due: HeartbeatDue, result: HeartbeatResult) -> None:
        """Note that a heartbeat is over: the next look at open tasks is an interval after it."""
        owner = owner_of(due)
        if result.status == "failed":
            self.log.note("heartbeat_error", owner=owner, reason=result.problem)
        else:
            self.log.note(
                "heartbeat_completed", owner=owner, reason=outcome_words(result.status, result.cycles)
            )
        tasks = self._watches.get(TASKS)
        if tasks is not None and heartbeat_thread(tasks.thread) == due.thread:
            self._put(tasks, self._clock.now() + tasks.condition.every_s)

    # -- when it is due -----------------------------------------------------------------------
    async def _load(self) -> None:
        """Begin with what the store has."""
        earlier = dict(self._watches)
        settings, watches = await stored_watches(self._store, with_document=self.document is not None)
        dues = await first_dues(watches, self._store, self._clock)
        added = [one for name, one in self._watches.items() if name not in earlier and name not in dues]
        # Without a wait between: what people are shown is never a part.
        self._settings, self._watches, self._heap, self._leads = settings, {}, DueHeap(), True
        for one in (*watches, *added):
            self._put(one, dues.get(one.id, self._clock.now()))
        if self.document is not None:
            await self._read_document()
        self._is_loaded = True

    async def reload(self) -> None:
        """Read again what is watched, as another process may have changed it. Raises StorageError."""
        settings, watches = await stored_watches(self._store, with_document=self.document is not None)
        self._settings = settings
        for name in self._watches.keys() - {one.id for one in watches}:
            self._forget(name)
        for one in watches:
            if one.id not in self._watches or not self._leads:
                self._put(one, first_due(one, self._clock.now(), at_start=False))

    def _put(self, watch: Watch, due: float | None) -> None:
        self._watches[watch.id] = watch
        if due is not None and self._leads:
            self._heap.put(watch.id, due)
            self._changed.set()

    def _forget(self, watch_id: str) -> None:
        self._watches.pop(watch_id, None)
        self._heap.remove(watch_id)

    def _start_due(self) -> None:
        """Begin the checks that are due, those of each chat in one task."""
        chats: dict[ThreadKey, list[str]] = {}
        for name in self._heap.take_due(self._clock.now()):
            if name == _DOCUMENT:
                self._begin(self._look_at_document(), name="HEARTBEAT.md")
            elif (watch := self._watches.get(name)) is not None:
                chats.setdefault(watch.thread, []).append(name)
        for names in chats.values():
            self._begin(self._check_chat(names), name="watches of a chat")

    def _begin(self, work: Coroutine[Any, Any, None], *, name: str) -> None:
        self._running += 1
        self._spawn(self._counted(work), name=name)

    async def _counted(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        finally:
            self._running -= 1

    async def _look_at_document(self) -> None:
        try:
            await self._read_document()
        except StorageError as error:
            _log.warning("HEARTBEAT.md waits for the store", extra={"reason": str(error)})
            self._heap.put(_DOCUMENT, self._clock.now() + _STORE_AGAIN_S)

    async def _read_document(self) -> None:
        """Take over what the document wants to be watched, if it has changed."""
        document = self.document
        if document is None:
            return
        if await document.changed():
            wanted = {one.id: one for one in document.watches()}
            for known in [one for one in self._watches.values() if one.from_document]:
                # One that another person's document had is not of this one.
                if known.id not in wanted or place_of(known) != place_of(wanted[known.id]):
                    await self.remove(known.owner, known.id)
            for one in wanted.values():
                if one.id not in self._watches:
                    await self.add(one)
            self._keep_interval(wanted.get(TASKS))
        self._heap.put(_DOCUMENT, self._clock.now() + _POLL_S)
        self._changed.set()

    def _keep_interval(self, tasks: Watch | None) -> None:
        """Take over an interval that the configuration has changed."""
        known = self._watches.get(TASKS)
        if tasks is not None and known is not None and known.condition != tasks.condition:
            self._put(replace(known, condition=tasks.condition), self._clock.now() + tasks.condition.every_s)

    # -- one chat -----------------------------------------------------------------------------
    async def _check_chat(self, names: Sequence[str]) -> None:
        watches = [self._watches[name] for name in names if name in self._watches]
        if not watches:
            return
        try:
            wait_s = await self._waits(watches)
            if wait_s:
                for one in watches:
                    self._again(one, self._clock.now() + wait_s)
                return
            await self._check_all(watches)
        except StorageError as error:
            _log.warning("watches wait for the store", extra={"reason": str(error)})
            for one in watches:
                self._again(one, self._clock.now() + _STORE_AGAIN_S)

    def _again(self, watch: Watch, due: float | None) -> None:
        """Check it at `due` again, unless it was ended meanwhile."""
        if watch.id in self._watches and due is not None:
            self._heap.put(watch.id, due)
            self._changed.set()

    async def _waits(self, watches: Sequence[Watch]) -> float:
        """Seconds for which nothing of the chat is checked; 0 for now."""
        owner, now = watches[0].owner, self._clock.now()
        self.log.note("scheduler_check", owner=owner)
        free = self._free_at(watches[0], now)
        if free > now:
            self.log.note("heartbeat_skipped", owner=owner, reason="quiet hours")
            return free - now
        if await self._store.open_entries(heartbeat_thread(watches[0].thread).encode()):
            self.log.note("heartbeat_already_running", owner=owner)
            return _BUSY_AGAIN_S
        return 0.0

    def _free_at(self, watch: Watch, now: float) -> float:
        """The end of the hours that a time falls into in which nothing runs; the time itself outside."""
        at = now if self._quiet is None else self._quiet.over_at(now, watch.zone)
        outside = None if self.document is None else self.document.own.outside
        if outside is not None and watch.from_document:
            at = outside.over_at(at, watch.zone)
        return at

    async def _check_all(self, watches: Sequence[Watch]) -> None:
        is_off = bool(self.settings(watches[0].owner).get("off"))
        if is_off:
            self.log.note("heartbeat_skipped", owner=watches[0].owner, reason="off")
        identity = f"heartbeat_{secrets.token_hex(8)}"
        checked = await asyncio.gather(*(self._checked(one, session_of(identity)) for one in watches))
        happened = [] if is_off else [one for one in checked if one.finding is not None and one.finding.text]
        if self._still_leads is not None and not await self._still_leads():
            return
        # A further one keeps what it has seen, so that it is found again.
        left, happened = happened[_MOST_EVENTS:], happened[:_MOST_EVENTS]
        changed = [one for one in checked if one.has_changed and one not in left]
        if happened:
            await self._hand_over(identity, happened, changed)
        elif changed:
            for one in changed:
                await self._store_failures(one)
                job = one.after.job()
                await self._store.jobs.change(job.kind, job.owner, job.key, due=job.due, body=job.body)
        elif not is_off:
            self.log.note("heartbeat_skipped", owner=watches[0].owner, reason="nothing has happened")
        now = self._clock.now()
        for one in checked:
            if one.before.id not in self._watches:
                continue
            if one not in left:
                self._watches[one.after.id] = one.after
            following = one.after.condition.next_check(now)
            self._again(one.after, now + _BUSY_AGAIN_S if one in left else following)

    async def _checked(self, watch: Watch, session: str) -> Checked:
        async with self._slots:
            try:
                if watch.condition.kind == "tasks":
                    finding = await open_tasks(watch, self.document, self._store)
                else:
                    finding = await self._checks.check(watch, session)
            except WatchFailed as error:
                failed = replace(watch, failures=min(NOTICE_AT, watch.failures + 1))
                return Checked(before=watch, after=failed, finding=None, problem=str(error))
            except StorageError:
                raise
            except Exception:  # noqa: BLE001 - the failure of one check must not end the others
                _log.exception("a watch cannot be checked", extra={"id": watch.id})
                failed = replace(watch, failures=min(NOTICE_AT, watch.failures + 1))
                return Checked(before=watch, after=failed, finding=None, problem="an internal error")
        return Checked(before=watch, after=watch.with_seen(finding.seen), finding=finding)

    async def _hand_over(
        self, identity: str, happened: Sequence[Checked], changed: Sequence[Checked]
    ) -> None:
        """Enqueue a heartbeat with what has happened, unless its person was shut out."""
        events = [(one.after, one.finding) for one in happened if one.finding is not None]
        first, now = happened[0].after, self._clock.now()
        due = heartbeat_entry(identity, events, self._target(first), self.document, now)
        if not await self._still_allowed(due.item):
            self.log.note("heartbeat_skipped", owner=first.owner, reason="its person was shut out")
            return
        for one in changed:
            await self._store_failures(one)
        self._crash_labels.reach("watch-fired-before")
        await self._store.accept_with(due.entry, [one.after.job() for one in changed])
        self._crash_labels.reach("watch-fired-after")
        self.log.note("heartbeat_triggered", owner=first.owner, reason=_EVENTS.format(count=len(events)))
        self._wake(due.entry.thread)

    async def _store_failures(self, checked: Checked) -> None:
        """Tell the person once that a watch fails."""
        is_new = checked.before.failures < NOTICE_AT == checked.after.failures
        if not is_new or checked.finding is not None:
            return
        self.log.note("heartbeat_error", owner=checked.after.owner, reason="a watch fails")
        entry = failure_entry(checked.after, checked.problem, self._target(checked.after), self._clock.now())
        await self._store.accept(entry)
        self._wake(entry.thread)

    def _target(self, watch: Watch) -> str:
        """The chat that gets the results, as an encoded thread key."""
        return str(self.settings(watch.owner).get("to") or watch.thread.encode())
