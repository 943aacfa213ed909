"""Fetch the messages of a chat that no session received, by REST, and parse them like events.

Not here: when (`chat_queues`), and which of them are known already (the inbox).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from adapters.discord.failures import classify
from adapters.discord.inbound import Context, parse_event
from adapters.discord.payload import snowflake_at, unix_of
from adapters.discord.rest import Rest
from pipeline.domain.clock import Clock
from pipeline.domain.messages import Inbound

_log = logging.getLogger(__name__)
T = TypeVar("T")

_PAGE = 100
_PAGES = 50
"""5,000 messages of one chat; a chat with more messages in a day is not fetched completely."""
_FIRST_RETRY_S = 1.0
_LONGEST_RETRY_S = 60.0
_AT_ONCE = 4
"""Chats fetched concurrently: Discord allows 50 calls a second per bot."""
_PASSING = ("transient", "rate_limit")
"""Failures to retry; the chat waits meanwhile. After any other failure it continues without the messages."""


class Backfill:
    """Fetches missed messages. `context` is called for every message."""

    def __init__(self, rest: Rest, clock: Clock, context: Callable[[], Context], *, back_s: float) -> None:
        self._rest = rest
        self._clock = clock
        self._context = context
        self._back_s = back_s
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def missed(self, chat: str, after: int) -> AsyncIterator[Inbound]:
        """The edits of the last messages of `chat` made since the one with the id `after`, then the messages
        with greater ids, oldest first; none older than `back_s`.

        Ends early where the bot may not read any more; retries for as long as Discord does not answer.
        """
        after = max(after, snowflake_at(self._clock.now() - self._back_s))
        place = await self._persist(partial(self._rest.channel, chat), chat)
        if place is None:
            return
        async for edit in self._edited(chat, after, place):
            yield edit
        for _ in range(_PAGES):
            page = await self._persist(partial(self._rest.messages_after, chat, after, limit=_PAGE), chat)
            if not page:
                return
            for message in page:
                # REST names the server of a channel, but not of its messages.
                located = {**message, "guild_id": place.get("guild_id"), "channel_id": chat}
                item = parse_event("MESSAGE_CREATE", located, self._context())
                if item is not None:
                    yield item
            after = int(page[-1]["id"])
            if len(page) < _PAGE:
                return
        _log.warning("discord: chat %s has missed more than %d messages", chat, _PAGE * _PAGES)

    async def _edited(self, chat: str, after: int, place: Mapping[str, Any]) -> AsyncIterator[Inbound]:
        """Edits of messages received before. The inbox recognises those that it knows."""
        ask = partial(self._rest.messages_before, chat, after + 1, limit=_PAGE)
        context = replace(self._context(), stale_edit_s=self._clock.now() - unix_of(str(after)))
        for message in await self._persist(ask, chat) or ():
            located = {**message, "guild_id": place.get("guild_id"), "channel_id": chat}
            item = parse_event("MESSAGE_UPDATE", located, context)
            if item is not None:
                yield item

    async def _persist(self, ask: Callable[[], Awaitable[T]], chat: str) -> T | None:
        """The answer; None after a permanent failure."""
        wait_s = _FIRST_RETRY_S
        while True:
            try:
                async with self._slots:
                    return await ask()
            except Exception as error:  # noqa: BLE001 - classified, and retried
                failure = classify(error)
            if failure.kind not in _PASSING:
                _log.warning("discord: chat %s cannot be read back: %s", chat, failure.message)
                return None
            await self._clock.sleep(max(wait_s, failure.retry_after_s or 0.0))
            wait_s = min(_LONGEST_RETRY_S, 2 * wait_s)
