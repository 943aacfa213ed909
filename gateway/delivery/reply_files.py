"""The parts of a reply that show its files, and what is left to do with the files once it is sent."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any

from typing_extensions import TypeIs

from adapters.channel import Channel, OutboundReply, Outgoing, Part, PostingChannel, shows
from adapters.files import FilePostingChannel, OutgoingFile
from pipeline.domain.attachments import file_size
from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError
from pipeline.domain.file_types import file_type, safe_name
from pipeline.domain.files import FileGone, FileStore, StoredFile
from pipeline.domain.ids import ThreadKey

_log = logging.getLogger(__name__)

SHOWN_S = 600.0
"""How long a page may still fetch a file off the record after its reply."""
_GONE = "The file `{name}` is no longer stored, so I cannot send it."
_TOO_LARGE = "The file `{name}` ({size}) is too large to send here."
_UNABLE = "I cannot send files here: `{name}` ({size})."
_REFUSED = "I was not allowed to post the file `{name}` ({size}) here."
_LINK = " You can get it here for 7 days: <{link}>"

LinkTo = Callable[[ThreadKey, StoredFile, float], str]
"""The address at which people get a file of a thread for 7 days from a Unix time; empty for none."""


class ReplyFiles:
    """Renders the files of replies for posting channels."""

    def __init__(
        self,
        *,
        store: FileStore,
        link_to: LinkTo,
        clock: Clock,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        """`spawn` starts a task that ends with the gateway."""
        self._store = store
        self._link_to = link_to
        self._clock = clock
        self._spawn = spawn

    async def part(self, adapter: PostingChannel, reply: OutboundReply, file: StoredFile) -> Part:
        """The message that shows `file`, or says in words why it is not there. Raises StorageError."""
        limit = adapter.capabilities.file_bytes
        if not posts_files(adapter):
            return self._line(adapter, reply, file, _UNABLE)
        if file.size > limit:
            return self._line(adapter, reply, file, _TOO_LARGE)
        try:
            content = await self._store.get(reply.thread, file.id)
        except FileGone:
            return adapter.render(Outgoing(text=_GONE.format(name=_plain(file.name))))[0]
        found = file_type(content, file.mime)
        name = safe_name(file.name, found)
        return adapter.render_file(
            OutgoingFile(content=content, name=name, kind=found.kind, mime=found.mime, caption=file.caption)
        )

    def refused(self, adapter: PostingChannel, reply: OutboundReply, file: StoredFile) -> Part:
        """The message in place of a file that the platform refuses."""
        return self._line(adapter, reply, file, _REFUSED)

    async def settle(self, adapter: Channel, reply: OutboundReply) -> None:
        """Discard the files of a reply off the record that is sent or given up. A page has some minutes to
        fetch them. A failure is logged: such files age within an hour."""
        if not reply.off_record or not reply.files:
            return
        if shows(adapter):
            self._spawn(self._discard_later(reply))
        else:
            await self._discard(reply)

    async def _discard_later(self, reply: OutboundReply) -> None:
        await self._clock.sleep(SHOWN_S)
        await self._discard(reply)

    async def _discard(self, reply: OutboundReply) -> None:
        try:
            await self._store.discard(reply.thread, [file.id for file in reply.files])
        except StorageError as error:
            _log.warning("files off the record are not removed yet", extra={"reason": str(error)})

    def _line(self, adapter: PostingChannel, reply: OutboundReply, file: StoredFile, words: str) -> Part:
        # The link is the same at each attempt, so that the message can be found after a crash. Off the record
        # the file is discarded with the reply, and a link would lead nowhere.
        link = "" if reply.off_record else self._link_to(reply.thread, file, reply.created_at)
        text = words.format(name=_plain(file.name), size=file_size(file.size))
        # One message, whole: a channel with very short ones gets the link alone.
        for said in (text + _LINK.format(link=link), f"<{link}>") if link else ():
            parts = adapter.render(Outgoing(text=said))
            if len(parts) == 1:
                return parts[0]
        return adapter.render(Outgoing(text=text))[0]


def posts_files(adapter: PostingChannel) -> TypeIs[FilePostingChannel]:
    """Whether the channel posts files; `isinstance` would check every member of the protocol."""
    return adapter.capabilities.file_bytes > 0 and hasattr(adapter, "render_file")


def _plain(name: str) -> str:
    return name.replace("`", "'") or "file"
