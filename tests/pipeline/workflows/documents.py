"""Workflow documents for tests, and runs of them without a gateway."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from pipeline.domain.clock import ManualClock
from pipeline.graph.execution.executor import Executor
from pipeline.graph.run.outcome import Answer, RunOutcome
from pipeline.llm.client import LlmFinished, LlmItem, LlmRequest, TextDelta
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from pipeline.workflows.compiling import compiled
from pipeline.workflows.reading import read_workflow
from pipeline.workflows.run_record import WorkflowRun, run_record
from tests.support.contexts import Watched, context
from tests.support.graph_log import MemoryRunLog

Plain = dict[str, Any]


def start(name: str = "start", **data: Any) -> Plain:
    """A start."""
    return {"id": name, "type": "start", "data": data}


def agent(name: str, /, **data: Any) -> Plain:
    """An agent."""
    return {"id": name, "type": "agent", "data": data}


def choice(name: str, *conditions: tuple[str, str]) -> Plain:
    """An if with conditions as (operator, value)."""
    listed = [{"operator": operator, "value": value} for operator, value in conditions]
    return {"id": name, "type": "if", "data": {"conditions": listed}}


def approval(name: str, **data: Any) -> Plain:
    """An approval."""
    return {"id": name, "type": "approval", "data": data}


def way(path: str, handle: str = "") -> Plain:
    """A connection, from a path such as `a > b`."""
    source, target = (end.strip() for end in path.split(">"))
    found = {"source": source, "target": target}
    return {**found, "sourceHandle": handle} if handle else found


def document(*nodes: Plain, routes: Sequence[Plain] = (), **given: Any) -> Plain:
    """A document of nodes and connections."""
    return {"name": "flow", "nodes": list(nodes), "connections": list(routes), **given}


class Echo:
    """A model that answers with the text of its last message, or with what `says` has for that text. An
    exception there is raised. `asked` are the texts, in the order in which they came."""

    def __init__(self, says: Mapping[str, str | Exception]) -> None:
        self.says = dict(says)
        self.asked: list[str] = []
        self.requests: list[LlmRequest] = []

    async def stream(self, request: LlmRequest) -> AsyncGenerator[LlmItem, None]:
        """See `LlmClient.stream`."""
        text = request.messages[-1].content
        self.asked.append(text)
        self.requests.append(request)
        answer = self.says.get(text, text)
        if isinstance(answer, Exception):
            raise answer
        yield TextDelta(text=answer)
        yield LlmFinished(finish_reason="stop")

    async def warm_up(self) -> None:
        """Nothing to do."""

    async def close(self) -> None:
        """Nothing to do."""

    def status(self) -> str:
        """Always ready."""
        return "ready"


class Run:
    """One run of a document; a model answers with the text of its prompt, or as scripted by prompt."""

    def __init__(
        self,
        source: Mapping[str, Any],
        says: Mapping[str, str | Exception] | None = None,
        script: Sequence[ScriptedAnswer] | None = None,
        *,
        llm: Echo | None = None,
        **given: Any,
    ) -> None:
        self.workflow = read_workflow(source)
        self.clock = ManualClock()
        self.log = MemoryRunLog()
        self.watched = Watched()
        self.llm: ScriptedLlm | Echo = llm or Echo(says or {})
        if script is not None:
            self.llm = ScriptedLlm(list(script))
        self._executor = Executor(compiled(self.workflow), clock=self.clock)
        self._context = context("hello", llm=self.llm, clock=self.clock, watched=self.watched, **given)

    async def begin(self) -> WorkflowRun:
        """Run until it ends or waits."""
        self.outcome = await self._executor.run({}, self._context, log=self.log)
        return self.record

    async def answer(self, node: str, choice: str = "approve", note: str = "") -> WorkflowRun:
        """Answer an approval that is waited for."""
        gate = next(gate for gate in self.outcome.gates if gate.node == node)
        answer = Answer(gate=gate.id, choice=choice, note=note, by="ada")
        self.outcome = await self._resumed((answer,))
        return self.record

    async def resume(self) -> WorkflowRun:
        """Continue from the records alone, as after a crash."""
        self.outcome = await self._resumed(())
        return self.record

    async def _resumed(self, answers: Sequence[Answer]) -> RunOutcome:
        return await self._executor.resume(self.log.records, self._context, log=self.log, answers=answers)

    @property
    def record(self) -> WorkflowRun:
        """The public record so far."""
        return run_record(self.workflow, self.log.records)

    @property
    def ran(self) -> tuple[str, ...]:
        """The nodes of the document that ran, in the order in which they ended."""
        return tuple(label for label in self.outcome.path if label in self.workflow.nodes)

    @property
    def said(self) -> str:
        """The answer for the person."""
        return str(self.outcome.state.get("agent", {}).get("answer", ""))
