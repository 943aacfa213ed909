"""A small scripted gateway for the chat page: it speaks the web protocol and does what a test says.

It keeps conversations in memory and answers nothing by itself; the real server is adapters/web.
"""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import WSMsgType, web

from adapters.formatting.html import render_html
from adapters.web.outgoing import command_list
from adapters.web.pages import PageFiles
from adapters.web.security import security_headers
from adapters.web.text_tables import packaged_tables
from pipeline.domain.clock import SystemClock

STATIC = Path(__file__).parents[3] / "adapters" / "web" / "static"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self' blob:; "
    "connect-src 'self'; font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
TOKEN = "correct-horse-battery"
BLANK = "/blank"
"""A page of the same origin without a script, where what the browser keeps can be cleared."""
_BLANK = "<!doctype html><title>blank</title>"

Frame = dict[str, Any]


@dataclass(slots=True, kw_only=True, eq=False)
class Client:
    """One connected page."""

    socket: web.WebSocketResponse
    transport: asyncio.Transport
    chat: str
    after: int
    listening: bool = False
    """A live session is open: binary frames are its sound."""


@dataclass(slots=True, kw_only=True)
class Chat:
    """One conversation: its durable lines, what waits, and answers being written."""

    entries: list[Frame] = field(default_factory=list)
    waiting: list[Frame] = field(default_factory=list)
    writing: dict[str, str] = field(default_factory=dict)
    known: dict[str, str] = field(default_factory=dict)
    """Message ids by client id."""


class FakeGateway:
    """State and controls; tests call the methods below to play the gateway's part."""

    def __init__(self) -> None:
        self.origin = ""
        self.chats: dict[str, Chat] = {}
        self.clients: list[Client] = []
        self.hellos: list[Frame] = []
        self.frames: list[Frame] = []
        """Every frame after hello, in order; a voice frame carries its bytes under "bytes"."""
        self.asked: list[Frame] = []
        """Every frame that asks for earlier lines or for the chats."""
        self.window = 500
        """So many lines a page gets at once."""
        self.limits: Frame = {"text_chars": 8000, "voice_bytes": 20_971_520, "voice_seconds": 300}
        self.can: Frame = {"voice": True, "live": True, "speech": True, "commands": command_list()}
        """What `welcome` says that the gateway can do."""
        self.sound = b""
        """All that came through open microphones."""
        self.stalled = False
        """`live_start` is not answered."""
        self.accepting = True
        self.refusal: Callable[[Frame], Frame | None] = lambda _frame: None
        """A `problem` for a frame, or None to take it."""
        self.down = False
        self.locked = False
        self.unknown_chats: set[str] = set()
        self._changed = asyncio.Condition()

    @property
    def chat(self) -> str:
        """The only conversation's id."""
        (name,) = self.chats
        return name

    def write(self, role: str, text: str, *, message_id: str = "", chat: str = "", **more: Any) -> Frame:
        """Adds a durable line and gives its frame; nothing is sent."""
        entries = self.chats.setdefault(chat or "c_1", Chat()).entries
        number = len(entries) + 1
        frame = {
            "type": "entry",
            "entry_id": number,
            "message_id": message_id or f"m_{chat}{number}",
            "role": role,
            "text": text,
            "at": SystemClock().now(),
            "spoken": False,
            "code": "",
            **({"html": render_html(text)} if role == "assistant" else {}),
            **more,
        }
        entries.append(frame)
        return frame

    async def send(self, frame: Frame) -> None:
        """To every page."""
        for client in list(self.clients):
            await client.socket.send_json(frame)

    async def event(self, kind: str, message_id: str, **fields: Any) -> None:
        """A live event to every page."""
        event = {"type": kind, "session_id": "s_1", "message_id": message_id, **fields}
        await self.send({"type": "event", "event": event})

    async def begin(self, message_id: str, *, text: str = "", spoken: bool = False) -> None:
        """The message leaves the queue and its turn starts."""
        chat = self.chats[self.chat]
        waiting = next((entry for entry in chat.waiting if entry["message_id"] == message_id), None)
        if waiting:
            chat.waiting.remove(waiting)
        words = text or (waiting["text"] if waiting else "")
        entry = self.write("user", words, message_id=message_id, chat=self.chat, spoken=spoken)
        chat.writing[message_id] = ""
        await self.event("turn_started", message_id)
        await self.send(entry)

    async def say(self, message_id: str, piece: str) -> None:
        """A piece of the answer."""
        writing = self.chats[self.chat].writing
        offset = len(writing[message_id])
        writing[message_id] += piece
        await self.event("llm_token", message_id, text=piece, offset=offset)

    async def complete(self, message_id: str, content: str, *, html: str | None = None) -> None:
        """The answer is durable. `html` represents what the gateway's renderer makes of it."""
        self.chats[self.chat].writing.pop(message_id, None)
        html = render_html(content) if html is None else html
        entry = self.write("assistant", content, message_id=message_id, chat=self.chat, html=html)
        fields = {"content": content, "html": html, "thoughts": [], "entry_id": entry["entry_id"]}
        await self.event("response_complete", message_id, **fields)
        await self.send(entry)

    async def answer(self, message_id: str, content: str, *, html: str | None = None) -> None:
        """A whole turn at once."""
        await self.begin(message_id)
        await self.say(message_id, content)
        await self.complete(message_id, content, html=html)

    async def fail(self, message_id: str, code: str, message: str, *, recoverable: bool = True) -> None:
        """The message ends without an answer."""
        self.chats[self.chat].writing.pop(message_id, None)
        entry = self.write("error", message, message_id=message_id, chat=self.chat, code=code)
        number = entry["entry_id"]
        fields = {"code": code, "message": message, "recoverable": recoverable, "entry_id": number}
        await self.event("error", message_id, **fields)

    async def hear(self, kind: str, *, utterance: int = 1, **fields: Any) -> None:
        """Something heard while somebody speaks, to every page."""
        await self.send({"type": "live", "event": {"type": kind, "utterance": utterance, **fields}})

    async def read_aloud(
        self, frame: Frame, sound: bytes, *, mime: str = "audio/ogg", parts: int = 1
    ) -> None:
        """The answer to a `speak` frame; a finished answer that is read has so many parts."""
        along = "message_id" in frame
        which = (
            {"message_id": frame["message_id"]} if along else {"entry_id": frame["entry_id"], "parts": parts}
        )
        header = {"client_id": frame["client_id"], "part": frame["part"], "seconds": 1.0, **which}
        for client in list(self.clients):
            await client.socket.send_json({"type": "speech", **header, "mime": mime, "size": len(sound)})
            await client.socket.send_bytes(sound)

    async def end_reading(self, frame: Frame, reason: str = "complete") -> None:
        """The answer to a `speak` frame: there is no further part."""
        await self.send({"type": "speech_ended", "client_id": frame["client_id"], "reason": reason})

    def cut(self) -> None:
        """Breaks every connection without a word, as a crash does."""
        for client in self.clients:
            client.transport.abort()

    async def wait(self, condition: Callable[[], Any], what: str) -> Any:
        """Gives the condition's value as soon as it is true."""
        try:
            async with asyncio.timeout(60), self._changed:
                await self._changed.wait_for(condition)
        except TimeoutError:
            raise AssertionError(f"the page did not get to: {what}; frames: {self.frames}") from None
        return condition()

    async def received(self, kind: str, count: int = 1) -> Frame:
        """The `count`-th frame of a type, once it is there."""
        what = f"frame {count} of type {kind}"
        got: list[Frame] = await self.wait(lambda: self.of(kind) if len(self.of(kind)) >= count else [], what)
        return got[count - 1]

    async def greeted(self, count: int) -> None:
        """Waits for the `count`-th hello: after `cut`, a page calls itself connected until it notices."""
        await self.wait(lambda: len(self.hellos) >= count, f"hello {count}")

    def of(self, kind: str) -> list[Frame]:
        """All frames of a type so far."""
        return [frame for frame in self.frames if frame["type"] == kind]

    def id_of(self, frame: Frame) -> str:
        """The message id that a client's frame got."""
        return self.chats[self.chat].known[frame["client_id"]]

    async def _note(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """One WebSocket, from hello to its end."""
        if self.down:
            raise web.HTTPServiceUnavailable
        socket = web.WebSocketResponse(max_msg_size=0)
        await socket.prepare(request)
        hello = await socket.receive_json()
        self.hellos.append(hello)
        await self._note()
        if self.locked:
            return await _refuse(socket, "too_many_attempts", 4429)
        if hello["token"] != TOKEN:
            return await _refuse(socket, "wrong_token", 4401)
        if hello.get("chat") in self.unknown_chats:
            return await _refuse(socket, "bad_chat", 4400)
        assert isinstance(request.transport, asyncio.Transport)
        name = hello.get("chat")
        name = (next(reversed(self.chats), None) if name == "latest" else name) or f"c_{len(self.chats) + 1}"
        client = Client(socket=socket, transport=request.transport, chat=name, after=hello.get("after") or 0)
        await self.greet(client)
        self.clients.append(client)
        await self._note()
        try:
            await self._listen(client)
        finally:
            self.clients.remove(client)
            await self._note()
        return socket

    async def greet(self, client: Client) -> None:
        """The conversation of a page as it is at its start."""
        chat = self.chats.setdefault(client.chat, Chat())
        welcome = {"protocol": 1, "chat": client.chat, "bot": "Parlour", "limits": self.limits, **self.can}
        durable = [entry for entry in chat.entries if entry["entry_id"] > client.after]
        frames = durable[-self.window :] + chat.waiting
        for frame in [{"type": "welcome", **welcome}, *frames]:
            await client.socket.send_json(frame)
        for message_id, text in chat.writing.items():
            await client.socket.send_json({"type": "snapshot", "message_id": message_id, "text": text})
        cut = not client.after and len(durable) > self.window
        earlier = durable[-self.window]["entry_id"] if cut else 0
        await client.socket.send_json({"type": "ready", "earlier": earlier})

    async def _listen(self, client: Client) -> None:
        async for message in client.socket:
            announced = (
                self.frames[-1:] and self.frames[-1]["type"] == "voice" and "bytes" not in self.frames[-1]
            )
            if message.type is WSMsgType.BINARY and client.listening and not announced:
                self.sound += message.data
                await self._note()
                continue
            if message.type is WSMsgType.BINARY:
                self.frames[-1]["bytes"] = message.data
                await self._take(client, self.frames[-1])
                continue
            frame = json.loads(message.data)
            if frame["type"] in ("chats", "earlier"):
                await self._look_back(client, frame)
                continue
            self.frames.append(frame)
            if frame["type"] in ("live_start", "live_finish", "live_stop", "speak", "speak_stop"):
                await self._take_spoken(client, frame)
            elif frame["type"] == "account":
                owner = {"person": "", "name": "", "voice_replies": "off", "devices": []}
                await client.socket.send_json({**owner, "type": "account", "client_id": frame["client_id"]})
            elif frame["type"] == "ping":
                await client.socket.send_json({"type": "pong"})
            elif frame["type"] != "voice":
                await self._take(client, frame)

    async def _look_back(self, client: Client, frame: Frame) -> None:
        self.asked.append(frame)
        key = frame["client_id"]
        if frame["type"] == "chats":
            chats = [
                {"chat": name, "title": chat.entries[0]["text"], "at": chat.entries[-1]["at"]}
                for name, chat in self.chats.items()
                if chat.entries
            ]
            await client.socket.send_json({"type": "chats", "client_id": key, "chats": chats})
        else:
            older = [e for e in self.chats[client.chat].entries if e["entry_id"] < frame["before"]]
            for entry in older[-self.window :]:
                await client.socket.send_json(entry)
            earlier = older[-self.window]["entry_id"] if len(older) > self.window else 0
            await client.socket.send_json({"type": "earlier", "client_id": key, "earlier": earlier})
        await self._note()

    async def _take_spoken(self, client: Client, frame: Frame) -> None:
        problem = self.refusal(frame)
        if problem:
            await client.socket.send_json({"type": "problem", "client_id": frame.get("client_id"), **problem})
        elif frame["type"] == "live_start" and not self.stalled:
            client.listening = True
            await client.socket.send_json({"type": "live_ready", "client_id": frame["client_id"]})
        elif frame["type"] == "live_stop":
            client.listening = False
            await client.socket.send_json({"type": "live_ended", "reason": "stopped", "message": ""})
        await self._note()

    async def _take(self, client: Client, frame: Frame) -> None:
        problem = self.refusal(frame)
        if problem:
            await client.socket.send_json({"type": "problem", "client_id": frame.get("client_id"), **problem})
        elif self.accepting:
            await self._accept(client, frame)
        await self._note()

    async def _accept(self, client: Client, frame: Frame) -> None:
        chat = self.chats[client.chat]
        key = frame["client_id"]
        duplicate = key in chat.known
        message_id = chat.known.setdefault(key, f"m_{key[-8:]}")
        accepted = {"client_id": key, "message_id": message_id, "duplicate": duplicate}
        await client.socket.send_json({"type": "accepted", **accepted})
        if duplicate or frame["type"] not in ("message", "voice"):
            return
        entry = {"entry_id": 0, "message_id": message_id, "role": "user", "text": frame.get("text", "")}
        more = {"at": SystemClock().now(), "spoken": frame["type"] == "voice", "code": ""}
        waiting = {"type": "entry", **entry, **more}
        chat.waiting.append(waiting)
        for other in self.clients:
            if other is not client:
                await other.socket.send_json(waiting)


async def _refuse(socket: web.WebSocketResponse, code: str, close: int) -> web.WebSocketResponse:
    await socket.send_json({"type": "problem", "code": code, "message": code, "client_id": None})
    await socket.close(code=close)
    return socket


@functools.cache
def _pages() -> PageFiles:
    return PageFiles(STATIC, packaged_tables())


@asynccontextmanager
async def running_gateway(port: int = 0) -> AsyncIterator[FakeGateway]:
    """A fake gateway on a loopback port, by default a free one, with the page at its root and nothing at
    `BLANK`."""
    gateway = FakeGateway()

    async def index(request: web.Request) -> web.StreamResponse:
        return _pages().page(request)

    async def blank(_request: web.Request) -> web.StreamResponse:
        # Another opener policy than the page's makes the browser change to another group of windows.
        return web.Response(text=_BLANK, content_type="text/html", headers=security_headers())

    async def asset(request: web.Request) -> web.StreamResponse:
        return _pages().response(request.match_info["name"], request)

    async def protect(request: web.Request, response: web.StreamResponse) -> None:
        response.headers["Content-Security-Policy"] = POLICY
        # A page that is loaded again has its scripts already: to fetch them is half of the work of a reload.
        kept = request.path.startswith("/static/")
        response.headers["Cache-Control"] = "max-age=3600" if kept else "no-store"

    app = web.Application()
    app.on_response_prepare.append(protect)
    app.router.add_get("/", index)
    app.router.add_get(BLANK, blank)
    app.router.add_get("/ws", gateway.handle)
    app.router.add_get("/static/{name:.+}", asset)
    runner = web.AppRunner(app, shutdown_timeout=0.2)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        gateway.origin = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield gateway
    finally:
        gateway.cut()
        await runner.cleanup()
