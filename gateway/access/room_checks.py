"""Decide which messages of a room that are not addressed to the bot it considers, and limit their number."""

from __future__ import annotations

from pipeline.domain.bounded_dict import BoundedDict
from pipeline.domain.clock import Clock
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import InboundMessage
from pipeline.domain.rates import SlidingWindow

_HOUR_S = 3_600.0
_MOST_ROOMS = 2_000


def may_consider(message: InboundMessage) -> bool:
    """Whether the bot considers an answer: a new text of its author's own that was not addressed to it. Each
    check costs a call of the model, and a recording would have to be transcribed first."""
    if message.addressed or message.private or message.edited or message.forwarded:
        return False
    return message.voice is None and bool(message.text.strip())


class RoomChecks:
    """Counts the checks of each room in memory, all its topics together. The least recently active rooms are
    forgotten first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._checks = BoundedDict[tuple[str, str, str], SlidingWindow](_MOST_ROOMS)

    def admit(self, thread: ThreadKey, per_hour: int) -> bool:
        """Whether one more message of the room may be checked, of `per_hour` in any hour; it counts."""
        if per_hour <= 0:
            return False
        now, room = self._clock.monotonic(), (thread.channel, thread.account, thread.chat)
        checks = self._checks.get_or_add(room, lambda: SlidingWindow(per_hour, _HOUR_S))
        if checks.wait_s(now) > 0:
            return False
        checks.add(now)
        return True
