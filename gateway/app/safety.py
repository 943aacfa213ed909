"""Build the crisis gate of an agent."""

from __future__ import annotations

from gateway.config import DEFAULT_AGENT, Settings, agent_settings
from pipeline.safety.crisis_gate import CrisisGate
from pipeline.safety.resources import ResourceBook, read_resources, shipped_resources


def build_crisis_gate(settings: Settings) -> CrisisGate | None:
    """The gate of the agent with these settings; None if the agent is exempt. Raises ConfigurationError for a
    bad file of resources."""
    if settings.safety.gate == "off":
        return None
    country, language = settings.safety.country or "", settings.agent.language or ""
    return CrisisGate(_resources(settings), country=country, language=language)


def exempt_agents(settings: Settings) -> tuple[str, ...]:
    """The names of the agents that the configuration exempts from the crisis gate."""
    names = (DEFAULT_AGENT, *settings.agents)
    return tuple(name for name in names if agent_settings(settings, name).safety.gate == "off")


def crisis_gate_words(settings: Settings) -> str:
    """One line for the operator: which agents have the gate, and of which date the numbers are."""
    exempt = exempt_agents(settings)
    before = f"not before: {', '.join(exempt)}" if exempt else "before every agent"
    return f"{before}; numbers of help as of {_resources(settings).as_of}"


def _resources(settings: Settings) -> ResourceBook:
    own = settings.safety.resources
    return shipped_resources() if own is None else shipped_resources().with_own(read_resources(own))
