"""Events of live speech for a channel: the transcript while a person speaks, before it is a message.

They never enter a thread's log; only the resulting message does. One listening session is one person at one
microphone; its utterances follow one another.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, ClassVar, Literal

from pipeline.domain.frozen import dataclass

DropReason = Literal["nothing_heard", "too_short", "busy", "unavailable", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Live:
    utterance: int
    """The number of the utterance in the session, from 1."""

    type: ClassVar[str] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechStarted(_Live):
    """The person began to speak. A client that reads aloud stops."""

    type: ClassVar[str] = "speech_started"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechPartial(_Live):
    """The whole transcript so far."""

    type: ClassVar[str] = "speech_partial"
    text: str
    stable_chars: int
    """The number of leading characters that will not change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechEnded(_Live):
    """The person paused. More may follow before the utterance ends."""

    type: ClassVar[str] = "speech_ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechFinal(_Live):
    """The utterance is now a durable message."""

    type: ClassVar[str] = "speech_final"
    text: str
    language: str
    confidence: float
    """0 to 1."""
    message_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechDropped(_Live):
    """The utterance became no message."""

    type: ClassVar[str] = "speech_dropped"
    reason: DropReason
    message: str
    """Text for the person who spoke; may be empty."""


LiveEvent = SpeechStarted | SpeechPartial | SpeechEnded | SpeechFinal | SpeechDropped


def live_event_to_wire(event: LiveEvent) -> dict[str, Any]:
    """Plain JSON data: the event's `type` and fields."""
    return {"type": event.type, **asdict(event)}
