"""Who a page belongs to, and the port to the people whom the owner has invited to it.

The owner has the gateway's access token; every other person has separate tokens, one for each device. The
chats of a person have the person's id in their thread keys, and clients neither see nor send it: a client can
name only the chats of the person who opened it.
"""

from __future__ import annotations

import re
from typing import Protocol

from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey

_GUEST_CHAT = re.compile(r"(u_[0-9a-f]{20})\.(c_[0-9a-f]{32})")
_GUEST = re.compile(r"u_[0-9a-f]{20}")
_OWN_CHAT_PREFIX = "c_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """The person and the device behind one socket."""

    person: str = ""
    """The person's id; empty for the owner."""
    device: str = ""
    """The device's id; empty for the owner, whose devices share one token."""
    name: str = ""
    """What the person is called; empty for the owner."""


class GuestRefused(Exception):
    """A request that cannot be carried out; the text is for the person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedInDevice:
    """A browser of a person, for the list of their devices."""

    id: str
    name: str
    signed_in_at: float
    seen_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What the gateway keeps about a person."""

    name: str = ""
    """Empty for the owner."""
    devices: tuple[SignedInDevice, ...] = ()
    """The latest used first; none for the owner."""
    voice_replies: str = "off"
    """When they want voice messages: `off`, `on` or `auto`, as the command `voice` takes it."""


class PagePeople(Protocol):
    """Signs invited people in, and keeps their accounts. Every method raises StorageError."""

    async def sign_in(self, token: str) -> Visitor | None:
        """The visitor with that token; None for an unknown one."""
        ...

    async def is_signed_in(self, visitor: Visitor) -> bool:
        """Whether the device of an invited person is still signed in."""
        ...

    async def redeem(self, invitation: str, token: str, device: str) -> Visitor | None:
        """Sign in a browser, called `device`, that has made `token` for itself. None if the invitation is
        unknown, used or expired. Repeatable with the same token."""
        ...

    async def account(self, visitor: Visitor) -> Account:
        """What is kept about the visitor's person."""
        ...

    async def rename(self, visitor: Visitor, name: str) -> None:
        """Call the person `name`. Raises GuestRefused."""
        ...

    async def invite_device(self, visitor: Visitor) -> tuple[str, float]:
        """The code of an invitation for another device of the person, and the Unix time at which it expires.
        Raises GuestRefused."""
        ...

    async def sign_out(self, visitor: Visitor, device: str) -> None:
        """Sign a device of the person out. Raises GuestRefused."""
        ...


class PageChats(Protocol):
    """Names and deletes conversations. Every method raises StorageError."""

    def is_deleted(self, thread: ThreadKey) -> bool:
        """Whether the conversation was deleted."""
        ...

    async def name_of(self, thread: ThreadKey) -> str:
        """The name that its person gave the conversation; empty without one."""
        ...

    async def rename(self, thread: ThreadKey, name: str) -> None:
        """Give the conversation a name; an empty one takes the name away. Raises GuestRefused."""
        ...

    async def delete(self, thread: ThreadKey) -> None:
        """Hide the conversation at once, stop what runs in it, and erase its words soon after. Durable when
        it returns."""
        ...


def chat_of(visitor: Visitor, chat: str) -> str:
    """The gateway's id of the visitor's chat that clients call `chat`."""
    return f"{visitor.person}.{chat}" if visitor.person else chat


def shown_chat(chat: str) -> str:
    """The id by which clients know the chat."""
    found = _GUEST_CHAT.fullmatch(chat)
    return found[2] if found else chat


def chats_of(person: str) -> str:
    """The beginning of the ids of all chats of a person, or of the owner for an empty id."""
    return f"{person}." if person else _OWN_CHAT_PREFIX


def is_guest(user: str) -> bool:
    """Whether a user id of the page is that of an invited person, and not the owner's."""
    return _GUEST.fullmatch(user) is not None


def person_of(chat: str) -> str:
    """The id of the person whose chat it is; empty for the owner."""
    found = _GUEST_CHAT.fullmatch(chat)
    return found[1] if found else ""
