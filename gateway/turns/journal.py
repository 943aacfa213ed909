"""Record one turn durably: the pipeline's `TurnJournal` on top of the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from adapters.channel import OutboundReply
from gateway.interactions.answer_matching import match_speech
from gateway.runtime.failpoints import Failpoints
from gateway.storage.codec import ASKED_IN, GATE, from_body, question_of, reply_of, resume_entry_once
from gateway.storage.ports import (
    Committed,
    InboxEntry,
    Interaction,
    Lease,
    NewRecord,
    Outcome,
    Record,
    RecordKind,
    Store,
    TurnCommit,
)
from gateway.storage.turn_questions import TurnQuestions, paused_for
from gateway.turns.rows import answer_body, bare_body, exchange_body, reply_row, user_body, words_of
from gateway.turns.run_codec import newest_run
from gateway.turns.run_log import StoreRunLog, UnwrittenRunLog
from gateway.turns.sessions import (
    UNSHOWN_FAILURES,
    SessionState,
    conversation_before,
    past_turn,
    session_record,
    unanswered_turn,
    words_on_record,
    write_summary,
)
from pipeline.domain.chat import ChatMessage
from pipeline.domain.clock import Clock
from pipeline.domain.conversation import Conversation, Summary
from pipeline.domain.ids import new_id
from pipeline.domain.messages import InboundMessage, Mode
from pipeline.domain.timeline import EntryRole, TimelineEntry
from pipeline.graph.run.records import RawRecord, RunUnreadable, head_of
from pipeline.runtime.ports import TurnAnswer, UserWords

OnRecorded = Callable[[TimelineEntry], None]
"""Called, in order, with every durable visible entry that no terminal event reports."""
OnReply = Callable[[int, OutboundReply], None]
"""Called with the outbox row's id and the reply, once they are durable."""


class StoreJournal:
    """Writes one turn's records under the lease of its thread."""

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
        on_asked: Callable[[], None],
        questions: TurnQuestions,
    ) -> None:
        self._store = store
        self._lease = lease
        self._entry = entry
        self._session = session
        self._clock = clock
        self._failpoints = failpoints
        self._on_recorded = on_recorded
        self._on_reply = on_reply
        self._on_asked = on_asked
        self._questions = questions
        self._asked_in = str(entry.body.get(ASKED_IN, entry.message_id))
        self._off_record = session.mode == "otr" and not self._is_resume
        """Nothing that is said may be kept. A turn that resumes an earlier run is still on the record."""
        log = UnwrittenRunLog if self._off_record else StoreRunLog
        self._log = log(store, lease, self._step_row, failpoints)
        author = str(entry.body.get("author", ""))
        self._arrivals = session.arrivals(author)
        session.note_arrival(author, entry.received_at)
        self._user_text: str | None = None
        self._transcript = ""
        self.attempt_counted = False
        """Whether this attempt is counted durably."""
        self.outcome: Outcome | None = None
        """Set once the turn is final."""

    @property
    def session_id(self) -> str:
        return self._session.session_id

    @property
    def run_id(self) -> str:
        """The id of the graph run; empty until its first step."""
        return self._log.run_id

    @property
    def mode(self) -> Mode:
        return self._session.mode

    @property
    def arrivals(self) -> tuple[float, ...]:
        return self._arrivals

    async def conversation(self) -> Conversation:
        if not self._is_resume:
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
        if self._off_record or (self._entry.attempts == 0 and not self._is_resume):
            return None
        records = await self._own_records("user")
        return words_of(records[-1].body) if records else None

    async def count_attempt(self) -> None:
        """Count this attempt durably, before work that could crash the process.

        For a typed message `record_user` counts it, in the same transaction as the words.
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
        self._user_text = words_on_record(user_body(words))
        # The speaker of live speech saw the words while speaking; the author of a note did not.
        self._transcript = words.text if "voice" in self._entry.body else ""
        spoken = words.speech is not None
        self._notify("user", words.text, entry_id, spoken=spoken, at=self._entry.received_at)

    async def _write_user(self, words: UserWords) -> int:
        records: list[NewRecord] = []
        if not self._session.stored:
            records.append(session_record(self.session_id, self._entry.message_id, self._clock.now()))
        # The time at which it was sent: its author saw that time while the message waited.
        records.append(replace(self._record("user", user_body(words)), at=self._entry.received_at))
        attempt = None if self.attempt_counted else self._entry.seq
        ids = await self._store.append(self._lease, records, attempt=attempt)
        self.attempt_counted = True
        self._session.stored = True
        return ids[-1]

    def run_log(self) -> StoreRunLog:
        return self._log

    async def recorded_run(self) -> tuple[RawRecord, ...]:
        if self._off_record or (self._entry.attempts == 0 and not self._is_resume):
            return ()
        records = newest_run(await self._own_records("step"))
        try:
            self._log.run_id = head_of(records)["run"] if records else ""
        except RunUnreadable:
            self._log.run_id = ""  # resuming the run reports the error
        return records

    async def commit(self, answer: TurnAnswer) -> int:
        kept = replace(answer, thoughts=(), exchange=()) if self._off_record else answer
        # A paused run needs a record: the record holds its words, and the next message answers them.
        gates = () if self._off_record else answer.gates
        at = self._clock.now()
        questions = tuple(question_of(gate, self._entry, self.session_id, at=at) for gate in gates)
        record = self._record("assistant", answer_body(kept) | paused_for(questions))
        committed = await self._finish(
            "answered", [record], role="assistant", text=answer.text, questions=questions
        )
        self._remember(committed.record_ids[-1], answer.text, answer.exchange)
        return committed.record_ids[-1]

    async def commit_failure(
        self,
        code: str,
        message: str,
        *,
        recoverable: bool,
        partial: str,
        exchange: Sequence[ChatMessage] = (),
    ) -> int:
        outcome: Outcome = "cancelled" if code == "stopped" else "error"
        records = [self._record("assistant", {"text": partial, "partial": True})] if partial else []
        body: dict[str, Any] = {"text": message, "code": code, "recoverable": recoverable}
        kept = () if self._off_record else exchange
        records.append(self._record("error", body | exchange_body(kept)))
        await self._look_up_words()
        committed = await self._finish(outcome, records, role="error", text=message, code=code)
        partial_id, entry_id = committed.record_ids[-2 if partial else -1], committed.record_ids[-1]
        if self._user_text is not None and code not in UNSHOWN_FAILURES:
            at = self._clock.now()
            turn = unanswered_turn(partial_id, self._user_text, exchange, partial, code, at)
            self._session.extend(turn)
        if partial:
            self._notify("assistant", partial, partial_id)
        return entry_id

    async def _look_up_words(self) -> None:
        """Load the words that an earlier attempt recorded, if this one ends before it needs them."""
        if self._user_text is not None or self._off_record or self._entry.attempts == 0:
            return
        own = self._entry.message_id
        records = await self._store.read_log(self._lease.thread, kinds=("user",), message_id=own)
        self._user_text = words_on_record(records[-1].body) if records else None

    async def try_consume_as_answer(self, words: str) -> bool:
        entry = self._entry
        message = from_body(entry.kind, entry.thread, entry.message_id, entry.received_at, entry.body)
        now = self._clock.now()
        questions = await self._store.pending_interactions(self._lease.thread, now=now)
        open_gates = [question for question in questions if question.kind == GATE]
        if not open_gates or not isinstance(message, InboundMessage):
            return False
        answer = match_speech(message, words, open_gates)
        if answer is None:
            return False
        asked = next(gate for gate in open_gates if gate.id == answer.interaction_id)
        status = await self._store.answer_interaction(
            answer.interaction_id,
            thread=self._lease.thread,
            user=answer.author.id,
            choice=answer.choice,
            now=now,
            entry=resume_entry_once(answer, asked),
        )
        if status != "accepted":
            return False
        await self._end_silently("answered")
        return True

    async def was_consumed_as_answer(self) -> bool:
        """Whether an earlier attempt took this voice note as an answer and was cut off before it ended the
        turn; if so, end the turn now. Transcribed again, the words would become a separate message."""
        if self._entry.attempts == 0:
            return False
        # The answer's entry came later, so it waits after this one; it has the id of the note.
        waiting = await self._store.open_entries(self._lease.thread)
        if not any(one.kind == "approval" and one.message_id == self._entry.message_id for one in waiting):
            return False
        await self._end_silently("answered")
        return True

    async def decline(self) -> None:
        # The author, the caption and the message it replies to are private too.
        await self._end_silently("declined", body=bare_body(self._entry))

    async def commit_notice(self, text: str, *, code: str = "") -> int:
        """End a session command with a line for the user; the entry's id. `code` names it for channels."""
        record = self._record("notice", {"text": text} | ({"code": code} if code else {}))
        committed = await self._finish("command", [record], role="notice", text=text, code=code)
        self._notify("notice", text, committed.record_ids[-1], code=code)
        return committed.record_ids[-1]

    async def commit_silently(self) -> None:
        """End a session command without a line for the user."""
        await self._end_silently("command")

    async def commit_new_session(self, text: str, *, mode: Mode = "normal") -> int:
        """Begin a new session; return the entry's id. Later messages of the thread see an empty history."""
        session_id = new_id("ses")
        at = self._clock.now()
        record = session_record(session_id, self._entry.message_id, at, text=text, mode=mode)
        code = "" if mode == "normal" else mode
        committed = await self._finish("command", [record], role="session", text=text, code=code)
        self._session.restart(session_id, mode=mode)
        self._notify("session", text, committed.record_ids[-1], code=code)
        return committed.record_ids[-1]

    async def _end_silently(self, outcome: Outcome, *, body: Mapping[str, Any] | None = None) -> None:
        """Finish the entry and write nothing else, except `body`, which replaces the entry's body."""
        self._failpoints.reach("turn-commit-before")
        if self._off_record:
            body = bare_body(self._entry)
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
        more = {} if self._off_record else self._questions.body()
        more |= {} if self._is_resume else self._log.embedded_records()
        records[-1] = replace(records[-1], body={**records[-1].body, **more})
        if self._is_resume:
            records = [*(self._step_row(body) for body in self._log.last_rows()), *records]
        now = self._clock.now()
        # A command's line is the gateway's own, so it is kept in a session off the record too.
        off_record = self._off_record and role not in ("notice", "session")
        # A question that confirms a transcript shows the words itself.
        transcript = "" if questions and self._transcript in text else self._transcript
        row = reply_row(
            self._entry,
            role=role,
            code=code,
            now=now,
            transcript="" if off_record else transcript,
            asks=bool(questions),
            off_record=off_record,
        )
        if not self._session.stored and role != "session":
            records.insert(0, session_record(self.session_id, self._entry.message_id, now))
        commit = TurnCommit(
            seq=self._entry.seq,
            outcome=outcome,
            records=tuple(records),
            outbox=(row,),
            interactions=questions,
            body=bare_body(self._entry) if off_record else None,
            forget_session=self.session_id if off_record else "",
            at=now,
        )
        self._failpoints.reach("turn-commit-before")
        committed = await self._store.commit_turn(self._lease, commit)
        self._failpoints.reach("turn-commit-after")
        if questions:
            self._on_asked()
        self._session.stored = True
        self.outcome = outcome
        reply = reply_of(row, self._lease.thread, entry_id=committed.record_ids[-1], text=text)
        self._on_reply(committed.outbox_ids[0], replace(reply, heard=transcript))
        return committed

    def _remember(self, record_id: int, answer: str, exchange: Sequence[ChatMessage] = ()) -> None:
        if self._user_text is not None:
            at = self._clock.now()
            self._session.extend(past_turn(record_id, self._user_text, exchange, answer, at))

    @property
    def _is_resume(self) -> bool:
        """Whether this turn answers a gate and resumes the run of an earlier message."""
        return self._asked_in != self._entry.message_id

    def _step_row(self, body: Mapping[str, Any]) -> NewRecord:
        """A row of the run, under the id of the message that began the run."""
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

    def _notify(
        self,
        role: EntryRole,
        text: str,
        entry_id: int,
        *,
        spoken: bool = False,
        code: str = "",
        at: float | None = None,
    ) -> None:
        self._on_recorded(
            TimelineEntry(
                entry_id=entry_id,
                message_id=self._entry.message_id,
                role=role,
                text=text,
                at=self._clock.now() if at is None else at,
                spoken=spoken,
                code=code,
            )
        )
