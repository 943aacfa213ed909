"""The gateway's side of an adapter, in memory: an inbox that dedupes, a timeline, one of every event."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypedDict

from adapters.channel import Acceptance
from pipeline.domain import events
from pipeline.domain.clock import SystemClock
from pipeline.domain.events import PipelineEvent, Thought
from pipeline.domain.files import FileGone, StoredFile, stored_file
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Inbound, MediaKind
from pipeline.domain.timeline import ChatSummary, Earlier, TimelineEntry


class QuickClock(SystemClock):
    """The machine's clock, on which a wait takes no time; `waits` are those that were asked for."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        await super().sleep(0)


class MemoryFiles:
    """A FileStore in a dictionary, with addresses for its files as long as it is `public`."""

    def __init__(self) -> None:
        self.public = True
        self.contents: dict[tuple[ThreadKey, str], bytes] = {}

    async def put(
        self,
        thread: ThreadKey,
        content: bytes,
        *,
        kind: MediaKind,
        mime: str,
        name: str = "",
        about: str = "",
        scope: str = "",
        off_record: bool = False,
    ) -> StoredFile:
        """See `FileStore.put`."""
        file = stored_file(content, kind=kind, mime=mime, name=name, about=about, scope=scope)
        self.contents[thread, file.id] = content
        return file

    async def get(self, thread: ThreadKey, file_id: str) -> bytes:
        """See `FileStore.get`."""
        try:
            return self.contents[thread, file_id]
        except KeyError:
            raise FileGone("the file is no longer stored; please send it again") from None

    async def discard(self, thread: ThreadKey, file_ids: Iterable[str]) -> None:
        """See `FileStore.discard`."""
        for file_id in file_ids:
            self.contents.pop((thread, file_id), None)

    async def discard_thread(self, thread: ThreadKey) -> None:
        """See `FileStore.discard_thread`."""
        self.contents = {key: content for key, content in self.contents.items() if key[0] != thread}

    def link_to(self, _thread: ThreadKey, file: StoredFile, _since: float) -> str:
        """The address of a file; empty while there is no public one."""
        return "" if not self.public else f"https://b.example/{file.id[:6]}"


class MemoryTimeline:
    """A Timeline over lists. `error` is raised instead of answering; `gate` runs before answering."""

    def __init__(self) -> None:
        self.lines: dict[ThreadKey, list[TimelineEntry]] = {}
        self.asked: dict[ThreadKey, list[events.ApprovalRequired]] = {}
        self.seen: dict[ThreadKey, str] = {}
        self.error: Exception | None = None
        self.calls: list[tuple[ThreadKey, int, int]] = []

    def add(self, thread: ThreadKey, entry: TimelineEntry) -> None:
        self.lines.setdefault(thread, []).append(entry)

    async def entries(self, thread: ThreadKey, *, after: int, limit: int) -> tuple[TimelineEntry, ...]:
        self.calls.append((thread, after, limit))
        if self.error is not None:
            raise self.error
        lines = self.lines.get(thread, [])
        durable = [line for line in lines if line.entry_id > after][-limit:]
        return (*durable, *(line for line in lines if line.entry_id == 0))

    async def earlier(self, thread: ThreadKey, *, before: int, limit: int) -> Earlier:
        if self.error is not None:
            raise self.error
        older = [line for line in self.lines.get(thread, []) if 0 < line.entry_id < before]
        kept = older[-limit:]
        return Earlier(entries=tuple(kept), next=kept[0].entry_id if len(older) > limit else 0)

    async def chats(
        self, channel: str, account: str, *, limit: int, begins: str = "", search: str = ""
    ) -> tuple[ChatSummary, ...]:
        if self.error is not None:
            raise self.error
        mine = [key for key in self.lines if (key.channel, key.account) == (channel, account)]
        mine = [key for key in mine if key.chat.startswith(begins) and search in self.lines[key][0].text]
        mine.sort(key=lambda key: -self.lines[key][-1].entry_id)
        return tuple(
            ChatSummary(thread=key, title=self.lines[key][0].text, at=self.lines[key][-1].at)
            for key in mine[:limit]
        )

    async def questions(self, thread: ThreadKey) -> tuple[events.ApprovalRequired, ...]:
        if self.error is not None:
            raise self.error
        return tuple(self.asked.get(thread, ()))

    async def last_seen(self, channel: str, account: str, *, limit: int) -> Mapping[ThreadKey, str]:
        if self.error is not None:
            raise self.error
        mine = [key for key in self.seen if (key.channel, key.account) == (channel, account)]
        return {key: self.seen[key] for key in mine[:limit]}


class MemoryInbox:
    """An OnInbound that accepts each native id once. `refuse` gives the reason (`over`: of a question that
    takes no more answers), `error` is raised."""

    def __init__(self) -> None:
        self.items: list[Inbound] = []
        self.offered = 0
        self.refuse: str | None = None
        self.over = False
        self.error: Exception | None = None

    async def __call__(self, item: Inbound) -> Acceptance:
        self.offered += 1
        if self.error is not None:
            raise self.error
        if self.refuse is not None:
            words, over = self.refuse, self.over
            return Acceptance(status="refused", message_id=item.message_id, reason=words, over=over)
        if any(known.native_id == item.native_id for known in self.items):
            return Acceptance(status="duplicate", message_id=item.message_id)
        self.items.append(item)
        return Acceptance(status="accepted", message_id=item.message_id)


class _Ids(TypedDict):
    session_id: str
    message_id: str


def every_event(message_id: str) -> tuple[PipelineEvent, ...]:
    """One event of each kind; tokens that add up to the final answer, and the terminal events last."""
    ids: _Ids = {"session_id": "ses_1", "message_id": message_id}
    return (
        events.TurnStarted(**ids),
        events.MessageJoined(**ids, joined="m_later"),
        events.TranscriptPending(**ids, ahead=2, eta_s=float("inf")),
        events.TranscriptPartial(**ids, text="hel"),
        events.TranscriptReady(**ids, text="hello", language="en", confidence=float("nan")),
        events.NodeStarted(**ids, node="agent"),
        events.StepStarted(**ids, step="draft \ud800\x1b[2J"),
        events.NodeCompleted(**ids, node="agent", decision="end"),
        events.LlmToken(**ids, text="Hel", offset=0),
        events.LlmToken(**ids, text="lo \ud800\x1b[2J", offset=3),
        events.ActionStarted(**ids, tool_name="shell", summary="ls"),
        events.ShieldVerdict(
            **ids, tool_name="shell", decision="ALLOW", tier=1, confidence=0.9, reasoning="read only"
        ),
        events.ActionProgress(**ids, tool_name="shell", summary="ls", line="a.txt"),
        events.ActionCompleted(**ids, tool_name="shell", success=True, summary="done"),
        events.ApprovalRequired(
            **ids,
            interaction_id="int_1",
            tool_name="shell",
            reasoning="it writes",
            options=("allow", "deny"),
            timeout_s=60.0,
        ),
        events.ApprovalResolved(**ids, interaction_id="int_1", choice="allow"),
        events.OtrBlocked(**ids, reason="off the record"),
        events.SubAgentSpawned(**ids, name="helper", task="look"),
        events.SubAgentProgress(**ids, name="helper", status="looking"),
        events.SubAgentCompleted(**ids, name="helper", result="found"),
        events.SubAgentFailed(**ids, name="helper", reason="lost"),
        events.SubAgentCancelled(**ids, name="helper"),
        events.ResponseComplete(
            **ids, content="Hello", thoughts=(Thought(stage="plan", summary="greet"),), entry_id=2
        ),
        events.ErrorEvent(**ids, code="model", message="no answer", recoverable=True, entry_id=3),
    )
