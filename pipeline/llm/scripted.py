"""The shipped fake: a language model that says what a script tells it to.

It serves tests, demonstrations and runs without any model. It is an `LlmClient` like the others and
passes the same contract; it does not imitate a provider's wire format.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass

from pipeline.domain.clock import Clock, SystemClock
from pipeline.domain.errors import (
    ConfigurationError,
    ModelError,
    ModelRejected,
    ModelTimeout,
    ModelUnavailable,
)
from pipeline.llm.client import LlmFinished, LlmItem, LlmRequest, TextDelta

_FAILURES: dict[str, type[ModelError]] = {
    "unavailable": ModelUnavailable,
    "rejected": ModelRejected,
    "timeout": ModelTimeout,
}
_SPEC_HELP = "use `echo`, `echo:delay=SECONDS`, or `fail:unavailable`, `fail:rejected`, `fail:timeout`"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedAnswer:
    """One answer of the script."""

    chunks: tuple[str, ...] = ()
    """The text deltas, in order; none may be empty."""
    error: ModelError | None = None
    """Raised in place of the chunk number `fail_at`, or of the end."""
    fail_at: int | None = None
    """How many chunks come before `error`; None: all of them."""
    delay_s: float = 0.0
    """Seconds of the client's clock before each chunk."""
    gate: asyncio.Event | None = None
    """Waited for before the first chunk; lets a test act while the model 'thinks'."""
    gate_at: int = 0
    """How many chunks come before the gate."""
    finish_reason: str = "stop"

    def __post_init__(self) -> None:
        if not all(self.chunks):
            raise ValueError("scripted answer: a chunk must not be empty")

    @classmethod
    def of(cls, text: str, *, delay_s: float = 0.0) -> ScriptedAnswer:
        """`text` in word-sized chunks."""
        return cls(chunks=words_of(text), delay_s=delay_s)


class ScriptedLlm:
    """Plays `script`, one answer per request; then, and without a script, it echoes.

    With `failure` it raises that instead of echoing. `requests` holds every request it got, oldest
    first; `cancelled` counts the streams that their consumer ended early.
    """

    def __init__(
        self,
        script: Iterable[ScriptedAnswer] = (),
        *,
        clock: Clock | None = None,
        delay_s: float = 0.0,
        failure: type[ModelError] | None = None,
    ) -> None:
        self.script = deque(script)
        self.requests: list[LlmRequest] = []
        self.cancelled = 0
        self._clock = clock if clock is not None else SystemClock()
        self._delay_s = delay_s
        self._failure = failure
        self._closed = False

    @classmethod
    def echo(cls, *, clock: Clock | None = None, delay_s: float = 0.0) -> ScriptedLlm:
        """A model that answers `You said: …` to the last user message, `delay_s` before each word."""
        return cls(clock=clock, delay_s=delay_s)

    @classmethod
    def from_spec(cls, spec: str, *, clock: Clock | None = None) -> ScriptedLlm:
        """The fake that a configuration names. Raises ConfigurationError on another spec."""
        kind, _, rest = spec.partition(":")
        if kind == "echo" and not rest:
            return cls.echo(clock=clock)
        delay = re.fullmatch(r"delay=(\d+(?:\.\d+)?)", rest)
        if kind == "echo" and delay:
            return cls.echo(clock=clock, delay_s=float(delay.group(1)))
        if kind == "fail" and rest in _FAILURES:
            return cls(clock=clock, failure=_FAILURES[rest])
        raise ConfigurationError(f"llm.model: {spec!r} is no scripted model; {_SPEC_HELP}")

    def add(self, *answers: ScriptedAnswer | str) -> None:
        """Append answers to the script; a string becomes word-sized chunks."""
        self.script.extend(ScriptedAnswer.of(a) if isinstance(a, str) else a for a in answers)

    async def stream(self, request: LlmRequest) -> AsyncGenerator[LlmItem, None]:
        """See `LlmClient.stream`. The deadline is kept in the client's clock, between chunks."""
        self.requests.append(request)
        answer = self._next(request)
        deadline = self._clock.monotonic() + request.timeout_s
        ended = False
        try:
            for index, chunk in enumerate(answer.chunks):
                await self._step(answer, index, deadline, request.timeout_s)
                yield TextDelta(text=chunk)
            await self._step(answer, len(answer.chunks), deadline, request.timeout_s)
            ended = True
        except ModelError:
            ended = True
            raise
        finally:
            if not ended:
                self.cancelled += 1
        yield LlmFinished(
            finish_reason=answer.finish_reason,
            prompt_tokens=sum(message.tokens for message in request.messages),
            completion_tokens=len(answer.chunks),
        )

    async def warm_up(self) -> None:
        """Nothing to wait for."""

    async def close(self) -> None:
        """Refuse further requests."""
        self._closed = True

    def status(self) -> str:
        return "ready (scripted, no real model)"

    def _next(self, request: LlmRequest) -> ScriptedAnswer:
        if self._closed:
            return ScriptedAnswer(error=ModelUnavailable("The scripted model is closed"))
        if self.script:
            return self.script.popleft()
        if self._failure is not None:
            return ScriptedAnswer(error=self._failure("The scripted model fails on purpose"))
        said = next((m.content for m in reversed(request.messages) if m.role == "user"), "")
        return ScriptedAnswer.of(f"You said: {said}", delay_s=self._delay_s)

    async def _step(self, answer: ScriptedAnswer, index: int, deadline: float, timeout_s: float) -> None:
        """What happens before chunk `index`, or before the end."""
        fail_at = len(answer.chunks) if answer.fail_at is None else answer.fail_at
        if answer.gate is not None and answer.gate_at == index:
            await answer.gate.wait()
        if answer.error is not None and fail_at == index:
            raise answer.error
        if answer.delay_s > 0 and index < len(answer.chunks):
            await self._clock.sleep(answer.delay_s)
        if self._clock.monotonic() > deadline:
            raise ModelTimeout(f"The scripted model did not finish its answer within {timeout_s:g} seconds")


def words_of(text: str) -> tuple[str, ...]:
    """`text` cut before each word; joined it is `text` again."""
    return tuple(re.findall(r"\s*\S+\s*$|\s*\S+|\s+", text))
