"""Add the files of the person's message to the messages of a model call, and load the pictures in them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from operator import attrgetter

from pipeline.domain.chat import ChatMessage
from pipeline.domain.errors import MediaUnavailable, StorageError
from pipeline.domain.files import FileGone, StoredFile
from pipeline.history.attached_files import NEVER_SHOWN, NO_LONGER_SHOWN, asked_message, without_pictures
from pipeline.runtime.context import RunContext

_log = logging.getLogger(__name__)
_PICTURES = attrgetter("pictures")
_NONE: Mapping[str, bytes] = {}


def with_files(said: ChatMessage, context: RunContext) -> ChatMessage:
    """`said` with the files of the person's message: their notes and texts, and the pictures if the model
    sees them. The same message without files."""
    if not context.files:
        return said
    asked = asked_message(said.content, context.files, context.attached)
    if asked.pictures and not context.settings.vision:
        return without_pictures(asked, NEVER_SHOWN)
    return asked


async def with_pictures(
    context: RunContext, messages: tuple[ChatMessage, ...]
) -> tuple[tuple[ChatMessage, ...], Mapping[str, bytes]]:
    """`messages`, and the bytes of their pictures by the files' ids. A message with a picture that is no
    longer stored, or for a model that sees none, has a line in place of its pictures."""
    if not any(map(_PICTURES, messages)):
        return messages, _NONE
    loaded: dict[str, bytes] = {}
    return tuple([await _loaded(message, context, loaded) for message in messages]), loaded


async def _loaded(message: ChatMessage, context: RunContext, loaded: dict[str, bytes]) -> ChatMessage:
    if not message.pictures:
        return message
    if not context.settings.vision:
        return without_pictures(message, NEVER_SHOWN)
    try:
        for file in message.pictures:
            if file.id not in loaded:
                loaded[file.id] = await _content(file, context)
    except (MediaUnavailable, StorageError) as error:
        _log.info("a picture is not shown to the model", extra={"reason": str(error)})
        return without_pictures(message, NO_LONGER_SHOWN)
    return message


async def _content(file: StoredFile, context: RunContext) -> bytes:
    if (unstored := context.scope.unstored.get(file.id)) is not None:
        return unstored.content
    if context.attachments is None:
        raise FileGone("there is no store of files")
    return await context.attachments.content(context.scope.thread, file)
