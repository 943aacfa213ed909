"""Decide by one short model call whether to answer a message of a room that was not addressed to the bot.

Nothing of the call is shown or stored. Only the defined word means an answer: anything else, a failing model
and a used-up budget mean silence.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from pipeline.agent.model_messages import build_messages
from pipeline.agent.usage_metering import metered_text
from pipeline.domain.chat import ChatMessage
from pipeline.domain.clock import Clock
from pipeline.domain.errors import ModelError, StorageError
from pipeline.domain.messages import InboundMessage
from pipeline.intake.written import written_words
from pipeline.llm.client import LlmClient, LlmRequest
from pipeline.runtime.null_services import NullTools
from pipeline.runtime.ports import UserWords
from pipeline.turn import Turn
from pipeline.turn_contexts import TurnContexts
from pipeline.turn_reads import TurnReads

_log = logging.getLogger(__name__)

ANSWER = "ANSWER"
NO_REPLY = "NO_REPLY"
QUESTION = (
    "[The last message was written to the room, and not to you. Do not answer it yet. Decide whether the "
    "people here would want an answer from you: it asks something that you know and no one has answered, "
    "or something is wrong that matters to them. If you are not sure, stay silent. Write exactly one word: "
    f"{ANSWER} or {NO_REPLY}.]"
)
_MOST_TOKENS = 16
_MOST_CHARS = 200
_LONGEST_S = 30.0
_AROUND = " \t\r\n\"'`*_.!"


Gate = Callable[[Turn, UserWords, TurnReads], Awaitable[str]]
"""The reply with which a gate takes a message over; empty if it passes it."""


class UnaskedMessages:
    """Decides for one agent. It uses the cheaper model where there is one. `gate` sees every message first;
    one that it does not pass is not answered."""

    def __init__(
        self,
        contexts: TurnContexts,
        *,
        llm: LlmClient,
        clock: Clock,
        gate: Gate | None = None,
        in_danger: Callable[[str], bool],
    ) -> None:
        """`in_danger`: whether words get an answer without a question, because their author is in danger."""
        self._contexts = contexts
        self._gate = gate
        self._in_danger = in_danger
        self._llm = contexts.services.cheaper or llm
        self._clock = clock

    async def wants_answer(self, turn: Turn) -> bool:
        """Whether the bot answers the turn's message. Raises StorageError."""
        words = written_words(turn.message)
        if words is None:
            return False
        message = turn.message
        if isinstance(message, InboundMessage) and not message.forwarded and self._in_danger(message.text):
            return True
        services, scope = self._contexts.services, turn.scope
        if (await services.budgets.allowance(scope)).model == "none":
            return False
        reads = self._contexts.reads(turn.message, turn.journal, scope, words)
        if self._gate is not None and not await self._passes(self._gate, turn, words, reads):
            return False
        context = self._contexts.context(
            turn.message, turn.journal, words, reads, llm=self._llm, tools=NullTools()
        )
        try:
            async with self._clock.timeout(_LONGEST_S):
                messages = await build_messages(context, {})
                request = LlmRequest(
                    messages=(*messages, ChatMessage(role="user", content=QUESTION)),
                    max_tokens=_MOST_TOKENS,
                    temperature=0.0,
                    timeout_s=_LONGEST_S,
                )
                said = await metered_text(request, context, most_chars=_MOST_CHARS)
        except StorageError:
            raise
        except (ModelError, TimeoutError) as error:
            _log.info("a message of a room is not considered", extra={"reason": str(error)})
            return False
        return said.strip(_AROUND).upper() == ANSWER

    async def _passes(self, gate: Gate, turn: Turn, words: UserWords, reads: TurnReads) -> bool:
        try:
            async with self._clock.timeout(_LONGEST_S):
                return not await gate(turn, words, reads)
        except StorageError:
            raise
        except Exception as error:  # noqa: BLE001 - what could not be checked is not passed
            _log.warning("a message of a room was not checked", extra={"reason": str(error)})
            return False
