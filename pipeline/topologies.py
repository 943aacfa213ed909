"""The wiring of all shipped graphs.

conversation:   intake ──▶ agent ──▶ (done, blocked: end │ tool calls: act │ else: agent)
                  │ │      ▲ ▲  └──▶ act ──▶ agent
                  │ └▶ compact         (long conversation: summarise its beginning)
                  ├──▶ declined        (too fast or spam, if the settings refuse these)
                  └──▶ set_aside       (spoken, low confidence, and not confirmed)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pipeline.agent.loop_graph import LOOP_CHANNELS, loop_edges, loop_nodes
from pipeline.agent.model_messages import fixed_tokens
from pipeline.graph.definition.spec import EdgeSpec, GraphSpec, NodeSpec, OnSuccess, Route
from pipeline.history.compaction import Compaction
from pipeline.history.view import HISTORY
from pipeline.intake.confirmation import after_intake, set_aside
from pipeline.intake.node import intake_node
from pipeline.intake.silent_finish import declined
from pipeline.runtime.context import RunContext


def shipped_graphs() -> Mapping[str, Callable[[], GraphSpec[RunContext]]]:
    """Every graph that comes with Parlour, by name."""
    return {"conversation": conversation_graph}


def conversation_graph() -> GraphSpec[RunContext]:
    """The graph of a user's conversation (seed 0: AgentGraph)."""
    return GraphSpec(
        name="conversation",
        entry="intake",
        channels=LOOP_CHANNELS,
        nodes={
            "intake": NodeSpec(run=intake_node(fixed_tokens), reads=(), writes=("intake",)),
            "set_aside": NodeSpec(run=set_aside, reads=("answers",), writes=("agent",)),
            "declined": NodeSpec(run=declined, reads=("intake",), writes=("agent",)),
            "compact": NodeSpec(run=Compaction(fixed_tokens), writes=(HISTORY,), nullable=(HISTORY,)),
            **loop_nodes(),
        },
        edges=(
            EdgeSpec(
                source="intake",
                when=Route(choose=after_intake, targets=("agent", "compact", "declined", "set_aside")),
            ),
            *loop_edges(),
            EdgeSpec(source="compact", target="agent", when=OnSuccess()),
        ),
    )
