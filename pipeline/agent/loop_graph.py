"""The agent's loop as nodes and edges for a graph: ask the model, execute its calls, ask again."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.agent.model_messages import EXCHANGE, LOADED
from pipeline.agent.node import LOOP, THOUGHTS, after_agent, agent
from pipeline.agent.tool_node import act
from pipeline.graph.definition.spec import END, Channel, EdgeSpec, NodeSpec, OnSuccess, Route, append
from pipeline.runtime.context import RunContext

LOOP_CHANNELS: Mapping[str, Channel] = {EXCHANGE: append, THOUGHTS: append}
"""How updates of the loop's state keys combine."""


def loop_nodes() -> dict[str, NodeSpec[RunContext]]:
    """`agent`, the loop's entry, and `act`. They have no retry policy: the model's client retries."""
    return {
        "agent": NodeSpec(run=agent, writes=("agent", EXCHANGE, LOOP, THOUGHTS), event_loop=True),
        "act": NodeSpec(run=act, writes=(EXCHANGE, LOADED, LOOP, THOUGHTS), event_loop=True),
    }


def loop_edges() -> tuple[EdgeSpec, ...]:
    """The edges between the loop's nodes, and to the end of the graph."""
    return (
        EdgeSpec(source="agent", when=Route(choose=after_agent, targets=(END, "act", "agent"))),
        EdgeSpec(source="act", target="agent", when=OnSuccess()),
    )
