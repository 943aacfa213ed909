"""Turn a run's gates into a question in a chat: its text and its choices."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.domain.messages import ApprovalReply, InboundMessage
from pipeline.graph.run.outcome import Gate

CONTINUE_ONLY = ("continue",)
"""The choice at a gate without options: the run only waits for a confirmation."""
_NO_PROMPT = "I wait for your word before I continue."

_EXPIRED = (
    "This was not answered in time, so I did not continue. Send your message again if you still want it."
)
_ASKED_CHARS = 300
"""Length of the question in the line that says that it was not answered."""


def choices(gate: Gate) -> tuple[str, ...]:
    """The choices of a gate; none for one that takes any words, or waits for its time."""
    return gate.options or (CONTINUE_ONLY if gate.asks == "choice" else ())


def question_words(gates: Sequence[Gate]) -> str:
    """The text that asks all questions of `gates`."""
    return "\n\n".join(_asked(gate) for gate in gates)


def _asked(gate: Gate) -> str:
    words, offered = gate.prompt or _NO_PROMPT, _shown(gate)
    return f"{words}\n({' / '.join(offered)})" if offered else words


def _shown(gate: Gate) -> list[str]:
    """The choices as a person writes them: behind some follow words."""
    return [f"{choice}: …" if choice in gate.worded else choice for choice in choices(gate)]


def expired_words(message: InboundMessage | ApprovalReply) -> str:
    """The text that ends a run whose question was not answered; quotes the question if `message` has it."""
    asked = message.asked if isinstance(message, ApprovalReply) else ""
    short = asked if len(asked) <= _ASKED_CHARS else f"{asked[:_ASKED_CHARS]}…"
    quoted = "\n".join(f"> {line}" for line in short.splitlines())
    return "\n\n".join(part for part in (quoted, _EXPIRED) if part)
