"""Draw a workflow as a mermaid flowchart: its nodes, the routes between them, and sub-agents dashed."""

from __future__ import annotations

from pipeline.graph.documents.mermaid_text import identifier, label
from pipeline.workflows.delegation import title
from pipeline.workflows.document import Connection, If, Node, Start, Workflow, WorkflowAgent, WorkflowApproval

_SHOWN_CHARS = 60


def workflow_picture(workflow: Workflow) -> str:
    """The flowchart, ending in a line break."""
    lines = ["flowchart TD"]
    lines += [f"    {identifier('n', name)}{_shape(node)}" for name, node in workflow.nodes.items()]
    lines += [f"    {_arrow(one, workflow)}" for one in workflow.connections]
    return "\n".join(lines) + "\n"


def _shape(node: Node) -> str:
    match node:
        case Start():
            return f"(({label(node.id)}))"
        case WorkflowAgent():
            notes = (title(node),) if title(node) != node.id else ()
            return f"[{label(node.id, *notes)}]"
        case If():
            return f"{{{label(node.id)}}}"
        case WorkflowApproval():
            return f"{{{{{label(node.id, _short(node.prompt))}}}}}"


def _arrow(one: Connection, workflow: Workflow) -> str:
    source, target = identifier("n", one.source), identifier("n", one.target)
    if one.delegates:
        return f"{source} -.->|{label('sub-agent')}| {target}"
    words = _words(one, workflow)
    return f"{source} -->|{label(words)}| {target}" if words else f"{source} --> {target}"


def _words(one: Connection, workflow: Workflow) -> str:
    """What leads along a connection: the condition of an if, or the decision."""
    node = workflow.nodes[one.source]
    if isinstance(node, If) and one.handle.startswith("condition-"):
        condition = node.conditions[int(one.handle.removeprefix("condition-"))]
        return f"{condition.operator} {_short(condition.value)}"
    return "otherwise" if isinstance(node, If) else one.handle


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_CHARS else f"{line[: _SHOWN_CHARS - 1]}…"
