"""Messages that join a running turn: those of its burst, and those that steer its run or replace it.

A person on a phone sends three messages where a letter has one. Messages within a quiet window become one
turn. It starts at once, and begins again with all of them as long as it has shown and done nothing. A later
message is, by the settings, given to the run at its next tool boundary, queued, or it replaces the turn.

A message joins a turn durably before the turn works on it, and the turn's commit finishes it. So a restart
finds which messages a turn covers, and each belongs to exactly one turn.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import AbstractContextManager
from functools import cached_property

from gateway.runtime.crash_labels import CrashLabels
from gateway.runtime.tasks import Supervisor
from gateway.storage.codec import GATE
from gateway.storage.inbox_items import has_media, reply_handle_of
from gateway.storage.ports import InboxEntry, Store
from gateway.turns.bursts import MOST_JOINED, BurstRules, JoinChecks, may_join
from gateway.turns.journal import StoreJournal
from gateway.turns.turn_events import TurnEvents
from pipeline.domain.bounded_dict import BoundedDict
from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError
from pipeline.domain.events import MessageJoined
from pipeline.domain.frozen import dataclass
from pipeline.domain.messages import InboundMessage
from pipeline.graph.execution.control import Interruption
from pipeline.runtime.arrivals import TurnExtended
from pipeline.runtime.stopping import StopSignal

_log = logging.getLogger(__name__)

_MOST_WOKEN = 10_000
"""Threads remembered; a message of a forgotten one has a separate turn."""
_BEGAN = "the run had already begun to show or do something; the turn is resumed"


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstParts:
    """What the arrivals of all turns share."""

    rules: BurstRules
    store: Store
    clock: Clock
    crash_labels: CrashLabels
    supervisor: Supervisor
    withdraw: Callable[[str, Collection[str]], Awaitable[None]]
    """Takes back the questions of a thread's stopped turns, except those of the given messages."""


class _Extension(Interruption):
    """Interrupts a run with which a message joins. `over` is called when the run ends."""

    def __init__(self, over: Callable[[], None]) -> None:
        super().__init__(TurnExtended)
        self._over = over

    def __exit__(self, kind: type[BaseException] | None, error: object, traceback: object) -> None:
        self._over()
        super().__exit__(kind, error, traceback)


class TurnArrivals:
    """The `Arrivals` of one turn."""

    def __init__(
        self,
        parts: BurstParts,
        *,
        journal: StoreJournal,
        sender: TurnEvents,
        stop: StopSignal,
        checks: Callable[[], JoinChecks],
    ) -> None:
        self._rules = parts.rules
        self._store = parts.store
        self._lease = journal.messages.lease
        self._entry = entry = journal.messages.entry
        self._journal = journal
        self._sender = sender
        self._stop = stop
        self._make_checks = checks
        self._clock = parts.clock
        self._crash_labels = parts.crash_labels
        self._supervisor = parts.supervisor
        self._withdraw = parts.withdraw
        # An entry that comes from `accept` was alone in its thread; every later one wakes the turn.
        self.pending = not entry.begun
        self._resumes = False
        """An earlier attempt's run is on record: nothing can be merged into it."""
        self._given: set[int] = set()
        """The seqs of the messages that `merged` has returned."""
        self._awaits_words = has_media(entry.item)
        """Until now a voice note of the turn was being transcribed, or files were being fetched: what came
        meanwhile belongs to it."""
        self._extension: Interruption | None = None
        """Set while the run is in progress."""
        self._look: asyncio.Task[None] | None = None
        self._look_again = False

    @cached_property
    def _checks(self) -> JoinChecks:
        """Made when a second message arrives: most turns have none."""
        return self._make_checks()

    @property
    def covered(self) -> Sequence[InboundMessage]:
        """See `Arrivals.covered`."""
        joined = (entry.item for entry in self._journal.messages.joined)
        return tuple(item for item in joined if isinstance(item, InboundMessage))

    async def load(self) -> None:
        """Read which messages have joined the turn in earlier attempts. Raises StorageError."""
        if self._entry.attempts == 0:
            return
        joined = [one for one in await self._waiting() if one.joined == self._entry.seq]
        for one in joined:
            self._journal.note_joined(one)
        self._resumes = bool(await self._journal.recorded_run())
        if any(one.cancelled for one in joined):
            self._stop.request()

    def wake(self) -> None:
        """Note that a message may have arrived."""
        self.pending = True
        if self._extension is not None:
            self._look_soon()

    # -- before the run ----------------------------------------------------------------------------

    async def merged(self) -> Sequence[InboundMessage]:
        """See `Arrivals.merged`."""
        self.pending = False
        awaited, self._awaits_words = self._awaits_words, False
        joining: list[InboxEntry] = []
        if self._may_merge:
            newest = self._journal.messages.entries[-1]
            for one in await self._candidates():
                if not (awaited or self._is_close(newest, one)):
                    break
                joining.append(one)
                newest = one
            await self._join(joining, steered=False)
        found = [
            one
            for one in self._journal.messages.joined
            if one.seq not in self._given and not (one.steered and self._resumes)
        ]
        self._given |= {one.seq for one in found}
        self._awaits_words = any(has_media(one.item) for one in found)
        return [one.item for one in found if isinstance(one.item, InboundMessage)]

    @property
    def _may_merge(self) -> bool:
        return self._rules.merge and self._untouched and not self._stop.requested

    @property
    def _untouched(self) -> bool:
        is_fresh = not (self._resumes or self._sender.has_shown)
        return is_fresh and not self._journal.run_log().left_trace

    def _is_close(self, before: InboxEntry, one: InboxEntry) -> bool:
        """Whether a message came within the window after the one before it. A message that replaces a running
        turn may come at any time before the turn has shown anything."""
        if self._rules.while_busy == "interrupt":
            return True
        # In whole milliseconds: Unix times as floats have no exact differences.
        return round((one.received_at - before.received_at) * 1000) <= round(self._rules.window_s * 1000)

    # -- during the run ----------------------------------------------------------------------------

    def running(self) -> AbstractContextManager[None]:
        """See `Arrivals.running`."""
        self._extension = _Extension(self._run_over)
        if self.pending:
            self._look_soon()
        return self._extension.guard()

    def _run_over(self) -> None:
        self._extension = None

    def require_untouched(self) -> None:
        """See `Arrivals.require_untouched`."""
        if not self._untouched:
            raise StorageError(_BEGAN)

    async def steered(self, known: Collection[str]) -> Sequence[InboundMessage]:
        """See `Arrivals.steered`."""
        if self.pending and self._rules.while_busy == "steer" and not self._stop.requested:
            self.pending = False
            joining = []
            for one in await self._candidates():
                item = one.item
                # A voice note has to be transcribed, and files be fetched: in a separate turn.
                if not isinstance(item, InboundMessage) or has_media(item) or item.unusable:
                    break
                if not await self._checks.passes_gate(item):
                    break
                joining.append(one)
            await self._join(joining, steered=True)
        joined = [one for one in self._journal.messages.joined if one.steered]
        items = [one.item for one in joined if one.seq not in self._given and one.message_id not in known]
        return [item for item in items if isinstance(item, InboundMessage)]

    def _look_soon(self) -> None:
        if self._look is None or self._look.done():
            self._look = self._supervisor.spawn(self._look_for_more(), name="burst")
        else:
            self._look_again = True

    async def _look_for_more(self) -> None:
        """Begin the run again, or stop it, for a message that has arrived."""
        self._look_again = True
        while self._look_again:
            self._look_again = False
            try:
                candidates = await self._candidates()
            except StorageError as error:
                _log.info("a message waits for its own turn", extra={"reason": str(error)})
                return
            extension = self._extension
            if not candidates or extension is None:
                continue
            newest = self._journal.messages.entries[-1]
            if self._may_merge and self._is_close(newest, candidates[0]):
                extension.request()
            elif self._rules.while_busy == "interrupt":
                await self._interrupt()

    async def _interrupt(self) -> None:
        """Stop the turn; the next one sees its messages and what it has shown and done."""
        self._stop.request()
        own = {entry.seq for entry in self._journal.messages.entries}
        others = [one.message_id for one in await self._waiting() if one.seq not in own]
        await self._withdraw(self._entry.thread, others)

    # -- the queue ---------------------------------------------------------------------------------

    async def _waiting(self) -> Sequence[InboxEntry]:
        return await self._store.open_entries(self._entry.thread)

    async def _candidates(self) -> Sequence[InboxEntry]:
        """The waiting messages that may join the turn: those directly behind its own, in order."""
        joined = {entry.seq for entry in self._journal.messages.joined}
        room = MOST_JOINED - len(joined)
        found: list[InboxEntry] = []
        if room <= 0 or self._entry.cancelled or not await self._is_free(self._entry):
            return found
        at: list[float] = []
        for one in await self._waiting():
            if one.seq <= self._entry.seq or one.seq in joined:
                continue
            if len(found) == room or not may_join(self._entry, one) or not await self._is_free(one, at):
                break
            found.append(one)
            at.append(one.received_at)
        return found

    async def _is_free(self, entry: InboxEntry, at: Sequence[float] = ()) -> bool:
        """Whether nothing outside of the message's own fields keeps it in a separate turn. `at`: when the
        messages before it arrived that join with it."""
        item = entry.item
        if not isinstance(item, InboundMessage) or self._checks.is_withdrawn(entry.seq):
            return False
        if not self._checks.same_agent(item) or self._checks.refused(item, at):
            return False
        if entry is self._entry or item.voice is None:
            return True
        # Its words may answer a question that is open.
        open_now = await self._store.pending_interactions(entry.thread, now=self._clock.now())
        return not any(question.kind == GATE for question in open_now)

    async def _join(self, joining: Sequence[InboxEntry], *, steered: bool) -> None:
        """Make it durable that the turn answers the messages, and show that."""
        if not joining:
            return
        # Only a turn whose attempt is counted has messages that joined it.
        await self._journal.count_attempt()
        self._crash_labels.reach("join-before")
        seqs = [one.seq for one in joining]
        await self._store.bursts.join(self._lease, self._entry.seq, seqs, steered=steered)
        self._crash_labels.reach("join-after")
        for one in joining:
            self._journal.note_joined(_as_joined(one, self._entry.seq, steered=steered))
        for one in joining:
            await self._sender.send_event(
                MessageJoined(
                    session_id=self._journal.session_id,
                    message_id=self._entry.message_id,
                    joined=one.message_id,
                    reply_handle=reply_handle_of(one.item),
                )
            )


class Bursts:
    """The running turns whose later messages are noted, by thread."""

    def __init__(self, parts: BurstParts) -> None:
        self._parts = parts
        self._running: dict[str, tuple[TurnArrivals, StoreJournal]] = {}
        self._woken = BoundedDict[str, None](_MOST_WOKEN)
        """Threads in which a message may have arrived before their next turn began."""

    def begin(
        self,
        journal: StoreJournal,
        *,
        sender: TurnEvents,
        stop: StopSignal,
        checks: Callable[[], JoinChecks],
    ) -> TurnArrivals:
        """The arrivals of the turn of `journal`, which runs from now on."""
        thread = journal.messages.entry.thread
        arrivals = TurnArrivals(self._parts, journal=journal, sender=sender, stop=stop, checks=checks)
        if thread in self._woken:
            self._woken.pop(thread)
            arrivals.wake()
        self._running[thread] = arrivals, journal
        return arrivals

    def end(self, thread: str) -> None:
        """Note that the turn of the thread is over."""
        self._running.pop(thread, None)

    def wake(self, thread: str) -> None:
        """Note that a message may have arrived in the thread."""
        found = self._running.get(thread)
        if found is not None:
            found[0].wake()
        else:
            self._woken[thread] = None

    def answered_with(self, entry: InboxEntry) -> Sequence[InboxEntry]:
        """The entries that the turn of `entry`, which is running, answers."""
        found = self._running.get(entry.thread)
        return (entry,) if found is None else found[1].messages.entries

    def covers(self, thread: str, seq: int) -> bool:
        """Whether the running turn of the thread answers the entry."""
        found = self._running.get(thread)
        return found is not None and found[1].messages.covers(seq)


def _as_joined(entry: InboxEntry, turn: int, *, steered: bool) -> InboxEntry:
    """The entry as the store has it after it joined."""
    return InboxEntry(
        seq=entry.seq,
        thread=entry.thread,
        message_id=entry.message_id,
        kind=entry.kind,
        body=entry.body,
        item=entry.item,
        received_at=entry.received_at,
        attempts=entry.attempts,
        excused=entry.excused,
        cancelled=entry.cancelled,
        joined=turn,
        steered=steered,
    )
