"""Every frame that a client of the page can send, with the ids of things: for tests of who may reach what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from adapters.web import person_frames as own
from adapters.web import protocol
from adapters.web import workflow_frames as workflows
from adapters.web.feedback import FeedbackFrame
from pipeline.domain.commands import COMMAND_NAMES
from tests.support.page_people import Frame

UNNAMED: Sequence[type] = (protocol.Ping, protocol.LiveFinish, protocol.LiveStop, protocol.SpeakStop)
"""Frames without a client_id, which have no answer with one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Things:
    """The ids of what a person has, and words that only they have written."""

    chat: str
    message_id: str
    entry_id: int
    question: str
    device: str
    handle: str
    """Of an upload whose message has not come."""
    words: str


INVENTED = Things(
    chat="c_" + "5" * 32,
    message_id="m_" + "5" * 32,
    entry_id=2**40,
    question="q_" + "5" * 32,
    device="d_" + "5" * 16,
    handle="u_" + "5" * 32,
    words="petrel",
)
"""What belongs to no one."""


def requests_for(of: Things) -> Mapping[type, list[Frame]]:
    """Frames of each type that name the things; without the token of a hello and the client_ids."""
    file = {"handle": of.handle, "name": "notes.txt", "mime": "text/plain", "size": 20}
    return {
        protocol.Hello: [{"type": "hello", "protocol": 1, "chat": of.chat, "after": 0}],
        protocol.TextMessage: [
            {"type": "message", "text": "mine"},
            {"type": "message", "text": "edited", "edits": of.message_id},
            {"type": "message", "text": "what is in it?", "files": [file]},
            {"type": "message", "text": f"/history {of.words}"},
        ],
        protocol.VoiceAnnouncement: [{"type": "voice", "mime": "audio/webm", "size": 3}],
        protocol.CommandFrame: [_command(name, of) for name in COMMAND_NAMES],
        protocol.ApprovalFrame: [{"type": "approval", "interaction": of.question, "choice": "approve"}],
        FeedbackFrame: [
            {"type": "feedback", "message_id": of.message_id, "up": up, "on": on}
            for up, on in ((False, True), (True, True), (True, False))
        ],
        protocol.Ping: [{"type": "ping"}],
        protocol.EarlierRequest: [{"type": "earlier", "before": of.entry_id + 1}],
        own.ChatsRequest: [{"type": "chats"}, {"type": "chats", "search": of.words}],
        protocol.LiveStart: [{"type": "live_start", "hands_free": False}],
        protocol.LiveFinish: [{"type": "live_finish"}],
        protocol.LiveStop: [{"type": "live_stop"}],
        protocol.Speak: [
            {"type": "speak", "entry_id": of.entry_id},
            {"type": "speak", "entry_id": of.entry_id, "part": 0},
        ],
        protocol.SpeakAlong: [{"type": "speak", "message_id": of.message_id, "part": 0}],
        protocol.SpeakStop: [{"type": "speak_stop"}],
        own.RenameChat: [{"type": "rename_chat", "chat": of.chat, "title": "stolen"}],
        own.DeleteChat: [{"type": "delete_chat", "chat": of.chat}],
        own.AccountRequest: [{"type": "account"}],
        own.RenamePerson: [{"type": "rename_person", "name": "Victim"}],
        own.InviteDevice: [{"type": "invite_device"}],
        own.SignOut: [{"type": "sign_out", "device": of.device}],
        **_workflow_requests(of),
    }


def _workflow_requests(of: Things) -> Mapping[type, list[Frame]]:
    document: Frame = {"nodes": [], "connections": []}
    return {
        workflows.WorkflowList: [{"type": "workflows"}],
        workflows.WorkflowOpen: [{"type": "workflow_open", "name": "letters"}],
        workflows.WorkflowCheck: [{"type": "workflow_check", "document": document}],
        workflows.WorkflowSave: [
            {"type": "workflow_save", "name": "letters", "base": 0, "document": document}
        ],
        workflows.WorkflowDelete: [{"type": "workflow_delete", "name": "letters", "base": 1}],
        workflows.WorkflowStart: [
            {"type": "workflow_start", "name": "letters", "version": 1, "text": "mine"}
        ],
        workflows.WorkflowRunList: [{"type": "workflow_runs", "name": "letters"}],
        workflows.WorkflowRunState: [{"type": "workflow_run", "chat": of.chat, "seen": 0}],
        workflows.WorkflowAnswer: [
            {
                "type": "workflow_answer",
                "chat": of.chat,
                "interaction": of.question,
                "choice": "approve",
                "note": "",
            }
        ],
    }


def _command(name: str, of: Things) -> Frame:
    argument = {"argument": of.words} if name == "history" else {}
    return {"type": "command", "name": name, **argument}
