"""The turn refuses events after its terminal event."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import GraphError
from pipeline.domain.events import ErrorEvent, PipelineEvent, TurnStarted
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author, InboundMessage
from pipeline.redaction.redactor import Redactor
from pipeline.runtime.links import AnswerLinks
from pipeline.runtime.null_services import keep_links
from pipeline.runtime.ports import TurnJournal
from pipeline.turn import Turn


class _Sink:
    def __init__(self) -> None:
        self.events: list[PipelineEvent] = []

    async def send_event(self, event: PipelineEvent) -> None:
        self.events.append(event)


async def test_events_after_the_terminal_event_are_refused() -> None:
    sink = _Sink()
    message = InboundMessage(
        thread=ThreadKey(channel="web", account="main", chat="c"),
        message_id="m",
        native_id="1",
        author=Author(id="ann"),
        received_at=0.0,
        text="hi",
    )
    turn = Turn(
        message=message,
        sender=sink,
        journal=cast("TurnJournal", SimpleNamespace(session_id="s")),
        clock=ManualClock(),
        redactor=Redactor(),
        links=AnswerLinks(keep_links),
    )
    await turn.send(TurnStarted(**turn.ids))
    end = ErrorEvent(**turn.ids, code="x", message="x", recoverable=False)
    await turn.send(end)
    for late in (end, TurnStarted(**turn.ids)):
        with pytest.raises(GraphError, match="after the terminal event"):
            await turn.send(late)
    assert [event.type for event in sink.events] == ["turn_started", "error"]
