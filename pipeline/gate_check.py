"""Have an agent's gate check the messages of its turns, and answers that a running turn waits for."""

from __future__ import annotations

import logging

from pipeline.domain.clock import Clock
from pipeline.domain.messages import InboundMessage
from pipeline.intake.written import written_words
from pipeline.llm.client import LlmClient
from pipeline.runtime.before_message import BeforeMessage, MessageKind
from pipeline.runtime.ports import TurnSession, UserWords
from pipeline.turn import Turn
from pipeline.turn_contexts import TurnContexts
from pipeline.turn_reads import TurnReads

_log = logging.getLogger(__name__)

AT_ACCEPTANCE_S = 10.0
"""The longest check of a message before it is accepted; a platform expects a confirmation soon."""


class GateCheck:
    """Runs the gate of one agent. Its model is the agent's own, also when a budget is used up: what the gate
    spends is counted."""

    def __init__(
        self, gate: BeforeMessage, contexts: TurnContexts, *, llm: LlmClient, agent: str, clock: Clock
    ) -> None:
        self._gate = gate
        self._contexts = contexts
        self._llm = llm
        self._agent = agent
        self._clock = clock

    async def reply(self, turn: Turn, words: UserWords, reads: TurnReads, *, is_command: bool) -> str:
        """The reply with which the gate takes the turn's message over; empty if it passes it. Raises whatever
        the gate raises.

        A message whose run has begun was passed by an earlier attempt and is not checked again.
        """
        if await turn.journal.recorded_run():
            return ""
        services = self._contexts.services
        context = self._contexts.context(
            turn.message, turn.journal, words, reads, llm=self._llm, tools=services.tools
        )
        kind: MessageKind = "command" if is_command else _kind(words)
        reply = services.redactor.text(await self._gate.reply(kind, context))
        if reply:
            _log.info("the gate takes a message over", extra={"message_id": turn.message.message_id})
        return reply

    async def passes(self, message: InboundMessage, session: TurnSession) -> bool:
        """Whether the gate passes `message`, an answer that a running turn of the session waits for. Nothing
        is sent or written, and there are no tools. A check that fails or takes longer than 10 seconds does
        not pass."""
        words = written_words(message)
        if words is None:
            return True
        context = self._contexts.outside_turn(message, session, words, llm=self._llm, agent=self._agent)
        try:
            async with self._clock.timeout(AT_ACCEPTANCE_S):
                return not await self._gate.reply(_kind(words), context)
        except Exception as error:  # noqa: BLE001 - what could not be checked is not passed
            _log.warning("an answer was not checked", extra={"reason": str(error)})
            return False


def _kind(words: UserWords) -> MessageKind:
    return "text" if words.speech is None else "speech"
