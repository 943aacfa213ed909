"""Process updates: parse, make durable with `on_inbound`, answer presses. `polling` and `webhook` receive the
updates and acknowledge them to Telegram.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from adapters.channel import Acceptance, OnInbound
from adapters.telegram.api import TelegramApi
from adapters.telegram.callback_queries import answer, callback_query_of
from adapters.telegram.inbound import ParseContext, parse_update
from adapters.telegram.media_groups import Albums
from adapters.telegram.reactions import parse_reactions
from adapters.telegram.sending import Sender
from pipeline.domain.clock import Clock
from pipeline.domain.errors import InvalidInput
from pipeline.domain.messages import Inbound

_log = logging.getLogger(__name__)


class Receiver:
    """Passes updates to the gateway. `tasks` runs the answers to presses in the background."""

    def __init__(
        self,
        *,
        api: TelegramApi,
        sender: Sender,
        clock: Clock,
        account: str,
        bot: tuple[int, str],
        on_inbound: OnInbound,
        tasks: asyncio.TaskGroup,
    ) -> None:
        self._api = api
        self._sender = sender
        self._clock = clock
        self._account = account
        self._bot = bot
        self._on_inbound = on_inbound
        self._tasks = tasks
        self._albums = Albums()

    async def take(self, updates: Sequence[Mapping[str, Any]]) -> None:
        """Make one update durable, or the parts of one album together. Raises the errors of `on_inbound`:
        the update must then not be acknowledged to Telegram."""
        items = [item for update in updates for item in self._parsed(update)]
        press = callback_query_of(updates[0])
        acceptance = None
        for item in self._albums.together(updates, items):
            acceptance = await self._accept(item)
        if press is not None:
            self._tasks.create_task(answer(self._api, self._sender, press, acceptance))

    def _parsed(self, update: Mapping[str, Any]) -> Sequence[Inbound]:
        number, username = self._bot
        context = ParseContext(
            account=self._account, bot_id=number, bot_username=username, received_at=self._clock.now()
        )
        if "message_reaction" in update:
            return parse_reactions(update, context)
        item = parse_update(update, context)
        return () if item is None else (item,)

    async def _accept(self, item: Inbound) -> Acceptance | None:
        try:
            return await self._on_inbound(item)
        except InvalidInput:
            # It would be refused for ever and block all later updates.
            _log.exception("an update was dropped", extra={"native_id": item.native_id})
            return None
