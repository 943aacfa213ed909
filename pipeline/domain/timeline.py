"""The history of a thread for a person who opens it: its durable entries, oldest first."""

from __future__ import annotations

from typing import Any, Literal

from pipeline.domain.events import Thought
from pipeline.domain.files import StoredFile
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey

EntryRole = Literal["user", "assistant", "notice", "error", "session", "title"]
"""`title`: the subject of the session, from this entry on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuestion:
    """A closed question that a turn asked a person."""

    interaction_id: str
    tool_name: str
    reasoning: str
    options: tuple[str, ...]
    choice: str = ""
    """One of the options, or EXPIRED; empty if it was closed without an answer."""
    paused: bool = False
    """The turn ended with it, and its answer began another turn. Otherwise it was asked during the turn."""


def question_to_plain(question: AskedQuestion) -> dict[str, Any]:
    """Plain JSON data for a record's body and for the web page."""
    return {
        "interaction_id": question.interaction_id,
        "tool_name": question.tool_name,
        "reasoning": question.reasoning,
        "options": list(question.options),
        "choice": question.choice,
        "paused": question.paused,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEntry:
    """One visible, durable entry of a thread."""

    entry_id: int
    """Grows within a thread; 0 for an accepted message that still waits in the queue."""
    message_id: str
    role: EntryRole
    text: str
    at: float
    """Unix seconds."""
    spoken: bool = False
    """The text is a transcript of a voice note."""
    turn: str = ""
    """For role "user": the id of the earlier message that it is answered together with; empty if it has a
    separate turn."""
    code: str = ""
    """For role "error": the error's code. For role "session": `otr` if it is off the record."""
    replaces: str = ""
    """For role "user": the id of the message whose turn its answer replaces; empty for none."""
    removed: str = ""
    """For role "notice": the id of the message whose turn it takes out of the conversation."""
    thoughts: tuple[Thought, ...] = ()
    """For role "assistant": the reasoning steps that led to the answer."""
    feedback: Literal["", "up", "down"] = ""
    """For role "assistant": what a person thinks of the answer."""
    questions: tuple[AskedQuestion, ...] = ()
    """For roles "assistant" and "error": the questions asked during the turn, oldest first, then those that
    it paused for, once closed."""
    files: tuple[StoredFile, ...] = ()
    """The files that were sent with it; without ids while a message waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """One page of a history that is read backwards."""

    entries: tuple[TimelineEntry, ...]
    """Oldest first; may be empty although more pages follow."""
    next: int
    """The `before` of the next page; 0 at the beginning of the history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatSummary:
    """One conversation among several."""

    thread: ThreadKey
    title: str
    """Its subject, or its first words; empty if unknown."""
    at: float
    """The time of its last message, in Unix seconds."""
    found: str = ""
    """A piece of the newest message or answer in it that has the words of a search; empty for none."""
