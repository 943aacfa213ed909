"""Draw a playbook as a mermaid flowchart: its nodes with their subtypes, and the edges between them."""

from __future__ import annotations

from pipeline.graph.documents.mermaid_text import identifier, label
from pipeline.playbooks.document import (
    LOOP_BACK,
    Edge,
    Loop,
    Merge,
    Node,
    Parallel,
    Playbook,
    PlaybookCondition,
    PlaybookWait,
    Router,
    SubWorkflow,
    Transfer,
    Trigger,
    UserInput,
    title,
)


def playbook_picture(playbook: Playbook) -> str:
    """The flowchart, ending in a line break."""
    lines = ["flowchart TD"]
    lines += [f"    {identifier('n', name)}{_shape(node)}" for name, node in playbook.nodes.items()]
    lines += [f"    {_arrow(edge, playbook)}" for edge in playbook.edges]
    return "\n".join(lines) + "\n"


def _shape(node: Node) -> str:
    words = label(title(node), _about(node))
    match node:
        case Trigger():
            return f"(({words}))"
        case PlaybookCondition() | Router() | Loop():
            return f"{{{words}}}"
        case UserInput() | PlaybookWait():
            return f"{{{{{words}}}}}"
        case Parallel() | Merge():
            return f"([{words}])"
        case SubWorkflow() | Transfer():
            return f"[[{words}]]"
        case _:
            return f"[{words}]"


def _about(node: Node) -> str:
    if isinstance(node, SubWorkflow | Transfer):
        return f"{node.subtype}: {node.workflow}"
    return f"wait {node.seconds:g} s" if isinstance(node, PlaybookWait) else node.subtype


def _arrow(edge: Edge, playbook: Playbook) -> str:
    source, target = identifier("n", edge.source), identifier("n", edge.target)
    words = _words(edge, playbook)
    line = "-.->" if edge.into == LOOP_BACK else "-->"
    return f"{source} {line}|{label(words)}| {target}" if words else f"{source} {line} {target}"


def _words(edge: Edge, playbook: Playbook) -> str:
    node = playbook.nodes[edge.source]
    if isinstance(node, Router) and edge.handle.startswith("route-"):
        return node.routes[int(edge.handle.removeprefix("route-"))].label
    return edge.handle.removeprefix("condition-") if isinstance(node, PlaybookCondition) else edge.handle
