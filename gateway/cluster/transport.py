"""The port for what carries the signals between processes: Redis or Postgres. Texts only; the bus gives them
their meaning.

A topic is a short text of printable characters. A connection delivers a text at most once, and the texts of
one sender in the order in which they were sent, whatever their topics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pipeline.domain.errors import ParlourError


class TransportError(ParlourError):
    """The server cannot be reached, or the connection broke. The text says which, without a password."""

    code = "transport"
    permanent = False


def unreachable(error: Exception) -> TransportError:
    """The reason of a library's error, without the address, which may contain a password."""
    return TransportError(f"cannot be reached ({type(error).__name__})")


class TransportConnection(Protocol):
    """A connection to the server. One task receives, and one other calls the rest."""

    async def listen(self, topic: str) -> None:
        """Receive the texts of `topic`, complete when the server has confirmed it. Raises TransportError."""
        ...

    async def send(self, messages: Sequence[tuple[str, str]]) -> None:
        """Send (topic, text) pairs, in order. Returns when the server has them. Raises TransportError."""
        ...

    async def receive(self) -> str:
        """The next text. Raises TransportError when the connection is lost."""
        ...

    async def close(self) -> None:
        """Close it, also a broken one. Raises nothing."""
        ...


class Transport(Protocol):
    """A server that carries texts."""

    @property
    def name(self) -> str:
        """`redis` or `postgres`, for messages."""
        ...

    async def connect(self) -> TransportConnection:
        """A new connection. Raises TransportError."""
        ...
