"""Pairing requests, pairings, and typed answers that stay known, on every store."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from gateway.storage.pairings import PairedChat, PairingRequest
from gateway.storage.ports import Store
from tests.contracts.conftest import Reopen
from tests.contracts.store_values import NOW, THREAD, entry, interaction

ANN = PairedChat(channel="telegram", account="main", chat="7", user="7")
HOUR = 3600.0


def request(place: PairedChat = ANN, *, at: float = NOW, code: str = "code-1") -> PairingRequest:
    return PairingRequest(place=place, name="Ann", code_hash=code, asked_at=at, expires_at=at + 900)


async def ask(store: Store, asked: PairingRequest, *, limit: int = 20) -> bool:
    return await store.pairings.ask(asked, limit=limit, again_after_s=HOUR)


async def test_anyone_who_was_shown_the_code_is_let_in_and_the_code_is_used_up(store: Store) -> None:
    assert await ask(store, request())
    assert await store.pairings.requests(now=NOW) == (request(),)
    assert not await store.pairings.is_paired(ANN)

    paired = await store.pairings.pair("code-1", now=NOW + 1)
    assert paired is not None
    assert (paired.place, paired.name, paired.paired_at) == (ANN, "Ann", NOW + 1)
    assert await store.pairings.is_paired(ANN)
    assert await store.pairings.pairings() == (paired,)
    assert await store.pairings.requests(now=NOW + 1) == ()
    assert await store.pairings.pair("code-1", now=NOW + 1) is None


@pytest.mark.parametrize(
    "elsewhere",
    [
        replace(ANN, channel="discord"),
        replace(ANN, account="other"),
        replace(ANN, chat="-100"),
        replace(ANN, user="8"),
    ],
)
async def test_a_pairing_counts_in_its_own_chat_alone(store: Store, elsewhere: PairedChat) -> None:
    await ask(store, request())
    await store.pairings.pair("code-1", now=NOW)
    assert not await store.pairings.is_paired(elsewhere)


@pytest.mark.parametrize(("after_s", "works"), [(0, True), (899.9, True), (900, False), (5000, False)])
async def test_a_code_has_an_end(store: Store, after_s: float, works: bool) -> None:
    await ask(store, request())
    assert (await store.pairings.pair("code-1", now=NOW + after_s) is not None) == works
    assert await store.pairings.is_paired(ANN) == works


async def test_an_unknown_code_lets_no_one_in(store: Store) -> None:
    await ask(store, request())
    assert await store.pairings.pair("code-2", now=NOW) is None
    assert await store.pairings.pairings() == ()


@pytest.mark.parametrize(("after_s", "again"), [(1, False), (1800, False), (HOUR - 1, False), (HOUR, True)])
async def test_the_same_person_asks_once_an_hour(store: Store, after_s: float, again: bool) -> None:
    assert await ask(store, request())
    assert await ask(store, request(at=NOW + after_s, code="code-2")) == again
    known = [one.code_hash for one in await store.pairings.requests(now=NOW)]
    assert known == (["code-2"] if again else ["code-1"])


async def test_who_is_paired_meanwhile_gets_no_second_code(store: Store) -> None:
    await ask(store, request())
    await store.pairings.pair("code-1", now=NOW)
    assert not await ask(store, request(at=NOW + 1, code="code-2"))
    assert await store.pairings.requests(now=NOW) == ()


async def test_an_account_has_room_for_so_many_requests_and_gets_it_back_when_they_expire(
    store: Store,
) -> None:
    people = [replace(ANN, chat=str(number), user=str(number)) for number in range(6)]
    asked = [await ask(store, request(one, code=one.user), limit=3) for one in people]
    assert asked == [True, True, True, False, False, False]
    assert await ask(store, request(replace(ANN, account="other"), code="x"), limit=3)
    assert await ask(store, request(people[5], at=NOW + 900, code="late"), limit=3)


async def test_of_twenty_at_once_one_is_noted(store: Store) -> None:
    asked = await asyncio.gather(*(ask(store, request(code=f"code-{number}")) for number in range(20)))
    assert sum(asked) == 1


async def test_old_requests_leave_no_rows(store: Store) -> None:
    for number in range(50):
        place = replace(ANN, chat=str(number), user=str(number))
        await ask(store, request(place, at=NOW + number * 2 * HOUR, code=str(number)))
    assert [one.code_hash for one in await store.pairings.requests(now=NOW)] == ["49"]


async def test_a_removed_person_is_out_in_every_chat_of_the_channel_and_may_ask_again(store: Store) -> None:
    for number, place in enumerate((ANN, replace(ANN, chat="8"), replace(ANN, channel="slack"))):
        await ask(store, request(place, code=str(number)))
        await store.pairings.pair(str(number), now=NOW)
    assert await store.pairings.remove("telegram", "7") == 2
    assert await store.pairings.remove("telegram", "7") == 0
    assert not await store.pairings.is_paired(ANN)
    assert await store.pairings.is_paired(replace(ANN, channel="slack"))
    assert await ask(store, request(at=NOW + 1, code="again"))


async def test_a_name_that_utf8_cannot_hold_is_kept_as_far_as_it_can(store: Store) -> None:
    assert await ask(store, replace(request(), name="A\ud800n"))
    (kept,) = await store.pairings.requests(now=NOW)
    assert kept.name == "A?n"


async def test_pairings_outlive_a_restart(store: Store, reopen: Reopen) -> None:
    book = store.pairings
    await ask(store, request())
    await book.pair("code-1", now=NOW)
    follower = await reopen()
    assert await follower.pairings.is_paired(ANN)


async def test_a_book_taken_before_the_store_was_opened_works_after_it(store: Store) -> None:
    book = store.pairings
    await store.close()
    await store.open()
    assert await book.ask(request(), limit=1, again_after_s=HOUR)


async def test_a_finished_entry_of_an_answer_needs_no_work_and_knows_its_redelivery(store: Store) -> None:
    await store.open_interaction(interaction())
    said = replace(entry("said"), kind="approval")
    status = await store.answer_interaction(
        "act-1", thread=THREAD, user="ann", choice="allow", now=NOW, entry=said, finished=True
    )
    assert status == "accepted"
    assert await store.open_entries(THREAD) == ()
    assert await store.next_entry(THREAD) is None
    counts = await store.counts()
    assert (counts.inbox_open, counts.inbox_done) == (0, 1)
    assert (await store.accept(entry("said"))).duplicate


async def test_an_entry_that_is_on_record_answers_nothing(store: Store) -> None:
    await store.accept(entry("said"))
    await store.open_interaction(interaction())
    status = await store.answer_interaction(
        "act-1", thread=THREAD, user="ann", choice="allow", now=NOW, entry=entry("said")
    )
    assert status == "already_answered"
    assert await store.pending_interactions(THREAD, now=NOW) == (interaction(),)
