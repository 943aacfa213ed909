"""Seal the body of a row with a key that is stored beside it and deleted before it: deleting the key makes
every copy of the body unreadable, also those that a database keeps of old rows, in its log and in backups.

Each message has a separate key. What tells where a row belongs stays readable; see `sealed`.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from gateway.storage.json_bodies import SEALED, encode_body
from gateway.storage.ports import NewRecord, RecordKind, TurnCommit
from pipeline.domain.errors import StorageError

KEY_BYTES: Final = 32
_CLEAR: Final = ("native_id", "author", "private", "reply_handle")
"""The fields that stay readable: they place a message on its platform, and other columns repeat them."""
_PADDED_TO: Final = 256
"""The text is filled with spaces to a multiple of so many bytes, so that its length tells little."""
_SAID: Final[tuple[RecordKind, ...]] = ("assistant", "error", "notice")
"""The kinds of records that say something of a turn that is not kept."""


class SealNeeded(StorageError):
    """The entry's thread is off the record: the entry must be sealed. Nothing was written."""


def new_key() -> bytes:
    """A new random key."""
    return os.urandom(KEY_BYTES)


def sealed(body: Mapping[str, Any], key: bytes) -> dict[str, Any]:
    """The body with everything but the sender's and the platform's ids sealed by `key`. Raises StorageError
    for a body that is not plain data."""
    from nacl.secret import SecretBox  # noqa: PLC0415 - it takes a tenth of a second, and most seal nothing

    text = encode_body(body).encode()
    padded = text + b" " * (-len(text) % _PADDED_TO)
    clear = {name: body[name] for name in _CLEAR if name in body}
    return {SEALED: base64.b64encode(SecretBox(key).encrypt(padded)).decode()} | clear


def opened(body: dict[str, Any], key: bytes | None) -> dict[str, Any]:
    """A stored body as it was before it was sealed, if it was. Without its key, the rest of it: without text,
    and with `SEALED` empty."""
    if SEALED not in body:
        return body
    plain = None if key is None or not body[SEALED] else _plain(body[SEALED], key)
    return (body | {"text": "", SEALED: ""}) if plain is None else plain


def sealed_bytes(content: bytes, key: bytes) -> bytes:
    """The content sealed by `key`."""
    from nacl.secret import SecretBox  # noqa: PLC0415 - as above

    return bytes(SecretBox(key).encrypt(content))


def opened_bytes(content: bytes, key: bytes) -> bytes:
    """What was sealed by `key`. Raises StorageError for what another key sealed."""
    from nacl.exceptions import CryptoError  # noqa: PLC0415 - as above
    from nacl.secret import SecretBox  # noqa: PLC0415 - as above

    try:
        return SecretBox(key).decrypt(content)
    except (CryptoError, ValueError) as error:
        raise StorageError("a sealed file cannot be opened: it is damaged") from error


def is_lost(body: Mapping[str, Any]) -> bool:
    """Whether a body as `opened` returns it has lost its key."""
    return SEALED in body


def sealed_commit(commit: TurnCommit) -> tuple[TurnCommit, str, bytes]:
    """A commit whose words are sealed, the name of the key, which is the id of its reply's message, and the
    key. An empty name and key for a commit that is stored as it is."""
    if not commit.outbox:
        return commit, "", b""
    name, key = commit.outbox[0].message_id, new_key()
    records = tuple(_sealed_record(one, key) if _says(one, name) else one for one in commit.records)
    return replace(commit, records=records), name, key


def _says(record: NewRecord, message_id: str) -> bool:
    return record.message_id == message_id and record.kind in _SAID


def _sealed_record(record: NewRecord, key: bytes) -> NewRecord:
    return replace(record, body=sealed(record.body, key))


def _plain(text: str, key: bytes) -> dict[str, Any] | None:
    from nacl.exceptions import CryptoError  # noqa: PLC0415 - as above
    from nacl.secret import SecretBox  # noqa: PLC0415 - as above

    try:
        plain: dict[str, Any] = json.loads(SecretBox(key).decrypt(base64.b64decode(text)))
    except (CryptoError, ValueError, TypeError):
        return None
    return plain
