"""Read a thread's visible entries and open questions from the store, for channels that show a history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gateway.storage.codec import COMMAND, NEVER, TOOL, details_of
from gateway.storage.feedback import Value
from gateway.storage.inbox_items import native_id_of
from gateway.storage.log_records import (
    ErrorRecord,
    LogRecord,
    NoticeRecord,
    OutcomeRecord,
    SessionRecord,
    UserRecord,
    content_of,
    files_of,
    is_visible,
    text_of,
)
from gateway.storage.ports import VISIBLE_KINDS, InboxEntry, Interaction, Record, Store
from gateway.storage.search import excerpt_of
from pipeline.domain.clock import Clock
from pipeline.domain.events import EXPIRED, ApprovalRequired, ApprovalResolved
from pipeline.domain.files import StoredFile
from pipeline.domain.ids import ThreadKey, is_heartbeat
from pipeline.domain.messages import InboundMessage, MediaRef
from pipeline.domain.timeline import AskedQuestion, ChatSummary, Earlier, EntryRole, TimelineEntry

_ROLES: dict[str, EntryRole] = {
    "session": "session",
    "user": "user",
    "assistant": "assistant",
    "error": "error",
    "notice": "notice",
    "title": "title",
}
_WAITING_VOICE = "Voice note"
_WAITING_FILES = "Files"
_ENTRIES_LOOKED_AT = 5_000
_TITLE_CHARS = 120
_CHATS_SEARCHED = 1_000
"""The latest active chats in which a search looks."""
_NAMED_ON = "web"
"""The channel on which people name their conversations."""


class StoreTimeline:
    """The `Timeline` port over the store."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def entries(self, thread: ThreadKey, *, after: int, limit: int) -> tuple[TimelineEntry, ...]:
        """See `adapters.channel.Timeline`. The first session of a thread begins without a line."""
        key = thread.encode()
        # A turn may start between two of these reads. The log is read last, so that what counts as recorded
        # is among its records, or is one that the client has.
        waiting = await self._store.open_entries(key)
        recorded = await self._recorded(key, waiting)
        records = await self._store.read_log(key, after=after, kinds=(*VISIBLE_KINDS, "title"), limit=limit)
        recorded |= {record.message_id for record in records if record.kind == "user"}
        visible = await self._visible(key, records)
        return (*visible, *_still_waiting(waiting, recorded))

    async def earlier(self, thread: ThreadKey, *, before: int, limit: int) -> Earlier:
        """See `adapters.channel.Timeline`."""
        key = thread.encode()
        records = await self._store.read_log(
            key, before=before, kinds=(*VISIBLE_KINDS, "title"), limit=limit + 1
        )
        more, kept = len(records) > limit, records[-limit:]
        visible = await self._visible(key, kept)
        return Earlier(entries=tuple(visible), next=kept[0].id if more else 0)

    async def chats(
        self, channel: str, account: str, *, limit: int, begins: str = "", search: str = ""
    ) -> tuple[ChatSummary, ...]:
        """See `adapters.channel.Timeline`."""
        looked_at = max(limit, _CHATS_SEARCHED) if search else limit
        keys = await self._store.threads_of(channel, account, limit=looked_at, chat=begins)
        said = await self._store.search.newest_in(search, keys) if search else {}
        names = await self._store.page.chats.names(keys) if channel == _NAMED_ON else {}
        found: list[ChatSummary] = []
        for key in keys:
            if is_heartbeat(ThreadKey.decode(key)):
                continue
            summary = await self._summary(key, names.get(key, ""))
            if key in said:
                found.append(replace(summary, found=excerpt_of(said[key].text, search)))
            elif search.casefold() in summary.title.casefold():
                found.append(summary)
            if len(found) == limit:
                break
        return tuple(found)

    async def _summary(self, key: str, name: str) -> ChatSummary:
        newest = await self._store.read_log(key, kinds=(*VISIBLE_KINDS, "title"), limit=1)
        named = await self._store.read_log(key, kinds=("title",), limit=1)
        # Without a title the person's newest words name it, or the waiting first message.
        named_by = named or await self._store.read_log(key, kinds=("user",), limit=1)
        waiting = () if named_by and newest else await self._store.open_entries(key)
        words = name or (text_of(named_by[0]) if named_by else _waiting_words(waiting))
        at = newest[0].at if newest else max((one.received_at for one in waiting), default=0.0)
        return ChatSummary(thread=ThreadKey.decode(key), title=" ".join(words.split())[:_TITLE_CHARS], at=at)

    async def questions(self, thread: ThreadKey) -> tuple[ApprovalRequired, ...]:
        """See `adapters.channel.Timeline`."""
        now = self._clock.now()
        pending = await self._store.pending_interactions(thread.encode(), now=now)
        return tuple(asked_again(one, now) for one in pending if one.kind != TOOL and one.options)

    async def last_seen(self, channel: str, account: str, *, limit: int) -> Mapping[ThreadKey, str]:
        """See `adapters.channel.Timeline`. Reads a bounded number of the newest entries of all channels."""
        seen: dict[ThreadKey, str] = {}
        for key, body in await self._store.newest_entries(limit=_ENTRIES_LOOKED_AT):
            thread = ThreadKey.decode(key)
            is_chat = thread.account_key == (channel, account) and not is_heartbeat(thread)
            if is_chat and len(seen) < limit:
                seen.setdefault(thread, native_id_of(body))
        return seen

    async def _visible(self, key: str, records: Sequence[Record]) -> list[TimelineEntry]:
        """The entries of the records that show words or files."""
        given = await self._store.feedback.of_thread(key) if records else {}
        return [await self._from_record(record, given) for record in records if is_visible(record)]

    async def _from_record(self, record: Record, given: Mapping[str, Value]) -> TimelineEntry:
        content = content_of(record)
        ended = content if isinstance(content, OutcomeRecord) else None
        return TimelineEntry(
            entry_id=record.id,
            message_id=record.message_id,
            role=_ROLES[record.kind],
            text=content.text,
            at=record.at,
            spoken=isinstance(content, UserRecord) and content.words.speech is not None,
            files=files_of(record),
            turn=content.turn if isinstance(content, UserRecord) else "",
            code=_code(content),
            replaces=content.replaces if isinstance(content, UserRecord) else "",
            removed=content.removed if isinstance(content, NoticeRecord) else "",
            thoughts=() if ended is None else ended.thoughts,
            feedback=given.get(record.message_id, "") if record.kind == "assistant" else "",
            questions=() if ended is None else (*ended.questions, *await self._closed(ended.paused_for)),
        )

    async def _closed(self, ids: Sequence[str]) -> list[AskedQuestion]:
        """A paused run's questions that are closed; `questions` returns the open ones."""
        now = self._clock.now()
        found = [await self._store.interaction(one) for one in ids]
        return [
            _closed(asked, choice or "")
            for asked, choice in filter(None, found)
            if asked.options and (choice or asked.expires_at <= now)
        ]

    async def _recorded(self, key: str, waiting: Sequence[InboxEntry]) -> set[str]:
        """Ids of the waiting messages whose words are in the log already, before or after `after`. Only the
        oldest, the one that is running, can be, and those that have joined its turn."""
        running = [entry.message_id for at, entry in enumerate(waiting) if at == 0 or entry.joined]
        return {
            message_id
            for message_id in running
            if await self._store.read_log(key, kinds=("user",), message_id=message_id)
        }


def _waiting_words(waiting: Sequence[InboxEntry]) -> str:
    items = (one.item for one in waiting)
    return next((item.text or _waiting(item) for item in items if isinstance(item, InboundMessage)), "")


def _waiting(item: InboundMessage) -> str:
    return _WAITING_VOICE if item.voice is not None else _WAITING_FILES


def _waiting_file(ref: MediaRef) -> StoredFile:
    """A file of a message that waits: it has no id, as it is not stored yet."""
    return StoredFile(id="", kind=ref.kind, mime=ref.mime, size=ref.size or 0, name=ref.name)


def asked_again(question: Interaction, now: float) -> ApprovalRequired:
    """The event that shows a question for which no turn waits."""
    details = details_of(question)
    return ApprovalRequired(
        session_id=question.session_id,
        message_id=details.message_id or details.asked_in,
        interaction_id=question.id,
        tool_name=details.node,
        reasoning=details.prompt,
        options=question.options,
        timeout_s=0.0 if question.expires_at >= NEVER else question.expires_at - now,
        paused=True,
        command=details.node if question.kind == COMMAND else "",
        asked_at=question.created_at,
    )


def closed(question: Interaction) -> ApprovalResolved:
    """The event that closes a question where it is shown: no answer counts any more."""
    details = details_of(question)
    return ApprovalResolved(
        session_id=question.session_id,
        message_id=details.message_id or details.asked_in,
        interaction_id=question.id,
        choice=EXPIRED,
    )


def _code(content: LogRecord) -> str:
    if isinstance(content, SessionRecord):
        return "" if content.mode == "normal" else content.mode
    return content.code if isinstance(content, ErrorRecord | NoticeRecord) else ""


def _closed(asked: Interaction, choice: str) -> AskedQuestion:
    details = details_of(asked)
    return AskedQuestion(
        interaction_id=asked.id,
        tool_name=details.node,
        reasoning=details.prompt,
        options=asked.options,
        # It has expired; the expiry may not be recorded yet.
        choice=choice or EXPIRED,
        paused=True,
    )


def _still_waiting(waiting: Sequence[InboxEntry], recorded: set[str]) -> list[TimelineEntry]:
    ids = {entry.seq: entry.message_id for entry in waiting}
    return [
        TimelineEntry(
            entry_id=0,
            message_id=entry.message_id,
            role="user",
            text=entry.item.text or (_WAITING_VOICE if entry.item.voice is not None else ""),
            files=tuple([_waiting_file(ref) for ref in entry.item.attachments]),
            at=entry.received_at,
            spoken=entry.item.voice is not None or entry.item.speech is not None,
            turn=ids.get(entry.joined, ""),
        )
        for entry in waiting
        if isinstance(entry.item, InboundMessage)
        and entry.message_id not in recorded
        and not (entry.item.if_named or entry.item.may_decline)
    ]
