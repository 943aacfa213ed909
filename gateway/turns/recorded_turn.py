"""Read what earlier attempts at a message, or the run that it resumes, have left in the log."""

from __future__ import annotations

from gateway.storage.inbox_items import asked_in
from gateway.storage.log_records import OutcomeRecord, UserRecord, content_of
from gateway.storage.ports import InboxEntry, Record, RecordKind, Store
from gateway.turns.run_codec import newest_run
from gateway.turns.sessions import conversation_before
from pipeline.domain.conversation import Conversation
from pipeline.domain.messages import ApprovalReply
from pipeline.graph.run.records import RawRecord
from pipeline.runtime.arrivals import together
from pipeline.runtime.ports import UserWords


class RecordedTurn:
    """The records of one turn from before its present attempt."""

    def __init__(self, store: Store, thread: str, entry: InboxEntry, *, off_the_record: bool) -> None:
        """`off_the_record`: the session is. A turn that resumes an earlier run is still on the record."""
        self._store = store
        self._thread = thread
        self._entry = entry
        self.asked_in = asked_in(entry.item)
        """The id of the message whose run the turn resumes, or its own."""
        self.is_resume = self.asked_in != entry.message_id
        """Whether the turn answers a question and resumes the run of an earlier message."""
        self.off_record = off_the_record and not self.is_resume
        """Nothing that is said may be kept."""
        self.may_exist = not self.off_record and (entry.attempts > 0 or self.is_resume)
        """Whether anything can be on record from before this attempt."""

    async def user(self) -> UserRecord | None:
        """The words of the run, of all its messages if it resumes an earlier one; None if they are not on
        record."""
        records = await self._of_kind("user") if self.may_exist else ()
        if not records:
            return None
        found = UserRecord.of(records[-1])
        if not self.is_resume:
            return found
        outcomes = [content_of(record) for record in await self._of_kind("assistant")]
        ids = [one for content in outcomes if isinstance(content, OutcomeRecord) for one in content.merged]
        joined = [await self._said(message) for message in ids]
        words = together([found.words, *(one.words for one in joined if one is not None)])
        return UserRecord(words=words, agent=found.agent, apart=found.apart)

    async def said(self, entry: InboxEntry) -> UserRecord | None:
        """One of the turn's messages; None if it is not on record."""
        if self.off_record or self._entry.attempts == 0:
            return None
        return await self._said(entry.message_id)

    def new(self, entry: InboxEntry, words: UserWords, *, agent: str, replaces: str) -> UserRecord:
        """One of the turn's messages, with its words. `replaces` is the message whose turn this one replaces,
        empty for none."""
        own = entry is self._entry
        return UserRecord(
            words=words,
            agent=agent,
            turn="" if own else self._entry.message_id,
            replaces=replaces if own else "",
            author=entry.item.author.id if words.by else "",
            answers=isinstance(entry.item, ApprovalReply),
        )

    async def _said(self, message_id: str) -> UserRecord | None:
        records = await self._store.read_log(self._thread, kinds=("user",), message_id=message_id)
        return UserRecord.of(records[-1]) if records else None

    async def run(self) -> tuple[RawRecord, ...]:
        """The rows of the newest run, oldest first; empty for none."""
        return newest_run(await self._of_kind("step")) if self.may_exist else ()

    async def conversation(self) -> Conversation:
        """The conversation as it was when the resumed run began."""
        asked = await self._of_kind("user")
        return await conversation_before(self._store, asked[-1]) if asked else Conversation()

    async def _of_kind(self, kind: RecordKind) -> tuple[Record, ...]:
        return await self._store.read_log(self._thread, kinds=(kind,), message_id=self.asked_in)
