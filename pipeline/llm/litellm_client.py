"""The client that uses litellm: any hosted or local provider through our port. Only this module imports it.

litellm is large, so the first call or `warm_up` imports it in a thread. It only translates wire formats:
retries, deadlines, errors and logs are ours.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import importlib
import logging
import os  # only for the switches that litellm reads while it is imported
import sys
import threading
import urllib.request
import warnings
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any

from pipeline.domain.clock import Clock
from pipeline.domain.errors import ModelRejected
from pipeline.llm.attempts import ModelCall, OpenAnswer, play
from pipeline.llm.client import LlmFinished, LlmItem, LlmRequest, TextDelta, ToolAsked
from pipeline.llm.failures import Target
from pipeline.llm.tool_call_assembly import CallAssembly
from pipeline.llm.wire import messages_to_wire, schema_to_wire, tools_to_wire

_SOCKET_TIMEOUT_S = 600
"""One value for all calls: litellm keeps one connection pool per distinct timeout."""
_REPEATED_CHUNKS_ALLOWED = 1_000_000
_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")
_import_lock = threading.Lock()


class LitellmClient:
    """Streams answers of `model`, litellm's `provider/name`.

    `api_base` replaces the provider's own address; `api_key` is sent to it and never shown.
    `retries` counts further attempts after the first, made only while nothing was yielded.
    `label` is the model's name in readable texts, by default `model`.
    """

    def __init__(
        self,
        *,
        model: str,
        clock: Clock,
        api_base: str | None = None,
        api_key: str | None = None,
        retries: int = 2,
        label: str | None = None,
    ) -> None:
        self._model = model
        self._target = Target(model=label or model, api_base=api_base, secret=api_key)
        self._clock = clock
        self._retries = retries
        self._library: Any = None
        self._loading = asyncio.Lock()
        self._status = "loading: the model library is not imported yet"

    def __repr__(self) -> str:
        return f"LitellmClient(model={self._model!r}, api_base={self._target.api_base!r})"

    def stream(self, request: LlmRequest) -> AsyncGenerator[LlmItem, None]:
        """See `LlmClient.stream`. Retries happen only before the first item."""
        deadline = asyncio.get_running_loop().time() + request.timeout_s
        call = ModelCall(
            target=self._target,
            clock=self._clock,
            deadline=deadline,
            timeout_s=request.timeout_s,
            retries=self._retries if request.retries is None else min(self._retries, request.retries),
            max_tokens=request.max_tokens,
        )
        return play(lambda: self._attempt(request, deadline), call, self._note)

    async def warm_up(self) -> None:
        """Import litellm in a thread. Never raises a ModelError: `status` and the next call report it."""
        with contextlib.suppress(ModelRejected):
            await self._litellm()

    async def close(self) -> None:
        """Close litellm's connection pools. They are shared: another client in use reconnects."""
        if self._library is None:
            return
        await self._library.close_litellm_async_clients()
        self._library.in_memory_llm_clients_cache.flush_cache()

    def status(self) -> str:
        return self._status

    async def _attempt(self, request: LlmRequest, deadline: float) -> OpenAnswer:
        async with asyncio.timeout_at(deadline):
            litellm = await self._litellm()
            arguments = self._arguments(request)
            if request.schema is not None and litellm.supports_response_schema(model=self._model):
                arguments["response_format"] = schema_to_wire(request.schema)
            stream = await litellm.acompletion(**arguments)
        return _Answer(stream, deadline, request.timeout_s, functools.partial(_cost, litellm, self._model))

    def _arguments(self, request: LlmRequest) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            "model": self._model,
            "api_base": self._target.api_base,
            "api_key": self._target.secret,
            "messages": messages_to_wire(request.messages, request.pictures),
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            "stream": True,
            "stream_options": {"include_usage": True},
            "drop_params": True,
            "timeout": _SOCKET_TIMEOUT_S,
            "num_retries": 0,
            "max_retries": 0,
        }
        if request.tools:
            arguments["tools"] = tools_to_wire(request.tools)
        return arguments

    async def _litellm(self) -> Any:
        if self._library is None:
            async with self._loading:
                if self._library is None:
                    _ignore_its_warnings()
                    try:
                        self._library = await asyncio.to_thread(_import_litellm)
                    except ModelRejected as error:
                        self._note(str(error))
                        raise
                    self._status = "ready"
        return self._library

    def _note(self, status: str) -> None:
        self._status = status


class _Answer:
    """An `OpenAnswer` over a stream of litellm: the first item has to arrive by `deadline`, each further one
    within `quiet_s` seconds."""

    def __init__(self, stream: Any, deadline: float, quiet_s: float, cost: Callable[[Any], float]) -> None:
        self._stream = stream
        self._quiet_s = quiet_s
        self._deadline = deadline
        self._cost = cost
        self._finish_reason = "stop"
        self._usage: Any = None
        self._assembly = CallAssembly()
        self._calls: deque[ToolAsked] | None = None
        self._called = False

    async def next(self) -> TextDelta | ToolAsked | None:
        while self._calls is None:
            async with asyncio.timeout_at(self._deadline):
                chunk = await anext(self._stream, None)
            self._deadline = asyncio.get_running_loop().time() + self._quiet_s
            if chunk is None:
                self._calls = deque(ToolAsked(call=call) for call in self._assembly.calls())
                self._called = bool(self._calls)
            elif text := self._read(chunk):
                return TextDelta(text=text)
        return self._calls.popleft() if self._calls else None

    def finished(self) -> LlmFinished:
        reason = "tool_calls" if self._called and self._finish_reason == "stop" else self._finish_reason
        if self._usage is None:
            return LlmFinished(finish_reason=reason)
        return LlmFinished(
            finish_reason=reason,
            prompt_tokens=int(self._usage.prompt_tokens or 0),
            completion_tokens=int(self._usage.completion_tokens or 0),
            cost=self._cost(self._usage),
        )

    async def aclose(self) -> None:
        await self._stream.aclose()

    def _read(self, chunk: Any) -> str:
        self._usage = getattr(chunk, "usage", None) or self._usage
        if not chunk.choices:
            return ""
        choice = chunk.choices[0]
        if choice.finish_reason:
            self._finish_reason = str(choice.finish_reason)
        for call in getattr(choice.delta, "tool_calls", None) or ():
            self._assembly.add(
                index=call.index,
                call_id=call.id,
                name=call.function.name,
                arguments=call.function.arguments,
            )
        return choice.delta.content or ""


def _cost(litellm: Any, model: str, usage: Any) -> float:
    """US dollars by litellm's price list; 0 for a model that is not on it."""
    try:
        return float(sum(litellm.cost_per_token(model=model, usage_object=usage)))
    except Exception:  # noqa: BLE001  # an error in a price list must not fail an answer
        return 0.0


async def load_litellm() -> Any:
    """The library, imported in a thread at the first call. Raises ModelRejected."""
    _ignore_its_warnings()
    return await asyncio.to_thread(_import_litellm)


@functools.cache
def _import_litellm() -> Any:
    """Import and configure litellm; runs in a thread. Raises ModelRejected when it cannot be imported."""
    with _import_lock, _keep_loop_responsive():
        _set_import_switches()
        try:
            litellm: Any = importlib.import_module("litellm")
            _configure(litellm)
            _load_lazy_modules(litellm)
        except ImportError as error:
            raise ModelRejected(
                f"The litellm library cannot be imported ({error}): reinstall parlour with its dependencies"
            ) from error
    return litellm


def _set_import_switches() -> None:
    """Switch off the fetch of a price list, the reading of `.env`, and the proxy for this machine."""
    environ = os.environ  # noqa: TID251  # litellm reads these at import and offers no other switch
    environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    environ["LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS"] = "True"
    environ["LITELLM_MODE"] = "PRODUCTION"
    if urllib.request.getproxies():
        name = "no_proxy" if "no_proxy" in environ else "NO_PROXY"
        environ[name] = ",".join(filter(None, (environ.get(name), "127.0.0.1", "localhost")))


def _ignore_its_warnings() -> None:
    """Hide warnings that concern litellm's authors and not the operator of a bot."""
    warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"(litellm|openai|pydantic)\b")
    # A cancel while its thread prepares the call leaves the thread's coroutine without an await.
    warnings.filterwarnings("ignore", message="coroutine .OpenAIChatCompletion", category=RuntimeWarning)
    warnings.filterwarnings("ignore", message="Item .* on TypedDict class", category=UserWarning)


def _configure(litellm: Any) -> None:
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    # Providers require different forms of a conversation with tool calls, which litellm then produces.
    litellm.modify_params = True
    # Its guard against looping models also ends valid answers (a table, a row of dots).
    litellm.REPEATED_STREAMING_CHUNK_LIMIT = _REPEATED_CHUNKS_ALLOWED
    for name in _LOGGERS:
        # Every failure that it logs is also raised as an exception, which we report.
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _load_lazy_modules(litellm: Any) -> None:
    """Load lazy modules in this thread, which would block the event loop for 0.3 s in the first call."""
    importlib.import_module("openai.resources.chat.completions")
    importlib.import_module("openai.resources")
    rehearsal = litellm.completion(
        model="openai/rehearsal",
        messages=[{"role": "user", "content": "x"}],
        api_key="none",
        mock_response="x",
        stream=True,
    )
    for _ in rehearsal:
        pass


@contextlib.contextmanager
def _keep_loop_responsive() -> Iterator[None]:
    """Keep the event loop responsive while the calling thread imports 2,600 modules.

    Full garbage collections, each over every object so far, stall the loop (measured: 230 ms, against 30 ms
    without); afterwards the library's objects are frozen, because they never become garbage. The shorter
    switch interval returns the interpreter to the loop sooner.
    """
    interval = sys.getswitchinterval()
    collecting = gc.isenabled()
    gc.disable()
    sys.setswitchinterval(0.0005)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
        gc.freeze()
        if collecting:
            gc.enable()
