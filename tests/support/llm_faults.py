"""Twelve provider failures, played by the fake server, and the expected outcome of each."""

from __future__ import annotations

import json
from dataclasses import dataclass

from tests.support.openai_server import DEFAULT_CHUNKS, GARBAGE, Behaviour

CALLS_AT_MOST = 3
"""The first call of a message and what may be repeated of it."""
ANSWER = "".join(DEFAULT_CHUNKS)
NORMAL = Behaviour()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One way to fail. `first` is what the requests meet in turn, `then` all later ones."""

    name: str
    first: tuple[Behaviour, ...] = ()
    then: Behaviour = NORMAL
    error: str | None = None
    """Words of the error at the client; None: an answer comes."""
    asked: int = 1
    """How many requests the provider gets for a message."""
    asked_by_client: int | None = None
    """The same for one call of a client; None: as many."""
    slow: bool = False
    """Whether it takes as long as the deadline."""
    gone: bool = False
    """Whether no server listens at all."""

    @property
    def calls(self) -> int:
        return self.asked if self.asked_by_client is None else self.asked_by_client


FAULTS = (
    Fault(name="refused connection", gone=True, asked=0, error="cannot be reached"),
    Fault(name="401", then=Behaviour(status=401), error="llm.api_key"),
    Fault(
        name="429 with Retry-After",
        then=Behaviour(status=429, retry_after="0.01"),
        asked=3,
        error="limits the rate",
    ),
    Fault(name="500", then=Behaviour(status=500), asked=3, error="cannot be reached"),
    Fault(name="timeout before the first byte", then=Behaviour(hang_before=True), slow=True, error="within"),
    Fault(name="timeout in mid-stream", then=Behaviour(hang_after=2), slow=True, error="within"),
    Fault(name="half a stream", then=Behaviour(cut_after=2), error="cannot be reached"),
    Fault(name="garbage bytes", then=Behaviour(raw=GARBAGE), asked=3, error="cannot be reached"),
    Fault(name="empty answer", then=Behaviour(chunks=()), asked=2, asked_by_client=1, error="empty answer"),
    Fault(
        name="wrong tool JSON",
        first=(Behaviour(chunks=(), calls=(("load_tools", '{"groups": ['),)),),
        asked=2,
        asked_by_client=1,
    ),
    Fault(
        name="unknown tool",
        first=(Behaviour(chunks=(), calls=(("no_such_tool", json.dumps({})),)),),
        asked=2,
        asked_by_client=1,
    ),
    Fault(name="endless stream", then=Behaviour(endless="and so on ")),
)
