"""Build the shield: its policy, its audit and what it stores about conversations."""

from __future__ import annotations

from gateway.config.shield import ShieldSettings
from gateway.runtime.failpoints import Failpoints
from gateway.shield.audit_trail import StoreAudit
from gateway.storage.ports import Store
from pipeline.domain.clock import Clock
from pipeline.shield.flow import Taints
from pipeline.shield.injection.scanner import InjectionScanner
from pipeline.shield.permissions import Permissions
from pipeline.shield.policy_book import PolicyBook
from pipeline.shield.shield import Shield


def build_shield(settings: ShieldSettings, *, store: Store, clock: Clock, failpoints: Failpoints) -> Shield:
    """Build it. Raises ConfigurationError, which names every mistake of the policy."""
    return Shield(
        policies=PolicyBook(settings.policy),
        audit=StoreAudit(store.shield.audit, clock, failpoints),
        taints=Taints(store.shield.taints),
        permissions=Permissions(store.shield.permissions, clock),
        clock=clock,
        flow_mode=settings.flow,
        scanner=InjectionScanner(),
    )
