"""Sessions: the bounded conversations of a thread, and the model's view of one.

A session begins with a record of kind `session`. The history is read from the log once per live
thread and then kept up to date by the commits, so a turn's cost does not grow with it.
"""

from __future__ import annotations

from collections.abc import Sequence

from gateway.storage.ports import NewRecord, Record, Store
from pipeline.domain.chat import ChatMessage
from pipeline.domain.ids import new_id

MAX_HISTORY_RECORDS = 2_000
"""Records read back when a thread comes to life; older ones stay in the log, beyond any budget."""


class SessionState:
    """One live thread's session and its conversation so far."""

    def __init__(self, session_id: str, history: Sequence[ChatMessage], *, stored: bool) -> None:
        self.session_id = session_id
        self.stored = stored
        """Whether the session's own record is durable."""
        self._history = list(history)

    @property
    def history(self) -> tuple[ChatMessage, ...]:
        """The session's messages, oldest first."""
        return tuple(self._history)

    def extend(self, messages: Sequence[ChatMessage]) -> None:
        """Take over what a commit made durable."""
        self._history.extend(messages)
        del self._history[:-MAX_HISTORY_RECORDS]

    def restart(self, session_id: str) -> None:
        """Begin a new, empty session whose record is durable."""
        self.session_id = session_id
        self.stored = True
        self._history.clear()


async def load_session(store: Store, thread: str) -> SessionState:
    """The thread's current session, or a fresh one whose record is not yet written."""
    session_id = await store.current_session(thread)
    if session_id is None:
        return SessionState(new_id("ses"), (), stored=False)
    records = await store.read_log(
        thread, kinds=("user", "assistant"), session_id=session_id, limit=MAX_HISTORY_RECORDS
    )
    return SessionState(session_id, _conversation(records), stored=True)


async def history_before(store: Store, record: Record) -> tuple[ChatMessage, ...]:
    """The conversation of the record's session as it was before it."""
    records = await store.read_log(
        record.thread,
        kinds=("user", "assistant"),
        session_id=record.session_id,
        limit=MAX_HISTORY_RECORDS,
    )
    return tuple(_conversation([earlier for earlier in records if earlier.id < record.id]))


def session_record(session_id: str, message_id: str, at: float, *, text: str = "") -> NewRecord:
    """The record that begins a session; `text` is the line that shows it, empty for a thread's first."""
    body = {"text": text} if text else {}
    return NewRecord(kind="session", session_id=session_id, message_id=message_id, body=body, at=at)


def _conversation(records: Sequence[Record]) -> list[ChatMessage]:
    """Only answered questions: a user message without an answer belongs to a turn still to come, or to
    one that failed, and the model must not answer it now."""
    answered = {record.message_id for record in records if record.kind == "assistant"}
    return [
        ChatMessage(role="user" if record.kind == "user" else "assistant", content=record.body["text"])
        for record in records
        if record.message_id in answered
    ]
