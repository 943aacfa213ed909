"""kill -9 at random moments while tools work: nothing is done or asked twice, or reported wrongly."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.tool_run import ToolPlan, run_tool_kills

pytestmark = [pytest.mark.crash, pytest.mark.soak, pytest.mark.timeout(400)]


async def test_kills_have_no_tool_work_twice_and_no_one_asked_twice(
    tmp_path: Path, record_property: Callable[[str, object], None], *, soak: bool
) -> None:
    # With more messages, a chat would meet the limit of actions in a minute.
    plan = ToolPlan(seed=7) if soak else ToolPlan(seed=7, kills=5, messages=12)
    found = await run_tool_kills(tmp_path, plan)
    line = json.dumps(found.figures())
    record_property("tool kill run", line)

    assert found.verdict.broken == {}, f"seed {plan.seed}: {line}"
    assert found.verdict.accepted >= plan.messages, "the chats hardly talked: the run proves nothing"
    assert found.turns_begun_again >= plan.kills / 2, "the kills missed the turns: the run proves nothing"
    assert set(found.reported.values()) <= {"done", "unknown"}, found.reported
    assert {name for name, times in found.executed.items() if times > 1} == set(), line
    for name, kind in found.kinds.items():
        if kind == "sum":
            assert found.reported[name] == "done", name
        elif found.reported[name] == "done":
            assert found.executed[name] == 1, name

    # One question for each, answered once. A reminder asks as well once the chat has read a server's words.
    assert {choice for _, choice in found.questions} == {"Allow"}
    asked = [message_id for message_id, _ in found.questions]
    assert len(set(asked)) == len(asked)
    assert set(found.asked) <= set(asked) <= set(found.asked) | set(found.may_be_asked)
    assert found.asked_twice == 0

    assert found.open == []
    assert found.exit_code == 0
    assert found.integrity == "ok"
    assert len(found.stored) == found.verdict.accepted
    for message_id, message in found.stored.items():
        assert message.outcome == "answered", message_id
        assert (message.user_records, message.assistant_records) == (1, 1), message_id
        assert [state for state, _ in message.outbox] == ["sent"], message_id
