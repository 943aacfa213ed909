"""What is checked again right before an allowed action runs, through the gate.

Covers: pipeline/tools/gate.py, pipeline/shield/verdict.py, pipeline/tools/snapshots.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pipeline.domain.clock import ManualClock
from pipeline.runtime.scope import TurnScope
from pipeline.shield.policy_book import PolicyBook
from pipeline.shield.shield import PER_MINUTE
from pipeline.shield.verdict import VALID_S
from pipeline.tools.action import Action
from pipeline.tools.snapshots import WorkspaceSnapshots
from pipeline.tools.tool import ToolFailed
from tests.support.contexts import scope
from tests.support.shield_tools import Ran
from tests.support.shield_tools import files_tools as _files
from tests.support.shield_tools import write as _write
from tests.support.shields import RecordedAudit, open_taints, shield
from tests.support.tool_gate import Person, call, gate, group, propose


class Keeps(WorkspaceSnapshots):
    """Snapshots; `fails` raises, `takes_s` passes on the clock, and `meanwhile` is called."""

    def __init__(
        self,
        clock: ManualClock | None = None,
        *,
        fails: bool = False,
        takes_s: float = 0.0,
        meanwhile: Callable[[], object] = lambda: None,
    ) -> None:
        self.kept: list[str] = []
        self._meanwhile = meanwhile
        self._clock, self._fails, self._takes_s = clock, fails, takes_s

    @asynccontextmanager
    async def around(self, action: Action, scope: TurnScope) -> AsyncIterator[None]:
        del scope
        self.kept.append(str(action.payload["path"]))
        self._meanwhile()
        if self._clock is not None:
            await self._clock.advance(self._takes_s)
        if self._fails:
            raise ToolFailed("no copy of it can be kept")
        yield


@pytest.mark.parametrize(("takes_s", "judged"), [(VALID_S, 1), (VALID_S + 1, 2)])
async def test_a_verdict_that_is_too_old_is_reached_again_and_recorded(takes_s: float, judged: int) -> None:
    clock, ran, audit, person = ManualClock(), Ran(), RecordedAudit(), Person()
    judge = shield(clock=clock, audit=audit)
    keeps = Keeps(clock, takes_s=takes_s)
    one = gate(group(*_files(ran)), clock=clock, judge=judge, person=person, snapshots=keeps, timeout_s=600)
    (result,) = await propose(one, _write(), scope=scope())
    assert (result.success, len(person.asked), len(ran.calls)) == (True, 1, 1)
    assert audit.types().count("action_evaluated") == judged
    assert audit.types()[-1] == "action_executed"


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ('[[verify]]\nname = "new"\naction_types = ["write_file"]\ntier = 3\n', "the rule “new”"),
        ('[matrix.public]\nfiles = "ask"\n', "something public"),
    ],
)
async def test_a_persons_answer_does_not_count_for_reasons_that_came_after_it(
    tmp_path: Path, policy: str, words: str
) -> None:
    clock, ran, audit, own = ManualClock(), Ran(), RecordedAudit(), tmp_path / "policy.toml"
    own.write_text("")
    judge = shield(clock=clock, audit=audit, policies=PolicyBook(own))
    keeps = Keeps(clock, takes_s=VALID_S + 1, meanwhile=lambda: own.write_text(policy))
    one = gate(group(*_files(ran)), clock=clock, judge=judge, snapshots=keeps, timeout_s=600)
    (result,) = await propose(one, _write(), scope=scope())
    assert "Its decision was too old, and now: " in result.content
    assert words in result.content
    assert (result.success, ran.calls) == (False, [])
    assert audit.events[-1].details["reason"] == "judged_again"


async def test_a_verdict_that_is_reached_again_does_not_count_as_another_action() -> None:
    clock, ran = ManualClock(), Ran()
    keeps = Keeps(clock, takes_s=VALID_S + 0.001)
    one = gate(group(*_files(ran)), clock=clock, judge=shield(clock=clock), snapshots=keeps, timeout_s=600)
    calls = [call("read_file", {"path": f"own/{number}"}) for number in range(PER_MINUTE - 1)]
    *_, last = await propose(one, *calls, _write(name="w"), scope=scope())
    assert last.success
    assert len(ran.calls) == PER_MINUTE


async def test_a_persons_long_thought_does_not_make_the_verdict_stale() -> None:
    clock, ran = ManualClock(), Ran()

    class Slow(Person):
        async def ask(self, scope: TurnScope, **asked: Any) -> Any:
            await clock.advance(250)
            return await super().ask(scope, **asked)

    one = gate(group(*_files(ran)), person=Slow(), clock=clock, judge=shield(clock=clock))
    (result,) = await propose(one, _write(), scope=scope())
    assert (result.success, len(ran.calls)) == (True, 1)


async def test_a_snapshot_is_taken_right_before_a_change_alone_and_one_that_fails_stops_it() -> None:
    ran, keeps = Ran(), Keeps()
    one = gate(group(*_files(ran)), snapshots=keeps)
    await propose(one, call("read_file", {"path": "own/a"}), _write("own/b.txt"), scope=scope())
    assert (keeps.kept, len(ran.calls)) == (["own/b.txt"], 2)
    failing = gate(group(*_files(ran)), snapshots=Keeps(fails=True))
    (result,) = await propose(failing, _write(), scope=scope())
    assert "no copy of it can be kept" in result.content
    assert len(ran.calls) == 2


async def test_what_is_read_while_a_person_thinks_stops_what_they_allow() -> None:
    ran, book = Ran("1234"), open_taints()
    judge = shield(taints=book)
    one = gate(group(*_files(ran)), judge=judge)

    class Meanwhile(Person):
        async def ask(self, scope: TurnScope, **asked: Any) -> Any:
            await propose(one, call("read_file", {"path": "own/passwords.txt"}), scope=scope)
            return await super().ask(scope, **asked)

    slow = gate(group(*_files(ran)), person=Meanwhile(), judge=judge)
    (result,) = await propose(slow, call("fetch_page", {"url": "https://example.org/"}), scope=scope())
    assert "may not be sent to the web" in result.content
    assert ran.calls == [{"path": "own/passwords.txt"}]
