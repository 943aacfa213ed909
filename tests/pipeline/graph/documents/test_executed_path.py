"""The drawn path is the one that the executor reports: documents with a program's own functions, run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.graph.definition.decisions import Node, NodeResult, State
from pipeline.graph.definition.spec import END
from pipeline.graph.documents.library import NodeLibrary
from pipeline.graph.documents.mermaid import mermaid
from pipeline.graph.documents.reader import read_graph
from pipeline.graph.execution.executor import Executor
from pipeline.graph.run.events import EdgeTraversed, GraphEvent

EXAMPLES = Path(__file__).parent / "graphs"


Updates = Mapping[str, Sequence[Mapping[str, Any]]]
"""What each node writes, visit by visit."""


def writing(updates: Sequence[Mapping[str, Any]]) -> Node[None]:
    left = list(updates)

    async def node(_state: State, _context: None) -> NodeResult:
        return NodeResult(update=left.pop(0) if left else {})

    return node


def drawn(picture: str) -> Counter[tuple[str, str]]:
    """How often each arrow between two nodes was taken, as the picture says; entries left out."""
    taken: Counter[tuple[str, str]] = Counter()
    for source, numbers, target in re.findall(r'    n_(\w+) -.?->\|"(\d[\d, ]*) · [^"]*"\| n_(\w+)', picture):
        taken[source, target] += numbers.count(",") + 1
    return taken


async def drawn_path(name: str, updates: Updates, mode: str) -> None:
    """Run the example with nodes that write `updates`, and compare its picture with its events."""
    names = re.findall(r'"run": "(\w+)"|"id": "(\w+)"', (EXAMPLES / name).read_text("utf-8"))
    nodes = {node: writing(updates.get(node, ())) for pair in names for node in pair if node}
    library = NodeLibrary[None](nodes=nodes, routes={"choose_mode": lambda _state: mode})
    graph = read_graph((EXAMPLES / name).read_text("utf-8"), library)
    events: list[EdgeTraversed] = []

    async def listen(event: GraphEvent) -> None:
        if isinstance(event, EdgeTraversed):
            events.append(event)

    outcome = await Executor(graph).run({"message": "hi"}, None, listener=listen)
    assert outcome.error is None
    ended = [END] if outcome.status == "completed" else []
    picture = mermaid(graph, path=[*outcome.path, *ended], open_gates=[gate.node for gate in outcome.gates])
    reported = Counter((event.source.replace(".", "Z"), event.target.replace(".", "Z")) for event in events)
    assert drawn(picture) == reported


async def test_a_run_through_a_subgraph_and_a_fan_out() -> None:
    updates: Updates = {
        "crisis_gate": [{"crisis": False}],
        "reflect": [{"reply": "hm"}],
        "extract_facts": [{"facts": {}}],
        "extract_rules": [{"log": ["x"]}],
    }
    await drawn_path("companion.json", updates, "reflect")


async def test_a_run_along_the_branch_for_emergencies() -> None:
    await drawn_path("companion.json", {"crisis_gate": [{"crisis": True}]}, "listen")


async def test_a_run_that_loops_and_then_takes_the_fallback() -> None:
    searched = [{"sources": ["s"], "rounds": number, "confidence": 0.1} for number in (1, 2, 3)]
    await drawn_path("research.json", {"plan": [{"questions": ["q"]}], "search": searched}, "")


async def test_a_run_that_waits_for_a_person() -> None:
    searched = [{"category": "bill", "confidence": 0.1}]
    await drawn_path("support.json", {"classify": searched}, "")
