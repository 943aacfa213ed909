"""The fake Discord's reactions of the bot."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

Handler = Callable[[web.Request, dict[str, Any], Any], Awaitable[tuple[int, Any]]]
_REACTION = "/messages/{message}/reactions/{emoji}/@me"


class Reactions:
    """Answers the requests that put a reaction of the bot on a message, and remove it."""

    def __init__(self) -> None:
        self.shown: set[tuple[str, str]] = set()
        """(channel, message) of the bot's current reactions."""

    def routes(self, channel: str) -> tuple[tuple[str, str, str, Handler], ...]:
        """The rows of the routing table below the path of a channel."""
        path = channel + _REACTION
        return ("PUT", path, "react", self.react), ("DELETE", path, "unreact", self.unreact)

    async def react(self, request: web.Request, *_: Any) -> tuple[int, Any]:
        self.shown.add((request.match_info["channel"], request.match_info["message"]))
        return 204, None

    async def unreact(self, request: web.Request, *_: Any) -> tuple[int, Any]:
        self.shown.discard((request.match_info["channel"], request.match_info["message"]))
        return 204, None
