"""The store in one SQLite file, for a gateway of one process. The only place that imports sqlite3."""

from gateway.storage.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
