"""Invite people to the page, sign their browsers in, and remove them.

Codes and tokens are random and long, and the store holds their hashes, so that looking one up by its hash
tells nothing about it. The browser makes its own token and keeps it before it sends it: an answer that is
lost is repeated with the same token, and an invitation is used once all the same.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
from collections.abc import Awaitable, Callable, Collection
from typing import Final

from adapters.guests import Account, GuestRefused, SignedInDevice, Visitor, person_of
from gateway.runtime.crash_labels import CrashLabels
from gateway.storage.jobs import NewJob
from gateway.storage.page_chats import PageBooks
from gateway.storage.page_people import (
    Device,
    Invitation,
    InviteStatus,
    PagePeopleBook,
    PagePerson,
    Redemption,
    SignedIn,
)
from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey, chat_of_heartbeats

_log = logging.getLogger(__name__)

PERSON_ERASURE: Final = "person_erasure"
"""The kind of the job that erases what a removed person has left. Its key is the person's id."""
DAY_S: Final = 86_400.0
DEVICE_VALID_S: Final = 3600.0
"""How long a link counts that a person makes for another device of theirs, in seconds."""
MAX_OPEN: Final = 5
"""The most open invitations of one person."""
MAX_NAME_CHARS: Final = 60
LOOK_S: Final = 1.0
"""How often a running gateway looks for people and devices that were removed, in seconds."""
_SEEN_EVERY_S = 3600.0
_UNNAMED = "Guest"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewInvitation:
    """The result of an invitation; `code` is empty if none was made."""

    status: InviteStatus
    name: str
    code: str = ""


def hash_of_secret(secret: str) -> str:
    """The hash that the store keeps of an invitation's code or of a token."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def tidy_name(name: str) -> str:
    """The name on one line, without characters that cannot be seen, and cut to MAX_NAME_CHARS."""
    plain = "".join(char if char.isprintable() else " " for char in name)
    return " ".join(plain.split())[:MAX_NAME_CHARS].strip()


async def invite_person(book: PagePeopleBook, name: str, *, now: float, valid_s: float) -> NewInvitation:
    """Add a person and make their first invitation. Without a name they are called Guest, Guest 2 and so on.

    Raises StorageError.
    """
    wanted, code = tidy_name(name), new_code()
    for number in range(1, 1000):
        called = wanted or (_UNNAMED if number == 1 else f"{_UNNAMED} {number}")
        person = PagePerson(id=f"u_{secrets.token_hex(10)}", name=called, invited_at=now)
        status = await book.add(person, _invitation(person.id, code, now, valid_s))
        if status != "taken" or wanted:
            return NewInvitation(status=status, name=called, code=code if status == "made" else "")
    return NewInvitation(status="full", name=_UNNAMED)


async def invite_device(
    book: PagePeopleBook, person: PagePerson, *, now: float, valid_s: float
) -> NewInvitation:
    """Make an invitation for one more device of a known person. Raises StorageError."""
    code = new_code()
    status = await book.invite(_invitation(person.id, code, now, valid_s), limit=MAX_OPEN)
    return NewInvitation(status=status, name=person.name, code=code if status == "made" else "")


async def remove_person(book: PagePeopleBook, person: str, *, threads: str, now: float) -> bool:
    """Remove a person by their id, and add the job that erases what is theirs; False if there is no such one.

    `threads` is the beginning of the keys of their conversations. Raises StorageError.
    """
    return await book.remove(person, threads=threads, job=erasure_of(person, now))


def erasure_of(person: str, now: float) -> NewJob:
    """The job that erases everything of a removed person."""
    return NewJob(kind=PERSON_ERASURE, key=person, due=now)


def new_code() -> str:
    """A random code of an invitation: 192 bits."""
    return secrets.token_urlsafe(24)


class PageAccounts:
    """The invited people for the page and for the gateway: `adapters.guests.PagePeople`, and the `Guests` of
    the access policy. Call `load` before anything else."""

    def __init__(
        self,
        books: PageBooks,
        clock: Clock,
        crash_labels: CrashLabels,
        voice_mode: Callable[[str], Awaitable[str]],
        reserved: Collection[str] = (),
    ) -> None:
        """`voice_mode` says when a person, by id, wants voice messages; the owner's id is empty. `reserved`
        names give rights: no one can take one of them, who is not invited under it."""
        self._book = books.people
        self._chats = books.chats
        self._clock = clock
        self._crash_labels = crash_labels
        self._voice_mode = voice_mode
        self._reserved = frozenset(name.casefold() for name in reserved)
        self._known: frozenset[str] = frozenset()
        self._deleted: set[str] = set()
        """Thread keys of the deleted conversations."""
        self._any = asyncio.Event()
        """Set once there are people, so that a gateway without any never looks for them."""

    async def load(self) -> None:
        """Read who is invited, and which conversations are deleted. Raises StorageError."""
        self._note(frozenset(one.id for one in await self._book.people()))
        self._deleted = set(await self._chats.deleted())

    async def reload_people(self) -> None:
        """Read again who is invited, as another process may have changed it. Who is missing is left to
        `watch`, which ends what they have begun. Raises StorageError."""
        self._note(self._known | {one.id for one in await self._book.people()})

    async def reload_deleted(self) -> tuple[ThreadKey, ...]:
        """Read again which conversations are deleted; those that were not known. Raises StorageError."""
        added = await self._chats.deleted() - self._deleted
        self._deleted |= added
        return tuple(ThreadKey.decode(key) for key in added)

    def is_deleted(self, thread: ThreadKey) -> bool:
        """Whether the conversation was deleted."""
        # With a conversation, its heartbeats are deleted too.
        return chat_of_heartbeats(thread).encode() in self._deleted if self._deleted else False

    def note_deleted(self, thread: ThreadKey) -> None:
        """Nothing is accepted in the conversation from now on."""
        self._deleted.add(thread.encode())

    def is_known(self, person: str) -> bool:
        """Whether the person was invited when this was last read."""
        return person in self._known

    async def sign_in(self, token: str) -> Visitor | None:
        found = await self._book.sign_in(hash_of_secret(token))
        if found is not None and self._clock.now() - found.device.seen_at >= _SEEN_EVERY_S:
            await self._book.note_seen(found.device.id, at=self._clock.now())
        return self._visitor(found)

    async def is_signed_in(self, visitor: Visitor) -> bool:
        return any(one.id == visitor.device for one in await self._book.devices(visitor.person))

    async def redeem(self, invitation: str, token: str, device: str) -> Visitor | None:
        self._crash_labels.reach("redeem-before")
        redemption = Redemption(
            code_hash=hash_of_secret(invitation),
            token_hash=hash_of_secret(token),
            device=f"d_{secrets.token_hex(8)}",
            name=tidy_name(device),
            at=self._clock.now(),
        )
        found = await self._book.redeem(redemption)
        self._crash_labels.reach("redeem-after")
        return self._visitor(found)

    async def account(self, visitor: Visitor) -> Account:
        voice = await self._voice_mode(visitor.person)
        if not visitor.person:
            return Account(voice_replies=voice)
        person = await self._book.person(visitor.person)
        devices = tuple(_listed(one) for one in await self._book.devices(visitor.person))
        return Account(
            name=visitor.name if person is None else person.name, devices=devices, voice_replies=voice
        )

    async def rename(self, visitor: Visitor, name: str) -> None:
        wanted = tidy_name(name)
        if not wanted:
            raise GuestRefused("a name needs at least one letter or digit")
        if wanted.casefold() in self._reserved:
            person = await self._book.person(visitor.person)
            if person is None or person.name.casefold() != wanted.casefold():
                raise GuestRefused("this name is kept for another person; take another one")
        if await self._book.rename(visitor.person, wanted) == "taken":
            raise GuestRefused("another person has this name; take another one")

    async def invite_device(self, visitor: Visitor) -> tuple[str, float]:
        person, now = await self._book.person(visitor.person), self._clock.now()
        if person is None:
            raise GuestRefused("you are no longer invited")
        made = await invite_device(self._book, person, now=now, valid_s=DEVICE_VALID_S)
        if not made.code:
            raise GuestRefused(f"{MAX_OPEN} links are open; use one of them, or wait until they have expired")
        return made.code, now + DEVICE_VALID_S

    async def sign_out(self, visitor: Visitor, device: str) -> None:
        if not await self._book.sign_out(visitor.person, device):
            raise GuestRefused("no such device is signed in")

    def is_owners(self, thread: ThreadKey) -> bool:
        return not person_of(thread.chat) and not self.is_deleted(thread)

    async def may_write(self, thread: ThreadKey, user: str) -> bool:
        if person_of(thread.chat) != user or self.is_deleted(thread):
            return False
        # Read from the store for each message, so that a removal counts at once.
        return await self._book.person(user) is not None

    async def watch(
        self,
        *,
        devices: Callable[[], frozenset[str]],
        sign_out: Callable[[frozenset[str]], None],
        stop: Callable[[frozenset[str]], Awaitable[None]],
    ) -> None:
        """Look for removed people and devices, for ever: `parlour people` removes them beside this process.

        `devices` are those with an open page, `sign_out` closes the pages of some, and `stop` ends the turns
        of people who were removed.
        """
        while True:
            await self._any.wait()
            try:
                await self._look(devices, sign_out, stop)
            except StorageError as error:
                _log.warning("the invited people could not be read", extra={"reason": str(error)})
            await self._clock.sleep(LOOK_S)

    async def _look(
        self,
        devices: Callable[[], frozenset[str]],
        sign_out: Callable[[frozenset[str]], None],
        stop: Callable[[frozenset[str]], Awaitable[None]],
    ) -> None:
        # The open pages first: a device that signs in after this step is in the store already.
        shown, before = devices(), self._known
        # The people before their devices: the looks end with the last person, whose pages must be closed by
        # then, also if that person is removed between the two reads.
        invited = frozenset(one.id for one in await self._book.people())
        signed_in = frozenset(one.id for one in await self._book.devices())
        if shown - signed_in:
            sign_out(shown - signed_in)
        # People who joined during the read may be missing in it.
        self._note(invited | (self._known - before))
        removed = before - invited
        if removed:
            await stop(removed)

    def _visitor(self, found: SignedIn | None) -> Visitor | None:
        if found is None:
            return None
        self._note(self._known | {found.person.id})
        return Visitor(person=found.person.id, device=found.device.id, name=found.person.name)

    def _note(self, known: frozenset[str]) -> None:
        self._known = known
        if known:
            self._any.set()
        else:
            self._any.clear()


def _invitation(person: str, code: str, now: float, valid_s: float) -> Invitation:
    return Invitation(person=person, code_hash=hash_of_secret(code), made_at=now, expires_at=now + valid_s)


def _listed(device: Device) -> SignedInDevice:
    return SignedInDevice(
        id=device.id, name=device.name, signed_in_at=device.signed_in_at, seen_at=device.seen_at
    )
