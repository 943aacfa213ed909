"""How the fake Slack delivers events: Socket Mode with ack deadlines, or signed HTTP with retries.

An envelope counts as delivered when it was acknowledged. A closed socket or a refused connection puts its
envelopes back without counting an attempt: the real platform's pauses between attempts are minutes, longer
than the restarts that tests play.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import time
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import aiohttp
from aiohttp import web

from tests.support.platforms.slack_state import APP, Workspace

EnvelopeKind = Literal["events_api", "interactive", "slash_commands"]
MAX_SOCKETS = 10


@dataclass(slots=True, eq=False, kw_only=True)
class Envelope:
    """One event, press or command for the bot."""

    kind: EnvelopeKind
    payload: dict[str, Any]
    number: int
    retries: int = 0
    reason: str = ""
    answer: str = ""
    """The text in the ack of a slash command, only for its sender."""
    acked: asyncio.Event = field(default_factory=asyncio.Event)
    overdue: asyncio.TimerHandle | None = None

    @property
    def id(self) -> str:
        return f"envelope-{self.number}"

    def frame(self) -> str:
        """As it goes over the socket."""
        shape: dict[str, Any] = {
            "envelope_id": self.id,
            "payload": self.payload,
            "type": self.kind,
            "accepts_response_payload": self.kind != "events_api",
        }
        if self.kind == "events_api":
            shape |= {"retry_attempt": self.retries, "retry_reason": self.reason}
        return json.dumps(shape)

    def body(self) -> tuple[bytes, str]:
        """As it goes over HTTP: the body and its content type."""
        if self.kind == "events_api":
            return json.dumps(self.payload).encode(), "application/json"
        form = {"payload": json.dumps(self.payload)} if self.kind == "interactive" else self.payload
        return urllib.parse.urlencode(form).encode(), "application/x-www-form-urlencoded"


@dataclass(slots=True, eq=False)
class Socket:
    """One open Socket Mode connection."""

    ws: web.WebSocketResponse
    request: web.Request
    outbox: asyncio.Queue[Envelope] = field(default_factory=asyncio.Queue)
    sent: list[Envelope] = field(default_factory=list)
    frozen: bool = False
    """Open, but unresponsive: nothing is sent, no ping is answered."""


class Delivery:
    """The queue towards the bot."""

    def __init__(self, workspace: Workspace, *, changed: Callable[[], None]) -> None:
        self.sockets: list[Socket] = []
        self.opened = 0
        """The number of sockets opened so far."""
        self.given_up: list[Envelope] = []
        """The envelopes that were not acknowledged after all attempts."""
        self.delivered: list[Envelope] = []
        self.gaps = 0
        """How often the last open socket closed although the bot should stay connected."""
        self.ack_deadline_s = 3.0
        self.max_retries = 3
        self.retry_delays_s = (0.05, 0.5, 2.0)
        """Over HTTP, between attempts."""
        self.deliver_to = ""
        """The bot's request URL; empty means Socket Mode."""
        self.signing_secret = ""
        self.tickets: set[str] = set()
        self._workspace = workspace
        self._changed = changed
        self._waiting: list[Envelope] = []
        self._open: dict[str, Envelope] = {}
        self._count = 0
        self._order: dict[str, asyncio.Lock] = {}
        self._tasks: asyncio.TaskGroup | None = None

    def offer(self, kind: EnvelopeKind, payload: dict[str, Any]) -> Envelope:
        """Queue something for the bot."""
        self._count += 1
        envelope = Envelope(kind=kind, payload=payload, number=self._count)
        self._open[envelope.id] = envelope
        if self.deliver_to and self._tasks is not None:
            self._tasks.create_task(self._post(envelope))
        else:
            self._waiting.append(envelope)
            self._spread()
        return envelope

    def unacknowledged(self) -> int:
        return len(self._open)

    def post_in(self, tasks: asyncio.TaskGroup) -> None:
        """The group that deliveries over HTTP run in."""
        self._tasks = tasks

    def forget(self) -> None:
        """Cancel every timer; nothing is delivered any more."""
        for envelope in self._open.values():
            if envelope.overdue is not None:
                envelope.overdue.cancel()
        self._open.clear()
        self._waiting.clear()

    # -- sockets ----------------------------------------------------------------------------------

    async def accept(self, request: web.Request) -> web.StreamResponse:
        """The handler of the Socket Mode address."""
        ticket = request.query.get("ticket", "")
        if ticket not in self.tickets:
            return web.Response(status=403)
        self.tickets.discard(ticket)
        ws = web.WebSocketResponse(autoping=False, autoclose=True)
        await ws.prepare(request)
        if len(self.sockets) >= MAX_SOCKETS:
            await ws.send_json({"type": "disconnect", "reason": "too_many_websockets", "debug_info": {}})
            await ws.close()
            return ws
        socket = Socket(ws=ws, request=request)
        self.sockets.append(socket)
        self.opened += 1
        try:
            await ws.send_json(self._hello())
            self._changed()
            await self._serve(socket)
        except (ConnectionError, RuntimeError):
            pass
        finally:
            self.sockets.remove(socket)
            self.gaps += not self.sockets
            self._take_back(socket)
            self._changed()
        return ws

    async def refresh(self, *, reason: str = "refresh_requested") -> None:
        """Ask for a replacement of every socket, as every few hours; they keep working until closed."""
        for socket in tuple(self.sockets):
            await socket.ws.send_json(
                {"type": "disconnect", "reason": reason, "debug_info": {"host": "fake"}}
            )

    def drop(self) -> None:
        """Abort every socket's connection without a close frame."""
        for socket in tuple(self.sockets):
            if socket.request.transport is not None:
                socket.request.transport.abort()

    def freeze(self) -> None:
        """Leave every socket open but unresponsive, like a half-open connection."""
        for socket in self.sockets:
            socket.frozen = True

    def _hello(self) -> dict[str, Any]:
        return {
            "type": "hello",
            "num_connections": len(self.sockets),
            "debug_info": {"host": "fake", "build_number": 1, "approximate_connection_time": 18060},
            "connection_info": {"app_id": APP},
        }

    async def _serve(self, socket: Socket) -> None:
        async with asyncio.TaskGroup() as tasks:
            pump = tasks.create_task(self._pump(socket))
            self._spread()
            try:
                async for message in socket.ws:
                    await self._hear(socket, message)
            finally:
                pump.cancel()

    async def _hear(self, socket: Socket, message: aiohttp.WSMessage) -> None:
        if socket.frozen:
            return
        if message.type == aiohttp.WSMsgType.PING:
            await socket.ws.pong(message.data)
        elif message.type == aiohttp.WSMsgType.TEXT:
            frame = json.loads(message.data)
            self._acknowledge(str(frame.get("envelope_id")), frame.get("payload"))

    async def _pump(self, socket: Socket) -> None:
        while True:
            envelope = await socket.outbox.get()
            socket.sent.append(envelope)
            envelope.overdue = asyncio.get_running_loop().call_later(
                self.ack_deadline_s, self._was_not_acked, envelope
            )
            if not socket.frozen and not socket.ws.closed:
                await socket.ws.send_str(envelope.frame())

    def _spread(self) -> None:
        """Send the waiting envelopes, each to any open socket."""
        while self._waiting and self.sockets:
            self._waiting.sort(key=lambda envelope: envelope.number)
            envelope = self._waiting.pop(0)
            self._workspace.chance.choice(self.sockets).outbox.put_nowait(envelope)

    def _take_back(self, socket: Socket) -> None:
        left = list(socket.sent)
        while not socket.outbox.empty():
            left.append(socket.outbox.get_nowait())
        for envelope in left:
            if envelope.id in self._open and envelope not in self._waiting:
                if envelope.overdue is not None:
                    envelope.overdue.cancel()
                envelope.reason = "connection_closed"
                self._waiting.append(envelope)
        self._spread()

    def _was_not_acked(self, envelope: Envelope) -> None:
        if envelope.id not in self._open:
            return
        for socket in self.sockets:
            if envelope in socket.sent:
                socket.sent.remove(envelope)
        if envelope.retries >= self.max_retries:
            self._drop_envelope(envelope)
            return
        envelope.retries += 1
        envelope.reason = "timeout"
        self._waiting.append(envelope)
        self._spread()

    def _drop_envelope(self, envelope: Envelope) -> None:
        self._open.pop(envelope.id, None)
        self.given_up.append(envelope)
        self._changed()

    def _acknowledge(self, name: str, payload: object = None) -> None:
        envelope = self._open.pop(name, None)
        if envelope is None:
            return
        if envelope.overdue is not None:
            envelope.overdue.cancel()
        if isinstance(payload, dict) and envelope.kind == "slash_commands":
            envelope.answer = str(payload.get("text", ""))
        self.delivered.append(envelope)
        envelope.acked.set()
        self._changed()

    # -- HTTP -------------------------------------------------------------------------------------

    async def _post(self, envelope: Envelope) -> None:
        channel = str((envelope.payload.get("event") or {}).get("channel", ""))
        async with aiohttp.ClientSession() as session:
            while envelope.id in self._open:
                async with self._order.setdefault(channel, asyncio.Lock()):
                    status, answer = await self._attempt(session, envelope)
                if 200 <= status < 300:
                    self._acknowledge(envelope.id, answer)
                elif status < 0:
                    await asyncio.sleep(0.1)
                elif envelope.retries >= self.max_retries:
                    self._drop_envelope(envelope)
                else:
                    await asyncio.sleep(self.retry_delays_s[envelope.retries])
                    envelope.retries += 1
                    envelope.reason = "http_timeout" if status == 0 else "http_error"

    async def _attempt(self, session: aiohttp.ClientSession, envelope: Envelope) -> tuple[int, object]:
        """Status and JSON body; the status is 0 for no answer in time, -1 for a refused connection."""
        body, content_type = envelope.body()
        headers = {"Content-Type": content_type, **signed(body, self.signing_secret)}
        if envelope.retries:
            headers["X-Slack-Retry-Num"] = str(envelope.retries)
            headers["X-Slack-Retry-Reason"] = envelope.reason
        try:
            async with asyncio.timeout(self.ack_deadline_s):
                async with session.post(self.deliver_to, data=body, headers=headers) as response:
                    is_json = response.content_type == "application/json"
                    return response.status, await response.json() if is_json else None
        except TimeoutError:
            return 0, None
        except aiohttp.ClientError:
            return -1, None


def signed(body: bytes, secret: str, *, at: float | None = None) -> dict[str, str]:
    """Slack's v0 signature over a body."""
    stamp = str(int(time.time() if at is None else at))  # noqa: TID251 - the platform's own clock
    digest = hmac.new(secret.encode(), f"v0:{stamp}:".encode() + body, hashlib.sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={digest}"}
