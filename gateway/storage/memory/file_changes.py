"""The changes of files in a dictionary."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, replace

from gateway.storage.file_changes import FileChange, FileState, NewChange
from gateway.storage.identities import Identity, wrote
from gateway.storage.json_bodies import storable_text


class MemoryFileChanges:
    """A part of `MemoryStore`. `require_open` raises StorageError if the store is closed."""

    def __init__(self, require_open: Callable[[], None]) -> None:
        self._require_open = require_open
        self._changes: dict[int, FileChange] = {}
        self._made: set[tuple[str, str]] = set()
        self._next = 1

    async def begin(
        self, changes: Sequence[NewChange], folders: Sequence[tuple[str, str]] = ()
    ) -> tuple[int, ...]:
        self._require_open()
        ids = []
        for one in changes:
            values = {field.name: getattr(one, field.name) for field in fields(NewChange)}
            for name in ("root", "path", "author", "owner"):
                values[name] = storable_text(values[name])
            self._changes[self._next] = FileChange(**values, id=self._next)
            ids.append(self._next)
            self._next += 1
        self._made.update((storable_text(root), storable_text(path)) for root, path in folders)
        return tuple(ids)

    async def settle(self, after: Mapping[int, FileState | None]) -> None:
        self._require_open()
        for change_id, state in after.items():
            known = self._changes.get(change_id)
            if known is not None and state is None:
                del self._changes[change_id]
            elif known is not None:
                self._changes[change_id] = replace(known, after=state)

    async def mark_undoing(self, ids: Sequence[int], by: str) -> None:
        self._require_open()
        for one in ids:
            if one in self._changes:
                self._changes[one] = replace(self._changes[one], undone_by=by)

    async def undone_by(self, by: str) -> FileChange | None:
        return next(iter(self._all(lambda one: one.undone_by == by)), None)

    async def mark_undone(self, ids: Sequence[int], at: float) -> None:
        self._require_open()
        for one in ids:
            if one in self._changes:
                self._changes[one] = replace(self._changes[one], undone_at=at)

    async def of_path(self, root: str, path: str) -> tuple[FileChange, ...]:
        sought = storable_text(root), storable_text(path)
        return self._all(lambda one: (one.root, one.path) == sought)

    async def is_spare(self, root: str, folder: str, without: Collection[int]) -> bool:
        key = storable_text(root), storable_text(folder)
        below = self._all(lambda one: one.root == key[0] and one.path.startswith(f"{key[1]}/"))
        return key in self._made and all(one.undone_at or one.id in without for one in below)

    async def forget_folders(self, root: str, folders: Sequence[str]) -> None:
        self._require_open()
        self._made -= {(storable_text(root), storable_text(folder)) for folder in folders}

    async def of_action(self, action: str) -> tuple[FileChange, ...]:
        return self._all(lambda one: one.action == action)

    async def find(self, change_id: int) -> FileChange | None:
        self._require_open()
        return self._changes.get(change_id)

    async def newest_of_thread(self, thread: str) -> FileChange | None:
        found = self._all(lambda one: one.thread == thread and not one.undone_at and one.tool != "")
        return found[-1] if found else None

    async def named(self, name: str, *, limit: int) -> tuple[FileChange, ...]:
        sought = storable_text(name)
        found = self._all(lambda one: not sought or f"/{one.path}".endswith(f"/{sought}"))
        return tuple(reversed(found))[:limit]

    async def of_thread(self, thread: str) -> tuple[FileChange, ...]:
        return self._all(lambda one: one.thread == thread and one.tool != "")

    async def detach(self, removed: Collection[int], links: Mapping[int, FileState]) -> None:
        self._require_open()
        for change_id in removed:
            self._changes.pop(change_id, None)
        for change_id, before in links.items():
            if change_id in self._changes:
                known = replace(self._changes[change_id], action="", tool="", thread="", message_id="")
                self._changes[change_id] = replace(known, author="", owner="", before=before)
        self._forget_folders()

    async def prune(self, *, before: float, most: int) -> int:
        self._require_open()
        kept: dict[tuple[str, str], int] = {}
        removed = 0
        for one in sorted(self._changes.values(), key=lambda one: -one.id):
            place = kept[one.root, one.path] = kept.get((one.root, one.path), 0) + 1
            if one.at < before or place > most:
                del self._changes[one.id]
                removed += 1
        self._forget_folders()
        return removed

    async def forget(self, owner: str) -> int:
        own = {(one.root, one.path) for one in self._all(lambda one: one.owner == owner)}
        gone = self._all(lambda one: (one.root, one.path) in own)
        for one in gone:
            del self._changes[one.id]
        self._forget_folders()
        return len(gone)

    def forget_authors(self, identities: Collection[Identity]) -> None:
        """Take these people out of the changes."""
        for one in self._all(lambda one: wrote(identities, one.thread, one.author)):
            self._changes[one.id] = replace(one, author="")

    async def contents(self) -> frozenset[str]:
        states = [state for one in self._all(lambda _one: True) for state in (one.before, one.after) if state]
        return frozenset(state.content for state in states if state.content)

    def _forget_folders(self) -> None:
        """Forget the folders below which no change is recorded."""
        self._made = {
            (root, folder)
            for root, folder in self._made
            if self._all(lambda one: one.root == root and one.path.startswith(f"{folder}/"))  # noqa: B023 - used at once
        }

    def _all(self, wanted: Callable[[FileChange], bool]) -> tuple[FileChange, ...]:
        self._require_open()
        return tuple(one for one in self._changes.values() if wanted(one))
