"""Record what tools do to files, with a copy from before, and take changes back.

A change is recorded before it is made. What it has led to is recorded afterwards; where a crash prevents
that, the next look at the file does it. It also completes what was being taken back.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import stat
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal
from weakref import WeakValueDictionary

from gateway.chronicle.contents import Contents
from gateway.chronicle.file_history import expected_state, later_changes
from gateway.runtime.crash_labels import CrashLabels
from gateway.storage.file_changes import NO_FILE, FileChange, FileChangeBook, FileState, NewChange
from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError
from pipeline.domain.frozen import dataclass
from pipeline.runtime.scope import TurnScope
from pipeline.tools.failures import Refused, ToolFailed
from pipeline.tools.folders import Place, reason

MOST_BYTES = 50_000_000
"""The largest file that is kept; a tool may not change or delete a larger one."""
MOST_CHANGES = 100
"""The most changes of one file that are stored."""
KEEP_DAYS = 30
_DAY_S = 86_400.0
_GRACE_S = 3_600.0
"""How long a content without a recorded change stays: its change may be about to be recorded."""
_LOCK_WAIT_S = 0.05
_log = logging.getLogger(__name__)

Outcome = Literal["restored", "covered", "already", "unknown"]
"""`covered`: a later change decides the content, so the file stays as it is. `already`: it was taken back
before. `unknown`: there is no such change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """The result of taking an action's changes back."""

    outcome: Outcome
    changes: tuple[FileChange, ...] = ()
    """The action's changes, one for each file."""
    later: tuple[FileChange, ...] = ()
    """The changes that decide the content of the files that stay as they are."""


class Chronicle:
    """The `Snapshots` of all workspaces. One process may run it beside another one."""

    def __init__(
        self,
        book: FileChangeBook,
        contents: Contents,
        clock: Clock,
        *,
        on_foreign: Callable[[Place, bytes], None],
        on_gone: Callable[[Place, bytes], None],
        crash_labels: CrashLabels | None = None,
    ) -> None:
        """`on_foreign` is called in a thread before a file gets back a content that may be foreign text. If
        it raises ToolFailed, the file stays as it is. `on_gone` is called in a thread with a file, and its
        content from before, that was removed because it was new."""
        self._on_foreign = on_foreign
        self._on_gone = on_gone
        self._crash_labels = crash_labels or CrashLabels()
        self._book = book
        self._contents = contents
        self._clock = clock
        self._locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    # -- changes by tools -----------------------------------------------------------------------
    @asynccontextmanager
    async def keeping(
        self, places: Sequence[Place], *, action: str, tool: str, scope: TurnScope, foreign: bool
    ) -> AsyncIterator[None]:
        """See `Snapshots.keeping`."""
        async with self.locked(places):
            before = [await self._looked_at(place) for place in places]
            new = [
                NewChange(
                    action=action,
                    tool=tool,
                    root=_root(place),
                    path=_path(place),
                    thread=scope.thread.encode(),
                    message_id=scope.message_id,
                    author=scope.author.id,
                    owner=scope.owner,
                    foreign=foreign,
                    before=state,
                    at=self._clock.now(),
                )
                for place, state in zip(places, before, strict=True)
            ]
            async with self._folders_locked(places):
                missing = await asyncio.to_thread(_missing_folders, places)
                ids = await self._book.begin(new, missing)
            for place, state in zip(places, before, strict=True):
                await self._keep_again(place, state)
            self._crash_labels.reach("change-begun")
            try:
                yield
            except ToolFailed:
                await self._settle(places, before, ids)
                raise
            # Any other failure, such as a cancellation, may leave the tool's thread at work: the next look at
            # the file settles the change.
            await self._settle(places, before, ids)

    async def _settle(self, places: Sequence[Place], before: Sequence[FileState], ids: Sequence[int]) -> None:
        after: dict[int, FileState | None] = {}
        for place, old, change_id in zip(places, before, ids, strict=True):
            new = await self._kept(place)
            after[change_id] = None if new == old else new
            if new == old == NO_FILE:
                await self._remove_folders(place, [change_id])
        await self._book.settle(after)
        for place, change_id in zip(places, ids, strict=True):
            await self._keep_again(place, after[change_id] or NO_FILE)

    # -- taking back ----------------------------------------------------------------------------
    async def undo(self, change_id: int, *, by: str) -> Undone:
        """Take back all that the action of this change did; `by` names what does it, such as a message's id.
        Repeating it after a crash completes it.

        Raises ToolFailed if a file cannot be written, and StorageError, also for a damaged copy.
        """
        change = await self._book.find(change_id)
        if change is None:
            return Undone(outcome="unknown")
        changes = await self._book.of_action(change.action) if change.tool else (change,)
        places = [place_of(one) for one in changes]
        async with self.locked(places):
            for place in places:
                await self._looked_at(place)
            # Read again: a change that has changed nothing is gone by now.
            changes = tuple([one for known in changes if (one := await self._book.find(known.id))])
            live = {one.id: one for one in changes if not one.undone_at}
            if not live:
                return Undone(outcome="already" if changes else "unknown", changes=changes)
            await self._book.mark_undoing(tuple(live), by)
            self._crash_labels.reach("undo-begun")
            later: list[FileChange] = []
            for one in live.values():
                history = await self._book.of_path(one.root, one.path)
                later += later_changes(history, one, live)
                await self._complete(place_of(one), history, await self._kept(place_of(one)))
        return Undone(outcome="covered" if later else "restored", changes=changes, later=tuple(later))

    async def _complete(self, place: Place, history: Sequence[FileChange], state: FileState) -> FileState:
        """Take the changes back whose taking back was begun; the state afterwards."""
        begun = [one.id for one in history if one.undone_by and not one.undone_at]
        target = expected_state(history, begun)
        if state == expected_state(history):
            foreign = any(one.foreign for one in history)
            await asyncio.to_thread(self._write, place, state, target, foreign=foreign)
            state = target
        if state == NO_FILE:
            await self._remove_folders(place, begun)
        self._crash_labels.reach("undo-written")
        await self._book.mark_undone(begun, self._clock.now())
        return state

    async def _remove_folders(self, place: Place, without: Collection[int]) -> None:
        """Remove the empty folders of a file that is not there, the innermost first: those that changes have
        made, and below which no other change than those of the ids `without` remains."""
        gone: list[str] = []
        async with self._folders_locked([place]):
            for count in range(len(place.parts) - 1, 0, -1):
                folder = Place(place.anchor, place.parts[:count])
                if not await self._book.is_spare(_root(place), _path(folder), without):
                    break
                if not await asyncio.to_thread(folder.remove_if_empty):
                    break
                gone.append(_path(folder))
            # At once, behind the last one: after a crash in between, all of them are looked at again.
            if gone:
                await self._book.forget_folders(_root(place), gone)

    async def undo_last(self, thread: str, *, by: str, author: str | None = None) -> Undone:
        """Take back the newest change by a tool in the thread that was not taken back, unless it is covered.
        Repeating it with the same `by` takes back no other one. `author`: only a change of their turn.

        Raises ToolFailed if a file cannot be written, and StorageError, also for a damaged copy.
        """
        if (begun := await self._book.undone_by(by)) is not None:
            done = await self.undo(begun.id, by=by)
            return replace(done, outcome="restored") if done.outcome == "already" else done
        last = await self.last_of(thread)
        if last is None or (author is not None and last.author != author):
            return Undone(outcome="unknown")
        later = later_changes(await self._book.of_path(last.root, last.path), last, [last.id])
        if later:
            return Undone(outcome="covered", changes=(last,), later=tuple(later))
        return await self.undo(last.id, by=by)

    async def last_of(self, thread: str) -> FileChange | None:
        """The newest change by a tool in the thread that was not taken back. Raises StorageError."""
        while (change := await self._book.newest_of_thread(thread)) is not None and change.after is None:
            place = place_of(change)
            async with self.locked([place]):
                await self._looked_at(place)
            if (known := await self._book.find(change.id)) is not None:
                return known
        return change

    def _write(self, place: Place, present: FileState, state: FileState, *, foreign: bool) -> None:
        try:
            if state == NO_FILE:
                with suppress(FileNotFoundError):
                    place.unlink()
                if present != NO_FILE:
                    self._on_gone(place, self._contents.get(present.content))
            else:
                data = self._contents.get(state.content)
                if foreign:
                    self._on_foreign(place, data)
                place.replace_with(data, state.mode)
        except OSError as error:
            raise ToolFailed(f"{place.parts[-1]}: it cannot be written ({reason(error)})") from None

    # -- the present state ----------------------------------------------------------------------
    async def _looked_at(self, place: Place) -> FileState:
        """The present state of a file, kept. Settles its changes, and records a change that no tool made."""
        state = await self._kept(place)
        history = await self._book.of_path(_root(place), _path(place))
        if not history:
            return state
        if (last := history[-1]).after is None:
            # Nothing changed, or the change is what the file shows now.
            base = expected_state(history[:-1]) if history[:-1] else last.before
            nothing = state in (last.before, base)
            if nothing and state == NO_FILE:
                await self._remove_folders(place, [last.id])
            await self._book.settle({last.id: None if nothing else state})
            await self._keep_again(place, state)
            return state
        if any(one.undone_by and not one.undone_at for one in history):
            state = await self._complete(place, history, state)
            history = await self._book.of_path(_root(place), _path(place))
        if state != (known := expected_state(history)):
            await self._book.begin([_foreign_change(last, known, state, self._clock.now())])
            await self._keep_again(place, state)
        return state

    async def _keep_again(self, place: Place, state: FileState) -> None:
        """Store a content that was removed as unused (see `forgetting`) before its change was recorded."""
        if state != NO_FILE and not await asyncio.to_thread(self._contents.has, state.content):
            await self._kept(place)

    async def _kept(self, place: Place) -> FileState:
        """The present state of a file, whose content is stored. Raises ToolFailed, StorageError."""

        def keep() -> FileState:
            try:
                state, data = _state(place)
                if state != NO_FILE:
                    self._contents.put(data)
            except ToolFailed as failure:
                raise type(failure)(f"{place.parts[-1]}: {failure}") from None
            except OSError as error:
                raise StorageError(f"no copy of {place.parts[-1]} can be kept: {reason(error)}") from error
            return state

        return await asyncio.to_thread(keep)

    # -- clean-up -------------------------------------------------------------------------------
    async def remove_old(self) -> None:
        """Remove old changes and contents now and once a day, until cancelled."""
        while True:
            try:
                removed = await self.sweep()
            except (OSError, StorageError) as error:
                _log.warning("old changes of files could not be removed", extra={"reason": str(error)})
            else:
                if removed:
                    _log.info("old changes of files removed", extra={"changes": removed})
            await self._clock.sleep(_DAY_S)

    async def sweep(self) -> int:
        """Remove what is older than `KEEP_DAYS` or beyond `MOST_CHANGES`; how many changes were removed."""
        now = self._clock.now()
        removed = await self._book.prune(before=now - KEEP_DAYS * _DAY_S, most=MOST_CHANGES)
        used = await self._book.contents()
        await asyncio.to_thread(self._contents.remove_others, used, older_than=now - _GRACE_S)
        return removed

    # -- one at a time --------------------------------------------------------------------------
    @asynccontextmanager
    async def locked(self, places: Sequence[Place]) -> AsyncIterator[None]:
        """Keep every other use of this class from these files, in this process and in others."""
        async with self._keys_locked({(_root(place), _path(place)) for place in places}):
            yield

    @asynccontextmanager
    async def _folders_locked(self, places: Sequence[Place]) -> AsyncIterator[None]:
        """Keep every other use of this class from removing folders, and from recording changes, in the roots
        of these files. Held for a moment, and taken after the locks of files."""
        async with self._keys_locked({(_root(place), "") for place in places}):
            yield

    @asynccontextmanager
    async def _keys_locked(self, wanted: Collection[tuple[str, str]]) -> AsyncIterator[None]:
        # Sorted, so that two actions with the same files cannot wait for each other.
        keys = sorted(wanted)
        async with AsyncExitStack() as stack:
            for key in keys:
                lock = self._locks.setdefault(key, asyncio.Lock())
                await stack.enter_async_context(lock)
            for key in keys:
                name = "\0".join(key)
                while not self._contents.try_lock(name):
                    await self._clock.sleep(_LOCK_WAIT_S)
                stack.callback(self._contents.unlock, name)
            yield


def _foreign_change(last: FileChange, before: FileState, after: FileState, at: float) -> NewChange:
    return NewChange(
        action="",
        tool="",
        root=last.root,
        path=last.path,
        thread="",
        message_id="",
        author="",
        owner="",
        foreign=last.foreign,
        before=before,
        after=after,
        at=at,
    )


def _state(place: Place) -> tuple[FileState, bytes]:
    """The state of a file and its content. Raises OSError, Refused, and ToolFailed if it is too large."""
    try:
        opened = place.open_to_read()
    except FileNotFoundError:
        return NO_FILE, b""
    with os.fdopen(opened, "rb") as file:
        status = os.fstat(opened)
        if status.st_size > MOST_BYTES:
            raise Refused(f"no copy of it can be kept: it has {status.st_size} bytes, at most {MOST_BYTES}")
        data = file.read(MOST_BYTES + 1)
    digest = hashlib.sha256(data).hexdigest()
    return FileState(content=digest, mode=stat.S_IMODE(status.st_mode)), data


def _missing_folders(places: Sequence[Place]) -> list[tuple[str, str]]:
    """The folders of these files that are not there, each as its root and its path. Raises ToolFailed."""
    folders = (folder for place in places for folder in place.missing_folders())
    return list(dict.fromkeys((_root(folder), _path(folder)) for folder in folders))


def _root(place: Place) -> str:
    return os.path.realpath(place.anchor)


def _path(place: Place) -> str:
    return "/".join(place.parts)


def place_of(change: NewChange) -> Place:
    """The file of a change."""
    return Place(Path(change.root), tuple(change.path.split("/")))
