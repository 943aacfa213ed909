"""Cache transcripts: the same recording by the same person is recognised once.

Not here: storage (the caller passes a `TranscriptStore`), recognition. Failures are not stored, and neither
is live audio, which is never sent twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from voice.clock import Clock
from voice.errors import VoiceError
from voice.transcriber import Growing, OnProgress, Recording, Transcriber, Waiting
from voice.transcript import Transcript
from voice.transcription.protocol import transcript_from_wire, transcript_to_wire
from voice.workers.frames import BrokenFrame

_KEPT_S = 7 * 86_400.0
_LIMIT = 2_000
"""The most stored transcripts; the oldest are deleted."""

_log = logging.getLogger(__name__)


class TranscriptStore(Protocol):
    """Storage for transcripts: plain JSON data under a key, with Unix times."""

    async def transcript(self, key: str, *, newer_than: float) -> Mapping[str, Any] | None:
        """What was stored under `key` after that time; None where there is nothing."""
        ...

    async def keep_transcript(self, key: str, body: Mapping[str, Any], *, at: float, limit: int) -> None:
        """Store a transcript; beyond `limit` of them the oldest are deleted."""
        ...


@dataclass(slots=True, eq=False)
class _Flight:
    """A recording in recognition, and the callers that wait for it."""

    landed: asyncio.Future[Transcript]
    listeners: list[OnProgress] = field(default_factory=list)

    def tell(self, progress: Waiting | Growing) -> None:
        for listener in tuple(self.listeners):
            listener(progress)


class CachedTranscriber:
    """Implements `Transcriber` by wrapping another one. `settings_key` names the model, the engine and every
    other setting that affects the words: changing it invalidates the cache."""

    def __init__(
        self, inner: Transcriber, store: TranscriptStore, clock: Clock, *, settings_key: str
    ) -> None:
        self._inner = inner
        self._store = store
        self._clock = clock
        self._settings_key = settings_key
        self._flights: dict[str, _Flight] = {}

    async def transcribe(self, recording: Recording, *, on_progress: OnProgress | None = None) -> Transcript:
        if recording.form != "file" or self._inner.status() == "closed":
            return await self._inner.transcribe(recording, on_progress=on_progress)
        key = _key(recording, self._settings_key)
        while (flight := self._flights.get(key)) is not None:
            if (transcript := await _joined(flight, on_progress)) is not None:
                return transcript
        flight = self._flights[key] = _Flight(asyncio.get_running_loop().create_future())
        if on_progress is not None:
            flight.listeners.append(on_progress)
        try:
            transcript = await self._stored(key) or await self._transcribe_and_store(key, recording, flight)
        except VoiceError as error:
            flight.landed.set_exception(error)
            flight.landed.exception()  # avoids asyncio's warning where no caller joined
            raise
        else:
            flight.landed.set_result(transcript)
            return transcript
        finally:
            flight.landed.cancel()  # only if this call was cancelled: another caller takes over
            del self._flights[key]

    async def warm_up(self) -> None:
        await self._inner.warm_up()

    async def close(self) -> None:
        await self._inner.close()

    def status(self) -> str:
        return self._inner.status()

    async def _transcribe_and_store(self, key: str, recording: Recording, flight: _Flight) -> Transcript:
        transcript = await self._inner.transcribe(recording, on_progress=flight.tell)
        try:
            body = transcript_to_wire(transcript)
            await self._store.keep_transcript(key, body, at=self._clock.now(), limit=_LIMIT)
        except Exception as error:  # noqa: BLE001 - after any failure of the store, the words are there
            _log.warning("a transcript could not be kept: %s", error)
        return transcript

    async def _stored(self, key: str) -> Transcript | None:
        try:
            body = await self._store.transcript(key, newer_than=self._clock.now() - _KEPT_S)
            return transcript_from_wire(body) if body is not None else None
        except BrokenFrame as error:
            _log.warning("a transcript that was kept cannot be read: %s", error)
        except Exception as error:  # noqa: BLE001 - after any failure of the store, transcribe again
            _log.warning("a transcript that was kept cannot be had: %s", error)
        return None


async def _joined(flight: _Flight, on_progress: OnProgress | None) -> Transcript | None:
    """The transcript of another call; None where that call was cancelled."""
    if on_progress is not None:
        flight.listeners.append(on_progress)
    try:
        await asyncio.wait((flight.landed,))
    finally:
        if on_progress is not None:
            flight.listeners.remove(on_progress)
    return None if flight.landed.cancelled() else flight.landed.result()


def _key(recording: Recording, settings_key: str) -> str:
    """The cache key. It includes the speaker: a person must not learn that another sent the same file."""
    parts = (
        settings_key,
        hashlib.sha256(recording.speaker.encode()).hexdigest(),
        hashlib.sha256(recording.data).hexdigest(),
        recording.language,
    )
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
