"""Find the files of a message that is answered again: they are in the store, and nothing is fetched or read.

Pictures are looked for, because the model is shown their bytes. Of other files it reads what is on record.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.domain.attachments import attached_note, named_file, reasons_line, used_note
from pipeline.domain.errors import StorageError
from pipeline.domain.files import FileGone, FileStore, StoredFile
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import MediaRef
from pipeline.runtime.attachments import Taken

_GONE = "I no longer have it. Please send it again."
_UNREADABLE = "I cannot read it at the moment. Please try again later."


async def taken_again(
    store: FileStore, thread: ThreadKey, files: Sequence[StoredFile], attached: str
) -> Taken:
    """The files of the message, and what the model reads of them: `attached`, with another note for each
    picture that is gone."""
    kept: list[StoredFile] = []
    missing: dict[str, list[str]] = {}
    for file in files:
        reason = await _missing(store, thread, file)
        if not reason:
            kept.append(file)
            continue
        missing.setdefault(reason, []).append(named_file(file))
        attached = attached.replace(used_note(file), attached_note((ref_of(file),)), 1)
    return Taken(files=tuple(kept), attached=attached, left_out=reasons_line(missing))


def ref_of(file: StoredFile) -> MediaRef:
    """The file as an attachment of a message; no channel can fetch it."""
    return MediaRef(channel="", handle="", mime=file.mime, size=file.size, kind=file.kind, name=file.name)


async def _missing(store: FileStore, thread: ThreadKey, file: StoredFile) -> str:
    """Why a picture cannot be shown again; empty if it can."""
    if file.kind != "image":
        return ""
    try:
        await store.get(thread, file.id)
    except FileGone:
        return _GONE
    except StorageError:
        return _UNREADABLE
    return ""
