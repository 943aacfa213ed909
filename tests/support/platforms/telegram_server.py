"""The fake Telegram's HTTP: requests decoded as the Bot API does it, faults played, webhooks delivered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import aiohttp
from aiohttp import web

from pipeline.domain.clock import Clock
from tests.support.platforms.platform import Call, Fault, Faults
from tests.support.platforms.telegram_methods import SHOWS, BotApi, never
from tests.support.platforms.telegram_rules import ApiError, Floods, bad_request
from tests.support.platforms.telegram_state import TelegramState

_MAX_BODY = 60 * 1024 * 1024
_FIRST_RETRY_S = 0.05
_LAST_RETRY_S = 2.0


class TelegramServer:
    """One bot's API on a loopback port. `run` serves until cancelled."""

    def __init__(
        self, state: TelegramState, clock: Clock, faults: Callable[[], Faults], lenient: Callable[[], bool]
    ) -> None:
        self._state = state
        self._clock = clock
        self._faults = faults
        self._lenient = lenient
        self._api = BotApi(state, clock)
        self._floods = Floods(clock)
        self._runner: web.AppRunner | None = None
        self.calls: list[Call] = []
        self.port = 0

    async def start(self) -> None:
        """Listen on a free loopback port."""
        app = web.Application(client_max_size=_MAX_BODY)
        app.router.add_route("*", "/bot{token}/{method}", self._on_method)
        app.router.add_get("/file/bot{token}/{path:.+}", self._on_file)
        # A poll of a client that went away ends at once, as does a call that is left hanging.
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Stop listening and break every connection."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def deliver_webhooks(self) -> None:
        """POST each update to the webhook until it answers 2xx, oldest first; until cancelled."""
        updates = self._state.updates
        timeout = aiohttp.ClientTimeout(total=60)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            pause = _FIRST_RETRY_S
            while True:
                if not updates.webhook or not updates.pending:
                    await self._state.next_change()
                    continue
                update = updates.pending[0]
                if await _delivered(session, updates.webhook, update):
                    if updates.pending and updates.pending[0] is update:
                        del updates.pending[0]
                    self._state.changed()
                    pause = _FIRST_RETRY_S
                else:
                    await self._clock.sleep(pause)
                    pause = min(_LAST_RETRY_S, pause * 2)

    async def _on_method(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        if request.match_info["token"] != self._state.token:
            return _refusal(ApiError(401, "Unauthorized"))
        params = await _params(request)
        fault = self._faults().next_for(method, shows=method in SHOWS)
        if fault is not None and fault.kind in (
            "rate_limit",
            "error_before",
            "drop",
            "refuse_format",
            "forbid",
        ):
            return self._fail_before(request, method, params, fault)
        response = await self._answered(method, params, fault)
        if self._faults().answer_delay_s:
            await self._clock.sleep(self._faults().answer_delay_s)
        return response

    def _fail_before(
        self, request: web.Request, method: str, params: dict[str, Any], fault: Fault
    ) -> web.StreamResponse:
        if fault.kind == "drop":
            self._note(method, params, 0)
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=502)
        seconds = max(1, round(fault.retry_after_s))
        error = {
            "rate_limit": ApiError(429, f"Too Many Requests: retry after {seconds}", retry_after=seconds),
            "error_before": ApiError(502, "Bad Gateway"),
            "forbid": ApiError(403, "Forbidden: bot was blocked by the user"),
            "refuse_format": bad_request("can't parse entities: unsupported start tag at byte offset 0"),
        }[fault.kind]
        self._note(method, params, error.code)
        return _refusal(error)

    async def _answered(self, method: str, params: dict[str, Any], fault: Fault | None) -> web.StreamResponse:
        try:
            if method in SHOWS and not self._lenient() and isinstance(params.get("chat_id"), int):
                self._floods.check(params["chat_id"])
            result = await self._api.call(method, params)
        except ApiError as error:
            self._note(method, params, error.code)
            return _refusal(error)
        if fault is not None and fault.kind == "hang":
            self._note(method, params, 0)
            await never()
        if fault is not None:
            self._note(method, params, 502)
            return _refusal(ApiError(502, "Bad Gateway"))
        self._note(method, params, 200)
        return web.json_response({"ok": True, "result": result})

    async def _on_file(self, request: web.Request) -> web.StreamResponse:
        if self._state.file_failures:
            return web.Response(status=self._state.file_failures.pop(0))
        content = self._state.files.get(request.match_info["path"].removeprefix("files/"))
        if request.match_info["token"] != self._state.token or content is None:
            return _refusal(ApiError(404, "Not Found"))
        return web.Response(body=content, content_type="application/octet-stream")

    def _note(self, method: str, params: dict[str, Any], status: int) -> None:
        self.calls.append(Call(method=method, payload=params, status=status, at=self._clock.monotonic()))
        self._state.changed()


async def _delivered(session: aiohttp.ClientSession, webhook: dict[str, Any], update: dict[str, Any]) -> bool:
    headers = {"X-Telegram-Bot-Api-Secret-Token": webhook["secret"]} if webhook["secret"] else {}
    try:
        async with session.post(webhook["url"], json=update, headers=headers) as response:
            return response.status // 100 == 2
    except (aiohttp.ClientError, TimeoutError):
        return False


def _refusal(error: ApiError) -> web.Response:
    body: dict[str, Any] = {"ok": False, "error_code": error.code, "description": error.description}
    if error.retry_after is not None:
        body["parameters"] = {"retry_after": error.retry_after}
    return web.json_response(body, status=error.code)


async def _params(request: web.Request) -> dict[str, Any]:
    if request.content_type == "application/json":
        return dict(await request.json())
    params: dict[str, Any] = {}
    for name, value in [*request.query.items(), *(await request.post()).items()]:
        if isinstance(value, web.FileField):
            content = await asyncio.to_thread(value.file.read)
            params[name] = (value.filename, content)
        else:
            params[name] = _decoded(name, str(value))
    for field in ("document", "photo", "audio", "video", "voice"):
        upload = params.get(field)
        if isinstance(upload, str) and upload.startswith("attach://"):
            params[field] = params.pop(upload.removeprefix("attach://"), None)
    return params


def _decoded(name: str, value: str) -> Any:
    # In a form every value is text; fields whose type is text stay unchanged.
    if name in ("text", "caption", "url", "secret_token", "callback_query_id", "file_id", "parse_mode"):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value
