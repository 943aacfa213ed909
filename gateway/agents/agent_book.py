"""The agents of this gateway by name, and which of them answers a message."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from gateway.agents.routes import Routes
from gateway.config import DEFAULT_AGENT
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey
from pipeline.llm.client import LlmClient
from pipeline.service import Pipeline


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentModels:
    """The models of one agent, and their limits."""

    name: str = ""
    """The model's name in the settings."""
    context_tokens: int = 0
    """The model's window."""
    llm: LlmClient
    cheaper: LlmClient | None = None
    """The model for people whose budget is nearly spent."""
    summarise_above: int
    """Messages of a conversation above which its beginning is summarised."""
    llm_timeout_s: float
    session_idle_s: float = 0.0
    """Seconds without a message after which a conversation ends; 0 for never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """One agent."""

    name: str
    description: str = ""
    """What it is for, in a few words for people."""
    pipeline: Pipeline
    models: AgentModels
    choices: Mapping[str, Agent] = field(default_factory=dict)
    """The agent with each other model that people can choose, by the model's name."""
    reads_only: Callable[[str], bool] = lambda _tool: False
    """Whether the tool of that name is known to change nothing."""

    def using(self, model: str) -> Agent:
        """The agent with the chosen model; with its own if there is no such choice."""
        return self.choices.get(model, self)


class AgentBook:
    """The agents; the first is the default one. Does not change while the gateway runs."""

    def __init__(self, agents: Sequence[Agent], routes: Routes) -> None:
        self._agents = {agent.name: agent for agent in agents}
        self._routes = routes
        self.default = agents[0]

    def sees(self, text: str) -> bool:
        """Whether an agent has a gate that sees a message with `text` before anything else decides."""
        return any(agent.pipeline.sees(text) for agent in self._agents.values())

    def find(self, name: str) -> Agent | None:
        """The agent of that name as records have it, empty for the default one; None if there is none."""
        return self._agents.get(name or DEFAULT_AGENT)

    def recorded_name(self, agent: Agent) -> str:
        """The agent's name as records have it: empty for the default one."""
        return "" if agent is self.default else agent.name

    def models(self, name: str) -> AgentModels:
        """The models of the agent, or the default one's if there is none of that name any more."""
        return self._agents.get(name or DEFAULT_AGENT, self.default).models

    def choices(self, thread: ThreadKey, author: str, *, private: bool) -> tuple[Agent, ...]:
        """The agents that the author may talk to in that chat; the one that answers unasked is first."""
        names = self._routes.names(thread, author, private=private)
        return tuple(self._agents[name] for name in names)

    def answering(self, thread: ThreadKey, author: str, *, private: bool, chosen: str) -> Agent:
        """The agent that answers the author's next message, see `Routes.answering`."""
        if len(self._agents) == 1:
            return self.default
        name = self._routes.answering(thread, author, private=private, chosen=chosen)
        # A run of the API may name an agent that is gone; it is cancelled, and needs one only to end.
        return self._agents.get(name, self.default)
