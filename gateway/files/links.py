"""Links to stored files: each gives access to one file of one chat until it expires, and to nothing else.

A link contains a hash of the chat's key, the file's id, the time of its expiry, and their signature under a
key of this gateway. The name is signed too, so that a link cannot be given another one.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from urllib.parse import quote

from gateway.files.folder_store import FolderFileStore, folder_name
from pipeline.domain.clock import Clock
from pipeline.domain.files import FileGone, StoredFile
from pipeline.domain.ids import ThreadKey

LINK_S = 7 * 86_400.0
"""The seconds for which a link works."""
_NAME_CHARS = 30
_HASH_BYTES = 32
_TIME_BYTES = 6
_SIGNATURE_BYTES = 24
_TOKEN_BYTES = 2 * _HASH_BYTES + _TIME_BYTES + _SIGNATURE_BYTES
_EXPIRED = "This link has expired or is not one of this gateway's. Ask the bot for the file again."


class FileLinks:
    """Makes links to the files of `store`, and reads the files of links."""

    def __init__(self, store: FolderFileStore, key: bytes, clock: Clock, *, origin: str = "") -> None:
        """`origin` is the public address of this gateway; empty where it has none."""
        self._store = store
        self._key = key
        self._clock = clock
        self._origin = origin
        self._closed: set[str] = set()
        """The folders of the chats whose links no longer work."""

    def close(self, thread: ThreadKey) -> None:
        """End all links to the files of `thread`: those that exist, and later ones."""
        self._closed.add(folder_name(thread))

    def path(self, thread: ThreadKey, file: StoredFile, *, since: float | None = None) -> str:
        """The path of a link to a file of `thread`, for the page. It works for LINK_S seconds from the Unix
        time `since`, or from now."""
        expires = int((self._clock.now() if since is None else since) + LINK_S)
        name = _link_name(file.name)
        place, content = folder_name(thread), file.id
        what = bytes.fromhex(place) + bytes.fromhex(content) + expires.to_bytes(_TIME_BYTES, "big")
        token = base64.urlsafe_b64encode(what + self._signature(what, name)).decode("ascii").rstrip("=")
        return f"/f/{token}/{quote(name, safe='')}"

    def public(self, thread: ThreadKey, file: StoredFile, since: float) -> str:
        """The whole address of a link, for people on other channels; the same for the same `since`. Empty
        where the gateway has no public address."""
        return f"{self._origin}{self.path(thread, file, since=since)}" if self._origin else ""

    async def read(self, token: str, name: str) -> bytes:
        """The content of the file that a link names. Raises FileGone with a sentence for the person, and
        StorageError."""
        try:
            given = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        except (binascii.Error, ValueError):
            raise FileGone(_EXPIRED) from None
        if len(given) != _TOKEN_BYTES:
            raise FileGone(_EXPIRED)
        what, signature = given[:-_SIGNATURE_BYTES], given[-_SIGNATURE_BYTES:]
        if not hmac.compare_digest(signature, self._signature(what, name)):
            raise FileGone(_EXPIRED)
        if int.from_bytes(what[2 * _HASH_BYTES :], "big") < self._clock.now():
            raise FileGone(_EXPIRED)
        place, content = what[:_HASH_BYTES].hex(), what[_HASH_BYTES : 2 * _HASH_BYTES].hex()
        if place in self._closed:
            raise FileGone(_EXPIRED)
        return await self._store.get_from(place, content)

    def _signature(self, what: bytes, name: str) -> bytes:
        signed = what + name.encode("utf-8", "surrogatepass")
        return hmac.digest(self._key, signed, hashlib.sha256)[:_SIGNATURE_BYTES]


def _link_name(name: str) -> str:
    """A name for an address, with its ending: short, because some channels have short messages."""
    stem, dot, ending = name.rpartition(".")
    if len(name) <= _NAME_CHARS or not stem or len(ending) > _NAME_CHARS // 3:
        return name[:_NAME_CHARS] or "file"
    return stem[: _NAME_CHARS - len(ending) - 1] + dot + ending
