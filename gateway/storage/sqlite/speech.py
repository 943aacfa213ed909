"""SQL on speech buffers, speakers' preferences and transcripts, and the part of the store that runs it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from typing import Any, Final, get_args

from gateway.storage.json_bodies import decode_body, encode_body, storable_text
from gateway.storage.speech import ReadAloudMode, ReadAloudWishes, SpeakerKey, SpeakerPreferences
from gateway.storage.sqlite.worker_thread import DatabaseThread

_KEEP_BUFFER = "INSERT OR REPLACE INTO speech_buffers (key, body, at) VALUES (?, ?, ?)"
_DROP_BUFFER = "DELETE FROM speech_buffers WHERE key = ?"
_BUFFERS = "SELECT key, body FROM speech_buffers ORDER BY at, key"
_PREFERENCES = """
    SELECT language, voice_replies, voice_speed, voice_brief, voice_command FROM speakers
    WHERE channel = ? AND account = ? AND user = ?"""
_LANGUAGE = """
    INSERT INTO speakers (channel, account, user, language) VALUES (?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET language = excluded.language"""
_READING = """
    INSERT INTO speakers (channel, account, user, voice_replies, voice_speed, voice_brief, voice_command)
    VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE
        SET voice_replies = excluded.voice_replies, voice_speed = excluded.voice_speed,
            voice_brief = excluded.voice_brief, voice_command = excluded.voice_command"""
_MODES: Final[tuple[ReadAloudMode, ...]] = get_args(ReadAloudMode)
"""The column voice_replies holds the place of the mode in this list."""
_TRANSCRIPT = "SELECT body FROM transcripts WHERE key = ? AND at > ?"
_KEEP_TRANSCRIPT = "INSERT OR REPLACE INTO transcripts (key, body, at) VALUES (?, ?, ?)"
_FORGET_TRANSCRIPTS = """
    DELETE FROM transcripts
    WHERE key IN (SELECT key FROM transcripts ORDER BY at DESC, key LIMIT -1 OFFSET ?)"""


class SqliteVoices:
    """Speech data in one SQLite file: a part of `SqliteStore`."""

    def __init__(self, writer: Callable[[], DatabaseThread], reader: Callable[[], DatabaseThread]) -> None:
        # Fetched at each call, because a reopened store has new threads.
        self._writer = writer
        self._reader = reader

    async def keep_buffer(self, key: str, body: Mapping[str, Any], *, at: float) -> None:
        await self._write(_KEEP_BUFFER, (key, encode_body(body), at))

    async def drop_buffer(self, key: str) -> None:
        await self._write(_DROP_BUFFER, (key,))

    async def buffers(self) -> tuple[tuple[str, Mapping[str, Any]], ...]:
        return await self._reader().submit(
            lambda db: tuple((key, decode_body(body)) for key, body in db.execute(_BUFFERS))
        )

    async def preferences_of(self, speaker: SpeakerKey) -> SpeakerPreferences:
        values = _values(speaker)
        row = await self._reader().submit(lambda db: db.execute(_PREFERENCES, values).fetchone())
        if row is None:
            return SpeakerPreferences()
        language, mode, speed, brief, command = row
        reading = ReadAloudWishes(mode=_MODES[mode], speed=speed, brief=bool(brief))
        return SpeakerPreferences(language=language, reading=reading, voice_command=command)

    async def remember_language(self, speaker: SpeakerKey, language: str) -> None:
        await self._write(_LANGUAGE, (*_values(speaker), storable_text(language)))

    async def want_reading(self, speaker: SpeakerKey, wanted: ReadAloudWishes, *, command: str) -> None:
        mode = _MODES.index(wanted.mode)
        row = (*_values(speaker), mode, wanted.speed, int(wanted.brief), storable_text(command))
        await self._write(_READING, row)

    async def transcript(self, key: str, *, newer_than: float) -> Mapping[str, Any] | None:
        row = await self._reader().submit(lambda db: db.execute(_TRANSCRIPT, (key, newer_than)).fetchone())
        return None if row is None else decode_body(row[0])

    async def keep_transcript(self, key: str, body: Mapping[str, Any], *, at: float, limit: int) -> None:
        text = encode_body(body)

        def work(db: sqlite3.Connection) -> None:
            db.execute(_KEEP_TRANSCRIPT, (key, text, at))
            db.execute(_FORGET_TRANSCRIPTS, (limit,))

        await self._writer().submit(work)

    async def forget_transcripts(self) -> None:
        await self._write("DELETE FROM transcripts", ())

    async def _write(self, statement: str, values: tuple[Any, ...]) -> None:
        def work(db: sqlite3.Connection) -> None:
            db.execute(statement, values)

        await self._writer().submit(work)


def _values(speaker: SpeakerKey) -> tuple[str, str, str]:
    return speaker.channel, speaker.account, speaker.user
