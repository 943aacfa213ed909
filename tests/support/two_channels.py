"""A gateway on two channels: the page, which shows the events itself, and a fake Telegram, where it posts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pipeline.domain.clock import Clock
from pipeline.domain.ids import new_id
from pipeline.llm.scripted import ScriptedLlm
from tests.support.gateway_process import free_port
from tests.support.harness import GatewayHarness, open_gateway
from tests.support.platforms.platform import Person
from tests.support.platforms.telegram import FakeTelegram
from tests.support.web_client import Terminal, WebChat
from voice.transcription.scripted_transcriber import ScriptedTranscriber

_NOTE = b"OggS" + bytes(400)


class Chat(Protocol):
    """A person's private chat on one of the channels."""

    @property
    def name(self) -> str:
        """The channel's name."""
        ...

    async def ask(self, text: str) -> str:
        """Send a message; the line that is shown next."""
        ...

    async def speak(self) -> str:
        """Send a voice note; the line that is shown next."""
        ...

    async def press(self, label: str) -> str:
        """Press a button of the newest question; the line that is shown next."""
        ...


@dataclass(slots=True)
class PageChat:
    """The page. A line without a terminal event, such as that of a command, is found by its entry."""

    page: WebChat
    name: str = "web"
    sent: int = 0

    async def ask(self, text: str) -> str:
        self.sent += 1
        client_id = new_id(f"c{self.sent}")
        await self.page.send_text(client_id, text)
        return await self._shown(await self.page.accepted(client_id))

    async def speak(self) -> str:
        self.sent += 1
        client_id = new_id(f"c{self.sent}")
        await self.page.send_voice(client_id, _NOTE, mime="audio/ogg")
        return await self._shown(await self.page.accepted(client_id))

    async def press(self, label: str) -> str:
        self.sent += 1
        client_id = new_id(f"c{self.sent}")
        (asked,) = self.page.seen.questions[-1:]
        await self.page.send_approval(client_id, asked, label)
        return await self._shown(await self.page.accepted(client_id))

    def terminals(self, text: str) -> list[Terminal]:
        """The terminal events with that text."""
        return [one for one in self.page.seen.terminals if one.text == text]

    async def _shown(self, message_id: str) -> str:
        while True:
            ended = self.page.seen.terminals_of(message_id)
            if ended:
                return ended[0].text
            lines = [
                one for role in ("notice", "session") for one in self.page.seen.lines_of(message_id, role)
            ]
            if lines:
                return lines[0].text
            await self.page.receive()


@dataclass(slots=True)
class TelegramChat:
    """A chat with the bot on Telegram."""

    telegram: FakeTelegram
    person: Person
    name: str = "telegram"

    @property
    def lines(self) -> list[str]:
        """What the bot has posted."""
        return self.telegram.bot_texts(self.telegram.private_chat(self.person))

    async def ask(self, text: str) -> str:
        known = len(self.lines)
        await self.send(text)
        return await self._shown(known)

    async def send(self, text: str) -> None:
        """Send a message and wait for nothing."""
        await self.telegram.say(self.telegram.private_chat(self.person), self.person, text)

    async def begin(self, text: str) -> None:
        """Send a message and wait until its turn asks for permission."""
        place = self.telegram.private_chat(self.person)
        await self.send(text)
        await self.telegram.until(lambda: any(shown.buttons for shown in self.telegram.visible(place)))

    async def until_shown(self, words: str) -> None:
        """Wait until a line with those words is shown."""
        await self.telegram.until(lambda: words in self.lines)

    async def speak(self) -> str:
        known = len(self.lines)
        place = self.telegram.private_chat(self.person)
        await self.telegram.speak(place, self.person, _NOTE, mime="audio/ogg")
        return await self._shown(known)

    async def press(self, label: str) -> str:
        known, place = len(self.lines), self.telegram.private_chat(self.person)
        asked = next(shown for shown in reversed(self.telegram.visible(place)) if label in shown.buttons)
        await self.telegram.press(place, self.person, asked.native_id, label)
        return await self._shown(known)

    async def _shown(self, known: int) -> str:
        await self.telegram.until(lambda: len(self.lines) > known)
        return self.lines[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoChannels:
    """The gateway and a person's chat on each channel."""

    harness: GatewayHarness
    page: PageChat
    telegram: TelegramChat
    chats: tuple[Chat, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "chats", (self.page, self.telegram))


@asynccontextmanager
async def open_two_channels(
    tmp_path: Path,
    *overrides: str,
    llm: ScriptedLlm | None = None,
    transcriber: ScriptedTranscriber | None = None,
    clock: Clock | None = None,
    telegram: FakeTelegram | None = None,
    chat: str | None = None,
    drain_s: float = 5.0,
) -> AsyncIterator[TwoChannels]:
    """Run the gateway. `telegram` and the page's `chat` are those of an earlier gateway, to continue."""
    async with AsyncExitStack() as stack:
        if telegram is None:
            telegram = await stack.enter_async_context(FakeTelegram())
        folder, port = tmp_path / "platform", free_port()
        folder.mkdir(exist_ok=True)
        data = tmp_path / "data"
        settings = (
            "channels.web.enabled=true",
            f"server.port={port}",
            *telegram.overrides(folder),
            *overrides,
        )
        harness = await stack.enter_async_context(
            open_gateway(data, *settings, llm=llm, transcriber=transcriber, clock=clock, drain_s=drain_s)
        )
        page = await stack.enter_async_context(WebChat(chat=chat))
        await page.connect(f"http://127.0.0.1:{port}", (data / "web-token").read_text("ascii").strip())
        yield TwoChannels(
            harness=harness, page=PageChat(page), telegram=TelegramChat(telegram, telegram.person("ann"))
        )
