"""Ports for what the shield stores: audit, labels, permissions, questions, calls. A part of `Store`."""

from __future__ import annotations

from typing import Final, Protocol

from gateway.storage.audit import AuditBook
from pipeline.shield.ports import EvaluatorBudget, PermissionBook, TaintBook

HOUR_S: Final = 3_600.0


class AskedBook(Protocol):
    """How often each person was asked within the last hour whether a tool may be used. Every method raises
    StorageError when the store fails."""

    async def count(self, person: str, question: str, *, now: float, most: int) -> bool:
        """Count a question to a person, unless they were asked `most` others since an hour before `now`;
        whether it is counted. A question counts once, however often this is called. Where the clock was set
        back, what was counted before is taken as of now."""
        ...

    async def forget(self, person: str) -> None:
        """Remove what was counted for a person."""
        ...


class ShieldBooks(Protocol):
    """The books."""

    @property
    def audit(self) -> AuditBook:
        """What was decided about actions."""

    @property
    def taints(self) -> TaintBook:
        """How confidential what each conversation has read is."""

    @property
    def asked(self) -> AskedBook:
        """How often people were asked."""

    @property
    def permissions(self) -> PermissionBook:
        """What people have allowed for conversations."""

    @property
    def evaluator_calls(self) -> EvaluatorBudget:
        """How often the evaluator was asked."""
