"""Ask a model for structured answers, outside of a gateway."""

from __future__ import annotations

from contextlib import aclosing

from pipeline.domain.chat import ChatMessage
from pipeline.domain.clock import Clock
from pipeline.domain.json_schema import JsonSchema
from pipeline.llm.client import LlmClient, LlmRequest, TextDelta
from pipeline.llm.structured import Ask


def model_ask(llm: LlmClient, schema: JsonSchema, *, max_tokens: int, timeout_s: float, clock: Clock) -> Ask:
    """Asks `llm` in one attempt, with the form of the answer. The answer is empty if it takes longer than
    `timeout_s` seconds; the model's own errors are raised."""

    async def ask(messages: tuple[ChatMessage, ...]) -> str:
        request = LlmRequest(
            messages=messages,
            schema=schema,
            max_tokens=max_tokens,
            temperature=0.0,
            timeout_s=timeout_s,
            retries=0,
        )
        deadline = clock.timeout(timeout_s)
        try:
            async with deadline, aclosing(llm.stream(request)) as stream:
                return "".join([item.text async for item in stream if isinstance(item, TextDelta)])
        except TimeoutError:
            if not deadline.expired():
                raise
            return ""

    return ask
