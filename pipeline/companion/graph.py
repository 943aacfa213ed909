"""The companion's graph: safety first, then memory, a mode, the answer, and memory again.

crisis_gate ─┬▶ load_memory ─▶ therapeutic_subgraph ─┬▶ finalize_turn ─┬▶ extract_semantic_facts
             └▶ crisis_response ─▶ crisis_log ───────┘                 └▶ extract_procedural_rules
"""

from __future__ import annotations

from typing import Final

from pipeline.companion.decision import MODES
from pipeline.companion.extractors import extract_procedural_rules, extract_semantic_facts
from pipeline.companion.memory_node import load_memory
from pipeline.companion.mode_nodes import dispatcher, mode_node
from pipeline.companion.safety_nodes import (
    CRISIS_RESPONSE,
    LOAD_MEMORY,
    crisis_gate,
    crisis_log,
    crisis_response,
)
from pipeline.companion.state import (
    ANSWER,
    CHANNELS,
    DIAGNOSTICS,
    HISTORY,
    KEPT,
    MEMORY,
    PROGRESS,
    RESPONSE,
    ROUTING,
    TRANSCRIPT,
    WORKING_MEMORY,
)
from pipeline.companion.turn_end import finalize_turn
from pipeline.graph.definition.spec import (
    Always,
    EdgeSpec,
    FanOut,
    GraphSpec,
    Limits,
    NodeSpec,
    OnSuccess,
    RetryPolicy,
)
from pipeline.runtime.context import RunContext
from pipeline.runtime.workflow_context import CRISIS_LOG

NAME: Final = "companion"
AFTER_ANSWER: Final = frozenset({"extract_semantic_facts", "extract_procedural_rules"})
"""The nodes that run after the answer is delivered."""
_TWICE: Final = RetryPolicy(max_attempts=2, delay_s=0.2)
"""Of every node that reads, writes or calls a model. Each can be repeated: what it changes outside has a
key."""


def companion_graph() -> GraphSpec[RunContext]:
    """The graph, with eight nodes. Its edges after `crisis_gate` and the crisis nodes hold after a failure
    too: a message that could not be checked gets the crisis response."""
    return GraphSpec(
        name=NAME,
        entry="crisis_gate",
        channels=CHANNELS,
        keep=KEPT,
        limits=Limits(max_steps=40),
        nodes={
            "crisis_gate": NodeSpec(
                run=crisis_gate,
                retry=_TWICE,
                goes_to=(CRISIS_RESPONSE, LOAD_MEMORY),
                reads=(PROGRESS,),
                description="judge the message before anything else",
            ),
            CRISIS_RESPONSE: NodeSpec(
                run=crisis_response, retry=_TWICE, writes=(RESPONSE,), description="answer in danger"
            ),
            "crisis_log": NodeSpec(
                run=crisis_log, retry=_TWICE, writes=(CRISIS_LOG,), description="an entry without words"
            ),
            LOAD_MEMORY: NodeSpec(
                run=load_memory,
                retry=_TWICE,
                writes=(WORKING_MEMORY, MEMORY, DIAGNOSTICS),
                nullable=(WORKING_MEMORY, MEMORY, DIAGNOSTICS),
                description="facts, arcs and rules of the owner",
            ),
            "therapeutic_subgraph": NodeSpec(
                subgraph=therapeutic_graph(),
                writes=(ROUTING, PROGRESS, RESPONSE, DIAGNOSTICS),
                nullable=(ROUTING, PROGRESS, RESPONSE, DIAGNOSTICS),
                description="one mode answers",
            ),
            "finalize_turn": NodeSpec(
                run=finalize_turn,
                writes=(ANSWER, HISTORY, TRANSCRIPT, DIAGNOSTICS),
                nullable=(HISTORY, TRANSCRIPT),
                fan_out=FanOut(on_failure="continue_others"),
                description="the answer is delivered here",
            ),
            "extract_semantic_facts": NodeSpec(
                run=extract_semantic_facts, retry=_TWICE, writes=(DIAGNOSTICS,)
            ),
            "extract_procedural_rules": NodeSpec(
                run=extract_procedural_rules, retry=_TWICE, writes=(DIAGNOSTICS,)
            ),
        },
        edges=(
            EdgeSpec(source="crisis_gate", target=CRISIS_RESPONSE, when=Always()),
            EdgeSpec(source=CRISIS_RESPONSE, target="crisis_log", when=Always()),
            EdgeSpec(source="crisis_log", target="finalize_turn", when=Always()),
            EdgeSpec(source=LOAD_MEMORY, target="therapeutic_subgraph", when=Always()),
            EdgeSpec(source="therapeutic_subgraph", target="finalize_turn", when=OnSuccess()),
            EdgeSpec(source="finalize_turn", target="extract_semantic_facts", when=OnSuccess()),
            EdgeSpec(source="finalize_turn", target="extract_procedural_rules", when=OnSuccess()),
        ),
    )


def therapeutic_graph() -> GraphSpec[RunContext]:
    """The subgraph: the dispatcher goes to exactly one of six modes."""
    return GraphSpec(
        name="therapeutic",
        entry="dispatcher",
        channels=CHANNELS,
        nodes={
            "dispatcher": NodeSpec(
                run=dispatcher, retry=_TWICE, goes_to=MODES, writes=(ROUTING, PROGRESS, DIAGNOSTICS)
            ),
            **{
                mode: NodeSpec(run=mode_node(mode), retry=_TWICE, writes=(RESPONSE, PROGRESS, DIAGNOSTICS))
                for mode in MODES
            },
        },
        edges=(),
    )
