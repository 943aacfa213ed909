"""The state of a run for the page: its public record, and the approvals that wait for an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gateway.storage.codec import GATE, details_of
from gateway.storage.ports import Interaction, Record, Store
from gateway.storage.saved_workflows import SavedRun
from gateway.turns.run_codec import newest_run, runs_of
from pipeline.domain.clock import Clock
from pipeline.domain.errors import GraphError
from pipeline.workflows.compiling import labels_of
from pipeline.workflows.document import Workflow
from pipeline.workflows.reading import read_workflow
from pipeline.workflows.run_record import WorkflowRun, run_record

_OUTCOMES: Final = ("assistant", "error")


class EditorRunReader:
    """Reads runs from the store; changes nothing."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def summary(self, run: SavedRun) -> Mapping[str, Any]:
        """When a run began, of which version, and its status. Raises StorageError."""
        rows = await self._store.read_log(run.thread)
        workflow = await self._workflow(run)
        record = None if workflow is None else await self._record(run, workflow, rows)
        return {
            "chat": _shown(run.thread),
            "version": run.version,
            "at": run.at,
            "status": "failed" if record is None else _status(record, rows),
        }

    async def state(self, run: SavedRun, seen: int) -> Mapping[str, Any]:
        """The run as JSON, or only its place if it has `seen` records. Raises StorageError."""
        rows = await self._store.read_log(run.thread)
        place = {"name": run.name, "version": run.version, "at": run.at, "records": len(rows)}
        questions = await self._store.pending_interactions(run.thread, now=self._clock.now())
        if rows and seen == len(rows):
            return place
        workflow = await self._workflow(run)
        if workflow is None:
            return {**place, "run": None, "questions": []}
        record = await self._record(run, workflow, rows)
        labels = {label: name for name, label in labels_of(workflow).items()}
        return {
            **place,
            "run": {**record.plain(), "status": _status(record, rows)},
            "questions": [_question(one, labels) for one in questions if one.kind == GATE],
        }

    async def _workflow(self, run: SavedRun) -> Workflow | None:
        text = await self._store.page.workflows.text(run.name, run.version)
        try:
            return None if text is None else read_workflow(text, run.name)
        except GraphError:
            return None

    async def _record(self, run: SavedRun, workflow: Workflow, rows: Sequence[Record]) -> WorkflowRun:
        own = [row for row in rows if row.message_id == run.message_id and row.kind == "step"]
        begun = newest_run(own)
        run_id = next((one["head"]["run"] for one in begun if one is not None and "head" in one), "")
        recorded = runs_of(rows)
        # A run of few steps has its records in the row of its outcome alone.
        found = recorded.get(run_id) or next(iter(recorded.values()), [])
        return run_record(workflow, found)


def _status(record: WorkflowRun, rows: Sequence[Record]) -> str:
    """The run's status; where nothing of it says that it has ended, what its conversation says."""
    last = next((row.kind for row in reversed(rows) if row.kind in _OUTCOMES), "")
    if record.status == "running" and last == "error":
        return "failed"
    if record.status == "pending" and last:
        return "failed" if last == "error" else "completed"
    return record.status


def _question(question: Interaction, labels: Mapping[str, str]) -> dict[str, Any]:
    details = details_of(question)
    node = details.node.rpartition("/")[2]
    return {
        "interaction": question.id,
        "node": labels.get(node, node),
        "prompt": details.prompt,
        "options": list(question.options),
    }


def _shown(thread: str) -> str:
    """The id by which the client knows the conversation of a run."""
    return thread.rpartition(":")[2].rpartition(".")[2]
