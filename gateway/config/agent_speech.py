"""What an agent's settings say about speech: its language and its voice."""

from __future__ import annotations

from gateway.config.agent_settings import agent_settings
from gateway.config.settings import Settings
from pipeline.domain.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpeech:
    """The speech settings of one agent."""

    language: str = ""
    """A BCP 47 tag such as `de` or `pt-BR`, for people whose language is not known; empty for none."""
    voice: str = ""
    """The name of the voice that reads its answers; empty for the language's first one."""

    @property
    def spoken(self) -> str:
        """The language's code without script and region, as a recogniser names it; empty for none."""
        return self.language.partition("-")[0]

    def read_in(self, spoken: str) -> str:
        """The language in which to read an answer to a person who last spoke `spoken`, empty if that is not
        known; empty if neither names one."""
        return self.language if spoken in ("", self.spoken) else spoken


def agent_speech(settings: Settings, name: str) -> AgentSpeech:
    """The speech settings of the agent `name`. Raises KeyError for an unknown one."""
    agent = agent_settings(settings, name).agent
    return AgentSpeech(language=agent.language or "", voice=agent.voice or "")
