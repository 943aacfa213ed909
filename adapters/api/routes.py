"""The routes of the API: check the token and its scopes, read the request, and answer with JSON.

docs/guides/api.md describes them, and `openapi.json` beside this file, which is served too.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from importlib import resources
from typing import Any, Final

from aiohttp import web

from adapters.api.bodies import BodyReader, text_field
from adapters.api.ports import Runs
from adapters.api.problems import RequestRefused, invalid, problem_response
from adapters.api.record import asked_to_plain, run_to_plain, workflow_to_plain
from adapters.api.run_service import MOST_WORDS, Begun, Found, RunService
from adapters.api.settings import ApiOptions, Token
from adapters.api.stream import RunStreams, wanted
from adapters.api.tokens import TokenBook, presented_token, unknown_token
from adapters.api.webhooks import Webhooks

_log = logging.getLogger(__name__)
_KEY = re.compile(r"[!-~]{1,200}")
_MOST_NOTE = 2_000
_MOST_CHOICE = 200
_JSON: Final = "application/json"
OPENAPI: Final = "openapi.json"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ApiRoutes:
    """The handlers of all routes."""

    def __init__(
        self,
        settings: ApiOptions,
        *,
        runs: Runs,
        service: RunService,
        tokens: TokenBook,
        streams: RunStreams,
        webhooks: Webhooks,
        bodies: BodyReader,
    ) -> None:
        self._settings = settings
        self._runs = runs
        self._service = service
        self._tokens = tokens
        self._streams = streams
        self._webhooks = webhooks
        self._bodies = bodies

    def routes(self) -> list[web.RouteDef]:
        """Every route; they read their bodies themselves. The last one answers what no other one knows."""
        known: list[tuple[str, str, Handler]] = [
            ("GET", f"/api/{OPENAPI}", self._describe),
            ("GET", "/api/workflows", self._list),
            ("POST", "/api/workflows/{name}/runs", self._start),
            ("GET", "/api/runs/{id}", self._read),
            ("DELETE", "/api/runs/{id}", self._stop),
            ("POST", "/api/runs/{id}/stop", self._stop),
            ("POST", "/api/runs/{id}/answers", self._answer),
            ("POST", "/api/webhooks/{name}", self._webhook),
        ]
        paths = {re.sub(r"\{\w+\}", "[^/]+", path): path for _, path, _ in known}

        async def other(request: web.Request) -> web.StreamResponse:
            path = next((plain for form, plain in paths.items() if re.fullmatch(form, request.path)), None)
            if path is None:
                raise RequestRefused(404, "There is no such address.", unread=True)
            allowed = ", ".join(method for method, one, _ in known if one == path)
            raise RequestRefused(405, f"Known here: {allowed}.", headers={"Allow": allowed}, unread=True)

        # HEAD is not made from GET: a stream has no length.
        made = [web.route(method, path, self._guarded(handler)) for method, path, handler in known]
        return [*made, web.route("*", "/api/{rest:.*}", self._guarded(other))]

    def _guarded(self, handler: Handler) -> Handler:
        """`handler`, with its refusals as problems. Pages of other origins may not call it."""

        async def guarded(request: web.Request) -> web.StreamResponse:
            try:
                self._require_own_page(request)
                return await handler(request)
            except RequestRefused as refused:
                return problem_response(refused)
            except Exception:  # noqa: BLE001 - the reason belongs in the log, not in the answer
                _log.exception("a request of the API failed", extra={"method": request.method})
                return problem_response(RequestRefused(500, "The gateway's log says more.", unread=True))

        return guarded

    def _require_own_page(self, request: web.Request) -> None:
        """Raise RequestRefused for a request of a page of another origin. Other programs send no Origin."""
        if not set(request.headers.getall("Origin", [])) <= set(self._settings.origins()):
            raise RequestRefused(403, "Pages of other origins may not use the API.", unread=True)

    # -- the handlers -----------------------------------------------------------------------------

    async def _describe(self, _request: web.Request) -> web.Response:
        text = resources.files(__package__).joinpath(OPENAPI).read_text("utf-8")
        return web.Response(text=text, content_type=_JSON)

    async def _list(self, request: web.Request) -> web.Response:
        token = self._holder(request)
        known = self._runs.workflows.values()
        return _json(200, {"workflows": [workflow_to_plain(one) for one in known if token.may_use(one.name)]})

    async def _start(self, request: web.Request) -> web.Response:
        token = self._holder(request, "run")
        name = request.match_info["name"]
        if not token.may_use(name) or name not in self._runs.workflows:
            raise RequestRefused(404, "There is no such workflow.", unread=True)
        key = _idempotency_key(request)
        fields = await self._bodies.fields(request, frozenset({"input"}))
        text = text_field(fields, "input", most=self._settings.max_input)
        return await self._begun(await self._service.start(token, name, text, key), token)

    async def _begun(self, begun: Begun, token: Token) -> web.Response:
        found = Found(thread=begun.thread, own=True, questions=())
        if "read" in token.scopes:
            found = await self._service.find(token, begun.run_id)
            body = run_to_plain(await self._service.view(found), found.questions)
        else:
            body = {"runId": begun.run_id}
        headers = {"Location": f"/api/runs/{begun.run_id}"}
        if begun.repeated:
            headers["Idempotency-Replayed"] = "true"
        return _json(200 if begun.repeated else 202, body, headers)

    async def _read(self, request: web.Request) -> web.StreamResponse:
        token = self._holder(request, "read")
        found = await self._service.find(token, request.match_info["id"])
        if found.own and wanted(request):
            return await self._streams.serve(request, token, found)
        view = await self._service.view(found)
        shown = run_to_plain if found.own else asked_to_plain
        return _json(200, shown(view, found.questions))

    async def _stop(self, request: web.Request) -> web.Response:
        token = self._holder(request, "run")
        found = await self._service.find(token, request.match_info["id"])
        if not found.own:
            raise RequestRefused(404, "There is no such run.")
        view = await self._service.stop(token, found)
        body = {"runId": view.id, "status": view.status}
        return _json(200 if view.over else 202, body)

    async def _answer(self, request: web.Request) -> web.Response:
        token = self._holder(request, "answer")
        found = await self._service.find(token, request.match_info["id"])
        fields = await self._bodies.fields(request, frozenset({"questionId", "choice", "text", "note"}))
        question = text_field(fields, "questionId", most=_MOST_CHOICE, required=False)
        choice = text_field(fields, "choice", most=_MOST_CHOICE, required=False)
        text = text_field(fields, "text", most=MOST_WORDS, required=False).strip()
        if bool(choice.strip()) == bool(text):
            raise invalid("choice", "send one of the options as choice, or text where there are none")
        note = text_field(fields, "note", most=_MOST_NOTE, required=False)
        await self._service.answer(token, found, question, choice=choice, text=text, note=note)
        given = {"choice": choice} if choice else {"text": text}
        return _json(202, {"runId": str(found.thread.topic), **given})

    async def _webhook(self, request: web.Request) -> web.Response:
        begun = await self._webhooks.begin(request)
        return _json(200 if begun.repeated else 202, {"runId": begun.run_id})

    # -- what they share --------------------------------------------------------------------------

    def _holder(self, request: web.Request, scope: str = "") -> Token:
        """The program that sends a request. Raises RequestRefused if it is unknown or lacks the scope."""
        presented = presented_token(request)
        token = self._tokens.holder(presented)
        if token is None:
            too_many = bool(presented) and self._settings.note_wrong(request.remote)
            raise unknown_token(too_many=too_many)
        if scope and scope not in token.scopes:
            raise RequestRefused(403, f"This token has not the scope {scope}.", unread=True)
        return token


def _idempotency_key(request: web.Request) -> str:
    """The key of a request; empty for none. Raises RequestRefused."""
    given = request.headers.getall("Idempotency-Key", [])
    if not given:
        return ""
    if len(given) > 1 or _KEY.fullmatch(given[0]) is None:
        raise invalid(
            "Idempotency-Key", "send one text of 1 to 200 printable ASCII characters without spaces"
        )
    return given[0]


def _json(status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(
        status=status,
        body=json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"),
        headers={"Content-Type": f"{_JSON}; charset=utf-8", "Cache-Control": "no-store", **(headers or {})},
    )
