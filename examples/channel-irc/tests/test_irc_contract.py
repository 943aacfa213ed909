"""The IRC channel keeps Parlour's channel contract, against a server over real TCP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from fake_irc import FakeIrc
from parlour.testing import ContractCase, PostingCase, SystemClock, running
from parlour.testing.contract import ChannelContract, Factory
from parlour_irc.adapter import IrcAdapter
from parlour_irc.settings import IrcSettings
from pipeline.domain.events import ApprovalRequired

NONSENSE = (
    b"",
    b":",
    b"@",
    b"@account=ann",
    b"\x00\xff",
    b": :",
    b"PRIVMSG",
    b":Ann!~user@host PRIVMSG",
    b":Ann!~user@host PRIVMSG parlour",
    b":Ann PRIVMSG parlour :no mask",
    b":Ann!~user@host PRIVMSG parlour :",
    b":Ann!~user@host PRIVMSG parlour :\x01VERSION\x01",
    b"@account=;msgid :Ann!~user@host PRIVMSG parlour :no account",
    b"@account=ann :Ann!~user@host NOTICE parlour :a notice",
    b"@account=ann :Ann!~user@host PRIVMSG somebody :to another",
    b"\xff@account=ann PRIVMSG \xfe",
    b":irc.test DANCE " + b"x" * 8_000,
    b"NICK",
    b":parlour KICK",
    b"PING",
)


class IrcCase(PostingCase[FakeIrc]):
    """Ann, logged in, and the room #team."""

    posts = "PRIVMSG"
    redelivers = False
    buttons = False
    files = False
    asking_s = 10.0

    async def receive(self) -> None:
        while True:
            try:
                await self.adapter.run(self.inbox)
            except OSError:
                continue

    async def write_twice(self, text: str) -> None:
        for _ in range(2):
            await self.platform.say(self.chat, self.ann, text)

    async def hear_itself(self) -> None:
        await self.platform.deliver("parlour", "", "my own words", {"account": "parlour"})

    async def hear_nonsense(self) -> None:
        for bot in self.platform.bots:
            for odd in NONSENSE:
                bot.raw(odd)

    async def press(self, question: ApprovalRequired, option: str) -> str:
        if not any(option in text for text in await self.answers()):
            raise LookupError(f"no question offers {option!r}")
        before = len(self.inbox.offers)
        await self.platform.say(self.chat, self.ann, option)
        await self.inbox.until(lambda: len(self.inbox.offers) > before)
        return ""


def settings_for(server: FakeIrc, **given: Any) -> IrcSettings:
    """The settings of a bot on the fake network."""
    common = {"server": "127.0.0.1", "port": server.port, "tls": False, "channels": ("#team",)}
    return IrcSettings.model_validate({**common, **given})


@asynccontextmanager
async def irc(_folder: Path) -> AsyncIterator[ContractCase]:
    """A bot in #team, running."""
    async with FakeIrc() as server:
        adapter = IrcAdapter(settings_for(server), SystemClock())
        async with running(lambda tasks: IrcCase(server, adapter, tasks)) as case:
            yield case


class TestIrc(ChannelContract):
    """The whole contract."""

    @pytest.fixture
    def factory(self) -> Factory:
        return irc
