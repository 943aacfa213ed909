"""Read a room's recent messages and its members' names when the bot is addressed there.

The messages of others are read from the platform when the bot is addressed, and never stored. Where a
platform offers bots no history (Telegram), the newest messages that arrived are kept in memory only. Both
apply within the operator's limits, and only in rooms where at least one person may write to the bot.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence

from adapters.channel import Channel
from adapters.rooms import looks_up_names, reads_rooms
from gateway.access.policy import AccessRule
from gateway.channels.registry import ChannelRegistry
from gateway.storage.identities import Identity, wrote
from gateway.storage.log_records import text_of
from gateway.storage.ports import Store
from pipeline.domain.attachments import attached_note
from pipeline.domain.bounded_dict import BoundedDict
from pipeline.domain.clock import Clock
from pipeline.domain.conversation import Conversation
from pipeline.domain.errors import StorageError
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import AccountKey, ThreadKey
from pipeline.domain.messages import ApprovalReply, InboundMessage
from pipeline.domain.rooms import MAX_LINE_CHARS, RoomLine, RoomTalk

_log = logging.getLogger(__name__)

_READ_S = 5.0
_NAMES_S = 3.0
_MOST_ROOMS = 200
_REMEMBERED_S = 24 * 3600.0
_FAILED = "the platform did not let the bot read them"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomRule:
    """What may be read in the rooms of one account."""

    messages: int = 20
    """How many of the newest messages to read; 0 for none."""
    access: AccessRule | None = None
    """Who may write there; None to check only the message's author."""


_NO_RULE = RoomRule()
_NO_TALK = RoomTalk()


class ChannelRooms:
    """Implements the pipeline's `Rooms` port over the channels. `rules` by (channel, account)."""

    def __init__(
        self,
        *,
        channels: ChannelRegistry,
        rules: Mapping[AccountKey, RoomRule],
        store: Store,
        clock: Clock,
    ) -> None:
        self._channels = channels
        self._rules = dict(rules)
        self._store = store
        self._clock = clock
        self._unaddressed = BoundedDict[ThreadKey, OrderedDict[str, RoomLine]](_MOST_ROOMS)

    def note_unaddressed(self, message: InboundMessage) -> None:
        """Remember a message that was not meant for the bot, if its platform offers no history."""
        rule = self._rule(message.thread)
        access = rule.access
        if message.private or not rule.messages or access is None:
            return
        if message.author.id in access.deny or not access.knows_room(message.thread.chat):
            return
        if reads_rooms(self._channel(message.thread)):
            return
        lines: OrderedDict[str, RoomLine] = self._unaddressed.get_or_add(message.thread, OrderedDict)
        # An edited message replaces the original, in its place.
        lines[_place(message)] = _line(message, self._clock.now())
        while len(lines) > rule.messages:
            lines.popitem(last=False)

    def forget(self, identities: Collection[Identity]) -> None:
        """Forget what these people wrote."""
        for thread, lines in self._unaddressed.items():
            for place in [at for at, one in lines.items() if wrote(identities, thread.encode(), one.author)]:
                del lines[place]

    def forget_all(self) -> None:
        """Forget what everybody wrote: another process erases a person."""
        self._unaddressed.clear()

    async def named(self, message: InboundMessage) -> InboundMessage:
        """See `pipeline.runtime.ports.Rooms`."""
        channel = self._channel(message.thread)
        naming: object = channel
        if channel is None or not looks_up_names(naming):
            return message
        try:
            async with self._clock.timeout(_NAMES_S):
                return await naming.named(message)
        except Exception as error:  # noqa: BLE001 - a missing name must not fail the message
            reason = channel.classify(error).message
            _log.warning("names could not be looked up", extra={"reason": reason})
            return message

    async def talk(self, message: InboundMessage | ApprovalReply, said: Conversation) -> RoomTalk:
        """See `pipeline.runtime.ports.Rooms`."""
        rule = self._rule(message.thread)
        if message.private or not rule.messages:
            return _NO_TALK
        channel = self._channel(message.thread)
        reading: object = channel
        try:
            since = begun = await self._since(message.thread)
            if reads_rooms(reading):
                before = message.native_id if isinstance(message, InboundMessage) else ""
                async with self._clock.timeout(_READ_S):
                    lines = await reading.recent(message.thread, before=before, limit=rule.messages)
            else:
                since = max(since, self._clock.now() - _REMEMBERED_S)
                own = "" if isinstance(message, ApprovalReply) else _place(message)
                heard = self._unaddressed.get(message.thread, OrderedDict())
                lines = tuple(line for place, line in heard.items() if place != own)
        except StorageError:
            raise
        except Exception as error:  # noqa: BLE001 - the message is answered anyway, and the model informed
            failure = channel.classify(error) if channel is not None else None
            reason = failure.message if failure is not None and failure.message else _FAILED
            _log.warning("a room could not be read", extra={"reason": reason})
            # The text of an auth error may name settings and files, and that of an unknown error names its
            # class: both are for the operator only.
            known = failure is not None and failure.kind not in ("auth", "unknown")
            return RoomTalk(unread=reason if known else _FAILED)
        denied = rule.access.deny if rule.access is not None else frozenset()
        kept = [one for one in lines if one.author not in denied and (not one.at or one.at >= since)]
        if said.turns or said.summary is not None or begun:
            kept = _unsaid(kept, said)
        return RoomTalk(lines=tuple(kept[-rule.messages :]))

    async def _since(self, thread: ThreadKey) -> float:
        """When a command began the newest conversation, as Unix time; earlier messages are ignored. 0 if no
        command did."""
        records = await self._store.read_log(thread.encode(), kinds=("session",), limit=1)
        return records[-1].at if records and text_of(records[-1]) else 0.0

    def _rule(self, thread: ThreadKey) -> RoomRule:
        return self._rules.get(thread.account_key, _NO_RULE)

    def _channel(self, thread: ThreadKey) -> Channel | None:
        return self._channels.of(thread)


def _place(message: InboundMessage) -> str:
    """The same before and after an edit."""
    return message.reply_handle or message.native_id


def _line(message: InboundMessage, now: float) -> RoomLine:
    refs = (*message.attachments, *((message.voice,) if message.voice else ()))
    words = (message.text[:MAX_LINE_CHARS], attached_note(refs, message.unusable))
    return RoomLine(
        text=" ".join(word for word in words if word),
        name=message.author.name,
        author=message.author.id,
        at=now,
    )


def _unsaid(lines: Sequence[RoomLine], said: Conversation) -> list[RoomLine]:
    """The lines that the conversation does not hold yet: it already holds the bot's own messages and those
    that were meant for the bot."""
    known = {_bare(message.content) for message in said.messages if message.role == "user"}
    return [
        line for line in lines if not line.own and not any(one.endswith(_bare(line.text)) for one in known)
    ]


def _bare(text: str) -> str:
    return " ".join(text.split())
