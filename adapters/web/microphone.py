"""One session's open microphone: pass its audio to the gateway, and send the transcript as frames.

The `LiveSpeech` port does the recognition. Opening and closing are slow and run concurrently with the
reading of frames, so a client waits for neither.
"""

from __future__ import annotations

import asyncio
from typing import Final, Literal

from adapters.channel import LiveSpeech, LiveStream
from adapters.web import outgoing
from adapters.web.hub import OutgoingFrame, Session
from adapters.web.inbound import author_of, thread_of
from adapters.web.protocol import PCM_FRAME_BYTES, FrameProblem, LiveStart
from adapters.web.shared import Shared, problem_of
from pipeline.domain.clock import Clock
from pipeline.domain.errors import MediaUnavailable
from pipeline.domain.live import LiveEvent, SpeechPartial
from pipeline.domain.rates import TokenBucket

EndReason = Literal["stopped", "too_fast", "unavailable", "failed"]

BYTES_PER_S: Final = 64_000
"""Twice a microphone's rate: a delayed page can catch up."""
BACKLOG_BYTES: Final = 5 * BYTES_PER_S
_ENDING_S = 30.0
"""Seconds for which the last words of a closing microphone are still transcribed."""
_WORDS: Final[dict[EndReason, str]] = {
    "stopped": "",
    "unavailable": "the gateway no longer listens; open the microphone again",
    "too_fast": "sound came faster than anybody can speak, so the microphone was closed; open it again",
    "failed": "listening broke off; the gateway's log says where. Open the microphone again",
}


class WebMicrophone:
    """At most one open microphone. No method waits."""

    def __init__(self, shared: Shared, session: Session, group: asyncio.TaskGroup) -> None:
        self._shared = shared
        self._session = session
        self._group = group
        self._live: _LiveSession | None = None
        self._cut_off = False
        """The last session was ended by this side: audio may still arrive."""

    @property
    def takes_sound(self) -> bool:
        """Whether a binary frame is the microphone's audio."""
        return self._live is not None or self._cut_off

    def start(self, frame: LiveStart) -> None:
        """Open the microphone; `live_ready` or a problem follows."""
        if self._shared.live is None:
            words = "live speech is switched off; send a voice note or type"
            self._session.report(FrameProblem(code="live_disabled", message=words), frame.client_id)
        elif self._live is not None:
            words = "this window listens already; close its microphone first"
            self._session.report(FrameProblem(code="busy", message=words), frame.client_id)
        else:
            self._cut_off = False
            self._live = _LiveSession(self._session, frame, self._shared.clock)
            self._group.create_task(self._listen(self._shared.live, self._live))

    def feed(self, content: bytes) -> None:
        """Process more audio; a bad frame is dropped and reported."""
        listening = self._live
        if listening is None or listening.ending is not None:
            return
        if not content or len(content) % 2 or len(content) > PCM_FRAME_BYTES:
            words = (
                f"binary: {len(content)} bytes are no sound; expected 16 kHz mono s16le, "
                f"an even number of bytes up to {PCM_FRAME_BYTES}"
            )
            self._session.report(FrameProblem(code="bad_audio", message=words), None)
            return
        listening.feed(content)

    def finish(self) -> None:
        """What was said is a message."""
        if self._live is None:
            self._not_listening()
        else:
            self._live.ask_to_finish()

    def stop(self) -> None:
        """Close the microphone; `live_ended` follows when the last words are understood."""
        if self._live is None:
            self._not_listening()
        else:
            self._live.end("stopped")

    def hang_up(self) -> None:
        """Close the microphone of a client that is gone."""
        if self._live is not None:
            self._live.end("stopped")

    def _not_listening(self) -> None:
        self._session.report(FrameProblem(code="not_listening", message="no microphone is open here"), None)

    async def _listen(self, live: LiveSpeech, listening: _LiveSession) -> None:
        try:
            reason = await listening.run(live)
        except MediaUnavailable as error:
            self._session.report(
                FrameProblem(code="live_unavailable", message=str(error)), listening.client_id
            )
            reason = None
        self._cut_off = reason != "stopped"
        self._live = None
        if reason is not None:
            words = listening.words or _WORDS[reason]
            self._session.deliver(OutgoingFrame(frame=outgoing.live_ended_frame(reason, words)))


class _LiveSession:
    """One live session from its `live_start` to its end."""

    def __init__(self, session: Session, frame: LiveStart, clock: Clock) -> None:
        self.client_id = frame.client_id
        self.ending: EndReason | None = None
        self.words = ""
        """The gateway's reason for ending the session, where it gave one."""
        self._hands_free = frame.hands_free
        self._session = session
        self._clock = clock
        self._bytes = TokenBucket(per_s=BYTES_PER_S, size=BACKLOG_BYTES, now=clock.monotonic())
        self._stream: LiveStream | None = None
        self._early: list[bytes] = []
        """Audio received while the stream was being opened; `_bytes` bounds it."""
        self._finishing = False
        self._begun = False
        """Whether the task has started, and `_limit` applies."""
        self._asked = asyncio.Event()
        self._limit = asyncio.timeout(None)

    async def run(self, live: LiveSpeech) -> EndReason:
        """Run to the end and return its reason. Raises MediaUnavailable where live speech is not
        available."""
        try:
            async with self._limit:
                self._bound_the_end()
                stream = await live.open(
                    thread_of(self._session.chat),
                    author_of(self._session.chat),
                    on_event=self._show,
                    hands_free=self._hands_free,
                )
                await self._serve(stream)
        except MediaUnavailable:
            raise
        except Exception as error:  # noqa: BLE001 - failed speech recognition must not close the connection
            problem_of("listening", error)
            self.ending = "failed"
        return self.ending or "failed"

    def feed(self, content: bytes) -> None:
        """Process more audio; ends the session when it exceeds the rate limit."""
        if not self._bytes.take(self._clock.monotonic(), len(content)):
            self.end("too_fast")
        elif self._stream is None:
            self._early.append(content)
        else:
            self._give(self._stream, content)

    def ask_to_finish(self) -> None:
        """What was said so far is a message."""
        self._finishing = True
        self._asked.set()

    def end(self, reason: EndReason) -> None:
        """Close the stream; the first reason counts."""
        if self.ending is None:
            self.ending = reason
            if self._begun:
                self._bound_the_end()
        self._asked.set()

    def _bound_the_end(self) -> None:
        # A stream that hangs while opening or closing must not delay the connection's end for ever.
        self._begun = True
        if self.ending is not None:
            self._limit.reschedule(asyncio.get_running_loop().time() + _ENDING_S)

    async def _serve(self, stream: LiveStream) -> None:
        try:
            for content in self._early:
                self._give(stream, content)
            self._early.clear()
            self._stream = stream
            self._session.deliver(OutgoingFrame(frame=outgoing.live_ready_frame(self.client_id)))
            while self.ending is None or self._finishing:
                await self._asked.wait()
                self._asked.clear()
                if self._finishing:
                    self._finishing = False
                    await stream.finish()
        finally:
            async with asyncio.timeout(_ENDING_S):
                await stream.close()

    def _give(self, stream: LiveStream, content: bytes) -> None:
        try:
            stream.feed(content)
        except MediaUnavailable as error:
            self.words = str(error)
            self.end("unavailable")
        except Exception as error:  # noqa: BLE001 - a failed stream ends without the connection
            problem_of("hearing a piece of sound", error)
            self.end("failed")

    def _show(self, event: LiveEvent) -> None:
        frame = OutgoingFrame(frame=outgoing.live_frame(event), droppable=isinstance(event, SpeechPartial))
        self._session.deliver(frame)
