"""The fake Discord's gateway: HELLO, IDENTIFY, numbered dispatches, RESUME, and its failures.

As in reality nothing is queued for a bot without a session; a dropped session keeps what it missed for a
RESUME, up to `BUFFER` events, until it is invalidated or a new one is identified.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import zlib
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web

from tests.support.platforms.discord_world import DM, World

BUFFER = 1000
GUILDS = 1 << 0
GUILD_MESSAGES = 1 << 9
GUILD_REACTIONS = 1 << 10
DIRECT_MESSAGES = 1 << 12
DIRECT_REACTIONS = 1 << 13
MESSAGE_CONTENT = 1 << 15
_DISPATCH, _HEARTBEAT, _IDENTIFY, _RESUME, _RECONNECT, _INVALID, _HELLO, _ACK = 0, 1, 2, 6, 7, 9, 10, 11
_BAD_TOKEN, _BAD_SEQUENCE, _BAD_INTENTS = 4004, 4007, 4014


@dataclass(slots=True, kw_only=True, eq=False)
class Session:
    """One identified session; `socket` is None between a drop and its resume."""

    id: str
    intents: int
    socket: Socket | None = None
    sequence: int = 0
    sent: int = 0
    """The newest sequence number that went to a socket."""
    buffer: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=BUFFER))


class Socket:
    """A WebSocket with the client's compression."""

    def __init__(self, response: web.WebSocketResponse, request: web.Request, *, compressed: bool) -> None:
        self._response = response
        self._request = request
        self._compressor = zlib.compressobj() if compressed else None
        self._lock = asyncio.Lock()

    async def send(self, payload: dict[str, Any]) -> None:
        """Send, unless the socket is gone."""
        text = json.dumps(payload)
        async with self._lock:
            with contextlib.suppress(ConnectionError):
                if self._compressor is None:
                    await self._response.send_str(text)
                    return
                data = self._compressor.compress(text.encode())
                await self._response.send_bytes(data + self._compressor.flush(zlib.Z_SYNC_FLUSH))

    async def close(self, code: int) -> None:
        """Close in the platform's way."""
        await self._response.close(code=code)

    def abort(self) -> None:
        """Break without a closing frame."""
        if self._request.transport is not None:
            self._request.transport.abort()


class Gateway:
    """All sessions of the bot. Counters record what the client did."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.token = ""
        self.resume_url = ""
        self.heartbeat_ms = 41_250
        self.content_intent_granted = True
        """The switch in the developer portal; off, an IDENTIFY that asks for message content gets 4014."""
        self.sessions: dict[str, Session] = {}
        self.sockets: set[Socket] = set()
        self.most_sockets = 0
        self.identifies = 0
        self.resumes = 0
        self.heartbeats = 0
        self.intents = 0
        self.refuse_connections = False
        self.refused = 0

    @property
    def live(self) -> bool:
        """Whether a session has a socket now."""
        return any(session.socket is not None for session in self.sessions.values())

    def unsent(self) -> int:
        """Events that wait for a dropped session to be resumed."""
        return sum(session.sequence - session.sent for session in self.sessions.values())

    async def dispatch(self, name: str, data: dict[str, Any], *, times: int = 1) -> None:
        """Send an event to every session whose intents include it; it is kept nowhere else."""
        for session in list(self.sessions.values()):
            seen = self._as_seen(session, name, data)
            if seen is None:
                continue
            for _ in range(times):
                await self._give(session, name, seen)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """One socket, until it ends."""
        if self.refuse_connections:
            self.refused += 1
            return web.Response(status=503, text="unavailable")
        response = web.WebSocketResponse(max_msg_size=4096)
        await response.prepare(request)
        socket = Socket(response, request, compressed=request.query.get("compress") == "zlib-stream")
        self.sockets.add(socket)
        self.most_sockets = max(self.most_sockets, len(self.sockets))
        try:
            await socket.send({"op": _HELLO, "d": {"heartbeat_interval": self.heartbeat_ms}})
            async for frame in response:
                if frame.type is WSMsgType.TEXT:
                    await self._on_payload(socket, json.loads(frame.data))
        finally:
            self.sockets.discard(socket)
            for session in self.sessions.values():
                if session.socket is socket:
                    session.socket = None
        return response

    # -- faults -----------------------------------------------------------------------------------

    def drop_sockets(self) -> None:
        """Break every connection; the sessions stay and can be resumed."""
        for socket in list(self.sockets):
            socket.abort()
        for session in self.sessions.values():
            session.socket = None

    async def ask_to_reconnect(self) -> None:
        """Op 7, as the platform sends it routinely."""
        for socket in list(self.sockets):
            await socket.send({"op": _RECONNECT, "d": None})

    async def invalidate(self, *, resumable: bool) -> None:
        """Op 9. Not resumable: the sessions and what they had missed are gone."""
        if not resumable:
            self.forget_sessions()
        for socket in list(self.sockets):
            await socket.send({"op": _INVALID, "d": resumable})

    def forget_sessions(self) -> None:
        """Delete the sessions; a client that resumes one gets op 9."""
        self.sessions.clear()

    # -- the protocol -----------------------------------------------------------------------------

    async def _on_payload(self, socket: Socket, payload: dict[str, Any]) -> None:
        match payload.get("op"):
            case 1:
                self.heartbeats += 1
                await socket.send({"op": _ACK})
            case 2:
                await self._identify(socket, payload["d"])
            case 6:
                await self._resume(socket, payload["d"])

    async def _identify(self, socket: Socket, data: dict[str, Any]) -> None:
        if data.get("token") != self.token:
            await socket.close(_BAD_TOKEN)
            return
        self.intents = int(data["intents"])
        if self.intents & MESSAGE_CONTENT and not self.content_intent_granted:
            await socket.close(_BAD_INTENTS)
            return
        self.identifies += 1
        for stale in [one for one in self.sessions.values() if one.socket is None]:
            del self.sessions[stale.id]
        session = Session(id=secrets.token_hex(16), intents=self.intents, socket=socket)
        self.sessions[session.id] = session
        ready = {
            "v": 10,
            "user": {**self._world.bot.wire(), "verified": True, "mfa_enabled": False, "flags": 0},
            "guilds": [{"id": self._world.guild_id, "unavailable": True}],
            "session_id": session.id,
            "resume_gateway_url": self.resume_url,
            "application": {"id": self._world.bot.id, "flags": 0},
        }
        await self._give(session, "READY", ready)
        if session.intents & GUILDS:
            await self._give(session, "GUILD_CREATE", self._world.guild_wire())

    async def _resume(self, socket: Socket, data: dict[str, Any]) -> None:
        if data.get("token") != self.token:
            await socket.close(_BAD_TOKEN)
            return
        session = self.sessions.get(str(data.get("session_id")))
        after = data.get("seq")
        oldest = session.buffer[0]["s"] if session and session.buffer else 1
        if session is None or not isinstance(after, int) or after + 1 < oldest:
            await socket.send({"op": _INVALID, "d": False})
            return
        if after > session.sequence:
            await socket.close(_BAD_SEQUENCE)
            return
        self.resumes += 1
        # New events may arrive while the old ones are sent: they are queued after them.
        while missed := [event for event in session.buffer if event["s"] > after]:
            after = missed[-1]["s"]
            for event in missed:
                await socket.send(event)
        session.sent = after
        session.socket = socket
        await self._give(session, "RESUMED", {})

    async def _give(self, session: Session, name: str, data: dict[str, Any]) -> None:
        session.sequence += 1
        event = {"op": _DISPATCH, "t": name, "s": session.sequence, "d": data}
        session.buffer.append(event)
        if session.socket is not None:
            session.sent = session.sequence
            await session.socket.send(event)

    def _as_seen(self, session: Session, name: str, data: dict[str, Any]) -> dict[str, Any] | None:
        if not name.startswith("MESSAGE_"):
            return data
        channel = self._world.channels[data["channel_id"]]
        if name.startswith("MESSAGE_REACTION_"):
            reactions = DIRECT_REACTIONS if channel.kind == DM else GUILD_REACTIONS
            return data if session.intents & reactions else None
        needed = DIRECT_MESSAGES if channel.kind == DM else GUILD_MESSAGES
        if not session.intents & needed:
            return None
        bot = self._world.bot.id
        own = data["author"]["id"] == bot
        mentioned = any(one["id"] == bot for one in data["mentions"])
        if session.intents & MESSAGE_CONTENT or channel.kind == DM or own or mentioned:
            return data
        return {**data, "content": "", "attachments": [], "embeds": [], "components": []}
