"""Find and read the files that came with the messages of a conversation, for the tool that reads them."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.storage.log_records import files_of
from gateway.storage.ports import Store
from pipeline.domain.bounded_dict import BoundedDict
from pipeline.domain.files import FileStore, StoredFile
from pipeline.domain.readings import DocumentText, FileReader
from pipeline.runtime.scope import TurnScope

_MESSAGES = 400
"""The newest messages of a person whose files are found."""
_MOST_FILES = 50
_KEPT = 4
"""Documents whose text stays in memory, as they are read page by page."""


class LoggedFiles:
    """Implements `ConversationFiles` over the log and the store of files."""

    def __init__(self, store: Store, files: FileStore, reader: FileReader) -> None:
        self._store = store
        self._files = files
        self._reader = reader
        self._read = BoundedDict[tuple[str, str], DocumentText](_KEPT)

    async def newest(self, scope: TurnScope) -> Sequence[StoredFile]:
        """See `ConversationFiles.newest`. Off the record only the message's own are known."""
        if scope.unstored:
            return [one.file for one in scope.unstored.values()]
        records = await self._store.read_log(
            scope.thread.encode(), kinds=("user",), session_id=scope.session_id, limit=_MESSAGES
        )
        found = [file for record in reversed(records) for file in files_of(record)]
        return list({file.id: file for file in found}.values())[:_MOST_FILES]

    async def document(self, scope: TurnScope, file: StoredFile) -> DocumentText:
        """See `ConversationFiles.document`."""
        key = scope.thread.encode(), file.id
        if (known := self._read.get(key)) is not None:
            return known
        unstored = scope.unstored.get(file.id)
        content = await self._files.get(scope.thread, file.id) if unstored is None else unstored.content
        document = await self._reader.document(content, name=file.name, mime=file.mime)
        if unstored is None:
            self._read[key] = document
        return document
