"""Write runs, questions and workflows as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adapters.api.ports import OpenQuestion, RunView, WorkflowInfo
from pipeline.domain.clock import utc_stamp


def run_to_plain(view: RunView, questions: Sequence[OpenQuestion]) -> dict[str, Any]:
    """A run for its owner, who may answer `questions`."""
    return {
        "runId": view.id,
        "workflow": view.workflow,
        "status": view.status,
        "startedAt": None if view.started_at is None else utc_stamp(view.started_at),
        "logs": [dict(entry) for entry in view.logs],
        "state": dict(view.state),
        "waitingForInput": view.waits,
        "currentNodeId": view.current_node,
        "questions": [question_to_plain(one) for one in questions],
        "answer": view.answer,
        "error": None if view.error is None else dict(view.error),
    }


def asked_to_plain(view: RunView, questions: Sequence[OpenQuestion]) -> dict[str, Any]:
    """A run for another person whom its `questions` ask: nothing of what the run has said."""
    return {
        "runId": view.id,
        "workflow": view.workflow,
        "status": view.status,
        "waitingForInput": view.waits,
        "questions": [question_to_plain(one) for one in questions],
    }


def status_to_plain(view: RunView, questions: Sequence[OpenQuestion]) -> dict[str, Any]:
    """A run without its log, for a stream that has sent the log already."""
    return {key: value for key, value in run_to_plain(view, questions).items() if key != "logs"}


def question_to_plain(question: OpenQuestion) -> dict[str, Any]:
    """An open question."""
    return {
        "questionId": question.id,
        "nodeId": question.node,
        "text": question.text,
        "options": list(question.options),
        "takesNote": question.takes_note,
        "expiresAt": None if question.expires_at is None else utc_stamp(question.expires_at),
    }


def workflow_to_plain(workflow: WorkflowInfo) -> Mapping[str, Any]:
    """A workflow that can be run."""
    return {"name": workflow.name, "description": workflow.description, "nodes": workflow.nodes}
