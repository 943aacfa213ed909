"""Run the session commands, reminders, announcements and barge-ins.

Not here: their names and descriptions (`pipeline.domain.commands`), parsing a message as a command
(`pipeline.domain.messages`) and cancelling turns (`worker`).
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Final

from gateway.interactions.answer_matching import may_answer
from gateway.people.codes import is_code
from gateway.storage.log_records import NEWS, NEWS_FOREIGN
from gateway.storage.ports import InboxEntry
from gateway.storage.speech import SpeakerPreferenceStore
from gateway.turns.agent_choice import AgentChoice
from gateway.turns.allowed_command import AllowedCommand
from gateway.turns.conversation_export import ConversationExport
from gateway.turns.heartbeat_command import HeartbeatCommand
from gateway.turns.history_search import HistorySearch
from gateway.turns.journal import StoreJournal
from gateway.turns.last_turn import LastTurnCommands
from gateway.turns.link_commands import LinkCommands
from gateway.turns.memory_command import MemoryCommand
from gateway.turns.model_choice import ModelChoice
from gateway.turns.run_command import RunCommand
from gateway.turns.runs_command import RunsCommand
from gateway.turns.schedules_command import SchedulesCommand
from gateway.turns.status_command import StatusCommand
from gateway.turns.stop_words import NONE_STOPPED, Stopped
from gateway.turns.usage_command import UsageCommand
from gateway.turns.voice_command import FetchVoice, VoiceCommand, no_voice_to_fetch
from pipeline.domain.command_types import CommandName
from pipeline.domain.commands import COMMANDS
from pipeline.domain.errors import InvalidInput
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import (
    Announcement,
    BargeIn,
    HeartbeatNews,
    InboundMessage,
    Mode,
    ReminderDue,
    SessionCommand,
    parse_command,
)
from pipeline.runtime.before_message import Shortcut

NEW_SESSION_TEXT = "New conversation"
END_TEXT = "This conversation is over. Write to me again whenever you like; that begins a new one."
_HELP_TEXT = "Send a message or a voice note and I answer.\n\n{commands}"
_HELP_LINE = "- `/{name}`: {description}"
OTR_ON_TEXT = (
    "New conversation, off the record: I keep nothing of what we say from now on, and forget it when the "
    "gateway restarts. `/otr` or `/new` ends it."
)
"""Followed by the channel's own sentence about the copies it keeps."""
OTR_OFF_TEXT = "New conversation, on the record again"
_NO_SUCH_COMMAND = "There is no command `{word}` here. `/help` shows those that there are."
_TRAILING_WORDS = "`{word}` takes no words behind it. Send it alone, and the rest as another message."
_REMINDER = "Reminder: {text}"
WithoutModel = SessionCommand | BargeIn | ReminderDue | Announcement | HeartbeatNews
"""The items that need no model."""
CarryOver = Callable[[str, str, Mode], Awaitable[None]]
"""Gives a session, which has that mode, the labels of another, which comes first. Raises StorageError."""
_AT_THE_MODEL: Final = frozenset({"message", "approval"})
"""The kinds of entries whose turns always need a slot."""
AS_MESSAGES: Final[frozenset[CommandName]] = frozenset({"retry", "run"})
"""The commands that are run as messages."""
_Run = Callable[[SessionCommand, StoreJournal], Awaitable[None]]
"""Runs a command and commits its line. Raises StorageError."""
_LIKE_A_COMMAND = re.compile(r"(/[a-z][a-z0-9_]{0,31})(?:@[a-z0-9_]+)?(?=\s|$)", re.ASCII | re.IGNORECASE)


class SessionCommands:
    """Runs the commands of all threads. Keeps no state between two commands."""

    def __init__(
        self,
        *,
        preferences: SpeakerPreferenceStore,
        can_speak: Callable[[ThreadKey], bool],
        copies: Callable[[ThreadKey], str],
        choice: AgentChoice,
        models: ModelChoice,
        links: LinkCommands,
        last_turn: LastTurnCommands,
        workflows: RunCommand,
        listed_runs: RunsCommand,
        history: HistorySearch,
        export: ConversationExport,
        usage: UsageCommand,
        status: StatusCommand,
        allowed: AllowedCommand,
        schedules: SchedulesCommand,
        memory: MemoryCommand,
        heartbeat: HeartbeatCommand,
        carry_over: CarryOver,
        fetch_voice: FetchVoice = no_voice_to_fetch,
    ) -> None:
        """`can_speak`: whether answers can be read aloud in a chat. `copies`: where else the channel keeps
        a chat's words, as a sentence for the person."""
        self._carry_over = carry_over
        self._can_speak = can_speak
        self._reading = VoiceCommand(preferences, can_speak, fetch_voice)
        self._copies = copies
        self._choice = choice
        self._models = models
        self._heartbeat = heartbeat
        self._last_turn = last_turn
        self._workflows = workflows
        self._listed_runs = listed_runs
        self._runs: dict[CommandName, _Run] = {
            "new": self._new,
            "end": self._end,
            "undo": last_turn.undo,
            "otr": self._otr,
            "voice": self._voice,
            "model": models.run,
            "agent": self._choice.run,
            "runs": listed_runs.run,
            "history": history.run,
            "export": export.run,
            "usage": usage.run,
            "status": status.run,
            "allowed": allowed.run,
            "schedules": schedules.run,
            "memory": memory.run,
            "heartbeat": heartbeat.run,
            "link": links.link,
            "unlink": links.unlink,
            "help": self._help,
        }

    async def run(
        self,
        item: WithoutModel,
        journal: StoreJournal,
        *,
        stopped: Stopped,
    ) -> None:
        """Run an item that needs no model; `stopped` is what a stop has cancelled. Raises
        StorageError."""
        match item:
            case BargeIn():
                await journal.commit_silently()
            case ReminderDue():
                await journal.commit_notice(_REMINDER.format(text=item.text))
            case Announcement():
                await journal.commit_notice(item.text)
            case HeartbeatNews():
                # Before the words are used: what the heartbeat has read, the conversation has read too.
                await self._carry_over(item.labelled_as, journal.session_id, journal.mode)
                await journal.commit_notice(item.text, code=NEWS_FOREIGN if item.foreign else NEWS)
            case SessionCommand():
                await self._run_command(item, journal, stopped)

    async def message_of(self, command: SessionCommand, journal: StoreJournal) -> InboundMessage | None:
        """The message that a command of AS_MESSAGES is run as; None if its entry is finished with a line
        instead. Raises StorageError."""
        if command.name == "run":
            return await self._workflows.message_of(command, journal)
        return await self._last_turn.message_again(command, journal)

    async def _run_command(self, command: SessionCommand, journal: StoreJournal, stopped: Stopped) -> None:
        """Run a command and commit its result: one durable line, no live events."""
        if command.name == "stop":
            await self._listed_runs.end_stopped(command, journal)
            await journal.commit_notice(stopped.words, code="" if stopped == NONE_STOPPED else "stopped")
        elif command.name in AS_MESSAGES:
            raise InvalidInput(f"commands: /{command.name} is run as a message")
        else:
            await self._runs[command.name](command, journal)

    async def _new(self, _command: SessionCommand, journal: StoreJournal) -> None:
        await journal.commit_new_session(NEW_SESSION_TEXT)

    async def _end(self, _command: SessionCommand, journal: StoreJournal) -> None:
        await journal.commit_new_session(END_TEXT, mode=journal.mode)

    async def _otr(self, command: SessionCommand, journal: StoreJournal) -> None:
        if journal.mode == "otr":
            await journal.commit_new_session(OTR_OFF_TEXT)
        else:
            words = f"{OTR_ON_TEXT} {self._copies(command.thread)}".strip()
            await journal.commit_new_session(words, mode="otr")

    async def _voice(self, command: SessionCommand, journal: StoreJournal) -> None:
        await journal.commit_notice(await self._reading.run(command))

    async def _help(self, command: SessionCommand, journal: StoreJournal) -> None:
        await journal.commit_notice(self._help_text(command))

    def _help_text(self, command: SessionCommand) -> str:
        """The commands that the author can use in the chat."""
        possible: dict[CommandName, bool] = {
            "voice": self._can_speak(command.thread),
            "model": self._models.is_possible(command),
            "agent": self._choice.is_possible(command),
            "heartbeat": self._heartbeat.is_possible,
            "run": self._workflows.is_possible(command),
            "runs": self._workflows.is_possible(command),
        }
        lines = [
            _HELP_LINE.format(name=one.name, description=one.description["en"])
            for one in COMMANDS
            if possible.get(one.name, command.private or not one.private)
        ]
        return _HELP_TEXT.format(commands="\n".join(lines))


def as_message(command: SessionCommand, mode: Mode) -> InboundMessage:
    """The command as the words that its author wrote, without a code that gives access."""
    secret = command.name == "link" and is_code(command.argument)
    return command.as_message(f"/{command.name} {'' if secret else command.argument}".strip(), mode)


def shortcut_of(message: InboundMessage, *, cancelled: bool) -> Shortcut | None:
    """What the message leads to in place of a run; None for a run, and if it was `cancelled`."""
    if cancelled:
        return None
    if message.refusal:
        return Shortcut(words=message.refusal, code="quota")
    words = refused_command(message)
    return Shortcut(words=words) if words else None


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


def needs_slot(entry: InboxEntry) -> bool:
    """Whether the turn of the entry needs a slot: that of a message, of an answer to a question, or of a
    command that is run as a message."""
    item = entry.item
    return entry.kind in _AT_THE_MODEL or (isinstance(item, SessionCommand) and item.name in AS_MESSAGES)
