"""The contract cases of the channels that render on the client: the page and the terminal."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from adapters.channel import OutboundReply, ShowingChannel
from adapters.console.adapter import ConsoleAdapter, ConsoleOptions
from parlour.testing.channel_case import ContractCase, WatchedInbox
from pipeline.domain.clock import ManualClock
from pipeline.domain.events import ApprovalRequired
from pipeline.domain.messages import InboundMessage
from pipeline.domain.ports import EventSender
from pipeline.domain.timeline import EntryRole
from tests.adapters.fakes import MemoryTimeline
from tests.adapters.web.harness import TOKEN, Browser, Frame, Page, WebHarness, serving


class _ClientRenderedCase(ContractCase):
    """What both have in common. Ann is alone with the bot, and the gateway's time is of no importance."""

    rooms = False
    adapter: ShowingChannel

    def __init__(self, inbox: WatchedInbox) -> None:
        self.inbox = inbox

    def sender(self, item: InboundMessage) -> EventSender:
        return self.adapter.sender_for(item.thread)

    async def deliver(self, item: InboundMessage, text: str, role: EntryRole = "assistant") -> None:
        await self.adapter.send(
            OutboundReply(
                key=item.message_id,
                thread=item.thread,
                message_id=item.message_id,
                entry_id=5,
                role=role,
                text=text,
                created_at=1.0,
            )
        )

    async def pass_time(self, seconds: float) -> None:
        return None


class WebCase(_ClientRenderedCase):
    """A page on a real socket."""

    secrets = (TOKEN,)

    def __init__(self, inbox: WatchedInbox, harness: WebHarness, browser: Browser, page: Page) -> None:
        super().__init__(inbox)
        self.adapter = harness.adapter
        self._browser = browser
        self._page = page
        self._ids = itertools.count(1)
        self._lines: dict[tuple[str, str], str] = {}
        """What the page shows, by its documentation: one line per (message_id, role)."""

    async def stop(self) -> None:
        self._browser.stop()
        while self.adapter.health().state == "up":  # noqa: ASYNC110 - `run` belongs to the harness
            await asyncio.sleep(0)

    async def write(self, text: str, *, room: bool = False, addressed: bool = True) -> InboundMessage:
        await self._page.say(type="message", client_id=f"i{next(self._ids)}", text=text)
        return await self.inbox.message(text)

    async def write_twice(self, text: str) -> None:
        for _ in range(2):
            await self._page.say(type="message", client_id="again", text=text)

    async def speak(self, audio: bytes) -> InboundMessage:
        before = len(self.inbox.items)
        await self._page.say(type="voice", client_id=f"i{next(self._ids)}", mime="audio/ogg", size=len(audio))
        await self._page.socket.send_bytes(audio)
        await self.inbox.until(lambda: len(self.inbox.items) > before)
        item = self.inbox.items[-1]
        assert isinstance(item, InboundMessage)
        return item

    async def hear_others(self) -> None:
        await self._read()

    async def hear_nonsense(self) -> None:
        for raw in ("", "[]", "{", '{"type": 1}', '{"type": "dance"}', '{"type": "message", "text": {}}'):
            await self._page.socket.send_str(raw)
        await self._page.socket.send_bytes(b"\xff\x00")

    async def answers(self) -> list[str]:
        await self._read()
        return list(self._lines.values())

    async def press(self, question: ApprovalRequired, option: str) -> str:
        client_id = f"i{next(self._ids)}"
        fields = {"interaction": question.interaction_id, "choice": option}
        await self._page.say(type="approval", client_id=client_id, **fields)
        frames = await self._read()
        mine = [frame for frame in frames if frame.get("client_id") == client_id]
        assert len(mine) == 1
        return str(mine[0].get("message", ""))

    async def _read(self) -> list[Frame]:
        frames = await self._page.ping()
        for frame in frames:
            if frame["type"] == "entry":
                self._lines[(frame["message_id"], frame["role"])] = frame["text"]
            elif frame["type"] == "event":
                self._show(frame["event"])
        return frames

    def _show(self, event: dict[str, Any]) -> None:
        line = (event["message_id"], "assistant")
        written = self._lines.get(line, "")
        match event["type"]:
            case "llm_token" if len(written) == event["offset"]:
                self._lines[line] = written + event["text"]
            case "response_complete":
                self._lines[line] = event["content"]
            case "error":
                self._lines[(event["message_id"], "error")] = event["message"]


@asynccontextmanager
async def web(tmp_path: Path) -> AsyncIterator[ContractCase]:
    harness, inbox = WebHarness(tmp_path), WatchedInbox()
    harness.inbox = inbox
    async with serving(harness) as browser:
        page, _ = await browser.open()
        yield WebCase(inbox, harness, browser, page)


class ConsoleCase(_ClientRenderedCase):
    """A terminal whose lines come from a queue."""

    redelivers = False

    def __init__(self, inbox: WatchedInbox, tmp_path: Path, tasks: asyncio.TaskGroup) -> None:
        super().__init__(inbox)
        self._folder = tmp_path
        self._typed: asyncio.Queue[str] = asyncio.Queue()
        self._written: list[str] = []
        self._tasks = tasks
        self.adapter: ConsoleAdapter = self._made(lines=self._lines())
        self._running = tasks.create_task(self.adapter.run(inbox))

    async def stop(self) -> None:
        self._running.cancel()
        await asyncio.wait([self._running])

    async def write(self, text: str, *, room: bool = False, addressed: bool = True) -> InboundMessage:
        await self._typed.put(text)
        return await self.inbox.message(text)

    async def write_twice(self, text: str) -> None:
        for _ in range(2):
            await self._typed.put(text)

    async def speak(self, audio: bytes) -> InboundMessage:
        """As `parlour chat --voice` does: a voice file begins a separate run."""
        path = self._folder / "note.ogg"
        path.write_bytes(audio)
        before = len(self.inbox.items)
        run = self._tasks.create_task(self._made(lines=None, voice_files=(path,)).run(self.inbox))
        await self.inbox.until(lambda: len(self.inbox.items) > before)
        run.cancel()
        item = self.inbox.items[before]
        assert isinstance(item, InboundMessage)
        return item

    async def hear_others(self) -> None:
        return None

    async def hear_nonsense(self) -> None:
        for line in ("", "\x1b[2J", "\t \t", "x" * 10_000):
            await self._typed.put(line)

    async def answers(self) -> list[str]:
        return "".join(self._written).splitlines()

    async def press(self, question: ApprovalRequired, option: str) -> str:
        before, shown = len(self.inbox.offers), len(self._written)
        await self._typed.put(option)
        await self.inbox.until(lambda: len(self.inbox.offers) > before)
        await asyncio.sleep(0)
        return "".join(self._written[shown:])

    async def _lines(self) -> AsyncIterator[str]:
        while True:
            yield await self._typed.get()

    def _made(self, **options: Any) -> ConsoleAdapter:
        # Interactive: a person does not wait for one answer before the next line. No prompt: only words
        # of the conversation are written.
        settings = ConsoleOptions(prompt="")
        return ConsoleAdapter(
            settings, MemoryTimeline(), ManualClock(), write=self._written.append, **options
        )


@asynccontextmanager
async def console(tmp_path: Path) -> AsyncIterator[ContractCase]:
    async with asyncio.TaskGroup() as tasks:
        case = ConsoleCase(WatchedInbox(), tmp_path, tasks)
        await asyncio.sleep(0)
        try:
            yield case
        finally:
            await case.stop()
