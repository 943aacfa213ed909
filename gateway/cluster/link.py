"""One server that carries signals, kept connected: a lost connection is made again, a hung one is noticed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable
from itertools import count
from typing import Final, NoReturn

from gateway.cluster.backlog import Backlog
from gateway.cluster.transport import Transport, TransportConnection, TransportError
from pipeline.domain.clock import Clock

_log = logging.getLogger(__name__)

PROBE_S: Final = 0.4
"""Seconds between two probes, each a text that a process sends to itself."""
MOST_UNANSWERED: Final = 3
"""Probes in a row without an arrival after which a connection counts as hung. A process that stood still
itself looks at one of them late, not at three."""
CONNECT_S: Final = 1.5
FIRST_WAIT_S: Final = 0.1
LONGEST_WAIT_S: Final = 2.0
"""Seconds between two attempts to connect: doubled each time, up to this."""
_BATCH = 256

OnText = Callable[[str], None]


class BusLink:
    """Sends to and receives from one transport. Texts that are posted while it is down wait, bounded."""

    def __init__(self, transport: Transport, *, own_topic: str, probe: str, clock: Clock) -> None:
        self._transport = transport
        self._own_topic = own_topic
        self._probe = probe
        self._clock = clock
        self._topics: dict[str, None] = {own_topic: None}
        self._backlog = Backlog[tuple[str, str] | str]()
        """Messages to send, and topics to listen to."""
        self._unanswered = 0
        self._numbers = count(1)
        self._round_trips: dict[str, asyncio.Future[None]] = {}
        """Resolved when the probe comes back, by its text."""
        self._up = False
        self._trouble = "is not connected yet"

    @property
    def up(self) -> bool:
        """Whether it is connected, and the last probes arrived."""
        return self._up

    @property
    def trouble(self) -> str:
        """Why it is down, one line; empty while it is up."""
        return "" if self._up else f"{self._transport.name} {self._trouble}"

    def listen(self, topic: str) -> None:
        """Receive the texts of `topic`, also after each reconnection."""
        if topic not in self._topics:
            self._topics[topic] = None
            if self._up:
                self._backlog.put(topic)

    def unlisten(self, topic: str) -> None:
        """Forget `topic` at the next connection; until then its texts are ignored by the bus."""
        self._topics.pop(topic, None)

    def post(self, topic: str, text: str, *, key: Hashable = None, token: bool = False) -> None:
        """Queue a text. See `Backlog.put` for `key` and `token`."""
        self._backlog.put((topic, text), key=key, token=token)

    def arrived(self, probe: str) -> None:
        """A probe of this process has come back."""
        self._unanswered = 0
        answered = self._round_trips.pop(probe, None)
        if answered is not None and not answered.done():
            answered.set_result(None)

    async def round_trip(self) -> None:
        """Send a probe, and wait until it is back, over a new connection if need be. What was sent to this
        process before has arrived then."""
        probe = f"{self._probe}{next(self._numbers)}"
        answered = self._round_trips[probe] = asyncio.get_running_loop().create_future()
        self._backlog.put((self._own_topic, probe), key=probe)
        try:
            await answered
        finally:
            self._round_trips.pop(probe, None)

    async def settled(self) -> None:
        """Wait until everything that was posted is with the server."""
        await self._backlog.settled()

    async def run(self, on_text: OnText) -> NoReturn:
        """Stay connected until cancelled, and pass each text that arrives to `on_text`."""
        wait_s = FIRST_WAIT_S
        while True:
            try:
                async with self._clock.timeout(CONNECT_S):
                    connection = await self._transport.connect()
            except (TransportError, TimeoutError) as error:
                self._note_down(str(error) or "does not answer")
            else:
                if await self._use(connection, on_text):
                    wait_s = FIRST_WAIT_S
            await self._clock.sleep(wait_s)
            wait_s = min(2 * wait_s, LONGEST_WAIT_S)

    async def _use(self, connection: TransportConnection, on_text: OnText) -> bool:
        """Use the connection until it is lost. Whether it ever worked."""
        worked = False
        try:
            async with self._clock.timeout(CONNECT_S):
                heard = set[str]()
                # Another topic may be added while the server confirms one.
                while missing := [topic for topic in self._topics if topic not in heard]:
                    await connection.listen(missing[0])
                    heard.add(missing[0])
            self._note_up()
            worked = True
            async with asyncio.TaskGroup() as group:
                for work in (self._receive(connection, on_text), self._send(connection), self._check()):
                    group.create_task(work)
        except* (TransportError, TimeoutError) as errors:
            self._note_down(str(errors.exceptions[0]) or "does not answer")
        finally:
            self._up = False
            await connection.close()
        return worked

    async def _receive(self, connection: TransportConnection, on_text: OnText) -> NoReturn:
        while True:
            on_text(await connection.receive())

    async def _send(self, connection: TransportConnection) -> NoReturn:
        while True:
            batch = await self._backlog.take(_BATCH)
            messages: list[tuple[str, str]] = []
            try:
                for item in batch:
                    if isinstance(item, str):
                        await connection.send(messages)
                        messages = []
                        await connection.listen(item)
                    else:
                        messages.append(item)
                await connection.send(messages)
            finally:
                self._backlog.done()

    async def _check(self) -> NoReturn:
        self._unanswered = 0
        while True:
            for probe in (self._probe, *self._round_trips):
                self._backlog.put((self._own_topic, probe), key=probe)
            await self._clock.sleep(PROBE_S)
            self._unanswered += 1
            if self._unanswered > MOST_UNANSWERED:
                raise TransportError("does not answer")

    def _note_up(self) -> None:
        self._up = True
        self._trouble = ""
        _log.info("signals are carried", extra={"by": self._transport.name})

    def _note_down(self, why: str) -> None:
        if self._up or self._trouble != why:
            _log.warning("signals are not carried", extra={"by": self._transport.name, "reason": why})
        self._up = False
        self._trouble = why
