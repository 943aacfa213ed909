"""Forget the changes of a deleted conversation, or of a removed person, and the copies that no other change
needs. The files stay as they are.

The copies go at once. Where a crash prevents that, the daily clean-up removes them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from gateway.chronicle.chronicle import Chronicle, place_of
from gateway.chronicle.contents import Contents
from gateway.chronicle.file_history import without_thread
from gateway.storage.file_changes import FileChangeBook
from pipeline.domain.errors import StorageError
from pipeline.tools.folders import reason


class ChangeForgetting:
    """Forgets changes of `book`, with the copies in `contents`."""

    def __init__(self, book: FileChangeBook, contents: Contents, chronicle: Chronicle) -> None:
        self._book = book
        self._contents = contents
        self._chronicle = chronicle

    async def of_thread(self, thread: str) -> None:
        """Forget what tools changed in a thread. What other threads changed can still be taken back.
        Repeatable. Raises StorageError."""

        async def forget() -> None:
            files = {(one.root, one.path): place_of(one) for one in await self._book.of_thread(thread)}
            for (root, path), place in files.items():
                async with self._chronicle.locked([place]):
                    removed, links = without_thread(await self._book.of_path(root, path), thread)
                    await self._book.detach(removed, links)

        await self._with_copies(forget)

    async def of_owner(self, owner: str) -> None:
        """Forget all changes of the files that a person has changed. Repeatable. Raises StorageError."""

        async def forget() -> None:
            await self._book.forget(owner)

        await self._with_copies(forget)

    async def _with_copies(self, forget: Callable[[], Awaitable[None]]) -> None:
        known = await self._book.contents()
        await forget()
        for digest in known - await self._book.contents():
            try:
                # Set aside first: a change that is being recorded meanwhile finds that it must store its own.
                await asyncio.to_thread(self._contents.set_aside, digest)
                needed = digest in await self._book.contents()
                await asyncio.to_thread(self._contents.resolve_aside, digest, needed=needed)
            except OSError as error:
                raise StorageError(f"a copy of a file could not be removed: {reason(error)}") from error
