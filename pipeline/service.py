"""Process one message: record it, run the graph, commit the answer, send the terminal event.

It owns the deadline of a turn and turns every failure into one visible outcome. It does not know which
channel the message came from, and does not deliver: the journal's commit hands the reply over. Transcription
has a separate deadline (`pipeline.intake.transcription`).
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Sequence

from pipeline.agent.llm_decider import LlmDecider
from pipeline.agent.model_messages import exchanged
from pipeline.agent.task import between_tasks
from pipeline.agent.task_texts import TASKS
from pipeline.agent.unfinished import NotedTools
from pipeline.domain.attachments import left_out_line
from pipeline.domain.chat import ChatMessage
from pipeline.domain.clock import Clock
from pipeline.domain.errors import GraphError, ModelError, StorageError, TurnFailed
from pipeline.domain.events import ApprovalResolved, TranscriptReady, TurnStarted
from pipeline.domain.messages import ApprovalReply, InboundMessage
from pipeline.domain.ports import EventSender
from pipeline.graph.definition.spec import GraphSpec
from pipeline.graph.execution.executor import Executor
from pipeline.graph.run import records as run_records
from pipeline.graph.run.outcome import GATE_EXPIRED, Answer, RunOutcome
from pipeline.graph.run.records import RawRecord, has_ended
from pipeline.intake.forwarded_content import note_foreign
from pipeline.intake.spoken import names_one_of, spoken_words
from pipeline.intake.transcription import transcribe_in_time
from pipeline.intake.written import asks_something, written_words
from pipeline.llm.client import LlmClient
from pipeline.runtime.context import RunContext
from pipeline.runtime.deadline import Slot, TurnDeadline, TurnSuspension, UnlimitedSlot
from pipeline.runtime.kept_state import Stored, first_state
from pipeline.runtime.links import AnswerLinks
from pipeline.runtime.ports import (
    Allowance,
    OnTranscription,
    PartialTranscription,
    SpeechToText,
    Transcription,
    TranscriptionQueued,
    TurnAnswer,
    TurnJournal,
    UserWords,
)
from pipeline.runtime.safe_log import SafeRunLog
from pipeline.runtime.scope import TurnScope
from pipeline.runtime.services import PipelineServices
from pipeline.runtime.settings import PipelineSettings
from pipeline.runtime.stopping import StopSignal
from pipeline.turn import Turn, answer_of
from pipeline.turn_reads import TurnReads, has_used_history

_log = logging.getLogger(__name__)

_INTERNAL_WORDS = "Something went wrong inside the assistant. Please send the message again."
_TOO_LONG_WORDS = "The answer took longer than {seconds} seconds and was given up. Please try again."
_OUTDATED_WORDS = (
    "The assistant has changed since it asked this and cannot continue. Please send your message again."
)

_DETAIL_CHARS = 500
"""Length of a provider's message in a line of the log."""
_OVER_WORDS = "This question is no longer open: the assistant has ended without your answer."
_MAX_NOTIFIED = 10_000
"""Sessions that are remembered; a repeated notice is better than unbounded memory."""


class Pipeline:
    """The pipeline of all channels. One instance serves all threads concurrently."""

    def __init__(
        self,
        *,
        graph: GraphSpec[RunContext],
        llm: LlmClient,
        speech_to_text: SpeechToText,
        settings: PipelineSettings,
        clock: Clock,
        services: PipelineServices | None = None,
        agent: str = "",
    ) -> None:
        """`agent` is the name of the agent, empty for the default one."""
        self._executor = Executor(
            graph, clock=clock, decider=LlmDecider(), phase=between_tasks, phase_key=TASKS, details=False
        )
        self._graph = graph
        self._llm = llm
        self._transcriber = speech_to_text
        self._settings = settings
        self._clock = clock
        self._services = services or PipelineServices()
        self._agent = agent
        self._notified: set[str] = set()
        """Sessions that were notified of the cheaper model."""

    async def process(
        self,
        message: InboundMessage | ApprovalReply,
        sender: EventSender,
        journal: TurnJournal,
        stop: StopSignal | None = None,
        slot: Slot | None = None,
    ) -> None:
        """Answer `message`: events go to `sender`, durable data to `journal`. An answer to a question resumes
        the run that asked it. `slot` is entered once the words are known, and left at the end: transcription
        does not use the model's slots.

        Exactly one terminal event is sent, after its commit. StorageError and cancellation propagate
        without one: the turn is not over and will be processed again.
        """
        if isinstance(message, InboundMessage):
            message = await self._services.rooms.named(message)
        turn = self._turn(message, sender, journal)
        tools = NotedTools(self._services.tools)
        stop = stop or StopSignal()
        try:
            if not await self._is_for_bot(turn, stop):
                await journal.decline()
                return
            await turn.send(TurnStarted(**turn.ids))
            turn.written = written_words(message)
            if turn.written is not None:
                # Before the guard: the words are recorded even if the turn was stopped while it waited.
                await turn.record(turn.written)
            with stop.guard():
                answer = await self._answer(turn, tools, slot or UnlimitedSlot())
        except StorageError:
            raise
        except TurnFailed as failed:
            # A stop was requested, and needs no investigation.
            level = logging.INFO if failed.reason in ("stopped", GATE_EXPIRED) else logging.WARNING
            ended = {"code": failed.reason, "reason": str(failed)}
            _log.log(level, "turn ends without an answer", extra=ended)
            exchange = await self._exchange(turn, tools)
            await turn.fail(failed.reason, str(failed), recoverable=failed.recoverable, exchange=exchange)
        except ModelError as error:
            provider_said = self._services.redactor.line(error.detail, _DETAIL_CHARS) if error.detail else ""
            known = {"code": error.code, "reason": str(error), "provider_said": provider_said}
            _log.warning("the model gave no answer", extra=known)
            exchange = await self._exchange(turn, tools)
            await turn.fail(error.code, str(error), recoverable=not error.permanent, exchange=exchange)
        except Exception:  # noqa: BLE001 - after any error the user is notified and the process continues
            _log.exception("turn failed", extra={"message_id": message.message_id})
            exchange = await self._exchange(turn, tools)
            await turn.fail("internal", _INTERNAL_WORDS, recoverable=True, exchange=exchange)
        else:
            if answer is not None:
                await turn.complete(answer)

    async def reply(
        self, message: InboundMessage, words: str, sender: EventSender, journal: TurnJournal
    ) -> None:
        """Answer a written `message` with the given `words`: runs no graph and calls no model.

        One terminal event is sent, after its commit. StorageError propagates without one.
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
            sender=sender,
            journal=journal,
            clock=self._clock,
            redactor=self._services.redactor,
            agent=self._agent,
            person=self._services.person_of(message.thread, message.author.id),
            links=AnswerLinks(self._services.inert_links, self._settings.link_hosts),
        )

    async def _exchange(self, turn: Turn, tools: NotedTools) -> tuple[ChatMessage, ...]:
        """The messages of the model and its tools in a turn that fails, including those before a restart."""
        outcome = turn.outcome
        if outcome is None and (records := await turn.journal.recorded_run()):
            # An earlier process began the run, and this one was stopped before it resumed it.
            try:
                outcome = self._executor.interrupted(records)
            except (run_records.GraphChanged, run_records.RunUnreadable) as error:
                _log.warning("a run cannot be read", extra={"code": error.code, "reason": str(error)})
        return tools.exchange(outcome)

    async def _answer(self, turn: Turn, tools: NotedTools, slot: Slot) -> TurnAnswer | None:
        """What to commit; None if the turn is over without an answer."""
        words = await self._words(turn)
        if words is None:
            return None
        if isinstance(turn.message, InboundMessage) and (line := left_out_line(turn.message)):
            turn.preface = turn.redactor.text(line)
            if not asks_something(turn.message):
                return TurnAnswer(text="")  # the preface is the whole answer
        await slot.enter()
        # Not the deadline of the engine: reading history and records counts as well.
        deadline = TurnDeadline(self._clock, self._settings.turn_timeout_s)
        suspension = TurnSuspension(deadline, slot)
        turn.waiting, turn.delegating = suspension.waiting, suspension.delegating
        try:
            async with deadline:
                context = await self._context(turn, tools, words)
                stored = await self._stored_state(turn) if self._graph.keep else {}
                outcome = await self._resumed(turn, context)
                if outcome is None:
                    log, listener = SafeRunLog(turn.journal.run_log(), turn.redactor), turn.on_graph_event
                    turn.began_with = first_state(self._graph, stored)
                    outcome = await self._executor.run(turn.began_with, context, listener=listener, log=log)
                return answer_of(outcome, turn, self._graph)
        except TimeoutError:
            if not deadline.expired():
                raise
            too_long = _TOO_LONG_WORDS.format(seconds=round(self._settings.turn_timeout_s))
            raise TurnFailed("timeout", too_long) from None
        finally:
            slot.leave()

    async def _stored_state(self, turn: Turn) -> Stored:
        """What earlier runs of the graph have left."""
        stored = await turn.journal.kept.read(self._graph.name)
        for kept in stored.values():
            turn.scope.foreign.note(kept.foreign)
        return stored

    async def _context(self, turn: Turn, tools: NotedTools, words: UserWords) -> RunContext:
        scope = turn.scope
        note_foreign(scope, words.text)
        reads = TurnReads(
            journal=turn.journal,
            rooms=self._services.rooms,
            workspace=self._services.workspace,
            message=turn.message,
            scope=scope,
            clock=self._clock,
        )
        turn.links.named = functools.partial(reads.named_hosts, words.text)
        allowance = await self._allowance(scope)
        cheaper = self._services.cheaper if allowance.model == "cheaper" else None
        self._announce_cheaper(turn, allowance.words if cheaper is not None else "")
        return RunContext(
            text=words.text,
            by=words.by,
            speech=words.speech,
            history=reads,
            scope=scope,
            llm=cheaper or self._llm,
            tools=tools,
            skills=self._services.skills,
            workspace=reads,
            facts=self._services.facts,
            budgets=self._services.budgets,
            clock=self._clock,
            redactor=self._services.redactor,
            settings=self._settings,
            on_text=turn.stream_text,
            on_earlier=turn.stream_earlier,
            received_at=turn.message.received_at,
            arrivals=turn.journal.arrivals,
        )

    def _announce_cheaper(self, turn: Turn, words: str) -> None:
        """State above the answer that a cheaper model wrote it: once, until the full model answers again."""
        session = turn.journal.session_id
        if not words:
            self._notified.discard(session)
        elif session not in self._notified:
            if len(self._notified) >= _MAX_NOTIFIED:
                self._notified.clear()
            self._notified.add(session)
            turn.preface = "\n\n".join(part for part in (turn.preface, words) if part)

    async def _allowance(self, scope: TurnScope) -> Allowance:
        allowance = await self._services.budgets.allowance(scope)
        if allowance.model == "none":
            raise TurnFailed("budget", allowance.words, recoverable=False)
        return allowance

    async def _words(self, turn: Turn) -> UserWords | None:
        """The words of the run: typed, transcribed now, or recorded by an earlier attempt or turn. None if
        the spoken words answered a question, whose run another turn resumes."""
        message = turn.message
        if isinstance(message, InboundMessage) and message.voice is None:
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
        words = recorded or await self._transcribed_words(turn, message)
        if words is not None:
            await turn.record(words)
        return words

    async def _transcribed_words(self, turn: Turn, message: InboundMessage) -> UserWords | None:
        # Transcription takes up to a minute of CPU time, and without a budget the words cannot be answered.
        await self._allowance(turn.scope)
        spoken = turn.early_transcription or await self._transcribe(message, turn.on_transcription)
        if await turn.journal.try_consume_as_answer(spoken.text):
            return None
        await turn.send(
            TranscriptReady(
                **turn.ids, text=spoken.text, language=spoken.language, confidence=spoken.confidence
            )
        )
        return spoken_words(message, spoken)

    async def _transcribe(self, message: InboundMessage, on_progress: OnTranscription) -> Transcription:
        limit_s = self._settings.turn_timeout_s
        return await transcribe_in_time(
            self._transcriber, message, on_progress, clock=self._clock, limit_s=limit_s
        )

    async def _is_for_bot(self, turn: Turn, stop: StopSignal) -> bool:
        """Whether the message is for the bot. A voice note that the platform did not address to the bot must
        name it; nothing is shown before that is known, and a note that fails or is stopped is ignored. So is
        an expired question whose run has ended."""
        message = turn.message
        if isinstance(message, ApprovalReply):
            return not (message.expired and has_ended(await turn.journal.recorded_run()))
        if not message.if_named:
            return True
        if await turn.journal.recorded_user() is not None:
            return True
        try:
            with stop.guard():
                turn.early_transcription = await self._transcribe(message, _ignore_progress)
        except TurnFailed as error:
            _log.info("a voice note in a room was not understood", extra={"reason": str(error)})
            return False
        return names_one_of(turn.early_transcription.text, self._settings.called)

    async def _resumed(self, turn: Turn, context: RunContext) -> RunOutcome | None:
        """The outcome of the recorded run; None if there is none, or none that can be resumed."""
        records = await turn.journal.recorded_run()
        answers = isinstance(turn.message, ApprovalReply)
        if not records and not answers:
            return None
        try:
            return await self._resume(turn, context, records)
        except (run_records.GraphChanged, run_records.RunUnreadable, run_records.RunEnded) as error:
            _log.warning("a run cannot be resumed", extra={"code": error.code, "reason": str(error)})
            if answers:
                # A new run would repeat what the old one did before it asked.
                words = _OVER_WORDS if isinstance(error, run_records.RunEnded) else _OUTDATED_WORDS
                raise TurnFailed(error.code, words) from error
            return None

    async def _resume(self, turn: Turn, context: RunContext, records: Sequence[RawRecord]) -> RunOutcome:
        # A later step need not see the results of those that read text from elsewhere.
        state = self._executor.interrupted(records).state
        context.scope.foreign.read(exchanged(state))
        if has_used_history(state):
            # Its foreign words may be in what the run has written so far.
            await context.history.conversation()
        turn.began_with = run_records.head_of(records)["inputs"]
        log = SafeRunLog(turn.journal.run_log(), turn.redactor)
        listener, message = turn.on_graph_event, turn.message
        if isinstance(message, ApprovalReply) and not message.expired:
            answer = Answer(gate=message.interaction_id, choice=message.choice, by=message.author.id)
            try:
                return await self._executor.resume(
                    records, context, answers=(answer,), listener=listener, log=log
                )
            except run_records.GateRefused as refused:
                if refused.status not in ("already_answered", "expired"):
                    raise
                # An earlier attempt recorded the answer, or it expired while it waited.
        return await self._executor.resume(records, context, listener=listener, log=log)


async def _ignore_progress(_progress: TranscriptionQueued | PartialTranscription) -> None:
    """Ignore the progress of a note that may not be for the bot."""
