"""A store that several processes can share, for the contract tests of what only such a store has."""

from __future__ import annotations

from typing import Protocol

from gateway.storage.owners import SharedStore
from gateway.storage.ports import Store


class WholeStore(SharedStore, Store, Protocol):
    """Everything that it has."""
