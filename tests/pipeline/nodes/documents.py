"""Run graph documents of the shipped kinds of nodes, without a gateway."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from pipeline.agent.llm_decider import LlmDecider
from pipeline.agent.task import between_tasks
from pipeline.domain.chat import ToolCall, ToolDefinition
from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import GraphError
from pipeline.graph.execution.executor import Executor
from pipeline.graph.run.outcome import Answer, RunOutcome
from pipeline.graph.run.records import RawRecord
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from pipeline.nodes.document_graph import document_graph
from pipeline.runtime.ports import ToolResult
from pipeline.runtime.scope import TurnScope
from tests.support.contexts import Watched, context
from tests.support.graph_log import MemoryRunLog

Node = dict[str, Any]


class OneTool:
    """A gate with the tool `look` in the group `library`, which gives its results in order."""

    def __init__(self, *results: ToolResult) -> None:
        self.results = list(results)
        self.proposed: list[ToolCall] = []

    async def prepare(self, _groups: Sequence[str], _scope: TurnScope) -> None:
        return None

    def offered(self, groups: Sequence[str], _scope: TurnScope) -> tuple[ToolDefinition, ...]:
        tool = ToolDefinition(name="look", description="Looks.", parameters={"type": "object"})
        return (tool,) if "library" in groups else ()

    async def propose(self, call: ToolCall, groups: Sequence[str], _scope: TurnScope) -> ToolResult:
        if call.name == "load_tools":
            known = ("library",) if '"library"' in call.arguments else ()
            return ToolResult(content="loaded", success=bool(known), groups=known)
        assert tuple(groups) in ((), ("library",))
        self.proposed.append(call)
        return self.results.pop(0)


def steps(*nodes: Node, edges: Sequence[Node] = (), **given: Any) -> dict[str, Any]:
    """A document that begins at its first node."""
    return {"name": "steps", "entry": nodes[0]["id"], "nodes": list(nodes), "edges": list(edges), **given}


def node(name: str, kind: str, **parameters: Any) -> Node:
    """A node of a kind."""
    return {"id": name, "run": kind, "with": parameters}


def edge(source: str, target: str, **given: Any) -> Node:
    """An edge of a document."""
    return {"source": source, "target": target, **given}


class Run:
    """Runs of one document: the log, what was shown and asked."""

    def __init__(
        self,
        document: Mapping[str, Any],
        *answers: str | ScriptedAnswer,
        tools: OneTool | None = None,
        clock: ManualClock | None = None,
    ) -> None:
        self.llm = ScriptedLlm([ScriptedAnswer.of(one) if isinstance(one, str) else one for one in answers])
        self.watched = Watched()
        self.log = MemoryRunLog()
        self.tools = tools or OneTool()
        self.clock = clock or ManualClock()
        self._executor = Executor(
            document_graph(document), clock=self.clock, decider=LlmDecider(), phase=between_tasks
        )

    async def start(self, text: str = "hello") -> RunOutcome:
        """The outcome of a message."""
        self.text = text
        return await self._executor.run({}, self._context(), log=self.log)

    async def resume(self, records: Sequence[RawRecord], *answers: Answer) -> RunOutcome:
        """The outcome of the run that those records began."""
        return await self._executor.resume(records, self._context(), answers=answers, log=self.log)

    def _context(self) -> Any:
        return context(self.text, watched=self.watched, llm=self.llm, tools=self.tools, clock=self.clock)


async def answer_of(document: Mapping[str, Any], *answers: str, text: str = "hello") -> str:
    """The answer of a run; raises its failure."""
    outcome = await Run(document, *answers).start(text)
    outcome.raise_for_failure()
    return str(outcome.state["agent"]["answer"])


def mistakes(*nodes: Node) -> list[str]:
    """What is wrong with a document of these nodes."""
    with pytest.raises(GraphError) as caught:
        document_graph(steps(*nodes))
    return [line.removeprefix("graph steps: ") for line in str(caught.value).splitlines()]
