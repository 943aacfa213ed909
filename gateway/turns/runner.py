"""One entry of the inbox, from claim to commit: a message through the pipeline, or a session command."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import assert_never

import structlog

from adapters.channel import OutboundReply
from gateway.interactions.answer_matching import unknown_command
from gateway.interactions.message_edits import Edits
from gateway.runtime.failpoints import Failpoints
from gateway.runtime.metrics import Telemetry
from gateway.speech.speaker_language import speaker_of
from gateway.storage.codec import from_body
from gateway.storage.deaths import Deaths
from gateway.storage.ports import InboxEntry, Lease, Store
from gateway.storage.turn_questions import TurnQuestions
from gateway.turns.journal import OnReply, StoreJournal
from gateway.turns.sessions import SessionState, load_session
from gateway.turns.slots import ConcurrencySlot, Quarantine
from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError, TurnFailed
from pipeline.domain.events import ErrorEvent
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import ApprovalReply, InboundMessage, SessionCommand, parse_command
from pipeline.domain.ports import EventSender
from pipeline.domain.timeline import TimelineEntry
from pipeline.runtime.stopping import StopSignal
from pipeline.service import Pipeline

_log = logging.getLogger(__name__)

NEW_SESSION_TEXT = "New conversation"
_HELP_TEXT = (
    "Send a message or a voice note and I answer.\n\n"
    "- `/stop` stops the answer in progress and everything still waiting\n"
    "- `/new` starts a new conversation; I forget what was said before\n"
    "- `/otr` starts one of which nothing is kept, or ends it\n"
    "{voice}"
    "- `/help` shows this"
)
_HELP_VOICE = "- `/voice` makes me read my answers aloud as well, or stops that\n"
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
_WORDS_BEHIND = "`{word}` takes no words behind it. Send it alone, and the rest as another message."
_REMINDER = "Reminder: {text}"
_HEARD_AT_ONCE = 64
"""Voice notes whose turn has begun; the ears themselves refuse what is too much for them."""
_KNOWN_COMMANDS = 8
"""Of one person's `/voice`, over all their chats: one that is done again is recognised among these."""
_MAX_UNWRITTEN = 200
"""Conversations off the record that are remembered; the one spoken in longest ago is forgotten first."""
_GAVE_UP = (
    "I was restarted {deaths} times while I worked on this message and on nothing else, so I have set it "
    "aside without an answer. It may not be the message's fault: you can send it again."
)
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
    on_asked: Callable[[], None]
    """Told when a paused run's question is on record."""
    copies: Callable[[ThreadKey], str]
    """Where the words of a chat stay besides, as its channel says it to the person."""


class TurnRunner:
    """Runs single entries. Of threads it holds what no store does: conversations off the record, how many
    messages a stop has cancelled until it says so, and which were edited or deleted before their turn."""

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
        self._withdrawn: set[int] = set()
        self._edits = Edits(store, clock)
        self._unwritten: dict[str, SessionState] = {}
        # A turn's clock starts when the model has room for it: behind a backlog, waiting is not failing.
        self._slots = asyncio.Semaphore(max_running)
        self._quarantine = Quarantine(clock, max_attempts)
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

    def note_deaths(self, deaths: Mapping[int, Deaths]) -> None:
        """What the store knows of deaths of the process, by unfinished entry; before any turn is run."""
        self._quarantine.hold(deaths)

    def note_stop(self, seq: int, cancelled: int) -> None:
        """The /stop with inbox number `seq` cancelled that many entries."""
        if cancelled:
            self._stopped[seq] = cancelled

    def note_withdrawn(self, seq: int) -> None:
        """The message of the entry was edited or deleted."""
        self._withdrawn.add(seq)

    async def run(self, lease: Lease, entry: InboxEntry, session: SessionState, stop: StopSignal) -> None:
        """Finish `entry`, whatever it takes. Raises FenceLost and StorageError: it is not finished then."""
        thread = ThreadKey.decode(entry.thread)
        watched = self._telemetry.watch(self._hooks.sender_for(thread, entry), entry.received_at)
        sender = TurnQuestions(watched)
        journal = StoreJournal(
            store=self._store,
            lease=lease,
            entry=entry,
            session=session,
            clock=self._clock,
            failpoints=self._failpoints,
            on_recorded=lambda recorded: self._hooks.on_recorded(thread, recorded),
            on_reply=lambda row_id, reply: self._on_reply(entry, row_id, reply),
            on_asked=self._hooks.on_asked,
            questions=sender,
        )
        structlog.contextvars.bind_contextvars(thread_key=entry.thread, message_id=entry.message_id)
        place = ConcurrencySlot(
            self._slots,
            leave_quarantine=lambda: self._quarantine.end(entry.seq),
            excuse=lambda: self._excuse(lease, entry, journal),
            count=journal.count_attempt,
        )
        # A note is heard before the model has room for it.
        ears = self._ears if _is_spoken(entry) else None
        held = entry.kind != "command" and await self._admitted(entry, ears, place, stop)
        self._telemetry.turn_started(entry.received_at)
        started = self._clock.monotonic()
        try:
            deaths = self._quarantine.deaths_alone(entry.seq)
            if entry.seq in self._withdrawn and entry.attempts == 0:
                # Nobody has seen anything of it: nothing is said, and nothing kept.
                await journal.decline()
                return
            if deaths >= self._max_attempts and entry.body.get("if_named"):
                await journal.decline()
            elif deaths >= self._max_attempts:
                words = _GAVE_UP.format(deaths=deaths)
                await self._set_aside(entry, journal, sender, "gave_up", words)
            else:
                await self._dispatch(entry, journal, sender, stop, place)
        except (asyncio.CancelledError, StorageError):
            await self._excuse(lease, entry, journal)
            raise
        finally:
            self._keep_unwritten(entry.thread, session)
            self._withdrawn.discard(entry.seq)
            self._quarantine.end(entry.seq)
            place.leave()
            if held and ears is not None:
                ears.release()
            outcome = journal.outcome or "interrupted"
            self._telemetry.turn_ended(outcome)
            seconds = round(self._clock.monotonic() - started, 3)
            ended = {"outcome": outcome, "run_id": journal.run_id, "seconds": seconds}
            _log.info("turn ended", extra=ended)
            structlog.contextvars.unbind_contextvars("thread_key", "message_id")

    def _on_reply(self, entry: InboxEntry, row_id: int, reply: OutboundReply) -> None:
        self._edits.answered(entry, row_id)
        self._hooks.on_reply(row_id, reply)

    async def _admitted(
        self, entry: InboxEntry, ears: asyncio.Semaphore | None, place: ConcurrencySlot, stop: StopSignal
    ) -> bool:
        """Wait until the entry may be worked on, and there is room: among the notes that are heard, or in its
        place at the model. False when the message is stopped before: it needs none then."""
        try:
            with stop.guard():
                await self._quarantine.admit(entry.seq)
                await (place.enter() if ears is None else ears.acquire())
        except TurnFailed:
            return False
        return True

    async def _excuse(self, lease: Lease, entry: InboxEntry, journal: StoreJournal) -> None:
        """An attempt that a shutdown or the store cut off says nothing about the message: only those
        that are still open at the next start, because the process died, count toward the limit."""
        if not journal.attempt_counted or journal.outcome is not None:
            return
        try:
            await self._store.discount_attempt(lease, entry.seq)
            journal.attempt_counted = False
        except StorageError as error:
            _log.info("the attempt stays counted", extra={"reason": str(error)})

    async def _dispatch(
        self,
        entry: InboxEntry,
        journal: StoreJournal,
        sender: EventSender,
        stop: StopSignal,
        place: ConcurrencySlot,
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
        if isinstance(item, ApprovalReply) and item.expired:
            await journal.count_attempt()
        if isinstance(item, InboundMessage) and journal.mode != "normal":
            item = replace(item, mode=journal.mode)
        if isinstance(item, InboundMessage) and item.voice is not None:
            if await journal.was_consumed_as_answer():
                await self._hooks.discard_media(item)
                return
            await journal.count_attempt()
        if isinstance(item, InboundMessage) and not entry.cancelled and (word := unknown_command(item)):
            words = _NO_SUCH_COMMAND if parse_command(word) is None else _WORDS_BEHIND
            await self._pipeline.reply(item, words.format(word=word), sender, journal)
            return
        await self._edits.take_over(entry)
        await self._pipeline.process(item, sender, journal, stop, place)
        if isinstance(item, InboundMessage) and (item.voice is not None or item.attachments):
            await self._hooks.discard_media(item)

    async def _command(self, entry: InboxEntry, command: SessionCommand, journal: StoreJournal) -> None:
        """A command's answer is its durable line alone: it has no live events."""
        match command.name:
            case "new":
                await journal.commit_new_session(NEW_SESSION_TEXT)
            case "help":
                voice = _HELP_VOICE if self._hooks.can_speak(command.thread) else ""
                await journal.commit_notice(_HELP_TEXT.format(voice=voice))
            case "stop":
                stopped = self._stopped.pop(entry.seq, 0)
                if command.quiet:
                    await journal.commit_silently()
                else:
                    await journal.commit_notice(_stop_words(stopped), code="stopped" if stopped else "")
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
        # Another chat's command may have come between the writing and the crash.
        known = habits.voice_command.split()
        done = command.message_id in known
        wanted = habits.voice_replies if done else not habits.voice_replies
        if wanted and not done and not self._hooks.can_speak(thread):
            return NO_VOICE_TEXT
        if not done:
            newest = " ".join([*known[1 - _KNOWN_COMMANDS :], command.message_id])
            await self._store.voices.want_voice_replies(speaker, wanted=wanted, command=newest)
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


def _is_spoken(entry: InboxEntry) -> bool:
    """Whether it is a voice note, whose words are still to be heard."""
    return entry.kind == "message" and "voice" in entry.body


def _stop_words(messages: int) -> str:
    if not messages:
        return "There is nothing to stop."
    return "Stopped 1 message." if messages == 1 else f"Stopped {messages} messages."
