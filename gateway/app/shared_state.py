"""Build what a process needs that shares its store with others: copies of books that are kept as new as the
store, what one process does for all, and the look at stopped turns. A process that is alone has none."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any

from gateway.app.cluster_watch import ClusterWatch
from gateway.app.components import Foundation
from gateway.cluster.shared_counts import SharedCounts
from gateway.ingress.room_history import ChannelRooms
from gateway.runtime.tasks import Supervisor
from gateway.scheduling.elected_work import ELECTED, ElectedWork
from gateway.scheduling.watches import WatchScheduler
from gateway.storage.copies import BookCopies
from gateway.storage.owners import SharedStore
from gateway.storage.shared_leases import SharedAccounts
from gateway.turns.stopped_turns import StoppedTurns
from gateway.turns.worker import Worker


class SharedState:
    """What this process does because others share its store."""

    def __init__(
        self, tasks: Supervisor, *, copies: BookCopies | None = None, elected: ElectedWork | None = None
    ) -> None:
        self.copies = copies
        self.elected = elected
        self.stopped: StoppedTurns | None = None
        self.watch: ClusterWatch | None = None
        self.counts: SharedCounts | None = None
        self._tasks = tasks

    def once(self, work: Callable[[], Coroutine[Any, Any, None]], *, name: str) -> None:
        """Run `work` in one of the processes that run turns: now, if this one is alone."""
        if self.elected is not None:
            self.elected.add(name, work)
        elif self.copies is None:
            self._tasks.spawn(work(), name=name)

    def start(self) -> None:
        """Begin, after all work was named by `once`."""
        if self.copies is not None:
            self._tasks.spawn(self.copies.run(), name="changed books")
        if self.elected is not None:
            self._tasks.spawn(self.elected.run(), name="elected work")
        if self.stopped is not None:
            self._tasks.spawn(self.stopped.run(), name="stopped turns")
        if self.watch is not None:
            self._tasks.spawn(self.watch.run(), name="processes")

    @property
    def usable(self) -> bool:
        """Whether this program understands the store, which a newer one may have changed."""
        return self.watch is None or self.watch.usable

    def lines(self) -> tuple[str, ...]:
        """Lines for /readyz on what is unusual among the processes."""
        trouble = "" if self.counts is None else self.counts.trouble
        limits = (f"limits degraded: {trouble} (each process counts for itself)",) if trouble else ()
        return (*limits, *(() if self.watch is None else self.watch.lines()))

    async def close(self) -> None:
        """Disconnect from the counts that are shared."""
        if self.counts is not None:
            await self.counts.close()

    def still_elected(self, base: Foundation) -> Callable[[], Awaitable[bool]] | None:
        """What asks the store whether this process is the elected one; None if it is alone."""
        store, owner = base.store, base.accounts.coordinator.owner
        if self.elected is None or not isinstance(store, SharedStore):
            return None
        owners = store.owners

        async def is_elected() -> bool:
            return ELECTED in await owners.still(owner, (ELECTED,))

        return is_elected


def build_shared_state(base: Foundation) -> SharedState:
    """Build it from the settings. Starts nothing."""
    tasks, store = base.tasks.background, base.store
    if not base.settings.cluster.shared or not isinstance(store, SharedStore):
        return SharedState(tasks)
    copies = BookCopies(store.changes, base.clock)
    copies.keep("identities", base.people.load)
    copies.keep("people", base.guests.reload_people)
    copies.keep("chats", partial(_reload_deleted, base))
    base.bus.on_changed(lambda book, _key: copies.note_changed(book))
    elected = None
    if base.settings.cluster.is_worker:
        elected = ElectedWork(base.accounts.coordinator, base.clock, tasks.spawn)
    state = SharedState(tasks, copies=copies, elected=elected)
    state.counts = base.counts
    if isinstance(base.accounts, SharedAccounts):
        state.watch = ClusterWatch(
            store.owners, store.formats, base.accounts.coordinator, base.clock, lambda: base.bus.room
        )
        base.telemetry.watch_cluster(state.watch.figures)
    return state


def keep_copies(
    base: Foundation, state: SharedState, watches: WatchScheduler, rooms: ChannelRooms, worker: Worker
) -> None:
    """Have the copies of the later parts kept new too, and the turns of `worker` stopped."""
    store = base.store
    if state.copies is None or not isinstance(store, SharedStore):
        return
    state.copies.keep("watches", watches.reload)
    state.copies.keep("erasures", partial(_forget_rooms, rooms))
    if base.settings.cluster.is_worker:
        state.stopped = StoppedTurns(store.changes, base.clock, worker.threads)


async def _forget_rooms(rooms: ChannelRooms) -> None:
    rooms.forget_all()


async def _reload_deleted(base: Foundation) -> None:
    for thread in await base.guests.reload_deleted():
        base.links.close(thread)
