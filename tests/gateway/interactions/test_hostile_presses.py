"""Five hundred presses that no one should get away with, on a real store: none of them does anything."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from pipeline.domain.clock import ManualClock
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import ApprovalReply, button_handle
from tests.gateway.inbox_harness import ANN, BOB, InboxHarness, open_inbox, place, press

PRESSES = 500
QUESTIONS = {"q-private": "1", "q-room": "-5"}
"""Open questions of Ann's by the chat they are in."""
Kind = Callable[[random.Random], ApprovalReply]


def _any_question(dice: random.Random) -> tuple[str, ThreadKey]:
    name, chat = dice.choice(sorted(QUESTIONS.items()))
    return name, place(chat)


def _other_user(dice: random.Random) -> ApprovalReply:
    name, thread = _any_question(dice)
    return press(
        name, dice.randrange(2), user=dice.choice((BOB, "9", "77", "", "1 ", "01", "\u0661")), thread=thread
    )


def _other_chat(dice: random.Random) -> ApprovalReply:
    name, thread = _any_question(dice)
    elsewhere = [place(chat) for chat in ("1", "2", "-5", "-6", "0") if place(chat) != thread]
    topic = ThreadKey(channel="telegram", account="main", chat=thread.chat, topic="3")
    return press(name, dice.randrange(2), thread=dice.choice([*elsewhere, topic]))


def _other_account(dice: random.Random) -> ApprovalReply:
    name, thread = _any_question(dice)
    channel, account = dice.choice((("telegram", "second"), ("slack", "main"), ("discord", "main")))
    return press(name, dice.randrange(2), thread=place(thread.chat, channel=channel, account=account))


def _answered(dice: random.Random) -> ApprovalReply:
    return press("q-answered", dice.randrange(2))


def _expired(dice: random.Random) -> ApprovalReply:
    return press("q-expired", dice.randrange(2))


def _wrong_option(dice: random.Random) -> ApprovalReply:
    name, thread = _any_question(dice)
    option = dice.choice((2, 3, 2**31, 2**64, 10**30, -1, -2, -(2**63)))
    return press(name, option, thread=thread)


def _forged(dice: random.Random) -> ApprovalReply:
    name, thread = _any_question(dice)
    handle = button_handle(name)
    forged = dice.choice(
        (
            name,
            handle.upper() if handle.upper() != handle else handle + "A",
            handle[:-1],
            handle + "0",
            handle.replace(handle[0], "g"),
            f"{dice.getrandbits(64):016x}",
            "",
            "\ud800" * 16,
            "' OR 1=1 --",
            "q" * 5_000,
        )
    )
    return press(name, dice.randrange(2), thread=thread, handle=forged)


KINDS: tuple[Kind, ...] = (
    _other_user,
    _other_chat,
    _other_account,
    _answered,
    _expired,
    _wrong_option,
    _forged,
)


def _state(path: Path) -> tuple[list[Any], list[Any]]:
    """Every question with its answer, and every inbox entry, read from outside."""
    with closing(sqlite3.connect(path)) as db:
        questions = db.execute("SELECT id, answered_by, choice, answered_at FROM interactions ORDER BY id")
        answered = questions.fetchall()
        return answered, db.execute("SELECT * FROM inbox ORDER BY seq").fetchall()


async def _prepare(harness: InboxHarness) -> None:
    for name, chat in QUESTIONS.items():
        await harness.ask(name, chat=chat)
    await harness.ask("q-answered")
    assert (await harness.inbox.accept(press("q-answered", 0, native_id="honest"))).status == "accepted"
    await harness.ask("q-expired", expires_s=5)
    await harness.clock.advance(6)


async def test_five_hundred_hostile_presses_do_nothing_and_one_honest_press_works(tmp_path: Path) -> None:
    path, clock, dice = tmp_path / "store.db", ManualClock(), random.Random(20_250)
    async with open_inbox(path, clock=clock) as harness:
        await _prepare(harness)
    before = _state(path)
    found: Counter[str] = Counter()
    for start in range(0, PRESSES, PRESSES // 5):  # a restart after every hundred
        async with open_inbox(path, clock=clock) as harness:
            for number in range(start, start + PRESSES // 5):
                hostile = KINDS[number % len(KINDS)](dice)
                accepted = await harness.inbox.accept(hostile)
                found[accepted.status] += 1
            assert harness.turns.woken == []
    assert found == {"refused": PRESSES}
    assert _state(path) == before

    async with open_inbox(path, clock=clock) as harness:
        assert (await harness.inbox.accept(press("q-private", 0))).status == "accepted"
        assert (await harness.inbox.accept(press("q-room", 1, thread=place("-5")))).status == "accepted"
        assert harness.turns.woken == ["telegram:main:1", "telegram:main:-5"]
    answers, entries = _state(path)
    assert [row[:3] for row in answers] == [
        ("q-answered", ANN, "approve"),
        ("q-expired", None, None),
        ("q-private", ANN, "approve"),
        ("q-room", ANN, "deny"),
    ]
    assert len(entries) == len(before[1]) + 2
