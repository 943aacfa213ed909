"""Files of a conversation that the gateway stores: their references, and the port that stores them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from pipeline.domain.errors import MediaUnavailable
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import MediaKind


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A reference to a stored file, as records and events contain it. It grants no access: the store looks
    for the file among those of the thread only."""

    id: str
    """64 hexadecimal digits, the same for the same content in the same scope."""
    kind: MediaKind
    mime: str
    """The type that was detected, or that the sender declared. Show the file as this type only after a check
    of the content."""
    size: int
    """Bytes."""
    name: str = ""
    """For display, never for a path."""
    about: str = ""
    """What is known of the content, for people and the model: `1280 by 720`, `12 pages`, a transcript."""
    caption: str = ""
    """Words that are shown with a file that the bot sends."""


class FileGone(MediaUnavailable):
    """The file is no longer stored: it was too old, or the chat has newer ones in its place."""

    code = "file_gone"


class FileStore(Protocol):
    """Stores the files of conversations, each thread's apart. Times and sizes are limited by the settings:
    every reader must expect FileGone."""

    async def put(
        self,
        thread: ThreadKey,
        content: bytes,
        *,
        kind: MediaKind,
        mime: str,
        name: str = "",
        about: str = "",
        scope: str = "",
        off_record: bool = False,
    ) -> StoredFile:
        """Store `content` durably; repeating it changes nothing. Files of a `scope`, such as the id of a
        message, have their own ids, so that they can be discarded without others that are equal. A file
        `off_record` ends within an hour, even if nothing discards it. Raises StorageError."""
        ...

    async def get(self, thread: ThreadKey, file_id: str) -> bytes:
        """The content of a file of `thread`. Raises FileGone, StorageError."""
        ...

    async def discard(self, thread: ThreadKey, file_ids: Iterable[str]) -> None:
        """Remove files of `thread`, as far as they exist. Raises StorageError."""
        ...

    async def discard_thread(self, thread: ThreadKey) -> None:
        """Remove all files of `thread`. Raises StorageError."""
        ...


def stored_file(
    content: bytes, *, kind: MediaKind, mime: str, name: str = "", about: str = "", scope: str = ""
) -> StoredFile:
    """The reference to `content`; its id depends on the content and the scope alone."""
    digest = hashlib.sha256(scope.encode("utf-8", "surrogatepass") + b"\0")
    digest.update(content)
    return StoredFile(id=digest.hexdigest(), kind=kind, mime=mime, size=len(content), name=name, about=about)


def stored_file_to_plain(file: StoredFile) -> dict[str, Any]:
    """Plain JSON data; empty values left out."""
    plain = {"id": file.id, "kind": file.kind, "mime": file.mime, "size": file.size}
    texts = {"name": file.name, "about": file.about, "caption": file.caption}
    return plain | {name: text for name, text in texts.items() if text}


def stored_file_from_plain(plain: Mapping[str, Any]) -> StoredFile:
    """What `stored_file_to_plain` wrote. Raises KeyError or TypeError for anything else."""
    return StoredFile(**plain)
