"""A gate of a run as a question in a chat: its words, and the choices it takes."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.graph.outcome import Gate

GO_ON = ("continue",)
"""What can be chosen at a gate that names no options: the run only waits for a word."""
_NO_PROMPT = "I wait for your word before I go on."


def choices(gate: Gate) -> tuple[str, ...]:
    """What a person can answer."""
    return gate.options or GO_ON


def question_words(gates: Sequence[Gate]) -> str:
    """The line that asks what all of `gates` ask."""
    return "\n\n".join(f"{gate.prompt or _NO_PROMPT}\n({' / '.join(choices(gate))})" for gate in gates)
