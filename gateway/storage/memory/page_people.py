"""The invited people of the page in dictionaries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gateway.storage.jobs import NewJob
from gateway.storage.json_bodies import encode_body
from gateway.storage.memory.jobs import MemoryJobs
from gateway.storage.page_people import (
    Device,
    Invitation,
    InviteStatus,
    PagePerson,
    Redemption,
    SignedIn,
)


class MemoryPagePeople:
    """A part of `MemoryStore`. `require_open` raises StorageError if the store is closed; `cancel` cancels
    the unfinished entries of the threads whose keys begin with a prefix."""

    def __init__(
        self, require_open: Callable[[], None], cancel: Callable[[str], None], jobs: MemoryJobs
    ) -> None:
        self._require_open = require_open
        self._cancel = cancel
        self._jobs = jobs
        self._people: dict[str, PagePerson] = {}
        self._invitations: dict[str, Invitation] = {}
        self._used_by: dict[str, str] = {}
        """Token hashes by code hashes."""
        self._devices: dict[str, Device] = {}
        """By token hash."""

    async def add(self, person: PagePerson, invitation: Invitation) -> InviteStatus:
        self._require_open()
        self._forget(invitation.made_at)
        if self._taken(person.name, person.id):
            return "taken"
        self._people[person.id] = person
        self._invitations[invitation.code_hash] = invitation
        return "made"

    async def invite(self, invitation: Invitation, *, limit: int) -> InviteStatus:
        self._require_open()
        self._forget(invitation.made_at)
        if invitation.person not in self._people:
            return "unknown"
        if sum(one.person == invitation.person for one in self._unused()) >= limit:
            return "full"
        self._invitations[invitation.code_hash] = invitation
        return "made"

    async def redeem(self, redemption: Redemption) -> SignedIn | None:
        self._require_open()
        asked = self._invitations.get(redemption.code_hash)
        if asked is None or asked.expires_at <= redemption.at:
            return None
        used_by, known = self._used_by.get(asked.code_hash), self._find(redemption.token_hash)
        if used_by or known is not None:
            return known if used_by == redemption.token_hash else None
        self._used_by[asked.code_hash] = redemption.token_hash
        self._devices[redemption.token_hash] = Device(
            id=redemption.device,
            person=asked.person,
            name=redemption.name,
            signed_in_at=redemption.at,
            seen_at=redemption.at,
        )
        person = self._people[asked.person]
        if not person.joined_at:
            self._people[person.id] = replace(person, joined_at=redemption.at)
        return self._find(redemption.token_hash)

    async def sign_in(self, token_hash: str) -> SignedIn | None:
        self._require_open()
        return self._find(token_hash)

    async def note_seen(self, device: str, *, at: float) -> None:
        self._require_open()
        for key, one in self._devices.items():
            if one.id == device:
                self._devices[key] = replace(one, seen_at=at)

    async def person(self, person_id: str) -> PagePerson | None:
        self._require_open()
        return self._people.get(person_id)

    async def people(self) -> tuple[PagePerson, ...]:
        self._require_open()
        return tuple(sorted(self._people.values(), key=lambda one: (one.invited_at, one.name.casefold())))

    async def open_invitations(self, *, now: float) -> tuple[Invitation, ...]:
        self._require_open()
        found = [one for one in self._unused() if one.expires_at > now]
        return tuple(sorted(found, key=lambda one: (one.made_at, one.expires_at, one.code_hash)))

    async def devices(self, person_id: str | None = None) -> tuple[Device, ...]:
        self._require_open()
        found = [one for one in self._devices.values() if person_id is None or one.person == person_id]
        return tuple(sorted(found, key=lambda one: (-one.seen_at, -one.signed_in_at, one.id)))

    async def sign_out(self, person_id: str, device: str) -> bool:
        self._require_open()
        left = {key: one for key, one in self._devices.items() if (one.person, one.id) != (person_id, device)}
        found = len(left) < len(self._devices)
        self._devices = left
        return found

    async def rename(self, person_id: str, name: str) -> InviteStatus:
        self._require_open()
        if self._taken(name, person_id):
            return "taken"
        if person_id not in self._people:
            return "unknown"
        self._people[person_id] = replace(self._people[person_id], name=name)
        return "made"

    async def remove(self, person_id: str, *, threads: str, job: NewJob) -> bool:
        self._require_open()
        if self._people.pop(person_id, None) is None:
            return False
        self._devices = {key: one for key, one in self._devices.items() if one.person != person_id}
        self._invitations = {code: one for code, one in self._invitations.items() if one.person != person_id}
        self._cancel(threads)
        self._jobs.add_now([(job, encode_body(job.body))])
        return True

    def _find(self, token_hash: str) -> SignedIn | None:
        device = self._devices.get(token_hash)
        return None if device is None else SignedIn(person=self._people[device.person], device=device)

    def _unused(self) -> list[Invitation]:
        return [one for one in self._invitations.values() if one.code_hash not in self._used_by]

    def _forget(self, now: float) -> None:
        self._invitations = {code: one for code, one in self._invitations.items() if one.expires_at > now}

    def _taken(self, name: str, but: str) -> bool:
        return any(one.name.casefold() == name.casefold() and one.id != but for one in self._people.values())
