"""Decide who may write to the bot: one function for every kind of inbound item, refusing by default.

The adapter of the web page has checked the access token before, and the terminal's user is the operator; both
channels have one owner. On every other channel a rule says who may write, by channel, account, chat and
person: access in one place gives none in another. Every item of a channel without a rule is refused.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Literal, Protocol

from gateway.access.daily_quota import DailyQuota, SharedDailyQuota
from gateway.access.pairing import PairingService
from gateway.access.room_checks import RoomChecks, may_consider
from gateway.storage.pairings import PairingBook
from gateway.storage.usage import UsageBook
from pipeline.domain.clock import Clock
from pipeline.domain.errors import ConfigurationError
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import AccountKey, ThreadKey
from pipeline.domain.messages import (
    Announcement,
    ApprovalReply,
    BargeIn,
    HeartbeatDue,
    HeartbeatNews,
    Inbound,
    InboundMessage,
    Reaction,
    ReminderDue,
    SessionCommand,
)

ByItself = ReminderDue | Announcement | HeartbeatDue | HeartbeatNews
"""The items that only the gateway makes."""
AccessMode = Literal["pairing", "list", "open"]
RoomsMode = Literal["addressed", "may_answer", "all", "never"]

_KINDS = frozenset({InboundMessage, SessionCommand, BargeIn, ApprovalReply, Reaction})
_NOT_ALLOWED = "You are not allowed to use this bot."
_NOT_IN_PRIVATE = "You are not allowed to use this bot. Its owner can allow you as dm:{user}."
_NOT_HERE = (
    "I may not answer you in this room. My owner can allow room:{chat}/{user}, or the whole room:{chat}."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """The item may be accepted."""

    if_named: bool = False
    """It is a voice note in a room, which is answered only if it names the bot."""
    may_decline: bool = False
    """It was not addressed to the bot, which decides whether to answer it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Denied:
    """The item may not be accepted."""

    reason: str
    """For the log."""
    words: str = ""
    """For the sender; empty for no reply."""
    chatter: bool = False
    """It was not meant for the bot, so it is not logged."""


class Guests(Protocol):
    """The people whom the owner of a channel has invited."""

    def is_owners(self, thread: ThreadKey) -> bool:
        """Whether only the owner may write in the chat. False for a chat in which no one may."""
        ...

    async def may_write(self, thread: ThreadKey, user: str) -> bool:
        """Whether the user is still invited, and the chat is theirs. Raises StorageError."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRule:
    """Who may write on one account of a channel. `of` builds it from the settings' lists."""

    mode: AccessMode = "pairing"
    people: frozenset[str] = frozenset()
    """User ids that may write in private."""
    whole_rooms: frozenset[str] = frozenset()
    """Chat ids of rooms where everybody may write."""
    members: frozenset[tuple[str, str]] = frozenset()
    """(chat id, user id) of those who may write in a room."""
    deny: frozenset[str] = frozenset()
    """User ids that may never write; overrides every other rule."""
    rooms: RoomsMode = "addressed"
    hear_rooms: bool = False
    """Whether voice notes in rooms are transcribed to find out if they name the bot, where it answers only
    messages addressed to it."""
    room_checks_per_hour: int = 30
    """How many messages of one room that are not addressed to the bot it considers in an hour."""
    open_messages_per_day: int = 100
    open_people: int = 200

    @classmethod
    def of(
        cls,
        *,
        mode: AccessMode = "pairing",
        allow: Iterable[str] = (),
        deny: Iterable[str] = (),
        rooms: RoomsMode = "addressed",
        hear_rooms: bool = False,
        room_checks_per_hour: int = 30,
        open_messages_per_day: int = 100,
        open_people: int = 200,
    ) -> AccessRule:
        """A rule from `allow` as entries dm:USER, room:CHAT and room:CHAT/USER, and `deny` as user ids.

        Raises ConfigurationError that names an entry of another form.
        """
        people: set[str] = set()
        whole_rooms: set[str] = set()
        members: set[tuple[str, str]] = set()
        for entry in allow:
            place, _, rest = entry.partition(":")
            chat, slash, user = rest.partition("/")
            if place == "dm" and rest and not slash:
                people.add(rest)
            elif place == "room" and chat and not slash:
                whole_rooms.add(chat)
            elif place == "room" and chat and user:
                members.add((chat, user))
            else:
                raise ConfigurationError(
                    f"allow: {entry!r} is none of dm:USER, room:CHAT and room:CHAT/USER; correct it"
                )
        return cls(
            mode=mode,
            people=frozenset(people),
            whole_rooms=frozenset(whole_rooms),
            members=frozenset(members),
            deny=frozenset(deny),
            rooms=rooms,
            hear_rooms=hear_rooms,
            room_checks_per_hour=room_checks_per_hour,
            open_messages_per_day=open_messages_per_day,
            open_people=open_people,
        )

    def knows_room(self, chat: str) -> bool:
        """Whether anybody may write to the bot in the room."""
        if self.rooms == "never":
            return False
        return (
            self.mode == "open" or chat in self.whole_rooms or any(room == chat for room, _ in self.members)
        )

    def lists(self, item: Inbound | ByItself) -> bool:
        """Whether the lists let the item's author write in its chat."""
        chat, user = item.thread.chat, item.author.id
        if item.private:
            return user in self.people
        return chat in self.whole_rooms or (chat, user) in self.members


OWNER_ONLY: Mapping[str, str] = {"web": "owner", "console": "owner"}
"""Channels whose adapter has authenticated one owner, and the author id it gives that owner."""


class AccessPolicy:
    """Decides about every inbound item.

    `rules` by (channel, account). A restart resets the counts of open accounts, if they are in memory.
    """

    def __init__(
        self,
        *,
        book: PairingBook,
        clock: Clock,
        rules: Mapping[AccountKey, AccessRule] | None = None,
        owners: Mapping[str, str] = OWNER_ONLY,
        guests: Guests | None = None,
        fresh: Callable[[], Awaitable[None]] | None = None,
        usage: UsageBook | None = None,
    ) -> None:
        """`guests` decides about the people whom the owner of a channel in `owners` has invited. `fresh` is
        called before each decision where other processes write too: what decides may be a copy. It raises
        StorageError if that may be too old. With `usage` the counts of open accounts are those of all
        processes, else those since the start of this one."""
        self._fresh = fresh
        self._guests = guests
        self._rules = dict(rules or {})
        self._owners = dict(owners)
        self._pairing = PairingService(book, clock)
        self._room_checks = RoomChecks(clock)
        self._days = {account: _quota(clock, usage, account, rule) for account, rule in self._rules.items()}

    async def authorise(self, item: Inbound) -> Allowed | Denied:
        """Whether `item` may be accepted. Reads the store only for people on no list, and writes at most the
        pairing request of a stranger who is shown a code. Raises StorageError."""
        if self._fresh is not None:
            await self._fresh()
        if type(item) not in _KINDS:
            return Denied(reason=f"{type(item).__name__} is no kind that has a rule")
        channel = item.thread.channel
        owner = self._owners.get(channel)
        if owner is not None:
            return await self._owned(item, owner)
        rule = self._rules.get(item.thread.account_key)
        if rule is None:
            return Denied(reason=f"channel {channel} has no access rule", words=_NOT_ALLOWED)
        if item.author.id in rule.deny or not _storable(item):
            return Denied(reason=f"author {item.author.id!a} is denied on {channel}")
        verdict = await (self._in_private(item, rule) if item.private else self._in_room(item, rule))
        if isinstance(item, Reaction) and isinstance(verdict, Denied):
            # Rooms are full of reactions, and none is answered with words.
            return Denied(reason=verdict.reason, chatter=True)
        return verdict

    async def still_allows(self, item: Inbound | ByItself) -> bool:
        """Whether the author of an earlier request still has access, so that its result may be sent now.
        Counts and writes nothing. True on a channel without a rule. Raises StorageError."""
        if self._fresh is not None:
            await self._fresh()
        owner = self._owners.get(item.thread.channel)
        if owner is not None:
            return isinstance(await self._owned(item, owner), Allowed)
        rule = self._rules.get(item.thread.account_key)
        if rule is None:
            return True
        if item.author.id in rule.deny or (not item.private and rule.rooms == "never"):
            return False
        if rule.lists(item) or rule.mode == "open":
            return True
        return (
            item.private
            and rule.mode == "pairing"
            and await self._pairing.is_paired(item.thread, item.author)
        )

    async def _owned(self, item: Inbound | ByItself, owner: str) -> Allowed | Denied:
        thread, user = item.thread, item.author.id
        if self._guests is None or self._guests.is_owners(thread):
            if user == owner:
                return Allowed()
        elif await self._guests.may_write(thread, user):
            return Allowed()
        reason = f"author {user!a} is neither the owner of {thread.channel} nor invited to this chat"
        return Denied(reason=reason, words=_NOT_ALLOWED)

    async def _in_private(self, item: Inbound, rule: AccessRule) -> Allowed | Denied:
        if rule.lists(item):
            return Allowed()
        if rule.mode == "open":
            return await self._while_open(item)
        who = f"author {item.author.id} is on no list of {item.thread.channel}"
        if rule.mode == "list":
            return Denied(reason=who, words=_NOT_IN_PRIVATE.format(user=item.author.id))
        if await self._pairing.is_paired(item.thread, item.author):
            return Allowed()
        if isinstance(item, ApprovalReply | Reaction):
            return Denied(reason=f"{who} and not paired", words=_NOT_ALLOWED)
        words = await self._pairing.invitation(item.thread, item.author)
        return Denied(reason=f"{who} and not paired", words=words)

    async def _in_room(self, item: Inbound, rule: AccessRule) -> Allowed | Denied:
        chat, user = item.thread.chat, item.author.id
        if rule.rooms == "never":
            return Denied(reason="the bot answers in no rooms", chatter=True)
        addressed = not isinstance(item, InboundMessage) or item.addressed
        if rule.rooms == "may_answer" and isinstance(item, InboundMessage) and may_consider(item):
            return self._unasked(item, rule)
        if_named = not addressed and rule.rooms != "all"
        if if_named and not (rule.hear_rooms and _is_voice_note(item)):
            return Denied(reason="not addressed", chatter=True)
        if rule.lists(item):
            return Allowed(if_named=if_named)
        if rule.mode == "open":
            verdict = await self._while_open(item)
            if isinstance(verdict, Allowed):
                return Allowed(if_named=if_named)
            return verdict if addressed else Denied(reason=verdict.reason)
        reason = f"author {user} is on no list for room {chat} of {item.thread.channel}"
        return Denied(reason=reason, words=_NOT_HERE.format(chat=chat, user=user) if addressed else "")

    def _unasked(self, item: InboundMessage, rule: AccessRule) -> Allowed | Denied:
        """A message that was not addressed to the bot, in a room where it may answer. It takes nothing from
        its author's limits, so that messages to the bot are answered; the room has a limit."""
        if not (rule.lists(item) or rule.mode == "open"):
            return Denied(reason="not addressed", chatter=True)
        if not self._room_checks.admit(item.thread, rule.room_checks_per_hour):
            return Denied(reason="the room has had its checks of this hour", chatter=True)
        return Allowed(may_decline=True)

    async def _while_open(self, item: Inbound) -> Allowed | Denied:
        if isinstance(item, Reaction):
            # It takes no place among the day's people: everyone in a room may react to anything.
            return Allowed()
        # Only items that cause work are counted; the author of a button press or a stop still needs a place
        # among the day's people.
        stops = isinstance(item, BargeIn) or (isinstance(item, SessionCommand) and item.name == "stop")
        free = stops or isinstance(item, ApprovalReply)
        day = self._days[item.thread.account_key]
        event = "" if free else item.native_id
        if isinstance(day, SharedDailyQuota):
            refused = await day.admit(item.author.id, event=event)
        else:
            refused = day.admit(item.author.id, event=event)
        if refused is None:
            return Allowed()
        return Denied(reason=f"author {item.author.id}: {refused.reason}", words=refused.words)


def _quota(
    clock: Clock, usage: UsageBook | None, account: AccountKey, rule: AccessRule
) -> DailyQuota | SharedDailyQuota:
    messages, people = rule.open_messages_per_day, rule.open_people
    if usage is None:
        return DailyQuota(clock, messages=messages, people=people)
    return SharedDailyQuota(clock, usage, account, messages=messages, people=people)


def _is_voice_note(item: Inbound) -> bool:
    """Whether it is a new recording of its author's own voice: not music, not forwarded, not an edit."""
    if not isinstance(item, InboundMessage) or item.voice is None or item.voice.kind == "audio":
        return False
    return not item.forwarded and not item.edited


def _storable(item: Inbound) -> bool:
    """Whether the ids are text that a store can tell apart. No platform sends others."""
    try:
        f"{item.thread.chat}{item.author.id}".encode()
    except UnicodeEncodeError:
        return False
    return bool(item.author.id)
