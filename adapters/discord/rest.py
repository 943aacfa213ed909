"""Discord's REST API through discord.py's HTTP client: one attempt per call, in at most 15 seconds.

By itself discord.py sleeps through a 429 and repeats after a 5xx. Waiting and repeating are the gateway's,
so both end the call at once here. What discord.py still does: it waits before a call that would exceed a
limit that Discord has told it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import aiohttp

from adapters.discord.payload import mapping
from adapters.discord.sdk import Route, discord
from pipeline.domain.clock import Clock

_CALL_S = 15.0
_TOO_MANY = 429
_SERVER_ERROR = 500
_BANNED_S = 60.0
"""How long to wait when a 429 comes from the network in front of Discord, which names no time."""


class NotConnected(Exception):
    """There is no client now."""


class TooManyRequests(Exception):
    """429. `retry_after_s` in seconds; `whole_account` when it counts for everything the bot does."""

    def __init__(self, retry_after_s: float, *, whole_account: bool) -> None:
        super().__init__(f"Discord asks to wait {retry_after_s:g} s")
        self.retry_after_s = retry_after_s
        self.whole_account = whole_account


class ServerFailed(Exception):
    """5xx: nobody knows whether it was done."""

    def __init__(self, status: int) -> None:
        super().__init__(f"Discord answered {status}")
        self.status = status


def one_attempt() -> aiohttp.TraceConfig:
    """For discord.py's `http_trace`: raises TooManyRequests and ServerFailed out of the request itself."""
    config = aiohttp.TraceConfig()
    config.on_request_end.append(_judge)
    return config


async def _judge(_: aiohttp.ClientSession, __: object, params: aiohttp.TraceRequestEndParams) -> None:
    response = params.response
    if response.status != _TOO_MANY and response.status < _SERVER_ERROR:
        return
    body = await response.read()
    if response.status >= _SERVER_ERROR:
        raise ServerFailed(response.status)
    raise _too_many(body, response.headers)


def _too_many(body: bytes, headers: Mapping[str, str]) -> TooManyRequests:
    try:
        answer = mapping(json.loads(body))
        wait_s = float(answer["retry_after"])
    except (ValueError, KeyError, TypeError):
        return TooManyRequests(_BANNED_S, whole_account=True)
    shared = headers.get("X-RateLimit-Scope") == "global" or bool(answer.get("global"))
    return TooManyRequests(max(0.0, wait_s), whole_account=shared)


class Rest:
    """The calls that the channel needs. `client` gives the one client, or raises NotConnected.

    Every method raises discord.HTTPException, TooManyRequests, ServerFailed, aiohttp.ClientError, OSError,
    TimeoutError or NotConnected; `failures.classify` knows them all.
    """

    def __init__(self, client: Callable[[], discord.Client], clock: Clock) -> None:
        self._client = client
        self._clock = clock

    async def create_message(
        self, channel: str, body: Mapping[str, Any], *, file: bytes | None = None, file_name: str = ""
    ) -> Mapping[str, Any]:
        """The new message."""
        route = Route("POST", "/channels/{channel_id}/messages", channel_id=channel)
        return mapping(await self._send(route, body, file, file_name))

    async def edit_message(
        self,
        channel: str,
        message: str,
        body: Mapping[str, Any],
        *,
        file: bytes | None = None,
        file_name: str = "",
    ) -> Mapping[str, Any]:
        """The message as it is now."""
        route = Route(
            "PATCH", "/channels/{channel_id}/messages/{message_id}", channel_id=channel, message_id=message
        )
        return mapping(await self._send(route, body, file, file_name))

    async def messages_after(self, channel: str, after: int, *, limit: int) -> list[Mapping[str, Any]]:
        """The oldest `limit` messages with a greater id than `after`, oldest first."""
        route = Route("GET", "/channels/{channel_id}/messages", channel_id=channel)
        answer = await self._call(route, params={"after": str(after), "limit": str(limit)})
        messages = [mapping(one) for one in answer] if isinstance(answer, list) else []
        return sorted(messages, key=lambda one: int(one["id"]))

    async def message(self, channel: str, message: str) -> Mapping[str, Any]:
        """One message."""
        path = "/channels/{channel_id}/messages/{message_id}"
        return mapping(await self._call(Route("GET", path, channel_id=channel, message_id=message)))

    async def channel(self, channel: str) -> Mapping[str, Any]:
        """One channel."""
        return mapping(await self._call(Route("GET", "/channels/{channel_id}", channel_id=channel)))

    async def typing(self, channel: str) -> None:
        """Show the bot as typing, for ten seconds."""
        await self._call(Route("POST", "/channels/{channel_id}/typing", channel_id=channel))

    async def set_commands(self, application: str, commands: Sequence[Mapping[str, Any]]) -> None:
        """Make these the application's slash commands, everywhere."""
        route = Route("PUT", "/applications/{application_id}/commands", application_id=application)
        await self._call(route, json=list(commands))

    async def answer_interaction(self, interaction: str, token: str, body: Mapping[str, Any]) -> None:
        """The one answer within three seconds."""
        path = "/interactions/{webhook_id}/{webhook_token}/callback"
        await self._call(Route("POST", path, webhook_id=interaction, webhook_token=token), json=body)

    async def follow_up(self, application: str, token: str, body: Mapping[str, Any]) -> None:
        """One more message to an answered interaction."""
        path = "/webhooks/{webhook_id}/{webhook_token}"
        await self._call(Route("POST", path, webhook_id=application, webhook_token=token), json=body)

    async def edit_answer(self, application: str, token: str, body: Mapping[str, Any]) -> None:
        """Change the message whose button was pressed, or the answer that was put off."""
        path = "/webhooks/{webhook_id}/{webhook_token}/messages/@original"
        await self._call(Route("PATCH", path, webhook_id=application, webhook_token=token), json=body)

    async def _send(self, route: Route, body: Mapping[str, Any], file: bytes | None, file_name: str) -> Any:
        if file is None:
            return await self._call(route, json=body)
        payload = {**body, "attachments": [{"id": 0, "filename": file_name}]}
        form = [
            {"name": "payload_json", "value": json.dumps(payload), "content_type": "application/json"},
            {
                "name": "files[0]",
                "value": file,
                "filename": file_name,
                "content_type": "application/octet-stream",
            },
        ]
        return await self._call(route, form=form)

    async def _call(self, route: Route, **what: Any) -> Any:
        client = self._client()
        async with self._clock.timeout(_CALL_S):
            return await client.http.request(route, **what)
