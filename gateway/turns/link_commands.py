"""Run the commands /link and /unlink: make several identities one person, and separate them.

The rules are in `gateway.people.linking`. Here are the words, and what is refused in rooms and off the
record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gateway.people.announcements import Announcer
from gateway.people.linking import Linking
from gateway.storage.identities import Identity, JoinStatus, Member
from gateway.turns.journal import StoreJournal
from pipeline.domain.messages import SessionCommand

_IN_A_ROOM = (
    "Others read along here, so I show no code and take none. A code that was sent here no longer works. "
    "Send `/link` to me in private."
)
_UNLINK_IN_A_ROOM = "Others read along here. Send `/unlink` to me in private."
_OFF_THE_RECORD = (
    "This conversation is off the record, and a link would have to be kept. Send `/otr` first to end it."
)
_CODE = (
    "Send this to me in your private chat on the other channel, within 15 minutes:\n\n"
    "`/link {code}`\n\n"
    "On Slack it is `/parlour link {code}`. From then on both chats belong to one person for me: they share "
    "a daily budget, preferences and what I keep, beginning with what I keep for this chat. "
    "The code works once. Give it to no one else: it would join that person's chat to yours."
)
_TOO_MANY_CODES = "Too many people are linking chats at the moment. Please try again in 15 minutes."
_JOINED = (
    "This chat and {others} belong to one person for me now: I use what I keep for them, and count one "
    "daily budget for all. What I kept for this chat alone is set aside. `/unlink` here ends the link and "
    "brings it back."
)
_NO_FILES = "\n\nNot all notes and files could be copied. `/unlink` in the other chat brings them back there."
_ANNOUNCED = (
    "{joiner} has been linked with this one, by a code from one of your chats: both belong to one person for "
    "me now. "
    "If that was not you, send `/unlink` here. Then nothing more is shared; what was shared until then stays "
    "there too."
)
_NOT_JOINED: Final[dict[JoinStatus, str]] = {
    "wrong": (
        "This code does not work: it is mistyped, used, or older than 15 minutes. `/link` in the other chat "
        "shows a new one."
    ),
    "own": "This is the code of this chat. Send it to me in your private chat on the other channel.",
    "linked": "These chats belong to one person already.",
    "elsewhere": (
        "This chat is linked with other chats already. Send `/unlink` first, and then the code again."
    ),
    "full": "No more chats can be linked with that one. `/unlink` in one of them makes room.",
    "limited": "There were too many wrong codes, so I take none now. Please try again in an hour.",
}
_LEFT = (
    "This chat is no longer linked with {others}. What was shared stays there. Here I begin again with what "
    "I kept before the link; what was used of today's budget still counts."
)
_ALONE = (
    "This chat is linked with no other, so there is nothing to undo. A code that it showed no longer works."
)
_CHANNELS: Final = {
    "telegram": "Telegram",
    "slack": "Slack",
    "discord": "Discord",
    "web": "the web page",
    "console": "the terminal",
}
_MAIN_ACCOUNTS = ("main", "local")
_MAX_NAME_CHARS = 40


class LinkCommands:
    """Runs the two commands in all threads."""

    def __init__(self, linking: Linking, announcer: Announcer) -> None:
        self._linking = linking
        self._announcer = announcer

    async def link(self, command: SessionCommand, journal: StoreJournal) -> None:
        """Show a code, or take the one behind the command. Raises StorageError."""
        if not command.private:
            if command.argument:
                await self._linking.cancel(command.argument)
            await journal.commit_notice(_IN_A_ROOM)
        elif journal.mode == "otr":
            await journal.commit_notice(_OFF_THE_RECORD)
        elif command.argument:
            await journal.commit_notice(await self._join(command))
        elif code := await self._linking.show_code(command):
            await journal.commit_notice(_CODE.format(code=code), forgotten=True)
        else:
            await journal.commit_notice(_TOO_MANY_CODES)

    async def unlink(self, command: SessionCommand, journal: StoreJournal) -> None:
        """Separate the author from the identities that they have linked. Raises StorageError."""
        if not command.private:
            await journal.commit_notice(_UNLINK_IN_A_ROOM)
            return
        left = await self._linking.leave(command)
        await journal.commit_notice(_LEFT.format(others=_chats(left.others)) if left.others else _ALONE)

    async def _join(self, command: SessionCommand) -> str:
        """Take the code; the line to show."""
        linked = await self._linking.join(command)
        joined = linked.joined
        if joined.status != "joined":
            return _NOT_JOINED[joined.status]
        line = _ANNOUNCED.format(joiner=_joiner(command))
        for other in joined.others:
            await self._announcer.announce(other, line, cause=command.message_id)
        words = _JOINED.format(others=_chats(joined.others))
        return words if linked.has_files else words + _NO_FILES


def _joiner(command: SessionCommand) -> str:
    name = " ".join(command.author.name.replace("`", "").split())[:_MAX_NAME_CHARS]
    thread = command.thread
    where = _where(Identity(channel=thread.channel, account=thread.account, user=command.author.id))
    return f"A chat on {where}" + (f" (`{name}`)" if name else "")


def _chats(members: Sequence[Member]) -> str:
    """The members' chats in words: "your chats on Slack and the web page"."""
    places = list(dict.fromkeys(_where(member.identity) for member in members))
    listed = " and ".join(filter(None, (", ".join(places[:-1]), places[-1])))
    return f"your {'chat' if len(members) == 1 else 'chats'} on {listed}"


def _where(identity: Identity) -> str:
    channel = _CHANNELS.get(identity.channel, identity.channel)
    return channel if identity.account in _MAIN_ACCOUNTS else f"{channel} ({identity.account})"
