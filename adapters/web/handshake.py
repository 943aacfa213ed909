"""Open a session: wait for a socket's `hello` and check it. Nothing else is processed before that."""

from __future__ import annotations

import logging
from contextlib import suppress

from aiohttp import WSMessage, WSMsgType, web

from adapters.guests import Visitor, chat_of, chats_of
from adapters.web import outgoing
from adapters.web.hub import Session
from adapters.web.inbound import new_chat_id, thread_of
from adapters.web.intake import parse_text
from adapters.web.pending_sockets import Opening
from adapters.web.protocol import LATEST, FrameProblem, Hello
from adapters.web.settings import ACCOUNT, CHANNEL
from adapters.web.shared import BAD_HELLO, CLOSE_TIMEOUT_S, TRY_AGAIN, UNAVAILABLE, Shared, problem_of
from adapters.web.visitors import visitor_of

_log = logging.getLogger(__name__)
_TOO_LATE = FrameProblem(code="hello_timeout", message="no hello came in time; connect again")
_TOO_LARGE = FrameProblem(
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
    try:
        opened = await _open(shared, message, opening.address)
    except Exception as error:  # noqa: BLE001 - the client is notified of any failure and may reconnect
        opened = problem_of("opening a chat", error)
    if isinstance(opened, FrameProblem):
        await _refuse(opened, socket, request, opening)
        return None
    return opened


async def _open(shared: Shared, message: WSMessage, address: str) -> tuple[Hello, Session] | FrameProblem:
    """The accepted `hello` and its new session, or why there is none."""
    hello = parse_text(shared, message.data) if message.type is WSMsgType.TEXT else None
    if isinstance(hello, FrameProblem):
        return hello
    if not isinstance(hello, Hello):
        return FrameProblem(code="hello_first", message="the first frame must be hello")
    visitor = await _visitor(shared, hello)
    if visitor is None:
        return _wrong(hello, too_many=shared.wrong_tokens.note(address))
    if shared.on_inbound is None:
        return UNAVAILABLE
    chat = await _chat(shared, hello, visitor)
    session = shared.hub.join(chat, nodes=hello.nodes, visitor=visitor)
    if session is None:
        return FrameProblem(code="refused", message="this chat is open in too many windows; close one")
    return hello, session


async def _visitor(shared: Shared, hello: Hello) -> Visitor | None:
    """Who says hello; None for a wrong token or invitation."""
    people = shared.people
    if hello.invitation:
        return None if people is None else await people.redeem(hello.invitation, hello.token, hello.device)
    return await visitor_of(shared, hello.token)


def _wrong(hello: Hello, *, too_many: bool) -> FrameProblem:
    if too_many:
        words = "token: too many wrong ones came from this address; wait a minute, or send the right one"
        return FrameProblem(code="too_many_attempts", message=words)
    if hello.invitation:
        words = "invitation: it was used, has expired or is not complete; get another one"
        return FrameProblem(code="wrong_invitation", message=words)
    words = "token: not the access token that the gateway printed at its start"
    return FrameProblem(code="wrong_token", message=words)


async def _chat(shared: Shared, hello: Hello, visitor: Visitor) -> str:
    """The gateway's id of the chat to open: always one of the visitor's own."""
    chat = hello.chat
    if chat == LATEST:
        own = chats_of(visitor.person)
        found = await shared.timeline.chats(CHANNEL, ACCOUNT, limit=1, begins=own)
        return found[0].thread.chat if found else chat_of(visitor, new_chat_id())
    own = chat_of(visitor, chat or new_chat_id())
    if shared.chats is not None and shared.chats.is_deleted(thread_of(own)):
        return chat_of(visitor, new_chat_id())
    return own


async def _refuse(
    problem: FrameProblem, socket: web.WebSocketResponse, request: web.Request, opening: Opening
) -> None:
    later = problem.code in ("unavailable", "refused", "internal")
    try:
        async with opening.within(CLOSE_TIMEOUT_S):
            await socket.send_frame(outgoing.encode([outgoing.problem_frame(problem)]), WSMsgType.TEXT)
            await socket.close(code=problem.close_code or (TRY_AGAIN if later else BAD_HELLO))
    except (TimeoutError, ConnectionError):
        _log.debug("web: a refused client left before it heard why")
        if request.transport is not None:
            request.transport.abort()
