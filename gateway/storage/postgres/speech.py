"""SQL on speech buffers, speakers' preferences and transcripts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, get_args

from gateway.storage.json_bodies import decode_body, encode_body
from gateway.storage.postgres.database import Connection, Database
from gateway.storage.postgres.statements import lock, plain
from gateway.storage.speech import ReadAloudMode, ReadAloudWishes, SpeakerKey, SpeakerPreferences

_KEEP_BUFFER = """
    INSERT INTO speech_buffers (key, body, at) VALUES ($1, $2, $3)
    ON CONFLICT (key) DO UPDATE SET body = excluded.body, at = excluded.at"""
_DROP_BUFFER = "DELETE FROM speech_buffers WHERE key = $1"
_BUFFERS = "SELECT key, body FROM speech_buffers ORDER BY at, key"
_PREFERENCES = """
    SELECT language, voice_replies, voice_speed, voice_brief, voice_command FROM speakers
    WHERE channel = $1 AND account = $2 AND "user" = $3"""
_LANGUAGE = """
    INSERT INTO speakers (channel, account, "user", language) VALUES ($1, $2, $3, $4)
    ON CONFLICT (channel, account, "user") DO UPDATE SET language = excluded.language"""
_READING = """
    INSERT INTO speakers (channel, account, "user", voice_replies, voice_speed, voice_brief, voice_command)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (channel, account, "user") DO UPDATE
        SET voice_replies = excluded.voice_replies, voice_speed = excluded.voice_speed,
            voice_brief = excluded.voice_brief, voice_command = excluded.voice_command"""
_MODES: Final[tuple[ReadAloudMode, ...]] = get_args(ReadAloudMode)
_TRANSCRIPT = "SELECT body FROM transcripts WHERE key = $1 AND at > $2"
_KEEP_TRANSCRIPT = """
    INSERT INTO transcripts (key, body, at) VALUES ($1, $2, $3)
    ON CONFLICT (key) DO UPDATE SET body = excluded.body, at = excluded.at"""
_FORGET_TRANSCRIPTS = """
    DELETE FROM transcripts WHERE key IN (SELECT key FROM transcripts ORDER BY at DESC, key OFFSET $1)"""


class PostgresVoices:
    """Speech data in a Postgres database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def keep_buffer(self, key: str, body: Mapping[str, Any], *, at: float) -> None:
        await self._write(_KEEP_BUFFER, plain(key), encode_body(body), at)

    async def drop_buffer(self, key: str) -> None:
        await self._write(_DROP_BUFFER, plain(key))

    async def buffers(self) -> tuple[tuple[str, Mapping[str, Any]], ...]:
        rows = await self._database.read(lambda db: db.fetch(_BUFFERS))
        return tuple((row["key"], decode_body(row["body"])) for row in rows)

    async def preferences_of(self, speaker: SpeakerKey) -> SpeakerPreferences:
        row = await self._database.read(lambda db: db.fetchrow(_PREFERENCES, *_values(speaker)))
        if row is None:
            return SpeakerPreferences()
        language, mode, speed, brief, command = row
        reading = ReadAloudWishes(mode=_MODES[mode], speed=speed, brief=brief)
        return SpeakerPreferences(language=language, reading=reading, voice_command=command)

    async def remember_language(self, speaker: SpeakerKey, language: str) -> None:
        await self._write(_LANGUAGE, *_values(speaker), plain(language))

    async def want_reading(self, speaker: SpeakerKey, wanted: ReadAloudWishes, *, command: str) -> None:
        mode = _MODES.index(wanted.mode)
        await self._write(_READING, *_values(speaker), mode, wanted.speed, bool(wanted.brief), plain(command))

    async def transcript(self, key: str, *, newer_than: float) -> Mapping[str, Any] | None:
        row = await self._database.read(lambda db: db.fetchrow(_TRANSCRIPT, plain(key), newer_than))
        return None if row is None else decode_body(row["body"])

    async def keep_transcript(self, key: str, body: Mapping[str, Any], *, at: float, limit: int) -> None:
        text = encode_body(body)

        async def change(db: Connection) -> None:
            # Two deletions at once could wait for each other's rows.
            await lock(db, "transcripts")
            await db.execute(_KEEP_TRANSCRIPT, plain(key), text, at)
            await db.execute(_FORGET_TRANSCRIPTS, limit)

        await self._database.write(change)

    async def forget_transcripts(self) -> None:
        await self._write("DELETE FROM transcripts")

    async def _write(self, statement: str, *values: Any) -> None:
        async def change(db: Connection) -> None:
            await db.execute(statement, *values)

        await self._database.write(change)


def _values(speaker: SpeakerKey) -> tuple[str, str, str]:
    return speaker.channel, speaker.account, plain(speaker.user)
