"""End a turn that cannot be run, with words for the person: it cannot be read, or the process died of it."""

from __future__ import annotations

from gateway.storage.ports import InboxEntry
from gateway.turns.journal import StoreJournal
from pipeline.domain.events import ErrorEvent
from pipeline.domain.ports import EventSender

GAVE_UP = (
    "I was restarted {deaths} times while I worked on this message and on nothing else, so I have set it "
    "aside without an answer. It may not be the message's fault: you can send it again."
)
NO_AGENT = (
    "The agent that worked on this message is no longer there, so it cannot be continued. Please send "
    "the message again."
)
UNREADABLE = "This message could not be read back from the store and was set aside. Please send it again."


async def set_aside(
    entry: InboxEntry, journal: StoreJournal, sender: EventSender, code: str, words: str
) -> None:
    """Finish the entry with an error. Raises StorageError."""
    entry_id = await journal.commit_failure(code, words, recoverable=True, partial="")
    await sender.send_event(
        ErrorEvent(
            session_id=journal.session_id,
            message_id=entry.message_id,
            code=code,
            message=words,
            recoverable=True,
            entry_id=entry_id,
        )
    )
