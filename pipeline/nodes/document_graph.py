"""Make a graph that can run from a graph document: the intake first, then the steps of the document.

document:   intake ──▶ the document's entry ──▶ …
              └──▶ compact, declined, set_aside: as in the conversation graph
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pipeline.agent.loop_graph import LOOP_CHANNELS
from pipeline.agent.task import TASK_CHANNELS
from pipeline.agent.task_texts import DIALOGUE, INTERNAL
from pipeline.domain.errors import GraphError
from pipeline.graph.definition.spec import Channel, GraphSpec
from pipeline.graph.definition.structure import GraphStructure
from pipeline.graph.documents.library import NodeLibrary
from pipeline.graph.documents.reader import read_graph
from pipeline.nodes.intake_steps import ENDS, intake_edges, intake_nodes
from pipeline.nodes.kinds import NODE_KINDS, Kind
from pipeline.runtime.context import RunContext

CHANNELS: Final[Mapping[str, Channel]] = {**LOOP_CHANNELS, **TASK_CHANNELS}
"""How updates of the keys that the kinds of nodes write combine."""


def document_graph(
    source: str | Mapping[str, Any],
    *,
    subgraphs: Mapping[str, GraphStructure[RunContext]] | None = None,
    kinds: Mapping[str, Kind] | None = None,
) -> GraphSpec[RunContext]:
    """The graph of a JSON text or of the mapping that was parsed from one. The person's message is in the
    state under `message`.

    `subgraphs` are graphs that it may name, `kinds` further kinds of nodes. Raises GraphError with all its
    mistakes, one per line.
    """
    library = NodeLibrary[RunContext](kinds={**(kinds or {}), **NODE_KINDS}, subgraphs=subgraphs or {})
    steps, before = read_graph(source, library), intake_nodes()
    taken = [name for name in steps.nodes if name in before]
    if taken:
        names = ", ".join(taken)
        raise GraphError(f"graph {steps.name}: {names}: every graph of a document has a node of that name")
    owned = sorted((INTERNAL - {DIALOGUE}) & steps.keep.keys())
    if owned:
        raise GraphError(
            f"graph {steps.name}: keep {', '.join(owned)}: the pipeline's own keys cannot be kept"
        )
    if DIALOGUE in steps.keep and steps.conversation == "isolated":
        raise GraphError(
            f'graph {steps.name}: keep {DIALOGUE}: with conversation "isolated" its steps share none; '
            'use "continuous", or remove the key'
        )
    return GraphSpec(
        name=steps.name,
        version=steps.version,
        goal=steps.goal,
        conversation=steps.conversation,
        limits=steps.limits,
        fan_out=steps.fan_out,
        entry="intake",
        entry_points=steps.entry_points,
        terminals=(*steps.terminals, *ENDS) if steps.terminals else (),
        pause_nodes=steps.pause_nodes,
        channels={**CHANNELS, **steps.channels},
        keep=steps.keep,
        nodes={**before, **steps.nodes},
        edges=(*intake_edges(steps.entry), *steps.edges),
    )
