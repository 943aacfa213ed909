"""Who may speak: every kind of item, from everybody, on every channel, in private and in rooms."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from gateway.access.daily_quota import DailyQuota
from gateway.access.policy import AccessMode, AccessPolicy, AccessRule, Allowed, Denied, RoomsMode
from gateway.storage.memory import MemoryStore
from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import ConfigurationError, StorageError
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author, Inbound, InboundMessage
from tests.gateway.access.access_cells import (
    MODES,
    OWNER_ALONE,
    POSTING,
    ROOM,
    TABLES,
    item,
    outcome,
    policy,
    rows,
)
from tests.support.tables import each

CELLS = [
    (channel, mode, private, sender)
    for channel in POSTING
    for mode in MODES
    for private in (True, False)
    for sender in rows(TABLES[mode, private])
]
OWNER_CELLS = [
    (channel, private, sender)
    for channel in ("web", "console")
    for private in (True, False)
    for sender in rows(OWNER_ALONE)
]
DAY_S = 86_400


def test_the_tables_have_enough_cells() -> None:
    posting = sum(len(rows(TABLES[mode, private])[sender]) for _, mode, private, sender in CELLS)
    owners = sum(len(rows(OWNER_ALONE)[sender]) for *_, sender in OWNER_CELLS)
    assert (posting, owners) == (1_368, 252)


@each("channel, mode, private, sender", CELLS)
async def test_everybody_may_do_what_the_table_says(
    channel: str, mode: AccessMode, private: bool, sender: str
) -> None:
    expected = rows(TABLES[mode, private])[sender]
    found = {}
    for kind in expected:
        rule = await policy(channel, mode)
        found[kind] = outcome(await rule.authorise(item(kind, channel, sender, private=private)))
    assert found == expected


@each("channel, private, sender", OWNER_CELLS)
async def test_the_page_and_the_terminal_are_their_owners_alone(
    channel: str, private: bool, sender: str
) -> None:
    expected = rows(OWNER_ALONE)[sender]
    rule = await policy("telegram", "open")
    found = {
        kind: outcome(await rule.authorise(item(kind, channel, sender, private=private, chat="c")))
        for kind in expected
    }
    assert found == expected


async def _with(rule: AccessRule, clock: ManualClock | None = None) -> AccessPolicy:
    store = MemoryStore()
    await store.open()
    return AccessPolicy(book=store.pairings, clock=clock or ManualClock(), rules={("telegram", "main"): rule})


def _said(user: str = "1", *, kind: str = "text", private: bool = True, chat: str = "") -> Inbound:
    return item(kind, "telegram", user, private=private, chat=chat)


@each(
    "rooms, kind, expected",
    [
        ("addressed", "text", "in"),
        ("addressed", "chatter", "-"),
        ("all", "text", "in"),
        ("all", "chatter", "in"),
        ("never", "text", "-"),
        ("never", "chatter", "-"),
        ("never", "press", "-"),
        ("never", "command", "-"),
    ],
)
async def test_a_whole_room_speaks_as_its_setting_says(rooms: RoomsMode, kind: str, expected: str) -> None:
    access = await _with(AccessRule.of(mode="list", allow=(f"room:{ROOM}",), rooms=rooms))
    for user in ("1", "2"):
        assert outcome(await access.authorise(_said(user, kind=kind, private=False))) == expected
        private = await access.authorise(_said(user, kind="text", private=True, chat=ROOM))
        assert outcome(private) == "words"


async def test_chatter_of_strangers_is_met_with_silence_also_where_all_of_it_is_read() -> None:
    for mode in MODES:
        access = await _with(AccessRule.of(mode=mode, rooms="all", open_people=1, open_messages_per_day=1))
        await access.authorise(_said("first", kind="chatter", private=False))
        for user in ("first", "second"):
            verdict = await access.authorise(_said(user, kind="chatter", private=False))
            assert outcome(verdict) == "-"


async def test_an_account_without_a_rule_is_refused() -> None:
    access = await _with(AccessRule.of(mode="open"))
    there = replace(
        cast("InboundMessage", _said()), thread=ThreadKey(channel="telegram", account="x", chat="1")
    )
    assert isinstance(await access.authorise(there), Denied)


async def test_a_kind_that_no_one_knows_is_refused() -> None:
    @dataclass(frozen=True)
    class Reaction(InboundMessage):
        pass

    known = cast("InboundMessage", _said())
    odd = Reaction(
        message_id="m", native_id="n", thread=known.thread, author=known.author, received_at=0.0, text="x"
    )
    access = await _with(AccessRule.of(mode="open"))
    assert outcome(await access.authorise(known)) == "in"
    assert isinstance(await access.authorise(odd), Denied)


@each("user, chat", [("\ud800", "1"), ("1", "\udfff"), ("", "1")])
async def test_ids_that_no_platform_gives_are_refused_in_silence(user: str, chat: str) -> None:
    for mode in MODES:
        access = await _with(AccessRule.of(mode=mode, allow=("dm:1",)))
        odd = replace(
            cast("InboundMessage", _said()),
            author=Author(id=user),
            thread=ThreadKey(channel="telegram", account="main", chat=chat),
        )
        assert outcome(await access.authorise(odd)) == "-"


async def test_people_on_a_list_need_no_store() -> None:
    closed = MemoryStore()
    rule = AccessRule.of(allow=("dm:1",))
    access = AccessPolicy(book=closed.pairings, clock=ManualClock(), rules={("telegram", "main"): rule})
    assert isinstance(await access.authorise(_said("1")), Allowed)
    with pytest.raises(StorageError):
        await access.authorise(_said("2"))


async def test_the_refusal_tells_the_owner_what_to_write_in_the_list() -> None:
    access = await _with(AccessRule.of(mode="list"))
    private = await access.authorise(_said("77"))
    room = await access.authorise(_said("77", private=False))
    assert isinstance(private, Denied)
    assert "dm:77" in private.words
    assert isinstance(room, Denied)
    assert f"room:{ROOM}/77" in room.words


@each("entry", ["", "7", "dm:", "dm:7/8", "room:", "room:/7", "room:7/", "user:7"])
def test_an_entry_of_another_form_is_named(entry: str) -> None:
    with pytest.raises(ConfigurationError, match="dm:USER"):
        AccessRule.of(allow=("dm:1", entry))


async def test_an_open_account_takes_so_many_messages_of_a_person_in_a_day() -> None:
    clock = ManualClock()
    access = await _with(AccessRule.of(mode="open", open_messages_per_day=3), clock)
    found = [await access.authorise(_said("1")) for _ in range(6)]
    assert [outcome(one) for one in found] == ["in", "in", "in", "words", "-", "-"]
    assert isinstance(found[3], Denied)
    assert "3 messages" in found[3].words
    assert outcome(await access.authorise(_said("1", private=False))) == "-", "a room is no way round"
    assert outcome(await access.authorise(_said("1", kind="command"))) == "-", "a command is work as well"
    assert outcome(await access.authorise(_said("1", kind="stop"))) == "in", "what was begun can be stopped"
    assert outcome(await access.authorise(_said("1", kind="press"))) == "in"
    assert outcome(await access.authorise(_said("2"))) == "in"
    clock.step_wall(DAY_S)
    assert outcome(await access.authorise(_said("1"))) == "in"


async def test_an_open_account_takes_so_many_people_in_a_day_and_lists_are_beside_that() -> None:
    clock = ManualClock()
    access = await _with(AccessRule.of(mode="open", open_people=2, allow=("dm:friend",)), clock)
    found = [outcome(await access.authorise(_said(user))) for user in ("1", "2", "3", "3", "1", "friend")]
    assert found == ["in", "in", "words", "-", "in", "in"]
    for kind in ("command", "press", "stop", "voice"):
        assert outcome(await access.authorise(_said("4" + kind, kind=kind))) == "words"
    clock.step_wall(DAY_S)
    assert outcome(await access.authorise(_said("3"))) == "in"


async def test_open_accounts_count_apart() -> None:
    store, rule = MemoryStore(), AccessRule.of(mode="open", open_people=1)
    await store.open()
    rules = {(channel, "main"): rule for channel in POSTING}
    access = AccessPolicy(book=store.pairings, clock=ManualClock(), rules=rules)
    for channel in POSTING:
        assert outcome(await access.authorise(item("text", channel, channel, private=True))) == "in"
        assert outcome(await access.authorise(item("text", channel, "late", private=True))) == "words"


async def test_a_flood_of_people_fills_no_memory() -> None:
    access = await _with(AccessRule.of(mode="open", open_people=5))
    for number in range(5_000):
        await access.authorise(_said(str(number)))
    day = access._days["telegram", "main"]
    assert isinstance(day, DailyQuota)
    assert (len(day._sent), len(day._notified)) == (5, 1_005)


async def test_a_message_that_is_delivered_twice_counts_once() -> None:
    access = await _with(AccessRule.of(mode="open", open_messages_per_day=2))
    mention, other = _said(private=False), _said(private=False)
    for said in (mention, mention, mention, other, other):
        assert outcome(await access.authorise(said)) == "in"
    assert outcome(await access.authorise(_said(private=False))) == "words"
