"""The reference posting channel, in memory: tests read its messages and script its failures.

It plays the platform's messages and the adapter in one, and keeps the platform's promises: an edit may be
repeated, a post under a known key shows once where the resolution is "nonce". The people of that platform are
`posting_platform`'s.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from adapters.channel import (
    Acceptance,
    ChannelCapabilities,
    ChannelHealth,
    Failure,
    FailureKind,
    LiveView,
    OnInbound,
    Outgoing,
    Part,
    RateLimits,
    Receipt,
    Resolution,
    VoiceClip,
)
from adapters.files import OutgoingFile
from adapters.identity import derived_message_id
from pipeline.domain.errors import MediaUnavailable
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import ApprovalReply, Author, Inbound, InboundMessage, MediaRef, button_handle
from tests.support.posting_events import inbound_of

CHARS = 40
"""Characters of one message: small, so that tests meet the limit."""
MAX_PARTS = 5
_PATIENCE_S = 180.0
"""A generous limit, for a busy machine."""
_LOOK_S = 0.05


class Refused(Exception):
    """A scripted failure, carrying its own classification; `done` says that the call was carried out."""

    def __init__(self, failure: Failure, *, done: bool = False) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.done = done


def refusal(kind: FailureKind, *, retry_after_s: float | None = None, done: bool = False) -> Refused:
    """A failure for `MemoryPosts.failures`; `done`: the platform carried the call out unconfirmed."""
    failure = Failure(kind=kind, message=kind, retry_after_s=retry_after_s, maybe_delivered=done)
    return Refused(failure, done=done)


@dataclass(slots=True, kw_only=True)
class Message:
    """A message on the platform."""

    native_id: str
    thread: ThreadKey
    key: str
    text: str
    buttons: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    """What a press of each button sends back."""
    file_name: str = ""
    file: bytes = b""
    reply_handle: str = ""
    versions: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Voiced:
    """A voice message on the platform."""

    native_id: str
    thread: ThreadKey
    key: str
    clip: VoiceClip
    reply_handle: str


class MemoryPosts:
    """Implements PostingChannel, VoicePostingChannel and, with `file_bytes`, FilePostingChannel.
    `failures` are played in order, one for each post or edit; None lets one pass. `gate`, if set, is
    awaited before a call answers."""

    name = "memory"
    account = "main"

    def __init__(
        self,
        *,
        resolution: Resolution = "placeholder",
        previews: bool = True,
        rates: RateLimits | None = None,
        typing_s: float = 0.0,
        file_bytes: int = 0,
    ) -> None:
        self.capabilities = ChannelCapabilities(
            text_limit=CHARS,
            streaming=previews,
            edit=True,
            voice_in=True,
            resolution=resolution,
            typing_s=typing_s,
            file_bytes=file_bytes,
            rates=rates or RateLimits(),
            guarantee="kept in this process's memory, for tests",
        )
        self.messages: list[Message] = []
        self.voices: list[Voiced] = []
        self.calls: list[str] = []
        self.failures: deque[Refused | None] = deque()
        self.lookup_failures: deque[Refused] = deque()
        """Played in order, one for each look-up: of a reply, and of a preview in doubt."""
        self.gate: asyncio.Event | None = None
        self.judge: Callable[[str], Refused | None] = lambda _method: None
        """Asked after `failures`, with "post" or "edit": a platform's own faults."""
        self.media: dict[str, bytes] = {}
        self._on_inbound: OnInbound | None = None
        self._up = asyncio.Event()
        self._running = False
        self.changed = asyncio.Condition()

    # -- what a test does ---------------------------------------------------------------------
    def thread(self, chat: str = "c1") -> ThreadKey:
        return ThreadKey(channel=self.name, account=self.account, chat=chat)

    def texts(self, chat: str = "c1") -> list[str]:
        """What a reader of the chat sees of the bot."""
        return [message.text for message in self.messages if message.thread.chat == chat]

    async def bring(self, item: Inbound) -> Acceptance:
        await self._up.wait()
        assert self._on_inbound is not None
        return await self._on_inbound(item)

    async def receive(
        self, text: str, *, native_id: str, chat: str = "c1", author: str = "ann", private: bool = True
    ) -> Acceptance:
        """Bring in a text."""
        return await self.bring(
            InboundMessage(
                message_id=derived_message_id(self.name, self.account, native_id),
                native_id=native_id,
                thread=self.thread(chat),
                author=Author(id=author),
                received_at=1_700_000_000.0,
                text=text,
                private=private,
                reply_handle=f"to-{native_id}",
            )
        )

    async def take(self, event: Mapping[str, Any]) -> str:
        """Pass one event of the platform to the gateway; returns the text shown to who pressed a button."""
        item = inbound_of(event, self.name, self.account)
        if item is None:
            return ""
        acceptance = await self.bring(item)
        if not isinstance(item, ApprovalReply):
            return ""
        if acceptance.status != "refused" or acceptance.over:
            for message in self.messages:
                if message.native_id == event.get("message"):
                    message.buttons, message.data = (), ()
            await self._notify()
        return acceptance.reason or "Noted."

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until `holds()`. It is checked when something is shown and periodically, because it may depend
        on something else."""
        async with asyncio.timeout(_PATIENCE_S), self.changed:
            while not holds():
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_S):
                        await self.changed.wait()

    # -- the port -----------------------------------------------------------------------------
    async def run(self, on_inbound: OnInbound) -> None:
        self._on_inbound = on_inbound
        self._running = True
        self._up.set()
        try:
            await asyncio.Event().wait()
        finally:
            self._running = False

    async def download(self, ref: MediaRef, *, max_bytes: int) -> bytes:
        data = self.media.get(ref.handle) if ref.channel == self.name else None
        if data is None or len(data) > max_bytes:
            raise MediaUnavailable("The voice note is gone. Please send it again.")
        return data

    def classify(self, error: Exception) -> Failure:
        if isinstance(error, Refused):
            return error.failure
        return Failure(kind="unknown", message=type(error).__name__, maybe_delivered=True)

    def health(self) -> ChannelHealth:
        if self._running:
            return ChannelHealth(state="up")
        return ChannelHealth(state="down" if self._up.is_set() else "starting")

    def render(self, outgoing: Outgoing) -> tuple[Part, ...]:
        text = f"heard: {outgoing.heard}\n{outgoing.text}" if outgoing.heard else outgoing.text
        text = text or "…"
        pieces = list(_pieces(text))
        buttons = tuple(option for question in outgoing.questions for option in question.options)
        data = tuple(
            f"q:{button_handle(question.interaction_id)}:{place}"
            for question in outgoing.questions
            for place in range(len(question.options))
        )
        if outgoing.unfinished:
            buttons, data = ("Stop",), ("stop",)
            pieces = pieces[:1]
        if len(pieces) > MAX_PARTS:
            file = Part(body={"text": ""}, plain="", file=text.encode(), file_name="answer.md")
            if buttons:
                # Like the platforms: the full question is above the buttons.
                shown: dict[str, Any] = {"text": pieces[0], "buttons": buttons, "data": data}
                return (file, Part(body=shown, plain=pieces[0]))
            return (Part(body={"text": pieces[0]}, plain=pieces[0]), file)
        last = len(pieces) - 1
        parts = [
            Part(
                body={"text": piece, **({"buttons": buttons, "data": data} if index == last else {})},
                plain=piece,
            )
            for index, piece in enumerate(pieces)
        ]
        if outgoing.attached:
            name = outgoing.attached_name
            parts.insert(0, Part(body={"text": ""}, plain="", file=outgoing.attached, file_name=name))
        return tuple(parts)

    def render_file(self, file: OutgoingFile) -> Part:
        return Part(
            body={"text": file.caption},
            plain=file.caption,
            file=file.content,
            file_name=file.name,
            file_kind=file.kind,
        )

    async def post(self, thread: ThreadKey, part: Part, *, key: str, reply_handle: str = "") -> Receipt:
        refused = await self._called(f"post {part.body['text']}")
        known = next((one for one in self.messages if one.key == key), None)
        if known is not None and self.capabilities.resolution == "nonce":
            if known.text != str(part.body["text"]) and part.file is None:
                # The message found is the preview of this reply, which was not recorded.
                return await self.edit(thread, known.native_id, part)
            await self._answer(refused)
            return Receipt(native_id=known.native_id)
        message = Message(
            native_id=f"n{len(self.messages) + 1}",
            thread=thread,
            key=key,
            text=str(part.body["text"]),
            buttons=tuple(part.body.get("buttons", ())),
            data=tuple(part.body.get("data", ())),
            file_name=part.file_name,
            file=part.file or b"",
            reply_handle=reply_handle,
        )
        self.messages.append(message)
        await self._answer(refused)
        return Receipt(native_id=message.native_id)

    async def post_voice(
        self, thread: ThreadKey, clip: VoiceClip, *, key: str, reply_handle: str = ""
    ) -> Receipt:
        assert len(key) <= 60
        assert key.isascii()
        refused = await self._called(f"voice {key}")
        voiced = Voiced(
            native_id=f"v{len(self.voices) + 1}",
            thread=thread,
            key=key,
            clip=clip,
            reply_handle=reply_handle,
        )
        self.voices.append(voiced)
        await self._answer(refused)
        return Receipt(native_id=voiced.native_id)

    async def edit(self, thread: ThreadKey, native_id: str, part: Part) -> Receipt:
        refused = await self._called(f"edit {part.body['text']}")
        message = next((one for one in self.messages if one.native_id == native_id), None)
        if message is None:
            raise refusal("not_found")
        message.versions.append(message.text)
        message.text = str(part.body["text"])
        message.buttons = tuple(part.body.get("buttons", ()))
        message.data = tuple(part.body.get("data", ()))
        await self._answer(refused)
        return Receipt(native_id=native_id)

    async def find(self, thread: ThreadKey, part: Part, *, key: str, since: float) -> Receipt | None:
        self.calls.append(f"find {key.rpartition(':')[2]}")
        self.looked()
        found = next((one for one in self.messages if one.key == key), None)
        return None if found is None else Receipt(native_id=found.native_id)

    def open_view(
        self,
        thread: ThreadKey,
        *,
        key: str,
        reply_handle: str,
        native_id: str,
        doubtful_since: float | None = None,
    ) -> LiveView | None:
        if not self.capabilities.streaming:
            return None
        # Where replies are looked for by their key, a preview must not be taken for one.
        key = f"{key}p" if self.capabilities.resolution == "lookup" else key
        view = _View(self, thread, key, reply_handle, native_id)
        view.in_doubt = doubtful_since is not None and not native_id
        return view

    def looked(self) -> None:
        """Fail as the script says."""
        if self.lookup_failures:
            raise self.lookup_failures.popleft()

    async def typing(self, thread: ThreadKey) -> None:
        self.calls.append(f"typing {thread.chat}")
        await self._notify()

    async def _called(self, call: str) -> Refused | None:
        """Play the next failure that does nothing; the one that does something is played afterwards."""
        self.calls.append(call)
        if self.gate is not None:
            await self.gate.wait()
        refused = self.failures.popleft() if self.failures else self.judge(call.split(" ", 1)[0])
        if refused is not None and not refused.done:
            await self._notify()
            raise refused
        return refused

    async def _answer(self, refused: Refused | None) -> None:
        await self._notify()
        if refused is not None:
            raise refused

    async def _notify(self) -> None:
        async with self.changed:
            self.changed.notify_all()


class _View:
    def __init__(
        self, channel: MemoryPosts, thread: ThreadKey, key: str, reply_handle: str, native_id: str
    ) -> None:
        self._channel = channel
        self._thread = thread
        self._key = key
        self._reply_handle = reply_handle
        self.native_id = native_id
        self.in_doubt = False

    async def show(self, outgoing: Outgoing) -> None:
        self._resolve()
        part = self._channel.render(outgoing)[0]
        if self.native_id:
            await self._channel.edit(self._thread, self.native_id, part)
            return
        receipt = await self._channel.post(self._thread, part, key=self._key, reply_handle=self._reply_handle)
        self.native_id = receipt.native_id

    async def close(self) -> None:
        self._resolve()

    def _resolve(self) -> None:
        if self.in_doubt:
            self._channel.looked()
            found = (one.native_id for one in self._channel.messages if one.key == self._key)
            self.native_id = next(found, "")
            self.in_doubt = False


def _pieces(text: str) -> Iterator[str]:
    """`text` in messages of at most CHARS characters, cut after a space where there is one."""
    while len(text) > CHARS:
        cut = text.rfind(" ", 0, CHARS) + 1 or CHARS
        yield text[:cut]
        text = text[cut:]
    yield text
