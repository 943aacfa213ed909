"""Reactions at the inbox: what they change, for whom, and how many of them are looked up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from adapters.channel import Acceptance
from gateway.ingress.reactions import PER_MINUTE, Reactions
from gateway.runtime.metrics import Telemetry
from gateway.storage.memory import MemoryStore
from gateway.storage.ports import NewEntry, NewOutboxRow, NewRecord, RecordKind, TurnCommit
from pipeline.domain.clock import ManualClock
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import ApprovalReply, Author, Reaction

CHAT = ThreadKey(channel="telegram", account="main", chat="5")
UP = Reaction(
    message_id="m_r",
    native_id="r",
    thread=CHAT,
    author=Author(id="ann", name="Ann"),
    received_at=10.0,
    mark="up",
    on=True,
    target="77",
)


async def _answered(role: str = "assistant", **body: object) -> MemoryStore:
    """A store with one reply to Ann, shown by the message 77."""
    store = MemoryStore()
    await store.open()
    thread = CHAT.encode()
    entry = NewEntry(dedupe_key="k", thread=thread, message_id="m1", kind="message", body={}, received_at=1.0)
    accepted = await store.accept(entry)
    lease = await store.acquire_lease(thread, "p", ttl_s=60, now=0.0)
    assert lease is not None
    said = {"text": "hi", "agent": "support"}
    steps = {"text": "hello", "steps": [{"run": "run-7", "node": "agent"}, {"node": "act"}]}
    kind: RecordKind = "assistant" if role == "assistant" else "error"
    records = (
        NewRecord(kind="user", session_id="s", message_id="m1", body=said, at=1.0),
        NewRecord(kind=kind, session_id="s", message_id="m1", body=steps, at=2.0),
    )
    row = NewOutboxRow(
        key="m1", message_id="m1", body={"role": role, "author": "ann", **body}, created_at=2.0
    )
    done = TurnCommit(seq=accepted.seq, outcome="answered", records=records, outbox=(row,), at=2.0)
    (row_id,) = (await store.commit_turn(lease, done)).outbox_ids
    await store.mark_sent(lease, row_id, "76,77", 3.0)
    return store


def _reactions(store: MemoryStore, clock: ManualClock | None = None) -> tuple[Reactions, Telemetry]:
    clock = clock or ManualClock()
    telemetry = Telemetry(clock)

    async def answer(_press: ApprovalReply) -> Acceptance:
        raise AssertionError("no question is open")

    return Reactions(store=store, clock=clock, telemetry=telemetry, answer=answer), telemetry


async def test_a_thumb_is_stored_with_agent_and_run_and_counted_once() -> None:
    store = await _answered()
    reactions, telemetry = _reactions(store)
    for _ in range(2):
        assert (await reactions.accept(UP)).status == "accepted"
    (given,) = await store.feedback.listed(limit=10)
    assert (given.message_id, given.run_id, given.agent) == ("m1", "run-7", "support")
    assert (given.user, given.name, given.value, given.at) == ("ann", "Ann", "up", 10.0)
    await reactions.accept(replace(UP, on=False, received_at=11.0))
    figures = telemetry.exposition().decode()
    assert 'parlour_feedback_total{value="up"} 1.0' in figures
    assert 'parlour_feedback_total{value="removed"} 1.0' in figures
    assert await store.feedback.listed(limit=10) == ()


@pytest.mark.parametrize(
    "changes",
    [
        {"author": Author(id="eve")},
        {"target": "7"},
        {"thread": replace(CHAT, chat="6")},
        {"mark": "yes"},
        {"mark": "no", "on": False},
        {"target": "m1", "answered": True, "thread": replace(CHAT, chat="6")},
        {"target": "m2", "answered": True},
    ],
)
async def test_other_reactions_store_nothing(changes: dict[str, Any]) -> None:
    store = await _answered()
    reactions, _ = _reactions(store)
    assert (await reactions.accept(replace(UP, **changes))).status == "accepted"
    assert await store.feedback.listed(limit=10) == ()


@pytest.mark.parametrize("role", ["error", "notice"])
async def test_a_line_that_is_no_answer_takes_no_feedback(role: str) -> None:
    store = await _answered(role)
    await _reactions(store)[0].accept(UP)
    assert await store.feedback.listed(limit=10) == ()


async def test_an_answer_off_the_record_takes_no_feedback() -> None:
    store = await _answered(off_record=True)
    await _reactions(store)[0].accept(UP)
    assert await store.feedback.listed(limit=10) == ()


async def test_so_many_reactions_of_a_person_are_looked_up_in_a_minute() -> None:
    store, clock = await _answered(), ManualClock()
    reactions, _ = _reactions(store, clock)
    for number in range(PER_MINUTE):
        await reactions.accept(replace(UP, target=f"no-{number}"))
    await reactions.accept(UP)
    assert await store.feedback.listed(limit=10) == ()
    await clock.advance(61)
    await reactions.accept(UP)
    assert len(await store.feedback.listed(limit=10)) == 1
