"""What commands need to know about the workflow or playbook of an agent: whether it needs a message, and how
its runs are shown. Loaded only where an agent runs one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from gateway.agents.agent_book import ShownRun, WorkflowFacts
from pipeline.graph.run.records import RawRecord
from pipeline.playbooks.public_run import RunDocument, needs_message, public_run

_ASKS: Final = ("wait_input", "node_waiting")


def workflow_facts(document: RunDocument) -> WorkflowFacts:
    """The facts about a workflow or a playbook."""
    return WorkflowFacts(needs_text=needs_message(document), shown=partial(_shown, document))


def _shown(document: RunDocument, records: Sequence[RawRecord]) -> ShownRun:
    run = public_run(document, records)
    steps = [entry for entry in run.logs if entry.node in document.nodes]
    node = run.current_node or (steps[-1].node if steps else "")
    asked = [entry.content for entry in steps if entry.node == node and entry.type in _ASKS]
    return ShownRun(
        status=run.status, node=node, waits_for=asked[-1] if asked and run.waiting_for_input else ""
    )
