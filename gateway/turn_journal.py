"""The durable side of one turn: the pipeline's `TurnJournal` on top of the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from adapters.channel import OutboundReply
from gateway.answering import spoken
from gateway.failpoints import Failpoints
from gateway.run_log import StoreRunLog, UnwrittenRunLog
from gateway.run_rows import newest_run
from gateway.sessions import SessionState, conversation_before, past_turn, session_record, write_summary
from gateway.storage.ports import (
    Committed,
    InboxEntry,
    Interaction,
    Lease,
    NewOutboxRow,
    NewRecord,
    Outcome,
    Record,
    RecordKind,
    Store,
    TurnCommit,
)
from gateway.wire import ASKED_IN, GATE, from_body, going_on_once, question_of, reply_of
from pipeline.domain.chat import ChatMessage, message_to_plain
from pipeline.domain.clock import Clock
from pipeline.domain.conversation import Conversation, Summary
from pipeline.domain.events import thought_to_plain
from pipeline.domain.ids import new_id
from pipeline.domain.messages import InboundMessage, Mode, Speech
from pipeline.domain.timeline import EntryRole, TimelineEntry
from pipeline.graph.records import RawRecord, RunUnreadable, head_of
from pipeline.runtime.ports import TurnAnswer, UserWords

OnRecorded = Callable[[TimelineEntry], None]
"""Told of every visible entry that no terminal event tells of, once it is durable, in order."""
OnReply = Callable[[int, OutboundReply], None]
"""Given the outbox row's id and the reply, once they are durable."""


class StoreJournal:
    """One turn's records, written under the lease of its thread."""

    def __init__(
        self,
        *,
        store: Store,
        lease: Lease,
        entry: InboxEntry,
        session: SessionState,
        clock: Clock,
        failpoints: Failpoints,
        on_recorded: OnRecorded,
        on_reply: OnReply,
    ) -> None:
        self._store = store
        self._lease = lease
        self._entry = entry
        self._session = session
        self._clock = clock
        self._failpoints = failpoints
        self._on_recorded = on_recorded
        self._on_reply = on_reply
        self._asked_in = str(entry.body.get(ASKED_IN, entry.message_id))
        self._off_record = session.mode == "otr" and not self._goes_on
        """Nothing that is said may be kept. What goes on with a run from before is still on the record."""
        log = UnwrittenRunLog if self._off_record else StoreRunLog
        self._log = log(store, lease, self._step_row, failpoints)
        author = str(entry.body.get("author", ""))
        self._arrivals = session.arrivals(author)
        session.note_arrival(author, entry.received_at)
        self._user_text: str | None = None
        self._heard = ""
        self.attempt_counted = False
        """Whether this attempt is durable."""
        self.outcome: Outcome | None = None
        """Set once the turn is final."""

    @property
    def session_id(self) -> str:
        return self._session.session_id

    @property
    def run_id(self) -> str:
        """The graph run, once it has made a step."""
        return self._log.run_id

    @property
    def mode(self) -> Mode:
        return self._session.mode

    @property
    def arrivals(self) -> tuple[float, ...]:
        return self._arrivals

    async def conversation(self) -> Conversation:
        if not self._goes_on:
            return self._session.conversation
        asked = await self._own_records("user")
        return await conversation_before(self._store, asked[-1]) if asked else Conversation()

    async def record_summary(self, summary: Summary) -> bool:
        return await write_summary(
            self._store,
            self._lease,
            self._session,
            summary,
            at=self._clock.now(),
            message_id=self._entry.message_id,
        )

    async def recorded_user(self) -> UserWords | None:
        if self._off_record or (self._entry.attempts == 0 and not self._goes_on):
            return None
        records = await self._own_records("user")
        if not records:
            return None
        body = records[-1].body
        return UserWords(text=str(body["text"]), speech=_speech(body))

    async def count_attempt(self) -> None:
        """Count this attempt durably, before work that could take the process down.

        A typed message's is counted by `record_user`, in the same transaction as its words.
        """
        if not self.attempt_counted:
            await self._store.start_attempt(self._lease, self._entry.seq)
            self.attempt_counted = True

    async def record_user(self, words: UserWords) -> None:
        entry_id = 0
        if self._off_record:
            await self.count_attempt()
        else:
            entry_id = await self._write_user(words)
        self._user_text = words.text
        # Live speech was seen by its speaker while it was spoken; a note's words were not.
        self._heard = words.text if "voice" in self._entry.body else ""
        self._tell("user", words.text, entry_id, spoken=words.speech is not None)

    async def _write_user(self, words: UserWords) -> int:
        records: list[NewRecord] = []
        if not self._session.stored:
            records.append(session_record(self.session_id, self._entry.message_id, self._clock.now()))
        body: dict[str, Any] = {"text": words.text}
        if words.speech is not None:
            body |= {"spoken": True, "language": words.speech.language, "confidence": words.speech.confidence}
        records.append(self._record("user", body))
        attempt = None if self.attempt_counted else self._entry.seq
        ids = await self._store.append(self._lease, records, attempt=attempt)
        self.attempt_counted = True
        self._session.stored = True
        return ids[-1]

    def run_log(self) -> StoreRunLog:
        return self._log

    async def recorded_run(self) -> tuple[RawRecord, ...]:
        if self._off_record or (self._entry.attempts == 0 and not self._goes_on):
            return ()
        records = newest_run(await self._own_records("step"))
        try:
            self._log.run_id = head_of(records)["run"] if records else ""
        except RunUnreadable:
            self._log.run_id = ""  # whoever resumes it finds out
        return records

    async def commit(self, answer: TurnAnswer) -> int:
        body: dict[str, Any] = {"text": answer.text}
        if answer.thoughts and not self._off_record:
            body["thoughts"] = [thought_to_plain(thought) for thought in answer.thoughts]
        if answer.exchange and not self._off_record:
            body["exchange"] = [message_to_plain(message) for message in answer.exchange]
        record = self._record("assistant", body)
        # A paused run would have to be on record: its words stand there, and the next message answers them.
        gates = () if self._off_record else answer.gates
        at = self._clock.now()
        questions = tuple(question_of(gate, self._entry, self.session_id, at=at) for gate in gates)
        committed = await self._finish(
            "answered", [record], role="assistant", text=answer.text, questions=questions
        )
        self._remember(committed.record_ids[-1], answer.text, answer.exchange)
        return committed.record_ids[-1]

    async def commit_failure(self, code: str, message: str, *, recoverable: bool, partial: str) -> int:
        outcome: Outcome = "cancelled" if code == "stopped" else "error"
        records = [self._record("assistant", {"text": partial, "partial": True})] if partial else []
        records.append(self._record("error", {"text": message, "code": code, "recoverable": recoverable}))
        committed = await self._finish(outcome, records, role="error", text=message, code=code)
        if partial:
            self._remember(committed.record_ids[-2], partial)
            self._tell("assistant", partial, committed.record_ids[-2])
        return committed.record_ids[-1]

    async def take_as_answer(self, words: str) -> bool:
        message = from_body(
            self._entry.kind,
            self._entry.thread,
            self._entry.message_id,
            self._entry.received_at,
            self._entry.body,
        )
        now = self._clock.now()
        questions = await self._store.pending_interactions(self._lease.thread, now=now)
        open_gates = [question for question in questions if question.kind == GATE]
        if not open_gates or not isinstance(message, InboundMessage):
            return False
        answer = spoken(message, words, open_gates)
        if answer is None:
            return False
        asked = next(gate for gate in open_gates if gate.id == answer.interaction_id)
        status = await self._store.answer_interaction(
            answer.interaction_id,
            thread=self._lease.thread,
            user=answer.author.id,
            choice=answer.choice,
            now=now,
            entry=going_on_once(answer, asked),
        )
        if status != "accepted":
            return False
        await self._end_silently("answered")
        return True

    async def ended_as_answer(self) -> bool:
        """Whether an earlier attempt took this voice note as an answer, and was cut off before it said so.
        The turn is over then. Heard again, its words would be a message of their own."""
        if self._entry.attempts == 0:
            return False
        # The answer's entry came later and so waits behind this one; it has the note's own id.
        waiting = await self._store.open_entries(self._lease.thread)
        if not any(one.kind == "approval" and one.message_id == self._entry.message_id for one in waiting):
            return False
        await self._end_silently("answered")
        return True

    async def decline(self) -> None:
        # Whom it came from, its caption and what it replies to are nobody's business either.
        await self._end_silently("declined", body=self._bare_body())

    async def commit_notice(self, text: str) -> int:
        """End a session command with a line for the user; the entry's id."""
        self._off_record = False  # the line is ours, and stays
        record = self._record("notice", {"text": text})
        committed = await self._finish("command", [record], role="notice", text=text)
        self._tell("notice", text, committed.record_ids[-1])
        return committed.record_ids[-1]

    async def commit_silently(self) -> None:
        """End a session command of which nothing is said."""
        await self._end_silently("command")

    async def commit_new_session(self, text: str, *, mode: Mode = "normal") -> int:
        """Begin a new session; the entry's id. Later messages of the thread see an empty history."""
        self._off_record = False  # as a notice
        session_id = new_id("ses")
        at = self._clock.now()
        record = session_record(session_id, self._entry.message_id, at, text=text, mode=mode)
        code = "" if mode == "normal" else mode
        committed = await self._finish("command", [record], role="session", text=text, code=code)
        self._session.restart(session_id, mode=mode)
        self._tell("session", text, committed.record_ids[-1], code=code)
        return committed.record_ids[-1]

    async def _end_silently(self, outcome: Outcome, *, body: Mapping[str, Any] | None = None) -> None:
        """Finish the entry and write nothing else, but `body` in place of its own."""
        self._failpoints.reach("turn-commit-before")
        if self._off_record:
            body = self._bare_body()
        commit = TurnCommit(seq=self._entry.seq, outcome=outcome, body=body, at=self._clock.now())
        await self._store.commit_turn(self._lease, commit)
        self._failpoints.reach("turn-commit-after")
        self.outcome = outcome

    async def _finish(
        self,
        outcome: Outcome,
        records: list[NewRecord],
        *,
        role: EntryRole,
        text: str,
        code: str = "",
        questions: tuple[Interaction, ...] = (),
    ) -> Committed:
        # A step that could not be written must fail the turn before anything is visible.
        await self._log.barrier()
        if self._goes_on:
            records = [*(self._step_row(body) for body in self._log.last_rows()), *records]
        else:
            records[-1] = replace(records[-1], body={**records[-1].body, **self._log.riding()})
        now = self._clock.now()
        key = self._entry.message_id  # one reply a message, and its id is like no other's in any chat
        # A question whether it was heard rightly shows the words itself.
        heard = "" if questions and self._heard in text else self._heard
        kept = "" if self._off_record else heard
        row = self._reply_row(key, role, code, now, heard=kept, asks=bool(questions))
        if not self._session.stored and role != "session":
            records.insert(0, session_record(self.session_id, self._entry.message_id, now))
        commit = TurnCommit(
            seq=self._entry.seq,
            outcome=outcome,
            records=tuple(records),
            outbox=(row,),
            interactions=questions,
            body=self._bare_body() if self._off_record else None,
            forget_session=self.session_id if self._off_record else "",
            at=now,
        )
        self._failpoints.reach("turn-commit-before")
        committed = await self._store.commit_turn(self._lease, commit)
        self._failpoints.reach("turn-commit-after")
        self._session.stored = True
        self.outcome = outcome
        reply = reply_of(row, self._lease.thread, entry_id=committed.record_ids[-1], text=text)
        self._on_reply(committed.outbox_ids[0], replace(reply, heard=heard))
        return committed

    def _bare_body(self) -> dict[str, Any]:
        """What stays of the entry: that it was there."""
        return {"native_id": self._entry.body.get("native_id", "")}

    def _reply_row(
        self, key: str, role: EntryRole, code: str, now: float, *, heard: str, asks: bool
    ) -> NewOutboxRow:
        """The row of the reply: beside its words, what a posting channel needs to show it. Empty values
        are left out."""
        body = {
            "role": role,
            "code": code or None,
            "heard": heard or None,
            "reply_handle": self._entry.body.get("reply_handle"),
            "private": self._entry.body.get("private"),
            "asks": asks or None,
            "author": self._entry.body.get("author"),
            "off_record": self._off_record or None,
        }
        shown = {name: value for name, value in body.items() if value is not None}
        return NewOutboxRow(key=key, message_id=self._entry.message_id, body=shown, created_at=now)

    def _remember(self, record_id: int, answer: str, exchange: Sequence[ChatMessage] = ()) -> None:
        if self._user_text is None:
            return
        at = self._clock.now()
        self._session.extend(past_turn(record_id, self._user_text, exchange, answer, at))

    @property
    def _goes_on(self) -> bool:
        """Whether this turn answers a gate, and goes on with the run of an earlier message."""
        return self._asked_in != self._entry.message_id

    def _step_row(self, body: Mapping[str, Any]) -> NewRecord:
        """A row of the run, which belongs to the message that began it."""
        return replace(self._record("step", body), message_id=self._asked_in)

    def _record(self, kind: RecordKind, body: Mapping[str, Any]) -> NewRecord:
        return NewRecord(
            kind=kind,
            session_id=self.session_id,
            message_id=self._entry.message_id,
            body=body,
            at=self._clock.now(),
        )

    async def _own_records(self, kind: RecordKind) -> tuple[Record, ...]:
        return await self._store.read_log(self._lease.thread, kinds=(kind,), message_id=self._asked_in)

    def _tell(
        self, role: EntryRole, text: str, entry_id: int, *, spoken: bool = False, code: str = ""
    ) -> None:
        self._on_recorded(
            TimelineEntry(
                entry_id=entry_id,
                message_id=self._entry.message_id,
                role=role,
                text=text,
                at=self._clock.now(),
                spoken=spoken,
                code=code,
            )
        )


def _speech(body: Mapping[str, Any]) -> Speech | None:
    """How the words of a user's record were spoken. Older records do not say how well they were heard."""
    if not body.get("spoken"):
        return None
    return Speech(language=str(body.get("language", "")), confidence=float(body.get("confidence", 1.0)))
