"""Pairing by code: what a stranger is shown, and what the owner does with it, beside a running gateway."""

from __future__ import annotations

import asyncio
import io
import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.access.policy import AccessRule
from gateway.cli.main import main
from gateway.cli.pair import pair
from gateway.cli.stored_books import StorePlace
from gateway.people.codes import CODE_CHARS, hash_of
from gateway.runtime.data_dir import STORE_FILE
from gateway.storage.sqlite import SqliteStore
from pipeline.domain.clock import ManualClock, SystemClock
from pipeline.domain.messages import Author
from tests.gateway.inbox_harness import InboxHarness, open_inbox, place, text

PAIRING = AccessRule.of()
_CODE = re.compile(r"`parlour pair ([A-Z0-9]+)`")


async def _say(harness: InboxHarness, user: str, native_id: str, *, name: str = "Ann") -> str:
    """The inbox's answer to a stranger in private."""
    said = replace(text("hi", native_id, user=user, thread=place(user)), author=Author(id=user, name=name))
    accepted = await harness.inbox.accept(said)
    return "in" if accepted.status == "accepted" else accepted.reason


def _code(words: str) -> str:
    found = _CODE.search(words)
    assert found is not None, words
    return found[1]


def _pair(folder: Path, *arguments: str) -> int:
    return main(["pair", *arguments, "--set", f'data.dir="{folder}"'])


def _now() -> ManualClock:
    """A clock that stays at the machine's time, as the command reads that one."""
    return ManualClock(SystemClock().now())


async def test_a_code_has_no_characters_that_are_taken_for_one_another(tmp_path: Path) -> None:
    async with open_inbox(tmp_path / STORE_FILE, PAIRING) as harness:
        codes = set()
        for number in range(20):
            codes.add(_code(await _say(harness, str(100 + number), f"n{number}")))
    assert len(codes) == 20
    assert {len(code) for code in codes} == {CODE_CHARS}
    assert set("".join(codes)).isdisjoint("0O1IL2Z5S8BG6")


@pytest.mark.parametrize("typed", ["ACDE3479", "acde3479", " ACDE-3479 ", "acde 3479"])
def test_a_code_is_known_however_it_is_typed(typed: str) -> None:
    assert hash_of(typed) == hash_of("ACDE3479")
    assert hash_of("ACDE3477") != hash_of("ACDE3479")


async def test_the_invitation_comes_once_an_hour_and_each_time_with_another_code(tmp_path: Path) -> None:
    async with open_inbox(tmp_path / STORE_FILE, PAIRING) as harness:
        first = _code(await _say(harness, "7", "a"))
        assert [await _say(harness, "7", f"b{number}") for number in range(3)] == ["", "", ""]
        await harness.clock.advance(3_600)
        assert _code(await _say(harness, "7", "c")) != first
        assert len(harness.said) == 2


async def test_twenty_people_may_wait_and_everybody_after_them_meets_silence(tmp_path: Path) -> None:
    async with open_inbox(tmp_path / STORE_FILE, PAIRING) as harness:
        shown = [await _say(harness, str(number), f"n{number}") for number in range(100, 125)]
        assert [bool(words) for words in shown] == [True] * 20 + [False] * 5
        await harness.clock.advance(15 * 60)
        assert _code(await _say(harness, "124", "later"))


async def test_the_owner_lets_somebody_in_while_the_gateway_runs_and_out_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with open_inbox(tmp_path / STORE_FILE, PAIRING, clock=_now()) as harness:
        code = _code(await _say(harness, "7", "a"))
        assert await asyncio.to_thread(_pair, tmp_path) == 0
        printed = capsys.readouterr().out
        assert 'telegram (main) 7 "Ann", code good for 15 min' in printed
        assert "paired: no one" in printed
        assert code not in printed

        assert await asyncio.to_thread(_pair, tmp_path, code.lower(), "--yes") == 0
        assert capsys.readouterr().out == 'paired: telegram (main) 7 "Ann"\n'
        assert await _say(harness, "7", "b") == "in"
        assert await asyncio.to_thread(_pair, tmp_path) == 0
        assert (
            capsys.readouterr().out == 'asking to be let in: no one\npaired: 1\n  telegram (main) 7 "Ann"\n'
        )

        assert await asyncio.to_thread(_pair, tmp_path, "--remove", "telegram", "7") == 0
        assert "no longer paired" in capsys.readouterr().out
        assert await _say(harness, "7", "c") != "in"
        assert await asyncio.to_thread(_pair, tmp_path, "--remove", "telegram", "7") == 1
        assert "not paired" in capsys.readouterr().err


async def test_anyone_who_is_paired_is_a_stranger_in_a_room(tmp_path: Path) -> None:
    async with open_inbox(tmp_path / STORE_FILE, PAIRING, clock=_now()) as harness:
        code = _code(await _say(harness, "7", "a"))
        assert await asyncio.to_thread(_pair, tmp_path, code, "--yes") == 0
        in_room = await harness.inbox.accept(text("hi", "b", user="7", thread=place("-5")))
        assert in_room.status == "refused"
        other = await harness.inbox.accept(text("hi", "c", user="7", thread=place("7", account="second")))
        assert other.status == "refused"


async def test_a_code_that_is_used_wrong_or_late_lets_no_one_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = _now()
    async with open_inbox(tmp_path / STORE_FILE, PAIRING, clock=clock) as harness:
        code = _code(await _say(harness, "7", "a"))
        late = ahead_of(clock, 15 * 60)
        assert (
            await asyncio.to_thread(
                lambda: pair(StorePlace(folder=tmp_path), code, confirmed=True, clock=late)
            )
            == 1
        )
        assert await asyncio.to_thread(_pair, tmp_path, "ACDE3479", "--yes") == 1
        assert await asyncio.to_thread(_pair, tmp_path, code, "--yes") == 0
        assert await asyncio.to_thread(_pair, tmp_path, code, "--yes") == 1
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 3
    assert all("mistyped, used, or older than 15 minutes" in line for line in errors)


def ahead_of(clock: ManualClock, seconds: float) -> ManualClock:
    """A clock that is ahead of `clock`."""
    return ManualClock(clock.now() + seconds)


@pytest.mark.parametrize("says_yes", [True, False])
async def test_the_owner_is_shown_who_asks_before_anybody_is_let_in(tmp_path: Path, says_yes: bool) -> None:
    clock, questions = _now(), []

    def confirm(question: str) -> bool:
        questions.append(question)
        return says_yes

    async with open_inbox(tmp_path / STORE_FILE, PAIRING, clock=clock) as harness:
        code = _code(await _say(harness, "7", "a"))
        ended = await asyncio.to_thread(
            lambda: pair(StorePlace(folder=tmp_path), code, confirmed=False, confirm=confirm, clock=clock)
        )
        assert ended == (0 if says_yes else 1)
        assert (await _say(harness, "7", "b") == "in") == says_yes
    assert questions == ['Let telegram (main) 7 "Ann" talk to the bot in private?']


async def test_without_a_terminal_no_one_is_let_in_unasked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    async with open_inbox(tmp_path / STORE_FILE, PAIRING, clock=_now()) as harness:
        code = _code(await _say(harness, "7", "a"))
        assert await asyncio.to_thread(_pair, tmp_path, code) == 1
        assert "--yes" in capsys.readouterr().err
        assert await _say(harness, "7", "b") != "in"


async def test_a_name_cannot_pass_for_another_line_or_hide(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = 'Ann\n  telegram (main) 1 "Owner\u202e\x1b[2J' + "x" * 500
    async with open_inbox(tmp_path / STORE_FILE, PAIRING, clock=_now()) as harness:
        await _say(harness, "7", "a", name=name)
        assert await asyncio.to_thread(_pair, tmp_path) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert "<U+202E>" in lines[1]
    assert "\x1b" not in lines[1]
    assert lines[1].count('"') == 2
    assert len(lines[1]) < 200


async def test_pairing_works_while_the_gateway_is_down(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = _now()
    async with open_inbox(tmp_path / STORE_FILE, PAIRING, clock=clock) as harness:
        code = _code(await _say(harness, "7", "a"))
    assert await asyncio.to_thread(_pair, tmp_path, code, "--yes") == 0
    async with open_inbox(tmp_path / STORE_FILE, PAIRING, clock=clock) as harness:
        assert await _say(harness, "7", "b") == "in"
    assert "paired" in capsys.readouterr().out


def test_without_a_store_there_is_no_one_to_pair(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _pair(tmp_path) == 1
    assert "there is no store yet" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_store_in_memory_cannot_be_reached_from_outside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _pair(tmp_path, "--set", 'storage.kind="memory"') == 2
    assert "storage.kind" in capsys.readouterr().err


async def test_the_store_of_another_release_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / STORE_FILE
    store = SqliteStore(path)
    await store.open()
    await store.close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 2")
    assert await asyncio.to_thread(_pair, tmp_path, "ACDE3479", "--yes") == 1
    assert "another release" in capsys.readouterr().err
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (2,)


async def test_a_gateway_under_load_and_the_command_do_not_disturb_each_other(tmp_path: Path) -> None:
    async with open_inbox(tmp_path / STORE_FILE, AccessRule.of(allow=("dm:1",)), clock=_now()) as harness:
        codes = [_code(await _say(harness, str(number), f"n{number}")) for number in range(100, 110)]
        pairing = asyncio.to_thread(lambda: [_pair(tmp_path, code, "--yes") for code in codes])
        writing = asyncio.gather(*(harness.inbox.accept(text("hi", f"w{number}")) for number in range(90)))
        ended, accepted = await asyncio.gather(pairing, writing)
        assert ended == [0] * 10
        assert {one.status for one in accepted} == {"accepted"}
        assert [await _say(harness, str(number), f"m{number}") for number in range(100, 110)] == ["in"] * 10
