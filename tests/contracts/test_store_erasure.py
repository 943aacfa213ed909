"""What an erasure of a person takes out, and what it leaves, on every store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gateway.storage.audit import AuditHead, AuditRow, ChainCheck, NewAuditRecord, chained
from gateway.storage.audit_check import check_audit
from gateway.storage.crises import CrisisRecord
from gateway.storage.erasure import ERASED, PERSON_ERASED, PersonKeys, redacted_audit
from gateway.storage.feedback import Feedback
from gateway.storage.identities import Identity, JoinRequest, LinkCode, TryLimits
from gateway.storage.jobs import NewJob
from gateway.storage.pairings import PairedChat, PairingRequest
from gateway.storage.ports import Lease, Record, Store
from gateway.storage.speech import SpeakerKey, SpeakerPreferences
from gateway.storage.usage import Spent
from pipeline.shield.ports import Permission
from tests.contracts.store_values import NOW, THREAD, entry, record, reply, turn

ANN = Identity(channel="memory", account="main", user="ann")
BEN = Identity(channel="memory", account="main", user="ben")
TERMINAL = Identity(channel="console", account="local", user="owner")
ROOM, PRIVATE = "memory:main:lounge", "memory:main:dm-ann"
ONE = PersonKeys(identities=(ANN,), keys=(ANN.key,))


def said(author: str, text: str, *, private: bool = False, **more: Any) -> Mapping[str, Any]:
    body = {"native_id": f"n-{text}", "author": author, "name": author.title(), "text": text, **more}
    return body if private else {**body, "private": False}


async def answered(store: Store, thread: str, key: str, body: Mapping[str, Any], answer: str) -> Lease:
    """A message of a person, with its answer; the lease of the thread, which stays held."""
    accepted = await store.accept(entry(key, thread=thread, body=body))
    lease = await store.acquire_lease(thread, "me", ttl_s=9e9, now=NOW)
    assert lease is not None
    message = f"msg-{key}"
    user = record("user", message=message, text=body["text"], by=body["name"], author=body["author"])
    shown = record("assistant", message=message, text=answer)
    commit = turn(accepted.seq, user, shown, outbox=(reply(f"{message}:answer", message=message),))
    await store.commit_turn(lease, commit)
    return lease


async def linked(store: Store) -> PersonKeys:
    """Ann on two channels."""
    code = LinkCode(identity=ANN, thread=PRIVATE, code_hash="c", issued_at=NOW, expires_at=NOW + 9)
    await store.identities.issue(code, limit=9)
    request = JoinRequest(
        identity=TERMINAL,
        thread="console:local:c1",
        message_id="m",
        code_hash="c",
        new_person="person:p1",
        most=9,
        at=NOW,
        day="2026-11-27",
    )
    joined = await store.identities.join(request, TryLimits(window_s=9, identity=9, everybody=9))
    assert joined.status == "joined"
    return await store.erasure.keys_of(TERMINAL)


async def test_a_person_has_all_linked_identities_and_their_keys(store: Store) -> None:
    alone = await store.erasure.keys_of(ANN)
    assert alone == ONE
    person = await linked(store)
    assert set(person.identities) == {ANN, TERMINAL}
    assert set(person.keys) == {"person:p1", ANN.key, TERMINAL.key}
    assert set((await store.erasure.keys_of(ANN)).keys) == set(person.keys)
    assert await store.erasure.keys_of(BEN) == PersonKeys(identities=(BEN,), keys=(BEN.key,))


async def test_private_chats_and_rooms_are_kept_apart_and_found_until_they_are_erased(store: Store) -> None:
    lease = await answered(store, PRIVATE, "1", said("ann", "secret", private=True), "yes")
    room = await answered(store, ROOM, "2", said("ann", "hello"), "hi")
    await answered(store, "memory:main:dm-ben", "3", said("ben", "mine", private=True), "yes")
    await answered(store, "memory:other:dm-ann", "4", said("ann", "another account", private=True), "yes")
    book = store.erasure
    assert await book.private_threads(ONE) == (PRIVATE,)
    assert await book.rooms(ONE) == (ROOM,)
    await store.page.chats.erase(PRIVATE, owner="me", fence=lease.fence, but_jobs="x")
    await book.redact_room(ROOM, ONE, owner="me", fence=room.fence)
    assert await book.private_threads(ONE) == ()
    assert await book.rooms(ONE) == ()


async def test_a_room_keeps_what_others_said(store: Store) -> None:
    await answered(store, ROOM, "1", said("ann", "annword"), "to annword")
    await answered(store, ROOM, "2", said("ben", "benword"), "to benword")
    quoting = said("ben", "quoting", quoted="annword", quoted_by="Ann")
    lease = await answered(store, ROOM, "3", quoting, "to the quote")
    summary = record("summary", message="", text="annword and benword", upto=2)
    title = record("title", message="", text="annword")
    await store.append(lease, [summary, title, record("step", message="msg-1", text="annword")])
    lease = await answered(store, ROOM, "4", said("ben", "later"), "to later")
    assert set(await store.erasure.messages_in_room(ROOM, ONE)) == {"msg-1", "msg-3"}
    for _ in range(2):
        await store.erasure.redact_room(ROOM, ONE, owner="me", fence=lease.fence)
        log = await store.read_log(ROOM)
        assert _texts(log, "msg-1") == [ERASED, ERASED, ""]
        assert _texts(log, "msg-2") == ["benword", "to benword"]
        assert _texts(log, "msg-3") == [ERASED, ERASED]
        assert _texts(log, "msg-4") == ["later", "to later"]
        assert not [one for one in log if one.kind in ("summary", "title")]
        assert "annword" not in str([one.body for one in log])
    row = await store.outbox_row("msg-1:answer")
    assert row is not None
    assert row.body == {"text": ""}
    kept = await store.outbox_row("msg-2:answer")
    assert kept is not None
    assert kept.body == {"text": "an answer"}
    entries = [body for thread, body in await store.newest_entries(limit=9) if thread == ROOM]
    assert [body.get("text") for body in entries] == ["later", None, "benword", None]
    again = await store.accept(entry("1", thread=ROOM, body=said("ann", "annword")))
    assert again.duplicate, "a redelivery is still recognised"


def _texts(log: tuple[Record, ...], message: str) -> list[str]:
    return [one.body["text"] for one in log if one.message_id == message]


async def _fill(store: Store, who: Identity, thread: str) -> None:
    voices = store.voices
    place = SpeakerKey(channel=who.channel, account=who.account, user=who.user)
    await voices.remember_language(place, "de")
    await voices.keep_buffer(f'["{thread}", "{who.user}"]', {"text": "x"}, at=NOW)
    await voices.keep_transcript(who.user, {"text": "x"}, at=NOW, limit=9)
    await store.usage.add("2026-11-27", [who.key], Spent(tokens=5))
    for key, owner in (("own", who.key), ("room", "memory:main:room:lounge")):
        job = NewJob(
            kind="reminder",
            key=f"{key} {who.user}",
            due=NOW,
            thread=thread,
            owner=owner,
            body={"author": who.user},
        )
        await store.jobs.add(job)
    await store.feedback.give(
        Feedback(
            message_id="m",
            thread=ROOM,
            channel=who.channel,
            account=who.account,
            user=who.user,
            name="N",
            value="up",
            run_id="",
            agent="",
            at=NOW,
        )
    )
    permission = Permission(
        id=0,
        session_id="s",
        thread=thread,
        person=who.user,
        type="write_file",
        target="a",
        foreign=(),
        level=0,
        private=False,
        at=NOW,
    )
    await store.shield.permissions.add(permission)
    chat = PairedChat(channel=who.channel, account=who.account, chat=thread, user=who.user)
    request = PairingRequest(place=chat, name="N", code_hash=who.user, asked_at=NOW, expires_at=NOW + 9)
    await store.pairings.ask(request, limit=9, again_after_s=9)


async def _in_danger(store: Store, who: Identity) -> None:
    """A crisis response to a message of a person."""
    crisis = CrisisRecord(
        id="c1",
        session="s",
        user=who.key,
        at=NOW,
        level=3,
        override="",
        path="deterministic",
        reason="x",
        completed=True,
        llm_failed=False,
    )
    accepted = await store.accept(entry("crisis"))
    lease = await store.acquire_lease(THREAD, "me", ttl_s=9e9, now=NOW)
    assert lease is not None
    await store.commit_turn(lease, replace(turn(accepted.seq), crisis=crisis))


async def _kept(store: Store, who: Identity) -> list[object]:
    """What is kept of a person, each part empty if there is nothing."""
    place = SpeakerKey(channel=who.channel, account=who.account, user=who.user)
    preferences = await store.voices.preferences_of(place)
    jobs = [one for one in await store.jobs.listed(limit=99) if one.body.get("author") == who.user]
    return [
        preferences != SpeakerPreferences(),
        [key for key, _ in await store.voices.buffers() if f'"{who.user}"' in key],
        (await store.usage.since("2026-01-01", who.key)).tokens,
        jobs,
        [one for one in await store.feedback.listed(limit=9) if one.user == who.user],
        await store.shield.permissions.of("s", who.user),
        [one for one in await store.pairings.requests(now=NOW) if one.place.user == who.user],
    ]


async def test_everything_else_of_the_person_goes_and_nothing_of_others(store: Store) -> None:
    person = await linked(store)
    for who, thread in ((ANN, PRIVATE), (TERMINAL, "console:local:c1"), (BEN, "memory:main:dm-ben")):
        await _fill(store, who, thread)
        assert all(await _kept(store, who))
    await store.jobs.add(NewJob(kind="full_erasure", key="k", due=NOW, owner=ANN.key))
    await _in_danger(store, ANN)
    for _ in range(2):
        await store.erasure.forget_person(person, but_jobs="full_erasure")
        for who in (ANN, TERMINAL):
            assert not any(await _kept(store, who))
        assert all(await _kept(store, BEN))
        assert await store.identities.linked() == {}
        assert await store.voices.transcript("ben", newer_than=0) is None, "no transcript names its speaker"
    assert [one.kind for one in await store.jobs.listed(limit=9)].count("full_erasure") == 1
    (crisis,) = await store.crises.listed(limit=9)
    assert (crisis.id, crisis.user) == ("c1", None), "the record stays"
    await store.erasure.forget_usage([BEN.key])
    assert (await store.usage.since("2026-01-01", BEN.key)).tokens == 0
    await store.erasure.compact()
    assert all(one for at, one in enumerate(await _kept(store, BEN)) if at != 2)


def _action(user: str, thread: str, **more: Any) -> NewAuditRecord:
    details = {"action": "a", "person": user, "thread": thread, "session": "s", "message": f"m-{user}"}
    return NewAuditRecord(type="action_evaluated", details={**details, **more}, at=NOW)


async def _lines(store: Store) -> list[str]:
    return [one.line.decode() for one in await store.shield.audit.listed(limit=99)]


async def test_the_audit_names_the_person_no_longer_and_is_whole(store: Store) -> None:
    book = store.shield.audit
    records = [_action("ben", ROOM), _action("ann", PRIVATE, tool="x"), _action("ben", ROOM)]
    await book.append([*records, _action("ann", "memory:other:dm-ann")])
    before = await book.head()
    assert before is not None
    assert await store.erasure.redact_audit(ONE, at=NOW) == 1
    report = await check_audit(book)
    assert report.damage == ()
    lines = await _lines(store)
    assert PRIVATE not in "".join(lines)
    assert f'"person":"{ERASED}"' in lines[1]
    assert '"tool":"x"' in lines[1]
    assert '"person":"ann"' in lines[3], "another account has other people"
    assert PERSON_ERASED in lines[4]
    assert before.hash in lines[4], "so that who kept the old end can tell what has changed it"
    assert await store.erasure.redact_audit(ONE, at=NOW) == 0
    assert len(await _lines(store)) == 5
    await book.append([_action("ben", ROOM)])
    assert (await check_audit(book)).damage == ()


async def test_damage_in_the_audit_stays_found() -> None:
    records = [_action("ann", PRIVATE), _action("ben", ROOM), _action("ann", PRIVATE), _action("ben", ROOM)]
    rows = list(chained(AuditHead(), records))
    rows[1] = AuditRow(n=2, line=rows[1].line.replace(b"ben", b"eve"), hash=rows[1].hash)
    redacted = redacted_audit(rows, AuditHead(n=4, hash=rows[3].hash), ONE)
    assert redacted is not None
    assert redacted.named == 2
    new = {row.n: row for row in redacted.rows}
    check = ChainCheck()
    check.feed([new.get(row.n, row) for row in rows])
    assert [one.n for one in check.report(redacted.head).damage] == [2]
