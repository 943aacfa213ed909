"""`parlour history` and `parlour undo`: list what tools changed in files, check the copies, and take changes
back, also beside a running gateway."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from adapters.formatting.visible import visible
from gateway.chronicle.chronicle import Chronicle, Undone
from gateway.chronicle.contents import Contents
from gateway.cli.graph import complain, write_out
from gateway.cli.stored_books import StorePlace, stored_books
from gateway.runtime.data_dir import CHRONICLE_DIR
from gateway.storage.file_changes import NO_FILE, FileChange, FileState
from pipeline.domain.clock import SystemClock
from pipeline.domain.errors import StorageError
from pipeline.tools.origins import Origins

_OK, _NOTHING_DONE = 0, 1
_SHOWN = 100


def list_changes(place: StorePlace, name: str) -> int:
    """Print the newest changes of the files whose path is or ends with `name`, of all files if it is empty.
    Exit code 0. Raises StorageError."""
    changes = asyncio.run(_changes(place, name))
    if not changes:
        write_out(f"no tool has changed {visible(name) or 'a file'} in the last 30 days\n")
        return _OK
    for one in changes:
        write_out(f"  {one.id}  {_line(one)}\n")
    if len(changes) == _SHOWN:
        write_out(f"only the newest {_SHOWN} are shown; name a file to see fewer\n")
    write_out("`parlour undo ID` takes one back\n")
    return _OK


def verify_copies(place: StorePlace) -> int:
    """Compute the SHA-256 of every copy again and print those that are damaged. Exit code 0, or 1 if there
    are any. Raises StorageError."""
    contents = Contents(place.folder / CHRONICLE_DIR)
    damaged = 0
    known = asyncio.run(_contents(place))
    for digest in sorted(known):
        try:
            contents.get(digest)
        except StorageError as error:
            damaged += 1
            write_out(f"  {error}\n")
    write_out(f"copies of files: {len(known)}, damaged or missing: {damaged}\n")
    return _NOTHING_DONE if damaged else _OK


def undo_change(place: StorePlace, change_id: int) -> int:
    """Take back what the action of a change did. Exit code 0, or 1 if nothing was taken back. Raises
    StorageError, and ToolFailed if a file cannot be written."""
    undone = asyncio.run(_undo(place, change_id))
    if undone.outcome == "unknown":
        return complain(f"there is no change {change_id}; `parlour history` lists those that there are")
    if undone.outcome == "already":
        return complain(f"change {change_id} was taken back before")
    covered = {one.path for one in undone.later}
    for one in undone.changes:
        if one.path not in covered:
            write_out(f"{visible(one.path)} is as it was before change {one.id}\n")
    for one in undone.later:
        write_out(
            f"{visible(one.path)} stays as it is: change {one.id} came later; take that back to go further\n"
        )
    return _OK


async def _changes(place: StorePlace, name: str) -> tuple[FileChange, ...]:
    async with stored_books(place) as books:
        return await books.file_changes.named(name, limit=_SHOWN)


async def _contents(place: StorePlace) -> frozenset[str]:
    async with stored_books(place) as books:
        return await books.file_changes.contents()


async def _undo(place: StorePlace, change_id: int) -> Undone:
    clock = SystemClock()
    async with stored_books(place) as books:
        chronicle = Chronicle(
            books.file_changes,
            Contents(place.folder / CHRONICLE_DIR),
            clock,
            on_foreign=lambda place, content: Origins(place.anchor).note_restored(place, content),
            on_gone=lambda place, content: Origins(place.anchor).note_gone(place, content),
        )
        return await chronicle.undo(change_id, by=f"parlour undo, {clock.now()}")


def _line(one: FileChange) -> str:
    when = datetime.fromtimestamp(one.at, UTC).strftime("%Y-%m-%d %H:%M")
    what = f"by {visible(one.tool)} in {visible(one.thread)}" if one.tool else "by no tool"
    end = "  (taken back)" if one.undone_at else ""
    return f"{when}  {visible(one.path)}  {_what(one.before, one.after)}  {what}{end}"


def _what(before: FileState, after: FileState | None) -> str:
    if before == NO_FILE:
        return "created"
    if after is None:
        return "unfinished"
    if after == NO_FILE:
        return "deleted"
    return "changed" if before.content != after.content else "permissions changed"
