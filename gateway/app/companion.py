"""Build the memory of an agent that runs the companion's graph, and its limits."""

from __future__ import annotations

from typing import Final

from gateway.app.components import Foundation
from gateway.config import DEFAULT_AGENT, Settings, agent_settings
from pipeline.runtime.workflow_context import AgentMemory

COMPANION: Final = "companion"
"""The name of the graph."""
_IDLE_S: Final = 1_200.0
"""The time without a message after which a companion's conversation ends, if none is configured."""


def is_companion(settings: Settings) -> bool:
    """Whether the agent with these settings runs the companion's graph."""
    return settings.agent.graph == COMPANION


def has_companion(settings: Settings) -> bool:
    """Whether any agent does."""
    names = (DEFAULT_AGENT, *settings.agents)
    return any(is_companion(agent_settings(settings, name)) for name in names)


def session_idle_s(settings: Settings) -> float:
    """Seconds without a message after which the agent's conversations end; 0 for never."""
    agent = settings.agent
    if is_companion(settings) and "session_idle_s" not in agent.model_fields_set:
        return _IDLE_S
    return agent.session_idle_s


def build_agent_memory(settings: Settings, base: Foundation) -> AgentMemory | None:
    """The memory of the agent with these settings; None for one without memory."""
    memory = base.memory
    if not is_companion(settings):
        knows = settings.memory.agents == "all"
        return AgentMemory(store=memory.book, mode=memory.mode, embedder=memory.embedder) if knows else None
    # Imported here: a gateway without a companion does not need its texts and patterns.
    from pipeline.companion.graph import AFTER_ANSWER  # noqa: PLC0415 - see above
    from pipeline.companion.memory_node import UNRECORDED  # noqa: PLC0415 - see above

    return AgentMemory(
        store=memory.book,
        mode=memory.mode,
        embedder=memory.embedder,
        later=AFTER_ANSWER,
        unrecorded=UNRECORDED,
    )
