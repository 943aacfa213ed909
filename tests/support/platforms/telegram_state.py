"""The state of the fake Telegram: accounts, chats, messages, drafts, files and updates for the bot."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.support.platforms.telegram_rules import bad_request

BOT_ID = 7_770_001
BOT_NAME = "parlour_bot"
_FIRST_UPDATE = 500_000


@dataclass(slots=True, kw_only=True)
class Stored:
    """One message as Telegram keeps it."""

    message_id: int
    chat: int
    topic: int | None
    author: int
    text: str
    entities: list[dict[str, Any]] = field(default_factory=list)
    markup: dict[str, Any] | None = None
    file_name: str = ""
    edits: int = 0
    reply_to: int | None = None
    fields: dict[str, Any] = field(default_factory=dict)
    """Further fields of the message, as in the Bot API: voice, document …"""

    def buttons(self) -> Iterator[tuple[str, str]]:
        """Label and callback data."""
        for row in (self.markup or {}).get("inline_keyboard", ()):
            for button in row:
                yield button["text"], button["callback_data"]


@dataclass(slots=True, kw_only=True)
class Draft:
    """A preview that a bot streams into a private chat."""

    draft_id: int
    chat: int
    topic: int | None
    text: str
    can_stop: bool
    at: float
    """When it was last sent, by the monotonic clock."""


@dataclass(slots=True)
class Updates:
    """The bot's updates, oldest first, until they are confirmed."""

    pending: list[dict[str, Any]] = field(default_factory=list)
    allowed: tuple[str, ...] | None = None
    """As last asked for; None: everything but a few kinds."""
    webhook: dict[str, Any] = field(default_factory=dict)
    webhook_error: str = ""
    polling: bool = False
    _ids: Iterator[int] = field(default_factory=lambda: itertools.count(_FIRST_UPDATE))

    def add(self, kind: str, body: dict[str, Any], *, twice: bool = False) -> None:
        """Queue an update, if the bot wants its kind; `twice` as a platform that redelivers."""
        update = {"update_id": next(self._ids), kind: body}
        default = kind != "stopped_message_generation"
        if default if self.allowed is None else kind in self.allowed:
            self.pending.extend([update, update] if twice else [update])

    def confirm_below(self, offset: int) -> None:
        """Delete updates older than `offset`; a negative one keeps only that many of the newest."""
        if offset < 0:
            self.pending = self.pending[offset:]
        elif offset > 0:
            self.pending = [update for update in self.pending if update["update_id"] >= offset]


class TelegramState:
    """Everything that survives a gateway's restart. `changed` wakes all waiters."""

    def __init__(self, token: str) -> None:
        self.token = token
        self.updates = Updates()
        self.abilities = {"can_join_groups": True, "can_read_all_group_messages": False}
        """What @BotFather lets the bot do, as getMe says it."""
        self._messages: dict[tuple[int, object], Stored] = {}
        self._places: dict[tuple[int, int | None], list[Stored]] = {}
        self.drafts: dict[tuple[int, int], Draft] = {}
        self.users: dict[int, dict[str, Any]] = {}
        self.rooms: dict[int, dict[str, Any]] = {}
        self.blocked: set[int] = set()
        self.files: dict[str, bytes] = {}
        self.file_failures: list[int] = []
        """HTTP statuses that the next downloads are answered with."""
        self.sizes: dict[str, int] = {}
        """Sizes that getFile reports instead of the file's."""
        self.paths: dict[str, object] = {}
        """Paths that getFile reports instead of the file's."""
        self.methods_removed: set[str] = set()
        """Methods that this server does not have, like an old one."""
        self.reactions: dict[tuple[int, int], str] = {}
        """By chat and message, the bot's reaction."""
        self.callbacks: dict[str, str] = {}
        """Answered callback queries: id to the words shown to the presser."""
        self.commands: dict[str, list[dict[str, Any]]] = {}
        """The menu of commands by language; empty for all others."""
        self.ids = itertools.count(1)
        self._changed = asyncio.Event()

    @property
    def bot(self) -> dict[str, Any]:
        """The bot's own account."""
        return {"id": BOT_ID, "is_bot": True, "first_name": "Parlour", "username": BOT_NAME}

    def changed(self) -> None:
        """Record a change: wake all waiters."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def next_change(self) -> None:
        """Return at the next change."""
        await self._changed.wait()

    def chat(self, chat: object) -> dict[str, Any]:
        """The chat as the Bot API shows it. Raises ApiError where there is none."""
        if isinstance(chat, int):
            if chat in self.users:
                return {"id": chat, "type": "private", "first_name": self.users[chat]["first_name"]}
            if chat in self.rooms:
                return self.rooms[chat]
        raise bad_request("chat not found")

    def find(self, chat: int, message_id: object) -> Stored | None:
        """The message, if it is there."""
        return self._messages.get((chat, message_id))

    def add(self, stored: Stored) -> None:
        """Show a message."""
        self._messages[stored.chat, stored.message_id] = stored
        self._places.setdefault((stored.chat, stored.topic), []).append(stored)

    def remove(self, stored: Stored) -> None:
        """Remove a message."""
        del self._messages[stored.chat, stored.message_id]
        self._places[stored.chat, stored.topic].remove(stored)

    def of(self, chat: int, topic: int | None) -> list[Stored]:
        """The messages of a place, oldest first."""
        return self._places.get((chat, topic), [])

    def as_message(self, stored: Stored, *, with_reply: bool = True) -> dict[str, Any]:
        """A stored message as the Bot API shows it."""
        author = self.bot if stored.author == BOT_ID else self.users[stored.author]
        shown: dict[str, Any] = {
            "message_id": stored.message_id,
            "date": 1_700_000_000,
            "chat": self.chat(stored.chat),
            "from": author,
            **stored.fields,
        }
        if stored.text:
            words, marks = ("caption", "caption_entities") if stored.fields else ("text", "entities")
            shown[words] = stored.text
            if stored.entities:
                shown[marks] = stored.entities
        if stored.topic is not None:
            shown |= {"message_thread_id": stored.topic, "is_topic_message": True}
        if stored.markup:
            shown["reply_markup"] = stored.markup
        replied = self.find(stored.chat, stored.reply_to) if with_reply else None
        if replied is not None:
            shown["reply_to_message"] = self.as_message(replied, with_reply=False)
        return shown
