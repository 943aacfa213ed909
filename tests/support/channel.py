"""An in-memory channel: tests read what the gateway sends and script its failures."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from contextlib import suppress

from adapters.channel import (
    Acceptance,
    ChannelCapabilities,
    ChannelHealth,
    Failure,
    OnInbound,
    OutboundReply,
    Receipt,
)
from adapters.identity import derived_message_id
from pipeline.domain.errors import MediaUnavailable
from pipeline.domain.events import PipelineEvent
from pipeline.domain.ids import ThreadKey, new_id
from pipeline.domain.messages import (
    Author,
    Inbound,
    InboundMessage,
    MediaRef,
    ParsedCommand,
    SessionCommand,
    parse_command,
)
from pipeline.domain.ports import EventSender

_PATIENCE_S = 180.0
"""A generous limit, for a busy machine."""
_LOOK_S = 0.05


class SendFailed(Exception):
    """A scripted failure of `send`, carrying its own classification."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class MemoryChannel:
    """Implements ChannelAdapter under the name of the terminal channel."""

    name = "console"
    account = "local"

    def __init__(self, *, idempotent: bool = True) -> None:
        self.capabilities = ChannelCapabilities(text_limit=8000, streaming=True, idempotent_send=idempotent)
        self.events: list[PipelineEvent] = []
        self.sent: list[OutboundReply] = []
        self.failures: deque[Failure] = deque()
        self.media: dict[str, bytes] = {}
        self._on_inbound: OnInbound | None = None
        self._changed = asyncio.Condition()
        self._up = asyncio.Event()

    async def run(self, on_inbound: OnInbound) -> None:
        self._on_inbound = on_inbound
        self._up.set()
        await asyncio.Event().wait()

    def sender_for(self, thread: ThreadKey) -> EventSender:
        return _Sender(self)

    async def download(self, ref: MediaRef, *, max_bytes: int) -> bytes:
        data = self.media.get(ref.handle)
        if data is None:
            raise MediaUnavailable("The voice note is gone. Please send it again.")
        return data

    async def send(self, reply: OutboundReply) -> Receipt:
        if self.failures:
            raise SendFailed(self.failures.popleft())
        self.sent.append(reply)
        await self._notify()
        return Receipt(native_id=f"native-{reply.entry_id}")

    def classify(self, error: Exception) -> Failure:
        assert isinstance(error, SendFailed)
        return error.failure

    def health(self) -> ChannelHealth:
        return ChannelHealth(state="up" if self._up.is_set() else "starting")

    # -- for tests --------------------------------------------------------------------------------

    async def say(
        self,
        text: str,
        *,
        chat: str = "c1",
        native_id: str | None = None,
        author: str = "owner",
        voice: bytes | None = None,
        at: float = 0.0,
    ) -> Acceptance:
        """Send a text (a command if it is one) or a voice note to the gateway, `at` seconds after the time at
        which all messages are sent otherwise."""
        await self._up.wait()
        native_id = native_id or f"{chat}:{len(self.events)}:{text}:{new_id('said')}"
        thread = ThreadKey(channel=self.name, account=self.account, chat=chat)
        message_id = derived_message_id(self.name, self.account, native_id)
        ref = None
        if voice is not None:
            ref = MediaRef(channel=self.name, handle=native_id, mime="audio/ogg", size=len(voice))
            self.media[native_id] = voice
        command = parse_command(text)
        item = (
            _command(command, message_id, native_id, thread, author)
            if command
            else InboundMessage(
                message_id=message_id,
                native_id=native_id,
                thread=thread,
                author=Author(id=author),
                received_at=1_700_000_000.0 + at,
                text=text,
                voice=ref,
            )
        )
        return await self.bring(item)

    async def bring(self, item: Inbound) -> Acceptance:
        """Pass any inbound item to the gateway."""
        await self._up.wait()
        assert self._on_inbound is not None
        return await self._on_inbound(item)

    def events_of(self, message_id: str) -> list[PipelineEvent]:
        """The events of one message, in order."""
        return [event for event in self.events if event.message_id == message_id]

    async def terminal(self, message_id: str) -> PipelineEvent:
        """Wait for the message's terminal event."""
        await self.until(lambda: any(event.is_terminal for event in self.events_of(message_id)))
        return next(event for event in self.events_of(message_id) if event.is_terminal)

    async def reply(self, message_id: str) -> OutboundReply:
        """Wait for the message's delivered reply."""
        await self.until(lambda: any(reply.message_id == message_id for reply in self.sent))
        return next(reply for reply in self.sent if reply.message_id == message_id)

    async def until(self, holds: object) -> None:
        """Wait until the predicate `holds()` is true. It is checked when something arrives and periodically,
        because it may depend on something else."""
        assert callable(holds)
        async with asyncio.timeout(_PATIENCE_S), self._changed:
            while not holds():
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_S):
                        await self._changed.wait()

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()


class _Sender:
    def __init__(self, channel: MemoryChannel) -> None:
        self._channel = channel

    async def send_event(self, event: PipelineEvent) -> None:
        self._channel.events.append(event)
        await self._channel._notify()


def types_of(events: Iterable[PipelineEvent]) -> list[str]:
    """The events' wire names."""
    return [event.type for event in events]


def _command(
    command: ParsedCommand, message_id: str, native_id: str, thread: ThreadKey, author: str
) -> SessionCommand:
    return SessionCommand(
        message_id=message_id,
        native_id=native_id,
        thread=thread,
        author=Author(id=author),
        received_at=1_700_000_000.0,
        name=command.name,
        argument=command.argument,
    )
