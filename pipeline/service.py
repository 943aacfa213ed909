"""One message through the pipeline: record, run the graph, commit, tell. The only way in.

It owns the deadline of a turn and turns every failure into one visible outcome. It does not know
where the message came from, and it does not deliver: the journal's commit hands the reply over.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict

from pipeline.domain.errors import GraphError, ModelError, StorageError, TurnFailed
from pipeline.domain.events import (
    ErrorEvent,
    LlmToken,
    NodeCompleted,
    NodeStarted,
    PipelineEvent,
    ResponseComplete,
    TranscriptReady,
    TurnStarted,
)
from pipeline.domain.ids import new_id
from pipeline.domain.messages import InboundMessage
from pipeline.domain.ports import EventSender
from pipeline.graph.decisions import NodeDecision, decision_name
from pipeline.graph.executor import Executor, RunOutcome
from pipeline.graph.spec import GraphSpec
from pipeline.intake.cleaning import clean_text
from pipeline.llm.client import LlmClient
from pipeline.runtime.context import RunContext
from pipeline.runtime.ports import Ears, ResumePoint, TurnAnswer, TurnJournal
from pipeline.runtime.settings import PipelineSettings
from pipeline.runtime.stopping import StopSignal
from pipeline.runtime.terminal import TerminalGuard

_log = logging.getLogger(__name__)

_INTERNAL_WORDS = "Something went wrong inside the assistant. Please send the message again."
_LOOP_WORDS = "The assistant went round in circles and was stopped. Please put the question differently."


class Pipeline:
    """The shared pipeline of all channels. One instance serves every thread at once."""

    def __init__(
        self, *, graph: GraphSpec[RunContext], llm: LlmClient, ears: Ears, settings: PipelineSettings
    ) -> None:
        self._executor = Executor(graph)
        self._llm = llm
        self._ears = ears
        self._settings = settings

    async def process(
        self,
        message: InboundMessage,
        sender: EventSender,
        journal: TurnJournal,
        stop: StopSignal | None = None,
    ) -> None:
        """Answer `message`: events to `sender`, everything durable to `journal`.

        Exactly one terminal event is sent, after the commit it speaks of. StorageError and
        cancellation propagate without one: the turn is not over and will be taken up again.
        """
        turn = _Turn(message=message, sender=TerminalGuard(sender), journal=journal)
        stop = stop or StopSignal()
        try:
            await turn.send(TurnStarted(**turn.ids))
            if message.voice is None and clean_text(message.text):
                # Before the guard: what was said is on record even if it was stopped while it waited.
                await journal.record_user(message.text, spoken=False)
            with stop.guard():
                answer = await self._within_deadline(turn)
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
            await turn.complete(answer)

    async def _within_deadline(self, turn: _Turn) -> str:
        deadline = asyncio.timeout(self._settings.turn_timeout_s)
        try:
            async with deadline:
                return await self._answer(turn)
        except TimeoutError:
            if not deadline.expired():
                raise
            limit = round(self._settings.turn_timeout_s)
            words = f"The answer took longer than {limit} seconds and was given up. Please try again."
            raise TurnFailed("timeout", words) from None

    async def _answer(self, turn: _Turn) -> str:
        text, spoken = await self._words(turn)
        if spoken:
            await turn.journal.record_user(text, spoken=True)
        context = RunContext(
            text=text,
            spoken=spoken,
            history=await turn.journal.history(),
            llm=self._llm,
            settings=self._settings,
            on_text=turn.stream_text,
        )
        resume = await turn.journal.resume_point()
        outcome = await self._run(turn, context, resume)
        if outcome.stop_reason != "completed":
            raise TurnFailed(outcome.stop_reason, _LOOP_WORDS)
        answer = outcome.state.get("agent", {}).get("answer")
        if not isinstance(answer, str) or not answer:
            raise GraphError("the graph ended without an answer")
        return answer

    async def _words(self, turn: _Turn) -> tuple[str, bool]:
        """The user's words: typed, heard now, or heard before a crash. Also whether they were spoken."""
        message = turn.message
        if message.voice is None:
            if not clean_text(message.text):
                raise TurnFailed("unsupported", "I can read text and hear voice notes, nothing else yet.")
            return message.text, False
        recorded = await turn.journal.recorded_user()
        if recorded is not None:
            return recorded, True
        heard = await self._ears.hear(message)
        await turn.send(
            TranscriptReady(**turn.ids, text=heard.text, language=heard.language, confidence=heard.confidence)
        )
        caption = message.text.strip()
        return (f"{caption}\n\n{heard.text}" if caption else heard.text), True

    async def _run(self, turn: _Turn, context: RunContext, resume: ResumePoint | None) -> RunOutcome:
        if resume is None:
            return await self._executor.run({}, context, _Observer(turn, new_id("run")))
        observer = _Observer(turn, resume.run_id)
        return await self._executor.run(resume.state, context, observer, start=resume.node)


class _Ids(TypedDict):
    session_id: str
    message_id: str


@dataclass(slots=True, kw_only=True)
class _Turn:
    """One message's way through: where its events and records go, and what has been streamed."""

    message: InboundMessage
    sender: TerminalGuard
    journal: TurnJournal
    streamed: list[str] = field(default_factory=list)
    streamed_chars: int = 0

    @property
    def ids(self) -> _Ids:
        return {"session_id": self.journal.session_id, "message_id": self.message.message_id}

    async def send(self, event: PipelineEvent) -> None:
        await self.sender.send_event(event)

    async def stream_text(self, text: str) -> None:
        offset = self.streamed_chars
        self.streamed.append(text)
        self.streamed_chars += len(text)
        await self.send(LlmToken(**self.ids, text=text, offset=offset))

    async def complete(self, answer: str) -> None:
        entry_id = await self.journal.commit(TurnAnswer(text=answer))
        await self.send(ResponseComplete(**self.ids, content=answer, entry_id=entry_id))

    async def fail(self, code: str, words: str, *, recoverable: bool) -> None:
        partial = "".join(self.streamed).strip()
        entry_id = await self.journal.commit_failure(code, words, recoverable=recoverable, partial=partial)
        await self.send(
            ErrorEvent(**self.ids, code=code, message=words, recoverable=recoverable, entry_id=entry_id)
        )


class _Observer:
    """Turns the engine's steps into events and records."""

    def __init__(self, turn: _Turn, run_id: str) -> None:
        self._turn = turn
        self._run_id = run_id

    async def node_started(self, node: str) -> None:
        await self._turn.send(NodeStarted(**self._turn.ids, node=node))

    async def node_completed(
        self, node: str, decision: NodeDecision, update: Mapping[str, Any], next_node: str | None
    ) -> None:
        if next_node is not None:
            # The last step needs no record of its own: the commit that follows at once holds it.
            self._turn.journal.record_step(self._run_id, node, update, next_node)
        await self._turn.send(NodeCompleted(**self._turn.ids, node=node, decision=decision_name(decision)))

    async def run_completed(self, outcome: RunOutcome) -> None:
        ended = {"run_id": self._run_id, "stop_reason": outcome.stop_reason, "steps": len(outcome.path)}
        _log.debug("run ended", extra=ended)
