"""Begin runs by the signed requests of other services.

A request is checked before it is read as JSON: its headers, its age, and its HMAC-SHA-256 over the raw body,
compared in constant time. Its signature is the key of the message, which the inbox keeps: a request that
comes again, also after a restart, leads to the same run. What it says is text of others, never words of the
person as whom the run is made.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import re

from aiohttp import web

from adapters.api.bodies import BodyReader, parsed, storable
from adapters.api.problems import RequestRefused, invalid
from adapters.api.run_ids import run_id_of
from adapters.api.run_service import Begun, RunService
from adapters.api.settings import ApiOptions, Webhook
from pipeline.domain.clock import Clock
from pipeline.domain.errors import ConfigurationError, InvalidInput

_log = logging.getLogger(__name__)
_AT_ONCE = 32
"""Bodies of unknown senders that are read at the same time."""
_SIGNATURE = re.compile(r"(?:sha256=|v1=)?([0-9A-Fa-f]{64})")
_STAMP = re.compile(r"[0-9]{1,12}")


class Webhooks:
    """The inbound webhooks."""

    def __init__(self, settings: ApiOptions, service: RunService, bodies: BodyReader, clock: Clock) -> None:
        self._settings = settings
        self._service = service
        self._bodies = bodies
        self._clock = clock
        self._reading = asyncio.Semaphore(_AT_ONCE)

    async def begin(self, request: web.Request) -> Begun:
        """Begin the run that a request asks for, once for each signature. Raises RequestRefused."""
        webhook = self._settings.webhooks.get(request.match_info["name"])
        if webhook is None:
            raise RequestRefused(404, "There is no such webhook.", unread=True)
        stamp, signature = self._headers(webhook, request)
        if self._reading.locked():
            raise RequestRefused(
                503, "Too many requests are being read.", headers={"Retry-After": "1"}, unread=True
            )
        async with self._reading:
            body = await self._bodies.raw(request)
        if not _signed(webhook, stamp, body, signature):
            raise _forged()
        text = self._text(webhook, body)
        run_id = run_id_of(webhook.workflow, webhook.name, signature.hex())
        native = f"webhook:{webhook.name}:{signature.hex()}"
        return await self._service.begin(webhook.person, run_id, native, text, foreign=True)

    def _headers(self, webhook: Webhook, request: web.Request) -> tuple[str, bytes]:
        """The time and the signature of a request. Raises RequestRefused unless each is there once, well
        formed, and the time is near."""
        signature = _SIGNATURE.fullmatch(_once(request, webhook.signature_header))
        if signature is None:
            raise _forged()
        if not webhook.timestamp_header:
            return "", bytes.fromhex(signature[1])
        stamp = _once(request, webhook.timestamp_header)
        if _STAMP.fullmatch(stamp) is None:
            raise _forged()
        if abs(self._clock.now() - int(stamp)) > webhook.tolerance_s:
            raise RequestRefused(401, "The time of this request is too far from now.", unread=True)
        return stamp, bytes.fromhex(signature[1])

    def _text(self, webhook: Webhook, body: bytes) -> str:
        value = parsed(body)
        try:
            text = webhook.message.filled(value)
        except InvalidInput as error:
            raise invalid("body", str(error)) from error
        except RecursionError:
            raise invalid("body", "it is nested too deeply") from None
        if not text.strip():
            raise invalid("body", "the message that it makes is empty")
        if len(text) > self._settings.max_input:
            raise invalid(
                "body", f"the message that it makes is longer than {self._settings.max_input} characters"
            )
        if not storable(text):
            raise invalid("body", "it holds half of a surrogate pair, which is no text")
        return text


def _once(request: web.Request, header: str) -> str:
    given = request.headers.getall(header, [])
    return given[0].strip() if len(given) == 1 else ""


def _signed(webhook: Webhook, stamp: str, body: bytes, signature: bytes) -> bool:
    try:
        secret = webhook.secret()
    except ConfigurationError as error:
        _log.error(
            "the secret of a webhook cannot be read", extra={"webhook": webhook.name, "reason": str(error)}
        )
        return False
    text = f"{stamp}.".encode() + body if webhook.timestamp_header else body
    return hmac.compare_digest(hmac.new(secret.encode(), text, hashlib.sha256).digest(), signature)


def _forged() -> RequestRefused:
    return RequestRefused(401, "The signature of this request is missing or wrong.", unread=True)
