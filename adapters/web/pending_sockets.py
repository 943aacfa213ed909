"""Limit the sockets without an accepted `hello`: their number, their input, and which one is closed first.

Every client can open one. So they are few and small, and a silent one never keeps out an active client.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

EndedBy = Literal["time", "size", "crowd"]


class Opening:
    """One socket before its `hello`, or while a rejection is being sent."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.ended_by: EndedBy = "time"
        """Why `within` timed out."""
        self.spoke = False
        """Whether the client has sent anything since the socket opened: its hello may be arriving."""
        self._limit: asyncio.Timeout | None = None

    @asynccontextmanager
    async def within(self, seconds: float) -> AsyncIterator[None]:
        """Limit the block to `seconds`, or until `end`; no time if the place is gone. Raises TimeoutError."""
        async with asyncio.timeout(0 if self.ended_by == "crowd" else seconds) as limit:
            self._limit = limit
            try:
                yield
            finally:
                self._limit = None

    def end(self, by: EndedBy) -> None:
        """Time out the block of `within` now."""
        if self.ended_by != "crowd":
            self.ended_by = by
        limit, self._limit = self._limit, None
        if limit is not None:
            limit.reschedule(asyncio.get_running_loop().time())


class Openings:
    """All pending sockets: at most `places`, and `share` of them per address."""

    def __init__(self, *, places: int, share: int) -> None:
        self._places = places
        self._share = share
        self._open: dict[Opening, None] = {}

    def __len__(self) -> int:
        return len(self._open)

    def enter(self, address: str) -> Opening:
        """A place for a socket from `address`. Where there is none, the socket that has been silent longest
        is closed: of the same address when that has its share, else of the address with the most sockets. A
        socket that has sent something is closed only when there is no silent one."""
        counts = Counter(one.address for one in self._open)
        if counts[address] >= self._share:
            self._end_oldest(address)
        elif len(self._open) >= self._places:
            self._end_oldest(counts.most_common(1)[0][0])
        opening = Opening(address)
        self._open[opening] = None
        return opening

    def leave(self, opening: Opening) -> None:
        """Free the place. Safe to call twice."""
        self._open.pop(opening, None)

    def _end_oldest(self, address: str) -> None:
        theirs = [one for one in self._open if one.address == address]
        oldest = next((one for one in theirs if not one.spoke), theirs[0])
        self.leave(oldest)
        oldest.end("crowd")


class InputGate(asyncio.Protocol):
    """Sits between a transport and its protocol and passes `allowed` bytes; beyond that, `opening` ends.

    The WebSocket's own limit is set when it opens, and must be large enough for a voice note.
    """

    def __init__(self, transport: asyncio.BaseTransport, opening: Opening, *, allowed: int) -> None:
        self._transport = transport
        self._inner = transport.get_protocol()
        self._opening = opening
        self._left = allowed
        transport.set_protocol(self)

    def remove(self) -> None:
        """Remove the limit."""
        if self._transport.get_protocol() is self:
            self._transport.set_protocol(self._inner)

    def data_received(self, data: bytes) -> None:
        self._opening.spoke = True
        self._left -= len(data)
        if self._left < 0:
            self._opening.end("size")
        elif isinstance(self._inner, asyncio.Protocol):
            self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received() if isinstance(self._inner, asyncio.Protocol) else None

    def connection_lost(self, exc: Exception | None) -> None:
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()
