"""One entry of the inbox, from claim to commit: a message through the pipeline, or a session command."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import assert_never

import structlog

from gateway.answering import unknown_command
from gateway.failpoints import Failpoints
from gateway.habits import speaker_of
from gateway.sessions import SessionState, load_session
from gateway.storage.ports import InboxEntry, Lease, Store
from gateway.telemetry import Telemetry
from gateway.turn_journal import OnReply, StoreJournal
from gateway.wire import from_body
from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError, TurnFailed
from pipeline.domain.events import ErrorEvent
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import InboundMessage, SessionCommand
from pipeline.domain.ports import EventSender
from pipeline.domain.timeline import TimelineEntry
from pipeline.runtime.stopping import StopSignal
from pipeline.service import Pipeline

_log = logging.getLogger(__name__)

NEW_SESSION_TEXT = "New conversation"
HELP_TEXT = (
    "Send a message or a voice note and I answer.\n\n"
    "- `/stop` stops the answer in progress and everything still waiting\n"
    "- `/new` starts a new conversation; I forget what was said before\n"
    "- `/otr` starts one of which nothing is kept, or ends it\n"
    "- `/voice` makes me read my answers aloud as well, or stops that\n"
    "- `/help` shows this"
)
VOICE_ON_TEXT = (
    "Voice replies are on: after each answer I send it as a voice message too. "
    "Send `/voice` again to turn them off."
)
VOICE_OFF_TEXT = "Voice replies are off."
NO_VOICE_TEXT = "I cannot send voice messages here."
OTR_ON_TEXT = (
    "New conversation, off the record: I keep nothing of what we say from now on, and forget it when the "
    "gateway restarts. `/otr` or `/new` ends it."
)
"""The channel's own words about its copies follow."""
OTR_OFF_TEXT = "New conversation, on the record again"
_NO_SUCH_COMMAND = "There is no command `{word}` here. `/help` shows those that there are."
_REMINDER = "Reminder: {text}"
_HEARD_AT_ONCE = 64
"""Voice notes whose turn has begun; the ears themselves refuse what is too much for them."""
_MAX_UNWRITTEN = 200
"""Conversations off the record that are remembered; the one spoken in longest ago is forgotten first."""
_GAVE_UP = "This message made the assistant fail {attempts} times and was set aside. Please rephrase it."
_UNREADABLE = "This message could not be read back from the store and was set aside. Please send it again."


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnHooks:
    """Where a turn's visible results go."""

    sender_for: Callable[[ThreadKey, InboxEntry], EventSender]
    on_recorded: Callable[[ThreadKey, TimelineEntry], None]
    on_reply: OnReply
    discard_media: Callable[[InboundMessage], Awaitable[None]]
    """Called when a message with media is finished and its bytes are no longer needed."""
    can_speak: Callable[[ThreadKey], bool]
    """Whether answers can be read aloud in a chat."""
    copies: Callable[[ThreadKey], str]
    """Where the words of a chat stay besides, as its channel says it to the person."""


class TurnRunner:
    """Runs single entries. Holds no thread state of its own."""

    def __init__(
        self,
        *,
        store: Store,
        pipeline: Pipeline,
        hooks: TurnHooks,
        clock: Clock,
        telemetry: Telemetry,
        failpoints: Failpoints,
        max_attempts: int,
        max_running: int,
    ) -> None:
        self._store = store
        self._pipeline = pipeline
        self._hooks = hooks
        self._clock = clock
        self._telemetry = telemetry
        self._failpoints = failpoints
        self._max_attempts = max_attempts
        self._stopped: dict[int, int] = {}
        self._unwritten: dict[str, SessionState] = {}
        # A turn's clock starts when the model has room for it: behind a backlog, waiting is not failing.
        self._slots = asyncio.Semaphore(max_running)
        # A note that waits for the recogniser keeps nobody from an answer, but its sound is in memory.
        self._ears = asyncio.Semaphore(_HEARD_AT_ONCE)

    async def open_session(self, thread: str) -> SessionState:
        """The conversation that the thread's next turn continues."""
        session = await load_session(self._store, thread)
        unwritten = self._unwritten.pop(thread, None)
        if unwritten is None or unwritten.session_id != session.session_id:
            return session
        self._unwritten[thread] = unwritten
        return unwritten

    def _keep_unwritten(self, thread: str, session: SessionState) -> None:
        """A conversation off the record is nowhere but in memory, also while nobody holds its thread."""
        self._unwritten.pop(thread, None)
        if session.mode == "otr":
            self._unwritten[thread] = session
            while len(self._unwritten) > _MAX_UNWRITTEN:
                del self._unwritten[next(iter(self._unwritten))]

    def note_stop(self, seq: int, cancelled: int) -> None:
        """The /stop with inbox number `seq` cancelled that many entries."""
        if cancelled:
            self._stopped[seq] = cancelled

    async def run(self, lease: Lease, entry: InboxEntry, session: SessionState, stop: StopSignal) -> None:
        """Finish `entry`, whatever it takes. Raises FenceLost and StorageError: it is not finished then."""
        thread = ThreadKey.decode(entry.thread)
        journal = StoreJournal(
            store=self._store,
            lease=lease,
            entry=entry,
            session=session,
            clock=self._clock,
            failpoints=self._failpoints,
            on_recorded=lambda recorded: self._hooks.on_recorded(thread, recorded),
            on_reply=self._hooks.on_reply,
        )
        sender = self._telemetry.watch(self._hooks.sender_for(thread, entry), entry.received_at)
        structlog.contextvars.bind_contextvars(thread_key=entry.thread, message_id=entry.message_id)
        place = _Place(self._slots)
        spoken = _is_spoken(entry)
        # A note is heard before the model has room for it.
        waits = self._ears if spoken else place
        held = entry.kind != "command" and await self._slot(waits, stop)
        self._telemetry.turn_started(entry.received_at)
        started = self._clock.monotonic()
        try:
            failed = entry.attempts - entry.excused
            if failed >= self._max_attempts and entry.body.get("if_named"):
                await journal.decline()
            elif failed >= self._max_attempts:
                words = _GAVE_UP.format(attempts=failed)
                await self._set_aside(entry, journal, sender, "gave_up", words)
            else:
                await self._dispatch(entry, journal, sender, stop, place)
        except (asyncio.CancelledError, StorageError):
            await self._excuse(lease, entry, journal)
            raise
        finally:
            self._keep_unwritten(entry.thread, session)
            if held:
                waits.release()
            outcome = journal.outcome or "interrupted"
            self._telemetry.turn_ended(outcome)
            seconds = round(self._clock.monotonic() - started, 3)
            ended = {"outcome": outcome, "run_id": journal.run_id, "seconds": seconds}
            _log.info("turn ended", extra=ended)
            structlog.contextvars.unbind_contextvars("thread_key", "message_id")

    async def _slot(self, slots: asyncio.Semaphore | _Place, stop: StopSignal) -> bool:
        """Wait for room. False when the message is stopped before there is any: it needs none then."""
        try:
            with stop.guard():
                return await slots.acquire()
        except TurnFailed:
            return False

    async def _excuse(self, lease: Lease, entry: InboxEntry, journal: StoreJournal) -> None:
        """An attempt that a shutdown or the store cut off says nothing about the message: only those
        that are still open at the next start, because the process died, count toward the limit."""
        if not journal.attempt_counted or journal.outcome is not None:
            return
        try:
            await self._store.excuse_attempt(lease, entry.seq)
        except StorageError as error:
            _log.info("the attempt stays counted", extra={"reason": str(error)})

    async def _dispatch(
        self,
        entry: InboxEntry,
        journal: StoreJournal,
        sender: EventSender,
        stop: StopSignal,
        place: _Place,
    ) -> None:
        try:
            item = from_body(entry.kind, entry.thread, entry.message_id, entry.received_at, entry.body)
        except StorageError:
            _log.exception("inbox entry set aside")
            await self._set_aside(entry, journal, sender, "unreadable", _UNREADABLE)
            return
        if isinstance(item, SessionCommand):
            await journal.count_attempt()
            await self._command(entry, item, journal)
            return
        if isinstance(item, InboundMessage) and journal.mode != "normal":
            item = replace(item, mode=journal.mode)
        if isinstance(item, InboundMessage) and item.voice is not None:
            if await journal.ended_as_answer():
                await self._hooks.discard_media(item)
                return
            await journal.count_attempt()
        if isinstance(item, InboundMessage) and not entry.cancelled and (word := unknown_command(item)):
            await self._pipeline.reply(item, _NO_SUCH_COMMAND.format(word=word), sender, journal)
            return
        await self._pipeline.process(item, sender, journal, stop, place)
        if isinstance(item, InboundMessage) and (item.voice is not None or item.attachments):
            await self._hooks.discard_media(item)

    async def _command(self, entry: InboxEntry, command: SessionCommand, journal: StoreJournal) -> None:
        """A command's answer is its durable line alone: it has no live events."""
        match command.name:
            case "new":
                await journal.commit_new_session(NEW_SESSION_TEXT)
            case "help":
                await journal.commit_notice(HELP_TEXT)
            case "stop":
                stopped = self._stopped.pop(entry.seq, 0)
                if command.quiet:
                    await journal.commit_silently()
                else:
                    await journal.commit_notice(_stop_words(stopped))
            case "voice":
                await journal.commit_notice(await self._toggle_voice(command))
            case "remind":
                await journal.commit_notice(_REMINDER.format(text=command.text))
            case "otr" if journal.mode == "otr":
                await journal.commit_new_session(OTR_OFF_TEXT)
            case "otr":
                words = f"{OTR_ON_TEXT} {self._hooks.copies(command.thread)}".strip()
                await journal.commit_new_session(words, mode="otr")
            case _:
                assert_never(command.name)

    async def _toggle_voice(self, command: SessionCommand) -> str:
        """Turn the author's voice replies on or off; what to say. Turning off works everywhere.

        Written before it is said, with the command's id: one that is done again after a crash between the two
        changes nothing, and says what it did.
        """
        thread = command.thread
        speaker = speaker_of(thread, command.author.id)
        habits = await self._store.voices.habits(speaker)
        done = habits.voice_command == command.message_id
        wanted = habits.voice_replies if done else not habits.voice_replies
        if wanted and not done and not self._hooks.can_speak(thread):
            return NO_VOICE_TEXT
        if not done:
            await self._store.voices.want_voice_replies(speaker, wanted=wanted, command=command.message_id)
        return VOICE_ON_TEXT if wanted else VOICE_OFF_TEXT

    async def _set_aside(
        self, entry: InboxEntry, journal: StoreJournal, sender: EventSender, code: str, words: str
    ) -> None:
        entry_id = await journal.commit_failure(code, words, recoverable=True, partial="")
        await sender.send_event(
            ErrorEvent(
                session_id=journal.session_id,
                message_id=entry.message_id,
                code=code,
                message=words,
                recoverable=True,
                entry_id=entry_id,
            )
        )


class _Place:
    """A turn's room at the model: taken at most once, also by who enters what was acquired before."""

    def __init__(self, slots: asyncio.Semaphore) -> None:
        self._slots = slots
        self._taken = False

    async def acquire(self) -> bool:
        if not self._taken:
            await self._slots.acquire()
            self._taken = True
        return True

    def release(self) -> None:
        if self._taken:
            self._taken = False
            self._slots.release()

    async def __aenter__(self) -> None:
        await self.acquire()

    async def __aexit__(self, *_: object) -> None:
        self.release()


def _is_spoken(entry: InboxEntry) -> bool:
    """Whether it is a voice note, whose words are still to be heard."""
    return entry.kind == "message" and "voice" in entry.body


def _stop_words(messages: int) -> str:
    if not messages:
        return "There is nothing to stop."
    return "Stopped 1 message." if messages == 1 else f"Stopped {messages} messages."
