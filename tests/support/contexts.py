"""A run's context for tests of single nodes, with null services that tests can replace."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from pipeline.domain.chat import ChatMessage
from pipeline.domain.clock import ManualClock
from pipeline.domain.conversation import Conversation, PastTurn, Summary
from pipeline.domain.events import PipelineEvent
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author
from pipeline.llm.scripted import ScriptedLlm
from pipeline.runtime.context import RunContext
from pipeline.runtime.null_services import (
    KnownHistory,
    NullBudgets,
    NullFacts,
    NullSkills,
    NullTools,
    NullWorkspace,
)
from pipeline.runtime.scope import TurnScope
from pipeline.runtime.settings import PipelineSettings

THREAD = ThreadKey(channel="console", account="local", chat="tests")


class Watched:
    """The events and streamed text of a run."""

    def __init__(self) -> None:
        self.events: list[PipelineEvent] = []
        self.text = ""

    async def send(self, event: PipelineEvent) -> None:
        self.events.append(event)

    async def on_text(self, text: str) -> None:
        self.text += text


class CountedBudgets(NullBudgets):
    """Records the usage of calls."""

    def __init__(self) -> None:
        self.tokens: list[int] = []

    async def spent(self, _scope: TurnScope, *, tokens: int, cost: float) -> None:
        del cost
        self.tokens.append(tokens)


def talk(*texts: str) -> Conversation:
    """A conversation in which user and assistant take turns; an odd last text has an empty answer."""
    pairs = zip(texts[::2], [*texts[1::2], ""], strict=False)
    turns = [
        PastTurn(
            id=number,
            messages=(
                ChatMessage(role="user", content=asked),
                ChatMessage(role="assistant", content=answered),
            ),
        )
        for number, (asked, answered) in enumerate(pairs, 1)
    ]
    return Conversation(turns=tuple(turns))


def scope(watched: Watched | None = None, **given: Any) -> TurnScope:
    """A person's turn in a private chat."""
    parts: dict[str, Any] = {
        "session_id": "ses-1",
        "message_id": "msg-1",
        "thread": THREAD,
        "author": Author(id="ada", name="Ada"),
        "send": (watched or Watched()).send,
    }
    return TurnScope(**(parts | given))


def context(
    text: str = "hello", history: Sequence[str] = (), *, watched: Watched | None = None, **given: Any
) -> RunContext:
    """A run about `text` after `history`; `given` replaces any part, and `conversation` and `room` are what
    the history holds, and `summarised` gets the summaries."""
    watched = watched or Watched()
    parts: dict[str, Any] = {
        "text": text,
        "speech": None,
        "history": _History(given.pop("conversation", talk(*history)), given.pop("room", None)),
        "scope": scope(watched),
        "llm": ScriptedLlm.echo(),
        "tools": NullTools(),
        "skills": NullSkills(),
        "workspace": NullWorkspace(),
        "facts": NullFacts(),
        "budgets": NullBudgets(),
        "clock": ManualClock(),
        "settings": PipelineSettings(),
        "on_text": watched.on_text,
    }
    parts["history"].summarised = given.pop("summarised", _not_kept)
    return RunContext(**(parts | given))


class _History(KnownHistory):
    """Hands summaries to `summarised`."""

    summarised: Callable[[Summary], Awaitable[bool]]

    async def summarise(self, summary: Summary) -> bool:
        return await self.summarised(summary)


async def _not_kept(_summary: Summary) -> bool:
    return False
