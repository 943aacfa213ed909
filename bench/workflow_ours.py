"""Parlour's side of the workflow bench. `python -m bench.workflow_ours FOLDER`.

Nothing is switched off: documents are compiled as for a gateway, agents are the product's with a model that
answers at once, a listener gets what a turn's listener gets, and an answer resumes its run from the rows of
the store.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import workflow_work as work
from bench.graph_work import Case
from bench.graph_worker import Hold, Turn, serve
from gateway.storage.ports import Lease, NewRecord
from gateway.storage.sqlite import SqliteStore
from gateway.turns.paused_runs import PausedRuns, TurnRun
from gateway.turns.run_codec import newest_run
from gateway.turns.run_log import TOGETHER_S, StoreRunLog
from pipeline.domain.clock import SystemClock
from pipeline.domain.ids import ThreadKey, new_id
from pipeline.domain.messages import Author
from pipeline.graph.execution.executor import Executor
from pipeline.graph.run.events import GraphEvent
from pipeline.graph.run.outcome import Answer, RunOutcome
from pipeline.graph.run.records import RawRecord
from pipeline.llm.client import LlmFinished, LlmItem, LlmRequest, TextDelta
from pipeline.redaction.redactor import Redactor
from pipeline.runtime.context import RunContext, ignore_text
from pipeline.runtime.null_services import (
    KnownHistory,
    NullBudgets,
    NullFacts,
    NullSkills,
    NullTools,
    NullWorkspace,
)
from pipeline.runtime.safe_log import SafeRunLog
from pipeline.runtime.scope import TurnScope, ignore_event
from pipeline.runtime.settings import PipelineSettings
from pipeline.workflows.compiling import workflow_graph

_CLOCK = SystemClock()


class Model:
    """A model that answers at once."""

    async def stream(self, request: LlmRequest) -> AsyncGenerator[LlmItem, None]:
        """See `LlmClient.stream`."""
        yield TextDelta(text=work.reply(request.messages[0].content, request.messages[-1].content))
        yield LlmFinished(finish_reason="stop")

    async def warm_up(self) -> None:
        """Nothing to do."""

    async def close(self) -> None:
        """Nothing to do."""

    def status(self) -> str:
        """Always ready."""
        return "ready"


class Ours:
    """Parlour's workflows under measurement."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._case: Case | None = None
        self._store: SqliteStore | None = None
        self._paused: PausedRuns | None = None
        self._threads = 0
        self._heard = 0

    def about(self) -> dict[str, Any]:
        return {}

    async def prepare(self, case: Case, count: int) -> Sequence[Turn]:
        if case != self._case:
            await self.close()
            self._case = case
            if case.store == "sqlite":
                self._store = SqliteStore(self._folder / f"{case.graph}.sqlite3", synchronous="FULL")
                await self._store.open()
                self._paused = PausedRuns(self._store)
        document = work.line() if case.graph == "line" else work.triage()
        # As the pipeline of an agent makes it.
        executor = Executor(workflow_graph(document), clock=_CLOCK, details=False)
        return [await self._thread(executor) for _ in range(count)]

    def database(self) -> Path | None:
        return None

    async def close(self) -> None:
        if self._store is not None:
            await self._store.close()
        self._case = self._store = self._paused = None

    async def _thread(self, executor: Executor[RunContext]) -> Turn:
        self._threads += 1
        key = f"web:local:{self._threads}"
        paused = self._paused
        if paused is None:
            return _Run(executor, self._hear).turn
        lease = await paused.store.acquire_lease(key, "bench", ttl_s=3600.0, now=_CLOCK.now())
        assert lease is not None
        return _StoredRun(executor, self._hear, lease, paused).turn

    async def _hear(self, _event: GraphEvent) -> None:
        self._heard += 1


class _Run:
    """One run of a document, with its records in memory."""

    def __init__(self, executor: Executor[RunContext], hear: Any) -> None:
        self._executor = executor
        self._hear = hear
        self._kept = _KeptRecords()

    async def turn(self) -> Mapping[str, Any]:
        """The whole run, with the answers of the person."""
        outcome = await self._begin()
        for decision, note in work.DECISIONS if outcome.gates else ():
            answer = Answer(gate=outcome.gates[0].id, choice=decision, note=note, by="ann")
            outcome = await self._answered(answer)
        outcome.raise_for_failure()
        return {"answer": outcome.state["agent"]["answer"]}

    async def _begin(self) -> RunOutcome:
        return await self._executor.run({}, _context(), listener=self._hear, log=self._kept)

    async def _answered(self, answer: Answer) -> RunOutcome:
        return await self._executor.resume(
            self._kept.records, _context(), answers=(answer,), listener=self._hear, log=self._kept
        )


class _StoredRun(_Run):
    """One run of a document, with its records in the product's store, as in a turn of the gateway."""

    def __init__(self, executor: Executor[RunContext], hear: Any, lease: Lease, paused: PausedRuns) -> None:
        super().__init__(executor, hear)
        self._store = paused.store
        self._lease = lease
        self._session, self._message = new_id("ses"), new_id("msg")
        self._paused = paused

    async def _begin(self) -> RunOutcome:
        log, run = self._attempt()
        safe = SafeRunLog(log, _REDACTOR)
        outcome = await self._executor.run({}, _context(), listener=self._hear, log=safe)
        return await self._committed(outcome, log, run)

    async def _answered(self, answer: Answer) -> RunOutcome:
        log, run = self._attempt()
        records = await run.records()
        # As `pipeline.resuming`, which first reads what the run knows.
        self._executor.state_of(records)
        outcome = await self._executor.resume(
            records, _context(), answers=(answer,), listener=self._hear, log=SafeRunLog(log, _REDACTOR)
        )
        return await self._committed(outcome, log, run)

    async def _read(self) -> tuple[RawRecord, ...]:
        rows = await self._store.read_log(self._lease.thread, kinds=("step",), message_id=self._message)
        return newest_run(rows)

    def _attempt(self) -> tuple[StoreRunLog, TurnRun]:
        """What a turn of the gateway has of its run."""
        log = self._log()
        return log, TurnRun(self._paused, log, self._read, self._lease.thread, self._message)

    def _log(self) -> StoreRunLog:
        log = StoreRunLog(self._store, self._lease, self._row)
        # As for a workflow in the gateway.
        log.together_s = TOGETHER_S
        return log

    def _row(self, body: Mapping[str, Any]) -> NewRecord:
        now = _CLOCK.now()
        return NewRecord(kind="step", session_id=self._session, message_id=self._message, body=body, at=now)

    async def _committed(self, outcome: RunOutcome, log: StoreRunLog, run: TurnRun) -> RunOutcome:
        """Where a turn of the gateway commits its answer, and the last records with it."""
        rows = [*await log.unwritten(), *log.last_rows()]
        if rows:
            await self._store.append(self._lease, rows)
        if outcome.gates:
            run.keep()
        return outcome


class _KeptRecords:
    """A run log in memory."""

    def __init__(self) -> None:
        self.records: list[RawRecord] = []

    def append(self, record: Mapping[str, Any]) -> None:
        self.records.append(record)

    async def barrier(self) -> None:
        """Nothing to wait for."""

    async def finish(self, records: Sequence[Mapping[str, Any]]) -> None:
        self.records += records


def _context() -> RunContext:
    return RunContext(
        text=work.MESSAGE,
        speech=None,
        history=KnownHistory(),
        scope=TurnScope(
            session_id="bench",
            message_id="bench",
            thread=ThreadKey(channel="web", account="local", chat="bench"),
            author=Author(id="ann", name="Ann"),
            send=ignore_event,
        ),
        llm=_MODEL,
        tools=NullTools(),
        skills=NullSkills(),
        workspace=NullWorkspace(),
        facts=NullFacts(),
        budgets=NullBudgets(),
        clock=_CLOCK,
        settings=_SETTINGS,
        on_text=ignore_text,
        redactor=_REDACTOR,
    )


# As in the gateway, where they live as long as the agent.
_MODEL, _SETTINGS, _REDACTOR = Model(), PipelineSettings(), Redactor()


async def _main(folder: Path) -> None:
    await serve(Ours(folder), Hold())


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1])))
