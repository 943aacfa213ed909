"""The pairing book in dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from gateway.storage.identities import Identity
from gateway.storage.json_bodies import storable_text
from gateway.storage.pairings import PairedChat, Pairing, PairingRequest


class MemoryPairings:
    """A part of `MemoryStore`. `require_open` raises StorageError if the store is closed."""

    def __init__(self, require_open: Callable[[], None]) -> None:
        self._require_open = require_open
        self._requests: dict[PairedChat, PairingRequest] = {}
        self._pairings: dict[PairedChat, Pairing] = {}

    async def ask(self, request: PairingRequest, *, limit: int, again_after_s: float) -> bool:
        self._require_open()
        now, place = request.asked_at, request.place
        self._requests = {
            one.place: one for one in self._requests.values() if one.asked_at > now - again_after_s
        }
        account = (place.channel, place.account)
        waiting = sum(
            one.expires_at > now and (one.place.channel, one.place.account) == account
            for one in self._requests.values()
        )
        if place in self._requests or place in self._pairings or waiting >= limit:
            return False
        self._requests[place] = replace(request, name=storable_text(request.name))
        return True

    async def requests(self, *, now: float) -> tuple[PairingRequest, ...]:
        self._require_open()
        waiting = [one for one in self._requests.values() if one.expires_at > now]
        return tuple(sorted(waiting, key=lambda one: (one.asked_at, _order(one.place))))

    async def pair(self, code_hash: str, *, now: float) -> Pairing | None:
        for request in await self.requests(now=now):
            if request.code_hash == code_hash:
                del self._requests[request.place]
                pairing = Pairing(place=request.place, name=request.name, paired_at=now)
                self._pairings[request.place] = pairing
                return pairing
        return None

    async def is_paired(self, place: PairedChat) -> bool:
        self._require_open()
        return place in self._pairings

    async def pairings(self) -> tuple[Pairing, ...]:
        self._require_open()
        return tuple(sorted(self._pairings.values(), key=lambda one: (one.paired_at, _order(one.place))))

    async def remove(self, channel: str, user: str) -> int:
        self._require_open()
        gone = [place for place in self._pairings if (place.channel, place.user) == (channel, user)]
        for place in gone:
            del self._pairings[place]
        return len(gone)

    def drop_of(self, identities: Collection[Identity]) -> None:
        """Delete the pairings and requests of these."""
        places = {(one.channel, one.account, one.user) for one in identities}
        for kept in (self._requests, self._pairings):
            for place in [one for one in kept if (one.channel, one.account, one.user) in places]:
                del kept[place]


def _order(place: PairedChat) -> tuple[str, str, str, str]:
    return place.channel, place.account, place.chat, place.user
