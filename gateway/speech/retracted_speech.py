"""What somebody said and takes back by speaking on, because it was the beginning of more.

A pause in mid-sentence is long enough to send what was said so far. When its speaker goes on before an
answer is shown, or within seconds, the turn is stopped, and the words that follow are joined to those before
and asked as one. Where no words follow, after a cough say, those before are asked again. Not here: stopping
(`gateway.speech.live_sessions`), and speech that is no message yet (`voice.endpointing.stream_buffer`).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace

from adapters.identity import derived_message_id
from pipeline.domain.clock import Clock
from pipeline.domain.messages import InboundMessage
from voice.text import joined

SAME_SENTENCE_S = 4.0
"""From the moment a message is sent to the voice that goes on with it, where an answer is shown already:
later, somebody speaks because of what they read or hear."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    message: InboundMessage
    at: float
    """When it was sent, on the monotonic clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    message: InboundMessage
    goes_on: bool
    """What follows belongs to it."""
    again: bool
    """It is asked again where nothing follows."""


class TakenBack:
    """The last message of each speaker, by a key of their own, and what of it is held back.

    `running` tells the id of the message whose turn is at work in a thread.
    """

    def __init__(self, *, running: Callable[[str], str], clock: Clock) -> None:
        self._running = running
        self._clock = clock
        self._said: dict[str, _Said] = {}
        self._held: dict[str, _Held] = {}
        self._completed: dict[str, tuple[str, str]] = {}
        """Of each speaker the newest message that was joined: its generation and its text."""

    def sent(self, key: str, message: InboundMessage) -> None:
        """The inbox has a spoken message."""
        self._completed.pop(key, None)
        self._said[key] = _Said(message=message, at=self._clock.monotonic())

    def take(self, key: str, thread: str, *, shown: bool) -> bool:
        """Somebody speaks. Whether the turn of what they said last is at work; it is held back then. `shown`:
        there are words of its answer."""
        said = self._said.get(key)
        if said is None or self._running(thread) != said.message.message_id:
            return False
        del self._said[key]
        goes_on = not shown or self._clock.monotonic() - said.at <= SAME_SENTENCE_S
        self._held[key] = _Held(message=said.message, goes_on=goes_on, again=not shown)
        return True

    def completed(self, key: str, generation: str, text: str) -> str:
        """The text of the message that follows, behind what it goes on with; the same each time for one
        `generation`."""
        if (known := self._completed.get(key)) is not None and known[0] == generation:
            return known[1]
        held = self._held.pop(key, None)
        whole = joined([held.message.text, text]) if held is not None and held.goes_on else text
        self._completed[key] = (generation, whole)
        return whole

    def returned(self, key: str) -> InboundMessage | None:
        """No words followed: what was held back, as a message of its own; None where nothing was."""
        held = self._held.pop(key, None)
        if held is None or not held.again:
            return None
        message = held.message
        native_id = f"speech:{uuid.uuid4().hex}"
        place = message.thread
        return replace(
            message,
            native_id=native_id,
            message_id=derived_message_id(place.channel, place.account, native_id),
            received_at=self._clock.now(),
        )

    def forget(self, key: str) -> None:
        """They speak no more."""
        self._said.pop(key, None)
        self._completed.pop(key, None)
