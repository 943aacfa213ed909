"""The state of one turn: it sends events, writes the journal, and knows what has been streamed.

It redacts everything that leaves the pipeline. `service` decides the order of the steps.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict

from pipeline.agent.model_messages import exchanged
from pipeline.agent.node import LOOP, THOUGHTS
from pipeline.agent.sent_files import sent_files
from pipeline.domain.chat import ChatMessage
from pipeline.domain.clock import Clock
from pipeline.domain.errors import GraphError, TurnFailed
from pipeline.domain.events import (
    ApprovalRequired,
    ErrorEvent,
    LlmToken,
    NodeCompleted,
    NodeStarted,
    PipelineEvent,
    ResponseComplete,
    StepStarted,
    Thought,
    TranscriptPartial,
    TranscriptPending,
    TurnStarted,
)
from pipeline.domain.messages import ApprovalReply, InboundMessage
from pipeline.domain.ports import EventSender, nodes_wanted_by
from pipeline.graph.definition.decisions import State
from pipeline.graph.definition.spec import GraphSpec
from pipeline.graph.execution.control import RunControl
from pipeline.graph.run import events as graph_events
from pipeline.graph.run.outcome import GATE_EXPIRED, RunOutcome
from pipeline.intake.cleaning import clean_text
from pipeline.redaction.redactor import Redactor
from pipeline.runtime.arrivals import STEERED, together
from pipeline.runtime.attachments import Taken, Unstored
from pipeline.runtime.foreign_text import ForeignWords
from pipeline.runtime.kept_state import StateChange
from pipeline.runtime.links import AnswerLinks
from pipeline.runtime.ports import (
    PartialTranscription,
    Transcription,
    TranscriptionQueued,
    TurnAnswer,
    TurnJournal,
    UserWords,
)
from pipeline.runtime.questions import choices, expired_words, question_words
from pipeline.runtime.scope import TurnScope
from pipeline.runtime.stopping import TurnHalted
from pipeline.runtime.workflow_context import CRISIS_LOG
from pipeline.safety.assessment import CrisisAssessment, read_assessment

_log = logging.getLogger(__name__)

_NO_ANSWER_WORDS = "The assistant came to an end without an answer. Please put it in other words."
_LOOP_WORDS = "The assistant went round in circles and was stopped. Please put the question differently."


class Ids(TypedDict):
    """The ids in every event of a turn."""

    session_id: str
    message_id: str


@dataclass(slots=True, kw_only=True)
class JoinedMessage:
    """A message that has joined the turn of an earlier one."""

    message: InboundMessage
    words: UserWords | None
    """None for a voice note that could not be transcribed."""
    transcription: Transcription | None = None
    """The transcript that this attempt has made, until it is shown."""
    problem: str = ""
    """Why its voice note has no words or its files are missing, for the person."""
    recorded: bool = False


@dataclass(slots=True, kw_only=True)
class Turn:
    """The processing of one message and those that join it: sends its events, writes its journal, knows what
    has been streamed."""

    message: InboundMessage | ApprovalReply
    sender: EventSender
    journal: TurnJournal
    clock: Clock
    redactor: Redactor
    links: AnswerLinks
    agent: str = ""
    """The agent that answers; empty for the default one."""
    person: str = ""
    """The key of the author as a person; see `TurnScope.person`."""
    left_out: str = ""
    """A line for the person about what is left out of the messages."""
    cheaper: str = ""
    """A line for the person if another model answers."""
    written: UserWords | None = None
    """The user's typed or live words; None for a voice note."""
    words: UserWords | None = None
    """The words of the first message, once they are known."""
    crisis_level: int = 0
    """What the crisis gate says about its words; 0 for an agent without the gate."""
    taken: Taken | None = None
    """What is known of the files of the first message already; None if they have to be fetched."""
    joined: list[JoinedMessage] = field(default_factory=list)
    """The messages that are answered together with the first."""
    early_transcription: Transcription | None = None
    """The transcript of a note that was transcribed early, to find out whether it is for the bot."""
    transcription: Transcription | None = None
    """The transcript that this attempt has made, until it is shown or counts as an answer."""
    waiting: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
    delegating: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
    streamed: list[str] = field(default_factory=list)
    streamed_chars: int = 0
    foreign: ForeignWords = field(default_factory=ForeignWords)
    unstored: dict[str, Unstored] = field(default_factory=dict)
    """The files of a message off the record, by their ids."""
    judged: tuple[str, CrisisAssessment] | None = None
    """What the crisis gate has judged last, and its assessment."""
    began_with: Mapping[str, Any] = field(default_factory=dict)
    """The kept state with which the run began."""
    outcome: RunOutcome | None = None
    """How the run ended, also if it was cut off; None before that."""
    control: RunControl | None = None
    """The control of its run, if another than the run's own."""
    steps: Mapping[str, str] = field(default_factory=dict)
    """What people read of the nodes of its graph while they run, by the label with which each begins."""
    ids: Ids = field(init=False)
    wants_nodes: Callable[[], bool] = field(init=False)
    """Whether the events of nodes are shown to anybody now."""
    started: bool = field(init=False, default=False)
    """Whether its first event has been sent."""
    recorded: bool = field(init=False, default=False)
    """Whether the user's words have been recorded by this attempt."""
    checked: bool = field(init=False, default=True)
    """False until a gate has decided about the message."""
    ended: bool = field(init=False, default=False)
    """Whether the terminal event has been sent."""

    def __post_init__(self) -> None:
        self.wants_nodes = nodes_wanted_by(self.sender)
        self.ids = {"session_id": self.journal.session_id, "message_id": self.message.message_id}

    @property
    def scope(self) -> TurnScope:
        """The scope for tools, budgets and prompts."""
        message = self.message
        return TurnScope(
            **self.ids,
            thread=message.thread,
            author=message.author,
            person=self.person,
            private=message.private,
            mode=self.journal.mode,
            agent=self.agent,
            send=self.send,
            waiting=self.waiting,
            delegating=self.delegating,
            unstored=self.unstored,
            foreign=self.foreign,
        )

    @property
    def preface(self) -> str:
        """The lines for the person above the answer, streamed with its first words."""
        if not (self.left_out and self.cheaper):
            return self.left_out or self.cheaper
        return f"{self.left_out}\n\n{self.cheaper}"

    @property
    def messages(self) -> tuple[InboundMessage | ApprovalReply, ...]:
        """The first message and those that are answered together with it."""
        return (self.message, *[said.message for said in self.joined])

    @property
    def all_words(self) -> UserWords:
        """The words of all its messages. Call it once those of the first are known."""
        if self.words is not None and not self.joined:
            return self.words
        words = [] if self.words is None else [self.words]
        return together([*words, *(said.words for said in self.joined if said.words is not None)])

    @property
    def steered(self) -> tuple[str, ...]:
        """The ids of the messages that came during the run."""
        loop = {} if self.outcome is None else self.outcome.state.get(LOOP, {})
        return tuple(loop.get(STEERED, ()))

    async def begin_again(self) -> None:
        """Forget a run that has shown nothing."""
        self.links.held = ""
        self.outcome = None
        await self.journal.begin_again()

    async def send(self, event: PipelineEvent, *, is_safe: bool = False) -> None:
        """Send `event` without secrets; what is `is_safe` has none. Raises GraphError after the terminal
        event."""
        if self.ended:
            raise GraphError(f"event {event.type} after the terminal event of {event.message_id}")
        self.ended = event.is_terminal
        await self.sender.send_event(event if is_safe else self.redactor.event(event))

    async def start(self) -> None:
        """Send the first event, unless it has been sent."""
        if not self.started:
            self.started = True
            await self.send(TurnStarted(**self.ids))

    async def record(self, words: UserWords) -> None:
        """Record the words of the first message, cleaned and without the operator's secrets."""
        self.recorded = True
        await self.journal.record_user(self.safe(words))

    def safe(self, words: UserWords) -> UserWords:
        """The words as they are recorded: cleaned and without the operator's secrets."""
        # Redacted before cleaning too, which cuts long text: the redactor cannot find half of a secret.
        redacted = self.redactor.configured(words.text)
        text = clean_text(redacted)
        if text != redacted:
            text = self.redactor.configured(text)
        if words.files:
            words = replace(words, attached=self.redactor.configured(words.attached))
        return words if text == words.text else replace(words, text=text)

    def ids_of(self, message: InboundMessage | ApprovalReply) -> Ids:
        """The ids in an event about one message of the turn."""
        return {"session_id": self.journal.session_id, "message_id": message.message_id}

    async def on_transcription(
        self, message: InboundMessage, progress: TranscriptionQueued | PartialTranscription
    ) -> None:
        """Send the progress of the transcription of a message."""
        ids = self.ids_of(message)
        match progress:
            case TranscriptionQueued(ahead=ahead, eta_s=eta_s):
                await self.send(TranscriptPending(**ids, ahead=ahead, eta_s=eta_s))
            case PartialTranscription(text=text):
                await self.send(TranscriptPartial(**ids, text=text))

    async def stream_text(self, text: str) -> None:
        if self.foreign.sources:
            text = self.links.feed(text)
            if not text:
                return
        if not self.streamed and (preface := self.preface):
            text = f"{preface}\n\n{text}"
        offset = self.streamed_chars
        self.streamed.append(text)
        self.streamed_chars += len(text)
        if self.ended:
            raise GraphError(f"words of the answer after the terminal event of {self.message.message_id}")
        # Past `send`: its stream redacts the text, and each token comes here.
        await self.sender.send_event(LlmToken(**self.ids, text=text, offset=offset))

    async def stream_earlier(self, text: str) -> None:
        """Show what an earlier process showed of this answer, unless this one has shown something."""
        if not self.streamed and not self.links.held:
            await self.stream_text(text)

    async def on_graph_event(self, event: graph_events.GraphEvent) -> None:
        """Send an event for each started node and each one that succeeded. It has no text to redact."""
        # Not by `match`, which looks for each field by its name: every node of every run comes here twice.
        if isinstance(event, graph_events.NodeEntered):
            node = event.node
            if self.wants_nodes():
                await self.sender.send_event(NodeStarted(**self.ids, node=node))
            if node in self.steps:
                await self.send(StepStarted(**self.ids, step=self.steps[node]))
        elif isinstance(event, graph_events.NodeLeft):
            if event.failure is None and not event.skipped and self.wants_nodes():
                await self.sender.send_event(
                    NodeCompleted(**self.ids, node=event.node, decision=event.decision)
                )
        elif isinstance(event, graph_events.RunCompleted):
            self.outcome = ended = event.outcome
            steps = {"run_id": ended.run_id, "stop_reason": ended.stop_reason, "steps": len(ended.path)}
            _log.debug("run ended", extra=steps)

    async def complete(self, answer: TurnAnswer) -> None:
        text = "\n\n".join([part for part in (self.preface, answer.text) if part])
        text = self._inert(self.redactor.text(text))
        if text != answer.text:
            answer = replace(answer, text=text)
        if answer.files:
            files = [replace(file, caption=self._inert(file.caption)) for file in answer.files]
            answer = replace(answer, files=tuple(files))
        entry_id = await self.journal.commit(answer)
        # Off the record a paused run is not stored: its question is a plain answer, without choices.
        for gate in answer.gates if self.journal.mode == "normal" else ():
            if not choices(gate):
                continue
            remaining = 0.0 if gate.expires_at is None else gate.expires_at - self.clock.now()
            await self.send(
                ApprovalRequired(
                    **self.ids,
                    interaction_id=gate.id,
                    tool_name=gate.node,
                    reasoning=gate.prompt,
                    options=choices(gate),
                    timeout_s=max(0.0, remaining),
                    paused=True,
                )
            )
        ended = ResponseComplete(**self.ids, content=answer.text, thoughts=answer.thoughts, entry_id=entry_id)
        await self.send(ended, is_safe=not answer.thoughts)
        # The last reference in a circle, which only the garbage collector could free.
        self.links.named = frozenset

    async def fail(
        self, code: str, words: str, *, recoverable: bool, exchange: tuple[ChatMessage, ...] = ()
    ) -> None:
        await self.start()
        words = self.redactor.text(words)
        partial = self._inert("".join((*self.streamed, self.links.held)).strip())
        entry_id = await self.journal.commit_failure(
            code,
            words,
            recoverable=recoverable,
            partial=partial,
            exchange=exchange,
            steered=self.steered,
        )
        await self.send(
            ErrorEvent(**self.ids, code=code, message=words, recoverable=recoverable, entry_id=entry_id)
        )

    def _inert(self, text: str) -> str:
        """The text without links that neither the person nor the operator has named, once the turn has read
        foreign text."""
        return self.links.inert(text) if self.foreign else text


def answer_of(outcome: RunOutcome, turn: Turn, graph: GraphSpec[Any]) -> TurnAnswer:
    """The answer of a run of `graph`, with what it changed in the state that outlives it. Raises the cause of
    a failed run, and TurnHalted for one that halted on request."""
    if outcome.stop_reason == "pause_requested":
        raise TurnHalted
    if outcome.stop_reason in ("max_loops", "max_steps"):
        raise TurnFailed(outcome.stop_reason, _LOOP_WORDS)
    if outcome.status == "failed" and outcome.error is not None and outcome.error.code == GATE_EXPIRED:
        raise TurnFailed(GATE_EXPIRED, expired_words(turn.message))
    outcome.raise_for_failure()
    if outcome.gates:
        return TurnAnswer(text=question_words(outcome.gates), gates=outcome.gates)
    answer = outcome.state.get("agent", {}).get("answer")
    if not isinstance(answer, str) or not answer:
        raise TurnFailed("no_answer", _NO_ANSWER_WORDS)
    thoughts = tuple(Thought(**plain) for plain in outcome.state.get(THOUGHTS, ()))
    exchange = exchanged(outcome.state)
    files = sent_files(outcome.state)
    if files:
        exchange = tuple([replace(message, sends=()) if message.sends else message for message in exchange])
    return TurnAnswer(
        text=answer,
        exchange=exchange,
        thoughts=thoughts,
        state=_change(outcome, turn, graph),
        steered=turn.steered,
        files=files,
        crisis=crisis_of(outcome.state) if CRISIS_LOG in outcome.state else None,
        continues=outcome.stop_reason == "left",
        turn=outcome.state.get("progress", {}).get("turn_count", 0) if outcome.stop_reason == "left" else 0,
    )


def crisis_of(state: State) -> CrisisAssessment:
    """The entry of the log of crises that a graph with its own crisis gate has made."""
    return read_assessment(state[CRISIS_LOG])


def _change(outcome: RunOutcome, turn: Turn, graph: GraphSpec[Any]) -> StateChange | None:
    if not graph.keep:
        return None
    foreign = next(iter(turn.foreign.sources), "")
    return StateChange(graph=graph, before=turn.began_with, after=outcome.state, foreign=foreign)


def shown_steps(graph: GraphSpec[Any]) -> Mapping[str, str]:
    """What people read of the nodes of `graph` while they run, by the label with which each begins: that of
    the first node inside it, for a subgraph."""
    return {
        node if spec.subgraph is None else f"{node}.{spec.subgraph.entry}": spec.shown
        for node, spec in graph.specs.items()
        if spec.shown
    }
