"""The workers that a process knows, by what they announce each second, and the choice of one for a thread.

A hint as every signal is: what a wrong choice leaves is found in the store.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Final

from pipeline.domain.bounded_dict import BoundedDict
from pipeline.domain.frozen import dataclass

ANNOUNCE_S: Final = 1.0
"""Seconds between two announcements of a worker."""
GONE_S: Final = 3.5
"""Seconds without one after which a worker is chosen no more."""
_MOST_OWNERS = 50_000
_MOST_SENT = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    room: int
    at: float
    """Monotonic time of its announcement."""


class KnownWorkers:
    """The other workers, by the names that their processes have on the bus."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._known: dict[str, _Known] = {}
        self._ran: BoundedDict[str, str] = BoundedDict(_MOST_OWNERS)
        """Who ran the last turn of a thread, as far as its events were seen here."""
        self._sent: BoundedDict[str, tuple[str, float]] = BoundedDict(_MOST_SENT)
        """The worker that each thread was last sent to, and when."""

    @property
    def number(self) -> int:
        """How many have announced themselves lately."""
        return len(self._known)

    @property
    def room(self) -> int:
        """How many more turns they could run together."""
        return sum(max(0, one.room) for one in self._known.values())

    def heard(self, name: str, room: int) -> None:
        """Note that a worker could run `room` more turns."""
        self._known[name] = _Known(room=room, at=self._monotonic())

    def forget_silent(self) -> tuple[str, ...]:
        """Forget the workers that announce nothing more; the threads that were sent to them since they were
        last heard."""
        since = self._monotonic() - GONE_S
        silent = {name: one.at for name, one in self._known.items() if one.at < since}
        left = [
            thread
            for thread, (name, at) in self._sent.items()
            if name in silent and at >= silent[name] - ANNOUNCE_S
        ]
        for name in silent:
            del self._known[name]
        for thread in left:
            del self._sent[thread]
        return tuple(left)

    def ran(self, thread: str, name: str) -> None:
        """Note which worker runs a turn of the thread; empty for this process."""
        if name:
            self._ran[thread] = name
        else:
            self._ran.pop(thread, None)

    def owner(self, thread: str) -> str:
        """Who ran the thread's last turn; empty if that was not seen."""
        return self._ran.get(thread) or ""

    def knows(self, name: str) -> bool:
        """Whether the worker announces itself."""
        return name in self._known

    def choose(self, thread: str) -> str:
        """The worker with room to which the thread belongs by its hash; empty if none has any."""
        open_to = [name for name, one in self._known.items() if one.room > 0]
        return max(open_to, key=lambda name: _weight(name, thread), default="")

    def with_less_to_do(self, room: int) -> str:
        """The worker that has the most room, if one that is full with `room` has less; else empty. A negative
        room says how many turns wait."""
        if room > 0:
            return ""
        name, most = max(
            ((name, one.room) for name, one in self._known.items()),
            key=lambda one: one[1],
            default=("", room),
        )
        return name if most > room else ""

    def sent(self, thread: str, name: str) -> None:
        """Note that the thread was sent to the worker, which has less room until it says otherwise."""
        known = self._known[name]
        self._known[name] = _Known(room=known.room - 1, at=known.at)
        self._sent[thread] = name, self._monotonic()


def _weight(name: str, thread: str) -> bytes:
    """Rendezvous hashing: a worker that comes or goes moves only the threads that belong to it."""
    return blake2b(f"{name} {thread}".encode(), digest_size=8).digest()
