"""Discord's REST API through discord.py's HTTP client: one attempt per call, in at most 15 seconds, or 90
with a file.

discord.py would sleep through a 429 and retry after a 5xx. The gateway waits and retries, so both end the
call at once here. discord.py still delays a call that would exceed a limit reported by Discord.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import aiohttp

from adapters.discord.payload import snowflake
from adapters.discord.sdk import Route, discord
from adapters.json_fields import mapping
from adapters.withheld import before_headers
from pipeline.domain.clock import Clock

_CHANNEL = "/channels/{channel_id}"
_MESSAGES = _CHANNEL + "/messages"
_MESSAGE = _MESSAGES + "/{message_id}"
_REACTION = _MESSAGE + "/reactions/{emoji}/@me"
_WEBHOOK = "/webhooks/{webhook_id}/{webhook_token}"
_BINARY = "application/octet-stream"
VOICE_NAME = "voice-message.ogg"
_CALL_S = 15.0
_UPLOAD_S = 90.0
_TOO_MANY = 429
_SERVER_ERROR = 500
_BANNED_S = 60.0
"""Seconds to wait after a 429 from the network in front of Discord, which names no time."""


class NotConnected(Exception):
    """There is no logged-in client."""


class TooManyRequests(aiohttp.ClientError):
    """429. `retry_after_s` in seconds; `whole_account` when it applies to all calls of the bot."""

    def __init__(self, retry_after_s: float, *, whole_account: bool) -> None:
        super().__init__(f"Discord asks to wait {retry_after_s:g} s")
        self.retry_after_s = retry_after_s
        self.whole_account = whole_account


class ServerFailed(aiohttp.ClientError):
    """5xx: it is unknown whether the call took effect. In the gateway's handshake discord.py treats it as a
    failed connection, which is retried."""

    def __init__(self, status: int) -> None:
        super().__init__(f"Discord answered {status}")
        self.status = status


def one_attempt() -> aiohttp.TraceConfig:
    """For discord.py's `http_trace`: raises RequestWithheld, TooManyRequests and ServerFailed within the
    request itself."""
    config = aiohttp.TraceConfig()
    config.on_request_headers_sent.append(before_headers)
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
    """The calls that the channel needs. `client` returns the logged-in client, or raises NotConnected.

    Every method raises discord.HTTPException, TooManyRequests, ServerFailed, RequestWithheld, OSError,
    aiohttp.ClientError, TimeoutError or NotConnected; `failures.classify` knows them all.
    """

    def __init__(self, client: Callable[[], Awaitable[discord.Client]], clock: Clock) -> None:
        self._client = client
        self._clock = clock

    async def create_message(
        self, channel: str, body: Mapping[str, Any], *, file: bytes | None = None, file_name: str = ""
    ) -> Mapping[str, Any]:
        """The new message."""
        what = _content(body, file, file_name)
        return mapping(await self._call("POST", _MESSAGES, what, channel_id=channel))

    async def create_voice_message(
        self, channel: str, body: Mapping[str, Any], sound: bytes, about: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Post a message whose only attachment is `sound`, OGG with Opus. Discord requires its length and its
        waveform in `about`; the new message."""
        what = _form(body, sound, VOICE_NAME, mime="audio/ogg", about=about)
        return mapping(await self._call("POST", _MESSAGES, what, channel_id=channel))

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
        what = _content(body, file, file_name)
        return mapping(await self._call("PATCH", _MESSAGE, what, channel_id=channel, message_id=message))

    async def messages_after(self, channel: str, after: int, *, limit: int) -> list[Mapping[str, Any]]:
        """The oldest `limit` messages with a greater id than `after`, oldest first."""
        what = {"params": {"after": str(after), "limit": str(limit)}}
        answer = await self._call("GET", _MESSAGES, what, channel_id=channel)
        messages = [mapping(one) for one in answer] if isinstance(answer, list) else []
        return sorted(messages, key=lambda one: int(one["id"]))

    async def messages_before(self, channel: str, before: int, *, limit: int) -> list[Mapping[str, Any]]:
        """The newest `limit` messages with a smaller id than `before`, or of all with 0; oldest first."""
        params = {"limit": str(limit)} | ({"before": str(before)} if before else {})
        answer = await self._call("GET", _MESSAGES, {"params": params}, channel_id=channel)
        messages = [mapping(one) for one in answer] if isinstance(answer, list) else []
        return sorted(messages, key=lambda one: int(one["id"]))

    async def message(self, channel: str, message: str) -> Mapping[str, Any]:
        """One message."""
        return mapping(await self._call("GET", _MESSAGE, channel_id=channel, message_id=message))

    async def direct_chat(self, user: str) -> str:
        """The id of the bot's direct chat with a person, who gets no notice; empty where Discord returns
        none."""
        answer = await self._call("POST", "/users/@me/channels", {"json": {"recipient_id": user}})
        return snowflake(mapping(answer).get("id"))

    async def channel(self, channel: str) -> Mapping[str, Any]:
        """One channel."""
        return mapping(await self._call("GET", _CHANNEL, channel_id=channel))

    async def typing(self, channel: str) -> None:
        """Show the bot as typing for ten seconds."""
        await self._call("POST", _CHANNEL + "/typing", channel_id=channel)

    async def react(self, channel: str, message: str, emoji: str) -> None:
        """Put the bot's reaction on a message."""
        await self._call("PUT", _REACTION, channel_id=channel, message_id=message, emoji=emoji)

    async def unreact(self, channel: str, message: str, emoji: str) -> None:
        """Remove the bot's reaction from a message."""
        await self._call("DELETE", _REACTION, channel_id=channel, message_id=message, emoji=emoji)

    async def set_commands(self, application: str, commands: Sequence[Mapping[str, Any]]) -> None:
        """Set the application's global slash commands."""
        path = "/applications/{application_id}/commands"
        await self._call("PUT", path, {"json": list(commands)}, application_id=application)

    async def answer_interaction(self, interaction: str, token: str, body: Mapping[str, Any]) -> None:
        """Send the one answer that must come within three seconds."""
        path = "/interactions/{webhook_id}/{webhook_token}/callback"
        await self._call("POST", path, {"json": body}, webhook_id=interaction, webhook_token=token)

    async def follow_up(self, application: str, token: str, body: Mapping[str, Any]) -> None:
        """Send one more message to an answered interaction."""
        await self._call("POST", _WEBHOOK, {"json": body}, webhook_id=application, webhook_token=token)

    async def edit_answer(self, application: str, token: str, body: Mapping[str, Any]) -> None:
        """Change the message with the pressed button, or the deferred answer."""
        path = _WEBHOOK + "/messages/@original"
        await self._call("PATCH", path, {"json": body}, webhook_id=application, webhook_token=token)

    async def _call(self, method: str, path: str, what: Mapping[str, Any] | None = None, **place: str) -> Any:
        client = await self._client()
        # The route contains the server's address: it is created when there is a client.
        route = Route(method, path, **place)
        async with self._clock.timeout(_UPLOAD_S if what and "form" in what else _CALL_S):
            return await client.http.request(route, **(what or {}))


def _content(body: Mapping[str, Any], file: bytes | None, file_name: str) -> dict[str, Any]:
    """The arguments for discord.py: JSON, or a form when there is a file."""
    if file is None:
        return {"json": body}
    return _form(body, file, file_name, mime=_BINARY, about={})


def _form(
    body: Mapping[str, Any], file: bytes, file_name: str, *, mime: str, about: Mapping[str, Any]
) -> dict[str, Any]:
    said, *_ = body.get("attachments") or [{}]
    payload = {**body, "attachments": [{"id": 0, "filename": file_name, **said, **about}]}
    fields = {"name": "payload_json", "value": json.dumps(payload), "content_type": "application/json"}
    content = {"name": "files[0]", "value": file, "filename": file_name, "content_type": mime}
    return {"form": [fields, content]}
