"""Sub-agents of a workflow's agent: one tool for each, whose call is a run of that agent.

A call is an effect of the agent's step: after a restart a finished one is not made again. Errors of a
sub-agent are the tool's result, so its parent may continue. Not here: which agents may have which
(`checks`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from pipeline.agent.tool_node import META_TOOLS
from pipeline.domain.chat import ToolCall, ToolDefinition
from pipeline.domain.errors import ModelError, ParlourError, StorageError, TurnFailed
from pipeline.domain.files import StoredFile, stored_file_from_plain, stored_file_to_plain
from pipeline.domain.frozen import dataclass
from pipeline.graph.execution.step import EffectUnknown, current_step
from pipeline.runtime.ports import EXECUTION, ToolGate, ToolResult
from pipeline.runtime.scope import TurnScope
from pipeline.workflows.document import Workflow, WorkflowAgent

MAX_DESCRIPTION: Final = 280
MAX_NESTED_NAMES: Final = 4
MAX_RESULT: Final = 5_000
_MAX_TOOL_NAME = 64
_UNKNOWN = (
    "{name} was cut off by a restart: it is unknown what it did. Do not start it again by yourself; say so."
)
_NO_TURNS = "There are no turns left for sub-agents. Answer with what you have."
_PARAMETERS: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"message": {"type": "string", "description": "The whole task, as it knows nothing else."}},
    "required": ["message"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SubAgentCall:
    """One call of a sub-agent."""

    agent: WorkflowAgent
    message: str
    id: str
    root: str
    """The agent of the run that the whole tree belongs to."""
    parent: str = ""
    """The call of the agent above it; empty for the root's own."""
    depth: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a call gave."""

    text: str
    turns: int
    """Calls of the model, those of agents below it included."""
    events: tuple[Mapping[str, Any], ...] = ()
    """Of the agents below it, in order."""
    files: tuple[StoredFile, ...] = ()
    """Those that its tools have returned."""


Run = Callable[[SubAgentCall, int, TurnScope], Awaitable[Report]]
"""Runs a sub-agent with at most so many turns. Raises the errors of a run."""


class WorkflowTools:
    """The tools of one agent: those of the `groups` that the document names, and its sub-agents."""

    def __init__(
        self,
        inner: ToolGate,
        workflow: Workflow,
        agent: WorkflowAgent,
        *,
        run: Run,
        now: Callable[[], float],
        turns: int,
        above: SubAgentCall | None = None,
    ) -> None:
        """`turns` are left for the agents below; `above` is the call that the agent itself runs in."""
        self._inner = inner
        self._agent = agent
        self._above = above
        self._run = run
        self._now = now
        self._left = turns
        self._agents = tool_names(workflow.subagents(agent.id))
        self._workflow = workflow
        self.spent = 0
        """The turns that agents below have taken."""
        self.events: list[Mapping[str, Any]] = []
        """What happened to calls, as the log of the run tells it: `at`, `type` and `content`."""

    async def prepare(self, groups: Sequence[str], scope: TurnScope) -> None:
        """See `ToolGate.prepare`."""
        await self._inner.prepare(groups, scope)

    def offered(self, groups: Sequence[str], scope: TurnScope) -> tuple[ToolDefinition, ...]:
        """The tools of the loaded groups, and one for each sub-agent."""
        inner = self._inner.offered(groups, scope) if groups else ()
        own = tuple(definition(name, agent, self._workflow) for name, agent in self._agents.items())
        return (*(tool for tool in inner if tool.name not in META_TOOLS), *own)

    async def propose(self, call: ToolCall, groups: Sequence[str], scope: TurnScope) -> ToolResult:
        """See `ToolGate.propose`."""
        agent = self._agents.get(call.name)
        if agent is None:
            if call.name in META_TOOLS:
                return ToolResult(content=f"Unknown tool: {call.name}", success=False)
            return await self._inner.propose(call, groups, scope)
        message = _message(call.arguments)
        if not message:
            return ToolResult(content=f"{call.name} needs the argument message, a text.", success=False)
        if self._left - self.spent <= 0:
            return ToolResult(content=_NO_TURNS, success=False)
        return await self._called(call, agent, message, scope)

    async def _called(
        self, call: ToolCall, agent: WorkflowAgent, message: str, scope: TurnScope
    ) -> ToolResult:
        above = self._above
        asked = SubAgentCall(
            agent=agent,
            message=message,
            id=call.id if above is None else f"{above.id}.{call.id}",
            root=self._agent.id if above is None else above.root,
            parent="" if above is None else above.id,
            depth=1 if above is None else above.depth + 1,
        )

        async def run() -> dict[str, Any]:
            return await self._report(asked, scope)

        try:
            found: Mapping[str, Any] = await current_step().effect(
                f"{EXECUTION}{call.id}", run, repeatable=not acts(agent, self._workflow)
            )
        except EffectUnknown:
            words = _UNKNOWN.format(name=title(agent))
            self.events.append(self._event("subagent_call_error", asked, words))
            return ToolResult(content=words, success=False)
        self.events.extend(found["events"])
        self.spent += found["turns"]
        files = tuple(stored_file_from_plain(plain) for plain in found.get("files", ()))
        return ToolResult(content=found["text"], success=found["success"], summary=title(agent), files=files)

    async def _report(self, call: SubAgentCall, scope: TurnScope) -> dict[str, Any]:
        """Run a sub-agent, as plain data: an effect's result."""
        events = [self._event("subagent_call_start", call, call.message)]
        turns, done = 0, False
        files: list[dict[str, Any]] = []
        try:
            async with scope.delegating():
                report = await self._run(call, self._left - self.spent, scope)
        except StorageError:
            raise
        except (TurnFailed, ModelError) as error:
            text = str(error)
        except ParlourError as error:
            text = f"It could not continue: {error}"
        else:
            text, turns, done = report.text, report.turns, True
            events.extend(dict(event) for event in report.events)
            files = [stored_file_to_plain(file) for file in report.files]
        text = text if len(text) <= MAX_RESULT else f"{text[:MAX_RESULT]} …(cut)"
        events.append(self._event("subagent_call_end" if done else "subagent_call_error", call, text))
        known = {"text": text or "It ended without a word.", "success": done, "turns": turns}
        return {**known, "events": events, **({"files": files} if files else {})}

    def _event(self, kind: str, call: SubAgentCall, message: str) -> dict[str, Any]:
        payload: dict[str, Any] = {
            "type": kind,
            "parentNodeId": call.root,
            "subagentNodeId": call.agent.id,
            "subagentName": title(call.agent),
            "callId": call.id,
        }
        if call.parent:
            payload["parentCallId"] = call.parent
        payload |= {"depth": call.depth, "message": message}
        return {"at": self._now(), "type": kind, "content": json.dumps(payload, ensure_ascii=False)}


def acts(agent: WorkflowAgent, workflow: Workflow) -> bool:
    """Whether an agent, or one below it, has tools that may change something."""
    return bool(agent.groups) or any(acts(below, workflow) for below in workflow.subagents(agent.id))


def title(agent: WorkflowAgent) -> str:
    """The name of an agent for people."""
    return agent.name or agent.id


def tool_names(agents: Sequence[WorkflowAgent]) -> dict[str, WorkflowAgent]:
    """The agents by the names of their tools: `subagent_<name>_<id>`, which every provider accepts."""
    found: dict[str, WorkflowAgent] = {}
    for agent in agents:
        slug = re.sub(r"[^a-z0-9]+", "_", title(agent).lower()).strip("_") or "agent"
        ending = re.sub(r"[^A-Za-z0-9_-]+", "_", agent.id)
        name = wanted = f"subagent_{slug[:30]}_{ending}"[:_MAX_TOOL_NAME]
        number = 2
        while name in found:
            tail = f"_{number}"
            name, number = f"{wanted[: _MAX_TOOL_NAME - len(tail)]}{tail}", number + 1
        found[name] = agent
    return found


def definition(name: str, agent: WorkflowAgent, workflow: Workflow) -> ToolDefinition:
    """The tool of a sub-agent, as the model reads it."""
    does = " ".join((agent.user_prompt or agent.system_prompt).split())
    does = does if len(does) <= MAX_DESCRIPTION else f"{does[: MAX_DESCRIPTION - 1]}…"
    below = [title(one) for one in workflow.subagents(agent.id)]
    if below:
        shown = ", ".join(below[:MAX_NESTED_NAMES]) + (", …" if len(below) > MAX_NESTED_NAMES else "")
        does = f"{does}\nIt can ask: {shown}"
    return ToolDefinition(name=name, description=f"{title(agent)}: {does}", parameters=_PARAMETERS)


def _message(arguments: str) -> str:
    try:
        found = json.loads(arguments)
    except ValueError:
        return ""
    message = found.get("message") if isinstance(found, dict) else None
    return message.strip() if isinstance(message, str) else ""
