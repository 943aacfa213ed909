"""The turns of other processes that this process shows: in order, each event once, none of an older lease."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

from gateway.cluster.bus import Bus, EventStream
from gateway.cluster.signals import LiveTurn, TurnEvent
from pipeline.domain.bounded_dict import BoundedDict
from pipeline.domain.ids import ThreadKey

_log = logging.getLogger(__name__)

_MOST_THREADS: Final = 10_000
"""Threads whose newest fence is known."""


@dataclass(slots=True)
class _Shown:
    """The newest turn of a thread."""

    turn: LiveTurn
    stream: EventStream
    last: int = 0
    """The number of the event that was shown last."""


class ShownTurns:
    """Passes events that were carried to the reader of their account, over the bus of this process."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._newest = BoundedDict[ThreadKey, _Shown](_MOST_THREADS)

    async def show(self, signal: TurnEvent) -> None:
        """Show one event, unless it came before or its turn is older than one that was shown."""
        turn, event = signal.turn, signal.event
        shown = self._newest.get(turn.thread)
        if shown is None or shown.turn != turn:
            if shown is not None and shown.turn.fence > turn.fence:
                return
            shown = self._newest[turn.thread] = _Shown(turn, self._bus.events(turn))
        if signal.seq <= shown.last:
            return
        shown.last = signal.seq
        shown.stream.observe(event)
        try:
            await shown.stream.send_event(event)
        except Exception:  # noqa: BLE001 - a reader's failure is never the bus's
            _log.exception("an event was not shown", extra={"thread_key": turn.thread.encode()})
