"""Signals as JSON text, for a bus between processes. Processes of different versions may read each other."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, Final, assert_never

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
from pipeline.domain.events import event_from_wire, event_to_wire
from pipeline.domain.ids import ThreadKey

_CONTROLS: Final[Mapping[str, type[Control]]] = {
    "stop": StopBefore,
    "withdrawn": Withdrawn,
    "interrupt": Interrupt,
    "answered": Answered,
    "release": Release,
    "media_wanted": MediaWanted,
    "media_ready": MediaReady,
}
_PLAIN: Final[Mapping[str, type | tuple[type, ...]]] = {
    "str": str,
    "int": int,
    "float": (int, float),
    "bool": bool,
}
"""The fields that are as in JSON, by their annotation."""
_FIELDS: Final = {
    kind: tuple(
        (one.name, str(one.type), _PLAIN[str(one.type)]) for one in fields(kind) if str(one.type) in _PLAIN
    )
    for kind in (
        Wake,
        Here,
        Changed,
        OutboxReady,
        Recorded,
        ControlSignal,
        TurnEvent,
        LiveTurn,
        *_CONTROLS.values(),
    )
}
"""Name, annotation and type of those, by what has them. Each token of an answer is written and read."""
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_CONTROL_NAMES: Final = {kind: name for name, kind in _CONTROLS.items()}


def signal_to_json(signal: Signal) -> str:
    """One line of JSON."""
    body: dict[str, Any]
    match signal:
        case Wake():
            body = {"signal": "wake", "thread": signal.thread}
            if signal.asked:
                body["asked"] = signal.asked
            if signal.held:
                body["held"] = True
        case Here():
            body = {"signal": "here", "room": signal.room}
        case Changed():
            body = {"signal": "changed", "book": signal.book, "key": signal.key}
        case OutboxReady():
            body = {"signal": "outbox", "account": list(signal.account), "row_id": signal.row_id}
        case ControlSignal():
            control = {"kind": _CONTROL_NAMES[type(signal.control)], **asdict(signal.control)}
            body = {"signal": "control", "owner": signal.owner, "control": control}
        case TurnEvent():
            turn = _turn_values(signal.turn)
            event = event_to_wire(signal.event)
            body = {"signal": "event", "turn": turn, "seq": signal.seq, "event": event}
        case Recorded():
            body = {"signal": "recorded", "thread": signal.thread.encode(), "entry_id": signal.entry_id}
        case _:
            assert_never(signal)
    return _encode(body)


def signal_from_json(text: str) -> Signal | None:
    """The signal that `signal_to_json` wrote; None for a kind that this version does not know. Ignores
    unknown fields. Raises InvalidInput for anything else, with the reason."""
    try:
        return _signal(json.loads(text))
    except (KeyError, TypeError, ValueError, AttributeError, InvalidInput) as error:
        raise InvalidInput(f"signal: its JSON is not readable ({type(error).__name__}: {error})") from error


def _signal(body: Mapping[str, Any]) -> Signal | None:
    match body["signal"]:
        case "wake":
            return Wake(**_values_of(Wake, body))
        case "here":
            return Here(**_values_of(Here, body))
        case "changed":
            return Changed(**_values_of(Changed, body))
        case "outbox":
            channel, account = body["account"]
            return OutboxReady(account=(channel, account), **_values_of(OutboxReady, body))
        case "control":
            control = _control(body["control"])
            if control is None:
                return None
            return ControlSignal(control=control, **_values_of(ControlSignal, body))
        case "event":
            event = event_from_wire(body["event"])
            if event is None:
                return None
            thread = ThreadKey.decode(body["turn"]["thread"])
            turn = LiveTurn(thread=thread, **_values_of(LiveTurn, body["turn"]))
            return TurnEvent(turn=turn, event=event, **_values_of(TurnEvent, body))
        case "recorded":
            return Recorded(thread=ThreadKey.decode(body["thread"]), **_values_of(Recorded, body))
        case _:
            return None


def _turn_values(turn: LiveTurn) -> dict[str, Any]:
    return {"thread": turn.thread.encode()} | {name: getattr(turn, name) for name, *_ in _FIELDS[LiveTurn]}


def _control(body: Mapping[str, Any]) -> Control | None:
    kind = _CONTROLS.get(body["kind"])
    return None if kind is None else kind(**_values_of(kind, body))


def _values_of(kind: type[Any], body: Mapping[str, Any]) -> dict[str, Any]:
    """The texts, numbers and truth values among the fields of `kind`, of those that `body` has."""
    values: dict[str, Any] = {}
    for name, annotation, wanted in _FIELDS[kind]:
        if name not in body:
            continue
        value = body[name]
        if not isinstance(value, wanted) or (isinstance(value, bool) and annotation != "bool"):
            raise TypeError(f"{name} is {type(value).__name__}, expected {annotation}")
        values[name] = value
    return values
