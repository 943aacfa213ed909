"""The public record of a run in one form, whichever of the two forms its document has.

A playbook's record becomes that of a workflow: what it waits for is a node at which it is paused, and its
events are its log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pipeline.graph.run.records import RawRecord
from pipeline.playbooks.document import TRIGGER_PLACE, Playbook
from pipeline.playbooks.node_kinds import texts_of
from pipeline.playbooks.run_record import Event, PlaybookRun, playbook_record
from pipeline.playbooks.run_record import RunStatus as PlaybookStatus
from pipeline.workflows.document import MESSAGE, Workflow, places
from pipeline.workflows.run_record import STOPPED, SYSTEM, LogEntry, RunStatus, WorkflowRun, run_record

RunDocument = Workflow | Playbook
"""A document whose runs people and other programs start."""
_STATUS: Final[Mapping[PlaybookStatus, RunStatus]] = {
    "pending": "pending",
    "running": "running",
    "waiting": "paused",
    "completed": "completed",
    "failed": "failed",
    "aborted": "failed",
}


def public_run(document: RunDocument, records: Sequence[RawRecord]) -> WorkflowRun:
    """The record of the run in `records`, the engine's, oldest first."""
    if isinstance(document, Workflow):
        return run_record(document, records)
    run = playbook_record(document, records)
    return WorkflowRun(
        id=run.id,
        status=_STATUS[run.status],
        logs=tuple(_entry(event) for event in run.events),
        state=run.outputs,
        current_node=_waits_at(run),
    )


def nodes_reached(document: RunDocument) -> int:
    """How many nodes a run can get to."""
    if isinstance(document, Workflow):
        return len(document.reached)
    return len(document.reached_from(document.trigger.id)) + 1


def needs_message(document: RunDocument) -> bool:
    """Whether a run does nothing useful without a message: one of its texts has a place for it."""
    if isinstance(document, Workflow):
        given = document.start.initial_input
        return not given or MESSAGE in places(given)
    return any(TRIGGER_PLACE in str(texts_of(node)) for node in document.nodes.values())


def _entry(event: Event) -> LogEntry:
    if event.type == "workflow_aborted":
        return LogEntry(at=event.at, node=SYSTEM, type="error", content=STOPPED)
    return LogEntry(at=event.at, node=event.node or SYSTEM, type=event.type, content=event.text)


def _waits_at(run: PlaybookRun) -> str | None:
    """The node that waits for a person, else one that waits for a time; None for a run that does not wait."""
    if run.status != "waiting":
        return None
    waiting = [event for event in run.events if event.type == "node_waiting" and event.node in run.current]
    asking = [event for event in waiting if "content" in event.details]
    return (asking or waiting)[-1].node if waiting else next(iter(run.current), None)
