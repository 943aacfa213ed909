"""Fetch, read and store the attachments of a message, in its turn and before the model is called.

Each file is handled apart: one that cannot be fetched, read or stored is left out with its reason. Pictures
are stored as the model is shown them, without metadata; documents and recordings as they were sent.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from gateway.attachments.excerpts import UsedFile, attached_text, document_about
from gateway.reading.signatures import is_heic, picture_format
from pipeline.domain.attachments import OTHER_CONTENT, named_ref, reasons_line
from pipeline.domain.errors import MediaUnavailable, ParlourError, StorageError
from pipeline.domain.files import FileStore, StoredFile, stored_file
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import InboundMessage, MediaKind, MediaRef
from pipeline.domain.readings import FileReader, FileUnreadable
from pipeline.runtime.attachments import Taken, Unstored

_log = logging.getLogger(__name__)

MAX_SIDE = 1_568
"""Pixels of a picture's longer side: larger ones are scaled down by the providers anyway."""
MAX_PICTURE_BYTES = 1_000_000
MAX_FILES = 10
"""Files of one message; the platforms' albums have at most as many."""
_AT_ONCE = 6
"""Files in memory at once, over all conversations."""
_SOUNDS: frozenset[MediaKind] = frozenset({"voice", "audio", "video"})
_TOO_LARGE = "I take files of up to {megabytes} MB."
_TOO_MANY = f"I take {MAX_FILES} files of one message."
_NO_CHANNEL = "Its channel is not connected. Please send it again later."
_NOT_STORED = "It could not be stored. Please send it again later."
_FAILED = "Something went wrong with it. Please send it again."
_NO_SOUND = "I do not listen to recordings here."


class Downloads(Protocol):
    """What fetches the files of a channel."""

    async def download(self, ref: MediaRef, *, max_bytes: int) -> bytes:
        """See `adapters.channel.ChannelAdapter.download`."""
        ...


SoundToText = Callable[[InboundMessage, bytes], Awaitable[str]]
"""The words in a recording that came with a message. Raises ParlourError with words for the person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unused:
    """An attachment that is left out."""

    ref: MediaRef
    reason: str


class AttachmentIntake:
    """Implements the pipeline's `Attachments` port. `max_bytes` is the largest file; `hear` transcribes
    recordings, None leaves them out."""

    def __init__(
        self,
        *,
        channel_of: Callable[[ThreadKey], Downloads | None],
        files: FileStore,
        reader: FileReader,
        max_bytes: int,
        hear: SoundToText | None = None,
    ) -> None:
        self._channel_of = channel_of
        self._files = files
        self._reader = reader
        self._max_bytes = max_bytes
        self._hear = hear
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def take(
        self, message: InboundMessage, *, max_tokens: int, unstored: dict[str, Unstored] | None
    ) -> Taken:
        """See `Attachments.take`."""
        refs = message.attachments[:MAX_FILES]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._one(message, ref, unstored)) for ref in refs]
        results = [task.result() for task in tasks]
        results += [_Unused(ref=ref, reason=_TOO_MANY) for ref in message.attachments[MAX_FILES:]]
        used = [one for one in results if isinstance(one, UsedFile)]
        unused = [one for one in results if isinstance(one, _Unused)]
        return Taken(
            files=tuple(one.file for one in used),
            attached=attached_text(used, max_tokens),
            left_out=_left_out(unused, message.unusable),
            unused=tuple(one.ref for one in unused),
        )

    async def content(self, thread: ThreadKey, file: StoredFile) -> bytes:
        """See `Attachments.content`."""
        return await self._files.get(thread, file.id)

    async def _one(
        self, message: InboundMessage, ref: MediaRef, unstored: dict[str, Unstored] | None
    ) -> UsedFile | _Unused:
        try:
            async with self._places:
                return await self._used(message, ref, unstored)
        except StorageError as error:
            _log.warning("a file could not be stored", extra={"reason": str(error)})
            return _Unused(ref=ref, reason=_NOT_STORED)
        except MediaUnavailable as error:
            known = {"code": error.code, "reason": str(error), "detail": error.detail}
            _log.warning("a file could not be fetched", extra=known)
            return _Unused(ref=ref, reason=str(error))
        except ParlourError as error:
            _log.info("a file could not be read", extra={"code": error.code, "reason": str(error)})
            return _Unused(ref=ref, reason=str(error))
        except Exception as error:  # noqa: BLE001 - one file must not end the turn of the others
            _log.error("a file could not be taken", extra={"kind": ref.kind}, exc_info=error)
            return _Unused(ref=ref, reason=_FAILED)

    async def _used(
        self, message: InboundMessage, ref: MediaRef, unstored: dict[str, Unstored] | None
    ) -> UsedFile:
        if ref.kind in _SOUNDS and self._hear is None:
            raise FileUnreadable(_NO_SOUND, reason="unsupported")
        content = await self._download(message.thread, ref)
        if ref.kind in _SOUNDS and self._hear is not None:
            said = await self._hear(message, content)
            file = await self._store(message, content, ref, ref.kind, ref.mime, "", unstored)
            return UsedFile(file=file, said=said)
        # Platforms send originals as documents.
        if ref.kind == "image" or picture_format(content) is not None or is_heic(content):
            picture = await self._reader.picture(content, max_side=MAX_SIDE, max_bytes=MAX_PICTURE_BYTES)
            about = f"{picture.original_width} by {picture.original_height}"
            file = await self._store(message, picture.content, ref, "image", picture.mime, about, unstored)
            return UsedFile(file=file)
        document = await self._reader.document(content, name=ref.name, mime=ref.mime)
        about = document_about(document)
        file = await self._store(message, content, ref, "file", ref.mime, about, unstored)
        return UsedFile(file=file, document=document)

    async def _download(self, thread: ThreadKey, ref: MediaRef) -> bytes:
        if ref.size is not None and ref.size > self._max_bytes:
            raise MediaUnavailable(_TOO_LARGE.format(megabytes=self._max_bytes // 1_000_000))
        channel = self._channel_of(thread)
        if channel is None:
            raise MediaUnavailable(_NO_CHANNEL)
        return await channel.download(ref, max_bytes=self._max_bytes)

    async def _store(
        self,
        message: InboundMessage,
        content: bytes,
        ref: MediaRef,
        kind: MediaKind,
        mime: str,
        about: str,
        unstored: dict[str, Unstored] | None,
    ) -> StoredFile:
        scope, mime = message.message_id, mime or "application/octet-stream"
        if unstored is None:
            return await self._files.put(
                message.thread, content, kind=kind, mime=mime, name=ref.name, about=about, scope=scope
            )
        file = stored_file(content, kind=kind, mime=mime, name=ref.name, about=about, scope=scope)
        unstored[file.id] = Unstored(file=file, content=content)
        return file


def _left_out(unused: Sequence[_Unused], unusable: Sequence[str]) -> str:
    """The line for the person."""
    reasons: dict[str, list[str]] = {}
    for one in unused:
        reasons.setdefault(one.reason, []).append(named_ref(one.ref))
    if unusable:
        reasons.setdefault(OTHER_CONTENT, []).extend(unusable)
    return reasons_line(reasons)
