"""Process one message: record it, run the graph, commit the answer, send the terminal event.

It owns the deadline of a turn and turns every failure into one visible outcome. It does not know which
channel the message came from, and does not deliver: the journal's commit hands the reply over. Transcription
has a separate deadline (`pipeline.intake.transcription`).
"""

from __future__ import annotations

import functools
import logging

from pipeline.agent.llm_decider import LlmDecider
from pipeline.agent.task import between_tasks
from pipeline.agent.task_texts import TASKS
from pipeline.agent.unfinished import NotedTools
from pipeline.domain.chat import ChatMessage
from pipeline.domain.clock import Clock
from pipeline.domain.errors import GraphError, ModelError, StorageError, TurnFailed
from pipeline.domain.events import ApprovalResolved, TranscriptReady, TurnStarted
from pipeline.domain.messages import ApprovalReply, InboundMessage
from pipeline.domain.ports import EventSender
from pipeline.gate_check import GateCheck
from pipeline.graph.definition.spec import GraphSpec
from pipeline.graph.execution.executor import Executor
from pipeline.graph.run import records as run_records
from pipeline.graph.run.outcome import GATE_EXPIRED
from pipeline.graph.run.records import has_ended
from pipeline.intake.attachments import has_content, take_in_time, takes, unused_line
from pipeline.intake.spoken import names_one_of, spoken_words
from pipeline.intake.transcription import transcribe_in_time
from pipeline.intake.written import written_words
from pipeline.llm.client import LlmClient
from pipeline.resuming import resumed
from pipeline.runtime.before_message import NOT_CHECKED, BeforeMessage, Shortcut, not_checked
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
from pipeline.runtime.stopping import StopSignal, TurnHalted
from pipeline.turn import Turn, answer_of
from pipeline.turn_contexts import TurnContexts
from pipeline.turn_reads import TurnReads
from pipeline.unasked import UnaskedMessages

_log = logging.getLogger(__name__)

_INTERNAL_WORDS = "Something went wrong inside the assistant. Please send the message again."
_TOO_LONG_WORDS = "The answer took longer than {seconds} seconds and was given up. Please try again."
_DETAIL_CHARS = 500
"""Length of a provider's message in a line of the log."""
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
        gate: BeforeMessage | None = None,
    ) -> None:
        """`agent` is the name of the agent, empty for the default one. `gate` sees every message first."""
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
        self._contexts = TurnContexts(services=self._services, settings=settings, clock=clock)
        self.gate = (
            None if gate is None else GateCheck(gate, self._contexts, llm=llm, agent=agent, clock=clock)
        )
        """The check that every message passes first; None without one."""
        check = None if self.gate is None else functools.partial(self.gate.reply, is_command=False)
        self._unasked = UnaskedMessages(self._contexts, llm=llm, clock=clock, gate=check)
        self._notified: set[str] = set()
        """Sessions that were notified of the cheaper model."""

    async def process(
        self,
        message: InboundMessage | ApprovalReply,
        sender: EventSender,
        journal: TurnJournal,
        stop: StopSignal | None = None,
        slot: Slot | None = None,
        *,
        shortcut: Shortcut | None = None,
    ) -> bool:
        """Answer `message`: events go to `sender`, durable data to `journal`. An answer to a question resumes
        the run that asked it. `slot` is entered once the words are known, and left at the end: transcription
        does not use the model's slots. `shortcut` is what follows in place of a run, unless a gate takes the
        message over.

        Returns False if the gate has passed a message whose shortcut has no words: nothing is sent or written
        then. Else exactly one terminal event is sent, after its commit. StorageError, TurnHalted and
        cancellation propagate without one: the turn is not over and will be processed again.
        """
        if isinstance(message, InboundMessage):
            message = await self._services.rooms.named(message)
        turn = self._turn(message, sender, journal)
        tools = NotedTools(self._services.tools)
        stop = stop or StopSignal()
        # Off the record no step is written, so a resumed run would repeat what it had done.
        turn.control = stop.control if journal.mode == "normal" else None
        quiet = shortcut is not None and not shortcut.words
        try:
            if not await self._is_for_bot(turn, stop):
                await journal.decline()
                return True
            if not quiet:
                turn.started = True
                await turn.send(TurnStarted(**turn.ids))
            turn.written = written_words(message)
            turn.checked = self.gate is None or isinstance(message, ApprovalReply)
            if turn.written is not None and turn.checked and not takes(self._services, message):
                # Before the guard: the words are recorded even if the turn was stopped while it waited.
                await turn.record(turn.written)
            with stop.guard():
                answer = await self._answer(turn, tools, slot or UnlimitedSlot(), shortcut)
        except (StorageError, TurnHalted):
            raise
        except Exception as error:  # noqa: BLE001 - after any error the user is notified and the process continues
            await self._fail(turn, tools, error)
        else:
            if answer is None and quiet:
                return False
            if answer is not None:
                await turn.complete(answer)
        return True

    async def _fail(self, turn: Turn, tools: NotedTools, error: Exception) -> None:
        """End the turn with the words of the error, or with general ones for a mistake of the program."""
        code, words, recoverable = "internal", _INTERNAL_WORDS, True
        if isinstance(error, TurnFailed):
            code, words, recoverable = error.reason, str(error), error.recoverable
            # A stop was requested, and needs no investigation.
            level = logging.INFO if code in ("stopped", GATE_EXPIRED) else logging.WARNING
            _log.log(level, "turn ends without an answer", extra={"code": code, "reason": words})
        elif isinstance(error, ModelError):
            code, words, recoverable = error.code, str(error), not error.permanent
            said = self._services.redactor.line(error.detail, _DETAIL_CHARS) if error.detail else ""
            _log.warning(
                "the model gave no answer", extra={"code": code, "reason": words, "provider_said": said}
            )
        else:
            _log.error("turn failed", extra={"message_id": turn.message.message_id}, exc_info=error)
        # Words that no gate has seen stay out of the conversation, in which a later turn would read them.
        if turn.written is not None and not turn.recorded and (turn.checked or code == NOT_CHECKED):
            await turn.record(turn.written)
        await turn.fail(code, words, recoverable=recoverable, exchange=await self._exchange(turn, tools))

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

    async def _answer(
        self, turn: Turn, tools: NotedTools, slot: Slot, shortcut: Shortcut | None
    ) -> TurnAnswer | None:
        """What to commit; None if no answer follows, or the caller does the rest."""
        words = await self._words(turn)
        if self.gate is None and not turn.recorded and not await self._admitted(turn, words):
            return None
        line = unused_line(turn.message, words, self._settings, taken=takes(self._services, turn.message))
        if line and await self._is_all(turn, words, line):
            return TurnAnswer(text="")
        await slot.enter()
        # Not the deadline of the engine: reading history and records counts as well.
        deadline = TurnDeadline(self._clock, self._settings.turn_timeout_s)
        suspension = TurnSuspension(deadline, slot)
        turn.waiting, turn.delegating = suspension.waiting, suspension.delegating
        try:
            async with deadline:
                scope = turn.scope
                reads = self._contexts.reads(turn.message, turn.journal, scope, words)
                turn.links.named = functools.partial(reads.named_hosts, words.text)
                if self.gate is not None or shortcut is not None:
                    over, answer = await self._before_run(turn, words, reads, shortcut)
                    if over:
                        return answer
                llm = await self._affordable(turn, scope)
                context = self._contexts.context(
                    turn.message,
                    turn.journal,
                    words,
                    reads,
                    llm=llm,
                    tools=tools,
                    on_text=turn.stream_text,
                    on_earlier=turn.stream_earlier,
                )
                stored = await self._stored_state(turn) if self._graph.keep else {}
                outcome = await resumed(self._executor, turn, context)
                if outcome is None:
                    log, listener = SafeRunLog(turn.journal.run_log(), turn.redactor), turn.on_graph_event
                    turn.began_with = first_state(self._graph, stored)
                    outcome = await self._executor.run(
                        turn.began_with, context, listener=listener, log=log, control=turn.control
                    )
                return answer_of(outcome, turn, self._graph)
        except TimeoutError as error:
            if not deadline.expired():
                raise
            if not turn.checked:
                raise not_checked(error) from None
            too_long = _TOO_LONG_WORDS.format(seconds=round(self._settings.turn_timeout_s))
            raise TurnFailed("timeout", too_long) from None
        finally:
            slot.leave()

    async def _is_all(self, turn: Turn, words: UserWords, line: str) -> bool:
        """Put a line about what is left out of the message above the answer. Whether that line is the whole
        answer: without words there is nothing to check either."""
        turn.preface = turn.redactor.text(line)
        if isinstance(turn.message, InboundMessage) and has_content(turn.message, words, self._settings):
            return False
        if not turn.recorded:
            await self._admit(turn, words)
        return True

    async def _stored_state(self, turn: Turn) -> Stored:
        """What earlier runs of the graph have left."""
        stored = await turn.journal.kept.read(self._graph.name)
        for kept in stored.values():
            turn.scope.foreign.note(kept.foreign)
        return stored

    async def _before_run(
        self, turn: Turn, words: UserWords, reads: TurnReads, shortcut: Shortcut | None
    ) -> tuple[bool, TurnAnswer | None]:
        """The gate's decision, and what follows it. Whether no run follows, and what to commit then."""
        if self.gate is not None and isinstance(turn.message, InboundMessage):
            is_command = shortcut is not None and not shortcut.code
            reply = await self.gate.reply(turn, words, reads, is_command=is_command)
            turn.checked = True
            if reply:
                await self._admit(turn, words)
                return True, TurnAnswer(text=reply)
            if (shortcut is not None and not shortcut.words) or not await self._admitted(turn, words):
                return True, None
        if shortcut is None:
            return False, None
        if shortcut.code:
            raise TurnFailed(shortcut.code, shortcut.words, recoverable=True)
        return True, TurnAnswer(text=shortcut.words)

    async def _admitted(self, turn: Turn, words: UserWords) -> bool:
        """Show and record the words. False if they answered a question of a paused run instead, which
        another turn resumes."""
        message = turn.message
        if not isinstance(message, InboundMessage):
            return True
        if turn.transcription is not None or message.answers:
            said = message.text if turn.transcription is None else turn.transcription.text
            if await turn.journal.try_consume_as_answer(said):
                return False
        await self._admit(turn, words)
        return True

    async def _admit(self, turn: Turn, words: UserWords) -> None:
        await turn.start()
        if (spoken := turn.transcription) is not None:
            ready = {"text": spoken.text, "language": spoken.language}
            await turn.send(TranscriptReady(**turn.ids, **ready, confidence=spoken.confidence))
        if not turn.recorded:
            await turn.record(words)

    async def _affordable(self, turn: Turn, scope: TurnScope) -> LlmClient:
        """The model that the budget allows. Raises TurnFailed if it allows none."""
        allowance = await self._allowance(scope)
        cheaper = self._services.cheaper if allowance.model == "cheaper" else None
        self._announce_cheaper(turn, allowance.words if cheaper is not None else "")
        return cheaper or self._llm

    async def _allowance(self, scope: TurnScope) -> Allowance:
        allowance = await self._services.budgets.allowance(scope)
        if allowance.model == "none":
            raise TurnFailed("budget", allowance.words, recoverable=False)
        return allowance

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

    async def _words(self, turn: Turn) -> UserWords:
        """The words of the run: typed, transcribed now, or recorded by an earlier attempt or turn."""
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
        if self.gate is None:
            # Transcription takes up to a minute of CPU time, files have to be fetched, and without a budget
            # the words cannot be answered. A gate sees the words first.
            await self._allowance(turn.scope)
        spoken = turn.early_transcription
        if spoken is None and message.voice is not None:
            spoken = await self._transcribe(message, turn.on_transcription)
        unstored = turn.unstored if turn.journal.mode == "otr" else None
        taken = await take_in_time(self._services.attachments, message, self._settings, self._clock, unstored)
        if spoken is None:
            turn.written = written_words(message, taken)
            return turn.written or UserWords(text="")
        turn.transcription = spoken
        return spoken_words(message, spoken, taken)

    async def _transcribe(self, message: InboundMessage, on_progress: OnTranscription) -> Transcription:
        return await transcribe_in_time(
            self._transcriber, message, on_progress, clock=self._clock, limit_s=self._settings.turn_timeout_s
        )

    async def _is_for_bot(self, turn: Turn, stop: StopSignal) -> bool:
        """Whether the message is for the bot. A voice note that the platform did not address to the bot must
        name it; nothing is shown before that is known, and a note that fails or is stopped is ignored. So is
        an expired question whose run has ended. Of other messages that were not addressed to it, the model
        decides."""
        message = turn.message
        if isinstance(message, ApprovalReply):
            return not (message.expired and has_ended(await turn.journal.recorded_run()))
        if not (message.if_named or message.may_decline) or await turn.journal.recorded_user() is not None:
            return True
        try:
            with stop.guard():
                if message.may_decline:
                    return await self._unasked.wants_answer(turn)
                turn.early_transcription = await self._transcribe(message, _ignore_progress)
        except TurnFailed as error:
            _log.info("a message in a room is not answered", extra={"reason": str(error)})
            return False
        return names_one_of(turn.early_transcription.text, self._settings.called)


async def _ignore_progress(_progress: TranscriptionQueued | PartialTranscription) -> None:
    """Ignore the progress of a note that may not be for the bot."""
