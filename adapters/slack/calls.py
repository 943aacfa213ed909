"""The Web API through slack-sdk: one attempt per call, the token read for each call, errors classified.

The SDK's retries are off: waiting, order and retries are the gateway's task.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse
from slack_sdk.webhook.async_client import AsyncWebhookClient

from adapters.channel import Failure
from adapters.json_fields import mapping
from adapters.slack.failures import CALL_ERRORS, CallFailed, failed
from adapters.slack.settings import SlackOptions
from adapters.withheld import before_headers, check_before_request
from pipeline.domain.clock import Clock
from pipeline.domain.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_CALL_S = 15.0
_UPLOAD_S = 150.0
"""For one of the largest files over a slow line; less than the gateway's limit for a call."""
_SLACK = "slack.com"


def quiet_logger() -> logging.Logger:
    """A logger that drops everything, for the SDK, whose lines contain payloads and sockets' addresses."""
    quiet = logging.getLogger("adapters.slack.sdk")
    quiet.setLevel(logging.CRITICAL + 1)
    quiet.propagate = False
    return quiet


class Calls:
    """Calls Slack on behalf of one bot."""

    def __init__(self, settings: SlackOptions, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._client, self._uploads = (
            AsyncWebClient(
                base_url=settings.api_url, retry_handlers=[], logger=quiet_logger(), timeout=int(seconds)
            )
            for seconds in (_CALL_S, _UPLOAD_S)
        )

    @property
    def session(self) -> aiohttp.ClientSession | None:
        """The connections of `connected`; None outside of it."""
        return self._client.session

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[aiohttp.ClientSession]:
        """Open connections that calls share within the block; outside of it each call opens its own."""
        checked = aiohttp.TraceConfig()
        checked.on_request_headers_sent.append(before_headers)
        async with aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
            trace_configs=[checked],
        ) as session:
            self._client.session = self._uploads.session = session
            try:
                yield session
            finally:
                self._client.session = self._uploads.session = None

    async def run(
        self,
        method: str,
        ask: Callable[[AsyncWebClient], Awaitable[AsyncSlackResponse]],
        *,
        uploads: bool = False,
    ) -> Mapping[str, Any]:
        """One call with the bot's token; one that `uploads` a file may take longer. Raises CallFailed;
        cancellation passes."""
        return mapping((await self._run(method, ask, uploads=uploads)).data)

    async def scopes(self) -> frozenset[str] | None:
        """The scopes of the bot's token; None where Slack does not say. Raises as `run`."""
        response = await self._run("auth.test", lambda client: client.auth_test())
        headers = {name.lower(): str(value) for name, value in response.headers.items()}
        listed = headers.get("x-oauth-scopes")
        return None if listed is None else frozenset(filter(None, map(str.strip, listed.split(","))))

    async def _run(
        self,
        method: str,
        ask: Callable[[AsyncWebClient], Awaitable[AsyncSlackResponse]],
        *,
        uploads: bool = False,
    ) -> AsyncSlackResponse:
        client, limit_s = (self._uploads, _UPLOAD_S) if uploads else (self._client, _CALL_S)
        try:
            client.token = self._settings.bot_token().strip()
        except ConfigurationError as error:
            raise CallFailed(Failure(kind="auth", message=str(error))) from None
        try:
            check_before_request()  # without a shared session nothing else does
            async with self._clock.timeout(limit_s):
                return await ask(client)
        except CALL_ERRORS as error:
            # Without the cause: the SDK's exception contains the request with its token.
            raise failed(method, error) from None

    async def respond(self, url: str, text: str) -> None:
        """Send text that only the user who pressed sees. Raises CallFailed."""
        if not self.ours(url):
            raise CallFailed(Failure(kind="invalid", message="the response_url is not one of Slack's"))
        client = AsyncWebhookClient(url, session=self.session, retry_handlers=[], logger=quiet_logger())
        try:
            async with self._clock.timeout(_CALL_S):
                await client.send(
                    text=text,
                    response_type="ephemeral",
                    replace_original=False,
                    unfurl_links=False,
                    unfurl_media=False,
                )
        except CALL_ERRORS as error:
            raise failed("response_url", error) from None

    def ours(self, url: str) -> bool:
        """Whether the address is the platform's: slack.com and its subdomains by HTTPS, or the exact
        address of `api_base`."""
        try:
            parts, base = urlsplit(url), urlsplit(self._settings.api_url)
            same = (parts.scheme, parts.hostname, parts.port) == (base.scheme, base.hostname, base.port)
        except ValueError:
            return False
        host = parts.hostname or ""
        if parts.username or parts.password:
            return False
        secure = parts.scheme == "https" and parts.port in (None, 443)
        return same or (secure and (host == _SLACK or host.endswith(f".{_SLACK}")))
