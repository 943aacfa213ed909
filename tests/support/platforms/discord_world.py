"""The state of the fake Discord: users, one server, channels, messages, files; and their wire shapes.

No HTTP and no gateway: `discord_rest` and `discord_gateway` provide access.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pipeline.domain.clock import Clock

EPOCH_MS = 1_420_070_400_000
MASS_MENTION = re.compile(r"@(?:everyone|here)\b")
_USER_MENTION = re.compile(r"<@!?(\d+)>")
_MARKS = re.compile(r"\*\*|__|~~|\|\||`{1,3}|(?<!\w)[*_]|[*_](?!\w)")
_LINE_MARKS = re.compile(r"^(?:> ?|-# ?|#{1,3} )", re.MULTILINE)
_LITERAL = re.compile(r"\\([\\*_~`|>#\-\[\]().@<:])|(<https?://[^<>\s]+>)")
"""An escaped sign, or an address in angle brackets: Discord finds no Markdown in either."""

GUILD_TEXT = 0
DM = 1


@dataclass(slots=True, kw_only=True)
class User:
    """An account; the bot under test is one too."""

    id: str
    name: str
    bot: bool = False

    def wire(self) -> dict[str, Any]:
        """The user object of the API."""
        wire: dict[str, Any] = {
            "id": self.id,
            "username": self.name,
            "global_name": self.name,
            "discriminator": "0",
            "avatar": None,
        }
        if self.bot:
            wire["bot"] = True
        return wire


@dataclass(slots=True, kw_only=True)
class Channel:
    """A direct chat with the bot or a text channel of the one server."""

    id: str
    kind: int
    name: str = ""
    recipients: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class StoredFile:
    """An attachment."""

    id: str
    name: str
    content: bytes
    mime: str
    duration_s: float | None = None


@dataclass(slots=True, kw_only=True)
class Message:
    """One message as the platform keeps it."""

    id: str
    channel: str
    author: str
    content: str
    at: float
    files: list[StoredFile] = field(default_factory=list)
    components: list[dict[str, Any]] = field(default_factory=list)
    embeds: list[dict[str, Any]] = field(default_factory=list)
    flags: int = 0
    reply_to: str = ""
    forwards: Message | None = None
    edited_at: float | None = None
    edits: int = 0
    nonce: str = ""
    webhook: str = ""
    deleted: bool = False


class World:
    """Everything that exists, with snowflake ids drawn from `clock`."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._last_snowflake = 0
        self.guild_id = self.snowflake()
        self.bot = User(id=self.snowflake(), name="parlour", bot=True)
        self.bot_role = self.snowflake()
        self.guild_extra: dict[str, Any] = {}
        """Fields in which the server's GUILD_CREATE is another one."""
        """The role of the bot's name that Discord makes when a server invites it."""
        self.users: dict[str, User] = {self.bot.id: self.bot}
        self.channels: dict[str, Channel] = {}
        self.messages: dict[str, dict[str, Message]] = {}
        self.cdn_base = ""
        self.link_version = 1
        """Part of every file link; counting it up expires the links given out before."""

    def snowflake(self) -> str:
        """A fresh id; ids grow, also within one millisecond."""
        at = (int(self.clock.now() * 1000) - EPOCH_MS) << 22
        self._last_snowflake = max(at, self._last_snowflake + 1)
        return str(self._last_snowflake)

    def user(self, name: str, *, bot: bool = False) -> User:
        """The account called `name`."""
        for user in self.users.values():
            if user.name == name and user is not self.bot:
                return user
        user = User(id=self.snowflake(), name=name, bot=bot)
        self.users[user.id] = user
        return user

    def channel(self, kind: int, *, name: str = "", recipients: tuple[str, ...] = ()) -> Channel:
        """The channel of that name or with that person; made if there is none."""
        for channel in self.channels.values():
            if channel.kind == kind and (channel.name, channel.recipients) == (name, recipients):
                return channel
        channel = Channel(id=self.snowflake(), kind=kind, name=name, recipients=recipients)
        self.channels[channel.id] = channel
        self.messages[channel.id] = {}
        return channel

    def add(self, channel: str, author: str, content: str, **rest: Any) -> Message:
        """A new message."""
        message = Message(
            id=self.snowflake(),
            channel=channel,
            author=author,
            content=content,
            at=self.clock.now(),
            **rest,
        )
        self.messages[channel][message.id] = message
        return message

    def of(self, channel: str) -> list[Message]:
        """The messages of a channel that are not deleted, oldest first."""
        return [message for message in self.messages.get(channel, {}).values() if not message.deleted]

    def get(self, channel: str, message_id: str) -> Message | None:
        """The message, unless it was deleted."""
        message = self.messages.get(channel, {}).get(message_id)
        return None if message is None or message.deleted else message

    # -- wire shapes ------------------------------------------------------------------------------

    def message_wire(self, message: Message, *, gateway: bool = False) -> dict[str, Any]:
        """The message object. Only the gateway's events carry the server's id and the member."""
        author = self.users[message.author].wire()
        wire: dict[str, Any] = {
            "id": message.id,
            "channel_id": message.channel,
            "author": author,
            "content": message.content,
            "timestamp": iso(message.at),
            "edited_timestamp": iso(message.edited_at) if message.edited_at is not None else None,
            "tts": False,
            "mention_everyone": bool(MASS_MENTION.search(message.content)),
            "mentions": self._mentioned(message.content),
            "mention_roles": [],
            "attachments": [self.file_wire(message, file) for file in message.files],
            "embeds": message.embeds,
            "pinned": False,
            "type": 19 if message.reply_to else 0,
            "flags": message.flags,
            "components": message.components,
        }
        if message.nonce:
            wire["nonce"] = message.nonce
        if message.webhook:
            wire["webhook_id"] = message.webhook
            wire["author"] = {**author, "bot": True}
        if message.reply_to:
            wire["message_reference"] = {"message_id": message.reply_to, "channel_id": message.channel}
            referenced = self.get(message.channel, message.reply_to)
            wire["referenced_message"] = self.message_wire(referenced) if referenced else None
        if message.forwards is not None:
            wire |= self._forwarded_wire(message.forwards)
        if gateway and self.channels[message.channel].kind != DM:
            wire["guild_id"] = self.guild_id
            wire["member"] = self.member_wire(author, with_user=False)
        return wire

    def _forwarded_wire(self, original: Message) -> dict[str, Any]:
        """The fields of a message that forwards another one: a snapshot without its author."""
        kept = (
            "type",
            "content",
            "embeds",
            "attachments",
            "timestamp",
            "edited_timestamp",
            "flags",
            "components",
        )
        snapshot = {name: value for name, value in self.message_wire(original).items() if name in kept}
        reference = {"type": 1, "message_id": original.id, "channel_id": original.channel}
        return {"message_reference": reference, "message_snapshots": [{"message": snapshot}]}

    def file_wire(self, message: Message, file: StoredFile) -> dict[str, Any]:
        """The attachment object, with a link that lasts until the link version counts up."""
        url = f"{self.cdn_base}/attachments/{message.channel}/{file.id}/{file.name}?ex={self.link_version}"
        wire: dict[str, Any] = {
            "id": file.id,
            "filename": file.name,
            "size": len(file.content),
            "url": url,
            "proxy_url": url,
            "content_type": file.mime,
        }
        if file.duration_s is not None:
            wire |= {"duration_secs": file.duration_s, "waveform": "AAAA"}
        return wire

    def channel_wire(self, channel: Channel) -> dict[str, Any]:
        """The channel object."""
        if channel.kind == DM:
            people = [self.users[one].wire() for one in channel.recipients]
            return {"id": channel.id, "type": DM, "last_message_id": None, "recipients": people}
        return {
            "id": channel.id,
            "type": GUILD_TEXT,
            "guild_id": self.guild_id,
            "name": channel.name,
            "position": 0,
            "permission_overwrites": [],
            "parent_id": None,
            "topic": None,
            "nsfw": False,
            "rate_limit_per_user": 0,
            "last_message_id": None,
        }

    def guild_wire(self) -> dict[str, Any]:
        """The server as in GUILD_CREATE."""
        everyone = {
            "id": self.guild_id,
            "name": "@everyone",
            "color": 0,
            "hoist": False,
            "position": 0,
            "permissions": "0",
            "managed": False,
            "mentionable": False,
            "flags": 0,
        }
        own = {**everyone, "id": self.bot_role, "name": self.bot.name, "managed": True}
        own["tags"] = {"bot_id": self.bot.id}
        rooms = [one for one in self.channels.values() if one.kind == GUILD_TEXT]
        return {
            "id": self.guild_id,
            "name": "a server",
            "unavailable": False,
            "owner_id": self.bot.id,
            "member_count": len(self.users),
            "roles": [everyone, own],
            "emojis": [],
            "stickers": [],
            "features": [],
            "channels": [self.channel_wire(room) for room in rooms],
            "threads": [],
            "members": [self.member_wire(self.bot.wire(), with_user=True)],
            "voice_states": [],
            "presences": [],
            "joined_at": iso(self.clock.now()),
            "large": False,
            **self.guild_extra,
        }

    def member_wire(self, user: dict[str, Any], *, with_user: bool) -> dict[str, Any]:
        """The member object of the one server."""
        member: dict[str, Any] = {
            "roles": [],
            "joined_at": iso(self.clock.now()),
            "deaf": False,
            "mute": False,
            "flags": 0,
        }
        if with_user:
            member["user"] = user
        return member

    def _mentioned(self, content: str) -> list[dict[str, Any]]:
        ids = dict.fromkeys(_USER_MENTION.findall(content))
        return [self.users[one].wire() for one in ids if one in self.users]


def iso(at: float) -> str:
    """A timestamp as the API writes it."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds")


def read(content: str) -> str:
    """The visible text, without Discord's own Markdown."""
    kept: list[str] = []

    def keep(match: re.Match[str]) -> str:
        kept.append(match.group(1) or match.group(2))
        return f"\x00{len(kept) - 1}\x00"

    bare = _LINE_MARKS.sub("", _MARKS.sub("", _LITERAL.sub(keep, content)))
    return re.sub(r"\x00(\d+)\x00", lambda match: kept[int(match.group(1))], bare)


def button_rows(components: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All buttons of a message, in reading order."""
    return [button for row in components for button in row.get("components", ())]
