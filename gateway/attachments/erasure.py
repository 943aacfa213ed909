"""Remove the stored files of a message that its author deletes or edits on the platform."""

from __future__ import annotations

from adapters.identity import derived_message_id
from gateway.storage.log_records import files_of, place_of
from gateway.storage.ports import Record, Store
from pipeline.domain.files import FileStore
from pipeline.domain.messages import InboundMessage, Withdrawal

_MOST_MESSAGES = 1_000
"""The messages of a thread, newest first, among which the versions of an edited one are looked for."""


class FileErasure:
    """Removes files by the message that they came with. Each message and each version of it has its own
    copies, so a file of another message with the same content stays."""

    def __init__(self, store: Store, files: FileStore) -> None:
        self._store = store
        self._files = files

    async def ended(self, item: InboundMessage | Withdrawal) -> None:
        """Remove the files of all versions of the deleted message, or of all versions before this one of an
        edited message. Raises StorageError."""
        found = [record for record in await self._versions(item) if record.message_id != item.message_id]
        if files := [file.id for record in found for file in files_of(record)]:
            await self._files.discard(item.thread, files)

    async def _versions(self, item: InboundMessage | Withdrawal) -> list[Record]:
        if not item.place:
            return []
        thread = item.thread.encode()
        # Where a platform reports deletions, the place of a message is what its first version is known by.
        first = derived_message_id(item.thread.channel, item.thread.account, item.place)
        known = await self._store.read_log(thread, kinds=("user",), message_id=first)
        newest = await self._store.read_log(thread, kinds=("user",), limit=_MOST_MESSAGES)
        return [*known, *(record for record in newest if place_of(record) == item.place)]
