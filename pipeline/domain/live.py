"""Live speech as a channel sees it: what is heard while somebody speaks, before it is a message.

These never enter a thread's log: the message that comes of them does. One listening session is one person at
one microphone; its utterances follow one another.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

DropReason = Literal["nothing_heard", "too_short", "busy", "unavailable", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Live:
    utterance: int
    """Counts the utterances of the session, from 1."""

    type: ClassVar[str] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechStarted(_Live):
    """Somebody began to speak. Whoever reads aloud falls silent."""

    type: ClassVar[str] = "speech_started"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechPartial(_Live):
    """What is heard so far: all of it, each time."""

    type: ClassVar[str] = "speech_partial"
    text: str
    stable_chars: int
    """So many of its first characters will not change any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechEnded(_Live):
    """The voice fell silent. More may follow before the utterance is over."""

    type: ClassVar[str] = "speech_ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechFinal(_Live):
    """The utterance is a message, durably."""

    type: ClassVar[str] = "speech_final"
    text: str
    language: str
    confidence: float
    """0 to 1."""
    message_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechDropped(_Live):
    """The utterance came to nothing."""

    type: ClassVar[str] = "speech_dropped"
    reason: DropReason
    message: str
    """Words for the person who spoke; empty where there is nothing to say."""


LiveEvent = SpeechStarted | SpeechPartial | SpeechEnded | SpeechFinal | SpeechDropped


def live_event_to_wire(event: LiveEvent) -> dict[str, Any]:
    """Plain JSON data: the event's fields beside its `type`."""
    return {"type": event.type, **asdict(event)}
