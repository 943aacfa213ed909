"""The local model: an `LlmClient` over a supervised child process that serves a GGUF file.

It starts and restarts the child, and lets requests wait for it. Calls go through `direct_client`; the use of
tools by a small model is in `action_client`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import TYPE_CHECKING

from pipeline.domain.clock import Clock
from pipeline.domain.errors import ModelError, ModelRejected, ModelTimeout, ModelUnavailable
from pipeline.llm.client import LlmItem, LlmRequest
from pipeline.llm.direct_client import DirectClient
from pipeline.llm.failures import Target, timed_out
from pipeline.llm.local_process import ChildFailed, ChildProcess, ChildSettings

if TYPE_CHECKING:
    from pipeline.llm.action_client import ActionClient

_log = logging.getLogger(__name__)

_WINDOW_S = 60.0
_LOAD_TIMEOUT_S = 180.0
_NOTICE_S = 0.5
_FIRST_BACKOFF_S = 0.25
_MAX_BACKOFF_S = 8.0
_QUIET_S = 10.0
_PROBE_S = 10.0
_TIMEOUTS = 2
_DIED = "The embedded model stopped in the middle of its answer. Please send the message again."
_DIED_UNANSWERED = "The embedded model stopped before it answered. Please send the message again."


class LocalModel:
    """Answers with the model file of `settings`. `warm_up` or the first call starts the child.

    A child that ends is started again, with backoff, at most `restarts_per_minute` times; after that
    requests are refused with the reason until the minute has passed. A child that gives nothing for
    `quiet_s` seconds and does not answer at its server's port within `probe_s` seconds is killed; so is one
    that has let two requests in a row time out.
    """

    def __init__(
        self,
        settings: ChildSettings,
        *,
        clock: Clock,
        restarts_per_minute: int = 5,
        quiet_s: float = _QUIET_S,
        probe_s: float = _PROBE_S,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._restarts_per_minute = restarts_per_minute
        self._quiet_s = quiet_s
        self._probe_s = probe_s
        self._timeouts = 0
        """Successive requests that the child did not answer in time."""
        self._target = Target(model=settings.model_path.name)
        self._slots = asyncio.Semaphore(settings.slots)
        self._supervisor: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()
        self._run: _ChildRun | None = None
        self._refusal: ModelUnavailable | None = None
        self._closed = False

    @property
    def context_tokens(self) -> int:
        """The most tokens of a prompt and its answer together."""
        return self._settings.context_tokens

    @property
    def child_pid(self) -> int | None:
        """The process id of the child that serves now, for diagnosis."""
        return self._run.child.pid if self._run is not None else None

    async def stream(self, request: LlmRequest) -> AsyncGenerator[LlmItem, None]:
        """See `LlmClient.stream`. Waits for a model that loads, and for a slot, within the deadline."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + request.timeout_s
        try:
            async with asyncio.timeout_at(deadline):
                await self._slots.acquire()
        except TimeoutError:
            raise timed_out(request.timeout_s, self._target) from None
        try:
            async with contextlib.aclosing(self._answer(request, deadline)) as items:
                async for item in items:
                    yield item
        except (TimeoutError, ModelTimeout):
            raise timed_out(request.timeout_s, self._target) from None
        finally:
            self._slots.release()

    async def warm_up(self) -> None:
        """Start the child and wait until it serves or cannot. Never raises a ModelError: see `status`."""
        with contextlib.suppress(ModelError):
            if self._missing() is None:
                await self._usable()

    async def close(self) -> None:
        """End the child. Requests in flight fail with ModelUnavailable."""
        self._closed = True
        if self._supervisor is not None:
            self._supervisor.cancel()
            await asyncio.wait([self._supervisor])
        self._settle(ModelUnavailable("The local model is shut down"))

    def status(self) -> str:
        if self._run is not None:
            return "ready"
        missing = self._missing()
        if missing is not None:
            return str(missing)
        return str(self._refusal) if self._refusal is not None else f"loading {self._target.model}"

    async def _answer(self, request: LlmRequest, deadline: float) -> AsyncGenerator[LlmItem, None]:
        """The child's answer, or the next child's if this one dies before the first item."""
        for last_try in (False, True):
            answered = False
            async with asyncio.timeout_at(deadline):
                run = await self._usable()
            try:
                async with (
                    contextlib.aclosing(run.client.stream(request, deadline)) as items,
                    self._watched(run) as sign,
                ):
                    async for item in items:
                        answered = True
                        sign()
                        yield item
            except ModelTimeout:
                self._late(run)
                raise
            except ModelUnavailable:
                if not await run.is_over():
                    raise
                if answered or last_try:
                    raise ModelUnavailable(_DIED if answered else _DIED_UNANSWERED) from None
            else:
                self._timeouts = 0
                return

    def _late(self, run: _ChildRun) -> None:
        """Note that a request has timed out; the second one in a row ends the child."""
        self._timeouts += 1
        if self._timeouts >= _TIMEOUTS:
            _log.warning("the embedded model is replaced: it did not finish two answers in a row")
            run.child.kill()

    @contextlib.asynccontextmanager
    async def _watched(self, run: _ChildRun) -> AsyncIterator[Callable[[], None]]:
        """Kill the child if it hangs inside this context. Call the yielded function on each output."""
        signs = asyncio.Event()
        watch = asyncio.create_task(self._watch(run, signs), name="local-model-watch")  # noqa: TID251  # awaited below
        try:
            yield signs.set
        finally:
            watch.cancel()
            await asyncio.wait([watch])

    async def _watch(self, run: _ChildRun, signs: asyncio.Event) -> None:
        while True:
            signs.clear()
            try:
                async with asyncio.timeout(self._quiet_s):
                    await signs.wait()
            except TimeoutError:
                if not await run.child.answers(run.port, self._probe_s) and not signs.is_set():
                    _log.warning("the embedded model is replaced: its process does not answer any more")
                    run.child.kill()
                    return

    async def _usable(self) -> _ChildRun:
        """The child that serves, started first if necessary. Raises the reason if it cannot serve."""
        if self._run is None and not self._closed:
            missing = self._missing()
            if missing is not None:
                raise missing
            if self._supervisor is None:
                self._supervisor = asyncio.create_task(  # noqa: TID251  # lives until close(), which awaits it
                    self._supervise(), name="local-model"
                )
        while self._run is None:
            await self._settled.wait()
            if self._refusal is not None:
                raise ModelUnavailable(str(self._refusal), retry_after_s=self._refusal.retry_after_s)
        return self._run

    async def _supervise(self) -> None:
        """Run the child, again and again, until cancelled."""
        ends: deque[float] = deque(maxlen=self._restarts_per_minute)
        while True:
            await self._run_once()
            now = self._clock.monotonic()
            ends.append(now)
            recent = sum(1 for end in ends if now - end < _WINDOW_S)
            delay = min(_MAX_BACKOFF_S, _FIRST_BACKOFF_S * 2 ** (recent - 1))
            if recent == self._restarts_per_minute:
                delay = _WINDOW_S - (now - ends[0])
                self._settle(
                    ModelUnavailable(
                        f"The local model {self._target.model} stopped {recent} times within a minute; "
                        f"trying again in {delay:.0f} seconds. Check the file with `parlour models verify`",
                        retry_after_s=delay,
                    )
                )
            await self._clock.sleep(delay)

    async def _run_once(self) -> None:
        """Run the child once, from its start to its end."""
        try:
            child = await ChildProcess.start(self._settings)
        except OSError as error:
            self._settle(ModelUnavailable(f"The process of the local model cannot be started: {error}"))
            return
        try:
            async with asyncio.timeout(_LOAD_TIMEOUT_S):
                port = await child.ready()
            self._timeouts = 0
            self._run = _ChildRun(child, port, self._client_of(child, port))
            self._refusal = None
            self._settled.set()
            await child.ended()
            self._settled.clear()
        except (ChildFailed, TimeoutError) as error:
            reason = str(error) or f"it did not load within {_LOAD_TIMEOUT_S:.0f} seconds"
            self._settle(
                ModelUnavailable(
                    f"The local model {self._settings.model_path} cannot be loaded ({reason}): "
                    "check the file with `parlour models verify`"
                )
            )
        finally:
            run, self._run = self._run, None
            if run is not None:
                run.over.set()
            await child.stop()
            if run is not None:
                await run.client.close()

    def _client_of(self, child: ChildProcess, port: int) -> ActionClient:
        client = DirectClient(
            model="local",
            label=self._target.model,
            api_base=f"http://127.0.0.1:{port}/v1",
            api_key=child.key,
            clock=self._clock,
            retries=0,
            keep_alive=False,  # llama.cpp's server promises it and closes after every stream
        )
        # The patterns of `requests` take 40 ms to compile, and other models do not need them.
        from pipeline.llm.action_client import ActionClient  # noqa: PLC0415 - loaded where it is used

        return ActionClient(client)

    def _settle(self, refusal: ModelUnavailable) -> None:
        """Refuse waiting and new requests with `refusal` until a child serves."""
        self._refusal = refusal
        self._settled.set()

    def _missing(self) -> ModelRejected | None:
        path = self._settings.model_path
        if path.is_file():
            return None
        return ModelRejected(
            f"The model file {path} is missing: fetch it with `parlour models get`, "
            "or name another file in `llm.local.model_path`"
        )


class _ChildRun:
    """A child that serves, and its end."""

    def __init__(self, child: ChildProcess, port: int, client: ActionClient) -> None:
        self.child = child
        self.port = port
        self.client = client
        self.over = asyncio.Event()

    async def is_over(self) -> bool:
        """Whether the child has ended. Waits a moment: a killed child first refuses connections."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_NOTICE_S):
                await self.over.wait()
        return self.over.is_set()
