"""The parts shared by all sockets of the web adapter, and how sockets are closed and problems reported."""

from __future__ import annotations

import asyncio
import logging
import traceback
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from adapters.channel import LiveSpeech, OnInbound, ReadAloud, Timeline
from adapters.guests import PageChats, PagePeople
from adapters.web.attempts import WrongTokens
from adapters.web.file_links import LinkedFiles
from adapters.web.html_cache import HtmlCache
from adapters.web.hub import Hub
from adapters.web.media import UploadStore
from adapters.web.protocol import ClientLimits, FrameProblem
from adapters.web.settings import WebOptions
from adapters.workflow_editor import WorkflowEditor
from pipeline.domain.clock import Clock
from pipeline.domain.errors import InvalidInput, StorageError

_log = logging.getLogger(__name__)

NORMAL: Final = 1000
GOING_AWAY: Final = 1001
TRY_AGAIN: Final = 1013
BAD_HELLO: Final = 4400
CLOSE_TIMEOUT_S: Final = 2.0
UNAVAILABLE: Final = FrameProblem(
    code="unavailable", message="the gateway cannot take messages now; try again in a moment"
)
SIGNED_OUT: Final = FrameProblem(code="signed_out", message="this browser was signed out")
CHAT_DELETED: Final = FrameProblem(code="chat_deleted", message="this conversation was deleted")
INTERNAL: Final = FrameProblem(
    code="internal", message="something went wrong in the gateway; its log says where"
)


@dataclass(slots=True, kw_only=True)
class Shared:
    """The adapter's parts for its sockets."""

    settings: WebOptions
    limits: ClientLimits
    hub: Hub
    rendered: HtmlCache
    links: LinkedFiles
    media: UploadStore
    timeline: Timeline
    people: PagePeople | None
    """None where no one else is invited."""
    wrong_tokens: WrongTokens
    clock: Clock
    chats: PageChats | None = None
    """None until the gateway has built what deletes conversations."""
    editor: WorkflowEditor | None = None
    """None where no one edits workflows."""
    on_inbound: OnInbound | None = None
    """None while the gateway is not receiving."""
    live: LiveSpeech | None = None
    """None where live speech is not available."""
    read_aloud: ReadAloud | None = None
    """None where answers are not read aloud."""


async def close_socket(socket: web.WebSocketResponse, request: web.Request, code: int) -> None:
    """Close with `code` within CLOSE_TIMEOUT_S, by force if the peer takes nothing more."""
    try:
        async with asyncio.timeout(CLOSE_TIMEOUT_S):
            await socket.close(code=code)
    except (TimeoutError, ConnectionError):
        if request.transport is not None:
            # A normal close would wait for a full buffer for ever.
            request.transport.abort()


def problem_of(doing: str, error: Exception) -> FrameProblem:
    """The problem to send for `error`; the log gets its type and location, never its message."""
    # An exception's message may contain a person's text.
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "an unknown place"
    _log.error("web: %s failed: %s at %s", doing, type(error).__name__, place)
    if isinstance(error, StorageError):
        return UNAVAILABLE
    if isinstance(error, InvalidInput):
        return FrameProblem(code="bad_frame", message=str(error))
    return INTERNAL
