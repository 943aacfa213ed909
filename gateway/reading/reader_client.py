"""Read pictures and documents in child processes. This is the gateway's side.

Not here: the reading (`gateway.reading.reader_main`). A child starts with the first file and ends when no
file has come for a while; one that is too slow, dies or breaks the protocol is replaced.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from gateway.reading.failures import ReadingFailed, too_large, unreadable
from gateway.reading.limits import MAX_ANSWER_BYTES, ReadingLimits
from gateway.reading.protocol import document_from, picture_from
from pipeline.domain.clock import Clock
from pipeline.domain.readings import DocumentText, FileUnreadable, Picture
from voice.errors import VoiceError
from voice.workers.child import Child, OnLine, command
from voice.workers.child_pool import ChildPool, PoolClosed
from voice.workers.frames import BrokenFrame, WorkerFrame

_CHILDREN = 2
"""A hostile file can keep one child busy until its deadline; the other still serves."""
_IDLE_S = 300.0
"""An idle child has about 50 MB, and a new one takes half a second to start."""
_START_DEADLINE_S = 60.0
_DEADLINE_FACTOR = 3.0
"""A busy machine takes longer on the clock than in processor time."""
_NAME_CHARS = 200

_Read = TypeVar("_Read", Picture, DocumentText)

_log = logging.getLogger(__name__)


class SandboxedReader:
    """Implements `pipeline.domain.readings.FileReader`. Belongs to the event loop it is first used on.

    `on_line` gets what the children write to stderr; `program` starts a child; an unused child ends after
    `idle_s` seconds.
    """

    def __init__(
        self,
        limits: ReadingLimits,
        clock: Clock,
        *,
        on_line: OnLine | None = None,
        program: Sequence[str] = (),
        idle_s: float = _IDLE_S,
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._idle_s = idle_s
        self._pool = ChildPool(
            program or _command(limits),
            on_line or _log_line,
            size=_CHILDREN,
            max_body_bytes=MAX_ANSWER_BYTES,
            start_limit=lambda: clock.timeout(_START_DEADLINE_S),
        )
        self._ends: dict[Child, Callable[[], None]] = {}
        """For each unused child, the function that cancels its end."""

    @property
    def pids(self) -> tuple[int, ...]:
        """The process ids of the running children."""
        return self._pool.pids

    async def picture(self, content: bytes, *, max_side: int, max_bytes: int) -> Picture:
        """See the port. At most 24 MB of `max_bytes` are used."""
        max_bytes = min(max_bytes, MAX_ANSWER_BYTES)
        header = {"kind": "picture", "max_side": max_side, "max_bytes": max_bytes}

        def take(answer: WorkerFrame) -> Picture:
            return picture_from(answer, max_side=max_side, max_bytes=max_bytes)

        return await self._read(content, header, take)

    async def document(self, content: bytes, *, name: str, mime: str) -> DocumentText:
        """See the port."""
        header = {"kind": "document", "name": name[-_NAME_CHARS:], "mime": mime[:_NAME_CHARS]}

        def take(answer: WorkerFrame) -> DocumentText:
            return document_from(answer, max_pages=self._limits.max_pages)

        return await self._read(content, header, take)

    async def warm_up(self) -> None:
        """Start a child. Raises FileUnreadable when reading does not work here."""
        async with self._pool.turns:
            self._release(await self._ready_child())

    async def close(self) -> None:
        """Kill every child and wait until they have ended. Running calls raise FileUnreadable."""
        for keep in self._ends.values():
            keep()
        self._ends.clear()
        await self._pool.close()

    async def _read(
        self, content: bytes, header: Mapping[str, object], take: Callable[[WorkerFrame], _Read]
    ) -> _Read:
        if not content:
            raise unreadable(ReadingFailed("empty"))
        if len(content) > self._limits.max_bytes:
            raise too_large(len(content), max_bytes=self._limits.max_bytes)
        async with self._pool.turns:
            child = await self._ready_child()
            answered = False
            try:
                async with self._clock.timeout(_DEADLINE_FACTOR * self._limits.seconds):
                    answer = await child.ask(WorkerFrame(header=header, body=content))
                outcome = _taken(answer, take)
                answered = True
            except TimeoutError:
                raise unreadable(ReadingFailed("too_slow")) from None
            except BrokenFrame as error:
                _log.warning("the file reader gave an invalid answer", extra={"reason": str(error)})
                raise unreadable(ReadingFailed("crashed")) from None
            except VoiceError:
                raise unreadable(ReadingFailed("unavailable")) from None
            finally:
                if answered:
                    self._release(child)
                else:
                    self._discard(child)
        if isinstance(outcome, ReadingFailed):
            raise unreadable(outcome)
        return outcome

    async def _ready_child(self) -> Child:
        """A started child, now marked as busy. Raises FileUnreadable."""
        try:
            child = await self._pool.take()
        except PoolClosed:
            raise unreadable(ReadingFailed("unavailable")) from None
        except TimeoutError as error:
            raise _unavailable("it did not start in time") from error
        except VoiceError as error:
            raise _unavailable(error.for_operator) from error
        self._keep(child)
        return child

    def _release(self, child: Child) -> None:
        """Keep a child for the next file, for a while."""
        if self._pool.release(child):
            self._ends[child] = self._clock.call_after(self._idle_s, lambda: self._discard(child))

    def _discard(self, child: Child) -> None:
        """Kill a child."""
        self._keep(child)
        self._pool.discard(child)

    def _keep(self, child: Child) -> None:
        """Cancel the end of an unused child."""
        keep = self._ends.pop(child, None)
        if keep is not None:
            keep()


def _taken(answer: WorkerFrame, take: Callable[[WorkerFrame], _Read]) -> _Read | ReadingFailed:
    """What an answer says. Raises BrokenFrame."""
    try:
        return take(answer)
    except ReadingFailed as failure:
        detail = answer.header.get("detail")
        if isinstance(detail, str) and detail:
            _log.warning("a file could not be read", extra={"reason": detail[:_NAME_CHARS]})
        return failure


def _unavailable(reason: str) -> FileUnreadable:
    _log.error("the file reader does not start", extra={"reason": reason})
    return unreadable(ReadingFailed("unavailable"), detail=reason)


def _command(limits: ReadingLimits) -> tuple[str, ...]:
    return command(
        "gateway.reading.reader_main",
        "--max-bytes", str(limits.max_bytes),
        "--max-pages", str(limits.max_pages),
        "--seconds", str(limits.seconds),
    )  # fmt: skip


def _log_line(line: str) -> None:
    _log.warning("file reader: %s", line)
