"""Port for linked identities and the codes that link them. A part of `Store`.

An identity is one user of one account of a channel. A person is one identity, or several that were linked.
All times are Unix seconds. Every method raises StorageError when the store fails.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, Literal, Protocol

from gateway.storage.usage import Spent
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import identity_key

GROUP_PREFIX: Final = "person:"
"""With it begin the keys of people who have linked identities, and no key of a single identity."""
BOTH_PREFIX: Final = "both:"
"""With it begin the scopes of the use that counts in the sums of two people; see `counted_twice`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """One user of one account of a channel."""

    channel: str
    account: str
    user: str

    @property
    def key(self) -> str:
        """The key of the person that it is alone."""
        return identity_key(self.channel, self.account, self.user)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkCode:
    """A code that one identity was shown."""

    identity: Identity
    thread: str
    """The private chat where it was shown."""
    code_hash: str
    issued_at: float
    expires_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TryLimits:
    """How many wrong codes are accepted within a time before every code is refused."""

    window_s: float
    identity: int
    """Of one identity."""
    everybody: int
    """Of all identities together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRequest:
    """An identity sends a code that was shown to another identity."""

    identity: Identity
    thread: str
    """The private chat where it was sent."""
    message_id: str
    """Of the command. A repeat with the same id gets the same result and changes nothing."""
    code_hash: str
    new_person: str
    """The key of the person, if the owner of the code is not linked yet."""
    most: int
    """The most identities of one person."""
    at: float
    day: str
    """The day, YYYY-MM-DD, whose use of budgets is added up."""


JoinStatus = Literal["joined", "wrong", "own", "linked", "elsewhere", "full", "limited"]
"""`wrong`: unknown, expired or used. `own`: of the same identity. `linked`: the two are one person already.
`elsewhere`: the identity is linked with others. `full`: the person has the most identities."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A linked identity."""

    identity: Identity
    thread: str
    """The private chat where it was linked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinResult:
    """The result of a join. The other fields are set for the status `joined`."""

    status: JoinStatus
    person: str = ""
    source: str = ""
    """The key whose data the new person begins with; empty if the person existed before."""
    before: str = ""
    """The key of the joining identity until then."""
    others: tuple[Member, ...] = ()
    """The person's other identities, the owner of the code among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """The result of leaving a person."""

    own: str
    """The key that the identity has now."""
    others: tuple[Member, ...]
    """The identities that remain; none if it was not linked."""


def wrote(identities: Collection[Identity], thread: str, user: object) -> bool:
    """Whether `user` of the account of a thread, by its key, is one of `identities`."""
    return any(one.user == user and thread.startswith(f"{one.channel}:{one.account}:") for one in identities)


class IdentityBook(Protocol):
    """The linked identities and the open codes."""

    async def issue(self, code: LinkCode, *, limit: int) -> bool:
        """Store the code in place of an earlier one of its identity. False, and nothing is stored, if `limit`
        codes of other identities are open. Deletes all expired codes."""
        ...

    async def cancel(self, code_hash: str) -> None:
        """Delete the code, if there is one."""
        ...

    async def join(self, request: JoinRequest, limits: TryLimits) -> JoinResult:
        """Link the identity with the owner of the code, in one transaction, and use up the code.

        A new person begins with the kept states of the owner of the code, and with the sum of what both have
        used on that day; what counts for both already is counted once. A wrong code is counted, and with too
        many of them every code is refused.
        """
        ...

    async def leave(self, identity: Identity, *, message_id: str, day: str) -> Left:
        """Give the identity back the key that it had before, and delete its open code, in one transaction.

        What the person has used on that day counts from then on for both. A repeat with the same message id
        gets the same result and changes nothing.
        """
        ...

    async def linked(self) -> Mapping[Identity, str]:
        """The person's key of every identity that has another key than its own."""
        ...


def judge_join(
    identity: Identity, owner: Identity, *, person: str, owners: str, is_linked: bool, members: int, most: int
) -> JoinStatus:
    """Whether `identity`, of the person `person`, may join the owner of a valid code, whose person's key is
    `owners`: by the same rule in every store. `is_linked`: `identity` is linked with others. `members` is the
    number of identities of the owner's person."""
    if owner == identity:
        return "own"
    if owners == person:
        return "linked"
    if is_linked:
        return "elsewhere"
    if owners.startswith(GROUP_PREFIX) and members >= most:
        return "full"
    return "joined"


def counted_twice(one: str, other: str) -> str:
    """The scope, in the use of a day, of what counts in the sums of both people."""
    return BOTH_PREFIX + "|".join(sorted((one, other)))


def added_up(one: Spent, other: Spent, both: Spent) -> Spent:
    """The use of two people who become one; `both` counts in both sums already."""
    return Spent(
        tokens=max(one.tokens, other.tokens, one.tokens + other.tokens - both.tokens),
        cost=max(one.cost, other.cost, one.cost + other.cost - both.cost),
    )
