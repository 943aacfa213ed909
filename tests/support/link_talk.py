"""People who link their chats: the owner at the terminal, and everybody else on the posting channel."""

from __future__ import annotations

import itertools
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from adapters.identity import derived_message_id
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author, InboundMessage, SessionCommand, parse_command
from tests.support.harness import GatewayHarness, open_gateway
from tests.support.posting_channel import MemoryPosts

OWNER = "owner"
"""The person at the terminal; all other names are people of the posting channel."""
_NUMBERS = itertools.count()
"""One row for all gateways: a number that comes again is a redelivery."""
_CODE = re.compile(r"`?/link ([A-Z0-9]{8})`?")


class LinkTalk:
    """What people say to one gateway, and what it answers."""

    def __init__(self, harness: GatewayHarness, posts: MemoryPosts) -> None:
        self.harness = harness
        self.posts = posts

    async def say(self, person: str, text: str, *, chat: str = "", private: bool = True) -> str:
        """The person says it in their private chat, or in `chat`; the text of the answer."""
        number = next(_NUMBERS)
        if person == OWNER:
            accepted = await self.harness.channel.say(text, native_id=f"n{number}", chat=chat or "c1")
            return (await self.harness.channel.reply(accepted.message_id)).text
        message_id = await self._post(person, text, number, chat or f"dm-{person}", private=private)
        key = f"{message_id}:"
        row = None
        while row is None or row.state != "sent":
            await self.posts.until(lambda: any(one.key.startswith(key) for one in self.posts.messages))
            row = await self.harness.store.outbox_row(message_id)
        shown = [one for one in self.posts.messages if one.key.startswith(key)]
        return "".join(one.text + one.file.decode() for one in shown)

    async def code(self, person: str) -> str:
        """A code that the person asks for."""
        return code_in(await self.say(person, "/link"))

    async def link(self, owner: str, other: str) -> str:
        """Link the two people's chats; what the second one reads."""
        return await self.say(other, f"/link {await self.code(owner)}")

    async def announced(self, person: str, number: int) -> list[str]:
        """The announcements in the person's private chat, once there are as many as `number`."""
        if person == OWNER:
            sent = self.harness.channel.sent
            await self.harness.channel.until(lambda: len(_announcements(one.text for one in sent)) >= number)
            return _announcements(one.text for one in sent)
        thread = self.posts.thread(f"dm-{person}")

        # They are longer than the messages of this channel, so each is a file.
        def shown() -> list[str]:
            return [one.file.decode() for one in self.posts.messages if one.thread == thread]

        await self.posts.until(lambda: len(_announcements(shown())) >= number)
        return _announcements(shown())

    async def _post(self, person: str, text: str, number: int, chat: str, *, private: bool) -> str:
        native_id = f"p{number}"
        common: dict[str, Any] = {
            "message_id": derived_message_id("memory", "main", native_id),
            "native_id": native_id,
            "thread": ThreadKey(channel="memory", account="main", chat=chat),
            "author": Author(id=person, name=person.title()),
            "received_at": 1_700_000_000.0,
            "private": private,
        }
        command = parse_command(text)
        item = (
            InboundMessage(text=text, **common)
            if command is None
            else SessionCommand(name=command.name, argument=command.argument, **common)
        )
        accepted = await self.posts.bring(item)
        assert accepted.status == "accepted", accepted
        return str(common["message_id"])


def _announcements(texts: Iterable[str]) -> list[str]:
    return [text for text in texts if "has been linked" in text]


def code_in(text: str) -> str:
    """The code that the bot shows in `text`."""
    found = _CODE.search(text)
    assert found is not None, text
    return found[1]


@asynccontextmanager
async def open_link_talk(data: Path, *overrides: str, **given: Any) -> AsyncIterator[LinkTalk]:
    """A gateway with the terminal and the posting channel; `given` are arguments of `open_gateway`."""
    posts = MemoryPosts(previews=False)
    async with open_gateway(data, *overrides, posts=posts, **given) as harness:
        yield LinkTalk(harness, posts)
