"""What a turn reaches of the watches and heartbeats: those of its author, and no other's."""

from __future__ import annotations

from typing import Final

from gateway.scheduling.watch_records import Watch
from gateway.scheduling.watches import WatchScheduler
from gateway.storage.heartbeats import state_name
from gateway.storage.ports import Store
from pipeline.domain.ids import heartbeat_thread
from pipeline.runtime.scope import TurnScope
from pipeline.runtime.watching import HeartbeatShown, WatchNote
from pipeline.watches.words import Intervals

_EVENTS_SHOWN: Final = 5


class HeartbeatPort:
    """Implements `Watches` and `Heartbeats`."""

    def __init__(self, scheduler: WatchScheduler, store: Store, *, every_s: float) -> None:
        self.intervals = Intervals(usual_s=every_s)
        self._scheduler = scheduler
        self._store = store

    async def add(self, note: WatchNote, scope: TurnScope, *, limit: int) -> bool:
        watch = Watch(
            id=note.id,
            condition=note.condition,
            text=note.text,
            thread=scope.thread,
            author=scope.author,
            private=scope.private,
            agent=scope.agent,
            zone=note.zone,
        )
        return await self._scheduler.add(watch, limit=limit)

    async def remove(self, watch_id: str, scope: TurnScope) -> bool:
        known = self._scheduler.of(scope.chat_owner)
        if any(one.id == watch_id and one.from_document for one in known):
            return False
        return await self._scheduler.remove(scope.chat_owner, watch_id)

    async def shown(self, scope: TurnScope) -> HeartbeatShown | None:
        owner, document = scope.chat_owner, self._scheduler.document
        settings = self._scheduler.settings(owner)
        watches = self._scheduler.of(owner)
        own = None if document is None or document.own.author.id != scope.author.id else document
        if own is not None and own.own.thread.account_key != scope.thread.account_key:
            own = None
        home = scope.thread if own is None else own.own.thread
        to = str(settings.get("to") or home.encode())
        kept = await self._store.states.read(owner, state_name(heartbeat_thread(home)))
        return HeartbeatShown(
            is_on=not settings.get("off"),
            has_document=own is not None,
            every_s=self.intervals.usual_s,
            to=to,
            watches=tuple(_note(one) for one in watches),
            problems=() if own is None else own.read.problems,
            last=() if kept is None else tuple(kept.body.get("last", ())),
            events=tuple(
                (one.at, one.name, one.reason) for one in self._scheduler.log.newest(owner)[-_EVENTS_SHOWN:]
            ),
        )

    async def turn(self, scope: TurnScope, *, on: bool) -> None:
        await self._scheduler.change_settings(scope.chat_owner, scope.thread, off=not on)

    async def send_here(self, scope: TurnScope) -> None:
        await self._scheduler.change_settings(scope.chat_owner, scope.thread, to=scope.thread.encode())


def _note(watch: Watch) -> WatchNote:
    return WatchNote(
        id=watch.id,
        condition=watch.condition,
        text=watch.text,
        zone=watch.zone,
        from_document=watch.from_document,
        failing=watch.failures > 0,
    )
