"""A gate of a run as a question in a chat: its words, and the choices it takes."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.domain.messages import ApprovalReply, InboundMessage
from pipeline.graph.run.outcome import Gate

GO_ON = ("continue",)
"""What can be chosen at a gate that names no options: the run only waits for a word."""
_NO_PROMPT = "I wait for your word before I go on."

_EXPIRED = (
    "This was not answered in time, so I did not go on with it. Send your message again if you still want it."
)
_ASKED_CHARS = 300
"""Of the question, in the line that says that nobody answered it."""


def choices(gate: Gate) -> tuple[str, ...]:
    """What a person can answer."""
    return gate.options or GO_ON


def question_words(gates: Sequence[Gate]) -> str:
    """The line that asks what all of `gates` ask."""
    return "\n\n".join(f"{gate.prompt or _NO_PROMPT}\n({' / '.join(choices(gate))})" for gate in gates)


def expired_words(message: InboundMessage | ApprovalReply) -> str:
    """The line that ends a run whose question nobody answered, below the question if `message` tells it."""
    asked = message.asked if isinstance(message, ApprovalReply) else ""
    short = asked if len(asked) <= _ASKED_CHARS else f"{asked[:_ASKED_CHARS]}…"
    quoted = "\n".join(f"> {line}" for line in short.splitlines())
    return "\n\n".join(part for part in (quoted, _EXPIRED) if part)
