"""The state of the fake Slack: people, conversations, messages and files, and their JSON shapes.

No network and no rules: `slack_web` changes it, `slack_delivery` sends events to the bot.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.support.platforms.platform import Person
from tests.support.platforms.slack_rules import mass_mentions, mrkdwn_of, shown_text

TEAM = "T0PARLOUR"
APP = "A0PARLOUR"
BOT_USER = "U0PARLOURBOT"
BOT = "B0PARLOUR"
SCOPES = (
    *("app_mentions:read", "channels:history", "chat:write", "commands", "files:read", "files:write"),
    *("groups:history", "im:history", "mpim:history", "reactions:read", "reactions:write", "users:read"),
)
"""Those of adapters/slack/manifest.yaml."""


@dataclass(slots=True, kw_only=True)
class Conversation:
    """A channel or a direct chat with the bot."""

    id: str
    name: str
    private: bool
    members: tuple[str, ...] = ()
    joined: bool = True
    """Whether the bot is in it."""


@dataclass(slots=True, kw_only=True)
class Posted:
    """One message as the workspace keeps it."""

    channel: str
    ts: str
    user: str
    text: str = ""
    blocks: list[dict[str, Any]] = field(default_factory=list)
    thread_ts: str = ""
    metadata: dict[str, Any] | None = None
    files: list[dict[str, Any]] = field(default_factory=list)
    shares: list[dict[str, Any]] = field(default_factory=list)
    """The messages that it shares, as attachments."""
    subtype: str = ""
    bot_id: str = ""
    edits: int = 0
    streaming: bool = False
    broadcast: bool = False

    @property
    def native_id(self) -> str:
        return f"{self.channel}:{self.ts}"

    @property
    def ours(self) -> bool:
        """Whether the bot under test wrote it."""
        return self.user == BOT_USER

    def read(self) -> str:
        """The visible text."""
        return shown_text(self.blocks, self.text)

    def buttons(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for block in self.blocks:
            if block.get("type") == "actions":
                found += [one for one in block.get("elements", []) if one.get("type") == "button"]
        return found

    def as_json(self, *, with_metadata: bool = False) -> dict[str, Any]:
        """As history, events and presses show it."""
        shape: dict[str, Any] = {
            "type": "message",
            "user": self.user,
            "text": self.text,
            "ts": self.ts,
            "team": TEAM,
        }
        if self.thread_ts:
            shape["thread_ts"] = self.thread_ts
        if self.subtype:
            shape["subtype"] = self.subtype
        if self.files:
            shape["files"] = self.files
        if self.shares:
            shape["attachments"] = self.shares
        if self.bot_id:
            shape["bot_id"] = self.bot_id
            shape["app_id"] = APP if self.ours else "A0OTHER"
            shape["blocks"] = self.blocks
        if self.edits:
            shape["edited"] = {"user": self.user, "ts": f"{self.ts.split('.')[0]}.{self.edits:06d}"}
        if with_metadata and self.metadata is not None:
            shape["metadata"] = self.metadata
        return shape


class HeldEdits:
    """Calls of chat.update that wait before they are carried out."""

    def __init__(self) -> None:
        self.gates: deque[asyncio.Event] = deque()
        """Each holds the next call back until it is set."""
        self.waiting = 0
        """How many are held back now."""

    async def reach(self, method: str, changed: Callable[[], None]) -> None:
        """Wait, if this call is to be held back. `changed` is called when it begins to."""
        if method != "chat.update" or not self.gates:
            return
        self.waiting += 1
        changed()
        await self.gates.popleft().wait()
        self.waiting -= 1


@dataclass(slots=True)
class Workspace:
    """One team with one bot in it."""

    scopes: set[str] = field(default_factory=lambda: set(SCOPES))
    """The scopes of the bot's token."""
    people: dict[str, Person] = field(default_factory=dict)
    conversations: dict[str, Conversation] = field(default_factory=dict)
    messages: list[Posted] = field(default_factory=list)
    contents: dict[str, bytes] = field(default_factory=dict)
    """Bytes of files by id."""
    reactions: list[tuple[str, str, str]] = field(default_factory=list)
    """(channel, ts, name) of the bot's current reactions."""
    file_failures: list[int] = field(default_factory=list)
    """HTTP statuses that the next downloads are answered with."""
    uploads: dict[str, str] = field(default_factory=dict)
    """File names announced by files.getUploadURLExternal, by id."""
    ephemerals: list[tuple[str, str, str]] = field(default_factory=list)
    """(channel, user, text) of messages that only one person saw."""
    mass_mentions: list[str] = field(default_factory=list)
    """Every `<!channel>` and the like that the bot has posted as one."""
    unfurls: int = 0
    """Messages of the bot that let Slack fetch their links."""
    statuses: list[tuple[str, str, str]] = field(default_factory=list)
    """(channel, thread_ts, status) of assistant.threads.setStatus."""
    held: HeldEdits = field(default_factory=HeldEdits)
    chance: random.Random = field(default_factory=lambda: random.Random(1))
    _last_ts: float = 0.0

    def upload(self, base: str, person: Person, content: bytes, *, mime: str, **extra: Any) -> dict[str, Any]:
        """Store a file; its object, with `extra` fields."""
        name = f"F{self.next_ts().replace('.', '')}"
        self.contents[name] = content
        url = f"{base}/files/{name}/content"
        return {
            "id": name,
            "name": "file.bin",
            "mimetype": mime,
            "filetype": mime.rpartition("/")[2],
            "size": len(content),
            "user": person.id,
            "mode": "hosted",
            "url_private": url,
            "url_private_download": url,
            **extra,
        }

    def next_ts(self) -> str:
        """A timestamp that is the id of a message: later than every one before."""
        now = time.time()  # noqa: TID251 - the platform's own clock
        self._last_ts = max(self._last_ts + 0.000_001, now)
        return f"{self._last_ts:.6f}"

    def add(self, posted: Posted) -> Posted:
        """Store a message; the bot's are checked for mentions of the whole channel."""
        self.messages.append(posted)
        self.note_mentions(posted)
        return posted

    def note_mentions(self, posted: Posted) -> None:
        if posted.ours:
            self.mass_mentions += mass_mentions("\n".join((posted.text, *mrkdwn_of(posted.blocks))))

    def find(self, channel: str, ts: str) -> Posted | None:
        for posted in reversed(self.messages):
            if posted.ts == ts and posted.channel == channel:
                return posted
        return None

    def of(self, channel: str, topic: str | None = None) -> list[Posted]:
        """The messages of a conversation, or of one thread of it, oldest first."""
        return [
            one
            for one in self.messages
            if one.channel == channel and (topic is None or topic in (one.ts, one.thread_ts))
        ]

    def person_by_id(self, user: str) -> Person | None:
        return next((person for person in self.people.values() if person.id == user), None)

    def event(self, inner: Mapping[str, Any]) -> dict[str, Any]:
        """The Events API wrapper around one event."""
        return {
            "token": "verification",
            "team_id": TEAM,
            "api_app_id": APP,
            "event": dict(inner),
            "type": "event_callback",
            "event_id": f"Ev{self.next_ts().replace('.', '')}",
            "event_time": int(self._last_ts),
            "authorizations": [{"team_id": TEAM, "user_id": BOT_USER, "is_bot": True}],
        }

    def message_event(self, posted: Posted) -> dict[str, Any]:
        shape = posted.as_json()
        shape["channel"] = posted.channel
        shape["event_ts"] = posted.ts
        shape["channel_type"] = "im" if self.conversations[posted.channel].private else "channel"
        if posted.broadcast:
            shape["subtype"] = "thread_broadcast"
        parent = self.find(posted.channel, posted.thread_ts)
        if parent is not None and parent is not posted:
            shape["parent_user_id"] = parent.user
        return shape

    def changed_event(self, posted: Posted, before: Mapping[str, Any]) -> dict[str, Any]:
        """message_changed, as it also comes for the bot's own edits and for unfurled links."""
        now = self.next_ts()
        return {
            "type": "message",
            "subtype": "message_changed",
            "hidden": True,
            "message": posted.as_json(),
            "previous_message": dict(before),
            "channel": posted.channel,
            "ts": now,
            "event_ts": now,
            "channel_type": "im" if self.conversations[posted.channel].private else "channel",
        }
