"""What people have allowed for a conversation: actions of one type on exactly one path or host.

A permission ends with its conversation. It does not cover what the person could not know when giving it: a
conversation that has read more since then is asked about again.
"""

from __future__ import annotations

from typing import Final

from pipeline.domain.clock import Clock
from pipeline.shield.action_types import ActionType
from pipeline.shield.levels import Labels
from pipeline.shield.ports import Permission, PermissionBook
from pipeline.shield.proposal import Proposal

_LASTING: Final[frozenset[ActionType]] = frozenset({"write_file", "fetch_url"})
"""The types that can be allowed for a conversation."""


class Permissions:
    """The permissions of all conversations."""

    def __init__(self, book: PermissionBook, clock: Clock) -> None:
        self._book = book
        self._clock = clock

    @staticmethod
    def can_last(proposal: Proposal, labels: Labels) -> bool:
        """Whether a person may allow such actions for the conversation: it has one exact target, and has not
        read text that looks like instructions to the assistant."""
        if labels.suspects:
            return False
        target = proposal.target
        return proposal.type in _LASTING and bool(target) and proposal.mode != "otr"

    async def covers(self, proposal: Proposal, labels: Labels) -> bool:
        """Whether the author has allowed the action for this conversation. Raises StorageError."""
        if not self.can_last(proposal, labels):
            return False
        given = await self._book.of(proposal.session_id, proposal.person)
        return any(_covers(one, proposal, labels) for one in given)

    async def give(self, proposal: Proposal, labels: Labels) -> None:
        """Store that the author has allowed such actions. Raises StorageError."""
        await self._book.add(
            Permission(
                id=0,
                session_id=proposal.session_id,
                thread=proposal.thread,
                person=proposal.person,
                type=proposal.type,
                target=proposal.target,
                foreign=proposal.foreign,
                level=int(labels.level),
                private=labels.private,
                at=self._clock.now(),
            )
        )


def _covers(given: Permission, proposal: Proposal, labels: Labels) -> bool:
    return (
        given.type == proposal.type
        and given.target == proposal.target
        and given.thread == proposal.thread
        and given.level >= labels.level
        and (given.private or not labels.private)
        and set(proposal.foreign) <= set(given.foreign)
    )
