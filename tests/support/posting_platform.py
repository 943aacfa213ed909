"""The reference fake platform: the people who talk to a `MemoryPosts`, without any wire in between.

It is the smallest FakePlatform there is, and the one to read before another is written. Its faults are those
of its posts and edits.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from adapters.channel import FailureKind
from pipeline.domain.clock import SystemClock
from tests.support.platforms.platform import Call, Faults, Person, Place, Shown
from tests.support.posting_channel import MemoryPosts, Message, Refused, refusal

_BOT = "the-bot"
_FAILURES: Mapping[str, tuple[FailureKind, bool]] = {
    "rate_limit": ("rate_limit", False),
    "error_before": ("transient", False),
    "error_after": ("transient", True),
    "hang": ("transient", True),
    "drop": ("transient", True),
    "refuse_format": ("invalid", False),
    "forbid": ("permission", False),
}
"""By the kind of the fault: how the adapter classifies it, and whether the call was carried out."""


class MemoryPlatform:
    """Implements FakePlatform over a MemoryPosts that the test runs."""

    name = "memory"

    def __init__(self, posts: MemoryPosts | None = None) -> None:
        self.posts = posts or MemoryPosts()
        self.posts.judge = self._judge
        self.faults = Faults()
        self.calls: list[Call] = []
        self.lenient = True
        self._ids = itertools.count(1)
        self._said: list[tuple[int, Place, Shown]] = []
        """What people wrote, with the number of the bot's messages before it."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    def overrides(self, folder: Path) -> tuple[str, ...]:
        """None: a gateway is given the channel itself, see `tests.support.harness`."""
        return ()

    def person(self, name: str, *, bot: bool = False) -> Person:
        return Person(id=f"p-{name}", name=name, bot=bot)

    def private_chat(self, person: Person) -> Place:
        return Place(chat=f"dm-{person.id}", private=True)

    def room(self, name: str, *members: Person) -> Place:
        return Place(chat=f"room-{name}", private=False)

    async def say(self, place: Place, person: Person, text: str, *, addressed: bool = True) -> str:
        return await self._write(place, person, text, kind="message", text=text, addressed=addressed)

    async def speak(self, place: Place, person: Person, audio: bytes, *, mime: str) -> str:
        handle = f"voice-{next(self._ids)}"
        self.posts.media[handle] = audio
        return await self._write(place, person, "", kind="voice", handle=handle)

    async def tell(self, event: Mapping[str, Any]) -> str:
        """Deliver any native event; returns the text shown to its author."""
        if self.faults.duplicates():
            await self.posts.take(event)
        return await self.posts.take(event)

    async def press(self, place: Place, person: Person, native_id: str, label: str) -> str:
        message = self._message(native_id)
        if label not in message.buttons:
            raise LookupError(f"the message {native_id} has no button {label!r}")
        data = message.data[message.buttons.index(label)]
        event = self._event(place, person, kind="press", message=native_id, data=data)
        return await self.tell(event)

    def visible(self, place: Place) -> tuple[Shown, ...]:
        said = [(after, 0, shown) for after, where, shown in self._said if where.chat == place.chat]
        posts = enumerate(self.posts.messages)
        posted = [(order, 1, _shown(one)) for order, one in posts if one.thread.chat == place.chat]
        return tuple(shown for _, _, shown in sorted([*said, *posted], key=lambda row: row[:2]))

    def bot_texts(self, place: Place) -> list[str]:
        return [shown.text for shown in self.visible(place) if not shown.author]

    async def until(self, holds: Callable[[], bool], *, timeout_s: float = 60.0) -> None:
        await self.posts.until(holds)

    def unacknowledged(self) -> int:
        return 0

    async def echo(self, place: Place, text: str) -> None:
        """Deliver the bot's own message to the bot."""
        await self.tell(self._event(place, Person(id=_BOT, name=_BOT, bot=True), kind="message", text=text))

    async def _write(self, place: Place, person: Person, words: str, **fields: Any) -> str:
        event = self._event(place, person, **fields)
        shown = Shown(native_id=event["id"], author=person.id, text=words)
        self._said.append((len(self.posts.messages), place, shown))
        await self.tell(event)
        return str(event["id"])

    def _event(self, place: Place, person: Person, **fields: Any) -> dict[str, Any]:
        origin = {"id": f"e{next(self._ids)}", "chat": place.chat, "private": place.private}
        return {**origin, "from": person.id, "bot": person.bot, **fields}

    def _judge(self, method: str) -> Refused | None:
        """Play the fault of a post or an edit, if there is one."""
        fault = self.faults.next_for(method, shows=True)
        status = 200
        refused = None
        if fault is not None:
            kind, done = _FAILURES[fault.kind]
            retry_after_s = fault.retry_after_s if kind == "rate_limit" else None
            refused = refusal(kind, retry_after_s=retry_after_s, done=done)
            status = 429 if kind == "rate_limit" else 500
        self.calls.append(Call(method=method, payload={}, status=status, at=SystemClock().monotonic()))
        return refused

    def _message(self, native_id: str) -> Message:
        for message in self.posts.messages:
            if message.native_id == native_id:
                return message
        raise LookupError(f"there is no message {native_id}")


def _shown(message: Message) -> Shown:
    return Shown(
        native_id=message.native_id,
        author="",
        text=message.text,
        buttons=message.buttons,
        file_name=message.file_name,
        edits=len(message.versions),
        reply_to=message.reply_handle.removeprefix("to-"),
    )
