"""The store that lives in the process: for tests, for trying things out, and as the model of the others."""

from gateway.storage.memory.store import MemoryStore

__all__ = ["MemoryStore"]
