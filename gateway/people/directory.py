"""Find the person that an identity is. Kept in memory, so that a turn reads nothing for it."""

from __future__ import annotations

from collections.abc import Iterable

from gateway.storage.identities import Identity, IdentityBook
from pipeline.domain.ids import ThreadKey, identity_key


class PersonDirectory:
    """The keys of people by identity."""

    def __init__(self, book: IdentityBook) -> None:
        self._book = book
        self._people: dict[tuple[str, str, str], str] = {}

    async def load(self) -> None:
        """Read the linked identities. Call before any turn runs. Raises StorageError."""
        linked = await self._book.linked()
        self._people = {_entry(identity): person for identity, person in linked.items()}

    def note(self, identity: Identity, person: str) -> None:
        """The identity has the person's key `person` from now on."""
        if person == identity.key:
            self._people.pop(_entry(identity), None)
        else:
            self._people[_entry(identity)] = person

    def forget(self, identities: Iterable[Identity]) -> None:
        """These are linked no longer."""
        for identity in identities:
            self._people.pop(_entry(identity), None)

    def person_of(self, thread: ThreadKey, user: str) -> str:
        """The key of the person that `user` is on the account of `thread`."""
        channel, account = thread.account_key
        return self._people.get((channel, account, user)) or identity_key(channel, account, user)

    def identities_of(self, thread: ThreadKey, user: str) -> tuple[Identity, ...]:
        """All identities of the person that `user` is on the account of `thread`; that one is first."""
        own, person = identity_of(thread, user), self.person_of(thread, user)
        linked = [
            Identity(channel=one[0], account=one[1], user=one[2])
            for one in self._people
            if self._people[one] == person
        ]
        return (own, *(one for one in linked if one != own))

    def linked_as(self, channel: str, account: str, user: str) -> str:
        """The key of the person, if the identity has another than its own; otherwise empty."""
        return self._people.get((channel, account, user), "")


def identity_of(thread: ThreadKey, user: str) -> Identity:
    """The identity of `user` on the account of `thread`."""
    return Identity(channel=thread.channel, account=thread.account, user=user)


def _entry(identity: Identity) -> tuple[str, str, str]:
    return identity.channel, identity.account, identity.user
