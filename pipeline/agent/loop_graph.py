"""The agent's loop as a part of graphs: ask the model, have its calls done, ask again."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.agent.node import LOOP, THOUGHTS, after_agent, agent
from pipeline.agent.prompt import EXCHANGE, LOADED
from pipeline.agent.tool_node import act
from pipeline.graph.definition.spec import END, Channel, EdgeSpec, NodeSpec, OnSuccess, Route, append
from pipeline.runtime.context import RunContext

LOOP_CHANNELS: Mapping[str, Channel] = {EXCHANGE: append, THOUGHTS: append}
"""How the loop's updates combine."""


def loop_nodes() -> dict[str, NodeSpec[RunContext]]:
    """`agent`, where the loop is entered, and `act`. The client of the model retries by itself."""
    return {
        "agent": NodeSpec(run=agent, writes=("agent", EXCHANGE, LOOP, THOUGHTS), event_loop=True),
        "act": NodeSpec(run=act, writes=(EXCHANGE, LOADED, LOOP, THOUGHTS), event_loop=True),
    }


def loop_edges() -> tuple[EdgeSpec, ...]:
    """The ways between them, and to the end."""
    return (
        EdgeSpec(source="agent", when=Route(choose=after_agent, targets=(END, "act", "agent"))),
        EdgeSpec(source="act", target="agent", when=OnSuccess()),
    )
