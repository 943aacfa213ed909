"""Convert a client's frame to the shared types. Pure: the same frame always gives the same ids."""

from __future__ import annotations

import functools
import secrets

from adapters.guests import chats_of, person_of
from adapters.identity import derived_message_id
from adapters.media_kinds import media_kind
from adapters.web.feedback import FeedbackFrame, to_reaction
from adapters.web.media import upload_name
from adapters.web.protocol import ApprovalFrame, CommandFrame, TextMessage, UploadedFile
from adapters.web.settings import ACCOUNT, CHANNEL
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import (
    ApprovalReply,
    Author,
    Inbound,
    InboundMessage,
    MediaRef,
    SessionCommand,
    parse_command,
)

OWNER = Author(id="owner")
"""The holder of the access token."""


def new_chat_id() -> str:
    """A new chat id; its 128 random bits keep readers of other chats out."""
    return f"c_{secrets.token_hex(16)}"


@functools.lru_cache(maxsize=1024)
def thread_of(chat: str) -> ThreadKey:
    """The thread of a chat. Cached, as each message needs it several times."""
    return ThreadKey(channel=CHANNEL, account=ACCOUNT, chat=chat)


def author_of(chat: str) -> Author:
    """The author of everything that is written in the chat."""
    person = person_of(chat)
    return Author(id=person) if person else OWNER


def threads_of(person: str) -> str:
    """The beginning of the thread keys of all chats of a person."""
    key = ThreadKey(channel=CHANNEL, account=ACCOUNT, chat=f"{chats_of(person)}x")
    return key.encode().removesuffix("x")


def to_inbound(
    chat: str, frame: TextMessage | CommandFrame | ApprovalFrame | FeedbackFrame, *, received_at: float
) -> Inbound:
    """The message, command, approval answer or reaction in `frame`. `received_at` in Unix seconds."""
    if isinstance(frame, FeedbackFrame):
        return to_reaction(thread_of(chat), author_of(chat), frame, received_at=received_at)
    native_id, message_id = _identity(chat, frame.client_id)
    if isinstance(frame, ApprovalFrame):
        return ApprovalReply(
            message_id=message_id,
            native_id=native_id,
            thread=thread_of(chat),
            author=author_of(chat),
            received_at=received_at,
            interaction_id=frame.interaction,
            choice=frame.choice,
        )
    edits, files = (frame.edits, frame.files) if isinstance(frame, TextMessage) else ("", ())
    command = (
        frame if isinstance(frame, CommandFrame) else None if edits or files else parse_command(frame.text)
    )
    if command is not None:
        return SessionCommand(
            message_id=message_id,
            native_id=native_id,
            thread=thread_of(chat),
            author=author_of(chat),
            received_at=received_at,
            name=command.name,
            argument=command.argument,
        )
    return InboundMessage(
        message_id=message_id,
        native_id=native_id,
        thread=thread_of(chat),
        author=author_of(chat),
        received_at=received_at,
        text=frame.text if isinstance(frame, TextMessage) else "",
        attachments=_attachments(chat, files),
        edited=bool(edits),
        place=edits or message_id,
    )


def _attachments(chat: str, files: tuple[UploadedFile, ...]) -> tuple[MediaRef, ...]:
    return tuple(
        [
            MediaRef(
                channel=CHANNEL,
                handle=upload_name(chat, one.handle),
                mime=one.mime,
                size=one.size,
                kind=media_kind(one.mime, one.name),
                name=one.name,
            )
            for one in files
        ]
    )


def voice_to_inbound(chat: str, client_id: str, voice: MediaRef, *, received_at: float) -> InboundMessage:
    """The message for a voice note whose bytes are already stored under `voice`."""
    native_id, message_id = _identity(chat, client_id)
    return InboundMessage(
        message_id=message_id,
        native_id=native_id,
        thread=thread_of(chat),
        author=author_of(chat),
        received_at=received_at,
        voice=voice,
    )


def _identity(chat: str, client_id: str) -> tuple[str, str]:
    native_id = f"{chat}:{client_id}"
    return native_id, derived_message_id(CHANNEL, ACCOUNT, native_id)
