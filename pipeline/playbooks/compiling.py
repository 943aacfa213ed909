"""Compile a playbook to a graph that the executor runs: one engine for every kind of document.

playbook:   intake ──▶ advance ──▶ (agents and tools at once │ a decision │ a question │ a wait) ──▶ advance …
              │          └──▶ finish
              └──▶ compact, declined, set_aside: as in the conversation graph

With `startedBy: agent` the loop of the conversation comes before `advance` (`starting`).
`advance` does everything that needs no model, tool, person or time, and branches join in it. The nodes of
playbooks that a playbook uses are in the same graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pipeline.agent.loop_graph import LOOP_CHANNELS
from pipeline.graph.definition.elements import FanOut, Limits
from pipeline.graph.definition.spec import END, Always, EdgeSpec, GraphSpec, NodeSpec, OnSuccess, Route
from pipeline.graph.run.records import TRAIL
from pipeline.nodes.intake_steps import intake_edges, intake_nodes
from pipeline.playbooks.document import (
    Loop,
    Node,
    Playbook,
    PlaybookAgent,
    PlaybookCondition,
    PlaybookToolCall,
    PlaybookWait,
    Router,
    UserInput,
)
from pipeline.playbooks.progress import MAX_VISITS, ROOT
from pipeline.playbooks.reading import Open, nothing_to_open, read_playbook
from pipeline.playbooks.starting import starting_edges, starting_nodes
from pipeline.playbooks.state import CHANNELS, DONE, ONCE, OUTPUTS, PLAYBOOK, Labels, PlaybookPlace
from pipeline.playbooks.steps import (
    ADVANCE,
    FINISH,
    QUESTION,
    Advance,
    AfterAdvance,
    Finish,
    decision_node,
    tool_node,
    waiting_node,
)
from pipeline.playbooks.sub_agent import agent_node
from pipeline.runtime.context import RunContext
from pipeline.workflows.steps import SOURCES

MAX_STEPS: Final = 3 * MAX_VISITS
"""Executions of the graph's nodes: each visit has at most one, and `advance` before it."""
_FORBIDDEN: Final = frozenset("/.#:")
_TOGETHER: Final = FanOut(on_failure="wait_all", on_conflict="last_wins", branch_timeout_s=None)


def playbook_graph(
    source: str | Mapping[str, Any], name: str = "playbook", open_other: Open = nothing_to_open
) -> GraphSpec[RunContext]:
    """The graph of a document. Raises WorkflowInvalid with all its mistakes."""
    return compiled(read_playbook(source, name, open_other))


def compiled(playbook: Playbook) -> GraphSpec[RunContext]:
    """The graph of a playbook."""
    labels = labels_of(playbook)
    nodes: dict[str, NodeSpec[RunContext]] = {
        label: spec
        for (of, name), label in labels.items()
        if (
            spec := _spec(_book(playbook, of).nodes[name], PlaybookPlace(playbook=playbook, of=of, node=name))
        )
        is not None
    }
    if any(isinstance(node, PlaybookAgent) for _, book in books_of(playbook) for node in book.nodes.values()):
        nodes[QUESTION] = waiting_node(None, PlaybookPlace(playbook=playbook, of=ROOT, node=""))
    advance = NodeSpec(
        run=Advance(playbook=playbook, labels=labels),
        writes=(PLAYBOOK, OUTPUTS, DONE, TRAIL, SOURCES),
        retry=ONCE,
    )
    finish = NodeSpec(run=Finish(playbook=playbook), reads=(PLAYBOOK,), writes=("agent",), retry=ONCE)
    talk = starting_nodes(playbook) if playbook.starts == "agent" else {}
    following = Route(choose=AfterAdvance(playbook=playbook, labels=labels), targets=(*nodes, FINISH))
    return GraphSpec(
        name=playbook.name,
        version=playbook.version,
        entry="intake",
        limits=Limits(max_steps=MAX_STEPS, outer_only=True),
        fan_out=_TOGETHER,
        channels={**LOOP_CHANNELS, **CHANNELS} if talk else CHANNELS,
        nodes={**intake_nodes(), **talk, ADVANCE: advance, **nodes, FINISH: finish},
        edges=(
            *(intake_edges(ADVANCE) if not talk else (*intake_edges(), *starting_edges())),
            EdgeSpec(source=ADVANCE, when=following),
            # A question or a wait that is not possible ends the run; what an agent could not do is a result.
            *(
                EdgeSpec(
                    source=label,
                    target=ADVANCE,
                    when=OnSuccess() if DONE not in (spec.writes or ()) else Always(),
                )
                for label, spec in nodes.items()
            ),
            EdgeSpec(source=FINISH, target=END, when=OnSuccess()),
        ),
    )


def books_of(playbook: Playbook) -> Iterator[tuple[str, Playbook]]:
    """The playbook and those that it uses, by their keys."""
    yield ROOT, playbook
    yield from playbook.others.items()


def _book(playbook: Playbook, of: str) -> Playbook:
    return playbook if of == ROOT else playbook.others[of]


def labels_of(playbook: Playbook) -> Labels:
    """The name in the graph of every node: its id, behind the file of another playbook, where the engine
    allows it."""
    own = set(playbook.nodes)
    taken = {*intake_nodes(), ADVANCE, FINISH, QUESTION, END}
    if playbook.starts == "agent":
        taken |= {"agent", "act"}
    found: dict[tuple[str, str], str] = {}
    for of, book in books_of(playbook):
        for name in book.nodes:
            whole = f"{of.removesuffix('.json')}-{name}" if of else name
            plain = "".join("_" if letter in _FORBIDDEN or letter.isspace() else letter for letter in whole)
            label, number = plain, 2
            # An id that is a label itself keeps it, whatever comes before it in the document.
            while label in taken or (label != name and label in own):
                label, number = f"{plain}_{number}", number + 1
            taken.add(label)
            found[of, name] = label
    return found


def _spec(node: Node, place: PlaybookPlace) -> NodeSpec[RunContext] | None:
    """The engine's node; None for one that `advance` does by itself."""
    match node:
        case PlaybookAgent():
            return agent_node(node, place)
        case PlaybookToolCall():
            return tool_node(node, place)
        case Router():
            return decision_node(node, place)
        case PlaybookCondition() | Loop():
            return decision_node(node, place) if node.mode == "llm" else None
        case UserInput() | PlaybookWait():
            return waiting_node(node, place)
        case _:
            return None
