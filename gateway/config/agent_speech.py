"""What an agent's settings say about speech: its language and its voice."""

from __future__ import annotations

from gateway.config.agent_settings import agent_settings
from gateway.config.settings import Settings
from pipeline.domain.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpeech:
    """The speech settings of one agent."""

    language: str = ""
    """A two-letter code, for people whose language is not known; empty for none."""
    voice: str = ""
    """The name of the voice that reads its answers; empty for the language's first one."""


def agent_speech(settings: Settings, name: str) -> AgentSpeech:
    """The speech settings of the agent `name`. Raises KeyError for an unknown one."""
    agent = agent_settings(settings, name).agent
    return AgentSpeech(language=agent.language or "", voice=agent.voice or "")
