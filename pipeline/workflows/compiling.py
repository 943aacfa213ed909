"""Compile a workflow to a graph that the executor runs: one engine for every kind of document.

workflow:   intake ──▶ start ──▶ … ──▶ result
              └──▶ compact, declined, set_aside: as in the conversation graph

Branches never join, and a node with several routes to it runs once for each activation; what an open
approval holds back continues in turn. `result` shows the output of a branch that ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from pipeline.graph.definition.elements import FanOut, Limits
from pipeline.graph.definition.spec import END, EdgeSpec, GraphSpec, NodeSpec, OnSuccess, Route
from pipeline.nodes.intake_steps import intake_edges, intake_nodes
from pipeline.runtime.context import RunContext
from pipeline.workflows.agent_step import agent_node
from pipeline.workflows.document import (
    DECISIONS,
    EDIT,
    OTHERWISE,
    If,
    Node,
    Start,
    Workflow,
    WorkflowAgent,
    WorkflowApproval,
)
from pipeline.workflows.reading import read_workflow
from pipeline.workflows.steps import (
    CHANNELS,
    AfterApproval,
    AfterIf,
    approval_node,
    edited_node,
    if_node,
    result_node,
    start_node,
)

AgentNode = Callable[[WorkflowAgent, Workflow, Mapping[str, str]], NodeSpec[RunContext]]
"""Makes the node of an agent; the mapping has the names in the graph of all approvals."""
MAX_STEPS: Final = 200
"""Executions of nodes in one run; a run that needs more has failed."""
RESULT: Final = "result"
"""The node that shows the output of a branch that ends."""
_FORBIDDEN: Final = frozenset("/.#:")
_BRANCHES: Final = FanOut(
    on_failure="fail_at_end",
    on_conflict="last_wins",
    branch_timeout_s=None,
    join="none",
    after_gates="in_turn",
)


def workflow_graph(source: str | Mapping[str, Any], name: str = "workflow") -> GraphSpec[RunContext]:
    """The graph of a document. Raises WorkflowInvalid with all its mistakes."""
    return compiled(read_workflow(source, name))


def compiled(workflow: Workflow) -> GraphSpec[RunContext]:
    """The graph of a workflow. Nodes that no run reaches are left out."""
    nodes, edges = _steps(workflow, agent_node)
    return _graph(
        workflow,
        "intake",
        {**intake_nodes(), **nodes},
        (*intake_edges(labels_of(workflow)[workflow.start.id]), *edges),
    )


def without_intake(workflow: Workflow, agent: AgentNode) -> GraphSpec[RunContext]:
    """The same graph from its start on, which reads the message from the inputs, with `agent` in the place of
    every agent: for a check that calls no model."""
    nodes, edges = _steps(workflow, agent)
    return _graph(workflow, labels_of(workflow)[workflow.start.id], nodes, tuple(edges))


def _graph(
    workflow: Workflow, entry: str, nodes: Mapping[str, NodeSpec[RunContext]], edges: tuple[EdgeSpec, ...]
) -> GraphSpec[RunContext]:
    return GraphSpec(
        name=workflow.name,
        version=workflow.version,
        entry=entry,
        limits=Limits(max_steps=MAX_STEPS, max_consecutive=MAX_STEPS, outer_only=True),
        fan_out=_BRANCHES,
        channels=CHANNELS,
        nodes=nodes,
        edges=edges,
    )


def _steps(workflow: Workflow, agent: AgentNode) -> tuple[dict[str, NodeSpec[RunContext]], list[EdgeSpec]]:
    """The nodes that a run reaches, and the edges between them."""
    labels, edited = labels_of(workflow), edited_labels(workflow)
    asking = {name: labels[name] for name in workflow.approvals}
    nodes: dict[str, NodeSpec[RunContext]] = {}
    edges: list[EdgeSpec] = []
    for name in workflow.reached:
        label, node = labels[name], workflow.nodes[name]
        nodes[label] = _spec(node, workflow, asking, agent)
        edges += _edges(node, label, workflow, labels, edited)
        if isinstance(node, WorkflowApproval) and node.editable:
            nodes[edited[name]] = edited_node(node, label)
    if any(RESULT in edge.targets() for edge in edges):
        nodes[RESULT] = result_node()
    return nodes, edges


def labels_of(workflow: Workflow) -> dict[str, str]:
    """The name in the graph of every node: its id, where the engine allows it."""
    taken = {*intake_nodes(), RESULT, END}
    found: dict[str, str] = {}
    for name in workflow.nodes:
        plain = "".join("_" if letter in _FORBIDDEN or letter.isspace() else letter for letter in name)
        label, number = plain, 2
        # An id that is a label itself keeps it, whatever comes before it in the document.
        while label in taken or (label != name and label in workflow.nodes):
            label, number = f"{plain}_{number}", number + 1
        taken.add(label)
        found[name] = label
    return found


def edited_labels(workflow: Workflow) -> dict[str, str]:
    """The names in the graph of the nodes that take over the text of an answer `edit`, by approval."""
    labels = labels_of(workflow)
    taken, found = set(labels.values()), dict[str, str]()
    for name in workflow.approvals:
        label = f"{labels[name]}_edited"
        while label in taken:
            label += "_"
        taken.add(label)
        found[name] = label
    return found


def _spec(
    node: Node, workflow: Workflow, asking: Mapping[str, str], agent: AgentNode
) -> NodeSpec[RunContext]:
    match node:
        case Start():
            return start_node(node, workflow.name)
        case WorkflowAgent():
            return agent(node, workflow, asking)
        case If():
            return if_node(node)
        case WorkflowApproval():
            return approval_node(node, asking)


def _edges(
    node: Node, label: str, workflow: Workflow, labels: Mapping[str, str], edited: Mapping[str, str]
) -> list[EdgeSpec]:
    def routes(handle: str, otherwise: str) -> tuple[str, ...]:
        found = tuple(dict.fromkeys(labels[target] for target in workflow.targets(node.id, handle)))
        return found or (otherwise,)

    match node:
        case Start() | WorkflowAgent():
            return [EdgeSpec(source=label, target=target, when=OnSuccess()) for target in routes("", RESULT)]
        case If(conditions=conditions):
            handles = (*(f"condition-{at}" for at in range(len(conditions))), OTHERWISE)
            after_if = {handle: routes(handle, END) for handle in handles}
            return [_route(label, AfterIf(targets=after_if), after_if)]
        case WorkflowApproval():
            approve, reject = DECISIONS
            # What was approved, and goes nowhere else, is the result.
            after: dict[str, tuple[str, ...]] = {
                approve: routes(approve, RESULT),
                reject: routes(reject, END),
            }
            if not node.editable:
                return [_route(label, AfterApproval(label=label, targets=after), after)]
            taken = edited[node.id]
            after[EDIT] = (taken,)
            onward = [EdgeSpec(source=taken, target=target, when=OnSuccess()) for target in after[approve]]
            return [_route(label, AfterApproval(label=label, targets=after), after), *onward]


def _route(label: str, choose: AfterIf | AfterApproval, targets: Mapping[str, tuple[str, ...]]) -> EdgeSpec:
    every = tuple(dict.fromkeys((*(one for routes in targets.values() for one in routes), END)))
    return EdgeSpec(source=label, when=Route(choose=choose, targets=every))
