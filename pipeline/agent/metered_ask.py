"""Ask the model for an answer of a given form, counted in the person's budget; for work that no one waits
for."""

from __future__ import annotations

from typing import Final

from pipeline.agent.usage_metering import metered_text
from pipeline.domain.chat import ChatMessage
from pipeline.domain.json_schema import JsonSchema
from pipeline.llm.client import LlmRequest
from pipeline.llm.structured import MAX_ANSWER_CHARS, Ask
from pipeline.runtime.context import RunContext

TIMEOUT_S: Final = 60.0


def metered_ask(context: RunContext, schema: JsonSchema, *, max_tokens: int) -> Ask:
    """Questions with that form of the answer, one attempt each. There is no answer where the budget allows no
    model, or after 60 seconds. Each raises the model's errors, and StorageError."""

    async def ask(messages: tuple[ChatMessage, ...]) -> str:
        if (await context.budgets.allowance(context.scope)).model == "none":
            return ""
        request = LlmRequest(
            messages=messages,
            schema=schema,
            max_tokens=max_tokens,
            temperature=0.0,
            timeout_s=TIMEOUT_S,
            retries=0,
        )
        deadline = context.clock.timeout(TIMEOUT_S)
        try:
            async with deadline:
                return await metered_text(request, context, most_chars=MAX_ANSWER_CHARS)
        except TimeoutError:
            if not deadline.expired():
                raise
            return ""

    return ask
