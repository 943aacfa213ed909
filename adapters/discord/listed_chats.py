"""The listed people's and channels' chats in which nothing was received yet.

Discord does not list a bot's direct chats, but returns the chat with a given user id. So the very first
message of a listed person is found even if it was written while the bot was offline.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from adapters.discord.failures import classify
from adapters.discord.rest import Rest

_log = logging.getLogger(__name__)

_MOST_PEOPLE = 20
"""Discord limits bots that open many direct chats."""
_MOST_ROOMS = 50


class ListedChats:
    """`people` are user ids, `rooms` channel ids. Chats are looked up once per process."""

    def __init__(self, rest: Rest, *, people: Sequence[str], rooms: Sequence[str]) -> None:
        self._rest = rest
        self._people = tuple(people)[:_MOST_PEOPLE]
        self._rooms = tuple(rooms)[:_MOST_ROOMS]
        self._chats: dict[str, str] = {}

    async def unread(self, seen: Mapping[str, int]) -> dict[str, int]:
        """The listed chats that are not in `seen`, with the ids after which to read them: a person's from the
        beginning, a group chat from the newest message received anywhere, because the bot was online
        before it."""
        newest = max(seen.values(), default=0)
        found = {room: newest for room in self._rooms if newest and room not in seen}
        for person in self._people:
            chat = await self._chat_with(person)
            if chat and chat not in seen:
                found[chat] = 0
        return found

    async def _chat_with(self, person: str) -> str:
        if person not in self._chats:
            try:
                self._chats[person] = await self._rest.direct_chat(person)
            except Exception as error:  # noqa: BLE001 - classified; the other chats are still read
                _log.info("discord: no direct chat with %s: %s", person, classify(error).message)
                return ""
        return self._chats[person]
