"""Frames as text: what JSON cannot say does not spoil a frame; and which events become frames."""

from __future__ import annotations

import json
import math

import pytest

from adapters.web.html_cache import HtmlCache
from adapters.web.hub import Hub, ThreadSender
from adapters.web.inbound import thread_of
from adapters.web.outgoing import encode, event_frame, token_frame
from pipeline.domain.clock import ManualClock
from pipeline.domain.events import LlmToken, TranscriptReady
from pipeline.domain.ports import nodes_wanted_by


@pytest.mark.parametrize("confidence", [math.nan, math.inf, -math.inf])
def test_a_number_that_json_does_not_have_is_null(confidence: float) -> None:
    event = TranscriptReady(session_id="s", message_id="m", text="hi", language="en", confidence=confidence)
    frame = json.loads(encode([event_frame(event, HtmlCache())]))
    assert frame["event"]["confidence"] is None
    assert frame["event"]["text"] == "hi"


def test_half_a_character_is_an_escape_beside_a_number_that_json_does_not_have() -> None:
    event = TranscriptReady(session_id="s", message_id="m", text="\ud800", language="en", confidence=math.nan)
    frame = json.loads(encode([event_frame(event, HtmlCache())]).decode("utf-8"))
    assert (frame["event"]["text"], frame["event"]["confidence"]) == ("\ud800", None)


def test_a_token_has_the_frame_of_every_other_event() -> None:
    token = LlmToken(session_id="s", message_id="m", text="hi", offset=3)
    assert token_frame(token) == event_frame(token, HtmlCache())
    assert list(token_frame(token)["event"]) == list(event_frame(token, HtmlCache())["event"])


async def test_events_of_nodes_are_wanted_while_a_session_gets_them() -> None:
    hub, thread = Hub(max_per_chat=10, rendered=HtmlCache(), clock=ManualClock()), thread_of("c1")
    wants = nodes_wanted_by(ThreadSender(hub, thread))
    assert hub.join("c1") is not None
    assert not wants()
    watching = hub.join("c1", nodes=True)
    assert watching is not None
    assert wants()
    hub.leave(watching)
    assert not wants()
