"""Receive by long polling. An update is confirmed, by requesting the next one, only after it is durable.

One poll at a time. The chats of a batch are processed concurrently, each in order; updates that could not be
stored are requested again with all later ones, which the gateway then recognises.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from telegram.error import Conflict, InvalidToken, TelegramError

from adapters.health import HealthTracker
from adapters.json_fields import integer
from adapters.telegram.api import FloodWait, TelegramApi
from adapters.telegram.failures import classify
from adapters.telegram.inbound import ALLOWED_UPDATES
from adapters.telegram.media_groups import by_chat, ends_inside_album
from adapters.telegram.receiving import Receiver
from pipeline.domain.clock import Clock
from pipeline.domain.errors import ConfigurationError

_log = logging.getLogger(__name__)

REFUSED = (
    "channels.telegram.token: Telegram refuses it; if it was revoked, get the new one from @BotFather "
    "(/mybots, API Token)"
)
_CONFLICT = (
    "another process receives with this bot's token (409): stop it, or give one of the two another bot; "
    "trying again meanwhile"
)
_BATCH = 100
_BACKOFF_S = (1.0, 2.0, 3.0, 5.0)
"""Short, because the bot receives nothing meanwhile. A 429 says how long to wait."""
_CONFLICT_BACKOFF_S = (10.0, 20.0, 30.0)
_ALBUM_WAIT_S = 0.7
_MOST_ALBUM_WAITS = 4

Update = Mapping[str, Any]


class Poller:
    """Polls for updates until cancelled. Raises ConfigurationError for a token that Telegram rejects."""

    def __init__(
        self, api: TelegramApi, receiver: Receiver, health: HealthTracker, clock: Clock, *, poll_s: int
    ):
        self._api = api
        self._receiver = receiver
        self._health = health
        self._clock = clock
        self._poll_s = poll_s
        self._offset: int | None = None
        self._durable: set[int] = set()
        """Stored updates at or after the offset."""

    async def run(self) -> None:
        await self._delete_webhook()
        failures = conflicts = 0
        while True:
            try:
                batch = await self._next_batch()
            except InvalidToken:
                raise ConfigurationError(REFUSED) from None
            except Conflict:
                await self._pause(_CONFLICT, _CONFLICT_BACKOFF_S, conflicts)
                conflicts += 1
                await self._delete_webhook()
                continue
            except TelegramError as error:
                await self._pause(classify(error).message, _BACKOFF_S, failures, error)
                failures += 1
                continue
            self._health.received()
            self._health.up()
            conflicts = 0
            if await self._take(batch):
                failures = 0
            else:
                await self._pause("the gateway could not store a message", _BACKOFF_S, failures)
                failures += 1

    async def _delete_webhook(self) -> None:
        """Delete a webhook, which would block polling. Its waiting updates are kept."""
        try:
            await self._api.call("deleteWebhook", {"drop_pending_updates": False})
        except InvalidToken:
            raise ConfigurationError(REFUSED) from None
        except TelegramError as error:
            self._health.down(classify(error).message)

    async def _next_batch(self) -> list[Update]:
        # After a start or a failure, a poll without waiting shows at once whether the connection works.
        batch = await self._ask(self._poll_s if self._health.read().state == "up" else 0)
        for _ in range(_MOST_ALBUM_WAITS):
            if len(batch) >= _BATCH or not ends_inside_album(batch):
                break
            # The other pictures follow soon. Nothing is confirmed yet, so the next poll returns all of them.
            await self._clock.sleep(_ALBUM_WAIT_S)
            more = await self._ask(0)
            if len(more) <= len(batch):
                break
            batch = more
        return batch

    async def _ask(self, wait_s: int) -> list[Update]:
        params: dict[str, Any] = {"timeout": wait_s, "limit": _BATCH}
        params["allowed_updates"] = list(ALLOWED_UPDATES)
        if self._offset is not None:
            params["offset"] = self._offset
        answer = await self._api.call("getUpdates", params, wait_s=wait_s)
        if not isinstance(answer, list):
            raise TelegramError("getUpdates answered with no list")
        return [update for update in answer if isinstance(update, dict) and _is_numbered(update)]

    async def _take(self, batch: Sequence[Update]) -> bool:
        """Process a batch and move the offset past the durable updates; whether all of them are."""
        if not batch:
            # Everything is confirmed. Telegram may start a new, lower sequence after a quiet week, and the
            # old offset would confirm those updates unseen.
            self._offset = None
            self._durable.clear()
            return True
        new = [update for update in batch if update["update_id"] not in self._durable]
        async with asyncio.TaskGroup() as group:
            for queue in by_chat(new):
                group.create_task(self._take_in_order(queue))
        numbers: list[int] = [update["update_id"] for update in batch]
        missing = [number for number in numbers if number not in self._durable]
        self._offset = min(missing) if missing else max(numbers) + 1
        self._durable = {number for number in self._durable if number >= self._offset}
        return not missing

    async def _take_in_order(self, queue: Sequence[Sequence[Update]]) -> None:
        for updates in queue:
            try:
                await self._receiver.take(updates)
            except Exception as error:  # noqa: BLE001 - not durable after any failure
                _log.error("an update is not stored: %s", type(error).__name__)
                return
            self._durable.update([update["update_id"] for update in updates])

    async def _pause(
        self, words: str, backoff_s: Sequence[float], attempt: int, error: TelegramError | None = None
    ) -> None:
        if self._health.read().state != "down":
            _log.warning("nothing is received", extra={"reason": words})
        self._health.down(words)
        seconds = backoff_s[min(attempt, len(backoff_s) - 1)]
        await self._clock.sleep(error.seconds if isinstance(error, FloodWait) else seconds)


def _is_numbered(update: Update) -> bool:
    number = integer(update.get("update_id"))
    return number is not None and number >= 0
