"""Frames as text: what JSON cannot say does not spoil a frame."""

from __future__ import annotations

import json
import math

import pytest

from adapters.web.html_cache import HtmlCache
from adapters.web.outgoing import encode, event_frame
from pipeline.domain.events import TranscriptReady


@pytest.mark.parametrize("confidence", [math.nan, math.inf, -math.inf])
def test_a_number_that_json_does_not_have_is_null(confidence: float) -> None:
    event = TranscriptReady(session_id="s", message_id="m", text="hi", language="en", confidence=confidence)
    frame = json.loads(encode([event_frame(event, HtmlCache())]))
    assert frame["event"]["confidence"] is None
    assert frame["event"]["text"] == "hi"
