"""The contract case of a posting channel: a fake platform with Ann on it, and the gateway's outbound side."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

from adapters.channel import PostingChannel
from adapters.files import OutgoingFile
from gateway.storage.ports import OutboxRow
from parlour.testing.channel_case import ContractCase, WatchedInbox
from parlour.testing.delivery_harness import DeliveryHarness
from parlour.testing.platform import FakePlatform, Fault, Shown
from pipeline.domain.events import ApprovalRequired
from pipeline.domain.messages import InboundMessage
from pipeline.domain.ports import EventSender
from pipeline.domain.timeline import EntryRole

PlatformT = TypeVar("PlatformT", bound=FakePlatform)
_START_S = 60.0


class PostingCase(ContractCase, Generic[PlatformT]):
    """The case of every posting channel: a platform with Ann on it, and the gateway's outbound side."""

    adapter: PostingChannel
    posts: str
    """What the platform calls posting a message, in `Fault.method`."""

    def __init__(self, platform: PlatformT, adapter: PostingChannel, tasks: asyncio.TaskGroup) -> None:
        self.platform = platform
        self.adapter = adapter
        self.inbox = WatchedInbox()
        self.ann = platform.person("Ann")
        self.robot = platform.person("Robot", bot=True)
        self.chat = platform.private_chat(self.ann)
        self.room = platform.room("team", self.ann, self.robot)
        self.harness = DeliveryHarness(adapter)
        self._tasks = tasks
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Run the adapter, until it says that it is up."""
        await self.harness.open()
        self._running = self._tasks.create_task(self.receive())
        async with asyncio.timeout(_START_S):
            while self.adapter.health().state != "up":  # noqa: ASYNC110 - health has no event
                await asyncio.sleep(0.01)

    async def receive(self) -> None:
        """Run the channel until it is cancelled. Override it for one whose run ends with its connection: the
        gateway starts such a channel again."""
        await self.adapter.run(self.inbox)

    async def stop(self) -> None:
        await self.harness.close()
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])

    async def write(self, text: str, *, room: bool = False, addressed: bool = True) -> InboundMessage:
        await self.platform.say(self.room if room else self.chat, self.ann, text, addressed=addressed)
        return await self.inbox.message(text)

    async def write_twice(self, text: str) -> None:
        self.platform.faults.duplicate_share = 1.0
        await self.platform.say(self.chat, self.ann, text)
        self.platform.faults.duplicate_share = 0.0

    async def speak(self, audio: bytes) -> InboundMessage:
        before = len(self.inbox.items)
        await self.platform.speak(self.chat, self.ann, audio, mime="audio/ogg")
        await self.inbox.until(lambda: len(self.inbox.items) > before)
        item = self.inbox.items[before]
        assert isinstance(item, InboundMessage)
        return item

    async def hear_others(self) -> None:
        await self.hear_itself()
        await self.platform.say(self.room, self.robot, "beep")

    @abstractmethod
    async def hear_itself(self) -> None:
        """The platform tells the bot about the bot's message in Ann's chat. One is there already."""

    def sender(self, item: InboundMessage) -> EventSender:
        return self.harness.sender(item)

    async def deliver(self, item: InboundMessage, text: str, role: EntryRole = "assistant") -> None:
        row = await self.deliver_row(item, text, role)
        assert row.state == "sent", row.error

    async def deliver_row(
        self,
        item: InboundMessage,
        text: str,
        role: EntryRole = "assistant",
        files: Sequence[OutgoingFile] = (),
    ) -> OutboxRow:
        """As `deliver`, with `files` after the text, and with whatever came of it."""
        return await self.harness.deliver(item, text, role, files)

    async def pass_time(self, seconds: float) -> None:
        await self.harness.pass_time(seconds)

    async def answers(self) -> list[str]:
        return self.platform.bot_texts(self.chat)

    def shown(self) -> tuple[Shown, ...]:
        """The bot's messages in Ann's chat."""
        return tuple(shown for shown in self.platform.visible(self.chat) if not shown.author)

    async def press(self, question: ApprovalRequired, option: str) -> str:
        offered = [shown for shown in self.shown() if option in shown.buttons]
        if not offered:
            raise LookupError(f"no message has a button {option!r}")
        return await self.platform.press(self.chat, self.ann, offered[-1].native_id, option)

    def misbehave(self, kind: Any, *, retry_after_s: float = 1.0) -> None:
        """Let the next post of a message fail."""
        self.platform.faults.script.append(Fault(method=self.posts, kind=kind, retry_after_s=retry_after_s))


@asynccontextmanager
async def running(
    make: Callable[[asyncio.TaskGroup], PostingCase[Any]],
) -> AsyncIterator[PostingCase[Any]]:
    """The case that `make` returns, started; it is stopped at the end."""
    async with asyncio.TaskGroup() as tasks:
        case = make(tasks)
        try:
            await case.start()
            yield case
        finally:
            await case.stop()
