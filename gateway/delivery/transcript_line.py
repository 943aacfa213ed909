"""What a preview shows of a voice note: its place in the queue, or what was heard so far."""

from __future__ import annotations

from pipeline.domain.events import TranscriptPartial, TranscriptPending, TranscriptReady

_WAITING = "In the queue, about {seconds} seconds."
_LONGEST_WAIT_S = 3_600.0


def transcript_line(event: TranscriptPending | TranscriptPartial | TranscriptReady) -> str:
    """The line for the newest event."""
    match event:
        case TranscriptPending(eta_s=eta_s):
            return _WAITING.format(seconds=round(min(_LONGEST_WAIT_S, eta_s)))
        case TranscriptPartial(text=text):
            return f"{text} …"
        case TranscriptReady(text=text):
            return text
