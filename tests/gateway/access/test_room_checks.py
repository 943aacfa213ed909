"""Rooms where the bot may answer: what it considers, of whom, and how often; and who may react."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gateway.access.policy import AccessPolicy, AccessRule, Allowed, Denied
from gateway.access.room_checks import may_consider
from gateway.storage.memory import MemoryStore
from pipeline.domain.clock import ManualClock
from pipeline.domain.messages import Author, InboundMessage, MediaRef, Reaction
from tests.gateway.access.access_cells import ROOM, item

LISTENS = AccessRule.of(mode="list", allow=(f"room:{ROOM}",), rooms="may_answer", room_checks_per_hour=2)


async def _policy(rule: AccessRule, clock: ManualClock | None = None) -> AccessPolicy:
    store = MemoryStore()
    await store.open()
    return AccessPolicy(book=store.pairings, clock=clock or ManualClock(), rules={("telegram", "main"): rule})


def _chatter(user: str = "1", **changes: Any) -> InboundMessage:
    found = item("chatter", "telegram", user, private=False)
    assert isinstance(found, InboundMessage)
    return replace(found, **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"addressed": True},
        {"private": True},
        {"edited": True},
        {"forwarded": True},
        {"text": "", "attachments": (MediaRef(channel="telegram", handle="x"),)},
        {"voice": MediaRef(channel="telegram", handle="x", kind="voice")},
    ],
)
def test_only_a_new_text_of_its_authors_own_is_considered(changes: dict[str, Any]) -> None:
    assert may_consider(_chatter())
    assert not may_consider(_chatter(**changes))


async def test_a_room_is_considered_a_number_of_times_in_an_hour_and_messages_to_the_bot_always() -> None:
    clock = ManualClock()
    policy = await _policy(LISTENS, clock)
    for user in ("1", "2"):
        assert await policy.authorise(_chatter(user)) == Allowed(may_decline=True)
    over = await policy.authorise(_chatter("3"))
    assert isinstance(over, Denied)
    assert (over.words, over.chatter) == ("", True)
    assert await policy.authorise(item("text", "telegram", "3", private=False)) == Allowed()
    other = _chatter("3")
    elsewhere = replace(other, thread=replace(other.thread, chat="-42"))
    verdict = await policy.authorise(elsewhere)
    assert isinstance(verdict, Denied), "no one may write in that room"
    await clock.advance(3_601)
    assert await policy.authorise(_chatter("3")) == Allowed(may_decline=True)


async def test_considering_takes_nothing_from_the_daily_messages_of_an_open_account() -> None:
    policy = await _policy(AccessRule.of(mode="open", rooms="may_answer", open_messages_per_day=1))
    for _ in range(3):
        assert await policy.authorise(_chatter()) == Allowed(may_decline=True)
    assert await policy.authorise(item("text", "telegram", "1", private=False)) == Allowed()


async def test_with_no_checks_it_answers_only_what_is_addressed_to_it() -> None:
    policy = await _policy(replace(LISTENS, room_checks_per_hour=0))
    verdict = await policy.authorise(_chatter())
    assert isinstance(verdict, Denied)
    assert verdict.chatter


def _reaction(user: str, *, private: bool) -> Reaction:
    said = item("text", "telegram", user, private=private)
    return Reaction(
        message_id="m_r",
        native_id="r",
        thread=said.thread,
        author=Author(id=user),
        received_at=1.0,
        mark="up",
        on=True,
        target="7",
        private=private,
    )


async def test_a_reaction_of_a_stranger_is_refused_in_silence_and_asks_for_no_code() -> None:
    store = MemoryStore()
    await store.open()
    rule = AccessRule.of(mode="pairing", allow=(f"room:{ROOM}/1", "dm:1"), deny=("6",))
    policy = AccessPolicy(book=store.pairings, clock=ManualClock(), rules={("telegram", "main"): rule})
    for private in (True, False):
        assert await policy.authorise(_reaction("1", private=private)) == Allowed()
        for user in ("2", "6"):
            verdict = await policy.authorise(_reaction(user, private=private))
            assert isinstance(verdict, Denied)
            assert verdict.words == ""
    never = await _policy(AccessRule.of(mode="open", rooms="never"))
    assert isinstance(await never.authorise(_reaction("1", private=False)), Denied)


async def test_reactions_take_no_place_among_the_people_of_an_open_account() -> None:
    policy = await _policy(AccessRule.of(mode="open", open_people=1, open_messages_per_day=1))
    for user in ("1", "2", "3"):
        assert await policy.authorise(_reaction(user, private=False)) == Allowed()
    assert await policy.authorise(item("text", "telegram", "9", private=True)) == Allowed()
