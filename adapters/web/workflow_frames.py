"""The frames of the page's workflow editor, strictly parsed. Who may send them is checked where they are
answered (`workflow_requests`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from adapters.web.frame_fields import BadFrame, client_id_field, integer_field, string_field
from adapters.web.person_frames import CHAT_ID, ChatsRequest, PersonFrame, parse_person_frame
from pipeline.domain.frozen import dataclass

_MAX_NAME_CHARS: Final = 100
_MAX_TEXT_CHARS: Final = 100_000
_MAX_ID_CHARS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowList:
    """The client requests the saved documents."""

    client_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowOpen:
    """The client requests a document."""

    client_id: str
    name: str
    version: int | None = None
    """None for the newest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowCheck:
    """The client requests the mistakes of a document."""

    client_id: str
    document: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowSave:
    """The client saves a document."""

    client_id: str
    name: str
    base: int
    """The version that was edited; 0 for a new document."""
    document: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowDelete:
    """The client deletes a document with all its versions."""

    client_id: str
    name: str
    base: int
    """The newest version that the client knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowStart:
    """The client runs a version of a document in a new conversation."""

    client_id: str
    name: str
    version: int
    text: str
    """The message that begins the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowRunList:
    """The client requests the runs of a document that its person has begun."""

    client_id: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowRunState:
    """The client requests the state of a run."""

    client_id: str
    chat: str
    seen: int
    """How many records of it the client has seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowAnswer:
    """The client answers an approval of a run."""

    client_id: str
    chat: str
    interaction: str
    choice: str
    note: str


WorkflowFrame = (
    WorkflowList
    | WorkflowOpen
    | WorkflowCheck
    | WorkflowSave
    | WorkflowDelete
    | WorkflowStart
    | WorkflowRunList
    | WorkflowRunState
    | WorkflowAnswer
)
OwnFrame = ChatsRequest | PersonFrame | WorkflowFrame
"""What a person requests that is no part of a conversation."""


def parse_own_frame(kind: str, fields: Mapping[str, Any]) -> OwnFrame:
    """The frame of type `kind`. Raises BadFrame."""
    if not kind.startswith("workflow"):
        return parse_person_frame(kind, fields)
    client_id = client_id_field(fields)
    match kind:
        case "workflows":
            return WorkflowList(client_id=client_id)
        case "workflow_check":
            return WorkflowCheck(client_id=client_id, document=_document(fields))
        case "workflow_run":
            seen = integer_field(fields, "seen", least=0)
            return WorkflowRunState(client_id=client_id, chat=_chat(fields), seen=seen)
        case "workflow_answer":
            return _answer(client_id, fields)
        case _:
            return _parse_named(kind, client_id, fields)


def _parse_named(kind: str, client_id: str, fields: Mapping[str, Any]) -> WorkflowFrame:
    """A frame about one saved workflow."""
    match kind:
        case "workflow_open":
            version = None if fields.get("version") is None else integer_field(fields, "version", least=1)
            return WorkflowOpen(client_id=client_id, name=_name(fields), version=version)
        case "workflow_save":
            return WorkflowSave(
                client_id=client_id, name=_name(fields), base=_base(fields), document=_document(fields)
            )
        case "workflow_delete":
            return WorkflowDelete(client_id=client_id, name=_name(fields), base=_base(fields))
        case "workflow_start":
            text = string_field(fields, "text", max_chars=_MAX_TEXT_CHARS)
            if not text.strip():
                raise BadFrame("empty_message", "text: the message is empty")
            version = integer_field(fields, "version", least=1)
            return WorkflowStart(client_id=client_id, name=_name(fields), version=version, text=text)
        case "workflow_runs":
            return WorkflowRunList(client_id=client_id, name=_name(fields))
        case _:
            raise BadFrame("unknown_type", "type: this server does not know a frame of this type")


def _answer(client_id: str, fields: Mapping[str, Any]) -> WorkflowAnswer:
    return WorkflowAnswer(
        client_id=client_id,
        chat=_chat(fields),
        interaction=string_field(fields, "interaction", max_chars=_MAX_ID_CHARS),
        choice=string_field(fields, "choice", max_chars=_MAX_ID_CHARS),
        note=string_field(fields, "note", max_chars=_MAX_TEXT_CHARS, may_be_empty=True),
    )


def _name(fields: Mapping[str, Any]) -> str:
    return string_field(fields, "name", max_chars=_MAX_NAME_CHARS)


def _base(fields: Mapping[str, Any]) -> int:
    return integer_field(fields, "base", least=0)


def _chat(fields: Mapping[str, Any]) -> str:
    chat = string_field(fields, "chat", max_chars=100)
    if not CHAT_ID.fullmatch(chat):
        raise BadFrame("bad_frame", "chat: not an id that this server made")
    return chat


def _document(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    document = fields.get("document")
    if not isinstance(document, dict):
        raise BadFrame("bad_frame", "document: expected an object")
    return document
