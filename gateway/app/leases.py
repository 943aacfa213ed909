"""Build the leases of a process: alone on its store, or among several."""

from __future__ import annotations

import os
import socket

from gateway import __version__
from gateway.config import Settings
from gateway.storage.leases import AccountLeases, ProcessingCoordinator
from gateway.storage.owners import SharedStore
from gateway.storage.ports import Store
from gateway.storage.shared_leases import SharedAccounts, SharedCoordinator
from pipeline.domain.clock import Clock
from pipeline.domain.errors import ConfigurationError


def build_leases(settings: Settings, store: Store, clock: Clock) -> AccountLeases:
    """The leases of this process. Raises ConfigurationError for a store that cannot be shared."""
    cluster = settings.cluster
    if not cluster.shared:
        return AccountLeases(ProcessingCoordinator(store, clock, lease_s=settings.turn.lease_s))
    if not isinstance(store, SharedStore):
        raise ConfigurationError("cluster.role: is not alone, but the store cannot be shared")
    return SharedAccounts(
        SharedCoordinator(
            store,
            store.owners,
            clock,
            name=cluster.name or f"{socket.gethostname()}:{os.getpid()}",
            role=cluster.role,
            version=__version__,
            beat_s=cluster.beat_s,
            ttl_s=cluster.ttl_s,
        )
    )
