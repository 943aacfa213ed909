"""Nodes of a document that a run cannot tell apart: ten branches of the same form are explored as one form.

Two nodes are alike if they are of one kind with the same conditions and limits, and each of their handles
leads, in the order of the document, to nodes that are alike. Whatever follows one of them then follows the
other, by other names. Prompts do not count, since an agent's answers are chosen by the explorer. Nodes on a
circle are like no other, so that a circle is shown by the names on it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from pipeline.workflows.document import If, Node, Workflow, WorkflowApproval


def kinds_of(workflow: Workflow) -> Mapping[str, int]:
    """A number for each node; the same one for nodes that are alike."""
    following = {name: _following(workflow, name) for name in workflow.nodes}
    circling = {name for name in workflow.nodes if _is_on_circle(name, following)}
    kinds = _numbered(
        {name: name if name in circling else _form(node) for name, node in workflow.nodes.items()}
    )
    while True:
        finer = _numbered(
            {
                name: (kinds[name], tuple((handle, kinds[target]) for handle, target in following[name]))
                for name in workflow.nodes
            }
        )
        if len(set(finer.values())) == len(set(kinds.values())):
            return finer
        kinds = finer


def _form(node: Node) -> Hashable:
    match node:
        case If(conditions=conditions):
            return "if", conditions
        case WorkflowApproval(expires_s=expires_s):
            return "approval", expires_s is not None
        case _:
            return (type(node).__name__,)


def _following(workflow: Workflow, name: str) -> tuple[tuple[str, str], ...]:
    """The handles of a node with their targets, in the order of the document."""
    return tuple(
        (one.handle, one.target) for one in workflow.connections if one.source == name and not one.delegates
    )


def _is_on_circle(name: str, following: Mapping[str, tuple[tuple[str, str], ...]]) -> bool:
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        for _, target in following[waiting.pop()]:
            if target == name:
                return True
            if target not in seen:
                seen.add(target)
                waiting.append(target)
    return False


def _numbered(forms: Mapping[str, Hashable]) -> dict[str, int]:
    numbers: dict[Hashable, int] = {}
    return {name: numbers.setdefault(form, len(numbers)) for name, form in forms.items()}
