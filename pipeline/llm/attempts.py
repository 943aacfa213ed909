"""Run one call of a model with retries and a deadline: the same code for every client.

It depends on no provider. A client opens one attempt as an `OpenAnswer`; retries, the deadline, the length
limit and the texts of errors are here.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace
from typing import Protocol

from pipeline.domain.clock import Clock
from pipeline.domain.frozen import dataclass
from pipeline.llm.client import LlmFinished, LlmItem, TextDelta, ToolAsked
from pipeline.llm.failures import Target, empty_answer, retry_delay, timed_out, translate

_CHARS_PER_TOKEN = 32
"""More than the characters of any tokeniser's token of ordinary text; runs of blanks are the longest."""
_SLACK_CHARS = 1_000


class OpenAnswer(Protocol):
    """One attempt that a provider has begun to answer."""

    async def next(self) -> TextDelta | ToolAsked | None:
        """The next item; None at the end. Raises TimeoutError where it does not come in time, or the
        provider's error."""
        ...

    def finished(self) -> LlmFinished:
        """The final item of this one attempt, after `next` returned None."""
        ...

    async def aclose(self) -> None:
        """Close the connection if the answer is not over, which makes the provider stop generating."""
        ...


class AskedOtherwise(Exception):
    """The provider does not accept the request in this form; the client can try another one now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """One call of a model with all its attempts."""

    target: Target
    clock: Clock
    deadline: float
    """The deadline of the first item, a time of the event loop."""
    timeout_s: float
    """The longest wait for one item, for the error's text."""
    retries: int
    """Further attempts after the first, made only while nothing was yielded."""
    max_tokens: int | None = None
    """An answer that is far longer is cut off and ends with `length`."""


async def play(
    attempt: Callable[[], Awaitable[OpenAnswer]], call: ModelCall, note: Callable[[str], None]
) -> AsyncGenerator[LlmItem, None]:
    """The items of one call; see `LlmClient.stream`. `note` gets the model's state as readable text."""
    limit = call.max_tokens * _CHARS_PER_TOKEN + _SLACK_CHARS if call.max_tokens is not None else None
    length = 0
    try:
        answer, first, attempts = await _begin(attempt, call)
        item: TextDelta | ToolAsked | None = first
        async with contextlib.aclosing(answer):
            while item is not None and (limit is None or length <= limit):
                if isinstance(item, TextDelta):
                    length += len(item.text)
                yield item
                item = await answer.next()
            finished = replace(answer.finished(), attempts=attempts)
        note("ready")
        yield finished if item is None else replace(finished, finish_reason="length")
    except TimeoutError:
        failure = timed_out(call.timeout_s, call.target)
        note(str(failure))
        raise failure from None
    except Exception as error:  # noqa: BLE001  # providers raise many unrelated types
        failed = translate(error, call.target)
        note(str(failed))
        # `from None`: the original error may quote a key, which must stay out of the logs.
        raise failed from None


async def _begin(
    attempt: Callable[[], Awaitable[OpenAnswer]], call: ModelCall
) -> tuple[OpenAnswer, TextDelta | ToolAsked, int]:
    """The answer, its first item and the number of attempts. All retries happen here."""
    attempts, failures = 0, 0
    while True:
        attempts += 1
        try:
            return *await _first_of(attempt, call.target, attempts), attempts
        except TimeoutError:
            raise
        except AskedOtherwise:
            continue
        except Exception as error:  # noqa: BLE001  # providers raise many unrelated types
            failure = translate(error, call.target)
        delay = retry_delay(failure, failures) if failures < call.retries else None
        if delay is None or delay >= call.deadline - asyncio.get_running_loop().time():
            raise failure
        async with asyncio.timeout_at(call.deadline):
            await call.clock.sleep(delay)
        failures += 1


async def _first_of(
    attempt: Callable[[], Awaitable[OpenAnswer]], target: Target, attempts: int
) -> tuple[OpenAnswer, TextDelta | ToolAsked]:
    answer = await attempt()
    try:
        first = await answer.next()
    except BaseException:
        await answer.aclose()
        raise
    if first is None:
        await answer.aclose()
        raise empty_answer(target, replace(answer.finished(), attempts=attempts))
    return answer, first
