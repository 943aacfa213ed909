"""Build what the nodes of a turn's runs get: its reads, and the context around them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence

from pipeline.domain.clock import Clock
from pipeline.domain.messages import ApprovalReply, InboundMessage
from pipeline.history.attached_files import ATTACHED_PICTURE, pictures_in, source_of
from pipeline.intake.forwarded_content import note_foreign
from pipeline.llm.client import LlmClient
from pipeline.runtime.context import RunContext, SteeredWords, ignore_text, none_steered
from pipeline.runtime.null_services import NullTools
from pipeline.runtime.ports import ToolGate, TurnSession, UserWords
from pipeline.runtime.scope import TurnScope, ignore_event
from pipeline.runtime.services import PipelineServices
from pipeline.runtime.settings import PipelineSettings
from pipeline.runtime.workflow_context import WorkflowContext
from pipeline.turn_reads import TurnReads


class TurnContexts:
    """Builds them for all turns of one agent."""

    def __init__(self, *, services: PipelineServices, settings: PipelineSettings, clock: Clock) -> None:
        self.services = services
        self._settings = settings
        self._clock = clock

    def reads(
        self,
        message: InboundMessage | ApprovalReply,
        session: TurnSession,
        scope: TurnScope,
        words: UserWords,
    ) -> TurnReads:
        """The reads of the turn of `scope`, in which the foreign words of the message are noted."""
        note_foreign(scope, words.text)
        settings, shown = self._settings, pictures_in(words.files)
        if words.files:
            scope.foreign.note(source_of(words.files) or (ATTACHED_PICTURE if settings.vision else ""))
        return TurnReads(
            session=session,
            rooms=self.services.rooms,
            workspace=self.services.workspace,
            message=message,
            scope=scope,
            clock=self._clock,
            pictures=max(0, settings.pictures_shown - len(shown)) if settings.vision else None,
        )

    def outside_turn(
        self,
        message: InboundMessage,
        session: TurnSession,
        words: UserWords,
        *,
        llm: LlmClient,
        agent: str,
        workflow: WorkflowContext | None = None,
    ) -> RunContext:
        """The context of a run about `message` that is no turn: nothing is sent, and there are no tools."""
        scope = TurnScope(
            session_id=session.session_id,
            message_id=message.message_id,
            thread=message.thread,
            author=message.author,
            person=self.services.person_of(message.thread, message.author.id),
            private=message.private,
            mode=session.mode,
            agent=agent,
            send=ignore_event,
        )
        reads = self.reads(message, session, scope, words)
        return self.context(message, session, words, reads, llm=llm, tools=NullTools(), workflow=workflow)

    def context(
        self,
        message: InboundMessage | ApprovalReply,
        session: TurnSession,
        words: UserWords,
        reads: TurnReads,
        *,
        llm: LlmClient,
        tools: ToolGate,
        on_text: Callable[[str], Awaitable[None]] = ignore_text,
        on_earlier: Callable[[str], Awaitable[None]] = ignore_text,
        steered: Callable[[Collection[str]], Awaitable[Sequence[SteeredWords]]] = none_steered,
        workflow: WorkflowContext | None = None,
        crisis_level: int = 0,
    ) -> RunContext:
        """The context of one run about `words`. Without `on_text` nothing is shown while it runs."""
        services = self.services
        return RunContext(
            text=words.text,
            by=words.by,
            files=words.files,
            attached=words.attached,
            attachments=services.attachments,
            speech=words.speech,
            history=reads,
            scope=reads.scope,
            llm=llm,
            tools=tools,
            skills=services.skills,
            workspace=reads,
            facts=services.facts,
            budgets=services.budgets,
            clock=self._clock,
            redactor=services.redactor,
            settings=self._settings,
            on_text=on_text,
            on_earlier=on_earlier,
            steered=steered,
            crisis_level=crisis_level,
            received_at=message.received_at,
            arrivals=session.arrivals,
            workflow=workflow,
        )
