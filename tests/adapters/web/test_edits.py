"""Edited messages, and the entries of turns that were replaced or taken out, in the page's protocol."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapters.web.html_cache import HtmlCache
from adapters.web.inbound import to_inbound
from adapters.web.outgoing import entry_frame
from adapters.web.protocol import ClientLimits, FrameProblem, TextMessage, parse_frame
from pipeline.domain.messages import InboundMessage, SessionCommand
from pipeline.domain.timeline import TimelineEntry

LIMITS = ClientLimits(text_chars=100, voice_bytes=1, voice_seconds=1)


def _message(text: str, **more: Any) -> TextMessage | FrameProblem:
    frame = parse_frame(json.dumps({"type": "message", "client_id": "k", "text": text, **more}), LIMITS)
    assert isinstance(frame, TextMessage | FrameProblem)
    return frame


def test_a_message_is_its_own_place_and_an_edit_has_the_place_of_what_it_replaces() -> None:
    first, edit = _message("tow"), _message("two", edits="m_1")
    assert isinstance(first, TextMessage)
    assert isinstance(edit, TextMessage)
    new, again = (to_inbound("c_1", frame, received_at=0.0) for frame in (first, edit))
    assert isinstance(new, InboundMessage)
    assert isinstance(again, InboundMessage)
    assert (new.edited, new.place) == (False, new.message_id)
    assert (again.edited, again.place) == (True, "m_1")


def test_an_edit_is_never_a_command() -> None:
    typed, edit = _message("/new"), _message("/new", edits="m_1")
    assert isinstance(typed, TextMessage)
    assert isinstance(edit, TextMessage)
    assert isinstance(to_inbound("c_1", typed, received_at=0.0), SessionCommand)
    assert isinstance(to_inbound("c_1", edit, received_at=0.0), InboundMessage)


@pytest.mark.parametrize("edits", ["", 7, None, "x" * 201])
def test_an_edit_of_no_message_is_refused(edits: object) -> None:
    problem = _message("two", edits=edits)
    assert isinstance(problem, FrameProblem)
    assert problem.message.startswith("edits: ")


def test_an_entry_names_the_turn_that_it_replaces_or_takes_out() -> None:
    line = TimelineEntry(entry_id=1, message_id="m_2", role="user", text="two", at=0.0)
    plain = entry_frame(line, HtmlCache())
    assert not {"replaces", "removed"} & set(plain)
    version = TimelineEntry(entry_id=1, message_id="m_2", role="user", text="two", at=0.0, replaces="m_1")
    assert entry_frame(version, HtmlCache()) == {**plain, "replaces": "m_1"}
    notice = TimelineEntry(entry_id=1, message_id="m_3", role="notice", text="out", at=0.0, removed="m_1")
    assert entry_frame(notice, HtmlCache())["removed"] == "m_1"
