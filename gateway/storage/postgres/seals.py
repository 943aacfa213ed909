"""The keys of sealed bodies, one row for each message.

Their table is unlogged: the write-ahead log, its archive, replicas and base backups have no key. A crash of
the server empties it, so what is sealed then is lost.
"""

from __future__ import annotations

import logging
from asyncio import Future
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from gateway.storage.json_bodies import decode_body
from gateway.storage.postgres.database import Database
from gateway.storage.sealing import opened
from pipeline.domain.errors import StorageError

_log = logging.getLogger(__name__)

Keys: TypeAlias = Mapping[str, bytes]
"""Each key under the id of its message or question."""
KEYS: Final = "SELECT name, key FROM seal_keys WHERE name = ANY($1::text[])"
IS_OFF_RECORD: Final = "SELECT off_record FROM threads WHERE key = $1"
PUT: Final = """
    INSERT INTO seal_keys (name, thread, key) SELECT $1, id, $3 FROM threads WHERE key = $2
    ON CONFLICT (name) DO UPDATE SET key = excluded.key"""
_OVERWRITE = "SELECT overwrite_seal_keys()"


def readable(keys: Keys, name: str, text: str) -> dict[str, Any]:
    """The body of a row of the message `name`, opened if it is sealed. Raises ValueError if it is damaged."""
    return opened(decode_body(text), keys.get(name))


def overwrite_keys(database: Database) -> None:
    """Begin to remove the bytes of deleted keys from the table's file, unless others use it now: then the
    next one does."""
    try:
        database.submit(lambda db: db.execute(_OVERWRITE)).add_done_callback(_note)
    except StorageError as error:
        _log.info("the keys that were deleted are removed later", extra={"reason": str(error)})


def _note(done: Future[str]) -> None:
    if not done.cancelled() and (error := done.exception()) is not None:
        _log.info("the keys that were deleted are removed later", extra={"reason": str(error)})
