"""The state of the terminal conversation: which messages wait for an answer, and what was printed.

Both events and durable replies arrive here; the first is printed, the second is not.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from adapters.channel import OutboundReply
from adapters.console.screen import Screen
from adapters.console.steps import step_words
from adapters.formatting.plain import plain_text
from adapters.formatting.question_text import shortened
from adapters.formatting.visible import visible
from pipeline.domain.attachments import file_size
from pipeline.domain.bounded_dict import BoundedDict
from pipeline.domain.events import (
    EXPIRED,
    ApprovalRequired,
    ApprovalResolved,
    ErrorEvent,
    LlmToken,
    MessageJoined,
    PipelineEvent,
    ResponseComplete,
    TranscriptReady,
)
from pipeline.domain.files import StoredFile
from pipeline.domain.timeline import EntryRole, TimelineEntry

_log = logging.getLogger(__name__)
_REMEMBERED_LINES = 1000
SHOW_ALL = "all"
"""Typed at a question that is shown only in part: prints the rest."""


class TerminalConversation:
    """The state of the one conversation in a terminal. An EventSender."""

    def __init__(self, screen: Screen, where: Callable[[StoredFile], str] = lambda _file: "") -> None:
        """`where` says where the person gets a file; empty if unknown."""
        self._screen = screen
        self._where = where
        self._files = BoundedDict[tuple[str, str], None](_REMEMBERED_LINES)
        self._undelivered: dict[str, bool] = {}
        """Messages without their durable reply; True while their outcome is also open."""
        self._printed = BoundedDict[tuple[str, EntryRole], None](_REMEMBERED_LINES)
        self._questions: dict[str, ApprovalRequired] = {}
        self._paused: set[str] = set()
        """The questions of paused runs: their turn has ended."""
        self._changed = asyncio.Event()
        self.output_gone = False
        """The output is closed."""
        self.failed = False
        """Whether any message was answered by an error, or not accepted."""

    def expect(self, message_id: str, *, outcome: bool) -> None:
        """Register a message whose reply must arrive. Without `outcome` it may also stay without one."""
        if not any(printed == message_id for printed, _ in self._printed):
            self._undelivered[message_id] = outcome
            self._note_change()

    def forget(self, message_id: str) -> None:
        """Unregister a message that was not accepted."""
        self._undelivered.pop(message_id, None)
        self._note_change()

    def question(self) -> ApprovalRequired | None:
        """The question on the screen: the oldest one without an answer."""
        return next(iter(self._questions.values()), None)

    def answered(self, interaction_id: str) -> None:
        """The person's choice was sent or refused; the question is not asked again."""
        self._drop(interaction_id)

    def is_paused(self, interaction_id: str) -> bool:
        """Whether an answer to the question starts a new turn, with its own reply."""
        return interaction_id in self._paused

    def ask_again(self, question: ApprovalRequired) -> None:
        """Ask a question that an earlier process left open."""
        if question.command:
            return
        self._paused.add(question.interaction_id)
        self._add(question)

    async def settled(self, *, settle_s: float, or_question: bool) -> None:
        """Wait until every message has its outcome, then up to `settle_s` seconds for their replies.

        Returns early when the output is closed, or with `or_question` when a question is asked.
        """
        while any(self._undelivered.values()):
            if self.output_gone or (or_question and self._questions.keys() - self._paused):
                return
            await self._change()
        try:
            async with asyncio.timeout(settle_s):
                while self._undelivered and not self.output_gone:
                    await self._change()
        except TimeoutError:
            _log.debug("console: %d replies did not come in time", len(self._undelivered))

    async def send_event(self, event: PipelineEvent) -> None:
        try:
            self._show_event(event)
        except OSError:
            self.output_gone = True
        except Exception as error:  # noqa: BLE001 - a sender raises nothing: the screen must not fail the turn
            _log.error("console: the event %s was not shown: %s", event.type, type(error).__name__)
        self._note_change()

    def show_reply(self, reply: OutboundReply) -> None:
        """Print a durable reply unless it is on the screen. Raises OSError when printing fails."""
        try:
            self._finish(reply.message_id, reply.role, reply.text)
            self._show_files(reply.message_id, reply.files)
        except OSError:
            self.output_gone = True
            raise
        finally:
            self._note_change()
        self._undelivered.pop(reply.message_id, None)

    def show_earlier(self, entries: Sequence[TimelineEntry]) -> None:
        """Print entries of the conversation from before this process."""
        for entry in entries:
            try:
                self._screen.earlier(entry.role, entry.text)
                self._show_files(entry.message_id, entry.files)
            except OSError:
                self.output_gone = True
            self._printed[entry.message_id, entry.role] = None

    def _show_files(self, message_id: str, files: Sequence[StoredFile]) -> None:
        """Print a line for each file of a message, once."""
        for file in files:
            if (message_id, file.id) in self._files:
                continue
            self._files[message_id, file.id] = None
            about = ", ".join(part for part in (file.about, file_size(file.size)) if part)
            place = self._where(file)
            self._screen.line(f"{file.caption} [{file.name}, {about}{f': {place}' if place else ''}]".strip())

    def said_elsewhere(self, text: str) -> None:
        """Print the person's message from another window; an answer being printed continues below it."""
        try:
            self._screen.said(text)
        except OSError:
            self.output_gone = True

    def say(self, text: str, *, failure: bool = False) -> None:
        """Print one line of the console's own."""
        self.failed = self.failed or failure
        try:
            self._screen.line(text)
        except OSError:
            self.output_gone = True

    def _show_event(self, event: PipelineEvent) -> None:
        match event:
            case LlmToken():
                self._screen.token(event.message_id, event.text, event.offset)
            case MessageJoined():
                # The answer to the earlier message is its answer too.
                self._undelivered.pop(event.joined, None)
            case TranscriptReady():
                self._screen.line(f'heard: "{event.text}"')
            case ApprovalRequired() if event.command:
                # The line above it names the values, which can be typed behind the command.
                return
            case ApprovalRequired():
                # The text of a paused run is in its turn's reply, which follows. A question may come again.
                self._add(event, said=event.paused or event.interaction_id in self._questions)
            case ApprovalResolved():
                shown_choice = "no one answered in time" if event.choice == EXPIRED else event.choice
                self._screen.line(f"approval: {shown_choice}")
                self._drop(event.interaction_id)
            case ResponseComplete():
                self._settle(event.message_id)
                self._complete(event)
            case ErrorEvent():
                self._fail(event)
            case _:
                step = step_words(event)
                if step:
                    self._screen.aside(step)

    def _complete(self, event: ResponseComplete) -> None:
        self._paused.update(self._asked_by(event.message_id))
        self._finish(event.message_id, "assistant", event.content)
        question = self.question()
        if question is not None and question.message_id == event.message_id:
            self._screen.line(_how_to_answer(question))

    def _fail(self, event: ErrorEvent) -> None:
        self._settle(event.message_id)
        self._finish(event.message_id, "error", event.message)
        for interaction_id in self._asked_by(event.message_id):
            self._drop(interaction_id)

    def _settle(self, message_id: str) -> None:
        if message_id in self._undelivered:
            self._undelivered[message_id] = False

    def _asked_by(self, message_id: str) -> tuple[str, ...]:
        return tuple(key for key, question in self._questions.items() if question.message_id == message_id)

    def _add(self, question: ApprovalRequired, *, said: bool = False) -> None:
        # Only one is on the screen: a typed word must not be ambiguous.
        self._questions[question.interaction_id] = question
        if self.question() is question and not said:
            self._show_question(question)

    def _drop(self, interaction_id: str) -> None:
        shown = self.question()
        self._questions.pop(interaction_id, None)
        self._paused.discard(interaction_id)
        following = self.question()
        if following is not None and following is not shown:
            self._show_question(following)

    def show_whole_question(self) -> bool:
        """Print the whole open question; False where all of it is on the screen, or none is open."""
        question = self.question()
        if question is None or not _is_shortened(question):
            return False
        self.say(f"{visible(question.reasoning)}\n{_how_to_answer(question)}")
        return True

    def _show_question(self, question: ApprovalRequired) -> None:
        words = visible(question.reasoning)
        asks = f"{visible(question.tool_name)} needs your approval: {shortened(words)}"
        more = f"Type {SHOW_ALL} to see the whole of it.\n" if _is_shortened(question) else ""
        self._screen.line(f"{asks}\n{more}{_how_to_answer(question)}")

    def _finish(self, message_id: str, role: EntryRole, text: str) -> None:
        if (message_id, role) in self._printed:
            return
        if role == "assistant":
            self._screen.answer(message_id, text)
        elif role == "error":
            self.failed = True
            self._screen.line(f"error: {text}")
        elif role in ("notice", "session"):
            # Markdown for every channel; unlike an answer, it does not arrive in parts.
            self._screen.line(plain_text(text) or "a new session begins")
        self._printed[message_id, role] = None

    def _note_change(self) -> None:
        self._changed.set()
        asked = self._questions.keys() - self._paused
        try:
            self._screen.waiting(waits=any(self._undelivered.values()) and not asked)
        except OSError:
            self.output_gone = True

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()


def _is_shortened(question: ApprovalRequired) -> bool:
    words = visible(question.reasoning)
    return shortened(words) != words


def _how_to_answer(question: ApprovalRequired) -> str:
    *others, last = question.options
    choices = f"{', '.join(others)} or {last}" if others else last
    limit = f" within {question.timeout_s:.0f} seconds" if question.timeout_s else ""
    return f"Type {choices}{limit}."
