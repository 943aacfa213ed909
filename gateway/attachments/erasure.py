"""Remove the stored files of a message that its author deletes on the platform."""

from __future__ import annotations

from adapters.identity import derived_message_id
from gateway.storage.log_records import files_of
from gateway.storage.ports import Store
from pipeline.domain.files import FileStore
from pipeline.domain.messages import Withdrawal


class FileErasure:
    """Removes files by the message that they came with. Each message has its own copies, so a file of another
    message with the same content stays."""

    def __init__(self, store: Store, files: FileStore) -> None:
        self._store = store
        self._files = files

    async def deleted(self, item: Withdrawal) -> None:
        """Remove the files of the deleted message. Raises StorageError."""
        thread = item.thread
        # The platforms that report deletions identify a message by its place, edits apart.
        message_id = derived_message_id(thread.channel, thread.account, item.place)
        records = await self._store.read_log(thread.encode(), kinds=("user",), message_id=message_id)
        found = [file.id for record in records for file in files_of(record)]
        if found:
            await self._files.discard(thread, found)
