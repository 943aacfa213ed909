"""Read the folder with the bot's and each person's texts, from which the prompt is built.

    IDENTITY.md SOUL.md AGENTS.md USER.md MEMORY.md   the operator's, for all people
    skills/                                           the operator's (see `skills`)
    files/                                            the operator's, which tools read (see `files`)
    people/<owner>/USER.md, MEMORY.md                 one person's, or one room's
    people/<owner>/TIME_ZONE                          the zone that they named
    people/<owner>/files/, notes/                     theirs, which tools change

All files are optional, and nothing is created before it is needed.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError
from pipeline.history.facts import with_facts
from pipeline.runtime.ports import WorkspaceTexts
from pipeline.runtime.scope import TurnScope
from pipeline.tools.confine import person_place, read_text, write_private
from pipeline.tools.folders import Place, followed
from pipeline.tools.tool import Refused, ToolFailed

_log = logging.getLogger(__name__)

_MOST_CHARS = 16_000
"""The most of one text; the rest is left out, with a note to the model."""
_MOST_BYTES = 1_000_000
_LOOK_AGAIN_S = 1.0
_MOST_CACHED = 512
_MOST_PEOPLE = 128
_CUT = "\n[The rest of this text is left out: it is too long.]"
_MEMORY = "MEMORY.md"
_TIME_ZONE = "TIME_ZONE"
_ZONE_CHARS = 64
_OPERATORS = ("IDENTITY.md", "SOUL.md", "AGENTS.md")
_BOTH = ("USER.md", _MEMORY)
"""Texts of the operator that each person may have too."""


@dataclass(slots=True, kw_only=True)
class _Cached:
    looked_at: float
    stamp: tuple[int, int]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """The texts for one person's turns, until one of their files is checked again."""

    looked_at: float
    """The time of the oldest check of a file."""
    texts: WorkspaceTexts


class WorkspaceFolder:
    """The `Workspace` of a folder, and the `FactBook` of the people in it. Changes take effect within a
    second."""

    def __init__(self, root: Path, clock: Clock) -> None:
        self._root = root
        self._clock = clock
        self._cache: OrderedDict[Place, _Cached] = OrderedDict()
        self._shown: OrderedDict[str, _Shown] = OrderedDict()
        self._writing = asyncio.Lock()

    def texts(self, scope: TurnScope) -> WorkspaceTexts:
        """See `Workspace.texts`."""
        owner, now = scope.owner, self._clock.monotonic()
        shown = self._shown.get(owner)
        if shown is None or now - shown.looked_at >= _LOOK_AGAIN_S:
            shown = self._shown[owner] = self._looked_up(person_place(self._root, owner))
            self._shown.move_to_end(owner)
            while len(self._shown) > _MOST_PEOPLE:
                self._shown.popitem(last=False)
        return shown.texts

    async def remember(self, scope: TurnScope, facts: Sequence[str]) -> None:
        """See `FactBook.remember`."""
        path = person_place(self._root, scope.owner) / _MEMORY
        # Serialised: two of a person's conversations may end at the same time.
        async with self._writing:
            await asyncio.to_thread(_add_facts, path, facts, self._clock.now())
        self._cache.pop(path, None)
        self._shown.pop(scope.owner, None)

    async def keep_time_zone(self, scope: TurnScope, name: str) -> None:
        """Store the IANA name of the time zone of the turn's owner. Raises ToolFailed."""
        path = person_place(self._root, scope.owner) / _TIME_ZONE
        await asyncio.to_thread(write_private, path, f"{name}\n")
        self._cache.pop(path, None)
        self._shown.pop(scope.owner, None)

    def _looked_up(self, own: Place) -> _Shown:
        # The operator may use links.
        identity, soul, agents = (self._looked_at(followed(self._root / name)) for name in _OPERATORS)
        user, memory = (
            (self._looked_at(followed(self._root / name)), self._looked_at(own / name)) for name in _BOTH
        )
        zone = self._looked_at(own / _TIME_ZONE)
        return _Shown(
            looked_at=min(file.looked_at for file in (identity, soul, agents, *user, *memory, zone)),
            texts=WorkspaceTexts(
                identity=identity.text,
                soul=soul.text,
                agents=agents.text,
                user=_joined(user),
                memory=_joined(memory),
                time_zone=zone.text[:_ZONE_CHARS].strip(),
            ),
        )

    def _looked_at(self, path: Place) -> _Cached:
        """The file's text, read again when it has changed; empty if it cannot be read."""
        now = self._clock.monotonic()
        cached = self._cache.get(path)
        if cached is not None and now - cached.looked_at < _LOOK_AGAIN_S:
            return cached
        stamp = _stamp(path)
        if cached is not None and cached.stamp == stamp:
            cached.looked_at = now
            return cached
        text = _read(path) if stamp != (0, 0) else ""
        found = self._cache[path] = _Cached(looked_at=now, stamp=stamp, text=text)
        while len(self._cache) > _MOST_CACHED:
            self._cache.popitem(last=False)
        return found


def _joined(files: Iterable[_Cached]) -> str:
    return "\n\n".join(file.text for file in files if file.text)


def _stamp(path: Place) -> tuple[int, int]:
    try:
        found = path.status()
    except (ToolFailed, Refused):
        return (0, 0)
    return (found.st_mtime_ns, found.st_size) if found is not None else (0, 0)


def _read(path: Place) -> str:
    try:
        text = read_text(path, most_bytes=_MOST_BYTES).strip()
    except ToolFailed as failure:
        _log.warning(
            "a text of the workspace is left out", extra={"path": str(path.path), "reason": str(failure)}
        )
        return ""
    return text if len(text) <= _MOST_CHARS else text[:_MOST_CHARS] + _CUT


def _add_facts(path: Place, facts: Sequence[str], now: float) -> None:
    try:
        book = read_text(path, most_bytes=_MOST_BYTES) if path.exists() else ""
        write_private(path, with_facts(book, facts, now))
    except ToolFailed as failure:
        raise StorageError(f"{path.parts[-1]}: {failure}") from failure
