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
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from pipeline.domain.bounded_dict import BoundedDict
from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError
from pipeline.domain.frozen import dataclass
from pipeline.history.facts import with_facts
from pipeline.runtime.ports import WorkspaceTexts
from pipeline.runtime.scope import TurnScope
from pipeline.tools.confine import person_folder, person_place, read_text, write_private
from pipeline.tools.folders import NO_STAMP, Place, Stamp, followed, stamp_of
from pipeline.tools.tool import Refused, ToolFailed

_log = logging.getLogger(__name__)

_MOST_CHARS = 16_000
"""The most of one text; the rest is left out, with a note to the model."""
_MOST_BYTES = 1_000_000
_LOOK_AGAIN_S = 1.0
_MOST_PEOPLE = 128
_CUT = "\n[The rest of this text is left out: it is too long.]"
_MEMORY = "MEMORY.md"
_TIME_ZONE = "TIME_ZONE"
_ZONE_CHARS = 64
_OPERATORS = ("IDENTITY.md", "SOUL.md", "AGENTS.md", "USER.md", _MEMORY)
_OWN = ("USER.md", _MEMORY, _TIME_ZONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Files:
    """The texts of one folder's files, until the folder is checked again."""

    looked_at: float
    stamps: tuple[Stamp, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """The texts for one person's turns, and what they were made of."""

    operators: _Files
    own: _Files
    texts: WorkspaceTexts


class WorkspaceFolder:
    """The `Workspace` of a folder, and the `FactBook` of the people in it. Changes take effect within a
    second."""

    def __init__(self, root: Path, clock: Clock) -> None:
        self._root = root
        self._clock = clock
        # The operator may use links.
        self._operators_paths = {name: root / name for name in _OPERATORS}
        self._operators: _Files | None = None
        self._shown = BoundedDict[str, _Shown](_MOST_PEOPLE)
        self._writing = asyncio.Lock()

    def texts(self, scope: TurnScope) -> WorkspaceTexts:
        """See `Workspace.texts`."""
        owner, now = scope.owner, self._clock.monotonic()
        shown = self._shown.get(owner)
        operators = self._operators
        if operators is None or now - operators.looked_at >= _LOOK_AGAIN_S:
            operators = self._operators = self._operators_files(operators, now)
        own = shown.own if shown is not None else None
        if own is None or now - own.looked_at >= _LOOK_AGAIN_S:
            place = person_place(self._root, owner)
            own = _checked(own, place.stamps(_OWN), lambda name: place / name, _OWN, now)
        if shown is None or shown.operators is not operators or shown.own is not own:
            shown = self._shown[owner] = _Shown(operators=operators, own=own, texts=_joined(operators, own))
        return shown.texts

    async def remember(self, scope: TurnScope, facts: Sequence[str]) -> None:
        """See `FactBook.remember`."""
        path = person_place(self._root, scope.owner) / _MEMORY
        # Serialised: two of a person's conversations may end at the same time.
        async with self._writing:
            await asyncio.to_thread(_add_facts, path, facts, self._clock.now())
        self._shown.pop(scope.owner, None)

    async def keep_time_zone(self, scope: TurnScope, name: str) -> None:
        """Store the IANA name of the time zone of the turn's owner. Raises ToolFailed."""
        path = person_place(self._root, scope.owner) / _TIME_ZONE
        await asyncio.to_thread(write_private, path, f"{name}\n")
        self._shown.pop(scope.owner, None)

    async def carry_over(self, source: str, target: str, settings_of: str) -> bool:
        """Copy the folder of the owner `source`, unless that is empty, into that of `target`, and then the
        time zone of `settings_of`. What is there is not replaced. False if not all could be copied."""
        copied = await asyncio.to_thread(_carry_over, self._root, source, target, settings_of)
        self._shown.pop(target, None)
        return copied

    async def discard(self, owner: str) -> None:
        """Remove everything in the folder of `owner`. Raises StorageError."""
        async with self._writing:
            try:
                await asyncio.to_thread(_remove, person_folder(self._root, owner))
            except OSError as error:
                reason = error.strerror or "I/O error"
                raise StorageError(f"the folder of a person could not be removed: {reason}") from error
        self._shown.pop(owner, None)

    def _operators_files(self, known: _Files | None, now: float) -> _Files:
        paths = self._operators_paths
        stamps = tuple(map(stamp_of, paths.values()))
        return _checked(known, stamps, lambda name: followed(paths[name]), _OPERATORS, now)


def _remove(folder: Path) -> None:
    # A link is no folder of a person: what it leads to stays.
    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder)


def _checked(
    known: _Files | None,
    stamps: tuple[Stamp, ...],
    place: Callable[[str], Place],
    names: Sequence[str],
    now: float,
) -> _Files:
    """The files `names`, read again where their stamp has changed; a file that cannot be read is empty."""
    if known is not None and known.stamps == stamps:
        return replace(known, looked_at=now)
    old = zip(known.stamps, known.texts, strict=True) if known is not None else [(NO_STAMP, "")] * len(names)
    texts = [
        text if stamp == seen else (_read(place(name)) if stamp != NO_STAMP else "")
        for name, stamp, (seen, text) in zip(names, stamps, old, strict=True)
    ]
    return _Files(looked_at=now, stamps=stamps, texts=tuple(texts))


def _joined(operators: _Files, own: _Files) -> WorkspaceTexts:
    identity, soul, agents, user, memory = operators.texts
    own_user, own_memory, zone = own.texts
    return WorkspaceTexts(
        identity=identity,
        soul=soul,
        agents=agents,
        user="\n\n".join(text for text in (user, own_user) if text),
        memory="\n\n".join(text for text in (memory, own_memory) if text),
        time_zone=zone[:_ZONE_CHARS].strip(),
    )


def _read(path: Place) -> str:
    try:
        text = read_text(path, most_bytes=_MOST_BYTES).strip()
    except ToolFailed as failure:
        _log.warning(
            "a text of the workspace is left out", extra={"path": str(path.path), "reason": str(failure)}
        )
        return ""
    return text if len(text) <= _MOST_CHARS else text[:_MOST_CHARS] + _CUT


def _carry_over(root: Path, source: str, target: str, settings_of: str) -> bool:
    old = dict(person_place(root, source).files()) if source else {}
    zone = person_place(root, settings_of) / _TIME_ZONE
    copied = True
    for path, place in (*old.items(), *([(_TIME_ZONE, zone)] if zone.is_file() else [])):
        into = person_place(root, target)
        for part in path.split("/"):
            into /= part
        try:
            if not into.exists():
                with os.fdopen(place.open_to_read(), "rb") as file:
                    into.replace_with(file.read())
        except (OSError, ToolFailed, Refused) as error:
            _log.warning("a person's file is not copied", extra={"path": path, "reason": str(error)})
            copied = False
    return copied


def _add_facts(path: Place, facts: Sequence[str], now: float) -> None:
    try:
        book = read_text(path, most_bytes=_MOST_BYTES) if path.exists() else ""
        write_private(path, with_facts(book, facts, now))
    except ToolFailed as failure:
        raise StorageError(f"{path.parts[-1]}: {failure}") from failure
