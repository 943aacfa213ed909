"""The cost of streaming through each model backend, and through litellm alone, from the same server.

Processor time is that of this process, all threads; the server that streams is another process.
"""

from __future__ import annotations

import asyncio
import sys
import time
from asyncio.subprocess import PIPE, create_subprocess_exec
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from bench.report import ROOT, median
from gateway.config import environment
from pipeline.domain.chat import ChatMessage
from pipeline.domain.clock import SystemClock
from pipeline.llm.client import LlmClient, LlmRequest, TextDelta
from pipeline.llm.direct_client import DirectClient
from pipeline.llm.litellm_client import LitellmClient
from tests.support.gateway_process import free_port

STREAMS = 20
TOKENS = 250
"""Of each stream."""
_ROUNDS = 3
_WORDS = "Say many words."
_MODEL = "openai/bench"
_KEY = "none"
_TIMEOUT_S = 120.0


async def measure_backends() -> Mapping[str, float]:
    """Milliseconds of processor time for 1,000 tokens with `direct`, `litellm_backend` and `litellm` (litellm
    without our code): medians of rounds in alternation, 20 streams at a time."""
    async with _server() as api_base, AsyncExitStack() as closing:
        direct = DirectClient(model="bench", api_base=api_base, api_key=_KEY, clock=SystemClock())
        through_litellm = LitellmClient(model=_MODEL, api_base=api_base, api_key=_KEY, clock=SystemClock())
        for client in (direct, through_litellm):
            closing.push_async_callback(client.close)
            await client.warm_up()
        calls: dict[str, Callable[[], Awaitable[str]]] = {
            "direct": lambda: _through(direct),
            "litellm_backend": lambda: _through(through_litellm),
            "litellm": lambda: _alone(api_base),
        }
        spent: dict[str, list[float]] = {name: [] for name in calls}
        for round_ in range(_ROUNDS + 1):
            for name, call in calls.items():
                began = time.process_time()
                texts = await asyncio.gather(*(call() for _ in range(STREAMS)))
                if round_:  # the first round opens connections
                    spent[name].append((time.process_time() - began) * 1e6 / (STREAMS * TOKENS))
                short = [len(text.split()) for text in texts if len(text.split()) != TOKENS]
                if short:
                    raise RuntimeError(f"{name}: {short} words instead of {TOKENS}")
    return {name: median(times) for name, times in spent.items()}


async def _through(client: LlmClient) -> str:
    request = LlmRequest(
        messages=(ChatMessage(role="user", content=_WORDS),), max_tokens=TOKENS, timeout_s=_TIMEOUT_S
    )
    return "".join([item.text async for item in client.stream(request) if isinstance(item, TextDelta)])


async def _alone(api_base: str) -> str:
    import litellm  # noqa: PLC0415  # imported by the backend before, with its settings

    stream = await litellm.acompletion(
        model=_MODEL,
        api_base=api_base,
        api_key=_KEY,
        messages=[{"role": "user", "content": _WORDS}],
        max_tokens=TOKENS,
        stream=True,
        stream_options={"include_usage": True},
    )
    parts = [chunk.choices[0].delta.content async for chunk in stream if chunk.choices]
    return "".join(filter(None, parts))


@asynccontextmanager
async def _server() -> AsyncIterator[str]:
    port = free_port()
    process = await create_subprocess_exec(
        *(sys.executable, "-m", "bench.conversation_server", str(port), str(TOKENS)),
        stdout=PIPE,
        cwd=ROOT,
        env=dict(environment()),
    )
    try:
        assert process.stdout is not None
        await process.stdout.readline()
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        await process.wait()
