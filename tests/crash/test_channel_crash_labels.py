"""Death at each labelled place of a message's way through Telegram, Slack and Discord: one answer, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.runtime.crash_labels import LABELS, Label
from tests.support.gateway_process import SCRIPTED, GatewayProcess, up
from tests.support.platforms.discord import FakeDiscord
from tests.support.platforms.platform import FakePlatform
from tests.support.platforms.slack import FakeSlack
from tests.support.platforms.telegram import FakeTelegram
from tests.support.store_file import integrity, stored_messages

pytestmark = pytest.mark.crash

_CRASHED = 137
_PLATFORMS = (FakeTelegram, FakeSlack, FakeDiscord)
_PLACED = ("place-before", "place-after")
"""Only Telegram posts a placeholder before a reply that had no preview, and only on request."""
_ELSEWHERE = {
    *("change-begun", "undo-begun", "undo-written"),
    *("join-before", "join-after"),
    "crisis-notice-queued",
    *("watch-fired-before", "watch-fired-after", "heartbeat-news-queued"),
    *("heartbeat-commit-before", "heartbeat-commit-after", "heartbeat-cancelled"),
    *("voice-before", "voice-after"),
    *("effect-begun-before", "effect-begun-after", "effect-done-before", "effect-done-after"),
    *("audit-decided-before", "audit-decided-after", "audit-done-before", "audit-done-after"),
    *("redeem-before", "redeem-after", "deletion-begun", "erase-before", "erase-after"),
    *("memory-before", "memory-after", "session-end-before", "session-end-after"),
    *("session-memory-before", "session-memory-after"),
    *("person-chats-erased", "person-room-redacted", "person-forgotten", "person-compacted"),
}
"""An answer in words passes none of these. See the tests named after them, as test_tool_crash_labels.py."""
_CASES = [
    (make, label)
    for make in _PLATFORMS
    for label in LABELS
    if label not in _ELSEWHERE and (make is FakeTelegram or label not in _PLACED)
]


@pytest.mark.parametrize(("make", "label"), _CASES)
async def test_death_at_a_label_gives_one_answer(
    tmp_path: Path, make: type[FakeTelegram | FakeSlack | FakeDiscord], label: Label
) -> None:
    platform: FakePlatform = make()
    async with platform:
        overrides = [*SCRIPTED, *platform.overrides(tmp_path)]
        if label in _PLACED:
            overrides.append("channels.telegram.replies=edit")
        async with GatewayProcess(tmp_path, overrides=overrides) as gateway:
            ann = platform.person("ann")
            chat = platform.private_chat(ann)
            before: list[str] = []
            if make is FakeDiscord:
                # It tells a bot that comes back what it missed only in chats that the bot knows.
                before = ["You said: hello"]
                await gateway.start()
                await up(gateway, platform.name)
                await platform.say(chat, ann, "hello")
                await platform.until(lambda: platform.bot_texts(chat) == before)
                assert await gateway.stop() == 0

            await gateway.start(crash_at=f"{label}:1")
            await platform.say(chat, ann, "one two three")
            assert await gateway.wait_exit() == _CRASHED

            await gateway.start()
            await platform.until(lambda: "You said: one two three" in platform.bot_texts(chat), timeout_s=120)
            await platform.until(lambda: platform.unacknowledged() == 0)
            assert await gateway.stop() == 0
            shown = platform.bot_texts(chat)
            orphans = ["…"] if label == "place-after" else []
            assert shown == [*before, *orphans, "You said: one two three"]
            assert integrity(gateway.store_path) == "ok"
            stored = stored_messages(gateway.store_path)
            messages = len(before) + 1
            assert [one.outcome for one in stored.values()] == ["answered"] * messages
            assert [[state for state, _ in one.outbox] for one in stored.values()] == [["sent"]] * messages
