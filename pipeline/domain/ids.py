"""Identifiers: the thread key with its text codec, and new random ids.

Platform-native ids are not here: they are strings in the messages.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import field
from functools import lru_cache

from pipeline.domain.errors import InvalidInput
from pipeline.domain.frozen import dataclass

_SEPARATOR = ":"
_MAX_PART_CHARS = 200

HEARTBEAT_TOPIC = "~heartbeat"
"""The end of the topic of a thread of heartbeats. No platform has such a topic."""

_ID_BYTES = 10
_DRAWN_AT_ONCE = 64
_unused: list[str] = []
"""Random hexadecimal numbers that no id has yet. A forked process draws its own."""
os.register_at_fork(after_in_child=_unused.clear)

AccountKey = tuple[str, str]
"""A channel's name and the account on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadKey:
    """The permanent place of one conversation in a channel.

    The direct chats of two people never share a key: `chat` is the platform's chat id, and `topic` a
    sub-thread of it (Telegram topic, Slack thread) or None.
    """

    channel: str
    account: str
    chat: str
    topic: str | None = None
    account_key: AccountKey = field(init=False, compare=False, repr=False)
    """The channel and the account on it: the key under which an adapter and its rules are found. Computed
    once, as a turn needs it ten times."""
    text: str = field(init=False, compare=False, repr=False)
    """See `encode`."""

    def __post_init__(self) -> None:
        for name in ("channel", "account", "chat", "topic"):
            value = getattr(self, name)
            if value is None and name == "topic":
                continue
            if not isinstance(value, str) or not value:
                raise InvalidInput(f"thread key: {name} must be a non-empty string")
            if len(value) > _MAX_PART_CHARS:
                raise InvalidInput(f"thread key: {name} is longer than {_MAX_PART_CHARS} characters")
        own = (self.channel, self.account, self.chat)
        parts = own if self.topic is None else (*own, self.topic)
        text = _SEPARATOR.join(parts)
        if "%" in text or text.count(_SEPARATOR) >= len(parts):
            text = _SEPARATOR.join([_escape(part) for part in parts])
        object.__setattr__(self, "account_key", own[:2])
        object.__setattr__(self, "text", text)

    def encode(self) -> str:
        """The key as text, for example `telegram:mainbot:-1001234:77`. Inverse of `decode`."""
        return self.text

    @staticmethod
    def decode(text: str) -> ThreadKey:
        """Parse the text of `encode`. Raises InvalidInput for any text that `encode` does not write."""
        return _decoded(text)

    def __str__(self) -> str:
        return self.encode()


def identity_key(channel: str, account: str, user: str) -> str:
    """The key of the person that one identity is, as long as it is linked with no other: for example
    `telegram:main:user:1001`."""
    return f"{channel}:{account}:user:{user}"


def heartbeat_thread(chat: ThreadKey) -> ThreadKey:
    """The thread in which the heartbeats of a chat's person run: no message is sent there."""
    topic = HEARTBEAT_TOPIC if chat.topic is None else f"{chat.topic}{HEARTBEAT_TOPIC}"
    return ThreadKey(channel=chat.channel, account=chat.account, chat=chat.chat, topic=topic)


def chat_of_heartbeats(thread: ThreadKey) -> ThreadKey:
    """The chat whose heartbeats run in the thread; any other thread itself."""
    if not is_heartbeat(thread):
        return thread
    topic = (thread.topic or "").removesuffix(HEARTBEAT_TOPIC) or None
    return ThreadKey(channel=thread.channel, account=thread.account, chat=thread.chat, topic=topic)


def is_heartbeat(thread: ThreadKey) -> bool:
    """Whether heartbeats run in the thread."""
    return thread.topic is not None and thread.topic.endswith(HEARTBEAT_TOPIC)


def room_owner(thread: ThreadKey) -> str:
    """The owner of what is kept for the room of a thread, in all its topics."""
    return f"{thread.channel}:{thread.account}:room:{thread.chat}"


def own_person(thread: ThreadKey, user: str) -> str:
    """The key of the person that `user` on the account of `thread` is without any link."""
    return identity_key(thread.channel, thread.account, user)


def new_id(prefix: str) -> str:
    """A new id such as `ses_3f9c…`: 80 random bits, safe in URLs, logs and file names."""
    try:
        unused = _unused.pop()
    except IndexError:
        # Many at once: each question to the system costs as much as the rest of an id thirty times over.
        drawn = secrets.token_hex(_ID_BYTES * _DRAWN_AT_ONCE)
        chars = 2 * _ID_BYTES
        _unused.extend(drawn[at : at + chars] for at in range(chars, len(drawn), chars))
        unused = drawn[:chars]
    return f"{prefix}_{unused}"


@lru_cache(maxsize=1024)
def _decoded(text: str) -> ThreadKey:
    """See `ThreadKey.decode`. Cached, as a turn decodes the same key several times."""
    parts = [_unescape(part) for part in text.split(_SEPARATOR)]
    if len(parts) not in (3, 4):
        raise InvalidInput("thread key: expected channel:account:chat or channel:account:chat:topic")
    topic = parts[3] if len(parts) == 4 else None
    key = ThreadKey(channel=parts[0], account=parts[1], chat=parts[2], topic=topic)
    if key.encode() != text:
        raise InvalidInput("thread key: not in canonical form")
    return key


def _escape(part: str) -> str:
    return part.replace("%", "%25").replace(_SEPARATOR, "%3A")


def _unescape(part: str) -> str:
    return part.replace("%3A", _SEPARATOR).replace("%25", "%")
