"""Run one heartbeat of the inbox from claim to commit. Nothing of it is shown while it runs.

What it tells its person is a job of its commit, and so is the notice after three failures in a row: a process
that dies loses none and doubles none. `gateway.scheduling.heartbeat_news` does the jobs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Protocol

from gateway.runtime.crash_labels import CrashLabels
from gateway.runtime.logs import bind_ids, unbind_ids
from gateway.storage.heartbeats import HEARTBEAT_NEWS, owner_of, session_of, state_name, tasks_hash
from gateway.storage.jobs import NewJob
from gateway.storage.log_records import notice_body
from gateway.storage.ports import InboxEntry, Lease, NewRecord, Outcome, Store, TurnCommit
from gateway.storage.states import StateWrite
from gateway.turns.recorded_turn import RecordedTurn
from gateway.turns.run_log import StoreRunLog
from gateway.turns.sessions import SessionState, SessionView, record_in, session_record
from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError, TurnFailed
from pipeline.domain.messages import HeartbeatDue
from pipeline.heartbeat_runs import HeartbeatResult, HeartbeatRuns
from pipeline.runtime.stopping import StopSignal, TurnHalted

_log = logging.getLogger(__name__)

NOTICE_AT: Final = 3
"""After so many failures in a row the person gets one notice."""
MOST_CYCLES_KEPT: Final = 10
"""Heartbeats that `/heartbeat` shows."""
_GAVE_UP = "the process ended {deaths} times while it worked"
_NO_AGENT = "its agent is no longer there"
_FAILING = (
    "The last {count} heartbeats failed, the newest because: {problem}. I keep trying, and say nothing more "
    "about it until one has succeeded. `/heartbeat` shows them."
)
_UNASKED: Final = (
    "I have not done this, because it needs your yes and a heartbeat asks no one:\n\n{lines}\n\n"
    "Tell me in this chat to do it, and I ask you here."
)
_LINE: Final = "heartbeat: {status}, {cycles} cycles"


class OnEnded(Protocol):
    """Called when a heartbeat is over and durable."""

    def __call__(self, due: HeartbeatDue, result: HeartbeatResult, jobs: tuple[NewJob, ...]) -> None: ...


class HeartbeatTurns:
    """Runs heartbeats, one at a time in this process."""

    def __init__(
        self,
        *,
        store: Store,
        runs: Mapping[str, HeartbeatRuns],
        clock: Clock,
        crash_labels: CrashLabels,
        on_ended: OnEnded,
        redact: Callable[[str], str],
        max_attempts: int,
    ) -> None:
        """`runs` are those of each agent by its recorded name; `redact` removes secrets from what is sent
        and kept."""
        self._store = store
        self._runs = runs
        self._clock = clock
        self._crash_labels = crash_labels
        self._on_ended = on_ended
        self._redact = redact
        self._max_attempts = max_attempts
        self._one = asyncio.Lock()

    async def run(self, lease: Lease, entry: InboxEntry, session: SessionState, stop: StopSignal) -> bool:
        """Finish the entry. It stays open on FenceLost, StorageError, TurnHalted and cancellation. Returns
        that it has added no entry to its thread."""
        due = entry.item
        assert isinstance(due, HeartbeatDue)  # noqa: S101 - by its kind
        bind_ids(thread_key=entry.thread, message_id=entry.message_id)
        try:
            async with self._one:
                await self._run(lease, entry, due, session, stop)
        finally:
            unbind_ids()
        return False

    async def _run(
        self, lease: Lease, entry: InboxEntry, due: HeartbeatDue, session: SessionState, stop: StopSignal
    ) -> None:
        # A new conversation: it knows nothing of the heartbeats before it but their report.
        session.restart(session_of(due.message_id))
        session.stored = False
        recorded = RecordedTurn(self._store, lease.thread, entry, off_the_record=False)
        log = StoreRunLog(
            self._store,
            lease,
            partial(record_in, session, self._clock, recorded.asked_in, "step"),
            self._crash_labels,
        )
        deaths = entry.attempts - entry.excused
        known, revision = await self._kept(due)
        if deaths >= self._max_attempts:
            result = HeartbeatResult(status="failed", problem=_GAVE_UP.format(deaths=deaths))
        else:
            if not entry.begun:
                await self._store.start_attempt(lease, entry.seq)
            try:
                result = await self._result(due, session, known, recorded, log, stop)
            except (asyncio.CancelledError, StorageError, TurnHalted):
                log.hand_over()
                await self._excuse(lease, entry)
                raise
        await self._commit(lease, entry, due, session, log, result, known, revision)

    async def _result(
        self,
        due: HeartbeatDue,
        session: SessionState,
        known: Mapping[str, Any],
        recorded: RecordedTurn,
        log: StoreRunLog,
        stop: StopSignal,
    ) -> HeartbeatResult:
        runs = self._runs.get(due.agent)
        if runs is None:
            return HeartbeatResult(status="failed", problem=_NO_AGENT)
        view = SessionView(session, due)
        try:
            with stop.guard():
                return await runs.run(due, view, known, await recorded.run(), log, stop.control)
        except TurnFailed:
            return HeartbeatResult(status="stopped")

    async def _excuse(self, lease: Lease, entry: InboxEntry) -> None:
        """Take back an attempt that was interrupted from outside."""
        try:
            await self._store.discount_attempt(lease, entry.seq)
        except StorageError as error:
            _log.info("the attempt stays counted", extra={"reason": str(error)})

    async def _kept(self, due: HeartbeatDue) -> tuple[Mapping[str, Any], int]:
        """What the heartbeats of the chat have left, and its revision."""
        found = await self._store.states.read(owner_of(due), state_name(due.thread))
        return ({}, 0) if found is None else (found.body, found.revision)

    async def _commit(
        self,
        lease: Lease,
        entry: InboxEntry,
        due: HeartbeatDue,
        session: SessionState,
        log: StoreRunLog,
        result: HeartbeatResult,
        known: Mapping[str, Any],
        revision: int,
    ) -> None:
        now, failed = self._clock.now(), result.status == "failed"
        failures = int(known.get("failures", 0))
        if result.status != "stopped":
            failures = failures + 1 if failed else 0
        said = self._said(result, known, failures)
        jobs = (self._news(entry, due, session, result, said, now),) if said else ()
        unwritten = await log.unwritten()
        line = _LINE.format(status=result.status, cycles=result.cycles)
        body = notice_body(line, "") | log.embedded_records()
        records: list[NewRecord] = [
            *unwritten,
            record_in(session, self._clock, entry.message_id, "notice", body),
        ]
        if not session.stored:
            records.insert(0, session_record(session.session_id, entry.message_id, now))
        state = StateWrite(
            owner=owner_of(due),
            graph=state_name(due.thread),
            revision=revision,
            body=self._state(due, result, known, failures, now, sent=bool(said)),
        )
        outcome: Outcome = "error" if failed else "answered"
        commit = TurnCommit(
            seq=entry.seq, outcome=outcome, records=tuple(records), jobs=jobs, states=(state,), at=now
        )
        self._crash_labels.reach("heartbeat-commit-before")
        committed = await self._store.commit_turn(lease, commit)
        self._crash_labels.reach("heartbeat-commit-after")
        session.stored = True
        log.committed(committed.record_ids)
        self._on_ended(due, result, jobs)

    def _said(self, result: HeartbeatResult, known: Mapping[str, Any], failures: int) -> str:
        """What the person gets to read now; empty for nothing."""
        if result.status == "failed":
            return (
                _FAILING.format(count=failures, problem=result.problem.rstrip("."))
                if failures == NOTICE_AT
                else ""
            )
        # What it has said already is not said at every heartbeat again.
        again = result.status == "blocked" and result.blocker and result.blocker == known.get("blocker")
        unasked = [] if list(result.unasked) == known.get("unasked") else result.unasked
        lines = "\n".join(f"- {line}" for line in unasked)
        words = ("" if again else result.said, _UNASKED.format(lines=lines) if lines else "")
        return "\n\n".join(filter(None, words))

    def _news(
        self,
        entry: InboxEntry,
        due: HeartbeatDue,
        session: SessionState,
        result: HeartbeatResult,
        said: str,
        now: float,
    ) -> NewJob:
        return NewJob(
            kind=HEARTBEAT_NEWS,
            key=entry.message_id,
            thread=due.to,
            owner=owner_of(due),
            due=now,
            body={
                "text": self._redact(said),
                "author": due.author.id,
                "name": due.author.name,
                "private": due.private,
                "foreign": result.foreign,
                "session": session.session_id,
            },
        )

    def _state(
        self,
        due: HeartbeatDue,
        result: HeartbeatResult,
        known: Mapping[str, Any],
        failures: int,
        now: float,
        *,
        sent: bool,
    ) -> dict[str, Any]:
        # One that a person has stopped has neither failed nor learnt anything.
        over = result.status not in ("failed", "stopped")
        # Tasks that are done are not looked at again until the document has others.
        is_done = result.status == "done" and bool(due.tasks)
        done = tasks_hash(due.tasks) if is_done else known.get("tasks_done", "")
        cycle = {
            "at": now,
            "status": result.status,
            "cycles": result.cycles,
            "sent": sent,
            "problem": self._redact(result.problem),
        }
        return {
            # Otherwise the report from before still holds.
            "summary": result.summary if over else known.get("summary", ""),
            "blocker": result.blocker if over else known.get("blocker", ""),
            "unasked": list(result.unasked) if over else known.get("unasked", []),
            "failures": failures,
            "tasks_done": done,
            "last": [*known.get("last", ()), cycle][-MOST_CYCLES_KEPT:],
        }
