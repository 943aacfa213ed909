"""Decode files to speech segments, in sandboxed child processes. This is the gateway's side.

Not here: decoding, VAD and splitting (`voice.audio.decoder_main`), recognition.
A child that is too slow, dies, or has decoded several damaged files is replaced by a fresh one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Literal
from weakref import WeakKeyDictionary

from voice.audio.limits import check_size
from voice.audio.protocol import decoded_from_wire, segment_from_wire
from voice.audio.segments import Decoded, SpeechSegment
from voice.errors import (
    NONSENSE,
    NOT_STARTING,
    SHUTTING_DOWN,
    AudioRefused,
    TranscriberUnavailable,
    TranscriptionTimeout,
)
from voice.settings import TranscriptionSettings
from voice.workers.child import Child, OnLine, command
from voice.workers.child_pool import ChildPool, PoolClosed
from voice.workers.frames import BrokenFrame, WorkerFrame

_CHILDREN = 2
"""A hostile file can keep one child busy until its deadline; the other still serves."""
_DAMAGED_FILES = 8
"""Damaged files after which a child is replaced: its decoders may be broken by then. A fresh child costs a
third of a second of processor time, so one file must not be enough to cause it."""
_FILE_DEADLINE_S = 10.0
_START_DEADLINE_S = 60.0
_ATTEMPTS = 2
_BYTES_PER_SECOND = 32_000
_MAX_SEGMENT_BYTES = 30 * _BYTES_PER_SECOND
"""Whisper's window: the recogniser takes no longer segment."""

_DAMAGED = "I could not read that recording: the file is damaged. Please record it again."
_TOO_SLOW = "Reading that recording took too long. Please send it again, or a shorter one."

OnSegment = Callable[[SpeechSegment], None]

_log = logging.getLogger(__name__)


class Decoder:
    """Decodes recordings, each in one of a few children. Belongs to the event loop it is first used on.

    `on_line` gets what the children write to stderr; a file may take `deadline_s`; `program` starts a child.
    """

    def __init__(
        self,
        settings: TranscriptionSettings,
        *,
        on_line: OnLine | None = None,
        deadline_s: float = _FILE_DEADLINE_S,
        program: Sequence[str] = (),
    ) -> None:
        self._settings = settings
        self._deadline_s = deadline_s
        self._pool = ChildPool(
            program or _command(settings),
            on_line or _log_line,
            size=_CHILDREN,
            max_body_bytes=_MAX_SEGMENT_BYTES,
            start_limit=lambda: asyncio.timeout(_START_DEADLINE_S),
        )
        self._files = WeakKeyDictionary[Child, int]()
        """How many files each child has decoded; a damaged one counts several times."""

    @property
    def pids(self) -> tuple[int, ...]:
        """The process ids of the running children."""
        return self._pool.pids

    async def decode(
        self, data: bytes, *, form: Literal["file", "pcm"] = "file", on_segment: OnSegment
    ) -> Decoded:
        """Decode a file, or bare samples (`pcm`: 16 kHz, mono, 16 bit little endian), in one of the children.

        `on_segment` gets the speech segments in order, each as soon as it is certain; silence has none.
        Raises AudioRefused (also for a file that kills the decoder twice), TranscriberUnavailable
        when no child can be started, TranscriptionTimeout. Cancelling the call kills the working child.
        """
        check_size(len(data), max_bytes=self._settings.max_bytes)
        request = WorkerFrame(header={"kind": "decode", "form": form}, body=data)
        segments = _SegmentOutput(on_segment, max_bytes=int(self._settings.max_seconds * _BYTES_PER_SECOND))
        async with self._pool.turns:
            for _ in range(_ATTEMPTS):
                child = await self._ready_child()
                try:
                    return await self._ask(child, request, segments)
                except TranscriberUnavailable:
                    self._refuse_when_closed()  # otherwise it died; the first time may be chance
        raise AudioRefused("damaged", _DAMAGED)

    async def warm_up(self) -> None:
        """Start a child. Raises TranscriberUnavailable."""
        async with self._pool.turns:
            self._release(await self._ready_child())

    async def close(self) -> None:
        """Kill every child and wait until they have ended."""
        await self._pool.close()

    async def _ready_child(self) -> Child:
        """A started child, now marked as busy. Raises TranscriberUnavailable."""
        try:
            return await self._pool.take()
        except PoolClosed:
            raise TranscriberUnavailable(SHUTTING_DOWN) from None
        except TimeoutError as error:
            raise TranscriberUnavailable(NOT_STARTING) from error

    async def _ask(self, child: Child, request: WorkerFrame, segments: _SegmentOutput) -> Decoded:
        """Decode one file. The child is kept if it answers and is still trusted."""
        segments.begin()
        try:
            async with asyncio.timeout(self._deadline_s):
                answer = await child.ask(request, on_frame=segments.take)
            decoded = self._decoded(answer, segments)
        except TimeoutError as error:
            self._pool.discard(child)
            raise TranscriptionTimeout(_TOO_SLOW) from error
        except AudioRefused as error:
            self._release(child, damaged=error.code == "damaged")
            raise
        except BaseException:
            self._pool.discard(child)
            raise
        self._release(child)
        return decoded

    def _decoded(self, answer: WorkerFrame, segments: _SegmentOutput) -> Decoded:
        try:
            decoded = decoded_from_wire(answer.header, max_seconds=self._settings.max_seconds)
        except BrokenFrame as error:
            raise TranscriberUnavailable(NONSENSE) from error
        if decoded.segments != segments.count:
            raise TranscriberUnavailable(NONSENSE)
        return decoded

    def _refuse_when_closed(self) -> None:
        if self._pool.closed:
            raise TranscriberUnavailable(SHUTTING_DOWN)

    def _release(self, child: Child, *, damaged: bool = False) -> None:
        """Return a child to the idle ones, unless it has served long enough."""
        wear = -(-self._settings.recycle_after // _DAMAGED_FILES) if damaged else 1
        self._files[child] = self._files.get(child, 0) + wear
        if self._files[child] >= self._settings.recycle_after:
            self._pool.discard(child)
        else:
            self._pool.release(child)


class _SegmentOutput:
    """Passes each segment on once and in order, also when a second child decodes the file again."""

    def __init__(self, on_segment: OnSegment, *, max_bytes: int) -> None:
        self._on_segment = on_segment
        self._max_bytes = max_bytes
        self._bytes = 0
        self._passed_on = 0
        self.count = 0

    def begin(self) -> None:
        """Decoding starts at the beginning of the file."""
        self.count = self._bytes = 0

    def take(self, frame: WorkerFrame) -> None:
        """Take one frame from the child. Raises BrokenFrame; the child is then stopped."""
        segment = segment_from_wire(frame)
        if segment.index != self.count:
            raise BrokenFrame(f"piece {segment.index} came where {self.count} was due")
        self.count += 1
        self._bytes += len(segment.pcm)
        if self._bytes > self._max_bytes:
            raise BrokenFrame("more speech than a recording may hold")
        if segment.index >= self._passed_on:
            self._passed_on += 1
            self._on_segment(segment)


def _command(settings: TranscriptionSettings) -> tuple[str, ...]:
    return command(
        "voice.audio.decoder_main",
        "--max-bytes", str(settings.max_bytes),
        "--max-seconds", str(settings.max_seconds),
        "--min-seconds", str(settings.min_seconds),
    )  # fmt: skip


def _log_line(line: str) -> None:
    _log.warning("voice decoder: %s", line)
