"""Chats of people and rooms that the operator has listed, and in which nothing was heard yet.

Discord does not tell a bot of the direct chats that it has. Of a person whose id is known it does: so the
very first message of somebody who is listed is found, though it was written while the bot was away.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from adapters.discord.failures import classify
from adapters.discord.rest import Rest

_log = logging.getLogger(__name__)

_MOST_PEOPLE = 20
"""Discord takes it ill when a bot opens many direct chats."""
_MOST_ROOMS = 50


class ListedChats:
    """`people` are user ids, `rooms` channel ids. Chats are looked up once in the life of a process."""

    def __init__(self, rest: Rest, *, people: Sequence[str], rooms: Sequence[str]) -> None:
        self._rest = rest
        self._people = tuple(people)[:_MOST_PEOPLE]
        self._rooms = tuple(rooms)[:_MOST_ROOMS]
        self._chats: dict[str, str] = {}

    async def unheard(self, seen: Mapping[str, int]) -> dict[str, int]:
        """The listed chats that are not among `seen`, with the ids after which they are to be read: a
        person's from the beginning, a room from the newest message that was heard anywhere. Before that the
        bot was there to hear."""
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
            except Exception as error:  # noqa: BLE001 - classified; the others are read all the same
                _log.info("discord: no direct chat with %s: %s", person, classify(error).message)
                return ""
        return self._chats[person]
