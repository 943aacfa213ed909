"""Port for pairing requests and pairings, used by the gateway and `parlour pair`. A part of `Store`.

It holds ids and names of people, and none of their messages. All times are Unix seconds. Every method raises
StorageError when the store fails.
"""

from __future__ import annotations

from typing import Protocol

from pipeline.domain.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedChat:
    """One person in one private chat. A pairing applies to nothing else."""

    channel: str
    account: str
    chat: str
    user: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PairingRequest:
    """A person who was shown a code and waits for the owner's approval."""

    place: PairedChat
    name: str
    """The person's own name for themselves: for display only."""
    code_hash: str
    asked_at: float
    expires_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """A person whom the owner approved."""

    place: PairedChat
    name: str
    paired_at: float


class PairingBook(Protocol):
    """The requests and the pairings."""

    async def ask(self, request: PairingRequest, *, limit: int, again_after_s: float) -> bool:
        """Store the request. Returns False and stores nothing if the same person asked in the same chat less
        than `again_after_s` ago or is paired there, or if the account has `limit` requests that have not
        expired.

        Deletes all requests older than `again_after_s`.
        """
        ...

    async def requests(self, *, now: float) -> tuple[PairingRequest, ...]:
        """The requests that have not expired, oldest first."""
        ...

    async def pair(self, code_hash: str, *, now: float) -> Pairing | None:
        """Pair the person who was shown the code; None if it is unknown, expired or used. Single use."""
        ...

    async def is_paired(self, place: PairedChat) -> bool: ...

    async def pairings(self) -> tuple[Pairing, ...]:
        """All pairings, oldest first."""
        ...

    async def remove(self, channel: str, user: str) -> int:
        """Delete every pairing of `user` on `channel`, on any account and in any chat; how many."""
        ...
