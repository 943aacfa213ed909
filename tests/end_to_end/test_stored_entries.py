"""Entries that an earlier process left: of an older version's form, and without a readable body."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gateway.storage.inbox_items import EntryKind
from gateway.storage.ports import NewEntry
from pipeline.domain.events import ErrorEvent
from tests.support.harness import THREAD, open_gateway


async def test_the_reminders_and_barge_ins_of_an_older_version_are_run_as_such(tmp_path: Path) -> None:
    async with open_gateway(tmp_path) as harness:
        await harness.store.accept(_entry("1", "message", {"text": "hello"}))
        await harness.store.accept(_entry("2", "command", {"command": "stop", "quiet": True}))
        await harness.store.accept(_entry("3", "command", {"command": "remind", "text": "tea"}))
        # Nothing has woken the thread, so the next process finds all of them.
    async with open_gateway(tmp_path) as harness:
        assert (await harness.channel.reply("m3")).text == "Reminder: tea"
        assert [reply.text for reply in harness.channel.sent] == ["You said: hello", "Reminder: tea"]


async def test_an_entry_without_a_readable_body_is_set_aside_and_blocks_nothing(tmp_path: Path) -> None:
    async with open_gateway(tmp_path) as harness:
        await harness.store.accept(_entry("1", "message", {"voice": "no reference"}))
        after = await harness.channel.say("hello")
        assert (await harness.channel.reply(after.message_id)).text == "You said: hello"
        event = await harness.channel.terminal("m1")
        assert isinstance(event, ErrorEvent)
        assert event.code == "unreadable"


def _entry(number: str, kind: EntryKind, fields: Mapping[str, Any]) -> NewEntry:
    return NewEntry(
        dedupe_key=f"console:local:{number}",
        thread=THREAD,
        message_id=f"m{number}",
        kind=kind,
        body={"native_id": number, "author": "owner", **fields},
        received_at=float(number),
    )
