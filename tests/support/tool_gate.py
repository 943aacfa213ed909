"""A gate with tools around it for tests: proposals run inside a real graph, so effects are real ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pipeline.domain.chat import ToolCall, ToolDefinition
from pipeline.domain.clock import Clock, ManualClock
from pipeline.graph.definition.decisions import NodeResult, State
from pipeline.graph.definition.spec import END, EdgeSpec, GraphSpec, NodeSpec
from pipeline.graph.execution.executor import Executor
from pipeline.redaction.redactor import Redactor
from pipeline.runtime.approvals import ApprovalOutcome
from pipeline.runtime.null_services import NullSkills
from pipeline.runtime.ports import SkillBook, ToolResult
from pipeline.runtime.scope import TurnScope
from pipeline.shield.shield import Shield
from pipeline.tools.gate import RegistryGate
from pipeline.tools.protection import Protection
from pipeline.tools.registry import FixedGroup, ToolRegistry
from pipeline.tools.returned_files import ReturnedFiles
from pipeline.tools.snapshots import WorkspaceSnapshots
from pipeline.tools.tool import Run, Tool, ToolGroup, tool_schema
from tests.support.graph_log import MemoryRunLog
from tests.support.shields import shield


class Person:
    """Approvals with a scripted answer; records the questions."""

    def __init__(self, answer: ApprovalOutcome = "allowed") -> None:
        self.answer: ApprovalOutcome = answer
        self.asked: list[dict[str, str]] = []
        self.can_last: list[bool] = []

    async def ask(
        self,
        scope: TurnScope,
        *,
        action_id: str,
        action_hash: str,
        tool_name: str,
        summary: str,
        reasoning: str,
        can_last: bool = False,
    ) -> ApprovalOutcome:
        del scope
        self.can_last.append(can_last)
        self.asked.append(
            {"id": action_id, "hash": action_hash, "tool": tool_name, "summary": summary, "words": reasoning}
        )
        return self.answer


def tool(
    name: str, run: Run, *, group: str = "test", schema: dict[str, Any] | None = None, **flags: Any
) -> Tool:
    """A tool that takes `text`, unless `schema` says otherwise."""
    parameters = tool_schema({"text": {"type": "string"}}) if schema is None else schema
    definition = ToolDefinition(name=name, description=f"the tool {name}", parameters=parameters)
    return Tool(definition=definition, group=group, run=run, **flags)


def group(*tools: Tool, name: str = "test") -> FixedGroup:
    """A group whose tools are loaded from the start."""
    return FixedGroup(name=name, description=f"the group {name}", fixed=tools)


def gate(
    *groups: ToolGroup,
    person: Person | None = None,
    clock: Clock | None = None,
    enabled: Sequence[str] | None = None,
    protection: Protection | None = None,
    skills: SkillBook | None = None,
    timeout_s: float = 60.0,
    redactor: Redactor | None = None,
    files: ReturnedFiles | None = None,
    snapshots: WorkspaceSnapshots | None = None,
    judge: Shield | None = None,
) -> RegistryGate:
    """A gate before `groups`; without a person everything is allowed, and without `judge` the shipped policy
    decides."""
    clock = clock or ManualClock()
    return RegistryGate(
        shield=judge or shield(clock=clock),
        registry=ToolRegistry(groups, enabled=enabled),
        approvals=person or Person(),
        skills=skills or NullSkills(),
        clock=clock,
        protection=protection,
        timeout_s=timeout_s,
        redactor=redactor,
        files=files,
        snapshots=snapshots,
    )


def call(name: str, arguments: Any = None, *, call_id: str = "call-1") -> ToolCall:
    """A model's call; `arguments` is JSON text or what is written as such."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    return ToolCall(id=call_id, name=name, arguments=text)


async def propose(
    to: RegistryGate,
    *calls: ToolCall,
    scope: TurnScope,
    groups: Sequence[str] = ("test",),
    log: MemoryRunLog | None = None,
    resume: bool = False,
) -> list[ToolResult]:
    """Propose the calls in order from a node of a running graph; with `resume`, of the run in `log`."""
    results: list[ToolResult] = []

    async def act(_state: State, _context: None) -> NodeResult:
        results.clear()
        results.extend([await to.propose(one, groups, scope) for one in calls])
        return NodeResult()

    graph: GraphSpec[None, State] = GraphSpec(
        name="calls",
        entry="act",
        nodes={"act": NodeSpec(run=act, event_loop=True)},
        edges=(EdgeSpec(source="act", target=END),),
    )
    executor = Executor(graph, clock=ManualClock())
    if resume:
        assert log is not None
        outcome = await executor.resume(log.records, None)
    else:
        outcome = await executor.run({}, None, log=log)
    for failure in outcome.failures:
        raise failure.exception or AssertionError(failure.message)
    return results
