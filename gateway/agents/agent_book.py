"""The agents of this gateway by name, and which of them answers a message."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field

from gateway.agents.routes import AgentRoutes
from gateway.config import DEFAULT_AGENT
from pipeline.domain.bounded_dict import BoundedDict
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey
from pipeline.graph.run.records import RawRecord
from pipeline.graph_book import SAVED
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
class ShownRun:
    """What people read of a run of a workflow."""

    status: str
    """pending, running, paused, completed or failed."""
    node: str = ""
    """Where it is, or where it was at its end; empty before its first step."""
    waits_for: str = ""
    """What a person is asked; empty for nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowFacts:
    """The workflow that an agent runs, as far as commands need to know it."""

    needs_text: bool
    """It does nothing without a message."""
    shown: Callable[[Sequence[RawRecord]], ShownRun]
    """What the records of one of its runs say."""


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
    workflow: WorkflowFacts | None = None
    """None for an agent whose graph is no workflow document."""

    def using(self, model: str) -> Agent:
        """The agent with the chosen model; with its own if there is no such choice."""
        return self.choices.get(model, self)


FindSaved = Callable[[str], Awaitable[Agent | None]]
"""Finds the agent of a saved workflow by its name and version, as a message has them; None if there is none.
Raises StorageError."""
_MOST_SAVED = 50


class AgentBook:
    """The agents; the first is the default one. Does not change while the gateway runs, except that saved
    workflows are added when they are first run."""

    def __init__(self, agents: Sequence[Agent], routes: AgentRoutes, saved: FindSaved | None = None) -> None:
        self._agents = {agent.name: agent for agent in agents}
        self._routes = routes
        self._find_saved = saved
        self._saved = BoundedDict[str, Agent](_MOST_SAVED)
        self.default = agents[0]

    @property
    def all(self) -> tuple[Agent, ...]:
        """Every agent, the default one first."""
        return tuple(self._agents.values())

    def sees(self, text: str) -> bool:
        """Whether an agent has a gate that sees a message with `text` before anything else decides."""
        return any(agent.pipeline.sees(text) for agent in self._agents.values())

    def find(self, name: str) -> Agent | None:
        """The agent of that name as records have it, empty for the default one; None if there is none, or if
        it is a saved workflow that `load` has not found."""
        return self._agents.get(name or DEFAULT_AGENT) or self._saved.get(name)

    async def load(self, name: str) -> Agent | None:
        """The agent of that name, like `find`; a saved workflow is read from the store. A version does not
        change, so each is read once. Raises StorageError."""
        found = self.find(name)
        if found is None and self._find_saved is not None and name.startswith(SAVED):
            found = await self._find_saved(name)
            if found is not None:
                self._saved[name] = found
        return found

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

    def workflows(self, thread: ThreadKey, author: str, *, private: bool) -> tuple[Agent, ...]:
        """Those among the author's choices that run a workflow."""
        return tuple(
            agent for agent in self.choices(thread, author, private=private) if agent.workflow is not None
        )

    @property
    def has_workflows(self) -> bool:
        """Whether any agent runs a workflow."""
        return any(agent.workflow is not None for agent in self._agents.values())

    def answering(self, thread: ThreadKey, author: str, *, private: bool, chosen: str) -> Agent:
        """The agent that answers the author's next message, see `AgentRoutes.answering`."""
        if len(self._agents) == 1:
            return self.default
        name = self._routes.answering(thread, author, private=private, chosen=chosen)
        # A run of the API may name an agent that is gone; it is cancelled, and needs one only to end.
        return self._agents.get(name, self.default)
