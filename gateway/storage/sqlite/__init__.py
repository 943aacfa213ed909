"""The store in one SQLite file, for a gateway of one process. Only this package imports sqlite3."""

from gateway.storage.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
