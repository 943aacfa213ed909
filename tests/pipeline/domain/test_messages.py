"""Inbound values: what cannot be a message is refused; commands are whole words."""

from __future__ import annotations

import pytest

from pipeline.domain.command_types import CommandName
from pipeline.domain.errors import InvalidInput
from pipeline.domain.events import (
    ActionCompleted,
    ApprovalRequired,
    ErrorEvent,
    LlmToken,
    PipelineEvent,
    ResponseComplete,
    Thought,
    event_from_wire,
    event_to_wire,
)
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author, InboundMessage, MediaRef, ParsedCommand, parse_command
from tests.support.tables import each

THREAD = ThreadKey(channel="web", account="local", chat="c1")


def _message(text: str = "", voice: MediaRef | None = None) -> InboundMessage:
    return InboundMessage(
        message_id="m1",
        native_id="n1",
        thread=THREAD,
        author=Author(id="owner"),
        received_at=0.0,
        text=text,
        voice=voice,
    )


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_a_message_without_any_content_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="no text, no voice note"):
        _message(text)


def test_a_voice_note_without_a_caption_is_a_message() -> None:
    assert _message(voice=MediaRef(channel="web", handle="h")).text == ""


@each(
    "text, command",
    [
        ("/stop", "stop"),
        (" /STOP \n", "stop"),
        ("/new@parlour_bot", "new"),
        ("/help", "help"),
        ("/stop it", None),
        ("please /stop", None),
        ("stop", None),
        ("/unknown", None),
        ("", None),
    ],
)
def test_a_command_without_argument_is_the_whole_text(text: str, command: CommandName | None) -> None:
    assert parse_command(text) == (None if command is None else ParsedCommand(name=command))


@pytest.mark.parametrize(
    ("text", "argument"),
    [
        ("/agent", ""),
        ("/agent  Shop \n", "Shop"),
        ("/AGENT@bot a b", "a b"),
        ("/agent " + "x" * 500, "x" * 100),
    ],
)
def test_a_command_with_an_argument_takes_the_words_behind_it(text: str, argument: str) -> None:
    assert parse_command(text) == ParsedCommand(name="agent", argument=argument)


def test_an_event_on_the_wire_is_its_fields_beside_its_type() -> None:
    event = ResponseComplete(
        session_id="s", message_id="m", content="hi", thoughts=(Thought(stage="reasoning", summary="x"),)
    )
    assert event_to_wire(event) == {
        "type": "response_complete",
        "session_id": "s",
        "message_id": "m",
        "content": "hi",
        "thoughts": [{"stage": "reasoning", "summary": "x"}],
        "entry_id": 0,
    }


@pytest.mark.parametrize(
    "event",
    [
        ResponseComplete(
            session_id="s", message_id="m", content="hi", thoughts=(Thought(stage="reasoning", summary="x"),)
        ),
        ApprovalRequired(
            session_id="s",
            message_id="m",
            interaction_id="i",
            tool_name="t",
            reasoning="r",
            options=("Allow", "Deny"),
            timeout_s=3.0,
        ),
        ActionCompleted(session_id="s", message_id="m", tool_name="t", success=False, summary="no"),
    ],
)
def test_an_event_comes_back_from_the_wire_as_it_was(event: PipelineEvent) -> None:
    assert event_from_wire({**event_to_wire(event), "html": "<p>"}) == event


def test_an_event_of_a_later_version_is_left_out_and_a_broken_one_is_an_error() -> None:
    assert event_from_wire({"type": "from_the_future", "session_id": "s"}) is None
    with pytest.raises(TypeError):
        event_from_wire({"type": "llm_token", "text": "a"})


def test_only_the_two_documented_events_are_terminal() -> None:
    token: PipelineEvent = LlmToken(session_id="s", message_id="m", text="a", offset=0)
    error: PipelineEvent = ErrorEvent(
        session_id="s", message_id="m", code="timeout", message="x", recoverable=True
    )
    assert not token.is_terminal
    assert error.is_terminal
