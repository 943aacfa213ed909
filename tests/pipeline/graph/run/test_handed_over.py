"""Records are never changed after they were handed over, so a log may write them down later."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pipeline.domain.clock import ManualClock
from pipeline.graph.definition.decisions import NodeResult, State
from pipeline.graph.definition.spec import append
from pipeline.graph.execution.executor import Executor
from pipeline.graph.execution.step import current_step
from tests.pipeline.graph.running import Flaky, graph


class LateLog:
    """Keeps the records themselves, and what each one said when it came."""

    def __init__(self) -> None:
        self.records: list[Mapping[str, Any]] = []
        self.said: list[str] = []

    def append(self, record: Mapping[str, Any]) -> None:
        self.records.append(record)
        self.said.append(_text(record))

    async def barrier(self) -> None:
        return

    async def finish(self, records: Sequence[Mapping[str, Any]]) -> None:
        for record in records:
            self.append(record)


async def test_a_record_says_at_the_end_what_it_said_at_first() -> None:
    given: list[dict[str, Any]] = [{"n": 1}]

    async def pays(_state: State, _context: None) -> NodeResult:
        step = current_step()
        step.keep({"given": given})
        for key in ("one", "two"):
            await step.effect(key, answers)
        given[0]["n"] += 1
        return NodeResult(update={"given": given, "said": ["paid"]})

    async def answers() -> dict[str, Any]:
        return given[0]

    async def says(_state: State, _context: None) -> NodeResult:
        given.append({"n": 0})
        return NodeResult(update={"said": ["so"]})

    log = LateLog()
    built = graph(
        {"pays": pays, "a": says, "b": Flaky(0), "meets": says},
        *("pays>a", "pays>b", "a>meets", "b>meets"),
        channels={"said": append},
    )
    outcome = await Executor(built, clock=ManualClock(), first_snapshot=1).run({}, None, log=log)
    outcome.raise_for_failure()
    kinds = [record["do"] for record in log.records]
    assert kinds[:2] == ["effect", "snapshot"]
    assert "effect" in kinds[2:], "the visit continues after its snapshot"
    assert kinds.count("snapshot") > 2
    assert [_text(record) for record in log.records] == log.said


def _text(record: Mapping[str, Any]) -> str:
    return json.dumps(record, default=_plain)


def _plain(value: object) -> object:
    if isinstance(value, MappingProxyType):
        return dict(value)
    raise TypeError(f"a record holds {type(value).__name__}, which is not JSON")
