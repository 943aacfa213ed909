"""Read the last messages of a thread or channel as lines with names: the context before a mention."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient

from adapters.json_fields import mapping, text
from adapters.slack.calls import Calls
from adapters.slack.fields import ident, stamp
from adapters.slack.inbound import Bot, files_of, shared_words
from adapters.slack.people import People, mentioned, with_names
from adapters.slack.plain_text import plain_words
from pipeline.domain.attachments import attached_note
from pipeline.domain.ids import ThreadKey
from pipeline.domain.rooms import RoomLine

_PAGE = 200
_MOST_PAGES = 5
"""Slack returns a thread from its beginning: the last messages of a longer one are not reached."""
_TEXT_CHARS = 4_000
_NO_WORDS = frozenset(
    {
        "channel_join",
        "channel_leave",
        "channel_topic",
        "channel_purpose",
        "channel_name",
        "group_join",
        "group_leave",
        "pinned_item",
        "message_deleted",
        "tombstone",
    }
)


class HistoryReader:
    """Reads the history for one bot."""

    def __init__(self, calls: Calls, people: People) -> None:
        self._calls = calls
        self._people = people

    async def recent(self, thread: ThreadKey, bot: Bot, *, before: str, limit: int) -> tuple[RoomLine, ...]:
        """See `adapters.rooms.ReadingChannel`. Raises CallFailed."""
        latest = _ts(before)
        in_thread = thread.topic is not None and thread.topic != latest
        found = await self._pages(thread, latest, limit, in_thread=in_thread)
        said = sorted((one for one in found if _is_said(one, latest)), key=lambda one: float(one["ts"]))
        newest = said[-limit:]
        if in_thread and said and said[0] not in newest:
            # The first message contains the thread's topic.
            newest = [said[0], *newest[1:]]
        return await self._lines(newest, bot)

    async def _pages(
        self, thread: ThreadKey, latest: str, limit: int, *, in_thread: bool
    ) -> list[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = []
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            answer = await self._page(thread, latest, cursor, limit, in_thread=in_thread)
            messages = answer.get("messages")
            found += [mapping(one) for one in messages] if isinstance(messages, list) else []
            cursor = mapping(answer.get("response_metadata")).get("next_cursor") or None
            # Slack returns a channel from its end: the first page is enough.
            if not in_thread or not answer.get("has_more") or not isinstance(cursor, str):
                break
        return found

    async def _page(
        self, thread: ThreadKey, latest: str, cursor: str | None, limit: int, *, in_thread: bool
    ) -> Mapping[str, Any]:
        def ask(client: AsyncWebClient) -> Awaitable[Any]:
            common: dict[str, Any] = {"channel": thread.chat, "cursor": cursor, "inclusive": False}
            if latest:
                common["latest"] = latest
            if in_thread:
                return client.conversations_replies(ts=thread.topic or "", limit=_PAGE, **common)
            return client.conversations_history(limit=min(_PAGE, 2 * limit), **common)

        return await self._calls.run("conversations.replies" if in_thread else "conversations.history", ask)

    async def _lines(self, messages: list[Mapping[str, Any]], bot: Bot) -> tuple[RoomLine, ...]:
        texts = [_words_of(one, bot) for one in messages]
        users = [ident(one.get("user")) for one in messages]
        names = await self._people.names(
            (*(user for user in users if user and user != bot.user), *mentioned(*texts))
        )
        return tuple(
            RoomLine(
                text=with_names(text, names),
                name=names.get(user) or _own_name(one),
                author=user or ident(one.get("bot_id")),
                at=float(one["ts"]),
                own=user == bot.user,
            )
            for one, text, user in zip(messages, texts, users, strict=True)
            if text
        )


def _is_said(message: Mapping[str, Any], latest: str) -> bool:
    """Whether it contains text and is older than `latest`."""
    ts = stamp(message.get("ts"))
    if not ts or message.get("subtype") in _NO_WORDS:
        return False
    return not latest or float(ts) < float(latest)


def _words_of(message: Mapping[str, Any], bot: Bot) -> str:
    said, _ = plain_words(text(message.get("text"), most=_TEXT_CHARS), bot.user)
    voice, files = files_of(message)
    refs = (*((voice,) if voice else ()), *files)
    parts = (said, shared_words(message)[:_TEXT_CHARS], attached_note(refs))
    return " ".join(part for part in parts if part)


def _own_name(message: Mapping[str, Any]) -> str:
    """The app's own name in its message."""
    named = (message.get("username"), mapping(message.get("bot_profile")).get("name"))
    return next((name for name in (text(one, most=80) for one in named) if name), "")


def _ts(native_id: str) -> str:
    """The timestamp in `<channel>:<ts>` and `<channel>:<ts>:e<edit>`; empty for anything else."""
    parts = native_id.split(":")
    return stamp(parts[1]) if len(parts) > 1 else ""
