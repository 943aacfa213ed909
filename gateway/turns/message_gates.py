"""Which messages a gate sees before the inbox decides about them: the inbox leaves those to a turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from gateway.agents.agent_book import AgentBook
from gateway.turns.bursts import answering
from gateway.turns.sessions import SessionState, SessionView
from pipeline.domain.messages import InboundMessage


class MessageGates:
    """The gates of all agents, as the inbox asks them."""

    def __init__(self, agents: AgentBook, open_session: Callable[[str], Awaitable[SessionState]]) -> None:
        self._agents = agents
        self._open_session = open_session

    def sees(self, message: InboundMessage) -> bool:
        """See `Gates.sees`."""
        return self._agents.sees(message.text)

    async def passes_gate(self, message: InboundMessage) -> bool:
        """See `Gates.passes_gate`."""
        session = await self._open_session(message.thread.encode())
        pipeline = answering(self._agents, message, session).pipeline
        return await pipeline.passes(message, SessionView(session, message))
