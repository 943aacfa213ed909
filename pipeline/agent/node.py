"""The agent node: one streamed model call, then `next`; the edge after it decides."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

from pipeline.agent.prompt import build_messages
from pipeline.domain.errors import ModelUnavailable
from pipeline.graph.decisions import Next, NodeResult, State
from pipeline.graph.spec import END
from pipeline.llm.client import LlmFinished, LlmRequest, TextDelta
from pipeline.runtime.context import RunContext

CUT_NOTICE = "\n\n[The answer reached its length limit.]"


async def agent(state: State, context: RunContext) -> NodeResult:
    """Stream the answer.

    Updates `agent`: `status` (`done`), `answer` (the whole visible text), `finish_reason` and the
    token counts. Raises the model's errors; an answer without text is ModelUnavailable.
    """
    settings = context.settings
    request = LlmRequest(
        messages=build_messages(context, state["intake"]["messages_kept"]),
        max_tokens=settings.max_answer_tokens,
        temperature=settings.temperature,
        timeout_s=settings.llm_timeout_s,
    )
    pieces: list[str] = []
    finished = LlmFinished(finish_reason="stop")
    # Closing the stream on every way out is what stops the model when the user does.
    async with aclosing(context.llm.stream(request)) as stream:
        async for item in stream:
            match item:
                case TextDelta(text=text):
                    pieces.append(text)
                    await context.on_text(text)
                case LlmFinished():
                    finished = item
    if not "".join(pieces).strip():
        raise ModelUnavailable("The model gave an empty answer. Please send the message again.")
    if finished.finish_reason == "length":
        pieces.append(CUT_NOTICE)
        await context.on_text(CUT_NOTICE)
    outcome: dict[str, Any] = {
        "status": "done",
        "answer": "".join(pieces).strip(),
        "finish_reason": finished.finish_reason,
        "prompt_tokens": finished.prompt_tokens,
        "completion_tokens": finished.completion_tokens,
    }
    return NodeResult(update={"agent": outcome}, decision=Next())


def after_agent(state: State) -> str:
    """The conditional edge behind the agent (seed 0): done or blocked ends, anything else loops."""
    status = state["agent"]["status"]
    return END if status in ("done", "blocked") else "agent"
