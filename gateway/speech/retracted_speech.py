"""Retract a spoken message when its speaker continues the sentence, and join it with the words that follow.

A pause in mid-sentence is long enough to send the speech so far. If the person continues before an answer is
shown, or within seconds, the turn is stopped, and both parts are sent as one message. If no words follow, for
example after a cough, the first part is sent again. Not here: stopping the turn
(`gateway.speech.live_sessions`), and speech before it is a message (`voice.endpointing.stream_buffer`).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace

from adapters.identity import derived_message_id
from pipeline.domain.clock import Clock
from pipeline.domain.frozen import dataclass
from pipeline.domain.messages import InboundMessage
from voice.text import joined

SAME_SENTENCE_S = 4.0
"""Maximum time between a message and speech that continues it, if an answer is already shown. Later speech
is a reaction to that answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    message: InboundMessage
    at: float
    """When it was sent, on the monotonic clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    message: InboundMessage
    continues: bool
    """The speech that follows continues it."""
    again: bool
    """Send it again if no speech follows."""


class RetractedSpeech:
    """The last message of each speaker, by the speaker's key, and the messages that are held back.

    `running` returns the id of the message whose turn is running in a thread.
    """

    def __init__(self, *, running: Callable[[str], str], clock: Clock) -> None:
        self._running = running
        self._clock = clock
        self._said: dict[str, _Said] = {}
        self._held: dict[str, _Held] = {}
        self._completed: dict[str, tuple[str, str]] = {}
        """The generation and text of each speaker's newest message."""

    def sent(self, key: str, message: InboundMessage) -> None:
        """Record a spoken message that the inbox accepted."""
        self._completed.pop(key, None)
        self._said[key] = _Said(message=message, at=self._clock.monotonic())

    def take(self, key: str, thread: str, *, shown: bool) -> bool:
        """Hold back the speaker's last message if its turn is running; returns whether it is. `shown`: part
        of its answer is visible."""
        said = self._said.get(key)
        if said is None or self._running(thread) != said.message.message_id:
            return False
        del self._said[key]
        continues = not shown or self._clock.monotonic() - said.at <= SAME_SENTENCE_S
        self._held[key] = _Held(message=said.message, continues=continues, again=not shown)
        return True

    def completed(self, key: str, generation: str, text: str) -> str:
        """`text` joined to the message that it continues, if any; the same result each time for one
        `generation`."""
        if (known := self._completed.get(key)) is not None and known[0] == generation:
            return known[1]
        held = self._held.pop(key, None)
        whole = joined([held.message.text, text]) if held is not None and held.continues else text
        self._completed[key] = (generation, whole)
        return whole

    def returned(self, key: str) -> InboundMessage | None:
        """The held-back message as a new message, because no speech followed; None if there is none."""
        held = self._held.pop(key, None)
        if held is None or not held.again:
            return None
        message = held.message
        native_id = f"speech:{uuid.uuid4().hex}"
        thread = message.thread
        return replace(
            message,
            native_id=native_id,
            message_id=derived_message_id(thread.channel, thread.account, native_id),
            received_at=self._clock.now(),
        )

    def forget(self, key: str) -> None:
        """Forget the speaker, whose stream is closed."""
        self._said.pop(key, None)
        self._completed.pop(key, None)
