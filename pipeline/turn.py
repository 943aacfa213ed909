"""One message's way through the pipeline: where its events and records go, and what has been streamed.

Everything that leaves passes the redactor here. What is done when is `service`'s.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TypedDict

from pipeline.domain.chat import ChatMessage
from pipeline.domain.clock import Clock
from pipeline.domain.events import (
    ApprovalRequired,
    ErrorEvent,
    LlmToken,
    NodeCompleted,
    NodeStarted,
    PipelineEvent,
    ResponseComplete,
    TranscriptPartial,
    TranscriptPending,
)
from pipeline.domain.messages import ApprovalReply, InboundMessage
from pipeline.graph.run import events as graph_events
from pipeline.graph.run.outcome import RunOutcome
from pipeline.intake.cleaning import clean_text
from pipeline.redaction.redactor import Redactor
from pipeline.runtime.foreign import ForeignWords
from pipeline.runtime.links import AnswerLinks
from pipeline.runtime.ports import (
    PartialTranscription,
    Transcription,
    TranscriptionQueued,
    TurnAnswer,
    TurnJournal,
    UserWords,
)
from pipeline.runtime.questions import choices
from pipeline.runtime.scope import TurnScope
from pipeline.runtime.terminal import TerminalGuard

_log = logging.getLogger(__name__)


class Ids(TypedDict):
    """What every event of a turn carries."""

    session_id: str
    message_id: str


@dataclass(slots=True, kw_only=True)
class Turn:
    """One message's way through: where its events and records go, and what has been streamed."""

    message: InboundMessage | ApprovalReply
    sender: TerminalGuard
    journal: TurnJournal
    clock: Clock
    redactor: Redactor
    links: AnswerLinks
    preface: str = ""
    """A line for the person that stands above the answer, streamed with its first words."""
    written: UserWords | None = None
    """What the user typed or said live; None for a voice note."""
    overheard: Transcription | None = None
    """A note that had to be heard to know whom it is for."""
    waiting: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
    delegating: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
    streamed: list[str] = field(default_factory=list)
    streamed_chars: int = 0
    foreign: ForeignWords = field(default_factory=ForeignWords)
    outcome: RunOutcome | None = None
    """How the run ended, also one that was cut off; None before a run has."""

    @property
    def scope(self) -> TurnScope:
        """Whose turn it is."""
        message = self.message
        return TurnScope(
            **self.ids,
            thread=message.thread,
            author=message.author,
            private=message.private,
            mode=self.journal.mode,
            send=self.send,
            waiting=self.waiting,
            delegating=self.delegating,
            foreign=self.foreign,
        )

    @property
    def ids(self) -> Ids:
        return {"session_id": self.journal.session_id, "message_id": self.message.message_id}

    async def send(self, event: PipelineEvent) -> None:
        await self.sender.send_event(self.redactor.event(event))

    async def record(self, words: UserWords) -> None:
        """Put the user's words on record: theirs, cleaned, but for the secrets of whoever runs the bot."""
        # Before it is cleaned too, which cuts what is too long: a half of a secret is found by nobody.
        text = self.redactor.configured(clean_text(self.redactor.configured(words.text)))
        await self.journal.record_user(replace(words, text=text))

    async def on_hearing(self, progress: TranscriptionQueued | PartialTranscription) -> None:
        """Show how far the ears are."""
        match progress:
            case TranscriptionQueued(ahead=ahead, eta_s=eta_s):
                await self.send(TranscriptPending(**self.ids, ahead=ahead, eta_s=eta_s))
            case PartialTranscription(text=text):
                await self.send(TranscriptPartial(**self.ids, text=text))

    async def stream_text(self, text: str) -> None:
        if self.foreign:
            text = self.links.feed(text)
            if not text:
                return
        if self.preface and not self.streamed:
            text = f"{self.preface}\n\n{text}"
        offset = self.streamed_chars
        self.streamed.append(text)
        self.streamed_chars += len(text)
        await self.send(LlmToken(**self.ids, text=text, offset=offset))

    async def stream_earlier(self, text: str) -> None:
        """Show what an earlier process has shown of this answer, unless this one has shown something."""
        if not self.streamed and not self.links.held:
            await self.stream_text(text)

    async def on_graph_event(self, event: graph_events.GraphEvent) -> None:
        """Show the steps of the graph that came through."""
        match event:
            case graph_events.NodeStarted(node=node):
                await self.send(NodeStarted(**self.ids, node=node))
            case graph_events.NodeCompleted(failure=None, skipped=False, node=node, decision=decision):
                await self.send(NodeCompleted(**self.ids, node=node, decision=decision))
            case graph_events.RunCompleted(outcome=ended):
                self.outcome = ended
                steps = {"run_id": ended.run_id, "stop_reason": ended.stop_reason, "steps": len(ended.path)}
                _log.debug("run ended", extra=steps)
            case _:
                return

    async def complete(self, answer: TurnAnswer) -> None:
        text = "\n\n".join(part for part in (self.preface, answer.text) if part)
        answer = replace(answer, text=self._inert(self.redactor.text(text)))
        entry_id = await self.journal.commit(answer)
        # Off the record a paused run is kept nowhere: its words are an answer, and the next message goes on.
        for gate in answer.gates if self.journal.mode == "normal" else ():
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
        await self.send(
            ResponseComplete(**self.ids, content=answer.text, thoughts=answer.thoughts, entry_id=entry_id)
        )

    async def fail(
        self, code: str, words: str, *, recoverable: bool, exchange: tuple[ChatMessage, ...] = ()
    ) -> None:
        words = self.redactor.text(words)
        partial = self._inert("".join((*self.streamed, self.links.held)).strip())
        entry_id = await self.journal.commit_failure(
            code, words, recoverable=recoverable, partial=partial, exchange=exchange
        )
        await self.send(
            ErrorEvent(**self.ids, code=code, message=words, recoverable=recoverable, entry_id=entry_id)
        )

    def _inert(self, text: str) -> str:
        """Without links of which neither the person nor the operator knows, once foreign text was read."""
        return self.links.inert(text) if self.foreign else text
