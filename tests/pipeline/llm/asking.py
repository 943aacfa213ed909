"""How the tests of language models ask: one request, the text and the end of an answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.domain.chat import ChatMessage
from pipeline.domain.clock import SystemClock
from pipeline.domain.json_schema import JsonSchema
from pipeline.llm.client import LlmClient, LlmFinished, LlmItem, LlmRequest, TextDelta
from tests.support.looks import look_again

MODEL_FILE = Path(__file__).parents[3] / "models" / "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
PLACE = JsonSchema(
    name="place",
    schema={
        "type": "object",
        "properties": {
            "kind": {"type": "string", "enum": ["city", "river"]},
            "name": {"type": "string", "minLength": 2, "maxLength": 40},
        },
        "required": ["kind", "name"],
    },
)
"""The form of a structured answer."""


class ImpatientClock(SystemClock):
    """Real time, but no one sleeps: the waits are only noted."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await super().sleep(0)


def ask(
    text: str = "hi",
    *,
    timeout_s: float = 30.0,
    max_tokens: int = 64,
    system: str = "You answer in one short sentence.",
) -> LlmRequest:
    return LlmRequest(
        messages=(
            ChatMessage(role="system", content=system),
            ChatMessage(role="user", content=text),
        ),
        max_tokens=max_tokens,
        temperature=0.0,
        timeout_s=timeout_s,
    )


async def answer_of(client: LlmClient, request: LlmRequest) -> tuple[str, LlmFinished]:
    """The whole text and the end. Fails when the stream does not keep the port's promises."""
    text, finished = "", None
    async for item in client.stream(request):
        assert finished is None, "nothing comes after LlmFinished"
        if isinstance(item, TextDelta):
            assert item.text, "a text delta is never empty"
            text += item.text
        elif isinstance(item, LlmFinished):
            finished = item
    assert finished is not None, "a stream that does not fail ends with LlmFinished"
    return text, finished


async def collect(client: LlmClient, request: LlmRequest, into: list[LlmItem]) -> None:
    """Put every item of the answer into `into`, which keeps them when the stream fails."""
    async for item in client.stream(request):
        into.append(item)  # noqa: PERF401  # extend would lose the items before a failure


async def until(condition: Callable[[], bool]) -> None:
    """Let others run until `condition` holds, which depends on another process."""
    while not condition():
        await look_again()


def model_file() -> Path:
    if not MODEL_FILE.is_file():
        pytest.fail(f"{MODEL_FILE} is missing: run make models")
    return MODEL_FILE
