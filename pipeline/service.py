"""One message through the pipeline: record, run the graph, commit, tell. The only way in.

It owns the deadline of a turn and turns every failure into one visible outcome. It does not know
where the message came from, and it does not deliver: the journal's commit hands the reply over.
Hearing a voice note has a deadline of its own (`pipeline.intake.listening`).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext

from pipeline.agent.deciding import LlmDecider
from pipeline.agent.node import THOUGHTS
from pipeline.agent.prompt import EXCHANGE
from pipeline.agent.task import between_tasks
from pipeline.domain.chat import message_from_plain
from pipeline.domain.clock import Clock
from pipeline.domain.errors import GraphError, ModelError, StorageError, TurnFailed
from pipeline.domain.events import (
    ApprovalResolved,
    Thought,
    TranscriptReady,
    TurnStarted,
)
from pipeline.domain.messages import ApprovalReply, InboundMessage
from pipeline.domain.ports import EventSender
from pipeline.graph.executor import Executor
from pipeline.graph.outcome import Answer, RunOutcome
from pipeline.graph.records import GateRefused, GraphChanged, RawRecord, RunEnded, RunUnreadable
from pipeline.graph.spec import GraphSpec
from pipeline.intake.cleaning import clean_text
from pipeline.intake.listening import heard_in_time
from pipeline.intake.quoting import in_context
from pipeline.intake.spoken import names_one_of, spoken_words
from pipeline.llm.client import LlmClient
from pipeline.runtime.context import RunContext
from pipeline.runtime.deadline import Absence, TurnDeadline
from pipeline.runtime.ports import (
    Allowance,
    Ears,
    Heard,
    HearingGrown,
    HearingQueued,
    OnHearing,
    TurnAnswer,
    TurnJournal,
    UserWords,
)
from pipeline.runtime.questions import question_words
from pipeline.runtime.safe_log import SafeRunLog
from pipeline.runtime.scope import TurnScope
from pipeline.runtime.settings import PipelineSettings
from pipeline.runtime.stopping import StopSignal
from pipeline.runtime.surroundings import Surroundings
from pipeline.runtime.terminal import TerminalGuard
from pipeline.turn import Turn

_log = logging.getLogger(__name__)

_INTERNAL_WORDS = "Something went wrong inside the assistant. Please send the message again."
_LOOP_WORDS = "The assistant went round in circles and was stopped. Please put the question differently."
_TOO_LONG_WORDS = "The answer took longer than {seconds} seconds and was given up. Please try again."
_OUTDATED_WORDS = (
    "The assistant has changed since it asked this and cannot go on. Please send your message again."
)

_OVER_WORDS = "This question is no longer open: the assistant has ended without your answer."


class Pipeline:
    """The shared pipeline of all channels. One instance serves every thread at once."""

    def __init__(
        self,
        *,
        graph: GraphSpec[RunContext],
        llm: LlmClient,
        ears: Ears,
        settings: PipelineSettings,
        clock: Clock,
        surroundings: Surroundings | None = None,
    ) -> None:
        self._executor = Executor(graph, clock=clock, decider=LlmDecider(), phase=between_tasks)
        self._llm = llm
        self._ears = ears
        self._settings = settings
        self._clock = clock
        self._around = surroundings or Surroundings()

    async def process(
        self,
        message: InboundMessage | ApprovalReply,
        sender: EventSender,
        journal: TurnJournal,
        stop: StopSignal | None = None,
        room: AbstractAsyncContextManager[object] | None = None,
    ) -> None:
        """Answer `message`: events to `sender`, everything durable to `journal`. An answer to a question
        goes on with the run that asked. `room` is entered, for as long as it takes, once the words are
        known: hearing a voice note needs no room that the model has. Leaving it twice is harmless.

        Exactly one terminal event is sent, after the commit it speaks of. StorageError and
        cancellation propagate without one: the turn is not over and will be taken up again.
        """
        turn = self._turn(message, sender, journal)
        stop = stop or StopSignal()
        try:
            if not await self._is_for_us(turn, stop):
                await journal.decline()
                return
            await turn.send(TurnStarted(**turn.ids))
            if written := _written(message):
                # Before the guard: what was said is on record even if it was stopped while it waited.
                await turn.record(written)
            with stop.guard():
                answer = await self._answer(turn, room or nullcontext())
        except StorageError:
            raise
        except TurnFailed as failed:
            _log.warning("turn ends without an answer", extra={"code": failed.reason, "reason": str(failed)})
            await turn.fail(failed.reason, str(failed), recoverable=failed.recoverable)
        except ModelError as error:
            _log.warning("the model gave no answer", extra={"code": error.code, "reason": str(error)})
            await turn.fail(error.code, str(error), recoverable=not error.permanent)
        except Exception:  # noqa: BLE001 - whatever a node raises, the user is told and the process lives on
            _log.exception("turn failed", extra={"message_id": message.message_id})
            await turn.fail("internal", _INTERNAL_WORDS, recoverable=True)
        else:
            if answer is not None:
                await turn.complete(answer)

    async def reply(
        self, message: InboundMessage, words: str, sender: EventSender, journal: TurnJournal
    ) -> None:
        """Answer a written `message` with `words` that are known already: no graph runs, no model is asked.

        One terminal event is sent, after the commit it speaks of. StorageError propagates without one.
        """
        turn = self._turn(message, sender, journal)
        await turn.send(TurnStarted(**turn.ids))
        await turn.record(UserWords(text=message.text.strip()))
        await turn.complete(TurnAnswer(text=words))

    def _turn(
        self, message: InboundMessage | ApprovalReply, sender: EventSender, journal: TurnJournal
    ) -> Turn:
        return Turn(
            message=message,
            sender=TerminalGuard(sender),
            journal=journal,
            clock=self._clock,
            redactor=self._around.redactor,
        )

    async def _answer(self, turn: Turn, room: AbstractAsyncContextManager[object]) -> TurnAnswer | None:
        """What to commit; None where the turn is over without an answer of its own."""
        words = await self._words(turn)
        if words is None:
            return None
        async with room:
            return await self._within_deadline(turn, words, room)

    async def _within_deadline(
        self, turn: Turn, words: UserWords, room: AbstractAsyncContextManager[object]
    ) -> TurnAnswer:
        # Not the engine's own deadline: reading history and records counts as well.
        deadline = TurnDeadline(self._clock, self._settings.turn_timeout_s)
        turn.waiting = Absence(deadline, room).waiting
        turn.delegating = deadline.standing_still
        try:
            async with deadline:
                return _answer_of(await self._walk(turn, await self._context(turn, words)))
        except TimeoutError:
            if not deadline.expired():
                raise
            too_long = _TOO_LONG_WORDS.format(seconds=round(self._settings.turn_timeout_s))
            raise TurnFailed("timeout", too_long) from None

    async def _context(self, turn: Turn, words: UserWords) -> RunContext:
        scope = turn.scope
        allowance = await self._allowance(scope)
        cheaper = self._around.cheaper if allowance.model == "cheaper" else None
        return RunContext(
            text=words.text,
            speech=words.speech,
            conversation=await turn.journal.conversation(),
            scope=scope,
            llm=cheaper or self._llm,
            tools=self._around.tools,
            skills=self._around.skills,
            workspace=self._around.workspace,
            facts=self._around.facts,
            budgets=self._around.budgets,
            clock=self._clock,
            redactor=self._around.redactor,
            settings=self._settings,
            on_text=turn.stream_text,
            on_earlier=turn.stream_earlier,
            summarised=turn.journal.record_summary,
            received_at=turn.message.received_at,
            arrivals=turn.journal.arrivals,
        )

    async def _allowance(self, scope: TurnScope) -> Allowance:
        allowance = await self._around.budgets.allowance(scope)
        if allowance.model == "none":
            raise TurnFailed("budget", allowance.words, recoverable=False)
        return allowance

    async def _words(self, turn: Turn) -> UserWords | None:
        """What the run is about: typed, heard now, or on record from an earlier attempt or turn. None where
        the spoken words were the answer to a question, with which another turn goes on."""
        message = turn.message
        if isinstance(message, InboundMessage) and message.voice is None:
            if not clean_text(message.text):
                raise TurnFailed("unsupported", "I can read text and hear voice notes, nothing else yet.")
            return UserWords(text=in_context(message, message.text), speech=message.speech)
        recorded = await turn.journal.recorded_user()
        if isinstance(message, ApprovalReply):
            if recorded is None:
                raise GraphError(f"the message that asked {message.interaction_id} is not on record")
            await turn.send(
                ApprovalResolved(**turn.ids, interaction_id=message.interaction_id, choice=message.choice)
            )
            return recorded
        words = recorded or await self._heard(turn, message)
        if words is not None:
            await turn.record(words)
        return words

    async def _heard(self, turn: Turn, message: InboundMessage) -> UserWords | None:
        # Hearing costs a minute of the machine, and the words could not be answered.
        await self._allowance(turn.scope)
        heard = turn.overheard or await self._hear(message, turn.on_hearing)
        if await turn.journal.take_as_answer(heard.text):
            return None
        await turn.send(
            TranscriptReady(**turn.ids, text=heard.text, language=heard.language, confidence=heard.confidence)
        )
        return spoken_words(message, heard)

    async def _hear(self, message: InboundMessage, on_hearing: OnHearing) -> Heard:
        limit_s = self._settings.turn_timeout_s
        return await heard_in_time(self._ears, message, on_hearing, clock=self._clock, limit_s=limit_s)

    async def _is_for_us(self, turn: Turn, stop: StopSignal) -> bool:
        """Whether a voice note that the platform did not address to the bot names it. Nothing is shown until
        that is known, and a note that cannot be heard, or is stopped, is nobody's business."""
        message = turn.message
        if not isinstance(message, InboundMessage) or not message.if_named:
            return True
        if await turn.journal.recorded_user() is not None:
            return True
        try:
            with stop.guard():
                turn.overheard = await self._hear(message, _tell_nobody)
        except TurnFailed as error:
            _log.info("a voice note in a room was not understood", extra={"reason": str(error)})
            return False
        return names_one_of(turn.overheard.text, self._settings.called)

    async def _walk(self, turn: Turn, context: RunContext) -> RunOutcome:
        """Go on with the run on record, or begin one."""
        records = await turn.journal.recorded_run()
        answers = isinstance(turn.message, ApprovalReply)
        if records or answers:
            try:
                return await self._resume(turn, context, records)
            except (GraphChanged, RunUnreadable, RunEnded) as error:
                _log.warning("a run cannot be resumed", extra={"code": error.code, "reason": str(error)})
                if answers:
                    # Begun anew, it would do a second time what it did before it asked.
                    words = _OVER_WORDS if isinstance(error, RunEnded) else _OUTDATED_WORDS
                    raise TurnFailed(error.code, words) from error
        log = SafeRunLog(turn.journal.run_log(), turn.redactor)
        return await self._executor.run({}, context, listener=turn.on_graph_event, log=log)

    async def _resume(self, turn: Turn, context: RunContext, records: Sequence[RawRecord]) -> RunOutcome:
        log = SafeRunLog(turn.journal.run_log(), turn.redactor)
        listener, message = turn.on_graph_event, turn.message
        if isinstance(message, ApprovalReply):
            answer = Answer(gate=message.interaction_id, choice=message.choice, by=message.author.id)
            try:
                return await self._executor.resume(
                    records, context, answers=(answer,), listener=listener, log=log
                )
            except GateRefused as refused:
                if refused.status not in ("already_answered", "expired"):
                    raise
                # An earlier attempt put the answer on record; or it expired before its turn came.
        return await self._executor.resume(records, context, listener=listener, log=log)


def _written(message: InboundMessage | ApprovalReply) -> UserWords | None:
    """What the user wrote or said live, as it goes on record at once; None for a voice note, and for
    nothing."""
    if isinstance(message, ApprovalReply):
        return UserWords(text=message.choice)
    if message.voice is not None or not clean_text(message.text):
        return None
    return UserWords(text=in_context(message, message.text), speech=message.speech)


async def _tell_nobody(_progress: HearingQueued | HearingGrown) -> None:
    """Progress of a note that may be none of the bot's business."""


def _answer_of(outcome: RunOutcome) -> TurnAnswer:
    """What the run has to say. Raises what made it fail."""
    if outcome.stop_reason in ("max_loops", "max_steps"):
        raise TurnFailed(outcome.stop_reason, _LOOP_WORDS)
    outcome.raise_for_failure()
    if outcome.gates:
        return TurnAnswer(text=question_words(outcome.gates), gates=outcome.gates)
    answer = outcome.state.get("agent", {}).get("answer")
    if not isinstance(answer, str) or not answer:
        raise GraphError("the graph ended without an answer")
    exchange = tuple(message_from_plain(plain) for plain in outcome.state.get(EXCHANGE, ()))
    thoughts = tuple(Thought(**plain) for plain in outcome.state.get(THOUGHTS, ()))
    return TurnAnswer(text=answer, exchange=exchange, thoughts=thoughts)
