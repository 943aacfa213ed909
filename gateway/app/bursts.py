"""Build what notes the later messages of running turns, from the settings of `[turn]`."""

from __future__ import annotations

from gateway.app.components import Foundation
from gateway.interactions.approvals import ApprovalService
from gateway.turns.arrivals import BurstParts, Bursts
from gateway.turns.bursts import BurstRules


def build_bursts(base: Foundation, approvals: ApprovalService) -> Bursts:
    """The messages that join running turns; a turn that one interrupts loses its open `approvals`."""
    turn = base.settings.turn
    rules = BurstRules(merge=turn.bursts == "merge", window_s=turn.burst_s, while_busy=turn.while_busy)
    parts = BurstParts(
        rules=rules,
        store=base.store,
        clock=base.clock,
        crash_labels=base.crash_labels,
        supervisor=base.tasks.turns,
        withdraw=approvals.withdraw,
    )
    return Bursts(parts)
