"""Ports for what the shield stores: audit, labels of conversations, permissions. A part of `Store`."""

from __future__ import annotations

from typing import Protocol

from gateway.storage.audit import AuditBook
from pipeline.shield.ports import PermissionBook, TaintBook


class ShieldBooks(Protocol):
    """The three books."""

    @property
    def audit(self) -> AuditBook:
        """What was decided about actions."""

    @property
    def taints(self) -> TaintBook:
        """How confidential what each conversation has read is."""

    @property
    def permissions(self) -> PermissionBook:
        """What people have allowed for conversations."""
