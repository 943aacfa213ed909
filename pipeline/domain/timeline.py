"""What a person sees when opening a thread: its durable entries, oldest first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pipeline.domain.events import Thought
from pipeline.domain.ids import ThreadKey

EntryRole = Literal["user", "assistant", "notice", "error", "session", "title"]
"""`title`: what the session is about, from here on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuestion:
    """A question that a turn asked a person, once nobody can answer it any more."""

    interaction_id: str
    tool_name: str
    reasoning: str
    options: tuple[str, ...]
    choice: str = ""
    """One of the options, or EXPIRED; empty where it ended before anybody answered."""
    paused: bool = False
    """The turn ended with it, and its answer began another. Otherwise it was asked in mid-turn."""


def question_to_plain(question: AskedQuestion) -> dict[str, Any]:
    """Plain JSON data: what a record's body and a page are given."""
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
    """Grows within a thread; 0 for a message that is accepted but still waits in the queue."""
    message_id: str
    role: EntryRole
    text: str
    at: float
    """Unix seconds."""
    spoken: bool = False
    """The text is a transcript of a voice note."""
    code: str = ""
    """For role "error": the error's code. For role "session": `otr` where it is off the record."""
    thoughts: tuple[Thought, ...] = ()
    """For role "assistant": how the answer came about."""
    questions: tuple[AskedQuestion, ...] = ()
    """For roles "assistant" and "error": what the turn asked in the middle of its work, oldest first, and
    then what it paused for, where that is closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """A part of a history, read backwards."""

    entries: tuple[TimelineEntry, ...]
    """Oldest first; may be empty though there are more."""
    next: int
    """The `before` with which to read on; 0 at the beginning of the history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatSummary:
    """One conversation among several."""

    thread: ThreadKey
    title: str
    """What it is about, or how it begins; empty where nothing is known."""
    at: float
    """When something was said in it last, in Unix seconds."""
