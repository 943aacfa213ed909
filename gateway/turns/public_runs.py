"""Read the public records of the API's runs as other programs see them: log, state, questions and end.

A run is what is durable of it; nothing is kept in memory. Nothing is changed but questions, which
`close_questions` closes, and messages that wait for a workflow that is gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from adapters.api.ports import OpenQuestion, RunStatus, RunView, WorkflowInfo
from adapters.api.run_ids import KEY, stop_id, workflow_of
from gateway.storage.codec import GATE, NEVER, details_of
from gateway.storage.log_records import AssistantRecord, ErrorRecord, NoticeRecord, content_of
from gateway.storage.ports import Interaction, Record, Store
from gateway.turns.run_codec import runs_of
from pipeline.domain.clock import Clock
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey
from pipeline.playbooks.public_run import RunDocument, nodes_reached, public_run
from pipeline.workflows.run_record import STOPPED, SYSTEM, LogEntry, WorkflowRun

_WORKING = ("message", "approval")
"""The kinds of entries that continue a run."""


class PublicRuns:
    """The runs of the threads of the API; see `adapters.api.ports.Runs`."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        workflows: Mapping[str, RunDocument],
        descriptions: Mapping[str, str],
    ) -> None:
        """`workflows` and their `descriptions`, by the names of their agents."""
        self._store = store
        self._clock = clock
        self._documents = workflows
        self.workflows: Mapping[str, WorkflowInfo] = {
            name: WorkflowInfo(
                name=name, description=descriptions.get(name, ""), nodes=nodes_reached(workflow)
            )
            for name, workflow in workflows.items()
        }

    async def read(self, thread: ThreadKey) -> RunView | None:
        """See `Runs.read`."""
        key, run_id = thread.encode(), str(thread.topic)
        workflow = self._documents.get(workflow_of(run_id))
        if workflow is None:
            return None
        # In this order: an answer closes its question and adds its entry at once, and what an entry led to is
        # in the log, if the entry is no longer open.
        pending = await self._pending(key)
        entries = await self._store.open_entries(key)
        records = await self._store.read_log(key)
        if not (entries or records):
            return None
        runs = list(runs_of(records).values())
        return _view(
            _Read(
                run_id=run_id,
                run=public_run(workflow, runs[-1]) if runs else None,
                works=any(one.kind in _WORKING for one in entries),
                stopped=stop_id(run_id)
                in {*(one.message_id for one in entries), *(one.message_id for one in records)},
                pending=pending,
                records=records,
            )
        )

    async def questions(self, thread: ThreadKey) -> tuple[OpenQuestion, ...]:
        """See `Runs.questions`."""
        return _asked(await self._pending(thread.encode()))

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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """What the store has of a run."""

    run_id: str
    run: WorkflowRun | None
    works: bool
    """Whether an entry waits or is worked on."""
    stopped: bool
    """Whether a stop came."""
    pending: Sequence[Interaction]
    records: Sequence[Record]

    @property
    def stopped_while_paused(self) -> bool:
        """Whether a stop has closed the questions of the paused run."""
        paused = self.run is not None and self.run.status == "paused"
        return paused and self.stopped and not self.works and not self.pending

    @property
    def status(self) -> RunStatus:
        """Where the run is. One without steps ended before it began: its budget was spent, say."""
        if self.run is None:
            return "pending" if self.works else _ended_without_run(self.records)
        if self.works:  # also where the last step is on record, and what is said of it not yet
            return "running"
        if self.run.status in ("completed", "failed"):
            return self.run.status
        return "paused" if self.run.status == "paused" and not self.stopped_while_paused else "failed"


def _view(read: _Read) -> RunView:
    status, run = read.status, read.run
    logs = [*(run.logs if run is not None else ())]
    answer, error = _end(read.records)
    if read.stopped_while_paused:
        at = max(record.at for record in read.records)
        logs.append(LogEntry(at=at, node=SYSTEM, type="error", content=STOPPED))
    if read.stopped and error is None:  # the line of the stop is committed after the end of the run
        error = {"code": "stopped", "message": STOPPED}
    return RunView(
        id=read.run_id,
        workflow=workflow_of(read.run_id),
        status=status,
        started_at=min((record.at for record in read.records), default=None),
        logs=[entry.plain() for entry in logs],
        state=run.plain()["state"] if run is not None else {},
        current_node=run.current_node if run is not None and status == "paused" else None,
        answer=answer if status == "completed" else None,
        error=error if status == "failed" else None,
        questions=_asked(read.pending),
    )


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
            case NoticeRecord(code="stopped"):
                error = error or {"code": "stopped", "message": STOPPED}
            case NoticeRecord(code=code, text=text) if code and error is None and record.kind == "notice":
                error = {"code": code, "message": text}
    return answer, error


def _asked(pending: Sequence[Interaction]) -> tuple[OpenQuestion, ...]:
    """The questions for a person: a wait for a time asks nothing."""
    return tuple(_question(one) for one in pending if one.asks != "nothing")


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
