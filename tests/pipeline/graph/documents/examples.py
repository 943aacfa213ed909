"""A document with every field, the graph that it describes, and the library for its names."""

from __future__ import annotations

from typing import Any

from pipeline.domain.errors import ModelError
from pipeline.graph.definition.decisions import NodeResult, State
from pipeline.graph.definition.reducers import append, custom, merge
from pipeline.graph.definition.retry import RetryPolicy
from pipeline.graph.definition.spec import (
    END,
    EdgeSpec,
    FanOut,
    Goal,
    GraphSpec,
    Kept,
    Limits,
    LlmDecide,
    NodeSpec,
    OnFailure,
    OnSuccess,
    Route,
    When,
)
from pipeline.graph.documents.library import NodeLibrary


class Flaky(Exception):
    """A kind of error that only the test's library knows."""


async def work(_state: State, _context: object) -> NodeResult:
    return NodeResult()


async def other_work(_state: State, _context: object) -> NodeResult:
    return NodeResult()


def choose(_state: State) -> str:
    return END


def urgent(_state: State) -> bool:
    return True


INNER = GraphSpec[object](name="inner", entry="q", nodes={"q": work}, edges=())
LONGEST = custom("longest", lambda one, other: max(one, other, key=len))
LIBRARY = NodeLibrary[object](
    nodes={"work": work, "other": other_work},
    routes={"choose": choose},
    conditions={"urgent": urgent},
    subgraphs={"inner": INNER},
    channels={"longest": LONGEST},
    errors={"Flaky": Flaky},
)

FULL: dict[str, Any] = {
    "name": "full",
    "version": "7",
    "goal": {"description": "help", "success_criteria": ["helped"], "constraints": ["kindly"]},
    "entry": "a",
    "entry_points": {"again": "b"},
    "terminals": ["e"],
    "pause_nodes": ["b"],
    "keep": {"order": "session", "name": {"lives": "person", "was": ["customer", "buyer"]}},
    "conversation": "isolated",
    "limits": {
        "max_steps": 9,
        "max_consecutive": 3,
        "max_seconds": 4.5,
        "decide_seconds": 2.0,
        "outer_only": True,
    },
    "fan_out": {
        "on_failure": "wait_all",
        "on_conflict": "first_wins",
        "branch_timeout_s": None,
        "join": "none",
        "after_gates": "in_turn",
    },
    "channels": {"log": "append", "facts": "merge", "best": "longest"},
    "nodes": [
        {
            "id": "a",
            "run": "work",
            "description": "the first",
            "shown": "The first step is at work",
            "reads": ["question"],
            "writes": ["log", "note"],
            "nullable": ["note"],
            "event_loop": True,
            "max_visits": 2,
            "timeout_s": 1.5,
            "reviser": "b",
            "goes_to": ["end"],
            "retry": {
                "max_attempts": 5,
                "delay_s": 0.5,
                "factor": 3.0,
                "max_delay_s": 9.0,
                "jitter": 0.2,
                "retry_on": ["Flaky", "ModelError"],
            },
            "fan_out": {"on_failure": "continue_others"},
        },
        {"id": "b", "run": "other", "reads": []},
        {"id": "c", "subgraph": "inner"},
        {"id": "d", "subgraph": {"name": "own", "entry": "x", "nodes": [{"id": "x", "run": "work"}]}},
        {"id": "e", "run": "work"},
    ],
    "edges": [
        {"source": "a", "target": "b", "when": {"if": "confidence >= 0.8"}},
        {"source": "a", "target": "c", "when": {"call": "urgent"}, "mapping": {"q": "question"}},
        {"source": "a", "target": "d", "when": {"llm_decide": "it is late"}, "fallback": True},
        {"source": "a", "target": "e", "when": "on_failure"},
        {"source": "b", "when": {"route": "choose", "targets": ["c", "e"]}},
        {"source": "c", "target": "e", "when": "on_success"},
        {"source": "d", "target": "e"},
    ],
}
FULL_GRAPH = GraphSpec[object](
    name="full",
    version="7",
    goal=Goal(description="help", success_criteria=("helped",), constraints=("kindly",)),
    entry="a",
    entry_points={"again": "b"},
    terminals=("e",),
    pause_nodes=("b",),
    keep={"order": Kept(lives="session"), "name": Kept(lives="person", was=("customer", "buyer"))},
    conversation="isolated",
    limits=Limits(max_steps=9, max_consecutive=3, max_seconds=4.5, decide_seconds=2.0, outer_only=True),
    fan_out=FanOut(
        on_failure="wait_all",
        on_conflict="first_wins",
        branch_timeout_s=None,
        join="none",
        after_gates="in_turn",
    ),
    channels={"log": append, "facts": merge, "best": LONGEST},
    nodes={
        "a": NodeSpec(
            run=work,
            description="the first",
            shown="The first step is at work",
            reads=("question",),
            writes=("log", "note"),
            nullable=("note",),
            event_loop=True,
            max_visits=2,
            timeout_s=1.5,
            reviser="b",
            goes_to=(END,),
            retry=RetryPolicy(
                max_attempts=5,
                delay_s=0.5,
                factor=3.0,
                max_delay_s=9.0,
                jitter=0.2,
                retry_on=(Flaky, ModelError),
            ),
            fan_out=FanOut(on_failure="continue_others"),
        ),
        "b": NodeSpec(run=other_work, reads=()),
        "c": NodeSpec(subgraph=INNER),
        "d": NodeSpec(subgraph=GraphSpec[object](name="own", entry="x", nodes={"x": work}, edges=())),
        "e": NodeSpec(run=work),
    },
    edges=(
        EdgeSpec(source="a", target="b", when=When("confidence >= 0.8")),
        EdgeSpec(source="a", target="c", when=When(urgent), mapping={"q": "question"}),
        EdgeSpec(source="a", target="d", when=LlmDecide("it is late"), fallback=True),
        EdgeSpec(source="a", target="e", when=OnFailure()),
        EdgeSpec(source="b", when=Route(choose, ("c", "e"))),
        EdgeSpec(source="c", target="e", when=OnSuccess()),
        EdgeSpec(source="d", target="e"),
    ),
)
