"""kill -9 at random moments while eight chats talk: nothing is lost, answered twice or out of order.

Covers: gateway/turns/journal.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.kill_run import KillPlan, run_kills

pytestmark = [pytest.mark.crash, pytest.mark.soak, pytest.mark.timeout(400)]


@pytest.mark.parametrize(
    ("seed", "attempts", "kills", "soak_kills"),
    # After more kills with the product's limit, so many messages run alone that the answers take minutes.
    [(20, 20, 6, 40), (21, None, 4, 8)],
    ids=["patient", "product"],
)
async def test_kills_lose_nothing_and_answer_nothing_twice(
    tmp_path: Path,
    record_property: Callable[[str, object], None],
    *,
    soak: bool,
    seed: int,
    attempts: int | None,
    kills: int,
    soak_kills: int,
) -> None:
    plan = KillPlan(kills=soak_kills if soak else kills, seed=seed, attempts=attempts)
    found = await run_kills(tmp_path, plan)
    line = json.dumps(found.figures())
    record_property("kill run", line)

    assert found.verdict.broken == {}, f"seed {plan.seed}: {line}"
    assert found.verdict.accepted > 4 * plan.kills, "the chats hardly talked: the run proves nothing"
    assert found.turns_begun_again >= plan.kills / 2, "the kills missed the answers: the run proves nothing"
    assert found.duplicates_recognised >= found.duplicates_sent / 2 > 0
    assert found.exit_code == 0

    assert found.integrity == "ok"
    assert len(found.stored) == found.verdict.accepted
    for message_id, message in found.stored.items():
        assert message.outcome == "answered", message_id
        assert message.user_records == 1, message_id
        assert message.assistant_records == 1, message_id
        assert [state for state, _ in message.outbox] == ["sent"], message_id
