"""The shipped fake: a language model with scripted answers.

It is for tests, demonstrations and runs without any model. It is an `LlmClient` like the others and
passes the same contract; it does not imitate a provider's wire format.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from operator import attrgetter
from pathlib import Path
from typing import Any

from pipeline.domain.chat import ToolCall
from pipeline.domain.clock import Clock, SystemClock
from pipeline.domain.errors import (
    ConfigurationError,
    ModelError,
    ModelRejected,
    ModelTimeout,
    ModelUnavailable,
)
from pipeline.domain.frozen import dataclass
from pipeline.llm.client import LlmFinished, LlmItem, LlmRequest, TextDelta, ToolAsked
from pipeline.llm.failures import Target, empty_answer

_FAILURES: dict[str, type[ModelError]] = {
    "unavailable": ModelUnavailable,
    "rejected": ModelRejected,
    "timeout": ModelTimeout,
}
_TARGET = Target(model="scripted")
_FILE = "file="
_SPEC_HELP = (
    "use `echo`, `echo:delay=SECONDS`, `file=PATH`, or `fail:unavailable`, `fail:rejected`, `fail:timeout`"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedAnswer:
    """One answer of the script."""

    chunks: tuple[str, ...] = ()
    """The text deltas, in order; none may be empty."""
    error: ModelError | None = None
    """Raised in place of the chunk number `fail_at`, or of the end."""
    fail_at: int | None = None
    """The number of chunks before `error`; None: all of them."""
    delay_s: float = 0.0
    """Seconds of the client's clock before each chunk."""
    gate: asyncio.Event | None = None
    """Waited for before chunk number `gate_at`; lets a test act before the model answers."""
    gate_at: int = 0
    """The number of chunks before the gate."""
    calls: tuple[ToolCall, ...] = ()
    """The tools it asks for, after the chunks."""
    finish_reason: str = ""
    """Empty: `tool_calls` with calls and `stop` without."""
    prompt_tokens: int | None = None
    """None: as estimated."""
    cost: float = 0.0
    attempts: int = 1

    def __post_init__(self) -> None:
        if not all(self.chunks):
            raise ValueError("scripted answer: a chunk must not be empty")

    @classmethod
    def of(cls, text: str, *, delay_s: float = 0.0) -> ScriptedAnswer:
        """`text` in word-sized chunks."""
        return cls(chunks=words_of(text), delay_s=delay_s)

    @classmethod
    def calling(cls, *calls: ToolCall, text: str = "") -> ScriptedAnswer:
        """`text`, if any, and then `calls`."""
        return cls(chunks=words_of(text), calls=calls)


class ScriptedLlm:
    """Returns the answers of `script`, one per request; after them, it echoes.

    With `failure` it raises that instead of echoing. `requests` has every request it got, oldest
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
        if spec.startswith(_FILE):
            return cls(read_script(Path(spec.removeprefix(_FILE))), clock=clock)
        raise ConfigurationError(f"llm.model: {spec!r} is no scripted model; {_SPEC_HELP}")

    def add(self, *answers: ScriptedAnswer | str) -> None:
        """Append answers to the script; a string becomes word-sized chunks."""
        self.script.extend(ScriptedAnswer.of(a) if isinstance(a, str) else a for a in answers)

    async def stream(self, request: LlmRequest) -> AsyncGenerator[LlmItem, None]:
        """See `LlmClient.stream`. `timeout_s` applies to each chunk, by the client's clock."""
        self.requests.append(request)
        answer = self._next(request)
        deadline = self._clock.monotonic() + request.timeout_s
        ended = False
        at_once = answer.gate is None and answer.error is None and answer.delay_s <= 0
        try:
            for index, chunk in enumerate(answer.chunks):
                if not at_once:
                    await self._step(answer, index, deadline, request.timeout_s)
                yield TextDelta(text=chunk)
                deadline = self._clock.monotonic() + request.timeout_s
            if not at_once:
                await self._step(answer, len(answer.chunks), deadline, request.timeout_s)
            finished = _finished(answer, request)
            if not answer.chunks and not answer.calls:
                raise empty_answer(_TARGET, finished)
            for call in answer.calls:
                yield ToolAsked(call=call)
            ended = True
        except ModelError:
            ended = True
            raise
        finally:
            if not ended:
                self.cancelled += 1
        yield finished

    async def warm_up(self) -> None:
        """Do nothing: no preparation is needed."""

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
        """Wait or fail before chunk `index`, or before the end, as the script says."""
        fail_at = len(answer.chunks) if answer.fail_at is None else answer.fail_at
        if answer.gate is not None and answer.gate_at == index:
            await answer.gate.wait()
        if answer.error is not None and fail_at == index:
            raise answer.error
        if answer.delay_s > 0 and index < len(answer.chunks):
            await self._clock.sleep(answer.delay_s)
        if self._clock.monotonic() > deadline:
            raise ModelTimeout(f"The scripted model said nothing within {timeout_s:g} seconds")


_TOKENS = attrgetter("tokens")
_WORDS = re.compile(r"\s*\S+\s*$|\s*\S+|\s+")


def _finished(answer: ScriptedAnswer, request: LlmRequest) -> LlmFinished:
    prompt_tokens = answer.prompt_tokens
    if prompt_tokens is None:
        prompt_tokens = sum(map(_TOKENS, request.messages))
    return LlmFinished(
        finish_reason=answer.finish_reason or ("tool_calls" if answer.calls else "stop"),
        prompt_tokens=prompt_tokens,
        completion_tokens=len(answer.chunks) + len(answer.calls),
        cost=answer.cost,
        attempts=answer.attempts,
    )


def words_of(text: str) -> tuple[str, ...]:
    """`text` cut before each word; joined it is `text` again."""
    return tuple(_WORDS.findall(text))


def read_script(path: Path) -> list[ScriptedAnswer]:
    """The answers in a JSON file: a list of texts, or of objects with any of `text`, `delay_s`, `error`
    (`unavailable`, `rejected` or `timeout`) and `calls`, a list of `{"name": …, "arguments": {…}}`.

    Raises ConfigurationError, which names the file and the entry.
    """
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"llm.model: the script {path} cannot be read: {error}") from error
    if not isinstance(entries, list):
        raise ConfigurationError(f"llm.model: the script {path} is no list of answers")
    answers = []
    for number, entry in enumerate(entries, 1):
        try:
            answers.append(_scripted({"text": entry} if isinstance(entry, str) else entry, number))
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise ConfigurationError(
                f"llm.model: answer {number} of the script {path} is neither a text nor an object with "
                f"text, calls, delay_s or error ({error})"
            ) from error
    return answers


def _scripted(entry: dict[str, Any], number: int) -> ScriptedAnswer:
    unknown = entry.keys() - {"text", "calls", "delay_s", "error"}
    if unknown:
        raise ValueError(f"it has {', '.join(sorted(unknown))}")
    calls = tuple(
        ToolCall(
            id=f"call_{number}_{place}", name=call["name"], arguments=json.dumps(call.get("arguments", {}))
        )
        for place, call in enumerate(entry.get("calls", ()), 1)
    )
    error = entry.get("error")
    return ScriptedAnswer(
        chunks=words_of(entry.get("text", "")),
        calls=calls,
        delay_s=float(entry.get("delay_s", 0)),
        error=None if error is None else _FAILURES[error]("The scripted model fails on purpose"),
    )
