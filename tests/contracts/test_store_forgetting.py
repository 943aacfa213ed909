"""What is forgotten is gone from every row, on every store, and nothing else is."""

from __future__ import annotations

from dataclasses import replace

from gateway.storage.ports import Interaction, Store
from tests.contracts.store_values import NOW, THREAD, accepted_with_lease, record, reply, sender, turn


async def committed_row(store: Store, *, forget_session: str = "") -> int:
    accepted, lease = await accepted_with_lease(store)
    await store.append(lease, [record("notice", message="msg-0", text="kept")])
    whole = turn(
        accepted.seq,
        record("assistant", text="the partial words"),
        record("error", text="the last words"),
        outbox=(reply("a"),),
    )
    committed = await store.commit_turn(lease, replace(whole, forget_session=forget_session))
    return committed.outbox_ids[0]


async def test_a_reply_that_is_sent_can_be_forgotten_with_its_messages_records(store: Store) -> None:
    row_id = await committed_row(store)
    account = await sender(store)
    await store.mark_sending(account, row_id)
    await store.mark_sent(account, row_id, "native", NOW, forget=True)
    texts = [(row.kind, row.body["text"]) for row in await store.read_log(THREAD)]
    assert texts == [("notice", "kept"), ("assistant", ""), ("error", "")]
    row = await store.outbox_row(row_id)
    assert row is not None
    assert (row.state, row.receipt, row.body) == ("sent", "native", {"text": ""})


async def test_a_reply_that_is_given_up_can_be_forgotten_too(store: Store) -> None:
    row_id = await committed_row(store)
    await store.mark_failed(await sender(store), row_id, "gone", forget=True)
    assert [row.body["text"] for row in await store.read_log(THREAD)] == ["kept", "", ""]


async def test_without_being_asked_nothing_is_forgotten(store: Store) -> None:
    row_id = await committed_row(store)
    await store.mark_sent(await sender(store), row_id, "native", NOW)
    texts = [row.body["text"] for row in await store.read_log(THREAD)]
    assert texts == ["kept", "the partial words", "the last words"]


async def test_the_questions_of_a_forgotten_session_are_gone_and_others_stay(store: Store) -> None:
    for session in ("ses-off", "ses-on"):
        await store.open_interaction(_question(session))
    await committed_row(store, forget_session="ses-off")
    left = await store.pending_interactions(THREAD, now=NOW)
    assert [question.session_id for question in left] == ["ses-on"]


def _question(session: str) -> Interaction:
    return Interaction(
        id=f"q-{session}",
        thread=THREAD,
        session_id=session,
        kind="tool",
        options=("Allow",),
        allowed_users=("ada",),
        action_hash="x",
        created_at=NOW,
        expires_at=NOW + 60,
        body={"summary": "read a file"},
    )
