"""Record one turn durably: the pipeline's `TurnJournal` on top of the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from gateway.runtime.crash_labels import CrashLabels
from gateway.storage import log_records
from gateway.storage.codec import question_of, reply_of
from gateway.storage.crises import CrisisRecord
from gateway.storage.ports import (
    Committed,
    InboxEntry,
    Interaction,
    Lease,
    NewRecord,
    OutboxState,
    Outcome,
    Store,
    TurnCommit,
)
from gateway.storage.turn_questions import TurnQuestions
from gateway.turns.kept_states import KeptStates
from gateway.turns.past_turns import UNSHOWN_FAILURES, past_turn, unanswered_turn
from gateway.turns.paused_runs import PausedRuns, TurnRun
from gateway.turns.recorded_turn import RecordedTurn
from gateway.turns.rows import body_left, reply_row, with_more
from gateway.turns.run_codec import CUT_OFF
from gateway.turns.run_log import StoreRunLog, UnwrittenRunLog
from gateway.turns.sessions import SessionState, record_in, session_record, write_summary
from gateway.turns.shown_records import show_record
from gateway.turns.spoken_answers import answer_question, has_answered_question
from gateway.turns.turn_hooks import OnRecorded, OnReply, TurnHooks
from gateway.turns.turn_messages import TurnMessages
from pipeline.domain.chat import ChatMessage
from pipeline.domain.clock import Clock
from pipeline.domain.conversation import Conversation, Summary
from pipeline.domain.files import StoredFile
from pipeline.domain.ids import new_id
from pipeline.domain.messages import InboundMessage, Mode
from pipeline.domain.timeline import EntryRole
from pipeline.graph.run.records import RawRecord
from pipeline.runtime.kept_state import StateChange
from pipeline.runtime.ports import TurnAnswer, UserWords


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
        crash_labels: CrashLabels,
        on_recorded: OnRecorded,
        on_reply: OnReply,
        first_state: Callable[..., OutboxState],
        hooks: TurnHooks,
        questions: TurnQuestions,
        person: Callable[[], str],
        paused: PausedRuns,
    ) -> None:
        self._store = store
        self.lease = lease
        self._entry = entry
        self._session = session
        self._clock = clock
        self._crash_labels = crash_labels
        self._show = partial(show_record, entry, clock, on_recorded)
        self._on_reply = on_reply
        self._first_state = first_state
        self._hooks = hooks
        self._questions = questions
        self.kept = KeptStates(store, session, person)
        self._recorded = RecordedTurn(store, lease.thread, entry, off_the_record=session.mode == "otr")
        self._is_resume, self._off_record = self._recorded.is_resume, self._recorded.off_record
        log = UnwrittenRunLog if self._off_record else StoreRunLog
        asked_in = self._recorded.asked_in
        self._log = log(store, lease, partial(record_in, session, clock, asked_in, "step"), crash_labels)
        self._run = TurnRun(paused, self._log, self._recorded.run, lease.thread, asked_in)
        self._paused = paused
        self._record = partial(record_in, session, clock, entry.message_id)
        self._arrivals: tuple[float, ...] = ()
        self._note_arrival(entry)
        self.messages = TurnMessages(
            store=store,
            lease=lease,
            entry=entry,
            session=session,
            clock=clock,
            log=self._log,
            recorded=self._recorded,
            on_recorded=on_recorded,
        )
        self.attempt_counted = entry.begun  # durably
        self.outcome: Outcome | None = None  # set once the turn is final
        self.added_entry = False  # to its thread
        self.menu: Interaction | None = None  # the values of a command that its line offers
        self.closed: tuple[Interaction, ...] = ()  # questions that a command has ended

    @property
    def session_id(self) -> str:
        return self._session.session_id

    @property
    def agent(self) -> str:
        """The agent that answers; empty for the default one."""
        return self.kept.agent

    @agent.setter
    def agent(self, name: str) -> None:
        self.kept.agent = name

    @property
    def run_id(self) -> str:
        """The id of the graph run; empty until its first step."""
        return self._log.run_id

    @property
    def mode(self) -> Mode:
        return self._session.mode

    @property
    def chosen_agent(self) -> str:
        """The agent that a person chose for the session; empty where none was chosen."""
        return self._session.agent

    @property
    def chosen_model(self) -> str:
        """The model that a person chose for the session; empty for the agent's own."""
        return self._session.model

    @property
    def arrivals(self) -> tuple[float, ...]:
        return self._arrivals

    async def conversation(self) -> Conversation:
        if self.messages.apart:
            return Conversation()
        if self._is_resume:
            return await self._recorded.conversation()
        known, replaced = await self._session.read(), self.messages.replaces
        return known.without(replaced) if replaced else known

    async def record_summary(self, summary: Summary) -> bool:
        at, own = self._clock.now(), self._entry.message_id
        return await write_summary(self._store, self.lease, self._session, summary, at=at, message_id=own)

    async def recorded_user(self, message: InboundMessage | None = None) -> UserWords | None:
        found = await (self._recorded.user() if message is None else self.messages.recorded(message))
        return None if found is None else found.words

    async def recorded_agent(self) -> str | None:
        """The agent that began the run, empty for the default one; None if nothing is on record."""
        if not self._recorded.may_exist:
            return None
        if (found := await self._recorded.user()) is not None and found.apart:
            self.messages.run_as(found.agent)
        return None if found is None else found.agent

    async def count_attempt(self) -> None:
        """Count this attempt durably, before work that could crash the process. For a typed message
        `record_user` counts it, in the same transaction as the words."""
        if not self.attempt_counted:
            await self._store.start_attempt(self.lease, self._entry.seq)
            self.attempt_counted = True

    async def record_user(self, words: UserWords, message: InboundMessage | None = None) -> None:
        if self._off_record:
            await self.count_attempt()
        attempt = None if self.attempt_counted else self._entry.seq
        counted = await self.messages.record(words, message, agent=self.agent, attempt=attempt)
        self.attempt_counted = self.attempt_counted or counted

    async def begin_again(self) -> None:
        await self._log.begin_again()

    def note_joined(self, entry: InboxEntry) -> None:
        """Note that the turn answers `entry` too, which is durable."""
        self.messages.joined.append(entry)
        self._note_arrival(entry)

    def _note_arrival(self, entry: InboxEntry) -> None:
        author = entry.item.author.id
        self._arrivals = self._session.arrivals(author)
        self._session.note_arrival(author, entry.received_at)

    def run_log(self) -> StoreRunLog:
        return self._log

    def cut_off(self) -> None:
        """Queue the records that wait for a commit: the turn is resumed later."""
        self._log.hand_over()

    async def end_run(self, message_id: str) -> None:
        """Record durably that the paused run of the message is over. Raises StorageError."""
        self._paused.take(self.lease.thread, message_id)
        over = record_in(self._session, self._clock, message_id, "step", CUT_OFF)
        await self._store.append(self.lease, [over])

    async def recorded_run(self) -> tuple[RawRecord, ...]:
        if not self._recorded.may_exist:
            self._log.earlier = ()
            return ()
        return await self._run.records()

    async def commit(self, answer: TurnAnswer) -> int:
        kept = replace(answer, thoughts=(), exchange=()) if self._off_record else answer
        # A paused run needs a record: the record holds its words, and the next message answers them.
        gates = () if self._off_record else answer.gates
        now = self._clock.now()
        questions = tuple(question_of(gate, self._entry, self.session_id, at=now) for gate in gates)
        record = self._record("assistant", log_records.answer_body(kept, [one.id for one in questions]))
        finish = partial(self._finish, "answered", [record], role="assistant", text=answer.text)
        ends = partial(finish, said=len(answer.exchange) + 2, state=answer.state, steered=answer.steered)
        otr = self._session.mode == "otr"
        crisis = self._hooks.crises.record(answer.crisis, self._entry, self.session_id, off_record=otr)
        committed = await ends(questions=questions, crisis=crisis, answer=answer)
        entry_id = committed.record_ids[-1]
        if (asked := await self.messages.asked(answer.steered)) is not None:
            turn = past_turn(entry_id, asked[0], answer.exchange, answer.text, now, asked[1])
            self._session.extend(turn)
        return entry_id

    async def commit_failure(
        self,
        code: str,
        message: str,
        *,
        recoverable: bool,
        partial: str,
        exchange: Sequence[ChatMessage] = (),
        steered: Sequence[str] = (),
    ) -> int:
        outcome: Outcome = "cancelled" if code == "stopped" else "error"
        records = [self._record("assistant", log_records.partial_body(partial))] if partial else []
        kept = () if self._off_record else exchange
        body = log_records.error_body(message, code, recoverable=recoverable, exchange=kept)
        records.append(self._record("error", body))
        asked = await self.messages.asked(steered)
        said = 0 if code in UNSHOWN_FAILURES else len(exchange) + 2
        committed = await self._finish(
            outcome, records, role="error", text=message, code=code, said=said, steered=steered
        )
        partial_id, entry_id = committed.record_ids[-2 if partial else -1], committed.record_ids[-1]
        if asked is not None and said:
            now = self._clock.now()
            ended = (partial_id, asked[0], exchange, partial, code, now)
            self._session.extend(unanswered_turn(*ended, asked[1]), answered=False)
        if partial:
            self._show("assistant", partial, partial_id)
        return entry_id

    async def try_consume_as_answer(self, words: str) -> bool:
        self.added_entry = await answer_question(self._store, self._entry, words, now=self._clock.now())
        if self.added_entry:
            await self.commit_silently("answered")
        return self.added_entry

    async def was_consumed_as_answer(self) -> bool:
        """Whether an earlier attempt took this message as an answer; if so, end the turn now."""
        was_answer = await has_answered_question(self._store, self._entry)
        if was_answer:
            await self.commit_silently("answered")
        return was_answer

    async def decline(self) -> None:
        # The author, the caption and the message it replies to are private too.
        await self.commit_silently("declined", forget=True)

    async def commit_notice(
        self,
        text: str,
        *,
        code: str = "",
        forgotten: bool = False,
        removed: str = "",
        menu: Interaction | None = None,
        model: str | None = None,
        files: tuple[StoredFile, ...] = (),
    ) -> int:
        """End a session command with a line for the user and `files`; the entry's id. `code` names it for
        channels. A `forgotten` line is erased from the store once it is sent. `removed` is the message whose
        turn is taken out of the conversation, `menu` offers values of the command, and `model` is chosen from
        here on."""
        self.menu, menus = menu, () if menu is None else (menu,)
        record = self._record("notice", log_records.notice_body(text, code, removed, files))
        records = [record] if model is None else [self._record("model", {"name": model}), record]
        finish = partial(self._finish, "command", records, role="notice", text=text, code=code)
        entry_id = (await finish(questions=menus, forgotten=forgotten)).record_ids[-1]
        if removed:
            self._session.remove(removed)
        if model is not None:
            self._session.model = model
        self._show("notice", text, entry_id, code=code, removed=removed)
        return entry_id

    async def commit_new_session(self, text: str, *, mode: Mode = "normal", agent: str | None = None) -> int:
        """Begin a new session, whose messages see an empty history; return the entry's id. `agent` is the
        agent that a person chose for it; None keeps the one that was chosen."""
        agent = self._session.agent if agent is None else agent
        session_id, message_id, at = new_id("ses"), self._entry.message_id, self._clock.now()
        code = "" if mode == "normal" else mode
        record = session_record(session_id, message_id, at, text=text, mode=mode, agent=agent)
        finish = partial(self._finish, "command", [record], role="session", text=text, code=code)
        entry_id = (await finish(mode=mode)).record_ids[-1]
        self._session.restart(session_id, mode=mode, agent=agent)
        self._show("session", text, entry_id, code=code)
        return entry_id

    async def commit_silently(self, outcome: Outcome = "command", *, forget: bool = False) -> None:
        """Finish the entry and write nothing else; with `forget`, its words go."""
        self._crash_labels.reach("turn-commit-before")
        forget = forget or self._off_record
        body, also = body_left(self._entry, forget=forget), self.messages.finished_too(forget=forget)
        commit = TurnCommit(seq=self._entry.seq, outcome=outcome, body=body, also=also, at=self._clock.now())
        await self._store.commit_turn(self.lease, commit)
        self._crash_labels.reach("turn-commit-after")
        self.outcome = outcome

    def _more(self, steered: Sequence[str]) -> dict[str, Any]:
        """What the record of the turn's outcome says in addition."""
        together = log_records.together_body([one.message_id for one in self.messages.joined], steered)
        more = {} if self._off_record else self._questions.body() | together
        return more if self._is_resume else more | self._log.embedded_records()

    async def _finish(
        self,
        outcome: Outcome,
        records: list[NewRecord],
        *,
        role: EntryRole,
        text: str,
        code: str = "",
        questions: tuple[Interaction, ...] = (),
        said: int = 0,
        state: StateChange | None = None,
        forgotten: bool = False,
        steered: Sequence[str] = (),
        crisis: CrisisRecord | None = None,
        answer: TurnAnswer | None = None,
        mode: Mode | None = None,
    ) -> Committed:
        # Raises if a step could not be written: the turn must fail before anything is visible.
        unwritten = await self._log.unwritten()
        records[-1] = with_more(records[-1], self._more(steered))
        if self._is_resume:
            records = [*self._log.last_rows(cut_off=role == "error"), *records]
        now = self._clock.now()
        # A command's line is the gateway's own, so it is kept in a session off the record too.
        off_record = self._off_record and role not in ("notice", "session")
        asks, hidden = any(one.options for one in questions), off_record or forgotten
        # A question that confirms a transcript shows the words itself.
        transcript = "" if questions and self.messages.transcript in text else self.messages.transcript
        shown = (self._entry, role, self.messages.reply_handle, code, now, "" if off_record else transcript)
        sends = log_records.files_of(records[-1])
        first_state = self._first_state(plain=not (hidden or sends))
        row = reply_row(*shown, asks=asks, off_record=hidden, state=first_state)
        if not self._session.stored and role != "session":
            records.insert(0, session_record(self.session_id, self._entry.message_id, now))
        gone = self.messages.replaces or str(records[-1].body.get("removed", ""))
        about, apart = (self._session, self._entry, said, now, crisis), self.messages.apart
        jobs = self._hooks.after.jobs(*about, answer=answer, role=role, gone=gone, apart=apart)
        commit = TurnCommit(
            seq=self._entry.seq,
            outcome=outcome,
            records=(*unwritten, *records),
            outbox=(row,),
            interactions=questions,
            body=body_left(self._entry, forget=off_record or (forgotten and self._off_record)),
            also=self.messages.finished_too(forget=off_record),
            sealed=hidden,
            mode=mode,
            forget_session=self.session_id if off_record else "",
            crisis=crisis,
            jobs=jobs,
            at=now,
        )
        self._crash_labels.reach("turn-commit-before")
        committed = await self.kept.commit(self.lease, commit, state)
        self._crash_labels.reach("turn-commit-after")
        self._hooks.after.added(self._session, commit.jobs, now)
        if questions:
            self._run.keep()
            self._hooks.on_asked(self.lease.thread)
        self._session.stored, self.outcome = True, outcome
        entry_id = committed.record_ids[-1]
        reply = reply_of(row, self.lease.thread, entry_id=entry_id, text=text, files=sends)
        reply = replace(reply, heard=transcript) if transcript else reply
        self._on_reply(committed.outbox_ids[0], reply, state=row.state)
        # After the reply is on its way, so that the page gets all of this and the end of the turn together.
        self._log.committed(committed.record_ids)
        return committed
