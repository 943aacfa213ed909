"""Titles, summaries and the ends of sessions as jobs: added by the commit of the turn that makes them due,
done between turns.

So a process that dies after an answer loses none. A conversation off the record gets no title and no summary.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from gateway.safety.crisis_records import CrisisRecords
from gateway.storage.crises import CrisisRecord
from gateway.storage.jobs import Job, NewJob
from gateway.storage.ports import InboxEntry, Lease
from gateway.turns.after_answer import forget_job, memory_job
from gateway.turns.session_ends import (
    ROTATION_TURNS,
    SESSION_END,
    SessionEnds,
    WhenIdle,
    about,
    rotation_job,
    session_memory_job,
)
from gateway.turns.sessions import SessionState
from gateway.turns.summarizer import QUIET_S, Summaries
from gateway.turns.titler import Titles
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author
from pipeline.domain.timeline import EntryRole
from pipeline.runtime.ports import TurnAnswer
from pipeline.runtime.scope import TurnScope, ignore_event

TITLE, SUMMARY = "title", "summary"
"""The kinds of the jobs. A job's key is the session's id."""


class AfterTurn:
    """Decides which jobs a turn adds, and does them. `added` is called after they are durable; `person_of`
    gives the key of the person that a user of an account is."""

    def __init__(
        self,
        *,
        titles: Titles | None,
        summaries: Summaries,
        ends: SessionEnds,
        when_idle: WhenIdle,
        person_of: Callable[[ThreadKey, str], str],
        added: Callable[[tuple[NewJob, ...]], None],
        crises: CrisisRecords,
        remembers: bool = False,
    ) -> None:
        """`remembers`: whether any agent has a memory."""
        self._remembers = remembers
        self._titles = titles
        self._summaries = summaries
        self._ends = ends
        self._when_idle = when_idle
        self._person_of = person_of
        self._added = added
        self._crises = crises

    def jobs(
        self,
        session: SessionState,
        entry: InboxEntry,
        said: int,
        at: float,
        crisis: CrisisRecord | None = None,
        *,
        answer: TurnAnswer | None = None,
        role: EntryRole = "assistant",
        gone: str = "",
        apart: bool = False,
    ) -> tuple[NewJob, ...]:
        """The jobs to add with the commit of the turn of `entry`, which adds `said` messages to `session`,
        has this `answer`, perhaps the record of a `crisis` response, and an entry of this `role`, and with
        which the turn of the message `gone` is taken out of the conversation. `apart`: the turn is no part of
        the conversation."""
        if role == "session":
            return self._ended(session, entry, at)
        forgets: tuple[NewJob, ...] = ()
        if gone and self._remembers and session.mode != "otr":
            forgets = (forget_job(session, entry, gone, at),)
        if not said:
            return forgets
        end = None if session.end_is_due else self._ends.job(session, entry.thread, at)
        ends: tuple[NewJob, ...] = ()
        if end is not None:
            ends = (replace(end, body=about(entry, session)),)
        if crisis is not None:
            ends += self._crises.notice(crisis, entry, session.answered_by)
        if session.mode == "otr" or apart:
            return ends
        titled = self._titles is not None and self._titles.wanted(session)
        wanted = [TITLE] if titled else []
        if not session.summary_is_due and self._summaries.wanted(session, said):
            wanted.append(SUMMARY)
        rest: tuple[NewJob, ...] = forgets
        if answer is not None and answer.continues:
            rest = (*rest, memory_job(session, entry, at))
            if answer.turn >= ROTATION_TURNS:
                rest = (*rest, rotation_job(session, entry, at))
        return (*ends, *rest, *(_job(kind, session, entry, at) for kind in wanted))

    def _ended(self, session: SessionState, entry: InboxEntry, at: float) -> tuple[NewJob, ...]:
        if not self._remembers or session.mode == "otr" or not session.stored:
            return ()
        return (session_memory_job(session.session_id, entry.thread, about(entry, session), at),)

    def added(self, session: SessionState, jobs: tuple[NewJob, ...], at: float) -> None:
        """Note that a turn of `session` ended at the Unix time `at`, and that its `jobs` are durable."""
        session.used_at = at
        if jobs:
            kinds = [job.kind for job in jobs]
            session.end_is_due = session.end_is_due or SESSION_END in kinds
            session.summary_is_due = session.summary_is_due or SUMMARY in kinds
            self._added(jobs)

    async def title(self, job: Job) -> float | None:
        """Give the job's session a title. Returns 0 if a message came first, None when it is done. Raises
        ModelError, StorageError, and KeyError or ValueError for a job that cannot be read."""
        return None if self._titles is None else await self._between_turns(job, self._titles.run)

    async def summarise(self, job: Job) -> float | None:
        """Summarise the beginning of the job's session. Returns and raises as `title`, but QUIET_S if a
        message came first: a long conversation in progress would else begin a summary after each turn."""
        again_s = await self._between_turns(job, self._summed_up)
        return None if again_s is None else QUIET_S

    async def _summed_up(self, lease: Lease, session: SessionState, scope: TurnScope) -> None:
        try:
            await self._summaries.run(lease, session, scope)
        except asyncio.CancelledError:
            raise  # the job stays, so that the next turn need not add it
        except Exception:
            session.summary_is_due = False
            raise
        session.summary_is_due = False

    async def _between_turns(
        self, job: Job, work: Callable[[Lease, SessionState, TurnScope], Awaitable[None]]
    ) -> float | None:
        scope = _scope(job, self._person_of)
        return None if await self._when_idle(job.thread, partial(_in_session, work, scope)) else 0.0


async def _in_session(
    work: Callable[[Lease, SessionState, TurnScope], Awaitable[None]],
    scope: TurnScope,
    lease: Lease,
    session: SessionState,
) -> None:
    """Do the work, unless the thread has a new session by now."""
    if session.session_id == scope.session_id:
        await work(lease, session, replace(scope, mode=session.mode))


def _job(kind: str, session: SessionState, entry: InboxEntry, at: float) -> NewJob:
    return NewJob(
        kind=kind,
        key=session.session_id,
        thread=entry.thread,
        due=at,
        body={
            "message_id": entry.message_id,
            "author": entry.item.author.id,
            "private": entry.item.private,
            "agent": session.answered_by,
        },
    )


def _scope(job: Job, person_of: Callable[[ThreadKey, str], str]) -> TurnScope:
    """The scope of work after a turn, on the budget of the turn's author."""
    thread, author = ThreadKey.decode(job.thread), Author(id=str(job.body["author"]))
    return TurnScope(
        session_id=job.key,
        message_id=str(job.body["message_id"]),
        thread=thread,
        author=author,
        person=person_of(thread, author.id),
        send=ignore_event,
        private=bool(job.body["private"]),
        agent=str(job.body["agent"]),
    )
