"""From an open socket to a session: waits for `hello` and judges it. Nothing else is done before that."""

from __future__ import annotations

import asyncio
import logging

from aiohttp import WSMessage, WSMsgType, web

from adapters.web import outgoing
from adapters.web.hub import Session
from adapters.web.inbound import new_chat_id
from adapters.web.intake import parse_text
from adapters.web.protocol import Hello, Problem
from adapters.web.shared import BAD_HELLO, CLOSE_TIMEOUT_S, TRY_AGAIN, UNAVAILABLE, Shared, close_socket

_log = logging.getLogger(__name__)


async def greet(
    shared: Shared, socket: web.WebSocketResponse, request: web.Request
) -> tuple[Hello, Session] | None:
    """The accepted `hello` and its new session; None when the socket was refused and closed."""
    problem: Problem
    try:
        async with asyncio.timeout(shared.settings.hello_timeout_s):
            message: WSMessage = await socket.receive()
    except TimeoutError:
        problem = Problem(code="hello_timeout", message="no hello came in time; connect again")
        await _refuse(problem, socket, request)
        return None
    if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
        return None
    hello = _judge(shared, message)
    if isinstance(hello, Problem):
        await _refuse(hello, socket, request)
        return None
    session = shared.hub.join(hello.chat or new_chat_id())
    if session is None:
        problem = Problem(code="refused", message="this chat is open in too many windows; close one")
        await _refuse(problem, socket, request)
        return None
    return hello, session


def _judge(shared: Shared, message: WSMessage) -> Hello | Problem:
    frame = parse_text(shared, message.data) if message.type is WSMsgType.TEXT else None
    if isinstance(frame, Problem):
        return frame
    if not isinstance(frame, Hello):
        return Problem(code="hello_first", message="the first frame must be hello")
    if shared.attempts.locked():
        return Problem(code="too_many_attempts", message="too many wrong tokens; wait a minute and try again")
    if not shared.settings.token_check(frame.token):
        shared.attempts.note_failure()
        words = "token: not the access token that the gateway printed at its start"
        return Problem(code="wrong_token", message=words)
    if shared.on_inbound is None:
        return UNAVAILABLE
    return frame


async def _refuse(problem: Problem, socket: web.WebSocketResponse, request: web.Request) -> None:
    later = problem.code in ("unavailable", "refused")
    try:
        async with asyncio.timeout(CLOSE_TIMEOUT_S):
            await socket.send_str(outgoing.problem_frame(problem))
    except (TimeoutError, ConnectionError):
        _log.debug("web: a refused client left before it heard why")
    await close_socket(socket, request, problem.close_code or (TRY_AGAIN if later else BAD_HELLO))
