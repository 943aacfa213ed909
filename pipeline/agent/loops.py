"""Detect a model that repeats the same text or the same call.

Pure functions over a run's exchange, as plain messages; the caller acts on the result.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, takewhile
from typing import Any

from pipeline.domain.chat import ToolCall

STALL_AT = 3
"""This many identical answers in a row are a stall."""
REFUSE_AT = 3
"""From this many identical calls in a row, the call is not made."""
END_AT = 5
"""At this many identical calls in a row, the run ends: the refusals had no effect."""
STALL_WORDS = "The assistant kept saying the same thing and was stopped. Please put the question differently."
REPEATED_WORDS = (
    "Not done: this is the same call with the same arguments for the {number}. time in a row, and its result"
    " would be the same. Use the result that you have, try something else, or answer without it."
)
"""The result of a call that is not made; `number` is the result of `repeats`."""
DOOM_WORDS = (
    "The assistant kept making the same tool call and was stopped. Please put the question differently."
)

_Plain = Mapping[str, Any]


def stalled(exchange: Sequence[_Plain], newest: str = "") -> bool:
    """Whether the model has given the same non-empty text for the third time in a row.

    `newest` is its newest text where the exchange does not have it yet. Equal texts with different tool
    calls do not count, because the model makes progress.
    """
    answers = [message for message in exchange if message["role"] == "assistant"]
    said = [_said(message) for message in answers[-STALL_AT:]]
    if newest:
        said.append((newest.strip(), ()))
    last = said[-STALL_AT:]
    return len(last) == STALL_AT and bool(last[0][0]) and all(one == last[0] for one in last)


def repeats(exchange: Sequence[_Plain], call: ToolCall) -> int:
    """How many times in a row the model has asked for `call` with the same arguments: 1 for the first.

    The answer with the call may be the newest of the exchange, or not be in it yet.
    """
    wanted = fingerprint(call.name, call.arguments)
    return 1 + sum(1 for _ in takewhile(lambda one: _fingerprint(one) == wanted, _before(exchange, call)))


def fingerprint(name: str, arguments: str) -> str:
    """A string that is equal for equal calls: spaces and the order of the arguments do not count."""
    try:
        canonical = json.dumps(json.loads(arguments), sort_keys=True)
    except (ValueError, RecursionError):
        canonical = arguments.strip()
    return f"{name} {canonical}"


def _said(message: _Plain) -> tuple[str, tuple[str, ...]]:
    return str(message["content"]).strip(), tuple(_fingerprint(call) for call in _calls(message))


def _before(exchange: Sequence[_Plain], call: ToolCall) -> Iterator[_Plain]:
    """All calls before this one, newest first."""
    asking = exchange[-1] if exchange and exchange[-1]["role"] == "assistant" else {}
    # Ids are unique only within one answer.
    beside = tuple(takewhile(lambda one: one["id"] != call.id, _calls(asking)))
    yield from reversed(beside)
    for message in islice(reversed(exchange), 1 if asking else 0, None):
        yield from reversed(_calls(message))


def _calls(message: _Plain) -> Sequence[_Plain]:
    calls: Sequence[_Plain] = message.get("tool_calls", ())
    return calls


def _fingerprint(call: _Plain) -> str:
    return fingerprint(call["name"], call["arguments"])
