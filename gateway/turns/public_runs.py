"""Read the public records of the runs on threads of their own, as other programs see them: the log, the state,
the questions and the end. A run is what is durable of it; nothing is kept in memory.

It ends nothing but questions: see `close_questions`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adapters.api.ports import OpenQuestion, RunStatus, RunView, WorkflowInfo
from adapters.api.run_ids import KEY, workflow_of
from gateway.storage.codec import GATE, NEVER, details_of
from gateway.storage.log_records import AssistantRecord, ErrorRecord, NoticeRecord, content_of
from gateway.storage.ports import InboxEntry, Interaction, Record, Store
from gateway.turns.run_codec import runs_of
from pipeline.domain.clock import Clock
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey
from pipeline.workflows.document import Workflow
from pipeline.workflows.run_record import SYSTEM, LogEntry, WorkflowRun, run_record

_WORKING = ("message", "approval")
"""The kinds of entries that make a run go on."""
_STOPPED = "The run was stopped."


class PublicRuns:
    """The runs of the threads of the API; see `adapters.api.ports.Runs`."""

    def __init__(
        self, store: Store, clock: Clock, workflows: Mapping[str, Workflow], descriptions: Mapping[str, str]
    ) -> None:
        """`workflows` and their `descriptions`, by the names of their agents."""
        self._store = store
        self._clock = clock
        self._documents = workflows
        self.workflows: Mapping[str, WorkflowInfo] = {
            name: WorkflowInfo(name=name, description=descriptions.get(name, ""), nodes=len(workflow.reached))
            for name, workflow in workflows.items()
        }

    async def read(self, thread: ThreadKey) -> RunView | None:
        """See `Runs.read`."""
        key, run_id = thread.encode(), str(thread.topic)
        workflow = self._documents.get(workflow_of(run_id))
        if workflow is None:
            return None
        # The log is read last: what an entry led to is in it, if the entry is no longer open.
        entries = [one for one in await self._store.open_entries(key) if one.kind in _WORKING]
        pending = await self._pending(key)
        records = await self._store.read_log(key)
        if not entries and not any(one.kind == "user" or one.message_id == run_id for one in records):
            return None
        runs = list(runs_of(records).values())
        run = run_record(workflow, runs[-1]) if runs else None
        return _view(run_id, run, entries, pending, records)

    async def questions(self, thread: ThreadKey) -> tuple[OpenQuestion, ...]:
        """See `Runs.questions`."""
        return tuple(_question(one) for one in await self._pending(thread.encode()))

    async def answered(self, thread: ThreadKey, question: str) -> str | None:
        """See `Runs.answered`."""
        known = await self._store.interaction(question)
        return known[1] if known is not None and known[0].thread == thread.encode() else None

    async def close_questions(self, thread: ThreadKey) -> None:
        """See `Runs.close_questions`."""
        for question in await self._pending(thread.encode()):
            if question.kind == GATE:
                await self._store.expiries.close(question.id, at=self._clock.now())

    async def unfinished(self, person: str) -> int:
        """See `Runs.unfinished`."""
        threads = [ThreadKey.decode(one) for one in await self._store.open_threads()]
        return sum(one.account_key == KEY and one.chat == person for one in threads)

    async def cancel_unknown(self) -> int:
        """Cancel the waiting messages whose workflow is no longer configured, before any of them runs; how
        many. No other agent may answer them."""
        cancelled = 0
        for key in await self._store.open_threads():
            thread = ThreadKey.decode(key)
            if thread.account_key == KEY and workflow_of(str(thread.topic)) not in self._documents:
                cancelled += await self._store.cancel_open(key)
        return cancelled

    async def _pending(self, key: str) -> tuple[Interaction, ...]:
        return await self._store.pending_interactions(key, now=self._clock.now())


def _view(
    run_id: str,
    run: WorkflowRun | None,
    entries: Sequence[InboxEntry],
    pending: Sequence[Interaction],
    records: Sequence[Record],
) -> RunView:
    status = _status(run, entries, pending, records)
    logs = [*(run.logs if run is not None else ())]
    answer, error = _end(records) if status in ("completed", "failed") else (None, None)
    if status == "failed" and run is not None and run.status == "paused":
        at = max(record.at for record in records)
        logs.append(LogEntry(at=at, node=SYSTEM, type="error", content=_STOPPED))
        answer, error = None, {"code": "stopped", "message": _STOPPED}
    paused = status == "paused"
    return RunView(
        id=run_id,
        workflow=workflow_of(run_id),
        status=status,
        created_at=min([*(one.received_at for one in entries), *(one.at for one in records)]),
        logs=[entry.plain() for entry in logs],
        state=_state(run) if run is not None else {},
        current_node=run.current_node if run is not None and paused else None,
        answer=answer if status == "completed" else None,
        error=error if status == "failed" else None,
        questions=tuple(_question(one) for one in pending),
    )


def _state(run: WorkflowRun) -> Mapping[str, Any]:
    state: Mapping[str, Any] = run.plain()["state"]
    return state


def _status(
    run: WorkflowRun | None,
    entries: Sequence[InboxEntry],
    pending: Sequence[Interaction],
    records: Sequence[Record],
) -> RunStatus:
    """Where the run is. A run without steps of its own ended before it began: its budget was spent, say."""
    if run is None:
        return "pending" if entries else _ended_without_run(records)
    if run.status not in ("completed", "failed") and entries:
        return "running"
    if run.status == "paused" and not pending:
        # Its questions were closed without an answer.
        return "failed"
    if run.status in ("pending", "running"):
        return "failed"
    return run.status


def _ended_without_run(records: Sequence[Record]) -> RunStatus:
    answered = any(isinstance(content_of(record), AssistantRecord) for record in records)
    return "completed" if answered else "failed"


def _end(records: Sequence[Record]) -> tuple[str | None, Mapping[str, str] | None]:
    """The newest answer and the newest error of a run that has ended."""
    answer: str | None = None
    error: Mapping[str, str] | None = None
    for record in records:
        match content_of(record):
            case AssistantRecord(partial=False, text=text) as found if not found.paused_for:
                answer = text
            case ErrorRecord(code=code, text=text):
                error = {"code": code, "message": text}
            case NoticeRecord(code=code, text=text) if code and error is None and record.kind == "notice":
                error = {"code": code, "message": text}
    return answer, error


def _question(asked: Interaction) -> OpenQuestion:
    details = details_of(asked)
    return OpenQuestion(
        id=asked.id,
        node=details.node,
        text=details.prompt or str(asked.body.get("summary", "")),
        options=asked.options,
        expires_at=None if asked.expires_at >= NEVER else asked.expires_at,
        takes_note=details.notes,
        allowed=asked.allowed_users,
    )
