"""Answer one session's requests for history: earlier entries of its chat, and the list of chats. One at a
time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

from adapters.guests import chats_of
from adapters.web import outgoing
from adapters.web.hub import OutgoingFrame, Session
from adapters.web.inbound import thread_of
from adapters.web.person_frames import ChatsRequest
from adapters.web.protocol import EarlierRequest, FrameProblem
from adapters.web.settings import ACCOUNT, CHANNEL
from adapters.web.shared import Shared, problem_of


class LookingBack:
    """Answers one client's requests. No method waits."""

    def __init__(self, shared: Shared, session: Session, group: asyncio.TaskGroup) -> None:
        self._shared = shared
        self._session = session
        self._group = group
        self._task: asyncio.Task[None] | None = None

    def earlier(self, frame: EarlierRequest) -> None:
        """Send the entries before a given one, each as an `entry`, then `earlier`; or a problem."""
        self._start(frame.client_id, self._send_earlier(frame))

    def chats(self, frame: ChatsRequest) -> None:
        """Send `chats`; or a problem."""
        self._start(frame.client_id, self._send_chats(frame))

    def hang_up(self) -> None:
        """Stop, because the client is gone."""
        if self._task is not None:
            self._task.cancel()

    def _start(self, client_id: str, reading: Coroutine[None, None, None]) -> None:
        if self._task is not None and not self._task.done():
            reading.close()
            words = "the history is being read just now; ask again when that is done"
            self._session.report(FrameProblem(code="busy", message=words), client_id)
            return
        self._task = self._group.create_task(self._answer_request(client_id, reading))

    async def _answer_request(self, client_id: str, reading: Coroutine[None, None, None]) -> None:
        try:
            await reading
        except Exception as error:  # noqa: BLE001 - an unreadable part of the history must not close the chat
            self._session.report(problem_of("reading the history", error), client_id)

    async def _send_earlier(self, frame: EarlierRequest) -> None:
        shared = self._shared
        found = await shared.timeline.earlier(
            thread_of(self._session.chat), before=frame.before, limit=shared.settings.earlier_entries
        )
        for entry in found.entries:
            sent = asyncio.Event()
            files = shared.links.described(thread_of(self._session.chat), entry.files) if entry.files else []
            line = outgoing.entry_frame(entry, shared.rendered, files)
            self._session.deliver(OutgoingFrame(frame=line, sent=sent))
            # The next entry is rendered when this one is sent, so that a slow client holds only one.
            await sent.wait()
        end = outgoing.earlier_frame(client_id=frame.client_id, earlier=found.next)
        self._session.deliver(OutgoingFrame(frame=end))

    async def _send_chats(self, frame: ChatsRequest) -> None:
        shared = self._shared
        found = await shared.timeline.chats(
            CHANNEL,
            ACCOUNT,
            limit=shared.settings.listed_chats,
            begins=chats_of(self._session.visitor.person),
            search=frame.search,
        )
        self._session.deliver(
            OutgoingFrame(frame=outgoing.chats_frame(client_id=frame.client_id, chats=found))
        )
