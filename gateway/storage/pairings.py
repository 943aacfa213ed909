"""Who has asked to be let in, and who was: what the gateway and `parlour pair` ask of a store.

A part of the store's port. It holds ids and names of people, and never a word that they wrote. All times
are Unix seconds. Every method raises StorageError when the store cannot do it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedChat:
    """One person in one private chat. A pairing never reaches further than that."""

    channel: str
    account: str
    chat: str
    user: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PairingRequest:
    """Somebody was shown a code and waits for the owner."""

    place: PairedChat
    name: str
    """As the person calls themselves: for display only."""
    code_hash: str
    asked_at: float
    expires_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """Somebody whom the owner let in."""

    place: PairedChat
    name: str
    paired_at: float


class PairingBook(Protocol):
    """The requests and the pairings."""

    async def ask(self, request: PairingRequest, *, limit: int, again_after_s: float) -> bool:
        """Note the request. False, and nothing is noted, when the same person asked in the same chat less
        than `again_after_s` ago, or when the account has `limit` requests that have not expired.

        Requests older than `again_after_s` are forgotten, whoever made them.
        """
        ...

    async def requests(self, *, now: float) -> tuple[PairingRequest, ...]:
        """Those that have not expired, oldest first."""
        ...

    async def pair(self, code_hash: str, *, now: float) -> Pairing | None:
        """Let in whoever was shown the code; None for one that is unknown, expired or used. Single use."""
        ...

    async def is_paired(self, place: PairedChat) -> bool: ...

    async def pairings(self) -> tuple[Pairing, ...]:
        """Everybody who is paired, oldest first."""
        ...

    async def remove(self, channel: str, user: str) -> int:
        """End every pairing of `user` on `channel`, whatever the account and the chat; how many."""
        ...
