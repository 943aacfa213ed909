"""Send each wake to one worker: to the one that has the thread, else to one that a hash chooses.

A worker that has no room passes it on, and leaves a thread that only lingers with it to one that has less to
do. Where no worker is known, or an older release has the thread, all of them are woken. What goes astray is
claimed from the store.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, Literal, NoReturn, Protocol

from gateway.cluster.bus import WakeTaker
from gateway.cluster.codec import signal_to_json
from gateway.cluster.signals import Here, Wake
from gateway.cluster.workers import ANNOUNCE_S, KnownWorkers
from pipeline.domain.clock import Clock

WAKE: Final = "wake"
WORKERS: Final = "workers"
MOST_ASKED: Final = 3
"""Workers that a wake is passed on to, until one has room."""

SentTo = Literal["here", "owner", "chosen", "all", "none"]


class Publish(Protocol):
    """Sends a text to those that listen to a topic; a waiting one with the same key is replaced."""

    def __call__(self, topic: str, text: str, *, key: object) -> None: ...


class ProcessWakes:
    """The wakes that one process sends and gets."""

    def __init__(
        self,
        clock: Clock,
        *,
        publish: Publish,
        wake_here: Callable[[str], None],
        count: Callable[[SentTo], None] = lambda _to: None,
    ) -> None:
        """`wake_here` calls what is subscribed to all wakes in this process; `count` is called with whom each
        wake was sent to."""
        self.known = KnownWorkers(clock.monotonic)
        self._clock = clock
        self._publish = publish
        self._wake_here = wake_here
        self._count = count
        self._taker: WakeTaker | None = None

    def take_by(self, taker: WakeTaker | None) -> None:
        """Let `taker` be one of the workers; None ends that."""
        self._taker = taker

    @property
    def workers(self) -> int:
        """How many workers are known, with this process."""
        return self.known.number + (self._taker is not None)

    @property
    def room(self) -> int | None:
        """How many more turns all workers could run; None where none is known."""
        if not self.workers:
            return None
        return self.known.room + (0 if self._taker is None else max(0, self._taker.room))

    def wake(self, thread: str) -> None:
        """Have one worker look at the thread."""
        owner = self.known.owner(thread)
        if self.known.knows(owner):
            self._send(thread, owner, "owner")
        elif owner:
            self._wake_all(thread)
        elif self._take(thread):
            self._count("here")
        elif chosen := self.known.choose(thread):
            self._send(thread, chosen, "chosen")
        elif self.workers:
            # All are full: the first that has room again claims it.
            self._count("none")
        else:
            self._wake_all(thread)

    def wake_holder(self, thread: str) -> None:
        """Have the worker look at the thread that has it, whichever that is."""
        self._publish(WAKE, signal_to_json(Wake(thread=thread, held=True)), key=(WAKE, "held", thread))

    def arrived(self, wake: Wake) -> None:
        """Handle a wake of another process."""
        if wake.held:
            if self._taker is not None:
                self._taker.look(wake.thread)
        elif not wake.asked:
            self._wake_here(wake.thread)
        elif not self._take(wake.thread):
            chosen = self.known.choose(wake.thread) if wake.asked < MOST_ASKED else ""
            if chosen:
                self._send(wake.thread, chosen, "chosen", asked=wake.asked + 1)

    async def run(self) -> NoReturn:
        """Announce this worker, and wake all for what was sent to one that is gone, until cancelled."""
        while True:
            if self._taker is not None:
                self._publish(WORKERS, signal_to_json(Here(room=self._taker.room)), key=WORKERS)
            for thread in self.known.forget_silent():
                self._wake_all(thread)
            await self._clock.sleep(ANNOUNCE_S)

    def _take(self, thread: str) -> bool:
        """Have this process look at the thread; False if it does not. A thread that only lingers here is left
        to a worker that has less to do."""
        taker = self._taker
        if taker is None:
            return False
        other = self.known.with_less_to_do(taker.room)
        if other and taker.hand_over(thread, partial(self._pass_on, thread, other)):
            return True
        return taker.take(thread)

    def _pass_on(self, thread: str, name: str) -> None:
        """Send the thread, which this process has left, to a worker."""
        if self.known.knows(name):
            self.known.ran(thread, name)
            self._send(thread, name, "chosen")
        else:
            self._wake_all(thread)

    def _send(self, thread: str, name: str, to: SentTo, *, asked: int = 1) -> None:
        self._count(to)
        self.known.sent(thread, name)
        topic = topic_of(name)
        self._publish(topic, signal_to_json(Wake(thread=thread, asked=asked)), key=(topic, thread))

    def _wake_all(self, thread: str) -> None:
        self._count("all")
        self._wake_here(thread)
        self._publish(WAKE, signal_to_json(Wake(thread=thread)), key=(WAKE, thread))


def topic_of(name: str) -> str:
    """The topic of the wakes for one process, by its name on the bus."""
    return f"{WAKE}:{name}"
