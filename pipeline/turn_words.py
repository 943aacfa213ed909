"""The words of a turn: those of its first message, typed or transcribed, and of the messages that join it."""

from __future__ import annotations

import functools
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence

from pipeline.domain.clock import Clock
from pipeline.domain.errors import GraphError, TurnFailed
from pipeline.domain.events import ApprovalResolved, TranscriptReady
from pipeline.domain.messages import ApprovalReply, InboundMessage
from pipeline.domain.rooms import said_by
from pipeline.graph.run.records import has_ended
from pipeline.intake.attachments import take_in_time, takes, unused_line
from pipeline.intake.cleaning import clean_text
from pipeline.intake.forwarded_content import note_foreign
from pipeline.intake.spoken import names_one_of, spoken_words
from pipeline.intake.transcription import transcribe_in_time
from pipeline.intake.written import written_words
from pipeline.runtime.arrivals import Arrivals, steering_message
from pipeline.runtime.attachments import Taken
from pipeline.runtime.context import SteeredWords
from pipeline.runtime.ports import (
    Allowance,
    OnTranscription,
    PartialTranscription,
    SpeechToText,
    Transcription,
    TranscriptionQueued,
    UserWords,
)
from pipeline.runtime.scope import TurnScope
from pipeline.runtime.services import PipelineServices
from pipeline.runtime.settings import PipelineSettings
from pipeline.runtime.stopping import StopSignal
from pipeline.turn import JoinedMessage, Turn

_log = logging.getLogger(__name__)


class TurnWords:
    """Finds, shows and records the words of the turns of one agent."""

    def __init__(
        self,
        *,
        speech_to_text: SpeechToText,
        settings: PipelineSettings,
        services: PipelineServices,
        clock: Clock,
        gated: bool,
        hears_all: bool,
        wants_answer: Callable[[Turn], Awaitable[bool]],
    ) -> None:
        """`gated`: a gate sees all words before anything is recorded. `hears_all`: a check needs the words
        also where a budget is used up. `wants_answer` decides about a message
        that the bot may leave without an answer."""
        self._transcriber = speech_to_text
        self._settings = settings
        self._services = services
        self._clock = clock
        self._gated = gated
        self._hears_all = hears_all
        self._wants_answer = wants_answer

    async def first(self, turn: Turn) -> UserWords:
        """The words of the first message: typed, transcribed now, or recorded by an earlier attempt or
        turn."""
        message = turn.message
        typed = isinstance(message, InboundMessage) and message.voice is None
        if typed and not takes(self._services, message):
            if turn.written is None:
                raise TurnFailed("unsupported", "I can read text and hear voice notes, nothing else yet.")
            return turn.written
        recorded = await turn.journal.recorded_user()
        if isinstance(message, ApprovalReply):
            if recorded is None:
                raise GraphError(f"the message that asked {message.interaction_id} is not on record")
            await turn.send(
                ApprovalResolved(**turn.ids, interaction_id=message.interaction_id, choice=message.choice)
            )
            return recorded
        if recorded is not None:
            return recorded
        if not self._hears_all:
            # Transcription takes up to a minute of CPU time, files have to be fetched, and without a budget
            # the words cannot be answered. A check sees the words first.
            allowance = await self._services.budgets.allowance(turn.scope)
            if allowance.model == "none":
                raise spent(allowance)
        spoken = turn.early_transcription
        if spoken is None and message.voice is not None:
            spoken = await self._transcribe(turn, message)
        taken = await self._take(turn, message)
        if spoken is None:
            turn.written = written_words(message, taken)
            return turn.written or UserWords(text="")
        turn.transcription = spoken
        return spoken_words(message, spoken, taken)

    async def join(self, turn: Turn, arrivals: Arrivals) -> None:
        """Add the messages that have joined the turn, until there are no more. A voice note that cannot
        be transcribed, and files that take too long, are named to the person instead."""
        while messages := await arrivals.merged():
            for message in messages:
                turn.joined.append(await self._said(turn, await self._services.rooms.named(message)))
            if not self._gated:
                await self.admit(turn)

    async def _said(self, turn: Turn, message: InboundMessage) -> JoinedMessage:
        if message.voice is None and not takes(self._services, message):
            return JoinedMessage(message=message, words=written_words(message))
        words = await turn.journal.recorded_user(message)
        if words is not None:
            return JoinedMessage(message=message, words=words)
        spoken, taken, problem = None, None, ""
        try:
            if message.voice is not None:
                spoken = await self._transcribe(turn, message)
            taken = await self._take(turn, message)
        except TurnFailed as error:
            _log.info("a message of a burst is answered in part", extra={"reason": str(error)})
            problem = str(error)
        words = written_words(message, taken) if spoken is None else spoken_words(message, spoken, taken)
        return JoinedMessage(message=message, words=words, transcription=spoken, problem=problem)

    async def admitted(self, turn: Turn) -> bool:
        """Show and record the words. False if those of the first message answered a question of a paused run
        instead, which another turn resumes."""
        message = turn.message
        if not isinstance(message, InboundMessage):
            return True
        if not turn.recorded and (turn.transcription is not None or message.answers):
            said = message.text if turn.transcription is None else turn.transcription.text
            if await turn.journal.try_consume_as_answer(said):
                return False
        await self.admit(turn)
        return True

    async def admit(self, turn: Turn) -> None:
        """Show and record all words of the turn that this attempt has not recorded."""
        await turn.start()
        if turn.words is not None and not turn.recorded:
            await _show(turn, turn.message, turn.transcription)
            await turn.record(turn.words)
        for said in turn.joined:
            if said.words is not None and not said.recorded:
                await _show(turn, said.message, said.transcription)
                said.recorded = True
                await turn.journal.record_user(turn.safe(said.words), said.message)

    async def record_typed(self, turn: Turn, words: UserWords) -> None:
        """Record the typed words of the first message of a turn that ends before it has needed them, unless
        an earlier attempt has recorded them with their files."""
        if not takes(self._services, turn.message) or await turn.journal.recorded_user() is None:
            await turn.record(words)

    async def record_rest(self, turn: Turn, arrivals: Arrivals) -> None:
        """Record the typed words of the messages of a turn that ends before it has needed them."""
        known = {said.message.message_id: said for said in turn.joined}
        for message in arrivals.covered:
            said, words = known.get(message.message_id), written_words(message)
            if words is None or message.message_id in turn.steered:
                continue
            if said is not None and said.recorded:
                continue
            if said is not None and said.words is not None:
                words = said.words
            if takes(self._services, message) and await turn.journal.recorded_user(message) is not None:
                # An earlier attempt has recorded the words with their files.
                continue
            await turn.journal.record_user(turn.safe(words), message)

    async def steered(
        self, turn: Turn, arrivals: Arrivals, scope: TurnScope, known: Collection[str]
    ) -> Sequence[SteeredWords]:
        """What the author sent while the run was in progress, recorded, without the messages `known`."""
        found = []
        for message in await arrivals.steered(known):
            named = await self._services.rooms.named(message)
            words = written_words(named)
            if words is None:
                continue
            words = turn.safe(words)
            note_foreign(scope, words.text)
            await turn.journal.record_user(words, named)
            text = clean_text(said_by(words.text, words.by))
            found.append(SteeredWords(message_id=message.message_id, message=steering_message(text)))
        return found

    async def is_for_bot(self, turn: Turn, stop: StopSignal) -> bool:
        """Whether the message is for the bot. A voice note that the platform did not address to the bot must
        name it; nothing is shown before that is known, and a note that fails or is stopped is ignored. So is
        an expired question whose run has ended. Of other messages that were not addressed to it, the model
        decides."""
        message = turn.message
        if isinstance(message, ApprovalReply):
            return not (message.expired and has_ended(await turn.journal.recorded_run()))
        if not (message.if_named or message.may_decline):
            return True
        if await turn.journal.recorded_user() is not None:
            return True
        try:
            with stop.guard():
                if message.may_decline:
                    return await self._wants_answer(turn)
                turn.early_transcription = await self._heard(message, _ignore_progress)
        except TurnFailed as error:
            _log.info("a message in a room is not answered", extra={"reason": str(error)})
            return False
        return names_one_of(turn.early_transcription.text, self._settings.called)

    def left_out(self, turn: Turn) -> str:
        """The lines about what the answer does not use of the turn's messages; empty for none."""
        if not turn.joined:
            if isinstance(turn.message, InboundMessage) and not turn.message.has_other_content:
                return ""
            taken = takes(self._services, turn.message)
            return unused_line(turn.message, turn.words, self._settings, taken=taken)
        words = (turn.words, *(said.words for said in turn.joined))
        lines = [
            unused_line(one, said, self._settings, taken=takes(self._services, one))
            for one, said in zip(turn.messages, words, strict=True)
        ]
        return "\n\n".join(line for line in (*lines, *(said.problem for said in turn.joined)) if line)

    async def _take(self, turn: Turn, message: InboundMessage) -> Taken | None:
        if turn.taken is not None and message is turn.message:
            return turn.taken
        unstored = turn.unstored if turn.journal.mode == "otr" else None
        return await take_in_time(self._services.attachments, message, self._settings, self._clock, unstored)

    async def _transcribe(self, turn: Turn, message: InboundMessage) -> Transcription:
        return await self._heard(message, functools.partial(turn.on_transcription, message))

    async def _heard(self, message: InboundMessage, on_progress: OnTranscription) -> Transcription:
        limit_s = self._settings.turn_timeout_s
        return await transcribe_in_time(
            self._transcriber, message, on_progress, clock=self._clock, limit_s=limit_s
        )


def spent(allowance: Allowance) -> TurnFailed:
    """The error of a turn for which the budget allows no model."""
    return TurnFailed("budget", allowance.words, recoverable=False)


async def _show(turn: Turn, message: InboundMessage | ApprovalReply, spoken: Transcription | None) -> None:
    """Show a transcript that this attempt has made."""
    if spoken is not None:
        ready = {"text": spoken.text, "language": spoken.language}
        await turn.send(TranscriptReady(**turn.ids_of(message), **ready, confidence=spoken.confidence))


async def _ignore_progress(_progress: TranscriptionQueued | PartialTranscription) -> None:
    """Ignore the progress of a note that may not be for the bot."""
