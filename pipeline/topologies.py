"""The wiring of all shipped graphs.

conversation:   intake ──▶ agent ──▶ (done, blocked: end │ tool calls: act │ else: agent)
                  │ │      ▲ ▲  └──▶ act ──▶ agent
                  │ └▶ compact         (long conversation: summarise its beginning)
                  ├──▶ declined        (too fast or spam, if the settings refuse these)
                  └──▶ set_aside       (spoken, low confidence, and not confirmed)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

from pipeline.agent.loop_graph import LOOP_CHANNELS, loop_edges, loop_nodes
from pipeline.graph.definition.spec import GraphSpec
from pipeline.nodes.intake_steps import conversation_steps, intake_edges
from pipeline.runtime.context import RunContext

ALIASES: Final[Mapping[str, str]] = {
    "agent": "conversation",
    "general": "conversation",
    "overlord": "heartbeat",
}
"""Other names of shipped graphs. One whose graph does not exist is no name."""
NO_SUBGRAPHS: Final = frozenset({"companion", "heartbeat"})
"""The shipped graphs that work only as the graph of an agent, and not as a node of another graph."""


def shipped_graphs() -> Mapping[str, Callable[[], GraphSpec[RunContext]]]:
    """Every graph that comes with Parlour, by name."""
    return {
        "conversation": conversation_graph,
        "sub_agent": sub_agent_graph,
        "companion": companion_graph,
        "heartbeat": heartbeat_graph,
    }


@cache  # agents and sub-agents share it: a graph is checked and signed once
def conversation_graph() -> GraphSpec[RunContext]:
    """The graph of a user's conversation."""
    into, *rest = intake_edges()
    return GraphSpec(
        name="conversation",
        entry="intake",
        channels=LOOP_CHANNELS,
        nodes={**conversation_steps(), **loop_nodes()},
        # In this order since the first version: the order is a part of the signature of recorded runs.
        edges=(into, *loop_edges(), *rest),
    )


@cache  # as above
def sub_agent_graph() -> GraphSpec[RunContext]:
    """The graph of a sub-agent: the conversation graph's loop, without its other nodes."""
    return GraphSpec(
        name="sub_agent", entry="agent", channels=LOOP_CHANNELS, nodes=loop_nodes(), edges=loop_edges()
    )


def companion_graph() -> GraphSpec[RunContext]:
    """The graph of a companion, drawn in its module."""
    # Imported here: a gateway without a companion does not need its texts and patterns.
    from pipeline.companion import graph  # noqa: PLC0415 - see above

    return graph.companion_graph()


def heartbeat_graph() -> GraphSpec[RunContext]:
    """The graph of a heartbeat, drawn in its module."""
    # Imported here: most gateways have no heartbeat.
    from pipeline.heartbeat import graph  # noqa: PLC0415 - see above

    return graph.heartbeat_graph()
