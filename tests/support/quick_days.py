"""Days of a manual clock that pass quickly: what a gateway looks at again and again rests for an hour.

For tests that let hours or days pass. Between two looks nothing happens that they ask about: whatever becomes
due wakes its waiter by itself, and the clock of the tests jumps over nothing. Not for tests of the looks.
"""

from __future__ import annotations

import pytest

from gateway.app import leases
from gateway.runtime import due_work
from gateway.storage import health
from gateway.storage.leases import ProcessingCoordinator
from gateway.storage.ports import Store
from pipeline.domain.clock import Clock

_HOUR_S = 3_600.0


def install(patch: pytest.MonkeyPatch) -> None:
    """Look seldom in this process, until `patch` is undone."""
    patch.setattr(due_work, "POLL_S", _HOUR_S)
    patch.setattr(health, "CHECK_EVERY_S", _HOUR_S)
    patch.setattr(leases, "ProcessingCoordinator", _held_for_hours)


def _held_for_hours(store: Store, clock: Clock, *, lease_s: float) -> ProcessingCoordinator:
    return ProcessingCoordinator(store, clock, lease_s=max(lease_s, 3 * _HOUR_S))
