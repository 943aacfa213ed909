"""The console channel: each line is a message, each answer is printed as it is written.

It stops when the input has ended and every message has its answer. Not a full-screen program:
it writes plain lines, so its output can be piped.
"""

from __future__ import annotations

import asyncio
import logging
import mimetypes
import stat
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from pathlib import Path

from adapters.channel import (
    ChannelCapabilities,
    ChannelHealth,
    Failure,
    OnInbound,
    OutboundReply,
    Receipt,
    Timeline,
)
from adapters.console.conversation import SHOW_ALL, TerminalConversation
from adapters.console.screen import Screen
from adapters.console.stdin import without_keys
from adapters.health import HealthTracker
from adapters.identity import derived_message_id
from adapters.media_kinds import media_kind
from pipeline.domain.attachments import file_size
from pipeline.domain.clock import Clock
from pipeline.domain.errors import InvalidInput, MediaUnavailable, ParlourError
from pipeline.domain.files import StoredFile
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey, new_id
from pipeline.domain.messages import (
    ApprovalReply,
    Author,
    Inbound,
    InboundMessage,
    MediaRef,
    SessionCommand,
    parse_command,
)
from pipeline.domain.ports import EventSender
from pipeline.domain.timeline import TimelineEntry

CHANNEL = "console"
ACCOUNT = "local"
THREAD = ThreadKey(channel=CHANNEL, account=ACCOUNT, chat="terminal")
OPERATOR = Author(id="owner")
_log = logging.getLogger(__name__)
_EARLIER_ENTRIES = 50
QUIT = "/quit"
"""Ends the input, like end of file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleOptions:
    """The settings of the terminal conversation."""

    bot_name: str = "Parlour"
    interactive: bool = True
    """Whether a person types: then there is a prompt, and lines are accepted while an answer is being
    written. Otherwise there is no prompt, and each line waits for the answer to the one before it."""
    prompt: str = "you: "
    text_chars: int = 8000
    history_lines: int = 0
    """Lines of the earlier conversation to show first."""
    settle_s: float = 10.0
    """Seconds to wait at the end of the input for replies that may not come."""
    where: Callable[[StoredFile], str] = lambda _file: ""
    """Where the person gets a file: a path or an address; empty if unknown."""


class ConsoleAdapter:
    """The ChannelAdapter of one terminal. `lines` None means that no input is read."""

    def __init__(
        self,
        settings: ConsoleOptions,
        timeline: Timeline,
        clock: Clock,
        *,
        lines: AsyncIterator[str] | None,
        write: Callable[[str], None],
        voice_files: Sequence[Path] = (),
        files: Sequence[Path] = (),
        screen: Screen | None = None,
    ) -> None:
        """`files` go with the first line, or alone if there is none. `screen` replaces the default screen,
        which prints plain lines through `write`."""
        self._settings = settings
        self._timeline = timeline
        self._clock = clock
        self._lines = lines
        self._voice_files = tuple(voice_files)
        self._files = tuple(files)
        prompt = settings.prompt if settings.interactive else ""
        self._screen = screen or Screen(write, bot_name=settings.bot_name, prompt=prompt)
        self._conversation = TerminalConversation(self._screen, settings.where)
        self._health = HealthTracker(clock)

    @property
    def name(self) -> str:
        return CHANNEL

    @property
    def account(self) -> str:
        return ACCOUNT

    @property
    def capabilities(self) -> ChannelCapabilities:
        return ChannelCapabilities(
            text_limit=self._settings.text_chars,
            streaming=True,
            voice_in=True,
            guarantee="at least once: an answer is printed once, and again after a crash between "
            "printing it and recording that",
            copies="This terminal shows it until you clear it.",
        )

    @property
    def failed(self) -> bool:
        """Whether anything was refused or answered by an error, for the exit status."""
        return self._conversation.failed

    async def run(self, on_inbound: OnInbound) -> None:
        """Send the voice files, then each line; return when the input has ended and every message is
        answered."""
        self._health.up()
        try:
            await self._expect_earlier()
            for path in self._voice_files:
                await self._send_voice(on_inbound, path)
                await self._pause_between()
            if self._lines is not None:
                await self._send_lines(on_inbound, self._lines)
            if self._files:
                await self._send_words(on_inbound, "")
            await self._conversation.settled(settle_s=self._settings.settle_s, or_question=False)
        finally:
            self._health.down("the input has ended")
            if isinstance(self._lines, AsyncGenerator):
                await self._lines.aclose()

    def say(self, text: str) -> None:
        """Print one line that is not part of the conversation."""
        self._conversation.say(text)

    def fail(self, text: str) -> None:
        """Print why the conversation cannot continue."""
        self._conversation.say(text, failure=True)

    def show_said_elsewhere(self, entry: TimelineEntry) -> None:
        """Print the person's message from another window; nothing in a pipe."""
        self._conversation.said_elsewhere(entry.text)
        self._ask()

    def sender_for(self, thread: ThreadKey) -> EventSender:  # noqa: ARG002 - a terminal has one thread
        """The terminal, for any `thread`: it has only one."""
        return self._conversation

    async def download(self, ref: MediaRef, *, max_bytes: int) -> bytes:
        """The content of a file that the operator named on the command line."""
        path = Path(ref.handle)
        if ref.channel != CHANNEL or not path.is_absolute():
            raise MediaUnavailable("This is no file of the terminal.")
        try:
            return await asyncio.to_thread(_read_file, path, max_bytes)
        except OSError as error:
            raise MediaUnavailable(f"It cannot be read: {error.strerror}.") from error

    async def send(self, reply: OutboundReply) -> Receipt:
        """Print `reply` unless its answer is already on the screen. Raises OSError, InvalidInput."""
        if reply.thread != THREAD:
            raise InvalidInput("thread: the console shows only its own conversation")
        self._conversation.show_reply(reply)
        self._ask()
        return Receipt(native_id=str(reply.entry_id))

    def classify(self, error: Exception) -> Failure:
        if isinstance(error, InvalidInput):
            return Failure(kind="invalid", message=str(error))
        if isinstance(error, OSError):
            return Failure(kind="transient", message="the terminal takes no output", maybe_delivered=True)
        return Failure(kind="unknown", message=type(error).__name__, maybe_delivered=True)

    def health(self) -> ChannelHealth:
        return self._health.read()

    # -- input ------------------------------------------------------------------------------------

    async def _expect_earlier(self) -> None:
        try:
            entries = await self._timeline.entries(THREAD, after=0, limit=_EARLIER_ENTRIES)
            questions = await self._timeline.questions(THREAD) if self._lines is not None else ()
        except ParlourError as error:
            self._conversation.say(f"the earlier conversation cannot be read: {error}")
            return
        lines = [entry for entry in entries if entry.entry_id and entry.role != "title"]
        self._conversation.show_earlier(lines[len(lines) - min(len(lines), self._settings.history_lines) :])
        waiting = [entry for entry in entries if entry.entry_id == 0]
        for entry in waiting:
            if entry.turn:
                continue  # the reply to the earlier message answers it
            self._conversation.expect(entry.message_id, outcome=True)
        if waiting:
            self._conversation.say(f"{len(waiting)} earlier messages still wait; their answers come first")
        for question in questions:
            self._conversation.ask_again(question)

    async def _send_lines(self, on_inbound: OnInbound, lines: AsyncIterator[str]) -> None:
        self._ask()
        async for line in lines:
            self._screen.typed()
            # A terminal without line editing writes the arrow keys into the line.
            words = without_keys(line) if self._settings.interactive else line
            if words.strip().casefold() == QUIT:
                return
            if words.strip():
                await self._send_line(on_inbound, words)
            await self._pause_between()
            if self._conversation.output_gone:
                return
            self._ask()
        self._end_prompt()

    async def _pause_between(self) -> None:
        if not self._settings.interactive:
            await self._conversation.settled(settle_s=self._settings.settle_s, or_question=True)

    async def _send_line(self, on_inbound: OnInbound, line: str) -> None:
        if len(line) > self._settings.text_chars:
            limit = self._settings.text_chars
            self._conversation.say(f"not sent: {len(line)} characters, the limit is {limit}", failure=True)
            return
        native_id, message_id = _new_identity()
        now = self._clock.now()
        question = self._conversation.question()
        choice = line.strip().casefold()
        if choice == SHOW_ALL and self._conversation.show_whole_question():
            return
        command = parse_command(line)
        item: Inbound
        if question is not None and choice in {option.casefold() for option in question.options}:
            item = ApprovalReply(
                message_id=message_id,
                native_id=native_id,
                thread=THREAD,
                author=OPERATOR,
                received_at=now,
                interaction_id=question.interaction_id,
                choice=next(option for option in question.options if option.casefold() == choice),
            )
        elif command is not None:
            item = SessionCommand(
                message_id=message_id,
                native_id=native_id,
                thread=THREAD,
                author=OPERATOR,
                received_at=now,
                name=command.name,
                argument=command.argument,
            )
        else:
            await self._send_words(on_inbound, line)
            return
        await self._submit(on_inbound, item)

    async def _send_words(self, on_inbound: OnInbound, words: str) -> None:
        """Send a message, with the files of the command line if it is the first."""
        files, self._files = self._files, ()
        refs = [ref for path in files if (ref := await self._named_file(path)) is not None]
        if not words and not refs:
            return
        native_id, message_id = _new_identity()
        item = InboundMessage(
            message_id=message_id,
            native_id=native_id,
            thread=THREAD,
            author=OPERATOR,
            received_at=self._clock.now(),
            text=words,
            attachments=tuple(refs),
        )
        await self._submit(on_inbound, item)

    async def _named_file(self, path: Path) -> MediaRef | None:
        """A file of the command line; None, once that is printed, if it cannot be read."""
        try:
            absolute, size = await asyncio.to_thread(_inspect_file, path)
        except OSError as error:
            self._conversation.say(f"the file {path} cannot be read: {error.strerror}", failure=True)
            return None
        mime, name = mimetypes.guess_type(absolute.name)[0] or "", absolute.name
        kind = media_kind(mime, name)
        return MediaRef(channel=CHANNEL, handle=str(absolute), mime=mime, size=size, kind=kind, name=name)

    async def _send_voice(self, on_inbound: OnInbound, path: Path) -> None:
        try:
            absolute, size = await asyncio.to_thread(_inspect_file, path)
        except OSError as error:
            self._conversation.say(f"the voice file {path} cannot be read: {error.strerror}", failure=True)
            return
        mime = mimetypes.guess_type(absolute.name)[0] or ""
        native_id, message_id = _new_identity()
        item = InboundMessage(
            message_id=message_id,
            native_id=native_id,
            thread=THREAD,
            author=OPERATOR,
            received_at=self._clock.now(),
            voice=MediaRef(channel=CHANNEL, handle=str(absolute), mime=mime, size=size),
        )
        await self._submit(on_inbound, item)

    async def _submit(self, on_inbound: OnInbound, item: Inbound) -> None:
        answered = item.interaction_id if isinstance(item, ApprovalReply) else None
        if answered is None or self._conversation.is_paused(answered):
            # Set before the call: the first events may arrive before it returns.
            outcome = not isinstance(item, SessionCommand)
            self._conversation.expect(item.message_id, outcome=outcome)
        reason, refused = "", False
        try:
            acceptance = await on_inbound(item)
        except ParlourError as error:
            reason = str(error)
        except Exception as error:  # noqa: BLE001 - one bad line must not end the conversation
            _log.error("console: taking in a line failed: %s", type(error).__name__)
            reason = "something went wrong in the gateway; its log says more"
        else:
            if acceptance.status != "refused":
                if answered is not None:
                    self._conversation.answered(answered)
                return
            refused = True
            reason = acceptance.reason or "the gateway does not take this message"
        self._conversation.forget(item.message_id)
        self._conversation.say(f"not sent: {reason}", failure=True)
        if answered is not None and refused:
            self._conversation.answered(answered)

    def _ask(self) -> None:
        if self._lines is None or self._health.read().state != "up":
            return
        try:
            self._screen.ask()
        except OSError:
            self._conversation.output_gone = True

    def _end_prompt(self) -> None:
        try:
            self._screen.end_prompt()
        except OSError:
            self._conversation.output_gone = True


def _new_identity() -> tuple[str, str]:
    native_id = f"{THREAD.chat}:{new_id('line')}"
    return native_id, derived_message_id(CHANNEL, ACCOUNT, native_id)


def _inspect_file(path: Path) -> tuple[Path, int]:
    absolute = path.expanduser().resolve(strict=True)
    status = absolute.stat()
    if not stat.S_ISREG(status.st_mode):
        raise IsADirectoryError(21, "not a file")
    with absolute.open("rb"):
        return absolute, status.st_size


def _read_file(path: Path, max_bytes: int) -> bytes:
    if not path.is_file():
        raise FileNotFoundError(2, "there is no such file")
    with path.open("rb") as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise MediaUnavailable(f"It is larger than {file_size(max_bytes)}.")
    return content
