"""The client's frames of docs/web-protocol.md as values, strictly parsed.

Pure: no socket, no clock, no store. Every input gives a frame or a `FrameProblem`.
Not here: the server's frames (outgoing.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from adapters.web.feedback import FeedbackFrame
from adapters.web.frame_fields import (
    CLIENT_ID,
    BadFrame,
    boolean_field,
    client_id_field,
    integer_field,
    json_object,
    optional_string_field,
    string_field,
)
from adapters.web.person_frames import CHAT_ID
from adapters.web.workflow_frames import OwnFrame, parse_own_frame
from pipeline.domain.command_types import CommandName
from pipeline.domain.commands import COMMAND_NAMES, argument_chars
from pipeline.domain.frozen import dataclass

PROTOCOL_VERSION: Final = 1
CLOSE_CODES: Final[Mapping[str, int]] = {
    "hello_first": 4400,
    "wrong_protocol": 4400,
    "bad_chat": 4400,
    "wrong_token": 4401,
    "hello_timeout": 4408,
    "wrong_invitation": 4401,
    "signed_out": 4403,
    "chat_deleted": 4404,
    "too_many_attempts": 4429,
}
LATEST: Final = "latest"
"""As the chat of a `hello`: the most recently active chat, or a new one where there is none."""
_MIME = re.compile(r"([A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+( *;[\x20-\x7e]*)?)?")
_UPLOAD = re.compile(r"u_[0-9a-f]{32}")
MAX_FILES: Final = 10
_MAX_NAME_CHARS = 200
_MAX_TOKEN_CHARS = 500
_OWN_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
_MAX_DEVICE_CHARS = _MAX_MIME_CHARS = 100
_MAX_INTERACTION_CHARS = _MAX_MESSAGE_ID_CHARS = 200

PCM_FRAME_BYTES: Final = 32_000
"""The largest binary frame of a live session: one second of 16 kHz mono s16le."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLimits:
    """The client's limits, as announced in `welcome`."""

    text_chars: int
    voice_bytes: int
    voice_seconds: int
    file_bytes: int = 0
    """0 where no files are taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """The first frame. `chat` None requests a new chat, LATEST the most recently active one."""

    token: str
    chat: str | None
    after: int
    batch: bool = False
    """Whether the client reads several frames in one message, as a JSON array."""
    nodes: bool = False
    """Whether the client gets the events of the graph's nodes."""
    invitation: str = ""
    """The code of a link that signs this browser in, with `token` as the token that it has made; or empty."""
    device: str = ""
    """What the browser is called, for the list of devices."""
    language: str = ""
    """The tag of the language in which the client shows the commands; empty for English."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadedFile:
    """A file of a message, which was uploaded before it."""

    handle: str
    name: str
    mime: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TextMessage:
    """A typed message, or files with or without words."""

    client_id: str
    text: str
    files: tuple[UploadedFile, ...] = ()
    edits: str = ""
    """The message that it replaces; empty for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VoiceAnnouncement:
    """The next binary frame is a voice note of `size` bytes."""

    client_id: str
    mime: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandFrame:
    """A pressed button or a typed command, see `pipeline.domain.commands`."""

    client_id: str
    name: CommandName
    argument: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalFrame:
    """An answer to `approval_required`."""

    client_id: str
    interaction: str
    choice: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ping:
    """A client's keepalive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierRequest:
    """The client requests history entries before the entry `before`."""

    client_id: str
    before: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveStart:
    """The microphone is open: from now on binary frames are its audio."""

    client_id: str
    hands_free: bool
    """Pauses end an utterance; otherwise only `live_finish` does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveFinish:
    """The button was released: what was said is a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveStop:
    """The microphone is closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speak:
    """A request to read a finished answer aloud."""

    client_id: str
    entry_id: int
    part: int | None = None
    """Only this part of it, from 0; None for the whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeakAlong:
    """A request to read an answer in progress aloud, part by part."""

    client_id: str
    message_id: str
    part: int
    """The requested part, from 0: the one after the last that was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeakStop:
    """A request to stop reading aloud."""


ClientFrame = (
    Hello
    | TextMessage
    | VoiceAnnouncement
    | CommandFrame
    | ApprovalFrame
    | FeedbackFrame
    | Ping
    | EarlierRequest
    | LiveStart
    | LiveFinish
    | LiveStop
    | Speak
    | SpeakAlong
    | SpeakStop
    | OwnFrame
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameProblem:
    """The reason why a frame was refused."""

    code: str
    message: str
    client_id: str | None = None
    swallow_binary: bool = False
    """Whether it refuses a voice announcement, whose binary frame probably follows."""

    @property
    def close_code(self) -> int | None:
        """The close code that follows, or None where the connection continues."""
        return CLOSE_CODES.get(self.code)


def parse_frame(raw: str, limits: ClientLimits) -> ClientFrame | FrameProblem:
    """The frame in the text `raw`, or the problem with it. Raises nothing; ignores unknown fields."""
    client_id, announced = None, False
    try:
        fields = json_object(raw)
        kind = string_field(fields, "type", max_chars=100)
        candidate = fields.get("client_id")
        if isinstance(candidate, str) and CLIENT_ID.fullmatch(candidate):
            client_id = candidate
        announced = kind == "voice"
        return _parse_kind(kind, fields, limits)
    except BadFrame as bad:
        return FrameProblem(code=bad.code, message=str(bad), client_id=client_id, swallow_binary=announced)


def _parse_kind(kind: str, fields: Mapping[str, Any], limits: ClientLimits) -> ClientFrame:
    match kind:
        case "message":
            files = _files(fields)
            client_id, text = client_id_field(fields), _message_text(fields, limits, may_be_empty=bool(files))
            return TextMessage(client_id=client_id, text=text, files=files, edits=_edits(fields))
        case "voice":
            return _voice(fields, limits)
        case "command":
            name = _command_name(fields)
            return CommandFrame(
                client_id=client_id_field(fields), name=name, argument=_argument(fields, name)
            )
        case "approval":
            return ApprovalFrame(
                client_id=client_id_field(fields),
                interaction=string_field(fields, "interaction", max_chars=_MAX_INTERACTION_CHARS),
                choice=string_field(fields, "choice", max_chars=_MAX_INTERACTION_CHARS),
            )
        case "feedback":
            return FeedbackFrame(
                client_id=client_id_field(fields),
                message_id=string_field(fields, "message_id", max_chars=_MAX_MESSAGE_ID_CHARS),
                up=boolean_field(fields, "up"),
                on=boolean_field(fields, "on"),
            )
        case "ping":
            return Ping()
        case "hello":
            return _hello(fields)
        case "earlier":
            return EarlierRequest(
                client_id=client_id_field(fields), before=integer_field(fields, "before", least=1)
            )
        case _:
            return _parse_spoken(kind, fields)


def _parse_spoken(kind: str, fields: Mapping[str, Any]) -> ClientFrame:
    match kind:
        case "live_start":
            return LiveStart(
                client_id=client_id_field(fields), hands_free=boolean_field(fields, "hands_free")
            )
        case "live_finish":
            return LiveFinish()
        case "live_stop":
            return LiveStop()
        case "speak_stop":
            return SpeakStop()
        case "speak" if fields.get("message_id") is not None:
            if fields.get("entry_id") is not None:
                raise BadFrame("bad_frame", "entry_id: leave it out where message_id names the answer")
            return SpeakAlong(
                client_id=client_id_field(fields),
                message_id=string_field(fields, "message_id", max_chars=_MAX_MESSAGE_ID_CHARS),
                part=integer_field(fields, "part", least=0),
            )
        case "speak":
            return Speak(
                client_id=client_id_field(fields),
                entry_id=integer_field(fields, "entry_id", least=1),
                part=None if fields.get("part") is None else integer_field(fields, "part", least=0),
            )
        case _:
            return parse_own_frame(kind, fields)


def _hello(fields: Mapping[str, Any]) -> Hello:
    if integer_field(fields, "protocol", least=0) != PROTOCOL_VERSION:
        raise BadFrame("wrong_protocol", f"protocol: this server speaks version {PROTOCOL_VERSION}")
    token = string_field(fields, "token", max_chars=_MAX_TOKEN_CHARS, may_be_empty=True)
    after = integer_field(fields, "after", least=0) if fields.get("after") is not None else 0
    chat = fields.get("chat")
    if chat is not None and not (isinstance(chat, str) and (chat == LATEST or CHAT_ID.fullmatch(chat))):
        raise BadFrame(
            "bad_chat",
            f"chat: not an id that this server made; send {LATEST}, or leave it out for a new chat",
        )
    batch = "batch" in fields and boolean_field(fields, "batch")
    nodes = "nodes" in fields and boolean_field(fields, "nodes")
    invitation = device = ""
    if fields.get("invitation") is not None:
        invitation = string_field(fields, "invitation", max_chars=_MAX_TOKEN_CHARS)
        device = string_field(fields, "device", max_chars=_MAX_DEVICE_CHARS, may_be_empty=True)
        if not _OWN_TOKEN.fullmatch(token):
            raise BadFrame("bad_frame", "token: expected 43 random characters of A-Z a-z 0-9 _ -")
    return Hello(
        token=token,
        chat=chat,
        after=after,
        batch=batch,
        nodes=nodes,
        invitation=invitation,
        device=device,
        language=optional_string_field(fields, "language", max_chars=40),
    )


def _voice(fields: Mapping[str, Any], limits: ClientLimits) -> VoiceAnnouncement:
    client_id = client_id_field(fields)
    mime = string_field(fields, "mime", max_chars=_MAX_MIME_CHARS, may_be_empty=True)
    if not _MIME.fullmatch(mime):
        raise BadFrame("bad_frame", "mime: expected a media type such as audio/webm")
    size = integer_field(fields, "size", least=1)
    if size > limits.voice_bytes:
        raise BadFrame(
            "voice_too_large",
            f"size: the voice note has {size} bytes, the limit is {limits.voice_bytes}; record a shorter one",
        )
    return VoiceAnnouncement(client_id=client_id, mime=mime, size=size)


def _files(fields: Mapping[str, Any]) -> tuple[UploadedFile, ...]:
    given = fields.get("files", [])
    is_list = isinstance(given, list) and len(given) <= MAX_FILES
    if not is_list or not all(isinstance(one, dict) for one in given):
        raise BadFrame("bad_frame", f"files: expected a list of at most {MAX_FILES} objects")
    return tuple([_file(one) for one in given])


def _file(fields: Mapping[str, Any]) -> UploadedFile:
    handle = string_field(fields, "handle", max_chars=40)
    mime = string_field(fields, "mime", max_chars=_MAX_MIME_CHARS, may_be_empty=True)
    if not _UPLOAD.fullmatch(handle) or not _MIME.fullmatch(mime):
        raise BadFrame("bad_frame", "files: expected handles of uploads, and media types such as image/png")
    name = string_field(fields, "name", max_chars=_MAX_NAME_CHARS, may_be_empty=True)
    return UploadedFile(handle=handle, name=name, mime=mime, size=integer_field(fields, "size", least=0))


def _message_text(fields: Mapping[str, Any], limits: ClientLimits, *, may_be_empty: bool) -> str:
    text = string_field(fields, "text", max_chars=None, may_be_empty=True)
    if len(text) > limits.text_chars:
        raise BadFrame(
            "text_too_long",
            f"text: {len(text)} characters, the limit is {limits.text_chars}; send it in parts",
        )
    if not text.strip() and not may_be_empty:
        raise BadFrame("empty_message", "text: the message is empty")
    return text


def _command_name(fields: Mapping[str, Any]) -> CommandName:
    given = string_field(fields, "name", max_chars=100)
    for name in COMMAND_NAMES:
        if name == given:
            return name
    raise BadFrame("bad_frame", f"name: expected one of {', '.join(COMMAND_NAMES)}")


def _argument(fields: Mapping[str, Any], name: CommandName) -> str:
    if "argument" not in fields:
        return ""
    most = argument_chars(name)
    return string_field(fields, "argument", max_chars=most, may_be_empty=True).strip()


def _edits(fields: Mapping[str, Any]) -> str:
    return string_field(fields, "edits", max_chars=_MAX_MESSAGE_ID_CHARS) if "edits" in fields else ""
