"""Ports for what the shield stores: audit, labels, permissions, the evaluator's calls. A part of `Store`."""

from __future__ import annotations

from typing import Protocol

from gateway.storage.audit import AuditBook
from pipeline.shield.ports import EvaluatorBudget, PermissionBook, TaintBook


class ShieldBooks(Protocol):
    """The books."""

    @property
    def audit(self) -> AuditBook:
        """What was decided about actions."""

    @property
    def taints(self) -> TaintBook:
        """How confidential what each conversation has read is."""

    @property
    def permissions(self) -> PermissionBook:
        """What people have allowed for conversations."""

    @property
    def evaluator_calls(self) -> EvaluatorBudget:
        """How often the evaluator was asked."""
