"""An in-memory store: for tests, for trying things out, and as the reference for other stores."""

from gateway.storage.memory.store import MemoryStore

__all__ = ["MemoryStore"]
