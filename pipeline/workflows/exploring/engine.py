"""The real engine under an explorer: the compiled graph of a document, with agents that answer on request.

A run is driven until nothing in it can continue by itself: every agent at work waits for its answer, every
open approval for a person. It can then be continued differently, each time from a copy, and each record that
it writes is a moment at which the process may be killed. Only the agents are replaced: each is still a
subgraph, with one effect in it where the model and its tools would be.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Any, Final

from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import TurnFailed
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author
from pipeline.graph.definition.decisions import NodeResult, State
from pipeline.graph.definition.spec import END, EdgeSpec, GraphSpec, NodeSpec, OnSuccess
from pipeline.graph.execution.control import RunControl
from pipeline.graph.execution.executor import Executor
from pipeline.graph.execution.step import current_step
from pipeline.graph.run.outcome import Answer, RunOutcome
from pipeline.graph.run.recorder import RunRecorder
from pipeline.graph.run.records import TRAIL, Head
from pipeline.graph.run.state import Run
from pipeline.nodes.intake_steps import MESSAGE
from pipeline.runtime.context import RunContext, ignore_text
from pipeline.runtime.null_services import (
    KnownHistory,
    NullBudgets,
    NullFacts,
    NullSkills,
    NullTools,
    NullWorkspace,
)
from pipeline.runtime.scope import TurnScope, ignore_event
from pipeline.runtime.settings import PipelineSettings
from pipeline.workflows.compiling import without_intake
from pipeline.workflows.document import Workflow, WorkflowAgent, WorkflowApproval
from pipeline.workflows.exploring.forking import forked
from pipeline.workflows.exploring.ready_loop import ReadyLoop
from pipeline.workflows.steps import CHANNELS, FIRST, ONCE, PREVIOUS, SOURCES

WORK: Final = "work"
"""The only node inside an agent, and the key of its effect."""
_WRITES: Final = (PREVIOUS, FIRST, SOURCES, TRAIL)
_NO_SNAPSHOTS: Final = 1 << 30
_HEAD: Final[Head] = {"run": "run", "graph": "", "signature": "", "entry": "", "inputs": {}}


@dataclass(slots=True, kw_only=True)
class Driven:
    """What one continuation did."""

    run: Run
    """Where it came to rest."""
    called: list[str] = field(default_factory=list)
    """The frames whose agents did their work: once for each call."""
    outcome: RunOutcome | None = None
    """Set unless agents are at work."""


class ExploredEngine:
    """Runs of one workflow. `moment` sees the run after each record, and copies what it keeps. Use `close` at
    the end."""

    def __init__(self, workflow: Workflow, moment: Callable[[Run], None]) -> None:
        open_to_all = {
            # Who may answer depends on the chat, not on the document.
            name: replace(node, approvers=()) if isinstance(node, WorkflowApproval) else node
            for name, node in workflow.nodes.items()
        }
        self._due: dict[str, str | None] = {}
        """The frames whose agents answer now, with what; None: the agent fails."""
        self._driven = Driven(run=_NO_RUN)
        self._moment = moment
        self._loop = ReadyLoop()
        self.graph = without_intake(replace(workflow, nodes=open_to_all), self._agent)
        self._executor = _Continuing(self.graph, clock=ManualClock())
        self._context = _context()

    def close(self) -> None:
        """Give back what the event loop has."""
        self._loop.close()

    def begin(self, message: str) -> Driven:
        """A run from its start."""
        run = Run.begin("run", self.graph, {MESSAGE: message}, self.graph.entry)
        return self._drive(run, (), {})

    def answered(self, run: Run, frame: str, text: str | None) -> Driven:
        """The run after the agent inside `frame` has answered, or failed."""
        return self._drive(forked(run), (), {frame: text})

    def decided(self, run: Run, gate: str, choice: str) -> Driven:
        """The run after a person has answered an approval."""
        return self._drive(forked(run), (Answer(gate=gate, choice=choice),), {})

    def expired(self, run: Run, gate: str) -> Driven:
        """The run after the time for an approval has passed."""
        copy = forked(run)
        for frame in copy.frames.values():
            if frame.gate is not None and frame.gate.id == gate:
                frame.gate = replace(frame.gate, expires_at=0.0)
        return self._drive(copy, (), {})

    def resumed(self, run: Run) -> Driven:
        """The run that a process finds in the records after another one was killed at this moment."""
        return self._drive(forked(run), (), {})

    def _drive(self, run: Run, answers: Sequence[Answer], due: dict[str, str | None]) -> Driven:
        driven = self._driven = Driven(run=run)
        self._due = due
        call = self._executor.continued(run, self._context, _Moments(run, self._moment), answers)
        task = self._loop.create_task(call)
        self._loop.run_ready()
        if task.done():
            driven.outcome = task.result()
        else:
            task.cancel()
            self._loop.run_ready()
        return driven

    def _agent(
        self, _node: WorkflowAgent, _workflow: Workflow, _labels: Mapping[str, str]
    ) -> NodeSpec[RunContext]:
        """See `agent_step.agent_node`."""
        inside: GraphSpec[RunContext] = GraphSpec(
            name="explored_agent",
            entry=WORK,
            nodes={WORK: NodeSpec(run=self._work, writes=_WRITES, retry=ONCE)},
            edges=(EdgeSpec(source=WORK, target=END, when=OnSuccess()),),
            channels={SOURCES: CHANNELS[SOURCES]},
        )
        return NodeSpec(subgraph=inside, reads=(PREVIOUS, FIRST, SOURCES, MESSAGE), writes=_WRITES)

    async def _work(self, _state: State, _context: RunContext) -> NodeResult:
        step = current_step()
        # A call that was cut off is made again: whether a tool may be is decided by the gate of the tools.
        text = await step.effect(WORK, partial(self._call, step.frame.id), repeatable=True)
        return NodeResult(update={PREVIOUS: text, FIRST: False, SOURCES: [], TRAIL: {}})

    async def _call(self, frame: str) -> str:
        if frame not in self._due:
            await self._loop.create_future()
        text = self._due.pop(frame)
        self._driven.called.append(frame)
        if text is None:
            raise TurnFailed("explored", "The agent failed.")
        return text


class _Continuing(Executor[RunContext, State]):
    """Continues a run as it is, where an executor begins one or reads it from its records."""

    def continued(
        self, run: Run, context: RunContext, log: _Moments, answers: Sequence[Answer]
    ) -> Coroutine[Any, Any, RunOutcome]:
        """As `Executor.resume`, for the records that led to `run`."""
        recorder = RunRecorder(run, _HEAD, log, None, _NO_SNAPSHOTS, details=False)
        return self._execute(run, recorder, context, RunControl(), answers, later=frozenset())


class _Moments:
    """A run log that shows the run after each record, in place of the record."""

    def __init__(self, run: Run, moment: Callable[[Run], None]) -> None:
        self._run = run
        self._moment = moment

    def append(self, _record: Mapping[str, Any]) -> None:
        self._moment(self._run)

    async def barrier(self) -> None:
        """Every record is durable at once: a kill may come at each of them."""

    async def finish(self, records: Sequence[Mapping[str, Any]]) -> None:
        """The last records are part of one commit: no kill comes between them."""


_NO_RUN: Final[Any] = None


def _context() -> RunContext:
    no_model: Any = None
    return RunContext(
        text="",
        speech=None,
        history=KnownHistory(),
        scope=TurnScope(
            session_id="explored",
            message_id="explored",
            thread=ThreadKey(channel="explored", account="explored", chat="explored"),
            author=Author(id="explored", name="explored"),
            send=ignore_event,
        ),
        llm=no_model,
        tools=NullTools(),
        skills=NullSkills(),
        workspace=NullWorkspace(),
        facts=NullFacts(),
        budgets=NullBudgets(),
        clock=ManualClock(),
        settings=PipelineSettings(),
        on_text=ignore_text,
    )
