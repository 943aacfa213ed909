"""One person's messages in a minute: how many the inbox accepts, its answer, and what it never counts."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.access.policy import AccessRule
from gateway.access.sender_rate_limit import RateLimit
from gateway.cluster.shared_counts import LocalCounts
from pipeline.domain.clock import ManualClock
from pipeline.domain.messages import InboundMessage, MediaRef, SessionCommand
from tests.gateway.inbox_harness import ANN, BOB, InboxHarness, open_inbox, place, press, text


async def _send(harness: InboxHarness, *names: str, user: str = ANN) -> list[str]:
    """The inbox's status for messages of these native ids."""
    return [(await harness.inbox.accept(text("hi", name, user=user))).status for name in names]


async def test_the_message_above_the_limit_is_refused_with_the_time_to_continue(tmp_path: Path) -> None:
    async with open_inbox(tmp_path / "store.db", per_minute=3) as harness:
        assert await _send(harness, "a") == ["accepted"]
        await harness.clock.advance(20)
        assert await _send(harness, "b", "c") == ["accepted", "accepted"]
        await harness.clock.advance(10.5)
        refused = await harness.inbox.accept(text("hi", "d"))
        assert refused.status == "refused"
        assert refused.reason == "Please slow down: you may send 3 messages a minute. Continue in 30 seconds."
        assert (await harness.store.counts()).inbox_open == 3
        assert harness.refused() == 1


async def test_the_minute_slides_and_refused_messages_do_not_lengthen_it(tmp_path: Path) -> None:
    async with open_inbox(tmp_path / "store.db", per_minute=2) as harness:
        await _send(harness, "a")
        await harness.clock.advance(30)
        assert await _send(harness, "b", "c", "d") == ["accepted", "refused", "refused"]
        await harness.clock.advance(29.9)
        assert await _send(harness, "e") == ["refused"]
        await harness.clock.advance(0.1)
        assert await _send(harness, "f", "g") == ["accepted", "refused"]


async def test_a_flood_gets_one_notice_a_minute(tmp_path: Path) -> None:
    async with open_inbox(tmp_path / "store.db", per_minute=1) as harness:
        await _send(harness, "a")
        for number in range(30):
            await harness.clock.advance(1)
            # Channels that post nothing by themselves show the reason, each time.
            refused = await harness.inbox.accept(text("hi", f"b{number}"))
            assert "slow down" in refused.reason
        assert len(harness.said) == 1
        assert "slow down" in harness.said[0][1]
        await harness.clock.advance(60)
        await _send(harness, "c", "d")
        assert len(harness.said) == 2


async def test_everybody_and_every_account_has_a_separate_quota(tmp_path: Path) -> None:
    async with open_inbox(tmp_path / "store.db", per_minute=1) as harness:
        assert await _send(harness, "a", "b") == ["accepted", "refused"]
        assert await _send(harness, "c", user=BOB) == ["accepted"]
        other = text("hi", "d", thread=place("1", account="second"))
        assert (await harness.inbox.accept(other)).status == "accepted"


async def test_another_chat_is_no_way_around_it(tmp_path: Path) -> None:
    async with open_inbox(tmp_path / "store.db", per_minute=1) as harness:
        await _send(harness, "a")
        elsewhere = text("hi", "b", thread=place("-5"))
        assert (await harness.inbox.accept(elsewhere)).status == "refused"


async def test_a_redelivery_is_not_counted(tmp_path: Path) -> None:
    async with open_inbox(tmp_path / "store.db", per_minute=2) as harness:
        assert await _send(harness, "a", "a", "a", "a", "b") == ["accepted", *["duplicate"] * 3, "accepted"]


async def test_a_redelivery_is_known_when_the_quota_is_used_up(tmp_path: Path) -> None:
    async with open_inbox(tmp_path / "store.db", per_minute=1) as harness:
        assert await _send(harness, "a", "b") == ["accepted", "refused"]
        assert await _send(harness, "a") == ["duplicate"]
        assert len(harness.said) == 1


async def test_a_refused_message_sent_again_in_time_is_new(tmp_path: Path) -> None:
    async with open_inbox(tmp_path / "store.db", per_minute=1) as harness:
        assert await _send(harness, "a", "b") == ["accepted", "refused"]
        await harness.clock.advance(60)
        assert await _send(harness, "b") == ["accepted"]


async def test_messages_that_arrive_at_once_share_the_quota(tmp_path: Path) -> None:
    async with open_inbox(tmp_path / "store.db", per_minute=5) as harness:
        many = (harness.inbox.accept(text("hi", f"a{number}")) for number in range(40))
        found = [one.status for one in await asyncio.gather(*many)]
        assert found.count("accepted") == 5
        assert found.count("refused") == 35


async def test_what_found_no_room_in_the_queue_does_not_count(tmp_path: Path) -> None:
    async with open_inbox(tmp_path / "store.db", limit=1, per_minute=2) as harness:
        assert await _send(harness, "a", "b", "c", "d") == ["accepted", "refused", "refused", "refused"]
        assert all("still waiting" in words for _, words in harness.said)


async def test_commands_and_answers_are_never_refused_for_it(tmp_path: Path) -> None:
    async with open_inbox(tmp_path / "store.db", per_minute=1) as harness:
        await _send(harness, "a")
        await harness.ask("q1")
        await harness.ask("q2", options=("yes", "no"))
        assert (await harness.inbox.accept(press("q1", 0))).status == "accepted"
        assert (await harness.inbox.accept(text("yes", "typed"))).status == "accepted"
        assert (await harness.inbox.accept(text("yes", "typed"))).status == "duplicate"
        for number in range(5):
            assert (await harness.inbox.accept(_command(f"new{number}"))).status == "accepted"
        assert await _send(harness, "b") == ["refused"]


async def test_a_voice_note_is_counted_before_it_is_fetched(tmp_path: Path) -> None:
    async with open_inbox(tmp_path / "store.db", per_minute=1) as harness:
        await _send(harness, "a")
        sound = MediaRef(channel="telegram", handle="1", kind="voice")
        note = replace(text("x", "n"), text="", voice=sound)
        assert (await harness.inbox.accept(note)).status == "refused"
        assert (await harness.store.counts()).inbox_open == 1


async def test_what_other_processes_have_counted_counts_too() -> None:
    clock = ManualClock()
    counts = LocalCounts(clock)
    here = RateLimit(3, clock, counts)
    for _ in range(2):
        await counts.beside().note("messages telegram main ann", window_s=60.0)
        await clock.advance(10.0)
    message = text("hi", "a", user="ann")
    others = await here.others(message)
    assert others == (10.0, 20.0)
    with here.reserve(message, others) as first:
        first.used = True
    with here.reserve(message, others) as second:
        assert second.wait_s == 40.0
    assert await RateLimit(3, clock).others(message) == ()


async def test_notes_that_may_not_be_for_the_bot_are_refused_in_silence(tmp_path: Path) -> None:
    hears = AccessRule.of(mode="list", allow=["room:-5"], hear_rooms=True)
    async with open_inbox(tmp_path / "store.db", hears, per_minute=1) as harness:
        sound = MediaRef(channel="telegram", handle="1", kind="voice")
        found = [await harness.inbox.accept(_overheard(name, sound)) for name in "ab"]
        assert [one.status for one in found] == ["accepted", "refused"]
        assert (found[1].reason, harness.said) == ("", [])


def test_those_who_wrote_longest_ago_are_forgotten_first() -> None:
    quota = RateLimit(10_000, ManualClock())
    for number in range(150):
        with quota.reserve(text("hi", "a", user=str(number))) as held:
            held.used = True
    assert len(quota._sent) == 100
    assert ("telegram", "main", "149") in quota._sent
    assert ("telegram", "main", "0") not in quota._sent


def test_a_place_is_given_back_when_nothing_could_be_written() -> None:
    quota = RateLimit(1, ManualClock())
    with pytest.raises(OSError, match="disk full"), quota.reserve(text("hi", "a")):
        raise OSError("disk full")
    with quota.reserve(text("hi", "a")) as held:
        assert held.wait_s == 0


def _overheard(name: str, sound: MediaRef) -> InboundMessage:
    return replace(text("caption", name, thread=place("-5"), addressed=False), voice=sound)


def _command(name: str) -> SessionCommand:
    message = text("/new", name)
    return SessionCommand(
        message_id=message.message_id,
        native_id=name,
        thread=message.thread,
        author=message.author,
        received_at=message.received_at,
        name="new",
    )
