"""An inbox on a real SQLite store with a manual clock, and what it did."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from adapters.identity import derived_message_id
from gateway.access.policy import AccessPolicy, AccessRule
from gateway.access.sender_rate_limit import RateLimit
from gateway.cluster.in_process import InProcessBus
from gateway.ingress.inbox import Inbox
from gateway.runtime.crash_labels import CrashLabels
from gateway.runtime.metrics import Telemetry
from gateway.storage.codec import GATE
from gateway.storage.expiries import InteractionKind
from gateway.storage.inbox_items import ASKED_IN
from gateway.storage.ports import InboxEntry, Interaction
from gateway.storage.sqlite import SqliteStore
from pipeline.domain.clock import ManualClock
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import ApprovalReply, Author, InboundMessage, button_handle

POSTING = (("telegram", "main"), ("telegram", "second"), ("slack", "main"))
ANN, BOB = "1", "2"
LETS_ANN_AND_BOB_IN = AccessRule.of(mode="list", allow=("dm:1", "dm:2", "room:-5", "room:-6"), deny=("9",))


@dataclass(slots=True)
class Wakes:
    """Replaces the worker and records which threads were woken."""

    woken: list[str] = field(default_factory=list)

    def may_begin(self) -> bool:
        return False

    def begin(self, entry: InboxEntry) -> None:
        raise AssertionError(f"no turn was to begin at once: {entry.message_id}")


@dataclass(slots=True, kw_only=True)
class InboxHarness:
    """The inbox and its observable parts."""

    inbox: Inbox
    store: SqliteStore
    clock: ManualClock
    telemetry: Telemetry
    turns: Wakes = field(default_factory=Wakes)
    said: list[tuple[str, str]] = field(default_factory=list)
    """(thread, words) of every line that was posted."""

    def refused(self) -> float:
        """How many refusals the metrics count on Telegram."""
        return (
            self.telemetry.registry.get_sample_value("parlour_refused_total", {"channel": "telegram"}) or 0.0
        )

    async def ask(
        self,
        name: str,
        *,
        chat: str = "1",
        options: tuple[str, ...] = ("approve", "deny"),
        users: tuple[str, ...] = (ANN,),
        expires_s: float = 10_000.0,
        kind: InteractionKind = GATE,
        account: str = "main",
    ) -> Interaction:
        """Open a question in a chat."""
        question = Interaction(
            id=name,
            thread=place(chat, account=account).encode(),
            session_id="ses",
            kind=kind,
            options=options,
            allowed_users=users,
            action_hash="hash",
            created_at=self.clock.now(),
            expires_at=self.clock.now() + expires_s,
            body={ASKED_IN: "m_asked"},
        )
        await self.store.open_interaction(question)
        return question


@asynccontextmanager
async def open_inbox(
    path: Path,
    rule: AccessRule = LETS_ANN_AND_BOB_IN,
    *,
    clock: ManualClock | None = None,
    limit: int = 100,
    per_minute: int = 0,
) -> AsyncIterator[InboxHarness]:
    """An inbox with the same rule on every posting account. `per_minute` is one person's quota; 0 is none."""
    clock = clock or ManualClock()
    store = SqliteStore(path, synchronous="NORMAL")
    await store.open()
    telemetry = Telemetry(clock)
    turns, bus = Wakes(), InProcessBus()
    bus.on_wake(turns.woken.append)
    said: list[tuple[str, str]] = []

    def say(thread: ThreadKey, words: str, *, private: bool) -> None:
        assert private != thread.chat.startswith("-")
        said.append((thread.encode(), words))

    inbox = Inbox(
        store=store,
        access=AccessPolicy(book=store.pairings, clock=clock, rules=dict.fromkeys(POSTING, rule)),
        turns=turns,
        bus=bus,
        owner_of=lambda _thread: "own",
        clock=clock,
        telemetry=telemetry,
        crash_labels=CrashLabels(None),
        max_queue_per_thread=limit,
        posting=POSTING,
        say=say,
        quota=RateLimit(per_minute, clock) if per_minute else None,
    )
    try:
        yield InboxHarness(inbox=inbox, store=store, clock=clock, telemetry=telemetry, turns=turns, said=said)
    finally:
        await store.close()


def place(chat: str = "1", *, channel: str = "telegram", account: str = "main") -> ThreadKey:
    """A chat as a thread."""
    return ThreadKey(channel=channel, account=account, chat=chat)


def text(
    words: str, native_id: str, *, user: str = ANN, thread: ThreadKey | None = None, addressed: bool = True
) -> InboundMessage:
    """A typed message; in a group chat if the chat's id begins with a minus sign."""
    thread = thread or place()
    return InboundMessage(
        message_id=derived_message_id(thread.channel, thread.account, native_id),
        native_id=native_id,
        thread=thread,
        author=Author(id=user, name="Ann"),
        received_at=1_700_000_000.0,
        text=words,
        private=not thread.chat.startswith("-"),
        addressed=addressed,
    )


def press(
    question: str,
    option: int,
    *,
    user: str = ANN,
    thread: ThreadKey | None = None,
    native_id: str = "p1",
    handle: str | None = None,
) -> ApprovalReply:
    """A pressed button of a question."""
    thread = thread or place()
    return ApprovalReply(
        message_id=derived_message_id(thread.channel, thread.account, native_id),
        native_id=native_id,
        thread=thread,
        author=Author(id=user),
        received_at=1_700_000_000.0,
        interaction_id=button_handle(question) if handle is None else handle,
        choice="",
        option=option,
        private=not thread.chat.startswith("-"),
    )
