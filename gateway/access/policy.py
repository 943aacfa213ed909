"""Who may speak to the bot: one function for every kind of inbound item, and the default is no.

The web page's visitors have shown the access token before anything reaches this point, and the
terminal's user is the operator; both channels are local to their owner. On every other channel a rule says
who may speak, by channel, account, chat and person: nobody is let in for being known somewhere else. A
channel without a rule is refused, whatever it sends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from gateway.access.daily_quota import DailyQuota
from gateway.access.pairing import PairingService
from gateway.storage.pairings import PairingBook
from pipeline.domain.clock import Clock
from pipeline.domain.errors import ConfigurationError
from pipeline.domain.messages import ApprovalReply, Inbound, InboundMessage, SessionCommand

AccessMode = Literal["pairing", "list", "open"]
RoomsMode = Literal["addressed", "all", "never"]

_KINDS = frozenset({InboundMessage, SessionCommand, ApprovalReply})
_NOT_ALLOWED = "You are not allowed to use this bot."
_NOT_IN_PRIVATE = "You are not allowed to use this bot. Its owner can allow you as dm:{user}."
_NOT_HERE = (
    "I may not answer you in this room. My owner can allow room:{chat}/{user}, or the whole room:{chat}."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """The item may enter."""

    if_named: bool = False
    """It is a voice note in a room, and is to be answered only if it names the bot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Denied:
    """The item may not enter."""

    reason: str
    """For the log."""
    words: str = ""
    """For the sender; empty to stay silent."""
    chatter: bool = False
    """It was not meant for the bot: not worth a line in the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRule:
    """Who may speak on one account of a channel. `of` reads it from the settings' lists."""

    mode: AccessMode = "pairing"
    people: frozenset[str] = frozenset()
    """User ids that may write in private."""
    whole_rooms: frozenset[str] = frozenset()
    """Chat ids of rooms where everybody may speak."""
    members: frozenset[tuple[str, str]] = frozenset()
    """(chat id, user id) of those who may speak in a room."""
    deny: frozenset[str] = frozenset()
    """User ids that may never speak, whatever else is said."""
    rooms: RoomsMode = "addressed"
    hear_rooms: bool = False
    """Whether voice notes in rooms are heard to find out if they name the bot, where only what is addressed
    to it is answered."""
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
        open_messages_per_day: int = 100,
        open_people: int = 200,
    ) -> AccessRule:
        """From `allow` as entries dm:USER, room:CHAT and room:CHAT/USER, and `deny` as user ids.

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
            open_messages_per_day=open_messages_per_day,
            open_people=open_people,
        )

    def knows_room(self, chat: str) -> bool:
        """Whether anybody may speak to the bot in the room."""
        if self.rooms == "never":
            return False
        return (
            self.mode == "open" or chat in self.whole_rooms or any(room == chat for room, _ in self.members)
        )

    def lists(self, item: Inbound) -> bool:
        """Whether the lists let the item's author speak in its chat."""
        chat, user = item.thread.chat, item.author.id
        if item.private:
            return user in self.people
        return chat in self.whole_rooms or (chat, user) in self.members


OWNER_ONLY: Mapping[str, str] = {"web": "owner", "console": "owner"}
"""Channels whose adapter has authenticated one owner, and the author id it gives that owner."""


class AccessPolicy:
    """Decides about every inbound item.

    `rules` by (channel, account). The counts of accounts that are open begin anew with the process.
    """

    def __init__(
        self,
        *,
        book: PairingBook,
        clock: Clock,
        rules: Mapping[tuple[str, str], AccessRule] | None = None,
        owners: Mapping[str, str] = OWNER_ONLY,
    ) -> None:
        self._rules = dict(rules or {})
        self._owners = dict(owners)
        self._desk = PairingService(book, clock)
        self._days = {
            account: DailyQuota(clock, messages=rule.open_messages_per_day, people=rule.open_people)
            for account, rule in self._rules.items()
        }

    async def authorise(self, item: Inbound) -> Allowed | Denied:
        """Whether `item` may be accepted. It reads the store for people on no list alone, and writes
        at most the request of a stranger who is shown a code. Raises StorageError."""
        if type(item) not in _KINDS:
            return Denied(reason=f"{type(item).__name__} is no kind that has a rule")
        channel = item.thread.channel
        owner = self._owners.get(channel)
        if owner is not None:
            return _owner_alone(item, owner)
        rule = self._rules.get((channel, item.thread.account))
        if rule is None:
            return Denied(reason=f"channel {channel} has no access rule", words=_NOT_ALLOWED)
        if item.author.id in rule.deny or not _storable(item):
            return Denied(reason=f"author {item.author.id!a} is denied on {channel}")
        return await (self._in_private(item, rule) if item.private else self._in_room(item, rule))

    async def still_lets(self, item: Inbound) -> bool:
        """Whether what somebody set going earlier may be said to them now: they were not shut out meanwhile.
        It counts and writes nothing. Where a channel is turned off nobody is asked. Raises StorageError."""
        owner = self._owners.get(item.thread.channel)
        if owner is not None:
            return item.author.id == owner
        rule = self._rules.get((item.thread.channel, item.thread.account))
        if rule is None:
            return True
        if item.author.id in rule.deny or (not item.private and rule.rooms == "never"):
            return False
        if rule.lists(item) or rule.mode == "open":
            return True
        return (
            item.private and rule.mode == "pairing" and await self._desk.is_paired(item.thread, item.author)
        )

    async def _in_private(self, item: Inbound, rule: AccessRule) -> Allowed | Denied:
        if rule.lists(item):
            return Allowed()
        if rule.mode == "open":
            return self._while_open(item)
        who = f"author {item.author.id} is on no list of {item.thread.channel}"
        if rule.mode == "list":
            return Denied(reason=who, words=_NOT_IN_PRIVATE.format(user=item.author.id))
        if await self._desk.is_paired(item.thread, item.author):
            return Allowed()
        if isinstance(item, ApprovalReply):
            return Denied(reason=f"{who} and not paired", words=_NOT_ALLOWED)
        words = await self._desk.invitation(item.thread, item.author)
        return Denied(reason=f"{who} and not paired", words=words)

    async def _in_room(self, item: Inbound, rule: AccessRule) -> Allowed | Denied:
        chat, user = item.thread.chat, item.author.id
        if rule.rooms == "never":
            return Denied(reason="the bot answers in no rooms", chatter=True)
        addressed = not isinstance(item, InboundMessage) or item.addressed
        if_named = not addressed and rule.rooms != "all"
        if if_named and not (rule.hear_rooms and _is_voice_note(item)):
            return Denied(reason="not addressed", chatter=True)
        if rule.lists(item):
            return Allowed(if_named=if_named)
        if rule.mode == "open":
            verdict = self._while_open(item)
            if isinstance(verdict, Allowed):
                return Allowed(if_named=if_named)
            return verdict if addressed else Denied(reason=verdict.reason)
        reason = f"author {user} is on no list for room {chat} of {item.thread.channel}"
        return Denied(reason=reason, words=_NOT_HERE.format(chat=chat, user=user) if addressed else "")

    def _while_open(self, item: Inbound) -> Allowed | Denied:
        # Only what brings work is counted; who presses a button or stops must still be among the people.
        free = isinstance(item, ApprovalReply) or (isinstance(item, SessionCommand) and item.name == "stop")
        day = self._days[(item.thread.channel, item.thread.account)]
        refused = day.admit(item.author.id, event="" if free else item.native_id)
        if refused is None:
            return Allowed()
        return Denied(reason=f"author {item.author.id}: {refused.reason}", words=refused.words)


def _owner_alone(item: Inbound, owner: str) -> Allowed | Denied:
    if item.author.id == owner:
        return Allowed()
    reason = f"author {item.author.id!a} is not the owner of {item.thread.channel}"
    return Denied(reason=reason, words=_NOT_ALLOWED)


def _is_voice_note(item: Inbound) -> bool:
    """Whether its author says something in it, now: no music, nothing passed on, no new caption."""
    if not isinstance(item, InboundMessage) or item.voice is None or item.voice.kind == "audio":
        return False
    return not item.forwarded and not item.edited


def _storable(item: Inbound) -> bool:
    """Whether the ids are text that a store can keep apart: no platform sends others."""
    try:
        f"{item.thread.chat}{item.author.id}".encode()
    except UnicodeEncodeError:
        return False
    return bool(item.author.id)
