"""The page's invited people, and names and deletions of conversations, on every store."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from gateway.storage.heartbeats import state_in
from gateway.storage.jobs import NewJob
from gateway.storage.page_people import Invitation, PagePerson, Redemption
from gateway.storage.ports import NewRecord, Store
from gateway.storage.states import StateWrite
from pipeline.domain.errors import FenceLost
from pipeline.shield.levels import UNLABELLED, Labels, Level
from pipeline.shield.ports import Permission
from tests.contracts.conftest import Reopen
from tests.contracts.store_values import NOW, entry, interaction, turn

DAY = 86_400.0
ANN = PagePerson(id="u_ann", name="Ann", invited_at=NOW)
FIRST = Invitation(person=ANN.id, code_hash="code-1", made_at=NOW, expires_at=NOW + 7 * DAY)
HERS, FOREIGN = "web:local:u_ann.c_1", "web:local:c_1"


def asks(token: str = "token-1", *, code: str = "code-1", at: float = NOW + 1) -> Redemption:
    return Redemption(code_hash=code, token_hash=token, device=f"d_{token}", name="Firefox", at=at)


async def test_an_invitation_signs_one_device_in(store: Store) -> None:
    book = store.page.people
    assert await book.add(ANN, FIRST) == "made"
    assert await book.open_invitations(now=NOW) == (FIRST,)
    signed_in = await book.redeem(asks())
    assert signed_in is not None
    assert signed_in.person == replace(ANN, joined_at=NOW + 1)
    assert (signed_in.device.id, signed_in.device.name) == ("d_token-1", "Firefox")
    assert await book.sign_in("token-1") == signed_in
    assert await book.sign_in("token-2") is None
    assert await book.open_invitations(now=NOW) == ()
    assert await book.devices(ANN.id) == await book.devices() == (signed_in.device,)


async def test_an_invitation_counts_once_and_is_repeatable_by_its_own_browser_alone(store: Store) -> None:
    book = store.page.people
    await book.add(ANN, FIRST)
    first = await book.redeem(asks())
    assert await book.redeem(asks(at=NOW + 9)) == first
    assert await book.redeem(asks("token-2")) is None
    assert len(await book.devices()) == 1


async def test_of_many_browsers_at_once_one_is_signed_in(store: Store) -> None:
    await store.page.people.add(ANN, FIRST)
    found = await asyncio.gather(*(store.page.people.redeem(asks(f"token-{n}")) for n in range(8)))
    assert sum(one is not None for one in found) == 1
    assert len(await store.page.people.devices()) == 1


@pytest.mark.parametrize("asked", [asks(at=NOW + 7 * DAY), asks(code="code-2")])
async def test_an_expired_or_unknown_code_signs_no_one_in(store: Store, asked: Redemption) -> None:
    await store.page.people.add(ANN, FIRST)
    assert await store.page.people.redeem(asked) is None
    assert await store.page.people.devices() == ()


async def test_a_token_in_use_redeems_no_other_invitation(store: Store) -> None:
    book, second = store.page.people, replace(FIRST, code_hash="code-2")
    await book.add(ANN, FIRST)
    await book.redeem(asks())
    assert await book.invite(second, limit=5) == "made"
    assert await book.redeem(asks(code="code-2")) is None
    assert await book.open_invitations(now=NOW) == (second,)


async def test_names_are_unique_without_regard_to_case(store: Store) -> None:
    book = store.page.people
    await book.add(ANN, FIRST)
    ben = PagePerson(id="u_ben", name="ben", invited_at=NOW + 1)
    assert await book.add(replace(ben, name="ANN"), replace(FIRST, code_hash="code-2")) == "taken"
    assert await book.add(ben, replace(FIRST, person=ben.id, code_hash="code-2")) == "made"
    assert await book.rename(ben.id, "ann") == "taken"
    assert await book.rename(ben.id, "Ben") == "made"
    assert await book.rename("u_none", "Carl") == "unknown"
    assert [one.name for one in await book.people()] == ["Ann", "Ben"]


async def test_open_invitations_of_a_person_are_limited(store: Store) -> None:
    book = store.page.people
    await book.add(ANN, FIRST)
    assert await book.invite(replace(FIRST, code_hash="code-2"), limit=2) == "made"
    assert await book.invite(replace(FIRST, code_hash="code-3"), limit=2) == "full"
    later = NOW + 8 * DAY
    third = replace(FIRST, code_hash="code-3", made_at=later, expires_at=later + DAY)
    assert await book.invite(third, limit=2) == "made"
    assert await book.invite(replace(third, person="u_none", code_hash="code-4"), limit=2) == "unknown"


async def test_a_device_is_signed_out_by_its_own_person_alone(store: Store) -> None:
    book = store.page.people
    await book.add(ANN, FIRST)
    await book.redeem(asks())
    await book.note_seen("d_token-1", at=NOW + 50)
    assert [one.seen_at for one in await book.devices()] == [NOW + 50]
    assert not await book.sign_out("u_ben", "d_token-1")
    assert await book.sign_out(ANN.id, "d_token-1")
    assert await book.sign_in("token-1") is None
    assert await book.redeem(asks()) is None


async def test_a_removed_person_leaves_nothing_to_sign_in_with_and_nothing_to_answer(
    store: Store, reopen: Reopen
) -> None:
    book = store.page.people
    await book.add(ANN, FIRST)
    await book.redeem(asks())
    await book.invite(replace(FIRST, code_hash="code-2"), limit=5)
    await store.accept(entry("1", thread=HERS))
    await store.accept(entry("2", thread=FOREIGN))
    job = NewJob(kind="person_erasure", key=ANN.id, due=NOW)
    assert not await book.remove("u_ben", threads="web:local:u_ben.", job=replace(job, key="u_ben"))
    assert await book.remove(ANN.id, threads="web:local:u_ann.", job=job)
    again = await reopen()
    assert [(one.kind, one.key) for one in await again.jobs.listed(limit=9)] == [("person_erasure", ANN.id)]
    book = again.page.people
    assert (await book.people(), await book.devices(), await book.open_invitations(now=NOW)) == ((), (), ())
    assert await book.redeem(asks("token-2", code="code-2")) is None
    assert await book.person(ANN.id) is None
    assert [one.cancelled for one in await again.open_entries(HERS)] == [True]
    assert [one.cancelled for one in await again.open_entries(FOREIGN)] == [False]


async def test_a_conversation_gets_a_name_and_loses_it(store: Store) -> None:
    chats = store.page.chats
    await chats.rename(HERS, "Tides")
    assert await chats.names((HERS, FOREIGN)) == {HERS: "Tides"}
    await chats.rename(HERS, "")
    assert await chats.names((HERS, FOREIGN)) == {}


async def test_threads_are_listed_by_the_beginning_of_their_chat(store: Store) -> None:
    await store.accept(entry("1", thread=HERS))
    await store.accept(entry("2", thread=FOREIGN))
    assert await store.threads_of("web", "local", limit=9, chat="c_") == (FOREIGN,)
    assert await store.threads_of("web", "local", limit=9, chat="u_ann.") == (HERS,)


async def test_a_deleted_conversation_is_hidden_at_once_and_then_has_no_words(
    store: Store, reopen: Reopen
) -> None:
    chats, job = store.page.chats, NewJob(kind="erasure", key=HERS, thread=HERS, due=NOW)
    await store.accept(entry("1", thread=HERS))
    await store.accept(entry("2", thread=FOREIGN))
    await store.jobs.add(NewJob(kind="reminder", key="r", thread=HERS, due=NOW, body={"text": "secret"}))
    lease = await store.acquire_lease(HERS, "me", ttl_s=60, now=NOW)
    assert lease is not None
    record = NewRecord(kind="user", session_id="s", message_id="m_1", body={"text": "secret"}, at=NOW)
    await store.append(lease, [record])
    await store.open_interaction(replace(interaction("i1"), thread=HERS))
    await chats.rename(HERS, "secret")
    await chats.begin_deletion(HERS, job)
    assert await chats.deleted() == {HERS}
    assert await chats.names((HERS,)) == {}
    assert await store.threads_of("web", "local", limit=9) == (FOREIGN,)
    assert [one.cancelled for one in await store.open_entries(HERS)] == [True]
    with pytest.raises(FenceLost):
        await chats.erase(HERS, owner="other", fence=lease.fence, but_jobs="erasure")
    for _ in range(2):
        await chats.erase(HERS, owner="me", fence=lease.fence, but_jobs="erasure")
    store = await reopen()
    assert [one.body.get("text") for one in await store.read_log(HERS)] in ([], [""])
    assert await store.open_entries(HERS) == ()
    assert await store.interaction("i1") is None
    assert [one.kind for one in await store.jobs.listed(limit=9)] == ["erasure"]
    assert (await store.accept(entry("1", thread=HERS))).duplicate
    assert len(await store.open_entries(FOREIGN)) == 1


async def test_what_was_kept_for_the_sessions_of_a_deleted_conversation_goes_too(store: Store) -> None:
    accepted = await store.accept(entry("1", thread=HERS))
    lease = await store.acquire_lease(HERS, "me", ttl_s=60, now=NOW)
    assert lease is not None
    said = NewRecord(kind="user", session_id="s", message_id="m_1", body={"text": "secret"}, at=NOW)
    kept = [
        StateWrite(owner=owner, graph="g", revision=0, body={"x": "secret"})
        for owner in ("session:s", "other")
    ]
    await store.commit_turn(lease, replace(turn(accepted.seq, said), states=tuple(kept)))
    await store.page.chats.erase(HERS, owner="me", fence=lease.fence, but_jobs="erasure")
    assert await store.states.read("session:s", "g") is None
    assert await store.states.read("other", "g") is not None


async def test_what_heartbeats_of_a_deleted_thread_report_to_the_next_goes_too(store: Store) -> None:
    accepted = await store.accept(entry("1", thread=HERS))
    lease = await store.acquire_lease(HERS, "me", ttl_s=60, now=NOW)
    assert lease is not None
    reports = [
        StateWrite(owner=ANN.id, graph=state_in(thread), revision=0, body={"summary": "secret"})
        for thread in (HERS, FOREIGN)
    ]
    await store.commit_turn(lease, replace(turn(accepted.seq), states=tuple(reports)))
    await store.page.chats.erase(HERS, owner="me", fence=lease.fence, but_jobs="erasure")
    assert await store.states.read(ANN.id, state_in(HERS)) is None
    assert await store.states.read(ANN.id, state_in(FOREIGN)) is not None


async def test_what_a_deleted_conversation_has_read_and_was_allowed_goes_too(store: Store) -> None:
    accepted = await store.accept(entry("1", thread=HERS))
    lease = await store.acquire_lease(HERS, "me", ttl_s=60, now=NOW)
    assert lease is not None
    said = NewRecord(kind="user", session_id="s", message_id="m_1", body={"text": "secret"}, at=NOW)
    await store.commit_turn(lease, turn(accepted.seq, said))
    labels = Labels(level=Level.CONFIDENTIAL, private=True, sources=("your files",))
    given = Permission(
        id=0,
        session_id="s",
        thread=HERS,
        person=ANN.id,
        type="write_file",
        target="own/secret.txt",
        foreign=(),
        level=0,
        private=False,
        at=NOW,
    )
    for session, thread in (("s", HERS), ("other", FOREIGN)):
        await store.shield.taints.write(session, labels)
        await store.shield.permissions.add(replace(given, session_id=session, thread=thread))
    await store.page.chats.erase(HERS, owner="me", fence=lease.fence, but_jobs="erasure")
    assert await store.shield.taints.read("s") == UNLABELLED
    assert await store.shield.permissions.of("s", ANN.id) == ()
    assert await store.shield.taints.read("other") == labels
    assert len(await store.shield.permissions.of("other", ANN.id)) == 1
