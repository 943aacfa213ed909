"""The words of one microphone on their way to a message: in the order they were said, into the manager.

Not here: the recogniser's work (`voice.streaming.partials`), and when chunks are a message
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
    """Who hears about a microphone. Every call returns at once."""

    def started(self) -> None:
        """Somebody speaks."""
        ...

    def partial(self, text: str, stable_chars: int) -> None:
        """All that is not a message yet; so many of its first characters stay."""
        ...

    def ended(self) -> None:
        """The voice fell silent."""
        ...

    def dropped(self, reason: Drop, words: str) -> None:
        """Something said came to nothing; `words` for the person, where there are any."""
        ...


class LiveChunks:
    """What is gathered of one stream. `key` is the manager's thread id; without `hands_free` only `finish`
    ends a message, or the manager's longest time."""

    def __init__(
        self,
        *,
        manager: StreamBufferManager,
        key: str,
        told: LiveSpeechListener,
        spawn: Spawn,
        hands_free: bool,
        is_speaking: Callable[[], bool],
    ) -> None:
        self._manager = manager
        self._key = key
        self._told = told
        self._spawn = spawn
        self._hands_free = hands_free
        self._is_speaking = is_speaking
        self._pending = 0
        self._newest: asyncio.Task[None] | None = None
        self._gathered: list[Words] = []
        """The chunks that are not a message yet."""
        self._outcomes: set[_Outcome] = set()
        """Of the segments since the speech was last settled."""

    @property
    def is_gathering(self) -> bool:
        """Whether words were understood that are not a message yet."""
        return bool(self._gathered)

    def begin(self) -> None:
        """Somebody speaks: no pause is over before the words are here."""
        self._manager.speaking(self._key, on=True)

    def add(self, final: Final | None, *, spoken_at: float) -> None:
        """A segment is over, and its words follow those of the segments before. None where it was too short;
        `spoken_at` is the monotonic time of its last voice."""
        self._pending += 1
        work = self._commit(final, spoken_at, self._newest)
        self._newest = self._spawn(work, name="live speech: a segment's words")

    async def finish(self, now: float) -> None:
        """Everything that was added is a message when this returns, or told."""
        if self._newest is not None:
            await asyncio.wait((self._newest,))
        await self._manager.force_flush(self._key)
        if not self._hands_free and not self._is_speaking():
            self._settle(now)

    def flushed(self, chunks: int) -> None:
        """The first `chunks` that were gathered are a message."""
        del self._gathered[:chunks]

    def show(self, agreed: Agreed) -> None:
        """Tell what is gathered, with the newest words behind it."""
        committed = joined([words.text for words in self._gathered])
        text = joined([committed, agreed.text])
        unsure = len(agreed.text) - agreed.stable_chars
        stable = len(text) - unsure if agreed.stable_chars else len(committed)
        if text:
            self._told.partial(text, stable)

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
        heard = await final
        if isinstance(heard, VoiceError):
            self._told.dropped("busy" if isinstance(heard, TranscriberBusy) else "unavailable", str(heard))
            return "failed"
        if not heard.text:
            return "nothing_heard"
        self._gathered.append(heard)
        # Without a number: segments come in order, and a microphone that is opened again counts anew.
        await self._manager.add_speech_chunk(
            self._key,
            heard.text,
            spoken_at=spoken_at,
            language=heard.language,
            confidence=heard.confidence,
        )
        self.show(Agreed(text="", stable_chars=0))
        return "words"

    def _settle(self, spoken_at: float) -> None:
        """Everything said so far is heard: pauses count again, from the last voice on."""
        outcomes, self._outcomes = self._outcomes, set()
        # A breath or a cough beside words is nothing to tell.
        if not self._gathered and not outcomes & {"words", "failed"}:
            if "too_short" in outcomes and "nothing_heard" not in outcomes:
                self._told.dropped("too_short", "" if self._hands_free else _TOO_SHORT)
            else:
                self._told.dropped("nothing_heard", _NOTHING)
        self._manager.speaking(self._key, on=False, at=spoken_at)
