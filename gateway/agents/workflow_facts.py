"""What commands need to know about the workflow of an agent: whether it needs a message, and how its runs are
shown. Loaded only where an agent runs a workflow."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from gateway.agents.agent_book import ShownRun, Workflow
from pipeline.graph.run.records import RawRecord
from pipeline.workflows import document
from pipeline.workflows.run_record import run_record


def workflow_facts(workflow: document.Workflow) -> Workflow:
    """The facts about a workflow."""
    given = workflow.start.initial_input
    return Workflow(
        needs_text=not given or document.MESSAGE in document.places(given),
        shown=partial(_shown, workflow),
    )


def _shown(workflow: document.Workflow, records: Sequence[RawRecord]) -> ShownRun:
    run = run_record(workflow, records)
    steps = [entry for entry in run.logs if entry.node in workflow.nodes]
    node = run.current_node or (steps[-1].node if steps else "")
    asked = [entry.content for entry in steps if entry.node == node and entry.type == "wait_input"]
    return ShownRun(
        status=run.status, node=node, waits_for=asked[-1] if asked and run.waiting_for_input else ""
    )
