"""Store the files that tools return, and say for the model what becomes of each.

The gate calls it inside the effect that executes the tool: a restart finds the references in the record.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

from pipeline.domain.errors import StorageError
from pipeline.domain.file_types import FileType, file_type, is_text, safe_name
from pipeline.domain.files import FileStore, StoredFile
from pipeline.domain.visible import visible_text
from pipeline.redaction.redactor import Redactor
from pipeline.runtime.scope import TurnScope
from pipeline.tools.tool import ToolFile

_log = logging.getLogger(__name__)

MEGABYTE = 1_000_000
_CHECKED_BYTES = MEGABYTE
"""Texts up to this size are searched for configured secrets."""
_NAME_CHARS = 100
_CAPTION_CHARS = 900
"""Within the limits of all platforms; Telegram's is 1,024."""
_KINDS = {"image": "picture", "audio": "sound", "voice": "sound", "video": "video", "file": "file"}


class ReturnedFiles:
    """Stores files for turns: at most `most` per turn, each of at most `max_bytes`."""

    def __init__(self, store: FileStore, redactor: Redactor, *, max_bytes: int, most: int) -> None:
        self._store = store
        self._redactor = redactor
        self._max_bytes = max_bytes
        self._most = most

    async def keep(self, files: Sequence[ToolFile], scope: TurnScope) -> tuple[list[str], list[StoredFile]]:
        """A line for the model about each file, and the references of those that are sent. Adds them to the
        turn's files. Raises nothing for a file: its line says why it is not sent."""
        lines: list[str] = []
        kept: list[StoredFile] = []
        for file in files:
            found = file_type(file.data, file.mime)
            name = self._name(file, found, scope)
            refusal = await asyncio.to_thread(self._refusal, file, scope)
            stored = None if refusal else await self._stored(file, found, name, scope)
            if stored is None:
                lines.append(f"[{name} is not sent: {refusal or 'it could not be stored'}]")
                continue
            known = scope.files.number_of(stored.id)
            scope.files.note((stored,))
            if known:
                (first, *_) = scope.files.since(known - 1)
                lines.append(f"[{first.name} is file {known} already; it is sent once]")
                continue
            kept.append(stored)
            what = " ".join(part for part in (_KINDS[found.kind], found.about) if part)
            lines.append(f"[File {len(scope.files)}: {name}, {what}, will be sent]")
        return lines, kept

    def _name(self, file: ToolFile, found: FileType, scope: TurnScope) -> str:
        """A name that no other file of the turn has."""
        name = safe_name(self._redactor.line(visible_text(file.name[: 10 * _NAME_CHARS]), _NAME_CHARS), found)
        stem, dot, end = name.rpartition(".")
        number = 2
        taken, wanted = scope.files.names, name
        while wanted in taken:
            wanted = f"{stem} {number}{dot}{end}" if stem else f"{name} {number}"
            number += 1
        return wanted

    def _refusal(self, file: ToolFile, scope: TurnScope) -> str:
        """Why the file is not sent; empty if it is."""
        if len(scope.files) >= self._most:
            return f"one answer sends at most {self._most} files (files.out_per_turn)"
        if not file.data:
            return "it is empty"
        if len(file.data) > self._max_bytes:
            size, limit = len(file.data) / MEGABYTE, self._max_bytes // MEGABYTE
            return f"it has {size:.1f} MB, and at most {limit} are sent (files.out_max_mb)"
        if self._has_secret(file.data):
            return "it contains a secret of this bot's configuration"
        return ""

    def _has_secret(self, data: bytes) -> bool:
        """Whether a text contains a configured secret. Larger files are not searched."""
        if len(data) > _CHECKED_BYTES or not is_text(data):
            return False
        text = data.decode("utf-8", "replace")
        return self._redactor.configured(text) != text

    async def _stored(
        self, file: ToolFile, found: FileType, name: str, scope: TurnScope
    ) -> StoredFile | None:
        scoped = scope.message_id if scope.mode == "otr" else ""
        try:
            stored = await self._store.put(
                scope.thread,
                file.data,
                kind=found.kind,
                mime=found.mime,
                name=name,
                about=found.about,
                scope=scoped,
                off_record=bool(scoped),
            )
        except StorageError as error:
            _log.warning("a tool's file is not stored", extra={"reason": str(error)})
            return None
        caption = visible_text(file.caption[: 4 * _CAPTION_CHARS])
        return replace(stored, caption=self._redactor.line(caption, _CAPTION_CHARS) if caption else "")
