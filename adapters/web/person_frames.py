"""The frames by which people manage their conversations and their account, strictly parsed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from adapters.web.frame_fields import BadFrame, client_id_field, string_field
from pipeline.domain.frozen import dataclass

CHAT_ID = re.compile(r"c_[0-9a-f]{32}")
_MAX_TITLE_CHARS = 120
_MAX_NAME_CHARS = 60
_MAX_SEARCH_CHARS = 200
_MAX_DEVICE_CHARS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatsRequest:
    """The client requests the list of chats."""

    client_id: str
    search: str = ""
    """Only chats whose titles contain this, or with a message that has these words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameChat:
    """The client gives one of its chats a title; an empty one takes the given title away."""

    client_id: str
    chat: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteChat:
    """The client deletes one of its chats, with all words in it."""

    client_id: str
    chat: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountRequest:
    """The client requests what is kept about its person."""

    client_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RenamePerson:
    """The person wants to be called otherwise."""

    client_id: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InviteDevice:
    """The person wants a link for another device."""

    client_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SignOut:
    """The person signs one of their devices out."""

    client_id: str
    device: str


PersonFrame = RenameChat | DeleteChat | AccountRequest | RenamePerson | InviteDevice | SignOut


def parse_person_frame(kind: str, fields: Mapping[str, Any]) -> PersonFrame | ChatsRequest:
    """The frame of type `kind`. Raises BadFrame."""
    match kind:
        case "chats":
            search = ""
            if fields.get("search") is not None:
                search = string_field(fields, "search", max_chars=_MAX_SEARCH_CHARS, may_be_empty=True)
            return ChatsRequest(client_id=client_id_field(fields), search=search.strip())
        case "rename_chat":
            title = string_field(fields, "title", max_chars=_MAX_TITLE_CHARS, may_be_empty=True)
            return RenameChat(
                client_id=client_id_field(fields), chat=_chat(fields), title=" ".join(title.split())
            )
        case "delete_chat":
            return DeleteChat(client_id=client_id_field(fields), chat=_chat(fields))
        case "account":
            return AccountRequest(client_id=client_id_field(fields))
        case "rename_person":
            return RenamePerson(
                client_id=client_id_field(fields),
                name=string_field(fields, "name", max_chars=_MAX_NAME_CHARS),
            )
        case "invite_device":
            return InviteDevice(client_id=client_id_field(fields))
        case "sign_out":
            return SignOut(
                client_id=client_id_field(fields),
                device=string_field(fields, "device", max_chars=_MAX_DEVICE_CHARS),
            )
        case _:
            raise BadFrame("unknown_type", "type: this server does not know a frame of this type")


def _chat(fields: Mapping[str, Any]) -> str:
    chat = string_field(fields, "chat", max_chars=100)
    if not CHAT_ID.fullmatch(chat):
        raise BadFrame("bad_frame", "chat: not an id that this server made")
    return chat
