"""A time limit for work that mostly does not wait: a timer is set only once it does."""

from __future__ import annotations

from collections.abc import Awaitable, Generator
from typing import Any, Generic, TypeVar

from pipeline.domain.clock import Clock

T = TypeVar("T")


async def within(clock: Clock, seconds: float, work: Awaitable[T]) -> T:
    """The result of `work`. Raises what it raises, and TimeoutError if it waits longer than `seconds`."""
    steps = work.__await__()
    try:
        awaited = steps.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    async with clock.timeout(seconds):
        return await _Rest(steps, awaited)


class _Rest(Generic[T]):
    """Awaits work that has begun to wait."""

    def __init__(self, steps: Generator[Any, Any, T], awaited: object) -> None:
        self._steps = steps
        self._awaited = awaited

    def __await__(self) -> Generator[Any, Any, T]:
        steps, awaited = self._steps, self._awaited
        try:
            while True:
                try:
                    woken_with = yield awaited
                except BaseException as error:  # noqa: BLE001 - passed on, a cancellation too
                    awaited = steps.throw(error)
                else:
                    awaited = steps.send(woken_with)
        except StopIteration as done:
            result: T = done.value
            return result
