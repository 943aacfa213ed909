"""The fake Slack's Web API over HTTP: methods, files and response urls. The rules are `slack_rules`."""

from __future__ import annotations

import asyncio
import html
import json
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

from aiohttp import web

from tests.support.platforms.platform import Call, Fault, Faults
from tests.support.platforms.slack_reactions import ReactionMethods
from tests.support.platforms.slack_rules import STREAM_LIMIT, Buckets, decoded, edit_refusal, refusal
from tests.support.platforms.slack_state import APP, BOT, BOT_USER, TEAM, Posted, Workspace

SHOWS = frozenset(
    {"chat.postMessage", "chat.update", "chat.startStream", "chat.appendStream", "chat.stopStream"}
)
LOGIN_PAGE = (
    "<!DOCTYPE html><html><head><title>Slack</title></head><body>Sign in to your workspace</body></html>"
)
Answer = dict[str, Any]


class WebApi(ReactionMethods):
    """Answers the bot's calls. `notify` is called with events for the bot, `changed` after every change."""

    def __init__(
        self,
        workspace: Workspace,
        faults: Callable[[], Faults],
        *,
        notify: Callable[[dict[str, Any]], None],
        changed: Callable[[], None],
    ) -> None:
        self.workspace = workspace
        self.calls: list[Call] = []
        self.bot_token = ""
        self.app_token = ""
        self.base = ""
        """`http://host:port`."""
        self.lenient = False
        self.streams = True
        """Whether the workspace knows chat.startStream and its like."""
        self.tickets_good = True
        """Whether the Socket Mode addresses that are handed out open a socket."""
        self.redirect_files_to = ""
        self.file_token = ""
        """The token that files require if it is not the bot's: as if the scope were missing."""
        self.statuses = True
        """Whether the workspace knows assistant.threads.setStatus."""
        self.stopped_by_user = False
        """Whether the reader stopped the open streams."""
        self.pressed: dict[str, tuple[str, str, Posted | None]] = {}
        """By response url: the channel, the only person who sees its text, the message."""
        self.tickets: set[str] = set()
        """Socket Mode URLs that were handed out; each opens one socket."""
        self._faults = faults
        self._notify = notify
        self._changed = changed
        self._buckets = Buckets()

    def routes(self) -> list[web.RouteDef]:
        return [
            web.route("*", "/api/{method}", self._call),
            web.get("/files/{id}/{name}", self._file),
            web.post("/upload/{id}", self._upload),
            web.post("/respond/{id}", self._respond),
        ]

    # -- one call ---------------------------------------------------------------------------------

    async def _call(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        payload = await _payload(request)
        refused = self._unauthorised(method, request, payload)
        if refused:
            return self._answer(method, payload, {"ok": False, "error": refused})
        fault = self._faults().next_for(method, shows=method in SHOWS) or self._limited(method, payload)
        if fault is not None and fault.kind in ("rate_limit", "error_before", "refuse_format", "forbid"):
            return self._misbehave(method, payload, fault)
        await self.workspace.held.reach(method, self._changed)
        answer = self._do(method, payload)
        await asyncio.sleep(self._faults().answer_delay_s)
        if fault is not None:
            return await self._after(request, method, payload, fault)
        return self._answer(method, payload, answer)

    def _unauthorised(self, method: str, request: web.Request, payload: Answer) -> str:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ") or payload.pop("token", "")
        if not token:
            return "not_authed"
        expected = self.app_token if method == "apps.connections.open" else self.bot_token
        return "" if token == expected else "invalid_auth"

    def _limited(self, method: str, payload: Answer) -> Fault | None:
        if self.lenient:
            return None
        waiting = self._buckets.wait_s(method, str(payload.get("channel", "")), _now())
        return Fault(method=method, kind="rate_limit", retry_after_s=waiting) if waiting else None

    def _misbehave(self, method: str, payload: Answer, fault: Fault) -> web.Response:
        if fault.kind == "rate_limit":
            self._record(method, payload, 429)
            seconds = str(max(1, math.ceil(fault.retry_after_s)))
            body = {"ok": False, "error": "ratelimited"}
            return web.json_response(body, status=429, headers={"Retry-After": seconds})
        if fault.kind == "forbid" or (fault.kind == "refuse_format" and payload.get("blocks")):
            code = "missing_scope" if fault.kind == "forbid" else "invalid_blocks"
            return self._answer(method, payload, {"ok": False, "error": code})
        if fault.kind == "refuse_format":
            return self._answer(method, payload, self._do(method, payload))
        self._record(method, payload, 503)
        return web.Response(status=503, text="<html>Service Unavailable</html>", content_type="text/html")

    async def _after(
        self, request: web.Request, method: str, payload: Answer, fault: Fault
    ) -> web.StreamResponse:
        if fault.kind == "hang":
            self._record(method, payload, 0)
            await asyncio.Event().wait()
        elif fault.kind == "drop":
            self._record(method, payload, 0)
            if request.transport is not None:
                request.transport.abort()
        else:
            self._record(method, payload, 500)
            return web.Response(status=500, text="<html>Server Error</html>", content_type="text/html")
        return web.Response()

    def _answer(self, method: str, payload: Answer, answer: Answer) -> web.Response:
        self._record(method, payload, 200)
        return web.json_response(answer, headers={"x-oauth-scopes": ",".join(sorted(self.workspace.scopes))})

    def _record(self, method: str, payload: Answer, status: int) -> None:
        self.calls.append(Call(method=method, payload=dict(payload), status=status, at=_now()))
        self._changed()

    def _do(self, method: str, payload: Answer) -> Answer:
        handler = getattr(self, f"_do_{method.replace('.', '_')}", None)
        missing = ("Stream" in method and not self.streams) or ("Status" in method and not self.statuses)
        if handler is None or missing:
            return {"ok": False, "error": "unknown_method"}
        answer: Answer = handler(payload)
        return {"ok": "error" not in answer, **answer}

    # -- messages ---------------------------------------------------------------------------------

    def _do_chat_postMessage(self, payload: Answer) -> Answer:  # noqa: N802 - the method's own name
        problem = self._closed(payload) or refusal(payload)
        if problem:
            return {"error": problem}
        posted = self._post(payload, text=payload.get("text") or "", blocks=payload.get("blocks") or [])
        posted.metadata = payload.get("metadata") or None
        if payload.get("unfurl_links") is not False or payload.get("unfurl_media") is not False:
            self.workspace.unfurls += 1
        self._notify(self.workspace.message_event(posted))
        return {"channel": posted.channel, "ts": posted.ts, "message": posted.as_json()}

    def _do_chat_update(self, payload: Answer) -> Answer:
        posted = self.workspace.find(str(payload.get("channel")), str(payload.get("ts")))
        problem = self._closed(payload) or ("" if posted else "message_not_found")
        if not problem and posted is not None and not posted.ours:
            problem = "cant_update_message"
        if not problem and posted is not None and posted.streaming:
            problem = "streaming_state_conflict"
        problem = problem or edit_refusal(payload)
        if problem or posted is None:
            return {"error": problem}
        before = posted.as_json()
        posted.text = payload.get("text") or ""
        if payload.get("blocks") is not None:
            posted.blocks = payload["blocks"]
        posted.metadata = payload.get("metadata", posted.metadata)
        posted.edits += 1
        self.workspace.note_mentions(posted)
        self._notify(self.workspace.changed_event(posted, before))
        return {"channel": posted.channel, "ts": posted.ts, "text": posted.text, "message": posted.as_json()}

    def _do_chat_delete(self, payload: Answer) -> Answer:
        posted = self.workspace.find(str(payload.get("channel")), str(payload.get("ts")))
        if posted is None or not posted.ours:
            return {"error": "message_not_found" if posted is None else "cant_delete_message"}
        self.workspace.messages.remove(posted)
        return {"channel": posted.channel, "ts": posted.ts}

    def _do_chat_postEphemeral(self, payload: Answer) -> Answer:  # noqa: N802 - the method's own name
        problem = self._closed(payload) or refusal(payload)
        if problem:
            return {"error": problem}
        words = str(payload.get("text"))
        self.workspace.ephemerals.append((str(payload["channel"]), str(payload.get("user")), words))
        return {"message_ts": self.workspace.next_ts()}

    def _do_chat_startStream(self, payload: Answer) -> Answer:  # noqa: N802 - the method's own name
        problem = self._closed(payload)
        room = not problem and not self.workspace.conversations[str(payload["channel"])].private
        if not problem and not payload.get("thread_ts"):
            problem = "invalid_arguments"
        if room and not (payload.get("recipient_user_id") and payload.get("recipient_team_id")):
            problem = problem or "missing_recipient_user_id"
        if len(payload.get("markdown_text") or "") > STREAM_LIMIT:
            problem = problem or "msg_too_long"
        if problem:
            return {"error": problem}
        posted = self._post(payload, text=payload.get("markdown_text") or "")
        posted.streaming = True
        return {"channel": posted.channel, "ts": posted.ts}

    def _do_chat_appendStream(self, payload: Answer) -> Answer:  # noqa: N802 - the method's own name
        return self._stream(payload, needs_text=True)

    def _do_chat_stopStream(self, payload: Answer) -> Answer:  # noqa: N802 - the method's own name
        answer = self._stream(payload, needs_text=False)
        posted = self.workspace.find(str(payload.get("channel")), str(payload.get("ts")))
        if "error" not in answer and posted is not None:
            posted.streaming = False
            posted.metadata = payload.get("metadata") or posted.metadata
            posted.blocks = payload.get("blocks") or []
        return answer

    def _stream(self, payload: Answer, *, needs_text: bool) -> Answer:
        posted = self.workspace.find(str(payload.get("channel")), str(payload.get("ts")))
        text = payload.get("markdown_text") or ""
        if posted is None or not posted.ours:
            return {"error": "message_not_found" if posted is None else "message_not_owned_by_app"}
        if not posted.streaming:
            return {"error": "message_not_in_streaming_state"}
        if self.stopped_by_user and needs_text:
            posted.streaming = False
            return {"error": "stopped_by_user"}
        if (needs_text and not text) or len(text) > STREAM_LIMIT:
            return {"error": "msg_too_long" if text else "no_text"}
        posted.text += text
        return {"channel": posted.channel, "ts": posted.ts}

    def _post(self, payload: Answer, *, text: str, blocks: Sequence[Answer] = ()) -> Posted:
        return self.workspace.add(
            Posted(
                channel=str(payload["channel"]),
                ts=self.workspace.next_ts(),
                user=BOT_USER,
                bot_id=BOT,
                text=text,
                blocks=list(blocks),
                thread_ts=str(payload.get("thread_ts") or ""),
            )
        )

    def _closed(self, payload: Answer) -> str:
        conversation = self.workspace.conversations.get(str(payload.get("channel", "")))
        if conversation is None:
            return "channel_not_found"
        return "" if conversation.joined else "not_in_channel"

    # -- looking ----------------------------------------------------------------------------------

    def _do_auth_test(self, _: Answer) -> Answer:
        me = {"user": "parlour", "user_id": BOT_USER, "bot_id": BOT, "team": "Parlour", "team_id": TEAM}
        return {"url": "https://parlour.slack.com/", "is_enterprise_install": False, **me}

    def _do_bots_info(self, payload: Answer) -> Answer:
        known = payload.get("bot") == BOT
        return {"bot": {"id": BOT, "app_id": APP}} if known else {"error": "bot_not_found"}

    def _do_apps_connections_open(self, _: Answer) -> Answer:
        ticket = self.workspace.next_ts().replace(".", "")
        if self.tickets_good:
            self.tickets.add(ticket)
        return {"url": f"{self.base.replace('http', 'ws', 1)}/link?ticket={ticket}&app_id={APP}"}

    def _do_conversations_history(self, payload: Answer) -> Answer:
        found = self.workspace.of(str(payload.get("channel")))
        return self._listed(payload, [one for one in found if one.thread_ts in ("", one.ts) or one.broadcast])

    def _do_conversations_replies(self, payload: Answer) -> Answer:
        found = self.workspace.of(str(payload.get("channel")), str(payload.get("ts")))
        if not found:
            return {"error": self._closed(payload) or "thread_not_found"}
        return self._listed(payload, found)

    def _listed(self, payload: Answer, found: list[Posted]) -> Answer:
        problem = self._closed(payload)
        if problem:
            return {"error": problem}
        oldest, latest = float(payload.get("oldest") or 0), float(payload.get("latest") or "inf")
        limit, start = int(payload.get("limit") or 100), int(payload.get("cursor") or 0)
        newest = [one for one in found if oldest < float(one.ts) < latest][::-1]
        more = len(newest) > start + limit
        with_metadata = str(payload.get("include_all_metadata")).lower() in ("1", "true")
        messages = [one.as_json(with_metadata=with_metadata) for one in newest[start : start + limit]]
        cursor = str(start + limit) if more else ""
        return {"messages": messages, "has_more": more, "response_metadata": {"next_cursor": cursor}}

    def _do_conversations_info(self, payload: Answer) -> Answer:
        conversation = self.workspace.conversations.get(str(payload.get("channel")))
        if conversation is None:
            return {"error": "channel_not_found"}
        kind = {"is_im": conversation.private, "is_channel": not conversation.private}
        return {"channel": {"id": conversation.id, "name": conversation.name, **kind}}

    def _do_users_info(self, payload: Answer) -> Answer:
        person = self.workspace.person_by_id(str(payload.get("user")))
        if person is None:
            return {"error": "user_not_found"}
        profile = {"display_name": person.name, "real_name": person.name}
        return {"user": {"id": person.id, "name": person.name, "is_bot": person.bot, "profile": profile}}

    def _do_assistant_threads_setStatus(self, payload: Answer) -> Answer:  # noqa: N802 - the method's name
        if not payload.get("thread_ts"):
            return {"error": "invalid_arguments"}
        status = (str(payload.get("channel_id")), str(payload["thread_ts"]), str(payload.get("status")))
        self.workspace.statuses.append(status)
        return {}

    # -- files ------------------------------------------------------------------------------------

    def _do_files_info(self, payload: Answer) -> Answer:
        for posted in self.workspace.messages:
            for file in posted.files:
                if file["id"] == payload.get("file"):
                    return {"file": file}
        return {"error": "file_not_found"}

    def _do_files_getUploadURLExternal(self, payload: Answer) -> Answer:  # noqa: N802 - the method's name
        name = f"F{self.workspace.next_ts().replace('.', '')}"
        self.workspace.uploads[name] = str(payload.get("filename"))
        return {"upload_url": f"{self.base}/upload/{name}", "file_id": name}

    def _do_files_completeUploadExternal(self, payload: Answer) -> Answer:  # noqa: N802 - the method's name
        problem = self._closed({"channel": payload.get("channel_id")})
        wanted = payload.get("files") or []
        if not problem and any(one.get("id") not in self.workspace.contents for one in wanted):
            problem = "file_not_found"
        if problem:
            return {"error": problem}
        posted = self._post(
            {"channel": payload["channel_id"], "thread_ts": payload.get("thread_ts")},
            text=payload.get("initial_comment") or "",
        )
        posted.subtype = "file_share"
        posted.files = [
            {"id": one["id"], "title": one.get("title"), "name": self.workspace.uploads[one["id"]]}
            for one in wanted
        ]
        self._notify(self.workspace.message_event(posted))
        return {"files": posted.files}

    async def _upload(self, request: web.Request) -> web.Response:
        name = request.match_info["id"]
        if name not in self.workspace.uploads:
            return web.Response(status=404)
        self.workspace.contents[name] = await request.read()
        return web.Response(text=f"OK - {len(self.workspace.contents[name])}")

    async def _file(self, request: web.Request) -> web.Response:
        """The bytes for the bot's token; for any other token the login page with 200, like the real one."""
        if self.workspace.file_failures:
            return web.Response(status=self.workspace.file_failures.pop(0))
        if self.redirect_files_to:
            raise web.HTTPFound(self.redirect_files_to)
        if request.headers.get("Authorization") != f"Bearer {self.file_token or self.bot_token}":
            return web.Response(text=LOGIN_PAGE, content_type="text/html")
        content = self.workspace.contents.get(request.match_info["id"])
        if content is None:
            return web.Response(status=404)
        return web.Response(body=content, content_type="application/octet-stream")

    # -- response urls ----------------------------------------------------------------------------

    async def _respond(self, request: web.Request) -> web.Response:
        place = self.pressed.get(request.match_info["id"])
        payload = decoded(json.loads(await request.read()))
        if place is None:
            return web.Response(status=404, text="expired_url")
        channel, user, posted = place
        if posted is not None and payload.get("replace_original"):
            posted.text, posted.blocks = payload.get("text") or "", payload.get("blocks") or []
            posted.edits += 1
        elif payload.get("response_type", "ephemeral") == "ephemeral":
            self.workspace.ephemerals.append((channel, user, html.unescape(str(payload.get("text")))))
        self._record("response_url", payload, 200)
        return web.Response(text="ok")


async def _payload(request: web.Request) -> Answer:
    if request.content_type == "application/json":
        body = await request.read()
        return decoded(json.loads(body)) if body else {}
    fields: Answer = {**request.query}
    fields.update({name: value for name, value in (await request.post()).items() if isinstance(value, str)})
    return decoded(fields)


def _now() -> float:
    return time.monotonic()  # noqa: TID251 - the platform's own clock
