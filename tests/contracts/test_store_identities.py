"""Linked identities and link codes, on every store: who becomes one person, with what, and who does not."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import replace

import pytest

from gateway.storage.identities import Identity, JoinRequest, JoinResult, LinkCode, TryLimits
from gateway.storage.ports import Store
from gateway.storage.states import StateWrite
from gateway.storage.usage import Spent
from tests.contracts.conftest import Reopen
from tests.contracts.memory_values import PROFILE, arc, fact, found
from tests.contracts.memory_values import write as remember
from tests.contracts.store_values import NOW, accepted_with_lease, record, turn

DAY, NEXT_DAY = "2023-11-14", "2023-11-15"
ANN = Identity(channel="telegram", account="main", user="1001")
ANN_SLACK = Identity(channel="slack", account="main", user="U1")
ANN_PAGE = Identity(channel="web", account="local", user="owner")
BEN = Identity(channel="telegram", account="main", user="1002")
_NUMBERS = itertools.count()
LIMITS = TryLimits(window_s=3600.0, identity=3, everybody=5)


def code(owner: Identity = ANN, text: str = "code-1", *, at: float = NOW) -> LinkCode:
    thread = f"{owner.channel}:{owner.account}:chat-{owner.user}"
    return LinkCode(identity=owner, thread=thread, code_hash=text, issued_at=at, expires_at=at + 900)


async def issue(store: Store, owner: Identity = ANN, text: str = "code-1", *, at: float = NOW) -> bool:
    return await store.identities.issue(code(owner, text, at=at), limit=5)


async def join(
    store: Store,
    identity: Identity = ANN_SLACK,
    text: str = "code-1",
    *,
    at: float = NOW + 1,
    message: str = "",
    person: str = "person:p1",
    most: int = 4,
    day: str = DAY,
) -> JoinResult:
    request = JoinRequest(
        identity=identity,
        thread=f"{identity.channel}:{identity.account}:chat-{identity.user}",
        message_id=message or f"m{next(_NUMBERS)}",
        code_hash=text,
        new_person=person,
        most=most,
        at=at,
        day=day,
    )
    return await store.identities.join(request, LIMITS)


async def link(
    store: Store, owner: Identity, other: Identity, person: str = "person:p1", *, day: str = DAY
) -> JoinResult:
    assert await issue(store, owner, f"{owner.key}>{other.key}")
    return await join(store, other, f"{owner.key}>{other.key}", person=person, day=day)


async def keep(store: Store, owner: str, n: int) -> None:
    accepted, lease = await accepted_with_lease(store, f"{owner}{n}")
    found = await store.states.read(owner, "/shop")
    write = StateWrite(owner=owner, graph="/shop", revision=found.revision if found else 0, body={"n": n})
    done = turn(accepted.seq, record("assistant", message=f"msg-{owner}{n}"))
    await store.commit_turn(lease, replace(done, states=(write,)))


async def kept(store: Store, owner: str) -> object:
    found = await store.states.read(owner, "/shop")
    return None if found is None else found.body["n"]


async def used(store: Store, *scopes: str, day: str = DAY) -> list[int]:
    found = await store.usage.of(day, scopes)
    return [found[scope].tokens for scope in scopes]


async def test_the_code_of_one_identity_makes_the_other_the_same_person(store: Store, reopen: Reopen) -> None:
    assert await issue(store)
    joined = await join(store)
    assert (joined.status, joined.person) == ("joined", "person:p1")
    assert (joined.source, joined.before) == (ANN.key, ANN_SLACK.key)
    (other,) = joined.others
    assert (other.identity, other.thread) == (ANN, "telegram:main:chat-1001")
    again = await reopen()
    assert await again.identities.linked() == {ANN: "person:p1", ANN_SLACK: "person:p1"}


async def test_a_code_is_used_up_by_the_first_who_says_it(store: Store) -> None:
    await issue(store)
    tried = await asyncio.gather(join(store), join(store, BEN))
    assert sorted(one.status for one in tried) == ["joined", "wrong"]
    assert (await join(store, ANN_PAGE)).status == "wrong"


@pytest.mark.parametrize(("late", "status"), [(899.0, "joined"), (900.0, "wrong")])
async def test_a_code_expires(store: Store, late: float, status: str) -> None:
    await issue(store)
    assert (await join(store, at=NOW + late)).status == status


async def test_a_code_cannot_be_used_by_its_owner_nor_after_another_one_or_a_cancelling(store: Store) -> None:
    await issue(store)
    assert (await join(store, ANN)).status == "own"
    await issue(store, text="code-2")
    assert (await join(store)).status == "wrong"
    await store.identities.cancel("code-2")
    assert (await join(store, text="code-2")).status == "wrong"
    assert await store.identities.linked() == {}


async def test_wrong_codes_are_counted_for_each_and_for_all_and_over_restarts(
    store: Store, reopen: Reopen
) -> None:
    await issue(store)
    tries = [(await join(store, BEN, f"guess-{number}")).status for number in range(500)]
    assert tries == ["wrong"] * 3 + ["limited"] * 497
    store = await reopen()
    assert (await join(store, BEN)).status == "limited"
    assert [(await join(store, ANN_PAGE, f"guess-{number}")).status for number in range(3)] == [
        "wrong",
        "wrong",
        "limited",
    ]
    assert (await join(store)).status == "limited"
    await issue(store, at=NOW + 3601)
    assert (await join(store, at=NOW + 3602)).status == "joined"


async def test_only_so_many_codes_are_open_and_expired_ones_do_not_count(store: Store) -> None:
    others = [replace(BEN, user=str(number)) for number in range(6)]
    assert [await issue(store, one, f"code-{one.user}") for one in others] == [True] * 5 + [False]
    assert await issue(store, others[0], "another")
    assert await issue(store, others[5], "code-5", at=NOW + 901)


async def test_the_message_that_said_a_code_gets_the_same_result_when_it_is_repeated(store: Store) -> None:
    await issue(store)
    first = await join(store, message="m1")
    assert await join(store, message="m1") == first
    await store.usage.add(DAY, ["person:p1"], Spent(tokens=7))
    left = await store.identities.leave(ANN_SLACK, message_id="m2", day=DAY)
    await store.usage.add(DAY, ["person:p1"], Spent(tokens=7))
    assert await store.identities.leave(ANN_SLACK, message_id="m2", day=DAY) == left
    assert await used(store, "person:p1", ANN_SLACK.key) == [14, 7]


async def test_a_third_identity_joins_the_same_person_by_a_code_of_either(store: Store) -> None:
    await link(store, ANN, ANN_SLACK)
    joined = await link(store, ANN_SLACK, ANN_PAGE, "person:p2")
    assert (joined.person, joined.source) == ("person:p1", "")
    assert [other.identity for other in joined.others] == [ANN_SLACK, ANN]
    assert (await link(store, ANN, ANN_PAGE)).status == "linked"


async def test_an_identity_that_is_linked_joins_no_other_person(store: Store) -> None:
    await link(store, ANN, ANN_SLACK)
    assert (await link(store, BEN, ANN_SLACK, "person:p2")).status == "elsewhere"
    discord = replace(ANN_PAGE, channel="discord")
    await link(store, BEN, discord, "person:p2")
    assert (await link(store, ANN, discord)).status == "elsewhere"
    linked = await store.identities.linked()
    assert (linked[BEN], linked[ANN_SLACK]) == ("person:p2", "person:p1")


async def test_a_person_has_a_most_of_identities(store: Store) -> None:
    await link(store, ANN, ANN_SLACK)
    await issue(store)
    assert (await join(store, ANN_PAGE, most=2)).status == "full"
    assert (await join(store, ANN_PAGE, most=3)).status == "joined"


async def test_a_person_begins_with_what_was_kept_for_the_owner_of_the_code(store: Store) -> None:
    await keep(store, ANN.key, 1)
    await keep(store, ANN_SLACK.key, 2)
    await link(store, ANN, ANN_SLACK)
    assert await kept(store, "person:p1") == 1
    await keep(store, "person:p1", 3)
    left = await store.identities.leave(ANN_SLACK, message_id="x", day=DAY)
    assert left.own == ANN_SLACK.key
    assert [other.identity for other in left.others] == [ANN]
    assert [await kept(store, owner) for owner in (ANN.key, ANN_SLACK.key, "person:p1")] == [1, 2, 3]
    assert await store.identities.linked() == {ANN: "person:p1"}


async def test_the_use_of_a_day_is_added_up_and_stays_with_both_after_leaving(store: Store) -> None:
    await store.usage.add(DAY, [ANN.key], Spent(tokens=100))
    await store.usage.add(DAY, [ANN_SLACK.key], Spent(tokens=20, cost=0.5))
    await link(store, ANN, ANN_SLACK)
    await store.usage.add(DAY, ["person:p1"], Spent(tokens=3))
    await store.identities.leave(ANN_SLACK, message_id="x", day=DAY)
    assert await used(store, "person:p1", ANN_SLACK.key) == [123, 123]
    assert (await store.usage.of(DAY, ["person:p1"]))["person:p1"].cost == 0.5


@pytest.mark.parametrize("back", [(ANN, ANN_SLACK), (ANN_SLACK, ANN)])
async def test_what_both_have_used_together_counts_once_when_they_are_linked_again(
    store: Store, back: tuple[Identity, Identity]
) -> None:
    await store.usage.add(DAY, [ANN.key, ANN_SLACK.key], Spent(tokens=10))
    for number in range(3):
        await link(store, *back, f"person:p{number}")
        await store.identities.leave(ANN_SLACK, message_id=f"x{number}", day=DAY)
        linked = await store.identities.linked()
        await store.usage.add(DAY, [linked[ANN], ANN_SLACK.key], Spent(tokens=1))
    joined = await link(store, *back, "person:p4")
    assert await used(store, joined.person) == [20 + 3 * 2]


async def month(store: Store, scope: str) -> int:
    return (await store.usage.since(DAY, scope)).tokens


async def test_the_use_of_earlier_days_is_added_up_once_however_often_they_are_linked(store: Store) -> None:
    await store.usage.add(DAY, [ANN.key, ANN_SLACK.key], Spent(tokens=10))
    joined = await link(store, ANN, ANN_SLACK, day=NEXT_DAY)
    assert await used(store, joined.person, day=NEXT_DAY) == [0]
    assert await month(store, joined.person) == 20
    await store.usage.add(NEXT_DAY, [joined.person], Spent(tokens=1))
    await store.identities.leave(ANN_SLACK, message_id="x", day=NEXT_DAY)
    assert await month(store, ANN_SLACK.key) == 11
    again = await link(store, ANN, ANN_SLACK, "person:p2", day=NEXT_DAY)
    assert await month(store, again.person) == 21


async def test_the_use_since_a_day_is_that_of_one_scope(store: Store) -> None:
    await store.usage.add("2023-10-31", ["a"], Spent(tokens=1))
    assert await store.usage.add(DAY, ["b"], Spent(cost=0.5)) == {"b": Spent(cost=0.5)}
    sums = await store.usage.add(DAY, ["a", "b"], Spent(tokens=2, cost=0.25))
    assert sums == {"a": Spent(tokens=2, cost=0.25), "b": Spent(tokens=2, cost=0.75)}
    assert await store.usage.add(DAY, [], Spent(tokens=2)) == {}
    await store.usage.add(NEXT_DAY, ["a"], Spent(tokens=4, cost=0.5))
    assert await store.usage.since("2023-11-01", "a") == Spent(tokens=6, cost=0.75)
    assert await store.usage.since("2023-11-01", "c") == Spent()


async def test_the_last_of_a_person_takes_its_things_along_and_gets_them_back(store: Store) -> None:
    await link(store, ANN, ANN_SLACK)
    await keep(store, "person:p1", 5)
    await store.identities.leave(ANN, message_id="x", day=DAY)
    joined = await link(store, BEN, ANN_SLACK, "person:p2")
    assert (joined.status, joined.before) == ("joined", "person:p1")
    assert await kept(store, "person:p2") is None
    left = await store.identities.leave(ANN_SLACK, message_id="y", day=DAY)
    assert left.own == "person:p1"
    assert await kept(store, left.own) == 5


async def test_an_identity_that_is_not_linked_leaves_no_one_and_loses_its_code(store: Store) -> None:
    await issue(store)
    left = await store.identities.leave(ANN, message_id="x", day=DAY)
    assert (left.own, left.others) == (ANN.key, ())
    assert (await join(store)).status == "wrong"
    await link(store, ANN, ANN_SLACK)
    await store.identities.leave(ANN_SLACK, message_id="y", day=DAY)
    left = await store.identities.leave(ANN, message_id="z", day=DAY)
    assert (left.own, left.others) == ("person:p1", ())


async def test_a_person_begins_with_what_was_remembered_of_the_owner_of_the_code(
    store: Store, reopen: Reopen
) -> None:
    await remember(store, ANN.key, fact("f1", "green tea"), arc=arc("s1", "Tea."), profile=PROFILE)
    await remember(store, ANN_SLACK.key, fact("f2", "xyzzy"))
    assert (await link(store, ANN, ANN_SLACK)).status == "joined"
    store = await reopen()
    assert await found(store, "person:p1", "tea") == ["f1"]
    memory = await store.memories.everything("person:p1")
    assert ([one.id for one in memory.facts], len(memory.arcs)) == (["f1"], 1)
    assert memory.profile.rules == PROFILE.rules
    assert await found(store, ANN.key, "tea") == ["f1"], "what was kept before the link comes back after it"
    assert await store.memories.erase("person:p1") > 0
    assert await found(store, ANN.key, "tea") == ["f1"]
