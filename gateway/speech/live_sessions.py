"""Turn live audio streams of channels into inbox messages.

Access is not decided here: a channel opens a stream only for a person it knows, and the inbox authorises each
message like any other. Not here: transcription (`voice.streaming`), when text becomes a message
(`voice.endpointing.stream_buffer`), and the sockets that carry the audio.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import uuid
from collections.abc import Callable
from dataclasses import field
from typing import Protocol

from adapters.channel import Acceptance, OnLive
from adapters.identity import derived_message_id
from gateway.runtime.tasks import Supervisor
from gateway.speech.live_stream import LiveAudioStream
from gateway.speech.retracted_speech import RetractedSpeech
from gateway.speech.speaker_language import (
    AgentSpeechOf,
    likely_language,
    preferences_or_none,
    speaker_of,
    spoke,
)
from gateway.storage.speech import SpeakerPreferenceStore
from pipeline.domain.clock import Clock
from pipeline.domain.errors import MediaUnavailable, StorageError
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author, BargeIn, Inbound, InboundMessage, Speech
from voice.endpointing.flush_policy import FlushSettings
from voice.endpointing.stream_buffer import Flushed, StreamBufferManager
from voice.errors import TranscriberUnavailable
from voice.streaming.segmenter import SegmentRules
from voice.streaming.session import LiveListener
from voice.streaming.vad_port import ActivityDetector
from voice.transcriber import Transcriber

_log = logging.getLogger(__name__)

_ENDING_S = 10.0
"""Seconds for the transcription of the last speech of all streams at shutdown."""

_KEEPING_S = 3.0

_OFF = "Live speech is switched off here. Send a voice note, or type."
_CLOSED = "The gateway is shutting down. Try again in a moment."
_FULL = "Too many people are talking to me right now. Try again in a minute, or send a voice note."
_ELSEWHERE = "You began to talk in another window, so this one has stopped listening."
_REFUSED = "What you said was not accepted. Try again later, or type it."


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSettings:
    """Settings of live speech. Times in seconds."""

    enabled: bool = True
    commit_s: float = 0.8
    """The silence that ends a segment of speech."""
    flush: FlushSettings = field(default_factory=FlushSettings)
    max_streams: int = 8
    idle_s: float = 600.0
    """A stream without speech is closed after this time."""
    seconds_since_audio: float = 2.0
    """Speech ends after this time without any audio, not even silence."""


class Accepting(Protocol):
    """The part of the inbox that live speech uses."""

    async def accept(self, item: Inbound) -> Acceptance: ...


class LiveSpeechService:
    """Implements `adapters.channel.LiveSpeech`. Close it before the store, the inbox and the supervisor.

    Both callables take a thread encoded by `ThreadKey.encode`: `answering` returns whether part of an answer
    is being shown, `running` the id of the message whose turn is running, or an empty string.
    """

    def __init__(
        self,
        *,
        transcriber: Transcriber,
        listener: ActivityDetector,
        inbox: Accepting,
        voices: SpeakerPreferenceStore,
        speech_of: AgentSpeechOf,
        clock: Clock,
        answering: Callable[[str], bool],
        running: Callable[[str], str],
        supervisor: Supervisor,
        settings: LiveSettings | None = None,
    ) -> None:
        self._settings = settings or LiveSettings()
        self._rules = SegmentRules(commit_s=self._settings.commit_s)
        self._transcriber = transcriber
        self._listener = listener
        self._inbox = inbox
        self._voices = voices
        self._speech_of = speech_of
        self._clock = clock
        self._answering = answering
        self._retracted = RetractedSpeech(running=running, clock=clock)
        self._supervisor = supervisor
        self._manager = StreamBufferManager(
            on_flush=self._flushed, clock=clock, store=voices, settings=self._settings.flush
        )
        self._microphones: dict[str, LiveAudioStream] = {}
        self._handed_over: set[str] = set()
        """Generations of the messages that are on their way to the inbox."""
        self._closed = False

    @property
    def open_microphones(self) -> int:
        """The number of open streams."""
        return len(self._microphones)

    async def start(self) -> None:
        """Restore the buffers of an earlier process, which become messages. Raises StorageError."""
        await self._manager.restore()

    async def open(
        self, thread: ThreadKey, author: Author, *, on_event: OnLive, hands_free: bool = True
    ) -> LiveAudioStream:
        """Open an audio stream of `author` in `thread`; closes an earlier one of theirs there.

        Raises MediaUnavailable with a message for the person.
        """
        if not self._settings.enabled:
            raise MediaUnavailable(_OFF)
        key = _key(thread, author)
        while (older := self._microphones.get(key)) is not None:
            await older.end(_ELSEWHERE)
        if self._closed:
            raise MediaUnavailable(_CLOSED)
        if len(self._microphones) >= self._settings.max_streams:
            raise MediaUnavailable(_FULL)
        microphone = LiveAudioStream(
            author=author,
            on_event=on_event,
            clock=self._clock,
            idle_s=self._settings.idle_s,
            seconds_since_audio=self._settings.seconds_since_audio,
            on_started=lambda: self._barge_in(thread, author),
            on_nothing=lambda: self._resubmit_retracted(key),
            on_closed=lambda: self._forget(key),
        )
        self._microphones[key] = microphone
        try:
            # Only the page streams sound, and its chats are private.
            language = await likely_language(self._voices, self._speech_of, thread, author.id, private=True)
            await microphone.listen(
                LiveListener(
                    transcriber=self._transcriber,
                    detector=self._listener,
                    manager=self._manager,
                    key=key,
                    speaker=key,
                    events=microphone,
                    spawn=self._supervisor.spawn,
                    clock=self._clock,
                    hands_free=hands_free,
                    likely_language=language or None,
                    rules=self._rules,
                ),
                self._supervisor.spawn,
            )
        except TranscriberUnavailable as error:
            await microphone.close()
            _log.warning("a microphone was not opened", extra={"reason": error.for_operator})
            raise MediaUnavailable(str(error)) from error
        except BaseException:
            await microphone.close()
            raise
        return microphone

    async def close(self) -> None:
        """Close every stream. Transcribed speech becomes messages, now or at the next start."""
        self._closed = True
        with contextlib.suppress(TimeoutError):
            async with self._clock.timeout(_ENDING_S), asyncio.TaskGroup() as group:
                for microphone in tuple(self._microphones.values()):
                    group.create_task(microphone.close())
        # The transcripts are in the store already; the limit is only for a store that hangs.
        with contextlib.suppress(TimeoutError):
            async with self._clock.timeout(_KEEPING_S):
                await self._manager.close()

    async def _flushed(self, flushed: Flushed) -> None:
        """Send a buffer to the inbox as a message. Safe to repeat: the inbox deduplicates it by its id.

        Raises StorageError; the manager then keeps the buffer and tries again.
        """
        microphone = self._microphones.get(flushed.thread_id)
        if microphone is not None and flushed.generation not in self._handed_over:
            self._handed_over.add(flushed.generation)
            microphone.flushed(flushed.chunks)
        author = None if microphone is None else microphone.author
        message = self._message(flushed, author)
        acceptance = await self._inbox.accept(message)
        self._handed_over.discard(flushed.generation)
        if acceptance.status == "refused":
            if microphone is not None:
                microphone.refused(acceptance.reason or _REFUSED)
            else:
                _log.warning(
                    "speech was not accepted, and no client is connected",
                    extra={"reason": acceptance.reason},
                )
            return
        if microphone is not None:
            microphone.final(message)
        self._retracted.sent(flushed.thread_id, message)
        await self._remember(message)

    def _message(self, flushed: Flushed, author: Author | None) -> InboundMessage:
        """The message of a buffer. Without `author`, when the stream is closed, the key names the user."""
        encoded, user = json.loads(flushed.thread_id)
        thread = ThreadKey.decode(encoded)
        native_id = f"speech:{flushed.generation}"
        return InboundMessage(
            message_id=derived_message_id(thread.channel, thread.account, native_id),
            native_id=native_id,
            thread=thread,
            author=author or Author(id=user),
            received_at=self._clock.now(),
            text=self._retracted.completed(flushed.thread_id, flushed.generation, flushed.text),
            speech=Speech(language=flushed.language, confidence=flushed.confidence),
        )

    async def _remember(self, message: InboundMessage) -> None:
        if message.speech is None or not message.speech.language:
            return
        speaker = speaker_of(message.thread, message.author.id)
        before = (await preferences_or_none(self._voices, speaker)).language
        await spoke(self._voices, speaker, message.speech.language, before=before)

    def _forget(self, key: str) -> None:
        del self._microphones[key]
        self._resubmit_retracted(key)
        self._retracted.forget(key)

    def _barge_in(self, thread: ThreadKey, author: Author) -> None:
        """The person starts to speak: stop the answer being shown, and the turn that is still working on
        their last words, because these words may continue them."""
        shown = self._answering(thread.encode())
        if self._retracted.take(_key(thread, author), thread.encode(), shown=shown) or shown:
            self._supervisor.spawn(self._stop(thread, author), name="live speech: stop")

    def _resubmit_retracted(self, key: str) -> None:
        """No speech followed: submit the retracted message again."""
        message = self._retracted.returned(key)
        if message is not None:
            self._supervisor.spawn(self._resubmit(key, message), name="live speech: asked again")

    async def _resubmit(self, key: str, message: InboundMessage) -> None:
        try:
            acceptance = await self._inbox.accept(message)
        except StorageError as error:
            _log.warning("what somebody said was stopped and could not be asked again: %s", error)
            return
        if acceptance.status != "refused":
            self._retracted.sent(key, message)

    async def _stop(self, thread: ThreadKey, author: Author) -> None:
        native_id = f"speech-stop:{uuid.uuid4().hex}"
        barge_in = BargeIn(
            message_id=derived_message_id(thread.channel, thread.account, native_id),
            native_id=native_id,
            thread=thread,
            author=author,
            received_at=self._clock.now(),
        )
        try:
            await self._inbox.accept(barge_in)
        except StorageError as error:
            _log.warning("an answer was not stopped for somebody who spoke: %s", error)


def _key(thread: ThreadKey, author: Author) -> str:
    """One key per person and chat, so that speech of two people never becomes one message."""
    return json.dumps([thread.encode(), author.id])
