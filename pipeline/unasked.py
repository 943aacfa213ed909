"""Decide by one short model call whether to answer a message of a room that was not addressed to the bot.

Nothing of the call is shown or stored. Only the defined word means an answer: anything else, a failing model
and a used-up budget mean silence.
"""

from __future__ import annotations

import logging

from pipeline.agent.model_messages import build_messages
from pipeline.agent.usage_metering import metered_text
from pipeline.domain.chat import ChatMessage
from pipeline.domain.clock import Clock
from pipeline.domain.errors import ModelError, StorageError
from pipeline.intake.written import written_words
from pipeline.llm.client import LlmClient, LlmRequest
from pipeline.runtime.null_services import NullTools
from pipeline.turn import Turn
from pipeline.turn_contexts import TurnContexts

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


class UnaskedMessages:
    """Decides for one agent. It uses the cheaper model where there is one."""

    def __init__(self, contexts: TurnContexts, *, llm: LlmClient, clock: Clock) -> None:
        self._contexts = contexts
        self._llm = contexts.services.cheaper or llm
        self._clock = clock

    async def wants_answer(self, turn: Turn) -> bool:
        """Whether the bot answers the turn's message. Raises StorageError."""
        words = written_words(turn.message)
        if words is None:
            return False
        services, scope = self._contexts.services, turn.scope
        if (await services.budgets.allowance(scope)).model == "none":
            return False
        reads = self._contexts.reads(turn.message, turn.journal, scope, words)
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
