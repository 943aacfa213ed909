"""Link identities by code, so that they are one person, and separate them again.

A code is shown in one private chat and sent in another. It proves that the same person can read the one and
write in the other. Admission is not shared: a link lets no identity in anywhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

from gateway.people.codes import hash_of, new_code
from gateway.people.directory import PersonDirectory, identity_of
from gateway.people.preferences import SharedPreferences
from gateway.storage.identities import (
    GROUP_PREFIX,
    IdentityBook,
    JoinRequest,
    JoinResult,
    Left,
    LinkCode,
    TryLimits,
)
from pipeline.domain.clock import Clock
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import new_id
from pipeline.domain.messages import SessionCommand

VALID_S: Final = 15 * 60.0
MAX_OPEN: Final = 1_000
"""The most open codes, of all identities together."""
MAX_IDENTITIES: Final = 10
"""The most identities of one person."""
TRIES: Final = TryLimits(window_s=3600.0, identity=5, everybody=200)
"""With 1,000 open codes, 200 guesses an hour find one of 23 to the power of 8 in 40 years."""


class PersonSums(Protocol):
    """The sums of use by which people have budgets."""

    def today(self) -> str:
        """The day that counts now, YYYY-MM-DD."""
        ...

    def moving(self) -> AbstractAsyncContextManager[None]:
        """Within it nothing is counted, so that sums can be moved in the store."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Linked:
    """The result of sending a code."""

    joined: JoinResult
    has_files: bool = True
    """False if texts and files of the person could not all be copied."""


class Linking:
    """Issues codes, redeems them, and separates identities."""

    def __init__(
        self,
        *,
        book: IdentityBook,
        people: PersonDirectory,
        preferences: SharedPreferences,
        sums: PersonSums,
        carry_over: Callable[[str, str, str], Awaitable[bool]],
        clock: Clock,
    ) -> None:
        """`carry_over` copies the texts and files of a person, by key, from the first (which may be empty) to
        the second, and fills in what the second lacks in settings from the third; False if it could not
        copy all."""
        self._book = book
        self._people = people
        self._preferences = preferences
        self._sums = sums
        self._carry_over = carry_over
        self._clock = clock
        # One change at a time, so that the directory ends as the store does.
        self._changing = asyncio.Lock()

    async def show_code(self, command: SessionCommand) -> str:
        """A new code of the command's author, in place of an earlier one; empty while too many codes are
        open. Raises StorageError."""
        code, now = new_code(), self._clock.now()
        issued = LinkCode(
            identity=identity_of(command.thread, command.author.id),
            thread=command.thread.encode(),
            code_hash=hash_of(code),
            issued_at=now,
            expires_at=now + VALID_S,
        )
        return code if await self._book.issue(issued, limit=MAX_OPEN) else ""

    async def cancel(self, code: str) -> None:
        """Make a code useless that others have read. Raises StorageError."""
        await self._book.cancel(hash_of(code))

    async def join(self, command: SessionCommand) -> Linked:
        """Link the command's author with the owner of the code behind the command. Raises StorageError."""
        identity = identity_of(command.thread, command.author.id)
        async with self._changing:
            async with self._sums.moving():
                request = JoinRequest(
                    identity=identity,
                    thread=command.thread.encode(),
                    message_id=command.message_id,
                    code_hash=hash_of(command.argument),
                    new_person=GROUP_PREFIX + new_id("psn"),
                    most=MAX_IDENTITIES,
                    at=self._clock.now(),
                    day=self._sums.today(),
                )
                joined = await self._book.join(request, TRIES)
                for one in (identity, *(other.identity for other in joined.others)):
                    if joined.status == "joined":
                        self._people.note(one, joined.person)
            if joined.status != "joined":
                return Linked(joined=joined)
            await self._preferences.carry_over(joined, identity)
            has_files = await self._carry_over(joined.source, joined.person, joined.before)
            return Linked(joined=joined, has_files=has_files)

    async def leave(self, command: SessionCommand) -> Left:
        """Separate the command's author from the person's other identities. Raises StorageError."""
        identity = identity_of(command.thread, command.author.id)
        async with self._changing, self._sums.moving():
            left = await self._book.leave(identity, message_id=command.message_id, day=self._sums.today())
            self._people.note(identity, left.own)
            return left
