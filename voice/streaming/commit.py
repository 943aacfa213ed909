"""Commit the words of one microphone to the buffer manager, in the order in which they were said.

Not here: recognition (`voice.streaming.partials`), and when chunks become a message
(`voice.endpointing.flush_policy`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal, Protocol

from voice.endpointing.stream_buffer import StreamBufferManager
from voice.errors import TranscriberBusy, VoiceError
from voice.streaming.local_agreement import Agreed
from voice.streaming.partials import Final, Spawn, Words
from voice.text import joined

Drop = Literal["nothing_heard", "too_short", "busy", "unavailable"]
_Outcome = Literal["words", "nothing_heard", "too_short", "failed"]

_NOTHING = "I heard no words. Please say it again."
_TOO_SHORT = "That was too short to hear. Hold the button for as long as you speak."


class LiveSpeechListener(Protocol):
    """Receives the events of one microphone. Every call returns at once."""

    def started(self) -> None:
        """The user began to speak."""
        ...

    def partial(self, text: str, stable_chars: int) -> None:
        """The text that is not a message yet; its first `stable_chars` characters no longer change."""
        ...

    def ended(self) -> None:
        """The user stopped speaking."""
        ...

    def dropped(self, reason: Drop, words: str) -> None:
        """Speech gave no text; `words` for the user, empty where there is nothing to say."""
        ...


class LiveChunks:
    """The committed words of one stream. `key` is the manager's thread id; without `hands_free` only `finish`
    or the manager's maximum time ends a message."""

    def __init__(
        self,
        *,
        manager: StreamBufferManager,
        key: str,
        events: LiveSpeechListener,
        spawn: Spawn,
        hands_free: bool,
        is_speaking: Callable[[], bool],
    ) -> None:
        self._manager = manager
        self._key = key
        self._events = events
        self._spawn = spawn
        self._hands_free = hands_free
        self._is_speaking = is_speaking
        self._pending = 0
        self._newest: asyncio.Task[None] | None = None
        self._gathered: list[Words] = []
        """The chunks that are not part of a message yet."""
        self._outcomes: set[_Outcome] = set()
        """The outcomes of the segments since the last call of `_settle`."""

    @property
    def is_gathering(self) -> bool:
        """Whether there are words that are not part of a message yet."""
        return bool(self._gathered)

    def begin(self) -> None:
        """The user began to speak: no pause counts before the words have been added."""
        self._manager.speaking(self._key, on=True)

    def add(self, final: Final | None, *, spoken_at: float) -> None:
        """Commit a finished segment after those before it. `final` is None where it was too short;
        `spoken_at` is the monotonic time at which its voice ended."""
        self._pending += 1
        work = self._commit(final, spoken_at, self._newest)
        self._newest = self._spawn(work, name="live speech: a segment's words")

    async def finish(self, now: float) -> None:
        """Flush: when this returns, everything added is a message or was reported as dropped."""
        if self._newest is not None:
            await asyncio.wait((self._newest,))
        await self._manager.force_flush(self._key)
        if not self._hands_free and not self._is_speaking():
            self._settle(now)

    def flushed(self, chunks: int) -> None:
        """The first `chunks` of the committed chunks became a message."""
        del self._gathered[:chunks]

    def show(self, agreed: Agreed) -> None:
        """Send the committed text followed by the newest words as a partial."""
        committed = joined([words.text for words in self._gathered])
        text = joined([committed, agreed.text])
        unsure = len(agreed.text) - agreed.stable_chars
        stable = len(text) - unsure if agreed.stable_chars else len(committed)
        if text:
            self._events.partial(text, stable)

    async def _commit(self, final: Final | None, spoken_at: float, before: asyncio.Task[None] | None) -> None:
        try:
            if before is not None:
                await asyncio.wait((before,))
            self._outcomes.add(await self._take(final, spoken_at))
        finally:
            self._pending -= 1
        if self._hands_free and not self._pending and not self._is_speaking():
            self._settle(spoken_at)

    async def _take(self, final: Final | None, spoken_at: float) -> _Outcome:
        if final is None:
            return "too_short"
        words = await final
        if isinstance(words, VoiceError):
            self._events.dropped("busy" if isinstance(words, TranscriberBusy) else "unavailable", str(words))
            return "failed"
        if not words.text:
            return "nothing_heard"
        self._gathered.append(words)
        # Without a sequence number: segments come in order, and a microphone that is reopened counts from 0.
        await self._manager.add_speech_chunk(
            self._key,
            words.text,
            spoken_at=spoken_at,
            language=words.language,
            confidence=words.confidence,
        )
        self.show(Agreed(text="", stable_chars=0))
        return "words"

    def _settle(self, spoken_at: float) -> None:
        """Everything said so far is transcribed: pauses count again, from the end of the voice."""
        outcomes, self._outcomes = self._outcomes, set()
        # A breath or a cough next to words is not reported.
        if not self._gathered and not outcomes & {"words", "failed"}:
            if "too_short" in outcomes and "nothing_heard" not in outcomes:
                self._events.dropped("too_short", "" if self._hands_free else _TOO_SHORT)
            else:
                self._events.dropped("nothing_heard", _NOTHING)
        self._manager.speaking(self._key, on=False, at=spoken_at)
