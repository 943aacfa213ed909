"""Run one inbox entry from claim to commit: a message through the pipeline, or a session command. /retry and
/run run as messages."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from adapters.channel import OutboundReply
from gateway.agents.agent_book import Agent, AgentBook
from gateway.channels.timeline import asked_again, closed
from gateway.interactions.message_edits import Edits
from gateway.runtime.crash_labels import CrashLabels
from gateway.runtime.logs import bind_ids, unbind_ids
from gateway.runtime.metrics import Telemetry
from gateway.storage.crash_counts import Deaths
from gateway.storage.inbox_items import UnreadableItem, has_media
from gateway.storage.ports import InboxEntry, Lease, OutboxState, Store
from gateway.storage.turn_questions import TurnQuestions
from gateway.turns.arrivals import Bursts, TurnArrivals
from gateway.turns.bursts import answering, checks_for
from gateway.turns.cached_sessions import CachedSessions
from gateway.turns.commands import SessionCommands, WithoutModel, as_message, needs_slot, shortcut_of
from gateway.turns.heartbeat_turns import HeartbeatTurns
from gateway.turns.journal import StoreJournal
from gateway.turns.last_turn import note_edit
from gateway.turns.paused_runs import PausedRuns
from gateway.turns.run_log import TOGETHER_S
from gateway.turns.sessions import SessionState, read_again
from gateway.turns.set_aside import GAVE_UP, NO_AGENT, UNREADABLE, set_aside
from gateway.turns.slots import ConcurrencySlot, Quarantine, Slots
from gateway.turns.stop_words import NONE_STOPPED, Stopped
from gateway.turns.turn_events import TurnEvents, live_turn
from gateway.turns.turn_hooks import TurnHooks
from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError, TurnFailed
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import (
    ApprovalReply,
    HeartbeatDue,
    HeartbeatNews,
    InboundMessage,
    SessionCommand,
)
from pipeline.domain.ports import EventSender
from pipeline.runtime.before_message import Shortcut
from pipeline.runtime.stopping import StopSignal, TurnHalted

_log = logging.getLogger(__name__)

_MAX_VOICE_NOTES = 64
"""Messages with media in progress at once; the transcriber itself refuses what exceeds its capacity."""
_MAX_UNWRITTEN = 200
"""Conversations off the record kept in memory; the least recently used one is dropped first."""


class TurnRunner:
    """Runs single entries. Keeps in memory what the store does not: conversations off the record, the number
    of messages that a stop cancelled, and which messages were edited or deleted before their turn."""

    def __init__(
        self,
        *,
        store: Store,
        agents: AgentBook,
        commands: SessionCommands,
        heartbeats: HeartbeatTurns,
        hooks: TurnHooks,
        clock: Clock,
        telemetry: Telemetry,
        crash_labels: CrashLabels,
        bursts: Bursts,
        max_attempts: int,
        max_running: int,
    ) -> None:
        self.sessions = CachedSessions(store, hooks.cache)
        self.bursts = bursts
        """The messages that join running turns."""
        self._store, self._paused = store, PausedRuns(store)
        self._agents = agents
        self._hooks = hooks
        self._commands = commands
        self._heartbeats = heartbeats
        self._clock = clock
        self._telemetry = telemetry
        self._crash_labels = crash_labels
        self._max_attempts = max_attempts
        self._stopped: dict[int, Stopped] = {}
        self._withdrawn: set[int] = set()
        self._edits = Edits(store, clock)
        self._unwritten: dict[str, SessionState] = {}
        # A turn's time limit starts when it gets a slot: waiting in a backlog is not a failure.
        self.slots = Slots(max_running)
        self._quarantine = Quarantine(clock, max_attempts)
        # A note that waits for the transcriber needs no model slot, but its audio is in memory.
        self._voice_notes = asyncio.Semaphore(_MAX_VOICE_NOTES)

    async def open_session(self, thread: str, lease: Lease | None = None) -> SessionState:
        """The conversation that the thread's next turn continues; `lease` as in `CachedSessions.open`."""
        session = await self.sessions.open(thread, lease)
        unwritten = self._unwritten.pop(thread, None)
        if unwritten is not None and unwritten.session_id == session.session_id:
            session = self._unwritten[thread] = unwritten
        return session

    def _keep_unwritten(self, thread: str, session: SessionState) -> None:
        """Keep a conversation off the record in memory, also while no runner has its thread."""
        self._unwritten.pop(thread, None)
        if session.mode == "otr":
            self._unwritten[thread] = session
            while len(self._unwritten) > _MAX_UNWRITTEN:
                del self._unwritten[next(iter(self._unwritten))]

    def note_deaths(self, deaths: Mapping[int, Deaths], *, more: bool = False) -> None:
        """Load how often the process died, by seq: before any turn, or `more` of entries about to run."""
        (self._quarantine.hold_more if more else self._quarantine.hold)(deaths)

    def note_stop(self, seq: int, cancelled: int, heartbeats: int) -> None:
        """Record that the /stop with inbox number `seq` cancelled that many entries and heartbeats."""
        if (stopped := Stopped(messages=cancelled, heartbeats=heartbeats)) != NONE_STOPPED:
            self._stopped[seq] = stopped

    def note_withdrawn(self, seq: int) -> None:
        """Record that the message of the entry was edited or deleted."""
        self._withdrawn.add(seq)

    def room(self, starting: int) -> int:
        """How many could start now beside so many, without waiting for a slot or for one in quarantine."""
        return max(0, self.slots.free - starting) if self._quarantine.is_empty else 0

    def _starts_at_once(self, note_slots: asyncio.Semaphore | None) -> bool:
        return self._quarantine.is_empty and not (note_slots or self.slots).locked()

    # Not async: its frame would be in the stack of every turn.
    def run(
        self, lease: Lease, entry: InboxEntry, session: SessionState, stop: StopSignal
    ) -> Coroutine[Any, Any, bool]:
        """Finish `entry` with an answer or an error. It stays open on FenceLost, StorageError and TurnHalted.
        Returns whether the turn has added an entry to its thread."""
        own = self._heartbeats.run if isinstance(entry.item, HeartbeatDue) else self._turn
        return own(lease, entry, session, stop)

    async def _turn(self, lease: Lease, entry: InboxEntry, session: SessionState, stop: StopSignal) -> bool:
        thread = ThreadKey.decode(entry.thread)
        questions = TurnQuestions()
        stream = self._hooks.events(live_turn(lease, thread, entry))
        stages = self._telemetry.stages(entry.received_at)
        sender = TurnEvents(stream, questions=questions, stages=stages)
        journal = StoreJournal(
            store=self._store,
            lease=lease,
            entry=entry,
            session=session,
            clock=self._clock,
            crash_labels=self._crash_labels,
            on_recorded=lambda recorded: self._hooks.on_recorded(thread, recorded),
            on_reply=partial(self._on_reply, entry),
            first_state=partial(self._hooks.first_state, thread, entry),
            hooks=self._hooks,
            questions=questions,
            person=partial(self._hooks.person_of, thread, entry.item.author.id),
            paused=self._paused,
        )
        arrivals = self._arrivals(session, journal, sender, stop)
        bind_ids(thread_key=entry.thread, message_id=entry.message_id)
        slot = self._slot(lease, entry, journal)
        note_slots = self._voice_notes if has_media(entry.item) else None  # media are fetched before a slot
        starts = self._starts_at_once(note_slots)
        if not starts:  # a turn that waits is not at work
            await self._discount(lease, entry, journal)
        held = needs_slot(entry) and await self._admitted(entry, note_slots, slot, stop, waits=not starts)
        self._telemetry.turn_started(entry.received_at)
        started = self._clock.monotonic()
        try:
            if arrivals is not None:
                await arrivals.load()
            item = await self._to_process(entry, journal, sender)
            if isinstance(item, SessionCommand):
                await self._run_command(item, session, journal, sender, stop, slot)
                item = None
            agent = None if item is None else await self._agent_of(item, session, journal)
            if item is not None and agent is None:
                await set_aside(entry, journal, sender, "no_agent", NO_AGENT)
            elif item is not None and agent is not None:
                journal.agent = self._agents.recorded_name(agent)
                if not journal.messages.apart:
                    agent, session.answered_by = agent.using(session.model), journal.agent
                taken, shortcut = journal.messages.taken, await self._shortcut(agent, item, entry, journal)
                await agent.pipeline.process(
                    item, sender, journal, stop, slot, shortcut=shortcut, arrivals=arrivals, taken=taken
                )
                await self._discard_media(journal)
        except (asyncio.CancelledError, StorageError, TurnHalted):
            journal.cut_off()
            await self._discount(lease, entry, journal)
            raise
        else:
            self._read_after(entry, session)
            return journal.added_entry
        finally:
            self.bursts.end(entry.thread)
            self._keep_unwritten(entry.thread, session)
            self._withdrawn -= {one.seq for one in journal.messages.entries}
            self._quarantine.end(entry.seq)
            slot.leave()
            if held and note_slots is not None:
                note_slots.release()
            self._note_end(journal, self._clock.monotonic() - started)
            unbind_ids()

    def _read_after(self, entry: InboxEntry, session: SessionState) -> None:
        """Have the conversation read again where another turn has written to it: a heartbeat's."""
        if isinstance(entry.item, HeartbeatNews) and session.mode == "normal":
            read_again(self._store, entry.thread, session)

    def _slot(self, lease: Lease, entry: InboxEntry, journal: StoreJournal) -> ConcurrencySlot:
        return ConcurrencySlot(
            self.slots,
            leave_quarantine=lambda: self._quarantine.end(entry.seq),
            discount=lambda: self._discount(lease, entry, journal),
            count=journal.count_attempt,
        )

    def _arrivals(
        self, session: SessionState, journal: StoreJournal, sender: TurnEvents, stop: StopSignal
    ) -> TurnArrivals | None:
        """What joins the turn; None for an entry that is no message."""
        entry = journal.messages.entry
        if not isinstance(entry.item, InboundMessage):
            return None
        checks = partial(
            checks_for, self._agents, lambda: journal.agent, entry, session, journal.arrivals, self._withdrawn
        )
        return self.bursts.begin(journal, sender=sender, stop=stop, checks=checks)

    async def _discard_media(self, journal: StoreJournal) -> None:
        for item in (one.item for one in journal.messages.entries):
            if isinstance(item, InboundMessage) and has_media(item):
                await self._hooks.discard_media(item)

    def _note_end(self, journal: StoreJournal, seconds: float) -> None:
        outcome = journal.outcome or "interrupted"
        self._telemetry.turn_ended(outcome)
        ended = {"outcome": outcome, "run_id": journal.run_id, "seconds": round(seconds * 1e3) / 1e3}
        _log.info("turn ended", extra=ended)

    async def _shortcut(
        self, agent: Agent, item: InboundMessage | ApprovalReply, entry: InboxEntry, journal: StoreJournal
    ) -> Shortcut | None:
        """What the item leads to in place of a run, once a gate has passed it. Counts the attempt before a
        gate works on it."""
        if agent.pipeline.has_short_steps:
            journal.run_log().together_s = TOGETHER_S
        if not isinstance(item, InboundMessage):
            return None
        if agent.pipeline.gate is not None:
            await journal.count_attempt()
        if journal.messages.apart or not (item.refusal or item.text.lstrip().startswith("/")):
            return None
        return shortcut_of(item, cancelled=entry.cancelled)

    async def _agent_of(
        self, item: InboundMessage | ApprovalReply, session: SessionState, journal: StoreJournal
    ) -> Agent | None:
        """The agent that answers: for a run on record the one that began it, None if there is none of its
        name any more."""
        recorded, named = await journal.recorded_agent(), journal.messages.run_by
        if named is not None:
            return self._agents.find(named)
        if recorded is None and isinstance(item, InboundMessage) and item.workflow:
            recorded = item.workflow
        if recorded is not None:
            return await self._agents.load(recorded)
        return answering(self._agents, item, session)

    def _on_reply(self, entry: InboxEntry, row_id: int, reply: OutboundReply, *, state: OutboxState) -> None:
        for one in self.bursts.answered_with(entry):
            self._edits.answered(one, row_id)
        self._hooks.on_reply(row_id, reply, state=state)

    async def _admitted(
        self,
        entry: InboxEntry,
        note_slots: asyncio.Semaphore | None,
        slot: ConcurrencySlot,
        stop: StopSignal,
        *,
        waits: bool,
    ) -> bool:
        """Wait until the entry may run and has a slot: at the transcriber for a note, else at the model.
        False when the message is stopped before that."""
        if note_slots is None and not waits and not stop.requested:
            await slot.enter()  # at once
            return True
        try:
            with stop.guard():
                await self._quarantine.admit(entry.seq)
                await (slot.enter() if note_slots is None else note_slots.acquire())
        except TurnFailed:
            return False
        return True

    async def _discount(self, lease: Lease, entry: InboxEntry, journal: StoreJournal) -> None:
        """Take back an attempt that a shutdown or the store cut off: it is not the message's fault. Only
        attempts that are still open at the next start, because the process died, count toward the limit."""
        if not journal.attempt_counted or journal.outcome is not None:
            return
        try:
            await self._store.discount_attempt(lease, entry.seq)
            journal.attempt_counted = False
        except StorageError as error:
            _log.info("the attempt stays counted", extra={"reason": str(error)})

    async def _to_process(
        self, entry: InboxEntry, journal: StoreJournal, sender: EventSender
    ) -> InboundMessage | ApprovalReply | SessionCommand | None:
        """The item for the pipeline, or a command that is to be run; None if the turn is over without it."""
        item, deaths = entry.item, self._quarantine.deaths_alone(entry.seq)
        unasked = isinstance(item, InboundMessage) and (item.if_named or item.may_decline)
        is_withdrawn = entry.seq in self._withdrawn and entry.attempts == 0
        if is_withdrawn or (deaths >= self._max_attempts and unasked):
            # No answer is visible yet, so the turn says nothing and keeps nothing.
            await journal.decline()
            return None
        if deaths >= self._max_attempts:
            await set_aside(entry, journal, sender, "gave_up", GAVE_UP.format(deaths=deaths))
            return None
        if isinstance(item, UnreadableItem):
            _log.error("inbox entry set aside: %s", item.reason)
            await set_aside(entry, journal, sender, "unreadable", UNREADABLE)
            return None
        if isinstance(item, WithoutModel):
            await journal.count_attempt()
            if isinstance(item, SessionCommand) and needs_slot(entry):
                message = await self._commands.message_of(item, journal)
                await self._show_questions(journal, sender)
                return message
            # A stop always works.
            if isinstance(item, SessionCommand) and item.name != "stop" and self._agents.sees(item.argument):
                return item
            await self._command_run(item, journal, sender, stopped=self._stopped.pop(entry.seq, NONE_STOPPED))
            return None
        if isinstance(item, ApprovalReply):
            if item.expired:
                await journal.count_attempt()
            await self._edits.take_over(journal.lease, entry)
            return item
        message = None if isinstance(item, HeartbeatDue) else await self._message(item, journal)
        if message is not None:
            await self._edits.take_over(journal.lease, entry)
        return message

    async def _message(self, message: InboundMessage, journal: StoreJournal) -> InboundMessage | None:
        """The message in the session's mode; None if it answered a question."""
        if journal.mode != "normal":
            message = replace(message, mode=journal.mode)
        if message.edited:
            await note_edit(message, journal)
        if has_media(message) or message.answers or message.may_decline:
            if await journal.was_consumed_as_answer():
                if has_media(message):
                    await self._hooks.discard_media(message)
                return None
            await journal.count_attempt()
        return message

    async def _run_command(
        self,
        command: SessionCommand,
        session: SessionState,
        journal: StoreJournal,
        sender: EventSender,
        stop: StopSignal,
        slot: ConcurrencySlot,
    ) -> None:
        """Run a command, unless the gate of the agent that answers there takes it over."""
        agent = answering(self._agents, command, session)
        journal.agent = self._agents.recorded_name(agent)
        over = agent.pipeline.sees(command.argument) and await agent.pipeline.process(
            as_message(command, journal.mode), sender, journal, stop, slot, shortcut=Shortcut()
        )
        if not over:
            await self._command_run(command, journal, sender)

    async def _command_run(
        self, item: WithoutModel, journal: StoreJournal, sender: EventSender, stopped: Stopped = NONE_STOPPED
    ) -> None:
        """Run an item that needs no model, and show what its line offers and what it has closed."""
        await self._commands.run(item, journal, stopped=stopped)
        await self._show_questions(journal, sender)

    async def _show_questions(self, journal: StoreJournal, sender: EventSender) -> None:
        if journal.menu is not None:
            await sender.send_event(asked_again(journal.menu, self._clock.now()))
        for question in journal.closed:
            await sender.send_event(closed(question))
