"""Read answers aloud for one session, one at a time. Not the synthesis itself: see the `ReadAloud` port.

The text comes from the chat's own log, or from the answer in progress, and never from the
client, so only answers can be read.
"""

from __future__ import annotations

import asyncio

from adapters.channel import ReadAloud
from adapters.formatting.spoken import spoken_parts
from adapters.web import outgoing
from adapters.web.answer_reading import AnswerEnded, Following
from adapters.web.hub import OutgoingFrame, Session
from adapters.web.inbound import thread_of
from adapters.web.protocol import FrameProblem, Speak, SpeakAlong
from adapters.web.shared import Shared, problem_of
from pipeline.domain.errors import MediaUnavailable
from pipeline.domain.ids import ThreadKey
from pipeline.domain.timeline import TimelineEntry

_ENTRIES_LOOKED_AT = 5_000
"""An answer further back than this many entries is not found: the log is read from its end."""


class _NotFound(Exception):
    """The requested answer does not exist; the text is for the client."""


class TtsRequests:
    """One client's requests. No method waits."""

    def __init__(self, shared: Shared, session: Session, group: asyncio.TaskGroup) -> None:
        self._shared = shared
        self._session = session
        self._group = group
        self._task: asyncio.Task[None] | None = None
        self._unanswered = ""
        """The key of the frame that `_task` still has to answer."""
        self._following: Following | None = None
        """The answer that is read while it is written, from its first part to its end."""

    def start(self, frame: Speak | SpeakAlong) -> None:
        """Read an answer or a part of one; `speech` and its audio follow, `speech_ended`, or a problem."""
        if self._shared.read_aloud is None:
            words = "reading aloud is switched off"
            self._session.report(FrameProblem(code="speech_disabled", message=words), frame.client_id)
        elif self._task is not None and not self._task.done():
            words = "another answer is being read just now; ask again when its sound is there"
            self._session.report(FrameProblem(code="busy", message=words), frame.client_id)
        else:
            self._unanswered = frame.client_id
            self._task = self._group.create_task(self._read(self._shared.read_aloud, frame))

    def stop(self) -> None:
        """Stop reading; a pending request is answered with `speech_ended`."""
        self.hang_up()
        self._task = None
        if self._unanswered:
            self._end(self._unanswered, "stopped")

    def hang_up(self) -> None:
        """Stop, because the client is gone."""
        if self._task is not None:
            self._task.cancel()
        self._forget()

    async def _read(self, read_aloud: ReadAloud, frame: Speak | SpeakAlong) -> None:
        try:
            if isinstance(frame, Speak):
                delivered = await self._read_finished(read_aloud, frame)
            else:
                delivered = await self._read_along(read_aloud, frame)
        except AnswerEnded as ended:
            self._forget()
            self._end(frame.client_id, ended.reason)
            return
        except _NotFound as error:
            self._refuse(FrameProblem(code="not_found", message=str(error)), frame.client_id)
            return
        except MediaUnavailable as error:
            self._refuse(FrameProblem(code="speech_unavailable", message=str(error)), frame.client_id)
            return
        except Exception as error:  # noqa: BLE001 - one answer that cannot be read must not close the chat
            self._refuse(problem_of("reading an answer aloud", error), frame.client_id)
            return
        # The next clip is made when this one is sent: a slow client holds only one.
        await delivered.wait()

    async def _read_finished(self, read_aloud: ReadAloud, frame: Speak) -> asyncio.Event:
        """Send the audio of a finished answer or its part; the event that is set when it is sent."""
        answer = await self._answer(frame.entry_id)
        if answer is None:
            words = "entry_id: this chat has no finished answer of that number"
            raise _NotFound(words)
        text = answer.text
        parts = (text,) if frame.part is None else spoken_parts(text) or (text,)
        if (frame.part or 0) >= len(parts):
            words = f"part: this answer is read in {len(parts)} parts, counted from 0"
            raise _NotFound(words)
        part = parts[frame.part or 0]
        clip = await read_aloud.read(part, thread=self._thread, message_id=answer.message_id)
        header = outgoing.speech_frame(
            client_id=frame.client_id,
            entry_id=frame.entry_id,
            clip=clip,
            part=frame.part,
            parts=len(parts),
        )
        return self._send(header, clip.data)

    async def _read_along(self, read_aloud: ReadAloud, frame: SpeakAlong) -> asyncio.Event:
        """Send the audio of the next part of an answer in progress, as `_read_finished` does."""
        following = self._follow(frame)
        if following is None:
            words = (
                "message_id: this chat has no answer to that message that is being written and has this part"
            )
            raise _NotFound(words)
        part = await following.next_part()
        clip = await read_aloud.read(part, thread=self._thread, message_id=frame.message_id)
        header = outgoing.speech_part_frame(
            client_id=frame.client_id, message_id=frame.message_id, part=frame.part, clip=clip
        )
        return self._send(header, clip.data)

    def _follow(self, frame: SpeakAlong) -> Following | None:
        known = self._following
        if frame.part > 0:
            fits = known is not None and (known.message_id, known.parts) == (frame.message_id, frame.part)
            return known if fits else None
        self._forget()
        if self._shared.hub.answer(self._session.chat, frame.message_id) is not None:
            self._following = Following(self._shared, self._session, frame.message_id)
        return self._following

    def _forget(self) -> None:
        following, self._following = self._following, None
        if following is not None:
            following.close()

    def _send(self, header: outgoing.Frame, sound: bytes) -> asyncio.Event:
        self._unanswered = ""
        sent = asyncio.Event()
        self._session.deliver(OutgoingFrame(frame=header, binary=sound, sent=sent))
        return sent

    def _end(self, client_id: str, reason: str) -> None:
        self._unanswered = ""
        self._session.deliver(
            OutgoingFrame(frame=outgoing.speech_ended_frame(client_id=client_id, reason=reason))
        )

    def _refuse(self, problem: FrameProblem, client_id: str) -> None:
        self._unanswered = ""
        self._session.report(problem, client_id)

    @property
    def _thread(self) -> ThreadKey:
        return thread_of(self._session.chat)

    async def _answer(self, entry_id: int) -> TimelineEntry | None:
        timeline = self._shared.timeline
        entries = await timeline.entries(self._thread, after=entry_id - 1, limit=_ENTRIES_LOOKED_AT)
        for entry in entries:
            if entry.entry_id == entry_id and entry.role == "assistant" and entry.text.strip():
                return entry
        return None
