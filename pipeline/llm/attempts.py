"""How often a call is tried, and how an answer is played out: the same behind every door.

It knows no provider. A door opens one attempt as an `OpenAnswer`; retries, the deadline, the length limit
and the words of errors are here.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Protocol

from pipeline.domain.clock import Clock
from pipeline.llm.client import LlmFinished, LlmItem, TextDelta, ToolAsked
from pipeline.llm.failures import Target, empty_answer, retry_delay, timed_out, translate

_CHARS_PER_TOKEN = 32
"""More than any tokeniser makes of ordinary text; runs of blanks are its longest tokens."""
_SLACK_CHARS = 1_000


class OpenAnswer(Protocol):
    """One attempt that a provider answers."""

    async def next(self) -> TextDelta | ToolAsked | None:
        """The next item; None at the end. Raises TimeoutError where it does not come in time, or the
        provider's error."""
        ...

    def finished(self) -> LlmFinished:
        """The end, after `next` gave None; of one attempt."""
        ...

    async def aclose(self) -> None:
        """Drop the connection if the answer is not over, which makes the provider stop generating."""
        ...


class AskedOtherwise(Exception):
    """The provider does not take the request in this form; the door knows another one now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a model, however many attempts it takes."""

    target: Target
    clock: Clock
    deadline: float
    """Of the first item, in the event loop's time."""
    timeout_s: float
    """How long one item is waited for, for the words of the error."""
    retries: int
    """Further attempts after the first, made only while nothing was yielded."""
    max_tokens: int | None = None
    """A provider that goes far beyond it is cut off; the answer ends with `length`."""


async def play(
    attempt: Callable[[], Awaitable[OpenAnswer]], call: Call, note: Callable[[str], None]
) -> AsyncGenerator[LlmItem, None]:
    """The items of one call; see `LlmClient.stream`. `note` is told the model's state for people."""
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
    except Exception as error:  # noqa: BLE001  # providers raise whole families
        failed = translate(error, call.target)
        note(str(failed))
        # `from None` keeps a key that the original may quote out of logs.
        raise failed from None


async def _begin(
    attempt: Callable[[], Awaitable[OpenAnswer]], call: Call
) -> tuple[OpenAnswer, TextDelta | ToolAsked, int]:
    """The answer, its first item and how many attempts it took; the only place that retries."""
    attempts, failures = 0, 0
    while True:
        attempts += 1
        try:
            return *await _first_of(attempt, call.target, attempts), attempts
        except TimeoutError:
            raise
        except AskedOtherwise:
            continue
        except Exception as error:  # noqa: BLE001  # providers raise whole families
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
