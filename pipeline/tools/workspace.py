"""The folder of the bot's own texts, and of each person's: what the prompt is built from.

    IDENTITY.md SOUL.md AGENTS.md USER.md MEMORY.md   the operator's, for everybody
    skills/                                           the operator's (see `skills`)
    files/                                            the operator's, which tools read (see `files`)
    people/<owner>/USER.md, MEMORY.md                 one person's, or one room's
    people/<owner>/files/, notes/                     theirs, which tools change

Nothing has to be there, and nothing is created before it is needed.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError
from pipeline.history.facts import with_facts
from pipeline.runtime.ports import WorkspaceTexts
from pipeline.runtime.scope import TurnScope
from pipeline.tools.confine import person_folder, read_text, write_private
from pipeline.tools.tool import ToolFailed

_log = logging.getLogger(__name__)

_MOST_CHARS = 16_000
"""Of one text; the rest is left out, and the model is told so."""
_MOST_BYTES = 1_000_000
_LOOK_AGAIN_S = 1.0
_MOST_CACHED = 512
_CUT = "\n[The rest of this text is left out: it is too long.]"
_MEMORY = "MEMORY.md"
_USER = "USER.md"


@dataclass(slots=True, kw_only=True)
class _Cached:
    looked_at: float
    stamp: tuple[int, int]
    text: str


class WorkspaceFolder:
    """The `Workspace` of a folder, and the `FactBook` of the people in it. Changes are seen within a
    second."""

    def __init__(self, root: Path, clock: Clock) -> None:
        self._root = root
        self._clock = clock
        self._cache: OrderedDict[Path, _Cached] = OrderedDict()
        self._writing = asyncio.Lock()

    def texts(self, scope: TurnScope) -> WorkspaceTexts:
        """See `Workspace.texts`."""
        own = person_folder(self._root, scope.owner)
        return WorkspaceTexts(
            identity=self._text(self._root / "IDENTITY.md"),
            soul=self._text(self._root / "SOUL.md"),
            agents=self._text(self._root / "AGENTS.md"),
            user=self._both(_USER, own),
            memory=self._both(_MEMORY, own),
        )

    async def remember(self, scope: TurnScope, facts: Sequence[str]) -> None:
        """See `FactBook.remember`."""
        path = person_folder(self._root, scope.owner) / _MEMORY
        # One after the other: two of a person's conversations may end at once.
        async with self._writing:
            await asyncio.to_thread(_add_facts, path, facts, self._clock.now())
        self._cache.pop(path, None)

    def _both(self, name: str, own: Path) -> str:
        texts = (self._text(self._root / name), self._text(own / name))
        return "\n\n".join(text for text in texts if text)

    def _text(self, path: Path) -> str:
        """The file's text, read again when it has changed; empty where there is none that can be read."""
        now = self._clock.monotonic()
        cached = self._cache.get(path)
        if cached is not None and now - cached.looked_at < _LOOK_AGAIN_S:
            return cached.text
        stamp = _stamp(path)
        if cached is not None and cached.stamp == stamp:
            cached.looked_at = now
            return cached.text
        text = _read(path) if stamp != (0, 0) else ""
        self._cache[path] = _Cached(looked_at=now, stamp=stamp, text=text)
        while len(self._cache) > _MOST_CACHED:
            self._cache.popitem(last=False)
        return text


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return (0, 0)
    return (found.st_mtime_ns, found.st_size)


def _read(path: Path) -> str:
    try:
        # The operator's own links are followed.
        text = read_text(path.resolve(), most_bytes=_MOST_BYTES).strip()
    except ToolFailed as failure:
        _log.warning("a text of the workspace is left out", extra={"path": str(path), "reason": str(failure)})
        return ""
    return text if len(text) <= _MOST_CHARS else text[:_MOST_CHARS] + _CUT


def _add_facts(path: Path, facts: Sequence[str], now: float) -> None:
    try:
        book = read_text(path, most_bytes=_MOST_BYTES) if path.exists() else ""
        write_private(path, with_facts(book, facts, now))
    except ToolFailed as failure:
        raise StorageError(f"{path.name}: {failure}") from failure
