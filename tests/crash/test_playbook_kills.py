"""A process that is killed in the middle of a playbook: everything is asked, waited for and said once.

Covers: pipeline/playbooks/compiling.py, pipeline/playbooks/steps.py, pipeline/playbooks/sub_agent.py,
gateway/interactions/question_expiry.py.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from gateway.turns.run_codec import runs_of
from pipeline.domain.clock import ManualClock
from pipeline.playbooks.reading import read_playbook
from pipeline.playbooks.run_record import playbook_record
from tests.support.forked_children import run_child
from tests.support.harness import open_gateway
from tests.support.playbook_child import DAY, ONBOARDING, REPLIES, onboarding_model, to_the_end

pytestmark = pytest.mark.crash

_CRASHED = 137
_ROOT = Path(__file__).parents[2]
_SOURCE = (_ROOT / "examples/workflows/onboarding.playbook.json").read_text("utf-8")


async def _die(folder: Path, crash_at: str) -> None:
    code = await run_child("tests.support.playbook_child", str(folder), crash_at, log=folder / "child.log")
    assert code in (_CRASHED, -signal.SIGKILL)


@pytest.mark.parametrize(
    "crash_at",
    [
        "turn-commit-after:1",  # the question is open
        "turn-commit-before:2",  # the wait is not recorded yet
        "turn-commit-after:2",  # it waits
        "turn-commit-before:3",  # the wait is over and was handed over
        "turn-commit-before:5",  # the second wait is over
    ],
)
async def test_a_killed_playbook_continues_and_says_everything_once(tmp_path: Path, crash_at: str) -> None:
    await _die(tmp_path, crash_at)
    clock = ManualClock()
    await clock.advance(4 * DAY)
    async with open_gateway(tmp_path, ONBOARDING, model=onboarding_model(), clock=clock) as harness:
        await to_the_end(harness, clock)
        said = [record.body["text"] for record in await harness.records("assistant")]
        ((_, records),) = runs_of(await harness.records()).items()
    # A wait that came to its end before it was shown leads to one reply in place of two.
    assert "\n\n".join(said) == "\n\n".join(REPLIES)
    record = playbook_record(read_playbook(_SOURCE), records)
    assert record.status == "completed"
    done = [one.node for one in record.checkpoints]
    assert len(done) == len(set(done))
