"""Open a session: wait for a socket's `hello` and check it. Nothing else is processed before that."""

from __future__ import annotations

import logging
from contextlib import suppress

from aiohttp import WSMessage, WSMsgType, web

from adapters.web import outgoing
from adapters.web.hub import Session
from adapters.web.inbound import new_chat_id
from adapters.web.intake import parse_text
from adapters.web.pending_sockets import Opening
from adapters.web.protocol import LATEST, Hello, Problem
from adapters.web.settings import ACCOUNT, CHANNEL
from adapters.web.shared import BAD_HELLO, CLOSE_TIMEOUT_S, TRY_AGAIN, UNAVAILABLE, Shared, problem_of

_log = logging.getLogger(__name__)
_TOO_LATE = Problem(code="hello_timeout", message="no hello came in time; connect again")
_TOO_LARGE = Problem(
    code="bad_frame", message="frame: too long for a hello; send nothing else before welcome"
)


async def greet(
    shared: Shared, socket: web.WebSocketResponse, request: web.Request, opening: Opening
) -> tuple[Hello, Session] | None:
    """The accepted `hello` and its new session; None when the socket was rejected and closed."""
    message: WSMessage | None = None
    with suppress(TimeoutError):
        async with opening.within(shared.settings.hello_timeout_s):
            message = await socket.receive()
    if message is None:
        problem = _TOO_LARGE if opening.ended_by == "size" else _TOO_LATE
        await _refuse(problem, socket, request, opening)
        return None
    if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
        return None
    hello = _judge(shared, message, opening.address)
    if isinstance(hello, Problem):
        await _refuse(hello, socket, request, opening)
        return None
    chat = hello.chat
    try:
        if chat == LATEST:
            found = await shared.timeline.chats(CHANNEL, ACCOUNT, limit=1)
            chat = found[0].thread.chat if found else None
    except Exception as error:  # noqa: BLE001 - the client is notified of any failure and may reconnect
        await _refuse(problem_of("looking for the latest chat", error), socket, request, opening)
        return None
    session = shared.hub.join(chat or new_chat_id(), nodes=hello.nodes)
    if session is None:
        problem = Problem(code="refused", message="this chat is open in too many windows; close one")
        await _refuse(problem, socket, request, opening)
        return None
    return hello, session


def _judge(shared: Shared, message: WSMessage, address: str) -> Hello | Problem:
    frame = parse_text(shared, message.data) if message.type is WSMsgType.TEXT else None
    if isinstance(frame, Problem):
        return frame
    if not isinstance(frame, Hello):
        return Problem(code="hello_first", message="the first frame must be hello")
    if not shared.settings.token_check(frame.token):
        if shared.wrong_tokens.note(address):
            words = "token: too many wrong ones came from this address; wait a minute, or send the right one"
            return Problem(code="too_many_attempts", message=words)
        words = "token: not the access token that the gateway printed at its start"
        return Problem(code="wrong_token", message=words)
    if shared.on_inbound is None:
        return UNAVAILABLE
    return frame


async def _refuse(
    problem: Problem, socket: web.WebSocketResponse, request: web.Request, opening: Opening
) -> None:
    later = problem.code in ("unavailable", "refused", "internal")
    try:
        async with opening.within(CLOSE_TIMEOUT_S):
            await socket.send_str(outgoing.encode([outgoing.problem_frame(problem)]))
            await socket.close(code=problem.close_code or (TRY_AGAIN if later else BAD_HELLO))
    except (TimeoutError, ConnectionError):
        _log.debug("web: a refused client left before it heard why")
        if request.transport is not None:
            request.transport.abort()
