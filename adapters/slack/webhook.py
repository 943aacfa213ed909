"""Receive the Events API over HTTP: one route for events, buttons and commands, which rejects unsigned
requests.

Rejected before a byte of the body is read: a missing, doubled or stale header, and a body that is declared
too long. The body is read raw, up to 1 MiB and for 5 seconds, and its signature compared in constant time. A
signature is valid once: Slack signs each of its retries separately.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl

from aiohttp import web

from adapters.json_fields import text
from adapters.slack.dispatch import SlackResponse
from adapters.slack.inbound import Bot, teams_of
from adapters.slack.settings import SlackOptions
from pipeline.domain.clock import Clock

MAX_BODY = 1024 * 1024
READ_S = 5.0
FRESH_S = 300.0
_SMALL_BODY = 64 * 1024
_MOST_AT_ONCE = 256
_MOST_LARGE = 8
"""Concurrent requests with large bodies: unverified requests must not fill the memory."""
_MOST_SEEN = 50_000
_STAMP = re.compile(r"[0-9]{1,12}")
_SIGNATURE = re.compile(r"v0=([0-9a-f]{64})")
_FORM = "application/x-www-form-urlencoded"


class EventsWebhook:
    """The route's handler. It answers 503 while the channel does not run."""

    def __init__(self, settings: SlackOptions, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._seen: dict[bytes, float] = {}
        """Used signatures, with the time at which they become stale."""
        self._at_once = 0
        self._large = 0
        self._bot: Bot | None = None
        self._dispatch: Callable[[Mapping[str, Any]], Awaitable[SlackResponse]] | None = None
        self._later: Callable[[Callable[[], Awaitable[None]]], None] | None = None
        self._on_frame: Callable[[], None] | None = None

    def open(
        self,
        bot: Bot,
        dispatch: Callable[[Mapping[str, Any]], Awaitable[SlackResponse]],
        *,
        later: Callable[[Callable[[], Awaitable[None]]], None],
        on_frame: Callable[[], None],
    ) -> None:
        """Accept requests. `later` runs the work that remains after an answer."""
        self._bot, self._dispatch, self._later, self._on_frame = bot, dispatch, later, on_frame

    def close(self) -> None:
        """Reject everything from now on, so that Slack delivers it again later."""
        self._dispatch = None

    async def handle(self, request: web.Request) -> web.Response:
        """The route's handler."""
        if self._dispatch is None:
            return web.Response(status=503)
        if self._at_once >= _MOST_AT_ONCE:
            return web.Response(status=503)
        self._at_once += 1
        try:
            return await self._checked(request)
        finally:
            self._at_once -= 1

    async def _checked(self, request: web.Request) -> web.Response:
        stamp, signature = self._headers(request)
        if not stamp or not signature:
            return web.Response(status=401)
        if request.content_length is not None and request.content_length > MAX_BODY:
            return web.Response(status=413)
        try:
            async with self._clock.timeout(READ_S):
                body = await self._read(request)
        except TimeoutError:
            return web.Response(status=408)
        if body is None:
            return web.Response(status=413)
        if not self._signed(stamp, body, signature) or signature in self._seen:
            return web.Response(status=401)
        self._remember(signature)
        response = await self._take(body, request.content_type)
        if response.status != 200:
            self._seen.pop(signature, None)
        return response

    # -- who it is from -----------------------------------------------------------------------------

    def _headers(self, request: web.Request) -> tuple[str, bytes]:
        """Timestamp and signature, decoded; empty unless each occurs once, well formed and fresh."""
        stamps = request.headers.getall("X-Slack-Request-Timestamp", [])
        signatures = request.headers.getall("X-Slack-Signature", [])
        if len(stamps) != 1 or len(signatures) != 1 or not _STAMP.fullmatch(stamps[0]):
            return "", b""
        found = _SIGNATURE.fullmatch(signatures[0])
        if found is None or abs(self._clock.now() - int(stamps[0])) > FRESH_S:
            return "", b""
        return stamps[0], bytes.fromhex(found[1])

    def _signed(self, stamp: str, body: bytes, signature: bytes) -> bool:
        secret = self._settings.signing_secret() if self._settings.signing_secret is not None else ""
        if not secret.strip():
            return False
        base = f"v0:{stamp}:".encode() + body
        expected = hmac.new(secret.strip().encode(), base, hashlib.sha256).digest()
        return hmac.compare_digest(expected, signature)

    def _remember(self, signature: bytes) -> None:
        now = self._clock.now()
        while self._seen:
            oldest = next(iter(self._seen))
            if self._seen[oldest] > now and len(self._seen) < _MOST_SEEN:
                break
            del self._seen[oldest]
        # A timestamp in the future stays fresh for longer.
        self._seen[signature] = now + 2 * FRESH_S

    # -- what it says -------------------------------------------------------------------------------

    async def _read(self, request: web.Request) -> bytes | None:
        """The raw body; None if it is too long, or large while too many others are."""
        body = bytearray()
        large = False
        try:
            async for chunk in request.content.iter_chunked(_SMALL_BODY):
                body += chunk
                if len(body) > _SMALL_BODY and not large:
                    if self._large >= _MOST_LARGE:
                        return None
                    large = True
                    self._large += 1
                if len(body) > MAX_BODY:
                    return None
            return bytes(body)
        finally:
            self._large -= large

    async def _take(self, body: bytes, content_type: str) -> web.Response:
        payload = read_body(body, content_type)
        dispatch, bot = self._dispatch, self._bot
        if payload is None or dispatch is None or bot is None:
            return web.Response(status=400 if payload is None else 503)
        if self._on_frame is not None:
            self._on_frame()
        if payload.get("type") == "url_verification":
            return web.Response(text=text(payload.get("challenge"), most=200), content_type="text/plain")
        if not is_for(payload, bot):
            return web.Response(status=403)
        answer = await dispatch(payload)
        if not answer.acked:
            return web.Response(status=503)
        if answer.after is not None and self._later is not None:
            self._later(answer.after)
        return web.Response() if answer.body is None else web.json_response(dict(answer.body))


def read_body(body: bytes, content_type: str) -> Mapping[str, Any] | None:
    """The payload in a JSON body, a form's field `payload`, or a form; None for anything else."""
    try:
        if content_type != _FORM:
            found = json.loads(body)
        else:
            form = dict(parse_qsl(body.decode(), max_num_fields=50, strict_parsing=True))
            found = json.loads(form["payload"]) if "payload" in form else form
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def is_for(payload: Mapping[str, Any], bot: Bot) -> bool:
    """Whether a payload is for this bot: its team is named, and no other app than its own."""
    app = payload.get("api_app_id")
    if not isinstance(app, str) or (bot.app and app != bot.app):
        return False
    return bot.team in teams_of(payload)
