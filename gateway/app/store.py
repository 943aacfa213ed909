"""The store that the settings name. Postgres is loaded only where it is used."""

from __future__ import annotations

from pathlib import Path

from gateway.config import Settings
from gateway.editor.saved_agents import graphs_with_saved
from gateway.storage.memory import MemoryStore
from gateway.storage.ports import Store
from gateway.storage.sqlite import SqliteStore
from pipeline.domain.errors import ConfigurationError, StorageError
from pipeline.graph_book import GraphBook


def build_store(settings: Settings, path: Path) -> Store:
    """The store, not yet open; `path` is that of the SQLite file. Raises ConfigurationError."""
    if settings.storage.kind == "memory":
        return MemoryStore()
    if settings.storage.kind == "postgres":
        return _postgres(settings)
    full = settings.storage.synchronous == "full"
    return SqliteStore(path, synchronous="FULL" if full else "NORMAL")


def database_url(settings: Settings) -> str:
    """The URL of the Postgres database. Raises ConfigurationError."""
    if settings.storage.url is None:
        raise ConfigurationError('storage.url: is missing, as storage.kind is "postgres"')
    return settings.storage.url.resolve()


def saved_graphs(settings: Settings) -> GraphBook:
    """The installed graphs, and the workflows that the store has. Raises ConfigurationError."""
    url = database_url(settings) if settings.storage.kind == "postgres" else ""
    return graphs_with_saved(settings.data.dir, url)


def _postgres(settings: Settings) -> Store:
    url = database_url(settings)
    try:
        from gateway.storage.postgres import PostgresStore  # noqa: PLC0415 - its driver is an extra
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            "storage.kind: is postgres, and the driver is not installed; run: pip install 'parlour[postgres]'"
        ) from error
    # One gateway for each database, as one process for each data folder, unless it says that it is one of
    # several.
    try:
        return PostgresStore(url, use="shared" if settings.cluster.shared else "alone")
    except StorageError as error:
        raise ConfigurationError(f"storage.url: {error}") from error
