"""Playing a scenario to its end: run, answer its gates as the script says, resume, compare."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pipeline.domain.clock import ManualClock
from pipeline.graph.definition.frozen_json import thaw
from pipeline.graph.execution.control import RunControl
from pipeline.graph.execution.executor import Executor
from pipeline.graph.run.outcome import Answer, Gate, RunOutcome
from pipeline.graph.run.records import RawRecord, valid_records
from pipeline.graph.run.replay import replay
from pipeline.graph.run.state import Run
from tests.properties.graph_strategies import Scenario
from tests.properties.graph_world import ScriptedDecider, World
from tests.support.graph_log import MemoryRunLog

INPUTS = {"number": 7, "log": ["begin"]}
CALLS = 60
"""More calls than any scenario takes."""


@dataclass
class Player:
    """One scenario."""

    scenario: Scenario
    first_snapshot: int = 10_000

    def executor(self) -> Executor[World, Any]:
        return Executor(
            self.scenario.graph,
            clock=ManualClock(),
            decider=ScriptedDecider(),
            chance=lambda: 0.0,
            first_snapshot=self.first_snapshot,
        )

    async def begin(self, world: World, log: MemoryRunLog, control: RunControl | None = None) -> RunOutcome:
        """The first call only."""
        return await self.executor().run(
            INPUTS, world, run_id="run-1", listener=world.hear, log=log, control=control
        )

    async def resume(self, world: World, log: MemoryRunLog, control: RunControl | None = None) -> RunOutcome:
        """One further call, with the answers that are due."""
        return await self.executor().resume(
            log.records, world, answers=self.due(log.records), listener=world.hear, log=log, control=control
        )

    async def finish(self, outcome: RunOutcome, world: World, log: MemoryRunLog) -> RunOutcome:
        """Calls until the run is over."""
        for _ in range(CALLS):
            if outcome.status != "paused" and outcome.status != "cancelled":
                return outcome
            outcome = await self.resume(world, log)
        raise AssertionError("the run does not come to an end")

    async def play(self, world: World, log: MemoryRunLog) -> RunOutcome:
        """The whole run, from its start."""
        return await self.finish(await self.begin(world, log), world, log)

    async def play_on(self, world: World, log: MemoryRunLog) -> RunOutcome:
        """The rest of a run, from its records; all of it when there are none."""
        if not log.texts:
            return await self.play(world, log)
        return await self.finish(await self.resume(world, log), world, log)

    def run(self, records: Sequence[RawRecord]) -> Run:
        """The run behind records."""
        return replay(self.scenario.graph, records, {}).run

    def due(self, records: Sequence[RawRecord]) -> list[Answer]:
        """The answers that the person gives before this call: when the run was seen to wait for them, or
        when a crash came between the answers to several gates."""
        replayed = replay(self.scenario.graph, records, {})
        last = valid_records(records)[: replayed.kept][-1] if replayed.kept else None
        if last is None:
            return []
        waiting = last.get("do") == "pause" and last.get("reason") == "waiting_for_user"
        if not waiting and not (last.get("do") == "answer" and not self.scenario.one_by_one):
            return []
        gates = replayed.run.open_gates()
        return [answer_to(gate) for gate in (gates[:1] if self.scenario.one_by_one else gates)]


def answer_to(gate: Gate) -> Answer:
    return Answer(gate=gate.id, choice=("yes", "no")[zlib.crc32(gate.id.encode()) % 2], by="somebody")


def essence(outcome: RunOutcome) -> dict[str, Any]:
    """All of an outcome that has to be the same, with words for a comparison that fails."""
    return {
        "status": outcome.status,
        "stop_reason": outcome.stop_reason,
        "quality": outcome.quality,
        "state": thaw(outcome.state),
        "path": outcome.path,
        "error": outcome.error,
        "gates": outcome.gates,
        "retries": outcome.retries,
        "failures": outcome.failures,
        "nodes": {label: replace(node, seconds=0.0) for label, node in outcome.nodes.items()},
    }


def unordered(outcome: RunOutcome) -> dict[str, Any]:
    """The essence, without the order in which parallel branches came."""
    found = essence(outcome)
    found["path"] = sorted(outcome.path)
    found["failures"] = sorted(outcome.failures, key=repr)
    found["state"] = _sorted_lists(found["state"])
    found["nodes"] = {
        label: replace(node, edge_errors=tuple(sorted(node.edge_errors)))
        for label, node in found["nodes"].items()
    }
    return found


def _sorted_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted_lists(item) for key, item in value.items()}
    if isinstance(value, list):
        return sorted((_sorted_lists(item) for item in value), key=repr)
    return value
