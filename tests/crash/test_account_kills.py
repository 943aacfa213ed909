"""kill -9 while people talk on two accounts of Telegram, on Slack and on the page, with three agents. The
agent on Slack is a document of several steps.

Covers: gateway/config/channels.py, gateway/app/platforms.py, gateway/app/agents.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.account_kills import run_account_kills
from tests.support.channel_faults import ChannelFaultPlan

pytestmark = [pytest.mark.crash, pytest.mark.soak, pytest.mark.timeout(600)]


async def test_no_message_is_lost_or_answered_twice_or_by_another_accounts_agent(
    tmp_path: Path, record_property: Callable[[str, object], None], *, soak: bool
) -> None:
    plan = (
        ChannelFaultPlan(messages=160, chats=6, kills=20, seed=14)
        if soak
        else ChannelFaultPlan(messages=24, chats=3, kills=3, seed=14)
    )
    found = await run_account_kills(tmp_path, plan)
    line = json.dumps(found.figures())
    record_property("account kill run", line)

    assert {name: verdict.broken for name, verdict in found.posted.items()} == {
        "telegram": {},
        "telegram.2": {},
        "slack": {},
    }, line
    assert found.page.broken == {}, line
    for name, verdict in found.posted.items():
        assert verdict.accepted == plan.messages, name
    assert found.page.accepted > plan.kills, line
    assert found.turns_begun_again >= plan.kills / 2, "the kills missed the answers: the run proves nothing"
    assert {account: set(names) for account, names in found.agents.items()} == {
        "telegram:main": {"default"},
        "telegram:shop": {"shop"},
        "slack:main": {"sales"},
        "web:local": {"default"},
    }, line
    # A short run may miss the quarter of a second between the first step and the last.
    assert not soak or found.document_runs_resumed > plan.kills / 2, (
        "the kills missed the document's steps: the run proves nothing"
    )
    assert (found.exit_code, found.integrity) == (0, "ok")
    for message_id, message in found.stored.items():
        assert message.outcome == "answered", message_id
        assert message.assistant_records == 1, message_id
