"""Run the session commands (`/new`, `/stop`, `/voice`, `/otr`, `/agent`, `/link`, `/unlink`, `/help`),
reminders, announcements and barge-ins.

Not here: parsing a message as a command (`pipeline.domain.messages`) and cancelling turns (`worker`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import assert_never

from gateway.agents.agent_book import AgentBook
from gateway.interactions.answer_matching import may_answer
from gateway.people.codes import is_code
from gateway.storage.speech import SpeakerPreferenceStore
from gateway.turns.agent_choice import AgentChoice
from gateway.turns.journal import StoreJournal
from gateway.turns.link_commands import LinkCommands
from gateway.turns.voice_command import FetchVoice, VoiceCommand, no_voice_to_fetch
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import (
    Announcement,
    BargeIn,
    InboundMessage,
    Mode,
    ReminderDue,
    SessionCommand,
    parse_command,
)

NEW_SESSION_TEXT = "New conversation"
_HELP_TEXT = (
    "Send a message or a voice note and I answer.\n\n"
    "- `/stop` stops the answer in progress and everything still waiting\n"
    "- `/new` starts a new conversation; I forget what was said before\n"
    "- `/otr` starts one of which nothing is kept, or ends it\n"
    "{voice}{agent}{link}"
    "- `/help` shows this"
)
_HELP_VOICE = (
    "- `/voice` makes me read my answers aloud as well, or stops that; `/voice auto`: after voice notes\n"
)
_HELP_AGENT = "- `/agent` shows the agents you can talk to here, and chooses one\n"
_HELP_LINK = "- `/link` joins this chat with your chats on other channels; `/unlink` undoes that\n"
OTR_ON_TEXT = (
    "New conversation, off the record: I keep nothing of what we say from now on, and forget it when the "
    "gateway restarts. `/otr` or `/new` ends it."
)
"""Followed by the channel's own sentence about the copies it keeps."""
OTR_OFF_TEXT = "New conversation, on the record again"
_NO_SUCH_COMMAND = "There is no command `{word}` here. `/help` shows those that there are."
_TRAILING_WORDS = "`{word}` takes no words behind it. Send it alone, and the rest as another message."
_REMINDER = "Reminder: {text}"
_LIKE_A_COMMAND = re.compile(r"(/[a-z][a-z0-9_]{0,31})(?:@[a-z0-9_]+)?(?=\s|$)", re.ASCII | re.IGNORECASE)


class SessionCommands:
    """Runs the commands of all threads. Keeps no state between two commands."""

    def __init__(
        self,
        *,
        preferences: SpeakerPreferenceStore,
        can_speak: Callable[[ThreadKey], bool],
        copies: Callable[[ThreadKey], str],
        agents: AgentBook,
        links: LinkCommands,
        fetch_voice: FetchVoice = no_voice_to_fetch,
    ) -> None:
        """`can_speak`: whether answers can be read aloud in a chat. `copies`: where else the channel keeps
        a chat's words, as a sentence for the person."""
        self._can_speak = can_speak
        self._voice = VoiceCommand(preferences, can_speak, fetch_voice)
        self._copies = copies
        self._choice = AgentChoice(agents)
        self._links = links

    async def run(
        self,
        item: SessionCommand | BargeIn | ReminderDue | Announcement,
        journal: StoreJournal,
        *,
        stopped: int,
    ) -> None:
        """Run an item that needs no model; `stopped` is how many messages a stop has cancelled. Raises
        StorageError."""
        match item:
            case BargeIn():
                await journal.commit_silently()
            case ReminderDue():
                await journal.commit_notice(_REMINDER.format(text=item.text))
            case Announcement():
                await journal.commit_notice(item.text)
            case SessionCommand():
                await self._run_command(item, journal, stopped)

    async def _run_command(self, command: SessionCommand, journal: StoreJournal, stopped: int) -> None:
        """Run a command and commit its result: one durable line, no live events."""
        match command.name:
            case "new":
                await journal.commit_new_session(NEW_SESSION_TEXT)
            case "help":
                voice = _HELP_VOICE if self._can_speak(command.thread) else ""
                agent = _HELP_AGENT if self._choice.is_possible(command) else ""
                link = _HELP_LINK if command.private else ""
                await journal.commit_notice(_HELP_TEXT.format(voice=voice, agent=agent, link=link))
            case "agent":
                await self._choice.run(command, journal)
            case "link":
                await self._links.link(command, journal)
            case "unlink":
                await self._links.unlink(command, journal)
            case "stop":
                await journal.commit_notice(_stop_words(stopped), code="stopped" if stopped else "")
            case "voice":
                await journal.commit_notice(await self._voice.run(command))
            case "otr" if journal.mode == "otr":
                await journal.commit_new_session(OTR_OFF_TEXT)
            case "otr":
                words = f"{OTR_ON_TEXT} {self._copies(command.thread)}".strip()
                await journal.commit_new_session(words, mode="otr")
            case _:
                assert_never(command.name)


def as_message(command: SessionCommand, mode: Mode) -> InboundMessage:
    """The command as the words that its author wrote, without a code that gives access."""
    secret = command.name == "link" and is_code(command.argument)
    return InboundMessage(
        message_id=command.message_id,
        native_id=command.native_id,
        thread=command.thread,
        author=command.author,
        received_at=command.received_at,
        text=f"/{command.name} {'' if secret else command.argument}".strip(),
        mode=mode,
        private=command.private,
        reply_handle=command.reply_handle,
    )


def refused_command(message: InboundMessage) -> str:
    """The answer to a command that does not exist or takes no words; empty for any other message."""
    word = unknown_command(message)
    if not word:
        return ""
    words = _NO_SUCH_COMMAND if parse_command(word) is None else _TRAILING_WORDS
    return words.format(word=word)


def unknown_command(message: InboundMessage) -> str:
    """The command-like word that a message in a private chat begins with; empty otherwise. An existing
    command arrives as a message only when words follow it, and a path is not a command."""
    if not message.private or message.speech is not None or not may_answer(message):
        return ""
    word = _LIKE_A_COMMAND.match(message.text.strip())
    return "" if word is None else word[1]


def _stop_words(messages: int) -> str:
    if not messages:
        return "There is nothing to stop."
    return "Stopped 1 message." if messages == 1 else f"Stopped {messages} messages."
