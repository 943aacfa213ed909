"""Attach the terminal to a running gateway: translate between docs/web-protocol.md and the console channel.

All messages belong to one fixed chat of the web channel, so that a second terminal continues it and the page
lists it.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import aiohttp

from adapters.channel import Acceptance, OutboundReply
from adapters.console.adapter import THREAD, ConsoleAdapter
from pipeline.domain.errors import ConfigurationError, MediaUnavailable, ParlourError
from pipeline.domain.events import ApprovalRequired, LlmToken, PipelineEvent, event_from_wire
from pipeline.domain.files import StoredFile
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import ApprovalReply, Inbound, InboundMessage, MediaRef, SessionCommand
from pipeline.domain.timeline import ChatSummary, Earlier, TimelineEntry

TERMINAL_CHAT: Final = "c_7465726d696e616c0000000000000000"
"""The terminal's chat: `terminal` in hexadecimal digits."""
_PROTOCOL_VERSION = 1
_OPENING_S = 20.0
_OK = 200
_NAME_CHARS = 200
_HEARTBEAT_S = 20.0
_FRAME_BYTES = 64 << 20
"""In bytes: more than any answer. The limit may be high because the gateway is trusted."""

Frame = Mapping[str, Any]


class ConnectionEnded(ParlourError):
    """The gateway closed the connection, or cannot be reached."""


class Attachment:
    """One socket to the running gateway, from `hello` on. The console's Timeline and its inbox."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._token = token
        self._http: aiohttp.ClientSession | None = None
        self._open: aiohttp.ClientWebSocketResponse | None = None
        self._received: deque[Any] = deque()
        """Frames of the last message that have not been read yet."""
        self._history: list[TimelineEntry] = []
        self._paused: list[ApprovalRequired] = []
        self._after_history: list[Frame] = []
        """Frames that came with the history and are shown after it: running answers and their questions."""
        self._history_read = asyncio.Event()
        """Set when the console has read the history."""
        self._pending: dict[str, tuple[str, asyncio.Future[Acceptance]]] = {}
        self._ours: dict[str, str] = {}
        """The console's id of a message, by the gateway's id."""
        self._shown: set[str] = set()
        """The messages on the screen. The gateway sends a waiting one again when its turn begins."""
        self._welcome: Frame = {}
        self._links: dict[str, str] = {}
        """The paths of links to files, by the files' ids."""

    async def __aenter__(self) -> Self:
        """Connect and read the history. Raises ConfigurationError if the gateway refuses the token or the
        chat, ConnectionEnded if it cannot be reached."""
        self._http = aiohttp.ClientSession()
        try:
            async with asyncio.timeout(_OPENING_S):
                self._open = await self._http.ws_connect(
                    f"{self._url}/ws",
                    # A browser sends Origin itself; other clients send the gateway's own origin.
                    origin=self._url,
                    heartbeat=_HEARTBEAT_S,
                    max_msg_size=_FRAME_BYTES,
                )
                await self._greet()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            await self.__aexit__(None, None, None)
            raise ConnectionEnded(f"the running gateway does not answer at {self._url}") from error
        except (ValueError, KeyError, TypeError) as error:
            await self.__aexit__(None, None, None)
            raise ConnectionEnded(f"what answers at {self._url} does not speak this protocol") from error
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._open is not None:
            await self._open.close()
        if self._http is not None:
            await self._http.close()

    @property
    def bot_name(self) -> str:
        """The bot's name in the running gateway."""
        return str(self._welcome["bot"])

    @property
    def text_chars(self) -> int:
        """The longest message that the running gateway accepts, in characters."""
        return int(self._welcome["limits"]["text_chars"])

    # -- called by the console ---------------------------------------------------------------------

    async def accept(self, item: Inbound) -> Acceptance:
        """Send `item` to the gateway; return its decision. Raises ConnectionEnded, MediaUnavailable."""
        client_id = secrets.token_hex(8)
        answer: asyncio.Future[Acceptance] = asyncio.get_running_loop().create_future()
        frame = {"client_id": client_id, **_frame_of(item)}
        sound = b""
        if isinstance(item, InboundMessage) and item.voice is not None:
            sound = await self._recording(Path(item.voice.handle), item.voice.size)
            frame["size"] = len(sound)
        elif isinstance(item, InboundMessage) and item.attachments:
            frame["files"] = [await self._upload(ref) for ref in item.attachments]
        self._pending[client_id] = (item.message_id, answer)
        try:
            await self._socket.send_json(frame)
            if sound:
                await self._socket.send_bytes(sound)
            return await answer
        except (OSError, aiohttp.ClientError) as error:
            raise ConnectionEnded("the running gateway closed the connection") from error
        finally:
            self._pending.pop(client_id, None)

    async def entries(self, thread: ThreadKey, *, after: int, limit: int) -> tuple[TimelineEntry, ...]:  # noqa: ARG002 - one thread
        durable = [entry for entry in self._history if entry.entry_id > after][-limit:]
        return (*durable, *(entry for entry in self._history if entry.entry_id == 0))

    async def questions(self, thread: ThreadKey) -> tuple[ApprovalRequired, ...]:  # noqa: ARG002 - one thread
        self._history_read.set()
        return tuple(self._paused)

    async def earlier(self, thread: ThreadKey, *, before: int, limit: int) -> Earlier:
        durable = await self.entries(thread, after=0, limit=len(self._history))
        older = [entry for entry in durable if 0 < entry.entry_id < before]
        kept = older[-limit:]
        return Earlier(entries=tuple(kept), next=kept[0].entry_id if len(older) > limit else 0)

    async def chats(
        self,
        channel: str,  # noqa: ARG002 - a terminal shows one chat
        account: str,  # noqa: ARG002 - a terminal shows one chat
        *,
        limit: int,  # noqa: ARG002 - a terminal shows one chat
        begins: str = "",  # noqa: ARG002 - a terminal shows one chat
        search: str = "",  # noqa: ARG002 - a terminal shows one chat
    ) -> tuple[ChatSummary, ...]:
        return ()

    async def last_seen(self, channel: str, account: str, *, limit: int) -> Mapping[ThreadKey, str]:  # noqa: ARG002 - replayed from the history
        return {}

    # -- received from the gateway -----------------------------------------------------------------

    async def show(self, console: ConsoleAdapter) -> None:
        """Pass all received frames to the console, in order, until the gateway closes the connection."""
        await self._history_read.wait()
        held = list(self._after_history)
        try:
            while True:
                # An event may come before the `accepted` that maps it to a line of this terminal.
                while held and not self._pending:
                    await self._show_frame(console, held.pop(0))
                frame = await self._receive()
                if not self._resolve(frame, console):
                    held.append(frame)
        except (ConnectionEnded, OSError, ValueError, KeyError, TypeError):
            return
        finally:
            ended = ConnectionEnded("the running gateway closed the connection")
            for _, answer in self._pending.values():
                if not answer.done():
                    answer.set_exception(ended)

    def _resolve(self, frame: Frame, console: ConsoleAdapter) -> bool:
        """Handle a frame that answers a sent line; False for any other frame."""
        if frame["type"] not in ("accepted", "problem"):
            return False
        message_id, answer = self._pending.pop(frame.get("client_id") or "", ("", None))
        if answer is None or answer.done():
            if frame["type"] == "problem":
                console.say(str(frame["message"]))
        elif frame["type"] == "problem":
            refused = Acceptance(status="refused", message_id=message_id, reason=str(frame["message"]))
            answer.set_result(refused)
        else:
            self._ours[str(frame["message_id"])] = message_id
            self._shown.add(message_id)
            answer.set_result(Acceptance(status="accepted", message_id=message_id))
        return True

    async def _show_frame(self, console: ConsoleAdapter, frame: Frame) -> None:
        match frame["type"]:
            case "event":
                event = self._event(frame["event"])
                if event is not None:
                    await console.sender_for(THREAD).send_event(event)
            case "entry":
                entry = self._entry(frame)
                if entry.role != "user":
                    with suppress(OSError):  # the console has noted that its output is gone
                        await console.send(_reply_of(entry))
                elif entry.message_id not in self._shown:
                    self._shown.add(entry.message_id)
                    console.show_said_elsewhere(entry)
            case "snapshot":
                event = LlmToken(
                    session_id="", message_id=str(frame["message_id"]), text=str(frame["text"]), offset=0
                )
                if event.text:
                    await console.sender_for(THREAD).send_event(event)

    async def _greet(self) -> None:
        hello = {"type": "hello", "protocol": _PROTOCOL_VERSION, "token": self._token, "chat": TERMINAL_CHAT}
        await self._socket.send_json(hello | {"batch": True})
        while (frame := await self._receive())["type"] != "ready":
            match frame["type"]:
                case "problem":
                    raise ConfigurationError(f"the running gateway refuses this terminal: {frame['message']}")
                case "welcome":
                    self._welcome = frame
                case "entry":
                    entry = self._entry(frame)
                    self._history.append(entry)
                    self._shown.add(entry.message_id)
                case "event" if frame["event"].get("paused"):
                    event = self._event(frame["event"])
                    if isinstance(event, ApprovalRequired):
                        self._paused.append(event)
                case _:
                    self._after_history.append(frame)
        if not self._welcome:
            raise ValueError("ready without welcome")

    async def _receive(self) -> Frame:
        """The next JSON frame. Raises ConnectionEnded, ValueError."""
        while not self._received:
            message = await self._socket.receive()
            if message.type is aiohttp.WSMsgType.TEXT:
                found = json.loads(message.data)
                self._received.extend(found if isinstance(found, list) else [found])
            elif message.type is not aiohttp.WSMsgType.BINARY:
                raise ConnectionEnded("the running gateway closed the connection")
        frame = self._received.popleft()
        if not isinstance(frame, dict) or not isinstance(frame.get("type"), str):
            raise ValueError("not a frame of the protocol")  # noqa: TRY004 - it is data, no argument
        return frame

    @property
    def _socket(self) -> aiohttp.ClientWebSocketResponse:
        if self._open is None:
            raise ConnectionEnded("the connection is not open")
        return self._open

    async def _recording(self, path: Path, size: int | None) -> bytes:
        limit = int(self._welcome["limits"]["voice_bytes"])
        if not self._welcome["voice"]:
            raise MediaUnavailable("the running gateway takes no voice notes")
        if size is not None and size > limit:
            raise MediaUnavailable(f"the voice file {path.name} is larger than {limit} bytes")
        try:
            return await asyncio.to_thread(path.read_bytes)
        except OSError as error:
            raise MediaUnavailable(f"the voice file {path.name} cannot be read: {error.strerror}") from error

    async def _upload(self, ref: MediaRef) -> Frame:
        """Upload a file for a message; how the message names it. Raises MediaUnavailable, ConnectionEnded."""
        limits, path = self._welcome["limits"], Path(ref.handle)
        limit = int(limits.get("file_bytes", 0))
        if not limit:
            raise MediaUnavailable("the running gateway takes no files")
        if ref.size is not None and ref.size > limit:
            raise MediaUnavailable(f"the file {path.name} is larger than {limit / 1_000_000:.3g} MB")
        if self._http is None:
            raise ConnectionEnded("the connection is not open")
        headers = {"Authorization": f"Bearer {self._token}", "Origin": self._url}
        try:
            content = await asyncio.to_thread(path.read_bytes)
            url = f"{self._url}/files/{self._welcome['chat']}"
            async with self._http.post(url, data=content, headers=headers) as response:
                if response.status != _OK:
                    raise MediaUnavailable(f"{path.name}: {(await response.text()).strip()}")
                handle = (await response.json())["handle"]
        except aiohttp.ClientError as error:
            raise ConnectionEnded("the running gateway closed the connection") from error
        except OSError as error:
            raise MediaUnavailable(f"the file {path.name} cannot be read: {error.strerror}") from error
        return {"handle": handle, "name": ref.name[:_NAME_CHARS], "mime": ref.mime, "size": len(content)}

    def _event(self, wire: Mapping[str, Any]) -> PipelineEvent | None:
        named = {**wire, "message_id": self._own_id(wire["message_id"])}
        if "joined" in wire:
            named["joined"] = self._own_id(wire["joined"])
        return event_from_wire(named)

    def _entry(self, frame: Frame) -> TimelineEntry:
        return TimelineEntry(
            entry_id=int(frame["entry_id"]),
            message_id=self._own_id(frame["message_id"]),
            role=frame["role"],
            text=str(frame["text"]),
            at=float(frame["at"] or 0.0),
            code=str(frame["code"]),
            files=tuple(self._files(frame)),
        )

    def link_to(self, file: StoredFile) -> str:
        """The address of a file that the gateway has sent; empty if unknown."""
        path = self._links.get(file.id, "")
        return f"{self._url}{path}" if path else ""

    def _files(self, frame: Frame) -> Iterator[StoredFile]:
        for plain in frame.get("files", ()):
            self._links[str(plain["id"])] = str(plain["url"])
            yield StoredFile(
                id=str(plain["id"]),
                kind=plain["kind"],
                mime=str(plain["mime"]),
                size=int(plain["size"]),
                name=str(plain["name"]),
                about=str(plain["about"]),
                caption=str(plain["caption"]),
            )

    def _own_id(self, message_id: Any) -> str:
        return self._ours.get(str(message_id), str(message_id))


def _frame_of(item: Inbound) -> dict[str, Any]:
    match item:
        case ApprovalReply():
            return {"type": "approval", "interaction": item.interaction_id, "choice": item.choice}
        case SessionCommand():
            return {"type": "command", "name": item.name}
        case InboundMessage():
            if item.voice is not None:
                return {"type": "voice", "mime": item.voice.mime}
            return {"type": "message", "text": item.text}
    raise TypeError(f"the terminal sends no {type(item).__name__}")


def _reply_of(entry: TimelineEntry) -> OutboundReply:
    return OutboundReply(
        key=f"{entry.message_id}:{entry.role}",
        thread=THREAD,
        message_id=entry.message_id,
        entry_id=entry.entry_id,
        role=entry.role,
        text=entry.text,
        created_at=entry.at,
        code=entry.code,
        files=entry.files,
    )
