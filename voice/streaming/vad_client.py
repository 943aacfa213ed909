"""Voice activity detection for live streams: samples in, speech probabilities per frame out.

One child process serves all streams. Not here: the detector (`voice.streaming.vad_main`), where an utterance
ends (`voice.streaming.segmenter`), recognition.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from voice.errors import TranscriberUnavailable, VoiceError
from voice.settings import TranscriptionSettings
from voice.streaming.vad_protocol import probabilities_from_wire
from voice.workers.child import Child, Dying, OnLine, command
from voice.workers.frames import BrokenFrame, WorkerFrame

_FRAME_BYTES = 1024
"""512 samples: one probability each."""
_BACKLOG_BYTES = 10 * 32_000 // _FRAME_BYTES * _FRAME_BYTES
_TURN_BYTES = 64 * _FRAME_BYTES
"""The most per stream in one request: two seconds."""
_REQUEST_BYTES = 1024 * 1024
_START_DEADLINE_S = 60.0
_ANSWER_DEADLINE_S = 10.0

_CLOSED = "Listening is shutting down. Please speak again later."
_NOT_STARTING = "Listening did not start in time. Please try again later."

OnProbabilities = Callable[[int, tuple[float, ...]], None]

_log = logging.getLogger(__name__)


class VadStream:
    """One person's live audio: 16 kHz, mono, 16 bit little endian. Created by `VadClient.open`."""

    def __init__(self, stream_id: int, on_probabilities: OnProbabilities, wake: Callable[[], None]) -> None:
        self.id = stream_id
        self.on_lost: Callable[[], None] | None = None
        """Called once if the child process ends; no probabilities follow."""
        self.dropped = 0
        """Samples dropped, the oldest first, because more than ten seconds were waiting."""
        self.over = False
        self._on_probabilities = on_probabilities
        self._wake = wake
        self._pending = bytearray()
        self._next_frame = 0

    def feed(self, pcm: bytes) -> None:
        """Add audio of any length; returns at once. Ignored after the stream is over."""
        if self.over:
            return
        self._pending += pcm
        excess = len(self._pending) - _BACKLOG_BYTES
        if excess > 0:
            frames = -(-excess // _FRAME_BYTES)
            del self._pending[: frames * _FRAME_BYTES]
            self._next_frame += frames
            self.dropped += frames * _FRAME_BYTES // 2
        if self.waits:
            self._wake()

    def close(self) -> None:
        """End the stream and drop the waiting audio. Safe to call more than once."""
        if not self.over:
            self.over = True
            self._pending.clear()
            self._wake()

    @property
    def waits(self) -> bool:
        """Whether a whole frame waits to be judged."""
        return len(self._pending) >= _FRAME_BYTES

    def take(self) -> tuple[int, bytes]:
        """The index of the next frame to judge, and the waiting whole frames."""
        size = min(_TURN_BYTES, len(self._pending) // _FRAME_BYTES * _FRAME_BYTES)
        first, pcm = self._next_frame, bytes(self._pending[:size])
        del self._pending[:size]
        self._next_frame += size // _FRAME_BYTES
        return first, pcm

    def deliver(self, first: int, probabilities: tuple[float, ...]) -> None:
        """Pass on the probabilities of the frames taken, unless the stream is over."""
        if not self.over:
            self._on_probabilities(first, probabilities)

    def lose(self) -> None:
        """The child process ended."""
        if not self.over:
            self.over = True
            self._pending.clear()
            if self.on_lost is not None:
                self.on_lost()


class VadClient:
    """Judges any number of live streams. Belongs to the event loop it is first used on.

    While audio waits, one request at a time takes it from all streams. `on_line` gets what the child
    writes to stderr.
    """

    def __init__(self, settings: TranscriptionSettings, *, on_line: OnLine | None = None) -> None:
        self._settings = settings
        self._on_line = on_line or _log_line
        self._starting = asyncio.Lock()
        self._child: Child | None = None
        self._dying = Dying()
        self._streams: dict[int, VadStream] = {}
        self._ended: list[int] = []
        self._opened = 0
        self._served = 0
        """Streams opened on the present child."""
        self._pump: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def pids(self) -> tuple[int, ...]:
        """The running child's process id, if there is one."""
        return (self._child.pid,) if self._child is not None and self._child.alive else ()

    async def open(self, on_probabilities: OnProbabilities) -> VadStream:
        """Begin a stream. `on_probabilities(first, probabilities)` gets, in order and on the loop, one
        number from 0 to 1 for each 512 samples, counted from the stream's beginning.

        Raises TranscriberUnavailable.
        """
        await self.warm_up()
        self._opened += 1
        self._served += 1
        stream = VadStream(self._opened, on_probabilities, self._wake)
        self._streams[stream.id] = stream
        return stream

    async def warm_up(self) -> None:
        """Start the child unless it runs. Raises TranscriberUnavailable."""
        async with self._starting:
            if self._closed:
                raise TranscriberUnavailable(_CLOSED)
            worn = not self._streams and self._served >= self._settings.recycle_after
            if self._child is not None and self._child.alive and not worn:
                return
            if self._child is not None:
                self._dying.end(self._child)
            self._lose_streams()
            self._served = 0
            self._child = await self._started()

    async def close(self) -> None:
        """End every stream and the child, and wait for its exit. `on_lost` is not called."""
        self._closed = True
        for stream in tuple(self._streams.values()):
            stream.close()
        if self._child is not None:
            self._dying.end(self._child)
        async with self._starting:
            pass  # a start in progress has failed and cleaned up
        if self._pump is not None:
            await asyncio.wait((self._pump,))
        await self._dying.gone()

    async def _started(self) -> Child:
        arguments = ("--max-bytes", str(_REQUEST_BYTES))
        child = await Child.start(command("voice.streaming.vad_main", *arguments), self._on_line)
        try:
            async with asyncio.timeout(_START_DEADLINE_S):
                await asyncio.shield(child.ready)
        except TimeoutError as error:
            self._dying.end(child)
            raise TranscriberUnavailable(_NOT_STARTING) from error
        except BaseException:
            self._dying.end(child)
            raise
        if self._closed:
            self._dying.end(child)
            raise TranscriberUnavailable(_CLOSED)
        child.ended.add_done_callback(lambda _: self._gone(child))
        return child

    def _gone(self, child: Child) -> None:
        if child is self._child:
            self._lose_streams()

    def _lose_streams(self) -> None:
        streams, self._streams = self._streams, {}
        self._ended.clear()
        for stream in streams.values():
            stream.lose()

    def _wake(self) -> None:
        """Start the task that takes the waiting audio, unless it runs."""
        for stream_id in [key for key, stream in self._streams.items() if stream.over]:
            del self._streams[stream_id]
            self._ended.append(stream_id)
        if self._pump is None and self.pids and not self._closed:
            # This object owns the task: it ends when no audio waits, and `close` waits for it.
            self._pump = asyncio.get_running_loop().create_task(self._pumped(), name="listener")

    async def _pumped(self) -> None:
        """Send requests until no audio waits."""
        try:
            while (child := self._child) is not None and child.alive and not self._closed:
                taken = self._taken()
                if not taken and not self._ended:
                    return
                await self._asked(child, taken)
        finally:
            self._pump = None

    def _taken(self) -> list[tuple[VadStream, int, bytes]]:
        """The waiting audio of the streams, the longest unserved first."""
        taken: list[tuple[VadStream, int, bytes]] = []
        for stream in tuple(self._streams.values()):
            if stream.waits and (len(taken) + 1) * _TURN_BYTES <= _REQUEST_BYTES:
                taken.append((stream, *stream.take()))
                self._streams[stream.id] = self._streams.pop(stream.id)
        return taken

    async def _asked(self, child: Child, taken: list[tuple[VadStream, int, bytes]]) -> None:
        ended, self._ended = self._ended, []
        streams = [{"id": stream.id, "bytes": len(pcm)} for stream, _, pcm in taken]
        request = WorkerFrame(
            header={"kind": "frames", "streams": streams, "ended": ended},
            body=b"".join(pcm for _, _, pcm in taken),
        )
        try:
            async with asyncio.timeout(_ANSWER_DEADLINE_S):
                answer = await child.ask(request)
            frames = [len(pcm) // _FRAME_BYTES for _, _, pcm in taken]
            judged = probabilities_from_wire(answer.header, frames=frames)
        except (TimeoutError, VoiceError, BrokenFrame) as error:
            if not self._closed:
                self._on_line(f"the listener is stopped: {error!r}")
            self._dying.end(child)
            self._gone(child)
            return
        for (stream, first, _), probabilities in zip(taken, judged, strict=True):
            try:
                stream.deliver(first, probabilities)
            except Exception:  # noqa: BLE001 - an error in one stream must not affect the others
                _log.exception("a live stream could not take its probabilities")


def _log_line(line: str) -> None:
    _log.warning("voice listener: %s", line)
