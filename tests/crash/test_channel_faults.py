"""Telegram, Slack and Discord at their worst: repeated events, 429, errors after success, and kill -9."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.channel_faults import ChannelFaultPlan, ChannelFaultRun, run_channel_faults
from tests.support.platforms.discord import FakeDiscord
from tests.support.platforms.slack import FakeSlack
from tests.support.platforms.telegram import FakeTelegram

pytestmark = [pytest.mark.crash, pytest.mark.soak, pytest.mark.timeout(600)]


def _plan(*, soak: bool, seed: int, error_after_share: float = 0.02) -> ChannelFaultPlan:
    """A short run has denser faults, so that it meets each kind too."""
    if soak:
        return ChannelFaultPlan(seed=seed, error_after_share=error_after_share)
    return ChannelFaultPlan(
        messages=48,
        chats=6,
        kills=3,
        seed=seed,
        rate_limit_share=0.1,
        error_after_share=max(0.1, error_after_share),
    )


async def test_messages_on_all_channels_outlive_kills(
    tmp_path: Path, record_property: Callable[[str, object], None], *, soak: bool
) -> None:
    plan = _plan(soak=soak, seed=4)
    found = await run_channel_faults(tmp_path, plan, [FakeTelegram(), FakeSlack(), FakeDiscord()])
    line = _line(found)
    record_property("channel faults", line)

    assert {name: verdict.broken for name, verdict in found.verdicts.items()} == {
        "telegram": {},
        "slack": {},
        "discord": {},
    }, f"seed {plan.seed}: {line}"
    telegram = found.verdicts["telegram"]
    # The chats share their ids: a post that a kill cut off may be any of too many, and its repeat stays. In a
    # short run each chat may have one for each kill.
    assert telegram.labelled_repeats <= (2 if soak else plan.chats) * plan.kills, line
    assert telegram.placeholders == telegram.fragments == 0, line
    for name, verdict in found.verdicts.items():
        assert verdict.accepted == plan.messages, name
        if name != "telegram":
            assert verdict.labelled_repeats == verdict.deletions == 0, f"{name}: {line}"
        assert min(verdict.rate_limited, verdict.failed_after) > 0, f"{name} was spared: it proves nothing"
    _assert_sound(found, plan.messages * 3)
    assert found.turns_begun_again >= plan.kills / 2, "the kills missed the answers: the run proves nothing"


async def test_placeholders_on_telegram_never_repeat_an_answer(
    tmp_path: Path, record_property: Callable[[str, object], None], *, soak: bool
) -> None:
    plan = _plan(soak=soak, seed=6)
    found = await run_channel_faults(
        tmp_path, plan, [FakeTelegram()], overrides=("channels.telegram.replies=edit",)
    )
    line = _line(found)
    record_property("placeholders", line)

    verdict = found.verdicts["telegram"]
    assert verdict.broken == {}, f"seed {plan.seed}: {line}"
    assert verdict.labelled_repeats == verdict.deletions == 0, line
    _assert_sound(found, plan.messages)


async def test_plain_replies_on_telegram_may_repeat_and_then_say_so(
    tmp_path: Path, record_property: Callable[[str, object], None], *, soak: bool
) -> None:
    plan = _plan(soak=soak, seed=5, error_after_share=0.15)
    plain = ("channels.telegram.replies=plain", "channels.telegram.previews=false")
    found = await run_channel_faults(tmp_path, plan, [FakeTelegram()], overrides=plain)
    line = _line(found)
    record_property("plain replies", line)

    verdict = found.verdicts["telegram"]
    assert verdict.broken == {}, f"seed {plan.seed}: {line}"
    assert verdict.labelled_repeats > 0, "nothing was repeated: the run proves nothing"
    _assert_sound(found, plan.messages)


def _assert_sound(found: ChannelFaultRun, messages: int) -> None:
    assert found.exit_code == 0
    assert found.integrity == "ok"
    assert len(found.stored) == messages
    for message_id, message in found.stored.items():
        assert message.outcome == "answered", message_id
        assert message.user_records == message.assistant_records == 1, message_id
        assert [state for state, _ in message.outbox] == ["sent"], message_id


def _line(found: ChannelFaultRun) -> str:
    counts = {name: verdict.figures() for name, verdict in found.verdicts.items()}
    return json.dumps(
        {**counts, "turns_begun_again": found.turns_begun_again, "seconds": round(found.seconds, 1)}
    )
