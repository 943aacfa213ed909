"""The agent node: one streamed model call. What it asks for is done by `acting`; its edge decides."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from pipeline.agent.prompt import EXCHANGE, build_messages
from pipeline.domain.chat import ChatMessage, ToolCall, message_to_plain
from pipeline.domain.errors import ModelUnavailable
from pipeline.graph.decisions import Next, NodeResult, State
from pipeline.graph.spec import END
from pipeline.llm.client import LlmFinished, LlmRequest, TextDelta, ToolAsked
from pipeline.runtime.context import RunContext

CUT_NOTICE = "\n\n[The answer reached its length limit.]"
LOOP = "loop"
"""The state's key for the counters of the agent's loop."""
LOADED = "loaded"
"""The state's key for the tool groups and skills that are loaded for this message."""


@dataclass(slots=True, kw_only=True)
class _Said:
    """One answer of the model."""

    pieces: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    finished: LlmFinished = field(default_factory=lambda: LlmFinished(finish_reason="stop"))

    @property
    def text(self) -> str:
        return "".join(self.pieces).strip()


async def agent(state: State, context: RunContext) -> NodeResult:
    """Stream one answer.

    Updates `agent` (`status`, `answer`: the whole visible text so far, `finish_reason`, tokens), `exchange`
    (the model's words and calls, unless they are the last) and `loop` (`rounds`, `retries`, `next`).
    Raises the model's errors; an answer of neither text nor calls is ModelUnavailable.
    """
    settings, loop = context.settings, state.get(LOOP, {})
    loaded = state.get(LOADED, {})
    tools = context.tools.offered(loaded.get("groups", ()), context.scope)
    if loop.get("rounds", 0) >= settings.max_rounds:
        tools = ()
    retries = loop.get("retries", settings.max_retries)
    request = LlmRequest(
        messages=build_messages(context, state, tools),
        tools=tools,
        max_tokens=settings.max_answer_tokens,
        temperature=settings.temperature,
        timeout_s=settings.llm_timeout_s,
        retries=retries,
    )
    earlier = state.get("agent", {}).get("answer", "")
    said = await _ask(request, context, earlier)
    if not said.text and not said.calls:
        raise ModelUnavailable("The model gave an empty answer. Please send the message again.")
    if said.finished.finish_reason == "length" and not said.calls:
        said.pieces.append(CUT_NOTICE)
        await context.on_text(CUT_NOTICE)
    answer = "\n\n".join(part for part in (earlier, said.text) if part)
    acts = bool(said.calls)
    outcome: dict[str, Any] = {
        "status": "in_progress" if acts else "done",
        "answer": answer,
        "finish_reason": said.finished.finish_reason,
        "prompt_tokens": said.finished.prompt_tokens,
        "completion_tokens": said.finished.completion_tokens,
    }
    update: dict[str, Any] = {
        "agent": outcome,
        LOOP: {
            **loop,
            "retries": max(0, retries - (said.finished.attempts - 1)),
            "next": "act" if acts else "end",
        },
    }
    if acts:
        words = ChatMessage(role="assistant", content=said.text, tool_calls=tuple(said.calls))
        update[EXCHANGE] = [message_to_plain(words)]
    return NodeResult(update=update, decision=Next())


async def _ask(request: LlmRequest, context: RunContext, earlier: str) -> _Said:
    said = _Said()
    # Closing the stream on every way out is what stops the model when the user does.
    async with aclosing(context.llm.stream(request)) as stream:
        async for item in stream:
            match item:
                case TextDelta(text=text):
                    if earlier and not said.pieces:
                        await context.on_text("\n\n")
                    said.pieces.append(text)
                    await context.on_text(text)
                case ToolAsked(call=call):
                    said.calls.append(call)
                case LlmFinished():
                    said.finished = item
    await context.budgets.spent(
        context.scope,
        tokens=said.finished.prompt_tokens + said.finished.completion_tokens,
        cost=said.finished.cost,
    )
    return said


def after_agent(state: State) -> str:
    """The conditional edge behind the agent (seed 0)."""
    following = state[LOOP]["next"]
    return END if following == "end" else str(following)
