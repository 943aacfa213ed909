"""Receive by Socket Mode: Slack sends over a WebSocket that this side opens.

This module manages the sockets itself. slack-sdk's client closes its socket before it opens the next, retries
for ever with a rejected token, and leaves tasks running. Only its calls and frames are used.
When Slack requests a refresh, the next socket is opened before the old one is closed. A socket that is
silent for three pings counts as dead, regardless of its state.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse

from adapters.json_fields import mapping
from adapters.slack.dispatch import SlackResponse
from adapters.slack.failures import CallFailed
from pipeline.domain.clock import Clock
from pipeline.domain.errors import ConfigurationError

_log = logging.getLogger(__name__)
_OPEN_S = 15.0
_AGAIN_S = 1.0
_SHORT_LIFE_S = 10.0
_SHORT_LIVES = 3
"""After this many short-lived sockets in a row, each new one is delayed longer and longer."""
_LONGEST_PAUSE_S = 30.0
_DRAIN_S = 3.0
_CLOSE_S = 1.0
_SILENT_PINGS = 2.5
_MOST_AT_WORK = 64
_FRAME_BYTES = 4 * 1024 * 1024


class SocketLost(Exception):
    """No socket is open, and a new one could not be opened."""


@dataclass(slots=True, eq=False)
class _Socket:
    """One connection."""

    ws: aiohttp.ClientWebSocketResponse
    opened_at: float
    received_at: float
    hello: asyncio.Event = field(default_factory=asyncio.Event)
    leaving: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when Slack requests a replacement, or the socket is gone."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    at_work: set[asyncio.Task[None]] = field(default_factory=set)


class SocketModeReceiver:
    """Keeps one socket open, two during a refresh."""

    def __init__(
        self,
        *,
        session: aiohttp.ClientSession,
        new_url: Callable[[], Awaitable[str]],
        dispatch: Callable[[Mapping[str, Any]], Awaitable[SlackResponse]],
        on_frame: Callable[[], None],
        clock: Clock,
        ping_s: float,
    ) -> None:
        self._session = session
        self._new_url = new_url
        self._dispatch = dispatch
        self._on_frame = on_frame
        self._clock = clock
        self._ping_s = ping_s
        self._slots = asyncio.Semaphore(_MOST_AT_WORK)
        self._open_sockets = 0

    async def run(self, opened: Callable[[], None]) -> None:
        """Receive until cancelled; `opened` is called when the first socket is ready.

        Raises ConfigurationError when Slack says that only the operator can help, and otherwise SocketLost
        or the error of opening a socket, when none is left.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                await self._keep_open(tasks, opened)
        except BaseExceptionGroup as group:
            raise _cause(group) from None

    async def _keep_open(self, tasks: asyncio.TaskGroup, opened: Callable[[], None]) -> None:
        current = await self._open(tasks)
        opened()
        short_lives = 0
        while True:
            await current.leaving.wait()
            lived_s = self._clock.monotonic() - current.opened_at
            short_lives = short_lives + 1 if lived_s < _SHORT_LIFE_S else 0
            if short_lives > _SHORT_LIVES:
                await self._clock.sleep(min(_LONGEST_PAUSE_S, 2.0 ** min(10, short_lives - _SHORT_LIVES - 1)))
            following = await self._replace(tasks, current)
            await self._retire(current)
            current = following

    # -- one socket's lifecycle ---------------------------------------------------------------------

    async def _open(self, tasks: asyncio.TaskGroup) -> _Socket:
        """Open a socket and wait for its hello."""
        url = await self._new_url()
        try:
            async with self._clock.timeout(_OPEN_S):
                ws = await self._session.ws_connect(
                    url,
                    autoping=False,
                    max_msg_size=_FRAME_BYTES,
                    timeout=aiohttp.ClientWSTimeout(ws_close=_CLOSE_S),
                )
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            # Without the cause, which contains the address with its ticket.
            raise SocketLost(f"a socket could not be opened ({type(error).__name__})") from None
        now = self._clock.monotonic()
        socket = _Socket(ws=ws, opened_at=now, received_at=now)
        tasks.create_task(self._serve(socket))
        try:
            async with self._clock.timeout(_OPEN_S):
                await socket.hello.wait()
        except TimeoutError:
            await ws.close()
            raise SocketLost("the socket opened and said nothing") from None
        if socket.ended.is_set():
            raise SocketLost("the socket closed before it was ready")
        return socket

    async def _replace(self, tasks: asyncio.TaskGroup, old: _Socket) -> _Socket:
        """Open the next socket. While the old one still works, a failure is retried."""
        while True:
            was_working = not old.ended.is_set()
            try:
                return await self._open(tasks)
            except (SocketLost, CallFailed) as error:
                if not was_working:
                    raise
                _log.warning("the next socket could not be opened", extra={"error": type(error).__name__})
                pause_s = pause_before(error)
            await self._clock.sleep(pause_s)

    async def _retire(self, socket: _Socket) -> None:
        """Close a socket after its acks are sent; later frames are delivered again."""
        if socket.at_work and not socket.ended.is_set():
            try:
                async with self._clock.timeout(_DRAIN_S):
                    await asyncio.wait(tuple(socket.at_work))
            except TimeoutError:
                _log.info("a socket is closed with items at work")
        await socket.ws.close()

    async def _serve(self, socket: _Socket) -> None:
        self._open_sockets += 1
        try:
            async with asyncio.TaskGroup() as tasks:
                watch = tasks.create_task(self._watch(socket))
                async for message in socket.ws:
                    self._note(socket)
                    await self._read(socket, message, tasks)
                watch.cancel()
                socket.leaving.set()
        finally:
            self._open_sockets -= 1
            socket.ended.set()
            socket.leaving.set()
            socket.hello.set()
            await socket.ws.close()

    async def _watch(self, socket: _Socket) -> None:
        """Send pings, and close a socket that does not answer."""
        while True:
            await self._clock.sleep(self._ping_s)
            if self._clock.monotonic() - socket.received_at > self._ping_s * _SILENT_PINGS:
                _log.warning("a socket went silent and is replaced")
                await socket.ws.close()
                return
            try:
                await socket.ws.ping(b"parlour")
            except ConnectionError:
                return

    # -- frames -------------------------------------------------------------------------------------

    async def _read(self, socket: _Socket, message: aiohttp.WSMessage, tasks: asyncio.TaskGroup) -> None:
        if message.type == aiohttp.WSMsgType.PING:
            await _send(socket.ws.pong(message.data))
            return
        if message.type != aiohttp.WSMsgType.TEXT:
            return
        try:
            frame = mapping(json.loads(message.data))
        except (ValueError, RecursionError):
            return
        if frame.get("type") == "hello":
            self._count(frame.get("num_connections"))
            socket.hello.set()
        elif frame.get("type") == "disconnect":
            self._leave(socket, frame.get("reason"))
        else:
            await self._take(socket, frame, tasks)

    def _count(self, connections: object) -> None:
        """Warn of other connections: Slack distributes events over all sockets of the app, other programs'
        included."""
        if isinstance(connections, int) and connections > self._open_sockets:
            _log.warning(
                "another program has a socket of this Slack app open and gets a share of the messages",
                extra={"connections": connections, "ours": self._open_sockets},
            )

    def _leave(self, socket: _Socket, reason: object) -> None:
        if reason == "link_disabled":
            raise ConfigurationError(
                "Slack has Socket Mode switched off for this app: switch it on under Settings > Socket Mode, "
                'or set channels.slack.mode = "http".'
            )
        socket.leaving.set()

    async def _take(self, socket: _Socket, frame: Mapping[str, Any], tasks: asyncio.TaskGroup) -> None:
        try:
            request = SocketModeRequest.from_dict(dict(frame))
        except (TypeError, ValueError):
            return
        if request is None or not isinstance(request.envelope_id, str):
            return
        await self._slots.acquire()
        task = tasks.create_task(self._handle(socket, request))
        socket.at_work.add(task)
        task.add_done_callback(socket.at_work.discard)

    async def _handle(self, socket: _Socket, request: SocketModeRequest) -> None:
        try:
            answer = await self._dispatch(mapping(request.payload))
            if not answer.acked:
                return
            body = dict(answer.body) if answer.body is not None else None
            response = SocketModeResponse(envelope_id=request.envelope_id, payload=body)
            await _send(socket.ws.send_str(json.dumps(response.to_dict())))
            if answer.after is not None:
                await answer.after()
        finally:
            self._slots.release()

    def _note(self, socket: _Socket) -> None:
        socket.received_at = self._clock.monotonic()
        self._on_frame()


def pause_before(error: SocketLost | CallFailed) -> float:
    """Seconds before the next socket is opened after this failure; Slack's own value where it gives one."""
    asked_s = error.failure.retry_after_s if isinstance(error, CallFailed) else None
    return max(_AGAIN_S, asked_s or 0.0)


def _cause(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The cause of the task groups' exceptions: the operator's errors first."""
    found = [_cause(error) if isinstance(error, BaseExceptionGroup) else error for error in group.exceptions]
    return next((error for error in found if isinstance(error, ConfigurationError)), found[0])


async def _send(sending: Awaitable[None]) -> None:
    """Send a frame on a socket that may have just closed: unacknowledged events are delivered again."""
    try:
        await sending
    except ConnectionError:
        _log.info("a socket closed before an answer")
