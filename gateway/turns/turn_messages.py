"""The messages that one turn answers, and their words: recorded, shown, and kept for the conversation."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

from gateway.storage.bursts import FinishedToo
from gateway.storage.inbox_items import is_voice_note, reply_handle_of
from gateway.storage.log_records import UserRecord, user_body
from gateway.storage.ports import InboxEntry, Lease, NewRecord, Store
from gateway.turns.past_turns import asked_of
from gateway.turns.recorded_turn import RecordedTurn
from gateway.turns.rows import body_left
from gateway.turns.run_log import StoreRunLog
from gateway.turns.sessions import SessionState, session_record
from gateway.turns.turn_hooks import OnRecorded
from pipeline.domain.chat import ChatMessage
from pipeline.domain.clock import Clock
from pipeline.domain.conversation import Source
from pipeline.domain.messages import InboundMessage
from pipeline.domain.timeline import TimelineEntry
from pipeline.runtime.attachments import Taken
from pipeline.runtime.ports import UserWords


class TurnMessages:
    """The entry of a turn and those that have joined it. `on_recorded` gets each message's line: once when
    the turn has its words, and again with the line's number when it is durable."""

    def __init__(
        self,
        *,
        store: Store,
        lease: Lease,
        entry: InboxEntry,
        session: SessionState,
        clock: Clock,
        log: StoreRunLog,
        recorded: RecordedTurn,
        on_recorded: OnRecorded,
    ) -> None:
        self._store = store
        self.lease = lease
        self.entry = entry
        self._session = session
        self._clock = clock
        self._log = log
        self._recorded = recorded
        self._on_recorded = on_recorded
        self.joined: list[InboxEntry] = []
        """Oldest first."""
        self.replaces = ""
        """The message whose turn the answer replaces; empty for none."""
        self.taken: Taken | None = None
        """What is known of the files of a message that is answered again."""
        self.run_by: str | None = None
        """The agent that /run has named, empty for the default one; None for a turn of the chat's own
        agent."""
        self.apart = False
        """Whether the turn is no part of the conversation."""
        self._said: dict[str, UserRecord] = {}
        self._transcripts: list[str] = []

    def run_as(self, agent: str) -> None:
        """Have the `agent` answer, empty for the default one, in a turn that is no part of the
        conversation."""
        self.run_by, self.apart = agent, True

    @property
    def entries(self) -> tuple[InboxEntry, ...]:
        """All entries of the turn, oldest first."""
        return (self.entry, *self.joined)

    @property
    def reply_handle(self) -> str:
        """What the channel needs to reply to the newest of the messages."""
        if not self.joined:
            return reply_handle_of(self.entry.item)
        handles = (reply_handle_of(entry.item) for entry in reversed(self.entries))
        return next((handle for handle in handles if handle), "")

    @property
    def transcript(self) -> str:
        """What this attempt has transcribed; its authors have not seen it otherwise."""
        return "\n\n".join(self._transcripts)

    def finished_too(self, *, forget: bool) -> tuple[FinishedToo, ...]:
        """What the commit finishes beside the turn's own entry; `forget` erases the words."""
        return tuple(
            FinishedToo(seq=entry.seq, body=body_left(entry, forget=forget)) for entry in self.joined
        )

    def covers(self, seq: int) -> bool:
        """Whether the turn answers the entry."""
        return any(entry.seq == seq for entry in self.entries)

    async def record(
        self, words: UserWords, message: InboundMessage | None, *, agent: str, attempt: int | None
    ) -> bool:
        """Record the words of the turn's own message, or of a `message` that has joined it. They wait for the
        next write of the turn if the inbox has them and no `attempt` is to be counted with them. Whether an
        attempt was counted."""
        entry = self._of(message)
        transcribed = is_voice_note(entry.item)
        user = self._recorded.new(entry, words, agent=agent, replaces=self.replaces)
        self._said[entry.message_id] = user
        counted, entry_id = False, 0
        if not self._recorded.off_record:
            records = self._records(entry, user)
            if attempt is None and not transcribed and not words.files:
                # A transcript would have to be computed again, and files be fetched.
                self._log.hold(records, partial(self._show, entry, user))
            else:
                await self._log.write_held()
                ids = await self._store.append(self.lease, records, attempt=attempt)
                entry_id, counted = ids[-1], attempt is not None
        # The speaker of live speech saw the words while speaking; the author of a note did not.
        if transcribed and words.text not in self._transcripts:
            self._transcripts.append(words.text)
        self._show(entry, user, entry_id)
        return counted

    async def recorded(self, message: InboundMessage) -> UserRecord | None:
        """A message that has joined the turn; None if its words are not on record."""
        return await self._recorded.said(self._of(message))

    async def asked(self, steered: Collection[str]) -> tuple[ChatMessage, Source] | None:
        """The words and files of all messages as the model sees them in later turns, without those of
        `steered`, and what a further version of the turn needs; None if the words of the turn's own message
        are unknown."""
        for entry in self.entries:
            if entry.message_id not in self._said:
                # An earlier attempt may have recorded them, and this one ended before it needed them.
                known = await self._recorded.said(entry)
                if known is not None:
                    self._said[entry.message_id] = known
        own = self.entry.message_id
        if own not in self._said or self.apart:
            return None
        ids = [entry.message_id for entry in self.entries]
        return asked_of(own, {one: self._said[one] for one in ids if one in self._said}, steered)

    def _of(self, message: InboundMessage | None) -> InboxEntry:
        if message is None:
            return self.entry
        return next(entry for entry in self.joined if entry.message_id == message.message_id)

    def _records(self, entry: InboxEntry, user: UserRecord) -> Sequence[NewRecord]:
        said = NewRecord(
            kind="user",
            session_id=self._session.session_id,
            message_id=entry.message_id,
            body=user_body(
                user.words,
                user.agent,
                turn=user.turn,
                source=user.source(entry.message_id),
                place=entry.item.place if isinstance(entry.item, InboundMessage) else "",
                apart=self.apart,
            ),
            # The time at which it was sent: its author saw that time while the message waited.
            at=entry.received_at,
        )
        if self._session.stored:
            return [said]
        self._session.stored = True
        begins = session_record(self._session.session_id, self.entry.message_id, self._clock.now())
        return [begins, said]

    def _show(self, entry: InboxEntry, user: UserRecord, entry_id: int) -> None:
        self._on_recorded(
            TimelineEntry(
                entry_id=entry_id,
                message_id=entry.message_id,
                role="user",
                text=user.text,
                at=entry.received_at,
                spoken=user.words.speech is not None,
                turn=user.turn,
                replaces=user.replaces,
                files=() if self._recorded.off_record else user.words.files,
            )
        )
