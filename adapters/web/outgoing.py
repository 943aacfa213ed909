"""The server's frames of docs/web-protocol.md, and their JSON text. Pure, except for the cache of rendered
answers.

`encode` returns text that is valid UTF-8 and readable by a browser's JSON parser, for any output of a model
or a recogniser.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from adapters.channel import VoiceClip
from adapters.formatting.visible import visible
from adapters.guests import Account, Visitor, shown_chat
from adapters.web.html_cache import HtmlCache
from adapters.web.protocol import MAX_FILES, PROTOCOL_VERSION, ClientLimits, FrameProblem
from pipeline.domain.command_types import LANGUAGES
from pipeline.domain.commands import COMMANDS
from pipeline.domain.events import (
    ApprovalRequired,
    LlmToken,
    PipelineEvent,
    ResponseComplete,
    event_to_wire,
    thought_to_plain,
)
from pipeline.domain.json_text import encoder
from pipeline.domain.live import LiveEvent, live_event_to_wire
from pipeline.domain.timeline import ChatSummary, TimelineEntry, question_to_plain

Frame = Mapping[str, Any]
"""Plain JSON data."""


def encode(frames: Sequence[Frame]) -> bytes:
    """One frame as the text of a JSON object in UTF-8, or several as an array of them: one call is cheaper
    than one for each."""
    plain: Any = frames[0] if len(frames) == 1 else frames
    try:
        # A number that JSON does not have is null.
        return _ENCODER.encode(plain)
    except (TypeError, ValueError):
        # A lone surrogate from a model is invalid in UTF-8, but valid as a JSON escape.
        return "".join(_ASCII(_finite(plain), 0)).encode()


def welcome_frame(
    *,
    chat: str,
    name: str,
    visitor: Visitor,
    bot: str,
    limits: ClientLimits,
    voice: bool,
    live: bool,
    speech: bool,
    language: str,
    editor: bool = False,
) -> Frame:
    """The answer to an accepted `hello`, with the commands in its `language`. `editor` says whether the
    visitor may edit workflows."""
    return {
        "type": "welcome",
        "protocol": PROTOCOL_VERSION,
        "chat": shown_chat(chat),
        "name": name,
        "person": visitor.person,
        "bot": bot,
        "limits": {
            "text_chars": limits.text_chars,
            "voice_bytes": limits.voice_bytes,
            "voice_seconds": limits.voice_seconds,
            "file_bytes": limits.file_bytes,
            "files": MAX_FILES,
        },
        "voice": voice,
        "live": live,
        "speech": speech,
        "commands": command_list(language),
        **({"editor": True} if editor else {}),
    }


def workflow_frame(kind: str, client_id: str, fields: Mapping[str, Any]) -> Frame:
    """The answer to a request of the workflow editor."""
    return {"type": kind, "client_id": client_id, **fields}


def command_list(language: str = "") -> list[Frame]:
    """The session commands, in the order of a menu, described in the language of this tag or in English."""
    base = language.lower().partition("-")[0]
    described = next((one for one in LANGUAGES if one == base), LANGUAGES[0])
    return [
        {
            "name": one.name,
            "argument": "" if one.argument is None else one.argument.name,
            "description": one.description[described],
        }
        for one in COMMANDS
    ]


def entry_frame(entry: TimelineEntry, answers: HtmlCache, files: Sequence[Mapping[str, Any]] = ()) -> Frame:
    """One line of the conversation; an answer also carries its HTML. `files` come from `LinkedFiles`."""
    fields = {
        "type": "entry",
        "entry_id": entry.entry_id,
        "message_id": entry.message_id,
        "role": entry.role,
        "text": entry.text,
        "at": entry.at,
        "spoken": entry.spoken,
        "code": entry.code,
    }
    if entry.turn:
        fields["turn"] = entry.turn
    if entry.replaces:
        fields["replaces"] = entry.replaces
    if entry.removed:
        fields["removed"] = entry.removed
    if entry.role == "assistant":
        fields["html"] = answers.html_of(entry.text)
        fields["thoughts"] = [thought_to_plain(thought) for thought in entry.thoughts]
        if entry.feedback:
            fields["feedback"] = entry.feedback
    if entry.questions:
        fields["questions"] = [_seen(question_to_plain(one)) for one in entry.questions]
    if files:
        fields["files"] = list(files)
    return fields


def snapshot_frame(message_id: str, text: str) -> Frame:
    """The present text of an answer in progress."""
    return {"type": "snapshot", "message_id": message_id, "text": text}


def ready_frame(*, earlier: int) -> Frame:
    """The history is sent; more of it exists before the entry `earlier`, unless that is 0."""
    return {"type": "ready", "earlier": earlier}


def earlier_frame(*, client_id: str, earlier: int) -> Frame:
    """The end of the entries that an `earlier` requested; more exist before `earlier`, unless it is 0."""
    return {"type": "earlier", "client_id": client_id, "earlier": earlier}


def chats_frame(*, client_id: str, chats: Sequence[ChatSummary]) -> Frame:
    """The list of chats, the most recently active first."""
    listed = [
        {"chat": shown_chat(one.thread.chat), "title": one.title, "at": one.at}
        | ({"found": one.found} if one.found else {})
        for one in chats
    ]
    return {"type": "chats", "client_id": client_id, "chats": listed}


def chat_renamed_frame(client_id: str | None, chat: str, title: str) -> Frame:
    """The chat has another name; `client_id` is that of the request, or None for the other windows."""
    return {"type": "chat_renamed", "client_id": client_id, "chat": shown_chat(chat), "title": title}


def chat_deleted_frame(client_id: str, chat: str) -> Frame:
    """The chat is deleted."""
    return {"type": "chat_deleted", "client_id": client_id, "chat": shown_chat(chat)}


def account_frame(client_id: str, visitor: Visitor, account: Account) -> Frame:
    """What is kept about the person."""
    return {
        "type": "account",
        "client_id": client_id,
        "person": visitor.person,
        "name": account.name,
        "voice_replies": account.voice_replies,
        "devices": [
            {
                "device": one.id,
                "name": one.name,
                "signed_in_at": one.signed_in_at,
                "seen_at": one.seen_at,
                "this": one.id == visitor.device,
            }
            for one in account.devices
        ],
    }


def invitation_frame(client_id: str, invitation: str, expires_at: float) -> Frame:
    """A link for another device, once: the page's address with `#invitation=` and this code."""
    return {
        "type": "invitation",
        "client_id": client_id,
        "invitation": invitation,
        "expires_at": expires_at,
    }


def accepted_frame(*, client_id: str, message_id: str, duplicate: bool) -> Frame:
    """The item is durable."""
    return {"type": "accepted", "client_id": client_id, "message_id": message_id, "duplicate": duplicate}


def event_frame(event: PipelineEvent, answers: HtmlCache) -> Frame:
    """A live event; `response_complete` also carries the answer's HTML."""
    wire = event_to_wire(event)
    if isinstance(event, ResponseComplete):
        wire["html"] = answers.html_of(event.content)
    elif isinstance(event, ApprovalRequired):
        wire = _seen(wire)
    return {"type": "event", "event": wire}


def token_frame(token: LlmToken) -> Frame:
    """`event_frame` of a token, of which an answer has many."""
    return {
        "type": "event",
        "event": {
            "type": "llm_token",
            "session_id": token.session_id,
            "message_id": token.message_id,
            "text": token.text,
            "offset": token.offset,
        },
    }


def live_ready_frame(client_id: str) -> Frame:
    """The microphone's stream is open."""
    return {"type": "live_ready", "client_id": client_id}


def live_frame(event: LiveEvent) -> Frame:
    """An event of live speech."""
    return {"type": "live", "event": live_event_to_wire(event)}


def live_ended_frame(reason: str, message: str) -> Frame:
    """The microphone's stream has ended; `message` says why, where the client did not request it."""
    return {"type": "live_ended", "reason": reason, "message": message}


def speech_frame(
    *, client_id: str, entry_id: int, clip: VoiceClip, part: int | None = None, parts: int = 1
) -> Frame:
    """The header of an answer read aloud, or of one of its `parts`; the next binary frame is its
    audio."""
    place = {} if part is None else {"part": part, "parts": parts}
    return {
        "type": "speech",
        "client_id": client_id,
        "entry_id": entry_id,
        **place,
        "mime": clip.mime,
        "seconds": clip.seconds,
        "size": len(clip.data),
    }


def speech_part_frame(*, client_id: str, message_id: str, part: int, clip: VoiceClip) -> Frame:
    """The header of a part of an answer in progress; the next binary frame is its
    audio."""
    return {
        "type": "speech",
        "client_id": client_id,
        "message_id": message_id,
        "part": part,
        "mime": clip.mime,
        "seconds": clip.seconds,
        "size": len(clip.data),
    }


def speech_ended_frame(*, client_id: str, reason: str) -> Frame:
    """No further part exists. `reason` is `complete`, `stopped` or `failed`."""
    return {"type": "speech_ended", "client_id": client_id, "reason": reason}


def problem_frame(problem: FrameProblem) -> Frame:
    """The reason why a frame was refused, for the client."""
    return {
        "type": "problem",
        "code": problem.code,
        "message": problem.message,
        "client_id": problem.client_id,
    }


def pong_frame() -> Frame:
    """The answer to `ping`."""
    return {"type": "pong"}


def _seen(question: dict[str, Any]) -> dict[str, Any]:
    """A question whose text contains no invisible characters."""
    return question | {name: visible(question[name]) for name in ("tool_name", "reasoning")}


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


_ENCODER = msgspec.json.Encoder()
_ASCII = encoder(ascii_only=True)
