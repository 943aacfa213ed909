"""An adapter beside a fake Telegram, with an inbox that the test looks into."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from adapters.channel import Acceptance
from adapters.telegram.adapter import TelegramAdapter
from adapters.telegram.settings import TelegramOptions
from pipeline.domain.clock import Clock, ManualClock, SystemClock
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Inbound, InboundMessage
from tests.support.platforms.platform import Person, Place
from tests.support.platforms.telegram import FakeTelegram

_QUIET_S = 0.02


class Inbox:
    """Takes everything in, or does what `answers` says."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self.items: list[Inbound] = []
        self.answers: Callable[[Inbound], Acceptance] | None = None
        """May raise, as a full disk does."""
        self._changed = changed

    async def __call__(self, item: Inbound) -> Acceptance:
        known = item.native_id in {one.native_id for one in self.items}
        acceptance = Acceptance(status="duplicate" if known else "accepted", message_id=item.message_id)
        if self.answers is not None:
            acceptance = self.answers(item)
        self.items.append(item)
        self._changed()
        return acceptance

    @property
    def texts(self) -> list[str]:
        """The words of the messages, in the order of their arrival."""
        return [item.text for item in self.items if isinstance(item, InboundMessage)]


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramHarness:
    """What a test needs."""

    fake: FakeTelegram
    adapter: TelegramAdapter
    inbox: Inbox
    ann: Person
    place: Place

    def thread(self, place: Place | None = None) -> ThreadKey:
        """The thread of a place; Ann's private chat by default."""
        where = place or self.place
        return ThreadKey(channel="telegram", account="main", chat=where.chat, topic=where.topic)

    async def arrived(self, count: int) -> None:
        """Wait until the inbox has so many items."""
        await self.fake.until(lambda: len(self.inbox.items) >= count)


def settings_for(fake: FakeTelegram, **more: Any) -> TelegramOptions:
    return TelegramOptions(token=lambda: fake.token, api_base=fake.api_base, **more)


@contextlib.asynccontextmanager
async def idle(*, clock: Clock | None = None, **more: Any) -> AsyncIterator[TelegramHarness]:
    """An adapter that does not receive."""
    async with FakeTelegram(lenient=True) as fake:
        ann = fake.person("Ann")
        adapter = TelegramAdapter(settings_for(fake, **more), clock or SystemClock())
        yield TelegramHarness(
            fake=fake,
            adapter=adapter,
            inbox=Inbox(fake.state.changed),
            ann=ann,
            place=fake.private_chat(ann),
        )


@contextlib.asynccontextmanager
async def running(*, clock: Clock | None = None, **more: Any) -> AsyncIterator[TelegramHarness]:
    """An adapter that receives."""
    async with idle(clock=clock, **more) as harness, asyncio.TaskGroup() as group:
        receiving = group.create_task(harness.adapter.run(harness.inbox))
        try:
            await harness.fake.until(lambda: harness.fake.state.updates.polling or receiving.done())
            yield harness
        finally:
            receiving.cancel()


async def turning(
    clock: ManualClock, fake: FakeTelegram, holds: Callable[[], bool], *, step_s: float = 1.0
) -> None:
    """Turn the clock whenever nothing happens on the platform, until `holds()`."""
    async with asyncio.timeout(60):
        while not holds():
            await clock.advance(step_s)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_QUIET_S):
                    await fake.state.next_change()
