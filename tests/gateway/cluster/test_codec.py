"""Signals as JSON: each comes back as it was, newer versions are tolerated, and damage is named."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields
from typing import Any, get_args, get_type_hints

import pytest

from gateway.cluster.codec import signal_from_json, signal_to_json
from gateway.cluster.signals import (
    Answered,
    Changed,
    Control,
    ControlSignal,
    Here,
    Interrupt,
    LiveTurn,
    MediaReady,
    MediaWanted,
    OutboxReady,
    Recorded,
    Release,
    Signal,
    StopBefore,
    TurnEvent,
    Wake,
    Withdrawn,
)
from pipeline.domain.errors import InvalidInput
from pipeline.domain.events import PipelineEvent, Thought, TurnStarted
from pipeline.domain.ids import ThreadKey
from tests.support.tables import each

_TOPIC = ThreadKey(channel="telegram", account="main bot", chat="-100:1%", topic="77")
_TURN = LiveTurn(thread=_TOPIC, message_id="m1", fence=3, reply_handle='{"a": "ü\n"}', private=False)
_SAMPLES: dict[object, object] = {
    str: "“Grüße”\n🙂",
    int: 7,
    float: 1_700_000_000.25,
    bool: True,
    tuple[str, ...]: ("Allow", "Deny"),
    tuple[Thought, ...]: (Thought(stage="tool_call", summary="s", detail={"success": True}),),
}


def _sample(kind: type[PipelineEvent]) -> PipelineEvent:
    """An event of the type, with a value in each field."""
    hints = get_type_hints(kind)
    values: dict[str, Any] = {one.name: _SAMPLES.get(hints[one.name], "ALLOW") for one in fields(kind)}
    return kind(**values)


_SIGNALS: tuple[Signal, ...] = (
    Wake(thread=_TOPIC.encode()),
    Wake(thread=_TOPIC.encode(), asked=2),
    Wake(thread=_TOPIC.encode(), held=True),
    Here(room=3),
    Changed(book="questions", key="ask:ü 1"),
    OutboxReady(account=("telegram", "main:bot"), row_id=12),
    Recorded(thread=_TOPIC, entry_id=12),
    *(
        ControlSignal(owner="own_1", control=control)
        for control in (
            StopBefore(thread="console:local:c1", seq=9, cancelled=2),
            Withdrawn(thread="console:local:c1", seq=4),
            Interrupt(thread="console:local:c1", seq=4, at=1_700_000_000.123456),
            Answered(thread="console:local:c1", interaction_id="tool_act_1"),
            Release(thread="console:local:c1"),
            MediaWanted(
                thread="telegram:main:c1",
                blob="m_1",
                handle="AgAD",
                mime="audio/ogg",
                file_kind="voice",
                max_bytes=9,
            ),
            MediaReady(thread="telegram:main:c1", blob="m_1", problem="It is gone."),
        )
    ),
    *(
        TurnEvent(turn=_TURN, seq=seq, event=_sample(kind))
        for seq, kind in enumerate(get_args(PipelineEvent), 1)
    ),
)


def test_every_kind_of_signal_and_event_is_among_the_samples() -> None:
    assert {type(one) for one in _SIGNALS} == set(get_args(Signal))
    controls = {type(one.control) for one in _SIGNALS if isinstance(one, ControlSignal)}
    assert controls == set(get_args(Control))


@each("signal", _SIGNALS)
def test_a_signal_comes_back_from_json_as_it_was(signal: Signal) -> None:
    text = signal_to_json(signal)
    assert "\n" not in text
    assert signal_from_json(text) == signal


@pytest.mark.parametrize("signal", _SIGNALS[:7], ids=lambda one: type(one).__name__)
def test_fields_that_a_newer_version_adds_are_ignored(signal: Signal) -> None:
    body = json.loads(signal_to_json(signal))
    for part in (body, body.get("control"), body.get("turn"), body.get("event")):
        if part is not None:
            part["of_a_newer_version"] = 1
    assert signal_from_json(json.dumps(body)) == signal


def test_a_field_with_a_default_may_be_missing() -> None:
    body = json.loads(signal_to_json(TurnEvent(turn=_TURN, seq=1, event=_sample(TurnStarted))))
    for one in fields(LiveTurn):
        if one.default is not MISSING:
            del body["turn"][one.name]
    read = signal_from_json(json.dumps(body))
    assert isinstance(read, TurnEvent)
    assert read.turn == LiveTurn(thread=_TOPIC, message_id="m1", fence=3)


@pytest.mark.parametrize(
    "text",
    [
        '{"signal": "of_a_newer_version"}',
        '{"signal": "control", "owner": "own_1", "control": {"kind": "of_a_newer_version"}}',
        '{"signal": "event", "turn": {}, "seq": 1, "event": {"type": "of_a_newer_version"}}',
    ],
)
def test_a_kind_that_only_a_newer_version_knows_is_left_out(text: str) -> None:
    assert signal_from_json(text) is None


@each(
    "text, reason",
    [
        ("", "Expecting value"),
        ("[]", "list"),
        ("{}", "'signal'"),
        ('{"signal": "wake"}', "thread"),
        ('{"signal": "wake", "thread": 7}', "thread is int, expected str"),
        (
            '{"signal": "outbox", "account": ["telegram", "main"], "row_id": true}',
            "row_id is bool, expected int",
        ),
        ('{"signal": "outbox", "account": ["telegram"], "row_id": 1}', "not enough values"),
        (
            '{"signal": "control", "owner": "o", "control": {"kind": "stop", "thread": "t", "seq": "9"}}',
            "seq is str",
        ),
        (
            '{"signal": "event", "turn": {"thread": "t"}, "seq": 1, "event": {"type": "turn_started"}}',
            "session_id",
        ),
    ],
)
def test_a_damaged_signal_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=rf"^signal: its JSON is not readable \(.*{reason}"):
        signal_from_json(text)
