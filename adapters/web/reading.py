"""Reading finished answers aloud for one session, one at a time. Not the voice; that is the `ReadAloud` port.

The words come from the chat's own log and never from the client, so nothing but an answer can be read.
"""

from __future__ import annotations

import asyncio

from adapters.channel import ReadAloud
from adapters.web import outgoing
from adapters.web.hub import Outgoing, Session
from adapters.web.inbound import thread_of
from adapters.web.protocol import Problem, Speak
from adapters.web.shared import Shared, problem_of
from pipeline.domain.errors import MediaUnavailable

_ENTRIES_LOOKED_AT = 5_000
"""An answer further back than so many lines is not found: the log is read from its end."""


class Reading:
    """What one client asked to hear. No method waits."""

    def __init__(self, shared: Shared, session: Session, group: asyncio.TaskGroup) -> None:
        self._shared = shared
        self._session = session
        self._group = group
        self._task: asyncio.Task[None] | None = None

    def start(self, frame: Speak) -> None:
        """Read an answer; `speech` and its sound follow, or a problem."""
        if self._shared.read_aloud is None:
            words = "reading aloud is switched off"
            self._session.tell(Problem(code="speech_disabled", message=words), frame.client_id)
        elif self._task is not None and not self._task.done():
            words = "another answer is being read just now; ask again when its sound is there"
            self._session.tell(Problem(code="busy", message=words), frame.client_id)
        else:
            self._task = self._group.create_task(self._read(self._shared.read_aloud, frame))

    def hang_up(self) -> None:
        """Nobody listens any more."""
        if self._task is not None:
            self._task.cancel()

    async def _read(self, read_aloud: ReadAloud, frame: Speak) -> None:
        try:
            text = await self._words(frame.entry_id)
            if text is None:
                words = "entry_id: this chat has no finished answer of that number"
                self._session.tell(Problem(code="not_found", message=words), frame.client_id)
                return
            clip = await read_aloud.read(text)
            header = outgoing.speech_frame(client_id=frame.client_id, entry_id=frame.entry_id, clip=clip)
        except MediaUnavailable as error:
            self._session.tell(Problem(code="speech_unavailable", message=str(error)), frame.client_id)
            return
        except Exception as error:  # noqa: BLE001 - one answer that cannot be read must not close the chat
            self._session.tell(problem_of("reading an answer aloud", error), frame.client_id)
            return
        sent = asyncio.Event()
        self._session.deliver(Outgoing(text=header, binary=clip.data, sent=sent))
        # The next one is made when this one is on its way: a slow client holds one clip, never a pile.
        await sent.wait()

    async def _words(self, entry_id: int) -> str | None:
        thread = thread_of(self._session.chat)
        entries = await self._shared.timeline.entries(thread, after=entry_id - 1, limit=_ENTRIES_LOOKED_AT)
        for entry in entries:
            if entry.entry_id == entry_id and entry.role == "assistant" and entry.text.strip():
                return entry.text
        return None
