"""A client of the web channel's documented protocol, and what it has seen.

It uses only docs/web-protocol.md: it neither imports the adapter nor reads the store. One
`WebChat` is one chat over any number of sockets; frames are read when something is waited for.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import aiohttp

Frame = dict[str, Any]
_SOUND_BYTES = 2048
_PATIENCE_S = 270.0


class Disconnected(Exception):
    """The socket is gone, or the gateway refused the hello; `code` is the close code, if one came."""

    def __init__(self, code: int | None, problem: str = "") -> None:
        super().__init__(f"the socket closed with {code} {problem}".rstrip())
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One durable line of the conversation, as an `entry` frame showed it."""

    entry_id: int
    message_id: str
    role: str
    text: str
    code: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """A `response_complete` or `error` event."""

    type: str
    message_id: str
    entry_id: int
    text: str
    code: str = ""


@dataclass(slots=True)
class Seen:
    """Everything that one client received, over all its sockets, oldest first."""

    accepted: dict[str, str] = field(default_factory=dict)
    """client_id -> message_id, in the order of the first acceptance."""
    duplicates: int = 0
    """`accepted` frames that said that the item was there already."""
    clashes: list[str] = field(default_factory=list)
    """client_ids that were given two different message_ids."""
    lines: list[Line] = field(default_factory=list)
    terminals: list[Terminal] = field(default_factory=list)
    started: Counter[str] = field(default_factory=Counter)
    """`turn_started` events by message_id."""
    problems: list[Frame] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)
    """The interaction ids of `approval_required` events."""

    def lines_of(self, message_id: str, role: str) -> list[Line]:
        """The lines of one message with a number, in the order in which they came."""
        return [
            line
            for line in self.lines
            if line.entry_id and line.message_id == message_id and line.role == role
        ]

    def terminals_of(self, message_id: str) -> list[Terminal]:
        """The terminal events of one message."""
        return [terminal for terminal in self.terminals if terminal.message_id == message_id]

    def note(self, frame: Frame) -> None:
        """Record one frame of the server."""
        match frame["type"]:
            case "accepted":
                known = self.accepted.setdefault(frame["client_id"], frame["message_id"])
                if known != frame["message_id"]:
                    self.clashes.append(frame["client_id"])
                self.duplicates += frame["duplicate"]
            case "entry":
                names = ("entry_id", "message_id", "role", "text", "code")
                self.lines.append(Line(**{name: frame[name] for name in names}))
            case "event":
                self._note_event(frame["event"])
            case "problem":
                self.problems.append(frame)

    def _note_event(self, event: Frame) -> None:
        if event["type"] == "approval_required":
            self.questions.append(event["interaction_id"])
        if event["type"] == "turn_started":
            self.started[event["message_id"]] += 1
        elif event["type"] in ("response_complete", "error"):
            self.terminals.append(
                Terminal(
                    type=event["type"],
                    message_id=event["message_id"],
                    entry_id=event["entry_id"],
                    text=event["content"] if event["type"] == "response_complete" else event["message"],
                    code=event.get("code", ""),
                )
            )


class WebChat:
    """One chat's client. `async with WebChat() as chat: await chat.connect(url, token)`."""

    def __init__(self, *, chat: str | None = None) -> None:
        self.chat = chat
        """The chat's id, once the gateway gave one."""
        self.seen = Seen()
        self.more: Frame = {}
        """Further fields of the next hello."""
        self._session: aiohttp.ClientSession | None = None
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self._received: deque[Frame] = deque()
        """Frames of the last message that have not been read yet."""
        self._highest_entry = 0

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession()
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        await self.disconnect()
        if self._session is not None:
            await self._session.close()

    async def connect(self, url: str, token: str, *, after: int | None = None) -> list[Frame]:
        """Open a socket and read up to `ready`; the frames in between. Raises Disconnected.

        `after` defaults to the highest entry that this client has seen.
        """
        assert self._session is not None, "enter the block first"
        await self.disconnect()
        self._received.clear()
        try:
            self._socket = await self._session.ws_connect(f"{url}/ws", origin=url, max_msg_size=0)
        except (aiohttp.ClientError, OSError) as error:
            raise Disconnected(None, str(error)) from error
        after = self._highest_entry if after is None else after
        hello = {"type": "hello", "protocol": 1, "token": token, "chat": self.chat, "after": after}
        await self._send(hello | {"batch": True} | self.more)
        history: list[Frame] = []
        while (frame := await self.receive())["type"] != "ready":
            if frame["type"] == "problem":
                raise Disconnected(None, frame["code"])
            if frame["type"] == "welcome":
                self.chat = frame["chat"]
            history.append(frame)
        return history

    async def disconnect(self) -> None:
        """Close the socket, if one is open."""
        socket, self._socket = self._socket, None
        if socket is not None:
            await socket.close()

    async def send_frame(self, frame: Frame) -> None:
        """Send any frame."""
        await self._send(frame)

    async def send_text(self, client_id: str, text: str) -> None:
        """Send a typed message."""
        await self._send({"type": "message", "client_id": client_id, "text": text})

    async def send_approval(self, client_id: str, interaction: str, choice: str) -> None:
        """Answer a question."""
        frame = {"type": "approval", "client_id": client_id, "interaction": interaction, "choice": choice}
        await self._send(frame)

    async def rate(self, client_id: str, message_id: str, *, up: bool, on: bool = True) -> None:
        """Say whether the answer to a message was good, and read until that is accepted."""
        frame = {"type": "feedback", "client_id": client_id, "message_id": message_id, "up": up, "on": on}
        await self._send(frame)
        await self.accepted(client_id)

    async def send_voice(self, client_id: str, data: bytes, *, mime: str) -> None:
        """Send a voice note: the announcement and its binary frame."""
        await self._send({"type": "voice", "client_id": client_id, "mime": mime, "size": len(data)})
        try:
            await self._open_socket().send_bytes(data)
        except ConnectionError as error:
            raise Disconnected(None) from error

    async def listen(self, client_id: str, entry_id: int) -> Frame:
        """Have an answer read aloud, and take its sound; the header of the sound."""
        await self._send({"type": "speak", "client_id": client_id, "entry_id": entry_id})
        header = await self.wait_for(lambda frame: frame["type"] == "speech")
        async with asyncio.timeout(_PATIENCE_S):
            sound = await self._open_socket().receive()
        assert sound.type is aiohttp.WSMsgType.BINARY
        assert len(sound.data) == header["size"]
        return header

    async def talk(self, client_id: str) -> None:
        """Open a microphone, hands-free, and read until the gateway listens."""
        await self._send({"type": "live_start", "client_id": client_id, "hands_free": True})
        await self.wait_for(lambda frame: frame["type"] == "live_ready")

    async def send_sound(self, pcm: bytes) -> None:
        """Sound of the open microphone: 16 kHz, mono, 16 bit, in frames of 64 ms."""
        try:
            for start in range(0, len(pcm), _SOUND_BYTES):
                await self._open_socket().send_bytes(pcm[start : start + _SOUND_BYTES])
        except ConnectionError as error:
            raise Disconnected(None) from error

    async def ping(self) -> None:
        """Send a ping and read until its pong."""
        await self._send({"type": "ping"})
        await self.wait_for(lambda frame: frame["type"] == "pong")

    async def receive(self) -> Frame:
        """The next frame. Raises Disconnected; TimeoutError when nothing comes for five minutes."""
        if not self._received:
            socket = self._open_socket()
            async with asyncio.timeout(_PATIENCE_S):
                message = await socket.receive()
            if message.type is not aiohttp.WSMsgType.TEXT:
                raise Disconnected(socket.close_code)
            found = message.json()
            self._received.extend(found if isinstance(found, list) else [found])
        frame = self._received.popleft()
        self.seen.note(frame)
        if frame["type"] == "entry":
            self._highest_entry = max(self._highest_entry, frame["entry_id"])
        return frame

    @property
    def unread(self) -> tuple[Frame, ...]:
        """The frames that came in one message with the last one that was read."""
        return tuple(self._received)

    async def wait_for(self, matches: Callable[[Frame], bool]) -> Frame:
        """Read until a frame matches; that frame."""
        while not matches(frame := await self.receive()):
            pass
        return frame

    async def accepted(self, client_id: str) -> str:
        """The message_id under which `client_id` was accepted, read until it is."""
        while client_id not in self.seen.accepted:
            await self.receive()
        return self.seen.accepted[client_id]

    async def terminal(self, message_id: str) -> Terminal:
        """The terminal event of a message, read until it comes."""
        while not (found := self.seen.terminals_of(message_id)):
            await self.receive()
        return found[0]

    async def answer(self, message_id: str) -> Line:
        """The durable answer of a message, read until its `entry` comes."""
        while not (found := self.seen.lines_of(message_id, "assistant")):
            await self.receive()
        return found[0]

    async def read_to_the_end(self) -> int | None:
        """Read until the gateway closes the socket; the close code."""
        try:
            while True:
                await self.receive()
        except Disconnected as end:
            return end.code

    async def _send(self, frame: Frame) -> None:
        try:
            await self._open_socket().send_json(frame)
        except ConnectionError as error:
            raise Disconnected(None) from error

    def _open_socket(self) -> aiohttp.ClientWebSocketResponse:
        if self._socket is None:
            raise Disconnected(None, "connect first")
        return self._socket
