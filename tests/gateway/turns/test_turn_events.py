"""The live events of a turn: the channel sends the end before the turn does anything more."""

from __future__ import annotations

import asyncio

from gateway.cluster.bus import EventStream
from gateway.runtime.metrics import Telemetry
from gateway.storage.turn_questions import TurnQuestions
from gateway.turns.turn_events import TurnEvents
from pipeline.domain.clock import ManualClock
from pipeline.domain.events import LlmToken, PipelineEvent, ResponseComplete, TurnStarted


class _Channel:
    """A channel that sends what it gets in the next pass of the loop, as the page's socket does."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    async def send_event(self, event: PipelineEvent) -> None:
        asyncio.get_running_loop().call_soon(self.sent.append, event.type)

    def events(self) -> TurnEvents:
        stream = EventStream(fence=1, send_event=self.send_event, observe=lambda _: None)
        stages = Telemetry(ManualClock()).stages(received_at=0.0)
        return TurnEvents(stream, questions=TurnQuestions(), stages=stages)


async def test_the_end_of_a_turn_is_sent_before_the_turn_does_anything_more() -> None:
    channel = _Channel()
    events = channel.events()
    await events.send_event(TurnStarted(session_id="s", message_id="m"))
    await events.send_event(LlmToken(session_id="s", message_id="m", text="hi", offset=0))
    assert channel.sent == []
    await events.send_event(
        ResponseComplete(session_id="s", message_id="m", content="hi", thoughts=(), entry_id=1)
    )
    assert channel.sent == ["turn_started", "llm_token", "response_complete"]
