"""The ports of the shield: what its host and the other tiers implement."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Sequence
from typing import Protocol

from pipeline.domain.frozen import dataclass
from pipeline.shield.audit_events import AuditEvent
from pipeline.shield.injection.findings import Assessment, ScanPart
from pipeline.shield.levels import Labels
from pipeline.shield.proposal import Proposal
from pipeline.shield.rules import Policy


class PolicySource(Protocol):
    """The policy that holds now."""

    async def current(self) -> Policy:
        """The policy. Raises ConfigurationError if it has changed and cannot be read."""
        ...


class Scanner(Protocol):
    """Tier 1: rules and a classifier over the texts of a proposal."""

    async def assess(self, parts: Iterable[ScanPart]) -> Assessment:
        """The findings in `parts` and their decision. Raises nothing."""
        ...


class EvaluatorModel(Protocol):
    """The model of tier 2, which is another one than the model that proposes."""

    async def answer(self, instructions: str, question: str, proposal: Proposal) -> str:
        """The whole text of one answer. Its use counts as the author's of `proposal`. Raises ModelError and
        StorageError; cancelling it stops the call."""
        ...


class EvaluatorBudget(Protocol):
    """How often the evaluator was asked, by day, durable."""

    async def take(self, day: str, most: int) -> bool:
        """Count one call of `day`, YYYY-MM-DD, unless `most` are counted; whether it was counted. Durable
        when it returns. Raises StorageError."""
        ...


class AuditTrail(Protocol):
    """The audit."""

    def write(self, events: Sequence[AuditEvent]) -> Awaitable[None]:
        """Begin to append `events`, in order with every other write of the store; durable once awaited.

        Raises StorageError when awaited, never before: then no action may run on their strength.
        """
        ...


class TaintBook(Protocol):
    """The labels of what each conversation has read, durable."""

    async def read(self, session_id: str) -> Labels:
        """The labels of the session. Raises StorageError."""
        ...

    async def write(self, session_id: str, labels: Labels) -> None:
        """Store the labels of the session, durably. Raises StorageError."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """What a person has allowed for a conversation: actions of one type on one path or host."""

    id: int
    session_id: str
    thread: str
    person: str
    type: str
    target: str
    foreign: tuple[str, ...]
    """The sources of foreign text that the conversation had read by then."""
    level: int
    """Of what the conversation had read by then."""
    private: bool
    at: float


class PermissionBook(Protocol):
    """What people have allowed for conversations, durable."""

    async def add(self, permission: Permission) -> int:
        """Store it in place of an earlier one of the same person, session, type and target; its id. The given
        id does not count. Raises StorageError."""
        ...

    async def of(self, session_id: str, person: str) -> tuple[Permission, ...]:
        """Those of a person in a session, oldest first. Raises StorageError."""
        ...

    async def revoke(self, session_id: str, person: str, permission_id: int | None) -> int:
        """Delete one, or all; how many there were. Raises StorageError."""
        ...
