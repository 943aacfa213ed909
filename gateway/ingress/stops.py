"""Stop turns as soon as the command is accepted: a stop must not wait in the queue behind what it stops."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Protocol

from gateway.cluster.signals import Control, StopBefore, Withdrawn
from gateway.runtime.crash_labels import CrashLabels
from gateway.storage.inbox_items import asked_in, run_handle, run_to_stop
from gateway.storage.ports import Accepted, InboxEntry, Store
from gateway.storage.running_heartbeats import cancel_heartbeats
from pipeline.domain.clock import Clock
from pipeline.domain.messages import SessionCommand


class WaitingTurns(Protocol):
    """The turns that wait for a person's answer during their run."""

    async def withdraw(self, thread: str, but: Collection[str] = ()) -> None:
        """Close the questions of the stopped turns in `thread`, except those of the messages `but`."""
        ...


class Stops:
    """Carries out /stop and `/runs stop`. `end_questions` closes the questions and waits of paused runs in a
    thread that were recorded until a time, and returns their number. `control` sends a signal to the process
    that runs a thread's turns."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        waiting: WaitingTurns | None,
        end_questions: Callable[[str, float], Awaitable[int]],
        control: Callable[[Control], None],
        crash_labels: CrashLabels,
    ) -> None:
        self._store = store
        self._clock = clock
        self._waiting = waiting
        self._end_questions = end_questions
        self._control = control
        self._crash_labels = crash_labels

    async def stop(self, command: SessionCommand, accepted: Accepted) -> None:
        """Stop what came before the accepted command: everything, or the run that it names. Does nothing for
        another command. Raises StorageError."""
        if command.name == "stop":
            await self._all(command, accepted)
        elif handle := run_to_stop(command):
            await self._run(command, handle, accepted.seq)

    async def _all(self, command: SessionCommand, accepted: Accepted) -> None:
        thread, seq = command.thread.encode(), accepted.seq
        cancelled = await self._store.cancel_open(thread, up_to_seq=seq - 1)
        # Runs that wait for a person or a time end too; a redelivered stop may find those that came after it.
        before = command.received_at if accepted.duplicate else self._clock.now()
        cancelled += await self._end_questions(thread, before)
        # A heartbeat runs in another thread, and this chat gets its result.
        heartbeats = await cancel_heartbeats(self._store, thread, seq)
        if heartbeats:
            self._crash_labels.reach("heartbeat-cancelled")
        stopped = len(heartbeats)
        self._control(StopBefore(thread=thread, seq=seq, cancelled=cancelled, heartbeats=stopped))
        for one in heartbeats:
            self._control(Withdrawn(thread=one.thread, seq=one.seq, silent=False))
        if self._waiting is not None:
            # A redelivered stop may find turns that came after it.
            later = [entry.message_id for entry in await self._store.open_entries(thread) if entry.seq > seq]
            await self._waiting.withdraw(thread, later)

    async def _run(self, command: SessionCommand, handle: str, seq: int) -> None:
        """Stop the turns of one run, which are in progress or wait. In a room only the person who began it
        may; a paused run is ended by the command's own turn."""
        thread = command.thread.encode()
        found: list[InboxEntry] = []
        others: list[str] = []
        for entry in await self._store.open_entries(thread):
            mine = command.private or entry.item.author.id == command.author.id
            meant = entry.seq < seq and mine and run_handle(asked_in(entry.item)) == handle
            if meant:
                found.append(entry)
            else:
                others.append(entry.message_id)
        for entry in found:
            await self._store.cancel_open(thread, from_seq=entry.seq, up_to_seq=entry.seq)
            self._control(Withdrawn(thread=thread, seq=entry.seq, silent=False))
        if found and self._waiting is not None:
            await self._waiting.withdraw(thread, others)
