"""The agent of a conversation that may start its playbook: its loop ends then, and the steps follow.

intake ──▶ agent ──▶ (tool calls: act ──▶ agent │ else: end)
                       └──▶ started: advance
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pipeline.agent.loop_graph import loop_nodes
from pipeline.agent.model_messages import fixed_tokens
from pipeline.agent.node import LOOP, after_agent, agent
from pipeline.agent.tool_node import act
from pipeline.domain.chat import ToolCall, ToolDefinition
from pipeline.domain.frozen import dataclass
from pipeline.graph.definition.decisions import NodeResult, State
from pipeline.graph.definition.spec import END, EdgeSpec, NodeSpec, Route
from pipeline.history.compaction import Compaction
from pipeline.playbooks.document import Playbook
from pipeline.playbooks.state import STARTED
from pipeline.playbooks.steps import ADVANCE
from pipeline.runtime.context import RunContext
from pipeline.runtime.ports import ToolGate, ToolResult
from pipeline.runtime.scope import TurnScope

START: Final = "start_workflow"
"""The tool that starts the playbook."""
_PARAMETERS: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"message": {"type": "string", "description": "What it is to be about, in all detail."}},
    "required": ["message"],
    "additionalProperties": False,
}


def starting_nodes(playbook: Playbook) -> dict[str, NodeSpec[RunContext]]:
    """The loop of the conversation, whose model may call one tool more."""
    parts = loop_nodes()
    talk = _Talk(playbook=playbook, compaction=Compaction(fixed_tokens))
    acting = parts["act"]
    writes = (*(acting.writes or ()), STARTED)
    return {
        "agent": replace(parts["agent"], run=talk.think),
        "act": replace(acting, run=talk.act, writes=writes),
    }


def starting_edges() -> tuple[EdgeSpec, ...]:
    """The edges of the loop, and to the playbook."""
    return (
        EdgeSpec(source="agent", when=Route(choose=after_agent, targets=(END, "act", "agent"))),
        EdgeSpec(source="act", when=Route(choose=_after_acting, targets=(ADVANCE, "agent"))),
    )


def _after_acting(state: State) -> str:
    return ADVANCE if state.get(STARTED) else "agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Talk:
    playbook: Playbook
    compaction: Compaction

    async def think(self, state: State, context: RunContext) -> NodeResult:
        """One answer of the model."""
        if LOOP not in state:
            await self.compaction.before_reading(state, context)
        return await agent(state, replace(context, tools=_Starter(context.tools, self.playbook)))

    async def act(self, state: State, context: RunContext) -> NodeResult:
        """Make the calls of the newest answer. Once the playbook is started, the loop ends."""
        tools = _Starter(context.tools, self.playbook)
        result = await act(state, replace(context, tools=tools))
        update = {**result.update, STARTED: {"message": tools.started} if tools.started else {}}
        return result._replace(update=update)


class _Starter:
    """The tools of the agent, and the one that starts the playbook."""

    def __init__(self, inner: ToolGate, playbook: Playbook) -> None:
        self._inner = inner
        self._playbook = playbook
        self.started = ""
        """What the playbook is to be about, once it is started."""

    async def prepare(self, groups: Sequence[str], scope: TurnScope) -> None:
        """See `ToolGate.prepare`."""
        await self._inner.prepare(groups, scope)

    def offered(self, groups: Sequence[str], scope: TurnScope) -> tuple[ToolDefinition, ...]:
        """The agent's tools, and `start_workflow`."""
        words = f"Starts the workflow {self._playbook.name}: {self._playbook.description}"
        own = ToolDefinition(name=START, description=words, parameters=_PARAMETERS)
        return (*self._inner.offered(groups, scope), own)

    async def propose(self, call: ToolCall, groups: Sequence[str], scope: TurnScope) -> ToolResult:
        """See `ToolGate.propose`."""
        if call.name != START:
            return await self._inner.propose(call, groups, scope)
        message = _message(call.arguments)
        if not message:
            return ToolResult(content=f"{START} needs the argument message, a text.", success=False)
        if self.started:
            return ToolResult(content="The workflow has been started already.", success=False)
        self.started = message
        return ToolResult(content="The workflow has started.", summary=self._playbook.name)


def _message(arguments: str) -> str:
    try:
        found = json.loads(arguments)
    except ValueError:
        return ""
    message = found.get("message") if isinstance(found, dict) else None
    return message.strip() if isinstance(message, str) else ""
