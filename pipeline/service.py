"""Process one message: record it, run the graph, commit the answer, send the terminal event.

It owns the deadline of a turn and turns every failure into one visible outcome. It does not know which
channel the message came from, and does not deliver: the journal's commit hands the reply over. Transcription
has a separate deadline (`pipeline.intake.transcription`).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

from pipeline.after_answer import AfterAnswer
from pipeline.agent.llm_decider import LlmDecider
from pipeline.agent.task import between_tasks
from pipeline.agent.task_texts import TASKS
from pipeline.agent.unfinished import NotedTools
from pipeline.crisis_check import LEFT_TO_GRAPH, CrisisCheck
from pipeline.domain.chat import ChatMessage
from pipeline.domain.clock import Clock
from pipeline.domain.errors import ModelError, StorageError, TurnFailed
from pipeline.domain.events import TurnStarted
from pipeline.domain.messages import ApprovalReply, InboundMessage
from pipeline.domain.ports import EventSender
from pipeline.gate_check import GateCheck
from pipeline.graph.definition.spec import GraphSpec
from pipeline.graph.execution.executor import Executor
from pipeline.graph.run import records as run_records
from pipeline.graph.run.outcome import GATE_EXPIRED, RunOutcome
from pipeline.intake.attachments import has_content, takes
from pipeline.intake.node import refuses
from pipeline.intake.written import written_words
from pipeline.llm.client import LlmClient
from pipeline.resuming import resumed
from pipeline.runtime.arrivals import Arrivals, NoArrivals, TurnExtended
from pipeline.runtime.attachments import Taken
from pipeline.runtime.before_message import NOT_CHECKED, BeforeMessage, Shortcut, not_checked
from pipeline.runtime.context import RunContext
from pipeline.runtime.deadline import SharedTimer, Slot, TurnDeadline, TurnSuspension, UnlimitedSlot
from pipeline.runtime.kept_state import Stored, first_state
from pipeline.runtime.links import AnswerLinks
from pipeline.runtime.ports import (
    SpeechToText,
    TurnAnswer,
    TurnJournal,
    TurnSession,
    UserWords,
)
from pipeline.runtime.safe_log import SafeRunLog
from pipeline.runtime.services import PipelineServices
from pipeline.runtime.settings import PipelineSettings
from pipeline.runtime.stopping import StopSignal, TurnHalted
from pipeline.runtime.workflow_context import AgentMemory
from pipeline.safety.crisis_gate import CrisisGate
from pipeline.turn import Turn, answer_of, shown_steps
from pipeline.turn_contexts import TurnContexts
from pipeline.turn_models import TurnModels
from pipeline.turn_reads import TurnReads
from pipeline.turn_words import TurnWords
from pipeline.unasked import UnaskedMessages

_log = logging.getLogger(__name__)

_INTERNAL_WORDS = "Something went wrong inside the assistant. Please send the message again."
_TOO_LONG_WORDS = "The answer took longer than {seconds} seconds and was given up. Please try again."
_DETAIL_CHARS = 500
"""Length of a provider's message in a line of the log."""


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
        crisis: CrisisGate | None = None,
        memory: AgentMemory | None = None,
    ) -> None:
        """`agent` is the name of the agent, empty for the default one. `gate` sees every message first, after
        the `crisis` gate, which is a node of the graph of an agent whose `memory` says so."""
        self._executor = Executor(
            graph, clock=clock, decider=LlmDecider(), phase=between_tasks, phase_key=TASKS, details=False
        )
        self._graph = graph
        self._steps = shown_steps(graph)
        self._llm = llm
        self._settings = settings
        self._clock = clock
        self._timer = SharedTimer(clock)
        self._services = services or PipelineServices()
        self._agent = agent
        self._contexts = TurnContexts(services=self._services, settings=settings, clock=clock)
        self.gate = (
            None if gate is None else GateCheck(gate, self._contexts, llm=llm, agent=agent, clock=clock)
        )
        """The check that every message passes first; None without one."""
        self._memory = memory
        self._later = frozenset[str]() if memory is None else memory.later
        self._unrecorded = frozenset[str]() if memory is None else memory.unrecorded
        self.crisis = CrisisCheck(crisis, in_graph=bool(self._later))
        rest = partial(AfterAnswer, self._executor, self._contexts, llm=llm, agent=agent, clock=clock)
        self.after = None if memory is None or not memory.later else rest(memory=memory)
        """Runs what is left of a turn's run after its answer; None for an agent without memory."""
        self.has_short_steps = self.after is not None or graph.limits.outer_only
        """Whether the records of several steps share a write: its graph is a companion's or a workflow."""
        check = None if self.gate is None else partial(self.gate.reply, is_command=False)
        alarms = self.crisis.alarms
        unasked = UnaskedMessages(self._contexts, llm=llm, clock=clock, gate=check, in_danger=alarms)
        self._words = TurnWords(
            speech_to_text=speech_to_text,
            settings=settings,
            services=self._services,
            clock=clock,
            gated=gate is not None,
            hears_all=gate is not None or crisis is not None,
            wants_answer=unasked.wants_answer,
        )
        self._models = TurnModels(llm, self._services)

    async def process(
        self,
        message: InboundMessage | ApprovalReply,
        sender: EventSender,
        journal: TurnJournal,
        stop: StopSignal | None = None,
        slot: Slot | None = None,
        *,
        shortcut: Shortcut | None = None,
        arrivals: Arrivals | None = None,
        taken: Taken | None = None,
    ) -> bool:
        """Answer `message`, with the `arrivals` that join it: events go to `sender`, durable data to
        `journal`. An answer to a question resumes the run that asked it. `slot` is entered once the words are
        known, and left at the end: transcription does not use the model's slots. `shortcut` is what follows
        in place of a run, unless a gate takes the message over. `taken` is what is known of the files of a
        message that is answered again.

        Returns False if the gate has passed a message whose shortcut has no words: nothing is sent or written
        then. Else exactly one terminal event is sent, after its commit. StorageError, TurnHalted and
        cancellation propagate without one: the turn is not over and will be processed again.
        """
        if isinstance(message, InboundMessage):
            message = await self._services.rooms.named(message)
        turn, arrivals = self._turn(message, sender, journal), arrivals or NoArrivals()
        turn.taken = taken
        tools = NotedTools(self._services.tools)
        stop = stop or StopSignal()
        # Off the record no step is written, so a resumed run would repeat what it had done.
        turn.control = stop.control if journal.mode == "normal" else None
        quiet = shortcut is not None and not shortcut.words
        try:
            if not await self._words.is_for_bot(turn, stop):
                await journal.decline()
                return True
            await self._begin(turn, quiet=quiet)
            answer: TurnAnswer | None = None
            with stop.guard():
                while True:
                    try:
                        answer = await self._answer(turn, tools, slot or UnlimitedSlot(), shortcut, arrivals)
                        break
                    except TurnExtended:
                        arrivals.require_untouched()
                        await turn.begin_again()
        except (StorageError, TurnHalted):
            raise
        except Exception as error:  # noqa: BLE001 - after any error the user is notified and the process continues
            await self._fail(turn, tools, error, arrivals)
        else:
            if answer is None and quiet:
                return False
            if answer is not None:
                await turn.complete(answer)
        return True

    async def _begin(self, turn: Turn, *, quiet: bool) -> None:
        """Announce the turn, and record its words if they need no check."""
        if not quiet:
            turn.started = True
            await turn.send(TurnStarted(**turn.ids))
        turn.written = written_words(turn.message)
        turn.checked = self.gate is None or isinstance(turn.message, ApprovalReply)
        if turn.written is not None and turn.checked and not takes(self._services, turn.message):
            # Before the stop's guard: the words are recorded even if the turn was stopped while it waited.
            await turn.record(turn.written)

    def sees(self, text: str) -> bool:
        """Whether a gate sees a message with `text` before anything else decides: the agent's gate sees every
        message, and the crisis gate those that alarm it."""
        return self.gate is not None or self.crisis.alarms(text)

    async def passes(self, message: InboundMessage, session: TurnSession) -> bool:
        """Whether the gates pass a message for a run that they have passed already."""
        if self.crisis.alarms(message.text):
            return False
        return self.gate is None or await self.gate.passes(message, session)

    def refuses(self, message: InboundMessage, arrivals: Sequence[float]) -> bool:
        """Whether the intake refuses a typed message by itself, whose author's messages before it came at the
        Unix times `arrivals`."""
        return refuses(self._settings, message, arrivals)

    async def _fail(self, turn: Turn, tools: NotedTools, error: Exception, arrivals: Arrivals) -> None:
        """End the turn with the words of the error, or with general ones for a mistake of the program."""
        code, words, recoverable = "internal", _INTERNAL_WORDS, True
        if isinstance(error, TurnFailed):
            code, words, recoverable = error.reason, str(error), error.recoverable
            # A stop was requested, and needs no investigation.
            level = logging.INFO if code in ("stopped", GATE_EXPIRED) else logging.WARNING
            _log.log(level, "turn ends without an answer", extra={"code": code, "reason": words})
        elif isinstance(error, ModelError):
            code, words, recoverable = error.code, str(error), not error.permanent
            provider_said = self._services.redactor.line(error.detail, _DETAIL_CHARS) if error.detail else ""
            known = {"code": code, "reason": words, "provider_said": provider_said}
            _log.warning("the model gave no answer", extra=known)
        else:
            _log.error("turn failed", extra={"message_id": turn.message.message_id}, exc_info=error)
        # Words that no gate has seen stay out of the conversation, in which a later turn would read them.
        if turn.written is not None and not turn.recorded and (turn.checked or code == NOT_CHECKED):
            await self._words.record_typed(turn, turn.written)
        exchange = await self._exchange(turn, tools)
        if arrivals.covered and (turn.checked or code == NOT_CHECKED):
            await self._words.record_rest(turn, arrivals)
        await turn.fail(code, words, recoverable=recoverable, exchange=exchange)

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
            steps=self._steps,
            person=self._services.person_of(message.thread, message.author.id),
            links=AnswerLinks(self._services.inert_links, self._settings.link_hosts),
        )

    async def _exchange(self, turn: Turn, tools: NotedTools) -> tuple[ChatMessage, ...]:
        """The messages of the model and its tools in a turn that fails, including those before a restart."""
        if turn.outcome is None and (records := await turn.journal.recorded_run()):
            # An earlier process began the run, and this one was stopped before it resumed it.
            try:
                turn.outcome = self._executor.interrupted(records)
            except (run_records.GraphChanged, run_records.RunUnreadable) as error:
                _log.warning("a run cannot be read", extra={"code": error.code, "reason": str(error)})
        return tools.exchange(turn.outcome)

    async def _answer(
        self, turn: Turn, tools: NotedTools, slot: Slot, shortcut: Shortcut | None, arrivals: Arrivals
    ) -> TurnAnswer | None:
        """What to commit; None if no answer follows, or the caller does the rest. Raises TurnExtended when a
        message joins with which the run must begin again."""
        words, checks = await self._to_answer(turn, slot, arrivals)
        if not isinstance(words, UserWords):
            return words
        # Not the deadline of the engine: reading history and records counts as well.
        deadline = TurnDeadline(self._timer, self._clock, self._settings.turn_timeout_s)
        suspension = TurnSuspension(deadline, slot)
        turn.waiting, turn.delegating = suspension.waiting, suspension.delegating
        try:
            with deadline:
                scope, memory = turn.scope, self._memory
                reads = self._contexts.reads(turn.message, turn.journal, scope, words)
                turn.links.named = partial(reads.named_hosts, words.text)
                if checks and (self.gate is not None or shortcut is not None):
                    over, answer = await self._before_run(turn, words, reads, shortcut)
                    if over:
                        return answer
                llm = await self._models.affordable(turn, scope) if checks else self._llm
                context = self._contexts.context(
                    turn.messages[-1],
                    turn.journal,
                    words,
                    reads,
                    llm=llm,
                    tools=tools,
                    on_text=turn.stream_text,
                    on_earlier=turn.stream_earlier,
                    steered=partial(self._words.steered, turn, arrivals, scope),
                    workflow=None
                    if memory is None
                    else memory.context(llm, turn.journal.mode, self.crisis.of(turn)),
                    crisis_level=turn.crisis_level,
                )
                with arrivals.running():
                    outcome = await self._resumed(turn, context)
                    if outcome is None:
                        log = SafeRunLog(turn.journal.run_log(), turn.redactor, self._unrecorded)
                        outcome = await self._executor.run(
                            turn.began_with,
                            context,
                            later=self._later,
                            listener=turn.on_graph_event,
                            nodes=None if turn.steps else turn.wants_nodes,
                            log=log,
                            control=turn.control,
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

    async def _to_answer(
        self, turn: Turn, slot: Slot, arrivals: Arrivals
    ) -> tuple[UserWords | TurnAnswer | None, bool]:
        """The words that a run answers, and whether gate, budget and shortcut come first; else what to commit
        without a run, or None for nothing."""
        words = await self._said(turn, arrivals)
        if words is LEFT_TO_GRAPH:
            # Neither a full slot nor a gate, a budget or a line comes before the graph's crisis branch.
            return turn.all_words, False
        if not isinstance(words, UserWords):
            return words, False
        line = self._words.left_out(turn)
        if line and await self._is_all(turn, words, line):
            return TurnAnswer(text=""), False
        await slot.enter()
        return words, True

    async def _said(self, turn: Turn, arrivals: Arrivals) -> UserWords | TurnAnswer | None:
        """The words of all messages so far, or the crisis response to them; None if they are not admitted."""
        help_ = await self.crisis.at_sight(turn)
        if turn.words is None:
            turn.words = await self._words.first(turn)
        help_ = help_ or await self.crisis.answer(turn)
        if help_ is None and self.gate is None and not turn.recorded and not await self._words.admitted(turn):
            return None
        if help_ is None and arrivals.pending:
            await self._words.join(turn, arrivals)
            help_ = await self.crisis.answer(turn)
        if help_ is None:
            return turn.all_words
        turn.checked = True
        await self._words.admit(turn)
        return help_

    async def _resumed(self, turn: Turn, context: RunContext) -> RunOutcome | None:
        """Resume the turn's recorded run. None without one; the turn has the state to begin with then."""
        stored = await self._stored_state(turn) if self._graph.keep else {}
        outcome = await resumed(self._executor, turn, context, self._later, self._unrecorded)
        if outcome is None:
            turn.began_with = first_state(self._graph, stored)
        return outcome

    async def _is_all(self, turn: Turn, words: UserWords, line: str) -> bool:
        """Put a line about what is left out of the messages above the answer. Whether that line is the whole
        answer: without words there is nothing to check either."""
        turn.left_out = turn.redactor.text(line)
        messages, settings = turn.messages, self._settings
        if any(isinstance(one, ApprovalReply) or has_content(one, words, settings) for one in messages):
            return False
        if not turn.recorded:
            await self._words.admit(turn)
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
                await self._words.admit(turn)
                return True, TurnAnswer(text=reply)
            if (shortcut is not None and not shortcut.words) or not await self._words.admitted(turn):
                return True, None
        if shortcut is None:
            return False, None
        if shortcut.code:
            raise TurnFailed(shortcut.code, shortcut.words, recoverable=True)
        return True, TurnAnswer(text=shortcut.words)
