"""The kind `tool`: one call of a tool through the gate, which checks it as it checks a model's calls."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pipeline.agent.model_messages import EXCHANGE, LOADED
from pipeline.agent.sent_files import sent_files
from pipeline.domain.chat import ChatMessage, ToolCall, message_to_plain
from pipeline.domain.frozen import dataclass
from pipeline.domain.marking import unmarked
from pipeline.graph.definition.decisions import NodeResult, State
from pipeline.graph.definition.retry import RetryPolicy
from pipeline.graph.definition.spec import NodeSpec
from pipeline.graph.documents.fields import Fields
from pipeline.graph.execution.step import current_step
from pipeline.nodes.failures import StepFailed
from pipeline.nodes.foreign import note_foreign_results
from pipeline.nodes.templates import filled, template_tree
from pipeline.runtime.context import RunContext

_SHOWN_CHARS = 300


def tool_kind(given: Fields) -> NodeSpec[RunContext]:
    """Calls the tool `tool` of the group `group` with `arguments`, whose texts are templates: a text that is
    one place gives the value itself. The result's text is written under `output`. The node fails where the
    tool is refused or fails; `retry` then calls it again."""
    output = given.text("output", default="")
    call = _Tool(
        tool=given.text("tool"),
        group=given.text("group", default=""),
        arguments=template_tree(given, "arguments"),
        output=output,
    )
    # The call and its result are kept in the conversation, as those of a model are.
    writes = (EXCHANGE, *((output,) if output else ()))
    return NodeSpec(run=call, writes=writes, retry=RetryPolicy(max_attempts=1), goes_to=())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tool:
    tool: str
    group: str
    arguments: Mapping[str, Any]
    output: str

    async def __call__(self, state: State, context: RunContext) -> NodeResult:
        note_foreign_results(state, context)
        context.scope.files.note(sent_files(state))
        # Foreign words in the history count against the call, although no argument need come from there.
        await context.history.conversation()
        step = current_step()
        number = f"{step.node}_{step.execution}_{step.attempt}"
        groups = await load_groups((self.group,) if self.group else (), context, f"load_{number}")
        arguments = json.dumps(filled(self.arguments, state), ensure_ascii=False)
        call = ToolCall(id=f"call_{number}", name=self.tool, arguments=arguments)
        result = await context.tools.propose(call, groups, context.scope)
        if not result.success:
            reason = context.redactor.line(result.summary or result.content, _SHOWN_CHARS)
            raise StepFailed(f"The step {step.node} could not use {self.tool}: {reason}")
        answer = ChatMessage(
            role="tool",
            content=result.content,
            tool_call_id=call.id,
            foreign=result.foreign,
            sends=result.files,
        )
        asked = ChatMessage(role="assistant", content="", tool_calls=(call,))
        update: dict[str, Any] = {EXCHANGE: [message_to_plain(asked), message_to_plain(answer)]}
        if self.output:
            update[self.output] = unmarked(result.content)
        return NodeResult(update=update)


async def load_groups(groups: tuple[str, ...], context: RunContext, call_id: str) -> tuple[str, ...]:
    """Load tool groups through the gate, as a call of the model does. Raises StepFailed where one is
    missing."""
    if not groups:
        return ()
    call = ToolCall(id=call_id, name="load_tools", arguments=json.dumps({"groups": list(groups)}))
    result = await context.tools.propose(call, (), context.scope)
    missing = [group for group in groups if group not in result.groups]
    if missing:
        raise StepFailed(f"The tools {', '.join(missing)} are not available here.")
    return groups


def loading(groups: tuple[str, ...]) -> NodeSpec[RunContext]:
    """A node that loads groups for the agent's loop that follows."""

    async def load_tool_groups(_state: State, context: RunContext) -> NodeResult:
        step = current_step()
        loaded = await load_groups(groups, context, f"load_{step.node}_{step.execution}_{step.attempt}")
        return NodeResult(update={LOADED: {"groups": list(loaded), "skills": []}})

    return NodeSpec(run=load_tool_groups, writes=(LOADED,), retry=RetryPolicy(max_attempts=1), goes_to=())
