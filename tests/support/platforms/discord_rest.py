"""The fake Discord's REST API, as far as a text bot needs it: /api/v10, plus the CDN's download path."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from pipeline.domain.clock import Clock
from tests.support.platforms.discord_interactions import Interactions
from tests.support.platforms.discord_limits import (
    FILE_BYTES,
    REQUEST_BYTES,
    TOO_LARGE,
    Bucket,
    Refused,
    check_message,
    check_voice,
)
from tests.support.platforms.discord_reactions import Reactions
from tests.support.platforms.discord_world import DM, MASS_MENTION, Channel, Message, StoredFile, World
from tests.support.platforms.platform import Call, Fault, Faults

Answer = tuple[int, Any]
Handler = Callable[[web.Request, dict[str, Any], list[StoredFile]], Awaitable[Answer]]
_SHOWS = frozenset({"create_message", "edit_message", "followup", "edit_original"})
_BUCKETED = frozenset({"create_message", "edit_message", "delete_message", "typing", "get_messages"})
_NO_AUTH = frozenset({"interaction_callback", "followup", "edit_original"})
NONCE_WINDOW_S = 300.0
_PREFIX = "/api/v10"


class Rest:
    """The HTTP side of one fake platform."""

    def __init__(
        self, world: World, interactions: Interactions, clock: Clock, changed: Callable[[], None]
    ) -> None:
        self._world = world
        self._interactions = interactions
        self._clock = clock
        self._changed = changed
        self.on_message: Callable[[Message, str], Awaitable[None]]
        self.token = ""
        self.faults = Faults()
        self.calls: list[Call] = []
        self.lenient = False
        self.commands: list[dict[str, Any]] = []
        self.reactions = Reactions()
        self.typing: list[str] = []
        self.mass_mentions: list[str] = []
        """Messages of the bot that pinged the whole channel."""
        self.pings: list[str] = []
        """Messages of the bot that pinged single users."""
        self.embedding: list[str] = []
        """Messages of the bot that let the platform fetch their links."""
        self.application_flags: Callable[[], int] = lambda: 0
        """The application's current `flags`, including its privileged intents."""
        self.interactions_endpoint: str | None = None
        self.servers = {"Parlour": 274_878_008_320}
        """The servers that the bot is in, with its permissions there."""
        self.cdn_redirect, self.cdn_hits = "", 0
        self.cdn_extra = b""
        """Sent after a file's bytes, beyond the announced size."""
        self.file_failures: list[int] = []
        """HTTP statuses that the next downloads are answered with."""
        self._nonces: dict[tuple[str, str], tuple[float, Message]] = {}
        self._buckets: dict[tuple[str, str], Bucket] = {}
        self.closing = asyncio.Event()

    def routes(self) -> list[web.RouteDef]:
        """Everything the bot may call."""
        channel, hook = "/channels/{channel}", "/webhooks/{app}/{token}"
        table: list[tuple[str, str, str, Handler]] = [
            ("GET", "/gateway/bot", "gateway_bot", self._gateway_bot),
            ("GET", "/users/@me", "me", self._me),
            ("GET", "/users/@me/guilds", "guilds", self._guilds),
            ("POST", "/users/@me/channels", "open_dm", self._open_dm),
            ("GET", "/oauth2/applications/@me", "application", self._application),
            ("GET", "/applications/@me", "application", self._application),
            ("PUT", "/applications/{app}/commands", "put_commands", self._put_commands),
            ("GET", channel, "get_channel", self._get_channel),
            ("GET", channel + "/messages", "get_messages", self._get_messages),
            ("POST", channel + "/messages", "create_message", self._create),
            ("GET", channel + "/messages/{message}", "get_message", self._get_message),
            ("PATCH", channel + "/messages/{message}", "edit_message", self._edit),
            ("DELETE", channel + "/messages/{message}", "delete_message", self._delete),
            ("POST", channel + "/typing", "typing", self._typing),
            *self.reactions.routes(channel),
            ("POST", "/interactions/{id}/{token}/callback", "interaction_callback", self._callback),
            ("POST", hook, "followup", self._followup),
            ("PATCH", hook + "/messages/@original", "edit_original", self._edit_original),
        ]
        api = [
            web.route(method, _PREFIX + path, self._guarded(name, handler))
            for method, path, name, handler in table
        ]
        return [*api, web.get("/attachments/{channel}/{file}/{name}", self._download)]

    # -- checks and faults of every request -------------------------------------------------------

    def _guarded(self, name: str, handler: Handler) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def serve(request: web.Request) -> web.StreamResponse:
            payload, files, refused = await self._read(request, name)
            fault = self.faults.next_for(name, shows=name in _SHOWS)
            status, body, headers = await self._play(request, name, handler, payload, files, fault, refused)
            self.calls.append(Call(method=name, payload=payload, status=status, at=self._clock.monotonic()))
            self._changed()
            if status == 0:
                return await self._no_answer(request, fault)
            if self.faults.answer_delay_s:
                await self._clock.sleep(self.faults.answer_delay_s)
            # Exactly this type, without a charset: the SDK compares the whole header.
            raw = b"" if status == 204 else json.dumps(body).encode()
            headers = {"Via": "1.1 google", **headers}
            if raw:
                headers["Content-Type"] = "application/json"
            return web.Response(status=status, body=raw or None, headers=headers)

        return serve

    async def _play(
        self,
        request: web.Request,
        name: str,
        handler: Handler,
        payload: dict[str, Any],
        files: list[StoredFile],
        fault: Fault | None,
        refused: Refused | None,
    ) -> tuple[int, Any, dict[str, str]]:
        if refused is not None:
            return refused.status, refused.body, {}
        kind = fault.kind if fault else None
        if fault is not None and kind == "rate_limit":
            return _limited(fault.retry_after_s)
        if kind == "error_before":
            return 500, {"message": "500: Internal Server Error", "code": 0}, {}
        if kind == "forbid":
            return 403, {"message": "Missing Access", "code": 50001}, {}
        if kind == "refuse_format":
            return 400, {"message": "Invalid Form Body", "code": 50035}, {}
        headers: dict[str, str] = {}
        channel = request.match_info.get("channel", "")
        if name in _BUCKETED and not self.lenient:
            bucket = self._buckets.setdefault((name, channel), Bucket(clock=self._clock))
            wait_s = bucket.take()
            if wait_s:
                status, body, extra = _limited(round(wait_s, 3))
                return status, body, bucket.headers(name) | extra
            headers = bucket.headers(name)
        try:
            status, body = await handler(request, payload, files)
        except Refused as answer:
            return answer.status, answer.body, headers
        if kind == "error_after":
            return 500, {"message": "500: Internal Server Error", "code": 0}, headers
        return (0 if kind in ("hang", "drop") else status), body, headers

    async def _no_answer(self, request: web.Request, fault: Fault | None) -> web.StreamResponse:
        if fault is not None and fault.kind == "hang":
            await self.closing.wait()
        if request.transport is not None:
            request.transport.abort()
        return web.Response(status=500)

    async def _read(
        self, request: web.Request, name: str
    ) -> tuple[dict[str, Any], list[StoredFile], Refused | None]:
        if name not in _NO_AUTH and request.headers.get("Authorization") != f"Bot {self.token}":
            return {}, [], Refused(401, 0, "401: Unauthorized")
        if (request.content_length or 0) > REQUEST_BYTES:
            return {}, [], Refused(413, TOO_LARGE, "Request entity too large")
        if request.content_type == "multipart/form-data":
            return await self._read_form(request)
        if request.method not in ("POST", "PUT", "PATCH") or not request.can_read_body:
            return {}, [], None
        if request.headers.get("Content-Type") != "application/json":
            return {}, [], Refused(400, 50109, "The request body contains invalid JSON.")
        body = json.loads(await request.read())
        return (body if isinstance(body, dict) else {"items": body}), [], None

    async def _read_form(
        self, request: web.Request
    ) -> tuple[dict[str, Any], list[StoredFile], Refused | None]:
        payload: dict[str, Any] = {}
        files: list[StoredFile] = []
        for key, value in (await request.post()).items():
            if key == "payload_json" and not isinstance(value, web.FileField):
                payload = json.loads(value)
            elif isinstance(value, web.FileField):
                content = value.file.read()
                if len(content) > FILE_BYTES:
                    return payload, [], Refused(413, TOO_LARGE, "Request entity too large")
                files.append(
                    StoredFile(
                        id=self._world.snowflake(),
                        name=value.filename,
                        content=content,
                        mime=value.content_type,
                    )
                )
        return payload, files, None

    # -- what the bot asks about itself -----------------------------------------------------------

    async def _gateway_bot(self, *_: Any) -> Answer:
        limit = {"total": 1000, "remaining": 1000, "reset_after": 0, "max_concurrency": 1}
        return 200, {"url": "ws://unused", "shards": 1, "session_start_limit": limit}

    async def _me(self, *_: Any) -> Answer:
        return 200, {**self._world.bot.wire(), "verified": True, "mfa_enabled": False, "flags": 0}

    async def _guilds(self, *_: Any) -> Answer:
        return 200, [
            {"id": self._world.guild_id, "name": name, "permissions": str(bits)}
            for name, bits in self.servers.items()
        ]

    async def _application(self, *_: Any) -> Answer:
        bot = self._world.bot
        return 200, {
            "id": bot.id,
            "name": bot.name,
            "description": "",
            "icon": None,
            "bot_public": False,
            "bot_require_code_grant": False,
            "owner": bot.wire(),
            "verify_key": "00",
            "flags": self.application_flags(),
            "interactions_endpoint_url": self.interactions_endpoint,
        }

    async def _put_commands(self, _: web.Request, payload: dict[str, Any], __: Any) -> Answer:
        self.commands = list(payload["items"])
        return 200, [{**one, "id": self._world.snowflake()} for one in self.commands]

    async def _open_dm(self, _: web.Request, payload: dict[str, Any], *__: Any) -> Answer:
        person = str(payload.get("recipient_id"))
        if person not in self._world.users:
            raise Refused(400, 50033, "Invalid Recipient(s)")
        return 200, self._world.channel_wire(self._world.channel(DM, recipients=(person,)))

    # -- channels and messages --------------------------------------------------------------------

    async def _get_channel(self, request: web.Request, *_: Any) -> Answer:
        return 200, self._world.channel_wire(self._channel(request))

    async def _get_messages(self, request: web.Request, *_: Any) -> Answer:
        messages = self._world.of(self._channel(request).id)
        limit = int(request.query.get("limit", "50"))
        if not 1 <= limit <= 100:
            raise Refused(400, 50035, "Invalid Form Body: limit is 1 to 100")
        if after := request.query.get("after"):
            # The oldest ones after the id; within the answer the newest comes first, as always.
            page = [message for message in messages if int(message.id) > int(after)][:limit]
        else:
            before = int(request.query.get("before") or 2**63)
            page = [message for message in messages if int(message.id) < before][-limit:]
        return 200, [self._world.message_wire(message) for message in reversed(page)]

    async def _get_message(self, request: web.Request, *_: Any) -> Answer:
        return 200, self._world.message_wire(self._message(request))

    async def _create(self, request: web.Request, payload: dict[str, Any], files: list[StoredFile]) -> Answer:
        channel = self._channel(request)
        check_message(payload, files=len(files))
        check_voice(payload, [file.content for file in files])
        nonce = str(payload.get("nonce") or "")
        if nonce and payload.get("enforce_nonce"):
            at, earlier = self._nonces.get((channel.id, nonce), (0.0, None))
            if earlier is not None and self._clock.monotonic() - at < NONCE_WINDOW_S and not earlier.deleted:
                return 200, self._world.message_wire(earlier)
        reference = payload.get("message_reference") or {}
        reply_to = str(reference.get("message_id", ""))
        if reply_to and self._world.get(channel.id, reply_to) is None:
            if reference.get("fail_if_not_exists", True):
                raise Refused(400, 50035, "Invalid Form Body: Unknown message")
            reply_to = ""
        message = self._world.add(
            channel.id,
            self._world.bot.id,
            (payload.get("content") or "").strip(),
            files=files,
            components=payload.get("components") or [],
            flags=int(payload.get("flags") or 0),
            reply_to=reply_to,
            nonce=nonce,
        )
        if nonce:
            self._nonces[channel.id, nonce] = (self._clock.monotonic(), message)
        self._note(message, payload)
        await self.on_message(message, "MESSAGE_CREATE")
        return 200, self._world.message_wire(message)

    async def _edit(self, request: web.Request, payload: dict[str, Any], files: list[StoredFile]) -> Answer:
        message = self._message(request)
        if message.author != self._world.bot.id:
            raise Refused(403, 50005, "Cannot edit a message authored by another user")
        self.change(message, payload, files)
        await self.on_message(message, "MESSAGE_UPDATE")
        return 200, self._world.message_wire(message)

    async def _delete(self, request: web.Request, *_: Any) -> Answer:
        self._message(request).deleted = True
        return 204, None

    async def _typing(self, request: web.Request, *_: Any) -> Answer:
        self.typing.append(self._channel(request).id)
        return 204, None

    def change(self, message: Message, payload: dict[str, Any], files: list[StoredFile]) -> None:
        """Edit a message of the bot. Raises Refused."""
        check_message(payload, files=len(files), existing=True)
        if "content" in payload:
            message.content = (payload["content"] or "").strip()
        if "components" in payload:
            message.components = payload["components"] or []
        if "flags" in payload:
            message.flags = int(payload["flags"] or 0)
        if "attachments" in payload:
            kept = {str(one.get("id")) for one in payload["attachments"]}
            message.files = [file for file in message.files if file.id in kept]
        message.files = [*message.files, *files]
        if not message.content and not message.files:
            raise Refused(400, 50006, "Cannot send an empty message")
        message.edited_at = self._clock.now()
        message.edits += 1
        self._note(message, payload)

    def _note(self, message: Message, payload: dict[str, Any]) -> None:
        allowed = payload.get("allowed_mentions")
        kinds = ("everyone", "users") if allowed is None else tuple(allowed.get("parse", ()))
        if MASS_MENTION.search(message.content) and "everyone" in kinds:
            self.mass_mentions.append(message.id)
        if "<@" in message.content and "users" in kinds:
            self.pings.append(message.id)
        if not message.flags & 4:
            self.embedding.append(message.id)

    # -- interactions -----------------------------------------------------------------------------

    async def _callback(self, request: web.Request, payload: dict[str, Any], _: Any) -> Answer:
        info = request.match_info
        self._interactions.answer(info["id"], info["token"], payload, self.change)
        return 204, None

    async def _followup(self, request: web.Request, payload: dict[str, Any], _: Any) -> Answer:
        self._interactions.follow_up(request.match_info["token"], payload)
        return 200, {"id": self._world.snowflake()}

    async def _edit_original(self, request: web.Request, payload: dict[str, Any], _: Any) -> Answer:
        self._interactions.edit_original(request.match_info["token"], payload, self.change)
        return 200, {}

    # -- files ------------------------------------------------------------------------------------

    async def _download(self, request: web.Request) -> web.StreamResponse:
        self.cdn_hits += 1
        if self.file_failures:
            return web.Response(status=self.file_failures.pop(0))
        if self.cdn_redirect:
            return web.Response(status=302, headers={"Location": self.cdn_redirect})
        if request.query.get("ex") != str(self._world.link_version):
            return web.Response(status=404, text="This content is no longer available.")
        for message in self._world.of(request.match_info["channel"]):
            for file in message.files:
                if file.id == request.match_info["file"]:
                    if self.cdn_extra:
                        return await self._overlong(request, file)
                    return web.Response(body=file.content, content_type=file.mime)
        return web.Response(status=404)

    async def _overlong(self, request: web.Request, file: StoredFile) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(file.content)
        await response.write(self.cdn_extra)
        return response

    def _channel(self, request: web.Request) -> Channel:
        channel = self._world.channels.get(request.match_info["channel"])
        if channel is None:
            raise Refused(404, 10003, "Unknown Channel")
        return channel

    def _message(self, request: web.Request) -> Message:
        message = self._world.get(self._channel(request).id, request.match_info["message"])
        if message is None:
            raise Refused(404, 10008, "Unknown Message")
        return message


def _limited(retry_after_s: float) -> tuple[int, Any, dict[str, str]]:
    body = {"message": "You are being rate limited.", "retry_after": retry_after_s, "global": False}
    return 429, body, {"Retry-After": str(max(1, round(retry_after_s))), "X-RateLimit-Scope": "user"}
