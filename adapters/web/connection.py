"""One authenticated socket from `welcome` to close.

Reading and writing run concurrently, so a slow reader's frames are still processed. Not here: the
`hello` before it (handshake.py), what a frame means (intake.py), which frames go to which chat (hub.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from aiohttp import WSMsgType, web

from adapters.web import outgoing
from adapters.web.hub import OutgoingFrame, Session
from adapters.web.inbound import thread_of
from adapters.web.intake import Intake
from adapters.web.protocol import Hello
from adapters.web.shared import CLOSE_TIMEOUT_S, NORMAL, TRY_AGAIN, Shared, close_socket, problem_of
from adapters.web.workflow_requests import may_edit
from pipeline.domain.events import ApprovalRequired
from pipeline.domain.timeline import TimelineEntry

_BATCHED = 64
"""The most frames in a message. The rest stays in the queue, which drops what a slow client misses."""


class PageConnection:
    """One open socket and its session. `serve` runs until it ends and closes it."""

    def __init__(
        self, shared: Shared, socket: web.WebSocketResponse, request: web.Request, session: Session
    ) -> None:
        self._shared = shared
        self._socket = socket
        self._request = request
        self._session = session

    async def serve(self, hello: Hello) -> None:
        """Send the history and then live frames, process the client's frames, until either side ends."""
        try:
            async with asyncio.TaskGroup() as group:
                writer = group.create_task(self._write(hello))
                group.create_task(self._close_when_ended(writer))
                intake = Intake(self._shared, self._session, group)
                try:
                    await self._read(intake)
                finally:
                    intake.hang_up()
                    self._session.end(None)
        finally:
            self._session.queue.close()
            self._shared.hub.leave(self._session)

    async def _read(self, intake: Intake) -> None:
        while True:
            message = await self._socket.receive()
            if self._session.ended.done() and message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                # The device was signed out, or the chat deleted: nothing of it counts any more.
                continue
            if message.type is WSMsgType.TEXT:
                await intake.take_text(message.data)
            elif message.type is WSMsgType.BINARY:
                await intake.take_binary(message.data)
            else:
                return

    async def _write(self, hello: Hello) -> None:
        try:
            if not await self._send_history(hello):
                return
            queue, most = self._session.queue, _BATCHED if hello.batch else 1
            while frames := await queue.next_items(most):
                await self._send(frames)
        except ConnectionError:
            self._session.end(None)

    async def _send(self, frames: Sequence[OutgoingFrame]) -> None:
        """Send the frames in order, and those that follow one another in one message."""
        together: list[outgoing.Frame] = []
        for one in frames:
            together.append(one.frame)
            if one.binary or one.sent is not None:
                await self._send_text(together)
                together = []
                if one.binary:
                    await self._socket.send_bytes(one.binary)
                if one.sent is not None:
                    one.sent.set()
        if together:
            await self._send_text(together)

    async def _send_text(self, frames: Sequence[outgoing.Frame]) -> None:
        await self._socket.send_frame(outgoing.encode(frames), WSMsgType.TEXT)

    async def _send_history(self, hello: Hello) -> bool:
        settings = self._shared.settings
        chat = self._session.chat
        entries: tuple[TimelineEntry, ...] = ()
        questions: tuple[ApprovalRequired, ...] = ()
        earlier, name, editor = 0, "", False
        try:
            editor = await may_edit(self._shared, self._session.visitor)
            if hello.chat is not None:
                entries = await self._shared.timeline.entries(
                    thread_of(chat), after=hello.after, limit=settings.history_entries
                )
                earlier = await self._earlier(hello, entries)
                questions = await self._shared.timeline.questions(thread_of(chat))
                if self._shared.chats is not None:
                    name = await self._shared.chats.name_of(thread_of(chat))
        except Exception as error:  # noqa: BLE001 - the client is notified of any failure and may reconnect
            problem = problem_of("reading the history", error)
            await self._send_text([outgoing.problem_frame(problem)])
            self._session.end(TRY_AGAIN)
            return False
        welcome = outgoing.welcome_frame(
            chat=chat,
            name=name,
            visitor=self._session.visitor,
            bot=settings.bot_name,
            limits=self._shared.limits,
            voice=settings.voice_enabled,
            live=self._shared.live is not None,
            speech=self._shared.read_aloud is not None,
            language=hello.language,
            editor=editor,
        )
        await self._send_text([welcome])
        for entry in entries:
            files = self._shared.links.described(thread_of(chat), entry.files) if entry.files else []
            frame = outgoing.entry_frame(entry, self._shared.rendered, files)
            await self._send_text([frame])
            # Rendering a long history without a cache is slow; other chats run between two entries.
            await asyncio.sleep(0)
        self._session.go_live(entries, questions, self._shared.hub.answers(chat), earlier=earlier)
        return True

    async def _earlier(self, hello: Hello, entries: tuple[TimelineEntry, ...]) -> int:
        """The entry before which the history continues; 0 where it does not, or the client has all of it."""
        first = next((one.entry_id for one in entries if one.entry_id), 0)
        if hello.after or not first:
            return 0
        found = await self._shared.timeline.earlier(thread_of(self._session.chat), before=first, limit=1)
        return first if found.entries or found.next else 0

    async def _close_when_ended(self, writer: asyncio.Task[None]) -> None:
        code = await self._session.ended
        self._session.queue.close()
        if code is not None and not self._session.queue.too_slow:
            # Queued frames are sent first, as far as the client accepts them.
            await asyncio.wait({writer}, timeout=CLOSE_TIMEOUT_S)
        writer.cancel()
        await close_socket(self._socket, self._request, code or NORMAL)
