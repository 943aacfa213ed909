"""Receive by webhook: Telegram posts each update to the gateway's HTTP server.

A request without the secret is rejected before a byte of its body is read. 200 means durable; Telegram
sends everything else again.
"""

from __future__ import annotations

import hmac
import json
import logging
from collections.abc import Iterable, Mapping
from typing import Any

from aiohttp import web
from telegram.error import BadRequest, InvalidToken, TelegramError

from adapters.health import HealthTracker
from adapters.json_fields import integer, mapping, text
from adapters.telegram.api import TelegramApi
from adapters.telegram.failures import classify, words_of
from adapters.telegram.inbound import ALLOWED_UPDATES
from adapters.telegram.polling import REFUSED
from adapters.telegram.receiving import Receiver
from adapters.telegram.settings import TelegramOptions
from pipeline.domain.clock import Clock
from pipeline.domain.errors import ConfigurationError

_log = logging.getLogger(__name__)

SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105 - a header's name
MAX_BODY = 1024 * 1024
_READ_S = 5.0
_LOOK_EVERY_S = 50.0


class TelegramWebhook:
    """The route, and the registration with Telegram."""

    def __init__(
        self, settings: TelegramOptions, api: TelegramApi, health: HealthTracker, clock: Clock
    ) -> None:
        self._settings = settings
        self._api = api
        self._health = health
        self._clock = clock
        self._receiver: Receiver | None = None

    def routes(self) -> Iterable[web.RouteDef]:
        """The routes for the gateway's server. While no `run` is active, every request gets 503."""
        return (web.post(self._settings.webhook_path, self._on_post),)

    async def run(self, receiver: Receiver) -> None:
        """Register and receive until cancelled. Raises ConfigurationError for settings that Telegram
        rejects."""
        self._receiver = receiver
        registered = ""
        try:
            while True:
                secret = self._settings.secret()
                if registered != secret or await self._is_lost():
                    registered = await self._register(secret)
                await self._clock.sleep(_LOOK_EVERY_S)
        except InvalidToken:
            raise ConfigurationError(REFUSED) from None
        finally:
            self._receiver = None

    async def _register(self, secret: str) -> str:
        """Register the address at Telegram; the secret now in use, or empty where that failed."""
        params = {
            "url": self._settings.webhook_url,
            "secret_token": secret,
            "allowed_updates": list(ALLOWED_UPDATES),
        }
        try:
            await self._api.call("setWebhook", params)
        except BadRequest as error:
            raise ConfigurationError(
                f"channels.telegram.webhook_url: Telegram refuses it: {words_of(error)}"
            ) from None
        except InvalidToken:
            raise
        except TelegramError as error:
            self._health.down(classify(error).message)
            return ""
        self._health.received()
        self._health.up()
        return secret

    async def _is_lost(self) -> bool:
        """Whether Telegram now posts to another address; also updates the health from its delivery errors."""
        try:
            info = mapping(await self._api.call("getWebhookInfo", {}))
        except InvalidToken:
            raise
        except TelegramError as error:
            self._health.down(classify(error).message)
            return False
        trouble = text(info.get("last_error_message"), most=200)
        if trouble and integer(info.get("pending_update_count")):
            self._health.down(f"Telegram cannot deliver to channels.telegram.webhook_url: {trouble}")
        else:
            self._health.received()
            self._health.up()
        return info.get("url") != self._settings.webhook_url

    async def _on_post(self, request: web.Request) -> web.Response:
        if not self._knows_secret(request):
            return _turned_away(401)
        if self._receiver is None:
            return _turned_away(503)
        body = await self._body(request)
        if isinstance(body, web.Response):
            return body
        update = _update(body)
        if update is None:
            return _turned_away(400)
        try:
            await self._receiver.take([update])
        except Exception as error:  # noqa: BLE001 - after any failure it is not durable, so Telegram keeps it
            _log.warning("an update is not stored: %s", type(error).__name__)
            return _turned_away(503)
        self._health.received()
        self._health.up()
        return web.Response()

    def _knows_secret(self, request: web.Request) -> bool:
        presented = request.headers.getall(SECRET_HEADER, [])
        if len(presented) != 1:
            return False
        try:
            secret = self._settings.secret()
        except ConfigurationError:
            return False
        # As bytes: compare_digest takes only ASCII text, and a header may contain other characters.
        return hmac.compare_digest(presented[0].encode("utf-8", "surrogatepass"), secret.encode())

    async def _body(self, request: web.Request) -> bytes | web.Response:
        if request.content_length is not None and request.content_length > MAX_BODY:
            return _turned_away(413)
        body = bytearray()
        try:
            async with self._clock.timeout(_READ_S):
                async for chunk in request.content.iter_any():
                    body += chunk
                    if len(body) > MAX_BODY:
                        return _turned_away(413)
        except TimeoutError:
            return _turned_away(408)
        return bytes(body)


def _update(body: bytes) -> Mapping[str, Any] | None:
    try:
        update = json.loads(body)
    except (ValueError, RecursionError):
        return None
    number = integer(mapping(update).get("update_id"))
    return mapping(update) if number is not None and number >= 0 else None


def _turned_away(status: int) -> web.Response:
    response = web.Response(status=status)
    # The rest of the body is not awaited.
    response.force_close()
    return response
