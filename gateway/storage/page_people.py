"""Port for the invited people of the page, their invitations and their devices. A part of `Store`.

Codes and tokens are stored as hashes only. All times are Unix seconds. Every method raises StorageError when
the store fails. Which threads are a person's is not known here: a thread is theirs if its key begins with
their prefix, which the caller gives.
"""

from __future__ import annotations

from typing import Literal, Protocol

from gateway.storage.jobs import NewJob
from pipeline.domain.frozen import dataclass

InviteStatus = Literal["made", "taken", "unknown", "full"]
"""`taken`: another person has the name. `unknown`: there is no such person. `full`: too many open ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePerson:
    """An invited person of the page."""

    id: str
    name: str
    """Unique among the invited people, without regard to case."""
    invited_at: float
    joined_at: float = 0.0
    """When the first device signed in; 0 before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """A link that signs in one device of a person, once."""

    person: str
    """The person's id."""
    code_hash: str
    made_at: float
    expires_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Redemption:
    """A request of a browser to sign in by an invitation."""

    code_hash: str
    token_hash: str
    """The hash of the token that the browser has made for itself."""
    device: str
    """The new device's id."""
    name: str
    """What the device is called."""
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A browser that is signed in."""

    id: str
    person: str
    name: str
    signed_in_at: float
    seen_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedIn:
    """The person and the device behind a token."""

    person: PagePerson
    device: Device


class PagePeopleBook(Protocol):
    """The invited people."""

    async def add(self, person: PagePerson, invitation: Invitation) -> InviteStatus:
        """Add a person with their first invitation, unless another one has the name."""
        ...

    async def invite(self, invitation: Invitation, *, limit: int) -> InviteStatus:
        """Add an invitation for another device of a known person, who may have `limit` open ones."""
        ...

    async def redeem(self, redemption: Redemption) -> SignedIn | None:
        """Sign in a device. None if the code is unknown, expired or used by another token, or if the token is
        in use. Single use; repeated with the same token it gives the same result and changes nothing."""
        ...

    async def sign_in(self, token_hash: str) -> SignedIn | None:
        """The person and the device of a token; None if it is unknown."""
        ...

    async def note_seen(self, device: str, *, at: float) -> None:
        """The device was used at that time."""
        ...

    async def person(self, person_id: str) -> PagePerson | None: ...

    async def people(self) -> tuple[PagePerson, ...]:
        """All invited people, the earliest invited first."""
        ...

    async def open_invitations(self, *, now: float) -> tuple[Invitation, ...]:
        """The invitations that are neither used nor expired."""
        ...

    async def devices(self, person_id: str | None = None) -> tuple[Device, ...]:
        """The signed-in devices of the person, or of all; the latest used first."""
        ...

    async def sign_out(self, person_id: str, device: str) -> bool:
        """End a device's sign-in; False if the person has no such device."""
        ...

    async def rename(self, person_id: str, name: str) -> InviteStatus:
        """Give the person another name: `made`, `taken` or `unknown`."""
        ...

    async def remove(self, person_id: str, *, threads: str, job: NewJob) -> bool:
        """Remove the person, their devices and invitations, and cancel the unfinished entries of the threads
        whose keys begin with `threads`, in one transaction. False if there is no such person."""
        ...
