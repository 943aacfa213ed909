"""A long graph for kill runs: a loop, parallel branches, a subgraph, retries and an effect in every round.

Its nodes record in ledgers what they finished, so that a judge outside can compare that with the log.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pipeline.domain.clock import Clock
from pipeline.graph.definition.decisions import Continue, Next, Node, NodeResult, State
from pipeline.graph.definition.spec import (
    END,
    EdgeSpec,
    GraphSpec,
    Limits,
    NodeSpec,
    RetryPolicy,
    When,
    append,
    merge,
)
from pipeline.graph.execution.step import current_step

ROUNDS = 6
_LOOPS = 4
_WORK_S = 0.001


class Ledger:
    """A file of lines that only grows. A line that a kill cut at the end of a page counts as not written."""

    def __init__(self, path: Path) -> None:
        if path.exists():
            os.truncate(path, path.read_bytes().rfind(b"\n") + 1)
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(self, *words: object) -> None:
        """Add a line."""
        os.write(self._file, (" ".join(map(str, words)) + "\n").encode())


def whole_lines(path: Path) -> list[str]:
    """The lines of a ledger's file that were written to their end; none where there is no file."""
    return path.read_text().split("\n")[:-1] if path.exists() else []


class Workplace:
    """The context of the nodes."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self.clock = clock
        self.nodes = Ledger(folder / "nodes")
        self.effects = Ledger(folder / "effects")

    async def work(self) -> None:
        """Wait a moment, and record that the node is done."""
        step = current_step()
        await self.clock.sleep(_WORK_S)
        self.nodes.note(step.run_id, step.frame.id or "-", step.frame.node, step.execution)


def killed_graph() -> GraphSpec[Workplace]:
    """The graph; a run of it makes about 100 steps."""
    inner: GraphSpec[Workplace] = GraphSpec(
        name="inner",
        entry="s1",
        nodes={"s1": _counts("s1"), "s2": _counts("s2")},
        edges=(EdgeSpec(source="s1", target="s2"),),
    )
    return GraphSpec(
        name="killed",
        entry="loop",
        nodes={
            "loop": _loop,
            "part": _counts("part"),
            "a": _counts("a"),
            "a2": _counts("a2"),
            "b": _counts("b"),
            "c": NodeSpec(subgraph=inner),
            "meet": _counts("meet"),
            "flaky": NodeSpec(run=_flaky, retry=RetryPolicy(max_attempts=3, delay_s=0.001, factor=1.0)),
            "pay": _pay,
        },
        edges=(
            EdgeSpec(source="loop", target="part"),
            EdgeSpec(source="part", target="a"),
            EdgeSpec(source="part", target="b"),
            EdgeSpec(source="part", target="c"),
            EdgeSpec(source="a", target="a2"),
            EdgeSpec(source="a2", target="meet"),
            EdgeSpec(source="b", target="meet"),
            EdgeSpec(source="c", target="meet"),
            EdgeSpec(source="meet", target="flaky"),
            EdgeSpec(source="flaky", target="pay"),
            EdgeSpec(source="pay", target="loop", when=When(f"rounds < {ROUNDS}")),
            EdgeSpec(source="pay", target=END),
        ),
        channels={"tally": merge, "paid": append},
        limits=Limits(max_steps=1_000),
    )


def _counts(name: str) -> Node[Workplace]:
    async def node(state: State, place: Workplace) -> NodeResult:
        await place.work()
        return NodeResult(update={"tally": {name: state.get("tally", {}).get(name, 0) + 1}})

    return node


async def _loop(state: State, place: Workplace) -> NodeResult:
    await place.work()
    turns = state.get("turns", 0) + 1
    return NodeResult(update={"turns": turns}, decision=Continue() if turns % _LOOPS else Next())


async def _flaky(state: State, place: Workplace) -> NodeResult:
    step = current_step()
    if step.attempt <= step.execution % 3:
        return NodeResult(error="not this time")
    await place.work()
    return NodeResult(update={"flaked": state.get("flaked", 0) + 1})


async def _pay(state: State, place: Workplace) -> NodeResult:
    step = current_step()
    rounds = state.get("rounds", 0) + 1

    async def pay() -> dict[str, Any]:
        await place.clock.sleep(_WORK_S)
        place.effects.note(step.run_id, step.frame.id or "-", step.frame.node, step.execution)
        return {"receipt": rounds}

    receipt = await step.effect("payment", pay, repeatable=True)
    await place.work()
    return NodeResult(update={"rounds": rounds, "paid": [receipt["receipt"]]})
