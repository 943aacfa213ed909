"""Sockets whose `hello` was not accepted: how many there may be, what they may send, who gives way to whom.

Anybody can open one. So they are few, they are small, and a silent one never keeps out a client that speaks.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

EndedBy = Literal["time", "size", "crowd"]


class Opening:
    """One socket before its `hello`, or while it is told why that was refused."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.ended_by: EndedBy = "time"
        """Why `within` timed out."""
        self.spoke = False
        """Whether the client has sent anything since the socket opened: its hello may be on the way."""
        self._limit: asyncio.Timeout | None = None

    @asynccontextmanager
    async def within(self, seconds: float) -> AsyncIterator[None]:
        """The block may take so long, or until `end`; no time if the place is gone. Raises TimeoutError."""
        async with asyncio.timeout(0 if self.ended_by == "crowd" else seconds) as limit:
            self._limit = limit
            try:
                yield
            finally:
                self._limit = None

    def end(self, by: EndedBy) -> None:
        """Let the block of `within` time out now."""
        if self.ended_by != "crowd":
            self.ended_by = by
        limit, self._limit = self._limit, None
        if limit is not None:
            limit.reschedule(asyncio.get_running_loop().time())


class Openings:
    """All of them: `places` at a time, `share` of them for one address."""

    def __init__(self, *, places: int, share: int) -> None:
        self._places = places
        self._share = share
        self._open: dict[Opening, None] = {}

    def __len__(self) -> int:
        return len(self._open)

    def enter(self, address: str) -> Opening:
        """A place for a socket from `address`. Where there is none, the socket that has been silent longest
        gives way: of the same address when that has its share, else of the address that has most. Those that
        have sent something stay as long as there is a silent one."""
        counts = Counter(one.address for one in self._open)
        if counts[address] >= self._share:
            self._end_oldest(address)
        elif len(self._open) >= self._places:
            self._end_oldest(counts.most_common(1)[0][0])
        opening = Opening(address)
        self._open[opening] = None
        return opening

    def leave(self, opening: Opening) -> None:
        """Give the place back. Safe to call twice."""
        self._open.pop(opening, None)

    def _end_oldest(self, address: str) -> None:
        theirs = [one for one in self._open if one.address == address]
        oldest = next((one for one in theirs if not one.spoke), theirs[0])
        self.leave(oldest)
        oldest.end("crowd")


class InputGate(asyncio.Protocol):
    """Stands between a transport and its protocol and lets `allowed` bytes through; then `opening` ends.

    The WebSocket's own limit is fixed when it opens, and must be large enough for a voice note.
    """

    def __init__(self, transport: asyncio.BaseTransport, opening: Opening, *, allowed: int) -> None:
        self._transport = transport
        self._inner = transport.get_protocol()
        self._opening = opening
        self._left = allowed
        transport.set_protocol(self)

    def remove(self) -> None:
        """Let everything through from now on."""
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
