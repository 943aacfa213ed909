"""Turn the errors of asyncpg into StorageErrors that say what to do."""

from __future__ import annotations

import asyncpg

from gateway.storage.postgres.apply_function import STATE_CHANGED
from gateway.storage.postgres.operations import state_changed
from pipeline.domain.errors import StorageError

_WORDS: tuple[tuple[type[Exception], str], ...] = (
    (asyncpg.InvalidPasswordError, "the server refused the user name or the password in the URL"),
    (asyncpg.InvalidAuthorizationSpecificationError, "the server refused the user name in the URL"),
    (asyncpg.InvalidCatalogNameError, "there is no such database; create it, or correct its name in the URL"),
    (asyncpg.InsufficientPrivilegeError, "the user may not do that; make it the owner of the database"),
    (asyncpg.TooManyConnectionsError, "the server has no connection left; raise its max_connections"),
    (asyncpg.DiskFullError, "the disk of the server is full; accepted messages are safe"),
    (asyncpg.ReadOnlySQLTransactionError, "the server is read-only; the URL must name the primary server"),
    (asyncpg.CannotConnectNowError, "the server is starting or stopping; it is tried again"),
    (
        asyncpg.LockNotAvailableError,
        "another program, such as a dump, holds a table; try again when it is done",
    ),
    (TimeoutError, "the server did not answer in time"),
    (asyncpg.UndefinedTableError, "a table is missing; restart the gateway, which makes it"),
)
_PASSING = (
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    # A newer process has changed the schema since the statement was prepared.
    asyncpg.InvalidCachedStatementError,
    asyncpg.OutdatedSchemaCacheError,
)
_LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.InterfaceError,
    OSError,
    TimeoutError,
)


def as_storage_error(error: Exception, place: str) -> Exception:
    """The StorageError that explains `error`; an error of another origin unchanged.

    `place` names the server and the database, without the password.
    """
    if isinstance(error, asyncpg.PostgresError) and error.sqlstate == STATE_CHANGED:
        return state_changed(str(error))
    for kind, words in _WORDS:
        if isinstance(error, kind):
            return StorageError(f"{place}: {words}")
    if isinstance(error, asyncpg.DataError | UnicodeEncodeError | OverflowError):
        return StorageError(f"a value cannot be stored: {_line(error)}")
    if is_lost(error):
        return StorageError(f"{place}: the server cannot be reached ({_line(error)})")
    if isinstance(error, asyncpg.PostgresError):
        return StorageError(f"{place}: the database refused: {_line(error)}")
    return error


def is_passing(error: Exception) -> bool:
    """Whether another process was in the way, so that the same transaction may succeed when repeated."""
    return isinstance(error, _PASSING)


def is_lost(error: Exception) -> bool:
    """Whether the connection is gone or was never made; what ran on it may have been committed or not."""
    return isinstance(error, _LOST) and not isinstance(error, asyncpg.DataError)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
